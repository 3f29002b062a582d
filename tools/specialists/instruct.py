"""A mixed set of short instructions in Italian and English, so that a base model follows the tasks in a chat template."""
import json
from collections import Counter

from phrases import ESCALATE, GREETINGS, PHRASES, SUBJECTS, TOO_HARD, WORDS, opposites, pairs
from rows import answer_text, generator, key_of
from triage import contract
from words import DAYS_EN, DAYS_IT, MONTHS_EN, MONTHS_IT, english, italian

NAME = 'Molly'

# Other ways to ask for each task, with {x} for the text.
PHRASINGS = {
    'banking': ['Message from a bank customer: {x}\nWhich queue?', 'Sort this bank message into a queue: {x}', 'A quale coda della banca va? {x}',
                'Bank queue for: {x}'],
    'domains': ['What domain is this request about? {x}', 'Domain of: {x}', 'Di quale dominio parla la richiesta? {x}', 'Classify the request by domain: {x}'],
    'slots': ['Command to JSON: {x}', 'Give intent and slots as JSON: {x}', 'Estrai intento e campi in JSON: {x}', 'Parse this command: {x}'],
    'sentiment': ['Positive or negative? {x}', 'Sentiment of this review: {x}', 'La recensione è positiva o negativa? {x}', 'Review: {x}\nSentiment?'],
    'dates': ['Che data, ora o durata c\'è nel testo? {x}', 'TIMEX in JSON: {x}', 'Date to JSON: {x}', 'Trova l\'espressione di tempo: {x}'],
    'quantities': ['Quale quantità c\'è nel testo? JSON. {x}', 'Numero o quantità in JSON: {x}', 'Quantity to JSON: {x}', 'Estrai tipo, valore e unità: {x}'],
    'persons': ['Dati personali in JSON: {x}', 'Trova nomi, indirizzi, telefoni e codici: {x}', 'Personal data as JSON: {x}', 'Quali dati personali ci sono? {x}'],
    'triage': ['Task and difficulty of this request? {x}', 'Tipo di compito e difficoltà: {x}', 'Triage: {x}', 'Classifica la richiesta per compito e difficoltà: {x}'],
    'tickets': ['Message to ticket: {x}', 'Crea un ticket in JSON: {x}', 'Make a ticket as JSON: {x}', 'Messaggio del cliente: {x}\nTicket in JSON?'],
}


class Mixer:
    """Collects rows, each question once."""

    def __init__(self, random_of):
        self.random, self.rows, self.seen = random_of, [], set()

    def add(self, question, answer, kind, language, licence='Apache-2.0', system=''):
        key = (system, key_of(question))
        if key in self.seen:
            return False
        self.seen.add(key)
        messages = [{'role': 'system', 'content': system}] if system else []
        messages += [{'role': 'user', 'content': question}, {'role': 'assistant', 'content': answer}]
        self.rows.append({'messages': messages, 'class': 'public', 'license': licence, 'kind': kind, 'language': language})
        return True

    def fill(self, count, make):
        """Calls `make` until `count` new rows came of it, or nothing new comes any more."""
        stale = 0
        while count > 0 and stale < 200:
            if self.add(*make()):
                count, stale = count - 1, 0
            else:
                stale += 1

    def pick(self, values):
        return self.random.choice(values)


def _tasks(mixer, tasks, each):
    """Rows that no specialist learns from and none is graded on: half as a specialist sees them, half in other words."""
    for task in tasks:
        if task.licence == 'CC-BY-SA-4.0':
            continue  # the base's weights are shared under no such terms
        rows = [row for row in task.spare if row['slice'] != 'recognizers']
        for i, row in enumerate(rows[:each]):
            answer = answer_text(row['answer'])
            if i % 2 == 0:
                mixer.add(row['text'], answer, task.name, row['language'], task.licence, task.instructions)
            else:
                question = mixer.pick(PHRASINGS[task.name]).format(x=row['text'])
                mixer.add(question, answer, task.name, row['language'], task.licence)


def _talk(mixer):
    for language, groups in GREETINGS.items():
        for asked, answers in groups:
            for question in asked:
                forms = {question, question.lower(), question.rstrip('?!') + '?', question.rstrip('?!') + '!', question.rstrip('?!.'),
                         question + (' Dimmi.' if language == 'it' else ' Tell me.')}
                for form in sorted(forms):
                    mixer.add(form, mixer.pick(answers).format(me=NAME), 'talk', language)
        for frame in TOO_HARD[language]:
            for subject in SUBJECTS[language]:
                mixer.add(contract(frame.format(x=subject)), mixer.pick(ESCALATE[language]), 'escalate', language)


