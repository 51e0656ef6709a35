"""Attention for the vision transformers of timm, which is not imported here.

    import polyattn.timm

    model = timm.create_model(
        "vit_base_patch16_224", attn_layer=polyattn.timm.attention("x^3/sqrt(N)")
    )
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Type

import torch
from torch import Tensor

from . import functional
from ._errors import check_type

_OP = "timm.Attention"


class Attention(torch.nn.Module):
    """timm.layers.Attention with any activation: [B, N, C] -> [B, N, C_out].

    Arguments, attributes, forward and the names in the state dict are timm's, so
    that its weights load: qkv.weight [3 H D, C] with the rows of q, k and v in
    this order, qkv.bias, proj.weight, proj.bias, and where asked for q_norm.*,
    k_norm.* and norm.*.

    >>> attention = polyattn.timm.Attention(64, num_heads=4, activation="x^3/sqrt(N)")
    >>> attention(torch.randn(2, 10, 64)).shape
    torch.Size([2, 10, 64])

    Args:
        dim: C, the width of the rows.
        num_heads: H.
        attn_head_dim: D; default C / H.
        dim_out: C_out; default C.
        qkv_bias: of the projection to q, k and v.
        qk_norm: whether each row of q and k goes through a norm_layer.
        scale_norm: whether the output goes through one, before the projection.
        proj_bias: of the projection of the output.
        attn_drop: dropout of the attention weights, in training.
        proj_drop: dropout of the output, in training.
        norm_layer: of a width, for the norms above.
        activation: a formula, as polyattn.attention takes.
    """

    fused_attn: bool
    """False computes the matrix of weights, which passes through attn_drop."""
    _before_weights: Optional[Callable[..., Tensor]] = None  # of match_start

    def __init__(
        self,
        dim: int,
        num_heads: int = 8,
        *,
        attn_head_dim: Optional[int] = None,
        dim_out: Optional[int] = None,
        qkv_bias: bool = False,
        qk_norm: bool = False,
        scale_norm: bool = False,
        proj_bias: bool = True,
        attn_drop: float = 0.0,
        proj_drop: float = 0.0,
        norm_layer: Optional[Callable[..., torch.nn.Module]] = None,
        device: Any = None,
        dtype: Any = None,
        activation: str = "softmax",
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = _head_dim(dim, num_heads, attn_head_dim)
        self.attn_dim = num_heads * self.head_dim
        self.scale = self.head_dim**-0.5
        self.fused_attn = True
        self.activation = activation

        place = {"device": device, "dtype": dtype}
        self.qkv = torch.nn.Linear(dim, 3 * self.attn_dim, bias=qkv_bias, **place)
        self.q_norm = _norm(qk_norm, "qk_norm", norm_layer, self.head_dim, place)
        self.k_norm = _norm(qk_norm, "qk_norm", norm_layer, self.head_dim, place)
        self.attn_drop = torch.nn.Dropout(attn_drop)
        self.norm = _norm(scale_norm, "scale_norm", norm_layer, self.attn_dim, place)
        self.proj = torch.nn.Linear(
            self.attn_dim, dim_out or dim, bias=proj_bias, **place
        )
        self.proj_drop = torch.nn.Dropout(proj_drop)

    @property
    def activation(self) -> str:
        """The formula, in canonical form. May be assigned to."""
        return self._activation

    @activation.setter
    def activation(self, formula: str) -> None:
        self._activation = functional.activation(formula).formula

    # Under the names of the other attentions, for match_start.
    @property
    def in_proj_weight(self) -> Tensor:
        return self.qkv.weight

    @property
    def in_proj_bias(self) -> Optional[Tensor]:
        return self.qkv.bias

    def extra_repr(self) -> str:
        return f"heads={self.num_heads}, activation={self.activation!r}"

    def forward(
        self, x: Tensor, attn_mask: Optional[Tensor] = None, is_causal: bool = False
    ) -> Tensor:
        """A bool mask is True where a query may see a key, a floating-point one
        is added to the scores."""
        heads = self.qkv(x).unflatten(-1, (3, self.num_heads, self.head_dim))
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        output = self._attend(self.q_norm(q), self.k_norm(k), v, attn_mask, is_causal)
        output = self.norm(output.transpose(1, 2).flatten(2))
        return self.proj_drop(self.proj(output))

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], causal: bool
    ) -> Tensor:
        if self._before_weights is not None:
            q = self._before_weights(q, k, mask, causal, scale=self.scale)

        def attend(values: Tensor, dropout: float) -> Tensor:
            options = dict(scale=self.scale, activation=self.activation)
            return functional.attention(q, k, values, mask, dropout, causal, **options)

        if self.fused_attn:
            return attend(v, self.attn_drop.p if self.training else 0.0)
        # The weights are the output for values that are the unit vectors.
        keys = k.shape[2]
        unit = torch.eye(keys, dtype=v.dtype, device=v.device)
        weights = attend(unit.expand(*v.shape[:2], keys, keys), 0.0)
        return self.attn_drop(weights) @ v


def attention(activation: str) -> Type[torch.nn.Module]:
    """A class for the argument `attn_layer` of timm's VisionTransformer.

    What it makes are Attentions with this activation.

    >>> layer = polyattn.timm.attention("x^3/sqrt(N)")
    >>> layer(64, num_heads=4, qkv_bias=True).activation
    'x^3/sqrt(N)'
    """
    check_type("timm.attention", "activation", activation, str)
    formula = functional.activation(activation).formula

    class Bound(Attention):
        # timm wants a class. Its objects are plain Attentions: they are pickled
        # by the name of their class, and this one has none.
        def __new__(cls, *arguments: Any, **options: Any) -> Attention:
            return Attention(*arguments, activation=formula, **options)

    Bound.__name__ = Bound.__qualname__ = f"attention({formula!r})"
    return Bound


def _head_dim(dim: int, heads: int, head_dim: Optional[int]) -> int:
    if heads < 1:
        raise ValueError(f"[{_OP}] num_heads {heads} < 1")
    if head_dim is None and dim % heads != 0:
        raise ValueError(
            f"[{_OP}] dim {dim} is not a multiple of num_heads {heads}: give "
            "attn_head_dim"
        )
    return dim // heads if head_dim is None else head_dim


def _norm(
    wanted: bool,
    name: str,
    layer: Optional[Callable[..., torch.nn.Module]],
    width: int,
    place: dict,
) -> torch.nn.Module:
    if not wanted:
        return torch.nn.Identity()
    if layer is None:
        raise ValueError(f"[{_OP}] {name} needs a norm_layer")
    # Not every layer takes a device and a type.
    return layer(width, **{k: v for k, v in place.items() if v is not None})
