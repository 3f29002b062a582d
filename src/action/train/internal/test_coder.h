#pragma once
// A vocabulary of bytes and a few named tokens, with a chat template, for tests of what is learned.
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/examples.h"

namespace molly::train {

class TestCoder final : public TextCoder {
public:
    enum class Template : std::uint8_t {
        chat_ml,
        forgets_thoughts,  ///< what stands in <think> is left out of all turns but the last
        none,
        alternates,  ///< refuses two turns of one role in a row
    };
    explicit TestCoder(Template kind = Template::chat_ml, bool starts = false)
        : template_(kind), starts_(starts) {}

    static constexpr Token turn_start_token = 256, turn_end_token = 257, start_token = 258;

    Result<std::vector<Token>> encode(const std::string& text, bool special) override {
        std::vector<Token> tokens;
        std::string_view rest = text;
        while (!rest.empty()) {
            const bool start = special && rest.starts_with(turn_start);
            const bool end = special && rest.starts_with(turn_end);
            if (start || end) {
                tokens.push_back(start ? turn_start_token : turn_end_token);
                rest.remove_prefix(start ? turn_start.size() : turn_end.size());
            } else {
                tokens.push_back(static_cast<unsigned char>(rest.front()));
                rest.remove_prefix(1);
            }
        }
        return tokens;
    }
    std::vector<Token> start() const override {
        return starts_ ? std::vector<Token>{start_token} : std::vector<Token>{};
    }
    Result<std::string> render(std::span<const Turn> turns, bool open) override {
        if (template_ == Template::none) {
            return fail(ErrorCode::unsupported, "this model has no chat template");
        }
        std::string text;
        for (std::size_t i = 0; i < turns.size(); ++i) {
            if (template_ == Template::alternates && i > 0 && turns[i].role == turns[i - 1].role) {
                return fail(ErrorCode::invalid_request, "the template refuses the order of roles");
            }
            std::string said = turns[i].text;
            const std::size_t thought = said.find("</think>");
            if (template_ == Template::forgets_thoughts && i + 1 < turns.size() &&
                thought != std::string::npos) {
                said = said.substr(thought + 8);
            }
            text += std::string(turn_start) + turns[i].role + "\n" + said + std::string(turn_end) +
                    "\n";
        }
        return open ? text + std::string(turn_start) + "assistant\n" : text;
    }
    Token end_of_answer() const override { return turn_end_token; }
    std::string fingerprint() const override { return "test"; }

    /// What the tokens spell, those that are learned between braces.
    static std::string shown(const Sequence& sequence) {
        std::string text;
        bool learned = false;
        for (std::size_t i = 0; i < sequence.tokens.size(); ++i) {
            if ((sequence.learned[i] != 0) != learned) {
                learned = !learned;
                text += learned ? '{' : '}';
            }
            const Token token = sequence.tokens[i];
            if (token == turn_start_token) {
                text += "<";
            } else if (token == turn_end_token) {
                text += ">";
            } else if (token == start_token) {
                text += "^";
            } else {
                text += static_cast<char>(token);
            }
        }
        return learned ? text + '}' : text;
    }

private:
    Template template_;
    bool starts_;
};

}  // namespace molly::train
