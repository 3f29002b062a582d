#include "engine/internal/tool_schema.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/json.h"

namespace molly::engine {
namespace {

constexpr std::size_t nodes_max = 20'000;
constexpr std::size_t optional_properties_max = 128;  // the conversion is cubic in them
constexpr std::size_t name_bytes_max = 256;
constexpr std::size_t references_max = 100;
constexpr std::size_t choices_max = 2'000;
constexpr std::int64_t count_max = 1'000;
constexpr std::int64_t bound_max = 1'000'000'000'000'000;

class Tamer {
public:
    explicit Tamer(const json::value& root) : root_(root) {}

    bool over_bounds() const noexcept { return nodes_ > nodes_max || bad_name_; }

    json::value schema(const json::value& in) {
        ++nodes_;
        if (!in.is_object() || over_bounds()) return json::object();
        const json::object& from = in.as_object();
        if (const auto* reference = from.if_contains("$ref")) return this->reference(*reference);
        json::object out;
        for (const auto& entry : from) {
            if (auto kept = keyword(entry.key(), entry.value())) out[entry.key()] = *kept;
        }
        name_type(out);
        if (count_optional(out) > optional_properties_max) return json::object{{"type", "object"}};
        return out;
    }

private:
    std::optional<json::value> keyword(std::string_view key, const json::value& value) {
        if (key == "pattern") return std::nullopt;
        if (key == "properties" || key == "$defs" || key == "definitions") return schemas(value);
        if (key == "anyOf" || key == "oneOf" || key == "prefixItems") return list(value);
        if (key == "allOf") return all_of(value);
        if (key == "items") return value.is_array() ? list(value) : schema(value);
        if (key == "additionalProperties") {
            return value.is_bool() ? value : schema(value);
        }
        if (key == "enum") {
            const bool fits = value.is_array() && !value.as_array().empty() &&
                              value.as_array().size() <= choices_max;
            return fits ? std::optional(value) : std::nullopt;
        }
        if (key == "type") return type(value);
        if (key == "required") return value.is_array() ? std::optional(value) : std::nullopt;
        if (key == "format") return value.is_string() ? std::optional(value) : std::nullopt;
        return number(key, value);
    }

    static std::optional<json::value> number(std::string_view key, const json::value& value) {
        constexpr std::array counts = {"minLength", "maxLength", "minItems", "maxItems"};
        constexpr std::array bounds = {"minimum", "maximum", "exclusiveMinimum",
                                       "exclusiveMaximum"};
        for (const std::string_view name : counts) {
            if (key != name) continue;
            const bool fits =
                value.is_int64() && value.as_int64() >= 0 && value.as_int64() <= count_max;
            return fits ? std::optional(value) : std::nullopt;
        }
        for (const std::string_view name : bounds) {
            if (key != name) continue;
            const bool fits =
                value.is_int64() && value.as_int64() >= -bound_max && value.as_int64() <= bound_max;
            return fits ? std::optional(value) : std::nullopt;
        }
        return value;
    }

    static std::optional<json::value> type(const json::value& value) {
        constexpr std::size_t types_max = 7;
        if (value.is_string()) return value;
        if (!value.is_array() || value.as_array().size() > types_max) return std::nullopt;
        for (const auto& item : value.as_array()) {
            if (!item.is_string()) return std::nullopt;
        }
        return value;
    }

    std::optional<json::value> schemas(const json::value& value) {
        if (!value.is_object()) return std::nullopt;
        json::object out;
        for (const auto& entry : value.as_object()) {
            if (entry.key().size() > name_bytes_max) bad_name_ = true;
            out[entry.key()] = schema(entry.value());
        }
        return out;
    }

    std::optional<json::value> list(const json::value& value) {
        if (!value.is_array() || value.as_array().empty()) return std::nullopt;
        json::array out;
        for (const auto& item : value.as_array())
            out.push_back(schema(item));
        return out;
    }

    /// The conversion follows references inside allOf without an end: only plain parts are kept.
    std::optional<json::value> all_of(const json::value& value) {
        auto parts = list(value);
        if (!parts) return std::nullopt;
        for (const auto& part : parts->as_array()) {
            if (part.as_object().contains("$ref") || part.as_object().contains("anyOf")) {
                return std::nullopt;
            }
        }
        return parts;
    }

    json::value reference(const json::value& value) {
        constexpr std::size_t reference_bytes_max = 1'024;
        if (!value.is_string() || value.as_string().size() > reference_bytes_max ||
            !value.as_string().starts_with("#/")) {
            return json::object();
        }
        boost::system::error_code error;
        const auto* target =
            root_.find_pointer(std::string_view(value.as_string()).substr(1), error);
        if (target == nullptr || error || !target->is_object()) return json::object();
        references_.emplace(value.as_string());  // the conversion copies the schema for each
        if (references_.size() > references_max) return json::object();
        return json::object{{"$ref", value}};
    }

    /// Some templates print a property's type without asking whether it has one.
    static void name_type(json::object& node) {
        if (node.contains("type")) return;
        const auto* choices = node.if_contains("enum");
        if (choices != nullptr && std::ranges::all_of(choices->as_array(), [](const auto& choice) {
                return choice.is_string();
            })) {
            node["type"] = "string";
        }
    }

    static std::size_t count_optional(const json::object& node) {
        const auto* properties = node.if_contains("properties");
        if (properties == nullptr) return 0;
        const auto* required = node.if_contains("required");
        const std::size_t all = properties->as_object().size();
        const std::size_t fixed = required == nullptr ? 0 : required->as_array().size();
        return all - std::min(all, fixed);
    }

    const json::value& root_;
    std::set<std::string, std::less<>> references_;
    std::size_t nodes_ = 0;
    bool bad_name_ = false;
};

}  // namespace

Result<std::string> tame_tool_schema(std::string_view schema) {
    if (schema.empty()) return std::string(R"({"type":"object","properties":{}})");
    TRY(const json::value root, parse_json(schema, {.bytes_max = 1U << 18U, .depth_max = 48}));
    if (!root.is_object()) {
        return fail(ErrorCode::invalid_request, "the parameters of a tool must be a JSON object");
    }
    Tamer tamer(root);
    const json::value tamed = tamer.schema(root);
    if (tamer.over_bounds()) {
        return fail(ErrorCode::invalid_request,
                    "the parameters of a tool are too large or have a name over 256 bytes");
    }
    return to_text(tamed);
}

}  // namespace molly::engine
