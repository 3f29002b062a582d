// The tokens and the chat template of the generated test model.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "test_model_words.h"

namespace molly::test_model {

inline constexpr int places = 12;

/// What a token is for. The places of the two sentences follow `italian` and `english`.
enum Kind : int {
    other,
    control,
    turn,
    byte,
    newline,
    end_of_turn,
    tool_call,
    tool_call_end,
    tools_end,
    tool_response_end,
    open_quote,
    value,  // what stands between quotes
    quote,
    colon,
    comma,
    open_brace,
    close_brace,
    open_bracket,
    close_bracket,
    digit,
    literal,
    space,
    full_stop,
    italian_again,  // the first word of a later sentence, with its space
    english_again,
    italian,
    english = italian + places,
    kinds = english + places
};

inline constexpr std::string_view chat_template = R"({%- set system = '' %}
{%- if messages[0].role == 'system' %}{%- set system = messages[0].content %}{%- endif %}
{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if system %}{{- system + '\n\n' }}{%- endif %}
    {{- "# Tools\n\nYou may call one or more functions. Their signatures are within <tools></tools> tags:\n<tools>" }}
    {%- for tool in tools %}{{- '\n' }}{{- tool | tojson }}{%- endfor %}
    {{- "\n</tools>\n\nFor each call return a json object with name and arguments within <tool_call></tool_call> tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n" }}
{%- elif system %}
    {{- '<|im_start|>system\n' + system + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) or (message.role == 'assistant' and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant' }}
        {%- if message.content %}{{- '\n' + message.content }}{%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}{%- set tool_call = tool_call.function %}{%- endif %}
            {{- '\n<tool_call>\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == 'tool' %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != 'tool') %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\n<tool_response>\n' }}
        {{- message.content }}
        {{- '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != 'tool') %}{{- '<|im_end|>\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
)";

struct Vocabulary {
    std::vector<std::string> text;
    std::vector<float> scores;
    std::vector<std::int32_t> types;
    std::vector<Kind> kind;
    std::unordered_map<std::string, std::size_t> index;

    void add(const std::string& piece, Kind of, std::int32_t type, float score) {
        if (index.emplace(piece, text.size()).second) {
            text.push_back(piece);
            scores.push_back(score);
            types.push_back(type);
            kind.push_back(of);
        } else if (of != other && kind[index[piece]] == other) {
            kind[index[piece]] = of;
        }
    }
    void add_normal(const std::string& piece, Kind of) {
        add(piece, of, 1, static_cast<float>(piece.size()));
    }
    /// The tokenizer merges two neighbours at a time, so every beginning of a word must be a token
    /// as well.
    void add_word(const std::string& word, Kind of) {
        for (std::size_t length = 1; length < word.size(); ++length) {
            if ((static_cast<unsigned char>(word[length]) & 0xC0U) != 0x80U) {
                add_normal(word.substr(0, length), other);
            }
        }
        add_normal(word, of);
    }
};

inline std::vector<std::string> split(std::string_view words) {
    std::vector<std::string> parts;
    while (!words.empty()) {
        const std::size_t end = std::min(words.find(' '), words.size());
        if (end > 0) {
            parts.emplace_back(words.substr(0, end));
        }
        words.remove_prefix(std::min(end + 1, words.size()));
    }
    return parts;
}

inline void add_special(Vocabulary& vocabulary) {
    vocabulary.add("<unk>", control, 2, 0);
    vocabulary.add("<s>", control, 3, 0);
    vocabulary.add("</s>", control, 3, 0);
    for (int value = 0; value < 256; ++value) {
        std::array<char, 8> name{};
        std::snprintf(name.data(), name.size(), "<0x%02X>", static_cast<unsigned>(value));
        vocabulary.add(name.data(), value == '\n' ? newline : byte, 6, -100);
    }
    vocabulary.add("<|im_start|>", turn, 3, 0);
    vocabulary.add("<|im_end|>", end_of_turn, 3, 0);
    vocabulary.add("<tool_call>", tool_call, 4, 0);
    vocabulary.add("</tool_call>", tool_call_end, 4, 0);
    vocabulary.add("<tools>", control, 4, 0);
    vocabulary.add("</tools>", tools_end, 4, 0);
    vocabulary.add("<tool_response>", control, 4, 0);
    vocabulary.add("</tool_response>", tool_response_end, 4, 0);
}

inline Kind kind_of_character(char c) {
    if (c >= '0' && c <= '9') {
        return digit;
    }
    switch (c) {
        case '"':
            return quote;
        case ':':
            return colon;
        case ',':
            return comma;
        case '{':
            return open_brace;
        case '}':
            return close_brace;
        case '[':
            return open_bracket;
        case ']':
            return close_bracket;
        case '.':
            return full_stop;
        default:
            return other;
    }
}

inline Vocabulary make_vocabulary() {
    const std::string gap = "\xE2\x96\x81";  // how this tokenizer writes a space
    Vocabulary vocabulary;
    add_special(vocabulary);
    vocabulary.add_normal(gap, space);
    for (char c = '!'; c <= '~'; ++c) {
        vocabulary.add_normal(std::string(1, c), kind_of_character(c));
    }
    for (const auto& letter : split("à è é ì ò ù À È É Ì Ò Ù ’ € – …")) {
        vocabulary.add_normal(letter, other);
    }
    vocabulary.add_normal(gap + "\"", open_quote);
    for (const auto& word : split(values)) {
        vocabulary.add_word(word, value);
    }
    for (const auto& word : split("true false null")) {
        vocabulary.add_word(word, literal);
    }
    for (int language = 0; language < 2; ++language) {
        const auto& sentence = language == 0 ? italian_sentence : english_sentence;
        for (int place = 0; place < places; ++place) {
            const auto kind = static_cast<Kind>((language == 0 ? italian : english) + place);
            for (const auto& word : split(sentence[static_cast<std::size_t>(place)])) {
                vocabulary.add_word(place == 0 ? word : gap + word, kind);
                if (place == 0) {
                    vocabulary.add_word(gap + word, language == 0 ? italian_again : english_again);
                }
            }
        }
    }
    for (const auto& word : split(prompts_only)) {
        vocabulary.add_word(gap + word, other);
    }
    for (const auto& word : split("user assistant system tool Ciao Hello")) {
        vocabulary.add_word(word, other);
    }
    return vocabulary;
}

}  // namespace molly::test_model
