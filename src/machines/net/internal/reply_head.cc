#include "net/internal/reply_head.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>

#include <fmt/format.h>

namespace molly::net::internal {
namespace {

std::string_view reason_of(int status) noexcept {
    switch (status) {
        case 200:
            return "OK";
        case 201:
            return "Created";
        case 204:
            return "No Content";
        case 304:
            return "Not Modified";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 409:
            return "Conflict";
        case 413:
            return "Content Too Large";
        case 417:
            return "Expectation Failed";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 502:
            return "Bad Gateway";
        case 503:
            return "Service Unavailable";
        case 504:
            return "Gateway Timeout";
        case 505:
            return "HTTP Version Not Supported";
        default:
            return "";
    }
}

/// RFC 9110, 5.6.7; rendered once a second.
std::string_view date_now() {
    static constexpr std::array days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    thread_local std::time_t rendered = 0;
    thread_local std::string text;
    const std::time_t now = std::time(nullptr);
    if (now == rendered) return text;
    std::tm utc{};
    if (gmtime_r(&now, &utc) == nullptr) return text;
    rendered = now;
    text = fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                       days[static_cast<std::size_t>(utc.tm_wday)], utc.tm_mday,
                       months[static_cast<std::size_t>(utc.tm_mon)], utc.tm_year + 1900,
                       utc.tm_hour, utc.tm_min, utc.tm_sec);
    return text;
}

/// The server's own headers; a handler's would contradict them.
bool reserved(std::string_view name) noexcept {
    return name == "content-length" || name == "connection" || name == "transfer-encoding" ||
           name == "date";
}

bool breaks_line(std::string_view text) noexcept {
    return std::any_of(text.begin(), text.end(),
                       [](char letter) { return letter == '\r' || letter == '\n' || letter == 0; });
}

void append_line(std::string& out, std::string_view name, std::string_view value) {
    out += name;
    out += ": ";
    out += value;
    out += "\r\n";
}

}  // namespace

bool bodyless_status(int status) noexcept {
    return status / 100 == 1 || status == 204 || status == 304;
}

void append_head(std::string& out, const HeadFacts& facts, const Headers& headers) {
    if (facts.status == 200) {
        out += "HTTP/1.1 200 OK\r\n";
    } else {
        fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", facts.status,
                       reason_of(facts.status));
    }
    for (const auto& [name, value] : headers) {
        if (reserved(name) || name.empty() || breaks_line(name) || breaks_line(value)) continue;
        append_line(out, name, value);
    }
    switch (facts.framing) {
        case Framing::length:
            append_line(out, "content-length", fmt::format_int(facts.body_bytes).c_str());
            break;
        case Framing::chunked:
            append_line(out, "transfer-encoding", "chunked");
            break;
        case Framing::until_close:
        case Framing::none:
            break;
    }
    append_line(out, "date", date_now());
    if (!facts.keep_alive) {
        append_line(out, "connection", "close");
    } else if (facts.http_1_0) {
        append_line(out, "connection", "keep-alive");
    }
    out += "\r\n";
}

void append_chunk(std::string& out, std::string_view piece) {
    fmt::format_to(std::back_inserter(out), "{:x}\r\n", piece.size());
    out += piece;
    out += "\r\n";
}

}  // namespace molly::net::internal
