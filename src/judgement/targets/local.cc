#include <utility>

#include "base/coroutine.h"
#include "domain/adapter_share.h"
#include "targets/internal/component.h"
#include "targets/target.h"

namespace molly::targets {
namespace {

/// Passes Deltas on and remembers the usage that the engine counted.
class CountingSink final : public DeltaSink {
public:
    explicit CountingSink(DeltaSink& next) : next_(next) {}

    Task<Result<void>> write(const domain::Delta& delta) override {
        if (delta.usage) usage_ = *delta.usage;
        if (!delta.prefix.empty()) prefix_ = delta.prefix;
        return next_.write(delta);
    }
    const domain::Usage& usage() const noexcept { return usage_; }
    const std::string& prefix() const noexcept { return prefix_; }

private:
    DeltaSink& next_;
    domain::Usage usage_;
    std::string prefix_;
};

class LocalTarget final : public Target {
public:
    LocalTarget(std::shared_ptr<const domain::TargetSpec> spec, engine::Engine& engine,
                const adapters::Registry* registry)
        : Target(std::move(spec)), engine_(engine), registry_(registry) {}

    Result<std::string> adapter(std::string_view asked) const override {
        if (registry_ == nullptr) return Target::adapter(asked);
        TRY(auto shares, domain::adapter_shares_from(asked));
        for (domain::AdapterShare& share : shares) {
            TRY(const adapters::Manifest manifest, find(share));
            share.name = manifest.id();
        }
        return to_string(shares);
    }
    Result<domain::Label> adapter_label(std::string_view asked) const override {
        if (registry_ == nullptr) return Target::adapter_label(asked);
        TRY(const auto shares, domain::adapter_shares_from(asked));
        domain::Label label;
        label.sensitivity = domain::Sensitivity::public_;
        for (const domain::AdapterShare& share : shares) {
            TRY(const adapters::Manifest manifest, find(share));
            label = join(label, manifest.label);
        }
        return label;
    }
    std::uint64_t adapters_version() const override {
        return registry_ == nullptr ? 0 : registry_->version();
    }
    std::vector<std::string> adapters(std::size_t most) const override {
        if (registry_ == nullptr) return {};
        return registry_->names_for(engine_.describe().base_hash(), most);
    }

    std::uint32_t queue_depth() const noexcept override {
        const engine::Load load = engine_.load();
        return load.running + load.waiting;
    }

    Task<Result<void>> probe(const policy::Permit& permit) override {
        co_return permit.check(spec());
    }

private:
    Result<adapters::Manifest> find(const domain::AdapterShare& share) const {
        return registry_->find(share.name, engine_.describe().base_hash());
    }

    struct Chosen {
        std::vector<engine::AdapterUse> uses;
        adapters::Component component;  // of one that serves alone; mixed ones have none
        domain::Label label;            // of what they learned from
    };
    /// What it takes to run adapters.
    Result<Chosen> chosen(const std::string& names) const {
        if (registry_ == nullptr) return fail(Target::adapter(names).error());
        TRY(const auto shares, domain::adapter_shares_from(names));
        Chosen out;
        out.label.sensitivity = domain::Sensitivity::public_;
        for (const domain::AdapterShare& share : shares) {
            TRY(const adapters::Manifest manifest, find(share));
            engine::AdapterUse use;
            use.id = manifest.id();
            use.hash = manifest.hash;
            use.file = registry_->file_of(manifest);
            use.scale = share.scale;
            use.pinned = registry_->pinned(manifest);
            out.label = join(out.label, manifest.label);
            out.uses.push_back(std::move(use));
            if (shares.size() == 1) out.component = manifest.component;
        }
        return out;
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
        if (!dispatch.adapter().empty()) {
            CO_TRY(Chosen with, chosen(dispatch.adapter()));
            domain::Request asked = as_component(request, with.component);
            asked.extensions.sensitivity = join(dispatch.label(), with.label).sensitivity;
            CO_TRY_DO(co_await engine_.generate_with(asked, std::move(with.uses), counting));
        } else if (request.extensions.keep_prefix != domain::KeepPrefix::none) {
            // The engine keeps what the class of the whole request allows, not what was declared.
            domain::Request asked = request;
            asked.extensions.sensitivity = dispatch.label().sensitivity;
            CO_TRY_DO(co_await engine_.generate(asked, counting));
        } else {
            CO_TRY_DO(co_await engine_.generate(request, counting));
        }
        response.usage = counting.usage();
        response.prefix = counting.prefix();
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
