// Event streams: the events are the same wherever the bytes are cut, and hold no line ends but
// those between their data lines.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "dialects/internal/sse.h"

namespace {

using namespace molly;  // NOLINT(google-build-using-namespace): a fuzzer is one small program

using Events = std::vector<std::pair<std::string, std::string>>;

Events read(std::string_view stream, std::size_t piece_bytes) {
    Events events;
    dialects::SseReader reader;
    const auto each = [&events](const dialects::SseEvent& event) -> Result<void> {
        events.emplace_back(event.name, event.data);
        return {};
    };
    while (!stream.empty()) {
        const auto read = reader.piece(stream.substr(0, piece_bytes), each);
        MOLLY_ASSERT(read);
        stream.remove_prefix(std::min(piece_bytes, stream.size()));
    }
    const auto ended = reader.end(each);
    MOLLY_ASSERT(ended);
    return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    if (size == 0) return 0;
    const void* start = bytes + 1;
    const std::string_view stream(static_cast<const char*>(start), size - 1);
    const Events whole = read(stream, size);
    MOLLY_ASSERT(whole == read(stream, std::size_t{bytes[0]} % 16 + 1));
    for (const auto& [name, data] : whole) {
        MOLLY_ASSERT(name.find_first_of("\r\n") == std::string::npos);
        MOLLY_ASSERT(data.find('\r') == std::string::npos);
    }
    return 0;
}
