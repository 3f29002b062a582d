// The configuration file: whatever stands in it, parsing ends in a configuration or in faults that
// name file and line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "app/config.h"
#include "base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    const void* start = bytes;
    const auto config = molly::app::parse_config(
        std::string_view(static_cast<const char*>(start), size), "fuzz.toml");
    if (config) return 0;
    MOLLY_ASSERT(config.error().code() == molly::ErrorCode::invalid_request);
    MOLLY_ASSERT(config.error().message().find("fuzz.toml") != std::string::npos);
    return 0;
}
