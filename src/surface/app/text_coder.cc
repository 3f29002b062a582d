#include "app/text_coder.h"

#include "models/gguf.h"

namespace molly::app {
namespace {

domain::Role role_of(const std::string& role) {
    if (role == "system") return domain::Role::system;
    if (role == "assistant") return domain::Role::assistant;
    return role == "tool" ? domain::Role::tool : domain::Role::user;
}

}  // namespace

Result<std::unique_ptr<ModelCoder>> ModelCoder::open(const std::filesystem::path& model) {
    TRY(auto vocabulary, engine::Vocabulary::open(model));
    TRY(const models::Gguf gguf, models::read_gguf(model));
    TRY(std::string fingerprint, models::tokenizer_hash(model, gguf));
    return std::unique_ptr<ModelCoder>(
        new ModelCoder(std::move(vocabulary), std::move(fingerprint)));
}

Result<std::vector<train::Token>> ModelCoder::encode(const std::string& text, bool special) {
    return vocabulary_->encode(text, special);
}

Result<std::string> ModelCoder::render(std::span<const train::Turn> turns, bool open) {
    std::vector<domain::Message> messages;
    for (const train::Turn& turn : turns)
        messages.push_back(domain::text_message(role_of(turn.role), turn.text));
    return vocabulary_->render(messages, open);
}

train::Token ModelCoder::end_of_answer() const {
    return vocabulary_->end();
}

}  // namespace molly::app
