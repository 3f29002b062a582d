#include "engine/engine.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/coroutine.h"
#include "base/log.h"
#include "base/promise.h"
#include "engine/internal/adapter_lane.h"
#include "engine/internal/chat_format.h"
#include "engine/internal/company.h"
#include "engine/internal/job.h"
#include "engine/internal/model.h"
#include "engine/internal/preparer.h"
#include "engine/internal/reader.h"
#include "engine/internal/row_attention.h"
#include "engine/internal/runner.h"
#include "engine/internal/threads.h"
#include "engine/internal/worker.h"

namespace molly::engine {
namespace {

/// In one order, whatever order they were named in, each once: sums of floats depend on it.
std::vector<AdapterUse> each_once(std::vector<AdapterUse> adapters) {
    std::ranges::sort(adapters, {}, &AdapterUse::hash);
    std::vector<AdapterUse> once;
    for (AdapterUse& use : adapters) {
        if (!once.empty() && once.back().hash == use.hash) {
            once.back().scale += use.scale;
        } else {
            once.push_back(std::move(use));
        }
    }
    return once;
}

class LocalEngine final : public Engine {
public:
    LocalEngine(std::unique_ptr<Model> model, std::unique_ptr<ChatFormat> format, Limits limits)
        : model_(std::move(model)), format_(std::move(format)), limits_(std::move(limits)) {}
    LocalEngine(const LocalEngine&) = delete;
    LocalEngine& operator=(const LocalEngine&) = delete;
    ~LocalEngine() override {
        verifications_.end_all();
        // First whoever might hand work to the workers.
        if (hot_) hot_->stop();
        if (prefixes_) prefixes_->stop();
        if (runner_) runner_->stop();
    }

    Result<void> start();
    Task<Result<void>> generate(const domain::Request& request, DeltaSink& sink) override {
        return answer(request, {}, sink);
    }
    Task<Result<void>> generate_with(const domain::Request& request,
                                     std::vector<AdapterUse> adapters, DeltaSink& sink) override {
        return answer(request, each_once(std::move(adapters)), sink);
    }
    Task<Result<Embeddings>> embed(const domain::Request& request) override;
    Result<std::shared_ptr<Verification>> verify(VerificationTerms terms) override;
    std::shared_ptr<Verification> verification(const std::string& id,
                                               const std::string& owner) const override {
        return verifications_.find(id, owner);
    }
    Result<std::unique_ptr<Drafting>> draft(const domain::Request& request) override;
    const Description& describe() const noexcept override { return model_->description(); }
    Load load() const noexcept override {
        return {.running = runner_->running(),
                .waiting = runner_->waiting() + worker_->waiting() + loader_->waiting() +
                           (prefixes_ ? prefixes_->waiting() : 0)};
    }
    AdapterMemory adapters() const override;
    MemoryState memory() const override;
    SpeculationState speculation() const override { return runner_->speculation(); }
    StoredPrefixes stored_prefixes() const override {
        return prefixes_ ? prefixes_->state() : StoredPrefixes{};
    }
    void drop_adapter(const std::string& hash) override { hot_->drop(hash); }

private:
    Result<std::shared_ptr<DraftModel>> open_draft_model(
        std::uint32_t threads, std::shared_ptr<const ComputeThreads> kept_threads);
    Result<void> check_room() const;
    Task<Result<void>> answer(const domain::Request& request, std::vector<AdapterUse> adapters,
                              DeltaSink& sink);
    void prepare(const domain::Request& request, const std::vector<AdapterUse>& adapters,
                 const std::shared_ptr<Stream>& stream, Company& company);
    Result<void> take_adapters(Job& job);
    Result<void> check_memory(Job& job) const;
    void take_again(std::unique_ptr<Sequence> sequence);
    Result<std::vector<std::vector<Token>>> read_inputs(const domain::Request& request) const;

