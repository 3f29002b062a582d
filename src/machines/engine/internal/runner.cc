#include "engine/internal/runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace molly::engine {
namespace {

using domain::FinishReason;

bool empty(const domain::Delta& delta) {
    return delta.text.empty() && delta.reasoning.empty() && delta.tool_calls.empty() &&
           delta.logprobs.empty() && !delta.finish;
}

Error stopped() {
    return {ErrorCode::cancelled, "the engine is stopping"};
}

}  // namespace

Runner::Runner(const Model& model, ContextPtr context, const Limits& limits, std::uint32_t threads,
               AdapterLane& adapters)
    : model_(model),
      limits_(limits),
      adapters_(adapters),
      context_(std::move(context)),
      embedder_(model, threads),
      batch_(limits.step_tokens_max),
      slots_(limits.sequences_max),
      kept_(limits.sequences_max),
      thread_([this] { run(); }) {}

Runner::~Runner() {
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
    }
    news_.notify_one();
    thread_.join();
}

void Runner::submit(std::unique_ptr<Job> job) {
    {
        const std::scoped_lock lock(mutex_);
        inbox_.push_back(std::move(job));
    }
    news_.notify_one();
}

void Runner::run_between_steps(std::function<void(Embedder*)> work) {
    {
        const std::scoped_lock lock(mutex_);
        between_.push_back(std::move(work));
    }
    news_.notify_one();
}

void Runner::nudge() {
    {
        const std::scoped_lock lock(mutex_);
        nudged_ = true;
    }
    news_.notify_one();
}

std::uint32_t Runner::waiting() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::uint32_t>(inbox_.size() + between_.size());
}

void Runner::run() {
    while (take_jobs()) {
        drop_ended();
        if (!step()) wait_for_news();
    }
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (slots_[slot]) fail_sequence(slot, stopped());
    }
    const std::scoped_lock lock(mutex_);
    for (auto& job : inbox_)
        job->stream->send({.delta = {}, .error = stopped(), .last = true});
    for (const auto& work : between_)
        work(nullptr);
}

/// Fills free slots and runs one piece of other work. False: stop.
bool Runner::take_jobs() {
    std::function<void(Embedder*)> work;
    std::vector<std::unique_ptr<Job>> jobs;
    {
        const std::scoped_lock lock(mutex_);
        if (stopping_) return false;
        nudged_ = false;
        const auto room = std::ranges::count_if(slots_, [](const Slot& slot) { return !slot; });
        while (!inbox_.empty() && std::ssize(jobs) < room) {
            jobs.push_back(next_job());
            running_.fetch_add(1, std::memory_order_relaxed);
        }
        if (!between_.empty()) {
            work = std::move(between_.front());
            between_.pop_front();
        }
    }
    for (auto& job : jobs)
        start(std::move(job));
    if (work) work(&embedder_);
    return true;
}

/// Takes the job out of the inbox whose member has had least. The lock is held.
std::unique_ptr<Job> Runner::next_job() {
    std::vector<const std::string*> waiting;
    std::vector<const std::string*> running;
    for (const auto& job : inbox_)
        waiting.push_back(&job->member);
    for (const Slot& slot : slots_)
        if (slot) running.push_back(&slot->job->member);
    const auto at = inbox_.begin() + static_cast<std::ptrdiff_t>(share_.pick(waiting, running));
    std::unique_ptr<Job> job = std::move(*at);
    inbox_.erase(at);
    return job;
}

