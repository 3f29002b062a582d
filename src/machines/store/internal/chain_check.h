#pragma once
// Follows a receipt log from its beginning and finds the first entry that is not what was written,
// and what was done to it. Pure.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "seal/seal.h"
#include "store/audit.h"

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

/// One key of a log.
struct SignerRow {
    std::string key_id;
    std::string public_key;
    std::uint64_t since = 0;  ///< the first receipt that it may sign

    bool operator==(const SignerRow&) const = default;
};

/// What a line that cannot be read seems to have been.
enum class LineKind : std::uint8_t { receipt, head };

/// Give it the first signer, then receipts and heads in the order of their numbers, until it says
/// false: after the first fault it goes on only as long as later entries may say what was done.
class ChainCheck {
public:
    explicit ChainCheck(std::vector<WitnessedHead> witnessed);

    void signer(std::string_view public_key);
    bool link(const Link& link);
    bool head(const Head& head);
    /// The next entry cannot be read; `cut`: it has no end.
    bool damage(LineKind kind, bool cut);
    /// Whether the log's own list of keys says what its receipts say.
    void signers(const std::vector<SignerRow>& rows);
    AuditReport finish();

private:
    bool fault(std::uint64_t at, Damage damage, std::string english, std::string italian);
    bool seek(const Link& link);
    bool misplaced(const Link& link, std::uint64_t next);
    bool unsigned_change();
    bool found_below();
    bool bad_signature(const Head& head);
    void follow_keys(std::string_view body);
    void compare_witnesses();
    void contradict(const WitnessedHead& witness);
    void judge_unmet();

    std::vector<WitnessedHead> witnessed_;  // by number
    std::size_t next_witness_ = 0;
    std::vector<WitnessedHead> unnumbered_;
    std::vector<SignerRow> keys_;  // in turn
    SignerRow successor_;          // named by a receipt whose signature is still to come
    seal::Hash last_{};
    std::uint64_t signed_to_ = 0;
    AuditReport report_;
};

}  // namespace molly::store::internal
