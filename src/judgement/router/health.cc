#include <algorithm>
#include <cmath>

#include "router/router.h"

namespace molly::router {
namespace {

constexpr double weight_of_new = 0.2;  // of the newest sample in a moving average

double moved(double average, double sample, bool first) noexcept {
    return first ? sample : average + weight_of_new * (sample - average);
}

double milliseconds(std::chrono::microseconds duration) noexcept {
    return static_cast<double>(duration.count()) / 1000.0;
}

/// Of a measurement of this age: 1 now, a half after one half-life.
double freshness(Duration age, std::chrono::milliseconds half_life) noexcept {
    const std::chrono::duration<double> seconds = age;
    const std::chrono::duration<double> half = half_life;
    return half.count() > 0 ? std::exp2(-std::max(0.0, seconds.count()) / half.count()) : 1;
}

double mixed(double old, double recent, double share) noexcept {
    return old + (recent - old) * share;
}

bool counts_against(ErrorCode code) noexcept {
    return code == ErrorCode::unavailable || code == ErrorCode::upstream_failed ||
           code == ErrorCode::rate_limited || code == ErrorCode::deadline_exceeded;
}

}  // namespace

Health::Health(const Options& options, Clock& clock)
    : failures_to_open_(std::max(1U, options.failures_to_open)),
      open_for_(options.open_for),
      latency_half_life_(options.latency_half_life),
      clock_(clock) {}

void Health::look(TargetView& view) const {
    const MonoTime now = clock_.now();
    const std::scoped_lock lock(mutex_);
    look_at(*view.spec, now, view);
}

void Health::look(std::span<const std::shared_ptr<const domain::TargetSpec>> targets,
                  std::span<Live> out) const {
    const MonoTime now = clock_.now();
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < targets.size() && !states_.empty(); ++i)
        look_at(*targets[i], now, out[i]);
}

/// Under the lock.
void Health::look_at(const domain::TargetSpec& target, MonoTime now, Live& live) const {
    const auto found = states_.find(target.id);
    if (found == states_.end()) return;
    const State& state = found->second;
    const double fresh = freshness(now - state.measured, latency_half_life_);
    const auto declared_first = static_cast<double>(target.first_token.count());
    const double declared_token = 1000.0 / std::max(target.tokens_per_second, 0.001);
    if (state.samples > 0) live.first_token_ms = mixed(declared_first, state.first_token_ms, fresh);
    if (state.token_ms > 0) live.token_ms = mixed(declared_token, state.token_ms, fresh);
    if (state.open_until > now) {
        live.available = false;
        live.retry_after = std::chrono::ceil<std::chrono::milliseconds>(state.open_until - now);
    } else if (state.trial) {
        live.available = false;
        live.retry_after = open_for_;
    }
}

bool Health::admit(const std::string& target) {
    const MonoTime now = clock_.now();
    const std::scoped_lock lock(mutex_);
    const auto found = states_.find(target);
    if (found == states_.end()) return true;
    State& state = found->second;
    if (state.open_until > now || state.trial) return false;
    state.trial = state.failures >= failures_to_open_;
    return true;
}

void Health::saw_first_token(State& state, std::chrono::microseconds first_token) {
    const double sample = milliseconds(first_token);
    state.first_token_ms = moved(state.first_token_ms, sample, state.samples == 0);
    if (state.latest.size() < latest_max) {
        state.latest.push_back(static_cast<float>(sample));
    } else {
        state.latest[state.samples % latest_max] = static_cast<float>(sample);
    }
    ++state.samples;
    state.measured = clock_.now();
}

void Health::lagged(const std::string& target, std::chrono::microseconds waited) {
    const std::scoped_lock lock(mutex_);
    State& state = states_[target];
    // What it would have taken is not known, only that it is more.
    if (milliseconds(waited) > state.first_token_ms) saw_first_token(state, waited);
}

std::optional<std::chrono::milliseconds> Health::slow_first_token(const std::string& target) const {
    constexpr std::size_t enough = 20;
    const std::scoped_lock lock(mutex_);
    const auto found = states_.find(target);
    if (found == states_.end() || found->second.latest.size() < enough) return std::nullopt;
    std::vector<float> times = found->second.latest;
    const auto place = times.begin() + static_cast<std::ptrdiff_t>((times.size() * 95) / 100);
    std::nth_element(times.begin(), place, times.end());
    return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*place)));
}

void Health::succeeded(const std::string& target, std::chrono::microseconds first_token,
                       std::chrono::microseconds duration, std::uint32_t answer_tokens) {
    const std::scoped_lock lock(mutex_);
    State& state = states_[target];
    saw_first_token(state, first_token);
    if (answer_tokens > 1) {
        const double per_token = milliseconds(duration - first_token) / (answer_tokens - 1);
        state.token_ms = moved(state.token_ms, std::max(0.0, per_token), state.token_ms == 0);
    }
    state.failures = 0;
    state.trial = false;
    state.open_until = {};
}

void Health::failed(const std::string& target, const Error& error) {
    const MonoTime now = clock_.now();
    const std::scoped_lock lock(mutex_);
    State& state = states_[target];
    const bool trial = state.trial;
    state.trial = false;
    if (!counts_against(error.code())) return;
    ++state.failures;
    if (trial || state.failures >= failures_to_open_) {
        state.failures = std::max(state.failures, failures_to_open_);
        state.open_until = std::max(state.open_until, now + open_for_);
    }
    // The target said itself when to come back.
    if (error.retry_after())
        state.open_until = std::max(state.open_until, now + *error.retry_after());
}

}  // namespace molly::router
