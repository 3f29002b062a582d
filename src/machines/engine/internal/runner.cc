#include "engine/internal/runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace molly::engine {
namespace {

Error stopped() {
    return {ErrorCode::cancelled, "the engine is stopping"};
}

}  // namespace

Runner::Runner(Parts parts, ContextPtr context, std::uint32_t threads)
    : parts_(std::move(parts)),
      context_(std::move(context)),
      places_(*context_, parts_.adapters.cache_memory(parts_.limits.sequences_max),
              parts_.limits.sequences_max, parts_.limits.context_tokens_max, *parts_.budget,
              parts_.hot),
      embedder_(parts_.model, threads),
      speculator_(parts_.limits, parts_.model, parts_.draft_model),
      batch_(parts_.limits.step_tokens_max),
      slots_(parts_.limits.sequences_max),
      thread_([this] { run(); }) {}

Runner::~Runner() {
    stop();
}

void Runner::stop() {
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
    }
    news_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void Runner::submit(std::unique_ptr<Sequence> sequence) {
    {
        const std::scoped_lock lock(mutex_);
        if (stopping_) {
            sequence->job->stream->send({.delta = {}, .error = stopped(), .last = true});
            return;
        }
        // What was parked has waited already.
        if (sequence->parked) {
            inbox_.push_front(std::move(sequence));
        } else {
            inbox_.push_back(std::move(sequence));
        }
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
        if (parts_.budget->wished() > 0) places_.fulfil_wish();
        if (!step()) wait_for_news();
    }
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (slots_[slot]) fail_sequence(slot, stopped());
    }
    const std::scoped_lock lock(mutex_);
    for (auto& sequence : inbox_)
        sequence->job->stream->send({.delta = {}, .error = stopped(), .last = true});
    for (const auto& work : between_)
        work(nullptr);
}

/// Fills free places and runs one piece of other work. False: stop.
bool Runner::take_jobs() {
    std::function<void(Embedder*)> work;
    {
        const std::scoped_lock lock(mutex_);
        if (stopping_) return false;
        nudged_ = false;
        if (!between_.empty()) {
            work = std::move(between_.front());
            between_.pop_front();
        }
    }
    admit();
    if (work) work(&embedder_);
    return true;
}

/// Starts whoever is next while there are places and memory.
void Runner::admit() {
    room_lacks_ = false;
    while (std::ranges::any_of(slots_, [](const Slot& slot) { return !slot; })) {
        Slot next = next_in_line();
        if (!next) return;
        if (fetch_prefix(next) || start(next)) continue;
        // Nobody runs who could give memory back: those who wait may hold it with their adapters.
        bool started = false;
        if (idle()) with_memory_of_waiting([&] { started = start(next); });
        if (started) continue;
        room_lacks_ = true;
        const std::scoped_lock lock(mutex_);
        inbox_.push_front(std::move(next));
        return;
    }
}

/// Takes the sequence out of the inbox whose turn it is: one that was parked, else one of the
/// member who has had least. While adapters wait for room, requests for the base alone do too.
Runner::Slot Runner::next_in_line() {
    const std::scoped_lock lock(mutex_);
    const bool wished = parts_.budget->wished() > 0 && !idle();
    std::vector<std::size_t> places;
    std::vector<const std::string*> waiting;
    std::vector<const std::string*> running;
    for (std::size_t i = 0; i < inbox_.size(); ++i) {
        const Sequence& sequence = *inbox_[i];
        if (wished && sequence.job->adapters.empty()) continue;
        places.push_back(i);
        waiting.push_back(&sequence.job->member);
        if (sequence.parked) break;  // it goes before those behind it
    }
    if (places.empty()) return nullptr;
    for (const Slot& slot : slots_)
        if (slot) running.push_back(&slot->job->member);
    const bool parked = inbox_[places.back()]->parked;
    const std::size_t turn = parked ? places.back() : places[share_.pick(waiting, running)];
    const auto at = inbox_.begin() + static_cast<std::ptrdiff_t>(turn);
    Slot next = std::move(*at);
    inbox_.erase(at);
    return next;
}

/// Tokens of memory that it starts with: what is known to come, or all that may come where nobody
/// is parked.
std::uint32_t Runner::wanted_at_start(const Sequence& sequence) const {
    const auto feed = static_cast<std::uint32_t>(sequence.feed.size());
    const std::uint32_t answer =
        parts_.limits.deterministic ? sequence.job->answer_tokens_max - sequence.answer_tokens : 1;
    return in_blocks(feed + answer, ContextPlaces::block);
}

