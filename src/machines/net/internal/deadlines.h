#pragma once
// One timer per IO thread for all of its connections. Moving a deadline is a store: the timer is
// armed anew only when it would fire too late, and finds out by itself when it fired too early.
#include <cstddef>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"

namespace molly::net::internal {

class Deadlines;

/// Something with at most one deadline. Lives on one IO thread.
class Timed {
public:
    explicit Timed(boost::asio::io_context& io);
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;
    Timed(Timed&&) = delete;
    Timed& operator=(Timed&&) = delete;
    virtual ~Timed();

    /// Replaces the deadline; MonoTime::max() means none.
    void set_deadline(MonoTime when);

private:
    friend class Deadlines;
    /// The deadline has passed. Must not resume anybody before it returns.
    virtual void on_deadline() = 0;
    /// The IO thread goes away: drop whoever waits.
    virtual void on_shutdown() = 0;

    Deadlines* deadlines_;
    MonoTime when_ = MonoTime::max();
    std::size_t slot_ = 0;
};

class Deadlines final : public boost::asio::execution_context::service {
public:
    static inline boost::asio::execution_context::id id;

    explicit Deadlines(boost::asio::execution_context& context);

private:
    friend class Timed;
    void add(Timed& timed);
    void remove(Timed& timed);
    void arm(MonoTime when);
    void fire();
    void shutdown() override;

    boost::asio::steady_timer timer_;
    std::vector<Timed*> all_;
    MonoTime armed_ = MonoTime::max();
};

inline void Timed::set_deadline(MonoTime when) {
    when_ = when;
    if (when < deadlines_->armed_) deadlines_->arm(when);
}

}  // namespace molly::net::internal
