#include "engine/internal/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "engine/internal/logits.h"

namespace molly::engine {
namespace {

constexpr std::int32_t penalty_tokens = 256;  // how far back repetition is seen

Result<void> check_range(const std::optional<float>& value, float low, float high,
                         const char* name) {
    if (!value || (std::isfinite(*value) && *value >= low && *value <= high)) return {};
    return fail(Error(ErrorCode::invalid_request,
                      fmt::format("{} must be between {} and {}", name, low, high))
                    .italian(fmt::format("{} deve stare tra {} e {}", name, low, high))
                    .param(name));
}

std::uint32_t fresh_seed() {
    std::random_device device;
    return device() & 0x7FFFFFFFU;
}

}  // namespace

Result<std::unique_ptr<Sampler>> Sampler::make(const Model& model, const domain::Sampling& wanted,
                                               std::unique_ptr<Constraint> constraint) {
    TRY_DO(check_range(wanted.temperature, 0, 5, "temperature"));
    TRY_DO(check_range(wanted.top_p, 0, 1, "top_p"));
    TRY_DO(check_range(wanted.min_p, 0, 1, "min_p"));
    TRY_DO(check_range(wanted.frequency_penalty, -2, 2, "frequency_penalty"));
    TRY_DO(check_range(wanted.presence_penalty, -2, 2, "presence_penalty"));
    TRY_DO(check_range(wanted.repeat_penalty, 0.01F, 10, "repeat_penalty"));
    if (wanted.top_logprobs > top_logprobs_max) {
        return fail(Error(ErrorCode::invalid_request,
                          fmt::format("top_logprobs is at most {}", top_logprobs_max))
                        .param("top_logprobs"));
    }
    return std::unique_ptr<Sampler>(new Sampler(model, wanted, std::move(constraint)));
}

Sampler::Sampler(const Model& model, const domain::Sampling& wanted,
                 std::unique_ptr<Constraint> constraint)
    : model_(model),
      chain_(llama_sampler_chain_init(llama_sampler_chain_default_params())),
      constraint_(std::move(constraint)),
      candidates_(model.tokens()) {
    if (wanted.logprobs) top_logprobs_ = wanted.top_logprobs;
    add_stages(wanted);
}

void Sampler::add_stages(const domain::Sampling& wanted) {
    const auto add = [&](llama_sampler* stage) { llama_sampler_chain_add(chain_.get(), stage); };
    const float repeat = wanted.repeat_penalty.value_or(1);
    const float frequency = wanted.frequency_penalty.value_or(0);
    const float presence = wanted.presence_penalty.value_or(0);
    if (repeat != 1 || frequency != 0 || presence != 0) {
        add(llama_sampler_init_penalties(static_cast<std::int32_t>(model_.tokens()), penalty_tokens,
                                         repeat, frequency, presence));
    }
    const float temperature =
        wanted.temperature.value_or(model_.recommended(LLAMA_MODEL_META_KEY_SAMPLING_TEMP, 0.8F));
    if (temperature <= 0) {
        greedy_ = llama_sampler_chain_n(chain_.get()) == 0;
        add(llama_sampler_init_greedy());
        return;
    }
    const std::uint32_t top_k = wanted.top_k.value_or(static_cast<std::uint32_t>(
        std::max(0.0F, model_.recommended(LLAMA_MODEL_META_KEY_SAMPLING_TOP_K, 40))));
    const float top_p =
        wanted.top_p.value_or(model_.recommended(LLAMA_MODEL_META_KEY_SAMPLING_TOP_P, 0.95F));
    const float min_p =
        wanted.min_p.value_or(model_.recommended(LLAMA_MODEL_META_KEY_SAMPLING_MIN_P, 0.05F));
    if (top_k > 0) {
        add(llama_sampler_init_top_k(
            static_cast<std::int32_t>(std::min<std::size_t>(top_k, model_.tokens()))));
    }
    if (top_p < 1) add(llama_sampler_init_top_p(top_p, 1));
    if (min_p > 0) add(llama_sampler_init_min_p(min_p, 1));
    add(llama_sampler_init_temp(temperature));
    // llama.cpp reads the largest 32-bit seed as "a random one".
    const std::uint64_t seed = wanted.seed.value_or(fresh_seed());
    add(llama_sampler_init_dist(static_cast<std::uint32_t>(seed ^ (seed >> 32U)) & 0x7FFFFFFFU));
}

Token Sampler::draw(const float* logits, const std::vector<bool>* allowed) {
    if (greedy_ && allowed == nullptr)
        return static_cast<Token>(largest_at(std::span(logits, model_.tokens())));
    candidates_.resize(model_.tokens());
    std::size_t count = 0;
    for (std::size_t token = 0; token < model_.tokens(); ++token) {
        if (allowed != nullptr && !(*allowed)[token]) continue;
        candidates_[count++] = {static_cast<Token>(token), logits[token], 0};
    }
    if (count == 0) return LLAMA_TOKEN_NULL;
    llama_token_data_array array{candidates_.data(), count, -1, false};
    llama_sampler_apply(chain_.get(), &array);
    if (array.selected < 0) return LLAMA_TOKEN_NULL;
    return array.data[array.selected].id;
}

Result<Sampler::Choice> Sampler::choose(const float* logits) {
    Choice choice;
    choice.token = draw(logits, nullptr);
    if (constraint_ != nullptr) {
        // Most tokens fit: try the free choice first, and look at the whole vocabulary only then.
        TRY(const bool fits, constraint_->allows(choice.token));
        if (!fits) {
            TRY(const auto allowed, constraint_->allowed());
            choice.token = draw(logits, &allowed);
            if (choice.token == LLAMA_TOKEN_NULL) {
                return fail(ErrorCode::invalid_request,
                            "the grammar asks for text that this model has no tokens for");
            }
        }
        TRY_DO(constraint_->accept(choice.token));
    }
    if (choice.token == LLAMA_TOKEN_NULL) {
        return fail(ErrorCode::internal, "the model computed no usable probabilities");
    }
    llama_sampler_accept(chain_.get(), choice.token);
    if (top_logprobs_) choice.logprob = logprob_of(logits, choice.token);
    return choice;
}

domain::TokenLogprob Sampler::logprob_of(const float* logits, Token token) const {
    const std::span all(logits, model_.tokens());
    const float normalizer = log_sum_exp(all);
    domain::TokenLogprob result{model_.piece(token), logits[token] - normalizer, {}};
    for (const Token likely : largest_places(all, *top_logprobs_))
        result.top.emplace_back(model_.piece(likely), logits[likely] - normalizer);
    return result;
}

}  // namespace molly::engine
