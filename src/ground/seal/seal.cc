#include "seal/seal.h"

#include <array>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <sodium.h>
#include <unistd.h>

#include "base/assert.h"
#include "seal/internal/key_file.h"

namespace molly::seal {
namespace {

using internal::prepare_sodium;

struct FreeDigest {
    void operator()(EVP_MD_CTX* context) const noexcept { ::EVP_MD_CTX_free(context); }
};

/// SHA-256 in pieces. The algorithm is fetched once: a fetch per hash costs more than the hash.
class Digest {
public:
    Digest() : context_(::EVP_MD_CTX_new()) { restart(); }

    void restart() {
        static const EVP_MD* const algorithm = ::EVP_MD_fetch(nullptr, "SHA256", nullptr);
        MOLLY_ASSERT(context_ && ::EVP_DigestInit_ex2(context_.get(), algorithm, nullptr) == 1);
    }
    void add(std::string_view bytes) {
        MOLLY_ASSERT(::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
    }
    Hash take() {
        Hash hash{};
        MOLLY_ASSERT(::EVP_DigestFinal_ex(context_.get(), hash.data(), nullptr) == 1);
        return hash;
    }

private:
    std::unique_ptr<EVP_MD_CTX, FreeDigest> context_;
};

struct FreeMac {
    void operator()(EVP_MAC_CTX* context) const noexcept { ::EVP_MAC_CTX_free(context); }
};
using Mac = std::unique_ptr<EVP_MAC_CTX, FreeMac>;

/// HMAC-SHA-256 without a key yet; both algorithms are fetched here, once per thread.
Mac make_mac() {
    static EVP_MAC* const algorithm = ::EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
    Mac context(::EVP_MAC_CTX_new(algorithm));
    std::string digest = "SHA256";
    const std::array parameters = {
        ::OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
        ::OSSL_PARAM_construct_end()};
    MOLLY_ASSERT(context && ::EVP_MAC_CTX_set_params(context.get(), parameters.data()) == 1);
    return context;
}

Digest& fresh_digest() {
    thread_local Digest digest;
    digest.restart();
    return digest;
}

std::string_view text_of(const Hash& hash) {
    return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

const unsigned char* bytes_of(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) {
    return reinterpret_cast<unsigned char*>(text.data());
}

}  // namespace

Hash sha256(std::string_view bytes) {
    Digest& digest = fresh_digest();
    digest.add(bytes);
    return digest.take();
}

Hash sha256_link(const Hash& previous, std::string_view bytes) {
    Digest& digest = fresh_digest();
    digest.add(text_of(previous));
    digest.add(bytes);
    return digest.take();
}

Result<Hash> sha256_file(const std::filesystem::path& path,
                         const std::function<void(std::uint64_t)>& progress) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable;
        return fail(code, fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
    }
    Digest digest;
    std::string block(1U << 20U, '\0');
    std::uint64_t done = 0;
    for (;;) {
        const ssize_t count = ::read(descriptor, block.data(), block.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            const std::string cause = std::strerror(errno);
            ::close(descriptor);
            return fail(ErrorCode::unavailable,
                        fmt::format("cannot read {}: {}", path.string(), cause));
        }
        if (count == 0) break;
        digest.add({block.data(), static_cast<std::size_t>(count)});
        done += static_cast<std::uint64_t>(count);
        if (progress) progress(done);
    }
    ::close(descriptor);
    return digest.take();
}

Hash keyed_hash(std::string_view key, std::string_view bytes) {
    thread_local const Mac context = make_mac();
    Hash hash{};
    std::size_t size = 0;
    MOLLY_ASSERT(::EVP_MAC_init(context.get(), bytes_of(key), key.size(), nullptr) == 1);
    MOLLY_ASSERT(::EVP_MAC_update(context.get(), bytes_of(bytes), bytes.size()) == 1);
    MOLLY_ASSERT(::EVP_MAC_final(context.get(), hash.data(), &size, hash.size()) == 1);
    return hash;
}

std::uint64_t short_hash(std::string_view key, std::string_view bytes) {
    static_assert(short_key_bytes == crypto_shorthash_KEYBYTES);
    MOLLY_ASSERT(key.size() == short_key_bytes);
    std::uint64_t hash = 0;
    std::array<unsigned char, crypto_shorthash_BYTES> out{};
    static_assert(out.size() == sizeof hash);
    ::crypto_shorthash(out.data(), bytes_of(bytes), bytes.size(), bytes_of(key));
    std::memcpy(&hash, out.data(), sizeof hash);
    return hash;
}

struct HashStream::State {
    Digest digest;
};
HashStream::HashStream() : state_(std::make_unique<State>()) {}
HashStream::HashStream(HashStream&&) noexcept = default;
HashStream& HashStream::operator=(HashStream&&) noexcept = default;
HashStream::~HashStream() = default;
void HashStream::add(std::string_view bytes) {
    state_->digest.add(bytes);
}
Hash HashStream::take() {
    return state_->digest.take();
}

std::string to_hex(std::string_view bytes) {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string hex;
    hex.reserve(bytes.size() * 2);
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        hex += digits[byte >> 4U];
        hex += digits[byte & 0xFU];
    }
    return hex;
}
std::string to_hex(const Hash& hash) {
    return to_hex(text_of(hash));
}

Result<std::string> from_hex(std::string_view hex) {
    std::string bytes(hex.size() / 2, '\0');
    std::size_t count = 0;
    const char* end = nullptr;
    const bool read = ::sodium_hex2bin(bytes_of(bytes), bytes.size(), hex.data(), hex.size(),
                                       nullptr, &count, &end) == 0;
    if (!read || count * 2 != hex.size())
        return fail(ErrorCode::invalid_request, "the text is not hexadecimal");
    return bytes;
}

std::string to_base64(std::string_view bytes) {
    std::string text(::sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL),
                     '\0');
    ::sodium_bin2base64(text.data(), text.size(), bytes_of(bytes), bytes.size(),
                        sodium_base64_VARIANT_ORIGINAL);
    text.pop_back();  // libsodium counts the final NUL
    return text;
}

