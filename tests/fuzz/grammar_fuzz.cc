// A grammar comes from whoever sends a request: it parses or is refused, and what parses is
// followed within bounds. The first half of the input is the grammar, the second the text.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/internal/grammar.h"
#include "engine/internal/grammar_matcher.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    using namespace molly::engine;
    const void* start = bytes;
    const std::string_view input(static_cast<const char*>(start), size);
    const std::size_t split = input.find('\0');
    auto grammar = Grammar::parse(input.substr(0, split));
    if (!grammar) return 0;
    GrammarMatcher matcher(std::make_shared<const Grammar>(*std::move(grammar)),
                           {.work_max = 200'000});
    const std::string_view text = split == std::string_view::npos ? input : input.substr(split + 1);
    for (const char byte : text) {
        const auto state = matcher.after(matcher.current(), std::string_view(&byte, 1));
        if (!state || *state == GrammarMatcher::dead) break;
        matcher.move_to(*state);
    }
    return 0;
}
