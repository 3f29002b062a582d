// Bodies of requests come from anybody. Whatever the bytes are, every face decodes them or says
// why not, and what was decoded can be asked of every kind of upstream.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "base/utf8.h"
#include "dialects/dialects.h"

namespace {

using namespace molly;  // NOLINT(google-build-using-namespace): a fuzzer is one small program

constexpr JsonLimits limits = {.bytes_max = 1U << 20U, .depth_max = 32};

void ask_upstreams(const domain::Request& request) {
    for (const auto dialect :
         {domain::Dialect::openai, domain::Dialect::anthropic, domain::Dialect::ollama}) {
        const auto upstream = dialects::encode_upstream(dialect, request, "m");
        if (!upstream) continue;
        MOLLY_ASSERT(parse_json(upstream->body));
    }
}

void answer(dialects::Face face, const dialects::Decoded& decoded) {
    dialects::Envelope envelope;
    envelope.id = "r";
    envelope.request = &decoded.request;
    envelope.instructions = decoded.instructions;
    envelope.previous_response_id = decoded.previous_response_id;
    const domain::Response response;
    MOLLY_ASSERT(parse_json(dialects::encode_response(face, envelope, response)));
    const auto encoder = dialects::make_stream_encoder(face, envelope);
    MOLLY_ASSERT(utf8_valid(encoder->begin() + encoder->end(response)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    if (size == 0) return 0;
    constexpr std::uint8_t faces = 8;
    const auto face = static_cast<dialects::Face>(bytes[0] % faces);
    const void* body = bytes + 1;
    const auto decoded = dialects::decode_request(
        face, std::string_view(static_cast<const char*>(body), size - 1), limits);
    if (!decoded) {
        MOLLY_ASSERT(parse_json(dialects::encode_error(face, decoded.error()).body));
        return 0;
    }
    MOLLY_ASSERT(!decoded->request.model.empty());
    ask_upstreams(decoded->request);
    answer(face, *decoded);
    return 0;
}