    std::unique_ptr<Model> model_;
    std::unique_ptr<ChatFormat> format_;
    Limits limits_;
    std::unique_ptr<Preparer> preparer_;
    std::unique_ptr<AdapterLane> lane_;
    std::shared_ptr<MemoryBudget> budget_;
    std::uint64_t draft_bytes_ = 0;  // of it, what the draft model always has
    std::shared_ptr<HotSet> hot_;
    std::shared_ptr<PrefixKeeper> prefixes_;  // null: nothing is kept on disk
    std::shared_ptr<Runner> runner_;
    Verifications verifications_;
    std::unique_ptr<Worker> worker_;  // the last two: they use all of the above
    std::unique_ptr<Worker> loader_;  // waits for adapters, so that nobody else has to
};

/// Fewer sequences, then a shorter context, until keys and values take half of the free memory at
/// most: the kernel would grant more and kill the process later.
void fit_to_memory(const Model& model, Limits& limits) {
    constexpr std::uint32_t context_tokens_least = 2048;
    const std::uint64_t room = memory_available() / 2;
    const auto bytes = [&] {
        return model.cache_bytes_per_token() * limits.context_tokens_max * limits.sequences_max;
    };
    while (bytes() > room && limits.sequences_max > 1)
        limits.sequences_max /= 2;
    while (bytes() > room && limits.context_tokens_max > context_tokens_least)
        limits.context_tokens_max /= 2;
}

/// Lowers the limits to what the model was trained for and what memory holds, and makes a context.
Result<ContextPtr> make_context(const Model& model, Limits& limits, std::uint32_t threads,
                                const std::shared_ptr<const ComputeThreads>& kept_threads,
                                AdapterLane& lane) {
    const auto scope = lane.scope();
    limits.sequences_max = std::clamp<std::uint32_t>(limits.sequences_max, 1, 64);
    limits.step_tokens_max = std::max(limits.step_tokens_max, limits.sequences_max);
    limits.context_tokens_max =
        std::min(limits.context_tokens_max, std::max(1U, model.description().context_tokens_max));
    fit_to_memory(model, limits);
    for (;;) {
        ContextPtr context = new_context(model, {.context_tokens = limits.context_tokens_max,
                                                 .sequences = limits.sequences_max,
                                                 .step_tokens = limits.step_tokens_max,
                                                 .threads = threads,
                                                 .kept_threads = kept_threads});
        if (context) {
            limits.context_tokens_max =
                std::min(limits.context_tokens_max, llama_n_ctx_seq(context.get()));
            if (limits.deterministic && !attend_row_by_row(*context))
                log_event(LogLevel::warning, "attention_not_deterministic", {});
            return context;
        }
        if (limits.sequences_max == 1) break;
        limits.sequences_max /= 2;
    }
    return fail(Error(ErrorCode::exhausted,
                      "no memory for the model's context; lower context_tokens_max or use a "
                      "smaller model")
                    .italian("manca memoria per il contesto del modello; abbassare "
                             "context_tokens_max o usare un modello più piccolo"));
}

std::uint32_t choose_threads(const Model& model, const Limits& limits) {
    constexpr std::uint64_t small_model_bytes = 64U << 20U;  // waiting would cost more than working
    if (limits.threads > 0) return limits.threads;
    return model.description().file_bytes < small_model_bytes ? 1 : free_cores();
}

Result<void> LocalEngine::start() {
    const std::uint32_t threads = choose_threads(*model_, limits_);
    lane_ = std::make_unique<AdapterLane>(model_->handle(), limits_, threads);
    const std::shared_ptr<const ComputeThreads> kept_threads = ComputeThreads::make(threads);
    TRY(auto context, make_context(*model_, limits_, threads, kept_threads, *lane_));
    lane_->settle(limits_.adapter_route);
    Description& description = model_->description();
    description.context_tokens_max = limits_.context_tokens_max;
    description.tools = format_->tools();
    description.vocabulary = vocabulary_hash(*model_);
    preparer_ = std::make_unique<Preparer>(*model_, *format_, limits_);
    const std::uint64_t room =
        limits_.memory_bytes_max != 0 ? limits_.memory_bytes_max : memory_available() / 2;
    budget_ = std::make_shared<MemoryBudget>(room);
    TRY(const auto draft_model, open_draft_model(threads, kept_threads));
    TRY(hot_, lane_->make_hot_set(limits_.adapter_bytes_max != 0 ? limits_.adapter_bytes_max : room,
                                  budget_, limits_.adapter_numbers));
    if (limits_.prefixes && !limits_.deterministic) {
        const std::string layout = prefix_layout(*model_->handle(), limits_, lane_->together());
        prefixes_ = std::make_shared<PrefixKeeper>(limits_.prefixes, layout, budget_);
    }
    worker_ = std::make_unique<Worker>();
    loader_ = std::make_unique<Worker>();
    runner_ = std::make_shared<Runner>(
        Runner::Parts{
            .model = *model_,
            .limits = limits_,
            .adapters = *lane_,
            .hot = hot_,
            .budget = budget_,
            .draft_model = draft_model,
            .prefixes = prefixes_,
            .wait_for_adapters =
                [this](std::unique_ptr<Sequence> sequence) { take_again(std::move(sequence)); }},
        std::move(context), threads);
    hot_->on_wish([this] { runner_->nudge(); });
    loader_->post([this] { hot_->prepare(); });
    log_event(LogLevel::info, "model_loaded",
              {{"name", description.name},
               {"threads", threads},
               {"sequences_max", limits_.sequences_max},
               {"context_tokens_max", limits_.context_tokens_max}});
    return {};
}

/// Null when none is wanted. Its keys and values lie in memory as long as it does.
Result<std::shared_ptr<DraftModel>> LocalEngine::open_draft_model(
    std::uint32_t threads, std::shared_ptr<const ComputeThreads> kept_threads) {
    if (limits_.draft_model.empty() || limits_.speculation == Speculation::off)
        return std::shared_ptr<DraftModel>();
    TRY(std::shared_ptr<DraftModel> draft,
        DraftModel::open(limits_.draft_model, *model_, limits_, threads, std::move(kept_threads)));
    draft_bytes_ = draft->bytes();
    if (budget_->take(draft_bytes_)) return draft;
    constexpr double mebibyte = 1 << 20U;
    const double wanted = static_cast<double>(draft->bytes()) / mebibyte;
    const double there = static_cast<double>(budget_->bytes_max()) / mebibyte;
    return fail(
        Error(ErrorCode::exhausted,
              fmt::format("the draft model's keys and values take {:.1f} MiB and the engine may "
                          "use {:.1f}; raise engine.memory_mib, lower sequences_max or "
                          "context_tokens_max, or leave engine.draft_model empty",
                          wanted, there))
            .italian(fmt::format("chiavi e valori del modello che abbozza prendono {:.1f} MiB e il "
                                 "motore può usarne {:.1f}; alzare engine.memory_mib, abbassare "
                                 "sequences_max o context_tokens_max, o lasciare vuoto "
                                 "engine.draft_model",
                                 wanted, there)));
}

Result<void> LocalEngine::check_room() const {
    if (load().waiting < limits_.inbox_jobs_max) return {};
    return fail(Error(ErrorCode::exhausted, "the local model is busy; try again in a moment")
                    .italian("il modello locale è occupato; riprovare tra poco")
                    .retry_after(std::chrono::seconds(1)));
}

AdapterMemory LocalEngine::adapters() const {
    AdapterMemory memory = hot_->state();
    memory.together = lane_->together();
    memory.kernel = lane_->kernel();
    memory.layers = lane_->layers();
    return memory;
}

Result<void> LocalEngine::take_adapters(Job& job) {
    if (job.adapters.empty()) return {};
    std::vector<AdapterUse> uses;
    for (const JobAdapter& adapter : job.adapters)
        uses.push_back(adapter.use);
    const auto wanted = [&] { return !job.cancelled() && job.deadline > system_clock().now(); };
    TRY(auto holds, hot_->take(uses, wanted));
    for (std::size_t i = 0; i < holds.size(); ++i)
        job.adapters[i].hold = std::move(holds[i]);
    return {};
}

/// A request that could never run is refused with the numbers; one whose answer could not be as
/// long as it may gets a shorter one.
Result<void> LocalEngine::check_memory(Job& job) const {
    const std::uint64_t token = runner_->places().bytes_per_token();
    const AdapterMemory adapters = hot_->state();
    std::uint64_t other = adapters.bytes_pinned + draft_bytes_;
    for (const JobAdapter& adapter : job.adapters)
        if (!adapter.use.pinned) other += adapter.hold.get()->bytes();
    other = std::min(other, budget_->bytes_max());
    const std::uint64_t fits =
        (budget_->bytes_max() - other) / token / ContextPlaces::block * ContextPlaces::block;
    if (job.prompt.size() + 1 <= fits) {
        const auto left = static_cast<std::uint32_t>(fits - job.prompt.size());
        job.answer_tokens_max = std::min(job.answer_tokens_max, left);
        return {};
    }
    const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 1048576; };
    const std::uint64_t wanted = (job.prompt.size() + 1) * token;
    return fail(
        Error(ErrorCode::exhausted,
              fmt::format("the prompt needs {:.1f} MiB of memory; {:.1f} MiB are there, {:.1f} of "
                          "them for adapters and the draft model; shorten it or raise "
                          "engine.memory_mib",
                          mib(wanted), mib(budget_->bytes_max()), mib(other)))
            .param("messages")
            .italian(fmt::format("il prompt vuole {:.1f} MiB di memoria; ce ne sono {:.1f}, {:.1f} "
                                 "per adattatori e modello che abbozza; accorciarlo o alzare "
                                 "engine.memory_mib",
                                 mib(wanted), mib(budget_->bytes_max()), mib(other))));
}

void LocalEngine::prepare(const domain::Request& request, const std::vector<AdapterUse>& adapters,
                          const std::shared_ptr<Stream>& stream, Company& company) {
    if (stream->abandoned.load(std::memory_order_acquire)) return;
    auto job = preparer_->prepare(request);
    Result<void> ready;
    if (job) {
        (*job)->stream = stream;
        for (const AdapterUse& use : adapters)
            (*job)->adapters.push_back({.use = use, .hold = {}});
        ready = take_adapters(**job);
        if (ready) ready = check_memory(**job);
    } else {
        ready = fail(std::move(job).error());
    }
    if (!ready) {
        company.failed(ready.error());
        stream->send({.delta = {}, .error = std::move(ready).error(), .last = true});
        return;
    }
    auto sequence = std::make_unique<Sequence>();
    sequence->feed = std::move((*job)->prompt);
    sequence->prompt_tokens = static_cast<std::uint32_t>(sequence->feed.size());
    company.join(**job, sequence->feed);
    sequence->job = *std::move(job);
    runner_->submit(std::move(sequence));
}

/// For the engine thread: brings a sequence back once its adapters are in memory again.
void LocalEngine::take_again(std::unique_ptr<Sequence> sequence) {
    const auto carried = std::make_shared<std::unique_ptr<Sequence>>(std::move(sequence));
    loader_->post([this, carried] {
        Job& job = *(*carried)->job;
        if (auto taken = take_adapters(job); !taken) {
            job.stream->send({.delta = {}, .error = std::move(taken).error(), .last = true});
            return;
        }
        runner_->submit(std::move(*carried));
    });
}

Task<Result<void>> LocalEngine::answer(const domain::Request& request,
                                       std::vector<AdapterUse> adapters, DeltaSink& sink) {
    CO_TRY_DO(check_room());
    const auto stream = std::make_shared<Stream>();
    const Reader reader(stream, runner_);
    const std::weak_ptr<Runner> runner = runner_;
    const CancelSubscription subscription(request.cancellation, [runner] { nudge(runner); });
    const auto copy = std::make_shared<const domain::Request>(request);
    const bool ready = hot_->ready(adapters);
    Worker& worker = ready ? *worker_ : *loader_;
    const auto company = std::make_shared<Company>(verifications_.claim(request.id), nullptr);
    worker.post([this, copy, uses = std::move(adapters), stream, company] {
        prepare(*copy, uses, stream, *company);
    });
    if (!ready) loader_->post([this] { hot_->prepare(); });
    for (;;) {
        Event event = co_await stream->events.receive();
        reader.took_one();
        if (event.error) co_return fail(*std::move(event.error));
        CO_TRY_DO(co_await sink.write(event.delta));
        if (event.last) co_return Result<void>();
    }
}

Result<std::shared_ptr<Verification>> LocalEngine::verify(VerificationTerms terms) {
    const bool can_check = runner_->can_rewind() && limits_.speculation != Speculation::off;
    TRY_DO(check_drafter(*model_, can_check, terms.vocabulary));
    const std::weak_ptr<Runner> runner = runner_;
    return verifications_.open(std::make_shared<CheckedDrafts>(std::move(terms), model_->tokens(),
                                                               [runner] { nudge(runner); }));
}

Result<std::unique_ptr<Drafting>> LocalEngine::draft(const domain::Request& request) {
    if (!runner_->can_rewind()) return Engine::draft(request);
    const Load now = load();
    if (now.waiting > 0 || now.running >= limits_.sequences_max)
        return fail(ErrorCode::exhausted, "the places of the engine are taken");
    const std::weak_ptr<Runner> runner = runner_;
    const auto answer = std::make_shared<DraftedAnswer>([runner] { nudge(runner); });
    const auto stream = std::make_shared<Stream>();
    const auto copy = std::make_shared<const domain::Request>(to_draft(request));
    const auto company = std::make_shared<Company>(nullptr, answer);
    worker_->post([this, copy, company, stream] { prepare(*copy, {}, stream, *company); });
    return make_drafting(answer, stream, runner);
}

MemoryState LocalEngine::memory() const {
    const ContextPlaces& places = runner_->places();
    return {.bytes_max = budget_->bytes_max(),
            .bytes = budget_->used(),
            .cache = places.bytes(),
            .prefixes = places.idle_bytes(),
            .cache_resident = places.memory().resident(),
            .parked = runner_->parked(),
            .elastic = places.memory().usable()};
}

Result<std::vector<std::vector<Token>>> LocalEngine::read_inputs(
    const domain::Request& request) const {
    std::vector<std::vector<Token>> inputs;
    const std::uint32_t most = std::min(Embedder::text_tokens_max, limits_.context_tokens_max);
    for (const auto& input : request.inputs) {
        TRY(auto tokens, model_->tokenize(input.text(), true));
        if (tokens.empty() || tokens.size() > most) {
            return fail(Error(ErrorCode::invalid_request,
                              fmt::format("input {} has {} tokens and this model embeds 1 to {}; "
                                          "split it",
                                          inputs.size(), tokens.size(), most))
                            .reason(tokens.empty() ? "" : "context_length_exceeded")
                            .param("input"));
        }
        inputs.push_back(std::move(tokens));
    }
    return inputs;
}

Task<Result<Embeddings>> LocalEngine::embed(const domain::Request& request) {
    CO_TRY_DO(check_room());
    CO_TRY(auto inputs, read_inputs(request));
    Embeddings embeddings;
    embeddings.usage.source = domain::Usage::Source::engine;
    for (auto& tokens : inputs) {
        if (request.cancellation && request.cancellation->cancelled()) {
            co_return fail(ErrorCode::cancelled, "the caller has gone");
        }
        if (request.deadline <= system_clock().now()) {
            co_return fail(ErrorCode::deadline_exceeded, "the inputs were not embedded in time");
        }
        embeddings.usage.prompt_tokens += static_cast<std::uint32_t>(tokens.size());
        const auto promise = std::make_shared<Promise<Result<std::vector<float>>>>();
        const auto input = std::make_shared<const std::vector<Token>>(std::move(tokens));
        runner_->run_between_steps([promise, input](Embedder* embedder) {
            promise->set(embedder != nullptr
                             ? embedder->embed(*input)
                             : fail(ErrorCode::cancelled, "the engine is stopping"));
        });
        CO_TRY(auto vector, co_await promise->wait());
        embeddings.vectors.push_back(std::move(vector));
    }
    co_return embeddings;
}

}  // namespace