Result<std::string> from_base64(std::string_view text) {
    std::string bytes(text.size() / 4 * 3 + 3, '\0');
    std::size_t count = 0;
    const char* end = nullptr;
    const bool read =
        ::sodium_base642bin(bytes_of(bytes), bytes.size(), text.data(), text.size(), nullptr,
                            &count, &end, sodium_base64_VARIANT_ORIGINAL) == 0;
    if (!read || end != text.data() + text.size())
        return fail(ErrorCode::invalid_request, "the text is not base64");
    bytes.resize(count);
    return bytes;
}

std::string random_bytes(std::size_t count) {
    prepare_sodium();
    std::string bytes(count, '\0');
    ::randombytes_buf(bytes.data(), bytes.size());
    return bytes;
}

std::string random_token(std::size_t count) {
    static constexpr std::string_view letters =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static constexpr unsigned unbiased = 256 - 256 % letters.size();
    std::string token;
    token.reserve(count);
    while (token.size() < count) {
        // A byte past the last whole multiple of 62 would favour the first letters.
        for (const char c : random_bytes(count - token.size() + 8)) {
            const auto byte = static_cast<unsigned char>(c);
            if (byte < unbiased && token.size() < count) token += letters[byte % letters.size()];
        }
    }
    return token;
}

std::string ordered_token(WallTime now) {
    static constexpr std::string_view letters = "0123456789abcdefghjkmnpqrstvwxyz";
    const auto since =
        std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
    auto left = static_cast<std::uint64_t>(since.count());
    std::string token(26, '0');
    for (std::size_t i = 10; i-- > 0; left >>= 5U)
        token[i] = letters[left & 31U];
    const std::string random = random_bytes(16);
    for (std::size_t i = 0; i < random.size(); ++i)
        token[10 + i] = letters[static_cast<unsigned char>(random[i]) & 31U];
    return token;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() && ::sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

Result<SigningKey> SigningKey::load_or_create(const std::filesystem::path& path) {
    TRY(std::string seed, internal::load_or_create_key(path, "molly-signing-key"));
    SigningKey key;
    key.secret_.resize(crypto_sign_SECRETKEYBYTES);
    key.public_.resize(crypto_sign_PUBLICKEYBYTES);
    ::crypto_sign_seed_keypair(bytes_of(key.public_), bytes_of(key.secret_), bytes_of(seed));
    internal::wipe(seed);
    return key;
}

SigningKey::SigningKey(SigningKey&& other) noexcept
    : secret_(std::move(other.secret_)), public_(std::move(other.public_)) {
    internal::wipe(other.secret_);
}
SigningKey::~SigningKey() {
    internal::wipe(secret_);
}

std::string SigningKey::sign(std::string_view bytes) const {
    std::string signature(crypto_sign_BYTES, '\0');
    ::crypto_sign_detached(bytes_of(signature), nullptr, bytes_of(bytes), bytes.size(),
                           bytes_of(std::string_view(secret_)));
    return signature;
}

std::string SigningKey::key_id() const {
    return seal::key_id(public_);
}

std::string key_id(std::string_view public_key) {
    return to_hex(text_of(sha256(public_key)).substr(0, 8));
}

Result<void> replace_key_file(const std::filesystem::path& next,
                              const std::filesystem::path& path) {
    return internal::replace(next, path);
}

bool verify(std::string_view public_key, std::string_view bytes,
            std::string_view signature) noexcept {
    return public_key.size() == crypto_sign_PUBLICKEYBYTES &&
           signature.size() == crypto_sign_BYTES &&
           ::crypto_sign_verify_detached(bytes_of(signature), bytes_of(bytes), bytes.size(),
                                         bytes_of(public_key)) == 0;
}

Result<Vault> Vault::load_or_create(const std::filesystem::path& path) {
    Vault vault;
    TRY(vault.key_, internal::load_or_create_key(path, "molly-vault-key"));
    return vault;
}

Vault::Vault(Vault&& other) noexcept : key_(std::move(other.key_)) {
    internal::wipe(other.key_);
}
Vault::~Vault() {
    internal::wipe(key_);
}

std::string Vault::seal(std::string_view bytes, std::string_view context) const {
    static constexpr std::size_t nonce_bytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
    std::string sealed = random_bytes(nonce_bytes);
    sealed.resize(nonce_bytes + bytes.size() + crypto_aead_xchacha20poly1305_ietf_ABYTES);
    unsigned char* const nonce = bytes_of(sealed);
    ::crypto_aead_xchacha20poly1305_ietf_encrypt(nonce + nonce_bytes, nullptr, bytes_of(bytes),
                                                 bytes.size(), bytes_of(context), context.size(),
                                                 nullptr, nonce, bytes_of(std::string_view(key_)));
    return sealed;
}

Result<std::string> Vault::open(std::string_view sealed, std::string_view context) const {
    static constexpr std::size_t nonce_bytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
    static constexpr std::size_t extra = nonce_bytes + crypto_aead_xchacha20poly1305_ietf_ABYTES;
    const auto damaged = [] {
        return fail(Error(ErrorCode::corrupt,
                          "sealed bytes do not open: they were changed, or vault.key is not the "
                          "one that sealed them")
                        .italian("i byte sigillati non si aprono: sono stati alterati, o vault.key "
                                 "non è la chiave che li ha sigillati"));
    };
    if (sealed.size() < extra) return damaged();
    std::string bytes(sealed.size() - extra, '\0');
    const std::string_view body = sealed.substr(nonce_bytes);
    const int opened = ::crypto_aead_xchacha20poly1305_ietf_decrypt(
        bytes_of(bytes), nullptr, nullptr, bytes_of(body), body.size(), bytes_of(context),
        context.size(), bytes_of(sealed), bytes_of(std::string_view(key_)));
    if (opened != 0) return damaged();
    return bytes;
}

std::string Vault::derive(std::string_view purpose) const {
    return std::string(text_of(keyed_hash(key_, fmt::format("molly derive {}", purpose))));
}

}  // namespace molly::seal
