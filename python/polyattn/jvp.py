"""Forward mode: what attention changes by when its inputs do."""

from __future__ import annotations

from numbers import Real
from typing import Optional, Tuple

import torch
from torch import Tensor

from ._errors import check_type
from .functional import NO_WINDOW, WindowSize, check_formula, check_path, check_window

_OP = "attention_jvp"


def attention_jvp(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_tangent: Optional[Tensor] = None,
    key_tangent: Optional[Tensor] = None,
    value_tangent: Optional[Tensor] = None,
    attn_mask: Optional[Tensor] = None,
    is_causal: bool = False,
    *,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
    activation: str = "softmax",
    coefficients: Optional[Tensor] = None,
    causal_alignment: str = "upper_left",
    bias: Optional[Tensor] = None,
    bias_tangent: Optional[Tensor] = None,
    window_size: WindowSize = NO_WINDOW,
) -> Tuple[Tensor, Tensor]:
    """The output of attention, and what it changes by along the tangents.

    >>> q, k, v, direction = torch.randn(4, 1, 2, 5, 8).unbind()
    >>> output, change = polyattn.attention_jvp(
    ...     q, k, v, query_tangent=direction, activation="x^3/sqrt(N)")
    >>> change.shape
    torch.Size([1, 2, 5, 8])

    Args:
        query_tangent, key_tangent, value_tangent, bias_tangent: of the size and type
            of what they belong to; None: it does not change.

    The others are those of polyattn.attention. On the CPU it takes no N x M matrix.
    Both results have gradients, of every order; those of the change are computed by
    the definition in torch ops.

    Returns:
        Output and change, [..., H, N, E].
    """
    given = dict(query=query, key=key, value=value)
    for name, tensor in given.items():
        check_type(_OP, name, tensor, Tensor)
    optional = dict(
        query_tangent=query_tangent,
        key_tangent=key_tangent,
        value_tangent=value_tangent,
        attn_mask=attn_mask,
        coefficients=coefficients,
        bias=bias,
        bias_tangent=bias_tangent,
    )
    for name, found in optional.items():
        check_type(_OP, name, found, Tensor, type(None))
    check_type(_OP, "activation", activation, str)
    check_type(_OP, "causal_alignment", causal_alignment, str)
    check_type(_OP, "scale", scale, Real, type(None))
    window_size = check_window(_OP, window_size)
    try:
        output, tangent = torch.ops.polyattn.attention_jvp(
            query,
            key,
            value,
            query_tangent,
            key_tangent,
            value_tangent,
            bias_tangent,
            attn_mask,
            bool(is_causal),
            scale=None if scale is None else float(scale),
            enable_gqa=bool(enable_gqa),
            activation=activation,
            coefficients=coefficients,
            causal_alignment=causal_alignment,
            bias=bias,
            window_size=window_size,
        )
    except RuntimeError:
        check_path(_OP, "auto", causal_alignment)
        check_formula(activation)
        raise
    return output, tangent
