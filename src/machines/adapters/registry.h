#pragma once
// The LoRA adapters of one data folder: `adapters/names/<name>/<version>.json`, the weights beside
// them under their hash. Versions never change; which one serves is a line in a history file, so
// another process sees a promotion at once. Nothing is read at start. The calls block on small
// files; safe from any thread and beside other processes.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/manifest.h"
#include "base/result.h"

namespace molly::adapters {

class Shelf;

struct ImportOptions {
    /// The GGUF file of the base. Empty: the catalogue's model of manifest.base.hash, or, without a
    /// hash, the one called manifest.base.name.
    std::filesystem::path base;
    bool promote = true;  ///< let requests without a version get it from now on
    std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

/// One version and where it stands.
struct Entry {
    Manifest manifest;
    bool current = false;  ///< what a name without a version means on its base
    bool pinned = false;   ///< the engine keeps it hot
};

class Registry {
public:
    /// `data` is the data folder. Errors: unavailable.
    static Result<std::unique_ptr<Registry>> open(const std::filesystem::path& data);
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;
    ~Registry();

    /// Takes in a GGUF LoRA file (general.type = adapter) or a PEFT folder (adapter_config.json and
    /// adapter_model.safetensors). Of the manifest, name and version must be set; what the files
    /// say themselves is filled in, and what was set must agree. Every tensor is checked against
    /// the base, and every number for being finite. Signed with this folder's key. Importing the
    /// same bytes under the same version again is no error. Errors: not_found, corrupt (naming the
    /// tensor), invalid_request (name, version), conflict (the version exists with other bytes; the
    /// base or the tokenizer is another one; the first tensor that does not fit the base),
    /// unsupported, exhausted (disk full).
    Result<Manifest> import(const std::filesystem::path& file, Manifest manifest,
                            const ImportOptions& options = {});

    /// The version that `id` means: `law@1.0.0` exactly, `law` the promoted one for this base. An
    /// empty `base_hash` stands for any base. Errors: not_found, naming what there is; conflict
    /// (made for another base).
    Result<Manifest> find(std::string_view id, std::string_view base_hash = {}) const;
    /// Everything, by name, then version, newest first; an empty name: all names.
    Result<std::vector<Entry>> list(std::string_view name = {}) const;
    /// What the next version of a name would be: one minor more than its newest; 1.0.0 for a new
    /// name. Errors: as list, but for not_found.
    Result<std::string> next_version(std::string_view name) const;
    /// The names whose promoted version fits the base, sorted, at most `most` of them.
    std::vector<std::string> names_for(std::string_view base_hash, std::size_t most) const;

    /// Grows whenever this process or another one changed anything: one look at the size of a file,
    /// to which every change adds a byte.
    std::uint64_t version() const noexcept;

    /// The weights. The file may be gone when a version was removed in between.
    std::filesystem::path file_of(const Manifest& manifest) const;

    /// Errors: not_found.
    Result<void> promote(std::string_view id);
    /// Goes back to what was promoted before, for the base of the current version. Errors:
    /// not_found, conflict (there is nothing before it).
    Result<Manifest> rollback(std::string_view name);
    /// Errors: not_found.
    Result<void> pin(std::string_view id, bool pinned);
    bool pinned(const Manifest& manifest) const;
    /// Reads every byte again: hash, signature, shapes against the base when `base` is given.
    /// Errors: not_found, corrupt (says which), denied (the signature is not by `public_key`, when
    /// that is given).
    Result<void> verify(std::string_view id, std::string_view public_key = {}) const;
    /// Writes `<name>-<version>.gguf` and the manifest beside it. Errors: not_found, exhausted.
    Result<std::filesystem::path> write_out(std::string_view id,
                                            const std::filesystem::path& folder) const;
    /// Forgets one version (`law@1.0.0`) or all of a name; weights that no version has left go too.
    /// Errors: not_found, conflict (a current version while others exist: promote one first).
    Result<void> remove(std::string_view id);

private:
    struct Known;  // a name as it was read last

    explicit Registry(std::filesystem::path data);
    Result<std::shared_ptr<const Shelf>> shelf(const std::string& name) const;
    Result<Shelf> shelf_to_change(const std::string& name) const;
    void forget(const std::string& name) const;
    std::vector<std::string> names() const;
    Result<void> sign(Manifest& manifest) const;
    Result<Manifest> enter(const std::filesystem::path& file, Manifest manifest, bool promote);
    Result<void> check_signature(const Manifest& manifest, std::string_view public_key) const;
    void drop_unused(const std::string& hash) const;

    std::filesystem::path data_;
    std::filesystem::path folder_;
    mutable std::mutex mutex_;
    mutable std::map<std::string, Known, std::less<>> known_;
};

/// Opens the registry of the data folder and imports: all that a trainer needs.
Result<Manifest> import_adapter(const std::filesystem::path& data,
                                const std::filesystem::path& file, Manifest manifest,
                                const ImportOptions& options = {});

}  // namespace molly::adapters
