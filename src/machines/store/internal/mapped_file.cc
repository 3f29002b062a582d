#include "store/internal/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace molly::store::internal {
namespace {

constexpr std::size_t step_bytes = 256U << 10U;  // the file grows by so much

std::unexpected<Error> disk_error(std::string_view what, int number) {
    // EFBIG: the process's own limit on file sizes, which a person sets for the same reason.
    if (number == ENOSPC || number == EDQUOT || number == EFBIG) {
        return fail(Error(ErrorCode::exhausted,
                          "no room left on the disk of the data folder; free some space")
                        .italian("spazio esaurito sul disco della cartella dati; liberarne"));
    }
    return fail(ErrorCode::unavailable,
                fmt::format("cannot {} the journal: {}", what, std::strerror(number)));
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
    MappedFile file;
    file.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file.file_ < 0) return disk_error("open", errno);
    struct stat facts{};
    if (::fstat(file.file_, &facts) != 0) return disk_error("open", errno);
    const auto size = static_cast<std::size_t>(facts.st_size);
    if (size > 0) TRY_DO(file.reserve(size));
    file.used_ = size;
    return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      bytes_(std::exchange(other.bytes_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      used_(std::exchange(other.used_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(bytes_, other.bytes_);
    std::swap(capacity_, other.capacity_);
    std::swap(used_, other.used_);
    return *this;
}

MappedFile::~MappedFile() {
    if (bytes_ != nullptr) ::munmap(bytes_, capacity_);
    if (file_ >= 0) ::close(file_);
}

Result<void> MappedFile::append(std::string_view bytes) {
    if (bytes.size() > capacity_ - used_) TRY_DO(reserve(used_ + bytes.size()));
    std::memcpy(bytes_ + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
    return {};
}

void MappedFile::clear() noexcept {
    if (used_ > 0) std::memset(bytes_, 0, used_);
    used_ = 0;
}

Result<void> MappedFile::sync() const {
    if (::fdatasync(file_) != 0) return disk_error("sync", errno);
    return {};
}

Result<void> MappedFile::reserve(std::size_t bytes) {
    const std::size_t wanted = (bytes + step_bytes - 1) / step_bytes * step_bytes;
    if (const int number = ::posix_fallocate(file_, 0, static_cast<off_t>(wanted)); number != 0)
        return disk_error("grow", number);
    void* const mapped = bytes_ == nullptr ? ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                                                    MAP_SHARED | MAP_POPULATE, file_, 0)
                                           : ::mremap(bytes_, capacity_, wanted, MREMAP_MAYMOVE);
    if (mapped == MAP_FAILED) return disk_error("map", errno);
    bytes_ = static_cast<char*>(mapped);
    capacity_ = wanted;
    return {};
}

}  // namespace molly::store::internal
