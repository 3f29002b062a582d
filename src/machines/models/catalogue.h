#pragma once
// Which model files are here, and how new ones arrive. The calls block on files: run them, and the
// coroutine too, off the threads that serve requests.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "base/task.h"
#include "net/connector.h"
#include "policy/policy_engine.h"

namespace molly::models {

struct Model {
    std::string name;  ///< unique in the catalogue
    std::filesystem::path file;
    std::string hash;    ///< SHA-256, hex
    std::string source;  ///< `import`, or the URL that it came from
    std::uint64_t bytes = 0;
    std::string architecture;
    std::string quantization;
    std::uint64_t parameters = 0;
    std::uint32_t context_tokens = 0;
    bool chat_template = false;
};

/// Bytes done and bytes in all (0 when unknown).
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// The catalogue of one data folder: `models/<name>.gguf` and `models/catalogue.json`. Changes are
/// safe beside other processes; one object is used by one thread.
class Catalogue {
public:
    /// `folder` is the data folder. Errors: corrupt, unavailable, unsupported (a newer Molly wrote
    /// it).
    static Result<Catalogue> open(std::filesystem::path folder);
    /// Reads again what another process may have changed. Errors: as open.
    Result<void> reload();

    const std::vector<Model>& list() const noexcept { return models_; }
    /// Errors: not_found, naming what there is.
    Result<Model> find(const std::string& name) const;

    /// Checks a GGUF file and links or copies it in; an empty name: the file's. Errors: not_found,
    /// corrupt, conflict (name taken by other bytes), invalid_request (name), exhausted (disk
    /// full).
    Result<Model> import(const std::filesystem::path& file, std::string name,
                         const Progress& progress);
    /// Takes a file that lies in models_folder() already under its name; `hash` is its SHA-256.
    /// Errors: as import.
    Result<Model> adopt(const std::filesystem::path& part, std::string name, std::string hash,
                        std::string source);
    /// Errors: not_found.
    Result<void> remove(const std::string& name);

    /// Where the files are.
    const std::filesystem::path& models_folder() const noexcept { return folder_; }

private:
    explicit Catalogue(std::filesystem::path folder) : folder_(std::move(folder)) {}
    Result<void> save() const;
    Result<bool> taken(const std::string& name, const std::string& hash) const;
    Result<Model> enter(Model model);

    std::filesystem::path folder_;
    std::vector<Model> models_;
};

struct PullOptions {
    std::string source;   ///< an https URL, or `hf:owner/repo/path/file.gguf`
    std::string name;     ///< empty: from the file
    std::string sha256;   ///< expected, hex; empty: whatever comes is recorded
    std::string ca_file;  ///< PEM of accepted authorities; empty: the system's
    std::uint64_t bytes_max = 200ULL << 30U;
    std::string hub = "https://huggingface.co";  ///< where `hf:` sources are; a mirror's address
    std::uint32_t attempts_max = 5;              ///< without a byte of progress in between
    std::chrono::milliseconds retry_wait{1000};  ///< doubled after each attempt without progress
    CancellationPtr cancellation;
};

/// The name that a source or a file gives a model: its last part without `.gguf`.
std::string model_name_of(const std::string& source);
/// Errors: invalid_request, saying what a name may be.
Result<void> check_name(const std::string& name);

/// Downloads into the catalogue: resumes a part that an earlier call left, follows redirects (each
/// cleared again by policy), checks SHA-256 and GGUF before the file gets its name. https only,
/// except on this device's loopback. No request content and no key is in what it sends. Errors:
/// invalid_request (source), denied, not_found, conflict (the name is taken, or another pull of it
/// runs), unavailable, upstream_failed, corrupt (hash or file), too_large, exhausted (disk full),
/// cancelled.
Task<Result<Model>> pull(Catalogue& catalogue, net::Connector& connector,
                         const policy::PolicyEngine& policy, PullOptions options,
                         Progress progress);

}  // namespace molly::models
