#pragma once
// One name's folder: its versions, which of them served when, and which are pinned. Reading is
// lazy; the writers expect the registry's lock to be held.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "adapters/manifest.h"
#include "base/result.h"

namespace molly::adapters {

struct NewestFirst {
    bool operator()(const std::string& a, const std::string& b) const {
        return compare_versions(a, b) > 0;
    }
};

class Shelf {
public:
    /// Errors: not_found, corrupt.
    static Result<Shelf> read(const std::filesystem::path& folder);
    /// An empty one; its folder is made by the first `put`.
    explicit Shelf(std::filesystem::path folder) : folder_(std::move(folder)) {}

    const std::map<std::string, Manifest, NewestFirst>& versions() const noexcept {
        return versions_;
    }
    /// The version that was promoted last for this base, or for any when it is empty; null: none.
    const Manifest* current(std::string_view base_hash) const;
    bool pinned(const std::string& version) const { return pins_.contains(version); }

    Result<void> put(const Manifest& manifest);
    Result<void> promote(const std::string& version);
    /// What serves afterwards. Errors: conflict.
    Result<Manifest> rollback();
    Result<void> pin(const std::string& version, bool pinned);
    Result<void> remove(const std::string& version);

private:
    Result<void> read_history();
    Result<void> read_pins();
    Result<void> write_history() const;

    std::filesystem::path folder_;
    std::map<std::string, Manifest, NewestFirst> versions_;
    std::vector<std::string> history_;  // promoted versions, the last one serves
    std::set<std::string> pins_;
};

}  // namespace molly::adapters
