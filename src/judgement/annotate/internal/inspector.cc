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
    for (const domain::Message& message : request.messages)
        look_across(message, texts, concerned, seen);
    return seen;
}

/// The text parts of a message one behind the other, and where each stands.
class JoinedTexts {
public:
    JoinedTexts(const domain::Message& message, std::string_view between,
                const std::vector<const std::string*>& texts) {
        for (const domain::Part& part : message.parts) {
            if (part.kind != domain::Part::Kind::text || part.text.empty()) continue;
            if (!places_.empty()) joined_ += between;
            const std::string* text = &part.text.text();
            const auto index = std::find(texts.begin(), texts.end(), text) - texts.begin();
            places_.push_back({joined_.size(), text, static_cast<std::size_t>(index)});
            joined_ += *text;
        }
    }

    std::size_t count() const noexcept { return places_.size(); }
    const std::string& text() const noexcept { return joined_; }

    /// Gives each text its piece of a finding that no text holds whole; false when one does.
    bool spread(const Finding& finding, Inspection& seen) const {
        bool across = false;
        for (const Place& place : places_) {
            const std::size_t from = std::max<std::size_t>(finding.begin, place.begin);
            const std::size_t to =
                std::min<std::size_t>(finding.end, place.begin + place.text->size());
            const bool whole = from == finding.begin && to == finding.end;
            if (from >= to || whole) continue;  // a whole one was found in its own text
            auto& findings = seen.findings[place.index];
            findings.push_back({finding.kind, finding.checksum,
                                static_cast<std::uint32_t>(from - place.begin),
                                static_cast<std::uint32_t>(to - place.begin)});
            settle(*place.text, findings);
            across = true;
        }
        return across;
    }

private:
    struct Place {
        std::size_t begin = 0;
        const std::string* text = nullptr;
        std::size_t index = 0;  // among the texts that were searched
    };
    std::string joined_;
    std::vector<Place> places_;
};

void Inspector::look_across(const domain::Message& message,
                            const std::vector<const std::string*>& texts,
                            const std::vector<bool>& concerned, Inspection& seen) const {
    if (message.parts.size() < 2) return;
    const JoinedTexts joined(message, "", texts);
    if (joined.count() < 2) return;
    if (detector_ != nullptr) {
        for (const Finding& finding : detector_->find_structured(joined.text()))
            if (joined.spread(finding, seen)) ++seen.kinds[static_cast<std::size_t>(finding.kind)];
    }
    if (matcher_->empty()) return;
    match_across(joined, concerned, seen);
    match_across(JoinedTexts(message, " ", texts), concerned, seen);
}

void Inspector::match_across(const JoinedTexts& joined, const std::vector<bool>& concerned,
                             Inspection& seen) const {
    std::vector<bool> found(rules_, false);
    matcher_->match(joined.text(), found);
    for (std::size_t rule = 0; rule < rules_; ++rule) {
        if (!found[rule] || !concerned[rule]) continue;
        std::vector<Finding> located;
        matcher_->locate(joined.text(), rule, located);
        bool across = false;
        for (const Finding& finding : located)
            across = joined.spread(finding, seen) || across;
        if (across) ++seen.rules[rule];
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
