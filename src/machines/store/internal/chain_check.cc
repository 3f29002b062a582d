#include "store/internal/chain_check.h"

#include <utility>

#include <fmt/format.h>

#include "store/internal/receipt_text.h"

namespace molly::store::internal {
namespace {

std::string_view view_of(const seal::Hash& hash) {
    return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

}  // namespace

ChainCheck::ChainCheck(std::string expected_head) : expected_head_(std::move(expected_head)) {}

bool ChainCheck::signer(std::string_view public_key) {
    public_key_ = public_key;
    last_ = genesis(public_key);
    report_.key_id = seal::key_id(public_key);
    return true;
}

bool ChainCheck::link(const Link& link) {
    const std::uint64_t next = report_.receipts + 1;
    if (link.sequence != next) {
        return fault(next, fmt::format("receipt {} is missing: {} follows {}", next, link.sequence,
                                       report_.receipts));
    }
    if (link.previous != view_of(last_)) {
        return fault(next, fmt::format("receipt {} does not follow the one before it", next));
    }
    const seal::Hash hash = seal::sha256_link(last_, link.body);
    if (link.hash != view_of(hash)) {
        return fault(next, fmt::format("receipt {} was changed: its hash does not fit", next));
    }
    if (receipt_id(link.body) != link.id) {
        return fault(next, fmt::format("receipt {} is filed under another id", next));
    }
    last_ = hash;
    report_.receipts = next;
    if (!expected_head_.empty() && seal::to_hex(hash) == expected_head_) met_expected_ = true;
    return true;
}

bool ChainCheck::head(const Head& head) {
    if (head.sequence > report_.receipts) {
        return fault(report_.receipts + 1,
                     fmt::format("receipt {} is missing: a signature covers everything up to {}",
                                 report_.receipts + 1, head.sequence));
    }
    const bool good = head.sequence == report_.receipts && head.key_id == report_.key_id &&
                      seal::verify(public_key_, head_text(head.sequence, last_), head.signature);
    if (!good) {
        return fault(head.sequence, fmt::format("the signature of receipt {} is not by key {}",
                                                head.sequence, report_.key_id));
    }
    ++report_.signed_heads;
    signed_to_ = head.sequence;
    return true;
}

bool ChainCheck::damage(std::string_view what) {
    const std::uint64_t next = report_.receipts + 1;
    return fault(next, fmt::format("{}, after receipt {}", what, report_.receipts));
}

bool ChainCheck::fault(std::uint64_t at, std::string what) {
    if (report_.fault_at) return false;  // the first one counts
    report_.fault = std::move(what);
    report_.fault_at = at;
    return false;
}

AuditReport ChainCheck::finish() {
    report_.unsigned_tail = report_.receipts - signed_to_;
    report_.head = report_.receipts == 0 ? std::string() : seal::to_hex(last_);
    if (report_.unsigned_tail > 0) {  // the store signs within the transaction of the receipts
        fault(signed_to_ + 1, fmt::format("{} receipts after number {} bear no signature",
                                          report_.unsigned_tail, signed_to_));
    }
    if (!expected_head_.empty() && !met_expected_) {
        fault(report_.receipts + 1,
              fmt::format("the witnessed head is not in this log of {} receipts: its tail was cut, "
                          "or it is another log",
                          report_.receipts));
    }
    report_.sound = !report_.fault_at.has_value();
    return std::move(report_);
}

}  // namespace molly::store::internal
