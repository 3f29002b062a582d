#pragma once
// Hashes, signatures, sealed bytes and keys on disk. Blocking only where a file is named; safe from
// any thread.
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace molly::seal {

using Hash = std::array<std::uint8_t, 32>;

/// SHA-256 (FIPS 180-4).
Hash sha256(std::string_view bytes);
/// SHA-256 of `previous` followed by `bytes`: one link of a hash chain.
Hash sha256_link(const Hash& previous, std::string_view bytes);
/// SHA-256 of a file; `progress` gets bytes done. Errors: not_found, unavailable.
Result<Hash> sha256_file(const std::filesystem::path& path,
                         const std::function<void(std::uint64_t)>& progress = {});
/// SHA-256 of bytes that arrive in pieces.
class HashStream {
public:
    HashStream();
    HashStream(HashStream&&) noexcept;
    HashStream& operator=(HashStream&&) noexcept;
    HashStream(const HashStream&) = delete;
    HashStream& operator=(const HashStream&) = delete;
    ~HashStream();

    void add(std::string_view bytes);
    Hash take();  ///< call once

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Keyed hash: HMAC-SHA-256 (RFC 2104).
Hash keyed_hash(std::string_view key, std::string_view bytes);

/// A short keyed hash, SipHash-2-4 (Aumasson, Bernstein 2012), for tables of many; the key has
/// `short_key_bytes`.
inline constexpr std::size_t short_key_bytes = 16;
std::uint64_t short_hash(std::string_view key, std::string_view bytes);

std::string to_hex(std::string_view bytes);
std::string to_hex(const Hash& hash);
Result<std::string> from_hex(std::string_view hex);
std::string to_base64(std::string_view bytes);
Result<std::string> from_base64(std::string_view text);
/// Crockford's base 32: no I, L, O or U; the last bits are padded with zeros.
std::string to_base32(std::string_view bytes);
/// Any case, O read as 0, I and L as 1; hyphens and blanks are left out. Errors: invalid_request.
Result<std::string> from_base32(std::string_view text);

/// `count` random bytes from the operating system.
std::string random_bytes(std::size_t count);
/// `count` random characters of [0-9A-Za-z].
std::string random_token(std::size_t count);
/// 26 characters that sort by time: 10 of milliseconds, 16 random ones (80 bits). Request ids are
/// made so, because rows of an index that arrive in order cost one page write instead of many.
std::string ordered_token(WallTime now);
/// Whether both are equal, in time that depends on the length only.
bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

/// Ed25519 (RFC 8032). Move-only; the secret half is wiped on destruction.
class SigningKey {
public:
    /// Reads the key file, or makes it (mode 0600) when it is missing.
    /// Errors: denied (readable by others: names the chmod), corrupt, unavailable.
    static Result<SigningKey> load_or_create(const std::filesystem::path& path);
    SigningKey(SigningKey&&) noexcept;
    SigningKey& operator=(SigningKey&&) = delete;
    SigningKey(const SigningKey&) = delete;
    SigningKey& operator=(const SigningKey&) = delete;
    ~SigningKey();

    std::string sign(std::string_view bytes) const;                     ///< 64 bytes
    const std::string& public_key() const noexcept { return public_; }  ///< 32 bytes
    std::string key_id() const;  ///< first 8 bytes of SHA-256 of the public key, hex

private:
    SigningKey() = default;
    std::string secret_;
    std::string public_;
};

/// Puts the key file `next` in the place of `path`, for good: the file there is gone, and a power
/// cut brings it back no more. Errors: unavailable.
Result<void> replace_key_file(const std::filesystem::path& next, const std::filesystem::path& path);

/// First 8 bytes of SHA-256 of the public key, hex.
std::string key_id(std::string_view public_key);
/// Whether `signature` of `bytes` is by `public_key`.
bool verify(std::string_view public_key, std::string_view bytes,
            std::string_view signature) noexcept;

/// Authenticated encryption at rest (XChaCha20-Poly1305); the key file is made (mode 0600) when
/// missing.
class Vault {
public:
    /// Errors: as SigningKey::load_or_create.
    static Result<Vault> load_or_create(const std::filesystem::path& path);
    Vault(Vault&&) noexcept;
    Vault& operator=(Vault&&) = delete;
    Vault(const Vault&) = delete;
    Vault& operator=(const Vault&) = delete;
    ~Vault();

    /// `context` is authenticated with the bytes, so that a sealed row cannot be moved to another
    /// id.
    std::string seal(std::string_view bytes, std::string_view context) const;
    /// Errors: corrupt.
    Result<std::string> open(std::string_view sealed, std::string_view context) const;
    /// A key for another use, derived from this one (`conversations`, `fingerprints`).
    std::string derive(std::string_view purpose) const;

private:
    Vault() = default;
    std::string key_;
};

}  // namespace molly::seal
