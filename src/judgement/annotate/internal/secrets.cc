// Keys and tokens of providers, passwords in assignments, JWT, PEM.
#include <algorithm>
#include <array>
#include <string>

#include "annotate/internal/recognisers.h"
#include "seal/seal.h"

namespace molly::annotate {
namespace {

constexpr std::size_t secret_max = 1024;  // bytes of one key or password

/// What may stand in a key after its prefix.
enum class Alphabet : std::uint8_t {
    alnum,
    upper,   // capitals and digits
    hex,     // lower-case hexadecimal digits
    url,     // letters, digits, hyphen, low line
    dotted,  // those and the full stop
};

struct Key {
    std::string_view prefix;
    std::size_t least;  ///< characters after the prefix
    std::size_t most;
    Alphabet alphabet;
};

// Formats as the providers publish them, by prefix; the longer prefix stands before the shorter.
constexpr auto keys = std::to_array<Key>({
    {"ABIA", 16, 16, Alphabet::upper},  // AWS
    {"ACCA", 16, 16, Alphabet::upper},       {"AGE-SECRET-KEY-1", 50, 60, Alphabet::upper},
    {"AIza", 35, 35, Alphabet::url},  // Google
    {"AKIA", 16, 16, Alphabet::upper},       {"ASIA", 16, 16, Alphabet::upper},
    {"GOCSPX-", 28, 28, Alphabet::url},      {"SG.", 60, 70, Alphabet::dotted},  // SendGrid
    {"dapi", 32, 32, Alphabet::hex},                                             // Databricks
    {"dckr_pat_", 20, 40, Alphabet::url},    {"dop_v1_", 64, 64, Alphabet::hex},
    {"figd_", 30, 60, Alphabet::url},        {"gho_", 36, 255, Alphabet::alnum},  // GitHub
    {"ghp_", 36, 255, Alphabet::alnum},      {"ghr_", 36, 255, Alphabet::alnum},
    {"ghs_", 36, 255, Alphabet::alnum},      {"ghu_", 36, 255, Alphabet::alnum},
    {"github_pat_", 50, 255, Alphabet::url}, {"gldt-", 20, 64, Alphabet::url},  // GitLab
    {"glpat-", 20, 300, Alphabet::dotted},   {"glptt-", 20, 64, Alphabet::url},
    {"glrt-", 20, 64, Alphabet::url},        {"gsk_", 40, 80, Alphabet::alnum},
    {"hf_", 30, 40, Alphabet::alnum},  // Hugging Face
    {"hvs.", 24, 200, Alphabet::url},  // Vault
    {"lin_api_", 32, 48, Alphabet::alnum},   {"npm_", 36, 36, Alphabet::alnum},
    {"ntn_", 40, 60, Alphabet::alnum},       {"nvapi-", 40, 80, Alphabet::url},
    {"pk_live_", 20, 255, Alphabet::alnum},  {"pplx-", 40, 64, Alphabet::alnum},
    {"pypi-AgE", 50, 400, Alphabet::url},    {"r8_", 30, 44, Alphabet::alnum},
    {"rk_live_", 20, 255, Alphabet::alnum},  // Stripe
    {"rk_test_", 20, 255, Alphabet::alnum},  {"shpat_", 32, 32, Alphabet::hex},
    {"shpss_", 32, 32, Alphabet::hex},       {"sk-ant-", 24, 255, Alphabet::url},  // Anthropic
    {"sk-", 20, 255, Alphabet::url},  // OpenAI, and others after its manner
    {"sk_live_", 20, 255, Alphabet::alnum},  {"sk_test_", 20, 255, Alphabet::alnum},
    {"tvly-", 24, 64, Alphabet::url},        {"whsec_", 24, 64, Alphabet::alnum},
    {"xai-", 60, 100, Alphabet::alnum},      {"xapp-", 24, 200, Alphabet::url},  // Slack
    {"xoxa-", 20, 200, Alphabet::url},       {"xoxb-", 20, 200, Alphabet::url},
    {"xoxe.", 24, 255, Alphabet::dotted},    {"xoxp-", 20, 200, Alphabet::url},
    {"xoxr-", 20, 200, Alphabet::url},       {"xoxs-", 20, 200, Alphabet::url},
    {"ya29.", 24, 400, Alphabet::url},
});

/// For each first character a bit for each second one (by its low six bits) of what may be a
/// secret.
constexpr std::array<std::uint64_t, 128> beginnings = [] {
    std::array<std::uint64_t, 128> table{};
    const auto add = [&](std::string_view prefix) {
        table[static_cast<std::size_t>(prefix[0])] |= std::uint64_t{1}
                                                      << (static_cast<unsigned>(prefix[1]) & 63U);
    };
    for (const Key& key : keys)
        add(key.prefix);
    for (const std::string_view other : {"eyJ", "Bearer", "bearer", "Basic"})
        add(other);
    return table;
}();

bool may_begin_secret(std::string_view text, std::size_t at) noexcept {
    const auto second = static_cast<unsigned char>(char_at(text, at + 1));
    return ((beginnings[static_cast<std::size_t>(text[at])] >> (second & 63U)) & 1U) != 0;
}

constexpr bool belongs(char c, Alphabet alphabet) noexcept {
    switch (alphabet) {
        case Alphabet::alnum:
            return is_alnum(c);
        case Alphabet::upper:
            return is_upper(c) || is_digit(c);
        case Alphabet::hex:
            return is_digit(c) || (c >= 'a' && c <= 'f');
        case Alphabet::url:
            return is_alnum(c) || c == '-' || c == '_';
        case Alphabet::dotted:
            return is_alnum(c) || c == '-' || c == '_' || c == '.';
    }
    return false;
}

/// Where the run of the alphabet ends that begins at `at`.
std::size_t run_end(std::string_view text, std::size_t at, Alphabet alphabet) noexcept {
    const std::size_t most = std::min(text.size(), at + secret_max);
    while (at < most && belongs(text[at], alphabet))
        ++at;
    return at;
}

/// Random characters, not a word, a name or a row of the letter that stands for any.
bool random_looking(std::string_view key) noexcept {
    constexpr double bits_min = 3.0;
    const bool digit = std::any_of(key.begin(), key.end(), is_digit);
    const bool letter = std::any_of(key.begin(), key.end(), is_letter);
    return digit && letter && entropy(key) >= bits_min;
}

Recognised provider_key_at(std::string_view text, std::size_t at) noexcept {
    const auto* place =
        std::lower_bound(keys.begin(), keys.end(), text[at],
                         [](const Key& key, char first) { return key.prefix[0] < first; });
    for (; place != keys.end() && place->prefix[0] == text[at]; ++place) {
        if (!text.substr(at).starts_with(place->prefix)) continue;
        const std::size_t begin = at + place->prefix.size();
        std::size_t end = run_end(text, begin, place->alphabet);
        while (end > begin && !is_alnum(text[end - 1]))
            --end;
        const std::size_t length = end - begin;
        if (length < place->least || length > place->most) continue;
        if (random_looking(text.substr(begin, length)))
            return recognised(found(FindingKind::api_key, at, end));
    }
    return {};
}

/// Bot tokens of Telegram: `123456789:` and 35 characters.
Recognised bot_token_at(std::string_view text, std::size_t at) noexcept {
    const std::size_t colon = word_end(text, at);
    const std::size_t digits = colon - at;
    if (digits < 8 || digits > 10 || char_at(text, colon) != ':') return {};
    if (!std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at),
                     text.begin() + static_cast<std::ptrdiff_t>(colon), is_digit))
        return {};
    const std::size_t end = run_end(text, colon + 1, Alphabet::url);
    if (end - colon - 1 != 35) return {};
    return recognised(found(FindingKind::api_key, at, end));
}

