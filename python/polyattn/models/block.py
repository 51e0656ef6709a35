"""A transformer block, normalised before each branch.

    x = x + drop_path(layer_scale1(attention(norm1(x))))
    x = x + drop_path(layer_scale2(mlp(norm2(x))))
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from ..nn import Attention, NystromAttention
from ..nn.norm import Norm


def make_norm(kind: str, dim: int, eps: float) -> torch.nn.Module:
    """layer, with a bias, or rms."""
    return LayerNorm(dim, eps) if kind == "layer" else Norm(dim, kind, eps)


class LayerNorm(torch.nn.LayerNorm):
    """torch's, of rows that may be narrower than the weights: under autocast."""

    def forward(self, x: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, self.weight.dtype)
        return super().forward(x.to(wide)).to(x.dtype)


class Mlp(torch.nn.Module):
    """fc2(dropout(gelu(fc1(x)))), then dropout."""

    def __init__(self, dim: int, hidden: int, gelu: str, dropout: float) -> None:
        super().__init__()
        self.gelu, self.dropout = gelu, dropout
        self.fc1 = torch.nn.Linear(dim, hidden)
        self.fc2 = torch.nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        y = F.gelu(self.fc1(x), approximate=self.gelu)
        y = self.fc2(F.dropout(y, self.dropout, self.training))
        return F.dropout(y, self.dropout, self.training)


class LayerScale(torch.nn.Module):
    """A learned factor for each channel."""

    def __init__(self, dim: int, initial: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((dim,), float(initial)))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class Block(torch.nn.Module):
    """[B, N, C] -> [B, N, C].

    Args:
        dim, heads: C and H.
        mlp: hidden width; default 4 C.
        norm: "layer" or "rms".
        norm_eps: of the norms.
        gelu: "none", or "tanh", an approximation.
        layer_scale: the first value of the layer scales; None: there are none.
        dropout: after the attention's projection and in the mlp.
        attention_dropout: of the attention weights.
        drop_path: the share of samples whose branch is dropped in training.
        nystrom: None, or what polyattn.nn.NystromAttention takes beside the
            dropouts and the activation: attention by way of landmarks.
        attention: what polyattn.nn.Attention takes beside that.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        mlp: Optional[int] = None,
        norm: str = "layer",
        norm_eps: float = 1e-5,
        gelu: str = "none",
        layer_scale: Optional[float] = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        drop_path: float = 0.0,
        nystrom: Optional[Dict[str, Any]] = None,
        **attention: Any,
    ) -> None:
        super().__init__()
        self.drop_path = drop_path
        self.norm1 = make_norm(norm, dim, norm_eps)
        attention.update(dropout=attention_dropout, projection_dropout=dropout)
        self.attention = (
            Attention(dim, heads, **attention)
            if nystrom is None
            else NystromAttention(dim, heads, **_of_nystrom(attention), **nystrom)
        )
        self.norm2 = make_norm(norm, dim, norm_eps)
        self.mlp = Mlp(dim, 4 * dim if mlp is None else mlp, gelu, dropout)
        for name in ("layer_scale1", "layer_scale2"):
            scale = None if layer_scale is None else LayerScale(dim, layer_scale)
            self.add_module(name, scale)

    def forward(self, x: Tensor, attn_mask: Optional[Tensor] = None) -> Tensor:
        """The mask is that of polyattn.nn.Attention."""
        y = self.attention(self.norm1(x), attn_mask=attn_mask)
        x = x + self._branch(y, self.layer_scale1)
        return x + self._branch(self.mlp(self.norm2(x)), self.layer_scale2)

    def _branch(self, y: Tensor, scale: Optional[torch.nn.Module]) -> Tensor:
        y = y if scale is None else scale(y)
        return drop_path(y, self.drop_path, self.training)


def _of_nystrom(attention: Dict[str, Any]) -> Dict[str, Any]:
    """Without parts of Attention that are not chosen; ValueError for others."""
    known = ("activation", "dropout", "projection_dropout")
    for name, value in attention.items():
        if name not in known and value not in (None, False, 0):
            raise ValueError(
                f"[NystromAttention] {name} is not for attention by way of landmarks"
            )
    return {name: attention[name] for name in known if name in attention}


def drop_path(y: Tensor, rate: float, training: bool) -> Tensor:
    """The branch of a sample is dropped with this probability, in training, and
    divided by 1 - rate otherwise."""
    if not training or rate == 0:
        return y
    keep = 1 - rate
    kept = torch.empty((len(y),) + (1,) * (y.dim() - 1), dtype=y.dtype, device=y.device)
    return y * kept.bernoulli_(keep).div_(keep)


def drop_path_rates(depth: int, last: float) -> List[float]:
    """Of each block: linear from 0 at the first to that of the last."""
    if depth < 1:
        raise ValueError(f"[Block] depth {depth} < 1")
    check_drop_path(last)
    return [last] if depth == 1 else [last * i / (depth - 1) for i in range(depth)]


def check_drop_path(rate: float) -> None:
    if not 0 <= rate < 1:
        raise ValueError(f"[Block] drop_path {rate} is not in [0, 1)")


def make_blocks(
    dim: int, depth: int, heads: int, drop_path: float, **options: Any
) -> torch.nn.ModuleList:
    """drop_path is that of the last block; it grows linearly from 0."""
    return torch.nn.ModuleList(
        Block(dim, heads, drop_path=rate, **options)
        for rate in drop_path_rates(depth, drop_path)
    )
