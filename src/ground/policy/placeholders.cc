#include "policy/placeholders.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace molly::policy {
namespace {

// No vowels, so that no word arises, and no characters that look alike.
constexpr std::string_view alphabet = "bcdfghjkmnpqrstvwxz23456789";
constexpr std::size_t nonce_characters = 4;

char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// FNV-1a (RFC draft eastlake-fnv) over the seed, stirred with SplitMix64: the nonce has to be
/// unknown to others, which the seed sees to, not hard to invert.
std::uint64_t mixed(std::string_view seed, std::uint64_t generation) noexcept {
    std::uint64_t hash = 0xCBF29CE484222325ULL ^ generation;
    for (const char c : seed) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 0x100000001B3ULL;
    }
    hash += 0x9E3779B97F4A7C15ULL * (generation + 1);
    hash = (hash ^ (hash >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    hash = (hash ^ (hash >> 27U)) * 0x94D049BB133111EBULL;
    return hash ^ (hash >> 31U);
}

std::string nonce_of(std::string_view seed, std::uint64_t generation) {
    std::uint64_t rest = mixed(seed, generation);
    std::string nonce;
    for (std::size_t i = 0; i < nonce_characters; ++i) {
        nonce += alphabet[rest % alphabet.size()];
        rest /= alphabet.size();
    }
    return nonce;
}

/// Whether `text` holds `_nonce]`, which every placeholder of it ends with, in either case.
bool holds(std::string_view text, std::string_view nonce) noexcept {
    for (auto at = text.find(']'); at != std::string_view::npos; at = text.find(']', at + 1)) {
        if (at <= nonce.size() || text[at - nonce.size() - 1] != '_') continue;
        const std::string_view end = text.substr(at - nonce.size(), nonce.size());
        const bool same = std::equal(end.begin(), end.end(), nonce.begin(),
                                     [](char a, char b) { return lower(a) == b; });
        if (same) return true;
    }
    return false;
}

std::string upper_ascii(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return out;
}

}  // namespace

std::string lower_ascii(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

const std::string* Placeholders::value_of(std::string_view text) const {
    if (text.size() > longest_) return nullptr;
    const auto found = values_.find(lower_ascii(text));
    return found == values_.end() ? nullptr : &found->second;
}

bool Placeholders::begins_one(std::string_view text) const {
    if (text.size() >= longest_) return false;
    const std::string wanted = lower_ascii(text);
    const auto next = values_.upper_bound(wanted);
    return next != values_.end() && next->first.starts_with(wanted);
}

void Placeholders::add(std::string_view placeholder, std::string value) {
    longest_ = std::max(longest_, placeholder.size());
    values_.emplace(lower_ascii(placeholder), std::move(value));
}

PlaceholderMap::PlaceholderMap(std::string seed, std::size_t values_max)
    : seed_(std::move(seed)), values_max_(values_max), nonce_(nonce_of(seed_, 0)) {
    MOLLY_ASSERT(seed_.size() >= 16);
}

/// What was issued before means nothing any more; answers that are still on their way have their
/// own Placeholders.
void PlaceholderMap::renew() {
    ++generation_;
    nonce_ = nonce_of(seed_, generation_);
    placeholders_.clear();
    numbers_.clear();
}

const std::string& PlaceholderMap::placeholder_of(domain::FindingKind kind,
                                                  std::string_view value) {
    const auto [known, fresh] = placeholders_.try_emplace({kind, std::string(value)});
    if (fresh) {
        known->second = fmt::format("[{}_{}_{}]", upper_ascii(domain::to_string(kind)),
                                    ++numbers_[kind], nonce_);
    }
    return known->second;
}

PlaceholderMap::Session::Session(PlaceholderMap& map)
    : map_(map), lock_(map.mutex_), issued_(std::make_shared<Placeholders>()) {}

PlaceholderMap::Session::~Session() {
    if (map_.placeholders_.size() > map_.values_max_) map_.renew();
}

void PlaceholderMap::Session::avoid(const std::vector<std::string_view>& texts) {
    MOLLY_ASSERT(issued_->empty());
    const auto taken = [this](std::string_view text) { return holds(text, map_.nonce_); };
    while (std::any_of(texts.begin(), texts.end(), taken))
        map_.renew();
}

const std::string& PlaceholderMap::Session::issue(domain::FindingKind kind,
                                                  std::string_view value) {
    const std::string& placeholder = map_.placeholder_of(kind, value);
    issued_->add(placeholder, std::string(value));
    return placeholder;
}

std::shared_ptr<const Placeholders> PlaceholderMap::Session::take() {
    return std::move(issued_);
}

}  // namespace molly::policy
