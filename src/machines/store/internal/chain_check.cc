#include "store/internal/chain_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "store/internal/receipt_text.h"

namespace molly::store::internal {
namespace {

std::string_view view_of(const seal::Hash& hash) {
    return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

bool by_number(const WitnessedHead& a, const WitnessedHead& b) {
    return a.sequence < b.sequence;
}

}  // namespace

ChainCheck::ChainCheck(std::vector<WitnessedHead> witnessed) : witnessed_(std::move(witnessed)) {
    std::sort(witnessed_.begin(), witnessed_.end(), by_number);
    const auto numbered = std::find_if(witnessed_.begin(), witnessed_.end(),
                                       [](const auto& head) { return head.sequence > 0; });
    unnumbered_.assign(witnessed_.begin(), numbered);
    witnessed_.erase(witnessed_.begin(), numbered);
}

void ChainCheck::signer(std::string_view public_key) {
    last_ = genesis(public_key);
    report_.key_id = seal::key_id(public_key);
    keys_.assign(1, {report_.key_id, std::string(public_key), 1});
}

bool ChainCheck::link(const Link& link) {
    if (report_.fault_at) return seek(link);
    const std::uint64_t next = report_.receipts + 1;
    if (!successor_.key_id.empty()) return unsigned_change();
    const seal::Hash hash = seal::sha256_link(last_, link.body);
    if (link.sequence != next || link.previous != view_of(last_)) {
        // Only the field that names the one before may have been changed.
        const bool own_place = link.sequence == next && link.hash == view_of(hash);
        if (!own_place) return misplaced(link, next);
    }
    const bool good = link.previous == view_of(last_) && link.hash == view_of(hash) &&
                      receipt_id(link.body) == link.id;
    if (!good) {
        return fault(next, Damage::changed,
                     fmt::format("receipt {} was changed: its hash does not fit", next),
                     fmt::format("la ricevuta {} è stata cambiata: l'impronta non torna", next));
    }
    last_ = hash;
    report_.receipts = next;
    follow_keys(link.body);
    compare_witnesses();
    return !report_.fault_at;
}

/// The old key did not sign what names the new one; its signature may stand further down.
bool ChainCheck::unsigned_change() {
    fault(report_.receipts, Damage::missing,
          fmt::format("the signature of receipt {}, by which key {} names key {}, is missing",
                      report_.receipts, report_.key_id, successor_.key_id),
          fmt::format("manca la firma della ricevuta {}, con cui la chiave {} nomina la chiave {}",
                      report_.receipts, report_.key_id, successor_.key_id));
    return true;
}

/// Another receipt stands where number `next` belongs, or a changed one.
bool ChainCheck::misplaced(const Link& link, std::uint64_t next) {
    const bool renumbered = link.previous == view_of(last_) &&
                            link.hash == view_of(seal::sha256_link(last_, link.body));
    if (renumbered) {
        return fault(next, Damage::changed,
                     fmt::format("receipt {} was changed: it bears number {}", next, link.sequence),
                     fmt::format("la ricevuta {} è stata cambiata: porta il numero {}", next,
                                 link.sequence));
    }
    if (link.sequence == next) {
        fault(next, Damage::changed,
              fmt::format("receipt {} was changed: it does not follow the one before it", next),
              fmt::format("la ricevuta {} è stata cambiata: non segue la precedente", next));
    } else {
        fault(next, Damage::missing,
              fmt::format("receipt {} is missing: {} follows {}", next, link.sequence,
                          report_.receipts),
              fmt::format("manca la ricevuta {}: dopo la {} viene la {}", next, report_.receipts,
                          link.sequence));
    }
    return true;
}

/// After a fault: is the receipt that belonged there further down?
bool ChainCheck::seek(const Link& link) {
    const bool belongs = link.previous == view_of(last_) &&
                         link.hash == view_of(seal::sha256_link(last_, link.body));
    if (belongs && *report_.fault_at == report_.receipts + 1) return found_below();
    if (report_.damage == Damage::truncated) report_.damage = Damage::missing;
    return true;
}

bool ChainCheck::found_below() {
    report_.damage = Damage::reordered;
    report_.fault =
        fmt::format("receipt {} is not in its place: it stands further down", *report_.fault_at);
    report_.fault_italian =
        fmt::format("la ricevuta {} non è al suo posto: è più avanti", *report_.fault_at);
    return false;
}

/// A receipt may name the key that signs from the next one on.
void ChainCheck::follow_keys(std::string_view body) {
    auto change = key_change_from(body);
    if (!change || change->from != report_.key_id) return;
    successor_ = {std::move(change->to), std::move(change->public_key), report_.receipts + 1};
}

bool ChainCheck::head(const Head& head) {
    const bool by_key =
        seal::verify(keys_.back().public_key, head_text(report_.receipts, last_), head.signature);
    if (report_.fault_at) return by_key && !successor_.key_id.empty() ? found_below() : true;
    if (by_key && head.sequence != report_.receipts) {
        return fault(report_.receipts, Damage::changed,
                     fmt::format("the signature of receipt {} bears number {}", report_.receipts,
                                 head.sequence),
                     fmt::format("la firma della ricevuta {} porta il numero {}", report_.receipts,
                                 head.sequence));
    }
    if (head.sequence > report_.receipts) {
        const std::uint64_t next = report_.receipts + 1;
        fault(next, Damage::truncated,
              fmt::format("receipt {} is missing: a signature covers everything up to {}", next,
                          head.sequence),
              fmt::format("manca la ricevuta {}: una firma copre tutto fino alla {}", next,
                          head.sequence));
        return true;
    }
    if (head.sequence < report_.receipts) {
        return fault(head.sequence, Damage::reordered,
                     fmt::format("the signature of receipt {} stands after receipt {}",
                                 head.sequence, report_.receipts),
                     fmt::format("la firma della ricevuta {} sta dopo la ricevuta {}",
                                 head.sequence, report_.receipts));
    }
    if (!by_key || head.key_id != report_.key_id) return bad_signature(head);
    ++report_.signed_heads;
    signed_to_ = head.sequence;
    report_.signature = seal::to_hex(head.signature);
    if (!successor_.key_id.empty()) {
        report_.key_id = successor_.key_id;
        keys_.push_back(std::exchange(successor_, {}));
    }
    return true;
}

bool ChainCheck::bad_signature(const Head& head) {
    const auto known = std::find_if(keys_.begin(), keys_.end(), [&](const SignerRow& key) {
        return key.key_id == head.key_id;
    });
    if (known == keys_.end()) {
        return fault(head.sequence, Damage::unknown_key,
                     fmt::format("receipt {} is signed by key {}, which is not in this log's chain "
                                 "of keys",
                                 head.sequence, head.key_id),
                     fmt::format("la ricevuta {} è firmata dalla chiave {}, che non è nella catena "
                                 "delle chiavi di questo registro",
                                 head.sequence, head.key_id));
    }
    if (head.key_id != report_.key_id) {
        return fault(head.sequence, Damage::unknown_key,
                     fmt::format("receipt {} is signed by key {}, which was retired before",
                                 head.sequence, head.key_id),
                     fmt::format("la ricevuta {} è firmata dalla chiave {}, già ritirata",
                                 head.sequence, head.key_id));
    }
    return fault(
        head.sequence, Damage::foreign_signature,
        fmt::format("the signature of receipt {} is not by key {}", head.sequence, report_.key_id),
        fmt::format("la firma della ricevuta {} non è della chiave {}", head.sequence,
                    report_.key_id));
}

bool ChainCheck::damage(LineKind kind, bool cut) {
    const bool of_head = kind == LineKind::head && report_.receipts > 0;
    const std::uint64_t at = of_head ? report_.receipts : report_.receipts + 1;
    const std::string_view what = of_head ? "the signature of receipt" : "receipt";
    const std::string_view italian = of_head ? "la firma della ricevuta" : "la ricevuta";
    if (cut) {
        return fault(at, Damage::truncated, fmt::format("the log ends within {} {}", what, at),
                     fmt::format("il registro finisce a metà: {} {}", italian, at));
    }
    fault(at, Damage::changed, fmt::format("the line of {} {} was changed", what, at),
          fmt::format("la riga è stata cambiata: {} {}", italian, at));
    return false;
}

void ChainCheck::signers(const std::vector<SignerRow>& rows) {
    if (report_.fault_at || keys_ == rows) return;
    const auto differ = std::mismatch(keys_.begin(), keys_.end(), rows.begin(), rows.end());
    const std::uint64_t at =
        differ.first != keys_.end() ? differ.first->since : differ.second->since;
    fault(at, Damage::unknown_key,
          "the folder's list of signing keys is not the one that the receipts name",
          "l'elenco delle chiavi di firma della cartella non è quello che le ricevute nominano");
}

bool ChainCheck::fault(std::uint64_t at, Damage damage, std::string english, std::string italian) {
    if (report_.fault_at) return false;  // the first one counts
    report_.damage = damage;
    report_.fault = std::move(english);
    report_.fault_italian = std::move(italian);
    report_.fault_at = at;
    return false;
}

void ChainCheck::compare_witnesses() {
    for (; next_witness_ < witnessed_.size() &&
           witnessed_[next_witness_].sequence <= report_.receipts;
         ++next_witness_) {
        const WitnessedHead& witness = witnessed_[next_witness_];
        if (view_of(last_).starts_with(witness.hash)) {
            ++report_.witnessed;
        } else {
            contradict(witness);
        }
    }
    report_.witnessed += std::erase_if(unnumbered_, [this](const WitnessedHead& witness) {
        return view_of(last_).starts_with(witness.hash);
    });
}

/// A signed witness can be held against the log; one that was changed proves nothing.
void ChainCheck::contradict(const WitnessedHead& witness) {
    if (!witness.signature.empty()) {
        seal::Hash hash{};
        std::copy_n(witness.hash.begin(), std::min(witness.hash.size(), hash.size()), hash.begin());
        const bool own = std::any_of(keys_.begin(), keys_.end(), [&](const SignerRow& key) {
            return seal::verify(key.public_key, head_text(witness.sequence, hash),
                                witness.signature);
        });
        if (!own) {
            fault(witness.sequence, Damage::witness_changed,
                  fmt::format("the witnessed head {} is not signed by a key of this log: the "
                              "witness was changed, or is of another log",
                              witness.sequence),
                  fmt::format("la testa testimoniata {} non è firmata da una chiave di questo "
                              "registro: il testimone è stato cambiato, o è di un altro registro",
                              witness.sequence));
            return;
        }
    }
    fault(witness.sequence, Damage::rewritten,
          fmt::format("receipt {} is not the one that was witnessed: the log was rewritten up to "
                      "there, or the witness is of another log",
                      witness.sequence),
          fmt::format("la ricevuta {} non è quella testimoniata: il registro è stato riscritto fin "
                      "lì, o il testimone è di un altro registro",
                      witness.sequence));
}

void ChainCheck::judge_unmet() {
    const bool beyond = next_witness_ < witnessed_.size();
    if (!beyond && unnumbered_.empty()) return;
    const std::uint64_t last = beyond ? witnessed_.back().sequence : 0;
    const std::string number = last == 0 ? std::string() : fmt::format(" {}", last);
    fault(report_.receipts + 1, Damage::truncated,
          fmt::format("the witnessed head{} is not in this log of {} receipts: its tail was cut, "
                      "or it is another log",
                      number, report_.receipts),
          fmt::format("la testa testimoniata{} non è in questo registro di {} ricevute: la coda è "
                      "stata tagliata, o è un altro registro",
                      number, report_.receipts));
}

AuditReport ChainCheck::finish() {
    report_.unsigned_tail = report_.receipts - signed_to_;
    report_.head = report_.receipts == 0 ? std::string() : seal::to_hex(last_);
    if (report_.unsigned_tail > 0) {  // the store signs within the transaction of the receipts
        fault(signed_to_ + 1, Damage::unsigned_tail,
              fmt::format("{} receipts after number {} bear no signature: the end was cut off, or "
                          "they were added without the key",
                          report_.unsigned_tail, signed_to_),
              fmt::format("{} ricevute dopo la {} non sono firmate: la fine è stata tagliata, o "
                          "sono state aggiunte senza la chiave",
                          report_.unsigned_tail, signed_to_));
    }
    judge_unmet();
    for (const SignerRow& key : keys_)
        report_.keys.push_back(key.key_id);
    report_.sound = !report_.fault_at.has_value();
    return std::move(report_);
}

}  // namespace molly::store::internal
