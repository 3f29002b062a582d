#pragma once
// Is a text about somebody's health, law case, money or children? By phrases, in English and
// Italian: one that says it alone, or two that say it together. Pure; safe from any thread.
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include <re2/set.h>

#include "base/result.h"

namespace molly::annotate {

enum class Topic : std::uint8_t { health, legal, financial, children };
inline constexpr std::size_t topics_count = 4;
std::string_view to_string(Topic topic) noexcept;

class Topics {
public:
    /// The one automaton of this process, made when it is first asked for: it is always the same.
    /// Errors: exhausted, when it does not fit in memory.
    static Result<std::shared_ptr<const Topics>> shared();

    /// Adds one to the count of each topic that `text` is about.
    void count(std::string_view text, std::array<std::uint32_t, topics_count>& counts) const;

private:
    Topics();
    static Result<std::shared_ptr<const Topics>> make();

    RE2::Set set_;  // shape: [topics * 3]: alone, and the two halves that must meet
};

}  // namespace molly::annotate
