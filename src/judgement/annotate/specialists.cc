#include "annotate/specialists.h"

#include <algorithm>
#include <utility>

#include "profile/prototype.h"

namespace molly::annotate {
namespace {

class PromptedSpecialists final : public Specialists {
public:
    PromptedSpecialists(std::vector<SpecialistPrompts> declared,
                        std::vector<std::shared_ptr<const profile::Prototype>> prototypes)
        : declared_(std::move(declared)), prototypes_(std::move(prototypes)) {}

    const std::vector<SpecialistPrompts>& declared() const noexcept override { return declared_; }
    std::vector<double> shares(const domain::Request& request) const override {
        std::vector<double> shares(prototypes_.size());
        if (shares.empty()) return shares;
        const std::string text = asked_text(request);
        if (text.empty()) return shares;
        for (std::size_t i = 0; i < shares.size(); ++i)
            shares[i] = prototypes_[i]->share(text);
        return shares;
    }

private:
    std::vector<SpecialistPrompts> declared_;
    std::vector<std::shared_ptr<const profile::Prototype>> prototypes_;
};

}  // namespace

std::string asked_text(const domain::Request& request) {
    const auto last = std::find_if(
        request.messages.rbegin(), request.messages.rend(),
        [](const domain::Message& message) { return message.role == domain::Role::user; });
    if (last != request.messages.rend()) return text_of(*last);
    if (!request.prompt.empty()) return request.prompt.text();
    return request.inputs.empty() ? std::string() : request.inputs.front().text();
}

Result<std::unique_ptr<Specialists>> Specialists::make(std::vector<SpecialistPrompts> declared) {
    std::vector<std::shared_ptr<const profile::Prototype>> prototypes;
    for (const SpecialistPrompts& one : declared) {
        TRY(auto prototype, profile::Prototype::make(one.prompts));
        prototypes.push_back(std::move(prototype));
    }
    return std::make_unique<PromptedSpecialists>(std::move(declared), std::move(prototypes));
}

}  // namespace molly::annotate
