#pragma once
// Follows a receipt log from its beginning and finds the first entry that is not what was written.
// Pure.
#include <cstdint>
#include <string>

#include "seal/seal.h"
#include "store/store.h"

namespace molly::store::internal {

/// A receipt as it was read; hashes are bytes.
struct Link {
    std::uint64_t sequence = 0;
    std::string id;
    std::string body;
    std::string hash;
    std::string previous;
};

/// A signature over everything up to a receipt.
struct Head {
    std::uint64_t sequence = 0;
    std::string key_id;
    std::string signature;
};

/// Give it the signer, then receipts and heads in the order of their numbers, until it says false.
class ChainCheck {
public:
    /// `expected_head`: hex of a hash that must be in the chain; empty: none.
    explicit ChainCheck(std::string expected_head);

    bool signer(std::string_view public_key);
    bool link(const Link& link);
    bool head(const Head& head);
    /// The next entry cannot be read.
    bool damage(std::string_view what);
    AuditReport finish();

private:
    bool fault(std::uint64_t at, std::string what);

    const std::string expected_head_;
    std::string public_key_;
    seal::Hash last_{};
    std::uint64_t signed_to_ = 0;
    bool met_expected_ = false;
    AuditReport report_;
};

}  // namespace molly::store::internal