/// Gives it a place and the memory for what it begins with. False: there is no memory now.
bool Runner::start(Slot& sequence) {
    const std::vector<std::size_t> free = free_places();
    const std::string key = key_of(*sequence);
    // Where the last bit counts, nothing is used again: attention rounds differently for a part of
    // a prompt than for the whole.
    const auto begin = [&] {
        return places_.start({.free = free,
                              .key = key,
                              .prompt = reusable(*sequence),
                              .tokens = wanted_at_start(*sequence),
                              .reuse = !parts_.limits.deterministic,
                              .fetched = sequence->fetched.get()});
    };
    auto begun = begin();
    // Both may be too much: what was fetched, and the place that it would be put into.
    if (!begun && std::exchange(sequence->fetched, nullptr)) begun = begin();
    if (!begun) return false;
    settle_fetched(*sequence, *begun);
    sequence->fed = begun->reused;
    if (sequence->answer_tokens == 0) sequence->cached = begun->reused;
    slots_[begun->place] = std::move(sequence);
    running_.fetch_add(1, std::memory_order_relaxed);
    save_prefix(begun->place);
    return true;
}

/// Those who wait let their adapters go, `take` takes that memory before anybody else does, and
/// then they are sent to take their adapters again.
void Runner::with_memory_of_waiting(const std::function<void()>& take) {
    std::deque<Slot> waiting;
    {
        const std::scoped_lock lock(mutex_);
        for (Slot& sequence : inbox_)
            if (!sequence->job->adapters.empty()) waiting.push_back(std::move(sequence));
        std::erase(inbox_, nullptr);
    }
    {
        const MemoryBudget::Claim claim(*parts_.budget);
        for (Slot& sequence : waiting)
            sequence->job->let_go();
        take();
    }
    for (Slot& sequence : waiting)
        parts_.wait_for_adapters(std::move(sequence));
}

/// Makes room: what it has computed goes, and is computed again when there is memory.
void Runner::park(std::size_t slot) {
    Slot sequence = std::move(slots_[slot]);
    running_.fetch_sub(1, std::memory_order_relaxed);
    parked_.fetch_add(1, std::memory_order_relaxed);
    if (sequence->left() == 0) {
        sequence->feed = places_.at(slot).tokens;
        sequence->feed.push_back(sequence->next);
    }
    sequence->fed = 0;
    sequence->parked = true;
    log_event(LogLevel::debug, "sequence_parked", {{"tokens", sequence->feed.size()}});
    if (sequence->job->adapters.empty()) {
        submit(std::move(sequence));
        return;
    }
    sequence->job->let_go();
    parts_.wait_for_adapters(std::move(sequence));
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
    std::erase_if(inbox_, [&](const Slot& sequence) {
        auto error = ended(*sequence->job);
        if (error)
            sequence->job->stream->send({.delta = {}, .error = std::move(error), .last = true});
        return error.has_value();
    });
}

/// What the next step computes; who is parked for it is parked, and the others have their memory.
StepPlan Runner::plan(const std::vector<std::size_t>& slots,
                      const std::vector<SequenceView>& views) {
    StepLimits limits{.tokens_max = parts_.limits.step_tokens_max};
    limits.block = ContextPlaces::block;
    limits.may_park = !parts_.limits.deterministic;
    const auto missing = [&](const StepPlan& plan) {
        std::uint32_t tokens = 0;
        for (std::size_t i = 0; i < views.size(); ++i)
            tokens += cells_missing(views[i], plan.tokens[i], limits.block);
        return tokens;
    };
    StepPlan plan = plan_step(views, limits);  // if memory were no matter
    const std::uint32_t wanted = missing(plan);
    if (wanted == 0) return plan;
    std::uint32_t got = places_.get(wanted);
    if (got < wanted && forget_fetched()) got += places_.get(wanted - got);
    if (got < wanted) {
        limits.cells_free = got;
        plan = plan_step(views, limits);
        for (const std::size_t i : plan.park) {
            park(slots[i]);
            got += places_.drop(slots[i]);
            places_.release(slots[i], true);
        }
    }
    for (std::size_t i = 0; i < views.size(); ++i) {
        const std::uint32_t more = cells_missing(views[i], plan.tokens[i], limits.block);
        places_.own(slots[i], more);
        got -= more;
    }
    places_.give(got);
    return plan;
}

void Runner::fail_sequence(std::size_t slot, Error error, bool known) {
    slots_[slot]->job->stream->send({.delta = {}, .error = std::move(error), .last = true});
    release(slot, known);
}

/// What the context holds of it stays, for who begins alike.
void Runner::release(std::size_t slot, bool known) {
    slots_[slot].reset();
    places_.release(slot, known);
    running_.fetch_sub(1, std::memory_order_relaxed);
}

bool Runner::idle() const {
    return std::ranges::none_of(slots_, [](const Slot& slot) { return slot != nullptr; });
}

void Runner::wait_for_news() {
    // Deadlines are looked at on waking; a sleeping engine need not be exact about them.
    constexpr auto look_again = std::chrono::milliseconds(50);
    std::unique_lock lock(mutex_);
    const auto news = [&] {
        return stopping_ || nudged_ || !between_.empty() ||
               (!inbox_.empty() && !room_lacks_ && parts_.budget->wished() == 0 &&
                std::ranges::any_of(slots_, [](const Slot& slot) { return !slot; }));
    };
    if (idle() && inbox_.empty()) {
        news_.wait(lock, news);
    } else {
        news_.wait_for(lock, look_again, news);
    }
}

}  // namespace molly::engine
