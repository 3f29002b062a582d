#!/usr/bin/env python3
"""The specialists' rows: right values, nothing on both sides, the same bytes again."""
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / 'specialists'))
import persons  # noqa: E402
from dates import dates  # noqa: E402
from instruct import instruct_rows  # noqa: E402
from quantities import quantities  # noqa: E402
from rows import Task, answer_text, balanced, generator, key_of, labels  # noqa: E402
from tickets import tickets  # noqa: E402
from triage import contract, triage  # noqa: E402
from words import english, grouped, italian  # noqa: E402


def small_sets(folder):
    """Published sets of the right shape, with a row or two each."""
    recognizers = folder / 'recognizers_text'
    recognizers.mkdir()
    (recognizers / 'it.DateTime.DateTimeModel.jsonl').write_text('\n'.join(json.dumps({
        'input': text, 'ref': '2016-11-07T00:00:00',
        'results': [{'type': 'datetimeV2.' + kind, 'resolution': {'values': [{'timex': timex}]}}]}) for text, kind, timex in [
            ('Tornerò il 22/04', 'date', 'XXXX-04-22'), ('Tornerò oggi', 'date', '2016-11-07'), ('Via per 3 ore', 'duration', 'PT3H')]))
    for name in ('Number.NumberModel', 'Number.OrdinalModel', 'Number.PercentModel', 'NumberWithUnit.AgeModel',
                 'NumberWithUnit.TemperatureModel', 'NumberWithUnit.CurrencyModel', 'NumberWithUnit.DimensionModel'):
        (recognizers / f'it.{name}.jsonl').write_text('\n'.join(json.dumps({
            'input': f'{name} {value}', 'ref': None, 'results': [{'resolution': {'value': value, 'unit': 'Euro'}}]})
            for value in ('200,29', '1E-10')))
    seed = folder / 'pii_it_seed'
    seed.mkdir()
    (seed / 'faker_it_IT.json').write_text(json.dumps({
        'first_names_male': ['Mario', 'Luca', 'Paolo'], 'first_names_female': ['Anna', 'Sara', 'Lucia'],
        'last_names': ['Rossi', 'Bianchi', 'Verdi', 'Neri', 'Russo']}))
    (seed / 'comuni.jsonl').write_text(json.dumps({'nome': 'Roma', 'catastale': 'H501'}) + '\n')
    return folder


class Words(unittest.TestCase):
    def test_numbers_in_words(self):
        for number, words in ((0, 'zero'), (21, 'ventuno'), (33, 'trentatré'), (100, 'cento'), (108, 'centootto'), (1000, 'mille'),
                              (3243, 'tremiladuecentoquarantatré'), (2_000_001, 'due milioni uno')):
            self.assertEqual(italian(number), words)
        self.assertEqual(english(1449), 'one thousand four hundred and forty-nine')
        self.assertEqual(grouped(1234567), '1.234.567')

    def test_prepositions(self):
        self.assertEqual(contract('sintesi su il mare, di le api, su l\'arte'), "sintesi sul mare, delle api, sull'arte")

    def test_tax_code_and_iban(self):
        self.assertEqual(persons.tax_code('Mario', 'Rossi', False, (10, 12, 1985), 'A562'), 'RSSMRA85T10A562S')
        for i in range(20):
            code = persons.iban(generator(1, i))
            digits = ''.join(str(int(c, 36)) for c in code[4:] + code[:4])
            self.assertEqual(int(digits) % 97, 1)


class Sides(unittest.TestCase):
    def test_a_question_stands_on_one_side_once(self):
        task = Task('t', '', '', labels('ab'), 'MIT', [])
        held = [task.row(f'x {i}', 'a') for i in range(300)]
        task.take([task.row('X  1', 'b'), task.row('y', 'b'), task.row('Y', 'a'), task.row('z', 'a')], held, generator(1))
        self.assertEqual([row['text'] for row in task.train], ['y', 'z'])

    def test_labels_in_turn(self):
        rows = [{'answer': 'a'}] * 50 + [{'answer': 'b'}] * 5
        self.assertEqual(sum(row['answer'] == 'b' for row in balanced(rows, 10, generator(1))), 5)


class Generated(unittest.TestCase):
    made = {}

    def make(self, seed=1):
        if seed not in self.made:
            self.made[seed] = self.make_again(seed)
        return self.made[seed]

    @staticmethod
    def make_again(seed):
        with tempfile.TemporaryDirectory() as name:
            folder = small_sets(Path(name))
            return [make(folder, seed) for make in (dates, quantities, persons.persons, triage, tickets)]

    def test_enough_and_apart(self):
        for task in self.make():
            held = {key_of(row['text']) for row in task.held_out}
            self.assertFalse(held & {key_of(row['text']) for row in task.train + task.spare}, task.name)
            # This small set of names gives persons fewer different sentences.
            self.assertGreaterEqual(len(task.held_out), 150, task.name)
            self.assertEqual(len(task.train), 500, task.name)

    def test_the_same_seed_gives_the_same_rows(self):
        made = self.make(), self.make_again(1), self.make_again(2)
        first, again, other = ([task.train + task.held_out for task in tasks] for tasks in made)
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_published_values(self):
        found = {task.name: [row for row in task.train + task.held_out if row['slice'] == 'recognizers'] for task in self.make()}
        self.assertEqual(sorted(row['answer']['timex'] for row in found['dates']), ['PT3H', 'XXXX-04-22'])
        self.assertEqual({row['answer']['value'] for row in found['quantities']}, {'200.29'})

    def test_personal_data_is_in_the_text(self):
        for task in self.make():
            if task.name == 'persons':
                for row in task.train:
                    self.assertTrue(all(one['text'] in row['text'] for one in row['answer']), row)

    def test_the_mixed_set_holds_no_graded_row(self):
        tasks = self.make()
        rows = instruct_rows(tasks, 1, each=300)
        graded = {key_of(row['text']) for task in tasks for row in task.held_out + task.train}
        # Small talk may ask what triage grades as a request: another task, another answer.
        names = {task.name for task in tasks}
        asked = [key_of(row['messages'][-2]['content']) for row in rows if row['kind'] in names]
        self.assertFalse(graded & set(asked))
        self.assertGreater(len(rows), 10_000)
        self.assertTrue(all(row['messages'][-1]['role'] == 'assistant' and row['messages'][-1]['content'] for row in rows))

    def test_answers_are_compact_json(self):
        self.assertEqual(answer_text({'a': 'è', 'b': [1]}), '{"a":"è","b":[1]}')


if __name__ == '__main__':
    unittest.main()
