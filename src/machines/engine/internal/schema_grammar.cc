#include "engine/internal/schema_grammar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "engine/internal/json_grammar.h"
#include "engine/internal/number_grammar.h"
#include "engine/internal/pattern_grammar.h"
#include "engine/internal/schema_alternatives.h"

namespace molly::engine {

namespace {

constexpr std::size_t nodes_max = 10'000;
constexpr std::size_t grammar_bytes_max = 512U << 10U;
constexpr std::int64_t count_max = 10'000;

constexpr std::array annotations = {
    "title",         "description", "default",         "examples",    "$schema",
    "$id",           "$comment",    "$defs",           "readOnly",    "definitions",
    "deprecated",    "writeOnly",   "$anchor",         "id",          "example",
    "discriminator", "nullable",    "contentEncoding", "$vocabulary", "contentMediaType"};

std::string_view type_of(const json::value& value) {
    switch (value.kind()) {
        case json::kind::null:
            return "null";
        case json::kind::bool_:
            return "boolean";
        case json::kind::int64:
        case json::kind::uint64:
            return "integer";
        case json::kind::double_:
            return "number";
        case json::kind::string:
            return "string";
        case json::kind::array:
            return "array";
        case json::kind::object:
            return "object";
    }
    return "null";
}

bool fits_type(const json::value& value, std::string_view type) {
    const std::string_view own = type_of(value);
    return own == type || (type == "number" && own == "integer");
}

class Compiler {
public:
    Compiler(const json::value& root, bool strict) : root_(root), strict_(strict) {}

    Result<std::string> compile() {
        TRY(const auto start, visit(root_, "#"));
        return "root ::= " + start + "\n" + rules_ + std::string(json_rules);
    }

private:
    using Object = json::object;

    std::unexpected<Error> wrong(std::string_view where, std::string_view what) const {
        return fail(
            Error(ErrorCode::invalid_request,
                  fmt::format("the JSON schema cannot be kept at {}: {}", where, what))
                .italian(fmt::format("lo schema JSON non può essere rispettato in {}", where)));
    }
    /// In strict mode an error; otherwise the keyword is ignored.
    Result<void> unkept(std::string_view where, std::string_view keyword) const {
        if (!strict_) return {};
        return wrong(where, fmt::format("{} is not supported here in strict mode", keyword));
    }

    std::string add_rule(const std::string& body) {
        std::string name = fmt::format("s{}", ++names_);
        rules_ += name + " ::= " + body + "\n";
        return name;
    }

    /// The name of a rule for one schema.
    Result<std::string> visit(const json::value& schema, const std::string& where) {
        if (++nodes_ > nodes_max || rules_.size() > grammar_bytes_max) {
            return wrong(where, "it is too large");
        }
        if (schema.is_bool() && schema.as_bool()) return std::string("value");
        if (!schema.is_object()) return wrong(where, "this is no schema that anything satisfies");
        const Object& node = schema.as_object();
        if (const auto* reference = node.if_contains("$ref")) {
            TRY_DO(only(node, where, {"$ref"}));
            return visit_reference(*reference, where);
        }
        if (node.contains("const") || node.contains("enum")) return visit_choices(node, where);
        for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
            if (node.contains(keyword)) return visit_combination(node, keyword, where);
        }
        return visit_type(node, where);
    }

    /// In strict mode every keyword must be one of `known` or say nothing about validity.
    Result<void> only(const Object& node, std::string_view where,
                      const std::set<std::string_view>& known) const {
        for (const auto& entry : node) {
            const std::string_view key = entry.key();
            const bool says_nothing =
                std::ranges::find(annotations, key) != annotations.end() || key.starts_with("x-");
            if (!says_nothing && !known.contains(key)) TRY_DO(unkept(where, key));
        }
        return {};
    }

    Result<std::string> visit_reference(const json::value& reference, const std::string& where) {
        if (!reference.is_string()) return wrong(where, "$ref is no text");
        const std::string pointer(reference.as_string());
        const auto known = references_.find(pointer);
        if (known != references_.end()) return known->second;
        if (pointer != "#" && !pointer.starts_with("#/")) {
            return wrong(where, "$ref must point into the schema itself");
        }
        boost::system::error_code error;
        const auto* target = root_.find_pointer(std::string_view(pointer).substr(1), error);
        if (target == nullptr || error) return wrong(where, "$ref points at nothing");
        const std::string name = fmt::format("s{}", ++names_);
        references_.emplace(pointer, name);
        TRY(const auto body, visit(*target, pointer.size() < 200 ? pointer : where));
        rules_ += name + " ::= " + body + "\n";
        return name;
    }

