#!/usr/bin/env python3
"""Compiles one case twice: as it stands it must compile, with MISUSE it must fail with the message that it expects.

Usage: run.py CASE BUILD COMPILER    BUILD is the build folder, whose include/ holds one root per module.
The case names the module that it plays (// MODULE:), which decides what it can include, and the message (// EXPECT:).
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))
from house import table  # noqa: E402


def compile_case(case, includes, compiler, misuse):
    command = [compiler, '-std=c++23', '-fsyntax-only', '-Wall', '-Wextra', '-Werror', '-Wno-unused-function',
               f'-DMISUSE={misuse}', *includes, str(case)]
    return subprocess.run(command, capture_output=True, text=True)


def main(case, build, compiler):
    text = Path(case).read_text()
    module = re.search(r'^// MODULE: (\w+)$', text, re.M).group(1)
    expected = re.search(r'^// EXPECT: (.+)$', text, re.M).group(1)
    modules = table.read_modules(ROOT / 'src/CMakeLists.txt')
    includes = [f'-I{build}/include/{name}' for name in table.reachable(modules, module)]
    honest = compile_case(case, includes, compiler, 0)
    if honest.returncode != 0:
        sys.exit(f'without the misuse it must compile, and does not:\n{honest.stderr}')
    misuse = compile_case(case, includes, compiler, 1)
    if misuse.returncode == 0:
        sys.exit('the misuse compiles')
    if not re.search(expected, misuse.stderr):
        sys.exit(f'the misuse fails, but not with "{expected}":\n{misuse.stderr}')


if __name__ == '__main__':
    main(*sys.argv[1:])