/// Three parts of base64url, the first of which decodes to a header that names its algorithm
/// (RFC 7519, section 3; RFC 7515, section 4.1.1).
Recognised jwt_at(std::string_view text, std::size_t at) {
    constexpr std::size_t jwt_max = 16384;
    const std::string_view rest = text.substr(at, jwt_max);
    if (!rest.starts_with("eyJ")) return {};
    std::array<std::size_t, 3> ends{};
    std::size_t end = 0;
    for (std::size_t part = 0; part < ends.size(); ++part) {
        while (end < rest.size() && belongs(rest[end], Alphabet::url))
            ++end;
        ends[part] = end;
        if (part < 2 && char_at(rest, end++) != '.') return {};
    }
    if (ends[0] > 2048 || ends[1] == ends[0] + 1) return {};
    std::string header(rest.substr(0, ends[0]));
    std::replace(header.begin(), header.end(), '-', '+');
    std::replace(header.begin(), header.end(), '_', '/');
    header.append((4 - header.size() % 4) % 4, '=');
    const auto decoded = seal::from_base64(header);
    if (!decoded || decoded->find("\"alg\"") == std::string::npos) return {};
    return recognised(found(FindingKind::jwt, at, at + ends[2]));
}

/// `Bearer` and `Basic` of an Authorization header.
Recognised bearer_at(std::string_view text, std::size_t at) noexcept {
    const std::string_view rest = text.substr(at);
    const bool bearer = rest.starts_with("Bearer ") || rest.starts_with("bearer ");
    if (!bearer && !rest.starts_with("Basic ")) return {};
    const std::size_t begin = at + (bearer ? 7 : 6);
    std::size_t end = run_end(text, begin, Alphabet::dotted);
    while (char_at(text, end) == '=' || char_at(text, end) == '+' || char_at(text, end) == '/')
        end = run_end(text, end + 1, Alphabet::dotted);
    while (end > begin && text[end - 1] == '.')
        --end;
    if (end - begin < 16 || !random_looking(text.substr(begin, end - begin))) return {};
    return recognised(found(FindingKind::api_key, begin, end));
}

