#pragma once
// One request on its way through the engine: prepared off the engine thread, run on it, read by the
// coroutine that asked.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/channel.h"
#include "base/clock.h"
#include "domain/request.h"
#include "domain/response.h"
#include "engine/internal/answer_text.h"
#include "engine/internal/chat_format.h"
#include "engine/internal/checked_drafts.h"
#include "engine/internal/drafted_answer.h"
#include "engine/internal/hot_set.h"
#include "engine/internal/sampler.h"

namespace molly::engine {

/// What the engine thread sends to one reader. The last event carries the end or an error.
struct Event {
    domain::Delta delta;
    std::optional<Error> error;
    bool last = false;
};

/// The way back to one reader. The engine thread pauses a sequence when `unread` reaches
/// `events_max` and keeps one more place for the event that ends it.
struct Stream {
    static constexpr std::uint32_t events_max = 32;

    Channel<Event> events{events_max + 2};
    std::atomic<std::uint32_t> unread = 0;
    std::atomic<bool> abandoned = false;  ///< the reader is gone

    bool full() const noexcept { return room() == 0; }
    /// Events that may be sent in one step.
    std::uint32_t room() const noexcept {
        return events_max - std::min(events_max, unread.load(std::memory_order_acquire));
    }
    void send(Event event) {
        unread.fetch_add(1, std::memory_order_acq_rel);
        events.try_send(std::move(event));
    }
};

struct JobAdapter {
    AdapterUse use;
    AdapterHold hold;  ///< nothing while the job waits for it
};

/// Everything that a sequence needs to run. Owned by one thread at a time.
struct Job {
    std::shared_ptr<Stream> stream;
    CancellationPtr cancellation;
    Deadline deadline = Deadline::max();
    std::vector<Token> prompt;  // shape: [tokens]
    std::uint32_t answer_tokens_max = 0;
    std::unique_ptr<Sampler> sampler;
    std::unique_ptr<AnswerReader> reader;  // null: the text is the answer
    AnswerText text{{}};
    std::unordered_set<Token> visible;       // control tokens that the reader wants to see
    std::vector<JobAdapter> adapters;        // by hash; none: the base alone
    std::string member;                      // whose request it is
    std::shared_ptr<CheckedDrafts> checked;  // drafts of it come from elsewhere
    std::shared_ptr<DraftedAnswer> drafted;  // it drafts what is answered elsewhere
    std::uint32_t keep_tokens = 0;           // of the prompt's beginning, to be kept on disk
    domain::Sensitivity sensitivity = domain::Sensitivity::secret;  // of what would be kept
    std::string prefix;  // what is said of that, see domain::Response

    Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    /// However it ends.
    ~Job() {
        if (checked) checked->end();
        if (drafted) drafted->end(Error(ErrorCode::cancelled, "the drafts are at their end"));
    }

    /// Holds no adapter any more; they have to be taken again.
    void let_go() {
        for (JobAdapter& adapter : adapters)
            adapter.hold = {};
    }

    bool cancelled() const noexcept {
        return stream->abandoned.load(std::memory_order_acquire) ||
               (cancellation && cancellation->cancelled());
    }
};

}  // namespace molly::engine
