#include "engine/internal/checked_drafts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/coroutine.h"

namespace molly::engine {

CheckedDrafts::CheckedDrafts(VerificationTerms terms, std::size_t vocabulary,
                             std::function<void()> nudge)
    : terms_(std::move(terms)),
      vocabulary_(vocabulary),
      nudge_(std::move(nudge)),
      opened_(system_clock().now()),
      together_(terms_.waits) {}

Result<void> CheckedDrafts::serve(std::string request_id) {
    const std::scoped_lock lock(mutex_);
    if (request_id_.empty() && !ended_) {
        request_id_ = std::move(request_id);
        return {};
    }
    return fail(
        Error(ErrorCode::conflict, "this session has had its request; open one for each request")
            .param("session")
            .italian("questa sessione ha già avuto la sua richiesta; aprirne una per "
                     "ogni richiesta"));
}

bool CheckedDrafts::claim(const std::string& request_id) {
    const std::scoped_lock lock(mutex_);
    if (claimed_ || ended_ || request_id_ != request_id || request_id.empty()) return false;
    claimed_ = true;
    waiting_since_ = system_clock().now();
    return true;
}

bool CheckedDrafts::over() const {
    const std::scoped_lock lock(mutex_);
    return ended_ || (!claimed_ && system_clock().now() > opened_ + terms_.unclaimed_max);
}

Result<void> CheckedDrafts::check_block(const DraftBlock& block) const {
    const auto bad = [](const char* field, std::string english, std::string italian) {
        return fail(Error(ErrorCode::invalid_request, std::move(english))
                        .param(field)
                        .italian(std::move(italian)));
    };
    if (block.tokens.size() > draft_block_tokens_max) {
        return bad("draft",
                   fmt::format("a block has at most {} tokens; send {} in pieces",
                               draft_block_tokens_max, block.tokens.size()),
                   fmt::format("un blocco ha al massimo {} token; inviarne {} a pezzi",
                               draft_block_tokens_max, block.tokens.size()));
    }
    const bool known = std::ranges::all_of(block.tokens, [&](Token token) {
        return token >= 0 && static_cast<std::size_t>(token) < vocabulary_;
    });
    if (!known) {
        return bad("draft",
                   fmt::format("tokens go from 0 to {} here; draft with a model of the same "
                               "vocabulary",
                               vocabulary_ - 1),
                   fmt::format("i token qui vanno da 0 a {}; abbozzare con un modello dello stesso "
                               "vocabolario",
                               vocabulary_ - 1));
    }
    if (block.from > came_.size()) {
        return bad("from",
                   fmt::format("the answer has {} tokens, so a block cannot begin at {}; count "
                               "the tokens of the replies",
                               came_.size(), block.from),
                   fmt::format("la risposta ha {} token, quindi un blocco non può cominciare da "
                               "{}; contare i token delle risposte",
                               came_.size(), block.from));
    }
    if (asked_ == nullptr) return {};
    return fail(Error(ErrorCode::conflict, "a block is being checked; wait for its reply")
                    .param("session")
                    .italian("un blocco è già in verifica; attenderne la risposta"));
}

/// Tokens of the block that came.
std::size_t CheckedDrafts::matching() const {
    const std::size_t both = std::min(block_.tokens.size(), came_.size() - block_.from);
    std::size_t same = 0;
    while (same < both && block_.tokens[same] == came_[block_.from + same])
        ++same;
    return same;
}

/// Whether the block can say nothing more.
bool CheckedDrafts::passed() const {
    return block_.alone || ended_ || came_.size() - block_.from > matching();
}

void CheckedDrafts::deliver() {
    if (!asked_) return;
    const MonoTime now = system_clock().now();
    Checked checked;
    checked.accepted = block_.alone ? 0 : static_cast<std::uint32_t>(matching());
    checked.tokens.assign(came_.begin() + static_cast<std::ptrdiff_t>(block_.from), came_.end());
    checked.ended = ended_;
    checked.check_ms = std::chrono::duration<double, std::milli>(now - arrived_).count();
    checked.step_ms = step_ms_;
    waiting_since_ = now;
    std::exchange(asked_, nullptr)->set(std::move(checked));
}

Task<Result<Checked>> CheckedDrafts::check(DraftBlock block) {
    const auto promise = std::make_shared<Promise<Checked>>();
    bool unclaimed = false;
    {
        const std::scoped_lock lock(mutex_);
        CO_TRY_DO(check_block(block));
        together_ = !block.alone;
        block_ = std::move(block);
        arrived_ = system_clock().now();
        asked_ = promise;
        unclaimed = !claimed_ && !ended_;
        if (passed()) deliver();
    }
    nudge_();
    if (unclaimed) {
        const std::weak_ptr<CheckedDrafts> weak = weak_from_this();
        const MonoTime until = opened_ + terms_.unclaimed_max;
        const Executor executor = co_await boost::asio::this_coro::executor;
        spawn(executor, [weak, until]() -> Task<void> {
            co_await system_clock().sleep_until(until);
            if (const auto session = weak.lock()) session->end_unclaimed();
        });
    }
    co_return co_await promise->wait();
}

void CheckedDrafts::end_unclaimed() {
    const std::scoped_lock lock(mutex_);
    if (claimed_) return;
    ended_ = true;
    deliver();
}

bool CheckedDrafts::waits(MonoTime now) {
    const std::scoped_lock lock(mutex_);
    if (ended_ || asked_ || !together_) return false;
    together_ = now - waiting_since_ < terms_.patience;
    return together_;
}

std::vector<Token> CheckedDrafts::next(std::uint32_t most) const {
    const std::scoped_lock lock(mutex_);
    if (!asked_ || passed()) return {};
    const auto first = static_cast<std::ptrdiff_t>(came_.size() - block_.from);
    std::vector<Token> tokens(block_.tokens.begin() + first, block_.tokens.end());
    tokens.resize(std::min<std::size_t>(tokens.size(), most));
    return tokens;
}

void CheckedDrafts::took(Token token, bool last) {
    const std::scoped_lock lock(mutex_);
    came_.push_back(token);
    ended_ = last;
    if (asked_ && passed()) deliver();
}

void CheckedDrafts::step_takes(double milliseconds) {
    const std::scoped_lock lock(mutex_);
    step_ms_ = milliseconds;
}

void CheckedDrafts::end() {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    deliver();
}

Result<std::shared_ptr<CheckedDrafts>> Verifications::open(std::shared_ptr<CheckedDrafts> session) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(sessions_, [](const auto& each) { return each->over(); });
    const bool taken = std::ranges::any_of(
        sessions_, [&](const auto& each) { return each->terms().id == session->terms().id; });
    if (taken) return fail(ErrorCode::conflict, "there is a session of this id");
    const auto own = std::ranges::count_if(
        sessions_, [&](const auto& each) { return each->terms().owner == session->terms().owner; });
    if (sessions_.size() >= most || static_cast<std::size_t>(own) >= most_of_one) {
        return fail(Error(ErrorCode::exhausted,
                          fmt::format("at most {} sessions may be open, {} of one member; ask "
                                      "without drafts, or try again in a moment",
                                      most, most_of_one))
                        .italian(fmt::format("possono essere aperte al massimo {} sessioni, {} di "
                                             "un membro; chiedere senza bozze o riprovare tra poco",
                                             most, most_of_one))
                        .retry_after(std::chrono::seconds(1)));
    }
    sessions_.push_back(session);
    return session;
}

std::shared_ptr<CheckedDrafts> Verifications::find(const std::string& id,
                                                   const std::string& owner) const {
    const std::scoped_lock lock(mutex_);
    for (const auto& session : sessions_)
        if (session->terms().id == id && session->terms().owner == owner) return session;
    return nullptr;
}

std::shared_ptr<CheckedDrafts> Verifications::claim(const std::string& request_id) {
    const std::scoped_lock lock(mutex_);
    for (const auto& session : sessions_)
        if (session->claim(request_id)) return session;
    return nullptr;
}

void Verifications::end_all() {
    const std::scoped_lock lock(mutex_);
    for (const auto& session : sessions_)
        session->end();
}

}  // namespace molly::engine
