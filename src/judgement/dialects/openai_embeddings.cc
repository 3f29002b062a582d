// POST /v1/embeddings.
#include "dialects/internal/base64.h"
#include "dialects/internal/faces.h"
#include "dialects/internal/openai.h"
#include "dialects/internal/parts.h"

namespace molly::dialects {
void decode_openai_embedding(const Fields& fields, Decoded& decoded) {
    domain::Request& request = decoded.request;
    request.operation = domain::Operation::embed;
    request.dialect = "openai";
    request.model = fields.required_text("model");
    decode_inputs(fields, request);
    for (const domain::Content& input : request.inputs) {
        if (input.empty()) fields.invalid("input", "must not hold an empty text");
    }
    request.dimensions = fields.count("dimensions", 1);
    request.user = fields.text_or_empty("user");
    const std::string_view format = fields.text_or_empty("encoding_format");
    decoded.base64_embeddings = format == "base64";
    if (!format.empty() && format != "float" && format != "base64")
        fields.invalid("encoding_format", "must be float or base64");
    decode_extensions(fields, request);
}

std::string encode_openai_embedding(const Envelope& envelope, const domain::Response& response) {
    std::string out;
    JsonText json(out);
    json.open().field("object", "list").key("data").open_array();
    std::uint32_t index = 0;
    for (const std::vector<float>& vector : response.embeddings) {
        json.open().field("object", "embedding").field("index", index++).key("embedding");
        if (envelope.base64_embeddings) {
            json.raw('"' + base64_of(vector) + '"');
        } else {
            json.open_array();
            for (const float number : vector)
                json.number(number);
            json.close_array();
        }
        json.close();
    }
    json.close_array()
        .field("model", envelope.model)
        .key("usage")
        .open()
        .field("prompt_tokens", response.usage.prompt_tokens)
        .field("total_tokens", response.usage.prompt_tokens)
        .close();
    append_extensions(json, envelope);
    json.close();
    return out;
}

}  // namespace molly::dialects
