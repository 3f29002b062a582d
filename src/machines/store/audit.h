#pragma once
// Offline proof: checks a receipt log, writes it out, and keeps its head elsewhere. Reads files and
// nothing else; safe from any thread.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace molly::store {

/// What is wrong with a log, by what was done to it.
enum class Damage : std::uint8_t {
    none,
    changed,            ///< bytes of a receipt, or of a signature's line
    missing,            ///< a receipt, or the signature of a change of keys
    reordered,          ///< it is there, in another place
    truncated,          ///< the end is gone
    unsigned_tail,      ///< receipts that no key vouches for
    foreign_signature,  ///< not by the key whose turn it is
    unknown_key,        ///< by a key that is not in the log's chain of keys, or was retired
    rewritten,          ///< the log is whole and signed, and is not the one that was witnessed
    witness_changed,    ///< the witness itself is not what was written
};
/// The kind's name in JSON: `foreign_signature`.
std::string_view to_string(Damage damage) noexcept;

/// A head of a log that was noted elsewhere.
struct WitnessedHead {
    std::uint64_t sequence = 0;  ///< of its last receipt; 0: not known
    std::string hash;            ///< its first bytes, 18 to 32
    std::string key_id;          ///< that signed it; empty: not noted
    std::string signature;       ///< 64 bytes, or empty

    bool operator==(const WitnessedHead&) const = default;
};

/// What an offline check of a receipt log found.
struct AuditReport {
    std::uint64_t receipts = 0;
    std::uint64_t signed_heads = 0;
    std::uint64_t unsigned_tail = 0;  ///< receipts after the last signed head
    std::string head;                 ///< hash of the last receipt, hex
    std::string signature;            ///< of the last signed head, hex
    std::string key_id;               ///< that signs now
    std::vector<std::string> keys;    ///< ids of all that signed in turn, the first one first
    std::uint64_t witnessed = 0;      ///< witnessed heads that the log holds
    bool sound = false;
    Damage damage = Damage::none;
    std::string fault;                      ///< what is wrong, in one sentence
    std::string fault_italian;              ///< the same
    std::optional<std::uint64_t> fault_at;  ///< sequence of the first bad receipt
};

/// Checks hash chain, signatures and chain of keys of a data folder or an exported .jsonl log, with
/// no server and without writing; a log that lacks or contradicts one of `witnessed` is not sound.
/// Errors: not_found, corrupt (not a log at all).
Result<AuditReport> verify_log(const std::filesystem::path& log,
                               std::vector<WitnessedHead> witnessed = {});

/// The same of an exported log in memory. Errors: corrupt (not a log at all).
Result<AuditReport> verify_text(std::string_view text, std::vector<WitnessedHead> witnessed = {});

/// Writes the receipts and signed heads of a data folder as .jsonl, which verify_log takes. Errors:
/// not_found, unavailable.
Result<std::uint64_t> export_log(const std::filesystem::path& folder,
                                 const std::filesystem::path& file);

/// The head as eight groups of five letters and digits (Crockford's base 32): its number, the first
/// 144 bits of its hash and a check, so that a slip of the pen or the ear is noticed. Empty for a
/// log without receipts.
std::string head_code(std::uint64_t sequence, std::string_view hash);
/// Reads a code as people write it: any case, any grouping, O for 0, I and L for 1. Errors:
/// invalid_request.
Result<WitnessedHead> head_from_code(std::string_view code);

/// One line of a witness file, with its end.
std::string witness_line(const WitnessedHead& head, WallTime time);
/// The heads of a witness file's text; a last line that was never finished is left out. Errors:
/// invalid_request, naming the line.
Result<std::vector<WitnessedHead>> witness_from(std::string_view text);
/// Adds a line to a witness file. Errors: unavailable.
Result<void> append_witness(const std::filesystem::path& file, const WitnessedHead& head,
                            WallTime time);
/// What a person gives as a witness: a file, a code, or a hash in hex. Errors: invalid_request,
/// unavailable.
Result<std::vector<WitnessedHead>> read_witness(const std::string& word);

}  // namespace molly::store
