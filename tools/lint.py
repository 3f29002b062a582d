#!/usr/bin/env python3
"""Runs clang 19 over the sources: `syntax` parses every file with warnings as errors, `tidy` lints.

Usage: lint.py syntax|tidy [--changed] [--seconds N] [--jobs N] [FILE...]

Reads build/clang/compile_commands.json (cmake --preset clang). Without files it takes every source there is.
--changed keeps the files that differ from where the branch left main (MOLLY_BASE overrides), the last changed first;
on main itself, those of the last day's commits. It runs the quick part of the checks. --seconds stops starting new files then, and says how many were left out.
"""
import argparse
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# What finds most for its time; the full pass runs all that .clang-tidy names, and takes twice as long.
QUICK_CHECKS = ','.join([
    'bugprone-dangling-handle', 'bugprone-unused-raii', 'bugprone-unused-return-value', 'bugprone-use-after-move',
    'bugprone-exception-escape', 'bugprone-infinite-loop', 'bugprone-string-constructor',
    'cppcoreguidelines-init-variables', 'cppcoreguidelines-pro-type-*', 'cppcoreguidelines-slicing',
    'cppcoreguidelines-special-member-functions', 'cppcoreguidelines-virtual-class-destructor',
    '-cppcoreguidelines-pro-type-member-init', '-cppcoreguidelines-pro-type-vararg', '-cppcoreguidelines-pro-type-union-access',
    '-cppcoreguidelines-pro-type-static-cast-downcast',
    'google-build-using-namespace', 'google-explicit-constructor', 'misc-definitions-in-headers', 'misc-unused-parameters',
    'modernize-use-override', 'performance-move-const-arg', 'performance-for-range-copy',
    'performance-unnecessary-value-param', 'readability-braces-around-statements', 'readability-function-size',
    'readability-identifier-naming'])


def git(*words):
    done = subprocess.run(['git', '-C', str(ROOT), *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ''


def base_revision():
    """Where the change under test begins."""
    if os.environ.get('MOLLY_BASE'):
        return os.environ['MOLLY_BASE']
    for main in ('origin/main', 'main'):
        base = git('merge-base', main, 'HEAD')
        if base and base != git('rev-parse', 'HEAD'):
            return base
    return git('rev-list', '-1', '--before=1 day ago', 'HEAD') or git('rev-list', '--max-parents=0', 'HEAD')


def changed_files():
    """Files that differ from the base, the last changed first."""
    base = base_revision()
    wanted = set(git('diff', '--name-only', base).splitlines()) | set(git('ls-files', '-o', '--exclude-standard').splitlines())
    order = {}
    for name in git('log', '--name-only', '--format=', f'{base}..HEAD').splitlines():
        order.setdefault(name, len(order))
    return sorted(wanted, key=lambda name: order.get(name, -1))


def commands():
    """Compiler words per source file, without the output."""
    path = ROOT / 'build/clang/compile_commands.json'
    if not path.exists():
        sys.exit('there is no build/clang/compile_commands.json: run cmake --preset clang')
    found = {}
    for entry in json.loads(path.read_text()):
        words = shlex.split(entry['command'])
        if '-o' in words:
            at = words.index('-o')
            del words[at:at + 2]
        name = os.path.relpath(os.path.join(entry['directory'], entry['file']), ROOT)
        found[name] = (entry['directory'], [word for word in words if word != '-c'])
    return found


def check_one(mode, quick, name, directory, words):
    if mode == 'syntax':
        command = [*words[:-1], '-fsyntax-only', words[-1]]
    else:
        command = ['clang-tidy-19', '--quiet', '-p', str(ROOT / 'build/clang'), str(ROOT / name)]
        if quick:
            command.insert(1, f'--checks=-*,{QUICK_CHECKS}')
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, errors='replace')
    return done.returncode == 0, done.stdout + ('' if mode == 'tidy' else done.stderr)


def run(mode, quick, sources, known, jobs, seconds):
    started, failed, skipped = time.monotonic(), [], 0

    def visit(name):
        if seconds and time.monotonic() - started > seconds:
            return name, None, ''
        return (name, *check_one(mode, quick, name, *known[name]))

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for number, (name, good, output) in enumerate(pool.map(visit, sources), 1):
            skipped += good is None
            if good is False:
                failed.append(name)
                print(f'{name}\n{output}', flush=True)
            if sys.stdout.isatty():
                print(f'\r{number}/{len(sources)}', end='\r', flush=True)
    took = time.monotonic() - started
    print(f'{mode}: {len(sources) - skipped} files in {took:.0f} s, {len(failed)} with findings'
          + (f', {skipped} left out for want of time' if skipped else ''))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('mode', choices=['syntax', 'tidy'])
    parser.add_argument('files', nargs='*')
    parser.add_argument('--changed', action='store_true')
    parser.add_argument('--seconds', type=float, default=0)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    options = parser.parse_args()
    known = commands()
    sources = options.files or (changed_files() if options.changed else sorted(known))
    return run(options.mode, options.changed, [name for name in sources if name in known], known, options.jobs, options.seconds)


if __name__ == '__main__':
    sys.exit(main())