constexpr auto secret_names = std::to_array<std::string_view>({
    "password",        "passwd",        "passphrase", "passcode",   "pwd",
    "secret",          "token",         "apikey",     "accesskey",  "secretkey",
    "accountkey",      "privatekey",    "authkey",    "credential", "parolachiave",
    "sharedaccesskey", "encryptionkey", "masterkey",  "signingkey",
});

/// Whether the name that ends at `end` (before blanks and a quote) is one of a secret: its letters,
/// without `_` and `-`, end in such a word.
bool names_secret(std::string_view text, std::size_t end) noexcept {
    constexpr std::size_t name_max = 40;
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '"' || text[end - 1] == '\'' ||
                       text[end - 1] == '\\' || text[end - 1] == '*'))
        --end;
    std::array<char, name_max> letters{};  // filled from its end
    std::size_t begin = name_max;
    while (end > 0 && begin > 0) {
        const char c = text[end - 1];
        if (is_alnum(c)) {
            letters[--begin] = to_lower(c);
        } else if (c != '_' && c != '-') {
            break;
        }
        --end;
    }
    const std::string_view name(letters.data() + begin, name_max - begin);
    return std::any_of(secret_names.begin(), secret_names.end(), [&](std::string_view word) {
        return name.ends_with(word) ||
               (name.ends_with('s') && name.substr(0, name.size() - 1).ends_with(word));
    });
}

/// Whether a value is a secret itself: not a word, a type, a variable, a row of stars or a blank to
/// be filled in.
bool secret_value(std::string_view value) noexcept {
    if (value.size() < 6 || value.size() > 255) return false;
    constexpr std::string_view openings = "<${[(%*.";
    if (openings.find(value[0]) != std::string_view::npos) return false;
    if (value.find('(') != std::string_view::npos || value.find("://") != std::string_view::npos)
        return false;
    const bool digit = std::any_of(value.begin(), value.end(), is_digit);
    const bool letter = std::any_of(value.begin(), value.end(), is_letter);
    const bool symbol = std::any_of(value.begin(), value.end(), [](char c) {
        return !is_alnum(c) && c != '_' && c != '-' && c != '.' && c != '/' && c != ',';
    });
    if (!letter && value.size() < 8) return false;
    return (digit || symbol) && entropy(value) >= (value.size() < 10 ? 2.0 : 2.5);
}

}  // namespace

Recognised secret_at(std::string_view text, std::size_t at) noexcept {
    if (is_digit(text[at])) return bot_token_at(text, at);
    if (!may_begin_secret(text, at)) return {};
    if (const Recognised key = provider_key_at(text, at); key.finding) return key;
    if (text[at] == 'e') return jwt_at(text, at);
    return bearer_at(text, at);
}

Recognised assignment_at(std::string_view text, std::size_t at) noexcept {
    if (!names_secret(text, at)) return {};
    std::size_t begin = at + 1;
    if (char_at(text, begin) == '>' || char_at(text, begin) == '=') ++begin;
    while (char_at(text, begin) == ' ' || char_at(text, begin) == '\t' ||
           char_at(text, begin) == '\\')
        ++begin;
    const char first = char_at(text, begin);
    const bool quoted = first == '"' || first == '\'' || first == '`';
    if (quoted) ++begin;
    std::size_t end = begin;
    const std::string_view closing = quoted ? std::string_view(&first, 1) : " \t,;\"'`<>)]}&|";
    while (end < text.size() && end - begin < secret_max && text[end] >= ' ' && text[end] != '\\' &&
           closing.find(text[end]) == std::string_view::npos)
        ++end;
    if (!quoted) {
        while (end > begin && (text[end - 1] == '.' || text[end - 1] == '!' ||
                               text[end - 1] == '?' || text[end - 1] == ':'))
            --end;
    }
    if (!secret_value(text.substr(begin, end - begin))) return {};
    return recognised(found(FindingKind::api_key, begin, end));
}

Recognised private_key_at(std::string_view text, std::size_t at) noexcept {
    constexpr std::string_view opening = "-----BEGIN ";
    constexpr std::string_view closing = "-----END ";
    const std::string_view rest = text.substr(at);
    if (!rest.starts_with(opening)) return {};
    const std::size_t title = rest.find("-----", opening.size());
    if (title == std::string_view::npos || title > 64) return {};
    if (rest.substr(0, title).find("PRIVATE KEY") == std::string_view::npos) return {};
    // A key that is cut off is a key: it reaches to the end of the text.
    std::size_t end = rest.find(closing, title + 5);
    if (end == std::string_view::npos)
        return recognised(found(FindingKind::private_key, at, text.size()));
    end = rest.find("-----", end + closing.size());
    end = end == std::string_view::npos ? rest.size() : end + 5;
    return recognised(found(FindingKind::private_key, at, at + end));
}

}  // namespace molly::annotate
