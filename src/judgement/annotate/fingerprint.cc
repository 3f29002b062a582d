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

/// The least hash of each window, once per place; of equal ones the last (robust winnowing).
std::vector<std::uint64_t> winnowed(const std::vector<std::uint64_t>& hashes) {
    std::vector<std::uint64_t> out;
    out.reserve(hashes.size() / 4 + 1);
    std::size_t least = 0;
    std::size_t given = hashes.size();
    for (std::size_t i = 0; i < hashes.size(); ++i) {
        if (hashes[i] <= hashes[least]) {
            least = i;
        } else if (least + window <= i) {
            least = i + 1 - window;
            for (std::size_t j = least + 1; j <= i; ++j) {
                if (hashes[j] <= hashes[least]) least = j;
            }
        }
        if (i + 1 < window || least == given) continue;
        given = least;
        out.push_back(hashes[least]);
    }
    return out;
}

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
    const void* const bytes = &hash;
    return seal::short_hash(key_, {static_cast<const char*>(bytes), sizeof hash});
}

std::vector<std::uint64_t> Fingerprinter::of(std::string_view text, domain::TextForm form) const {
    thread_local std::string folded;
    folded.clear();
    fold(text, form, folded);
    if (folded.size() < gram + window - 1) return {};
    thread_local std::vector<std::uint64_t> hashes;
    hashes.resize(folded.size() - gram + 1);
    // A cyclic polynomial (Cohen 1997): one rotation and two secret numbers a letter.
    const auto secret = [&](std::size_t i) {
        return letters_[static_cast<unsigned char>(folded[i])];
    };
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i + 1 < gram; ++i)
        hash = std::rotl(hash, 1) ^ secret(i);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
        hash = std::rotl(hash, 1) ^ secret(i + gram - 1);
        hashes[i] = hash;
        hash ^= std::rotl(secret(i), gram - 1);
    }
    std::vector<std::uint64_t> prints = winnowed(hashes);
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
