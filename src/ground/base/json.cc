#include "base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <fmt/format.h>

#include "base/utf8.h"

namespace molly {
namespace {

using json::error_code;
using json::string_view;

/// Builds a value and refuses what a lenient parser lets through: repeated keys and NUL inside
/// strings.
class StrictHandler {
public:
    static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);

    explicit StrictHandler(json::storage_ptr storage) : storage_(std::move(storage)) {
        keys_.reserve(keys_compared_at_once);
        open_.reserve(16);
    }

    json::value_stack stack;
    const char* refusal = nullptr;  // why a callback returned false

    bool on_document_begin(error_code& /*error*/) {
        stack.reset(storage_);
        return true;
    }
    bool on_document_end(error_code& /*error*/) { return true; }
    bool on_object_begin(error_code& /*error*/) {
        open_.push_back({.first_key = keys_.size(), .text_begin = key_text_.size()});
        return true;
    }
    bool on_object_end(std::size_t size, error_code& error) {
        const Open open = open_.back();
        open_.pop_back();
        if (size > keys_compared_at_once && repeats(open.first_key))
            return refuse(repeated_key, error);
        keys_.resize(open.first_key);
        key_text_.resize(open.text_begin);
        stack.push_object(size);
        return true;
    }
    bool on_array_begin(error_code& /*error*/) { return true; }
    bool on_array_end(std::size_t size, error_code& /*error*/) {
        stack.push_array(size);
        return true;
    }
    bool on_key_part(string_view part, std::size_t /*size*/, error_code& error) {
        key_text_ += part;
        stack.push_chars(part);
        return refuse_nul(part, error);
    }
    bool on_key(string_view part, std::size_t size, error_code& error) {
        key_text_ += part;
        stack.push_key(part);
        const Key key = {.begin = key_text_.size() - size, .size = size};
        const std::size_t first = open_.back().first_key;
        const std::size_t compared = std::min(keys_.size(), first + keys_compared_at_once);
        for (std::size_t i = first; i < compared; ++i) {
            if (text_of(keys_[i]) == text_of(key)) return refuse(repeated_key, error);
        }
        keys_.push_back(key);
        return refuse_nul(part, error);
    }
    bool on_string_part(string_view part, std::size_t /*size*/, error_code& error) {
        stack.push_chars(part);
        return refuse_nul(part, error);
    }
    bool on_string(string_view part, std::size_t /*size*/, error_code& error) {
        stack.push_string(part);
        return refuse_nul(part, error);
    }
    bool on_number_part(string_view part, error_code& /*error*/) {
        number_text_ += part;
        return true;
    }
    bool on_int64(std::int64_t value, string_view /*text*/, error_code& /*error*/) {
        number_text_.clear();
        stack.push_int64(value);
        return true;
    }
    bool on_uint64(std::uint64_t value, string_view /*text*/, error_code& /*error*/) {
        number_text_.clear();
        stack.push_uint64(value);
        return true;
    }
    /// Boost's own double may be one unit off in its last place; from_chars is exact.
    bool on_double(double value, string_view text, error_code& error) {
        number_text_ += text;
        double exact = 0;
        const char* end = number_text_.data() + number_text_.size();
        const auto read = std::from_chars(number_text_.data(), end, exact);
        if (read.ec == std::errc() && read.ptr == end) value = exact;
        number_text_.clear();
        if (!std::isfinite(value)) return refuse("number out of range", error);
        stack.push_double(value);
        return true;
    }
    bool on_bool(bool value, error_code& /*error*/) {
        stack.push_bool(value);
        return true;
    }
    bool on_null(error_code& /*error*/) {
        stack.push_null();
        return true;
    }
    bool on_comment_part(string_view /*part*/, error_code& /*error*/) { return true; }
    bool on_comment(string_view /*part*/, error_code& /*error*/) { return true; }

private:
    struct Key {
        std::size_t begin = 0;  // in key_text_
        std::size_t size = 0;
    };
    struct Open {
        std::size_t first_key = 0;
        std::size_t text_begin = 0;
    };
    // Objects with more keys than this are checked once more at their end, by sorting: comparing
    // each key with all others would let one wide object stop the server.
    static constexpr std::size_t keys_compared_at_once = 32;
    static constexpr const char* repeated_key = "repeated key in one object";

    std::string_view text_of(const Key& key) const noexcept {
        return std::string_view(key_text_).substr(key.begin, key.size);
    }
    bool repeats(std::size_t first_key) {
        const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(first_key);
        const auto less = [this](const Key& a, const Key& b) { return text_of(a) < text_of(b); };
        const auto same = [this](const Key& a, const Key& b) { return text_of(a) == text_of(b); };
        std::sort(begin, keys_.end(), less);
        return std::adjacent_find(begin, keys_.end(), same) != keys_.end();
    }
    bool refuse(const char* why, error_code& error) {
        refusal = why;
        error = json::error::exception;
        return false;
    }
    bool refuse_nul(string_view part, error_code& error) {
        if (part.find('\0') == string_view::npos) return true;
        return refuse("NUL character in a string", error);
    }

