"""Molly and llama-server in turn: N requests at once over M adapters, through HTTP, streamed.

usage: compare.py MOLLY LLAMA_SERVER FOLDER ROUNDS TOKENS

Other peers are Molly on a copy of the file with a Q4_0 head (molly models optimize), Molly with engine.adapter_numbers = "int8", and
Molly with engine.adapters_together = false: one adapter at a time through llama.cpp's own interface. Without a llama-server the ratios to it are null.
"""
import atexit
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CASES = [(8, 8), (8, 1), (8, 0), (1, 0)]  # requests at once, adapters among them (0: the base)
WORDS = 'river stone winter letter market garden engine silver window morning paper bridge'.split()


class Server:
    """A child process that answers completions on a port."""

    def __init__(self, command, port, log, environment=None):
        self.port = port
        self.log = open(log, 'wb')
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)
        atexit.register(self.process.kill)  # one that is left over would answer for the next

    def wait(self, path):
        for _ in range(600):
            if self.process.poll() is not None:
                raise SystemExit(f'a server ended early; see {self.log.name}')
            try:
                connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=2)
                connection.request('GET', path)
                if connection.getresponse().status in (200, 401):
                    return
            except OSError:
                pass
            time.sleep(0.5)
        raise SystemExit('a server did not start')

    def cpu_seconds(self):
        """Processor time so far: unlike the clock on the wall it does not count what other processes take."""
        fields = Path(f'/proc/{self.process.pid}/stat').read_text().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def memory_mib(self):
        text = Path(f'/proc/{self.process.pid}/status').read_text()
        return int(text.split('VmHWM:')[1].split()[0]) // 1024

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def prompt(seed):
    """About 64 tokens, another text every time, so that no cache helps."""
    draw = random.Random(seed)
    return ' '.join(draw.choice(WORDS) for _ in range(62))


def ask(port, body, headers, result):
    """One streamed completion: tokens, seconds to the first one, seconds in all."""
    started = time.monotonic()
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=600)
    connection.request('POST', '/v1/completions', json.dumps(body), {'Content-Type': 'application/json', **headers})
    reply = connection.getresponse()
    if reply.status != 200:
        raise SystemExit(f'{reply.status}: {reply.read()[:500]}')
    first, usage = None, None
    for line in reply:
        if not line.startswith(b'data: {'):
            continue
        if first is None:
            first = time.monotonic() - started
        event = json.loads(line[6:])
        usage = event.get('usage') or usage
    result.append((usage['completion_tokens'], first, time.monotonic() - started))


class Molly:
    def __init__(self, name, binary, folder, scratch, port, engine='', optimized=False):
        self.name = name
        self.port = port
        scratch = scratch / str(port)
        scratch.mkdir()
        config = scratch / 'molly.toml'
        config.write_text(f'[engine]\nspeculation = "off"\ncontext_tokens_max = 1024\nthreads = {threads()}\n{engine}\n')
        arguments = ['--config', str(config), '--data', str(scratch / 'data')]
        base = str(folder / 'base.gguf')
        for index in range(8):
            subprocess.run([binary, *arguments, 'adapters', 'import', str(folder / f'adapter-{index:02}.gguf'), '--name', f'a{index}',
                            '--base', base, '--json'], check=True, stdout=subprocess.DEVNULL)
        if optimized:
            subprocess.run([binary, *arguments, 'models', 'optimize', base, '--name', 'optimized', '--tokens', '64', '--json'], check=True,
                           stdout=subprocess.DEVNULL)
            base = 'optimized'
        self.server = Server([binary, *arguments, 'serve', '--model', base, '--port', str(port), '--json'], port, scratch / 'molly.log')
        self.server.wait('/molly/v1/health')
        self.key = self.first_key(scratch / 'molly.log')

    def first_key(self, log):
        for _ in range(100):  # it listens a moment before it says so
            for line in log.read_text(errors='replace').splitlines():
                if '"key":"molly-' in line:
                    return json.loads(line)['key']
            time.sleep(0.1)
        raise SystemExit('molly said no key')

    def body(self, text, tokens, adapter):
        return {'model': 'local' if adapter is None else f'local/a{adapter}', 'prompt': text, 'max_tokens': tokens, 'temperature': 0,
                'stream': True, 'stream_options': {'include_usage': True}}

    def headers(self):
        return {'Authorization': f'Bearer {self.key}'}


class LlamaServer:
    name = 'llama-server'

    def __init__(self, binary, folder, scratch, port):
        self.port = port
        command = [binary, '-m', str(folder / 'base.gguf'), '--no-mmap', '-np', '8', '-c', str(8 * 1024), '-t', str(threads()),
                   '-tb', str(threads()), '--host', '127.0.0.1', '--port', str(port), '--lora-init-without-apply']
        # In one argument: of several it takes the last.
        command += ['--lora', ','.join(str(folder / f'adapter-{index:02}.gguf') for index in range(8))]
        environment = {**os.environ, 'LD_LIBRARY_PATH': str(Path(binary).parent)}
        self.server = Server(command, port, scratch / 'llama.log', environment)
        self.server.wait('/health')
        # Without this a request that names no adapter runs all of them.
        connection = http.client.HTTPConnection('127.0.0.1', port)
        connection.request('POST', '/lora-adapters', json.dumps([{'id': i, 'scale': 0} for i in range(8)]),
                           {'Content-Type': 'application/json'})
        assert connection.getresponse().status == 200

    def body(self, text, tokens, adapter):
        body = {'prompt': text, 'max_tokens': tokens, 'temperature': 0, 'stream': True, 'cache_prompt': False,
                'stream_options': {'include_usage': True}}
        if adapter is not None:
            body['lora'] = [{'id': adapter, 'scale': 1.0}]
        return body

    def headers(self):
        return {}


