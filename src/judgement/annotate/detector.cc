#include "annotate/detector.h"

#include <algorithm>
#include <array>
#include <utility>

#include "annotate/internal/escapes.h"
#include "annotate/internal/structured.h"
#include "annotate/internal/tagger.h"

namespace molly::annotate {
namespace {

constexpr bool continues(char c) noexcept {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80;
}

/// Moves both ends outwards to code-point boundaries: a placeholder must not cut a character.
void widen(std::string_view text, Finding& finding) noexcept {
    while (finding.begin > 0 && continues(text[finding.begin]))
        --finding.begin;
    while (finding.end < text.size() && continues(text[finding.end]))
        ++finding.end;
}

// Of two findings that overlap the one whose kind stands first here names both.
constexpr auto by_weight = std::to_array<FindingKind>({FindingKind::private_key,
                                                       FindingKind::jwt,
                                                       FindingKind::url_credentials,
                                                       FindingKind::api_key,
                                                       FindingKind::iban,
                                                       FindingKind::codice_fiscale,
                                                       FindingKind::card,
                                                       FindingKind::health_card,
                                                       FindingKind::email,
                                                       FindingKind::ssn,
                                                       FindingKind::partita_iva,
                                                       FindingKind::ip_address,
                                                       FindingKind::mac_address,
                                                       FindingKind::passport,
                                                       FindingKind::id_card,
                                                       FindingKind::driving_licence,
                                                       FindingKind::phone,
                                                       FindingKind::plate,
                                                       FindingKind::birth_date,
                                                       FindingKind::address,
                                                       FindingKind::person,
                                                       FindingKind::organisation,
                                                       FindingKind::location,
                                                       FindingKind::declared});
static_assert(by_weight.size() == domain::finding_kinds);

bool outweighs(const Finding& a, const Finding& b) noexcept {
    const auto rank = [](const Finding& finding) {
        return std::find(by_weight.begin(), by_weight.end(), finding.kind) - by_weight.begin();
    };
    return rank(a) < rank(b);
}

}  // namespace

void settle(std::string_view text, std::vector<Finding>& findings) {
    for (Finding& finding : findings)
        widen(text, finding);
    std::sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::size_t kept = 0;
    for (const Finding& finding : findings) {
        if (kept > 0 && finding.begin < findings[kept - 1].end) {
            Finding& last = findings[kept - 1];
            const std::uint32_t end = std::max(last.end, finding.end);
            if (outweighs(finding, last)) {
                last.kind = finding.kind;
                last.checksum = finding.checksum;
            }
            last.end = end;
        } else {
            findings[kept++] = finding;
        }
    }
    findings.erase(findings.begin() + static_cast<std::ptrdiff_t>(kept), findings.end());
}

Detector::Detector(std::shared_ptr<const Tagger> tagger) : tagger_(std::move(tagger)) {}

Detector::~Detector() = default;

Result<std::unique_ptr<const Detector>> Detector::make(const DetectorOptions& options) {
    std::shared_ptr<const Tagger> tagger;
    if (options.names && options.model.empty()) {
        TRY(tagger, Tagger::built_in());
    } else if (options.names) {
        TRY(tagger, Tagger::make(options.model));
    }
    return std::unique_ptr<const Detector>(new Detector(std::move(tagger)));
}

std::vector<Finding> Detector::find_structured(std::string_view text) const {
    std::vector<Finding> findings;
    annotate::find_structured(text, findings);
    settle(text, findings);
    return findings;
}

std::vector<Finding> Detector::find(std::string_view text, std::vector<Finding> known) const {
    annotate::find_structured(text, known);
    settle(text, known);
    if (tagger_ == nullptr) return known;
    std::vector<Finding> names;
    tagger_->find(text, known, names);
    if (names.empty()) return known;
    known.insert(known.end(), names.begin(), names.end());
    settle(text, known);
    return known;
}

std::vector<Finding> Detector::find_json(std::string_view json, bool names) const {
    const bool escaped = json.find('\\') != std::string_view::npos;
    if (!escaped) return names ? find(json) : find_structured(json);
    const Unescaped unescaped = unescape(json);
    std::vector<Finding> findings = names ? find(unescaped.text) : find_structured(unescaped.text);
    for (Finding& finding : findings)
        finding = in_origin(unescaped, finding);
    settle(json, findings);
    return findings;
}

std::vector<std::string> Detector::loaded() const {
    std::vector<std::string> names = {"identifiers", "secrets"};
    if (tagger_ != nullptr) names.emplace_back("names");
    return names;
}

}  // namespace molly::annotate
