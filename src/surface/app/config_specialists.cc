#include "app/config_specialists.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace molly::app {
namespace {

constexpr std::size_t prompts_min = 5;

struct Declared {
    std::string target;
    domain::Specialist specialist;
    std::vector<std::string> prompts;
    double share_min = 0.5;
};

Declared read_one(Reader& in) {
    Declared out;
    domain::Specialist& one = out.specialist;
    in.read("target", out.target);
    in.read("adapter", one.adapter);
    in.read_word("domain", one.field, domain::field_from,
                 "ai_ml, creative, security, finance, programming, research, arts, humanities, "
                 "marketing, engineering, education, medicine, science, social_science, business, "
                 "other");
    in.read("quality", one.quality, 0, 1);
    in.read("threshold", one.threshold, 0, 1);
    in.read("prompt_tokens_max", one.prompt_tokens_max, 0, 1LL << 30U);
    in.read("difficulty_max", one.difficulty_max, 0, 1);
    read_confidence(in, one.confidence_min, one.measure);
    in.read("prompts", out.prompts);
    in.read("share_min", out.share_min, 0, 1);
    if (!in.has("domain")) {
        in.fault("domain", "say in which domain its answers are judged",
                 "indicare in quale dominio se ne giudicano le risposte");
    }
    if (!out.prompts.empty() && out.prompts.size() < prompts_min) {
        in.fault("prompts", "give five example prompts or more, or none",
                 "dare almeno cinque richieste d'esempio, oppure nessuna");
    }
    if (!out.prompts.empty() && one.adapter.empty()) {
        in.fault("adapter", "prompts tell an adapter's requests; name the adapter",
                 "le richieste d'esempio sono di un adattatore; indicarlo");
    }
    return out;
}

void attach(Reader& in, Declared declared, Config& config) {
    domain::TargetSpec* spec = nullptr;
    std::shared_ptr<domain::TargetSpec> copy;
    if (config.engine.enabled && declared.target == config.engine.target.id) {
        spec = &config.engine.target;
    }
    for (auto& target : config.targets) {
        if (spec != nullptr || target->id != declared.target) continue;
        copy = std::make_shared<domain::TargetSpec>(*target);
        target = copy;
        spec = copy.get();
    }
    if (spec == nullptr) {
        in.fault("target", fmt::format("no target is called \"{}\"", declared.target),
                 fmt::format("nessuna destinazione si chiama \"{}\"", declared.target));
        return;
    }
    check_confidence(in, declared.specialist.confidence_min, declared.specialist.measure, *spec);
    const auto twice = [&](const domain::Specialist& other) {
        return other.adapter == declared.specialist.adapter &&
               other.field == declared.specialist.field;
    };
    if (std::any_of(spec->specialists.begin(), spec->specialists.end(), twice)) {
        in.fault("domain", "this adapter is declared for this domain already",
                 "questo adattatore è già dichiarato per questo dominio");
    }
    if (!declared.prompts.empty()) {
        config.specialists.push_back({.target = declared.target,
                                      .adapter = declared.specialist.adapter,
                                      .prompts = std::move(declared.prompts),
                                      .share_min = declared.share_min});
    }
    // Declarations of one adapter stand together, in the file's order.
    const auto before = [](const std::string& adapter, const domain::Specialist& each) {
        return adapter < each.adapter;
    };
    const auto place = std::upper_bound(spec->specialists.begin(), spec->specialists.end(),
                                        declared.specialist.adapter, before);
    spec->specialists.insert(place, std::move(declared.specialist));
}

}  // namespace

void read_confidence(Reader& in, double& confidence_min, domain::ConfidenceMeasure& measure) {
    in.read("confidence_min", confidence_min, 0, 1);
    in.read_word("confidence_from", measure.source, domain::confidence_source_from,
                 "logprobs, samples, verifier, stated");
    in.read("confidence_samples", measure.samples, 2, 16);
    in.read("verifier", measure.verifier);
    const bool verified = measure.source == domain::ConfidenceSource::verifier;
    if (verified && measure.verifier.empty()) {
        in.fault("verifier", "say which target verifies the answers",
                 "indicare quale destinazione verifica le risposte");
    }
    if (!verified && !measure.verifier.empty()) {
        in.fault("confidence_from", "a verifier is asked where this is \"verifier\"",
                 "un verificatore si interroga dove questo è \"verifier\"");
    }
}

void check_confidence(Reader& in, double confidence_min, const domain::ConfidenceMeasure& measure,
                      const domain::TargetSpec& target) {
    // The engine in this process tells them always.
    if (!(confidence_min > 0) || target.local || target.capabilities.logprobs ||
        measure.source != domain::ConfidenceSource::logprobs)
        return;
    in.fault("confidence_min",
             "confidence is read from log-probabilities: the target's capabilities need logprobs; "
             "or measure it otherwise with confidence_from",
             "la sicurezza si legge dalle log-probabilità: fra le capabilities serve logprobs; "
             "oppure misurarla altrimenti con confidence_from");
}

void check_verifiers(Reader& root, const Config& config) {
    std::vector<std::string> names;
    if (config.engine.enabled) names.push_back(config.engine.target.id);
    for (const auto& target : config.targets)
        names.push_back(target->id);
    const auto check = [&](const domain::ConfidenceMeasure& measure) {
        if (measure.verifier.empty() || measure.source != domain::ConfidenceSource::verifier)
            return;
        const auto wanted = router::resolve_model(measure.verifier, names, router::Options{});
        if (wanted && !wanted->target.empty() && !wanted->aliased) return;
        root.fault("verifier", fmt::format("no target is called \"{}\"", measure.verifier),
                   fmt::format("nessuna destinazione si chiama \"{}\"", measure.verifier));
    };
    const auto check_all = [&](const domain::TargetSpec& spec) {
        check(spec.measure);
        for (const domain::Specialist& one : spec.specialists)
            check(one.measure);
    };
    if (config.engine.enabled) check_all(config.engine.target);
    for (const auto& target : config.targets)
        check_all(*target);
}

void read_specialists(Reader& root, Config& config) {
    for (Reader& each : root.list("specialist")) {
        Declared declared = read_one(each);
        attach(each, std::move(declared), config);
        each.close();
    }
}

}  // namespace molly::app
