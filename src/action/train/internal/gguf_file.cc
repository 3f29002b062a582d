#include "train/internal/gguf_file.h"

#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>

#include "base/utf8.h"
#include "train/internal/whole_file.h"

namespace molly::train {
namespace {

constexpr std::string_view chat_template =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}";

using GgufPointer = std::unique_ptr<gguf_context, decltype(&gguf_free)>;
using GgmlPointer = std::unique_ptr<ggml_context, decltype(&ggml_free)>;

/// GPT-2's spelling: bytes that print stand for themselves, the others for U+0100 and up.
const std::array<std::string, 256>& byte_spellings() {
    static const std::array<std::string, 256> table = [] {
        std::array<std::string, 256> made;
        unsigned next = 256;
        for (unsigned byte = 0; byte < 256; ++byte) {
            const bool prints =
                (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
            const unsigned code = prints ? byte : next++;
            if (code < 0x80) {
                made[byte] = std::string(1, static_cast<char>(code));
            } else {
                made[byte] = {static_cast<char>(0xC0U | (code >> 6U)),
                              static_cast<char>(0x80U | (code & 0x3FU))};
            }
        }
        return made;
    }();
    return table;
}

std::string spell(std::string_view bytes) {
    std::string out;
    for (const char byte : bytes)
        out += byte_spellings()[static_cast<unsigned char>(byte)];
    return out;
}

/// The bytes of a spelling; false when it is none.
bool unspell(std::string_view text, std::string& out) {
    static const std::unordered_map<std::string, char> back = [] {
        std::unordered_map<std::string, char> made;
        for (unsigned byte = 0; byte < 256; ++byte)
            made.emplace(byte_spellings()[byte], static_cast<char>(byte));
        return made;
    }();
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const auto found = back.find(std::string(text.substr(0, length)));
        if (length == 0 || found == back.end()) return false;
        out += found->second;
        text.remove_prefix(length);
    }
    return true;
}

void set_vocabulary(gguf_context* file, const Tokenizer& tokenizer) {
    std::vector<std::string> texts;
    std::vector<std::int32_t> types;
    for (Token id = 0; id < static_cast<Token>(tokenizer.size()); ++id) {
        const bool special = tokenizer.special(id);
        texts.push_back(special ? tokenizer.bytes(id) : spell(tokenizer.bytes(id)));
        constexpr std::int32_t normal = 1;
        constexpr std::int32_t control = 3;
        types.push_back(special ? control : normal);
    }
    std::vector<std::string> merges;
    for (const auto& [left, right] : tokenizer.merges())
        merges.push_back(spell(tokenizer.bytes(left)) + " " + spell(tokenizer.bytes(right)));
    const auto set_texts = [file](const char* key, const std::vector<std::string>& all) {
        std::vector<const char*> pointers;
        for (const std::string& text : all)
            pointers.push_back(text.c_str());
        gguf_set_arr_str(file, key, pointers.data(), pointers.size());
    };
    gguf_set_val_str(file, "tokenizer.ggml.model", "gpt2");
    gguf_set_val_str(file, "tokenizer.ggml.pre", "qwen2");
    set_texts("tokenizer.ggml.tokens", texts);
    gguf_set_arr_data(file, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(),
                      types.size());
    set_texts("tokenizer.ggml.merges", merges);
    const auto id = [&tokenizer](std::string_view name) {
        return static_cast<std::uint32_t>(tokenizer.find_special(name));
    };
    gguf_set_val_u32(file, "tokenizer.ggml.bos_token_id", id(end_of_text));
    gguf_set_val_u32(file, "tokenizer.ggml.eos_token_id", id(turn_end));
    gguf_set_val_u32(file, "tokenizer.ggml.padding_token_id", id(end_of_text));
    gguf_set_val_bool(file, "tokenizer.ggml.add_bos_token", false);
    gguf_set_val_bool(file, "tokenizer.ggml.add_eos_token", false);
    gguf_set_val_str(file, "tokenizer.chat_template", std::string(chat_template).c_str());
}

void set_shape(gguf_context* file, const Shape& shape) {
    gguf_set_val_str(file, "general.architecture", "llama");
    gguf_set_val_u32(file, "llama.context_length", shape.context);
    gguf_set_val_u32(file, "llama.embedding_length", shape.embed);
    gguf_set_val_u32(file, "llama.block_count", shape.layers);
    gguf_set_val_u32(file, "llama.feed_forward_length", shape.feed_forward);
    gguf_set_val_u32(file, "llama.attention.head_count", shape.heads);
    gguf_set_val_u32(file, "llama.attention.head_count_kv", shape.key_heads);
    gguf_set_val_f32(file, "llama.attention.layer_norm_rms_epsilon", shape.norm_epsilon);
    gguf_set_val_u32(file, "llama.rope.dimension_count", shape.head_width());
    gguf_set_val_f32(file, "llama.rope.freq_base", shape.rope_base);
    gguf_set_val_u32(file, "llama.vocab_size", shape.vocabulary);
}

void set_card(gguf_context* file, const ModelCard& card) {
    gguf_set_val_str(file, "general.type", "model");
    gguf_set_val_str(file, "general.name", card.name.c_str());
    if (!card.description.empty())
        gguf_set_val_str(file, "general.description", card.description.c_str());
    if (!card.license.empty()) gguf_set_val_str(file, "general.license", card.license.c_str());
    if (card.languages.empty()) return;
    std::vector<const char*> languages;
    for (const std::string& language : card.languages)
        languages.push_back(language.c_str());
    gguf_set_arr_str(file, "general.languages", languages.data(), languages.size());
}

Result<void> write(gguf_context* file, const std::filesystem::path& path) {
    return write_whole(path, [&](const std::filesystem::path& temporary) {
        return gguf_write_to_file(file, temporary.c_str(), false);
    });
}

ggml_type type_of(WeightType type, const Tensor& tensor) {
    if (tensor.rows == 1 || type == WeightType::f32) return GGML_TYPE_F32;
    return type == WeightType::f16 ? GGML_TYPE_F16 : GGML_TYPE_Q8_0;
}

}  // namespace