    Result<std::string> visit_choices(const Object& node, const std::string& where) {
        TRY_DO(only(node, where, {"const", "enum", "type"}));
        json::array values;
        if (const auto* one = node.if_contains("const")) {
            values.push_back(*one);
        } else if (node.at("enum").is_array()) {
            values = node.at("enum").as_array();
        }
        std::string body;
        for (const auto& value : values) {
            if (!allows_type(node, value)) continue;
            body += (body.empty() ? "" : " | ") + gbnf_literal(to_text(value));
        }
        if (body.empty()) return wrong(where, "no value is left to choose");
        return add_rule(body);
    }

    static bool allows_type(const Object& node, const json::value& value) {
        const auto* type = node.if_contains("type");
        if (type == nullptr) return true;
        if (type->is_string()) return fits_type(value, type->as_string());
        return type->is_array() && std::ranges::any_of(type->as_array(), [&](const auto& one) {
                   return one.is_string() && fits_type(value, one.as_string());
               });
    }

    Result<std::string> visit_combination(const Object& node, const std::string& keyword,
                                          const std::string& where) {
        const auto& parts = node.at(keyword);
        if (!parts.is_array() || parts.as_array().empty()) {
            return wrong(where, keyword + " must be a list of schemas");
        }
        TRY_DO(only(node, where, {keyword}));
        const auto& list = parts.as_array();
        const std::string inside = where + "/" + keyword;
        if (keyword == "allOf") {
            if (list.size() > 1) TRY_DO(unkept(where, "allOf with several schemas"));
            return visit(list.front(), inside + "/0");
        }
        if (keyword == "oneOf" && !alternatives_differ(list, root_)) {
            TRY_DO(unkept(where, "oneOf with alternatives that overlap (use anyOf)"));
        }
        std::string body;
        for (std::size_t i = 0; i < list.size(); ++i) {
            TRY(const auto part, visit(list[i], inside + "/" + std::to_string(i)));
            body += (i == 0 ? "" : " | ") + part;
        }
        return add_rule(body);
    }

    /// What a schema without a type speaks of; empty: anything.
    static std::string_view implied_type(const Object& node) {
        constexpr std::array<std::pair<const char*, std::string_view>, 14> hints = {{
            {"properties", "object"},
            {"required", "object"},
            {"additionalProperties", "object"},
            {"items", "array"},
            {"prefixItems", "array"},
            {"minItems", "array"},
            {"maxItems", "array"},
            {"pattern", "string"},
            {"minLength", "string"},
            {"maxLength", "string"},
            {"minimum", "number"},
            {"maximum", "number"},
            {"exclusiveMinimum", "number"},
            {"exclusiveMaximum", "number"},
        }};
        for (const auto& [keyword, type] : hints) {
            if (node.contains(keyword)) return type;
        }
        return {};
    }

    Result<std::string> visit_type(const Object& node, const std::string& where) {
        const auto* type = node.if_contains("type");
        if (type == nullptr) {
            const std::string_view implied = implied_type(node);
            if (!implied.empty()) return visit_one_type(node, implied, where);
            TRY_DO(only(node, where, {}));
            return std::string("value");
        }
        if (type->is_string()) return visit_one_type(node, type->as_string(), where);
        if (!type->is_array() || type->as_array().empty()) return wrong(where, "type is no type");
        std::set<std::string, std::less<>> seen;
        std::string body;
        for (const auto& one : type->as_array()) {
            if (!one.is_string()) return wrong(where, "type is no type");
            if (!seen.emplace(one.as_string()).second) continue;
            TRY(const auto part, visit_one_type(node, one.as_string(), where));
            body += (body.empty() ? "" : " | ") + part;
        }
        return add_rule(body);
    }

    Result<std::string> visit_one_type(const Object& node, std::string_view type,
                                       const std::string& where) {
        TRY_DO(check_keywords(node, where));
        if (type == "object") return visit_object(node, where);
        if (type == "array") return visit_array(node, where);
        if (type == "string") return visit_string(node, where);
        if (type == "integer" || type == "number") return visit_number(node, type, where);
        if (type == "boolean") return add_rule(R"("true" | "false")");
        if (type == "null") return add_rule(R"("null")");
        return wrong(where, "type is no type");
    }

    Result<void> check_keywords(const Object& node, std::string_view where) const {
        static const std::set<std::string_view> known = {"type",
                                                         "properties",
                                                         "required",
                                                         "additionalProperties",
                                                         "unevaluatedProperties",
                                                         "items",
                                                         "prefixItems",
                                                         "additionalItems",
                                                         "minItems",
                                                         "maxItems",
                                                         "minLength",
                                                         "maxLength",
                                                         "pattern",
                                                         "format",
                                                         "minimum",
                                                         "maximum",
                                                         "exclusiveMinimum",
                                                         "exclusiveMaximum"};
        return only(node, where, known);
    }

