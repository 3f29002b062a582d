"""Sentences of real texts as templates: where one speaks of a man, a town or a firm, a name can stand.

Only sentences without any name are taken (see corpus.NAMELESS), so that what is put in is all that is to be found."""
import re

PEOPLE_IT = r'ragazz[oa]|donna|signor[ae]|medico|maestr[oa]|bambin[oa]|padron[ea]|capitano|contessa|marchesa|dottore'

RULES = {
    'en': [(r'^(He|She)(?= [a-z])', ['{first}', '{person}', '{last}', '{title} {last}']),
           (r'\b[Tt]he (man|woman|boy|girl|teacher|doctor|lady|captain|stranger|driver|nurse|old man|young man|old woman|president|director|author|minister|artist|actor|player)\b(?! (of|who|with|in)\b)', ['{first}', '{person}', '{last}']),
           (r'\b([Hh]is|[Hh]er|[Mm]y) (mother|father|brother|sister|friend|wife|husband|son|daughter|uncle|aunt|cousin|boss)\b', ['{first}', '{person}', '{first} {last}']),
           (r'(?<=said )(he|she)\b', ['{first}', '{last}', '{person}']),
           (r'(?<= to )(him|her)(?=[.,!?]|$)', ['{first}', '{person}']),
           (r'\b[Tt]he (city|town|village|capital|island|district|county)\b(?! of\b)', ['{city}', '{city}', '{country}']),
           (r'\b[Tt]he (country|kingdom|state|nation)\b(?! of\b)', ['{country}', '{city}']),
           (r'\b[Tt]he (company|firm|bank|university|corporation|organization|agency|club|band|team|museum|newspaper|school)\b(?! of\b)', ['{org}']),
           (r'\b[Tt]he (street|road|avenue|square|lane)\b', ['{street_only}', '{street}'])],
    'it': [(r'^(Lui|Lei|Egli|Ella|Questi)(?= [a-z])', ['{nome}', '{persona}', '{cognome}']),
           (rf"\b([Ii]l|[Ll]a|[Uu]n|[Uu]na) ({PEOPLE_IT})\b(?! (?:di|che|del|con)\b)", ['{nome}', '{persona}', '{nome} {cognome}', '{titolo} {cognome}']),
           (r"\b([Ll]'uomo|[Ll]'amic[oa]|[Ll]'avvocato|[Ll]'autore|[Ll]'attrice)\b(?! (?:di|che|del)\b)", ['{nome}', '{persona}', '{cognome}']),
           (r'\b([Mm]i[oa]|[Ss]u[oa]) (padre|madre|fratello|sorella|moglie|marito|figli[oa]|zi[oa]|cugin[oa]|amic[oa])\b', ['{nome}', '{persona}']),
           (r'(?<=disse )(egli|lui|ella|lei)\b', ['{nome}', '{cognome}', '{persona}']),
           (r'(?<= a )(lui|lei)\b', ['{nome}', '{persona}']),
           (r'(?<= da )(lui|lei)\b', ['{nome}', '{persona}']),
           (r'(?<= con )(lui|lei)\b', ['{nome}', '{persona}']),
           (r'(?<= di )(lui|lei)\b', ['{nome}', '{persona}']),
           (r'\b(nella|alla|in) (città|capitale|cittadina)\b', ['a {citta}']),
           (r'\b(nel|al) (paese|villaggio|borgo)\b', ['a {citta}', 'in {paese}']),
           (r'\b([Ll]a (?:città|capitale|cittadina)|[Ii]l (?:paese|villaggio|comune))\b(?! di\b)', ['{citta}']),
           (r'\bdella (città|capitale|regione)\b', ['di {citta}']),
           (r"\b([Ll]a (?:società|ditta|banca|compagnia|scuola|squadra)|[Ll]'(?:azienda|impresa|associazione|università|istituto))\b(?! (?:di|del)\b)", ['{azienda}']),
           (r"\b(?:della (?:società|ditta|banca|compagnia)|dell'(?:azienda|impresa|associazione|istituto))\b", ['di {azienda}', 'della {azienda}']),
           (r'\b(nella|sulla|per la) (strada|via|piazza)\b', ['in {via_sola}', 'in {via}']),
           (r'\b([Ll]a (?:strada|via|piazza)|[Ii]l viale)\b', ['{via_sola}'])],
}
COMPILED = {language: [(re.compile(pattern), slots) for pattern, slots in rules] for language, rules in RULES.items()}


def carrier(sentence, language, chance):
    """The sentence with slots in it, or nothing when it has no place for one."""
    made = 0
    for pattern, slots in COMPILED[language]:
        sentence, count = pattern.subn(lambda _: chance.choice(slots), sentence, count=2)
        made += count
    return sentence if made else None
