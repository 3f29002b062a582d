// Writes a tiny chat model whose words are random: a real llama-architecture GGUF for tests and
// first runs.
//
//   make_test_model OUT.gguf [SEED]
//
// The output head knows which kind of token may follow which (article, noun, verb, ... full stop,
// end of turn; quotes, colons and brackets for JSON), so that answers are readable, end by
// themselves, and constrained JSON closes. Which word of a kind is chosen depends on random weights
// and on the whole prompt. One attention head finds "</tools>" and makes the model call a tool;
// another finds "</tool_response>" and stops that; a third weighs full stops against turns, so that
// an answer has a handful of sentences. The same seed gives the same file, byte for byte.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ggml.h"
#include "gguf.h"
#include "test_model_vocabulary.h"

namespace molly::test_model {
namespace {

constexpr int embed = 96;
constexpr int heads = 6;
constexpr int head_width = embed / heads;
constexpr int feed_forward = 128;
constexpr int layers = 2;
constexpr std::uint32_t context_tokens = 8192;
constexpr int flag_axis = kinds;           // raised when a tool should be called
constexpr int count_axis = kinds + 1;      // falls as the text gains full stops
constexpr int free_axis = count_axis + 1;  // the first axis that carries a word's identity
constexpr float kind_strength = 6.0F;
constexpr float want_strength = 1.5F;  // above what random weights can overrule

/// splitmix64; sums of uniforms stand in for a normal, so that no maths library can change the
/// bytes.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    float normal(float deviation) {
        float sum = 0;
        for (int i = 0; i < 12; ++i) {
            sum += uniform();
        }
        return (sum - 6.0F) * deviation;
    }

private:
    float uniform() {
        state_ += 0x9E3779B97F4A7C15ULL;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
        mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
        return static_cast<float>((mixed ^ (mixed >> 31U)) >> 40U) * 0x1p-24F;
    }
    std::uint64_t state_;
};

using Follows = std::array<std::array<float, kinds>, kinds>;

/// What every kind wants next, before the particular wishes.
void set_defaults(Follows& want) {
    for (int before = 0; before < kinds; ++before) {
        auto& row = want[static_cast<std::size_t>(before)];
        row[other] = row[value] = row[literal] = -6;
        row[space] = row[newline] = row[byte] = -10;
        row[control] = row[turn] = -30;
        row[tool_call] = row[tool_call_end] = row[tools_end] = row[tool_response_end] = -14;
        row[italian_again] = row[english_again] = -6;
        const bool may_start = before <= newline || before == space;
        row[italian] = row[english] = may_start ? 16 : -6;
    }
    for (int place = 0; place + 1 < places; ++place) {
        for (const int start : {int{italian}, int{english}}) {
            want[static_cast<std::size_t>(start + place)]
                [static_cast<std::size_t>(start + place + 1)] = 18;
        }
    }
    want[italian_again][italian + 1] = want[english_again][english + 1] = 18;
    want[italian + places - 1][full_stop] = want[english + places - 1][full_stop] = 22;
}

struct Wish {
    Kind before;
    Kind after;
    float strength;
};

constexpr std::array wishes = {
    Wish{full_stop, end_of_turn, 42},
    Wish{full_stop, quote, 10},
    Wish{open_quote, value, 24},
    Wish{value, quote, 26},
    Wish{full_stop, italian_again, 20},
    Wish{full_stop, english_again, 20},
    Wish{newline, open_brace, 9},
    Wish{newline, tool_call_end, 5},
    Wish{quote, colon, 24},
    Wish{quote, close_brace, 23},
    Wish{quote, close_bracket, 23},
    Wish{quote, end_of_turn, 22},
    Wish{quote, comma, 20},
    Wish{colon, open_quote, 22},
    Wish{colon, digit, 18},
    Wish{colon, literal, 18},
    Wish{colon, open_brace, 16},
    Wish{colon, open_bracket, 15},
    Wish{open_brace, open_quote, 23},
    Wish{open_brace, close_brace, 15},
    Wish{comma, open_quote, 22},
    Wish{comma, digit, 18},
    Wish{comma, open_brace, 16},
    Wish{close_brace, end_of_turn, 26},
    Wish{close_brace, tool_call_end, 24},
    Wish{close_brace, close_brace, 20},
    Wish{close_brace, close_bracket, 20},
    Wish{close_brace, comma, 17},
    Wish{open_bracket, open_quote, 22},
    Wish{open_bracket, digit, 18},
    Wish{open_bracket, open_brace, 17},
    Wish{open_bracket, close_bracket, 15},
    Wish{close_bracket, close_brace, 24},
    Wish{close_bracket, end_of_turn, 23},
    Wish{close_bracket, comma, 18},
    Wish{digit, close_brace, 22},
    Wish{digit, close_bracket, 22},
    Wish{digit, end_of_turn, 20},
    Wish{digit, comma, 19},
    Wish{digit, digit, 15},
    Wish{literal, close_brace, 24},
    Wish{literal, close_bracket, 24},
    Wish{literal, end_of_turn, 23},
    Wish{literal, comma, 21},
    Wish{tool_call, newline, 26},
    Wish{tool_call_end, end_of_turn, 28},
};

