#pragma once
// A download on its way: the bytes so far, their hash, and what the server said they are.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "models/files.h"
#include "seal/seal.h"

namespace molly::models::internal {

/// The conflict of two models over one name.
Error name_taken(const std::string& name);

class Part {
public:
    /// Opens `<file>.part` with what an earlier call left of the same source, and holds it alone.
    /// Hashes the bytes that are there. Errors: conflict (another pull runs), unavailable.
    static Result<Part> open(const std::filesystem::path& file, const std::string& source,
                             const Progress& progress);

    const std::filesystem::path& path() const noexcept { return path_; }
    std::uint64_t done() const noexcept { return done_; }
    std::uint64_t total() const noexcept { return total_; }  ///< 0: unknown
    /// The server's mark of these very bytes (RFC 9110, 13.1.5), for If-Range; empty: none.
    const std::string& validator() const noexcept { return validator_; }

    /// Forgets the bytes and begins anew with what a reply says.
    Result<void> restart(std::string validator, std::uint64_t total);
    void learn_total(std::uint64_t total) noexcept { total_ = total; }
    /// Errors: exhausted (disk full), unavailable.
    Result<void> append(std::string_view bytes);
    /// Forces the bytes to the disk and gives their hash, hex. Call once.
    Result<std::string> finish();
    /// Removes everything.
    void discard() noexcept;
    /// Removes what stands beside the bytes, once they have their name.
    void forget() noexcept;

private:
    Part() = default;
    Result<void> save() const;
    void load(const std::string& source);
    Result<void> hash_bytes(const Progress& progress);

    std::filesystem::path path_;
    std::filesystem::path note_;  // `<file>.part.json`
    std::string source_;
    std::string validator_;
    std::uint64_t done_ = 0;
    std::uint64_t total_ = 0;
    File file_;
    seal::HashStream hash_;
};

}  // namespace molly::models::internal
