"""Precision, recall and F2 of findings against labelled spans: exact spans and any overlap, per kind."""
import collections

NAMES = ('person', 'organisation', 'location', 'address')
# A city inside a postal address is part of it in one set and a place of its own in another: both count as the same.
FAMILY = {'location': 'place', 'address': 'place'}


def family(kind): return FAMILY.get(kind, kind)


class Score:
    def __init__(self): self.gold = self.hit = self.said = self.right = 0

    def add(self, gold, hit, said, right):
        self.gold, self.hit, self.said, self.right = self.gold + gold, self.hit + hit, self.said + said, self.right + right

    @property
    def recall(self): return self.hit / self.gold if self.gold else 0.0

    @property
    def precision(self): return self.right / self.said if self.said else 0.0

    @property
    def f2(self):
        p, r = self.precision, self.recall
        return 5 * p * r / (4 * p + r) if p + r else 0.0


def overlap(a, b): return a[0] < b[1] and b[0] < a[1]


def score(rows, findings):
    """rows: (gold spans, spans that count neither way); findings: spans per row, all as (begin, end, kind) in bytes.
    Returns {(way, kind): Score} with the ways `overlap` and `exact`, and the kinds `all`, `structured`, `names` besides."""
    out = collections.defaultdict(Score)
    for (gold, ignored), said in zip(rows, findings):
        said = [s for s in said if s[2] != 'declared' and not (any(overlap(s, i) for i in ignored) and not any(overlap(s, g) for g in gold))]
        for way in ('overlap', 'exact'):
            same = (lambda a, b: a[:2] == b[:2]) if way == 'exact' else overlap
            match = lambda a, b: family(a[2]) == family(b[2]) and same(a, b)
            for g in gold:
                hit = any(match(g, s) for s in said)
                for kind in (g[2], 'all', 'names' if g[2] in NAMES else 'structured'): out[way, kind].add(1, hit, 0, 0)
            for s in said:
                right = any(match(s, g) for g in gold)
                for kind in (s[2], 'all', 'names' if s[2] in NAMES else 'structured'): out[way, kind].add(0, 0, 1, right)
    return out


def table(scores):
    kinds = sorted({kind for _, kind in scores} - {'all', 'names', 'structured'}) + ['names', 'structured', 'all']
    lines = [f'{"kind":18}{"spans":>7}{"P":>8}{"R":>8}{"F2":>8}   exact{"P":>6}{"R":>8}{"F2":>8}']
    for kind in kinds:
        o, e = scores['overlap', kind], scores['exact', kind]
        lines.append(f'{kind:18}{o.gold:7}{o.precision:8.3f}{o.recall:8.3f}{o.f2:8.3f}   {e.precision:11.3f}{e.recall:8.3f}{e.f2:8.3f}')
    return '\n'.join(lines)
