"""PyTorch's side of the LoRA benchmark: torch_lora.py f32|bf16 SECONDS prints one JSON line.

The shape of Qwen2.5-0.5B, rank 16 on all seven modules, one sequence of 256 tokens. The base is frozen, in float32 or, where
autocast rounds it anyway, in bfloat16.
"""
import json
import os
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch_model import Norm, rotate

VOCABULARY, EMBED, LAYERS, HEADS, KEY_HEADS, FEED, CONTEXT, RANK = 151936, 896, 24, 14, 2, 4864, 256, 16


class Adapted(torch.nn.Module):
    """A frozen linear layer with a low-rank part beside it."""
    def __init__(self, source, target, dtype, bias=False, rank=RANK, scale=2.0):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(target, source, dtype=dtype) * 0.02, requires_grad=False)
        self.bias = torch.nn.Parameter(torch.zeros(target, dtype=dtype), requires_grad=False) if bias else None
        self.a = torch.nn.Parameter((torch.rand(rank, source) * 2 - 1) / source ** 0.5)
        self.b = torch.nn.Parameter(torch.zeros(target, rank))
        self.scale = scale

    def forward(self, x):
        return F.linear(x, self.weight, self.bias) + self.scale * F.linear(F.linear(x, self.a), self.b)


def rotate_halves(x, cosine, sine):
    """Turns (i, i + half), as NeoX does. x: [batch, tokens, heads, width]."""
    a, b = x.chunk(2, -1)
    c, s = cosine[:, None], sine[:, None]
    return torch.cat((a * c - b * s, a * s + b * c), -1)


class Layer(torch.nn.Module):
    def __init__(self, embed, heads, key_heads, head_width, feed, dtype, rank, scale, halves, biases):
        super().__init__()
        self.rotate = rotate_halves if halves else rotate
        make = lambda a, b, bias=False: Adapted(a, b, dtype, bias, rank, scale)
        self.heads, self.key_heads, self.width = heads, key_heads, head_width
        self.attn_norm, self.ffn_norm = Norm(embed), Norm(embed)
        self.query = make(embed, heads * head_width, biases)
        self.key, self.value = make(embed, key_heads * head_width, biases), make(embed, key_heads * head_width, biases)
        self.output = make(heads * head_width, embed)
        self.gate, self.up, self.down = make(embed, feed), make(embed, feed), make(feed, embed)

    def forward(self, x, cosine, sine, mask):
        batch, tokens, _ = x.shape
        h = self.attn_norm(x)
        q = self.rotate(self.query(h).view(batch, tokens, self.heads, self.width), cosine, sine).transpose(1, 2)
        k = self.rotate(self.key(h).view(batch, tokens, self.key_heads, self.width), cosine, sine).transpose(1, 2)
        v = self.value(h).view(batch, tokens, self.key_heads, self.width).transpose(1, 2)
        k, v = (t.repeat_interleave(self.heads // self.key_heads, 1) for t in (k, v))
        scores = q @ k.transpose(-1, -2) * self.width ** -0.5 + mask
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, -1)
        x = x + self.output(mixed)
        h = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(torch.nn.Module):
    def __init__(self, vocabulary, embed, layers, heads, key_heads, head_width, feed, context, dtype, rank=RANK, scale=2.0,
                 halves=True, biases=True, tied=True):
        super().__init__()
        self.embedding = torch.nn.Parameter(torch.randn(vocabulary, embed, dtype=dtype) * 0.02, requires_grad=False)
        self.head = self.embedding if tied else torch.nn.Parameter(torch.randn(vocabulary, embed, dtype=dtype) * 0.02,
                                                                   requires_grad=False)
        self.blk = torch.nn.ModuleList(Layer(embed, heads, key_heads, head_width, feed, dtype, rank, scale, halves, biases)
                                       for _ in range(layers))
        self.output_norm = Norm(embed)
        for norm in (self.output_norm, *(n for layer in self.blk for n in (layer.attn_norm, layer.ffn_norm))):
            norm.weight.requires_grad_(False)
        pairs = head_width // 2
        angle = torch.arange(context)[:, None] * 1e6 ** (-torch.arange(pairs) / pairs)
        self.register_buffer('cosine', angle.cos())
        self.register_buffer('sine', angle.sin())
        self.register_buffer('mask', torch.full((context, context), float('-inf')).triu(1))

    def forward(self, tokens, targets):
        x = self.embedding[tokens].to(self.output_norm.weight.dtype)
        for layer in self.blk:
            x = layer(x, self.cosine, self.sine, self.mask)
        logits = F.linear(self.output_norm(x), self.head)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).to(x.dtype), targets.view(-1))


def main(precision, seconds):
    torch.set_num_threads(os.cpu_count())  # Debian's takes one where it does not see the cores
    torch.manual_seed(1)
    half = precision == 'bf16'
    model = Model(VOCABULARY, EMBED, LAYERS, HEADS, KEY_HEADS, EMBED // HEADS, FEED, CONTEXT,
                  torch.bfloat16 if half else torch.float32)
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=1e-3, betas=(0.9, 0.999), weight_decay=0.0, foreach=True)
    tokens = torch.randint(VOCABULARY, (1, CONTEXT))
    targets = torch.randint(VOCABULARY, (1, CONTEXT))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cpu', torch.bfloat16, enabled=half):
            loss = model(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()

    step()
    start, cpu, steps = time.monotonic(), time.process_time(), 0
    while time.monotonic() - start < float(seconds) or steps < 2:
        step()
        steps += 1
    spent, cpu = time.monotonic() - start, time.process_time() - cpu
    print(json.dumps({'tokens_per_second': round(steps * CONTEXT / spent, 1),
                      'tokens_per_cpu_second': round(steps * CONTEXT / cpu, 1),
                      'peak_bytes': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                      'parameters': sum(p.numel() for p in learned)}))


if __name__ == '__main__':
    main(*sys.argv[1:3])
