#pragma once
// One writer per data folder, whatever process it is in.
#include <filesystem>

#include "base/result.h"

namespace molly::store::internal {

class FolderLock {
public:
    /// Errors: conflict (another process writes here, naming it), unavailable.
    static Result<FolderLock> take(const std::filesystem::path& folder);
    FolderLock(FolderLock&& other) noexcept;
    FolderLock& operator=(FolderLock&&) = delete;
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;
    ~FolderLock();

private:
    explicit FolderLock(int file) : file_(file) {}
    int file_;
};

}  // namespace molly::store::internal
