"""Rules for every tracked text file: the root's allow-list, words that do not belong, lengths."""
import os
import re
import subprocess
from pathlib import Path

# The house has a place for everything; a new name here is an architecture decision.
ROOT_NAMES = {
    'ARCHITECTURE.md', 'CONTRIBUTING.md', 'README.md', 'LICENSE', 'NOTICE', 'Makefile',
    'CMakeLists.txt', 'CMakePresets.json', '.clang-format', '.clang-tidy', '.gitignore', '.npmrc',
    'package.json', 'package-lock.json', '.ci', 'cmake', 'src', 'console', 'tests', 'benchmarks', 'config', 'docs',
    'tools', 'models',
}
_UNTRACKED = {'.git', 'build', 'node_modules', '.cache', '__pycache__'}
# Where a thing was made must not show in it: folders of one machine, addresses of registries.
_STRAY = re.compile(
    r'(^|[^\w.])/(wor[k]|far[m])/|(^|[^\w.])/(roo[t]|hom[e]/\w+)/|[.]librar[y]\b|deb[.]debia[n]|npmj[s][.](org|com)|'
    r'far[m]-(studi[o]|benc[h])')
_UNDONE = re.compile(r'\b(TOD[O]|FIXM[E]|XX[X])\b')
_CODE = {'.h', '.cc', '.py', '.js', '.mjs', '.ts', '.sh', '.cmake'}
LINES_MAX = 500


def tracked_files(root):
    """What belongs to the repository: tracked, or new and not ignored."""
    if (root / '.git').exists():
        listing = subprocess.run(['git', '-C', str(root), 'ls-files', '-coz', '--exclude-standard'],
                                 capture_output=True, check=True).stdout.decode()
        return [root / name for name in listing.split('\0') if name and (root / name).is_file()]
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _UNTRACKED]
        found += [Path(folder) / name for name in names]
    return found


def text_faults(root):
    """Yields (path, line, fault)."""
    strangers = set()
    for path in tracked_files(root):
        top = path.relative_to(root).parts[0]
        if top not in ROOT_NAMES and top not in strangers:
            strangers.add(top)
            yield root / top, 1, 'nothing of this name may stand at the root'
        with path.open('rb') as file:
            content = file.read(8192)
            if b'\0' in content:
                continue
            text = (content + file.read()).decode('utf-8', 'replace')
        for number, line in enumerate(text.splitlines(), 1):
            if _STRAY.search(line):
                yield path, number, 'names a folder of one machine or the address of a registry'
            if path.suffix in _CODE and _UNDONE.search(line):
                yield path, number, 'open debt is a file with evidence and an exit test, not a mark in the code'
        if path.suffix in _CODE and text.count('\n') > LINES_MAX:
            yield path, LINES_MAX, f'more than {LINES_MAX} lines'


_MAP_ROW = re.compile(r'\|\s*\w+\s*\|\s*`\w+`\s*\|')


def write_map(root, rows):
    """Replaces the module table's rows in ARCHITECTURE.md."""
    path = root / 'ARCHITECTURE.md'
    lines = path.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if _MAP_ROW.match(line))
    kept = [line for line in lines if not _MAP_ROW.match(line)]
    path.write_text('\n'.join(kept[:first] + rows + kept[first:]) + '\n')


def map_faults(root, rows):
    """ARCHITECTURE.md must hold the module table exactly as the build states it."""
    path = root / 'ARCHITECTURE.md'
    if not path.exists():
        yield path, 1, 'is missing'
        return
    lines = path.read_text().splitlines()
    held = [(number, re.sub(r'\s+', ' ', line.strip())) for number, line in enumerate(lines, 1)
            if _MAP_ROW.match(line)]
    for (number, line), row in zip(held, rows):
        if line != row:
            yield path, number, f'the module table differs from src/CMakeLists.txt, which says: {row}'
    if len(held) != len(rows):
        yield path, held[-1][0] if held else 1, (
            f'the module table has {len(held)} rows and src/CMakeLists.txt {len(rows)} modules; '
            'tools/check_house.py --map writes it')
