#include "store/internal/fingerprint_index.h"

#include <algorithm>
#include <mutex>

#include "store/trace_text.h"

namespace molly::store::internal {
namespace {

constexpr std::size_t first_slots = 1024;

}  // namespace

FingerprintIndex::FingerprintIndex(std::size_t prints_max)
    : prints_max_(std::max<std::size_t>(prints_max, 2)), slots_(first_slots) {}

bool FingerprintIndex::empty() const noexcept {
    const std::shared_lock lock(mutex_);
    return count_ == 0;
}

const KnownPrint* FingerprintIndex::look(std::uint64_t print) const noexcept {
    // Fingerprints are keyed hashes, so their low bits spread well; 0 marks a free slot.
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = print & mask;; at = (at + 1) & mask) {
        const KnownPrint& slot = slots_[at];
        if (slot.print == print || slot.print == 0) return &slot;
    }
}

KnownPrint& FingerprintIndex::slot_of(std::uint64_t print) {
    return slots_[static_cast<std::size_t>(look(print) - slots_.data())];
}

std::optional<Recognised> FingerprintIndex::find(std::span<const std::uint64_t> prints,
                                                 std::uint32_t enough) const {
    const std::shared_lock lock(mutex_);
    if (count_ == 0) return std::nullopt;
    std::vector<std::uint32_t> hits(labels_.size(), 0);
    std::uint32_t all = 0;
    // Each look-up is a cache miss: several are on their way at once.
    constexpr std::size_t ahead = 12;
    for (std::size_t i = 0; i < prints.size(); ++i) {
        if (i + ahead < prints.size())
            __builtin_prefetch(&slots_[prints[i + ahead] & (slots_.size() - 1)]);
        const KnownPrint* slot = look(prints[i]);
        if (prints[i] == 0 || slot->print == 0) continue;
        ++hits[slot->label];
        ++all;
    }
    if (all < enough) return std::nullopt;
    std::optional<Recognised> found;
    for (std::size_t i = 0; i < hits.size(); ++i) {
        if (hits[i] < enough) continue;
        if (!found) found = Recognised{labels_[i], 0};
        found->label = join(found->label, labels_[i]);
        found->count += hits[i];
    }
    return found;
}

PrintChange FingerprintIndex::add(std::span<const std::uint64_t> prints, const domain::Label& label,
                                  std::uint16_t day) {
    const std::scoped_lock lock(mutex_);
    PrintChange change;
    change.sensitivity = label.sensitivity;
    change.label = number_of(label, change);
    ++stamp_;
    for (const std::uint64_t print : prints) {
        if (print == 0) continue;
        const KnownPrint* before = look(print);
        const bool stays = before->print != 0 &&
                           labels_[before->label].sensitivity > labels_[change.label].sensitivity;
        if (stays) continue;
        const KnownPrint known{.print = print, .stamp = stamp_, .label = change.label, .day = day};
        insert(known);
        change.known.push_back(known);
    }
    change.gone = make_room();
    return change;
}

std::uint16_t FingerprintIndex::number_of(const domain::Label& label, PrintChange& change) {
    domain::Label kept = label;
    std::string text = to_text(kept);
    auto known = numbers_.find(text);
    if (known == numbers_.end() && labels_.size() >= labels_max) {
        // Origins can be many; classes and places are few.
        kept.origins.clear();
        text = to_text(kept);
        known = numbers_.find(text);
    }
    if (known != numbers_.end()) return known->second;
    const auto number = static_cast<std::uint16_t>(labels_.size());
    labels_.push_back(std::move(kept));
    counts_.push_back(0);
    numbers_.emplace(text, number);
    change.text = std::move(text);
    return number;
}

void FingerprintIndex::insert(const KnownPrint& known) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    KnownPrint& slot = slot_of(known.print);
    if (slot.print == 0) {
        ++count_;
    } else {
        --counts_[slot.label];
    }
    ++counts_[known.label];
    slot = known;
}

void FingerprintIndex::grow() {
    rebuild(slots_.size() * 2, [](const KnownPrint&) { return true; });
}

template <class Keep>
void FingerprintIndex::rebuild(std::size_t slots, const Keep& keep) {
    const std::vector<KnownPrint> old = std::exchange(slots_, std::vector<KnownPrint>(slots));
    count_ = 0;
    std::fill(counts_.begin(), counts_.end(), 0);
    for (const KnownPrint& known : old) {
        if (known.print == 0 || !keep(known)) continue;
        slot_of(known.print) = known;
        ++count_;
        ++counts_[known.label];
    }
}

/// The older half of the largest label goes, when it or the whole has become too large.
std::optional<PrintChange::Gone> FingerprintIndex::make_room() {
    const auto largest = std::max_element(counts_.begin(), counts_.end());
    const bool full = count_ > prints_max_ || *largest > std::max(prints_max_ / 2, std::size_t{1});
    if (!full) return std::nullopt;
    PrintChange::Gone gone;
    gone.label = static_cast<std::uint16_t>(largest - counts_.begin());
    std::vector<std::uint32_t> stamps;
    for (const KnownPrint& known : slots_) {
        if (known.print != 0 && known.label == gone.label) stamps.push_back(known.stamp);
    }
    const auto middle = stamps.begin() + static_cast<std::ptrdiff_t>(stamps.size() / 2);
    std::nth_element(stamps.begin(), middle, stamps.end());
    gone.up_to = *middle;
    rebuild(slots_.size(), [&](const KnownPrint& known) {
        return known.label != gone.label || known.stamp > gone.up_to;
    });
    return gone;
}

void FingerprintIndex::expire(domain::Sensitivity sensitivity, std::int64_t day_before) {
    const std::scoped_lock lock(mutex_);
    rebuild(slots_.size(), [&](const KnownPrint& known) {
        return labels_[known.label].sensitivity != sensitivity || known.day >= day_before;
    });
}

void FingerprintIndex::restore_label(std::uint16_t number, domain::Label label) {
    const std::scoped_lock lock(mutex_);
    if (labels_.size() <= number) {
        labels_.resize(number + std::size_t{1});
        counts_.resize(labels_.size());
    }
    numbers_[to_text(label)] = number;
    labels_[number] = std::move(label);
}

void FingerprintIndex::restore(const KnownPrint& known) {
    const std::scoped_lock lock(mutex_);
    if (known.print == 0 || known.label >= labels_.size()) return;
    stamp_ = std::max(stamp_, known.stamp);
    insert(known);
}

}  // namespace molly::store::internal
