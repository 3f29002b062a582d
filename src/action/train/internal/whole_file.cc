#include "train/internal/whole_file.h"

#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace molly::train {
namespace {

bool flush(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const bool flushed = ::fsync(file) == 0;
    return ::close(file) == 0 && flushed;
}

}  // namespace

Result<void> write_whole(const std::filesystem::path& file,
                         const std::function<bool(const std::filesystem::path&)>& write) {
    std::filesystem::path temporary = file;
    temporary += ".part";
    std::error_code error;
    const bool written = write(temporary) && flush(temporary);
    if (written) std::filesystem::rename(temporary, file, error);
    if (!written || error) {
        std::filesystem::remove(temporary, error);
        return fail(
            Error(ErrorCode::unavailable,
                  fmt::format("cannot write {}; look for space and permissions", file.string()))
                .italian(fmt::format("impossibile scrivere {}; controlla spazio e permessi",
                                     file.string())));
    }
    const auto folder = file.parent_path();
    flush(folder.empty() ? "." : folder);
    return {};
}

Result<void> write_whole(const std::filesystem::path& file, std::string_view text) {
    return write_whole(file, [text](const std::filesystem::path& temporary) {
        std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
        stream.write(text.data(), static_cast<std::streamsize>(text.size()));
        stream.close();
        return stream.good();
    });
}

}  // namespace molly::train
