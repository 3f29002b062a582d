#pragma once
// The client side of each dialect; upstream.cc chooses among them. Pure.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/monotonic_resource.hpp>

#include "base/json.h"
#include "dialects/dialects.h"

namespace molly::dialects {

Result<UpstreamRequest> encode_upstream_openai(const domain::Request& request,
                                               const std::string& model);
Result<UpstreamRequest> encode_upstream_anthropic(const domain::Request& request,
                                                  const std::string& model);
Result<UpstreamRequest> encode_upstream_ollama(const domain::Request& request,
                                               const std::string& model);

/// The answer ended before it was complete.
std::unexpected<Error> incomplete_reply();
/// A chunk that is not what the dialect says.
std::unexpected<Error> malformed_reply();
/// An error that came inside an answer.
std::unexpected<Error> error_in_reply();

// Lenient readers: what an upstream leaves out or sends in another type counts as absent.
const json::object* object_in(const json::object& object, std::string_view name);
const json::array* array_in(const json::object& object, std::string_view name);
std::string_view text_in(const json::object& object, std::string_view name);
std::uint32_t count_in(const json::object& object, std::string_view name);

/// A number, or 0.
float number_in(const json::value& value);
/// `{"token","logprob","bytes","top_logprobs"}`.
domain::TokenLogprob read_token(const json::object& token);

/// What all reply decoders have: the model's name and the vectors.
class ReplyDecoderBase : public ReplyDecoder {
public:
    const std::string& model() const noexcept override { return model_; }
    std::vector<std::vector<float>> take_embeddings() override { return std::move(embeddings_); }

protected:
    /// Parses one document of an upstream; the value is gone with the next one. Errors:
    /// upstream_failed, never quoting it.
    Result<json::value> parse_reply(std::string_view text);
    void note_model(const json::object& reply);
    /// Appends one vector: an array of numbers, or base64 of little-endian floats.
    /// Errors: upstream_failed.
    Result<void> add_embedding(const json::value* vector);

private:
    // A stream is hundreds of small documents: each is built in the same place.
    std::array<unsigned char, 8192> block_;
    json::monotonic_resource memory_{block_.data(), block_.size()};
    std::string model_;
    std::vector<std::vector<float>> embeddings_;
};

/// Collects a reply that comes as one document.
class WholeReply {
public:
    static constexpr std::size_t bytes_max = 256U << 20U;
    /// Errors: upstream_failed, when it is too large.
    Result<void> piece(std::string_view bytes);
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

std::unique_ptr<ReplyDecoder> make_openai_reply(domain::Operation operation, bool stream);
std::unique_ptr<ReplyDecoder> make_anthropic_reply(bool stream);
std::unique_ptr<ReplyDecoder> make_ollama_reply(domain::Operation operation, bool stream);

}  // namespace molly::dialects
