#include "engine/internal/model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <mutex>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/internal/weight_pages.h"

namespace molly::engine {
namespace {

void forward_log(ggml_log_level level, const char* text, void* /*unused*/) {
    if (!log_enabled(LogLevel::debug)) return;
    std::string_view line(text);
    while (line.ends_with('\n'))
        line.remove_suffix(1);
    log_event(LogLevel::debug, "llama", {{"level", static_cast<int>(level)}, {"text", line}});
}

Result<void> check_file(const std::filesystem::path& file) {
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(file, error);
    std::ifstream stream(file, std::ios::binary);
    if (error || !stream) {
        return fail(
            Error(ErrorCode::not_found, fmt::format("cannot read the model file {}", file.string()))
                .italian(fmt::format("impossibile leggere il file del modello {}", file.string())));
    }
    std::array<char, 4> magic{};
    stream.read(magic.data(), magic.size());
    if (std::string_view(magic.data(), magic.size()) != "GGUF") {
        return fail(ErrorCode::corrupt,
                    fmt::format("{} is not a GGUF model; import or pull one", file.string()));
    }
    if (bytes > memory_available()) {
        return fail(ErrorCode::exhausted,
                    fmt::format("the model needs {} MiB of memory and {} MiB are free; close "
                                "something or use a smaller model",
                                bytes >> 20U, memory_available() >> 20U));
    }
    return {};
}

std::string spell(const llama_vocab* vocabulary, Token token) {
    std::string piece(32, '\0');
    for (;;) {
        const int length = llama_token_to_piece(vocabulary, token, piece.data(),
                                                static_cast<std::int32_t>(piece.size()), 0, true);
        if (length >= 0) {
            piece.resize(static_cast<std::size_t>(length));
            return piece;
        }
        piece.resize(static_cast<std::size_t>(-length));
    }
}

}  // namespace

std::uint64_t memory_available() {
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::uint64_t kilobytes = 0;
    std::string unit;
    while (file >> name >> kilobytes >> unit) {
        if (name == "MemAvailable:") return kilobytes * 1024;
    }
    return std::numeric_limits<std::uint64_t>::max();
}

Result<void> load_backends(const std::filesystem::path& folder) {
    static std::once_flag once;
    std::call_once(once, [&] {
        llama_log_set(forward_log, nullptr);
        ggml_backend_load_all_from_path(folder.c_str());
        llama_backend_init();
    });
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr) {
        return fail(ErrorCode::unsupported,
                    fmt::format("no ggml backend in {} runs on this processor; run tools/setup",
                                folder.string()));
    }
    return {};
}

Result<std::unique_ptr<Model>> Model::load(const std::filesystem::path& file) {
    TRY_DO(check_file(file));
    llama_model_params params = llama_model_default_params();
    params.load_mode = LLAMA_LOAD_MODE_NONE;  // without mmap decoding is 23 to 68% faster
    params.check_tensors = true;              // NaN weights are a damaged file
    llama_model* loaded = nullptr;
    try {
        loaded = llama_model_load_from_file(file.c_str(), params);
    } catch (const std::exception&) {
        loaded = nullptr;
    }
    if (loaded == nullptr) {
        return fail(
            Error(ErrorCode::corrupt,
                  fmt::format("llama.cpp cannot load {}: damaged, or an architecture it does not "
                              "know; pull the model again or try another one",
                              file.string()))
                .italian(fmt::format("llama.cpp non riesce a caricare {}: danneggiato, oppure di "
                                     "un'architettura sconosciuta",
                                     file.string())));
    }
    std::unique_ptr<Model> model(new Model(loaded));
    model->describe(file);
    log_event(LogLevel::debug, "weights_on_huge_pages",
              {{"mib", static_cast<std::int64_t>(use_huge_pages(*loaded) >> 20U)}});
    return model;
}

Model::Model(llama_model* model) : model_(model), vocabulary_(llama_model_get_vocab(model)) {
    const int count = llama_vocab_n_tokens(vocabulary_);
    pieces_.reserve(static_cast<std::size_t>(count));
    for (Token token = 0; token < count; ++token)
        pieces_.push_back(spell(vocabulary_, token));
}

std::string Model::meta(const char* key) const {
    std::array<char, 512> value{};
    const int length = llama_model_meta_val_str(model_.get(), key, value.data(), value.size());
    return length < 0 ? std::string() : std::string(value.data());
}

float Model::recommended(llama_model_meta_key key, float otherwise) const {
    const std::string text = meta(llama_model_meta_key_str(key));
    float value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return !text.empty() && error == std::errc() ? value : otherwise;
}

std::uint64_t Model::cache_bytes_per_token() const noexcept {
    const auto heads = static_cast<std::uint64_t>(std::max(1, llama_model_n_head(model_.get())));
    const auto cached = static_cast<std::uint64_t>(llama_model_n_head_kv(model_.get()));
    const auto width = static_cast<std::uint64_t>(llama_model_n_embd(model_.get())) / heads;
    constexpr std::uint64_t key_and_value_bytes = 4;
    return description_.layers * cached * width * key_and_value_bytes;
}

void Model::describe(const std::filesystem::path& file) {
    description_.name = meta("general.name");
    if (description_.name.empty()) description_.name = file.stem().string();
    description_.architecture = meta("general.architecture");
    description_.quantization = llama_ftype_name(llama_model_ftype(model_.get()));
    description_.parameters = llama_model_n_params(model_.get());
    description_.file_bytes = std::filesystem::file_size(file);
    description_.context_tokens_max =
        static_cast<std::uint32_t>(llama_model_n_ctx_train(model_.get()));
    description_.embed = static_cast<std::uint32_t>(llama_model_n_embd_out(model_.get()));
    description_.layers = static_cast<std::uint32_t>(llama_model_n_layer(model_.get()));
    description_.chat_template = llama_model_chat_template(model_.get(), nullptr) != nullptr;
}

Result<std::vector<Token>> Model::tokenize(std::string_view text, bool add_special) const {
    constexpr std::size_t text_bytes_max = 64U << 20U;
    if (text.size() > text_bytes_max) {
        return fail(ErrorCode::too_large, "the prompt is larger than 64 MiB; send less");
    }
    std::vector<Token> tokens(text.size() + 16);
    const int count =
        llama_tokenize(vocabulary_, text.data(), static_cast<std::int32_t>(text.size()),
                       tokens.data(), static_cast<std::int32_t>(tokens.size()), add_special, true);
    if (count < 0) return fail(ErrorCode::internal, "the vocabulary could not tokenize the prompt");
    tokens.resize(static_cast<std::size_t>(count));
    return tokens;
}

ContextPtr new_context(const Model& model, const ContextShape& shape) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = shape.context_tokens * shape.sequences;
    params.n_batch = shape.step_tokens;
    params.n_ubatch = shape.step_tokens;
    params.n_seq_max = shape.sequences;
    params.n_threads = static_cast<std::int32_t>(shape.threads);
    params.n_threads_batch = static_cast<std::int32_t>(shape.threads);
    params.kv_unified = false;
    params.no_perf = true;
    ContextPtr context(llama_init_from_model(model.handle(), params),
                       ContextDeleter{shape.kept_threads});
    if (context && shape.kept_threads) shape.kept_threads->attach(*context);
    return context && llama_get_memory(context.get()) != nullptr ? std::move(context) : nullptr;
}

}  // namespace molly::engine
