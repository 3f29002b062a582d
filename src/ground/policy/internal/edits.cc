#include "policy/internal/edits.h"

#include <algorithm>

#include "base/json.h"

namespace molly::policy::internal {
namespace {

using domain::Finding;

/// A string's contents, or a number or word, inside a JSON text.
struct Scalar {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool string = false;
};

/// The end of the string whose contents begin at `at`: the place of its closing quote.
std::optional<std::size_t> string_end(std::string_view text, std::size_t at) {
    for (; at < text.size(); ++at) {
        if (text[at] == '"') return at;
        if (text[at] == '\\') ++at;
    }
    return std::nullopt;
}

bool is_word(char c) noexcept {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

std::optional<std::vector<Scalar>> scalars_of(std::string_view text) {
    static constexpr std::string_view structure = " \t\r\n{}[]:,";
    std::vector<Scalar> scalars;
    std::size_t at = 0;
    while (at < text.size()) {
        if (text[at] == '"') {
            const auto end = string_end(text, at + 1);
            if (!end) return std::nullopt;
            scalars.push_back({at + 1, *end, true});
            at = *end + 1;
        } else if (is_word(text[at])) {
            const std::size_t begin = at;
            while (at < text.size() && is_word(text[at]))
                ++at;
            scalars.push_back({begin, at, false});
        } else if (structure.find(text[at]) != std::string_view::npos) {
            ++at;
        } else {
            return std::nullopt;
        }
    }
    return scalars;
}

bool continues(char c) noexcept {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

/// The bytes of one code point or escape at `at` in a JSON string; a surrogate pair is one.
std::size_t unit_length(std::string_view text, std::size_t at) {
    std::size_t length = 1;
    if (text[at] == '\\') {
        const bool code = at + 1 < text.size() && text[at + 1] == 'u';
        length = code ? 6 : 2;
        const bool high = code && at + 3 < text.size() && (text[at + 2] | 0x20) == 'd' &&
                          std::string_view("89abAB").find(text[at + 3]) != std::string_view::npos;
        if (high && text.substr(at + 6, 2) == "\\u") length = 12;
    } else {
        while (at + length < text.size() && continues(text[at + length]))
            ++length;
    }
    return std::min(length, text.size() - at);
}

std::string without_escapes(std::string_view text) {
    const auto parsed = parse_json("\"" + std::string(text) + "\"");
    if (!parsed || !parsed->is_string()) return std::string(text);
    return {parsed->get_string().data(), parsed->get_string().size()};
}

/// Walks the units of one scalar forwards, so that many findings in it cost one walk.
class Units {
public:
    Units(std::string_view text, const Scalar& scalar)
        : text_(text.substr(0, scalar.end)), at_(scalar.begin) {}

    /// The beginning of the unit that holds `place`; places must not fall.
    std::size_t begin_of(std::size_t place) {
        while (at_ < text_.size() && at_ + unit_length(text_, at_) <= place)
            at_ += unit_length(text_, at_);
        return at_;
    }
    /// The end of the unit before `place`.
    std::size_t end_before(std::size_t place) const {
        std::size_t end = at_;
        while (end < place && end < text_.size())
            end += unit_length(text_, end);
        return end;
    }

private:
    std::string_view text_;
    std::size_t at_;
};

/// Findings in order of their places, and the scalars of a JSON text: what of which to replace.
std::vector<Edit> edits_in(std::string_view text, const std::vector<Scalar>& scalars,
                           std::vector<Finding> findings) {
    std::sort(findings.begin(), findings.end(),
              [](const Finding& a, const Finding& b) { return a.begin < b.begin; });
    std::vector<Edit> edits;
    auto finding = findings.begin();
    for (const Scalar& scalar : scalars) {
        Units units(text, scalar);
        for (auto one = finding; one != findings.end() && one->begin < scalar.end; ++one) {
            if (one->end <= scalar.begin || scalar.begin == scalar.end) continue;
            Edit edit{.kind = one->kind, .begin = scalar.begin, .end = scalar.end};
            edit.quoted = !scalar.string;
            if (scalar.string) {
                edit.begin = units.begin_of(one->begin);
                edit.end = units.end_before(one->end);
            }
            edits.push_back(std::move(edit));
        }
        while (finding != findings.end() && finding->end <= scalar.end)
            ++finding;
    }
    return edits;
}

Edit edit_in_plain(std::string_view text, const Finding& finding) {
    Edit edit{.kind = finding.kind, .begin = finding.begin, .end = finding.end};
    while (edit.begin > 0 && continues(text[edit.begin]))
        --edit.begin;
    while (edit.end < text.size() && continues(text[edit.end]))
        ++edit.end;
    return edit;
}

/// Overlapping edits as one, of the kind of the longest.
std::vector<Edit> merged(std::vector<Edit> edits) {
    std::sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::vector<Edit> out;
    std::size_t longest = 0;  // of those that the last one is made of
    for (Edit& edit : edits) {
        const std::size_t length = edit.end - edit.begin;
        if (out.empty() || edit.begin >= out.back().end) {
            longest = length;
            out.push_back(std::move(edit));
            continue;
        }
        out.back().end = std::max(out.back().end, edit.end);
        if (length > longest) {
            longest = length;
            out.back().kind = edit.kind;
        }
    }
    return out;
}

}  // namespace

std::optional<std::vector<Edit>> edits_of(std::string_view text, domain::TextForm form,
                                          const std::vector<Finding>& findings) {
    std::vector<Edit> edits;
    if (findings.empty()) return edits;
    const bool inside = std::all_of(findings.begin(), findings.end(), [&](const Finding& finding) {
        return finding.begin < finding.end && finding.end <= text.size();
    });
    if (!inside) return std::nullopt;
    if (form == domain::TextForm::plain) {
        for (const Finding& finding : findings)
            edits.push_back(edit_in_plain(text, finding));
    } else if (form == domain::TextForm::json) {
        const auto scalars = scalars_of(text);
        if (!scalars) return std::nullopt;
        edits = edits_in(text, *scalars, findings);
    } else {
        return std::nullopt;
    }
    edits = merged(std::move(edits));
    for (Edit& edit : edits) {
        const std::string_view replaced = text.substr(edit.begin, edit.end - edit.begin);
        edit.value =
            form == domain::TextForm::json ? without_escapes(replaced) : std::string(replaced);
    }
    return edits;
}

}  // namespace molly::policy::internal
