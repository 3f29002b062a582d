#pragma once
// What an adapter learns from: JSONL rows of conversations, prompts with completions, or pairs of a
// better and a worse answer, as tokens that say which of them count in the loss. Pure but for
// reading the file.
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/tokenizer.h"

namespace molly::train {

/// One turn of a conversation.
struct Turn {
    std::string role;  ///< system, user, assistant or tool
    std::string text;

    bool operator==(const Turn&) const = default;
};

/// The text side of a base model: its vocabulary and chat template.
class TextCoder {
public:
    virtual ~TextCoder() = default;
    /// Tokens of text. `special`: names of special tokens in it mean those tokens (templates).
    virtual Result<std::vector<Token>> encode(const std::string& text, bool special) = 0;
    /// What stands before every prompt at inference (BOS), where the model wants that.
    virtual std::vector<Token> start() const { return {}; }
    /// The conversation through the model's chat template; `open`: ends where the assistant's
    /// answer begins. Errors: unsupported (the model has no template).
    virtual Result<std::string> render(std::span<const Turn> turns, bool open) = 0;
    /// Ends an answer to a completion, and pads.
    virtual Token end_of_answer() const = 0;
    /// SHA-256 of everything that decides how text is split, hex.
    virtual std::string fingerprint() const = 0;
};

/// One sequence; learned[t] is 1 where tokens[t] belongs to the answer.
struct Sequence {
    std::vector<Token> tokens;
    std::vector<std::uint8_t> learned;
};

/// One row. For a preference pair `worse` is the rejected answer after the same prompt.
struct Example {
    Sequence better;
    Sequence worse;  ///< empty unless it is a pair
    std::uint64_t line = 0;
};

/// What a file held besides its examples.
struct ExampleFacts {
    std::uint64_t rows = 0;
    std::string hash;                               ///< SHA-256 of the file, hex
    std::string label_class = "public";             ///< the highest of any row
    std::map<std::string, std::uint64_t> licenses;  ///< of the answers' teachers, rows of each
    std::uint64_t truncated = 0;                    ///< rows longer than the context, left out
};

struct Examples {
    std::vector<Example> rows;
    ExampleFacts facts;
};

enum class RowKind : std::uint8_t { answers, pairs };

/// Reads a file of one kind of rows. Rows:
///   {"messages": [{"role": ..., "content": ...}, ...]}          every assistant turn is learned
///   {"prompt": "...", "completion": "..."}                      prompt: text or messages
///   {"prompt": ..., "chosen": ..., "rejected": ...}             answers: text or messages
/// and, beside them, "class" (of the row's content), "license" (of the teacher that wrote the
/// answer), "training" (false: the row must not be learned from, and is refused). A row without a
/// class counts as private. Other members are ignored.
/// Errors: not_found, invalid_request (names the line, and what a right row looks like; every
/// faulty line up to ten is named at once).
Result<Examples> read_examples(const std::filesystem::path& file, RowKind kind, TextCoder& coder,
                               std::uint32_t context);

}  // namespace molly::train
