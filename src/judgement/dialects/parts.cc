#include "dialects/internal/parts.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "domain/adapter_share.h"

namespace molly::dialects {
namespace {

constexpr std::size_t inputs_max = 2048;
constexpr std::array<std::string_view, 12> extension_names = {
    "class",    "residency", "mode",         "max_cost", "max_latency_ms", "adapter",
    "adapters", "explain",   "conversation", "purpose",  "tags",           "keep_prefix"};

std::vector<std::string> texts(const Fields& fields, std::string_view name) {
    const json::value* value = fields.find(name);
    std::vector<std::string> all;
    if (value == nullptr) return all;
    if (const json::string* one = value->if_string()) {
        all.emplace_back(std::string_view(*one));
        return all;
    }
    const json::array* array = value->if_array();
    if (array == nullptr) {
        fields.invalid(name, "must be a string or an array of strings");
        return all;
    }
    for (const json::value& element : *array) {
        const json::string* text = element.if_string();
        if (text == nullptr) {
            fields.invalid(name, "must hold strings only");
            return all;
        }
        all.emplace_back(std::string_view(*text));
    }
    return all;
}

/// Several adapters with their strengths, as the one name that says the same.
void decode_adapters(const Fields& fields, domain::Extensions& extensions) {
    if (fields.has("adapter"))
        return fields.invalid("adapters", "stands in the place of adapter; leave one of them out");
    std::vector<domain::AdapterShare> shares;
    for_each_object(fields, "adapters", [&](const Fields& one) {
        domain::AdapterShare share;
        share.name = one.required_text("name");
        if (share.name.find_first_of(",*") != std::string::npos)
            one.invalid("name", "must be the name of one adapter");
        share.scale =
            one.number("scale", -domain::adapter_scale_max, domain::adapter_scale_max).value_or(1);
        shares.push_back(std::move(share));
    });
    if (shares.size() > domain::adapter_shares_max)
        fields.invalid("adapters", "must hold at most 8 adapters");
    extensions.adapter = to_string(shares);
}

void decode_extension_fields(const Fields& fields, domain::Extensions& extensions) {
    for (const auto& [key, value] : fields.all()) {
        if (std::find(extension_names.begin(), extension_names.end(), std::string_view(key)) ==
            extension_names.end()) {
            fields.invalid(key,
                           "is no extension; class, residency, mode, max_cost, max_latency_ms, "
                           "adapter, adapters, explain, conversation, purpose, tags and "
                           "keep_prefix are");
        }
    }
    if (const auto text = fields.text("class")) {
        extensions.sensitivity = domain::sensitivity_from(*text);
        if (!extensions.sensitivity)
            fields.invalid("class", "must be public, standard, private or secret");
    }
    if (fields.has("residency")) {
        std::set<std::string, std::less<>> places;
        for (std::string& place : texts(fields, "residency"))
            places.insert(std::move(place));
        extensions.residency = domain::Residency(std::move(places));
    }
    if (const auto text = fields.text("mode")) {
        extensions.mode = domain::mode_from(*text);
        if (!extensions.mode) fields.invalid("mode", "must be balanced, quality, fast or cheap");
    }
    if (const auto cost = fields.number("max_cost", 0, 1e6))
        extensions.cost_max = domain::money_from(static_cast<double>(*cost));
    if (const auto latency = fields.count("max_latency_ms", 1))
        extensions.latency_max = std::chrono::milliseconds(*latency);
    extensions.adapter = fields.text_or_empty("adapter");
    if (fields.has("adapters")) decode_adapters(fields, extensions);
    extensions.explain = fields.flag("explain");
    extensions.conversation = fields.text_or_empty("conversation");
    extensions.purpose = fields.text_or_empty("purpose");
    extensions.tags = texts(fields, "tags");
    if (const auto text = fields.text("keep_prefix")) {
        const auto part = domain::keep_prefix_from(*text);
        if (!part) fields.invalid("keep_prefix", "must be system or prompt");
        extensions.keep_prefix = part.value_or(domain::KeepPrefix::none);
    }
}

}  // namespace

void decode_extensions(const Fields& fields, domain::Request& request) {
    with_object(fields, "molly", [&request](const Fields& molly) {
        decode_extension_fields(molly, request.extensions);
    });
}

void append_extensions(JsonText& json, const Envelope& envelope, const domain::Response& response) {
    const std::string& caveat = response.caveat.empty() ? envelope.caveat : response.caveat;
    if (caveat.empty() && response.prefix.empty() && envelope.decision.empty()) return;
    json.key("molly").open();
    if (!caveat.empty()) json.field("caveat", caveat);
    if (!response.prefix.empty()) json.field("prefix", response.prefix);
    if (!envelope.decision.empty()) json.raw_field("explain", envelope.decision);
    json.close();
}

void decode_stop(const Fields& fields, std::string_view name, std::vector<std::string>& stop) {
    stop = texts(fields, name);
    std::erase(stop, std::string());
    if (stop.size() > stops_max) fields.invalid(name, "must hold at most 16 strings");
}

domain::Part text_part(std::string_view text) {
    domain::Part part;
    part.text = domain::Content(std::string(text));
    return part;
}

domain::Part base64_part(domain::Part::Kind kind, std::string_view bytes,
                         std::string_view media_type) {
    domain::Part part;
    part.kind = kind;
    part.text = domain::Content(std::string(bytes));
    part.media_type = media_type;
    return part;
}

domain::Part part_of_url(domain::Part::Kind kind, std::string_view url) {
    constexpr std::string_view mark = ";base64,";
    const std::size_t at = url.find(mark);
    if (url.starts_with("data:") && at != std::string_view::npos)
        return base64_part(kind, url.substr(at + mark.size()), url.substr(5, at - 5));
    domain::Part part = base64_part(kind, url, {});
    part.is_url = true;
    return part;
}

std::string url_of(const domain::Part& part) {
    if (part.is_url) return part.text.text();
    return "data:" + part.media_type + ";base64," + part.text.text();
}

void decode_penalties(const Fields& fields, domain::Sampling& sampling) {
    sampling.temperature = fields.number("temperature", 0, 2);
    sampling.top_p = fields.number("top_p", 0, 1);
    sampling.min_p = fields.number("min_p", 0, 1);
    sampling.top_k = fields.count("top_k");
    sampling.frequency_penalty = fields.number("frequency_penalty", -2, 2);
    sampling.presence_penalty = fields.number("presence_penalty", -2, 2);
    sampling.repeat_penalty = fields.number("repeat_penalty", 0, 10);
    if (const auto seed = fields.integer("seed"))
        sampling.seed = static_cast<std::uint64_t>(*seed);  // negative seeds are seeds too
}

void decode_metadata(const Fields& fields, domain::Request& request) {
    with_object(fields, "metadata", [&request](const Fields& metadata) {
        for (const auto& [key, value] : metadata.all()) {
            const json::string* text = value.if_string();
            if (text == nullptr) return metadata.invalid(key, "must be a string");
            request.metadata.emplace(std::string_view(key), std::string_view(*text));
        }
    });
}

domain::Content json_of(const Fields& fields, std::string_view name) {
    const json::value* value = fields.find(name);
    return value == nullptr ? domain::Content() : domain::Content(to_text(*value));
}

void decode_function(const Fields& fields, std::string_view schema_name, domain::Request& request) {
    domain::Tool tool;
    tool.name = fields.required_text("name");
    tool.description = domain::Content(std::string(fields.text_or_empty("description")));
    if (fields.object(schema_name) != nullptr) tool.parameters = json_of(fields, schema_name);
    tool.strict = fields.flag("strict");
    request.tools.push_back(std::move(tool));
}

namespace {

/// `{"token","logprob","bytes"`; the caller closes it.
void open_token(JsonText& json, const std::string& token, float logprob) {
    json.open().field("token", token).field("logprob", logprob).key("bytes").open_array();
    for (const char byte : token)
        json.number(static_cast<unsigned>(static_cast<unsigned char>(byte)));
    json.close_array();
}

}  // namespace

void append_token(JsonText& json, const domain::TokenLogprob& token) {
    open_token(json, token.token, token.logprob);
    json.key("top_logprobs").open_array();
    for (const auto& [other, logprob] : token.top) {
        open_token(json, other, logprob);
        json.close();
    }
    json.close_array().close();
}

void decode_inputs(const Fields& fields, domain::Request& request) {
    const json::value* input = fields.find("input");
    if (input == nullptr) return fields.invalid("input", "is required");
    if (const json::string* text = input->if_string()) {
        request.inputs.emplace_back(std::string(std::string_view(*text)));
        return;
    }
    const json::array* array = fields.array("input");
    if (array == nullptr) return;
    if (array->empty() || array->size() > inputs_max)
        return fields.invalid("input", "must hold 1 to 2048 texts");
    for (const json::value& element : *array) {
        const json::string* text = element.if_string();
        if (text == nullptr)
            return fields.unsupported("input", "must be text: targets differ in their tokens");
        request.inputs.emplace_back(std::string(std::string_view(*text)));
    }
}

std::int64_t unix_seconds(WallTime time) noexcept {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

}  // namespace molly::dialects
