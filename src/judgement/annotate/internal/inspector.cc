#include "annotate/internal/inspector.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "seal/seal.h"

namespace molly::annotate {

using domain::Checksum;
using domain::Finding;
using domain::TextForm;

Result<std::unique_ptr<const Inspector>> Inspector::make(const Options& options) {
    std::unique_ptr<Inspector> made(new Inspector());
    TRY(made->matcher_, Matcher::make(options.rules));
    made->rules_ = options.rules.size();
    if (options.detect.enabled) {
        TRY(made->detector_, Detector::make({.names = options.detect.names, .model = {}}));
        if (options.detect.topics) {
            TRY(made->topics_, Topics::shared());
        }
    }
    return made;
}

Inspection Inspector::inspect(const domain::Request& request, const std::vector<bool>& concerned,
                              bool names) const {
    Inspection seen;
    seen.rules.assign(rules_, 0);
    seen.names = names;
    seen.complete = detector_ != nullptr && names;
    if (detector_ == nullptr && matcher_->empty()) return seen;
    std::vector<const std::string*> texts;
    for_each_text(request, [&](const std::string& text, TextForm form) {
        texts.push_back(&text);
        inspect_text(text, form, concerned, seen);
    });
    if (detector_ != nullptr) {
        for (const domain::Message& message : request.messages)
            look_across(message, texts, seen);
    }
    return seen;
}

void Inspector::look_across(const domain::Message& message,
                            const std::vector<const std::string*>& texts, Inspection& seen) const {
    if (message.parts.size() < 2) return;
    std::string joined;
    std::vector<std::pair<std::size_t, const std::string*>> begins;
    for (const domain::Part& part : message.parts) {
        if (part.kind != domain::Part::Kind::text || part.text.empty()) continue;
        begins.emplace_back(joined.size(), &part.text.text());
        joined += part.text.text();
    }
    if (begins.size() < 2) return;
    for (const Finding& finding : detector_->find_structured(joined)) {
        std::size_t pieces = 0;
        for (const auto& [begin, text] : begins) {
            const std::size_t from = std::max<std::size_t>(finding.begin, begin);
            const std::size_t to = std::min<std::size_t>(finding.end, begin + text->size());
            const bool whole = from == finding.begin && to == finding.end;
            if (from >= to || whole) continue;  // a whole one was found in its own text
            const auto place = std::find(texts.begin(), texts.end(), text) - texts.begin();
            auto& findings = seen.findings[static_cast<std::size_t>(place)];
            findings.push_back({finding.kind, finding.checksum,
                                static_cast<std::uint32_t>(from - begin),
                                static_cast<std::uint32_t>(to - begin)});
            settle(*text, findings);
            ++pieces;
        }
        if (pieces > 0) ++seen.kinds[static_cast<std::size_t>(finding.kind)];
    }
}

void Inspector::inspect_text(const std::string& text, TextForm form,
                             const std::vector<bool>& concerned, Inspection& seen) const {
    std::vector<Finding>& findings = seen.findings.emplace_back();
    if (text.empty()) return;
    match_rules(text, concerned, seen, findings);
    if (form != TextForm::base64) {
        detect(text, form, seen, findings);
        settle(text, findings);
    } else if (const auto bytes = seal::from_base64(text); bytes && utf8_valid(*bytes)) {
        std::vector<Finding> inside;
        match_rules(*bytes, concerned, seen, inside);
        detect(*bytes, TextForm::plain, seen, inside);
        for (Finding& finding : inside) {
            finding.begin = 0;
            finding.end = static_cast<std::uint32_t>(text.size());
        }
        findings.insert(findings.end(), inside.begin(), inside.end());
        settle(text, findings);
    } else {
        // Nobody has read this file.
        seen.complete = false;
        if (bytes) match_rules(*bytes, concerned, seen, findings);
        findings.clear();
    }
    for (const Finding& finding : findings) {
        const auto kind = static_cast<std::size_t>(finding.kind);
        ++seen.kinds[kind];
        if (finding.checksum == Checksum::invalid) ++seen.invalid[kind];
    }
}

void Inspector::match_rules(std::string_view text, const std::vector<bool>& concerned,
                            Inspection& seen, std::vector<Finding>& findings) const {
    if (matcher_->empty()) return;
    std::vector<bool> found(rules_, false);
    matcher_->match(text, found);
    for (std::size_t rule = 0; rule < rules_; ++rule) {
        if (!found[rule] || !concerned[rule]) continue;
        ++seen.rules[rule];
        matcher_->locate(text, rule, findings);
    }
}

void Inspector::detect(std::string_view text, TextForm form, Inspection& seen,
                       std::vector<Finding>& findings) const {
    if (detector_ == nullptr) return;
    const auto append = [&](const std::vector<Finding>& more) {
        findings.insert(findings.end(), more.begin(), more.end());
    };
    if (form == TextForm::token) {
        append(detector_->find_structured(text));
        return;
    }
    // Escapes may stand in any text: people paste JSON.
    const bool escaped = text.find('\\') != std::string_view::npos;
    const bool json = form == TextForm::json && escaped;
    if (!json && seen.names) findings = detector_->find(text, std::move(findings));
    if (!json && !seen.names) append(detector_->find_structured(text));
    if (escaped) append(detector_->find_json(text, json && seen.names));
    if (topics_ != nullptr) topics_->count(text, seen.topics);
}

}  // namespace molly::annotate
