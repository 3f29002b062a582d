#pragma once
// The engine thread: owns the context and the sequences, joins and leaves them at every step.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/internal/adapter_lane.h"
#include "engine/internal/batch.h"
#include "engine/internal/context_places.h"
#include "engine/internal/embedder.h"
#include "engine/internal/fair_share.h"
#include "engine/internal/model.h"
#include "engine/internal/plan_step.h"
#include "engine/internal/sequence.h"
#include "engine/internal/speculator.h"

namespace molly::engine {

class Runner {
public:
    struct Parts {
        const Model& model;
        const Limits& limits;
        AdapterLane& adapters;
        std::shared_ptr<HotSet> hot;
        std::shared_ptr<MemoryBudget> budget;
        std::shared_ptr<DraftModel> draft_model;  ///< may be null
        std::shared_ptr<PrefixKeeper> prefixes;   ///< may be null; stopped before the runner
        /// Takes a sequence whose adapters are to be taken again, on a thread that may wait, and
        /// brings it back through `submit`. Called from the engine thread.
        std::function<void(std::unique_ptr<Sequence>)> wait_for_adapters;
    };
    /// Takes a context that was made with `limits.sequences_max` sequences, in the graph's scope.
    Runner(Parts parts, ContextPtr context, std::uint32_t threads);
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;
    ~Runner();

    /// Cancels what runs and waits, and joins the thread. Whatever is submitted later is cancelled.
    void stop();

    /// From any thread.
    void submit(std::unique_ptr<Sequence> sequence);
    /// Runs `work` between two steps; with null when the engine stops first. From any thread.
    void run_between_steps(std::function<void(Embedder*)> work);
    /// Something outside changed: a reader took an event, a caller left, or room is wished for.
    /// From any thread.
    void nudge();
    std::uint32_t running() const noexcept { return running_.load(std::memory_order_relaxed); }
    std::uint32_t waiting() const;
    const ContextPlaces& places() const noexcept { return places_; }
    SpeculationState speculation() const { return speculator_.state(); }
    bool can_rewind() const noexcept { return speculator_.can_rewind(); }
    std::uint64_t parked() const noexcept { return parked_.load(std::memory_order_relaxed); }

private:
    using Slot = std::unique_ptr<Sequence>;
    /// What one step computes. shapes: [places]
    struct StepRows {
        std::vector<std::uint32_t> rows;
        std::vector<bool> lent;  // a row for nobody, so that those around it share a pass
    };

    void run();
    bool take_jobs();
    void admit();
    Slot next_in_line();
    bool start(Slot& sequence);
    std::vector<std::size_t> free_places() const;
    static std::string key_of(const Sequence& sequence);
    static std::span<const Token> reusable(const Sequence& sequence);
    bool fetch_prefix(Slot& sequence);
    void settle_fetched(Sequence& sequence, const ContextPlaces::Start& start);
    bool forget_fetched();
    void save_prefix(std::size_t slot);
    std::uint32_t wanted_at_start(const Sequence& sequence) const;
    void with_memory_of_waiting(const std::function<void()>& take);
    void drop_ended();
    bool step();
    StepPlan plan(const std::vector<std::size_t>& slots, const std::vector<SequenceView>& views);
    void park(std::size_t slot);
    void wait_for_news();
    bool waits_for_drafter(const Sequence& sequence) const;
    void follow_drafter(std::size_t slot);
    void fill_holes(StepRows& step);
    void speculate(StepRows& step);
    void check_drafts(std::vector<Speculator::Answering>& answering, StepRows& step);
    void fill_batch(const StepRows& step);
    void compute(const StepRows& step, std::vector<AdapterMix> mixes);
    void advance(std::size_t slot);
    void take_token(std::size_t slot, const Sampler::Choice& choice);
    void finish(std::size_t slot, domain::Delta delta, domain::FinishReason reason);
    void fail_sequence(std::size_t slot, Error error, bool known = true);
    void release(std::size_t slot, bool known = true);
    domain::Delta read_text(Sequence& sequence, std::string text, bool last) const;
    domain::Usage usage_of(const Sequence& sequence) const;
    bool idle() const;

    const Parts parts_;
    ContextPtr context_;
    ContextPlaces places_;
    Embedder embedder_;
    Speculator speculator_;
    Batch batch_;
    std::vector<Slot> slots_;  // by sequence id; empty: free
    FairShare share_;

    mutable std::mutex mutex_;
    std::condition_variable news_;
    bool nudged_ = false;
    bool stopping_ = false;
    bool room_lacks_ = false;  // whoever is next waits for memory
    std::deque<Slot> inbox_;
    std::deque<std::function<void(Embedder*)>> between_;
    std::atomic<std::uint32_t> running_ = 0;
    std::atomic<std::uint64_t> parked_ = 0;  // times
    std::thread thread_;
};

}  // namespace molly::engine
