"""Italian dates, times and durations as TIMEX values: generated sentences and the cases of recognizers_text."""
from rows import Task, generator, read_jsonl
from words import DAYS_IT, MONTHS_IT, italian

# Sentences around an expression. Every fourth stands on the held-out side alone.
_AROUND = {
    'date': ['Tornerò {}', 'La riunione è {}', 'Il pacco arriva {}', 'Ci vediamo {}', 'La fattura scade {}',
             'Ho prenotato per {}', 'Il corso comincia {}', 'Consegna prevista {}', 'Partiamo {}',
             'Il negozio riapre {}', 'Ti chiamo {}', 'Il contratto è stato firmato {}', '{} sarò fuori ufficio',
             'Segna la visita {}', 'L\'esame è {}', 'Il concerto si tiene {}'],
    'time': ['Tornerò {}', 'La riunione comincia {}', 'Il treno parte {}', 'Ci vediamo {}', 'Mettimi la sveglia {}',
             'Chiamami {}', 'Il bar apre {}', 'Cena {}', 'La lezione è {}', 'L\'autobus passa {}', '{} devo uscire',
             'Appuntamento {}'],
    'duration': ['Andrò via per {}', 'Il viaggio dura {}', 'Ho aspettato {}', 'La garanzia vale {}', 'Resto qui per {}',
                 'Il film dura {}', 'Servono {} di lavoro', 'Sospendi il servizio per {}'],
    'set': ['Andrò via {}', 'Il backup parte {}', 'Ci sentiamo {}', 'La rivista esce {}', 'Vado in palestra {}',
            'Innaffia le piante {}', 'Mandami il rapporto {}', 'Pulire il filtro {}'],
}
_UNITS = {'minuti': ('PT', 'M', 'un minuto'), 'ore': ('PT', 'H', "un'ora"), 'giorni': ('P', 'D', 'un giorno'),
          'settimane': ('P', 'W', 'una settimana'), 'mesi': ('P', 'M', 'un mese'), 'anni': ('P', 'Y', 'un anno')}
_SETS = {'giorno': 'P1D', 'settimana': 'P1W', 'mese': 'P1M', 'anno': 'P1Y'}

SCHEMA = {'type': 'object', 'properties': {
    'type': {'type': 'string', 'enum': ['date', 'time', 'duration', 'set']},
    'timex': {'type': 'string', 'pattern': '^[0-9XPTWYMDHS:-]{2,16}$'}},
    'required': ['type', 'timex'], 'additionalProperties': False}


def _date(random_of):
    day, month, year = random_of.randint(1, 28), random_of.randint(1, 12), random_of.randint(1995, 2035)
    name, short = MONTHS_IT[month - 1], MONTHS_IT[month - 1][:3]
    day_word = italian(day) if day > 1 else 'primo'
    full, partial = f'{year}-{month:02}-{day:02}', f'XXXX-{month:02}-{day:02}'
    weekday = random_of.randrange(7)
    article = "l'" if day in (8, 11) else 'il '
    return random_of.choice([
        (f'{article}{day} {name} {year}', full), (f'{article}{day} {name}', partial), (f'il {day:02}/{month:02}/{year}', full),
        (f'il {day}/{month}', partial), (f'{article}{day} {short} {year}', full), (f'il {day}-{month}-{year}', full),
        (f'il {day:02}.{month:02}.{year}', full), (f'{article}{day_word} {name}', partial),
        (f'{article}{day_word} {name} {year}', full), (DAYS_IT[weekday], f'XXXX-WXX-{weekday + 1}'),
        (f'{DAYS_IT[random_of.randrange(7)]} {day} {name} {year}', full), (f'il {year}-{month:02}-{day:02}', full)])


