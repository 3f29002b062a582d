#include "store/internal/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace molly::store::internal {
namespace {

std::unexpected<Error> error_of(sqlite3* connection, int code) {
    const char* file = connection == nullptr ? nullptr : ::sqlite3_db_filename(connection, "main");
    const std::string name = file == nullptr || *file == '\0' ? "the store" : file;
    // The text of SQLite names columns and causes, never values.
    const std::string cause =
        connection == nullptr ? ::sqlite3_errstr(code) : ::sqlite3_errmsg(connection);
    switch (code & 0xFF) {
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return fail(
                Error(
                    ErrorCode::corrupt,
                    fmt::format("{0} is damaged ({1}); stop Molly and restore it from a backup, or "
                                "save what is readable: sqlite3 {0} .recover",
                                name, cause))
                    .italian(fmt::format("{0} è danneggiato ({1}); fermare Molly e ripristinarlo "
                                         "da una copia, o salvare ciò che si legge: sqlite3 {0} "
                                         ".recover",
                                         name, cause)));
        case SQLITE_FULL:
            return fail(
                Error(ErrorCode::exhausted,
                      fmt::format("no room left on the disk of {}; free some space", name))
                    .italian(fmt::format("spazio esaurito sul disco di {}; liberarne", name)));
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return fail(
                Error(ErrorCode::conflict,
                      fmt::format("another process is using {}; stop it, or try again", name))
                    .italian(fmt::format("un altro processo sta usando {}; fermarlo o "
                                         "riprovare",
                                         name)));
        case SQLITE_CONSTRAINT:
            return fail(ErrorCode::conflict, fmt::format("the row exists already ({})", cause));
        default:
            return fail(
                Error(ErrorCode::unavailable,
                      fmt::format("{} cannot be used: {}; check the disk and the "
                                  "permissions of its folder",
                                  name, cause))
                    .italian(fmt::format("{} non è utilizzabile: {}; controllare il disco e "
                                         "i permessi della cartella",
                                         name, cause)));
    }
}

std::string uri_of(const std::filesystem::path& path, Access access) {
    std::string uri = "file:";
    for (const char c : std::filesystem::absolute(path).string()) {
        if (c == '%' || c == '?' || c == '#') {
            uri += fmt::format("%{:02X}", static_cast<unsigned>(c));
        } else {
            uri += c;
        }
    }
    if (access == Access::write) return uri + "?mode=rwc";
    return uri + (access == Access::read ? "?mode=ro" : "?mode=ro&immutable=1");
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const noexcept {
    ::sqlite3_finalize(statement);
}

void Statement::reset() noexcept {
    ::sqlite3_reset(statement_.get());
}

void Statement::bind(int index, std::int64_t value) noexcept {
    ::sqlite3_bind_int64(statement_.get(), index, value);
}
void Statement::bind(int index, std::string_view value) noexcept {
    ::sqlite3_bind_text64(statement_.get(), index, value.data() == nullptr ? "" : value.data(),
                          value.size(), SQLITE_STATIC, SQLITE_UTF8);
}
void Statement::bind(int index, Blob value) noexcept {
    ::sqlite3_bind_blob64(statement_.get(), index, value.bytes.data(), value.bytes.size(),
                          SQLITE_STATIC);
}
void Statement::bind(int index, std::nullptr_t) noexcept {
    ::sqlite3_bind_null(statement_.get(), index);
}

Result<bool> Statement::step() {
    const int code = ::sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return error_of(::sqlite3_db_handle(statement_.get()), code);
}

std::int64_t Statement::integer(int column) const noexcept {
    return ::sqlite3_column_int64(statement_.get(), column);
}
bool Statement::null(int column) const noexcept {
    return ::sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}
std::string_view Statement::bytes(int column) const noexcept {
    const auto* bytes = static_cast<const char*>(::sqlite3_column_blob(statement_.get(), column));
    const auto count = static_cast<std::size_t>(::sqlite3_column_bytes(statement_.get(), column));
    return bytes == nullptr ? std::string_view() : std::string_view(bytes, count);
}

void Database::Close::operator()(sqlite3* connection) const noexcept {
    ::sqlite3_close_v2(connection);
}

Result<Database> Database::open(const std::filesystem::path& path, Access access) {
    std::error_code ignored;
    if (access != Access::write && !std::filesystem::exists(path, ignored)) {
        return fail(Error(ErrorCode::not_found, fmt::format("there is no {}", path.string()))
                        .italian(fmt::format("{} non esiste", path.string())));
    }
    const int mode =
        access == Access::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    sqlite3* connection = nullptr;
    const int code = ::sqlite3_open_v2(uri_of(path, access).c_str(), &connection,
                                       mode | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
    Database database;
    database.connection_.reset(connection);
    if (code != SQLITE_OK) return error_of(connection, code);
    ::sqlite3_extended_result_codes(connection, 1);
    ::sqlite3_busy_timeout(connection, 5000);
    return database;
}

Result<void> Database::execute(const std::string& statements) {
    const int code =
        ::sqlite3_exec(connection_.get(), statements.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return error_of(connection_.get(), code);
    return {};
}

Result<Statement> Database::prepare(std::string_view statement) {
    sqlite3_stmt* prepared = nullptr;
    const int code = ::sqlite3_prepare_v3(connection_.get(), statement.data(),
                                          static_cast<int>(statement.size()),
                                          SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
    if (code != SQLITE_OK) return error_of(connection_.get(), code);
    Statement result;
    result.statement_.reset(prepared);
    return result;
}

Result<std::int64_t> Database::integer(std::string_view query) {
    TRY(Statement statement, prepare(query));
    TRY(const bool found, statement.next());
    return found ? statement.integer(0) : 0;
}

std::int64_t Database::changes() const noexcept {
    return ::sqlite3_changes(connection_.get());
}

Result<Database::CheckpointState> Database::checkpoint(bool restart) {
    int pages = 0;
    int done = 0;
    const int code = ::sqlite3_wal_checkpoint_v2(
        connection_.get(), nullptr,
        restart ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, &pages, &done);
    if (code != SQLITE_OK && code != SQLITE_BUSY) return error_of(connection_.get(), code);
    return CheckpointState{.pages = pages, .done = done};
}

}  // namespace molly::store::internal
