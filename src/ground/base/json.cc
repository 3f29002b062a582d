#include "base/json.h"

#include <algorithm>
#include <vector>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
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

    json::value_stack stack;
    const char* refusal = nullptr;  // why a callback returned false

    bool on_document_begin(error_code& /*error*/) {
        stack.reset();
        return true;
    }
    bool on_document_end(error_code& /*error*/) { return true; }
    bool on_object_begin(error_code& /*error*/) {
        open_.push_back(keys_.size());
        return true;
    }
    bool on_object_end(std::size_t size, error_code& /*error*/) {
        keys_.resize(open_.back());
        open_.pop_back();
        stack.push_object(size);
        return true;
    }
    bool on_array_begin(error_code& /*error*/) { return true; }
    bool on_array_end(std::size_t size, error_code& /*error*/) {
        stack.push_array(size);
        return true;
    }
    bool on_key_part(string_view part, std::size_t /*size*/, error_code& error) {
        key_ += part;
        stack.push_chars(part);
        return refuse_nul(part, error);
    }
    bool on_key(string_view part, std::size_t /*size*/, error_code& error) {
        key_ += part;
        stack.push_key(part);
        const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(open_.back());
        if (std::find(begin, keys_.end(), key_) != keys_.end())
            return refuse("repeated key in one object", error);
        keys_.push_back(key_);
        key_.clear();
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
    bool on_number_part(string_view /*part*/, error_code& /*error*/) { return true; }
    bool on_int64(std::int64_t value, string_view /*text*/, error_code& /*error*/) {
        stack.push_int64(value);
        return true;
    }
    bool on_uint64(std::uint64_t value, string_view /*text*/, error_code& /*error*/) {
        stack.push_uint64(value);
        return true;
    }
    bool on_double(double value, string_view /*text*/, error_code& /*error*/) {
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
    bool refuse(const char* why, error_code& error) {
        refusal = why;
        error = json::error::exception;
        return false;
    }
    bool refuse_nul(string_view part, error_code& error) {
        if (part.find('\0') == string_view::npos) return true;
        return refuse("NUL character in a string", error);
    }

    std::vector<std::string> keys_;  // keys of all open objects
    std::vector<std::size_t> open_;  // where each open object's keys begin
    std::string key_;
};

}  // namespace

Result<json::value> parse_json(std::string_view text, const JsonLimits& limits) {
    if (text.size() > limits.bytes_max) {
        return fail(ErrorCode::too_large,
                    fmt::format("the JSON body has {} bytes; at most {} are accepted", text.size(),
                                limits.bytes_max));
    }
    std::size_t offset = 0;
    if (text.starts_with("\xEF\xBB\xBF")) offset = 3;
    json::parse_options options;
    options.max_depth = limits.depth_max;
    json::basic_parser<StrictHandler> parser(options);
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
        if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\') {
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

std::string to_text(const json::value& value) {
    return json::serialize(value);
}

}  // namespace molly
