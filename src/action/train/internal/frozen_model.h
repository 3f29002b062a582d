#pragma once
// A GGUF model whose weights stay as they are in the file, quantized, while an adapter is trained
// on it (QLoRA; Dettmers et al., 2023). Immutable once open; safe from any thread.
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace molly::train {

/// A weight as the file holds it, [rows, columns]; null when the model has none.
struct FrozenMatrix {
    std::string name;
    int type = 0;  ///< ggml_type
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t row_bytes = 0;
    const std::byte* bytes = nullptr;

    explicit operator bool() const noexcept { return bytes != nullptr; }
    /// Rows [from, to) as floats, `stride` apart.
    void read(std::size_t from, std::size_t to, float* out, std::size_t stride) const;
    /// One row as bf16; `scratch` holds `columns` floats.
    void read_rounded(std::size_t row, std::uint16_t* out, float* scratch) const;
};

/// The linear layers that an adapter can change, in the order of a layer.
enum class Module : std::uint8_t { query, key, value, output, gate, up, down };
inline constexpr std::size_t module_count = 7;

struct FrozenLayer {
    std::array<FrozenMatrix, module_count> modules;
    std::array<std::vector<float>, module_count> bias;  ///< empty: none
    std::vector<float> attention_norm, feed_norm;
    std::vector<float> query_norm, key_norm;                 ///< per head; empty: none
    std::vector<float> attention_post_norm, feed_post_norm;  ///< empty: none
    std::uint32_t window = 0;      ///< tokens that attention looks back at; 0: all
    std::vector<float> frequency;  ///< radians per position, shape: [head_width / 2]

    const FrozenMatrix& operator[](Module module) const {
        return modules[static_cast<std::size_t>(module)];
    }
};

/// How one family of decoders computes.
struct FrozenShape {
    std::string family;  ///< general.architecture
    std::uint32_t vocabulary = 0, embed = 0, heads = 0, key_heads = 0, head_width = 0;
    std::uint32_t feed_forward = 0;
    std::uint32_t context_max = 0;  ///< that the model was trained for
    float norm_epsilon = 1e-5F;
    float rope_base = 10'000.0F;
    float embed_scale = 1;       ///< of the embeddings
    float attention_scale = 1;   ///< of scores
    bool rotate_halves = false;  ///< RoPE turns (i, i + half); otherwise neighbours
    bool gelu = false;           ///< the gate's activation; otherwise SiLU

    std::size_t query_width() const noexcept { return std::size_t{heads} * head_width; }
    std::size_t key_width() const noexcept { return std::size_t{key_heads} * head_width; }
};

class FrozenModel {
public:
    /// Reads a model of the families llama, qwen2, qwen3 and gemma3. Errors: not_found, corrupt,
    /// unsupported (another family, or a feature that training lacks; says which), exhausted.
    static Result<FrozenModel> open(const std::filesystem::path& file);

    const FrozenShape& shape() const noexcept { return shape_; }
    const std::vector<FrozenLayer>& layers() const noexcept { return layers_; }
    const FrozenMatrix& embedding() const noexcept { return embedding_; }
    const FrozenMatrix& head() const noexcept { return head_ ? head_ : embedding_; }
    bool tied() const noexcept { return !head_; }
    const std::vector<float>& output_norm() const noexcept { return output_norm_; }
    const std::string& name() const noexcept { return name_; }
    std::uint64_t parameters() const noexcept { return parameters_; }
    std::uint64_t bytes() const noexcept { return size_; }

private:
    friend class FrozenReader;
    FrozenModel() = default;

    FrozenShape shape_;
    std::vector<FrozenLayer> layers_;
    FrozenMatrix embedding_, head_;
    std::vector<float> output_norm_;
    std::string name_;
    std::uint64_t parameters_ = 0;
    std::uint64_t size_ = 0;
    std::shared_ptr<const std::byte> data_;
};

}  // namespace molly::train
