#pragma once
// Writes JSON by appending to a string, commas included; no document is built. Values.
#include <array>
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/json.h"

namespace molly::dialects {

/// Appends one JSON value to `out`, which must outlive it. Names given to `key` and `field` are
/// literals of ours and need no escape.
class JsonText {
public:
    explicit JsonText(std::string& out) : out_(out) {}

    JsonText& open() { return begin('{'); }
    JsonText& close() { return end('}'); }
    JsonText& open_array() { return begin('['); }
    JsonText& close_array() { return end(']'); }

    JsonText& key(std::string_view name) {
        comma();
        out_ += '"';
        out_ += name;
        out_ += "\":";
        first_ = true;
        return *this;
    }
    JsonText& string(std::string_view text) {
        comma();
        append_json_string(out_, text);
        return *this;
    }
    /// A value that is JSON already.
    JsonText& raw(std::string_view json_text) {
        comma();
        out_ += json_text;
        return *this;
    }
    JsonText& null() { return raw("null"); }
    JsonText& boolean(bool value) { return raw(value ? "true" : "false"); }
    template <class Number>
        requires std::is_arithmetic_v<Number>
    JsonText& number(Number value) {
        std::array<char, 40> text = {};
        const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
        return raw(std::string_view(text.data(), static_cast<std::size_t>(end - text.data())));
    }

    /// `"name":value`, by the type of the value.
    template <class Value>
    JsonText& field(std::string_view name, const Value& value) {
        key(name);
        if constexpr (std::same_as<Value, bool>) {
            return boolean(value);
        } else if constexpr (std::is_arithmetic_v<Value>) {
            return number(value);
        } else {
            return string(value);
        }
    }
    JsonText& null_field(std::string_view name) { return key(name).null(); }
    JsonText& raw_field(std::string_view name, std::string_view json_text) {
        return key(name).raw(json_text);
    }

private:
    JsonText& begin(char bracket) {
        comma();
        out_ += bracket;
        first_ = true;
        return *this;
    }
    JsonText& end(char bracket) {
        out_ += bracket;
        first_ = false;
        return *this;
    }
    void comma() {
        if (!first_) out_ += ',';
        first_ = false;
    }

    std::string& out_;
    bool first_ = true;  // nothing before the next value in its container, or a key just before it
};

}  // namespace molly::dialects
