#include "net/internal/http_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace molly::net::internal {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using BeastText = boost::beast::string_view;

std::string_view view(BeastText text) noexcept {
    return {text.data(), text.size()};
}

char lower(char letter) noexcept {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool same_token(std::string_view text, std::string_view lower_case) noexcept {
    return std::equal(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                      [](char a, char b) { return lower(a) == b; });
}

void append_header(Headers& headers, BeastText name, BeastText value) {
    auto& [key, text] = headers.emplace_back();
    key.resize(name.size());
    std::transform(name.begin(), name.end(), key.begin(), lower);
    text.assign(value.data(), value.size());
}

int hex_digit(char digit) noexcept {
    if (digit >= '0' && digit <= '9') return digit - '0';
    const char letter = lower(digit);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/// False when an escape is broken or hides a NUL.
bool decode_percent(std::string_view text, std::string& out) {
    out.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (i + 2 >= text.size()) return false;
        const int high = hex_digit(text[i + 1]);
        const int low = hex_digit(text[i + 2]);
        if (high < 0 || low < 0 || high + low == 0) return false;
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return true;
}

/// Path and query of an origin-form, absolute-form or asterisk-form target (RFC 9112, 3.2).
bool split_target(std::string_view target, HttpRequest& into) {
    if (const auto scheme = target.find("://"); scheme != std::string_view::npos && scheme <= 5) {
        const auto slash = target.find('/', scheme + 3);
        target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
    }
    if (target != "*" && !target.starts_with('/')) return false;
    target = target.substr(0, target.find('#'));
    const auto mark = target.find('?');
    if (mark != std::string_view::npos) into.query.assign(target.substr(mark + 1));
    return decode_percent(target.substr(0, mark), into.path);
}

Fault fault_of(const error_code& error) {
    if (error == http::error::header_limit) return Fault::header_too_large;
    if (error == http::error::body_limit) return Fault::body_too_large;
    if (error == http::error::bad_version) return Fault::unsupported_version;
    return Fault::malformed;
}

/// Feeds until the message is complete, more bytes are needed, or something is wrong.
template <class Parser>
Fed feed_parser(Parser& parser, std::string_view bytes) {
    Fed fed;
    error_code error;
    while (fed.consumed < bytes.size() && !parser.is_done()) {
        const auto rest = bytes.substr(fed.consumed);
        fed.consumed += parser.put(boost::asio::const_buffer(rest.data(), rest.size()), error);
        if (error) break;
    }
    if (error && error != http::error::need_more)
        fed.fault = parser.refusal == Fault::none ? fault_of(error) : parser.refusal;
    fed.head_done = parser.is_header_done();
    fed.done = fed.fault == Fault::none && parser.is_done();
    return fed;
}

/// What both directions take from Beast and what both refuse.
template <bool is_request>
class ParserBase : public http::basic_parser<is_request> {
public:
    Fault refusal = Fault::none;

protected:
    void refuse(Fault fault, error_code& error) {
        refusal = fault;
        error = http::error::bad_field;
    }
    /// Two readings of where a message ends are how requests get smuggled: one length, once.
    /// Beast itself refuses Content-Length beside chunked.
    void check_framing(http::field name, BeastText value, error_code& error) {
        if (name == http::field::content_length) {
            if (lengths_++ > 0 || value.find(',') != BeastText::npos)
                refuse(Fault::malformed, error);
        } else if (name == http::field::transfer_encoding) {
            if (codings_++ > 0) refuse(Fault::malformed, error);
            if (!same_token(view(value), "chunked")) refuse(Fault::unsupported_coding, error);
        }
        if (lengths_ > 0 && codings_ > 0) refuse(Fault::malformed, error);
    }
    bool chunked() const noexcept { return codings_ > 0; }

private:
    int lengths_ = 0;
    int codings_ = 0;
};

class RequestReader final : public ParserBase<true> {
public:
    RequestReader(HttpRequest& into, std::size_t header_bytes_max, std::size_t body_bytes_max)
        : into_(&into) {
        eager(true);
        header_limit(static_cast<std::uint32_t>(header_bytes_max));
        body_limit(body_bytes_max);
    }
    bool expects_continue() const noexcept { return expects_continue_; }
    bool http_1_0() const noexcept { return http_1_0_; }

private:
    void on_request_impl(http::verb /*verb*/, BeastText method, BeastText target, int version,
                         error_code& error) override {
        http_1_0_ = version == 10;
        into_->method.assign(method.data(), method.size());
        if (!split_target(view(target), *into_)) refuse(Fault::malformed, error);
    }
    void on_response_impl(int /*status*/, BeastText /*reason*/, int /*version*/,
                          error_code& /*error*/) override {}
    void on_field_impl(http::field name, BeastText name_text, BeastText value,
                       error_code& error) override {
        if (header_done_) return;  // a trailer says nothing that anyone checked
        check_framing(name, value, error);
        if (name == http::field::host && hosts_++ > 0) refuse(Fault::malformed, error);
        if (name == http::field::expect && same_token(view(value), "100-continue"))
            expects_continue_ = true;
        append_header(into_->headers, name_text, value);
    }
    void on_header_impl(error_code& error) override {
        header_done_ = true;
        if (http_1_0_ && chunked()) refuse(Fault::malformed, error);
        if (!http_1_0_ && hosts_ == 0) refuse(Fault::malformed, error);
    }
    void on_body_init_impl(const boost::optional<std::uint64_t>& length,
                           error_code& /*error*/) override {
        if (length) into_->body.reserve(static_cast<std::size_t>(*length));
    }
    std::size_t on_body_impl(BeastText body, error_code& /*error*/) override {
        into_->body.append(body.data(), body.size());
        return body.size();
    }
    void on_chunk_header_impl(std::uint64_t /*size*/, BeastText /*extensions*/,
                              error_code& /*error*/) override {}
    std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, BeastText body,
                                   error_code& /*error*/) override {
        into_->body.append(body.data(), body.size());
        return body.size();
    }
    void on_finish_impl(error_code& /*error*/) override {}

    HttpRequest* into_;
    int hosts_ = 0;
    bool header_done_ = false;
    bool expects_continue_ = false;
    bool http_1_0_ = false;
};

class ReplyReader final : public ParserBase<false> {
public:
    ReplyReader(std::size_t header_bytes_max, std::uint64_t body_bytes_max, bool bodyless) {
        eager(true);
        header_limit(static_cast<std::uint32_t>(header_bytes_max));
        body_limit(body_bytes_max);
        skip(bodyless);
    }
    int status = 0;
    Headers headers;
    std::vector<std::string_view> pieces;

private:
    void on_request_impl(http::verb /*verb*/, BeastText /*method*/, BeastText /*target*/,
                         int /*version*/, error_code& /*error*/) override {}
    void on_response_impl(int code, BeastText /*reason*/, int /*version*/,
                          error_code& error) override {
        status = code;
        if (code < 100 || code == 101) refuse(Fault::malformed, error);
    }
    void on_field_impl(http::field name, BeastText name_text, BeastText value,
                       error_code& error) override {
        if (header_done_) return;
        check_framing(name, value, error);
        append_header(headers, name_text, value);
    }
    void on_header_impl(error_code& /*error*/) override { header_done_ = true; }
    void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                           error_code& /*error*/) override {}
    std::size_t on_body_impl(BeastText body, error_code& /*error*/) override {
        if (!body.empty()) pieces.push_back(view(body));
        return body.size();
    }
    void on_chunk_header_impl(std::uint64_t /*size*/, BeastText /*extensions*/,
                              error_code& /*error*/) override {}
    std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, BeastText body,
                                   error_code& /*error*/) override {
        if (!body.empty()) pieces.push_back(view(body));
        return body.size();
    }
    void on_finish_impl(error_code& /*error*/) override {}

    bool header_done_ = false;
};

}  // namespace

