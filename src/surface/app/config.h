#pragma once
// What the owner declares: one commented TOML file, parsed into each module's own Options. Pure,
// except where a file is named.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "annotate/annotate.h"
#include "annotate/specialists.h"
#include "base/log.h"
#include "base/result.h"
#include "domain/target.h"
#include "engine/engine.h"
#include "gateway/gateway.h"
#include "net/server.h"
#include "pipeline/pipeline.h"
#include "policy/policy_engine.h"
#include "router/router.h"
#include "store/store.h"

namespace molly::app {

/// The engine in this process, and how it appears as a target.
struct LocalEngine {
    bool enabled = true;
    std::string model;        ///< file, or a name of the catalogue; empty: the built-in model
    std::string draft_model;  ///< as `model`; empty: none
    std::uint64_t prefix_bytes_max = 1U << 30U;  ///< on disk; 0: nothing is kept there
    engine::Limits limits;
    domain::TargetSpec target;
};

struct Config {
    net::ServerOptions server;
    bool allow_remote = false;  ///< whether an address beyond loopback may be bound
    std::uint32_t io_threads = 0;
    std::chrono::milliseconds stop_patience{10'000};
    gateway::Options gateway;
    store::Options store;
    LocalEngine engine;
    annotate::Options labels;
    policy::Options policy;
    router::Options routing;
    std::filesystem::path predictor;  ///< file of learned expectations; empty: none
    pipeline::Options pipeline;
    std::vector<std::shared_ptr<const domain::TargetSpec>> targets;
    std::vector<annotate::SpecialistPrompts>
        specialists;                    ///< those that were declared with prompts
    std::optional<LogLevel> log_level;  ///< unset: info, and on a terminal warnings alone
    std::string rules_hash;  ///< of the labels, detect and policy tables: eight bytes, hex
};

/// The commented file that holds every option with its default (`molly config default`).
std::string_view default_config() noexcept;

/// Parses one configuration. `file_name` is for the messages only.
/// Errors: invalid_request with one line per fault: file, line, path of the option, cure.
Result<Config> parse_config(std::string_view text, std::string_view file_name);

/// Reads and parses `file`. Errors: not_found; as parse_config.
Result<Config> load_config(const std::filesystem::path& file);

}  // namespace molly::app