    struct Property {
        std::string rule;  // reads `"name": value`
        bool required = false;
    };

    Result<Property> visit_property(const Object& node, const std::string& name,
                                    const json::value& schema, const std::string& where) {
        constexpr std::size_t name_bytes_max = 1'024;
        if (name.size() > name_bytes_max) return wrong(where, "a property's name is too long");
        TRY(const auto value, visit(schema, where));
        const std::string key = gbnf_literal(to_text(json::value(name)));
        return Property{add_rule(key + " space \":\" space " + value + " space"),
                        requires_property(node, name)};
    }

    Result<std::vector<Property>> visit_properties(const Object& node, const std::string& where) {
        std::vector<Property> properties;
        static const Object none;
        const auto* named = node.if_contains("properties");
        if (named != nullptr && !named->is_object()) return wrong(where, "properties is no object");
        const Object& entries = named != nullptr ? named->as_object() : none;
        for (const auto& entry : entries) {
            const std::string key(entry.key());
            TRY(auto property, visit_property(node, key, entry.value(), where + "/" + key));
            properties.push_back(std::move(property));
        }
        const auto* required = node.if_contains("required");
        if (required == nullptr || !required->is_array()) return properties;
        const auto* others = node.if_contains("additionalProperties");
        std::set<std::string> added;
        for (const auto& one : required->as_array()) {
            if (!one.is_string() || entries.contains(one.as_string())) continue;
            const std::string key(one.as_string());
            if (!added.insert(key).second) continue;
            const json::value anything(true);
            TRY(auto property,
                visit_property(node, key, others != nullptr ? *others : anything, where));
            properties.push_back(std::move(property));
        }
        return properties;
    }

    Result<std::string> visit_object(const Object& node, const std::string& where) {
        TRY(const auto properties, visit_properties(node, where));
        const auto* others = node.if_contains("additionalProperties");
        if (properties.empty()) {
            const bool open = others == nullptr || (others->is_bool() && others->as_bool());
            if (open && !node.contains("properties")) return std::string("object");
            if (others == nullptr || !others->is_object()) return add_rule(R"("{" space "}")");
            TRY(const auto value, visit(*others, where + "/additionalProperties"));
            const std::string member = add_rule("string space \":\" space " + value + " space");
            return add_rule(fmt::format(R"("{{" space ( {0} ( "," space {0} )* )? "}}")", member));
        }
        // first: nothing is written yet; next: something is, so a comma comes first.
        std::string first;
        std::string next;
        for (std::size_t i = properties.size(); i-- > 0;) {
            const auto& [rule, required] = properties[i];
            const std::string comma = "\",\" space " + rule;
            const std::string first_now = rule + (next.empty() ? "" : " " + next);
            const std::string next_now = comma + (next.empty() ? "" : " " + next);
            const std::string skipped_first = first.empty() ? "\"\"" : first;
            const std::string skipped_next = next.empty() ? "\"\"" : next;
            first = add_rule(required ? first_now : first_now + " | " + skipped_first);
            next = add_rule(required ? next_now : next_now + " | " + skipped_next);
        }
        return add_rule("\"{\" space " + first + " \"}\"");
    }

    Result<std::int64_t> count(const Object& node, const char* keyword, std::int64_t otherwise,
                               const std::string& where) const {
        const auto* value = node.if_contains(keyword);
        if (value == nullptr) return otherwise;
        if (!value->is_int64() || value->as_int64() < 0) {
            return wrong(where, fmt::format("{} is no count", keyword));
        }
        return value->as_int64();
    }

    Result<std::string> visit_array(const Object& node, const std::string& where) {
        constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();
        TRY(const auto least, count(node, "minItems", 0, where));
        TRY(const auto most, count(node, "maxItems", unbounded, where));
        if (least > most) return wrong(where, "minItems is above maxItems");
        if (least > count_max) return wrong(where, "minItems is too large");
        const auto* items = node.if_contains("items");
        const auto* fixed = node.if_contains("prefixItems");
        if (items != nullptr && items->is_array()) {
            fixed = items;
            items = node.if_contains("additionalItems");
        }
        std::vector<std::string> parts;
        if (fixed != nullptr && fixed->is_array()) {
            for (const auto& schema : fixed->as_array()) {
                if (static_cast<std::int64_t>(parts.size()) == most) break;
                TRY(auto part, visit(schema, where + "/prefixItems"));
                parts.push_back(std::move(part));
            }
        }
        const auto given = static_cast<std::int64_t>(parts.size());
        if (!parts.empty() && given >= least) return add_rule(list_of(parts, {}, 0, 0));
        const json::value anything(true);
        TRY(const auto item, visit(items != nullptr ? *items : anything, where + "/items"));
        const auto rest_least = std::max<std::int64_t>(0, least - given);
        const auto rest_most = parts.empty() ? most : rest_least;
        return add_rule(list_of(parts, item, rest_least, rest_most));
    }

