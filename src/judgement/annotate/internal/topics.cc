#include "annotate/internal/topics.h"

#include <string>
#include <vector>

namespace molly::annotate {
namespace {

struct Phrases {
    std::string_view name;
    std::string_view alone;   ///< says it by itself
    std::string_view person;  ///< says it together with `matter`, in the same text
    std::string_view matter;
};

constexpr std::array<Phrases, topics_count> topics = {{
    {"health",
     "blood test|esam[ei] del sangue|chemotherap|chemioterap|\\bHIV\\b|oncolog|psychiatr|psichiatr|"
     "antidepress|insulin|diabet|\\breferto|cartella clinica|medical (record|histor|certificate)|"
     "patient record|pregnan|gravidanza|anamnesi|risonanza magnetica|biops|\\btumor|\\bcancro\\b|"
     "\\bcancer\\b|certificato medico|invalidit. civile|bipolar|ricovero|miscarriage|epilep|"
     "ricetta medica|prescrizione medica|sclerosi multipla|multiple sclerosis",
     "\\bpatient|pazient|\\bdoctor|\\bdottor|\\bmedic[oi]\\b|hospital|ospedal|\\bclinic|surger|"
     "\\bnurse|infermier|pronto soccorso|\\bGP\\b",
     "symptom|sintom|\\bpain|\\bdolor|\\bfever|febbre|headache|mal di testa|nausea|"
     "blood pressure|pressione (alta|bassa|arteriosa)|diagnos|therap|terapi|allerg|\\bmg\\b|"
     "treatment|\\bcure\\b|medication|farmac"},
    {"legal",
     "attorney.client|segreto professionale|atto di citazione|procedimento penale|causa civile|"
     "criminal (proceeding|record|charge)|lawsuit|settlement agreement|accordo transattivo|"
     "\\bdiffida\\b|\\bquerela|\\bindagat[oaie]\\b|\\bimputat[oaie]\\b|\\bdefendant|\\bplaintiff|"
     "subpoena|non.disclosure|privileged and confidential|casellario giudiziale|"
     "avviso di garanzia|separazione (consensuale|giudiziale)|divorce",
     "\\bavvocat|\\blawyer|\\battorney|\\btribunal|\\bcourt\\b|\\bgiudice|\\bjudge\\b|"
     "studio legale|law firm|\\bnotaio",
     "\\bcontratt|\\bcontract|\\bclient|\\bcausa\\b|\\bclausol|\\bclause|\\budienz|\\bhearing|"
     "\\bsentenz|\\bricorso|\\bsue[ds]?\\b|\\bcitat|\\btestament|\\bwill\\b and|eredit"},
    {"financial",
     "busta paga|buste paga|pay.?slip|estratto conto|bank statement|account statement|"
     "dichiarazione dei redditi|tax return|credit (score|history)|mutuo (ipotecario|casa)|"
     "mortgage|\\bstipendi|\\bsalar(y|ies)\\b|modello 730|certificazione unica|\\bISEE\\b|"
     "net worth|pignorament|saldo del conto|account balance|bankruptc|fallimento personale",
     "\\bbanca\\b|\\bbank\\b|\\bconto\\b|\\baccount|\\bloan|prestit|\\bcredit|\\bfinanziament",
     "\xE2\x82\xAC|\\beuro\\b|\\$ ?[0-9]|\\busd\\b|\\beur\\b|\\bbalance|\\bsaldo|\\brat[ae]\\b|"
     "instal.?ment|bonific|wire transfer|\\bdebt|\\bdebit[oi]\\b|overdraft|scoperto"},
    {"children",
     "\\b(my|our|his|her|their) (little |young(er|est)? |eldest |older )?(son|daughter|kids?|"
     "child|children|baby)\\b|\\b(mio|tuo|suo|nostro|vostro|loro) figlio|"
     "\\b(mia|tua|sua|nostra|vostra|loro) figlia|\\b(miei|tuoi|suoi|nostri|vostri|loro) figli\\b|"
     "\\bminorenn|minor child|\\bunderage|asilo nido|scuola (materna|elementare|dell'infanzia)|"
     "child custody|affidamento (condiviso|esclusivo|dei figli|del minore)",
     "\\bbambin[oaie]\\b|\\bchild(ren)?\\b|\\bkids?\\b|\\bfigli[oae]?\\b|\\bneonat|\\btoddler|"
     "\\balunn[oaie]\\b|\\bpupils?\\b",
     "\\banni\\b|years? old|year.old|\\bscuola|\\bschool|\\bmaestr|\\bteacher|pediatr|\\basilo|"
     "kindergarten|nursery|compleanno|birthday"},
}};

constexpr std::int64_t memory_max = 16 << 20;  // bytes, of the automaton

RE2::Options set_options() {
    RE2::Options options(RE2::Quiet);
    options.set_max_mem(memory_max);
    options.set_case_sensitive(false);
    return options;
}

}  // namespace

std::string_view to_string(Topic topic) noexcept {
    return topics[static_cast<std::size_t>(topic)].name;
}

Topics::Topics() : set_(set_options(), RE2::UNANCHORED) {}

Result<std::shared_ptr<const Topics>> Topics::shared() {
    static const Result<std::shared_ptr<const Topics>> one = make();
    return one;
}

Result<std::shared_ptr<const Topics>> Topics::make() {
    std::shared_ptr<Topics> made(new Topics());
    for (const Phrases& phrases : topics) {
        for (const std::string_view pattern : {phrases.alone, phrases.person, phrases.matter}) {
            if (made->set_.Add(re2::StringPiece(pattern.data(), pattern.size()), nullptr) < 0)
                return fail(ErrorCode::internal, "a pattern of the topics does not compile");
        }
    }
    if (!made->set_.Compile())
        return fail(ErrorCode::exhausted, "the topics of detection need more memory than there is");
    return made;
}

void Topics::count(std::string_view text, std::array<std::uint32_t, topics_count>& counts) const {
    if (text.empty()) return;
    std::vector<int> hits;
    RE2::Set::ErrorInfo error{RE2::Set::kNoError};
    const bool any = set_.Match(re2::StringPiece(text.data(), text.size()), &hits, &error);
    std::array<bool, topics_count * 3> found{};
    // An automaton that ran out of memory has not looked: take the text for one about all of them.
    if (error.kind != RE2::Set::kNoError) found.fill(true);
    if (!any && error.kind == RE2::Set::kNoError) return;
    for (const int hit : hits)
        found[static_cast<std::size_t>(hit)] = true;
    for (std::size_t i = 0; i < topics_count; ++i) {
        const bool about = found[i * 3] || (found[i * 3 + 1] && found[i * 3 + 2]);
        counts[i] += about ? 1U : 0U;
    }
}

}  // namespace molly::annotate
