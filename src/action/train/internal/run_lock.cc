#include "train/internal/run_lock.h"

#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace molly::train {

Result<RunLock> RunLock::take(const std::filesystem::path& run) {
    const int file = ::open((run / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) {
        return fail(ErrorCode::unavailable, fmt::format("cannot write into {}", run.string()));
    }
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
        ::close(file);
        return fail(
            Error(ErrorCode::conflict,
                  fmt::format("another process trains in {}; wait for it or stop it", run.string()))
                .italian(fmt::format("un altro processo addestra in {}; attendi la sua "
                                     "fine o fermalo",
                                     run.string())));
    }
    return RunLock(file);
}

bool RunLock::taken(const std::filesystem::path& run) {
    const int file = ::open((run / "lock").c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    const bool taken = ::flock(file, LOCK_EX | LOCK_NB) != 0;
    ::close(file);
    return taken;
}

RunLock::RunLock(RunLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

RunLock::~RunLock() {
    if (file_ >= 0) ::close(file_);
}

Result<void> check_no_run(const std::filesystem::path& folder) {
    if (!std::filesystem::exists(folder / "run.json")) return {};
    return fail(
        Error(ErrorCode::conflict,
              fmt::format("{} holds a run already: molly train resume {}, or another folder",
                          folder.string(), folder.string()))
            .italian(fmt::format("{} contiene già un addestramento: molly train resume {}, o "
                                 "un'altra cartella",
                                 folder.string(), folder.string())));
}

Error changed_since(const std::filesystem::path& file) {
    return Error(ErrorCode::conflict,
                 fmt::format("{} has changed since the run began; restore it, or start anew",
                             file.string()))
        .italian(fmt::format("{} è cambiato dall'inizio dell'addestramento; ripristinalo, o "
                             "ricomincia",
                             file.string()));
}

}  // namespace molly::train
