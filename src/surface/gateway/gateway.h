#pragma once
// The HTTP face: authentication, dialects at the edge, Molly's own interface. A handler over plain
// values, so that it runs without sockets as well. Safe from any IO thread.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/task.h"
#include "engine/engine.h"
#include "members/members.h"
#include "net/http.h"
#include "pipeline/pipeline.h"
#include "policy/policy_engine.h"
#include "router/router.h"
#include "store/store.h"

namespace molly::gateway {

struct Options {
    std::vector<std::string> hosts;    ///< names in Host besides `localhost` and plain addresses
    std::vector<std::string> origins;  ///< web pages that may call, such as `https://app.example`
    std::string anonymous_key_id;      ///< key of loopback callers that present none; empty: refuse
    JsonLimits json;                   ///< of request bodies
    std::chrono::milliseconds keep_alive{15'000};  ///< silence in a stream before a comment is sent
    std::string local_token;   ///< secret of the owner's own command line; empty: none
    std::string local_key_id;  ///< the key that it stands for
    std::string version = "0";
};

/// Everything that the face works with; it owns none of it.
struct Parts {
    pipeline::Pipeline& pipeline;
    const policy::PolicyEngine& policy;
    members::Members& members;
    store::Store& store;
    const router::Options& routing;
    Metrics& metrics;
    Clock& clock;
    const engine::Description* model = nullptr;  ///< of the local engine; null: none is loaded
    engine::Engine* engine = nullptr;            ///< the same engine
    /// Reads the label and policy rules again and gives their hash; empty: nothing here can.
    std::function<Task<Result<std::string>>()> reload_rules = {};
};

/// Answers every path; what it cannot answer becomes an error in the dialect of the path.
net::Handler make_handler(Parts parts, Options options);

/// The body of an error that came before any handler, in the dialect of the path.
std::string refusal_body(std::string_view path, const Error& error);

}  // namespace molly::gateway
