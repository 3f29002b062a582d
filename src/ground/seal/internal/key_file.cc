#include "seal/internal/key_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "seal/seal.h"

namespace molly::seal::internal {
namespace {

class File {
public:
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    File(File&&) = delete;
    File& operator=(File&&) = delete;
    ~File() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    int get() const noexcept { return descriptor_; }
    bool valid() const noexcept { return descriptor_ >= 0; }

private:
    int descriptor_;
};

std::unexpected<Error> unavailable(const std::filesystem::path& path, std::string_view what) {
    const std::string cause = std::strerror(errno);
    return fail(Error(ErrorCode::unavailable,
                      fmt::format("cannot {} the key file {}: {}", what, path.string(), cause))
                    .italian(fmt::format("file della chiave {} non utilizzabile: {}", path.string(),
                                         cause)));
}

std::unexpected<Error> corrupt(const std::filesystem::path& path, std::string_view kind) {
    return fail(
        Error(ErrorCode::corrupt,
              fmt::format("{} is not a {} key file; put the saved copy back", path.string(), kind))
            .italian(fmt::format("{} non è un file di chiave {}; rimettere la copia salvata",
                                 path.string(), kind)));
}

bool write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

void sync_folder(const std::filesystem::path& folder) {
    const File opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened.valid()) ::fsync(opened.get());
}

/// Writes the new key under a name of its own, then links it to `path`: another process that does
/// the same at the same time cannot be overwritten, and a crash leaves no half of a key.
Result<void> create(const std::filesystem::path& path, std::string_view kind) {
    std::string key = random_bytes(key_bytes);
    std::string text = fmt::format("{} {}\n", kind, to_base64(key));
    wipe(key);
    const std::string temporary = path.string() + "." + random_token(12);
    const File file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.valid()) return unavailable(path, "create");
    const bool written = write_all(file.get(), text) && ::fsync(file.get()) == 0;
    wipe(text);
    if (!written) {
        auto error = unavailable(path, "write");
        ::unlink(temporary.c_str());
        return error;
    }
    const bool linked = ::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST;
    auto error = unavailable(path, "create");
    ::unlink(temporary.c_str());
    if (!linked) return error;
    sync_folder(path.has_parent_path() ? path.parent_path() : ".");
    return {};
}

Result<std::string> read_key(const File& file, const std::filesystem::path& path,
                             std::string_view kind) {
    struct stat found{};
    if (::fstat(file.get(), &found) != 0) return unavailable(path, "read");
    if ((found.st_mode & 077U) != 0) {
        return fail(
            Error(ErrorCode::denied,
                  fmt::format("the key file {0} can be read by other users; run: chmod 600 "
                              "{0}",
                              path.string()))
                .italian(fmt::format("il file della chiave {0} è leggibile da altri utenti; "
                                     "eseguire: chmod 600 {0}",
                                     path.string())));
    }
    std::string text(256, '\0');
    const ssize_t count = ::read(file.get(), text.data(), text.size());
    if (count < 0) return unavailable(path, "read");
    std::string_view rest(text.data(), static_cast<std::size_t>(count));
    const bool framed =
        rest.starts_with(kind) && rest.substr(kind.size()).starts_with(' ') && rest.ends_with('\n');
    if (framed) rest = rest.substr(kind.size() + 1, rest.size() - kind.size() - 2);
    auto key = from_base64(rest);
    wipe(text);
    if (!framed || !key || key->size() != key_bytes) return corrupt(path, kind);
    return *std::move(key);
}

}  // namespace

Result<std::string> load_or_create_key(const std::filesystem::path& path, std::string_view kind) {
    prepare_sodium();
    for (int round = 0; round < 2; ++round) {
        const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (file.valid()) return read_key(file, path, kind);
        if (errno != ENOENT) return unavailable(path, "open");
        TRY_DO(create(path, kind));
    }
    return unavailable(path, "open");
}

Result<void> replace(const std::filesystem::path& next, const std::filesystem::path& path) {
    if (::rename(next.c_str(), path.c_str()) != 0) return unavailable(path, "replace");
    sync_folder(path.has_parent_path() ? path.parent_path() : ".");
    return {};
}

void prepare_sodium() {
    static const int state = ::sodium_init();
    MOLLY_ASSERT(state >= 0);
}

void wipe(std::string& secret) noexcept {
    ::sodium_memzero(secret.data(), secret.size());
    secret.clear();
}

}  // namespace molly::seal::internal
