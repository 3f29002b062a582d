#include "profile/internal/structure.h"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace molly::profile {
namespace {

constexpr std::uint32_t bins = 64;

bool letter(char c) noexcept {
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

bool digit(char c) noexcept {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

double twice_log(std::size_t count) noexcept {
    return 2 * std::log2(1.0 + static_cast<double>(count));
}

}  // namespace

Question question_of(std::string_view prompt) {
    Question question{.stem = prompt, .options = {}};
    std::size_t at = prompt.find("\nA. ");
    if (at == std::string_view::npos) return question;
    question.stem = prompt.substr(0, at);
    for (char name = 'B'; at != std::string_view::npos; ++name) {
        const char next[] = {'\n', name, '.', ' ', '\0'};
        const std::size_t end = prompt.find(next, at + 4);
        std::string_view option =
            prompt.substr(at + 4, end == std::string_view::npos ? end : end - at - 4);
        if (end == std::string_view::npos) option = option.substr(0, option.rfind("\nAnswer"));
        question.options.push_back(option);
        at = end;
    }
    return question;
}

namespace {

/// Puts one indicator after another, each in its own range.
class Indicators {
public:
    explicit Indicators(std::vector<std::uint32_t>& out) : out_(out) {}

    void put(double value) {
        const double bin = std::clamp(std::floor(value), 0.0, static_cast<double>(bins - 1));
        out_.push_back(next_++ * bins + static_cast<std::uint32_t>(bin));
    }
    void put(bool holds) { put(holds ? 1.0 : 0.0); }

private:
    std::vector<std::uint32_t>& out_;
    std::uint32_t next_ = 0;
};

void put_options(const std::vector<std::string_view>& options, Indicators& out) {
    std::size_t bytes = 0;
    std::size_t longest = 0;
    std::size_t shortest = options.empty() ? 0 : options.front().size();
    double numeric = 0;
    for (const std::string_view option : options) {
        bytes += option.size();
        longest = std::max(longest, option.size());
        shortest = std::min(shortest, option.size());
        numeric += std::none_of(option.begin(), option.end(), letter) ? 1 : 0;
    }
    out.put(static_cast<double>(options.size()));
    out.put(twice_log(bytes));
    out.put(numeric);
    out.put(2 * std::log2((1.0 + static_cast<double>(longest)) /
                          (1.0 + static_cast<double>(shortest))));
}

void put_signs(std::string_view prompt, Indicators& out) {
    constexpr std::string_view signs = "^=+*/<>{}[]|~$\\()";
    const auto count = [&](auto holds) {
        return static_cast<std::size_t>(std::count_if(prompt.begin(), prompt.end(), holds));
    };
    const auto whole = static_cast<double>(std::max<std::size_t>(prompt.size(), 1));
    const std::size_t digits = count(digit);
    const std::size_t marks =
        count([&](char c) { return signs.find(c) != std::string_view::npos; });
    const std::size_t capitals =
        count([](char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; });
    out.put(twice_log(digits));
    out.put(20 * static_cast<double>(digits) / whole);
    out.put(twice_log(marks));
    out.put(40 * static_cast<double>(marks) / whole);
    out.put(static_cast<double>(count([](char c) { return c == '?'; })));
    out.put(40 * static_cast<double>(capitals) / whole);
    out.put(prompt.find('"') != std::string_view::npos);
}

double letters_of_words(std::string_view stem) noexcept {
    std::size_t letters = 0;
    std::size_t words = 0;
    bool inside = false;
    for (const char c : stem) {
        letters += letter(c) ? 1U : 0U;
        words += letter(c) && !inside ? 1U : 0U;
        inside = letter(c);
    }
    return words == 0 ? 0 : static_cast<double>(letters) / static_cast<double>(words);
}

void put_stem(std::string_view stem, Indicators& out) {
    const auto has = [&](std::string_view words) {
        return stem.find(words) != std::string_view::npos;
    };
    out.put(twice_log(stem.size()));
    out.put(2 * letters_of_words(stem));
    out.put(has(" NOT ") || has("EXCEPT") || has("except") || has(" NON "));
    out.put(has("__"));
    out.put(has("Statement 1"));
    out.put(has("hich of") || has("uale "));
    out.put(twice_log(static_cast<std::size_t>(std::count(stem.begin(), stem.end(), '\n'))));
    out.put(twice_log(static_cast<std::size_t>(std::count(stem.begin(), stem.end(), '.'))));
    out.put(!stem.empty() && stem.back() == '?');
    out.put(!stem.empty() && stem.back() == ':');
}

}  // namespace

std::vector<std::uint32_t> structure_of(std::string_view prompt) {
    std::vector<std::uint32_t> out;
    Indicators indicators(out);
    const Question question = question_of(prompt);
    indicators.put(twice_log(prompt.size()));
    put_stem(question.stem, indicators);
    put_options(question.options, indicators);
    put_signs(prompt, indicators);
    return out;
}

}  // namespace molly::profile
