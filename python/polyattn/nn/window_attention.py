"""Attention within square windows of a map of tokens, as in Swin."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .joint import JointAttention
from .windows import WindowedAttention, Windows

_OP = "WindowAttention"
_BIAS_HIDDEN = 512
_FIRST_LOGIT = 10.0


class WindowAttention(WindowedAttention, JointAttention):
    """[B, height, width, C] -> [B, height, width, C].

    The twin of polyattn::nn::WindowAttention in C++: names, shapes and meaning
    of the parameters are the same. Beside in_proj_weight, in_proj_bias and
    out_proj.* they are bias_table [(2 window - 1)^2, H]; with cosine in its place
    logit_scale [H, 1, 1], bias_fc1.weight [512, 2], bias_fc1.bias, and
    bias_fc2.weight [H, 512].

    A map whose sides are no multiples of the window is filled up with zeros below
    and on the right; these tokens are seen. Tokens that only the shift brought
    into one window do not see each other: N of a formula is the number of keys
    that a token sees.

    >>> attention = polyattn.nn.WindowAttention(
    ...     16, 2, 4, shift=2, activation="x^3/sqrt(N)"
    ... )
    >>> attention(torch.randn(2, 8, 10, 16)).shape
    torch.Size([2, 8, 10, 16])

    Args:
        dim: C.
        heads: H, a divisor of C.
        window: the side of a window, in tokens.
        shift: of the windows, where a map has more than one along an axis.
        activation: a formula, as polyattn.attention takes.
        cosine: scores are exp(logit_scale) cos(q, k), the factor 100 at most, and
            their bias is 16 sigmoid(y) - 8 of what an mlp says of the tokens'
            offset (Swin v2, where the 8 is not subtracted, which softmax does not
            see). The bias of k is zero then, whatever in_proj_bias holds.
        dropout: of the attention weights, in training.
        projection_dropout: of the output, in training.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        window: int,
        *,
        shift: int = 0,
        cosine: bool = False,
        device: Any = None,
        dtype: Any = None,
        **attention: Any,
    ) -> None:
        place = {"device": device, "dtype": dtype}
        super().__init__(dim, heads, **place, **attention)
        if window < 2:
            raise ValueError(f"[{_OP}] window {window} < 2")
        if not 0 <= shift < window:
            raise ValueError(f"[{_OP}] shift {shift} is not in [0, {window})")
        self.window, self.shift, self.cosine = window, shift, cosine
        index = offset_index(window)
        self.register_buffer("_offset_index", index.to(device), persistent=False)
        if cosine:
            scale = torch.empty(heads, 1, 1, **place)
            self.logit_scale = torch.nn.Parameter(scale)
            self.bias_fc1 = torch.nn.Linear(2, _BIAS_HIDDEN, **place)
            self.bias_fc2 = torch.nn.Linear(_BIAS_HIDDEN, heads, bias=False, **place)
        else:
            table = torch.empty((2 * window - 1) ** 2, heads, **place)
            self.bias_table = torch.nn.Parameter(table)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.cosine:
            torch.nn.init.constant_(self.logit_scale, math.log(_FIRST_LOGIT))
            self.bias_fc1.reset_parameters()
            self.bias_fc2.reset_parameters()
        else:
            torch.nn.init.normal_(self.bias_table, 0.0, 0.02)

    def extra_repr(self) -> str:
        text = f"{super().extra_repr()}, window={self.window}, shift={self.shift}"
        return text + (", cosine=True" if self.cosine else "")

    def forward(self, x: Tensor) -> Tensor:
        shape = tuple(x.shape)
        if x.dim() != 4 or shape[3] != self.dim or 0 in shape[1:3]:
            raise ValueError(
                f"[{_OP}] x has shape {shape}, expected [B, height, width, {self.dim}] "
                "with tokens"
            )
        windows = Windows(x, (self.window,) * 2, (self.shift,) * 2)
        rows, mask = windows.split(x), windows.mask(x.device)
        y = self._attend(rows, mask, self._score_bias(), self._weight_dropout())
        return windows.join(self._project_out(y))

    def _score_bias(self) -> Tensor:
        """[H, N, N]. 16 sigmoid(y) - 8 is 8 tanh(y / 2)."""
        if self.cosine:
            offsets = log_offsets(self.window).to(self.bias_fc1.weight)
            table = 8 * torch.tanh(self.bias_fc2(F.relu(self.bias_fc1(offsets))) / 2)
        else:
            table = self.bias_table
        n = self.window**2
        return table.t().index_select(1, self._offset_index).unflatten(1, (n, n))


def offset_index(side: int) -> Tensor:
    """Of each pair of tokens of a window the row of their offset in a table of
    (2 side - 1)^2, row by row: [N N]."""
    token = torch.arange(side * side)
    row, column = torch.div(token, side, rounding_mode="floor"), token % side
    down, right = (at[:, None] - at + side - 1 for at in (row, column))
    return (down * (2 * side - 1) + right).flatten()


def log_offsets(side: int) -> Tensor:
    """These offsets on a logarithmic scale on which the largest is log2(9) / 3,
    rows first: f64 [(2 side - 1)^2, 2]."""
    offset = torch.arange(1 - side, side, dtype=torch.float64) * (8 / (side - 1))
    scaled = offset.sign() * (offset.abs() + 1).log2() / 3
    return torch.cartesian_prod(scaled, scaled)
