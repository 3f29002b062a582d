#include "models/files.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace molly::models {
namespace {

namespace fs = std::filesystem;

Result<void> copy(const fs::path& file, const fs::path& target, const Progress& progress) {
    const File from(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (from.get() < 0) return file_error(file, "read");
    const fs::path part = target.string() + ".copy";
    TRY(const File to, open_file(part));
    if (::ftruncate(to.get(), 0) != 0) return file_error(part, "empty");
    std::error_code ignored;
    const std::uint64_t total = fs::file_size(file, ignored);
    std::string block(1U << 20U, '\0');
    for (std::uint64_t done = 0;;) {
        const ssize_t count = ::read(from.get(), block.data(), block.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return file_error(file, "read");
        if (count == 0) break;
        const std::string_view bytes(block.data(), static_cast<std::size_t>(count));
        if (auto written = write_all(to, part, bytes); !written) {
            fs::remove(part, ignored);
            return written;
        }
        done += bytes.size();
        if (progress) progress(done, total);
    }
    if (::fsync(to.get()) != 0) return file_error(part, "write");
    if (::rename(part.c_str(), target.c_str()) != 0) return file_error(target, "name");
    return {};
}

}  // namespace

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
File& File::operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
}
File::~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

std::unexpected<Error> file_error(const fs::path& path, std::string_view what) {
    const int cause = errno;
    if (cause == ENOSPC || cause == EDQUOT) {
        return fail(
            Error(ErrorCode::exhausted,
                  fmt::format("no room left on the disk of {}; free some space, then do the "
                              "same again: what is there already is kept",
                              path.string()))
                .italian(fmt::format("spazio esaurito sul disco di {}; liberarne e "
                                     "ripetere: ciò che c'è già resta",
                                     path.string())));
    }
    const ErrorCode code = cause == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable;
    return fail(
        Error(code, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(cause)))
            .italian(fmt::format("{} non utilizzabile: {}", path.string(), std::strerror(cause))));
}

Result<File> open_file(const fs::path& path) {
    File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (file.get() < 0) return file_error(path, "open");
    return file;
}

Result<void> write_all(const File& file, const fs::path& path, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return file_error(path, "write");
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
}

bool lock(const File& file, bool patient) noexcept {
    return ::flock(file.get(), patient ? LOCK_EX : LOCK_EX | LOCK_NB) == 0;
}

bool flush(const File& file) noexcept {
    return ::fsync(file.get()) == 0;
}

Result<void> replace_file(const fs::path& path, std::string_view text) {
    const fs::path part = path.string() + ".new";
    {
        TRY(const File file, open_file(part));
        if (::ftruncate(file.get(), 0) != 0) return file_error(part, "empty");
        TRY_DO(write_all(file, part, text));
        if (::fsync(file.get()) != 0) return file_error(part, "write");
    }
    if (::rename(part.c_str(), path.c_str()) != 0) return file_error(path, "name");
    return {};
}

Result<void> link_or_copy(const fs::path& file, const fs::path& target, const Progress& progress) {
    std::error_code error;
    // A second name of a symbolic link would dangle with the link.
    const fs::path real = fs::canonical(file, error);
    if (error) {
        errno = error.value();
        return file_error(file, "read");
    }
    if (fs::equivalent(real, target, error)) return {};
    ::unlink(target.c_str());
    if (::link(real.c_str(), target.c_str()) == 0) return {};
    return copy(real, target, progress);
}

}  // namespace molly::models
