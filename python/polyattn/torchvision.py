"""The windowed attention of torchvision's Swin transformers with any activation.

replace_softmax imports this when it meets one; it needs torchvision.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision.models import swin_transformer

from . import functional

_MOST_LOGIT = math.log(100.0)


class ShiftedWindowAttention(swin_transformer.ShiftedWindowAttention):
    """torchvision's module of this name with a formula in the place of softmax.

    Parameters and state dict are torchvision's. A row sees the keys of its
    window, under the shift those of its own region alone: N of a formula is
    their number.
    """

    _before_weights: Optional[Callable[..., Tensor]] = None  # of match_start

    @property
    def activation(self) -> str:
        """The formula, in canonical form. May be assigned to."""
        return self._activation

    @activation.setter
    def activation(self, formula: str) -> None:
        self._activation = functional.activation(formula).formula

    @property
    def head_dim(self) -> int:
        return self.qkv.out_features // (3 * self.num_heads)

    # Under the names of the other attentions, for match_start.
    @property
    def in_proj_weight(self) -> Tensor:
        return self.qkv.weight

    @property
    def in_proj_bias(self) -> Optional[Tensor]:
        return self.qkv.bias

    @property
    def _cosine_scale(self) -> Optional[Tensor]:
        """The logarithm of the factor of cosine scores, [H, 1, 1]: of v2 alone."""
        return getattr(self, "logit_scale", None)

    def scale_scores(self, gain: Tensor) -> bool:
        """Multiplies the scores of each head, if the module learns their scale."""
        scale = self._cosine_scale
        if scale is None:
            return False
        log_gain = gain.log().to(scale).view_as(scale)
        scale.copy_(scale.clamp(max=_MOST_LOGIT) + log_gain)
        return True

    def extra_repr(self) -> str:
        return f"heads={self.num_heads}, activation={self.activation!r}"

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, W, C] -> [B, H, W, C]."""
        windows = _Windows(x, self.window_size, self.shift_size)
        q, k, v = self._heads(windows.split(x))
        options: Dict[str, Any] = dict(bias=self._bias())
        scale = self._cosine_scale
        if scale is not None:
            q = F.normalize(q, dim=-1) * scale.clamp(max=_MOST_LOGIT).exp()
            k = F.normalize(k, dim=-1)
            options.update(scale=1.0)
        mask = windows.mask(x.device)
        if self._before_weights is not None:
            q = self._before_weights(q, k, mask, False, **options)
        y = functional.attention(
            q,
            k,
            v,
            mask,
            self.attention_dropout if self.training else 0.0,
            activation=self.activation,
            **options,
        )
        y = self.proj(y.transpose(-3, -2).flatten(-2))
        return windows.join(F.dropout(y, self.dropout, self.training))

    def _bias(self) -> Tensor:
        """[1, H, N, N]."""
        return self.get_relative_position_bias()

    def _heads(self, rows: Tensor) -> Tuple[Tensor, ...]:
        """[B, W, N, C] -> q, k, v as [B, W, H, N, D]."""
        bias = self.qkv.bias
        if self._cosine_scale is not None and bias is not None:
            of_q, of_k, of_v = bias.chunk(3)
            bias = torch.cat([of_q, torch.zeros_like(of_k), of_v])
        heads = F.linear(rows, self.qkv.weight, bias)
        heads = heads.unflatten(-1, (3, self.num_heads, self.head_dim))
        return tuple(part.transpose(-3, -2) for part in heads.unbind(-3))


if hasattr(swin_transformer, "ShiftedWindowAttentionV2"):  # torchvision 0.14

    class ShiftedWindowAttentionV2(
        ShiftedWindowAttention, swin_transformer.ShiftedWindowAttentionV2
    ):
        """The same for Swin v2: cosine scores, and a bias that is computed.

        That bias lies in 0 .. 16 and begins near 8. softmax does not see what all
        scores have in common, any other formula does: for it 8 is subtracted.
        """

        def _bias(self) -> Tensor:
            bias = self.get_relative_position_bias()
            return bias if self.activation == "softmax" else bias - 8


def adopt(module: torch.nn.Module, formula: str) -> None:
    """Makes an attention of torchvision one of ours; it stays the same object."""
    module.__class__ = globals()[type(module).__name__]
    module.activation = formula  # type: ignore[assignment]


class _Windows:
    """An image in windows of which each row and column is shifted cyclically."""

    def __init__(self, x: Tensor, window: List[int], shift: List[int]) -> None:
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
        x = x.unflatten(1, (down, self.window[0])).unflatten(3, (across, self.window[1]))
        return x.transpose(2, 3).flatten(3, 4).flatten(1, 2)
