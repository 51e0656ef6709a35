"""The blocks of XCiT, normalised before each branch."""

from __future__ import annotations

from typing import Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..nn import ClassAttention, CrossCovariance
from .block import LayerNorm, LayerScale, Mlp, drop_path


class LocalInteraction(torch.nn.Module):
    """Of patches of a grid (height, width), line by line, each channel by itself:
    conv2(norm(gelu(conv1(x)))), windows of 3 x 3."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.norm = torch.nn.BatchNorm2d(dim)
        self.conv2 = torch.nn.Conv2d(dim, dim, 3, padding=1, groups=dim)

    def forward(self, x: Tensor, grid: Tuple[int, int]) -> Tensor:
        y = x.transpose(1, 2).unflatten(2, grid)
        y = self.conv2(self.norm(F.gelu(self.conv1(y))))
        return y.flatten(2).transpose(1, 2)


class XcaBlock(torch.nn.Module):
    """Channels, neighbours and the mlp: [B, N, C] -> [B, N, C].

        x = x + drop_path(layer_scale1(attention(norm1(x))))
        x = x + drop_path(layer_scale3(local(norm3(x))))
        x = x + drop_path(layer_scale2(mlp(norm2(x))))
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        mlp: int,
        norm_eps: float,
        layer_scale: float,
        drop_path: float,
        dropout: float,
        attention_dropout: float,
        activation: str,
    ) -> None:
        super().__init__()
        self.drop_path = drop_path
        self.norm1 = LayerNorm(dim, norm_eps)
        self.attention = CrossCovariance(
            dim,
            heads,
            activation=activation,
            dropout=attention_dropout,
            projection_dropout=dropout,
        )
        self.layer_scale1 = LayerScale(dim, layer_scale)
        self.norm3 = LayerNorm(dim, norm_eps)
        self.local = LocalInteraction(dim)
        self.layer_scale3 = LayerScale(dim, layer_scale)
        self.norm2 = LayerNorm(dim, norm_eps)
        self.mlp = Mlp(dim, mlp, "none", dropout)
        self.layer_scale2 = LayerScale(dim, layer_scale)

    def forward(self, x: Tensor, grid: Tuple[int, int]) -> Tensor:
        x = x + self._branch(self.layer_scale1(self.attention(self.norm1(x))))
        x = x + self._branch(self.layer_scale3(self.local(self.norm3(x), grid)))
        return x + self._branch(self.layer_scale2(self.mlp(self.norm2(x))))

    def _branch(self, y: Tensor) -> Tensor:
        return drop_path(y, self.drop_path, self.training)


class ClassBlock(torch.nn.Module):
    """Of the class token, which is the first row: [B, N, C] -> [B, N, C].

        u = norm1(x), its first row replaced by attention(u)
        x = x + layer_scale1(u)
        x = norm2(x), all rows (tokens_norm) or the first one
        the first row of x = itself + layer_scale2(mlp(itself)), all others 2 x

    The last lines are those of the published models.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        tokens_norm: bool,
        mlp: int,
        norm_eps: float,
        layer_scale: float,
        dropout: float,
        attention_dropout: float,
        activation: str,
    ) -> None:
        super().__init__()
        self.tokens_norm = tokens_norm
        self.norm1 = LayerNorm(dim, norm_eps)
        self.attention = ClassAttention(
            dim,
            heads,
            activation=activation,
            dropout=attention_dropout,
            projection_dropout=dropout,
        )
        self.layer_scale1 = LayerScale(dim, layer_scale)
        self.norm2 = LayerNorm(dim, norm_eps)
        self.mlp = Mlp(dim, mlp, "none", dropout)
        self.layer_scale2 = LayerScale(dim, layer_scale)

    def forward(self, x: Tensor) -> Tensor:
        u = self.norm1(x)
        u = torch.cat([self.attention(u), u[:, 1:]], dim=1)
        x = x + self.layer_scale1(u)
        x = self.norm2(x) if self.tokens_norm else x
        token = x[:, :1] if self.tokens_norm else self.norm2(x[:, :1])
        token = token + self.layer_scale2(self.mlp(token))
        return torch.cat([token, 2 * x[:, 1:]], dim=1)
