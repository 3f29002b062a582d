"""Time to the first token of a prompt: computed, out of the engine's memory, and from disk in a process that has just started.

usage: first_token.py MOLLY MODEL ROUNDS

Through `molly serve` and HTTP, streamed. Every round has another text, and a short request goes before each one that counts, so that
none pays for the model's first touch.
"""
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = 'river stone winter letter market garden engine silver window morning paper bridge'.split()
LENGTHS = [256, 1024, 4096]


class Server:
    def __init__(self, molly, folder):
        self.process = subprocess.Popen([molly, 'serve', '--json', '--config', folder / 'molly.toml', '--data', folder / 'data'],
                                        stdout=subprocess.PIPE, stderr=open(folder / 'log', 'ab'))
        ready = json.loads(self.process.stdout.readline())
        self.port = ready['port']
        key_file = folder / 'key'
        if ready['key']:
            key_file.write_text(ready['key'])
        self.key = key_file.read_text()
        self.ask('warm', 2)

    def ask(self, prompt, tokens=4, **extensions):
        """Seconds to the first piece of text, usage, and what was said of the prefix."""
        body = {'model': 'local', 'prompt': prompt, 'stream': True, 'stream_options': {'include_usage': True},
                'temperature': 0, 'max_tokens': tokens, 'molly': extensions}
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=600)
        started = time.monotonic()
        connection.request('POST', '/v1/completions', json.dumps(body),
                           {'Content-Type': 'application/json', 'Authorization': f'Bearer {self.key}'})
        reply = connection.getresponse()
        if reply.status != 200:
            raise SystemExit(f'{reply.status}: {reply.read()[:500]}')
        first, usage, said = None, None, None
        for line in reply:
            if not line.startswith(b'data: {'):
                continue
            event = json.loads(line[6:])
            if first is None and event['choices']:
                first = time.monotonic() - started
            usage = event.get('usage') or usage
            said = event.get('molly', {}).get('prefix', said)
        return first, usage, said

    def close(self):
        self.process.terminate()
        self.process.wait()


def one(molly, folder, length, seed):
    draw = random.Random(seed)
    text = ' '.join(draw.choice(WORDS) for _ in range(length))
    files = lambda: set((folder / 'data/prefixes').glob('*.prefix'))
    before = files()
    server = Server(molly, folder)
    cold, usage, said = server.ask(text, keep_prefix='prompt')
    assert said == 'saving' and usage['prompt_tokens_details']['cached_tokens'] == 0, (said, usage)
    while files() == before:
        time.sleep(0.02)
    memory, _, said = server.ask(text, keep_prefix='prompt')
    assert said == 'kept', said
    server.close()
    server = Server(molly, folder)
    disk, usage, _ = server.ask(text)
    cached = usage['prompt_tokens_details']['cached_tokens']
    assert cached > 0, usage
    server.close()
    (file,) = files() - before
    return {'tokens': usage['prompt_tokens'], 'cached': cached, 'mib': file.stat().st_size / 2**20,
            'cold': cold, 'memory': memory, 'disk': disk}


def main(molly, model, rounds):
    result = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / 'molly.toml').write_text(
            f'[gateway]\nport = 0\n[log]\nlevel = "warning"\n[engine]\nmodel = {json.dumps(model)}\n')
        (folder / 'data/prefixes').mkdir(parents=True)
        for length in LENGTHS:
            runs = [one(molly, folder, length, length * 100 + i) for i in range(rounds)]
            row = {key: round(statistics.median(run[key] for run in runs), 4) for key in runs[0]}
            row['speedup'] = round(row['cold'] / row['disk'], 1)
            print(f"{row['tokens']:6.0f} tokens, {row['mib']:.1f} MiB: computed {row['cold'] * 1000:.0f} ms, "
                  f"from memory {row['memory'] * 1000:.0f} ms, from disk {row['disk'] * 1000:.0f} ms", flush=True)
            result[length] = row
    print(json.dumps(result))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
