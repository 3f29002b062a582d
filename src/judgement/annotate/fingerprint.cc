#include "annotate/fingerprint.h"

#include <bit>
#include <cstring>

#include "annotate/internal/folding.h"
#include "seal/seal.h"

namespace molly::annotate {
namespace {

// k-grams of 24 letters are four words or so: few are shared by chance. A window of 8 keeps one
// k-gram of every eight at the least, so any common run of 24 + 8 - 1 letters is seen.
constexpr std::size_t gram = 24;
constexpr std::size_t window = 8;

std::string bytes_of(std::uint64_t number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

/// Gives the least hash of each window, once per place; of equal ones the last (robust winnowing).
class Winnow {
public:
    explicit Winnow(std::vector<std::uint64_t>& out) : out_(out) {}

    void add(std::uint64_t hash) {
        held_[at_ % window] = hash;
        if (count_ < window) ++count_;
        const bool left = least_at_ + window <= at_;
        if (at_ == 0 || hash <= least_) {
            take(hash, at_);
        } else if (left) {
            look_back();
        }
        ++at_;
        if (count_ == window && least_at_ != given_at_) give();
    }

private:
    void take(std::uint64_t hash, std::uint64_t at) {
        least_ = hash;
        least_at_ = at;
    }
    void look_back() {
        const std::uint64_t first = at_ + 1 - count_;
        take(held_[first % window], first);
        for (std::uint64_t i = first + 1; i <= at_; ++i) {
            if (held_[i % window] <= least_) take(held_[i % window], i);
        }
    }
    void give() {
        given_at_ = least_at_;
        out_.push_back(least_);
    }

    std::vector<std::uint64_t>& out_;
    std::array<std::uint64_t, window> held_{};
    std::uint64_t at_ = 0;
    std::size_t count_ = 0;
    std::uint64_t least_ = 0;
    std::uint64_t least_at_ = 0;
    std::uint64_t given_at_ = ~std::uint64_t{0};
};

}  // namespace

Fingerprinter::Fingerprinter(std::string_view key) {
    constexpr std::size_t per_block = seal::Hash().size() / sizeof(std::uint64_t);
    for (std::size_t i = 0; i < letters_.size(); i += per_block) {
        const seal::Hash block = seal::keyed_hash(key, "letters " + std::to_string(i));
        std::memcpy(&letters_[i], block.data(), block.size());
    }
    const seal::Hash last = seal::keyed_hash(key, "fingerprints");
    key_.assign(last.begin(), last.begin() + seal::short_key_bytes);
}

std::uint64_t Fingerprinter::sealed(std::uint64_t hash) const {
    return seal::short_hash(key_, bytes_of(hash));
}

std::vector<std::uint64_t> Fingerprinter::of(std::string_view text, domain::TextForm form) const {
    thread_local std::string folded;
    folded.clear();
    fold(text, form, folded);
    std::vector<std::uint64_t> prints;
    if (folded.size() < gram + window - 1) return prints;
    prints.reserve(folded.size() / 4);
    // A cyclic polynomial (Cohen 1997): one rotation and two secret numbers a letter.
    std::uint64_t hash = 0;
    Winnow winnow(prints);
    const auto secret = [this](char c) { return letters_[static_cast<unsigned char>(c)]; };
    for (std::size_t i = 0; i < folded.size(); ++i) {
        hash = std::rotl(hash, 1) ^ secret(folded[i]);
        if (i >= gram) hash ^= std::rotl(secret(folded[i - gram]), gram);
        if (i + 1 >= gram) winnow.add(hash);
    }
    for (std::uint64_t& print : prints)
        print = sealed(print);
    return prints;
}

std::vector<std::vector<std::uint64_t>> Fingerprinter::of_all(
    const domain::Request& request) const {
    std::vector<std::vector<std::uint64_t>> all;
    domain::for_each_text(request, [&](const std::string& text, domain::TextForm form) {
        if (form == domain::TextForm::token || text.size() < gram + window - 1) return;
        auto prints = of(text, form);
        if (!prints.empty()) all.push_back(std::move(prints));
    });
    return all;
}

std::vector<std::vector<std::uint64_t>> Fingerprinter::of_said(
    const domain::Request& request) const {
    std::vector<std::vector<std::uint64_t>> all;
    const auto add = [&](const std::string& text, domain::TextForm form) {
        if (text.size() < gram + window - 1) return;
        auto prints = of(text, form);
        if (!prints.empty()) all.push_back(std::move(prints));
    };
    for (const domain::Message& message : request.messages) {
        if (message.role == domain::Role::system) continue;
        domain::detail::visit_message(message, [&](const std::string& text, domain::TextForm form) {
            if (form != domain::TextForm::token) add(text, form);
        });
    }
    add(request.prompt.text(), domain::TextForm::plain);
    add(request.suffix.text(), domain::TextForm::plain);
    for (const domain::Content& input : request.inputs)
        add(input.text(), domain::TextForm::plain);
    return all;
}

}  // namespace molly::annotate
