#include "annotate/annotate.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "annotate/internal/inspector.h"
#include "annotate/specialists.h"
#include "profile/classifier.h"

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

void classify(const profile::Classifier& classifier, const Request& request,
              domain::CapabilityProfile& needs) {
    const std::string text = asked_text(request);
    if (text.empty()) return;
    const profile::Reading reading = classifier.read(text);
    needs.classified = true;
    needs.fields = reading.fields;
    needs.difficulty = reading.difficulty;
    needs.out_of_scope = reading.out_of_scope;
    needs.task = reading.task();
    needs.task_share = reading.tasks[static_cast<std::size_t>(needs.task)];
    if (request.operation != domain::Operation::embed) return;
    needs.task = domain::TaskType::embed;
    needs.task_share = 1;
}

bool one_of(const std::vector<std::string>& wanted, const std::string& value) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

/// Whether `text` is what the pattern says, `*` for anything and `?` for one byte.
bool glob_matches(std::string_view pattern, std::string_view text) noexcept {
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = std::string_view::npos;  // the last * seen
    std::size_t tried = 0;                      // where what follows it was tried last
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            tried = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++tried;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

/// Whether one of the metadata's `path`, `file` or `source` is one of the rule's paths.
bool has_path(const std::vector<std::string>& paths, const Request& request) {
    for (const std::string_view key : {"path", "file", "filename", "source"}) {
        const auto entry = request.metadata.find(std::string(key));
        if (entry == request.metadata.end()) continue;
        const auto matches = [&](const std::string& one) {
            return glob_matches(one, entry->second);
        };
        if (std::any_of(paths.begin(), paths.end(), matches)) return true;
    }
    return false;
}

/// Whether the content comes from one of the corpora: by its origins, or by what the caller says.
bool has_corpus(const std::vector<std::string>& corpora, const Request& request,
                const Label& label) {
    const auto said = request.metadata.find("corpus");
    return std::any_of(corpora.begin(), corpora.end(), [&](const std::string& corpus) {
        return label.origins.contains("corpus:" + corpus) ||
               (said != request.metadata.end() && said->second == corpus);
    });
}

/// Whether the rule is about this caller and this content; its phrases and patterns are another
/// matter.
bool concerns(const LabelRule& rule, const Request& request, const Label& label) {
    const auto& tags = request.extensions.tags;
    const auto wanted = [&](const std::string& tag) { return one_of(rule.tags, tag); };
    return one_of(rule.members, request.caller.member) && one_of(rule.apps, request.caller.app) &&
           (rule.tags.empty() || std::any_of(tags.begin(), tags.end(), wanted)) &&
           (rule.paths.empty() || has_path(rule.paths, request)) &&
           (rule.corpora.empty() || has_corpus(rule.corpora, request, label));
}

class RuleAnnotator final : public Annotator {
public:
    /// Without a classifier nothing is read out of texts but what they hold.
    RuleAnnotator(Options options, std::unique_ptr<const Inspector> inspector,
                  std::shared_ptr<const profile::Classifier> classifier)
        : options_(std::move(options)),
          inspector_(std::move(inspector)),
          classifier_(std::move(classifier)) {}

    Result<AnnotatedRequest> annotate(Request request,
                                      const std::optional<Label>& sticky) const override {
        AnnotatedRequest annotated;
        TRY_DO(declare(request, annotated));
        const Sensitivity declared = annotated.label.sensitivity;
        if (sticky) {
            annotated.label = join(annotated.label, *sticky);
            annotated.signals.push_back({"conversation", sticky->sensitivity, 1});
        }
        inspect(request, annotated);
        annotated.declassified =
            declared < options_.default_class && annotated.label.sensitivity == declared;
        annotated.capability = profile_of(request);
        if (classifier_) classify(*classifier_, request, annotated.capability);
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

    void inspect(const Request& request, AnnotatedRequest& annotated) const {
        std::vector<bool> concerned(options_.rules.size());
        for (std::size_t i = 0; i < concerned.size(); ++i)
            concerned[i] = concerns(options_.rules[i], request, annotated.label);
        const bool names = options_.detect.outside || !options_.detect.names ||
                           annotated.label.sensitivity < class_of_names();
        Inspection seen = inspector_->inspect(request, concerned, names);
        for (std::size_t i = 0; i < concerned.size(); ++i) {
            const LabelRule& rule = options_.rules[i];
            const bool looks = !rule.phrases.empty() || !rule.patterns.empty();
            if (!concerned[i] || (looks && seen.rules[i] == 0)) continue;
            raise(annotated, rule, looks ? seen.rules[i] : 1);
        }
        raise_by_findings(annotated, seen);
        annotated.findings = std::move(seen.findings);
        annotated.detection_complete = seen.complete;
    }

    /// The highest class that what the names model finds could raise a text to.
    Sensitivity class_of_names() const {
        using Kind = domain::FindingKind;
        Sensitivity highest = Sensitivity::public_;
        for (const Kind kind : {Kind::person, Kind::organisation, Kind::location, Kind::address,
                                Kind::birth_date, Kind::phone}) {
            const auto& raised = options_.detect.classes[static_cast<std::size_t>(kind)];
            highest = std::max(highest, raised.value_or(Sensitivity::public_));
        }
        return highest;
    }

    /// One signal for each kind that was found and each topic.
    void raise_by_findings(AnnotatedRequest& annotated, const Inspection& seen) const {
        const auto signal = [&](std::string source, std::optional<Sensitivity> raised,
                                std::uint32_t count) {
            const Sensitivity to = raised.value_or(Sensitivity::public_);
            annotated.label.sensitivity = std::max(annotated.label.sensitivity, to);
            annotated.signals.push_back({std::move(source), to, count});
        };
        for (std::size_t i = 0; i < domain::finding_kinds; ++i) {
            const auto kind = static_cast<domain::FindingKind>(i);
            // What a rule found has the rule's own signal.
            if (seen.kinds[i] == 0 || kind == domain::FindingKind::declared) continue;
            const bool ignored =
                !options_.detect.invalid_raises && seen.kinds[i] == seen.invalid[i];
            signal(fmt::format("detect:{}", to_string(kind)),
                   ignored ? std::nullopt : options_.detect.classes[i], seen.kinds[i]);
        }
        for (std::size_t i = 0; i < topics_count; ++i) {
            if (seen.topics[i] == 0) continue;
            signal(fmt::format("topic:{}", to_string(static_cast<Topic>(i))), Sensitivity::private_,
                   seen.topics[i]);
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
    std::unique_ptr<const Inspector> inspector_;
    std::shared_ptr<const profile::Classifier> classifier_;
};

}  // namespace

FindingClasses default_finding_classes() noexcept {
    using domain::FindingKind;
    FindingClasses classes;
    classes.fill(Sensitivity::private_);
    for (const FindingKind secret : {FindingKind::api_key, FindingKind::jwt,
                                     FindingKind::private_key, FindingKind::url_credentials})
        classes[static_cast<std::size_t>(secret)] = Sensitivity::secret;
    // Neither tells by itself whom a text is about; what the user declared has its own rule.
    for (const FindingKind harmless :
         {FindingKind::location, FindingKind::organisation, FindingKind::declared})
        classes[static_cast<std::size_t>(harmless)] = std::nullopt;
    return classes;
}

Result<std::unique_ptr<Annotator>> Annotator::make(Options options) {
    TRY(std::unique_ptr<const Inspector> inspector, Inspector::make(options));
    std::shared_ptr<const profile::Classifier> classifier;
    if (options.classify) {
        TRY(classifier, profile::Classifier::built_in());
    }
    return std::make_unique<RuleAnnotator>(std::move(options), std::move(inspector),
                                           std::move(classifier));
}

}  // namespace molly::annotate
