#pragma once
// A place that can answer: the local engine, a site server, a remote provider.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/registry.h"
#include "base/result.h"
#include "base/task.h"
#include "domain/response.h"
#include "domain/target.h"
#include "domain/trace.h"
#include "engine/engine.h"
#include "net/connector.h"
#include "policy/permit.h"
#include "policy/redactor.h"

namespace molly::targets {

using engine::DeltaSink;

/// What one attempt did, filled also when it failed.
struct Report {
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
    bool peer_authenticated = false;
    bool body_accepted = false;  ///< a blind retry could be paid for twice
    std::uint32_t drafted = 0;   ///< tokens that this device drafted for it
    std::uint32_t accepted = 0;  ///< of them, those that came
};

class Target {
public:
    explicit Target(std::shared_ptr<const domain::TargetSpec> spec);
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;
    Target(Target&&) = delete;
    Target& operator=(Target&&) = delete;
    virtual ~Target() = default;

    const domain::TargetSpec& spec() const noexcept { return *spec_; }
    const std::shared_ptr<const domain::TargetSpec>& shared_spec() const noexcept { return spec_; }

    /// Answers the dispatch. With `request.stream` or without: Deltas go to `sink` as they come, at
    /// least one. The response holds what the Deltas do not: model names, embeddings, usage.
    /// Errors: internal, when the dispatch is for another target or this one is T3; unavailable or
    /// upstream_failed (another target may do); rate_limited (with retry_after); invalid_request
    /// (the target refused the request itself); deadline_exceeded; cancelled.
    Task<Result<domain::Response>> run(policy::Dispatch dispatch, DeltaSink& sink, Report& report);
    /// The same for a T3 target, which takes redacted payloads alone. The Deltas are restored.
    Task<Result<domain::Response>> run(policy::Redacted payload, DeltaSink& sink, Report& report);

    /// The version that an adapter's name means here now: `law` -> `law@1.0.0`. Errors: not_found,
    /// naming what there is; conflict (made for another base).
    virtual Result<std::string> adapter(std::string_view asked) const;
    /// The label of what it learned from. Errors: as adapter.
    virtual Result<domain::Label> adapter_label(std::string_view asked) const;
    /// Another number whenever the answers of `adapter` and `adapter_label` may have changed.
    virtual std::uint64_t adapters_version() const { return 0; }
    /// Names of adapters that can be asked for here, sorted, at most `most`.
    virtual std::vector<std::string> adapters(std::size_t most) const;

    /// Requests that wait or run there now, as far as this process knows.
    virtual std::uint32_t queue_depth() const noexcept = 0;

    /// A light check that the target is there (`GET /models`, or the engine's own state). Needs a
    /// content-free permit.
    virtual Task<Result<void>> probe(const policy::Permit& permit) = 0;

private:
    // A target has one of the two; the other refuses.
    virtual Task<Result<domain::Response>> answer(policy::Dispatch dispatch, DeltaSink& sink,
                                                  Report& report);
    virtual Task<Result<domain::Response>> answer_redacted(policy::Redacted payload,
                                                           DeltaSink& sink, Report& report);

    std::shared_ptr<const domain::TargetSpec> spec_;
};

/// The engine in this process as a target. Without a registry it has no adapters.
std::unique_ptr<Target> make_local_target(std::shared_ptr<const domain::TargetSpec> spec,
                                          engine::Engine& engine,
                                          const adapters::Registry* registry = nullptr);

/// The engine in this process as one that drafts what another Molly answers.
struct Drafter {
    engine::Engine* engine = nullptr;                ///< null: there is none
    std::shared_ptr<const domain::TargetSpec> spec;  ///< the engine as a target: content must be
                                                     ///< permitted there too
};

/// An OpenAI-, Anthropic- or Ollama-speaking server; one of T3 is an external target. `key` is the
/// upstream's API key, or empty. Where the spec has `drafts`, the drafter works for it.
std::unique_ptr<Target> make_remote_target(std::shared_ptr<const domain::TargetSpec> spec,
                                           net::Connector& connector, std::string key,
                                           Drafter drafter = {});

}  // namespace molly::targets
