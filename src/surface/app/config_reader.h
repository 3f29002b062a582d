#pragma once
// Reads one table of the configuration: what is unknown, of the wrong type or out of range becomes
// a message with file, line and path. Pure.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// toml++ 3.3 asserts what it checks again right below: `[=` in a file would end the process instead
// of being a fault of the file. The fuzzer runs without these assertions, under sanitizers.
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "domain/label.h"
#include "domain/money.h"
#include "domain/request.h"
#include "domain/tier.h"

namespace molly::app {

/// The faults of one file, in both languages, in the order in which they were found.
class Faults {
public:
    explicit Faults(std::string_view file) : file_(file) {}
    void add(const toml::source_region& where, std::string_view path, std::string_view english,
             std::string_view italian);
    bool empty() const noexcept { return english_.empty(); }
    const std::string& english() const noexcept { return english_; }
    const std::string& italian() const noexcept { return italian_; }

private:
    std::string file_;
    std::string english_;
    std::string italian_;
};

/// One table. Each `read` names an option, fills `out` when the file sets it, and remembers the
/// name; `close` then reports every name that nobody asked for.
class Reader {
public:
    Reader(const toml::table& table, std::string path, Faults& faults)
        : table_(table), path_(std::move(path)), faults_(faults) {}

    void read(std::string_view name, std::string& out);
    void read(std::string_view name, bool& out);
    void read(std::string_view name, double& out, double min, double max);
    void read(std::string_view name, std::vector<std::string>& out);
    void read(std::string_view name, std::map<std::string, std::string, std::less<>>& out);

    template <class Integer>
    void read(std::string_view name, Integer& out, std::int64_t min, std::int64_t max) {
        if (const auto value = integer(name, min, max)) out = static_cast<Integer>(*value);
    }
    /// An integer of the duration's own unit.
    template <class Rep, class Period>
    void read(std::string_view name, std::chrono::duration<Rep, Period>& out, std::int64_t max) {
        if (const auto value = integer(name, 0, max))
            out = std::chrono::duration<Rep, Period>(static_cast<Rep>(*value));
    }
    /// A word out of a closed set; `parse` gives nullopt for others.
    template <class Value, class Parse>
    void read_word(std::string_view name, Value& out, Parse parse, std::string_view choices) {
        std::string word;
        read(name, word);
        if (word.empty()) return;
        if (const auto value = parse(word)) {
            out = *value;
        } else {
            fault(name, "must be one of " + std::string(choices),
                  "deve essere uno fra " + std::string(choices));
        }
    }
    void read(std::string_view name, std::optional<domain::Sensitivity>& out);
    void read(std::string_view name, std::optional<domain::Residency>& out);
    void read(std::string_view name, std::optional<domain::TierSet>& out);
    /// A price per million tokens, kept per token.
    void read_price(std::string_view name, domain::Money& out);

    bool has(std::string_view name) const { return table_.contains(name); }
    /// The sub-table of that name, or nothing when the file has none.
    std::optional<Reader> section(std::string_view name);
    /// The elements of `[[name]]`.
    std::vector<Reader> list(std::string_view name);

    void fault(std::string_view name, std::string_view english, std::string_view italian);
    /// Reports the names that nobody asked for, with the nearest known one.
    void close();

    const std::string& path() const noexcept { return path_; }

private:
    const toml::node* find(std::string_view name);
    std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max);
    std::string below(std::string_view name) const;
    void wrong_type(std::string_view name, std::string_view english, std::string_view italian);

    const toml::table& table_;
    std::string path_;
    Faults& faults_;
    std::set<std::string, std::less<>> known_;
};

/// Insertions, deletions, substitutions and swaps that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace molly::app
