#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/json.h"
#include "store/internal/chain_check.h"
#include "store/internal/database.h"
#include "store/internal/object_text.h"
#include "store/store.h"

namespace molly::store {
namespace {

using internal::Access;
using internal::ChainCheck;
using internal::Database;
using internal::Head;
using internal::Link;
using internal::ObjectText;
using internal::Statement;

std::string hex(std::string_view bytes) {
    return seal::to_hex(bytes);
}

std::string signer_line(std::string_view public_key) {
    std::string line;
    {
        ObjectText object(line);
        object.text("signer", seal::key_id(public_key));
        object.text("public_key", hex(public_key));
    }
    return line;
}

std::string line_of(const Link& link) {
    std::string line;
    {
        ObjectText object(line);
        object.number("receipt", link.sequence);
        object.text("id", link.id);
        object.text("previous", hex(link.previous));
        object.text("hash", hex(link.hash));
        object.text("body", link.body);
    }
    return line;
}

std::string line_of(const Head& head) {
    std::string line;
    {
        ObjectText object(line);
        object.number("head", head.sequence);
        object.text("signer", head.key_id);
        object.text("signature", hex(head.signature));
    }
    return line;
}

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

/// The public key of a log; empty when nothing was signed yet.
Result<std::string> signer_of(Database& database) {
    TRY(Statement signers, database.prepare("SELECT public_key FROM signers"));
    TRY(const bool found, signers.next());
    return found ? signers.text(0) : std::string();
}

Result<AuditReport> verify_folder(const std::filesystem::path& folder,
                                  const std::string& expected_head) {
    TRY(Database database, open_log(folder));
    TRY_DO(database.execute("BEGIN"));  // one moment of a live log
    TRY(const std::string signer, signer_of(database));
    ChainCheck check(expected_head);
    check.signer(signer);
    TRY(LogReader reader, LogReader::open(database));
    TRY_DO(reader.each([&](const Link& link) { return check.link(link); },
                       [&](const Head& head) { return check.head(head); }));
    return check.finish();
}

std::string text_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr || !value->is_string()) return {};
    return std::string(value->get_string().data(), value->get_string().size());
}

std::string bytes_of(const json::object& object, std::string_view key) {
    return seal::from_hex(text_of(object, key)).value_or(std::string());
}

std::uint64_t number_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr) return 0;
    json::error_code error;
    const auto number = value->to_number<std::uint64_t>(error);
    return error ? 0 : number;
}

/// Checks one line; it must be written exactly as export writes it, so that no byte is free.
bool check_line(const std::string& line, bool first, ChainCheck& check) {
    const auto value = parse_json(line);
    if (!value || !value->is_object()) return check.damage("the line is not JSON");
    const json::object& object = value->get_object();
    if (first) {
        const std::string public_key = bytes_of(object, "public_key");
        if (line != signer_line(public_key))
            return check.damage("the line of the signer is changed");
        return check.signer(public_key);
    }
    if (object.contains("receipt")) {
        const Link link{.sequence = number_of(object, "receipt"),
                        .id = text_of(object, "id"),
                        .body = text_of(object, "body"),
                        .hash = bytes_of(object, "hash"),
                        .previous = bytes_of(object, "previous")};
        return line == line_of(link) ? check.link(link) : check.damage("the line is changed");
    }
    const Head head{.sequence = number_of(object, "head"),
                    .key_id = text_of(object, "signer"),
                    .signature = bytes_of(object, "signature")};
    return line == line_of(head) ? check.head(head) : check.damage("the line is changed");
}

Result<AuditReport> verify_file(const std::filesystem::path& path,
                                const std::string& expected_head) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) return no_log(path);
    ChainCheck check(expected_head);
    std::string line;
    bool first = true;
    while (std::getline(stream, line)) {
        if (first && !line.starts_with("{\"signer\":")) {
            return fail(Error(ErrorCode::corrupt,
                              fmt::format("{} is not a receipt log: its first line names no signer",
                                          path.string()))
                            .italian(fmt::format("{} non è un registro di ricevute: la prima riga "
                                                 "non nomina un firmatario",
                                                 path.string())));
        }
        // getline takes a last line without its end for a whole one.
        if (stream.eof()) (void)check.damage("the last line is cut");
        if (!check_line(line, first, check)) break;
        first = false;
    }
    if (first) return fail(ErrorCode::corrupt, fmt::format("{} is empty", path.string()));
    return check.finish();
}

}  // namespace

Result<AuditReport> verify_log(const std::filesystem::path& log, const std::string& expected_head) {
    std::error_code ignored;
    if (std::filesystem::is_directory(log, ignored)) return verify_folder(log, expected_head);
    return verify_file(log, expected_head);
}

Result<std::uint64_t> export_log(const std::filesystem::path& folder,
                                 const std::filesystem::path& file) {
    TRY(Database database, open_log(folder));
    TRY_DO(database.execute("BEGIN"));
    TRY(const std::string signer, signer_of(database));
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << signer_line(signer) << '\n';
    std::uint64_t receipts = 0;
    TRY(LogReader reader, LogReader::open(database));
    TRY_DO(reader.each(
        [&](const Link& link) {
            ++receipts;
            out << line_of(link) << '\n';
            return out.good();
        },
        [&](const Head& head) {
            out << line_of(head) << '\n';
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
