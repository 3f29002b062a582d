#!/usr/bin/env python3
"""Naive Bayes over words and pairs of words on the same rows: what a specialist for labels must beat to be worth its weights.

Usage: bayes.py ROWS [TASK...]     prints the exact share on the held-out rows after 50, 100, 200 and all rows of train.jsonl
"""
import json
import math
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

SMOOTHING = 0.3


def read(path):
    """(features, answer) of each row; the answer as its whole text."""
    for line in path.read_text().splitlines():
        turns = json.loads(line)['messages']
        words = re.findall(r'\w+', turns[-2]['content'].lower())
        yield words + [f'{a} {b}' for a, b in zip(words, words[1:])], turns[-1]['content']


def share(known, graded):
    counts, labels = defaultdict(Counter), Counter()
    for features, answer in known:
        labels[answer] += 1
        counts[answer].update(features)
    size = len({word for one in counts.values() for word in one})

    def score(features, answer):
        total = sum(counts[answer].values()) + SMOOTHING * size
        return math.log(labels[answer]) + sum(math.log((counts[answer][word] + SMOOTHING) / total) for word in features)
    return sum(max(labels, key=lambda one: score(features, one)) == answer for features, answer in graded) / len(graded)


def main():
    rows = Path(sys.argv[1])
    for task in sys.argv[2:] or ['banking', 'domains', 'exams', 'sentiment', 'triage']:
        known, graded = (list(read(rows / task / f'{side}.jsonl')) for side in ('train', 'held_out'))
        sizes = sorted({min(size, len(known)) for size in (50, 100, 200, len(known))})
        print(f'{task:12} ' + '  '.join(f'{size}: {100 * share(known[:size], graded):.1f}' for size in sizes))


if __name__ == '__main__':
    main()
