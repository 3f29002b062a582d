// Model files come from anywhere: whatever the bytes claim, reading them ends in metadata or an
// error, within the limits.
#include <cstddef>
#include <cstdint>
#include <sstream>

#include "models/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    const void* start = bytes;
    std::istringstream stream(std::string(static_cast<const char*>(start), size));
    const auto gguf = molly::models::parse_gguf(stream, size);
    if (gguf) {
        (void)gguf->quantization();
        (void)gguf->parameters();
    }
    return 0;
}
