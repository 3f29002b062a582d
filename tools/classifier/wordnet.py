"""Glosses of WordNet 3.0 as rows about topics: by the topic that a synset names, else by what it is a kind of."""
import zlib

# A synset's own topic (pointer ;c).
TOPICS = {'law': 'law', 'criminal_law': 'law', 'contract': 'law', 'crime': 'law', 'military': 'history', 'music': 'music', 'chemistry': 'chemistry', 'computer_science': 'computer_science',
          'Greek_mythology': 'religion_literature', 'Roman_mythology': 'religion_literature', 'Norse_mythology': 'religion_literature', 'biology': 'biology', 'physics': 'physics',
          'botany': 'biology', 'zoology': 'biology', 'genetics': 'biology', 'ecology': 'biology', 'biochemistry': 'biology', 'physiology': 'biology', 'terrorism': 'politics',
          'mathematics': 'mathematics', 'geometry': 'mathematics', 'arithmetic': 'mathematics', 'statistics': 'statistics', 'baseball': 'trivia', 'sport': 'trivia', 'golf': 'trivia',
          'football': 'trivia', 'American_football': 'trivia', 'card_game': 'trivia', 'chess': 'trivia', 'basketball': 'trivia', 'tennis': 'trivia', 'boxing': 'trivia', 'cricket': 'trivia',
          'medicine': 'medicine', 'pathology': 'medicine', 'surgery': 'medicine', 'dentistry': 'anatomy', 'anatomy': 'anatomy', 'obstetrics': 'medicine', 'ophthalmology': 'medicine',
          'immunology': 'microbiology', 'microbiology': 'microbiology', 'cooking': 'daily_life', 'linguistics': 'religion_literature', 'grammar': 'religion_literature',
          'phonetics': 'religion_literature', 'poetry': 'religion_literature', 'prosody': 'religion_literature', 'literature': 'religion_literature', 'Roman_Catholic': 'religion_literature',
          'Old_Testament': 'religion_literature', 'New_Testament': 'religion_literature', 'Judaism': 'religion_literature', 'religion': 'religion_literature', 'Islam': 'religion_literature',
          'Hinduism': 'religion_literature', 'Christianity': 'religion_literature', 'theology': 'religion_literature', 'psychology': 'psychology', 'psychoanalysis': 'psychology',
          'psychiatry': 'psychology', 'geology': 'earth_science', 'meteorology': 'earth_science', 'mining': 'earth_science', 'astronomy': 'astronomy', 'cosmology': 'astronomy',
          'art': 'visual_arts', 'architecture': 'visual_arts', 'photography': 'visual_arts', 'performing_arts': 'visual_arts', 'fine_arts': 'visual_arts', 'dancing': 'visual_arts',
          'commerce': 'business', 'commercial_enterprise': 'business', 'corporation': 'business', 'logic': 'logic', 'philosophy': 'philosophy', 'antiquity': 'history',
          'Middle_Ages': 'history', 'heraldry': 'history', 'electronics': 'engineering', 'electricity': 'engineering', 'telecommunication': 'engineering', 'metallurgy': 'engineering',
          'construction': 'engineering', 'optics': 'physics', 'particle_physics': 'physics', 'computer': 'computer_science', 'politics': 'politics', 'government': 'politics',
          'election': 'politics', 'economics': 'economics', 'finance': 'investing', 'stock_exchange': 'investing', 'accounting': 'accounting', 'tax': 'accounting',
          'anthropology': 'sociology', 'archeology': 'prehistory', 'drama': 'creative_writing', 'dramaturgy': 'creative_writing', 'education': 'education', 'driving': 'daily_life',
          'air_travel': 'daily_life'}
