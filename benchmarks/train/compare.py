"""Runs the trainer and PyTorch in turns and compares their medians: compare.py BENCH_TRAIN ROUNDS SECONDS."""
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def precisions():
    """bf16 is worth a round only where the processor has it: elsewhere PyTorch emulates it, at a twentieth of f32's speed."""
    flags = Path('/proc/cpuinfo').read_text()
    return ('f32', 'bf16') if 'avx512_bf16' in flags or 'amx_bf16' in flags else ('f32',)


def main(program, rounds, seconds):
    summary = {'load_average': os.getloadavg()[0], 'cores': os.cpu_count()}
    ratios, memory, fractions = [], [], []
    for preset in ('nano-8m', '19m'):
        sides = {'molly': [program, preset, seconds]}
        for precision in precisions():
            sides[f'torch_{precision}'] = [sys.executable, str(HERE / 'torch_pretrain.py'), preset, precision, seconds]
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
        ratios.append(speed['molly'] / speed[best])
        memory.append(bytes_['molly'] / bytes_[best])
        fractions.append(statistics.median(one['fraction_peak'] for one in seen['molly']))
        for side in sides:
            print(f'{preset:8} {side:11} {speed[side]:8.0f} tokens/s  {cpu[side]:6.0f} tokens/CPU s  {bytes_[side] / 2**20:7.0f} MiB')
        print(f'{preset:8} ratio {ratios[-1]:.2f} to {best}, memory {memory[-1]:.2f}, {fractions[-1]:.2f} of the matmul peak')
        summary[preset] = {'tokens_per_second': speed, 'tokens_per_cpu_second': cpu, 'peak_bytes': bytes_}
    print(json.dumps({'ratio_pretrain': round(min(ratios), 3), 'memory_ratio': round(max(memory), 3),
                      'fraction_peak': round(min(fractions), 3), **summary}))


if __name__ == '__main__':
    main(*sys.argv[1:4])