def _time(random_of):
    hour, minute = random_of.randint(1, 23), random_of.choice([0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55])
    early, late = random_of.randint(5, 11), random_of.randint(1, 8)
    small = random_of.randint(2, 12)

    def at(one):
        return {1: "all'", 0: 'a '}.get(one, 'alle ')
    return random_of.choice([
        (f'alle {hour:02}:{minute:02}', f'T{hour:02}:{minute:02}'), (f'alle {hour:02}.{minute:02}', f'T{hour:02}:{minute:02}'),
        (f'alle {early} di mattina', f'T{early:02}'), (f'alle {italian(early)} del mattino', f'T{early:02}'),
        (f'{at(late)}{late if late > 1 else "una"} del pomeriggio', f'T{late + 12:02}'), (f'alle {small} e mezza', f'T{small:02}:30'),
        (f'alle {italian(small)} e un quarto', f'T{small:02}:15'), (f'alle {italian(small)} e mezza', f'T{small:02}:30'),
        (f'alle {italian(small)} meno un quarto', f'T{small - 1:02}:45'), ('a mezzogiorno', 'T12'),
        (f'alle {italian(small)} e {italian(minute or 10)}', f'T{small:02}:{minute or 10:02}')])


def _duration(random_of):
    unit = random_of.choice(sorted(_UNITS))
    head, mark, one = _UNITS[unit]
    count = random_of.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18, 20, 24, 30, 36, 45, 48, 60, 72, 90])
    if count == 1:
        return one, f'{head}1{mark}'
    return f'{count if random_of.random() < 0.6 else italian(count)} {unit}', f'{head}{count}{mark}'


def _set(random_of):
    weekday, count = random_of.randrange(7), random_of.randint(2, 6)
    unit = random_of.choice(sorted(_UNITS)[1:])
    head, mark, _ = _UNITS[unit]
    one = random_of.choice(sorted(_SETS))
    return random_of.choice([(f'ogni {one}', _SETS[one]), (f'ogni {DAYS_IT[weekday]}', f'XXXX-WXX-{weekday + 1}'),
                             (f'ogni {italian(count)} {unit}', f'{head}{count}{mark}'), (f'ogni {count} {unit}', f'{head}{count}{mark}')])


_KINDS = {'date': _date, 'time': _time, 'duration': _duration, 'set': _set}


def _generated(task, random_of, count, held):
    rows = []
    kinds = ['date', 'date', 'date', 'time', 'time', 'duration', 'set']
    while len(rows) < count:
        kind = kinds[len(rows) % len(kinds)]
        frames = [frame for i, frame in enumerate(_AROUND[kind]) if (i % 4 == 3) == held]
        words, timex = _KINDS[kind](random_of)
        text = random_of.choice(frames).format(words)
        rows.append(task.row(text[0].upper() + text[1:], {'type': kind, 'timex': timex}, 'new_frame' if held else 'known_frame'))
    return rows


def _published(task, folder):
    """The cases that hold one expression whose value does not depend on today."""
    rows = []
    for row in read_jsonl(folder / 'recognizers_text/it.DateTime.DateTimeModel.jsonl'):
        if len(row['results']) != 1 or len(row['input']) > 120:
            continue
        found = row['results'][0]
        kind = found['type'].split('.')[-1]
        values = [value.get('timex', '') for value in found['resolution']['values']]
        timex = values[0]
        relative = row['ref'] and timex.startswith(row['ref'][:4])
        if kind in _KINDS and not relative and all(c in '0123456789XPTWYMDHS:-' for c in timex) and 2 <= len(timex) <= 16:
            rows.append(task.row(row['input'], {'type': kind, 'timex': timex}, 'recognizers'))
    return rows


def dates(folder, seed):
    random_of = generator(seed, 'dates')
    task = Task('dates', 'Italian date, time or duration to JSON',
                'Scrivi in JSON la data, l\'ora o la durata del testo, come TIMEX.', SCHEMA, 'MIT',
                ['recognizers_text, Italian (Microsoft, MIT)', 'generated'], metric='json', languages=('it',), grown=True)
    published = _published(task, folder)
    random_of.shuffle(published)
    half = len(published) // 2
    train = _generated(task, random_of, 4000, False) + published[half:]
    random_of.shuffle(train)
    train = published[half:] + train
    first = train[:500]
    random_of.shuffle(first)
    held = _generated(task, random_of, 150, True) + _generated(task, random_of, 110, False)
    return task.take(first + train[500:], held + published[:half], random_of)
