"""The decoder that the trainer trains, in PyTorch: what it is measured and checked against."""
import torch
import torch.nn.functional as F

# name: vocabulary, embed, layers, heads, key heads, feed-forward, context, sequences of a step
PRESETS = {'nano-8m': (8192, 256, 8, 4, 4, 704, 256, 8), '19m': (12288, 384, 8, 6, 6, 1024, 256, 8)}


class Norm(torch.nn.Module):
    def __init__(self, width, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def rotate(x, cosine, sine):
    """Turns neighbouring pairs. x: [batch, tokens, heads, width]."""
    a, b = x[..., 0::2], x[..., 1::2]
    c, s = cosine[:, None], sine[:, None]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)


class Layer(torch.nn.Module):
    def __init__(self, embed, heads, key_heads, feed_forward):
        super().__init__()
        self.heads, self.key_heads = heads, key_heads
        keys = embed // heads * key_heads
        linear = lambda a, b: torch.nn.Linear(a, b, bias=False)
        self.attn_norm = Norm(embed)
        self.attn_q, self.attn_k, self.attn_v = linear(embed, embed), linear(embed, keys), linear(embed, keys)
        self.attn_output = linear(embed, embed)
        self.ffn_norm = Norm(embed)
        self.ffn_gate, self.ffn_up = linear(embed, feed_forward), linear(embed, feed_forward)
        self.ffn_down = linear(feed_forward, embed)

    def forward(self, x, cosine, sine, mask):
        batch, tokens, embed = x.shape
        width = embed // self.heads
        h = self.attn_norm(x)
        q = rotate(self.attn_q(h).view(batch, tokens, self.heads, width), cosine, sine).transpose(1, 2)
        k = rotate(self.attn_k(h).view(batch, tokens, self.key_heads, width), cosine, sine).transpose(1, 2)
        v = self.attn_v(h).view(batch, tokens, self.key_heads, width).transpose(1, 2)
        if self.key_heads != self.heads:
            k, v = (t.repeat_interleave(self.heads // self.key_heads, 1) for t in (k, v))
        scores = q @ k.transpose(-1, -2) * width ** -0.5 + mask
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, embed)
        x = x + self.attn_output(mixed)
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Decoder(torch.nn.Module):
    def __init__(self, vocabulary, embed, layers, heads, key_heads, feed_forward, context):
        super().__init__()
        self.token_embd = torch.nn.Embedding(vocabulary, embed)
        torch.nn.init.normal_(self.token_embd.weight, std=0.02)
        self.blk = torch.nn.ModuleList(Layer(embed, heads, key_heads, feed_forward) for _ in range(layers))
        self.output_norm = Norm(embed)
        pairs = embed // heads // 2
        angle = torch.arange(context)[:, None] * 10000.0 ** (-torch.arange(pairs) / pairs)
        self.register_buffer('cosine', angle.cos())
        self.register_buffer('sine', angle.sin())
        self.register_buffer('mask', torch.full((context, context), float('-inf')).triu(1))

    def forward(self, tokens, targets):
        x = self.token_embd(tokens)
        for layer in self.blk:
            x = layer(x, self.cosine, self.sine, self.mask)
        logits = F.linear(self.output_norm(x), self.token_embd.weight)
        logits = logits.view(-1, logits.shape[-1])
        return F.cross_entropy(logits.float() if logits.dtype == torch.bfloat16 else logits, targets.view(-1))


def make_optimizer(model, rate):
    """Weight decay as the trainer has it: not on norms and embeddings."""
    decays = [p for n, p in model.named_parameters() if p.dim() == 2 and 'token_embd' not in n]
    plain = [p for n, p in model.named_parameters() if p.dim() == 1 or 'token_embd' in n]
    return torch.optim.AdamW([{'params': decays, 'weight_decay': 0.1}, {'params': plain, 'weight_decay': 0.0}],
                             lr=rate, betas=(0.9, 0.99), eps=1e-8, foreach=True)