def threads():
    return int(os.environ.get('MOLLY_BENCH_THREADS', os.cpu_count()))


def measure(peer, requests, adapters, tokens, seed):
    """One round of one case: tokens per second, median and worst time to first token, tokens per second of processor time."""
    results, workers = [], []
    started, cpu = time.monotonic(), peer.server.cpu_seconds()
    for index in range(requests):
        adapter = None if adapters == 0 else index % adapters
        body = peer.body(prompt(seed * 1000 + index), tokens, adapter)
        worker = threading.Thread(target=ask, args=(peer.port, body, peer.headers(), results))
        worker.start()
        workers.append(worker)
    for worker in workers:
        worker.join()
    wall, cpu = time.monotonic() - started, peer.server.cpu_seconds() - cpu
    if len(results) != requests:
        raise SystemExit(f'{peer.name}: {requests - len(results)} requests failed')
    firsts = sorted(first for _, first, _ in results)
    tokens = sum(count for count, _, _ in results)
    return tokens / wall, statistics.median(firsts), firsts[-1], tokens / max(cpu, 0.01)


def main():
    binary, llama, folder, rounds, tokens = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    with tempfile.TemporaryDirectory() as scratch:
        peers = [Molly('molly', binary, folder, Path(scratch), 18484), Molly('molly optimized', binary, folder, Path(scratch), 18487, optimized=True),
                 Molly('molly int8', binary, folder, Path(scratch), 18488, 'adapter_numbers = "int8"'),
                 Molly('molly in turns', binary, folder, Path(scratch), 18486, 'adapters_together = false')]
        if Path(llama).exists():
            peers.append(LlamaServer(llama, folder, Path(scratch), 18485))
        seen = {}
        for peer in peers:  # once without counting: adapters get hot, graphs get built
            measure(peer, 8, 8, 4, 0)
        for turn in range(rounds):
            for requests, adapters in CASES:
                for peer in peers if turn % 2 == 0 else reversed(peers):
                    got = measure(peer, requests, adapters, tokens, turn + 1)
                    seen.setdefault((peer.name, requests, adapters), []).append(got)
                    print(f'round {turn + 1} {requests} requests, {adapters} adapters, {peer.name:14}: {got[0]:6.1f} tok/s, '
                          f'first token {got[1]:.2f} s, worst {got[2]:.2f} s, {got[3]:6.1f} tok per cpu second', flush=True)
        report(peers, seen, tokens)
        for peer in peers:
            peer.server.close()


def report(peers, seen, tokens):
    def middle(name, case, field=0):
        values = seen.get((name, *case))
        return statistics.median(value[field] for value in values) if values else None

    def ratio(above, below):
        return round(above / below, 3) if above is not None and below else None

    print('\n| requests x adapters | ' + ' | '.join(f'{peer.name} tok/s, first, worst first, tok per cpu s' for peer in peers) + ' |')
    print('| --- |' + ' --- |' * len(peers))
    for case in CASES:
        cells = [f'{middle(peer.name, case):.1f}, {middle(peer.name, case, 1):.2f} s, {middle(peer.name, case, 2):.2f} s, {middle(peer.name, case, 3):.1f}' for peer in peers]
        print(f'| {case[0]} x {case[1]} | ' + ' | '.join(cells) + ' |')
    out = {f'ratio_{requests}x{adapters}': ratio(middle('molly', (requests, adapters)), middle('llama-server', (requests, adapters)))
           for requests, adapters in CASES}
    out |= {f'ratio_{requests}x{adapters}_optimized': ratio(middle('molly optimized', (requests, adapters)), middle('llama-server', (requests, adapters)))
            for requests, adapters in CASES}
    out['kept_8x8'] = ratio(middle('molly', (8, 8)), middle('molly', (8, 0)))
    out['ratio_8x8_int8'] = ratio(middle('molly int8', (8, 8)), middle('llama-server', (8, 8)))
    out['kept_8x8_int8'] = ratio(middle('molly int8', (8, 8)), middle('molly int8', (8, 0)))
    out['ttft_max_ratio_8x8'] = ratio(middle('molly', (8, 8), 2), middle('llama-server', (8, 8), 2))
    # The same by processor time, for a machine that is not quiet.
    for requests, adapters in CASES:
        out[f'cpu_ratio_{requests}x{adapters}'] = ratio(middle('molly', (requests, adapters), 3), middle('llama-server', (requests, adapters), 3))
    out['cpu_kept_8x8'] = ratio(middle('molly', (8, 8), 3), middle('molly', (8, 0), 3))
    turns = 'molly in turns'
    out['cpu_ratio_8x8_in_turns'] = ratio(middle('molly', (8, 8), 3), middle(turns, (8, 8), 3))
    out['ratio_8x8_in_turns'] = ratio(middle('molly', (8, 8)), middle(turns, (8, 8)))
    out['ttft_max_ratio_8x8_in_turns'] = ratio(middle('molly', (8, 8), 2), middle(turns, (8, 8), 2))
    out['tokens'] = tokens
    out['threads'] = threads()
    out['load_average'] = os.getloadavg()[0]
    for peer in peers:
        out[f'memory_mib_{peer.name}'.replace(' ', '_')] = peer.server.memory_mib()
    print(json.dumps(out))


if __name__ == '__main__':
    main()
