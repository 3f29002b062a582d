#include "app/house.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "app/built_in.h"
#include "app/hashed_engine.h"
#include "app/prefix_files.h"
#include "base/coroutine.h"
#include "base/log.h"
#include "base/promise.h"
#include "models/catalogue.h"
#include "models/gguf.h"
#include "seal/seal.h"

namespace molly::app {
namespace fs = std::filesystem;
namespace {

Error no_model(const std::string& wanted) {
    if (wanted.empty()) {
        return Error(ErrorCode::not_found,
                     "there is no local model: import one (`molly models import FILE`), name one "
                     "(--model FILE), or set engine.enabled = false")
            .italian(
                "non c'è un modello locale: importarne uno (`molly models import FILE`), "
                "indicarlo (--model FILE) o impostare engine.enabled = false");
    }
    return Error(
               ErrorCode::not_found,
               fmt::format("{} is neither a model file nor a name of `molly models list`", wanted))
        .italian(fmt::format("{} non è né un file né un nome di `molly models list`", wanted));
}

}  // namespace

Task<void> create_key(members::Members& members, const members::Key* maker, members::Scope scope,
                      Result<members::NewKey>& made) {
    made = co_await members.create(maker, std::move(scope));
}

Result<fs::path> find_model(const std::string& wanted, const Places& places) {
    std::error_code fault;
    if (!wanted.empty() && fs::is_regular_file(wanted, fault)) return fs::absolute(wanted);
    const auto catalogue = models::Catalogue::open(places.data);
    if (!wanted.empty()) {
        if (catalogue) {
            if (const auto model = catalogue->find(wanted)) return model->file;
        }
        return fail(no_model(wanted));
    }
    if (auto model = built_in_model()) return *std::move(model);
    if (catalogue && !catalogue->list().empty()) return catalogue->list().front().file;
    fs::path test_model = executable().parent_path() / "models" / "molly-test.gguf";
    if (fs::is_regular_file(test_model, fault)) return test_model;
    return fail(no_model(wanted));
}

Result<std::string> read_upstream_key(const domain::TargetSpec& spec) {
    if (!spec.key_variable.empty()) {
        const char* value = std::getenv(spec.key_variable.c_str());
        if (value != nullptr && *value != '\0') return std::string(value);
        return fail(Error(ErrorCode::not_found,
                          fmt::format("target {}: the environment variable {} is not set", spec.id,
                                      spec.key_variable))
                        .italian(fmt::format("destinazione {}: la variabile {} non è impostata",
                                             spec.id, spec.key_variable)));
    }
    if (spec.key_file.empty()) return std::string();
    std::error_code fault;
    const fs::perms mode = fs::status(spec.key_file, fault).permissions();
    if (!fault && (mode & (fs::perms::group_all | fs::perms::others_all)) != fs::perms::none) {
        return fail(Error(ErrorCode::denied,
                          fmt::format("target {}: others may read the key file; chmod 600 {}",
                                      spec.id, spec.key_file))
                        .italian(fmt::format("destinazione {}: altri leggono il file della chiave; "
                                             "chmod 600 {}",
                                             spec.id, spec.key_file)));
    }
    std::ifstream in(spec.key_file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
        text.pop_back();
    if (!in || text.empty()) {
        return fail(Error(ErrorCode::not_found, fmt::format("target {}: cannot read a key from {}",
                                                            spec.id, spec.key_file))
                        .italian(fmt::format("destinazione {}: non si legge una chiave da {}",
                                             spec.id, spec.key_file)));
    }
    return text;
}

Task<void> House::counted(const net::Handler& handler, net::HttpRequest& request,
                          net::Responder& responder) {
    ++running_;
    co_await handler(request, responder);
    --running_;
}

Result<std::string> House::reload_rules() {
    const std::scoped_lock lock(reload_mutex_);
    auto config = read_config(places_);
    if (!config) {
        log_event(LogLevel::error, "rules_refused", {{"error", config.error().message()}});
        return fail(std::move(config).error());
    }
    auto annotator = annotate::Annotator::make(config->labels);
    if (!annotator) {
        log_event(LogLevel::error, "rules_refused", {{"error", annotator.error().message()}});
        return fail(std::move(annotator).error());
    }
    const std::string before = pipeline_->rules()->hash;
    pipeline_->use({.annotator = std::shared_ptr<const annotate::Annotator>(*std::move(annotator)),
                    .policy = std::make_shared<const policy::PolicyEngine>(config->policy),
                    .hash = config->rules_hash});
    log_event(LogLevel::info, "rules_loaded", {{"hash", config->rules_hash}, {"before", before}});
    return config->rules_hash;
}

/// Reading rules takes longer than an IO thread may stand still.
Task<Result<std::string>> House::reload_beside() {
    if (reloading_.exchange(true)) {
        co_return fail(Error(ErrorCode::conflict, "the rules are being read just now; try again")
                           .italian("le regole si stanno già rileggendo; riprovare"));
    }
    auto promise = std::make_shared<Promise<Result<std::string>>>();
    if (reloader_.joinable()) reloader_.join();  // it has said its result already
    reloader_ = std::thread([this, promise] {
        Result<std::string> loaded = reload_rules();
        reloading_ = false;
        promise->set(std::move(loaded));
    });
    co_return co_await promise->wait();
}

House::~House() {
    if (reloader_.joinable()) reloader_.join();
    // Engine and store wake those who wait for them on the IO threads, so they go while these still
    // run, and after the last exchange has seen its cancellation.
    if (running_ > 0) engine_.reset();
    for (int i = 0; i < 500 && running_ > 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (running_ > 0) {
        log_event(LogLevel::error, "exchanges_do_not_end", {{"count", running_.load()}});
        std::quick_exit(1);
    }
    engine_.reset();
    store_.reset();
    threads_.reset();
}

Result<void> House::ensure_owner() {
    members::Scope scope;
    scope.member = "owner";
    scope.app = "molly-cli";
    scope.admin = true;
    scope.lowest_class = domain::Sensitivity::public_;
    const members::Key* admin = nullptr;
    const std::vector<members::Key> keys = members_->list();
    for (const members::Key& key : keys) {
        if (key.revoked || key.scope.expires || !key.scope.admin) continue;
        if (key.scope.app == scope.app) {
            owner_ = key;
            return {};
        }
        if (admin == nullptr) admin = &key;
    }
    scope.declassify = admin == nullptr ? domain::Sensitivity::public_ : admin->scope.declassify;
    // Whoever may open the data folder is its owner, so an admin's key may make this one.
    Result<members::NewKey> made;
    threads_->run([&]() -> Task<void> { return create_key(*members_, admin, scope, made); });
    if (!made) return fail(std::move(made).error());
    owner_ = std::move(made->key);
    return {};
}

Result<void> House::open_engine(const HouseNeeds& needs) {
    if (!needs.engine || !config_.engine.enabled) return {};
    const std::string& wanted = needs.model.empty() ? config_.engine.model : needs.model;
    auto file = find_model(wanted, places_);
    // Remote targets can answer without a model of one's own; a model that was named must be there.
    if (!file && wanted.empty() && !config_.targets.empty()) return {};
    if (!file) return fail(std::move(file).error());
    model_file_ = *std::move(file);
    if (needs.tell) {
        needs.tell(fmt::format("loading {} ...", model_file_.string()),
                   fmt::format("carico {} ...", model_file_.string()));
    }
    TRY(const seal::Hash hash, seal::sha256_file(model_file_));
    engine::Limits limits = config_.engine.limits;
    if (!config_.engine.draft_model.empty()) {
        TRY(limits.draft_model, find_model(config_.engine.draft_model, places_));
    }
    TRY(limits.prefixes, open_prefixes(seal::to_hex(hash)));
    TRY(auto loaded, engine::Engine::open(model_file_, std::move(limits)));
    const auto gguf = models::read_gguf(model_file_);
    engine_ = with_hash(std::move(loaded), seal::to_hex(hash),
                        gguf ? gguf->text(models::made_from_key) : std::string());
    return offer_specialists(*registry_, places_.data, model_file_,
                             engine_->describe().base_hash());
}

/// The beginnings of prompts that are kept for this model; null where none may be. What lies there
/// from before goes then.
Result<std::shared_ptr<engine::PrefixStore>> House::open_prefixes(std::string model_hash) const {
    TRY(seal::Vault vault, seal::Vault::load_or_create(places_.data / "vault.key"));
    PrefixFiles::Options options{.folder = prefix_folder(places_),
                                 .bytes_max = config_.engine.prefix_bytes_max,
                                 .retention = config_.store.retention,
                                 .model = model_file_.stem().string(),
                                 .model_hash = std::move(model_hash)};
    TRY(std::shared_ptr<engine::PrefixStore> files,
        PrefixFiles::open(std::move(options), std::move(vault), system_clock()));
    if (config_.engine.prefix_bytes_max == 0) files.reset();
    return files;
}

Result<void> House::open_targets() {
    targets::Drafter drafter;
    if (engine_) {
        domain::TargetSpec spec = config_.engine.target;
        const engine::Description& model = engine_->describe();
        spec.model = model.name;
        config_.routing.model_names.emplace(model.name, spec.id);
        spec.capabilities.embed = model.embed > 0;
        spec.capabilities.tools = model.tools;
        spec.capabilities.json_schema = true;
        spec.capabilities.logprobs = true;
        spec.capabilities.context_tokens_max = model.context_tokens_max;
        drafter.engine = engine_.get();
        drafter.spec = std::make_shared<const domain::TargetSpec>(std::move(spec));
        targets_.push_back(targets::make_local_target(drafter.spec, *engine_, registry_.get()));
    }
    for (const auto& spec : config_.targets) {
        TRY(std::string key, read_upstream_key(*spec));
        targets_.push_back(targets::make_remote_target(spec, *connector_, std::move(key), drafter));
    }
    return {};
}

/// What was learned of targets before; rows that mean nothing any more are left where they are.
Result<void> House::open_estimates() {
    estimates_ = std::make_unique<router::Estimates>(config_.routing.estimates, system_clock());
    confidences_ = std::make_unique<router::Confidences>(config_.routing.estimates, system_clock());
    TRY(const std::vector<store::EstimateRow> stored, store_->estimates());
    std::vector<router::EstimateRow> rows;
    std::vector<router::SureRow> sure;
    for (const store::EstimateRow& row : stored) {
        const auto field = domain::field_from(row.field);
        const auto band = domain::band_from(row.band);
        const auto sureness = router::sure_band_from(row.band);
        if (field && sureness) {
            sure.push_back(
                {.meter = {.target = row.target, .adapter = row.adapter, .from = sureness->from},
                 .field = *field,
                 .bin = sureness->bin,
                 .mean = row.mean,
                 .weight = row.weight,
                 .updated = row.updated});
        }
        if (!field || !band) continue;
        rows.push_back({.target = row.target,
                        .adapter = row.adapter,
                        .field = *field,
                        .band = *band,
                        .mean = row.mean,
                        .weight = row.weight,
                        .updated = row.updated});
    }
    estimates_->load(rows);
    confidences_->load(sure);
    return {};
}

/// What was learned of the targets' scores, if a file is declared.
Result<void> House::open_expectations() {
    if (config_.predictor.empty()) return {};
    std::ifstream in(config_.predictor, std::ios::binary);
    if (!in) {
        return fail(Error(ErrorCode::not_found,
                          fmt::format("routing.predictor: cannot read {}; make it with `molly eval "
                                      "router TABLE --save FILE`",
                                      config_.predictor.string()))
                        .italian(fmt::format("routing.predictor: impossibile leggere {}; si fa con "
                                             "`molly eval router TABELLA --save FILE`",
                                             config_.predictor.string())));
    }
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    TRY(expectations_, annotate::Expectations::make(bytes));
    return {};
}

Result<void> House::open_pipeline(const HouseNeeds& needs) {
    TRY(const seal::Vault vault, seal::Vault::load_or_create(places_.data / "gateway.key"));
    std::vector<targets::Target*> targets;
    for (const auto& target : targets_)
        targets.push_back(target.get());
    pipeline::Parts parts{.annotator = *annotator_,
                          .policy = *policy_,
                          .store = *store_,
                          .members = *members_,
                          .health = *health_,
                          .routing = config_.routing,
                          .targets = std::move(targets),
                          .metrics = metrics_,
                          .clock = system_clock(),
                          .conversation_key = vault.derive("conversations"),
                          .estimates = estimates_.get(),
                          .specialists = specialists_.get(),
                          .expectations = expectations_.get(),
                          .confidences = confidences_.get()};
    config_.pipeline.fingerprints_above = config_.labels.default_class;
    pipeline_ = std::make_unique<pipeline::Pipeline>(std::move(parts), config_.pipeline);
    pipeline_->use({.annotator = annotator_, .policy = policy_, .hash = config_.rules_hash});
    gateway::Options options = config_.gateway;
    options.local_token = needs.local_token;
    options.local_key_id = owner_.id;
    options.version = MOLLY_VERSION;
    const gateway::Parts face{.pipeline = *pipeline_,
                              .policy = *policy_,
                              .members = *members_,
                              .store = *store_,
                              .routing = config_.routing,
                              .metrics = metrics_,
                              .clock = system_clock(),
                              .model = engine_ ? &engine_->describe() : nullptr,
                              .engine = engine_.get(),
                              .reload_rules = [this] { return reload_beside(); }};
    handler_ = [this, handler = gateway::make_handler(face, std::move(options))](
                   net::HttpRequest& request, net::Responder& responder) {
        return counted(handler, request, responder);
    };
    return {};
}

Result<std::unique_ptr<House>> House::open(Config config, const Places& places, HouseNeeds needs) {
    std::unique_ptr<House> house(new House(std::move(config), places));
    TRY_DO(make_private_folder(places.data));
    TRY(house->store_, store::Store::open(house->config_.store));
    TRY(house->members_, members::Members::open(*house->store_, system_clock()));
    house->threads_ = std::make_unique<net::IoThreads>(house->config_.io_threads);
    TRY_DO(house->ensure_owner());
    TRY(house->annotator_, annotate::Annotator::make(house->config_.labels));
    house->policy_ = std::make_shared<const policy::PolicyEngine>(house->config_.policy);
    house->health_ = std::make_unique<router::Health>(house->config_.routing, system_clock());
    TRY_DO(house->open_estimates());
    TRY(house->specialists_, annotate::Specialists::make(house->config_.specialists));
    TRY_DO(house->open_expectations());
    house->connector_ = net::make_connector();
    TRY(house->registry_, adapters::Registry::open(places.data));
    TRY_DO(house->open_engine(needs));
    TRY_DO(house->open_targets());
    TRY_DO(house->open_pipeline(needs));
    return house;
}

}  // namespace molly::app
