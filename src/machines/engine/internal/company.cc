#include "engine/internal/company.h"

#include <utility>

#include <fmt/format.h>

#include "base/coroutine.h"
#include "engine/internal/job.h"
#include "engine/internal/reader.h"

namespace molly::engine {
namespace {

class LocalDrafting final : public Drafting {
public:
    LocalDrafting(std::shared_ptr<DraftedAnswer> answer, std::shared_ptr<Stream> stream,
                  std::weak_ptr<Runner> runner)
        : answer_(std::move(answer)), reader_(std::move(stream), std::move(runner)) {}

    Task<Result<std::vector<Token>>> propose(std::vector<Token> came, std::uint32_t most) override {
        return answer_->propose(std::move(came), most);
    }
    void give_up() override {
        answer_->end(Error(ErrorCode::cancelled, "nobody wants drafts any more"));
        reader_.give_up();
    }

private:
    std::shared_ptr<DraftedAnswer> answer_;
    Reader reader_;
};

/// FNV-1a (draft-eastlake-fnv), 64 bits.
std::uint64_t fnv(std::uint64_t hash, std::string_view bytes) {
    for (const char byte : bytes) {
        hash ^= static_cast<unsigned char>(byte);
        hash *= 0x100000001b3U;
    }
    return hash;
}

}  // namespace

Company::~Company() {
    failed(Error(ErrorCode::cancelled, "the request has gone"));
}

void Company::failed(const Error& why) {
    if (checked) checked->end();
    if (drafted) drafted->end(why);
}

void Company::join(Job& job, const std::vector<Token>& prompt) {
    const auto tokens_max = static_cast<std::uint32_t>(prompt.size()) + job.answer_tokens_max;
    if (drafted) drafted->begin(prompt, tokens_max);
    job.checked = std::exchange(checked, nullptr);
    job.drafted = std::exchange(drafted, nullptr);
}

std::string vocabulary_hash(const Model& model) {
    std::uint64_t low = 0xcbf29ce484222325U;
    std::uint64_t high = 0x9e3779b97f4a7c15U;
    for (std::size_t i = 0; i < model.tokens(); ++i) {
        const auto token = static_cast<Token>(i);
        const std::string& piece = model.piece(token);
        const std::string kind = fmt::format("{}:{}{}:", piece.size(), model.ends_answer(token),
                                             model.is_control(token));
        low = fnv(fnv(low, kind), piece);
        high = fnv(fnv(high, piece), kind);
    }
    return fmt::format("{:016x}{:016x}", low, high);
}

Result<void> check_drafter(const Model& model, bool can_check, const std::string& vocabulary) {
    if (!can_check) {
        return fail(
            Error(ErrorCode::unsupported,
                  "this engine checks no drafts (engine.speculation is off, or the model cannot "
                  "take tokens back); ask without them")
                .italian("questo motore non verifica bozze (engine.speculation è off, o il modello "
                         "non può ritirare token); chiedere senza"));
    }
    const std::string& here = model.description().vocabulary;
    if (vocabulary == here) return {};
    return fail(Error(ErrorCode::conflict,
                      fmt::format("{} has another vocabulary ({}) than the drafts; draft with a "
                                  "model of the same family, or ask without drafts",
                                  model.description().name, here))
                    .reason("foreign_vocabulary")
                    .param("vocabulary")
                    .italian(fmt::format("{} ha un vocabolario ({}) diverso da quello delle bozze; "
                                         "abbozzare con un modello della stessa famiglia, o "
                                         "chiedere senza bozze",
                                         model.description().name, here)));
}

domain::Request to_draft(domain::Request request) {
    domain::Sampling sampling;
    sampling.answer_tokens_max = request.sampling.answer_tokens_max;
    sampling.temperature = 0;
    request.sampling = std::move(sampling);
    request.format = {};
    request.extensions.keep_prefix = domain::KeepPrefix::none;
    return request;
}

std::unique_ptr<Drafting> make_drafting(std::shared_ptr<DraftedAnswer> answer,
                                        std::shared_ptr<Stream> stream,
                                        std::weak_ptr<Runner> runner) {
    return std::make_unique<LocalDrafting>(std::move(answer), std::move(stream), std::move(runner));
}

}  // namespace molly::engine
