"""The labelled sets as (text, spans, spans that count neither way, template), spans in bytes."""
import difflib
import functools
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'tools' / 'tagger'))
import corpus  # noqa: E402

# Presidio's types as our kinds. TITLE, PREFIX, DOMAIN_NAME have none; of DATE_TIME only what a template calls a date of birth.
KINDS = {'PERSON': 'person', 'ORGANIZATION': 'organisation', 'LOCATION': 'location', 'ADDRESS': 'address', 'CREDIT_CARD': 'card',
         'PHONE_NUMBER': 'phone', 'EMAIL_ADDRESS': 'email', 'US_SSN': 'ssn', 'IBAN_CODE': 'iban', 'IP_ADDRESS': 'ip_address',
         'US_DRIVER_LICENSE': 'driving_licence'}
TITLES = {'dr.', 'mr.', 'mrs.', 'ms.', 'miss', 'miss.', 'mx.', 'dr', 'mr', 'mrs', 'ms'}


def presidio(folder):
    known = corpus.read_templates(folder / 'templates.txt')

    @functools.cache
    def template_of(written):
        """The template of the file that a row's is a version of: some were reworded since, and must stay in one fold."""
        likeness = lambda one: difflib.SequenceMatcher(None, written, one, autojunk=False).ratio()
        nearest = max(known, key=likeness)
        return nearest if likeness(nearest) > 0.6 else written

    for line in open(folder / 'generated_large.jsonl'):
        row = json.loads(line)
        gold, ignored = [], []
        for span in row['spans']:
            kind = KINDS.get(span['type'])
            if span['type'] == 'DATE_TIME' and 'date_of_birth' in row['template']: kind = 'birth_date'
            if span['value'].lower() in TITLES: kind = None
            (gold if kind else ignored).append((span['start'], span['end'], kind))
        yield row['text'], in_bytes(row['text'], corpus.joined(row['text'], gold)), in_bytes(row['text'], ignored), template_of(row['template'])


def in_bytes(text, spans):
    size = lambda count: len(text[:count].encode())
    return [(size(begin), size(end), kind) for begin, end, kind in spans]
