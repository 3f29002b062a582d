#include "engine/internal/draft_model.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace molly::engine {
namespace {

/// The first token that is not the same in both; as many as there are: all are.
std::size_t first_difference(const Model& a, const Model& b) {
    const std::size_t both = std::min(a.tokens(), b.tokens());
    for (std::size_t i = 0; i < both; ++i) {
        const auto token = static_cast<Token>(i);
        if (a.piece(token) != b.piece(token) || a.ends_answer(token) != b.ends_answer(token) ||
            a.is_control(token) != b.is_control(token))
            return i;
    }
    return both;
}

Result<void> check_vocabulary(const Model& draft, const Model& target,
                              const std::filesystem::path& file) {
    const std::size_t first = first_difference(draft, target);
    if (first == target.tokens() && first == draft.tokens()) return {};
    return fail(Error(ErrorCode::conflict,
                      fmt::format("{} has another vocabulary than the engine's model ({} and {} "
                                  "tokens, the first difference is at {}); choose a draft model of "
                                  "the same family, or leave engine.draft_model empty",
                                  file.string(), draft.tokens(), target.tokens(), first))
                    .italian(fmt::format("{} ha un vocabolario diverso da quello del modello del "
                                         "motore ({} e {} token, la prima differenza è a {}); "
                                         "scegliere un modello della stessa famiglia o lasciare "
                                         "vuoto engine.draft_model",
                                         file.string(), draft.tokens(), target.tokens(), first)));
}

}  // namespace

Result<std::unique_ptr<DraftModel>> DraftModel::open(
    const std::filesystem::path& file, const Model& target, const Limits& limits,
    std::uint32_t threads, std::shared_ptr<const ComputeThreads> kept_threads) {
    TRY(auto model, Model::load(file));
    TRY_DO(check_vocabulary(*model, target, file));
    if (llama_model_is_recurrent(model->handle()) || llama_model_is_hybrid(model->handle())) {
        return fail(Error(ErrorCode::unsupported,
                          fmt::format("{} cannot take tokens back (recurrent layers); choose a "
                                      "draft model with attention alone",
                                      file.string()))
                        .italian(fmt::format("{} non può ritirare token (strati ricorrenti); "
                                             "scegliere un modello con sola attenzione",
                                             file.string())));
    }
    ContextPtr context = new_context(*model, {.context_tokens = limits.context_tokens_max,
                                              .sequences = limits.sequences_max,
                                              .step_tokens = limits.step_tokens_max,
                                              .threads = threads,
                                              .kept_threads = std::move(kept_threads)});
    if (!context) {
        return fail(Error(ErrorCode::exhausted,
                          "no memory for the draft model's context; lower sequences_max or "
                          "context_tokens_max, or leave engine.draft_model empty")
                        .italian("manca memoria per il contesto del modello che abbozza; abbassare "
                                 "sequences_max o context_tokens_max, o lasciare vuoto "
                                 "engine.draft_model"));
    }
    return std::unique_ptr<DraftModel>(
        new DraftModel(std::move(model), std::move(context), limits));
}

DraftModel::DraftModel(std::unique_ptr<Model> model, ContextPtr context, const Limits& limits)
    : model_(std::move(model)),
      context_(std::move(context)),
      batch_(limits.step_tokens_max),
      context_tokens_max_(std::min(limits.context_tokens_max, llama_n_ctx_seq(context_.get()))),
      step_tokens_max_(limits.step_tokens_max),
      bytes_(model_->cache_bytes_per_token() * llama_n_ctx(context_.get())),
      held_(limits.sequences_max) {}

/// Takes back what the place holds of other texts; `unread` is what it lacks.
void DraftModel::begin(const Wish& wish, std::vector<Token>& unread) {
    std::vector<Token>& held = held_[wish.place];
    std::size_t same = 0;
    while (same < held.size() && same < wish.text.size() && held[same] == wish.text[same])
        ++same;
    if (same < held.size()) {
        llama_memory_seq_rm(llama_get_memory(context_.get()), static_cast<llama_seq_id>(wish.place),
                            static_cast<llama_pos>(same), -1);
        held.resize(same);
    }
    unread.assign(wish.text.begin() + static_cast<std::ptrdiff_t>(same), wish.text.end());
    unread.push_back(wish.next);
}

/// Computes what is unread of each place; the likeliest token behind it. False: it failed, and
/// nothing is known of what these places hold.
bool DraftModel::read(std::span<const std::size_t> places, std::span<std::vector<Token>> unread,
                      std::span<Token> likeliest) {
    batch_.clear();
    std::vector<std::int32_t> rows(places.size(), -1);
    for (std::size_t i = 0; i < places.size(); ++i) {
        std::vector<Token>& held = held_[places[i]];
        for (std::size_t n = 0; n < unread[i].size(); ++n) {
            const bool last = n + 1 == unread[i].size();
            rows[i] = batch_.add(unread[i][n], static_cast<llama_pos>(held.size()),
                                 static_cast<llama_seq_id>(places[i]), last);
            held.push_back(unread[i][n]);
        }
        unread[i].clear();
    }
    if (batch_.size() == 0) return true;
    if (llama_decode(context_.get(), batch_.view()) != 0) {
        for (const std::size_t place : places) {
            llama_memory_seq_rm(llama_get_memory(context_.get()), static_cast<llama_seq_id>(place),
                                -1, -1);
            held_[place].clear();
        }
        return false;
    }
    for (std::size_t i = 0; i < places.size(); ++i)
        likeliest[i] = rows[i] < 0 ? LLAMA_TOKEN_NULL : likeliest_at(rows[i]);
    return true;
}

Token DraftModel::likeliest_at(std::int32_t row) const {
    const float* logits = llama_get_logits_ith(context_.get(), row);
    return static_cast<Token>(std::max_element(logits, logits + model_->tokens()) - logits);
}

std::size_t DraftModel::draft(std::span<Wish> wishes) {
    // What one step may spend on a text that is new here, so that nobody waits long.
    constexpr std::size_t catch_up_max = 128;
    std::vector<std::size_t> places;
    std::vector<std::vector<Token>> unread;
    std::vector<Wish*> drafting;
    std::size_t room = step_tokens_max_;
    std::ranges::sort(wishes, {}, &Wish::place);  // neighbours share a pass
    for (Wish& wish : wishes) {
        std::vector<Token> lacks;
        begin(wish, lacks);
        const std::size_t may = std::min(room, catch_up_max);
        const bool fits = wish.text.size() + wish.most + 1 <= context_tokens_max_;
        const bool whole = fits && lacks.size() <= may && wish.most > 0;
        if (!whole) lacks.resize(fits ? std::min(lacks.size() - 1, may) : 0);
        room -= lacks.size();
        places.push_back(wish.place);
        unread.push_back(std::move(lacks));
        drafting.push_back(whole ? &wish : nullptr);
    }
    const std::size_t read_first = step_tokens_max_ - room;
    std::vector<Token> likeliest(places.size(), LLAMA_TOKEN_NULL);
    while (read(places, unread, likeliest)) {
        bool more = false;
        for (std::size_t i = 0; i < places.size(); ++i) {
            Wish* wish = drafting[i];
            if (wish == nullptr || wish->draft.size() >= wish->most ||
                likeliest[i] == LLAMA_TOKEN_NULL || model_->ends_answer(likeliest[i]))
                continue;
            wish->draft.push_back(likeliest[i]);
            if (wish->draft.size() == wish->most) continue;
            unread[i].push_back(likeliest[i]);
            more = true;
        }
        if (!more) break;
    }
    return read_first;
}

}  // namespace molly::engine
