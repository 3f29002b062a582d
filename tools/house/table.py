"""Reads the module table from src/CMakeLists.txt, the only statement of the dependency order."""
import re
from dataclasses import dataclass, field

BANDS = ['ground', 'machines', 'judgement', 'action', 'surface']
_KEYWORDS = {'USES', 'LINKS', 'EXPORTS', 'TEST_USES', 'TEST_LINKS'}


@dataclass
class Module:
    band: str
    name: str
    purpose: str
    line: int
    lists: dict = field(default_factory=dict)

    @property
    def uses(self):
        return self.lists.get('USES', [])

    @property
    def test_uses(self):
        return self.lists.get('TEST_USES', [])


def read_modules(path):
    """The declared modules, by name, in their order."""
    text = re.sub(r'("[^"\n]*")|#[^\n]*', lambda m: m.group(1) or '', path.read_text())
    modules = {}
    for match in re.finditer(r'^\s*molly_module\(((?:"[^"]*"|[^")])*)\)', text, re.M):
        words = re.findall(r'"([^"]*)"|(\S+)', match.group(1))
        words = [quoted or plain for quoted, plain in words]
        if len(words) < 3:
            continue
        module = Module(*words[:3], text.count('\n', 0, match.start(1)) + 1)
        target = None
        for word in words[3:]:
            if word in _KEYWORDS:
                target = module.lists.setdefault(word, [])
            elif target is not None:
                target.append(word)
        modules[module.name] = module
    return modules


def reachable(modules, name):
    """The module and everything that it uses, directly or not."""
    found = [name]
    for current in found:
        found += [used for used in modules[current].uses if used in modules and used not in found]
    return found


def architecture_rows(modules):
    """The module table as ARCHITECTURE.md must hold it."""
    return [f'| {m.band} | `{m.name}` | {m.purpose} | {" ".join(m.uses) or "–"} |' for m in modules.values()]
