// What two nodes say about drafts: whatever the bytes are, each side reads them or says why not,
// and what was read is said again in the same words.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "dialects/drafts.h"

namespace {

using namespace molly;  // NOLINT(google-build-using-namespace): a fuzzer is one small program

constexpr JsonLimits limits = {.bytes_max = 1U << 20U, .depth_max = 32};

void read_call(std::string_view body) {
    const auto call = dialects::decode_draft_call(body, limits);
    if (!call) return;
    const auto again = dialects::decode_draft_call(dialects::encode_draft_call(*call), limits);
    MOLLY_ASSERT(again && again->session == call->session && again->tokens == call->tokens);
    MOLLY_ASSERT(again->vocabulary == call->vocabulary && again->alone == call->alone);
}

void read_replies(std::string_view body) {
    if (const auto session = dialects::decode_draft_session(body)) {
        const auto again = dialects::decode_draft_session(dialects::encode_draft_session(*session));
        MOLLY_ASSERT(again && again->id == session->id);
    }
    if (const auto verdict = dialects::decode_draft_verdict(body)) {
        MOLLY_ASSERT(verdict->accepted <= verdict->tokens.size());
        const auto again = dialects::decode_draft_verdict(dialects::encode_draft_verdict(*verdict));
        MOLLY_ASSERT(again && again->tokens == verdict->tokens);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    const void* body = bytes;
    const std::string_view text(static_cast<const char*>(body), size);
    read_call(text);
    read_replies(text);
    return 0;
}
