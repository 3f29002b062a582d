#pragma once
// The model's own chat template: a request becomes prompt text, the model's text becomes content,
// reasoning and tool calls. The only user of llama-common; its exceptions end here.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <llama.h>

#include "base/result.h"
#include "domain/request.h"
#include "domain/response.h"

namespace molly::engine {

/// Reads one answer as it grows. One thread at a time.
class AnswerReader {
public:
    virtual ~AnswerReader() = default;
    /// What `text`, the whole answer so far, adds to what earlier calls gave. `last`: nothing
    /// follows.
    virtual domain::Delta read(const std::string& text, bool last) = 0;
};

/// A request in the model's own words.
struct Prompt {
    std::string text;
    std::string opening;       ///< the end of `text` that already belongs to the answer
    std::string tool_grammar;  ///< GBNF of the tool calls; empty: no tools
    std::vector<std::string> grammar_words;  ///< the tool grammar starts at the first of these;
                                             ///< empty: at once, after `opening`
    std::vector<std::string> stops;          ///< strings that end an answer of this template
    std::vector<std::string> visible;        ///< control tokens that the reader wants to see
    std::unique_ptr<AnswerReader> reader;    ///< null: the text is the answer
};

class ChatFormat {
public:
    virtual ~ChatFormat() = default;
    /// With the model's own template, or with `override` when it is not empty. Errors: corrupt,
    /// when the template does not parse.
    static Result<std::unique_ptr<ChatFormat>> make(const llama_model* model,
                                                    const std::string& override = "");

    /// Whether the template describes tools to the model.
    virtual bool tools() const noexcept = 0;
    /// Errors: unsupported (images, or a forced tool call without tools), invalid_request (the
    /// template refuses the messages).
    virtual Result<Prompt> render(const domain::Request& request) const = 0;
};

}  // namespace molly::engine
