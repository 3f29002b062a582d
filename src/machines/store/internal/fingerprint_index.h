#pragma once
// Which fingerprints of labelled text are known, in memory: one open-addressed table. Safe from any
// thread; lookups run side by side.
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "domain/label.h"
#include "store/store.h"

namespace molly::store::internal {

/// One known fingerprint, as the database keeps it.
struct KnownPrint {
    std::uint64_t print = 0;
    std::uint32_t stamp = 0;  ///< counts texts: higher is newer
    std::uint16_t label = 0;  ///< number of its label
    std::uint16_t day = 0;    ///< since the epoch
};

/// What a change means for the database.
struct PrintChange {
    std::vector<KnownPrint> known;    ///< to be stored, over what was there
    std::optional<std::string> text;  ///< of the label, when it is new
    std::uint16_t label = 0;
    domain::Sensitivity sensitivity{};
    struct Gone {
        std::uint16_t label = 0;
        std::uint32_t up_to = 0;  ///< stamps to this one
    };
    std::optional<Gone> gone;
};

class FingerprintIndex {
public:
    /// Holds `prints_max` fingerprints, at most half of them of one label.
    explicit FingerprintIndex(std::size_t prints_max);

    bool empty() const noexcept;
    std::optional<Recognised> find(std::span<const std::uint64_t> prints,
                                   std::uint32_t enough) const;
    /// A print that is known under another label keeps the higher class.
    PrintChange add(std::span<const std::uint64_t> prints, const domain::Label& label,
                    std::uint16_t day);
    /// Forgets what was last seen before a day, for each class.
    void expire(domain::Sensitivity sensitivity, std::int64_t day_before);

    /// What the database knew.
    void restore_label(std::uint16_t number, domain::Label label);
    void restore(const KnownPrint& known);

private:
    static constexpr std::size_t labels_max = 1024;

    std::uint16_t number_of(const domain::Label& label, PrintChange& change);
    KnownPrint& slot_of(std::uint64_t print);
    const KnownPrint* look(std::uint64_t print) const noexcept;
    void insert(const KnownPrint& known);
    void grow();
    template <class Keep>
    void rebuild(std::size_t slots, const Keep& keep);
    std::optional<PrintChange::Gone> make_room();

    const std::size_t prints_max_;
    mutable std::shared_mutex mutex_;
    std::vector<KnownPrint> slots_;  // print 0: free
    std::size_t count_ = 0;
    std::uint32_t stamp_ = 0;
    std::vector<domain::Label> labels_;
    std::vector<std::size_t> counts_;  // of prints, by label
    std::unordered_map<std::string, std::uint16_t> numbers_;
};

}  // namespace molly::store::internal
