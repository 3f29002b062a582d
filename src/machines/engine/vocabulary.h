#pragma once
// The text side of a GGUF model without its weights: what a trainer needs to see text as the engine
// will see it. Not for two threads at once.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/request.h"

namespace molly::engine {

class Vocabulary {
public:
    /// Reads a GGUF file; `backends` is the folder of the ggml backends, empty: as built. Errors:
    /// not_found, corrupt.
    static Result<std::unique_ptr<Vocabulary>> open(const std::filesystem::path& model,
                                                    const std::filesystem::path& backends = {});
    Vocabulary(const Vocabulary&) = delete;
    Vocabulary& operator=(const Vocabulary&) = delete;
    virtual ~Vocabulary() = default;

    virtual std::uint32_t size() const noexcept = 0;
    /// Tokens of text. `special`: names of special tokens in it mean those tokens. Errors:
    /// too_large.
    virtual Result<std::vector<std::int32_t>> encode(std::string_view text, bool special) const = 0;
    /// What the engine puts before every prompt; empty for most models.
    virtual std::vector<std::int32_t> start() const = 0;
    /// Ends an answer.
    virtual std::int32_t end() const noexcept = 0;
    /// The text that the engine would give the model for these messages. `open`: with the opening
    /// of the assistant's answer. Errors: unsupported (no template, or not text), invalid_request
    /// (the template refuses the order of roles).
    virtual Result<std::string> render(const std::vector<domain::Message>& messages,
                                       bool open) const = 0;

protected:
    Vocabulary() = default;
};

}  // namespace molly::engine
