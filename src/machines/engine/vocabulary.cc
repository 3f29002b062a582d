#include "engine/vocabulary.h"

#include <exception>
#include <fstream>
#include <utility>

#include <chat.h>
#include <fmt/format.h>
#include <llama.h>

#include "engine/internal/chat_format.h"
#include "engine/internal/model.h"

namespace molly::engine {
namespace {

using ModelPointer = std::unique_ptr<llama_model, ModelDeleter>;

Result<ModelPointer> load_words(const std::filesystem::path& file) {
    if (!std::ifstream(file, std::ios::binary)) {
        return fail(
            Error(ErrorCode::not_found, fmt::format("cannot read the model file {}", file.string()))
                .italian(fmt::format("impossibile leggere il file del modello {}", file.string())));
    }
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    ModelPointer model;
    try {
        model.reset(llama_model_load_from_file(file.c_str(), params));
    } catch (const std::exception&) {
        model.reset();
    }
    if (model != nullptr) return model;
    return fail(
        Error(ErrorCode::corrupt,
              fmt::format("llama.cpp finds no vocabulary in {}; name a GGUF model", file.string()))
            .italian(fmt::format("llama.cpp non trova un vocabolario in {}; serve un "
                                 "modello GGUF",
                                 file.string())));
}

class LlamaVocabulary final : public Vocabulary {
public:
    LlamaVocabulary(ModelPointer model, std::unique_ptr<ChatFormat> format,
                    common_chat_templates_ptr templates)
        : model_(std::move(model)),
          vocabulary_(llama_model_get_vocab(model_.get())),
          format_(std::move(format)),
          templates_(std::move(templates)) {}

    std::uint32_t size() const noexcept override {
        return static_cast<std::uint32_t>(llama_vocab_n_tokens(vocabulary_));
    }

    Result<std::vector<std::int32_t>> encode(std::string_view text, bool special) const override {
        constexpr std::size_t text_bytes_max = 64U << 20U;
        if (text.size() > text_bytes_max) {
            return fail(ErrorCode::too_large, "the text is larger than 64 MiB; give less");
        }
        std::vector<std::int32_t> tokens(text.size() + 16);
        const int count =
            llama_tokenize(vocabulary_, text.data(), static_cast<std::int32_t>(text.size()),
                           tokens.data(), static_cast<std::int32_t>(tokens.size()), false, special);
        if (count < 0) return fail(ErrorCode::internal, "the vocabulary could not split a text");
        tokens.resize(static_cast<std::size_t>(count));
        return tokens;
    }

    std::vector<std::int32_t> start() const override {
        if (!llama_vocab_get_add_bos(vocabulary_) || llama_vocab_bos(vocabulary_) < 0) return {};
        return {llama_vocab_bos(vocabulary_)};
    }

    std::int32_t end() const noexcept override {
        const std::int32_t turn = llama_vocab_eot(vocabulary_);
        return turn >= 0 ? turn : llama_vocab_eos(vocabulary_);
    }

    Result<std::string> render(const std::vector<domain::Message>& messages,
                               bool open) const override {
        if (format_ == nullptr) {
            return fail(Error(ErrorCode::unsupported,
                              "this model has no chat template; use prompts and completions, or "
                              "another model")
                            .italian("questo modello non ha un template di chat; servono prompt e "
                                     "completamenti, o un altro modello"));
        }
        if (!open) return close(messages);
        domain::Request request;
        request.messages = messages;
        TRY(const Prompt prompt, format_->render(request));
        return prompt.text;
    }

private:
    Result<std::string> close(const std::vector<domain::Message>& messages) const {
        common_chat_templates_inputs inputs;
        inputs.add_generation_prompt = false;
        for (const auto& message : messages) {
            common_chat_msg converted;
            converted.role = to_string(message.role);
            converted.content = text_of(message);
            inputs.messages.push_back(std::move(converted));
        }
        try {
            return common_chat_templates_apply(templates_.get(), inputs).prompt;
        } catch (const std::exception&) {
            // Its text may quote the messages, so it is not passed on.
            return fail(Error(ErrorCode::invalid_request,
                              "the model's chat template refuses these messages; check the order "
                              "of roles")
                            .italian("il template di chat del modello rifiuta questi messaggi; "
                                     "controllare l'ordine dei ruoli"));
        }
    }

    ModelPointer model_;
    const llama_vocab* vocabulary_;
    std::unique_ptr<ChatFormat> format_;
    common_chat_templates_ptr templates_;
};

}  // namespace

Result<std::unique_ptr<Vocabulary>> Vocabulary::open(const std::filesystem::path& model,
                                                     const std::filesystem::path& backends) {
    TRY_DO(
        load_backends(backends.empty() ? std::filesystem::path(MOLLY_LLAMA_LIBRARIES) : backends));
    TRY(ModelPointer loaded, load_words(model));
    std::unique_ptr<ChatFormat> format;
    common_chat_templates_ptr templates;
    if (llama_model_chat_template(loaded.get(), nullptr) != nullptr) {
        TRY(format, ChatFormat::make(loaded.get()));
        templates = common_chat_templates_init(loaded.get(), "");
    }
    return std::make_unique<LlamaVocabulary>(std::move(loaded), std::move(format),
                                             std::move(templates));
}

}  // namespace molly::engine