/// How much each kind is wanted after each other kind, in logits.
Follows make_grammar() {
    Follows want{};
    set_defaults(want);
    for (const auto& wish : wishes) {
        want[static_cast<std::size_t>(wish.before)][static_cast<std::size_t>(wish.after)] =
            wish.strength;
    }
    return want;
}

struct Tensor {
    std::string name;
    int columns;  // input width
    int rows;     // output width; 0 for a vector
    std::vector<float> values;

    float& at(int row, int column) {
        return values[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                      static_cast<std::size_t>(column)];
    }
};

Tensor make_tensor(std::string name, int columns, int rows) {
    const auto count =
        static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows == 0 ? 1 : rows);
    return {std::move(name), columns, rows, std::vector<float>(count, rows == 0 ? 1.0F : 0.0F)};
}

void fill(Tensor& tensor, Random& random, float deviation) {
    for (float& value : tensor.values) {
        value = random.normal(deviation);
    }
}

/// Layers may only write where identity lives, so that they cannot disturb what kind a token is.
void keep_to_identity(Tensor& tensor) {
    for (int row = 0; row < free_axis; ++row) {
        for (int column = 0; column < tensor.columns; ++column) {
            tensor.at(row, column) = 0;
        }
    }
}

enum Part : std::size_t {
    attn_norm,
    attn_q,
    attn_k,
    attn_v,
    attn_output,
    ffn_norm,
    ffn_gate,
    ffn_up,
    ffn_down
};

/// Makes `head` look from tokens of kind `from` at those of the kinds `at`, and write on `axis` how
/// much of what it saw was of the first of them. The focus is how sharply: a sharp one sees a
/// single token, a soft one counts.
void look(int head, Kind from, std::initializer_list<Kind> at, int axis, float strength,
          float focus, std::vector<Tensor>& layer) {
    const int first = head * head_width;
    const int steady = first + head_width - 2;  // the axis that position turns least
    for (int row = first; row < first + head_width; ++row) {
        for (int column = 0; column < embed; ++column) {
            layer[attn_q].at(row, column) = layer[attn_k].at(row, column) =
                layer[attn_v].at(row, column) = 0;
            layer[attn_output].at(column, row) = 0;
        }
    }
    layer[attn_q].at(steady, from) = focus / kind_strength;
    for (const Kind kind : at) {
        layer[attn_k].at(steady, kind) = focus / kind_strength;
    }
    layer[attn_v].at(first, *at.begin()) = 1.0F / kind_strength;
    layer[attn_output].at(axis, first) = strength;
}

std::vector<Tensor> make_layer(int number, Random& random) {
    const std::string prefix = "blk." + std::to_string(number) + ".";
    std::vector<Tensor> layer;
    layer.push_back(make_tensor(prefix + "attn_norm.weight", embed, 0));
    for (const auto* name :
         {"attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight"}) {
        layer.push_back(make_tensor(prefix + name, embed, embed));
    }
    layer.push_back(make_tensor(prefix + "ffn_norm.weight", embed, 0));
    layer.push_back(make_tensor(prefix + "ffn_gate.weight", embed, feed_forward));
    layer.push_back(make_tensor(prefix + "ffn_up.weight", embed, feed_forward));
    layer.push_back(make_tensor(prefix + "ffn_down.weight", feed_forward, embed));
    fill(layer[attn_q], random, 0.18F);
    fill(layer[attn_k], random, 0.18F);
    fill(layer[attn_v], random, 0.1F);
    fill(layer[attn_output], random, 0.2F);
    for (const Part part : {ffn_gate, ffn_up, ffn_down}) {
        fill(layer[part], random, 0.12F);
    }
    keep_to_identity(layer[attn_output]);
    keep_to_identity(layer[ffn_down]);
    if (number == 0) {
        look(0, newline, {tools_end}, flag_axis, 8, 12, layer);
        look(1, newline, {tool_response_end}, flag_axis, -16, 12, layer);
        look(2, full_stop, {turn, full_stop}, count_axis, 6, 6, layer);
    }
    return layer;
}

std::vector<Tensor> make_weights(const Vocabulary& vocabulary, std::uint64_t seed) {
    Random random(seed);
    const Follows want = make_grammar();
    const int tokens = static_cast<int>(vocabulary.text.size());
    auto in = make_tensor("token_embd.weight", embed, tokens);
    auto out = make_tensor("output.weight", embed, tokens);
    for (int token = 0; token < tokens; ++token) {
        const Kind kind = vocabulary.kind[static_cast<std::size_t>(token)];
        in.at(token, kind) = kind_strength;
        for (int axis = 0; axis < kinds; ++axis) {
            out.at(token, axis) =
                want_strength *
                want[static_cast<std::size_t>(axis)][static_cast<std::size_t>(kind)] /
                kind_strength;
        }
        out.at(token, flag_axis) = kind == tool_call ? 8.0F : 0.0F;
        out.at(token, count_axis) = kind == end_of_turn ? -9.0F : 0.0F;
        for (int axis = free_axis; axis < embed; ++axis) {
            in.at(token, axis) = random.normal(1.0F);
            out.at(token, axis) = random.normal(0.3F);
        }
    }
    std::vector<Tensor> tensors;
    tensors.push_back(std::move(in));
    for (int number = 0; number < layers; ++number) {
        for (auto& tensor : make_layer(number, random)) {
            tensors.push_back(std::move(tensor));
        }
    }
    tensors.push_back(make_tensor("output_norm.weight", embed, 0));
    tensors.push_back(std::move(out));
    return tensors;
}