    /// `[`, the parts, then from `least` to `most` times `item`, `]`.
    static std::string list_of(const std::vector<std::string>& parts, const std::string& item,
                               std::int64_t least, std::int64_t most) {
        std::string body;
        for (const auto& part : parts)
            body += (body.empty() ? "" : " \",\" space ") + part + " space";
        if (most > 0 && !item.empty()) {
            const bool first = body.empty();
            const std::int64_t repeated = first ? std::max<std::int64_t>(0, least - 1) : least;
            std::string times = fmt::format("{{{},", repeated);
            if (most <= count_max) times += std::to_string(first ? most - 1 : most);
            std::string more = fmt::format("( \",\" space {} space ){}}}", item, times);
            if (first) more = fmt::format("{} space {}", item, more);
            body += first && least == 0 ? "( " + more + " )?" : " " + more;
        }
        return "\"[\" space " + body + " \"]\"";
    }

    Result<std::string> visit_string(const Object& node, const std::string& where) {
        constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();
        TRY(const auto least, count(node, "minLength", 0, where));
        TRY(const auto most, count(node, "maxLength", unbounded, where));
        if (least > most) return wrong(where, "minLength is above maxLength");
        const bool bounded = node.contains("minLength") || node.contains("maxLength");
        if (const auto* pattern = node.if_contains("pattern")) {
            if (!pattern->is_string()) return wrong(where, "pattern is no text");
            if (bounded) TRY_DO(unkept(where, "a length beside a pattern"));
            auto content = pattern_grammar(pattern->as_string());
            if (content) return add_rule(R"("\"" ( )" + *content + R"( ) "\"")");
            if (strict_) return wrong(where, content.error().message());
        }
        if (const auto* format = node.if_contains("format"); format != nullptr && !bounded) {
            const std::string_view known =
                format->is_string() ? json_format(format->as_string()) : std::string_view();
            if (!known.empty()) return add_rule(fmt::format(R"("\"" {} "\"")", known));
        }
        if (!bounded) return std::string("string");
        if (least > count_max) return wrong(where, "minLength is too large");
        std::string times = fmt::format("{{{},", least);
        if (most <= count_max) times += std::to_string(most);
        return add_rule(R"("\"" char)" + times + R"(} "\"")");
    }

    /// A bound rounded into the range, or nothing when it is absent.
    Result<std::optional<double>> bound(const Object& node, const char* keyword,
                                        const std::string& where) const {
        const auto* value = node.if_contains(keyword);
        if (value == nullptr) return std::optional<double>();
        if (!value->is_number()) return wrong(where, fmt::format("{} is no number", keyword));
        return std::optional(value->to_number<double>());
    }

    Result<std::string> visit_number(const Object& node, std::string_view type,
                                     const std::string& where) {
        TRY(const auto minimum, bound(node, "minimum", where));
        TRY(const auto maximum, bound(node, "maximum", where));
        TRY(const auto above, bound(node, "exclusiveMinimum", where));
        TRY(const auto below, bound(node, "exclusiveMaximum", where));
        constexpr auto most = static_cast<double>(number_magnitude_max);
        double low = -most;
        double high = most;
        if (minimum) low = std::max(low, std::ceil(*minimum));
        if (above) low = std::max(low, std::floor(*above) + 1);
        if (maximum) high = std::min(high, std::floor(*maximum));
        if (below) high = std::min(high, std::ceil(*below) - 1);
        const bool whole = type == "integer";
        if (!minimum && !maximum && !above && !below && !whole) return std::string("number");
        if (!(low <= high)) return wrong(where, "no whole number lies between the bounds");
        const auto first = static_cast<std::int64_t>(low);
        const auto last = static_cast<std::int64_t>(high);
        return add_rule(whole ? integer_grammar(first, last) : number_grammar(first, last));
    }

    const json::value& root_;
    const bool strict_;
    std::map<std::string, std::string, std::less<>> references_;  // pointer -> rule
    std::string rules_;
    std::size_t names_ = 0;
    std::size_t nodes_ = 0;
};

}  // namespace

Result<std::string> schema_grammar(std::string_view schema, bool strict) {
    const auto root = parse_json(schema, {.bytes_max = 256U << 10U, .depth_max = 64});
    if (!root)
        return fail(ErrorCode::invalid_request, "the JSON schema: " + root.error().message());
    return Compiler(*root, strict).compile();
}

}  // namespace molly::engine
