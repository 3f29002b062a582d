#pragma once
// The key that signs the log, and the one that follows it. Files are touched in an order that
// survives a crash at any point: the successor's file is there before the log names it, and takes
// the place of the old one only after the log is safe. One thread at a time.
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "seal/seal.h"

namespace molly::store::internal {

class Signer {
public:
    /// Reads or makes the key, and reads a successor that an earlier run left. Errors: as
    /// seal::SigningKey.
    static Result<Signer> open(const std::filesystem::path& folder);

    const seal::SigningKey& key() const noexcept { return *key_; }
    /// The prepared successor, or null.
    const seal::SigningKey* successor() const noexcept { return next_ ? &*next_ : nullptr; }
    /// Makes the successor's file if there is none. Errors: as seal::SigningKey.
    Result<void> prepare();
    /// The log says that `key_id` signs: goes on with it. Errors: conflict (neither key is it).
    Result<void> settle(std::string_view key_id);
    /// The successor is the key now; the old one is destroyed.
    void advance();

private:
    explicit Signer(std::filesystem::path folder) : folder_(std::move(folder)) {}

    std::filesystem::path file() const { return folder_ / "signing.key"; }
    std::filesystem::path next_file() const { return folder_ / "signing.next.key"; }

    std::filesystem::path folder_;
    std::optional<seal::SigningKey> key_;
    std::optional<seal::SigningKey> next_;
};

}  // namespace molly::store::internal
