#include "store/internal/folder_lock.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace molly::store::internal {
namespace {

std::string holder_of(int file) {
    std::string text(32, '\0');
    const ssize_t count = ::pread(file, text.data(), text.size(), 0);
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    const auto digits = text.find_first_not_of("0123456789");
    text.resize(digits == std::string::npos ? text.size() : digits);
    return text.empty() ? "?" : text;
}

}  // namespace

Result<FolderLock> FolderLock::take(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / "molly.lock";
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) {
        return fail(ErrorCode::unavailable,
                    fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
    }
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
        const std::string holder = holder_of(file);
        ::close(file);
        return fail(Error(ErrorCode::conflict,
                          fmt::format("process {} writes in {} already; talk to that Molly, or "
                                      "stop it first",
                                      holder, folder.string()))
                        .reason("data_folder_locked")
                        .italian(fmt::format("il processo {} scrive già in {}; usare quella Molly "
                                             "o fermarla prima",
                                             holder, folder.string())));
    }
    const std::string text = fmt::format("{}\n", ::getpid());
    if (::ftruncate(file, 0) == 0) (void)!::pwrite(file, text.data(), text.size(), 0);
    return FolderLock(file);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderLock::~FolderLock() {
    if (file_ >= 0) ::close(file_);  // the lock goes with the last descriptor
}

}  // namespace molly::store::internal
