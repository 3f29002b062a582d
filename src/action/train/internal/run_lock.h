#pragma once
// One process at a time in a run's folder.
#include <filesystem>

#include "base/result.h"

namespace molly::train {

/// The folder of a run while one process works on it.
class RunLock {
public:
    /// Errors: conflict (another process has it), unavailable.
    static Result<RunLock> take(const std::filesystem::path& run);
    /// Whether some process has it.
    static bool taken(const std::filesystem::path& run);
    RunLock(RunLock&& other) noexcept;
    RunLock& operator=(RunLock&&) = delete;
    RunLock(const RunLock&) = delete;
    RunLock& operator=(const RunLock&) = delete;
    ~RunLock();

private:
    explicit RunLock(int file) : file_(file) {}
    int file_;
};

/// A folder that holds a run takes no other. Errors: conflict.
Result<void> check_no_run(const std::filesystem::path& folder);
/// What a run was begun with has changed since.
Error changed_since(const std::filesystem::path& file);

}  // namespace molly::train
