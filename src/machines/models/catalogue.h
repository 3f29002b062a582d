#pragma once
// Which model files are here, and how new ones arrive. Blocking calls; run them off the IO threads.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

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

/// The catalogue of one data folder: `models/<name>.gguf` and `models/catalogue.json`.
class Catalogue {
public:
    /// Errors: corrupt, unavailable.
    static Result<Catalogue> open(std::filesystem::path folder);

    const std::vector<Model>& list() const noexcept { return models_; }
    /// Errors: not_found, naming what there is.
    Result<Model> find(const std::string& name) const;

    /// Checks a GGUF file and links or copies it in. Errors: not_found, corrupt, conflict (name
    /// taken by other bytes).
    Result<Model> import(const std::filesystem::path& file, std::string name,
                         const Progress& progress);
    /// Errors: not_found.
    Result<void> remove(const std::string& name);

private:
    explicit Catalogue(std::filesystem::path folder) : folder_(std::move(folder)) {}
    Result<void> save() const;

    std::filesystem::path folder_;
    std::vector<Model> models_;
};

struct PullOptions {
    std::string source;   ///< an https URL, or `hf:owner/repo/path/file.gguf`
    std::string name;     ///< empty: from the file
    std::string sha256;   ///< expected, hex; empty: whatever comes is recorded
    std::string ca_file;  ///< PEM of accepted authorities; empty: the system's
    std::uint64_t bytes_max = 200ULL << 30U;
};

/// Downloads into the catalogue: resumes a part that an earlier call left, follows redirects (each
/// cleared again by policy), checks SHA-256 and GGUF before the file gets its name. No request
/// content and no key is in what it sends. Errors: invalid_request (source), denied, unavailable,
/// upstream_failed, corrupt (hash or file), too_large.
Task<Result<Model>> pull(Catalogue& catalogue, net::Connector& connector,
                         const policy::PolicyEngine& policy, PullOptions options,
                         Progress progress);

}  // namespace molly::models
