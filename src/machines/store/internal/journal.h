#pragma once
// The commit log: what is written here survives kill -9 at the price of a copy into the page cache,
// and moves into SQLite in batches. Two files take turns: one grows while the rows of the
// other are stored. Frames carry a keyed checksum, so that a torn or changed one is seen.
// Not safe from several threads, except `retire` and `sync`.
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "seal/seal.h"
#include "store/internal/mapped_file.h"

namespace molly::store::internal {

enum class FrameKind : std::uint8_t { start = 's', departure = 'd', trace = 't', key_change = 'k' };

/// One entry as it lies in the file: header, first text, second text.
class Frame {
public:
    Frame() = default;
    Frame(FrameKind kind, std::string_view first, std::string_view second, const seal::Hash& key);
    /// The frame at the start of `bytes`, or an empty one when it is torn or not by `key`.
    static Frame parse(std::string_view bytes, const seal::Hash& key);

    bool empty() const noexcept { return bytes_.empty(); }
    FrameKind kind() const noexcept;
    std::string_view first() const noexcept;
    std::string_view second() const noexcept;
    const std::string& bytes() const noexcept { return bytes_; }

private:
    std::string bytes_;
};

/// What one journal file holds: its traces are numbered from `base`.
struct JournalFile {
    std::uint64_t generation = 0;
    std::uint64_t base = 0;
    std::vector<Frame> frames;
    bool torn = false;  ///< bytes follow that are no frame; zeros are room that nobody used
};

/// The files that hold something, oldest first. Errors: unavailable.
Result<std::vector<JournalFile>> read_journal(const std::filesystem::path& folder,
                                              const seal::Hash& key);

class Journal {
public:
    /// Opens or makes the two files; their content stays. Errors: unavailable.
    static Result<Journal> open(const std::filesystem::path& folder, const seal::Hash& key);
    /// Forgets everything and begins; traces count from `base`.
    Result<void> start(std::uint64_t base);
    /// Appends a frame. A failed append leaves nothing behind. Errors: exhausted, unavailable.
    Result<void> add(const Frame& frame);
    /// Goes on in the other file, which must be retired; the frames of `carried` come first.
    Result<void> rotate(std::uint64_t base, const std::vector<const Frame*>& carried);
    /// Empties the file that is not growing.
    void retire() noexcept;
    /// Forces both files to the disk. Safe from any thread. Errors: unavailable.
    Result<void> sync() const;

private:
    Journal() = default;
    Result<void> begin(std::uint64_t base, const std::vector<const Frame*>& carried);

    std::array<MappedFile, 2> files_;
    std::size_t current_ = 0;
    std::uint64_t generation_ = 0;
    seal::Hash key_{};
};

}  // namespace molly::store::internal
