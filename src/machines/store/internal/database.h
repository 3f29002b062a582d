#pragma once
// SQLite behind two values: a connection and a prepared statement. One thread at a time each.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace molly::store::internal {

/// Bytes for a BLOB column; text is a string_view.
struct Blob {
    std::string_view bytes;
};

/// A prepared statement. Bound text must outlive the step that reads it.
class Statement {
public:
    Statement() = default;

    /// Runs a statement that gives no row. Errors: as Database.
    template <class... Values>
    Result<void> run(const Values&... values) {
        bind_all(values...);
        const auto stepped = step();
        reset();
        if (!stepped) return fail(stepped.error());
        return {};
    }
    /// Begins a query; `next` gives its rows.
    template <class... Values>
    void query(const Values&... values) {
        reset();
        bind_all(values...);
    }
    /// Whether there is one more row. Errors: as Database.
    Result<bool> next() { return step(); }
    void reset() noexcept;

    std::int64_t integer(int column) const noexcept;
    bool null(int column) const noexcept;
    /// Valid until the next `next` or `reset`; text and blobs alike.
    std::string_view bytes(int column) const noexcept;
    std::string text(int column) const { return std::string(bytes(column)); }

private:
    friend class Database;
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const noexcept;
    };
    template <class... Values>
    void bind_all(const Values&... values) {
        int index = 0;
        (bind(++index, values), ...);
    }
    void bind(int index, std::int64_t value) noexcept;
    void bind(int index, std::string_view value) noexcept;
    void bind(int index, Blob value) noexcept;
    void bind(int index, std::nullptr_t) noexcept;
    Result<bool> step();

    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

enum class Access : std::uint8_t {
    write,
    read,
    frozen,  ///< nobody writes, and nothing may be written beside the file
};

/// A connection. Errors of every call: conflict (locked, constraint), corrupt (damaged, with the
/// cure), exhausted (disk full), unavailable.
class Database {
public:
    Database() = default;
    /// Errors: also not_found, when a reader finds no file.
    static Result<Database> open(const std::filesystem::path& path, Access access);

    Result<void> execute(const std::string& statements);
    Result<Statement> prepare(std::string_view statement);
    /// The one integer of a query such as a PRAGMA.
    Result<std::int64_t> integer(std::string_view query);
    std::int64_t changes() const noexcept;

    struct CheckpointState {
        std::int64_t pages = 0;  ///< in the log
        std::int64_t done = 0;   ///< of them, copied into the database
    };
    /// Copies the log into the database. `restart` waits for readers and lets the log begin anew;
    /// the caller then holds writers off.
    Result<CheckpointState> checkpoint(bool restart);

    explicit operator bool() const noexcept { return connection_ != nullptr; }

private:
    struct Close {
        void operator()(sqlite3* connection) const noexcept;
    };
    std::unique_ptr<sqlite3, Close> connection_;
};

}  // namespace molly::store::internal
