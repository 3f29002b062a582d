#include "engine/internal/number_grammar.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include <fmt/format.h>

namespace molly::engine {
namespace {

constexpr std::string_view fraction = "( \".\" [0-9]{1,16} )?";

std::string any_digits(std::size_t count) {
    return count == 0 ? "" : fmt::format(" [0-9]{{{}}}", count);
}

/// Numbers between two of the same length, digit by digit.
std::string between(std::string_view low, std::string_view high) {
    if (low.empty()) return {};
    const std::size_t rest = low.size() - 1;
    const bool all = low.find_first_not_of('0') == std::string_view::npos &&
                     high.find_first_not_of('9') == std::string_view::npos;
    if (all) return fmt::format("[0-9]{{{}}}", low.size());
    if (low[0] == high[0]) {
        const std::string tail = between(low.substr(1), high.substr(1));
        return fmt::format("\"{}\"{}{}", low[0], tail.empty() ? "" : " ", tail);
    }
    const std::string nines(rest, '9');
    const std::string zeros(rest, '0');
    const std::string first = between(low.substr(1), nines);
    const std::string last = between(zeros, high.substr(1));
    std::string out = fmt::format("( \"{}\"{}{}", low[0], first.empty() ? "" : " ", first);
    if (low[0] + 1 < high[0]) {
        out += fmt::format(" | [{}-{}]{}", static_cast<char>(low[0] + 1),
                           static_cast<char>(high[0] - 1), any_digits(rest));
    }
    return out + fmt::format(" | \"{}\"{}{} )", high[0], last.empty() ? "" : " ", last);
}

/// Integers from `low` to `high`, 0 <= low <= high, without leading zeros.
std::string magnitudes(std::int64_t low, std::int64_t high) {
    std::string out;
    for (std::int64_t first = low; first <= high;) {
        std::int64_t longest = 9;  // the last number with as many digits as `first`
        while (longest < first)
            longest = longest * 10 + 9;
        const std::int64_t last = std::min(longest, high);
        out += (out.empty() ? "" : " | ") + between(std::to_string(first), std::to_string(last));
        first = last + 1;
    }
    return "( " + out + " )";
}

/// The same with fractions that stay below `high`.
std::string fractions(std::int64_t low, std::int64_t high) {
    const std::string top = magnitudes(high, high);
    if (low == high) return top;
    return fmt::format("( {} {} | {} )", magnitudes(low, high - 1), fraction, top);
}

std::string with_sign(std::int64_t low, std::int64_t high,
                      const std::function<std::string(std::int64_t, std::int64_t)>& part) {
    std::string out;
    if (high >= 0) out = part(std::max<std::int64_t>(low, 0), high);
    if (low < 0) {
        const std::int64_t nearest = std::max<std::int64_t>(1, -high);
        out += fmt::format("{}\"-\" {}", out.empty() ? "" : " | ", part(nearest, -low));
    }
    return "( " + out + " )";
}

}  // namespace

std::string integer_grammar(std::int64_t low, std::int64_t high) {
    return with_sign(low, high, magnitudes);
}

std::string number_grammar(std::int64_t low, std::int64_t high) {
    return with_sign(low, high, fractions);
}

}  // namespace molly::engine
