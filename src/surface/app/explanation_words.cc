#include "app/explanation_words.h"

#include <algorithm>
#include <array>

namespace molly::app {
namespace {

struct Word {
    std::string_view token;
    std::string_view english;
    std::string_view italian;
};

constexpr std::array<Word, 43> words = {{
    // Tasks.
    {"chat", "conversation", "conversazione"},
    {"extract", "extraction", "estrazione"},
    {"classify", "classification", "classificazione"},
    {"summarise", "summary", "riassunto"},
    {"translate", "translation", "traduzione"},
    {"code", "code", "codice"},
    {"reason", "reasoning", "ragionamento"},
    {"tool_use", "use of tools", "uso di strumenti"},
    {"transcribe", "transcription", "trascrizione"},
    {"speak", "speech", "sintesi vocale"},
    {"draw", "drawing", "disegno"},
    {"embed", "embedding", "embedding"},
    // Domains.
    {"ai_ml", "AI and ML", "IA e ML"},
    {"creative", "creative writing", "scrittura creativa"},
    {"security", "security", "sicurezza informatica"},
    {"finance", "finance", "finanza"},
    {"programming", "programming", "programmazione"},
    {"research", "research", "ricerca"},
    {"arts", "arts", "arti"},
    {"humanities", "humanities", "discipline umanistiche"},
    {"marketing", "marketing", "marketing"},
    {"engineering", "engineering", "ingegneria"},
    {"education", "education", "istruzione"},
    {"medicine", "medicine", "medicina"},
    {"science", "science", "scienze"},
    {"social_science", "social science", "scienze sociali"},
    {"business", "business", "affari"},
    {"other", "other", "altro"},
    // Where confidence comes from.
    {"logprobs", "log-probabilities", "log-probabilità"},
    {"samples", "more answers", "altre risposte"},
    {"verifier", "a verifier", "un verificatore"},
    {"stated", "its own word", "parola sua"},
    // What attempts failed of.
    {"invalid_request", "refused the request", "ha rifiutato la richiesta"},
    {"denied", "not permitted", "non permesso"},
    {"not_found", "not there", "non c'è"},
    {"rate_limited", "asks to wait", "chiede di attendere"},
    {"exhausted", "a limit is used up", "un limite è esaurito"},
    {"cancelled", "given up", "interrotto"},
    {"deadline_exceeded", "out of time", "tempo scaduto"},
    {"unavailable", "not available", "non disponibile"},
    {"upstream_failed", "failed", "è fallito"},
    {"corrupt", "its answer was damaged", "la risposta era danneggiata"},
    {"unsupported", "cannot do that", "non sa farlo"},
}};

}  // namespace

std::string in_words(const Terminal& terminal, std::string_view token) {
    const auto found = std::find_if(words.begin(), words.end(),
                                    [&](const Word& word) { return word.token == token; });
    return std::string(found == words.end() ? token : terminal.say(found->english, found->italian));
}

}  // namespace molly::app
