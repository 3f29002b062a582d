#pragma once
// What llama.cpp says of the files that the trainer writes.
#include <filesystem>
#include <string>
#include <vector>

#include <ggml-backend.h>
#include <gtest/gtest.h>
#include <llama.h>

#include "train/internal/test_folder.h"
#include "train/tokenizer.h"

namespace molly::train {

/// A vocabulary of 512 tokens out of made-up words.
inline Tokenizer small_tokenizer() {
    const TestFolder folder;
    const std::string letters = "abcdefgilmnoprstuvz";
    std::string text;
    for (std::size_t i = 0; i < 20'000; ++i) {
        const std::size_t word = i * 37 % 900;
        text += {letters[word % 19], "aeiou"[word % 5], letters[word / 19 % 19],
                 "aeiou"[word / 7 % 5], ' '};
    }
    auto made = Tokenizer::train({folder.write("text.txt", text)}, 512);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
}

/// What llama.cpp itself makes of a model file and an adapter: logits of every token, [tokens,
/// vocabulary]. Empty when it refuses one of them.
inline std::vector<float> llama_logits(const std::filesystem::path& file,
                                       const std::vector<std::int32_t>& tokens,
                                       const std::filesystem::path& adapter = {}) {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    ggml_backend_load_all_from_path(MOLLY_LLAMA_LIBRARIES);
    llama_model* model = llama_model_load_from_file(file.c_str(), llama_model_default_params());
    if (model == nullptr) return {};
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 64;
    params.n_threads = params.n_threads_batch = 1;
    // Its flash attention rounds to half precision.
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = params.type_v = GGML_TYPE_F32;
    llama_context* context = llama_init_from_model(model, params);
    if (!adapter.empty()) {
        llama_adapter_lora* loaded = llama_adapter_lora_init(model, adapter.c_str());
        if (loaded == nullptr) return {};
        float scale = 1;
        if (llama_set_adapters_lora(context, &loaded, 1, &scale) != 0) return {};
    }
    llama_batch batch = llama_batch_init(static_cast<std::int32_t>(tokens.size()), 0, 1);
    batch.n_tokens = static_cast<std::int32_t>(tokens.size());
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        batch.token[t] = tokens[t];
        batch.pos[t] = static_cast<llama_pos>(t);
        batch.n_seq_id[t] = 1;
        batch.seq_id[t][0] = 0;
        batch.logits[t] = 1;
    }
    std::vector<float> out;
    const auto words = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)));
    if (llama_decode(context, batch) == 0) {
        for (std::size_t t = 0; t < tokens.size(); ++t) {
            const float* row = llama_get_logits_ith(context, static_cast<std::int32_t>(t));
            out.insert(out.end(), row, row + words);
        }
    }
    llama_batch_free(batch);
    llama_free(context);
    llama_model_free(model);
    return out;
}

}  // namespace molly::train
