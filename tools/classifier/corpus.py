#!/usr/bin/env python3
"""Makes the rows from which `molly train classifier` learns: the project's own topics and sentences, WordNet's glosses, and
labelled sets in a folder. The same inputs give the same rows. docs/routing.md says where the inputs come from.

usage: corpus.py --data FOLDER [--wordnet /usr/share/wordnet] [--without-mmlu] --out ROWS.jsonl [--tests FOLDER]"""
import argparse
import json
import random
import zlib
from pathlib import Path

import wordnet

HERE = Path(__file__).resolve().parent
OUTSIDE_WEIGHT = 6  # of a row that is out of scope: they are few
HELD_BACK = 250  # rows of each labelled set that train nothing and tell how sure a reading may be
OWN_ROWS = 420  # sentences made of each topic's terms, per language
FIELDS_OF_CASES = {'biology': 'science', 'chemistry': 'science', 'physics': 'science', 'math': 'science', 'health': 'medicine', 'computer science': 'programming',
                   'philosophy': 'humanities', 'history': 'humanities', 'law': 'humanities', 'economics': 'social_science', 'psychology': 'social_science',
                   'business': 'business', 'engineering': 'engineering', 'other': 'other'}
SUBJECTS = {'Biology': ['biology'], 'Physics': ['physics', 'astronomy'], 'Chemistry': ['chemistry'], 'Geology': ['earth_science'], 'History': ['history'],
            'Philosophy': ['philosophy'], 'Ethics': ['ethics'], 'Psychology': ['psychology'], 'Sociology': ['sociology'], 'Politics': ['politics'],
            'Informatics': ['computer_science']}
MMLU = {'mathematics': 'abstract_algebra college_mathematics high_school_mathematics', 'word_problems': 'elementary_mathematics', 'statistics': 'high_school_statistics',
        'astronomy': 'astronomy', 'biology': 'college_biology high_school_biology', 'chemistry': 'college_chemistry high_school_chemistry',
        'physics': 'college_physics conceptual_physics high_school_physics', 'anatomy': 'anatomy', 'medicine': 'clinical_knowledge college_medicine professional_medicine medical_genetics',
        'aging': 'human_aging', 'nutrition': 'nutrition', 'microbiology': 'virology', 'computer_science': 'college_computer_science high_school_computer_science',
        'security': 'computer_security', 'engineering': 'electrical_engineering', 'machine_learning': 'machine_learning', 'logic': 'formal_logic logical_fallacies',
        'history': 'high_school_european_history high_school_us_history high_school_world_history', 'law': 'international_law jurisprudence professional_law',
        'ethics': 'moral_disputes moral_scenarios', 'philosophy': 'philosophy', 'prehistory': 'prehistory', 'religion_literature': 'world_religions',
        'economics': 'econometrics high_school_macroeconomics high_school_microeconomics', 'geography': 'high_school_geography',
        'politics': 'high_school_government_and_politics security_studies us_foreign_policy', 'psychology': 'high_school_psychology human_sexuality professional_psychology',
        'sociology': 'sociology', 'business': 'business_ethics management', 'accounting': 'professional_accounting', 'marketing': 'marketing public_relations',
        'trivia': 'miscellaneous global_facts'}
TOPIC_OF_SUBJECT = {subject: topic for topic, subjects in MMLU.items() for subject in subjects.split()}
TASK_DIFFICULTY = {'chat': .3, 'extract': .35, 'classify': .2, 'summarise': .35, 'translate': .3, 'code': .6, 'reason': .65, 'tool_use': .25, 'transcribe': .2,
                   'speak': .1, 'draw': .3, 'embed': .05}


def lines(path): return [json.loads(line) for line in open(path, encoding='utf-8')]


def tables(name): return [line.rstrip('\n').split('\t') for line in open(HERE / name, encoding='utf-8') if line.strip() and line[0] != '#']


