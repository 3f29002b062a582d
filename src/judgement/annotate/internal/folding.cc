#include "annotate/internal/folding.h"

#include <array>
#include <charconv>

#include "seal/seal.h"

namespace molly::annotate {
namespace {

constexpr std::array<char, 128> make_ascii() {
    std::array<char, 128> table{};
    for (char c = '0'; c <= '9'; ++c)
        table[static_cast<std::size_t>(c)] = c;
    for (char c = 'a'; c <= 'z'; ++c) {
        table[static_cast<std::size_t>(c)] = c;
        table[static_cast<std::size_t>(c - 'a' + 'A')] = c;
    }
    return table;
}
constexpr std::array<char, 128> ascii = make_ascii();  // 0: left out

// U+00C0 to U+00FF without accents; blank: left out.
constexpr std::string_view latin =
    "aaaaaaaceeeeiiiidnooooo ouuuuypsaaaaaaaceeeeiiiidnooooo ouuuuypy";
static_assert(latin.size() == 64);

/// Writes into room that is known to suffice: no step writes more than it reads.
class Writer {
public:
    explicit Writer(char* to) : to_(to) {}
    void put(char c) noexcept { *to_++ = c; }
    const char* end() const noexcept { return to_; }

private:
    char* to_;
};

/// Undoes `\u00e8` at `at`, which names the backslash; gives what it takes in the text.
std::size_t undo_escape(std::string_view text, std::size_t at, Writer& out) {
    if (at + 1 >= text.size() || text[at + 1] != 'u') return 2;
    if (at + 6 > text.size()) return text.size() - at;
    unsigned point = 0;
    const char* const digits = text.data() + at + 2;
    const auto read = std::from_chars(digits, digits + 4, point, 16);
    if (read.ec != std::errc()) return 6;
    if (point < 0x80) {
        if (const char c = ascii[point]; c != 0) out.put(c);
    } else if (point >= 0xC0 && point <= 0xFF) {
        if (const char c = latin[point - 0xC0]; c != ' ') out.put(c);
    } else if (point >= 0x100 && point < 0x800) {
        out.put(static_cast<char>(0xC0U | (point >> 6U)));
        out.put(static_cast<char>(0x80U | (point & 0x3FU)));
    } else if (point >= 0x800 && (point < 0x2000 || point > 0x206F)) {
        out.put(static_cast<char>(0xE0U | (point >> 12U)));
        out.put(static_cast<char>(0x80U | ((point >> 6U) & 0x3FU)));
        out.put(static_cast<char>(0x80U | (point & 0x3FU)));
    }
    return 6;
}

/// Appends what is left of the multi-byte sequence at `at`; gives its length in the text.
std::size_t fold_sequence(std::string_view text, std::size_t at, Writer& out) {
    const auto byte = [&](std::size_t i) {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
    };
    const unsigned first = byte(0);
    if (first == 0xC2) return 2;  // signs and the no-break space
    if (first == 0xC3 && byte(1) >= 0x80 && byte(1) <= 0xBF) {
        if (const char c = latin[byte(1) - 0x80]; c != ' ') out.put(c);
        return 2;
    }
    if (first == 0xCC || (first == 0xCD && byte(1) <= 0xAF)) return 2;  // combining accents
    // Dashes, quotes, spaces and marks of no width.
    if (first == 0xE2 && (byte(1) == 0x80 || byte(1) == 0x81)) return 3;
    out.put(static_cast<char>(first));
    return 1;
}

void fold_plain(std::string_view text, bool escapes, std::string& out) {
    const std::size_t before = out.size();
    out.append(text.size(), '\0');
    Writer writer(out.data() + before);
    for (std::size_t at = 0; at < text.size();) {
        const auto c = static_cast<unsigned char>(text[at]);
        if (c >= 0x80) {
            at += fold_sequence(text, at, writer);
        } else if (escapes && c == '\\') {
            at += undo_escape(text, at, writer);
        } else {
            if (ascii[c] != 0) writer.put(ascii[c]);
            ++at;
        }
    }
    out.erase(static_cast<std::size_t>(writer.end() - out.data()));
}

}  // namespace

void fold(std::string_view text, domain::TextForm form, std::string& out) {
    if (form != domain::TextForm::base64)
        return fold_plain(text, form == domain::TextForm::json, out);
    if (const auto bytes = seal::from_base64(text)) fold_plain(*bytes, false, out);
}

}  // namespace molly::annotate