/// Gives the job a place, the one whose content it can use if there is one.
void Runner::start(std::unique_ptr<Job> job) {
    std::vector<std::size_t> free;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot)
        if (!slots_[slot]) free.push_back(slot);
    const std::string key = prefix_key(job->adapter.hash(), job->adapter_scale, job->member);
    const PlaceChoice choice = choose_place(kept_, free, key, job->prompt);
    auto sequence = std::make_unique<Sequence>();
    const llama_memory_t memory = llama_get_memory(context_.get());
    const auto id = static_cast<llama_seq_id>(choice.place);
    KeptPrefix& kept = kept_[choice.place];
    // Some architectures cannot forget the end alone. And where the last bit counts, nothing is
    // used again: attention rounds differently for a part of a prompt than for the whole.
    const bool cut = choice.reused > 0 && !limits_.deterministic &&
                     llama_memory_seq_rm(memory, id, static_cast<llama_pos>(choice.reused), -1);
    if (cut) {
        sequence->cached = sequence->fed = choice.reused;
        sequence->position = static_cast<llama_pos>(choice.reused);
    } else {
        llama_memory_seq_rm(memory, id, -1, -1);
    }
    kept.key = key;
    kept.tokens.resize(sequence->cached);
    kept.used = ++started_;
    sequence->job = std::move(job);
    slots_[choice.place] = std::move(sequence);
}

void Runner::drop_ended() {
    const MonoTime now = system_clock().now();
    const auto ended = [&](const Job& job) -> std::optional<Error> {
        if (job.cancelled()) return Error(ErrorCode::cancelled, "the caller has gone");
        if (job.deadline > now) return std::nullopt;
        return Error(ErrorCode::deadline_exceeded,
                     "the answer was not finished in time; allow more time or fewer tokens")
            .italian("la risposta non è finita in tempo; concedere più tempo o meno token");
    };
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (!slots_[slot]) continue;
        if (auto error = ended(*slots_[slot]->job)) fail_sequence(slot, *std::move(error));
    }
    const std::scoped_lock lock(mutex_);
    std::erase_if(inbox_, [&](const std::unique_ptr<Job>& job) {
        auto error = ended(*job);
        if (error) job->stream->send({.delta = {}, .error = std::move(error), .last = true});
        return error.has_value();
    });
}

bool Runner::step() {
    std::vector<std::size_t> slots;
    std::vector<SequenceView> views;
    std::vector<AdapterStep> steps(slots_.size());
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (!slots_[slot]) continue;
        const Sequence& sequence = *slots_[slot];
        slots.push_back(slot);
        views.push_back(
            {.prompt_left = static_cast<std::uint32_t>(sequence.job->prompt.size()) - sequence.fed,
             .paused = sequence.job->stream->full()});
        steps[slot] = {.adapter = sequence.job->adapter.get(),
                       .scale = sequence.job->adapter_scale};
    }
    adapters_.choose(slots, steps, views);
    const auto plan = plan_step(views, {.tokens_max = limits_.step_tokens_max});
    fill_batch(slots, plan);
    if (batch_.size() == 0) {
        const std::scoped_lock lock(mutex_);
        return !between_.empty();
    }
    const int failed = adapters_.decode(*context_, batch_.view(), std::move(steps));
    for (std::size_t i = 0; i < slots.size(); ++i)
        share_.served(slots_[slots[i]]->job->member, plan[i]);
    if (failed != 0) {
        log_event(LogLevel::error, "engine_step_failed", {{"code", failed}});
        for (std::size_t i = 0; i < slots.size(); ++i) {
            if (plan[i] == 0) continue;
            kept_[slots[i]].used = 0;  // nobody knows what the context holds of it now
            fail_sequence(slots[i], Error(ErrorCode::internal, "the forward pass failed"));
        }
        return true;
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (plan[i] > 0 && slots_[slots[i]]->output >= 0) advance(slots[i]);
    }
    return true;
}

void Runner::fill_batch(const std::vector<std::size_t>& slots,
                        const std::vector<std::uint32_t>& plan) {
    batch_.clear();
    for (std::size_t i = 0; i < slots.size(); ++i) {
        Sequence& sequence = *slots_[slots[i]];
        const auto id = static_cast<llama_seq_id>(slots[i]);
        const auto& prompt = sequence.job->prompt;
        sequence.output = -1;
        for (std::uint32_t n = 0; n < plan[i]; ++n) {
            const bool reading = sequence.fed < prompt.size();
            const Token token = reading ? prompt[sequence.fed++] : sequence.next;
            const bool output = sequence.fed == prompt.size();
            kept_[slots[i]].tokens.push_back(token);
            const std::int32_t at = batch_.add(token, sequence.position++, id, output);
            if (output) sequence.output = at;
        }
    }
}

