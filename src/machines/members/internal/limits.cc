#include "members/internal/limits.h"

#include <algorithm>

#include <fmt/format.h>

namespace molly::members::internal {
namespace {

std::unexpected<Error> slow_down(std::string english, std::string italian, std::string reason,
                                 std::int64_t seconds) {
    return fail(Error(ErrorCode::rate_limited, std::move(english))
                    .italian(std::move(italian))
                    .reason(std::move(reason))
                    .retry_after(std::chrono::seconds(std::max<std::int64_t>(seconds, 1))));
}

Result<void> check_parallel(const Meter& meter) {
    if (!meter.parallel_max || meter.parallel < *meter.parallel_max) return {};
    return slow_down(fmt::format("this key may run {} requests at once, and they are running",
                                 *meter.parallel_max),
                     fmt::format("questa chiave può eseguire {} richieste insieme, e sono in corso",
                                 *meter.parallel_max),
                     "parallel_max", 1);
}

Result<void> check_requests(Meter& meter, std::int64_t second) {
    if (!meter.requests_per_minute) return {};
    const std::uint64_t limit = *meter.requests_per_minute;
    if (meter.requests.sum(second) + 1 <= limit) return {};
    return slow_down(fmt::format("this key may send {} requests a minute", limit),
                     fmt::format("questa chiave può inviare {} richieste al minuto", limit),
                     "requests_per_minute", meter.requests.wait_for_room(1, limit));
}

Result<void> check_tokens(Meter& meter, std::uint64_t tokens, std::int64_t second) {
    if (!meter.tokens_per_minute) return {};
    const std::uint64_t limit = *meter.tokens_per_minute;
    if (tokens > limit) {
        return fail(Error(ErrorCode::too_large,
                          fmt::format("the request may use {} tokens and this key {} a minute; "
                                      "shorten it or ask for a shorter answer",
                                      tokens, limit))
                        .italian(fmt::format("la richiesta può usare {} token e questa chiave {} "
                                             "al minuto; accorciarla o chiedere una risposta più "
                                             "breve",
                                             tokens, limit))
                        .reason("tokens_per_minute"));
    }
    if (meter.tokens.sum(second) + tokens <= limit) return {};
    return slow_down(fmt::format("this key may use {} tokens a minute", limit),
                     fmt::format("questa chiave può usare {} token al minuto", limit),
                     "tokens_per_minute", meter.tokens.wait_for_room(tokens, limit));
}

void turn_month(Meter& meter, std::int64_t month) {
    if (meter.month == month) return;
    meter.month = month;
    meter.spent = {};
}

Result<void> check_budget(Meter& meter, domain::Money cost, std::int64_t month) {
    if (!meter.budget_per_month) return {};
    turn_month(meter, month);
    const domain::Money used = meter.spent + meter.reserved;
    // A request that costs nothing is no matter of money.
    if (cost.nano == 0 || used + cost <= *meter.budget_per_month) return {};
    return fail(Error(ErrorCode::exhausted,
                      fmt::format("the monthly budget of this key, {}, does not cover the request: "
                                  "{} are used; raise it or wait for the next month",
                                  to_string(*meter.budget_per_month), to_string(used)))
                    .italian(fmt::format("il budget mensile di questa chiave, {}, non copre la "
                                         "richiesta: {} sono usati; alzarlo o attendere il mese "
                                         "prossimo",
                                         to_string(*meter.budget_per_month), to_string(used)))
                    .reason("budget_per_month"));
}

Result<void> check(Meter& meter, std::uint64_t tokens, domain::Money cost, Moment now) {
    TRY_DO(check_budget(meter, cost, now.month));
    TRY_DO(check_parallel(meter));
    TRY_DO(check_requests(meter, now.second));
    return check_tokens(meter, tokens, now.second);
}

}  // namespace

void Window::advance(std::int64_t second) {
    if (second <= newest_) return;
    const std::int64_t steps = std::min(second - newest_, seconds);
    for (std::int64_t i = 0; i < steps; ++i) {
        std::uint64_t& amount = amounts_[slot(second - i)];
        total_ -= amount;
        amount = 0;
    }
    newest_ = second;
}

std::uint64_t Window::sum(std::int64_t second) {
    advance(second);
    return total_;
}

void Window::add(std::int64_t second, std::uint64_t amount) {
    advance(second);
    amounts_[slot(newest_)] += amount;
    total_ += amount;
}

void Window::take_back(std::int64_t second, std::uint64_t amount) {
    if (newest_ - second >= seconds) return;
    std::uint64_t& there = amounts_[slot(second)];
    amount = std::min(amount, there);
    there -= amount;
    total_ -= amount;
}

std::int64_t Window::wait_for_room(std::uint64_t amount, std::uint64_t limit) const {
    std::uint64_t left = total_;
    for (std::int64_t age = seconds - 1; age >= 0; --age) {
        const std::int64_t second = newest_ - age;
        if (second >= 0) left -= amounts_[slot(second)];
        if (left + amount <= limit) return seconds - age;
    }
    return seconds;
}

Moment moment_of(const Clock& clock) {
    const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(clock.wall()));
    return {
        .second = std::chrono::floor<std::chrono::seconds>(clock.now().time_since_epoch()).count(),
        .month = std::int64_t{static_cast<int>(date.year())} * 12 +
                 static_cast<unsigned>(date.month()) - 1};
}

WallTime month_start(WallTime time) {
    const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(time));
    return std::chrono::sys_days(date.year() / date.month() / 1);
}

Result<Held> take(const Meters& meters, std::uint64_t tokens, domain::Money cost, Moment now) {
    for (const auto& meter : meters)
        TRY_DO(check(*meter, tokens, cost, now));
    for (const auto& meter : meters) {
        meter->requests.add(now.second, 1);
        meter->tokens.add(now.second, tokens);
        meter->reserved += cost;
        ++meter->parallel;
    }
    return Held{.tokens = tokens, .cost = cost, .second = now.second};
}

void settle(const Meters& meters, const Held& held, std::uint64_t tokens, domain::Money cost,
            Moment now) {
    for (const auto& meter : meters) {
        --meter->parallel;
        meter->reserved = meter->reserved - held.cost;
        turn_month(*meter, now.month);
        meter->spent += cost;
        if (tokens < held.tokens) {
            meter->tokens.take_back(held.second, held.tokens - tokens);
        } else {
            meter->tokens.add(now.second, tokens - held.tokens);
        }
    }
}

void give_back(const Meters& meters, const Held& held) {
    for (const auto& meter : meters) {
        --meter->parallel;
        meter->reserved = meter->reserved - held.cost;
        meter->tokens.take_back(held.second, held.tokens);
    }
}

}  // namespace molly::members::internal
