"""PyTorch's side of the benchmark: torch_pretrain.py PRESET f32|bf16 SECONDS prints one JSON line."""
import json
import os
import resource
import sys
import time

import torch
from torch_model import PRESETS, Decoder, make_optimizer


def main(preset, precision, seconds):
    *shape, sequences = PRESETS[preset]
    vocabulary, context = shape[0], shape[-1]
    torch.set_num_threads(os.cpu_count())  # Debian's takes one where it does not see the cores
    torch.manual_seed(1)
    model = Decoder(*shape)
    optimizer = make_optimizer(model, 1e-3)
    tokens = torch.randint(vocabulary, (sequences, context))
    targets = torch.randint(vocabulary, (sequences, context))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cpu', torch.bfloat16, enabled=precision == 'bf16'):
            loss = model(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    step()
    start, cpu, steps = time.monotonic(), time.process_time(), 0
    while time.monotonic() - start < float(seconds) or steps < 2:
        step()
        steps += 1
    spent, cpu = time.monotonic() - start, time.process_time() - cpu
    print(json.dumps({'tokens_per_second': round(steps * sequences * context / spent, 1),
                      'tokens_per_cpu_second': round(steps * sequences * context / cpu, 1),
                      'peak_bytes': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                      'parameters': sum(p.numel() for p in model.parameters())}))


if __name__ == '__main__':
    main(*sys.argv[1:4])
