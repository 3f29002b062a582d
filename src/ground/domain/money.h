#pragma once
// Money as integers, exact in sums. Pure value.
#include <compare>
#include <cstdint>
#include <string>

namespace molly::domain {

/// Billionths of one unit of the configured currency.
struct Money {
    std::int64_t nano = 0;

    constexpr auto operator<=>(const Money&) const = default;
    constexpr Money operator+(Money other) const noexcept { return {nano + other.nano}; }
    constexpr Money operator-(Money other) const noexcept { return {nano - other.nano}; }
    constexpr Money& operator+=(Money other) noexcept {
        nano += other.nano;
        return *this;
    }
};

/// "0.001234567", without trailing zeros.
std::string to_string(Money money);

/// From a number of currency units, rounded to a billionth.
Money money_from(double units) noexcept;

/// Prices are declared per million tokens and kept per token.
struct Prices {
    Money per_input_token;
    Money per_cached_token;
    Money per_answer_token;

    bool operator==(const Prices&) const = default;
};

}  // namespace molly::domain
