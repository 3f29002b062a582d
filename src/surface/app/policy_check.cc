#include "app/policy_check.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

namespace molly::app {
namespace {

using domain::Sensitivity;
using domain::TierSet;

constexpr std::array all_classes = {Sensitivity::public_, Sensitivity::standard,
                                    Sensitivity::private_, Sensitivity::secret};

bool covers(const policy::Rule& rule, Sensitivity sensitivity) {
    return (!rule.at_most || sensitivity <= *rule.at_most) &&
           (!rule.at_least || sensitivity >= *rule.at_least) &&
           (rule.classes.empty() ||
            std::find(rule.classes.begin(), rule.classes.end(), sensitivity) != rule.classes.end());
}

/// Whether a list of conditions holds wherever another one does; an empty one always holds.
bool at_least_as_wide(const std::vector<std::string>& wide,
                      const std::vector<std::string>& narrow) {
    if (wide.empty()) return true;
    return !narrow.empty() && std::all_of(narrow.begin(), narrow.end(), [&](const auto& word) {
        return std::find(wide.begin(), wide.end(), word) != wide.end();
    });
}

bool applies_wherever(const policy::Rule& one, const policy::Rule& other) {
    const bool classes =
        std::all_of(all_classes.begin(), all_classes.end(), [&](Sensitivity sensitivity) {
            return covers(one, sensitivity) || !covers(other, sensitivity);
        });
    return classes && at_least_as_wide(one.members, other.members) &&
           at_least_as_wide(one.apps, other.apps) && at_least_as_wide(one.tags, other.tags) &&
           at_least_as_wide(one.purposes, other.purposes) &&
           at_least_as_wide(one.conversations, other.conversations) &&
           at_least_as_wide(one.jurisdictions, other.jurisdictions) &&
           (!one.hours || one.hours == other.hours);
}

/// Whether `one` leaves nothing that `other` could take away.
bool restricts_as_much(const policy::Rule& one, const policy::Rule& other) {
    const bool tiers = !other.tiers || (one.tiers && (*one.tiers & *other.tiers) == *one.tiers);
    const bool places =
        !other.residency ||
        (one.residency && one.residency->intersect(*other.residency) == *one.residency);
    return tiers && places;
}

std::string path_of(std::string_view table, std::size_t index, const std::string& name) {
    return fmt::format("{}.rule[{}] ({})", table, index, name);
}

class PolicyRemarks {
public:
    PolicyRemarks(const Config& config, std::vector<Remark>& out) : config_(config), out_(out) {}

    void run() {
        for (index_ = 0; index_ < rules().size(); ++index_) {
            const policy::Rule& rule = rules()[index_];
            if (never_applies(rule)) continue;
            look_at_effect(rule);
            look_behind(rule);
            look_for_places(rule);
        }
    }

private:
    const std::vector<policy::Rule>& rules() const { return config_.policy.rules; }

    void say(std::string english, std::string italian) {
        out_.push_back({path_of("policy", index_, rules()[index_].name), std::move(english),
                        std::move(italian)});
    }

    bool never_applies(const policy::Rule& rule) {
        const bool any = std::any_of(all_classes.begin(), all_classes.end(),
                                     [&](Sensitivity one) { return covers(rule, one); });
        if (any) return false;
        say("it never applies: its classes exclude each other",
            "non si applica mai: le sue classi si escludono");
        return true;
    }

    void look_at_effect(const policy::Rule& rule) {
        const bool private_counts =
            std::any_of(rules().begin(), rules().end(),
                        [](const policy::Rule& one) { return one.redacted_counts_as.has_value(); });
        const bool counts = covers(rule, Sensitivity::public_) ||
                            covers(rule, Sensitivity::standard) ||
                            (private_counts && covers(rule, Sensitivity::private_));
        if (rule.permit_t3 && !counts)
            say("its permit never counts: T3 is for standard and public content, and for private "
                "content only where a rule says redacted_counts_as",
                "il suo permesso non vale mai: T3 è per contenuti standard e public, e per quelli "
                "private solo se una regola dice redacted_counts_as");
        if (!rule.tiers || rule.residency || rule.permit_t3 || rule.redacted_counts_as) return;
        const bool narrows =
            std::any_of(all_classes.begin(), all_classes.end(), [&](Sensitivity one) {
                const TierSet tiers = domain::tiers_of(one);
                return covers(rule, one) && (tiers & *rule.tiers) != tiers;
            });
        const bool keeps_from_t3 = !rule.tiers->contains(domain::Tier::t3) && any_permit();
        if (!narrows && !keeps_from_t3)
            say("it changes nothing: its tiers are no fewer than what the classes permit",
                "non cambia nulla: i suoi livelli sono quelli che le classi già permettono");
    }

