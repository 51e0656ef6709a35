"""The attentions of XCiT: over channels, and of the class token."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import functional
from .checks import check_rows
from .joint import JointAttention
from .windows import unit_rows


class CrossCovariance(JointAttention):
    """Channels attend to channels: [B, N, C] -> [B, N, C].

        q, k, v = heads of in_proj(x), each [B, H, D, N]
        y = out_proj(f(temperature q k^T / (|q| |k|)) v)

    The twin of polyattn::nn::CrossCovariance in C++: names, shapes and meaning of
    the parameters are the same. Beside in_proj_weight, in_proj_bias and out_proj.*
    there is temperature [H], 1 at first. N of a formula is D, the channels of a
    head.

    >>> attention = polyattn.nn.CrossCovariance(64, 4, activation="x^3/sqrt(N)")
    >>> attention(torch.randn(2, 10, 64)).shape
    torch.Size([2, 10, 64])

    Args:
        dim: C.
        heads: H, a divisor of C.
        activation: a formula, as polyattn.attention takes.
        dropout: of the attention weights, in training.
        projection_dropout: of the output, in training.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        device: Any = None,
        dtype: Any = None,
        **attention: Any,
    ) -> None:
        place = {"device": device, "dtype": dtype}
        super().__init__(dim, heads, **place, **attention)
        self.temperature = torch.nn.Parameter(torch.empty(heads, **place))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        torch.nn.init.ones_(self.temperature)

    def scale_scores(self, gain: Tensor) -> bool:
        """Multiplies the scores of each head."""
        self.temperature.mul_(gain.to(self.temperature))
        return True

    def forward(self, x: Tensor) -> Tensor:
        check_rows("x", x, self.dim, type(self).__name__)
        rows = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        # From here on a channel is a row.
        rows = rows.transpose(1, 2).contiguous()
        q, k, v = rows.unflatten(1, (3, self.heads, self.head_dim)).unbind(1)
        q = unit_rows(q) * self.temperature.to(q.dtype)[:, None, None]
        k = unit_rows(k)
        if self._before_weights is not None:
            q = self._before_weights(q, k, None, False, scale=1.0)
        options = dict(scale=1.0, activation=self.activation)
        y = functional.attention(q, k, v, None, self._weight_dropout(), **options)
        return self._project_out(y.flatten(1, 2).transpose(1, 2))


class ClassAttention(JointAttention):
    """The first row attends to all rows: [B, N, C] -> [B, 1, C].

    The twin of polyattn::nn::ClassAttention in C++: names, shapes and meaning of
    the parameters are the same. N of a formula is the number of rows, the first
    one included.

    >>> attention = polyattn.nn.ClassAttention(64, 4, activation="x^3/sqrt(N)")
    >>> attention(torch.randn(2, 10, 64)).shape
    torch.Size([2, 1, 64])

    Args:
        dim, heads, activation, dropout, projection_dropout: as CrossCovariance.
    """

    def __init__(self, dim: int, heads: int, **options: Any) -> None:
        super().__init__(dim, heads, **options)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        check_rows("x", x, self.dim, type(self).__name__)
        if x.shape[1] == 0:
            raise ValueError("[ClassAttention] x has no row that could ask")
        sizes = (self.dim, 2 * self.dim)
        of_q, of_kv = zip(
            self.in_proj_weight.split(sizes), self.in_proj_bias.split(sizes)
        )
        q = F.linear(x[:, :1], *of_q)
        k, v = F.linear(x, *of_kv).chunk(2, dim=-1)
        q, k, v = (
            t.unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)
            for t in (q, k, v)
        )
        if self._before_weights is not None:
            q = self._before_weights(q, k, None, False)
        options = dict(activation=self.activation)
        y = functional.attention(q, k, v, None, self._weight_dropout(), **options)
        return self._project_out(y.transpose(1, 2).flatten(2))