def _translations(mixer):
    frames = {'en': ['Traduci in inglese: {x}', 'Translate into English: {x}', 'In inglese: {x}', 'Come si dice in inglese "{x}"?'],
              'it': ['Traduci in italiano: {x}', 'Translate into Italian: {x}', 'In italiano: {x}', 'How do you say "{x}" in Italian?']}
    for source in (PHRASES, WORDS):
        for it, en in pairs(source):
            for frame in frames['en']:
                mixer.add(frame.format(x=it), en, 'translate', 'en')
            for frame in frames['it']:
                mixer.add(frame.format(x=en), it, 'translate', 'it')


def _numbers(mixer):
    """Small sums, number words and calendar words."""
    pick, random_of = mixer.pick, mixer.random

    def total():
        a, b = random_of.randint(0, 50), random_of.randint(0, 50)
        sign, word_it, word_en, value = pick([('+', 'più', 'plus', a + b), ('-', 'meno', 'minus', max(a, b) - min(a, b)),
                                              ('x', 'per', 'times', (a % 11) * (b % 11))])
        if sign == '-':
            a, b = max(a, b), min(a, b)
        if sign == 'x':
            a, b = a % 11, b % 11
        language, frame = pick([('it', 'Quanto fa {a} {it} {b}?'), ('it', 'Calcola {a} {s} {b}'), ('en', 'What is {a} {en} {b}?'),
                                ('en', 'Compute {a} {s} {b}'), ('it', '{a} {s} {b} =')])
        return frame.format(a=a, b=b, s=sign, it=word_it, en=word_en), str(value), 'sum', language

    def spelled():
        number = pick([random_of.randint(0, 20), random_of.randint(21, 99), random_of.randint(100, 9999)])
        it, en = italian(number), english(number)
        return pick([(f'Scrivi {number} in lettere', it, 'number', 'it'), (f'Scrivi in cifre: {it}', str(number), 'number', 'it'),
                     (f'Write {number} in words', en, 'number', 'en'), (f'Write as digits: {en}', str(number), 'number', 'en'),
                     (f'Come si dice {number} in inglese?', en, 'number', 'en'), (f'How do you say {number} in Italian?', it, 'number', 'it')])

    def calendar():
        i, step = random_of.randrange(12), random_of.randrange(7)
        day, month, year = random_of.randint(1, 28), i, random_of.randint(1990, 2035)
        return pick([(f'Che mese viene dopo {MONTHS_IT[i]}?', MONTHS_IT[(i + 1) % 12], 'calendar', 'it'),
                     (f'Che giorno viene dopo {DAYS_IT[step]}?', DAYS_IT[(step + 1) % 7], 'calendar', 'it'),
                     (f'Which month comes after {MONTHS_EN[i]}?', MONTHS_EN[(i + 1) % 12], 'calendar', 'en'),
                     (f'Which day comes after {DAYS_EN[step]}?', DAYS_EN[(step + 1) % 7], 'calendar', 'en'),
                     (f'Che numero ha il mese di {MONTHS_IT[i]}?', str(i + 1), 'calendar', 'it'),
                     (f'Scrivi come anno-mese-giorno: {day} {MONTHS_IT[month]} {year}', f'{year}-{month + 1:02}-{day:02}', 'calendar', 'it'),
                     (f'Write as year-month-day: {day} {MONTHS_EN[month]} {year}', f'{year}-{month + 1:02}-{day:02}', 'calendar', 'en'),
                     (f'Scrivi per esteso: {day}/{month + 1}/{year}', f'{day} {MONTHS_IT[month]} {year}', 'calendar', 'it')])

    def larger():
        a, b = random_of.sample(range(1, 999), 2)
        return pick([(f'Qual è maggiore, {a} o {b}?', str(max(a, b)), 'compare', 'it'), (f'Which is larger, {a} or {b}?', str(max(a, b)), 'compare', 'en'),
                     (f'Qual è minore, {a} o {b}?', str(min(a, b)), 'compare', 'it'), (f'Which is smaller, {a} or {b}?', str(min(a, b)), 'compare', 'en')])
    for count, make in ((2200, total), (1800, spelled), (1000, calendar), (600, larger)):
        mixer.fill(count, make)