class RequestParser::Impl {
public:
    std::size_t header_bytes_max = 0;
    std::size_t body_bytes_max = 0;
    std::optional<RequestReader> reader;
    bool started = false;
};

RequestParser::RequestParser(std::size_t header_bytes_max, std::size_t body_bytes_max)
    : impl_(std::make_unique<Impl>()) {
    impl_->header_bytes_max = header_bytes_max;
    impl_->body_bytes_max = body_bytes_max;
}
RequestParser::~RequestParser() = default;

void RequestParser::restart(HttpRequest& into) {
    impl_->reader.emplace(into, impl_->header_bytes_max, impl_->body_bytes_max);
    impl_->started = false;
}

Fed RequestParser::feed(std::string_view bytes) {
    std::size_t blank = 0;
    if (!impl_->started) {
        // RFC 9112, 2.2: empty lines before a request line are ignored.
        blank = std::min(bytes.find_first_not_of("\r\n"), bytes.size());
        impl_->started = blank < bytes.size();
    }
    Fed fed = feed_parser(*impl_->reader, bytes.substr(blank));
    fed.consumed += blank;
    return fed;
}

bool RequestParser::keep_alive() const noexcept {
    return impl_->reader && impl_->reader->is_done() && impl_->reader->keep_alive();
}
bool RequestParser::expects_continue() const noexcept {
    return impl_->reader && impl_->reader->expects_continue();
}
bool RequestParser::http_1_0() const noexcept {
    return impl_->reader && impl_->reader->http_1_0();
}

class ReplyParser::Impl {
public:
    Impl(std::size_t header_max, std::uint64_t body_max, bool no_body)
        : header_bytes_max(header_max), body_bytes_max(body_max), bodyless(no_body) {
        restart();
    }
    void restart() { reader.emplace(header_bytes_max, body_bytes_max, bodyless); }

    std::size_t header_bytes_max;
    std::uint64_t body_bytes_max;
    bool bodyless;
    std::optional<ReplyReader> reader;
};

ReplyParser::ReplyParser(std::size_t header_bytes_max, std::uint64_t body_bytes_max, bool bodyless)
    : impl_(std::make_unique<Impl>(header_bytes_max, body_bytes_max, bodyless)) {}
ReplyParser::~ReplyParser() = default;

Fed ReplyParser::feed(std::string_view bytes) {
    impl_->reader->pieces.clear();
    Fed fed;
    for (;;) {
        const std::size_t before = fed.consumed;
        fed = feed_parser(*impl_->reader, bytes.substr(before));
        fed.consumed += before;
        const bool interim = fed.done && impl_->reader->status / 100 == 1;
        if (!interim) return fed;
        impl_->restart();
        fed.done = fed.head_done = false;
    }
}

bool ReplyParser::finish_at_eof() {
    if (!impl_->reader->got_some()) return false;
    error_code error;
    impl_->reader->put_eof(error);
    return !error;
}
int ReplyParser::status() const noexcept {
    return impl_->reader->status;
}
const Headers& ReplyParser::headers() const noexcept {
    return impl_->reader->headers;
}
const std::vector<std::string_view>& ReplyParser::pieces() const noexcept {
    return impl_->reader->pieces;
}
bool ReplyParser::keep_alive() const noexcept {
    return impl_->reader->is_done() && impl_->reader->keep_alive();
}

}  // namespace molly::net::internal
