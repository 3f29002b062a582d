#pragma once
// The body of a receipt, the words that a head signs, and the hash that a log begins with. Pure.
#include <cstdint>
#include <string>
#include <string_view>

#include "domain/trace.h"
#include "seal/seal.h"

namespace molly::store::internal {

/// Canonical JSON of a trace's receipt: fixed order, every member present, no content. Origins are
/// left out, because they name people and documents, and a receipt outlives their erasure.
void append_receipt(std::string& out, const domain::Trace& trace);

/// The id that a receipt's body begins with; empty when it is no receipt.
std::string receipt_id(std::string_view body);

/// What the first receipt names as its previous hash.
seal::Hash genesis(std::string_view public_key);

/// What a head's signature covers.
std::string head_text(std::uint64_t sequence, const seal::Hash& hash);

}  // namespace molly::store::internal
