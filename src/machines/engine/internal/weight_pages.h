#pragma once
// Lays a model's weights on huge pages: each forward pass reads all of them, and with small pages
// the processor spends part of that time on looking addresses up.
#include <cstdint>

#include <llama.h>

namespace molly::engine {

/// Asks the system for huge pages under the weights that lie in memory; bytes that it was asked
/// for. Where it has none, nothing changes.
std::uint64_t use_huge_pages(const llama_model& model);

}  // namespace molly::engine
