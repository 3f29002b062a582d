"""Rows of training and held-out files: their shape, their splits, and how they are written."""
import hashlib
import json
import random

TRAIN_ROWS = 500
HELD_OUT_ROWS = 300
HELD_OUT_LEAST = 200


def generator(seed, *names):
    """Random numbers that depend on the seed and the names alone, not on the order of the tasks."""
    key = hashlib.sha256(':'.join([str(seed), *map(str, names)]).encode()).digest()
    return random.Random(int.from_bytes(key[:8], 'big'))


def answer_text(answer):
    """An answer as the model must write it: compact JSON."""
    return json.dumps(answer, ensure_ascii=False, separators=(',', ':'))


def key_of(text):
    """What makes two questions the same."""
    return ' '.join(text.lower().split())


class Task:
    """One specialist: what it is asked, what it must answer, and where its examples come from."""

    def __init__(self, name, title, instructions, schema, licence, sources, metric='exact', languages=('en',), grown=False):
        self.name, self.title, self.instructions, self.schema = name, title, instructions, schema
        self.licence, self.sources, self.metric, self.languages = licence, sources, metric, languages
        self.grown = grown          # made by this generator, so that more of it costs nothing
        self.train, self.held_out = [], []
        self.spare = []             # more of the training side, for the mixed set

    def row(self, text, answer, part='all', language=None):
        return {'text': ' '.join(text.split()), 'answer': answer, 'slice': part, 'language': language or self.languages[0]}

    def take(self, train, held_out, random_of):
        """Keeps distinct questions, none on both sides; the training order is fixed, so that prefixes nest."""
        seen = set()
        kept = []
        for row in held_out:
            if key_of(row['text']) not in seen:
                seen.add(key_of(row['text']))
                kept.append(row)
        random_of.shuffle(kept)
        self.held_out = kept[:HELD_OUT_ROWS]
        # What was cut off above may be learned.
        seen = {key_of(row['text']) for row in self.held_out}
        rest = []
        for row in train:
            if key_of(row['text']) not in seen:
                seen.add(key_of(row['text']))
                rest.append(row)
        self.train, self.spare = rest[:TRAIN_ROWS], rest[TRAIN_ROWS:]
        return self

    def messages(self, row):
        return [{'role': 'system', 'content': self.instructions}, {'role': 'user', 'content': row['text']},
                {'role': 'assistant', 'content': answer_text(row['answer'])}]

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (('train', self.train), ('held_out', self.held_out)):
            with (folder / f'{name}.jsonl').open('w') as file:
                for row in rows:
                    file.write(json.dumps({'messages': self.messages(row), 'class': 'public', 'license': self.licence,
                                           'slice': row['slice'], 'language': row['language']}, ensure_ascii=False) + '\n')
        card = {'name': self.name, 'title': self.title, 'instructions': self.instructions, 'schema': self.schema,
                'metric': self.metric, 'licence': self.licence, 'sources': self.sources, 'languages': list(self.languages),
                'train': len(self.train), 'held_out': len(self.held_out)}
        (folder / 'task.json').write_text(json.dumps(card, ensure_ascii=False, indent=1) + '\n')


def one_of(question, names):
    """A question whose answer is one label, all of which it names."""
    return f'{question} One of: {", ".join(names)}.'


def labels(names):
    """A schema of one label out of a few."""
    return {'type': 'string', 'enum': list(names)}


def balanced(rows, count, random_of, label=lambda row: str(row['answer'])):
    """Up to `count` rows with labels in turn, in a random order within each."""
    groups = {}
    for row in rows:
        groups.setdefault(label(row), []).append(row)
    for group in groups.values():
        random_of.shuffle(group)
    out = []
    while len(out) < count and any(groups.values()):
        for name in sorted(groups):
            if groups[name] and len(out) < count:
                out.append(groups[name].pop())
    return out


def read_jsonl(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]
