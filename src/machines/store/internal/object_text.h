#pragma once
// Writes one JSON object by appending: no tree is built on the hot path. Member names are trusted.
#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

#include "base/json.h"
#include "domain/tier.h"

namespace molly::store::internal {

/// Appends any integer or finite number.
template <class Number>
    requires(std::integral<Number> || std::floating_point<Number>)
void append_number(std::string& out, Number number) {
    if constexpr (std::floating_point<Number>) {
        if (!std::isfinite(number)) number = 0;  // JSON has no other way to say it
    }
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, number).ptr;
    out.append(text, end);
}

class ObjectText {
public:
    explicit ObjectText(std::string& out) : out_(out) { out_ += '{'; }
    ObjectText(const ObjectText&) = delete;
    ObjectText& operator=(const ObjectText&) = delete;
    ObjectText(ObjectText&&) = delete;
    ObjectText& operator=(ObjectText&&) = delete;
    ~ObjectText() { out_ += '}'; }

    /// Writes the name; the caller appends the value.
    std::string& name(std::string_view name) {
        if (!first_) out_ += ',';
        first_ = false;
        out_ += '"';
        out_ += name;
        out_ += "\":";
        return out_;
    }
    void text(std::string_view key, std::string_view value) {
        append_json_string(name(key), value);
    }
    void boolean(std::string_view key, bool value) { name(key) += value ? "true" : "false"; }
    template <class Number>
    void number(std::string_view key, Number value) {
        append_number(name(key), value);
    }
    // What has its default value is left out: traces are many.
    void some_text(std::string_view key, std::string_view value) {
        if (!value.empty()) text(key, value);
    }
    void some_flag(std::string_view key, bool value) {
        if (value) boolean(key, true);
    }
    template <class Number>
    void some_number(std::string_view key, Number value) {
        if (value != Number{}) number(key, value);
    }
    /// An array of what `append` writes for each element.
    template <class Range, class Append>
    void array(std::string_view key, const Range& range, const Append& append) {
        name(key) += '[';
        bool first = true;
        for (const auto& element : range) {
            if (!first) out_ += ',';
            first = false;
            append(out_, element);
        }
        out_ += ']';
    }
    template <class Range>
    void texts(std::string_view key, const Range& range) {
        array(key, range,
              [](std::string& out, std::string_view text) { append_json_string(out, text); });
    }

private:
    std::string& out_;
    bool first_ = true;
};

/// A member that is text; empty when it is missing or something else.
inline std::string text_at(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr || !value->is_string()) return {};
    return std::string(value->get_string().data(), value->get_string().size());
}

/// `["T0","T1"]`.
inline void append_tiers(std::string& out, domain::TierSet tiers) {
    out += '[';
    bool first = true;
    for (const domain::Tier tier : domain::all_tiers) {
        if (!tiers.contains(tier)) continue;
        if (!first) out += ',';
        first = false;
        append_json_string(out, domain::to_string(tier));
    }
    out += ']';
}

}  // namespace molly::store::internal
