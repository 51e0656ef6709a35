"""Attention within windows of an image, as in Swin: what the modules of
polyattn.nn and of polyattn.torchvision have in common."""

from __future__ import annotations

import math
from typing import Any, Dict, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import functional
from .formula import Formula

_MOST_LOGIT = math.log(100.0)


class WindowedAttention(Formula):
    """What is the same whatever the parameters are called.

    It needs in_proj_weight, in_proj_bias and head_dim, and for cosine scores
    (Swin v2) logit_scale [H, 1, 1], the logarithm of their factor.
    """

    head_dim: int
    in_proj_weight: Tensor
    in_proj_bias: Optional[Tensor]

    @property
    def _cosine_scale(self) -> Optional[Tensor]:
        return getattr(self, "logit_scale", None)

    def scale_scores(self, gain: Tensor) -> bool:
        """Multiplies the scores of each head, if the module learns their scale."""
        scale = self._cosine_scale
        if scale is None:
            return False
        log_gain = gain.log().to(scale).view_as(scale)
        scale.copy_(scale.clamp(max=_MOST_LOGIT) + log_gain)
        return True

    def _attend(
        self, rows: Tensor, mask: Optional[Tensor], bias: Tensor, dropout: float
    ) -> Tensor:
        """Rows of windows, [B, W, N, C] -> [B, W, N, C]; bias [..., H, N, N]."""
        q, k, v = self._split(rows)
        options: Dict[str, Any] = dict(bias=bias)
        scale = self._cosine_scale
        if scale is not None:
            factor = scale.clamp(max=_MOST_LOGIT).exp()
            q, k = unit_rows(q) * factor.to(q.dtype), unit_rows(k)
            options.update(scale=1.0)
        if self._before_weights is not None:
            q = self._before_weights(q, k, mask, False, **options)
        options.update(activation=self.activation)
        y = functional.attention(q, k, v, mask, dropout, **options)
        return y.transpose(-3, -2).flatten(-2)

    def _split(self, rows: Tensor) -> Tuple[Tensor, ...]:
        """[B, W, N, C] -> q, k, v as [B, W, H, N, D]."""
        bias = self.in_proj_bias
        if self._cosine_scale is not None and bias is not None:
            of_q, of_k, of_v = bias.chunk(3)
            bias = torch.cat([of_q, torch.zeros_like(of_k), of_v])
        heads = F.linear(rows, self.in_proj_weight, bias)
        heads = heads.unflatten(-1, (3, -1, self.head_dim))
        return tuple(part.transpose(-3, -2) for part in heads.unbind(-3))


def unit_rows(x: Tensor) -> Tensor:
    """Rows of length one; the lengths in f32 at least."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return F.normalize(wide, dim=-1).to(x.dtype)


class Windows:
    """An image in windows of which each row and column is shifted cyclically."""

    def __init__(self, x: Tensor, window: Sequence[int], shift: Sequence[int]) -> None:
        self.size = x.shape[1:3]
        self.window = tuple(window)
        self.count = tuple(-(-n // w) for n, w in zip(self.size, window))
        self.padded = tuple(c * w for c, w in zip(self.count, window))
        # One window has nothing to be shifted into.
        self.shift = tuple(s if c > 1 else 0 for s, c in zip(shift, self.count))

    def split(self, x: Tensor) -> Tensor:
        """[B, H, W, C] -> [B, windows, rows, C], padded with zeros."""
        below, right = (p - n for p, n in zip(self.padded, self.size))
        x = F.pad(x, (0, 0, 0, right, 0, below))
        if any(self.shift):
            x = torch.roll(x, tuple(-s for s in self.shift), (1, 2))
        return self._split(x)

    def join(self, rows: Tensor) -> Tensor:
        """The way back."""
        x = rows.unflatten(1, self.count).unflatten(3, self.window)
        x = x.transpose(2, 3).flatten(3, 4).flatten(1, 2)
        if any(self.shift):
            x = torch.roll(x, self.shift, (1, 2))
        return x[:, : self.size[0], : self.size[1]].contiguous()

    def mask(self, device: torch.device) -> Optional[Tensor]:
        """[windows, 1, rows, rows]: True within a region of the shifted image."""
        if not any(self.shift):
            return None
        down, across = (self._regions(i, device) for i in range(2))
        region = down[:, None] * 3 + across
        region = self._split(region[None, :, :, None])[0, :, :, 0]
        return (region[:, :, None] == region[:, None, :]).unsqueeze(1)

    def _regions(self, axis: int, device: torch.device) -> Tensor:
        """Along an axis: 0; 1 in the last window; 2 for what came round."""
        at = torch.arange(self.padded[axis], device=device)
        last, round_ = (self.padded[axis] - n[axis] for n in (self.window, self.shift))
        return (at >= last).long() + (at >= round_).long()

    def _split(self, x: Tensor) -> Tensor:
        down, across = self.count
        x = x.unflatten(1, (down, self.window[0]))
        x = x.unflatten(3, (across, self.window[1]))
        return x.transpose(2, 3).flatten(3, 4).flatten(1, 2)