void set_metadata(gguf_context* file, const Vocabulary& vocabulary) {
    gguf_set_val_str(file, "general.architecture", "llama");
    gguf_set_val_str(file, "general.name", "molly-test");
    gguf_set_val_str(file, "general.description",
                     "A generated test model: its weights are random and its words mean nothing.");
    gguf_set_val_str(file, "general.license", "apache-2.0");
    gguf_set_val_u32(file, "general.file_type", 0);
    gguf_set_val_u32(file, "llama.context_length", context_tokens);
    gguf_set_val_u32(file, "llama.embedding_length", embed);
    gguf_set_val_u32(file, "llama.block_count", layers);
    gguf_set_val_u32(file, "llama.feed_forward_length", feed_forward);
    gguf_set_val_u32(file, "llama.attention.head_count", heads);
    gguf_set_val_u32(file, "llama.attention.head_count_kv", heads);
    gguf_set_val_f32(file, "llama.attention.layer_norm_rms_epsilon", 1e-5F);
    gguf_set_val_u32(file, "llama.rope.dimension_count", head_width);
    gguf_set_val_f32(file, "llama.rope.freq_base", 1e8F);
    gguf_set_val_u32(file, "llama.vocab_size", static_cast<std::uint32_t>(vocabulary.text.size()));
    gguf_set_val_str(file, "tokenizer.ggml.model", "llama");
    gguf_set_val_str(file, "tokenizer.ggml.pre", "default");
    std::vector<const char*> texts;
    for (const auto& text : vocabulary.text) {
        texts.push_back(text.c_str());
    }
    gguf_set_arr_str(file, "tokenizer.ggml.tokens", texts.data(), texts.size());
    gguf_set_arr_data(file, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, vocabulary.scores.data(),
                      vocabulary.scores.size());
    gguf_set_arr_data(file, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, vocabulary.types.data(),
                      vocabulary.types.size());
    const auto id = [&](const char* text) {
        return static_cast<std::uint32_t>(vocabulary.index.at(text));
    };
    gguf_set_val_u32(file, "tokenizer.ggml.unknown_token_id", id("<unk>"));
    gguf_set_val_u32(file, "tokenizer.ggml.bos_token_id", id("<s>"));
    gguf_set_val_u32(file, "tokenizer.ggml.eos_token_id", id("<|im_end|>"));
    gguf_set_val_bool(file, "tokenizer.ggml.add_bos_token", false);
    gguf_set_val_bool(file, "tokenizer.ggml.add_eos_token", false);
    gguf_set_val_bool(file, "tokenizer.ggml.add_space_prefix", false);
    gguf_set_val_str(file, "tokenizer.chat_template", std::string(chat_template).c_str());
}

}  // namespace

bool write_model(const char* path, std::uint64_t seed) {
    const Vocabulary vocabulary = make_vocabulary();
    auto weights = make_weights(vocabulary, seed);
    ggml_init_params params{};
    params.mem_size = std::size_t{32} << 20U;
    ggml_context* tensors = ggml_init(params);
    gguf_context* file = gguf_init_empty();
    set_metadata(file, vocabulary);
    for (auto& weight : weights) {
        const bool half = weight.name == "token_embd.weight" || weight.name == "output.weight";
        ggml_tensor* tensor =
            weight.rows == 0 ? ggml_new_tensor_1d(tensors, GGML_TYPE_F32, weight.columns)
                             : ggml_new_tensor_2d(tensors, half ? GGML_TYPE_F16 : GGML_TYPE_F32,
                                                  weight.columns, weight.rows);
        ggml_set_name(tensor, weight.name.c_str());
        if (half) {
            ggml_fp32_to_fp16_row(weight.values.data(), static_cast<ggml_fp16_t*>(tensor->data),
                                  static_cast<std::int64_t>(weight.values.size()));
        } else {
            std::memcpy(tensor->data, weight.values.data(), ggml_nbytes(tensor));
        }
        gguf_add_tensor(file, tensor);
    }
    const bool written = gguf_write_to_file(file, path, false);
    gguf_free(file);
    ggml_free(tensors);
    return written;
}

}  // namespace molly::test_model

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: make_test_model OUT.gguf [SEED]\n", stderr);
        return 2;
    }
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    if (!molly::test_model::write_model(argv[1], seed)) {
        std::fprintf(stderr, "make_test_model: cannot write %s\n", argv[1]);
        return 1;
    }
    return 0;
}
