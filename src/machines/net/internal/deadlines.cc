#include "net/internal/deadlines.h"

#include <algorithm>
#include <chrono>

namespace molly::net::internal {
namespace {

// Deadlines that lie close together share one wake-up.
constexpr std::chrono::milliseconds grain{2};

}  // namespace

Timed::Timed(boost::asio::io_context& io) : deadlines_(&boost::asio::use_service<Deadlines>(io)) {
    deadlines_->add(*this);
}

Timed::~Timed() {
    deadlines_->remove(*this);
}

Deadlines::Deadlines(boost::asio::execution_context& context)
    : boost::asio::execution_context::service(context),
      timer_(static_cast<boost::asio::io_context&>(context)) {}

void Deadlines::add(Timed& timed) {
    timed.slot_ = all_.size();
    all_.push_back(&timed);
}

void Deadlines::remove(Timed& timed) {
    if (timed.slot_ >= all_.size() || all_[timed.slot_] != &timed) return;
    all_[timed.slot_] = all_.back();
    all_[timed.slot_]->slot_ = timed.slot_;
    all_.pop_back();
}

void Deadlines::arm(MonoTime when) {
    armed_ = when;
    timer_.expires_at(when);
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (!error) fire();
    });
}

void Deadlines::fire() {
    const MonoTime now = std::chrono::steady_clock::now();
    MonoTime next = MonoTime::max();
    for (Timed* timed : all_) {
        if (timed->when_ <= now) {
            timed->when_ = MonoTime::max();
            timed->on_deadline();
        }
        next = std::min(next, timed->when_);
    }
    armed_ = MonoTime::max();
    if (next != MonoTime::max()) arm(std::max(next, now + grain));
}

void Deadlines::shutdown() {
    while (!all_.empty()) {
        Timed* timed = all_.back();
        all_.pop_back();
        timed->on_shutdown();
    }
}

}  // namespace molly::net::internal
