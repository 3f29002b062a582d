#pragma once
// The body of a receipt, the words that a head signs, and the hash that a log begins with. Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "domain/trace.h"
#include "seal/seal.h"

namespace molly::store::internal {

/// Canonical JSON of a trace's receipt: fixed order, every member present, no content. Origins are
/// left out, because they name people and documents, and a receipt outlives their erasure.
void append_receipt(std::string& out, const domain::Trace& trace);

/// The id that a receipt's body begins with; empty when it is no receipt.
std::string receipt_id(std::string_view body);

/// A receipt that is no answer's: from the next one on, another key signs.
struct KeyChangeText {
    std::string time;
    std::string from;  ///< id of the key that signs this receipt, the last one that it signs
    std::string to;
    std::string public_key;  ///< 32 bytes
};
KeyChangeText key_change(WallTime time, std::string_view from, std::string_view public_key);
void append_key_change(std::string& out, const KeyChangeText& change);
/// The id under which it is filed.
std::string key_change_id(const KeyChangeText& change);
/// What a body says about keys, when it is exactly what append_key_change writes.
std::optional<KeyChangeText> key_change_from(std::string_view body);

/// What the first receipt names as its previous hash.
seal::Hash genesis(std::string_view public_key);

/// What a head's signature covers.
std::string head_text(std::uint64_t sequence, const seal::Hash& hash);

}  // namespace molly::store::internal