class Own:
    """Sentences made of the project's own topics and ways of asking."""

    def __init__(self, chance, passages):
        self.chance, self.passages = chance, passages
        self.terms, self.fields = {}, {}
        for topic, field, language, terms in tables('topics.txt'):
            self.fields[topic] = field
            self.terms[topic, language] = [term.strip() for term in terms.split(',')]
        self.asks = {}
        for task, language, sentence in tables('tasks.txt'): self.asks.setdefault(language, {}).setdefault(task, []).append(sentence)

    def passage(self, topic, language):
        """A few terms in the order of chance, or a sentence of somebody else's: about nothing in particular."""
        if topic is None or self.chance.random() < .3: return self.chance.choice(self.passages[language])
        terms = self.chance.sample(self.terms[topic, language], min(len(self.terms[topic, language]), self.chance.randint(2, 7)))
        return self.chance.choice([', ', ' ', '. ', ' and ' if language == 'en' else ' e ']).join(terms) + '.'

    def sentence(self, topic, language):
        task = self.chance.choices(list(self.asks[language]), [8 if task == 'chat' else 1 for task in self.asks[language]])[0]
        text = self.chance.choice(self.asks[language][task])
        bare = '{t}' not in text
        while '{t}' in text: text = text.replace('{t}', self.chance.choice(self.terms[topic, language]), 1)
        about = topic
        if '{x}' in text:
            passage = self.passage(topic, language)
            if bare and passage in self.passages[language]: about = None
            text = text.replace('{x}', passage)
        elif bare: about = None
        if self.chance.random() < .3: text = text.lower().rstrip('?.')
        return {'text': text, 'task': task, 'difficulty': TASK_DIFFICULTY[task], **({'topic': about} if about else {})}

    def rows(self):
        for (topic, language), terms in self.terms.items():
            for term in terms: yield {'text': term, 'topic': topic, 'weight': 1.5}
            for _ in range(OWN_ROWS):
                row = self.sentence(topic, language)
                if row.get('topic'): yield row
                else: yield {**row, 'weight': .5}
            for _ in range(OWN_ROWS // 4): yield {'text': self.passage(topic, language), 'topic': topic} if self.chance.random() < .5 else \
                {'text': ' '.join(self.chance.sample(terms, min(len(terms), 5))), 'topic': topic}


def clinc_rows(folder, chance):
    topics = {'banking': 'personal_finance', 'credit_cards': 'personal_finance'}
    asked = chance.sample(lines(folder / 'train.jsonl'), 5000)
    for row in asked:
        out = {'text': row['text'], 'topic': topics.get(row['domain'], 'daily_life'), 'difficulty': .1, 'out_of_scope': False, 'weight': .7}
        if row['intent'] == 'translate': out = {**out, 'task': 'translate'}
        elif row['intent'] in ('reminder_update', 'alarm', 'timer', 'book_flight', 'book_hotel', 'transfer', 'restaurant_reservation', 'schedule_meeting',
                               'make_call', 'text', 'smart_home', 'calendar_update', 'todo_list_update', 'shopping_list_update', 'order', 'pay_bill'):
            out = {**out, 'task': 'tool_use'}
        elif row['domain'] in ('small_talk', 'meta'): out = {**out, 'task': 'chat'}
        yield out
    for row in lines(folder / 'oos_train.jsonl'): yield {'text': row['text'], 'out_of_scope': True, 'field': 'other', 'weight': OUTSIDE_WEIGHT, 'difficulty': .3}


def held(text):
    """One text in five, by itself."""
    return zlib.crc32(text.encode()) % 5 == 0


def stem(text): return ' '.join(text.split('\nA. ')[0].split()).lower()


def mmlu_rows(data, unseen, held_back):
    """The visible rows' subjects, and how hard two models found them; or those that are held back."""
    for row in lines(data / 'routellm/mmlu_visible.jsonl'):
        question = stem(row['prompt'])
        if question in unseen or held(question) != held_back: continue
        if held_back:
            yield {'text': row['prompt'] if held(question[::-1]) else row['prompt'].split('\nA. ')[0], 'topic': TOPIC_OF_SUBJECT[row['domain']], 'use': 'calibrate'}
            continue
        difficulty = .85 if not row['strong'] else .3 if row['weak'] else .65
        for text in (row['prompt'], row['prompt'].split('\nA. ')[0]):
            yield {'text': text, 'topic': TOPIC_OF_SUBJECT[row['domain']], 'difficulty': difficulty, 'weight': 1.5}


def labelled_rows(data, chance):
    yield from clinc_rows(data / 'clinc150', chance)
    for row in chance.sample(lines(data / 'banking77/train.jsonl'), 1500):
        yield {'text': row['text'], 'topic': 'personal_finance', 'task': 'chat', 'difficulty': .15, 'out_of_scope': False, 'weight': .6}
    for row in chance.sample(lines(data / 'snips/train.jsonl'), 1200): yield {'text': row['text'], 'topic': 'daily_life', 'task': 'tool_use', 'difficulty': .1, 'out_of_scope': False, 'weight': .6}
    for name in ('it', 'en'):
        for row in lines(data / f'xsid/{name}.valid.jsonl'): yield {'text': row['text'], 'topic': 'daily_life', 'task': 'tool_use', 'difficulty': .1, 'out_of_scope': False}
    for row in chance.sample([row for row in lines(data / 'gsm8k/train.jsonl') if not held(row['question'])], 2500):
        steps = row['answer'].count('<<')
        yield {'text': row['question'], 'topic': 'word_problems', 'task': 'reason', 'difficulty': min(.9, .3 + .08 * steps), 'weight': .7}
    for name in ('simple_python', 'multiple', 'parallel', 'live_simple'):
        for row in lines(data / f'bfcl_v4/{name}.jsonl'):
            text = row['question'][0][-1]['content']
            yield {'text': text, 'task': 'tool_use', 'difficulty': .3, 'weight': .7}
    for row in lines(data / 'exams_it/train.jsonl'):
        if not held(row['question']): yield from exam_rows(row)
    for row in chance.sample(lines(data / 'squad_it/queries_visible.jsonl'), 600): yield {'text': row['text'], 'task': 'chat', 'difficulty': .3}


def held_back_rows(data, chance):
    """Rows of the labelled sets that `labelled_rows` does not give."""
    clinc = {row['text']: row for row in lines(data / 'clinc150/val.jsonl')}.values()
    for row in chance.sample(list(clinc), HELD_BACK):
        topic = 'personal_finance' if row['domain'] in ('banking', 'credit_cards') else 'daily_life'
        yield {'text': row['text'], 'topic': topic, 'out_of_scope': False}
    # One request in six is out of scope here: nobody knows how many really are.
    for row in lines(data / 'clinc150/oos_val.jsonl'): yield {'text': row['text'], 'out_of_scope': True, 'weight': .5}
    for row in chance.sample(lines(data / 'snips/validate.jsonl'), HELD_BACK // 5): yield {'text': row['text'], 'topic': 'daily_life', 'task': 'tool_use'}
    sums = [row['question'] for row in lines(data / 'gsm8k/train.jsonl') if held(row['question'])]
    for text in chance.sample(sums, HELD_BACK // 5): yield {'text': text, 'topic': 'word_problems', 'task': 'reason'}
    for row in lines(data / 'exams_it/train.jsonl'):
        if held(row['question']): yield from list(exam_rows(row))[held(row['question'][::-1]):][:1]
    for field, task, language, text in tables('prompts.txt'): yield {'text': text, 'field': field, 'task': task, 'weight': 1.5}


def exam_text(row): return row['question'] + '\n' + '\n'.join(f'{key}. {value}' for key, value in row['choices'].items())


def exam_rows(row, use=None):
    for topic in SUBJECTS.get(row['subject'], [])[:1]:
        for text in (exam_text(row), row['question']):
            yield {'text': text, 'topic': topic, 'difficulty': .5, 'weight': 1.5, **({'use': use} if use else {})}


def halves(rows, key):
    """Every row in one half or the other, by its text."""
    first = [row for row in rows if sum(row[key].encode()) % 2 == 0]
    return first, [row for row in rows if sum(row[key].encode()) % 2 == 1]


def passages_of(data, chance):
    """Sentences about nothing in particular, in the public domain (CC0)."""
    out = {}
    for language in ('en', 'it'):
        text = [line.strip() for line in open(data / f'pretrain_text/{language}.common-voice.txt', encoding='utf-8') if 40 < len(line) < 200]
        out[language] = [' '.join(chance.sample(text, chance.randint(1, 6))) for _ in range(3000)]
    return out


def build(options):
    chance = random.Random(7)
    own = Own(chance, passages_of(options.data, chance))
    cases = json.load(open(options.data / 'semantic_router_cases/domain_classify_cases.json', encoding='utf-8'))
    case_cal, case_test = halves(cases, 'question')
    exam_cal, exam_test = halves(lines(options.data / 'exams_it/dev.jsonl'), 'question')
    with open(options.out, 'w', encoding='utf-8') as out:
        def put(row): out.write(json.dumps(row, ensure_ascii=False) + '\n')
        for topic, field in own.fields.items(): put({'topic': topic, 'field': field})
        for row in own.rows(): put(row)
        for row in labelled_rows(options.data, chance): put(row)
        if not options.without_mmlu:
            for back in (False, True):
                for row in mmlu_rows(options.data, {stem(row['question']) for row in case_test}, back): put(row)
        if options.wordnet:
            for row in wordnet.rows(options.wordnet): put(row)
        for row in case_cal: put({'text': row['question'], 'field': FIELDS_OF_CASES[row['category']], 'use': 'calibrate'})
        for row in exam_cal:
            for one in list(exam_rows(row, 'calibrate'))[:1]: put({**one, 'weight': 1})
        for row in held_back_rows(options.data, chance): put({**row, 'use': 'calibrate'})
    if not options.tests: return
    options.tests.mkdir(parents=True, exist_ok=True)
    def write(name, rows): (options.tests / name).write_text(''.join(json.dumps(row, ensure_ascii=False) + '\n' for row in rows))
    write('cases_en.jsonl', [{'text': row['question'], 'field': FIELDS_OF_CASES[row['category']]} for row in case_test])
    write('exams_it.jsonl', [{'text': exam_text(row), 'field': own.fields[SUBJECTS[row['subject']][0]]} for row in exam_test if row['subject'] in SUBJECTS])
    fields = {'banking': 'finance', 'credit_cards': 'finance'}
    write('requests_en.jsonl', [{'text': row['text'], 'field': fields.get(row['domain'], 'other')} for row in lines(options.data / 'clinc150/test.jsonl')])
    write('banking_en.jsonl', [{'text': row['text'], 'field': 'finance'} for row in lines(options.data / 'banking77/test.jsonl')])
    write('sums_en.jsonl', [{'text': row['question'], 'field': 'science', 'task': 'reason'} for row in lines(options.data / 'gsm8k/test.jsonl')])
    if options.without_mmlu:
        write('mmlu_en.jsonl', [{'text': row['prompt'], 'field': own.fields[TOPIC_OF_SUBJECT[row['domain']]]} for row in lines(options.data / 'routellm/mmlu_visible.jsonl')])
    write('scope_en.jsonl', [{'text': row['text'], 'out_of_scope': name == 'oos_test'} for name in ('oos_test', 'test') for row in lines(options.data / f'clinc150/{name}.jsonl')])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', type=Path, required=True)
    parser.add_argument('--wordnet', type=Path, help='folder of WordNet 3.0 (Debian: wordnet-base)')
    parser.add_argument('--without-mmlu', action='store_true', help="leave routellm's questions out, so that they may examine what uses the model")
    parser.add_argument('--out', type=Path, required=True)
    parser.add_argument('--tests', type=Path, help='write rows that no training saw into this folder')
    build(parser.parse_args())


if __name__ == '__main__': main()