    bool any_permit() const {
        return std::any_of(rules().begin(), rules().end(),
                           [](const policy::Rule& rule) { return rule.permit_t3; });
    }

    void look_behind(const policy::Rule& rule) {
        for (std::size_t i = 0; i < rules().size(); ++i) {
            const policy::Rule& other = rules()[i];
            if (i < index_ && other.name == rule.name) {
                say(fmt::format("rule {} has the same name, so receipts cannot tell them apart", i),
                    fmt::format("la regola {} ha lo stesso nome: le ricevute non le distinguono",
                                i));
            }
            const bool restricts =
                (rule.tiers || rule.residency) && !rule.permit_t3 && !rule.redacted_counts_as;
            const bool shadowed = i != index_ && restricts && applies_wherever(other, rule) &&
                                  restricts_as_much(other, rule);
            // Of two that say the same, the second one is too many.
            const bool same =
                shadowed && applies_wherever(rule, other) && restricts_as_much(rule, other);
            if (!shadowed || (same && i > index_)) continue;
            say(fmt::format("it is shadowed by rule {} ({}), which applies wherever it does and "
                            "restricts as much",
                            i, other.name),
                fmt::format("è coperta dalla regola {} ({}), che vale ovunque valga questa e "
                            "restringe altrettanto",
                            i, other.name));
            return;
        }
    }

    /// Whether anybody is left who may answer what the rule is about.
    void look_for_places(const policy::Rule& rule) {
        const bool everywhere = rule.jurisdictions.empty();
        if (!everywhere || (!rule.tiers && !rule.residency)) return;
        const auto allowed = [&](const domain::TargetSpec& spec) {
            const bool tier = !rule.tiers || rule.tiers->contains(spec.tier);
            const bool open =
                std::any_of(all_classes.begin(), all_classes.end(), [&](Sensitivity one) {
                    return covers(rule, one) && domain::tiers_of(one).contains(spec.tier);
                });
            return tier && open && (!rule.residency || rule.residency->allows(spec.places()));
        };
        bool any = config_.engine.enabled && allowed(config_.engine.target);
        for (const auto& target : config_.targets)
            any = any || allowed(*target);
        if (!any)
            say("no declared target is left for what it is about, so each such request is refused",
                "per ciò che riguarda non resta alcuna destinazione: ogni richiesta è rifiutata");
    }

    const Config& config_;
    std::vector<Remark>& out_;
    std::size_t index_ = 0;
};

void look_at_labels(const Config& config, std::vector<Remark>& out) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < config.labels.rules.size(); ++i) {
        const annotate::LabelRule& rule = config.labels.rules[i];
        const std::string path = path_of("labels", i, rule.name);
        if (!names.insert(rule.name).second)
            out.push_back({path, "another label rule has the same name",
                           "un'altra regola ha lo stesso nome"});
        if (rule.sensitivity == Sensitivity::public_ && !rule.residency)
            out.push_back({path, "it raises nothing: public is the lowest class",
                           "non alza nulla: public è la classe più bassa"});
        if (rule.residency && rule.residency->nowhere())
            out.push_back(
                {path, "its residency names no place, so nobody may process what it meets",
                 "la sua residency non nomina luoghi: nessuno può trattare ciò che trova"});
        const bool empty_phrase = std::any_of(rule.phrases.begin(), rule.phrases.end(),
                                              [](const auto& phrase) { return phrase.empty(); });
        if (empty_phrase)
            out.push_back({path, "one of its phrases is empty", "una delle sue frasi è vuota"});
    }
}

}  // namespace

std::vector<Remark> remarks_on(const Config& config) {
    std::vector<Remark> remarks;
    look_at_labels(config, remarks);
    PolicyRemarks(config, remarks).run();
    return remarks;
}

}  // namespace molly::app
