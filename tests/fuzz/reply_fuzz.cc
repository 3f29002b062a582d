// Upstreams send anything, cut anywhere. Pieces of any size mean the same as the whole, and what
// was read leaves every face as valid UTF-8.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "base/utf8.h"
#include "dialects/dialects.h"
#include "dialects/internal/replay.h"

namespace {

using namespace molly;  // NOLINT(google-build-using-namespace): a fuzzer is one small program

constexpr std::size_t head_bytes = 2;  // which decoder, and how large the pieces are

Result<domain::Response> read(std::uint8_t kind, std::string_view body, std::size_t piece_bytes) {
    const auto dialect = static_cast<domain::Dialect>(kind % 3);
    const auto operation = static_cast<domain::Operation>(kind / 3 % 3);
    const auto decoder = dialects::make_reply_decoder(dialect, operation, kind / 9 % 2 == 1);
    return dialects::replay_reply(*decoder, body, piece_bytes);
}

void expect_same(const Result<domain::Response>& a, const Result<domain::Response>& b) {
    MOLLY_ASSERT(a.has_value() == b.has_value());
    if (!a) return;
    MOLLY_ASSERT(a->text == b->text && a->reasoning == b->reasoning);
    MOLLY_ASSERT(a->tool_calls == b->tool_calls && a->logprobs == b->logprobs);
    MOLLY_ASSERT(a->finish == b->finish && a->usage == b->usage);
}

void pass_on(const domain::Response& response) {
    dialects::Envelope envelope;
    envelope.id = "r";
    for (std::uint8_t i = 0; i < 8; ++i) {
        const auto face = static_cast<dialects::Face>(i);
        const std::string whole = dialects::encode_response(face, envelope, response);
        MOLLY_ASSERT(utf8_valid(whole));
        MOLLY_ASSERT(utf8_valid(dialects::stream_of(face, envelope, response, 3)));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    if (size < head_bytes) return 0;
    const void* start = bytes + head_bytes;
    const std::string_view body(static_cast<const char*>(start), size - head_bytes);
    const std::size_t piece_bytes = std::size_t{bytes[1]} % 16 + 1;
    const auto whole = read(bytes[0], body, std::max<std::size_t>(body.size(), 1));
    const auto cut = read(bytes[0], body, piece_bytes);
    expect_same(whole, cut);
    if (whole) pass_on(*whole);
    return 0;
}