Result<void> write_gguf_vocabulary(const std::filesystem::path& file, const Tokenizer& tokenizer) {
    const GgufPointer out(gguf_init_empty(), gguf_free);
    gguf_set_val_str(out.get(), "general.architecture", "llama");
    gguf_set_val_str(out.get(), "general.type", "vocabulary");
    set_vocabulary(out.get(), tokenizer);
    return write(out.get(), file);
}

Result<GgufVocabulary> read_gguf_vocabulary(const std::filesystem::path& file) {
    if (!std::filesystem::exists(file)) {
        return fail(
            Error(ErrorCode::not_found, fmt::format("there is no vocabulary {}", file.string()))
                .italian(fmt::format("il vocabolario {} non esiste", file.string())));
    }
    gguf_init_params params{};
    params.no_alloc = true;
    const GgufPointer in(gguf_init_from_file(file.c_str(), params), gguf_free);
    const auto damaged =
        fail(ErrorCode::corrupt, fmt::format("{} is damaged or no GGUF file", file.string()));
    if (in == nullptr) return damaged;
    const auto text = [&in](const char* key) {
        const auto id = gguf_find_key(in.get(), key);
        const bool there = id >= 0 && gguf_get_kv_type(in.get(), id) == GGUF_TYPE_STRING;
        return std::string(there ? gguf_get_val_str(in.get(), id) : "");
    };
    const auto tokens = gguf_find_key(in.get(), "tokenizer.ggml.tokens");
    const auto types = gguf_find_key(in.get(), "tokenizer.ggml.token_type");
    const auto merges = gguf_find_key(in.get(), "tokenizer.ggml.merges");
    if (text("tokenizer.ggml.model") != "gpt2" || text("tokenizer.ggml.pre") != "qwen2" ||
        tokens < 0 || types < 0 || merges < 0) {
        return fail(ErrorCode::unsupported,
                    fmt::format("{} has another kind of vocabulary than molly train tokenizer "
                                "makes",
                                file.string()));
    }
    const auto is_array_of = [&in](std::int64_t id, gguf_type type) {
        return gguf_get_kv_type(in.get(), id) == GGUF_TYPE_ARRAY &&
               gguf_get_arr_type(in.get(), id) == type;
    };
    if (!is_array_of(tokens, GGUF_TYPE_STRING) || !is_array_of(types, GGUF_TYPE_INT32) ||
        !is_array_of(merges, GGUF_TYPE_STRING) ||
        gguf_get_arr_n(in.get(), types) != gguf_get_arr_n(in.get(), tokens)) {
        return damaged;
    }
    GgufVocabulary out;
    const auto* kinds = static_cast<const std::int32_t*>(gguf_get_arr_data(in.get(), types));
    const std::size_t count = gguf_get_arr_n(in.get(), tokens);
    for (std::size_t i = 0; i < count; ++i) {
        const std::string spelled = gguf_get_arr_str(in.get(), tokens, i);
        std::string bytes;
        if (kinds[i] != 1) {
            out.bytes.push_back(spelled);
        } else if (unspell(spelled, bytes) && out.special_from == i) {
            out.bytes.push_back(std::move(bytes));
            out.special_from = i + 1;
        } else {
            return damaged;
        }
    }
    for (std::size_t i = 0; i < gguf_get_arr_n(in.get(), merges); ++i) {
        const std::string_view rule = gguf_get_arr_str(in.get(), merges, i);
        const std::size_t gap = rule.find(' ');
        std::pair<std::string, std::string> merge;
        if (gap == std::string_view::npos || !unspell(rule.substr(0, gap), merge.first) ||
            !unspell(rule.substr(gap + 1), merge.second)) {
            return damaged;
        }
        out.merges.push_back(std::move(merge));
    }
    return out;
}

