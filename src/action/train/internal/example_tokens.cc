#include "train/internal/example_tokens.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace molly::train {
namespace {

constexpr std::string_view blanks = " \t\r\n";

/// A conversation as the template writes it, and where in it an answer stands.
struct Range {
    std::size_t from = 0;
    std::size_t to = 0;
};

class SequenceBuilder {
public:
    explicit SequenceBuilder(TextCoder& coder) : coder_(coder) {
        for (const Token token : coder.start())
            push(token, false);
    }

    Result<void> add(std::string_view text, bool special, bool learned) {
        if (text.empty()) return {};
        TRY(const auto tokens, coder_.encode(std::string(text), special));
        for (const Token token : tokens)
            push(token, learned);
        return {};
    }
    void end_answer() { push(coder_.end_of_answer(), true); }
    Sequence take() { return std::move(sequence_); }

private:
    void push(Token token, bool learned) {
        sequence_.tokens.push_back(token);
        sequence_.learned.push_back(learned ? 1 : 0);
    }

    TextCoder& coder_;
    Sequence sequence_;
};

std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

Result<Sequence> encode_text(const ExampleRow& row, const Answer& answer, TextCoder& coder) {
    SequenceBuilder builder(coder);
    TRY_DO(builder.add(row.text, true, false));
    TRY_DO(builder.add(answer.text, false, true));
    builder.end_answer();
    return builder.take();
}

/// Where the assistant's answers stand in `whole`; nothing when the template writes a turn
/// otherwise once others follow it.
Result<std::vector<Range>> find_answers(std::span<const Turn> turns, std::size_t from,
                                        std::string_view whole, TextCoder& coder) {
    std::vector<Range> ranges;
    std::size_t at = 0;
    for (std::size_t i = from; i < turns.size(); ++i) {
        if (turns[i].role != "assistant") continue;
        TRY(const std::string before, coder.render(turns.first(i), true));
        std::string upto(whole);
        if (i + 1 < turns.size()) {
            TRY(upto, coder.render(turns.first(i + 1), false));
        }
        if (!whole.starts_with(before) || !whole.starts_with(upto) || before.size() < at ||
            upto.size() <= before.size()) {
            return std::vector<Range>{};
        }
        ranges.push_back({before.size(), upto.size()});
        at = upto.size();
    }
    return ranges;
}

/// The answer as the template writes it, with what ends it: blanks behind that are never generated.
Result<void> add_answer(std::string_view written, std::string_view said, SequenceBuilder& builder) {
    const std::size_t last = written.find_last_not_of(blanks);
    const std::string_view answer = written.substr(0, last + 1);
    TRY_DO(builder.add(answer, true, true));
    if (answer.ends_with(trim(said))) builder.end_answer();
    return {};
}

/// Only the last answer, after its prompt as inference sees it.
Result<Sequence> encode_last(std::span<const Turn> turns, std::string_view whole,
                             TextCoder& coder) {
    SequenceBuilder builder(coder);
    TRY(const std::string prompt, coder.render(turns.first(turns.size() - 1), true));
    TRY_DO(builder.add(prompt, true, false));
    const std::string& said = turns.back().text;
    const std::size_t at = whole.rfind(trim(said));
    const std::string_view written =
        at == std::string_view::npos ? std::string_view(said) : whole.substr(at);
    TRY_DO(add_answer(written, said, builder));
    return builder.take();
}

Result<Sequence> encode_turns(const ExampleRow& row, const Answer& answer, TextCoder& coder) {
    std::vector<Turn> turns = row.turns;
    turns.insert(turns.end(), answer.turns.begin(), answer.turns.end());
    TRY(const std::string whole, coder.render(turns, false));
    TRY(const auto ranges, find_answers(turns, row.turns.size(), whole, coder));
    if (ranges.empty()) return encode_last(turns, whole, coder);
    SequenceBuilder builder(coder);
    const std::string_view text = whole;
    std::size_t at = 0;
    std::size_t turn = row.turns.size();
    for (const Range& range : ranges) {
        while (turns[turn].role != "assistant")
            ++turn;
        TRY_DO(builder.add(text.substr(at, range.from - at), true, false));
        std::string_view written = text.substr(range.from, range.to - range.from);
        const std::size_t length = written.find_last_not_of(blanks) + 1;
        TRY_DO(add_answer(written.substr(0, length), turns[turn].text, builder));
        at = range.from + length;
        ++turn;
    }
    return builder.take();
}

Result<Sequence> encode_answer(const ExampleRow& row, const Answer& answer, TextCoder& coder) {
    return row.turns.empty() ? encode_text(row, answer, coder) : encode_turns(row, answer, coder);
}

}  // namespace

Result<Example> encode_example(const ExampleRow& row, TextCoder& coder) {
    Example example;
    TRY(example.better, encode_answer(row, row.answers.front(), coder));
    if (row.answers.size() > 1) {
        TRY(example.worse, encode_answer(row, row.answers[1], coder));
    }
    return example;
}

}  // namespace molly::train
