#pragma once
// GGUF files as the trainer writes them: vocabularies and whole models of the llama architecture,
// for llama.cpp and Molly's engine.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/internal/weights.h"
#include "train/shape.h"
#include "train/tokenizer.h"

namespace molly::train {

enum class WeightType : std::uint8_t { f32, f16, q8_0 };

/// What a model file says about itself, besides its shape.
struct ModelCard {
    std::string name;
    std::string description;
    std::string license;
    std::vector<std::string> languages = {"it", "en"};
};

struct GgufVocabulary {
    std::vector<std::string> bytes;
    std::vector<std::pair<std::string, std::string>> merges;
    std::size_t special_from = 0;
};

/// Writes a file that holds a vocabulary and no weights, whole or not at all. Errors: unavailable.
Result<void> write_gguf_vocabulary(const std::filesystem::path& file, const Tokenizer& tokenizer);
/// Errors: not_found, corrupt, unsupported.
Result<GgufVocabulary> read_gguf_vocabulary(const std::filesystem::path& file);

/// Writes a model that llama.cpp loads, whole or not at all; norms stay f32. Errors: unavailable,
/// invalid_request (a width that q8_0's blocks of 32 do not divide).
Result<void> write_gguf_model(const std::filesystem::path& file, const Shape& shape,
                              std::span<const float> weights, const Tokenizer& tokenizer,
                              WeightType type, const ModelCard& card);

/// The same with another file's vocabulary, template and everything else that it says about itself.
/// Errors: as write_gguf_model; not_found, corrupt (the other file).
Result<void> write_gguf_model_like(const std::filesystem::path& other,
                                   const std::filesystem::path& file, const Shape& shape,
                                   std::span<const float> weights, WeightType type,
                                   const ModelCard& card);

}  // namespace molly::train