/// Chooses the sequence's next token from the logits of this step.
void Runner::advance(std::size_t slot) {
    Sequence& sequence = *slots_[slot];
    auto choice =
        sequence.job->sampler->choose(llama_get_logits_ith(context_.get(), sequence.output));
    if (!choice) {
        fail_sequence(slot, std::move(choice).error());
        return;
    }
    take_token(slot, *choice);
}

void Runner::take_token(std::size_t slot, const Sampler::Choice& choice) {
    Sequence& sequence = *slots_[slot];
    Job& job = *sequence.job;
    ++sequence.answer_tokens;
    sequence.next = choice.token;
    const bool ends = model_.ends_answer(choice.token);
    const bool silent = model_.is_control(choice.token) && !job.visible.contains(choice.token);
    std::string text;
    if (!ends && !silent) text = job.text.push(model_.piece(choice.token));
    const bool over = sequence.answer_tokens >= job.answer_tokens_max;
    const bool last = ends || job.text.stopped() || over;
    if (last) text += job.text.finish();
    domain::Delta delta = read_text(sequence, std::move(text), last);
    if (choice.logprob && !ends) delta.logprobs.push_back(*choice.logprob);
    if (!delta.reasoning.empty()) ++sequence.reasoning_tokens;
    if (last) {
        const bool cut = over && !ends && !job.text.stopped();
        delta.stop_sequence = job.text.stopped_by();
        finish(slot, std::move(delta), cut ? FinishReason::length : FinishReason::stop);
    } else if (!empty(delta)) {
        job.stream->send({.delta = std::move(delta), .error = std::nullopt, .last = false});
    }
}

domain::Delta Runner::read_text(Sequence& sequence, std::string text, bool last) const {
    if (!sequence.job->reader) {
        domain::Delta delta;
        delta.text = std::move(text);
        return delta;
    }
    sequence.read += text;
    if (text.empty() && !last) return {};
    domain::Delta delta = sequence.job->reader->read(sequence.read, last);
    if (!delta.tool_calls.empty()) sequence.called_tools = true;
    return delta;
}

void Runner::finish(std::size_t slot, domain::Delta delta, FinishReason reason) {
    const Sequence& sequence = *slots_[slot];
    const bool called = sequence.called_tools && reason == FinishReason::stop;
    delta.finish = called ? FinishReason::tool_calls : reason;
    delta.usage = usage_of(sequence);
    sequence.job->stream->send({.delta = std::move(delta), .error = std::nullopt, .last = true});
    release(slot);
}

domain::Usage Runner::usage_of(const Sequence& sequence) const {
    domain::Usage usage;
    usage.prompt_tokens = static_cast<std::uint32_t>(sequence.job->prompt.size());
    usage.cached_tokens = sequence.cached;
    usage.answer_tokens = sequence.answer_tokens;
    usage.reasoning_tokens = sequence.reasoning_tokens;
    usage.source = domain::Usage::Source::engine;
    return usage;
}

void Runner::fail_sequence(std::size_t slot, Error error) {
    slots_[slot]->job->stream->send({.delta = {}, .error = std::move(error), .last = true});
    release(slot);
}

void Runner::release(std::size_t slot) {
    slots_[slot].reset();  // what the context holds of it stays, for who begins alike
    running_.fetch_sub(1, std::memory_order_relaxed);
}

void Runner::wait_for_news() {
    // Deadlines are looked at on waking; a sleeping engine need not be exact about them.
    constexpr auto look_again = std::chrono::milliseconds(50);
    std::unique_lock lock(mutex_);
    const auto news = [&] {
        return stopping_ || nudged_ || !between_.empty() ||
               (!inbox_.empty() &&
                std::ranges::any_of(slots_, [](const Slot& slot) { return !slot; }));
    };
    const bool idle = inbox_.empty() && std::ranges::none_of(slots_, [](const Slot& slot) {
                          return slot != nullptr;
                      });
    if (idle) {
        news_.wait(lock, news);
    } else {
        news_.wait_for(lock, look_again, news);
    }
}

}  // namespace molly::engine
