#include "store/audit.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "store/internal/chain_check.h"
#include "store/internal/database.h"
#include "store/internal/log_text.h"
#include "store/store.h"

namespace molly::store {
namespace {

using internal::Access;
using internal::ChainCheck;
using internal::Database;
using internal::Head;
using internal::Link;
using internal::LogText;
using internal::SignerRow;
using internal::Statement;

std::unexpected<Error> no_log(const std::filesystem::path& path) {
    return fail(
        Error(ErrorCode::not_found,
              fmt::format("there is no receipt log at {}; name a data folder or an exported "
                          ".jsonl file",
                          path.string()))
            .italian(fmt::format("nessun registro di ricevute in {}; indicare una cartella "
                                 "dati o un file .jsonl esportato",
                                 path.string())));
}

/// Opens the database of a folder without writing beside it, whether a server lives on it or not.
Result<Database> open_log(const std::filesystem::path& folder) {
    const std::filesystem::path file = folder / "molly.db";
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) return no_log(folder);
    // A server keeps its write-ahead log beside the file for as long as it lives.
    const bool live = std::filesystem::exists(folder / "molly.db-wal", ignored);
    return Database::open(file, live ? Access::read : Access::frozen);
}

/// Gives receipts and heads of a database in the order of their numbers.
class LogReader {
public:
    static Result<LogReader> open(Database& database) {
        LogReader reader;
        TRY(reader.receipts_, database.prepare("SELECT sequence, id, body, hash, previous FROM "
                                               "receipts ORDER BY sequence"));
        TRY(reader.heads_,
            database.prepare("SELECT sequence, key_id, signature FROM heads ORDER BY sequence"));
        TRY_DO(reader.step_receipt());
        TRY_DO(reader.step_head());
        return reader;
    }

    /// Calls one of the two for each entry, until one gives false.
    template <class OnLink, class OnHead>
    Result<void> each(const OnLink& on_link, const OnHead& on_head) {
        while (more_receipts_ || more_heads_) {
            const bool link_first =
                more_receipts_ && (!more_heads_ || receipts_.integer(0) <= heads_.integer(0));
            if (link_first) {
                if (!on_link(link())) return {};
                TRY_DO(step_receipt());
            } else {
                if (!on_head(head())) return {};
                TRY_DO(step_head());
            }
        }
        return {};
    }

private:
    Link link() const {
        return {.sequence = static_cast<std::uint64_t>(receipts_.integer(0)),
                .id = receipts_.text(1),
                .body = receipts_.text(2),
                .hash = receipts_.text(3),
                .previous = receipts_.text(4)};
    }
    Head head() const {
        return {.sequence = static_cast<std::uint64_t>(heads_.integer(0)),
                .key_id = heads_.text(1),
                .signature = heads_.text(2)};
    }
    Result<void> step_receipt() {
        TRY(more_receipts_, receipts_.next());
        return {};
    }
    Result<void> step_head() {
        TRY(more_heads_, heads_.next());
        return {};
    }

    Statement receipts_;
    Statement heads_;
    bool more_receipts_ = false;
    bool more_heads_ = false;
};

/// The keys of a log, the first one first; none when nothing was signed yet.
Result<std::vector<SignerRow>> signers_of(Database& database) {
    TRY(Statement rows,
        database.prepare("SELECT key_id, public_key, since FROM signers ORDER BY since"));
    std::vector<SignerRow> signers;
    for (;;) {
        TRY(const bool more, rows.next());
        if (!more) return signers;
        signers.push_back(
            {rows.text(0), rows.text(1), static_cast<std::uint64_t>(rows.integer(2))});
    }
}

Result<AuditReport> verify_folder(const std::filesystem::path& folder,
                                  std::vector<WitnessedHead> witnessed) {
    TRY(Database database, open_log(folder));
    TRY_DO(database.execute("BEGIN"));  // one moment of a live log
    TRY(const std::vector<SignerRow> signers, signers_of(database));
    ChainCheck check(std::move(witnessed));
    check.signer(signers.empty() ? std::string() : signers.front().public_key);
    TRY(LogReader reader, LogReader::open(database));
    TRY_DO(reader.each([&](const Link& link) { return check.link(link); },
                       [&](const Head& head) { return check.head(head); }));
    if (!signers.empty()) check.signers(signers);
    return check.finish();
}

Result<AuditReport> verify_file(const std::filesystem::path& path,
                                std::vector<WitnessedHead> witnessed) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) return no_log(path);
    LogText text(std::move(witnessed));
    std::string line;
    // getline takes a last line without its end for a whole one.
    while (std::getline(stream, line)) {
        if (!text.line(line, stream.eof())) break;
    }
    return text.finish(path.string());
}

}  // namespace

std::string_view to_string(Damage damage) noexcept {
    static constexpr std::array<std::string_view, 10> names = {
        "none",          "changed",           "missing",     "reordered", "truncated",
        "unsigned_tail", "foreign_signature", "unknown_key", "rewritten", "witness_changed"};
    return names[static_cast<std::size_t>(damage)];
}

Result<AuditReport> verify_log(const std::filesystem::path& log,
                               std::vector<WitnessedHead> witnessed) {
    std::error_code ignored;
    if (std::filesystem::is_directory(log, ignored))
        return verify_folder(log, std::move(witnessed));
    return verify_file(log, std::move(witnessed));
}

Result<AuditReport> verify_text(std::string_view text, std::vector<WitnessedHead> witnessed) {
    LogText log(std::move(witnessed));
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        if (!log.line(text.substr(0, end), end == std::string_view::npos)) break;
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return log.finish("the text");
}

Result<std::uint64_t> export_log(const std::filesystem::path& folder,
                                 const std::filesystem::path& file) {
    TRY(Database database, open_log(folder));
    TRY_DO(database.execute("BEGIN"));
    TRY(const std::vector<SignerRow> signers, signers_of(database));
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << internal::signer_line(signers.empty() ? std::string() : signers.front().public_key)
        << '\n';
    std::uint64_t receipts = 0;
    TRY(LogReader reader, LogReader::open(database));
    TRY_DO(reader.each(
        [&](const Link& link) {
            ++receipts;
            out << internal::line_of(link) << '\n';
            return out.good();
        },
        [&](const Head& head) {
            out << internal::line_of(head) << '\n';
            return out.good();
        }));
    out.close();
    if (!out.good()) {
        return fail(Error(ErrorCode::unavailable,
                          fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)))
                        .italian(fmt::format("impossibile scrivere {}: {}", file.string(),
                                             std::strerror(errno))));
    }
    return receipts;
}

}  // namespace molly::store