# What a synset is a kind of: word, sense; the nearest one counts.
KINDS = {('disease', 1): 'medicine', ('symptom', 1): 'medicine', ('medical_procedure', 1): 'medicine', ('medicine', 2): 'medicine', ('health_professional', 1): 'medicine',
         ('medical_instrument', 1): 'medicine', ('mental_illness', 1): 'psychology', ('vitamin', 1): 'nutrition', ('virus', 1): 'microbiology', ('infectious_agent', 1): 'microbiology',
         ('bacteria', 1): 'microbiology', ('antibody', 1): 'microbiology', ('body_part', 1): 'anatomy', ('bone', 1): 'anatomy', ('muscle', 1): 'anatomy', ('nerve', 1): 'anatomy',
         ('plant', 2): 'biology', ('animal', 1): 'biology', ('organic_process', 1): 'biology', ('cell', 2): 'biology', ('enzyme', 1): 'biology', ('protein', 1): 'biology',
         ('chemical_element', 1): 'chemistry', ('compound', 2): 'chemistry', ('chemical_process', 1): 'chemistry', ('geological_formation', 1): 'earth_science', ('rock', 2): 'earth_science',
         ('mineral', 1): 'earth_science', ('weather', 1): 'earth_science', ('body_of_water', 1): 'earth_science', ('celestial_body', 1): 'astronomy', ('physical_phenomenon', 1): 'physics',
         ('physical_unit', 1): 'physics', ('particle', 2): 'physics', ('country', 2): 'geography', ('city', 1): 'geography', ('musical_instrument', 1): 'music',
         ('musical_composition', 1): 'music', ('musician', 2): 'music', ('music', 1): 'music', ('artist', 1): 'visual_arts', ('picture', 1): 'visual_arts', ('sculpture', 2): 'visual_arts',
         ('crime', 1): 'law', ('legal_document', 1): 'law', ('court', 1): 'law', ('lawyer', 1): 'law', ('law', 2): 'law', ('legal_right', 1): 'law', ('charge', 8): 'investing',
         ('asset', 1): 'investing', ('security', 4): 'investing', ('currency', 1): 'personal_finance', ('financial_institution', 1): 'personal_finance', ('tax', 1): 'accounting',
         ('writer', 1): 'religion_literature', ('literary_composition', 1): 'religion_literature', ('deity', 1): 'religion_literature', ('clergyman', 1): 'religion_literature',
         ('religious_person', 1): 'religion_literature', ('sacred_text', 1): 'religion_literature', ('religion', 1): 'religion_literature', ('philosopher', 1): 'philosophy',
         ('philosophy', 1): 'philosophy', ('philosophical_doctrine', 1): 'philosophy', ('doctrine', 1): 'philosophy', ('morality', 1): 'ethics', ('politician', 1): 'politics',
         ('politician', 2): 'politics', ('political_orientation', 1): 'politics', ('government', 1): 'politics', ('head_of_state', 1): 'politics', ('war', 1): 'history', ('battle', 1): 'history',
         ('ruler', 1): 'history', ('military_leader', 1): 'history', ('historical_period', 1): 'history', ('hominid', 1): 'prehistory', ('geological_time', 1): 'prehistory',
         ('mathematical_relation', 1): 'mathematics', ('figure', 6): 'mathematics', ('number', 2): 'mathematics', ('mathematician', 1): 'mathematics', ('statistic', 1): 'statistics',
         ('machine', 1): 'engineering', ('mechanism', 5): 'engineering', ('electrical_device', 1): 'engineering', ('tool', 1): 'engineering', ('engineer', 1): 'engineering',
         ('circuit', 1): 'engineering', ('computer', 1): 'computer_science', ('software', 1): 'programming', ('programming_language', 1): 'programming', ('computer_network', 1): 'computer_science',
         ('food', 1): 'daily_life', ('food', 2): 'daily_life', ('garment', 1): 'daily_life', ('furniture', 1): 'daily_life', ('vehicle', 1): 'daily_life', ('game', 1): 'trivia', ('sport', 1): 'trivia',
         ('athlete', 1): 'trivia', ('actor', 1): 'trivia', ('feeling', 1): 'psychology', ('cognitive_process', 1): 'psychology', ('psychologist', 1): 'psychology', ('personality', 1): 'psychology',
         ('social_group', 1): 'sociology', ('ethnic_group', 1): 'sociology', ('kin', 2): 'sociology', ('educator', 1): 'education', ('school', 1): 'education', ('course', 1): 'education',
         ('student', 1): 'education', ('businessman', 1): 'business', ('manager', 1): 'business', ('company', 1): 'business', ('merchant', 1): 'business', ('economist', 1): 'economics',
         ('scientist', 1): 'physics', ('chemist', 1): 'chemistry', ('biologist', 1): 'biology', ('physicist', 1): 'physics', ('astronomer', 1): 'astronomy', ('historian', 1): 'history'}
PER_TOPIC = 1800


def read(folder):
    """Of each noun synset: words, gloss, what it is a kind of, its topic."""
    synsets = {}
    for line in open(folder / 'data.noun', encoding='latin-1'):
        if line[0] == ' ': continue
        head, _, gloss = line.partition('|')
        part = head.split()
        count = int(part[3], 16)
        words = [part[4 + 2 * i] for i in range(count)]
        at = 4 + 2 * count
        pointers = [(part[at + 1 + 4 * i], part[at + 2 + 4 * i]) for i in range(int(part[at]))]
        synsets[part[0]] = (words, gloss.strip(), [to for kind, to in pointers if kind in ('@', '@i')], [to for kind, to in pointers if kind == ';c'])
    return synsets


def senses(folder):
    out = {}
    for line in open(folder / 'index.noun', encoding='latin-1'):
        if line[0] == ' ': continue
        part = line.split()
        skipped = int(part[3])
        for number, offset in enumerate(part[6 + skipped:], 1): out[part[0], number] = offset
    return out


def topic_of(offset, synsets, roots, depth=0):
    words, _, kinds, own = synsets[offset]
    for to in own:
        if to in synsets and synsets[to][0][0] in TOPICS: return TOPICS[synsets[to][0][0]]
    if offset in roots: return roots[offset]
    if depth > 14: return None
    for to in kinds:
        found = topic_of(to, synsets, roots, depth + 1)
        if found: return found
    return None


def rows(folder):
    synsets, numbers = read(folder), senses(folder)
    roots = {numbers[key]: topic for key, topic in KINDS.items() if key in numbers}
    found = {}
    for offset in synsets:
        topic = topic_of(offset, synsets, roots)
        if topic: found.setdefault(topic, []).append(offset)
    for topic in sorted(found):
        # By a hash, so that the choice is the same everywhere.
        chosen = sorted(found[topic], key=lambda offset: zlib.crc32(offset.encode()))[:PER_TOPIC]
        for offset in chosen:
            words, gloss, _, _ = synsets[offset]
            name = ', '.join(word.replace('_', ' ') for word in words)
            yield {'text': f'{name}: {gloss}', 'topic': topic, 'weight': .5}
