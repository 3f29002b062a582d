#include "annotate/internal/structured.h"

#include <algorithm>
#include <array>

#include "annotate/internal/recognisers.h"

namespace molly::annotate {
namespace {

/// What a byte may begin.
enum class Trigger : std::uint8_t { none, letter, digit, plus, parenthesis, at, assign, hyphen };

constexpr std::array<Trigger, 256> triggers = [] {
    std::array<Trigger, 256> table{};
    for (unsigned c = 0; c < 128; ++c) {
        if (is_letter(static_cast<char>(c))) table[c] = Trigger::letter;
        if (is_digit(static_cast<char>(c))) table[c] = Trigger::digit;
    }
    table['+'] = Trigger::plus;
    table['('] = Trigger::parenthesis;
    table['@'] = Trigger::at;
    table[':'] = Trigger::assign;
    table['='] = Trigger::assign;
    table['-'] = Trigger::hyphen;
    return table;
}();

// Most words begin nothing. What follows decides that from a few characters, before a recogniser
// puts groups together.

/// The place after one blank or hyphen at `at`, or `at`.
std::size_t after_separator(std::string_view text, std::size_t at) noexcept {
    if (const std::size_t blank = blank_at(text, at)) return at + blank;
    return at + hyphen_at(text, at);
}

/// A digit of a codice fiscale, or the letter that stands for one (omocodia).
bool is_code_digit(char c) noexcept {
    constexpr std::string_view omocodia = "LMNPQRSTUV";
    return is_digit(c) || omocodia.find(to_upper(c)) != std::string_view::npos;
}

/// Whether a codice fiscale may begin with the word from `at` to `end`: six letters, a year, the
/// letter of a month; or three letters and three letters.
bool may_begin_code(std::string_view text, std::size_t at, std::size_t end) noexcept {
    constexpr std::string_view month_letters = "ABCDEHLMPRST";
    const std::size_t size = end - at;
    if (size == 3) {
        const std::size_t next = after_separator(text, end);
        return next > end && word_end(text, next) - next == 3;
    }
    if (size > 6 && !is_code_digit(text[at + 6])) return false;
    if (size > 7 && !is_code_digit(text[at + 7])) return false;
    if (size > 8 && month_letters.find(to_upper(text[at + 8])) == std::string_view::npos)
        return false;
    return size >= 6 && size <= 16;
}

class Pass {
public:
    Pass(std::string_view text, std::vector<Finding>& out) : text_(text), out_(out) {}

    void run() {
        for (std::size_t at = 0; at < text_.size();) {
            const Trigger trigger = triggers[static_cast<unsigned char>(text_[at])];
            at = trigger == Trigger::none ? at + 1 : after(trigger, at);
        }
    }

private:
    /// Looks at `at`; where the pass goes on.
    std::size_t after(Trigger trigger, std::size_t at) {
        switch (trigger) {
            case Trigger::letter:
                return after_letters(at);
            case Trigger::digit:
                return after_digits(at);
            case Trigger::plus:
            case Trigger::parenthesis:
                return accept(opened_phone(at)) ? taken_ : at + 1;
            case Trigger::at:
                return accept(email_around(text_, at)) ? taken_ : at + 1;
            case Trigger::assign:
                return accept(assigned(at)) ? taken_ : at + 1;
            case Trigger::hyphen:
                return after_hyphens(at);
            case Trigger::none:
                break;
        }
        return at + 1;
    }

    std::size_t after_letters(std::size_t at) {
        const std::size_t end = word_end(text_, at);
        const std::size_t size = end - at;
        const char next = char_at(text_, end);
        if (accept(secret_at(text_, at))) return taken_;
        const bool pair = size == 2 && is_digit(char_at(text_, after_separator(text_, end)));
        if (pair || is_digit(char_at(text_, at + 2))) {
            if (accept(iban_at(text_, at))) return taken_;
        }
        if (may_begin_code(text_, at, end) && accept(codice_fiscale_at(text_, at))) return taken_;
        if (size <= 4 && (next == ':' || next == '-' || next == '.')) {
            if (accept(network_address_at(text_, at))) return taken_;
        }
        if (pair || (size >= 6 && size <= 14)) {
            if (accept(document_at(text_, at))) return taken_;
        }
        const std::size_t after_dot = next == '.' ? end + 1 : end;
        if (size >= 3 && size <= 9 && is_digit(char_at(text_, after_dot + 1))) {
            if (accept(date_at(text_, at))) return taken_;
        }
        return end;
    }

    std::size_t after_digits(std::size_t at) {
        if (accept(secret_at(text_, at)) || accept(network_address_at(text_, at)) ||
            accept(card_at(text_, at)) || accept(number_at(text_, at)))
            return taken_;
        const Recognised date = date_at(text_, at);
        if (accept(date)) return taken_;
        if (date.end > 0) return date.end;
        if (accept(phone_at(text_, at)) || accept(document_at(text_, at))) return taken_;
        return word_end(text_, at);
    }

    Recognised opened_phone(std::size_t at) const {
        const char before = at > 0 ? text_[at - 1] : ' ';
        if (is_alnum(before) && text_[at] == '+') return {};
        return phone_at(text_, at);
    }

    Recognised assigned(std::size_t at) const {
        if (text_[at] == ':' && text_.substr(at + 1).starts_with("//"))
            return url_credentials_at(text_, at);
        const bool opens = at == 0 || !is_alnum(text_[at - 1]);
        if (text_[at] == ':' && opens && char_at(text_, at + 1) == ':')
            return network_address_at(text_, at);
        return assignment_at(text_, at);
    }

    std::size_t after_hyphens(std::size_t at) {
        if (char_at(text_, at + 1) != '-') return at + 1;
        if (accept(private_key_at(text_, at))) return taken_;
        while (char_at(text_, at) == '-')
            ++at;
        return at;
    }

    bool accept(const Recognised& recognised) {
        if (!recognised.finding) return false;
        out_.push_back(*recognised.finding);
        taken_ = recognised.end;
        return true;
    }

    std::string_view text_;
    std::vector<Finding>& out_;
    std::size_t taken_ = 0;  // where the last accepted finding ends
};

}  // namespace

void find_structured(std::string_view text, std::vector<Finding>& out) {
    Pass(text, out).run();
}

}  // namespace molly::annotate
