#!/usr/bin/env python3
"""Writes what train_tagger reads: labelled sentences made from templates, clean sentences, and the lexicon.

usage: corpus.py --faker FILE --data FOLDER --out FOLDER [--part all|train] [--seed N] [--variants N]
                 [--without-presidio FOLD/FOLDS] [--without-own FOLD/FOLDS]
writes OUT/rows.jsonl and OUT/lexicon.tsv. docs/detection.md tells where the inputs come from."""
import argparse
import collections
import functools
import hashlib
import json
import random
import re
import sys
from pathlib import Path

import carriers
import fillers

HERE = Path(__file__).resolve().parent
SLOT = re.compile(r'\{\{?\s*(\w+)\s*\}?\}')
PLACES = ('address', 'location')
# What may stand between the parts of one postal address.
JOINT = re.compile(r'[\s,\-.]{1,6}(\(?[A-Z]{2}\)?)?\s*')


def plain(kind, maker): return lambda f: (maker(f), kind)


def slots():
    """Slot name -> filler -> (text, kind or None)."""
    F = fillers.Filler
    made = {}
    def put(names, kind, maker):
        for name in names.split(): made[name] = plain(kind, maker)
    lower = lambda maker: lambda f: maker(f).lower()
    upper = lambda maker: lambda f: maker(f).upper()
    put('person persona name name_male name_female name_nonbinary', 'person', F.person)
    put('person_lower persona_min', 'person', lower(F.person))
    put('person_upper persona_mai', 'person', upper(F.person))
    put('first nome first_name first_name_male first_name_female first_name_nonbinary', 'person', F.first)
    put('first_lower nome_min', 'person', lower(F.first))
    put('last cognome last_name last_name_male last_name_female', 'person', F.last)
    put('last_lower', 'person', lower(F.last))
    put('cognome_mai', 'person', upper(F.last))
    put('org azienda organization company', 'organisation', F.org)
    put('org_lower azienda_min', 'organisation', lower(F.org))
    put('org_upper azienda_mai', 'organisation', upper(F.org))
    put('hospital', 'organisation', lambda f: f.pick(['St. {} Hospital', '{} General Hospital', '{} Clinic', 'University Hospital of {}']).format(f.pick([f.last(), f.city()])))
    put('ospedale', 'organisation', lambda f: f.pick(["l'Ospedale {}", 'il Policlinico {}', 'la clinica {}', 'Ospedale San {}']).format(f.last()))
    put('city citta', 'location', F.city)
    put('city_lower citta_min', 'location', lower(F.city))
    put('country paese', 'location', F.country)
    put('country_lower', 'location', lower(F.country))
    put('address indirizzo', 'address', F.address)
    put('address_upper indirizzo_mai', 'address', upper(F.address))
    put('street via', 'address', F.street)
    put('via_min', 'address', lower(F.street))
    put('street_only via_sola street_name', 'address', F.street_only)
    put('secondary_address', 'address', lambda f: f.digits(f.secondary()))
    put('building_number', 'address', F.number)
    put('zip zipcode postcode', 'address', F.zip)
    put('cap', 'address', F.cap)
    put('state_abbr', 'address', lambda f: f.pick(fillers.STATES))
    put('phone telefono phone_number', 'phone', F.phone)
    put('dob nascita date_of_birth', 'birth_date', F.date)
    put('email', 'email', F.email)
    put('iban', 'iban', F.iban)
    put('card carta credit_card_number', 'card', F.card)
    put('cf', 'codice_fiscale', F.cf)
    put('piva', 'partita_iva', F.vat)
    put('targa plate', 'plate', F.plate)
    put('ssn', 'ssn', lambda f: f.digits('2##-4#-5###'))
    put('ip ip_address', 'ip_address', lambda f: '.'.join(str(f.random.randint(1, 223)) for _ in range(4)))
    put('passport', 'passport', lambda f: f.digits('YA#######'))
    put('us_driver_license', 'driving_licence', lambda f: f.digits(f.pick(['#########', 'A########', 'M############', '########'])))
    none = lambda names, maker: put(names, None, maker)
    none('vat num', lambda f: str(f.random.randint(2, 99)))
    none('sigla', lambda f: f.pick(f.lists.big_towns)[1])
    none('date data date_time', F.date)
    none('year anno', lambda f: str(f.random.randint(1950, 2026)))
    none('age', lambda f: str(f.random.randint(1, 95)))
    none('month mese', lambda f: f.pick(fillers.MONTHS[f.language]))
    none('weekday giorno day_of_week', lambda f: f.pick(fillers.WEEKDAYS[f.language]))
    none('title titolo prefix prefix_male prefix_female', lambda f: f.pick(fillers.TITLES[f.language]))
    none('job lavoro', lambda f: f.pick(fillers.JOBS[f.language]))
    none('nationality nazionalita nation_woman nation_man', lambda f: f.pick(fillers.NATIONS[f.language]))
    none('nation_plural', lambda f: f.pick(fillers.NATIONS['en']) + 's')
    none('amount importo', lambda f: f.digits(f.amount()))
    none('url', lambda f: f'https://www.{f.invented()}.example/'.lower())
    return made


