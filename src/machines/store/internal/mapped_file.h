#pragma once
// A file that grows in memory: what is copied into it is in the page cache at once and so survives
// kill -9, without a system call per write. One thread at a time, except `sync`.
#include <cstddef>
#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace molly::store::internal {

class MappedFile {
public:
    MappedFile() = default;
    /// Opens or makes it; its bytes stay, and all of them count as used. Errors: unavailable.
    static Result<MappedFile> open(const std::filesystem::path& path);
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    /// Appends `bytes`, whole or not at all: room is taken on the disk first, so that a full disk
    /// is an error here and no fault later. Errors: exhausted, unavailable.
    Result<void> append(std::string_view bytes);
    /// Fills what was used with zeros and begins anew. The room stays: taking it again would cost
    /// a page fault for every page.
    void clear() noexcept;
    /// Forces everything to the disk. Safe from any thread. Errors: unavailable.
    Result<void> sync() const;

private:
    Result<void> reserve(std::size_t bytes);

    int file_ = -1;
    char* bytes_ = nullptr;
    std::size_t capacity_ = 0;
    std::size_t used_ = 0;
};

}  // namespace molly::store::internal
