"""Italian numbers and quantities as JSON: the cases of recognizers_text and generated sentences."""
import re

from rows import Task, generator, read_jsonl
from words import grouped, italian

_FILES = {'number': 'Number.NumberModel', 'ordinal': 'Number.OrdinalModel', 'percent': 'Number.PercentModel',
          'age': 'NumberWithUnit.AgeModel', 'temperature': 'NumberWithUnit.TemperatureModel',
          'currency': 'NumberWithUnit.CurrencyModel', 'dimension': 'NumberWithUnit.DimensionModel'}
KINDS = list(_FILES)
SCHEMA = {'type': 'object', 'properties': {
    'kind': {'type': 'string', 'enum': KINDS}, 'value': {'type': 'string', 'pattern': '^-?[0-9]{1,12}(\\.[0-9]{1,4})?$'},
    'unit': {'type': 'string', 'maxLength': 24}}, 'required': ['kind', 'value', 'unit'], 'additionalProperties': False}

# What is said -> what recognizers_text calls it.
_DIMENSIONS = {'chilometri': 'Chilometro', 'metri': 'Metro', 'centimetri': 'Centimetro', 'kg': 'Chilogrammo',
               'chili': 'Chilogrammo', 'grammi': 'Grammo', 'litri': 'Litro', 'ml': 'Millilitro', 'miglia': 'Miglio',
               'pollici': 'Pollice', 'metri quadrati': 'Metro quadrato', 'tonnellate': 'Tonnellata'}
_CURRENCIES = {'euro': 'Euro', 'dollari': 'Dollar', 'sterline': 'Pound', 'yen': 'Japanese yen', 'franchi svizzeri': 'Swiss franc'}
_SIGNS = {'€': 'Euro', '$': 'Dollar', '£': 'Pound'}
_AROUND = {
    'number': ['Ho contato {} persone in sala', 'La risposta è {}', 'Sono arrivate {} lettere', 'Ne mancano {}', '{}',
               'Il codice contiene {} cifre', 'Abbiamo {} iscritti', 'Servono altri {} pezzi'],
    'ordinal': ['È arrivato {} in classifica', 'Abito al {} piano', 'È il {} della lista', 'Vedi il {} capitolo',
                'Oggi è il {} giorno', 'Il {} cliente vince un premio', 'Siamo al {} tentativo', 'Questo è il {} avviso'],
    'percent': ['Lo sconto è del {}', 'Le vendite sono salite del {}', 'Ha votato il {} degli iscritti', 'La batteria è al {}',
                'Il tasso è del {}', 'Siamo al {} del lavoro', 'Perde il {} l\'anno', 'Serve il {} dei voti'],
    'age': ['Mia figlia ha {}', 'La casa ha {}', 'Il cane ha {}', 'Cerco un corso per chi ha {}', 'Mio nonno ha {}',
            'Il vino ha {}', 'Il bambino compie {}', 'Si vota a {}'],
    'temperature': ['Fuori ci sono {}', 'Imposta il forno a {}', 'La febbre è a {}', 'In camera ci sono {}',
                    'L\'acqua è a {}', 'Stanotte si scende a {}', 'Porta il termostato a {}', 'La minima è di {}'],
    'currency': ['Il biglietto costa {}', 'Ho speso {}', 'La multa è di {}', 'Vorrei trasferire {}', 'Il canone è di {}',
                 'Mi devi {}', 'L\'offerta è di {}', 'Il totale è {}'],
    'dimension': ['Ne abbiamo {}', 'In tutto sono {}', 'Ne servono {}', 'La misura è di {}', 'Sul cartello c\'è scritto {}',
                  'Ne restano {}', 'Mancano ancora {}', 'Ne ho ordinati {}'],
}


def _plain(value):
    """recognizers_text writes 200,29: with a point and without a sign of per cent, or nothing where it is no plain number."""
    text = value.replace('%', '').replace(',', '.')
    return text if re.fullmatch(r'-?[0-9]{1,12}(\.[0-9]{1,4})?', text) else None


def _published(task, folder):
    rows = []
    for kind, name in _FILES.items():
        for row in read_jsonl(folder / f'recognizers_text/it.{name}.jsonl'):
            if len(row['results']) != 1 or len(row['input']) > 160:
                continue
            resolution = row['results'][0]['resolution']
            value = _plain(resolution.get('value') or '')
            unit = resolution.get('unit', '')
            if value is not None and len(unit) <= 24:
                rows.append(task.row(row['input'], {'kind': kind, 'value': value, 'unit': unit}, 'recognizers'))
    return rows