SLOTS = slots()


def render(template, filler):
    """The template as pieces of (text, kind); a slot that nobody knows stays as it is written."""
    pieces, at = [], 0
    for slot in SLOT.finditer(template):
        if slot.group(1) not in SLOTS: continue
        pieces.append((template[at:slot.start()], None))
        pieces.append(SLOTS[slot.group(1)](filler))
        at = slot.end()
    return [piece for piece in pieces + [(template[at:], None)] if piece[0]]


def joined(text, spans):
    """Parts of one postal address, with nothing but signs between them, become one span."""
    out = []
    for begin, end, kind in sorted(spans):
        if out and kind in PLACES and out[-1][2] in PLACES and 'address' in (kind, out[-1][2]) \
                and JOINT.fullmatch(text[out[-1][1]:begin]) or (out and begin < out[-1][1]):
            out[-1] = (out[-1][0], max(end, out[-1][1]), 'address' if kind in PLACES else out[-1][2])
        else:
            out.append((begin, end, kind))
    return out


def assemble(pieces):
    """(text, spans in characters)."""
    text, spans = '', []
    for piece, kind in pieces:
        if kind: spans.append((len(text), len(text) + len(piece), kind))
        text += piece
    return text, joined(text, spans)


def row(text, spans, group):
    """Spans in bytes, as the trainer wants them."""
    size = lambda count: len(text[:count].encode())
    return {'t': text, 's': [[size(begin), size(end), kind] for begin, end, kind in spans], 'g': group}


def read_templates(path):
    lines = path.read_bytes().decode('utf-8', 'replace').splitlines()
    return [line.replace('\\n', '\n').replace('\\t', '\t').replace('\\,', ',') for line in lines if line.strip()]


def folded(template, fold):
    """Whether the template belongs to the fold `3/5`."""
    if not fold: return False
    number, count = map(int, fold.split('/'))
    return hashlib.sha256(re.sub(r'\W+', ' ', template).encode()).digest()[0] % count == number


def disguise(pieces, chance):
    """Now and then all in lower or upper case, as people write."""
    way = chance.random()
    if way < 0.09: return [(text.lower(), kind) for text, kind in pieces]
    if way < 0.11: return [(text.upper(), kind) for text, kind in pieces]
    return pieces


def template_rows(templates, language, lists, seed, variants, group, joined_rows=True):
    chance = random.Random(seed)
    filler = fillers.Filler(lists, seed, language)
    for number, template in enumerate(templates):
        for _ in range(variants):
            pieces = disguise(render(template, filler), chance)
            if joined_rows and chance.random() < 0.2:
                pieces = pieces + [(chance.choice([' ', '\n', '\n\n']), None)] + render(chance.choice(templates), filler)
            yield row(*assemble(pieces), f'{group}{number}')


CLEAN = ['it.libreoffice-help.txt', 'en.libreoffice-help.txt', 'en.common-voice.txt', 'it.common-voice.txt', 'it.pa-spid-cie-oidc.txt',
         'it.pa-riuso-software-per-pa.txt', 'it.pa-pianotriennale-ict-doc.txt', 'it.pa-design-linee-guida.txt', 'it.pa-anpr.txt',
         'en.eltec-novels.txt', 'it.eltec-novels.txt']
NAMELESS = re.compile(r'\W*\w?[^A-Z\u00c0-\u00de]*')


def clean_rows(folder, seed, count):
    """Sentences without names. Help texts have none but of products; of the others only those without a capital inside are
    surely free of them. Every tenth line is left for measuring."""
    chance = random.Random(seed)
    for name in CLEAN:
        lines = [line.strip() for n, line in enumerate(open(folder / name, errors='replace')) if n % 10]
        is_help = 'libreoffice' in name
        wanted = [line for line in lines if 20 < len(line) < 400 and '@' not in line and (is_help or NAMELESS.fullmatch(line))]
        for line in chance.sample(wanted, min(count * (3 if is_help else 1), len(wanted))):
            yield row(line, [], name)


CARRIERS = {'en': ['en.common-voice.txt', 'en.eltec-novels.txt'], 'it': ['it.common-voice.txt', 'it.eltec-novels.txt', 'it.pa-anpr.txt']}


@functools.cache
def carrier_templates(path, language):
    """(those that speak of persons, those that speak of places and firms too)"""
    chance = random.Random(0)
    persons, others = [], []
    for number, line in enumerate(open(path, errors='replace')):
        if number % 10 == 0 or '{' in line: continue
        for sentence in re.split(r'(?<=[.!?»"]) +', line.strip()):
            if 20 < len(sentence) < 220 and NAMELESS.fullmatch(sentence):
                template = carriers.carrier(sentence, language, chance)
                if template: (others if re.search(r'{(?:cit|cou|pae|org|azi|str|via)', template) else persons).append(template)
    return persons, others


