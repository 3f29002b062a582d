#pragma once
// What the catalogue, the downloader and the adapters do to files. Blocking.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "models/catalogue.h"

namespace molly::models {

/// An open file that closes itself.
class File {
public:
    File() = default;
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(File&& other) noexcept;
    File& operator=(File&& other) noexcept;
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File();
    int get() const noexcept { return descriptor_; }

private:
    int descriptor_ = -1;
};

/// What the last failed system call means for `path`. Errors: exhausted (disk full), not_found,
/// unavailable.
std::unexpected<Error> file_error(const std::filesystem::path& path, std::string_view what);

/// Opens for reading and writing, making the file when it is missing.
Result<File> open_file(const std::filesystem::path& path);
Result<void> write_all(const File& file, const std::filesystem::path& path, std::string_view bytes);
/// Whether this process alone holds the file from now on; waits when `patient`.
bool lock(const File& file, bool patient) noexcept;

/// Forces the bytes to the disk.
bool flush(const File& file) noexcept;

/// Replaces a small file in one step.
Result<void> replace_file(const std::filesystem::path& path, std::string_view text);
/// Gives `file` a second name, or copies it where that is impossible.
Result<void> link_or_copy(const std::filesystem::path& file, const std::filesystem::path& target,
                          const Progress& progress);

}  // namespace molly::models