def _amount(random_of, most):
    """A number as it is said, and its value."""
    number = random_of.choice([random_of.randint(2, 20), random_of.randint(21, 99), random_of.randint(100, most)])
    form = random_of.random()
    if form < 0.45:
        return italian(number), str(number)
    if form < 0.8 or number < 1000:
        return str(number), str(number)
    return grouped(number), str(number)


def _decimal(random_of, most):
    whole, part = random_of.randint(1, most), random_of.choice(['5', '25', '75', '2', '8', '9', '05', '49', '99'])
    return f'{whole},{part}', f'{whole}.{part}'


def _quantity(kind, random_of):
    """(words, value, unit) of one quantity."""
    if kind == 'number':
        return (*random_of.choice([_amount, _amount, _decimal])(random_of, 9000), '')
    if kind == 'ordinal':
        number = random_of.randint(1, 30)
        named = 'primo secondo terzo quarto quinto sesto settimo ottavo nono decimo'.split()
        whole = italian(number).replace('tré', 'tre')
        stem = whole if whole.endswith(('tre', 'sei')) else whole[:-1]
        word = named[number - 1] if number <= 10 else stem + 'esimo'
        return (word if random_of.random() < 0.6 else f'{number}°'), str(number), ''
    if kind == 'percent':
        words, value = random_of.choice([_amount, _decimal])(random_of, 150)
        return (f'{words}%' if words[0].isdigit() and random_of.random() < 0.6 else f'{words} percento'), value, ''
    if kind == 'age':
        number = random_of.randint(2, 99)
        words = italian(number) if random_of.random() < 0.5 else str(number)
        unit, name = random_of.choice([('anni', 'Anno'), ('anni', 'Anno'), ('mesi', 'Mese'), ('settimane', 'Settimana')])
        return f'{words} {unit}', str(number), name
    if kind == 'temperature':
        words, value = random_of.choice([_amount, _decimal])(random_of, 220)
        sign, name = random_of.choice([(' gradi celsius', 'C'), ('°C', 'C'), (' gradi', 'Degree'), (' gradi fahrenheit', 'F'), ('°F', 'F')])
        return words + (sign if words[0].isdigit() or sign[0] == ' ' else ' gradi'), value, (
            name if words[0].isdigit() or sign[0] == ' ' else 'Degree')
    words, value = random_of.choice([_amount, _amount, _decimal])(random_of, 9000)
    if kind == 'currency':
        if words[0].isdigit() and random_of.random() < 0.4:
            sign = random_of.choice(sorted(_SIGNS))
            return (f'{sign} {words}' if random_of.random() < 0.5 else f'{words} {sign}'), value, _SIGNS[sign]
        unit = random_of.choice(sorted(_CURRENCIES))
        return f'{words} {unit}', value, _CURRENCIES[unit]
    unit = random_of.choice(sorted(_DIMENSIONS))
    return f'{words} {unit}', value, _DIMENSIONS[unit]


def _generated(task, random_of, count, held):
    rows = []
    kinds = ['number', 'currency', 'dimension', 'temperature', 'percent', 'age', 'ordinal']
    while len(rows) < count:
        kind = kinds[len(rows) % len(kinds)]
        frames = [frame for i, frame in enumerate(_AROUND[kind]) if (i % 4 == 3) == held]
        words, value, unit = _quantity(kind, random_of)
        rows.append(task.row(random_of.choice(frames).format(words), {'kind': kind, 'value': value, 'unit': unit},
                             'new_frame' if held else 'known_frame'))
    return rows


def quantities(folder, seed):
    random_of = generator(seed, 'quantities')
    task = Task('quantities', 'Italian number or quantity to JSON',
                'Scrivi in JSON il numero o la quantità del testo: tipo, valore, unità.', SCHEMA, 'MIT',
                ['recognizers_text, Italian (Microsoft, MIT)', 'generated'], metric='json', languages=('it',), grown=True)
    published = _published(task, folder)
    random_of.shuffle(published)
    third = len(published) // 3
    train = published[third:] + _generated(task, random_of, 500 - (len(published) - third), False)
    random_of.shuffle(train)
    train += _generated(task, random_of, 3000, False)
    held = published[:third] + _generated(task, random_of, 120, True) + _generated(task, random_of, 80, False)
    return task.take(train, held, random_of)
