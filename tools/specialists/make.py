#!/usr/bin/env python3
"""Writes the training and held-out rows of the specialists, and the mixed set that a base model is tuned on.

Usage: make.py DATA OUT [--seed N] [--only TASK...]

DATA is a folder with the published sets that docs/specialists.md names; nothing of it is in the repository. The same DATA
and seed give the same bytes. OUT/<task>/ gets train.jsonl, held_out.jsonl and task.json (instructions, JSON Schema of the
answer, metric, licences); OUT/instruct.jsonl the mixed set; OUT/facts.json counts and hashes.
"""
import argparse
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from dates import dates  # noqa: E402
from instruct import instruct_rows  # noqa: E402
from persons import persons  # noqa: E402
from public_sets import banking, domains, exams, sentiment, slots  # noqa: E402
from quantities import quantities  # noqa: E402
from rows import HELD_OUT_LEAST, key_of  # noqa: E402
from tickets import tickets  # noqa: E402
from triage import triage  # noqa: E402

MAKERS = {'banking': banking, 'domains': domains, 'slots': slots, 'sentiment': sentiment, 'dates': dates, 'quantities': quantities,
          'persons': persons, 'exams': exams, 'triage': triage, 'tickets': tickets}


def check(task):
    """Nothing is on both sides, and there is enough to measure."""
    both = {key_of(row['text']) for row in task.train + task.spare} & {key_of(row['text']) for row in task.held_out}
    if both:
        raise SystemExit(f'{task.name}: {len(both)} questions are on both sides')
    if len(task.held_out) < HELD_OUT_LEAST:
        raise SystemExit(f'{task.name}: {len(task.held_out)} held-out rows are too few')


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('folder', type=Path)
    parser.add_argument('out', type=Path)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only', nargs='*', default=[])
    options = parser.parse_args()
    tasks, facts = [], {}
    for name, make in MAKERS.items():
        if options.only and name not in options.only:
            continue
        task = make(options.folder, options.seed)
        check(task)
        task.write(options.out / name)
        tasks.append(task)
        files = {file: hashlib.sha256((options.out / name / file).read_bytes()).hexdigest()
                 for file in ('train.jsonl', 'held_out.jsonl', 'task.json')}
        facts[name] = {'train': len(task.train), 'held_out': len(task.held_out), 'licence': task.licence,
                       'slices': dict(Counter(row['slice'] for row in task.held_out)), 'sha256': files}
        print(f'{name:12} {len(task.train):4} to learn, {len(task.held_out):4} held out, {task.licence}')
    if not options.only:
        rows = instruct_rows(tasks, options.seed)
        path = options.out / 'instruct.jsonl'
        path.write_text(''.join(json.dumps(row, ensure_ascii=False) + '\n' for row in rows))
        facts['instruct'] = {'rows': len(rows), 'kinds': dict(sorted(Counter(row['kind'] for row in rows).items())),
                             'languages': dict(Counter(row['language'] for row in rows)),
                             'licences': dict(Counter(row['license'] for row in rows)),
                             'sha256': hashlib.sha256(path.read_bytes()).hexdigest()}
        print(f'{"instruct":12} {len(rows)} rows')
    (options.out / 'facts.json').write_text(json.dumps(facts, indent=1) + '\n')


if __name__ == '__main__':
    main()
