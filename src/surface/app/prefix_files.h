#pragma once
// The beginnings of prompts that were kept on request: sealed files of the data folder, within a
// budget, as long as retention allows for their class.
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "app/places.h"
#include "app/prefix_file.h"
#include "base/clock.h"
#include "engine/prefix_store.h"
#include "seal/seal.h"
#include "store/store.h"

namespace molly::app {

class PrefixFiles final : public engine::PrefixStore {
public:
    struct Options {
        std::filesystem::path folder;
        std::uint64_t bytes_max = 0;
        std::array<store::Retention, 4> retention;  ///< indexed by Sensitivity
        std::string model;                          ///< for people
        std::string model_hash;                     ///< of its file, hex
    };
    /// Makes the folder where it is missing; removes what is damaged (the log names it), half
    /// written, or may be kept no longer. Errors: unavailable.
    static Result<std::shared_ptr<PrefixFiles>> open(Options options, seal::Vault vault,
                                                     Clock& clock);

    bool keeps(domain::Sensitivity sensitivity) const noexcept override;
    std::uint64_t bytes_max() const noexcept override { return options_.bytes_max; }
    std::vector<engine::PrefixRecord> list() override;
    Result<std::string> load(const std::string& id) override;
    Result<std::string> save(const engine::PrefixRecord& record, std::string_view bytes) override;
    bool touch(const std::string& id) override;
    void drop(const std::string& id) override;
    void expire() override;

private:
    /// What the budget needs to know of a file.
    struct Entry {
        std::uint64_t bytes = 0;
        std::filesystem::file_time_type used;
        WallTime made;
        domain::Sensitivity sensitivity = domain::Sensitivity::secret;
    };

    PrefixFiles(Options options, seal::Vault vault, Clock& clock)
        : options_(std::move(options)), vault_(std::move(vault)), clock_(clock) {}
    void read_folder();
    bool outlived(const Entry& entry) const;
    void make_room(std::uint64_t bytes);
    std::filesystem::path path(const std::string& id) const {
        return prefix_path(options_.folder, id);
    }

    const Options options_;
    const seal::Vault vault_;
    Clock& clock_;
    std::mutex mutex_;
    std::map<std::string, Entry> entries_;  // by id
};

/// Where they lie.
std::filesystem::path prefix_folder(const Places& places);

/// One file as it is found, for people.
struct FoundPrefix {
    std::string id;
    std::uint64_t bytes = 0;  ///< of the file
    WallTime used;
    bool damaged = false;
    PrefixHead head;  ///< of one that is not damaged
};
/// What lies in the folder, the latest used first. With `whole` every byte is checked.
std::vector<FoundPrefix> find_prefixes(const std::filesystem::path& folder,
                                       const seal::Vault& vault, bool whole);

}  // namespace molly::app
