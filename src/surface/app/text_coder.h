#pragma once
// The vocabulary and chat template of a GGUF model, as the trainer wants them.
#include <filesystem>
#include <memory>

#include "base/result.h"
#include "engine/vocabulary.h"
#include "train/examples.h"

namespace molly::app {

class ModelCoder final : public train::TextCoder {
public:
    /// Errors: not_found, corrupt, unavailable.
    static Result<std::unique_ptr<ModelCoder>> open(const std::filesystem::path& model);

    Result<std::vector<train::Token>> encode(const std::string& text, bool special) override;
    std::vector<train::Token> start() const override { return vocabulary_->start(); }
    Result<std::string> render(std::span<const train::Turn> turns, bool open) override;
    train::Token end_of_answer() const override;
    std::string fingerprint() const override { return fingerprint_; }

private:
    ModelCoder(std::unique_ptr<engine::Vocabulary> vocabulary, std::string fingerprint)
        : vocabulary_(std::move(vocabulary)), fingerprint_(std::move(fingerprint)) {}

    std::unique_ptr<engine::Vocabulary> vocabulary_;
    std::string fingerprint_;
};

}  // namespace molly::app
