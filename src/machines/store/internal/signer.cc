#include "store/internal/signer.h"

#include <fmt/format.h>

#include "base/log.h"

namespace molly::store::internal {
namespace {

Result<void> load(const std::filesystem::path& path, std::optional<seal::SigningKey>& into) {
    auto key = seal::SigningKey::load_or_create(path);
    if (!key) return fail(std::move(key).error());
    into.emplace(std::move(*key));
    return {};
}

}  // namespace

Result<Signer> Signer::open(const std::filesystem::path& folder) {
    Signer signer(folder);
    TRY_DO(load(signer.file(), signer.key_));
    std::error_code ignored;
    if (std::filesystem::exists(signer.next_file(), ignored))
        TRY_DO(load(signer.next_file(), signer.next_));
    return signer;
}

Result<void> Signer::prepare() {
    if (next_) return {};
    return load(next_file(), next_);
}

Result<void> Signer::settle(std::string_view key_id) {
    if (key_->key_id() == key_id) return {};
    if (next_ && next_->key_id() == key_id) {
        advance();
        return {};
    }
    return fail(Error(ErrorCode::conflict,
                      fmt::format("the receipts here are signed by key {}, and signing.key is "
                                  "another; put the saved signing.key back",
                                  key_id))
                    .italian(fmt::format("le ricevute qui sono firmate dalla chiave {}, e "
                                         "signing.key è un'altra; rimettere la copia salvata",
                                         key_id)));
}

void Signer::advance() {
    key_.emplace(std::move(*next_));
    next_.reset();
    // When it fails, the next start finds that the log names the successor and ends this.
    const auto replaced = seal::replace_key_file(next_file(), file());
    if (!replaced) {
        log_event(LogLevel::error, "signing_key_not_replaced",
                  {{"error", replaced.error().message()}});
    }
}

}  // namespace molly::store::internal
