// The words of the generated test model, by place in the sentence. A word belongs to the first list
// that names it.
#pragma once

#include <array>
#include <string_view>

namespace molly::test_model {

/// One list per place in an Italian sentence; each place is followed by the next.
inline constexpr std::array<std::string_view, 12> italian_sentence = {
    "Il Un Ogni Questo Quel Nessun Qualche Ciascun",
    "gatto cane libro treno fiume vento tempo medico maestro bambino ragazzo uomo signore amico "
    "vicino cuoco "
    "pittore poeta pane vino mercato negozio ufficio palazzo castello ponte giardino albero fiore "
    "bosco mare lago "
    "monte cielo sole inverno autunno mattino giorno secolo mondo paese comune sindaco giudice "
    "notaio contratto "
    "registro archivio documento modello sistema programma calcolo numero segno nome testo foglio "
    "quaderno banco "
    "tavolo letto piatto bicchiere coltello forno fuoco fumo rumore suono canto ballo gioco premio "
    "dono viaggio "
    "cammino sentiero porto battello aereo carro cavallo bue lupo orso topo uccello pesce serpente "
    "ragno vetro "
    "legno ferro oro argento sale zucchero latte burro olio riso grano campo prato",
    "grande piccolo vecchio nuovo antico moderno rosso verde bianco nero giallo azzurro chiaro "
    "scuro lungo corto "
    "alto basso largo stretto ricco povero buono cattivo bello brutto forte debole lento veloce "
    "felice triste calmo "
    "allegro serio gentile onesto curioso saggio giovane caldo freddo dolce amaro pulito vuoto "
    "pieno aperto chiuso "
    "rotondo quadrato morbido duro leggero pesante silenzioso famoso sconosciuto perfetto semplice "
    "difficile",
    "guarda porta trova perde cerca legge scrive compra vende apre chiude segue lascia prende "
    "manda riceve ama "
    "odia aiuta chiama ascolta sente vede tocca muove ferma costruisce rompe ripara pulisce "
    "prepara mangia beve "
    "cucina taglia misura conta disegna dipinge canta ricorda dimentica impara insegna spiega "
    "mostra nasconde "
    "protegge difende attraversa raggiunge supera accompagna saluta ringrazia visita incontra",
    "il un quel questo ogni lo qualche",
    "cappello cappotto vestito anello orologio telefono quadro specchio cuscino tappeto cassetto "
    "armadio muro tetto "
    "pavimento cancello cortile pozzo mulino granaio fienile orto frutteto vigneto uliveto sasso "
    "scoglio granello "
    "frammento pezzo disegno ritratto racconto romanzo giornale biglietto messaggio pacco regalo "
    "tesoro segreto "
    "problema errore metodo esempio risultato lavoro progetto esame corso maestro concerto teatro "
    "museo stadio "
    "albergo ospedale tribunale municipio convento campanile faro semaforo binario vagone motore "
    "timone remo",
    "con senza verso sotto sopra presso dietro dentro lungo contro oltre durante secondo tra per "
    "su fra tranne",
    "la una quella questa ogni qualche nessuna",
    "casa strada piazza chiesa scuola finestra camera cucina scala torre collina montagna valle "
    "pianura spiaggia "
    "isola costa nave barca vela rete pietra sabbia terra acqua pioggia neve nebbia luna stella "
    "notte sera mattina "
    "estate primavera stagione settimana ora storia poesia musica lettera parola frase pagina "
    "penna carta mappa "
    "lampada candela luce ombra voce mano testa spalla gamba schiena donna ragazza bambina sorella "
    "madre nonna "
    "zia maestra regina gallina mucca pecora capra volpe rana farfalla formica quercia rosa foglia "
    "radice mela "
    "pera uva arancia ciliegia zuppa torta festa danza gara vittoria legge regola norma firma "
    "chiave serratura",
    "e ma mentre quando perché quindi poi dove oppure eppure anche finché appena siccome però",
    "torna parte ride dorme cammina corre salta nuota vola cade cresce nasce vive riposa aspetta "
    "pensa sogna "
    "parla tace piange sorride balla gioca lavora studia viaggia arriva esce entra scende sale "
    "sparisce brilla "
    "trema suona piove nevica",
    "lentamente velocemente spesso sempre mai ieri oggi domani presto tardi adesso dopo prima "
    "lontano insieme "
    "davvero forse piano bene male molto poco troppo abbastanza ancora subito infine intanto "
    "ovunque altrove "
    "dappertutto volentieri soltanto quasi certamente finalmente improvvisamente tranquillamente",
};

/// One list per place in an English sentence.
inline constexpr std::array<std::string_view, 12> english_sentence = {
    "The A Every This That No Some Each",
    "cat dog book train river wind doctor teacher child boy man friend neighbour cook painter poet "
    "bread wine market "
    "shop office palace castle bridge garden tree flower forest sea lake hill sky sun winter "
    "autumn morning day "
    "century world country town mayor judge lawyer contract register archive document model system "
    "program number "
    "sign name text sheet notebook desk table bed plate glass knife oven fire smoke sound song "
    "dance game prize gift "
    "journey path harbour boat plane cart horse ox wolf bear mouse bird fish snake spider wood "
    "iron gold silver salt "
    "sugar milk butter oil rice corn field meadow sailor farmer baker tailor clerk guard pilot "
    "nurse writer reader",
    "large small old new ancient modern red green white black yellow blue bright dark long short "
    "tall low wide narrow "
    "rich poor good bad kind strong weak slow quick happy sad calm cheerful serious gentle honest "
    "curious wise young "
    "warm cold sweet bitter clean empty full open closed round square soft hard light heavy silent "
    "famous unknown "
    "perfect simple difficult quiet gentle distant hidden broken golden wooden",
    "watches carries finds loses seeks reads writes buys sells opens closes follows leaves takes "
    "sends receives loves "
    "helps calls hears sees touches moves stops builds breaks repairs cleans prepares eats drinks "
    "cooks cuts measures "
    "counts draws paints sings remembers forgets learns teaches explains shows hides protects "
    "defends crosses reaches "
    "passes greets thanks visits meets",
    "the a that this every some another",
    "hat coat dress ring watch phone picture mirror pillow carpet drawer wardrobe wall roof floor "
    "gate courtyard well "
    "mill barn orchard vineyard stone rock grain fragment piece drawing portrait tale novel "
    "newspaper ticket message "
    "parcel treasure secret problem mistake method example result job project exam lesson concert "
    "theatre museum "
    "stadium hotel hospital court hall convent tower lighthouse signal rail wagon engine rudder "
    "oar basket bottle "
    "bucket ladder hammer needle thread candle lantern compass",
    "with without towards under over near behind inside along against beyond during above below "
    "beside among upon "
    "around",
    "the a that this every some one",
    "house street square church school window room kitchen stair mountain valley plain beach "
    "island coast ship sail "
    "net sand land water rain snow fog moon star night evening summer spring season week hour "
    "story poem music letter "
    "word sentence page pen paper map lamp shadow voice hand head shoulder leg back woman girl "
    "sister mother "
    "grandmother aunt queen hen cow sheep goat fox frog butterfly ant oak rose leaf root apple "
    "pear grape orange "
    "cherry soup cake feast race victory law rule key lock river-bank",
    "and but while when because so then where or yet until as although",
    "returns departs laughs sleeps walks runs jumps swims flies falls grows lives rests waits "
    "thinks dreams speaks "
    "weeps smiles plays works studies travels arrives exits enters descends climbs vanishes shines "
    "trembles rings",
    "slowly quickly often always never yesterday today tomorrow soon late now later before far "
    "together truly perhaps "
    "softly well badly much little enough still again finally meanwhile everywhere elsewhere "
    "gladly only almost "
    "certainly suddenly quietly",
};

/// What the model puts between quotes.
inline constexpr std::string_view values =
    "Roma Milano Napoli Torino Palermo Genova Bologna Firenze Bari Catania Venezia Verona Messina "
    "Padova Trieste Parma "
    "Modena Lecce Siena Pisa Anna Marco Giulia Luca Sofia Paolo Chiara Andrea Elena Matteo Laura "
    "Davide Sara Giorgio "
    "London Paris Berlin Madrid Vienna Dublin Lisbon Athens Oslo Prague Alice Robert Mary James "
    "Emma Oliver Henry Grace "
    "Peter Clara alfa beta gamma delta primo ultimo north south east west";

/// Frequent words that make prompts shorter; the model never says them.
inline constexpr std::string_view prompts_only =
    "di che è a da in non si sono come cosa chi quale quanto questa mi ti ci vi ho hai ha abbiamo "
    "avete hanno sei "
    "siamo siete essere avere fare dire andare potere volere sapere stai sto va bene ciao grazie "
    "prego scusa buongiorno "
    "dimmi dammi scrivi fammi elenca riassumi traduci italiano inglese roma milano of to is are "
    "was were be been it its "
    "for on at by from your my our his her their you we they he she I what who which how why do "
    "does did can could will "
    "would should may must have has had not yes hello hi hey please thank thanks tell give make "
    "write list summarize "
    "translate say me us them there here about after again all any more most other than too very "
    "just also user assistant "
    "system tools function functions call name arguments weather city temperature json object "
    "query search result "
    "answer question helpful use using within tags return each following Ciao Hello Hi What Who "
    "How Why Write Tell Give "
    "Please You Your Say Dimmi Scrivi Come Cosa Chi Dove Quando Perché Sei Buongiorno Rispondi "
    "Answer";

}  // namespace molly::test_model
