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
    LocalTarget(std::shared_ptr<const domain::TargetSpec> spec, engine::Engine& engine)
        : Target(std::move(spec)), engine_(engine) {}

    std::uint32_t queue_depth() const noexcept override {
        const engine::Load load = engine_.load();
        return load.running + load.waiting;
    }

    Task<Result<void>> probe(const policy::Permit& permit) override {
        co_return permit.check(spec());
    }

private:
    Task<Result<domain::Response>> answer(policy::Dispatch dispatch, DeltaSink& sink,
                                          Report& /*report*/) override {
        const domain::Request& request = dispatch.request();
        domain::Response response;
        response.target = spec().id;
        response.adapter = dispatch.adapter();
        response.model = engine_.describe().name;
        response.model_hash = engine_.describe().hash;
        if (request.operation == domain::Operation::embed) {
            CO_TRY(engine::Embeddings embeddings, co_await engine_.embed(request));
            response.embeddings = std::move(embeddings.vectors);
            response.usage = embeddings.usage;
            co_return response;
        }
        CountingSink counting(sink);
        CO_TRY_DO(co_await engine_.generate(request, counting));
        response.usage = counting.usage();
        co_return response;
    }

    engine::Engine& engine_;
};

}  // namespace

std::unique_ptr<Target> make_local_target(std::shared_ptr<const domain::TargetSpec> spec,
                                          engine::Engine& engine) {
    return std::make_unique<LocalTarget>(std::move(spec), engine);
}

}  // namespace molly::targets