_PEOPLE = 'Anna Marco Lucia Paolo Sara Luca Giulia Pietro Elena Carlo Maria Andrea Chiara Matteo Irene Davide'.split()
_CITIES = 'Roma Milano Napoli Torino Bari Genova Palermo Bologna Firenze Verona Trieste Cagliari'.split()
_THINGS = {'it': 'due libri;una lampada;tre mele;un telefono;un cappello;cinque penne;una bicicletta;un vaso'.split(';'),
           'en': 'two books;a lamp;three apples;a phone;a hat;five pens;a bicycle;a vase'.split(';')}


def _reading(mixer):
    """Questions about a sentence that stands in the question, and copying."""
    pick, random_of = mixer.pick, mixer.random

    def fact():
        who, where, day, price = pick(_PEOPLE), pick(_CITIES), random_of.randrange(7), random_of.randint(2, 300)
        if random_of.random() < 0.6:
            what = pick(_THINGS['it'])
            text = f'{DAYS_IT[day].capitalize()} {who} ha comprato {what} a {where} per {price} euro.'
            question, answer = pick([('Chi ha comprato?', who), ('Che cosa ha comprato?', what), ('Dove?', f'A {where}.'),
                                     ('Quando?', DAYS_IT[day].capitalize() + '.'), ('Quanto ha speso?', f'{price} euro.')])
            return f'{text} {question}', answer, 'reading', 'it'
        what = pick(_THINGS['en'])
        text = f'On {DAYS_EN[day]} {who} bought {what} in {where} for {price} euros.'
        question, answer = pick([('Who bought it?', who), ('What was bought?', what), ('Where?', f'In {where}.'),
                                 ('When?', f'On {DAYS_EN[day]}.'), ('How much was it?', f'{price} euros.')])
        return f'{text} {question}', answer, 'reading', 'en'

    def copied():
        it, en = pick(pairs(PHRASES))
        code = ''.join(pick('ABCDEFGHLMNPRSTVZ0123456789') for _ in range(random_of.randint(4, 8)))
        return pick([(f'Ripeti: {it}', it, 'copy', 'it'), (f'Repeat: {en}', en, 'copy', 'en'), (f'Copia il codice {code}', code, 'copy', 'it'),
                     (f'Il codice è {code}. Qual è il codice?', code, 'copy', 'it'), (f'The code is {code}. What is the code?', code, 'copy', 'en'),
                     (f'Scrivi in maiuscolo: {it}', it.upper(), 'copy', 'it'), (f'Write in capitals: {en}', en.upper(), 'copy', 'en')])

    def listed():
        few = random_of.sample(_PEOPLE, 3)
        return pick([(f'Metti in ordine alfabetico: {", ".join(few)}', ', '.join(sorted(few)), 'list', 'it'),
                     (f'Put in alphabetical order: {", ".join(few)}', ', '.join(sorted(few)), 'list', 'en'),
                     (f'Quanti nomi ci sono? {", ".join(few)}', '3', 'list', 'it'), (f'What is the first name? {", ".join(few)}', few[0], 'list', 'en'),
                     (f'Scrivi come lista JSON: {", ".join(few)}', json.dumps(few, ensure_ascii=False, separators=(',', ':')), 'list', 'it')])
    for count, make in ((2500, fact), (900, copied), (500, listed)):
        mixer.fill(count, make)
    for language, frames in (('it', ['Qual è il contrario di {x}?', 'Contrario di {x}']), ('en', ['What is the opposite of {x}?', 'Opposite of {x}'])):
        for one, other in opposites(language):
            for frame in frames:
                mixer.add(frame.format(x=one), other, 'opposite', language)
                mixer.add(frame.format(x=other), one, 'opposite', language)


def instruct_rows(tasks, seed, each=1000, task_rows=50):
    """The mixed set, in a random order; of each task `task_rows` rows, so that the base knows its form and no more."""
    mixer = Mixer(generator(seed, 'instruct'))
    _tasks(mixer, tasks, each)
    _talk(mixer)
    _translations(mixer)
    _numbers(mixer)
    _reading(mixer)
    mixer.random.shuffle(mixer.rows)
    names, seen, rows = {task.name for task in tasks}, Counter(), []
    for row in mixer.rows:
        seen[row['kind']] += 1
        if row['kind'] not in names or seen[row['kind']] <= task_rows:
            rows.append(row)
    return rows
