#include "train/internal/frozen_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>

#include "train/internal/kernels.h"

namespace molly::train {
namespace {

using GgufPointer = std::unique_ptr<gguf_context, decltype(&gguf_free)>;
using GgmlPointer = std::unique_ptr<ggml_context, decltype(&ggml_free)>;

constexpr std::array<const char*, module_count> module_names = {
    "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};

Error damaged(const std::filesystem::path& file) {
    return Error(ErrorCode::corrupt,
                 fmt::format("{} is damaged or no GGUF model; fetch it again", file.string()))
        .italian(fmt::format("{} è danneggiato o non è un modello GGUF; scaricalo di nuovo",
                             file.string()));
}

}  // namespace

void FrozenMatrix::read(std::size_t from, std::size_t to, float* out, std::size_t stride) const {
    const auto* at = bytes + from * row_bytes;
    for (std::size_t r = from; r < to; ++r, at += row_bytes, out += stride) {
        switch (type) {
            case GGML_TYPE_F32:
                std::copy_n(reinterpret_cast<const float*>(at), columns, out);
                break;
            case GGML_TYPE_F16:
                kernels().from_f16(columns, at, out);
                break;
            case GGML_TYPE_Q8_0:
                kernels().from_q8_0(columns, at, out);
                break;
            case GGML_TYPE_Q4_0:
                kernels().from_q4_0(columns, at, out);
                break;
            default:
                ggml_get_type_traits(static_cast<ggml_type>(type))
                    ->to_float(at, out, static_cast<std::int64_t>(columns));
        }
    }
}

void FrozenMatrix::read_rounded(std::size_t row, std::uint16_t* out, float* scratch) const {
    const auto* at = bytes + row * row_bytes;
    if (type == GGML_TYPE_Q8_0) return kernels().q8_0_to_bf16(columns, at, out);
    if (type == GGML_TYPE_Q4_0) return kernels().q4_0_to_bf16(columns, at, out);
    read(row, row + 1, scratch, columns);
    kernels().to_bf16(columns, scratch, out);
}

/// Reads one file; what is wrong with it is kept until the end.
class FrozenReader {
public:
    explicit FrozenReader(std::filesystem::path file) : file_(std::move(file)) {}

    Result<FrozenModel> read() {
        TRY_DO(open());
        TRY_DO(read_shape());
        TRY_DO(read_data());
        FrozenShape& shape = model_.shape_;
        model_.embedding_ = matrix("token_embd.weight", 0, shape.embed);
        shape.vocabulary = static_cast<std::uint32_t>(model_.embedding_.rows);
        model_.head_ = optional_matrix("output.weight", shape.vocabulary, shape.embed);
        model_.output_norm_ = vector("output_norm.weight", shape.embed);
        const std::uint32_t layers = number("block_count").value_or(0);
        for (std::uint32_t i = 0; i < layers; ++i)
            model_.layers_.push_back(layer(i));
        if (wrong_) return fail(*std::move(wrong_));
        return std::move(model_);
    }

private:
    Result<void> open() {
        if (!std::filesystem::exists(file_)) {
            return fail(
                Error(ErrorCode::not_found, fmt::format("there is no model {}", file_.string()))
                    .italian(fmt::format("il modello {} non esiste", file_.string())));
        }
        gguf_init_params params{};
        params.no_alloc = true;
        ggml_context* tensors = nullptr;
        params.ctx = &tensors;
        gguf_.reset(gguf_init_from_file(file_.c_str(), params));
        tensors_.reset(tensors);
        if (gguf_ == nullptr || tensors_ == nullptr) return fail(damaged(file_));
        return {};
    }

    Result<void> read_shape() {
        FrozenShape& shape = model_.shape_;
        shape.family = text("general.architecture").value_or("");
        model_.name_ = text("general.name").value_or(file_.stem().string());
        constexpr std::array families = {"llama", "qwen2", "qwen3", "gemma3"};
        if (std::find(families.begin(), families.end(), shape.family) == families.end()) {
            return fail(
                Error(ErrorCode::unsupported,
                      fmt::format("{} is of the family {}; adapters can be trained on llama, "
                                  "qwen2, qwen3 and gemma3",
                                  file_.string(), shape.family.empty() ? "?" : shape.family))
                    .italian(fmt::format("{} è della famiglia {}; si possono addestrare "
                                         "adattatori su llama, qwen2, qwen3 e gemma3",
                                         file_.string(),
                                         shape.family.empty() ? "?" : shape.family)));
        }
        const bool gemma = shape.family == "gemma3";
        shape.embed = number("embedding_length").value_or(0);
        shape.heads = number("attention.head_count").value_or(0);
        shape.key_heads = number("attention.head_count_kv").value_or(shape.heads);
        shape.feed_forward = number("feed_forward_length").value_or(0);
        shape.context_max = number("context_length").value_or(0);
        if (shape.embed == 0 || shape.heads == 0 || shape.key_heads == 0 ||
            shape.feed_forward == 0 || shape.heads % shape.key_heads != 0) {
            return fail(damaged(file_));
        }
        shape.head_width = number("attention.key_length").value_or(shape.embed / shape.heads);
        shape.norm_epsilon = real("attention.layer_norm_rms_epsilon").value_or(1e-5F);
        shape.rope_base = real("rope.freq_base").value_or(shape.rope_base);
        shape.rotate_halves = shape.family != "llama";
        shape.gelu = gemma;
        shape.embed_scale = gemma ? std::sqrt(static_cast<float>(shape.embed)) : 1.0F;
        const bool by_embed = gemma && number("block_count").value_or(0) == 62;  // 27B
        shape.attention_scale =
            1.0F /
            std::sqrt(static_cast<float>(by_embed ? shape.embed / shape.heads : shape.head_width));
        return check_features();
    }

