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


def windowed(x, projection, windows, bias_of, out_proj, formula, logit_scale=None):
    """Of Swin, all pixels against all: those in another window, or from another
    side of the image, are hidden. bias_of takes offsets inside a window, [..., 2],
    and gives [H, ...]; windows are sizes and shifts."""
    weight, bias, heads = projection
    (wh, ww), shift = windows
    _, height, width, channels = x.shape
    x = torch.nn.functional.pad(x, (0, 0, 0, -width % ww, 0, -height % wh))
    size = x.shape[1:3]
    shift = [s if n > w else 0 for s, n, w in zip(shift, size, (wh, ww))]
    grid = torch.meshgrid(*(torch.arange(n) for n in size), indexing="ij")
    at = torch.stack(grid, -1).flatten(0, 1)
    moved = (at - torch.tensor(shift)) % torch.tensor(size)
    window, inside = moved // torch.tensor([wh, ww]), moved % torch.tensor([wh, ww])
    side = at < torch.tensor(shift)
    seen = (window[:, None] == window).all(-1) & (side[:, None] == side).all(-1)

    if logit_scale is not None:
        bias = torch.cat([bias[:channels], 0 * bias[:channels], bias[2 * channels :]])
    rows = torch.nn.functional.linear(x.flatten(1, 2), weight, bias)
    q, k, v = rows.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    scale = None
    if logit_scale is not None:
        q, k = (t / t.norm(dim=-1, keepdim=True).clamp_min(1e-12) for t in (q, k))
        q, scale = q * logit_scale.clamp(max=math.log(100)).exp(), 1.0
    # Between windows offsets mean nothing, and are in no table.
    offsets = (inside[:, None] - inside).double() * seen[..., None]
    s = scores(q, k, scale, bias_of(offsets))
    y = weights_of(s, seen.expand_as(s), formula) @ v
    y = out_proj(y.transpose(1, 2).flatten(2)).unflatten(1, size)
    return y[:, :height, :width]


FORMULAS = list(WEIGHTS)
