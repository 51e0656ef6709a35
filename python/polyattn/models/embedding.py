"""From images and tokens to rows [B, N, C], and the first weights of a model."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ..nn import (
    Attention,
    ClassAttention,
    CrossCovariance,
    NystromAttention,
    WindowAttention,
)
from .block import Mlp

_STD = 0.02
_ATTENTIONS = (
    Attention,
    ClassAttention,
    CrossCovariance,
    NystromAttention,
    WindowAttention,
)


class PatchEmbedding(torch.nn.Module):
    """[B, channels, height, width] -> [B, N, C], patch by patch, line by line."""

    def __init__(self, channels: int, dim: int, patch_size: int) -> None:
        super().__init__()
        self.proj = torch.nn.Conv2d(channels, dim, patch_size, stride=patch_size)

    def forward(self, images: Tensor) -> Tensor:
        return self.proj(images).flatten(2).transpose(1, 2)


class ClassToken(torch.nn.Module):
    """One learned row before all others. Alone: nothing is added to it before it
    is normalised, so that it does not begin near zero."""

    def __init__(self, dim: int, alone: bool = False) -> None:
        super().__init__()
        self.alone = alone
        self.weight = torch.nn.Parameter(torch.randn(1, 1, dim) * (_STD * alone))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.weight.expand(x.shape[0], -1, -1), x], dim=1)


class PositionEmbedding(torch.nn.Module):
    """A learned row for each position, added."""

    def __init__(self, rows: int, dim: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(rows, dim) * _STD)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight[: x.shape[1]]


class TokenEmbedding(torch.nn.Module):
    """A learned row for each token: integers [B, N] -> [B, N, C]."""

    def __init__(self, rows: int, dim: int) -> None:
        super().__init__()
        if rows < 1:
            raise ValueError(f"[TokenEmbedding] rows {rows} < 1")
        self.weight = torch.nn.Parameter(torch.randn(rows, dim))

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.dtype not in (torch.uint8, torch.int32, torch.int64):
            raise ValueError(
                f"[TokenEmbedding] tokens of type {tokens.dtype}, expected int64, "
                "int32, or uint8 for bytes"
            )
        try:
            return F.embedding(tokens.long(), self.weight)
        except IndexError:
            least, most = int(tokens.min()), int(tokens.max())
            raise ValueError(
                f"[TokenEmbedding] token {least if least < 0 else most} is not in "
                f"[0, {len(self.weight)})"
            ) from None

    def logits(self, x: Tensor) -> Tensor:
        """The same table as output layer: [B, N, C] -> [B, N, rows]."""
        return F.linear(x, self.weight)


def initialise_vit(model: torch.nn.Module) -> None:
    """The scheme `vit` of docs/models.md."""
    for module in model.modules():
        _zero_bias(module)
        if isinstance(module, _ATTENTIONS):
            _truncated(module.in_proj_weight, _STD)
            if getattr(module, "bias_table", None) is not None:
                _truncated(module.bias_table, _STD)
        elif isinstance(module, (torch.nn.Linear, PositionEmbedding, TokenEmbedding)):
            _truncated(module.weight, _STD)
        elif isinstance(module, torch.nn.Conv2d):
            _truncated(module.weight, 1 / math.sqrt(module.weight[0].numel()))
        elif isinstance(module, ClassToken) and module.alone:
            _truncated(module.weight, _STD)
        elif isinstance(module, ClassToken):
            torch.nn.init.normal_(module.weight, 0.0, 1e-6)


def initialise_gpt2(model: torch.nn.Module, depth: int) -> None:
    """The scheme `gpt2` of docs/models.md."""
    tables = (torch.nn.Linear, PositionEmbedding, TokenEmbedding)
    for module in model.modules():
        _zero_bias(module)
        if isinstance(module, tables):
            torch.nn.init.normal_(module.weight, 0.0, _STD)
        elif isinstance(module, Attention):
            torch.nn.init.normal_(module.in_proj_weight, 0.0, _STD)
    for module in model.modules():  # what is added to the rows, after the others
        if isinstance(module, (Attention, Mlp)):
            end = module.out_proj if isinstance(module, Attention) else module.fc2
            torch.nn.init.normal_(end.weight, 0.0, _STD / math.sqrt(2 * depth))


def _zero_bias(module: torch.nn.Module) -> None:
    if isinstance(module, (torch.nn.Linear, torch.nn.Conv2d)):
        if module.bias is not None:
            torch.nn.init.zeros_(module.bias)


def _truncated(weight: Tensor, std: float) -> None:
    torch.nn.init.trunc_normal_(weight, 0.0, std, -2 * std, 2 * std)