def carrier_rows(folder, language, lists, seed, count):
    """Real sentences with names put in."""
    chance = random.Random(seed)
    filler = fillers.Filler(lists, seed, language)
    for name in CARRIERS[language]:
        persons, others = carrier_templates(folder / name, language)
        # Texts speak of persons most; places and firms are made up for.
        half = chance.sample(others, min(count // 2, len(others)))
        for template in half + chance.sample(persons, min(count - len(half), len(persons))):
            yield row(*assemble(disguise(render(template, filler), chance)), name)


@functools.cache
def word_counts(folder):
    """How often each word of the clean texts is written in lower case, and with a capital inside a line."""
    lower, upper = collections.Counter(), collections.Counter()
    for name in CLEAN:
        for line in open(folder / name, errors='replace'):
            words = re.findall(r"[^\W\d_]+", line)
            lower.update(word for word in words if word.islower())
            upper.update(word.lower() for word in words[1:] if word[0].isupper())
    return lower, upper


def lexicon(lists, folder):
    """Lines of (word, classes), most important first."""
    bits = collections.Counter()
    def add(words, bit):
        for text in words:
            for word in re.findall(r"[^\W\d_]+", text):
                if len(word) > 1: bits[word.lower()] |= bit
    for given, family in lists.names.values():
        add(given, 1)
        add(family, 2)
    places = [name for cities in lists.cities.values() for name in cities] + [town for town, _ in lists.towns] \
        + [name for cities in lists.world.values() for name in cities]
    add([name for name in places if ' ' not in name] + lists.countries['en'] + lists.countries['it'], 4)
    # Of `San Giovanni Rotondo` only what is no given name says that a place is meant.
    given = {word for word in bits if bits[word] & 1}
    add([word for name in places for word in name.split() if word.lower() not in given], 4)
    lower, upper = word_counts(folder)
    ranked = [word for word, count in lower.most_common(40000) if count >= 4 and count > 2 * upper[word]]
    for place, word in enumerate(ranked): bits[word] |= 8 | (16 if place < 1500 else 0)
    for word in list(bits):
        # A name that is a common word is one of its meanings only; a place's `di` is none.
        if bits[word] & 16: bits[word] &= ~4
    companies = fillers.SUFFIXES + fillers.SUFFIXES_IT + fillers.TRADES + fillers.TRADES_IT + fillers.FRONTS_IT + 'company corporation azienda società ditta university università hospital ospedale'.split()
    streets = fillers.STREETS_EN + fillers.STREETS_IT + 'rue straße strasse str calle avenida ul utca weg platz laan straat rua gatan vej apt suite unit flat po box apo fpo dpo psc nan'.split()
    titles = fillers.TITLES['en'] + fillers.TITLES['it'] + 'president professor judge captain senator uncle aunt grandma don suor zio zia nonna ministro giudice presidente lady lord sir'.split()
    add(companies, 32)
    add(streets, 64)
    add(titles, 128)
    order = sorted(bits, key=lambda word: (not bits[word] & 0xF0, -lower[word], word))
    return [(word, bits[word]) for word in order if bits[word]]


def build(options):
    lists = fillers.Lists(options.faker, options.data / 'pii_it_seed', options.part)
    keep = lambda templates, fold: [t for t in templates if not folded(t, fold)]
    english, italian = (keep(read_templates(HERE / f'templates.{language}.txt'), options.without_own) for language in ('en', 'it'))
    presidio = keep(read_templates(options.data / 'pii_presidio' / 'templates.txt'), options.without_presidio)
    negatives = read_templates(HERE / 'negatives.txt')
    texts = options.data / 'pretrain_text'
    rows = [*template_rows(presidio, 'en', lists, options.seed, options.variants, 'p'),
            *template_rows(english, 'en', lists, options.seed + 1, options.variants, 'e'),
            *template_rows(italian, 'it', lists, options.seed + 2, options.variants, 'i'),
            *carrier_rows(texts, 'en', lists, options.seed + 4, options.carriers),
            *carrier_rows(texts, 'it', lists, options.seed + 5, options.carriers),
            *(row(line, [], 'n') for line in negatives for _ in range(max(1, options.variants // 5))),
            *clean_rows(texts, options.seed + 3, options.clean)]
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / 'rows.jsonl', 'w') as out:
        for each in rows: out.write(json.dumps(each, ensure_ascii=False) + '\n')
    with open(options.out / 'lexicon.tsv', 'w') as out:
        for word, bits in lexicon(lists, texts): out.write(f'{word}\t{bits}\n')
    print(f"{len(rows)} rows", file=sys.stderr)


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--faker', type=Path, required=True)
    parser.add_argument('--data', type=Path, required=True)
    parser.add_argument('--out', type=Path, required=True)
    parser.add_argument('--part', default='all', choices=['all', 'train', 'test'])
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--variants', type=int, default=30)
    parser.add_argument('--clean', type=int, default=1200, help='sentences of each clean text')
    parser.add_argument('--carriers', type=int, default=6000, help='sentences of each text that names are put into')
    parser.add_argument('--without-presidio', default='')
    parser.add_argument('--without-own', default='')
    return parser.parse_args(words)


if __name__ == '__main__':
    build(arguments())