    /// What training would get wrong is refused, not ignored.
    Result<void> check_features() const {
        const auto scaling = text(key("rope.scaling.type")).value_or("none");
        std::string lacking;
        if (scaling != "none" && scaling != "linear") lacking = "RoPE scaling " + scaling;
        if (number("expert_count").value_or(0) > 0) lacking = "experts";
        if (real("final_logit_softcapping").value_or(0) > 0) lacking = "capped logits";
        const auto rotated = number("rope.dimension_count").value_or(model_.shape_.head_width);
        if (rotated != model_.shape_.head_width) lacking = "RoPE on a part of each head";
        if (model_.shape_.head_width % 2 != 0) lacking = "heads of an odd width";
        if (lacking.empty()) return {};
        return fail(
            Error(ErrorCode::unsupported,
                  fmt::format("{} uses what training does not do yet: {}", file_.string(), lacking))
                .italian(fmt::format("{} usa qualcosa che l'addestramento non fa ancora: {}",
                                     file_.string(), lacking)));
    }

    Result<void> read_data() {
        const std::uint64_t start = gguf_get_data_offset(gguf_.get());
        std::error_code error;
        const std::uint64_t whole = std::filesystem::file_size(file_, error);
        if (error || whole <= start) return fail(damaged(file_));
        model_.size_ = whole - start;
        // Aligned for the widest loads, and not filled with zeros first.
        auto* memory =
            static_cast<std::byte*>(std::aligned_alloc(64, (model_.size_ + 63) / 64 * 64));
        if (memory == nullptr) {
            return fail(Error(
                ErrorCode::exhausted,
                fmt::format("{} needs {} MiB of memory", file_.string(), model_.size_ >> 20U)));
        }
        model_.data_ = std::shared_ptr<const std::byte>(memory, std::free);
        std::ifstream stream(file_, std::ios::binary);
        stream.seekg(static_cast<std::streamoff>(start));
        stream.read(reinterpret_cast<char*>(memory), static_cast<std::streamsize>(model_.size_));
        if (!stream) return fail(damaged(file_));
        return {};
    }

    FrozenLayer layer(std::uint32_t i) {
        const FrozenShape& shape = model_.shape_;
        const auto name = [i](const std::string& part, const char* kind = "weight") {
            return fmt::format("blk.{}.{}.{}", i, part, kind);
        };
        const std::size_t embed = shape.embed;
        const std::size_t wide = shape.feed_forward;
        const std::size_t query = shape.query_width();
        const std::size_t keys = shape.key_width();
        const std::array<std::array<std::size_t, 2>, module_count> sizes = {{{query, embed},
                                                                             {keys, embed},
                                                                             {keys, embed},
                                                                             {embed, query},
                                                                             {wide, embed},
                                                                             {wide, embed},
                                                                             {embed, wide}}};
        FrozenLayer made;
        for (std::size_t m = 0; m < module_count; ++m) {
            made.modules[m] = matrix(name(module_names[m]), sizes[m][0], sizes[m][1]);
            made.bias[m] = optional_vector(name(module_names[m], "bias"), sizes[m][0]);
        }
        made.attention_norm = vector(name("attn_norm"), embed);
        made.feed_norm = vector(name("ffn_norm"), embed);
        made.query_norm = optional_vector(name("attn_q_norm"), shape.head_width);
        made.key_norm = optional_vector(name("attn_k_norm"), shape.head_width);
        made.attention_post_norm = optional_vector(name("post_attention_norm"), embed);
        made.feed_post_norm = optional_vector(name("post_ffw_norm"), embed);
        rope(i, made);
        return made;
    }

