#include "annotate/annotate.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "annotate/internal/matcher.h"
#include "domain/texts.h"
#include "seal/seal.h"

namespace molly::annotate {
namespace {

using domain::AnnotatedRequest;
using domain::Label;
using domain::Request;
using domain::Sensitivity;

// What an answer is taken to cost when the caller names no maximum.
constexpr std::uint32_t answer_tokens_default = 256;

domain::CapabilityProfile profile_of(const Request& request) {
    using Format = domain::OutputFormat::Kind;
    domain::CapabilityProfile profile;
    profile.prompt_tokens = estimate_prompt_tokens(request);
    profile.context_tokens = estimate_context_tokens(request);
    if (request.operation != domain::Operation::embed) {
        profile.answer_tokens = request.sampling.answer_tokens_max.value_or(answer_tokens_default);
    }
    profile.tools = !request.tools.empty();
    profile.json_schema =
        request.format.kind == Format::json_schema || request.format.kind == Format::grammar;
    profile.logprobs = request.sampling.logprobs;
    for (const domain::Message& message : request.messages) {
        for (const domain::Part& part : message.parts)
            profile.images = profile.images || part.kind == domain::Part::Kind::image;
    }
    return profile;
}

bool one_of(const std::vector<std::string>& wanted, const std::string& value) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

/// Whether the rule is about this caller and these tags; its phrases and patterns are another
/// matter.
bool concerns(const LabelRule& rule, const Request& request) {
    const auto& tags = request.extensions.tags;
    const auto wanted = [&](const std::string& tag) { return one_of(rule.tags, tag); };
    return one_of(rule.members, request.caller.member) && one_of(rule.apps, request.caller.app) &&
           (rule.tags.empty() || std::any_of(tags.begin(), tags.end(), wanted));
}

class RuleAnnotator final : public Annotator {
public:
    RuleAnnotator(Options options, std::unique_ptr<Matcher> matcher)
        : options_(std::move(options)), matcher_(std::move(matcher)) {}

    Result<AnnotatedRequest> annotate(Request request,
                                      const std::optional<Label>& sticky) const override {
        AnnotatedRequest annotated;
        TRY_DO(declare(request, annotated));
        const Sensitivity declared = annotated.label.sensitivity;
        if (sticky) {
            annotated.label = join(annotated.label, *sticky);
            annotated.signals.push_back({"conversation", sticky->sensitivity, 1});
        }
        apply_rules(request, annotated);
        annotated.declassified =
            declared < options_.default_class && annotated.label.sensitivity == declared;
        annotated.capability = profile_of(request);
        annotated.request = std::move(request);
        return annotated;
    }

private:
    /// What the caller, its key or the general default says.
    Result<void> declare(const Request& request, AnnotatedRequest& annotated) const {
        const domain::Caller& caller = request.caller;
        Label& label = annotated.label;
        if (const auto& declared = request.extensions.sensitivity) {
            if (*declared < caller.lowest_class) return fail(below_key(*declared, caller));
            label.sensitivity = *declared;
            annotated.signals.push_back({"caller", *declared, 1});
        } else if (caller.default_class) {
            label.sensitivity = std::max(*caller.default_class, caller.lowest_class);
            annotated.signals.push_back({"key:" + caller.key_id, label.sensitivity, 1});
        } else {
            label.sensitivity = options_.default_class;
            annotated.signals.push_back({"default", label.sensitivity, 1});
        }
        if (request.extensions.residency) label.residency = *request.extensions.residency;
        label.origins.insert("member:" + caller.member);
        return {};
    }

    static Error below_key(Sensitivity declared, const domain::Caller& caller) {
        return Error(
                   ErrorCode::denied,
                   fmt::format("the request declares class {}, and key {} may declare {} at the "
                               "lowest; declare that, or use a key with a lower lowest_class",
                               to_string(declared), caller.key_id, to_string(caller.lowest_class)))
            .reason("class_below_key")
            .param("molly.class")
            .italian(
                fmt::format("la richiesta dichiara la classe {}, e la chiave {} può dichiarare "
                            "al minimo {}; dichiarare quella, o usare una chiave con un "
                            "lowest_class più basso",
                            to_string(declared), caller.key_id, to_string(caller.lowest_class)));
    }

    void apply_rules(const Request& request, AnnotatedRequest& annotated) const {
        if (options_.rules.empty()) return;
        std::vector<std::uint32_t> counts(options_.rules.size(), 0);
        if (!matcher_->empty()) {
            for_each_text(request, [&](const std::string& text, domain::TextForm form) {
                matcher_->count(text, counts);
                if (form != domain::TextForm::base64 || text.empty()) return;
                if (const auto bytes = seal::from_base64(text)) matcher_->count(*bytes, counts);
            });
        }
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const LabelRule& rule = options_.rules[i];
            const bool looks = !rule.phrases.empty() || !rule.patterns.empty();
            if ((looks && counts[i] == 0) || !concerns(rule, request)) continue;
            raise(annotated, rule, looks ? counts[i] : 1);
        }
    }

    static void raise(AnnotatedRequest& annotated, const LabelRule& rule, std::uint32_t count) {
        Label& label = annotated.label;
        const Sensitivity raised = rule.sensitivity.value_or(label.sensitivity);
        label.sensitivity = std::max(label.sensitivity, raised);
        if (rule.residency) label.residency = label.residency.intersect(*rule.residency);
        annotated.signals.push_back({"rule:" + rule.name, raised, count});
    }

    Options options_;
    std::unique_ptr<Matcher> matcher_;
};

}  // namespace

Result<std::unique_ptr<Annotator>> Annotator::make(Options options) {
    TRY(std::unique_ptr<Matcher> matcher, Matcher::make(options.rules));
    return std::make_unique<RuleAnnotator>(std::move(options), std::move(matcher));
}

}  // namespace molly::annotate
