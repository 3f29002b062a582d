"""Repeats one whole LoRA step of the trainer in PyTorch, in double precision, on the same weights.

usage: check_lora.py DUMP      where `bench_lora dump MODEL DUMP` wrote it; exits 1 when they disagree
"""
import json
import sys

import numpy
import torch
from torch_lora import Model

MODULES = ('query', 'key', 'value', 'output', 'gate', 'up', 'down')
GROUPS = (('query', 'key', 'value'), ('output',), ('gate', 'up'), ('down',))


def factors(model):
    """The adapter's parameters in the trainer's order: of each group the A, then the B."""
    for layer in model.blk:
        for group in GROUPS:
            yield from (getattr(layer, name).a for name in group)
            yield from (getattr(layer, name).b for name in group)


def main(path):
    with open(path, 'rb') as file:
        head = json.loads(file.readline())
        integers = lambda: torch.from_numpy(numpy.fromfile(file, '<i4', head['context'])).long().view(1, -1)
        floats = lambda *shape: torch.from_numpy(numpy.fromfile(file, '<f4', int(numpy.prod(shape)))).double().view(*shape)
        inputs, targets = integers(), integers()
        torch.set_default_dtype(torch.float64)
        model = Model(head['vocabulary'], head['embed'], head['layers'], head['heads'], head['key_heads'], head['head_width'],
                      head['feed_forward'], head['context'], torch.float64, head['rank'], float(head['scale']),
                      head['rotate_halves'], head['biases'], tied=False)
        for norm in [model.output_norm] + [n for layer in model.blk for n in (layer.attn_norm, layer.ffn_norm)]:
            norm.epsilon = head['epsilon']
        model.embedding.data = floats(head['vocabulary'], head['embed'])
        model.head.data = floats(head['vocabulary'], head['embed'])
        model.output_norm.weight.data = floats(head['embed'])
        for layer in model.blk:
            angle = torch.arange(head['context'])[:, None] * floats(head['head_width'] // 2)
            model.cosine, model.sine = angle.cos(), angle.sin()
            layer.attn_norm.weight.data, layer.ffn_norm.weight.data = floats(head['embed']), floats(head['embed'])
            for name in MODULES:
                weight = getattr(layer, name).weight
                weight.data = floats(*weight.shape)
            for name in MODULES[:3] if head['biases'] else ():
                bias = getattr(layer, name).bias
                bias.data = floats(*bias.shape)
        before, gradient, after = (floats(head['weights']) for _ in range(3))
    offset = 0
    for part in factors(model):
        part.data = before[offset:offset + part.numel()].view_as(part).clone()
        offset += part.numel()
    assert offset == head['weights'], (offset, head['weights'])
    learned = list(factors(model))
    optimizer = torch.optim.AdamW(learned, lr=head['learning_rate'], betas=(0.9, 0.999), weight_decay=0.0)
    loss = model(inputs, targets)
    loss.backward()
    theirs = torch.cat([part.grad.flatten() for part in learned])
    norm = torch.nn.utils.clip_grad_norm_(learned, 1.0)
    optimizer.step()
    moved = torch.cat([part.data.flatten() for part in learned])
    # Adam's first step is the rate times the sign of the gradient: where the gradient is nearly nothing, rounding decides.
    clear = theirs.abs() > 1e-4 * theirs.abs().max()
    differences = {
        'loss': abs(loss.item() - head['loss']) / loss.item(),
        'gradient': ((theirs - gradient).abs().max() / theirs.abs().max()).item(),
        'gradient_norm': abs(norm.item() - head['gradient_norm']) / norm.item(),
        'weights': ((moved - after).abs()[clear].max() / head['learning_rate']).item(),
    }
    limits = {'loss': 1e-5, 'gradient': 1e-3, 'gradient_norm': 1e-4, 'weights': 5e-2}
    wrong = [name for name, value in differences.items() if not value <= limits[name]]
    print(json.dumps({'differences': differences, 'weights_compared': clear.float().mean().item(), 'wrong': wrong}))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