    /// Windows and angles: gemma3 looks far in every sixth layer only.
    void rope(std::uint32_t i, FrozenLayer& made) {
        const std::size_t pairs = model_.shape_.head_width / 2;
        auto base = static_cast<double>(model_.shape_.rope_base);
        double factor = 1;
        if (text(key("rope.scaling.type")).value_or("none") == "linear")
            factor = static_cast<double>(real("rope.scaling.factor").value_or(1.0F));
        const std::uint32_t window = number("attention.sliding_window").value_or(0);
        const std::uint32_t period = number("attention.sliding_window_pattern").value_or(6);
        if (model_.shape_.family == "gemma3" && window > 0 &&
            (period == 0 || i % period < period - 1)) {
            made.window = window;
            base = static_cast<double>(real("rope.freq_base_swa").value_or(10'000.0F));
            factor = 1;
        }
        const std::vector<float> slower = optional_vector("rope_freqs.weight", pairs);
        for (std::size_t p = 0; p < pairs; ++p) {
            const double turn =
                std::pow(base, -static_cast<double>(p) / static_cast<double>(pairs));
            const double slow = slower.empty() ? 1.0 : static_cast<double>(slower[p]);
            made.frequency.push_back(static_cast<float>(turn / factor / slow));
        }
    }

    FrozenMatrix optional_matrix(const std::string& name, std::size_t rows, std::size_t columns) {
        const std::int64_t id = gguf_find_tensor(gguf_.get(), name.c_str());
        const ggml_tensor* tensor =
            id < 0 ? nullptr : ggml_get_tensor(tensors_.get(), name.c_str());
        if (tensor == nullptr) return {};
        const std::size_t offset = gguf_get_tensor_offset(gguf_.get(), id);
        const auto* traits = ggml_get_type_traits(tensor->type);
        const bool readable = tensor->type == GGML_TYPE_F32 || traits->to_float != nullptr;
        const auto has_rows = static_cast<std::size_t>(ggml_nrows(tensor));
        const auto has_columns = static_cast<std::size_t>(tensor->ne[0]);
        if (!readable || has_columns != columns || (rows != 0 && has_rows != rows) ||
            offset + ggml_nbytes(tensor) > model_.size_) {
            if (!wrong_) {
                wrong_ =
                    Error(ErrorCode::corrupt,
                          fmt::format("{}: tensor {} is [{}, {}], wanted [{}, {}]", file_.string(),
                                      name, has_rows, has_columns, rows, columns));
            }
            return {};
        }
        model_.parameters_ += static_cast<std::uint64_t>(ggml_nelements(tensor));
        return {name,
                tensor->type,
                has_rows,
                has_columns,
                ggml_row_size(tensor->type, tensor->ne[0]),
                model_.data_.get() + offset};
    }

    FrozenMatrix matrix(const std::string& name, std::size_t rows, std::size_t columns) {
        FrozenMatrix found = optional_matrix(name, rows, columns);
        if (!found && !wrong_) {
            wrong_ = Error(ErrorCode::unsupported,
                           fmt::format("{} has no tensor {}; training does not know this form of "
                                       "{}",
                                       file_.string(), name, model_.shape_.family));
        }
        return found;
    }

    std::vector<float> optional_vector(const std::string& name, std::size_t size) {
        const FrozenMatrix found = optional_matrix(name, 1, size);
        std::vector<float> out(found ? size : 0);
        if (found) found.read(0, 1, out.data(), size);
        return out;
    }

    std::vector<float> vector(const std::string& name, std::size_t size) {
        auto found = optional_vector(name, size);
        if (found.empty()) (void)matrix(name, 1, size);
        return found;
    }

    std::string key(const char* part) const { return model_.shape_.family + "." + part; }

    std::optional<std::string> text(const std::string& name) const {
        const std::int64_t id = gguf_find_key(gguf_.get(), name.c_str());
        if (id < 0 || gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_STRING) return std::nullopt;
        return gguf_get_val_str(gguf_.get(), id);
    }

    std::optional<std::uint32_t> number(const char* part) const {
        const std::int64_t id = gguf_find_key(gguf_.get(), key(part).c_str());
        if (id < 0 || gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_UINT32) return std::nullopt;
        return gguf_get_val_u32(gguf_.get(), id);
    }

    std::optional<float> real(const char* part) const {
        const std::int64_t id = gguf_find_key(gguf_.get(), key(part).c_str());
        if (id < 0 || gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_FLOAT32) return std::nullopt;
        return gguf_get_val_f32(gguf_.get(), id);
    }

    std::filesystem::path file_;
    FrozenModel model_;
    GgufPointer gguf_{nullptr, gguf_free};
    GgmlPointer tensors_{nullptr, ggml_free};
    std::optional<Error> wrong_;
};

Result<FrozenModel> FrozenModel::open(const std::filesystem::path& file) {
    return FrozenReader(file).read();
}

}  // namespace molly::train
