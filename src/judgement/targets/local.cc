#include <utility>

#include "base/coroutine.h"
#include "targets/target.h"

namespace molly::targets {
namespace {

/// Passes Deltas on and remembers the usage that the engine counted.
class CountingSink final : public DeltaSink {
public:
    explicit CountingSink(DeltaSink& next) : next_(next) {}

    Task<Result<void>> write(const domain::Delta& delta) override {
        if (delta.usage) usage_ = *delta.usage;
        return next_.write(delta);
    }
    const domain::Usage& usage() const noexcept { return usage_; }

private:
    DeltaSink& next_;
    domain::Usage usage_;
};

class LocalTarget final : public Target {
public:
    LocalTarget(std::shared_ptr<const domain::TargetSpec> spec, engine::Engine& engine,
                const adapters::Registry* registry)
        : Target(std::move(spec)), engine_(engine), registry_(registry) {}

    Result<std::string> adapter(std::string_view asked) const override {
        if (registry_ == nullptr) return Target::adapter(asked);
        TRY(const adapters::Manifest manifest, registry_->find(asked, engine_.describe().hash));
        return manifest.id();
    }
    Result<domain::Label> adapter_label(std::string_view asked) const override {
        if (registry_ == nullptr) return Target::adapter_label(asked);
        TRY(adapters::Manifest manifest, registry_->find(asked, engine_.describe().hash));
        return std::move(manifest.label);
    }
    std::vector<std::string> adapters(std::size_t most) const override {
        if (registry_ == nullptr) return {};
        return registry_->names_for(engine_.describe().hash, most);
    }

    std::uint32_t queue_depth() const noexcept override {
        const engine::Load load = engine_.load();
        return load.running + load.waiting;
    }

    Task<Result<void>> probe(const policy::Permit& permit) override {
        co_return permit.check(spec());
    }

private:
    /// What the engine needs to run an adapter.
    Result<engine::AdapterUse> use_of(const std::string& id) const {
        if (registry_ == nullptr) return fail(Target::adapter(id).error());
        TRY(const adapters::Manifest manifest, registry_->find(id, engine_.describe().hash));
        engine::AdapterUse use;
        use.id = manifest.id();
        use.hash = manifest.hash;
        use.file = registry_->file_of(manifest);
        use.pinned = registry_->pinned(manifest);
        return use;
    }

    Task<Result<domain::Response>> answer(policy::Dispatch dispatch, DeltaSink& sink,
                                          Report& /*report*/) override {
        const domain::Request& request = dispatch.request();
        domain::Response response;
        response.target = spec().id;
        response.adapter = dispatch.adapter();
        response.model = engine_.describe().name;
        response.model_hash = engine_.describe().hash;
        if (request.operation == domain::Operation::embed && !dispatch.adapter().empty()) {
            co_return fail(
                Error(ErrorCode::unsupported,
                      "embeddings are the base's; ask for them without an adapter")
                    .param("model")
                    .italian("gli embedding sono della base; chiederli senza adattatore"));
        }
        if (request.operation == domain::Operation::embed) {
            CO_TRY(engine::Embeddings embeddings, co_await engine_.embed(request));
            response.embeddings = std::move(embeddings.vectors);
            response.usage = embeddings.usage;
            co_return response;
        }
        CountingSink counting(sink);
        if (dispatch.adapter().empty()) {
            CO_TRY_DO(co_await engine_.generate(request, counting));
        } else {
            CO_TRY(engine::AdapterUse use, use_of(dispatch.adapter()));
            response.adapter = use.id;
            CO_TRY_DO(co_await engine_.generate_with(request, std::move(use), counting));
        }
        response.usage = counting.usage();
        co_return response;
    }

    engine::Engine& engine_;
    const adapters::Registry* registry_;
};

}  // namespace

std::unique_ptr<Target> make_local_target(std::shared_ptr<const domain::TargetSpec> spec,
                                          engine::Engine& engine,
                                          const adapters::Registry* registry) {
    return std::make_unique<LocalTarget>(std::move(spec), engine, registry);
}

}  // namespace molly::targets
