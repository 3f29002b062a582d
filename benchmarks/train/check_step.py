"""Repeats one whole training step of the trainer in PyTorch, in double precision, on the same weights.

usage: check_step.py DUMP      where `bench_train dump DUMP` wrote it; exits 1 when they disagree
"""
import json
import sys

import numpy
import torch
from torch_model import Decoder, make_optimizer


def parts_of(model):
    """Parameters in the trainer's order: the embedding, the layers, the last norm."""
    yield model.token_embd.weight
    for layer in model.blk:
        for name in ('attn_norm', 'attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_norm', 'ffn_gate', 'ffn_up',
                     'ffn_down'):
            yield getattr(layer, name).weight
    yield model.output_norm.weight


def main(path):
    with open(path, 'rb') as file:
        head = json.loads(file.readline())
        size, tokens = head['weights'], head['sequences'] * head['context']
        integers = lambda: torch.from_numpy(numpy.fromfile(file, '<i4', tokens)).long().view(head['sequences'], -1)
        floats = lambda: torch.from_numpy(numpy.fromfile(file, '<f4', size)).double()
        inputs, targets = integers(), integers()
        before, gradient, after = floats(), floats(), floats()
    torch.set_default_dtype(torch.float64)
    model = Decoder(*(head[k] for k in ('vocabulary', 'embed', 'layers', 'heads', 'key_heads', 'feed_forward', 'context')))
    offset = 0
    for part in parts_of(model):
        part.data.copy_(before[offset:offset + part.numel()].view_as(part))
        offset += part.numel()
    assert offset == size, (offset, size)
    optimizer = make_optimizer(model, head['learning_rate'])
    loss = model(inputs, targets)
    loss.backward()
    theirs = torch.cat([part.grad.flatten() for part in parts_of(model)])
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    moved = torch.cat([part.data.flatten() for part in parts_of(model)])
    # Adam's first step is the rate times the sign of the gradient: where the gradient is nearly nothing, rounding decides.
    clear = theirs.abs() > 1e-6 * theirs.abs().max()
    differences = {
        'loss': abs(loss.item() - head['loss']) / loss.item(),
        'gradient': ((theirs - gradient).abs().max() / theirs.abs().max()).item(),
        'gradient_norm': abs(norm.item() - head['gradient_norm']) / norm.item(),
        'weights': ((moved - after).abs()[clear].max() / head['learning_rate']).item(),
    }
    limits = {'loss': 1e-6, 'gradient': 1e-4, 'gradient_norm': 1e-5, 'weights': 2e-2}
    wrong = [name for name, value in differences.items() if not value <= limits[name]]
    print(json.dumps({'differences': differences, 'weights_compared': clear.float().mean().item(), 'wrong': wrong}))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
