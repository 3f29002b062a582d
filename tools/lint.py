#!/usr/bin/env python3
"""Runs clang 19 over the sources, with its warnings as errors.

Usage: lint.py quick|full [--seconds N] [--jobs N] [FILE...]

quick   parses every file; files that changed get the lint that finds most for its time as well, the last changed first,
        until --seconds (300) are over. Changed is what differs from where the branch left main (MOLLY_BASE overrides);
        on main itself, from the commit of a day ago. What clang does not compile fails; what lint finds is advice here.
full    all checks of .clang-tidy on every file, and every finding fails; several times as long

Reads build/clang/compile_commands.json (cmake --preset clang). FILEs, where given, count as changed; no others are looked at.
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

QUICK_CHECKS = ','.join([
    'clang-diagnostic-*', 'bugprone-dangling-handle', 'bugprone-unused-raii', 'bugprone-unused-return-value',
    'bugprone-use-after-move', 'bugprone-infinite-loop', 'bugprone-string-constructor',
    'cppcoreguidelines-init-variables', 'cppcoreguidelines-pro-type-cstyle-cast', 'cppcoreguidelines-slicing',
    'cppcoreguidelines-special-member-functions', 'cppcoreguidelines-virtual-class-destructor',
    'google-build-using-namespace', 'google-explicit-constructor', 'misc-definitions-in-headers', 'misc-unused-parameters',
    'modernize-use-override', 'performance-move-const-arg', 'performance-for-range-copy',
    'readability-braces-around-statements', 'readability-function-size',
    'readability-identifier-naming'])

FOREIGN_HEADERS = '''
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <ranges>
#include <regex>
#include <variant>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
'''


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


def lint(name, directory, checks):
    command = ['clang-tidy-19', '--quiet', '-p', str(ROOT / 'build/clang'), str(ROOT / name)]
    if checks:
        command.insert(1, f'--checks=-*,{checks}')
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, errors='replace')
    return done.returncode == 0, done.stdout


def options_of(words):
    """What a precompiled header must share with a file: not the folders that it searches, nor what one module defines."""
    kept, skip = [], False
    for word in words[1:-1]:
        if skip or word.startswith(('-I', '-isystem')):
            skip = not skip and word in ('-I', '-isystem')
        elif not word.startswith('-D') or word.startswith(('-DBOOST_ASIO', '-DGTEST')):
            kept.append(word)
    return kept


def precompile(sources, known):
    """The compiler words that use a precompiled header, for each text of options: foreign headers are most of the work."""
    headers = {}
    for name in sources:
        _, words = known[name]
        options = options_of(words)
        key = ' '.join(options)
        if key not in headers:
            source = ROOT / f'build/clang/foreign_{len(headers)}.h'
            source.write_text(FOREIGN_HEADERS)
            header = source.with_suffix('.pch')
            done = subprocess.run([words[0], *options, '-x', 'c++-header', str(source), '-o', str(header)])
            headers[key] = ['-include-pch', str(header)] if done.returncode == 0 else []
    return headers


def parse(directory, words, headers):
    command = [*words[:-1], *headers[' '.join(options_of(words))], '-fsyntax-only', words[-1]]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, errors='replace')
    return done.returncode == 0, done.stderr


def run(known, changed, options):
    """Changed files first, in their order, then all others."""
    rest = [] if options.files else sorted(set(known) - set(changed))
    started, failed, advised, linted = time.monotonic(), 0, 0, 0
    headers = precompile(changed + rest, known) if options.mode == 'quick' else {}

    def visit(name):
        directory, words = known[name]
        if options.mode == 'full':
            return name, True, lint(name, directory, '')
        if name in changed and time.monotonic() - started < options.seconds:
            return name, True, lint(name, directory, QUICK_CHECKS)
        return name, False, parse(directory, words, headers)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, was_linted, (good, output) in pool.map(visit, changed + rest):
            linted += was_linted
            if not good:
                print(f'{name}\n{output}', flush=True)
                advice = options.mode == 'quick' and was_linted and 'clang-diagnostic' not in output
                advised, failed = advised + advice, failed + (not advice)
    total = len(changed) + len(rest)
    print(f'{total} files in {time.monotonic() - started:.0f} s: {linted} linted, {total - linted} parsed, '
          f'{failed} refused, {advised} with advice')
    if options.mode == 'quick' and linted < len(changed):
        print(f'{len(changed) - linted} changed files were only parsed, for want of time: make check-deep lints them')
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('mode', choices=['quick', 'full'])
    parser.add_argument('files', nargs='*')
    parser.add_argument('--seconds', type=float, default=300)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    options = parser.parse_intermixed_args()
    known = commands()
    changed = options.files or (changed_files() if options.mode == 'quick' else [])
    return run(known, [name for name in changed if name in known], options)


if __name__ == '__main__':
    sys.exit(main())
