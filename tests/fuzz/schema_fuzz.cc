// A JSON schema comes from whoever sends a request: it becomes a grammar that parses, or is
// refused.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/internal/grammar.h"
#include "engine/internal/schema_grammar.h"
#include "engine/internal/tool_schema.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    using namespace molly::engine;
    const void* start = bytes;
    const std::string_view input(static_cast<const char*>(start), size);
    for (const bool strict : {true, false}) {
        const auto gbnf = schema_grammar(input, strict);
        if (gbnf) (void)Grammar::parse(*gbnf);
    }
    (void)tame_tool_schema(input);
    return 0;
}
