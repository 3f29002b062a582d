#pragma once
// The io_contexts behind IoThreads.
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "net/server.h"

namespace molly::net {

class IoThreads::Contexts {
public:
    explicit Contexts(std::size_t count);
    Contexts(const Contexts&) = delete;
    Contexts& operator=(const Contexts&) = delete;
    Contexts(Contexts&&) = delete;
    Contexts& operator=(Contexts&&) = delete;
    ~Contexts();

    std::size_t size() const noexcept { return homes_.size(); }
    boost::asio::io_context& at(std::size_t index) noexcept { return homes_[index]->io; }
    /// Each one in turn.
    std::size_t next() noexcept {
        return turn_.fetch_add(1, std::memory_order_relaxed) % homes_.size();
    }
    /// Whether the calling thread is one of these.
    bool here() const noexcept;

private:
    struct Home {
        boost::asio::io_context io{1};  // one thread runs it
        boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
            io.get_executor()};
        std::thread thread;
    };
    std::vector<std::unique_ptr<Home>> homes_;
    std::atomic<std::size_t> turn_ = 0;
};

}  // namespace molly::net
