#pragma once
// Replays answers through the codecs, in pieces of any size: for the tests and the fuzzers. Pure.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "dialects/dialects.h"

namespace molly::dialects {

/// What a reply decoder made of a body that came in pieces of `piece_bytes`.
inline Result<domain::Response> replay_reply(ReplyDecoder& decoder, std::string_view body,
                                             std::size_t piece_bytes) {
    domain::ResponseBuilder builder;
    const auto add = [&builder](const std::vector<domain::Delta>& deltas) {
        for (const domain::Delta& delta : deltas)
            builder.add(delta);
    };
    while (!body.empty()) {
        TRY(const auto deltas, decoder.piece(body.substr(0, piece_bytes)));
        add(deltas);
        body.remove_prefix(std::min(piece_bytes, body.size()));
    }
    TRY(const auto deltas, decoder.end());
    add(deltas);
    domain::Response response = builder.take();
    response.model = decoder.model();
    response.embeddings = decoder.take_embeddings();
    return response;
}

/// A response as a stream of Deltas, each of at most `code_points` code points of text or bytes of
/// arguments.
inline std::vector<domain::Delta> deltas_of(const domain::Response& response,
                                            std::size_t code_points) {
    std::vector<domain::Delta> deltas;
    const auto cut = [&](std::string_view text, auto&& add) {
        while (!text.empty()) {
            std::size_t bytes = 0;
            for (std::size_t i = 0; i < code_points && bytes < text.size(); ++i)
                bytes += std::max<std::size_t>(utf8_length(text.substr(bytes)), 1);
            add(deltas.emplace_back(), text.substr(0, bytes));
            text.remove_prefix(std::min(bytes, text.size()));
        }
    };
    cut(response.reasoning.text(),
        [](domain::Delta& delta, std::string_view text) { delta.reasoning = text; });
    cut(response.text.text(),
        [](domain::Delta& delta, std::string_view text) { delta.text = text; });
    for (std::uint32_t i = 0; i < response.tool_calls.size(); ++i) {
        const domain::ToolCall& call = response.tool_calls[i];
        domain::ToolCallDelta first;
        first.index = i;
        first.id = call.id;
        first.name = call.name;
        deltas.emplace_back().tool_calls.push_back(first);
        cut(call.arguments.text(), [i](domain::Delta& delta, std::string_view text) {
            domain::ToolCallDelta piece;
            piece.index = i;
            piece.arguments = text;
            delta.tool_calls.push_back(std::move(piece));
        });
    }
    domain::Delta last;
    last.finish = response.finish;
    last.usage = response.usage;
    deltas.push_back(std::move(last));
    return deltas;
}

/// The bytes that a caller of a stream gets.
inline std::string stream_of(Face face, const Envelope& envelope, const domain::Response& response,
                             std::size_t code_points) {
    const auto encoder = make_stream_encoder(face, envelope);
    std::string out = encoder->begin();
    for (const domain::Delta& delta : deltas_of(response, code_points))
        out += encoder->delta(delta);
    return out + encoder->end(response);
}

}  // namespace molly::dialects
