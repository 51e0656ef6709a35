"""Nystromformer for Long Range Arena in plain torch functions, from weights by
mlpen/Nystromformer's names, up to its last norm.

Each function of scores is an argument, so that a polynomial can stand in any of the
three places: f(scores, visible), where visible is true for keys that are seen.
"""

import math

import torch
import torch.nn.functional as F

SIZES = dict(dim=12, depth=2, heads=3, hidden=20, vocabulary=11, landmarks=4,
             conv=5, length=24)


def softmax(scores, visible):
    return scores.masked_fill(~visible, -math.inf).softmax(-1)


def shapes(dim, depth, heads, hidden, vocabulary, conv, length, **_):
    shapes = {"model.embeddings.word_embeddings.weight": (vocabulary, dim),
              "model.embeddings.position_embeddings.weight": (length, dim)}

    def linear(name, out, into):
        shapes[name + ".weight"] = (out, into)
        shapes[name + ".bias"] = (out,)

    for i in range(depth):
        name = f"model.transformer_{i}"
        for norm in ("norm1", "norm2"):
            shapes[f"{name}.{norm}.weight"] = (dim,)
            shapes[f"{name}.{norm}.bias"] = (dim,)
        for part in ("W_q", "W_k", "W_v", "ff"):
            linear(f"{name}.mha.{part}", dim, dim)
        shapes[f"{name}.mha.attn.conv.weight"] = (heads, 1, conv, 1)
        linear(name + ".mlpblock.0", hidden, dim)
        linear(name + ".mlpblock.3", dim, hidden)
    shapes["model.norm.weight"] = shapes["model.norm.bias"] = (dim,)
    return shapes


def weights(**size):
    """Random ones, none at its usual first value."""
    tensors = {}
    for name, shape in shapes(**size).items():
        if len(shape) == 1:
            around = 0.0 if name.endswith("bias") else 1.0
            tensors[name] = around + 0.1 * torch.randn(shape)
        elif "embeddings" in name:
            tensors[name] = torch.randn(shape)
        else:
            tensors[name] = torch.randn(shape) / math.sqrt(math.prod(shape[1:]))
    return tensors


def inverse(a, steps=6):
    """The first divisor has the largest row sum too, which is 1 for softmax."""
    one = torch.eye(a.shape[-1])
    z = a.transpose(-1, -2) / (a.abs().sum(-2).max() * a.abs().sum(-1).max())
    for _ in range(steps):
        az = a @ z
        z = 0.25 * z @ (13 * one - az @ (15 * one - az @ (7 * one - az)))
    return z


def nystrom(q, k, v, mask, conv, landmarks, f):
    """q, k, v [B, H, N, D], mask [B, N]."""
    b, h, n, d = q.shape
    kept = mask[:, None, :, None]
    q = q * kept / d**0.25
    k = k * kept / d**0.25
    q_marks = q.reshape(b, h, landmarks, n // landmarks, d).mean(-2)
    k_marks = k.reshape(b, h, landmarks, n // landmarks, d).mean(-2)
    every = torch.ones(1, 1, 1, landmarks, dtype=torch.bool)
    first = f(q @ k_marks.transpose(-1, -2), every)
    middle = f(q_marks @ k_marks.transpose(-1, -2), every)
    last = f(q_marks @ k.transpose(-1, -2), mask[:, None, None].bool())
    y = first @ (inverse(middle) @ (last @ v))
    return y + F.conv2d(v * kept, conv, padding=(conv.shape[2] // 2, 0), groups=h)


def rows(w, tokens, mask, dim, depth, heads, landmarks, f=softmax, **_):
    """After the last norm, those of padding zero: [B, N, C]."""
    b, n = tokens.shape

    def linear(x, name):
        return F.linear(x, w[name + ".weight"], w[name + ".bias"])

    def norm(x, name):
        return F.layer_norm(x, (dim,), w[name + ".weight"], w[name + ".bias"], 1e-5)

    def attention(x, name):
        q, k, v = (
            linear(x, f"{name}.W_{part}").reshape(b, n, heads, -1).transpose(1, 2)
            for part in "qkv"
        )
        y = nystrom(q, k, v, mask, w[name + ".attn.conv.weight"], landmarks, f)
        return linear(y.transpose(1, 2).reshape(b, n, dim), name + ".ff")

    x = w["model.embeddings.word_embeddings.weight"][tokens]
    x = x + w["model.embeddings.position_embeddings.weight"][:n]
    for i in range(depth):
        name = f"model.transformer_{i}"
        x = x + attention(norm(x, name + ".norm1"), name + ".mha")
        y = F.gelu(linear(norm(x, name + ".norm2"), name + ".mlpblock.0"))
        x = x + linear(y, name + ".mlpblock.3")
    return norm(x, "model.norm") * mask[:, :, None]
