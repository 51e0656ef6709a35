"""Attention in plain torch ops, written from its definition: what the tests
compare with."""

import math

import torch

# A formula to its weights, given scores, visibility and the number of keys that
# the row sees. Hidden weights are set to zero afterwards.
WEIGHTS = {
    "softmax": lambda s, seen, n: torch.softmax(
        s.masked_fill(~seen, -math.inf), dim=-1
    ).nan_to_num(0.0),
    "x^3/sqrt(N)": lambda s, seen, n: s**3 / n.sqrt(),
    "x^3/14": lambda s, seen, n: s**3 / 14,
    "1 + x + x^2/2": lambda s, seen, n: 1 + s + s**2 / 2,
    "x^4/sum": lambda s, seen, n: normalised(s**4, seen),
    "sigmoid": lambda s, seen, n: torch.sigmoid(s - n.log()),
    "relu^2/N": lambda s, seen, n: s.relu() ** 2 / n,
}


def normalised(w, seen):
    return w / (w.abs() * seen).sum(dim=-1, keepdim=True).clamp(min=1e-300)


def scores(q, k, scale=None, bias=None):
    s = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    return s if bias is None else s + bias


def visible(s, mask=None, causal=None):
    """causal: None, "upper_left" or "lower_right"."""
    rows, keys = s.shape[-2:]
    seen = torch.ones_like(s, dtype=torch.bool)
    if causal is not None:
        last = 0 if causal == "upper_left" else keys - rows
        seen = seen & torch.ones(rows, keys, dtype=torch.bool).tril(last)
    if mask is not None and mask.dtype == torch.bool:
        seen = seen & mask
    elif mask is not None:
        seen = seen & (mask != -math.inf)
    return seen


def weights_of(s, seen, formula):
    n = seen.sum(dim=-1, keepdim=True).clamp(min=1).to(s.dtype)
    s = s.masked_fill(~seen, 0.0)
    w = WEIGHTS[formula](s, seen, n)
    return w.masked_fill(~seen, 0.0)


def weights(q, k, formula="softmax", mask=None, causal=None, scale=None):
    """The attention matrix."""
    bias = None if mask is None or mask.dtype == torch.bool else mask
    s = scores(q, k, scale, bias)
    return weights_of(s, visible(s, mask, causal), formula)


def attention(q, k, v, formula="softmax", **options):
    if q.shape[-3] != k.shape[-3]:
        k, v = (t.repeat_interleave(q.shape[-3] // k.shape[-3], -3) for t in (k, v))
    return weights(q, k, formula, **options) @ v


FORMULAS = list(WEIGHTS)
