#pragma once
// Builds everything once, in order, and takes it down in reverse: the only place that knows all
// modules.
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "adapters/registry.h"
#include "app/config.h"
#include "app/places.h"
#include "net/connector.h"
#include "targets/target.h"

namespace molly::app {

struct HouseNeeds {
    bool engine = true;       ///< load the local model, when it is enabled
    std::string model;        ///< instead of the configured one
    std::string local_token;  ///< secret of this run, for the owner's own command line
    std::function<void(std::string_view english, std::string_view italian)> tell;  ///< slow steps
};

class House {
public:
    /// Errors: those of the modules, with the cure.
    static Result<std::unique_ptr<House>> open(Config config, const Places& places,
                                               HouseNeeds needs);
    House(const House&) = delete;
    House& operator=(const House&) = delete;
    House(House&&) = delete;
    House& operator=(House&&) = delete;
    /// Cancels what the model still computes, then lets the threads end.
    ~House();

    const Config& config() const noexcept { return config_; }
    net::IoThreads& threads() noexcept { return *threads_; }
    members::Members& members() noexcept { return *members_; }
    /// The key by which the owner's own command line acts. Nobody has its text.
    const members::Key& owner() const noexcept { return owner_; }
    const net::Handler& handler() const noexcept { return handler_; }
    /// Reads the configuration again and decides by its label and policy rules from the next
    /// request on; everything else of the file stays as it was at the start. Refused as a whole
    /// when anything in it is wrong. Gives the hash of the rules. Blocks; safe from any thread.
    Result<std::string> reload_rules();
    /// The loaded model, or null.
    const engine::Engine* engine() const noexcept { return engine_.get(); }
    const std::filesystem::path& model_file() const noexcept { return model_file_; }

private:
    House(Config config, Places places) : config_(std::move(config)), places_(std::move(places)) {}
    Result<void> ensure_owner();
    Result<void> open_engine(const HouseNeeds& needs);
    Result<std::shared_ptr<engine::PrefixStore>> open_prefixes(std::string model_hash) const;
    Result<void> open_targets();
    Result<void> open_estimates();
    Result<void> open_expectations();
    Result<void> open_pipeline(const HouseNeeds& needs);
    Task<Result<std::string>> reload_beside();
    Task<void> counted(const net::Handler& handler, net::HttpRequest& request,
                       net::Responder& responder);

    Config config_;
    Places places_;
    Metrics metrics_;
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<members::Members> members_;
    members::Key owner_;
    std::shared_ptr<const annotate::Annotator> annotator_;
    std::shared_ptr<const policy::PolicyEngine> policy_;
    std::unique_ptr<router::Health> health_;
    std::unique_ptr<router::Estimates> estimates_;
    std::unique_ptr<router::Confidences> confidences_;
    std::unique_ptr<annotate::Specialists> specialists_;
    std::unique_ptr<annotate::Expectations> expectations_;
    std::unique_ptr<net::Connector> connector_;
    std::unique_ptr<engine::Engine> engine_;
    std::unique_ptr<adapters::Registry> registry_;
    std::filesystem::path model_file_;
    std::vector<std::unique_ptr<targets::Target>> targets_;
    std::unique_ptr<pipeline::Pipeline> pipeline_;
    net::Handler handler_;
    std::atomic<std::int32_t> running_ = 0;  // exchanges
    std::mutex reload_mutex_;
    std::atomic<bool> reloading_ = false;
    std::thread reloader_;
    std::unique_ptr<net::IoThreads> threads_;
};

/// Makes a key and gives it through `made`; run it on the IO threads.
Task<void> create_key(members::Members& members, const members::Key* maker, members::Scope scope,
                      Result<members::NewKey>& made);

/// The model file that the configuration means: a file, a name of the catalogue, else the built-in
/// model, the only one of the catalogue, or the test model of the build. Errors: not_found.
Result<std::filesystem::path> find_model(const std::string& wanted, const Places& places);

/// The upstream's API key, or empty. Errors: denied (readable by others), not_found.
Result<std::string> read_upstream_key(const domain::TargetSpec& spec);

}  // namespace molly::app
