#pragma once
// Where the factors of one LoRA adapter (Hu et al., 2021) lie in one array. A frozen weight W of
// [out, in] becomes W + scale * B * A, with A [rank, in] and B [out, rank].
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "train/internal/frozen_model.h"

namespace molly::train {

/// Linear layers that share their input, and so the product with it: their A lie one after another
/// as one [members * rank, in].
struct LoraGroup {
    std::vector<Module> members;     ///< of the model, adapted or not
    std::vector<Module> adapted;     ///< those of them that the adapter changes
    std::size_t a = 0;               ///< offset of the first A
    std::array<std::size_t, 3> b{};  ///< offsets, in the order of `adapted`
};

inline constexpr std::size_t group_count = 4;  // query key value; output; gate up; down

struct LoraLayer {
    std::array<LoraGroup, group_count> groups;
};

/// One factor, named as GGUF names it (`blk.0.attn_q.weight.lora_a`).
struct LoraTensor {
    std::string name;
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t offset = 0;  ///< floats from the start of the array
    bool first = false;      ///< A
};

struct LoraLayout {
    LoraLayout(const FrozenModel& model, std::size_t rank, const std::set<Module>& modules);

    std::size_t rank;
    std::vector<LoraLayer> layers;
    std::vector<LoraTensor> tensors;
    std::size_t size = 0;
};

/// A is uniform within 1 / sqrt(in), B is zero: the adapter begins by changing nothing.
std::vector<float> make_adapter(const LoraLayout& layout, std::uint64_t seed);

/// Modules from names with commas between them (`query,value`), `attention`, `feed_forward` or
/// `all`. Errors: invalid_request.
Result<std::set<Module>> parse_modules(const std::string& names);
/// The name that parse_modules takes.
const char* name_of(Module module) noexcept;

}  // namespace molly::train
