"""Centred values: O = A (V - m) + m, m the mean of the values that a row sees.

One mean for all rows is subtracted before attention. Where rows see different
keys, o_i = sum_j a_ij v_j + (1 - sum_j a_ij) m_i: values get a column of ones,
which attention turns into the sums of A's rows, whichever path it takes.
"""

from __future__ import annotations

import math
from typing import Callable, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


def center_values(
    v: Tensor, mask: Optional[Tensor], causal: bool
) -> Tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Of v [B, G, M, E]: what to attend to in its place, and a function that
    makes [B, H, N, E] of the result."""
    wide = torch.promote_types(v.dtype, torch.float32)
    if mask is None and not causal:
        mean = v.mean(dim=2, keepdim=True, dtype=wide).unsqueeze(2)
    else:
        ones = F.pad(v, (0, 1), value=1.0)
        sums = _visible_sums(ones.to(wide).unsqueeze(2), mask, causal)
        mean = sums[..., :-1] / sums[..., -1:].clamp(min=1)
        if mean.shape[2] > 1 or mean.shape[3] > 1:
            return ones, lambda o: _add_rest(o, mean)
    centered = (v - mean.squeeze(2)).to(v.dtype)
    return centered, lambda o: (_by_group(o, mean) + mean).to(o.dtype).flatten(1, 2)


def _by_group(o: Tensor, mean: Tensor) -> Tensor:
    """[B, H, N, E] -> [B, G, R, N, E]."""
    return o.unflatten(1, (mean.shape[1], -1))


def _add_rest(o: Tensor, mean: Tensor) -> Tensor:
    o = _by_group(o, mean)
    return (o[..., :-1] + (1 - o[..., -1:]) * mean).to(o.dtype).flatten(1, 2)


def _visible_sums(v: Tensor, mask: Optional[Tensor], causal: bool) -> Tensor:
    """Sums of v [B, G, 1, M, E] over the keys that each row sees,
    [B, G, R, N, E]; R and N may be 1. In linear time unless the mask has rows of
    its own."""
    if mask is not None:
        mask = mask if mask.dtype == torch.bool else mask != -math.inf
        mask = mask[(None,) * (4 - mask.dim())]
        by_head = mask.shape[1] > 1
        mask = mask.unflatten(1, (v.shape[1], -1)) if by_head else mask.unsqueeze(2)
        if mask.shape[3] > 1:
            mask = mask.expand(*mask.shape[:-1], v.shape[3])
            return (mask.tril() if causal else mask).to(v.dtype) @ v
        # Filled, not multiplied by 0: padding may hold infinities.
        v = v.masked_fill(~mask.transpose(3, 4), 0.0)
    return v.cumsum(dim=3) if causal else v.sum(dim=3, keepdim=True)
