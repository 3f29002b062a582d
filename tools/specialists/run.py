#!/usr/bin/env python3
"""Trains a specialist per task on a base, smaller ones for the learning curve, and measures them all.

Usage: run.py --base BASE.gguf --rows ROWS --out OUT [--molly BINARY] [--sizes N...] [--only TASK...] [--epochs N] [--batch N]

ROWS is what make.py wrote. OUT gets adapters/TASK.gguf (the largest size), adapters/TASK-N.gguf (the others), times.json and
report.json. What is there already is not trained again, so a run that was stopped goes on.
"""
import argparse
import json
import os
import shutil
import subprocess
import time
from pathlib import Path


def train(options, task, rows, size):
    """One adapter on the first `size` rows; gives its file."""
    cut = options.out / 'sets' / f'{task}-{size}.jsonl'
    cut.parent.mkdir(parents=True, exist_ok=True)
    cut.write_text(''.join(rows[:size]))
    run = options.out / 'runs' / f'{task}-{size}'
    shutil.rmtree(run, ignore_errors=True)
    command = [str(options.molly), '--json', 'train', 'lora', '--base', str(options.base), '--data', str(cut),
               '--name', f'{task}-{size}', '--out', str(run), '--rank', str(options.rank),
               '--epochs', str(options.epochs), '--batch', str(options.batch), '--learning-rate', str(options.learning_rate),
               '--seed', '1', '--domain', task]
    # The copies of the curve go into a registry of their own.
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, 'MOLLY_DATA': str(options.out / 'registry')})
    if done.returncode != 0:
        raise SystemExit(f'{task} with {size} rows: {done.stdout[-500:]}{done.stderr[-2000:]}')
    return json.loads(done.stdout.strip().splitlines()[-1])['file']


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--molly', type=Path, default=Path('build/release/molly'))
    parser.add_argument('--base', type=Path, required=True)
    parser.add_argument('--rows', type=Path, required=True)
    parser.add_argument('--out', type=Path, required=True)
    parser.add_argument('--sizes', type=int, nargs='*', default=[50, 100, 200, 500])
    parser.add_argument('--only', nargs='*', default=[])
    # A packed row holds two or three examples: with few rows it is the number of steps that is short, not that of tokens.
    parser.add_argument('--batch', type=int, default=1)
    parser.add_argument('--learning-rate', type=float, default=2e-3)
    parser.add_argument('--epochs', type=float, default=8)
    parser.add_argument('--rank', type=int, default=16)
    options = parser.parse_args()
    adapters = options.out / 'adapters'
    adapters.mkdir(parents=True, exist_ok=True)
    times_file = options.out / 'times.json'
    times = json.loads(times_file.read_text()) if times_file.exists() else {}
    tasks = options.only or sorted(path.parent.name for path in options.rows.glob('*/task.json'))
    for task in tasks:
        rows = (options.rows / task / 'train.jsonl').read_text().splitlines(keepends=True)
        sizes = sorted({min(size, len(rows)) for size in options.sizes})
        for size in sizes:
            file = adapters / (f'{task}.gguf' if size == sizes[-1] else f'{task}-{size}.gguf')
            if file.exists():
                continue
            began = time.monotonic()
            made = train(options, task, rows, size)
            shutil.copyfile(made, file)
            times[f'{task}-{size}'] = round(time.monotonic() - began, 1)
            times_file.write_text(json.dumps(times, indent=1) + '\n')
            print(f'{task:12} {size:4} rows  {times[f"{task}-{size}"]:7.1f} s', flush=True)
    subprocess.run([str(options.molly), 'eval', 'adapters', '--base', str(options.base), '--tasks', str(options.rows),
                    '--adapters', str(adapters), '--out', str(options.out / 'report.json'), *(['--only', *tasks] if options.only else [])],
                   check=True)


if __name__ == '__main__':
    main()
