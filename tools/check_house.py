#!/usr/bin/env python3
"""Checks the shape of the house: who includes whom, who may touch what, what stands where, and a few hazards.

Usage: check_house.py [ROOT [BUILD]]     prints one line per fault as `path:line: fault`, exits 1 if there is any
       check_house.py --map [ROOT]       writes the module table of src/CMakeLists.txt into ARCHITECTURE.md

Without BUILD, a build folder, only the text is checked; with it, every module's archive too.
"""
import sys
from pathlib import Path

from house import links, source, table, text


def find_faults(root, build=None):
    """Every fault as one line of text, in the order found."""
    root = Path(root).resolve()
    src = root / 'src'
    modules = table.read_modules(src / 'CMakeLists.txt')
    if not modules:
        return [f'{src}/CMakeLists.txt:1: declares no module: the check saw nothing']
    found = list(source.folder_faults(src, modules))
    found += source.source_faults(src, modules)
    found += text.text_faults(root)
    found += text.map_faults(root, table.architecture_rows(modules))
    lines = [f'{path.relative_to(root)}:{number}: {fault}' for path, number, fault in found]
    if build is not None:
        lines += links.link_faults(modules, Path(build).resolve(), root)
    return lines


def main(arguments):
    if arguments[:1] == ['--map']:
        root = Path(arguments[1] if len(arguments) > 1 else '.')
        text.write_map(root, table.architecture_rows(table.read_modules(root / 'src/CMakeLists.txt')))
        return 0
    faults = find_faults(*(arguments or ['.'])[:2])
    print('\n'.join(faults) or 'the house is in order')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
