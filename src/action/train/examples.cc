#include "train/examples.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "seal/seal.h"
#include "train/internal/example_row.h"
#include "train/internal/example_stream.h"
#include "train/internal/example_tokens.h"

namespace molly::train {
namespace {

constexpr std::size_t faults_max = 10;
constexpr std::uint64_t rows_max = 1'000'000;

/// Gives a stream's lines, none longer than the limit, and the hash of everything.
class Lines {
public:
    explicit Lines(std::istream& stream) : stream_(stream), block_(64U << 10U) {}

    bool next() {
        line_.clear();
        too_long_ = false;
        bool any = false;
        while (at_ < end_ || fill()) {
            any = true;
            const char* from = block_.data() + at_;
            const char* last = block_.data() + end_;
            const char* stop = std::find(from, last, '\n');
            const bool whole = stop != last;
            keep(from, stop);
            at_ = static_cast<std::size_t>(stop - block_.data()) + (whole ? 1 : 0);
            if (whole) break;
        }
        number_ += any ? 1 : 0;
        return any;
    }
    const std::string& text() const noexcept { return line_; }
    bool too_long() const noexcept { return too_long_; }
    bool blank() const {
        return !too_long_ && line_.find_first_not_of(" \t\r") == std::string::npos;
    }
    std::uint64_t number() const noexcept { return number_; }
    std::string hash() { return seal::to_hex(hash_.take()); }

private:
    bool fill() {
        stream_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
        at_ = 0;
        end_ = static_cast<std::size_t>(stream_.gcount());
        hash_.add({block_.data(), end_});
        return end_ > 0;
    }
    void keep(const char* from, const char* to) {
        too_long_ =
            too_long_ || line_.size() + static_cast<std::size_t>(to - from) > example_bytes_max;
        if (too_long_) {
            line_.clear();
        } else {
            line_.append(from, to);
        }
    }

    std::istream& stream_;
    std::vector<char> block_;
    std::size_t at_ = 0, end_ = 0;
    std::string line_;
    bool too_long_ = false;
    std::uint64_t number_ = 0;
    seal::HashStream hash_;
};

/// What is wrong with the lines of one file, in both languages.
class Faults {
public:
    void add(std::uint64_t line, const Error& error) {
        english_ += fmt::format("\n  line {}: {}", line, error.message());
        italian_ += fmt::format("\n  riga {}: {}", line, error.message_italian());
        ++count_;
    }
    bool none() const noexcept { return count_ == 0; }
    bool full() const noexcept { return count_ >= faults_max; }
    std::unexpected<Error> tell(const std::string& name, RowKind kind) const {
        const std::string_view more = full() ? "\n  ..." : "";
        return fail(Error(ErrorCode::invalid_request,
                          fmt::format("{} cannot be learned from:{}{}\na right row is {}", name,
                                      english_, more, right_row(kind)))
                        .italian(fmt::format("da {} non si può apprendere:{}{}\nuna riga giusta è "
                                             "{}",
                                             name, italian_, more, right_row(kind))));
    }

private:
    std::string english_, italian_;
    std::size_t count_ = 0;
};

bool fits(const Sequence& sequence, std::uint32_t context) {
    return sequence.tokens.size() <= context;
}

Result<void> read_line(const Lines& lines, RowKind kind, TextCoder& coder, std::uint32_t context,
                       Examples& out, domain::Sensitivity& highest) {
    if (lines.too_long()) {
        return fail(Error(ErrorCode::invalid_request,
                          fmt::format("is longer than {} KiB", example_bytes_max >> 10U))
                        .italian(fmt::format("supera {} KiB", example_bytes_max >> 10U)));
    }
    TRY(const ExampleRow row, parse_example(lines.text(), kind));
    TRY(Example example, encode_example(row, coder));
    ++out.facts.rows;
    if (!fits(example.better, context) || !fits(example.worse, context)) {
        ++out.facts.truncated;
        return {};
    }
    highest = std::max(highest, row.sensitivity);
    if (!row.license.empty()) ++out.facts.licenses[row.license];
    example.line = lines.number();
    out.rows.push_back(std::move(example));
    return {};
}

Result<void> check_count(const Examples& examples, const std::string& name, std::uint32_t context) {
    if (examples.facts.rows == 0) {
        return fail(Error(ErrorCode::invalid_request, fmt::format("{} holds no rows", name))
                        .italian(fmt::format("{} non contiene righe", name)));
    }
    if (!examples.rows.empty()) return {};
    return fail(
        Error(ErrorCode::invalid_request,
              fmt::format("every row of {} is longer than the context of {} tokens; shorten them, "
                          "or take a base with a longer context",
                          name, context))
            .italian(
                fmt::format("ogni riga di {} supera il contesto di {} token; vanno accorciate, "
                            "oppure serve una base con un contesto più lungo",
                            name, context)));
}

}  // namespace

Result<Examples> read_example_stream(std::istream& stream, const std::string& name, RowKind kind,
                                     TextCoder& coder, std::uint32_t context) {
    Examples examples;
    Faults faults;
    auto highest = domain::Sensitivity::public_;
    Lines lines(stream);
    while (!faults.full() && lines.next()) {
        if (lines.blank()) continue;
        if (examples.facts.rows == rows_max) {
            return fail(
                Error(ErrorCode::too_large,
                      fmt::format("{} has more than {} rows; split it", name, rows_max))
                    .italian(fmt::format("{} ha più di {} righe; va diviso", name, rows_max)));
        }
        const auto read = read_line(lines, kind, coder, context, examples, highest);
        if (read) continue;
        // A base without a template fails at every row: say it once.
        if (read.error().code() != ErrorCode::invalid_request &&
            read.error().code() != ErrorCode::too_large) {
            return fail(read.error());
        }
        faults.add(lines.number(), read.error());
    }
    if (!faults.none()) return faults.tell(name, kind);
    TRY_DO(check_count(examples, name, context));
    examples.facts.hash = lines.hash();
    examples.facts.label_class = domain::to_string(highest);
    return examples;
}

Result<Examples> read_examples(const std::filesystem::path& file, RowKind kind, TextCoder& coder,
                               std::uint32_t context) {
    std::ifstream stream(file, std::ios::binary);
    std::error_code ignored;
    if (!stream || std::filesystem::is_directory(file, ignored)) {
        return fail(
            Error(ErrorCode::not_found, fmt::format("cannot read the rows of {}", file.string()))
                .italian(fmt::format("impossibile leggere le righe di {}", file.string())));
    }
    return read_example_stream(stream, file.filename().string(), kind, coder, context);
}

}  // namespace molly::train