    json::storage_ptr storage_;
    std::string number_text_;  // of the number that is being read
    std::string key_text_;     // the keys of all open objects, one after the other
    std::vector<Key> keys_;    // and where each of them lies
    std::vector<Open> open_;   // where each open object's keys begin
};

/// Characters that a JSON string holds as they are, without a look at what follows them.
constexpr auto stands_for_itself = [] {
    std::array<bool, 256> plain{};
    for (std::size_t c = 0x20; c < 0x80; ++c)
        plain[c] = c != '"' && c != '\\';
    return plain;
}();

}  // namespace

Result<json::value> parse_json(std::string_view text, const JsonLimits& limits,
                               json::storage_ptr storage) {
    if (text.size() > limits.bytes_max) {
        return fail(ErrorCode::too_large,
                    fmt::format("the JSON body has {} bytes; at most {} are accepted", text.size(),
                                limits.bytes_max));
    }
    std::size_t offset = 0;
    if (text.starts_with("\xEF\xBB\xBF")) offset = 3;
    json::parse_options options;
    options.max_depth = limits.depth_max;
    json::basic_parser<StrictHandler> parser(options, std::move(storage));
    error_code error;
    try {
        offset += parser.write_some(false, text.data() + offset, text.size() - offset, error);
        if (!error && offset < text.size()) error = json::error::extra_data;
        if (!error) return parser.handler().stack.release();
    } catch (const std::exception&) {
        return fail(ErrorCode::exhausted, "the JSON body does not fit in memory");
    }
    const char* refusal = parser.handler().refusal;
    return fail(Error(ErrorCode::invalid_request,
                      fmt::format("the body is not acceptable JSON at byte {}: {}", offset,
                                  refusal != nullptr ? std::string(refusal) : error.message()))
                    .reason("invalid_json")
                    .italian(fmt::format("il corpo non è JSON accettabile al byte {}", offset)));
}

void append_json_string(std::string& out, std::string_view text) {
    static constexpr std::string_view hex = "0123456789abcdef";
    out += '"';
    std::size_t clean = 0;  // start of the run that needs no escape
    const auto flush = [&](std::size_t end) { out.append(text.substr(clean, end - clean)); };
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (stands_for_itself[byte]) {
            ++i;
            continue;
        }
        if (byte >= 0x80) {
            const std::size_t length = utf8_length(text.substr(i));
            if (length != 0) {
                i += length;
                continue;
            }
            flush(i);
            out += "\xEF\xBF\xBD";
        } else {
            flush(i);
            switch (byte) {
                case '"':
                    out += "\\\"";
                    break;
                case '\\':
                    out += "\\\\";
                    break;
                case '\n':
                    out += "\\n";
                    break;
                case '\r':
                    out += "\\r";
                    break;
                case '\t':
                    out += "\\t";
                    break;
                default:
                    out += "\\u00";
                    out += hex[byte >> 4U];
                    out += hex[byte & 0xFU];
            }
        }
        clean = ++i;
    }
    flush(text.size());
    out += '"';
}

namespace {

void append_number(std::string& out, double value) {
    std::array<char, 32> text = {};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
    out += digits;
    if (digits.find_first_of(".en") == std::string_view::npos) out += ".0";
}

}  // namespace

void append_json(std::string& out, const json::value& value) {
    char separator = 0;
    switch (value.kind()) {
        case json::kind::null:
            out += "null";
            return;
        case json::kind::bool_:
            out += value.get_bool() ? "true" : "false";
            return;
        case json::kind::int64:
            out += std::to_string(value.get_int64());
            return;
        case json::kind::uint64:
            out += std::to_string(value.get_uint64());
            return;
        case json::kind::double_:
            append_number(out, value.get_double());
            return;
        case json::kind::string:
            append_json_string(out, value.get_string());
            return;
        case json::kind::array:
            separator = '[';
            for (const json::value& element : value.get_array()) {
                out += std::exchange(separator, ',');
                append_json(out, element);
            }
            out += separator == '[' ? "[]" : "]";
            return;
        case json::kind::object:
            separator = '{';
            for (const auto& [key, member] : value.get_object()) {
                out += std::exchange(separator, ',');
                append_json_string(out, key);
                out += ':';
                append_json(out, member);
            }
            out += separator == '{' ? "{}" : "}";
            return;
    }
}

std::string to_text(const json::value& value) {
    std::string text;
    append_json(text, value);
    return text;
}

}  // namespace molly
