#include "app/hashed_engine.h"

#include <utility>

#include "base/coroutine.h"

namespace molly::app {
namespace {

class HashedEngine final : public engine::Engine {
public:
    HashedEngine(std::unique_ptr<engine::Engine> engine, std::string hash, std::string made_from)
        : engine_(std::move(engine)), description_(engine_->describe()) {
        description_.hash = std::move(hash);
        description_.made_from = std::move(made_from);
    }

    Task<Result<void>> generate(const domain::Request& request, engine::DeltaSink& sink) override {
        return engine_->generate(request, sink);
    }
    Task<Result<void>> generate_with(const domain::Request& request,
                                     std::vector<engine::AdapterUse> adapters,
                                     engine::DeltaSink& sink) override {
        return engine_->generate_with(request, std::move(adapters), sink);
    }
    Task<Result<engine::Embeddings>> embed(const domain::Request& request) override {
        return engine_->embed(request);
    }
    Result<std::shared_ptr<engine::Verification>> verify(engine::VerificationTerms terms) override {
        return engine_->verify(std::move(terms));
    }
    std::shared_ptr<engine::Verification> verification(const std::string& id,
                                                       const std::string& owner) const override {
        return engine_->verification(id, owner);
    }
    Result<std::unique_ptr<engine::Drafting>> draft(const domain::Request& request) override {
        return engine_->draft(request);
    }
    const engine::Description& describe() const noexcept override { return description_; }
    engine::Load load() const noexcept override { return engine_->load(); }
    engine::AdapterMemory adapters() const override { return engine_->adapters(); }
    engine::MemoryState memory() const override { return engine_->memory(); }
    engine::SpeculationState speculation() const override { return engine_->speculation(); }
    engine::StoredPrefixes stored_prefixes() const override { return engine_->stored_prefixes(); }
    void drop_adapter(const std::string& hash) override { engine_->drop_adapter(hash); }

private:
    std::unique_ptr<engine::Engine> engine_;
    engine::Description description_;
};

}  // namespace

std::unique_ptr<engine::Engine> with_hash(std::unique_ptr<engine::Engine> engine, std::string hash,
                                          std::string made_from) {
    return std::make_unique<HashedEngine>(std::move(engine), std::move(hash), std::move(made_from));
}

}  // namespace molly::app
