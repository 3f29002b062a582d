"""Runs the trainer and PyTorch in turns and compares their medians: compare.py PROGRAMS BASE.gguf ROUNDS SECONDS."""
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def precisions():
    """Where the processor has bf16, PyTorch's f32 is far behind (a tenth on the machine of docs/benchmarks.md), and a round of it
    takes minutes; where it has not, PyTorch emulates bf16 at a twentieth of f32's speed."""
    flags = Path('/proc/cpuinfo').read_text()
    return ('bf16',) if 'avx512_bf16' in flags or 'amx_bf16' in flags else ('f32',)


def compare(name, sides, rounds):
    """Medians of a few rounds in which the sides take turns."""
    seen = {side: [] for side in sides}
    for _ in range(int(rounds)):
        for side, command in sides.items():
            seen[side].append(run(*command))
    parameters = {one['parameters'] for results in seen.values() for one in results}
    assert len(parameters) == 1, f'the models differ in size: {parameters}'
    speed = {side: statistics.median(one['tokens_per_second'] for one in results) for side, results in seen.items()}
    cpu = {side: statistics.median(one['tokens_per_cpu_second'] for one in results) for side, results in seen.items()}
    bytes_ = {side: max(one['peak_bytes'] for one in results) for side, results in seen.items()}
    best = max((side for side in sides if side != 'molly'), key=speed.get)
    out = {'ratio': speed['molly'] / speed[best], 'memory': bytes_['molly'] / bytes_[best],
           'fraction': statistics.median(one['fraction_peak'] for one in seen['molly']),
           'figures': {'tokens_per_second': speed, 'tokens_per_cpu_second': cpu, 'peak_bytes': bytes_}}
    for side in sides:
        print(f'{name:8} {side:11} {speed[side]:8.1f} tokens/s  {cpu[side]:6.1f} tokens/CPU s  {bytes_[side] / 2**20:7.0f} MiB')
    print(f'{name:8} ratio {out["ratio"]:.2f} to {best}, memory {out["memory"]:.2f}, {out["fraction"]:.2f} of the matmul peak')
    return out


def main(programs, base, rounds, seconds):
    programs = Path(programs)
    load, measured = os.getloadavg()[0], {}
    for preset in ('nano-8m', '19m'):
        sides = {'molly': [programs / 'bench_train', preset, seconds]}
        for precision in precisions():
            sides[f'torch_{precision}'] = [sys.executable, HERE / 'torch_pretrain.py', preset, precision, seconds]
        measured[preset] = compare(preset, sides, rounds)
    sides = {'molly': [programs / 'bench_lora', base, seconds]}
    for precision in precisions():
        sides[f'torch_{precision}'] = [sys.executable, HERE / 'torch_lora.py', precision, seconds]
    measured['lora'] = compare('lora', sides, rounds)
    pretrain = [measured[preset] for preset in ('nano-8m', '19m')]
    print(json.dumps({'ratio_pretrain': round(min(one['ratio'] for one in pretrain), 3),
                      'ratio_lora': round(measured['lora']['ratio'], 3),
                      'memory_ratio': round(max(one['memory'] for one in measured.values()), 3),
                      'fraction_peak': round(min(one['fraction'] for one in measured.values()), 3),
                      'load_average': load, 'cores': os.cpu_count(),
                      **{name: one['figures'] for name, one in measured.items()}}))


if __name__ == '__main__':
    main(*sys.argv[1:5])
