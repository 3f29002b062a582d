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
#include "engine/internal/embedder.h"
#include "engine/internal/fair_share.h"
#include "engine/internal/job.h"
#include "engine/internal/kept_prefix.h"
#include "engine/internal/model.h"
#include "engine/internal/plan_step.h"

namespace molly::engine {

class Runner {
public:
    /// Takes a context that was made with `limits.sequences_max` sequences, in the graph's scope.
    Runner(const Model& model, ContextPtr context, const Limits& limits, std::uint32_t threads,
           AdapterLane& adapters);
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;
    ~Runner();

    /// From any thread.
    void submit(std::unique_ptr<Job> job);
    /// Runs `work` between two steps; with null when the engine stops first. From any thread.
    void run_between_steps(std::function<void(Embedder*)> work);
    /// Something outside changed: a reader took an event, or a caller left. From any thread.
    void nudge();
    std::uint32_t running() const noexcept { return running_.load(std::memory_order_relaxed); }
    std::uint32_t waiting() const;

private:
    struct Sequence {
        std::unique_ptr<Job> job;
        std::uint32_t fed = 0;     // prompt tokens that are computed
        std::uint32_t cached = 0;  // of them, those that an earlier request left
        llama_pos position = 0;    // tokens in the context
        Token next = 0;            // to be fed, once the prompt is
        std::int32_t output = -1;  // place of its logits in the batch, in this step
        std::uint32_t answer_tokens = 0;
        std::uint32_t reasoning_tokens = 0;
        bool called_tools = false;
        std::string read;  // the answer so far, for its reader
    };
    using Slot = std::unique_ptr<Sequence>;

    void run();
    bool take_jobs();
    std::unique_ptr<Job> next_job();
    void start(std::unique_ptr<Job> job);
    void drop_ended();
    bool step();
    void wait_for_news();
    void fill_batch(const std::vector<std::size_t>& slots, const std::vector<std::uint32_t>& plan);
    void advance(std::size_t slot);
    void take_token(std::size_t slot, const Sampler::Choice& choice);
    void finish(std::size_t slot, domain::Delta delta, domain::FinishReason reason);
    void fail_sequence(std::size_t slot, Error error);
    void release(std::size_t slot);
    domain::Delta read_text(Sequence& sequence, std::string text, bool last) const;
    domain::Usage usage_of(const Sequence& sequence) const;

    const Model& model_;
    const Limits& limits_;
    AdapterLane& adapters_;
    ContextPtr context_;
    Embedder embedder_;
    Batch batch_;
    std::vector<Slot> slots_;       // by sequence id; empty: free
    std::vector<KeptPrefix> kept_;  // by sequence id: what the context holds of it
    std::uint64_t started_ = 0;     // requests
    FairShare share_;

    mutable std::mutex mutex_;
    std::condition_variable news_;
    bool nudged_ = false;
    bool stopping_ = false;
    std::deque<std::unique_ptr<Job>> inbox_;
    std::deque<std::function<void(Embedder*)>> between_;
    std::atomic<std::uint32_t> running_ = 0;
    std::thread thread_;
};

}  // namespace molly::engine
