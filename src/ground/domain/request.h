#pragma once
// The one internal request: every dialect is translated to it at the edge. Values.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "domain/content.h"
#include "domain/label.h"
#include "domain/money.h"

namespace molly::domain {

enum class Operation : std::uint8_t {
    chat,      ///< messages in, one assistant message out
    complete,  ///< a raw prompt in, its continuation out, no chat template
    embed,     ///< texts in, vectors out
};
std::string_view to_string(Operation operation) noexcept;

enum class Role : std::uint8_t { system, user, assistant, tool };
std::string_view to_string(Role role) noexcept;

/// One piece of a message.
struct Part {
    enum class Kind : std::uint8_t { text, image, audio, file };
    Kind kind = Kind::text;
    Content text;            ///< the text; for other kinds base64 bytes or a URL
    std::string media_type;  ///< `image/png`; empty for text and for URLs
    bool is_url = false;

    bool operator==(const Part&) const = default;
};

/// A call of a tool that the assistant asks for.
struct ToolCall {
    std::string id;
    std::string name;
    Content arguments;  ///< JSON text

    bool operator==(const ToolCall&) const = default;
};

struct Message {
    Role role = Role::user;
    std::vector<Part> parts;
    std::string name;   ///< of the speaker, optional
    Content reasoning;  ///< the assistant's earlier reasoning, where the dialect carries it
    std::vector<ToolCall> tool_calls;  ///< assistant only
    std::string tool_call_id;          ///< tool only: which call this answers
    bool tool_failed = false;          ///< tool only

    bool operator==(const Message&) const = default;
};

/// A message of one text part.
Message text_message(Role role, std::string text);
/// All text parts joined by newlines.
std::string text_of(const Message& message);

/// A function that the model may call.
struct Tool {
    std::string name;
    Content description;
    Content parameters;  ///< JSON Schema as JSON text; empty for none
    bool strict = false;

    bool operator==(const Tool&) const = default;
};

struct ToolChoice {
    enum class Kind : std::uint8_t { automatic, none, required, named };
    Kind kind = Kind::automatic;
    std::string name;  ///< named only
    bool parallel = true;

    bool operator==(const ToolChoice&) const = default;
};

/// What the answer must look like.
struct OutputFormat {
    enum class Kind : std::uint8_t { text, json_object, json_schema, grammar };
    Kind kind = Kind::text;
    std::string name;  ///< of the schema
    Content schema;    ///< JSON Schema as JSON text, or GBNF for grammar
    bool strict = false;

    bool operator==(const OutputFormat&) const = default;
};

/// Unset means the target's own default.
struct Sampling {
    std::optional<std::uint32_t> answer_tokens_max;
    std::optional<float> temperature;
    std::optional<float> top_p;
    std::optional<float> min_p;
    std::optional<std::uint32_t> top_k;
    std::optional<float> frequency_penalty;
    std::optional<float> presence_penalty;
    std::optional<float> repeat_penalty;
    std::optional<std::uint64_t> seed;
    std::vector<std::string> stop;
    bool logprobs = false;
    std::uint32_t top_logprobs = 0;  ///< alternatives per token, with logprobs
    std::optional<std::string> reasoning_effort;

    bool operator==(const Sampling&) const = default;
};

/// How quality, price and latency weigh against each other.
enum class Mode : std::uint8_t { balanced, quality, fast, cheap };
std::string_view to_string(Mode mode) noexcept;
std::optional<Mode> mode_from(std::string_view text) noexcept;

/// Which beginning of a prompt's keys and values is to outlive the process.
enum class KeepPrefix : std::uint8_t {
    none,
    system,  ///< system text and tools: what other requests begin with too
    prompt,  ///< all of it
};
/// `system` or `prompt`; unset for any other word.
std::optional<KeepPrefix> keep_prefix_from(std::string_view text) noexcept;

/// The `molly` object of a request.
struct Extensions {
    std::optional<Sensitivity> sensitivity;  ///< `class`
    std::optional<Residency> residency;
    std::optional<Mode> mode;
    std::optional<Money> cost_max;
    std::optional<std::chrono::milliseconds> latency_max;
    std::string adapter;
    bool explain = false;
    std::string conversation;  ///< explicit conversation id
    std::string purpose;
    std::vector<std::string> tags;
    KeepPrefix keep_prefix = KeepPrefix::none;

    bool operator==(const Extensions&) const = default;
};

/// Who asks, as authentication found it.
struct Caller {
    std::string member;
    std::string key_id;
    std::string app;  ///< User-Agent or the key's app name
    Sensitivity lowest_class =
        Sensitivity::private_;                 ///< the lowest class that this key may declare
    std::optional<Sensitivity> default_class;  ///< class of its requests when they declare none
    TierSet tiers = {Tier::t0, Tier::t1, Tier::t2, Tier::t3};  ///< tiers that the key may reach
    std::vector<std::string> models;                           ///< models it may use; empty: all
};

struct Request {
    std::string id;  ///< unique; also the receipt's id
    Operation operation = Operation::chat;
    std::string
        dialect;  ///< the edge it came through, for the trace: openai, anthropic, ollama, molly
    std::string model;  ///< as the caller wrote it
    std::vector<Message> messages;
    Content prompt;                           ///< complete only
    Content suffix;                           ///< complete only
    bool echo = false;                        ///< complete only
    std::vector<Content> inputs;              ///< embed only
    std::optional<std::uint32_t> dimensions;  ///< embed only
    std::vector<Tool> tools;
    ToolChoice tool_choice;
    OutputFormat format;
    Sampling sampling;
    bool stream = false;
    bool truncate = false;  ///< the caller allows dropping the oldest turns
    std::map<std::string, std::string> metadata;
    std::string user;  ///< end-user id of the dialect, opaque
    Extensions extensions;
    Caller caller;
    MonoTime received;
    Deadline deadline = Deadline::max();
    CancellationPtr cancellation;
};

}  // namespace molly::domain
