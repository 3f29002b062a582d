#pragma once
// Drafts that come from another engine for an answer that is made here. Safe from any thread.
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/promise.h"
#include "engine/cooperation.h"
#include "engine/internal/model.h"

namespace molly::engine {

class CheckedDrafts final : public Verification,
                            public std::enable_shared_from_this<CheckedDrafts> {
public:
    /// `vocabulary`: number of tokens. `nudge` wakes the engine thread.
    CheckedDrafts(VerificationTerms terms, std::size_t vocabulary, std::function<void()> nudge);

    Result<void> serve(std::string request_id) override;
    Task<Result<Checked>> check(DraftBlock block) override;

    const VerificationTerms& terms() const noexcept { return terms_; }
    /// Whether the answer to this request is the one. True once.
    bool claim(const std::string& request_id);
    bool over() const;

    // For the engine thread.

    /// Whether the next token should not be computed yet.
    bool waits(MonoTime now);
    /// What may follow the tokens that came.
    std::vector<Token> next(std::uint32_t most) const;
    void took(Token token, bool last);
    void step_takes(double milliseconds);
    void end();

private:
    Result<void> check_block(const DraftBlock& block) const;
    std::size_t matching() const;
    bool passed() const;
    void deliver();
    void end_unclaimed();

    const VerificationTerms terms_;
    const std::size_t vocabulary_;
    const std::function<void()> nudge_;
    const MonoTime opened_;

    mutable std::mutex mutex_;
    std::string request_id_;
    bool claimed_ = false;
    bool ended_ = false;
    bool together_ = false;  // it waits for blocks
    MonoTime waiting_since_{};
    std::vector<Token> came_;  // of the answer
    DraftBlock block_;         // while `asked_`
    MonoTime arrived_{};       // the block
    std::shared_ptr<Promise<Checked>> asked_;
    double step_ms_ = 0;
};

/// The open sessions.
class Verifications {
public:
    static constexpr std::size_t most = 64;
    static constexpr std::size_t most_of_one = 16;  ///< owner

    /// Errors: exhausted, conflict (the id is taken).
    Result<std::shared_ptr<CheckedDrafts>> open(std::shared_ptr<CheckedDrafts> session);
    /// Null: there is none of that id, or it is somebody else's.
    std::shared_ptr<CheckedDrafts> find(const std::string& id, const std::string& owner) const;
    /// The session of this request, once; null: it has none.
    std::shared_ptr<CheckedDrafts> claim(const std::string& request_id);
    /// The engine goes.
    void end_all();

private:
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<CheckedDrafts>> sessions_;
};

}  // namespace molly::engine