namespace {

Result<void> write_weights(gguf_context* out, const std::filesystem::path& file, const Shape& shape,
                           std::span<const float> weights, WeightType type) {
    if (type == WeightType::q8_0 && (shape.embed % 32 != 0 || shape.feed_forward % 32 != 0)) {
        return fail(ErrorCode::invalid_request,
                    "q8_0 needs widths that 32 divides; export f16 instead");
    }
    constexpr std::uint32_t file_types[] = {0, 1, 7};  // llama_ftype: ALL_F32, MOSTLY_F16, Q8_0
    gguf_set_val_u32(out, "general.file_type", file_types[static_cast<std::size_t>(type)]);
    gguf_set_val_u32(out, "general.quantization_version", 2);
    const Layout layout(shape);
    ggml_init_params params{};
    params.mem_size = layout.size * sizeof(float) + layout.tensors.size() * 1024 + (1U << 20U);
    const GgmlPointer tensors(ggml_init(params), ggml_free);
    for (const Tensor& tensor : layout.tensors) {
        const auto columns = static_cast<std::int64_t>(tensor.columns);
        const auto rows = static_cast<std::int64_t>(tensor.rows);
        const ggml_type kind = type_of(type, tensor);
        ggml_tensor* made = rows == 1 ? ggml_new_tensor_1d(tensors.get(), kind, columns)
                                      : ggml_new_tensor_2d(tensors.get(), kind, columns, rows);
        ggml_set_name(made, tensor.name.c_str());
        const float* from = weights.data() + tensor.offset;
        if (kind == GGML_TYPE_F32) {
            std::memcpy(made->data, from, ggml_nbytes(made));
        } else {
            ggml_quantize_chunk(kind, from, made->data, 0, rows, columns, nullptr);
        }
        gguf_add_tensor(out, made);
    }
    return write(out, file);
}

}  // namespace

Result<void> write_gguf_model(const std::filesystem::path& file, const Shape& shape,
                              std::span<const float> weights, const Tokenizer& tokenizer,
                              WeightType type, const ModelCard& card) {
    const GgufPointer out(gguf_init_empty(), gguf_free);
    set_shape(out.get(), shape);
    set_card(out.get(), card);
    set_vocabulary(out.get(), tokenizer);
    return write_weights(out.get(), file, shape, weights, type);
}

Result<void> write_gguf_model_like(const std::filesystem::path& other,
                                   const std::filesystem::path& file, const Shape& shape,
                                   std::span<const float> weights, WeightType type,
                                   const ModelCard& card) {
    gguf_init_params params{};
    params.no_alloc = true;
    const GgufPointer in(gguf_init_from_file(other.c_str(), params), gguf_free);
    if (in == nullptr) {
        return fail(ErrorCode::corrupt,
                    fmt::format("{} is damaged or no GGUF file", other.string()));
    }
    const GgufPointer out(gguf_init_empty(), gguf_free);
    gguf_set_kv(out.get(), in.get());
    set_card(out.get(), card);
    return write_weights(out.get(), file, shape, weights, type);
}

}  // namespace molly::train