Task<Result<void>> Engine::generate_with(const domain::Request& /*request*/,
                                         std::vector<AdapterUse> /*adapters*/,
                                         DeltaSink& /*sink*/) {
    co_return fail(ErrorCode::unsupported, "this engine runs no adapters");
}

Result<std::shared_ptr<Verification>> Engine::verify(VerificationTerms /*terms*/) {
    return fail(ErrorCode::unsupported, "this engine checks no drafts");
}

std::shared_ptr<Verification> Engine::verification(const std::string& /*id*/,
                                                   const std::string& /*owner*/) const {
    return nullptr;
}

Result<std::unique_ptr<Drafting>> Engine::draft(const domain::Request& /*request*/) {
    return fail(ErrorCode::unsupported, "this engine drafts for nobody");
}

std::optional<AdapterNumbers> adapter_numbers_from(std::string_view word) noexcept {
    if (word == "f16") return AdapterNumbers::f16;
    if (word == "int8") return AdapterNumbers::int8;
    return std::nullopt;
}

Result<std::unique_ptr<Engine>> Engine::open(const std::filesystem::path& model, Limits limits) {
    if (limits.backends.empty()) limits.backends = MOLLY_LLAMA_LIBRARIES;
    TRY_DO(load_backends(limits.backends));
    TRY(auto loaded, Model::load(model));
    TRY(auto format, ChatFormat::make(loaded->handle()));
    auto engine =
        std::make_unique<LocalEngine>(std::move(loaded), std::move(format), std::move(limits));
    TRY_DO(engine->start());
    return engine;
}

}  // namespace molly::engine
