#!/usr/bin/env python3
"""Signs the specialists that may be shared, with what was measured of them, into models/specialists.

Usage: pack.py --out OUT --rows ROWS --base BASE.gguf --release FOLDER [--molly BINARY] [--into models/specialists] [--version 1.0.0]

OUT is what run.py made, ROWS what make.py wrote. FOLDER is the publisher's data folder: its signing key signs, and is made when there is none yet. Keep
it out of the repository; `molly` trusts its public half alone (release_key in src/surface/app/built_in.cc), which is printed.
"""
import argparse
import json
import os
import subprocess
from pathlib import Path

NOT_SHARED = {'exams'}  # CC BY-SA rows: whether share-alike reaches weights is unsettled


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--molly', type=Path, default=Path('build/release/molly'))
    parser.add_argument('--out', type=Path, required=True)
    parser.add_argument('--rows', type=Path, required=True)
    parser.add_argument('--base', type=Path, required=True)
    parser.add_argument('--release', type=Path, required=True)
    parser.add_argument('--into', type=Path, default=Path('models/specialists'))
    parser.add_argument('--version', default='1.0.0')
    options = parser.parse_args()

    def molly(data, *arguments):
        done = subprocess.run([str(options.molly), '--json', '--data', str(data), *map(str, arguments)],
                              capture_output=True, text=True, env={**os.environ, 'MOLLY_CONFIG': os.devnull})
        if done.returncode != 0:
            raise SystemExit(f'molly {" ".join(map(str, arguments))}: {done.stdout}{done.stderr}')
        return json.loads(done.stdout) if done.stdout.strip() else {}

    report = {task['task']: task for task in json.loads((options.out / 'report.json').read_text())['tasks']}
    trained = {entry['sha256']: entry for entry in molly(options.out / 'registry', 'adapters', 'list')['adapters']}
    hashes = {}
    for file in sorted((options.out / 'adapters').glob('*.gguf')):
        hashes[file.stem] = subprocess.run(['sha256sum', str(file)], capture_output=True, text=True, check=True).stdout.split()[0]
    options.into.mkdir(parents=True, exist_ok=True)
    for task in sorted(report):
        if task in NOT_SHARED or task not in hashes or 'specialist' not in report[task]:
            continue
        manifest = {key: value for key, value in trained[hashes[task]].items()
                    if key not in ('id', 'current', 'pinned', 'file', 'signature')}
        measured = report[task]
        manifest.update(name=task, version=options.version, domain=task)
        manifest['base']['name'] = options.base.stem
        manifest['evaluation'].append({'set': f'{task}, held-out rows', 'metric': 'exact_match',
                                       'base': measured['base']['exact']['mean'],
                                       'adapter': measured['specialist']['exact']['mean'], 'examples': measured['rows']})
        about = json.loads((options.rows / task / 'task.json').read_text())
        manifest['component'] = {'instructions': about['instructions'], 'schema': about['schema']}
        draft = options.out / f'{task}.json'
        draft.write_text(json.dumps(manifest, ensure_ascii=False) + '\n')
        molly(options.release, 'adapters', 'import', options.out / 'adapters' / f'{task}.gguf',
              '--manifest', draft, '--base', options.base)
        molly(options.release, 'adapters', 'export', task, '--to', options.into)
        print(f'{task}@{options.version}', flush=True)
    signer = molly(options.release, 'adapters', 'list')['adapters'][0]['signature']['public_key']
    print(f'signed by {signer}')


if __name__ == '__main__':
    main()
