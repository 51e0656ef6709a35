"""Attention on packed batches: sequences of different lengths without padding."""

from __future__ import annotations

from numbers import Real
from typing import Optional

import torch
from torch import Tensor

from . import _transforms
from ._errors import check_type
from .functional import (
    NO_WINDOW,
    WindowSize,
    check_formula,
    check_path,
    check_window,
)

_OP = "attention_varlen"


def attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Optional[Tensor] = None,
    *,
    is_causal: bool = False,
    scale: Optional[float] = None,
    activation: str = "softmax",
    coefficients: Optional[Tensor] = None,
    causal_alignment: Optional[str] = None,
    path: str = "auto",
    window_size: WindowSize = NO_WINDOW,
) -> Tensor:
    """Attention within each sequence of a packed batch.

    The rows of all sequences stand one behind the other. Sequence b has the rows
    cu_seqlens[b] to cu_seqlens[b + 1] - 1, and sees itself alone.

    >>> q = torch.randn(10, 4, 16)
    >>> ends = torch.tensor([0, 3, 10])  # a sequence of three rows, and one of seven
    >>> polyattn.attention_varlen(q, q, q, ends, activation="x^2/sqrt(N)").shape
    torch.Size([10, 4, 16])

    Args:
        query: [total, H, D].
        key: [total, G, D], where H is a multiple of G.
        value: [total, G, E].
        cu_seqlens_q: i32 or i64 [B + 1], from 0 to the number of rows.
        cu_seqlens_k: the same for key and value; default: as cu_seqlens_q.
        causal_alignment: as of polyattn.attention. Must be said for causal
            attention with other lengths of query and key: torch's attention is
            "upper_left" there, flash-attention's "lower_right".

    The others are those of polyattn.attention. Gradients of first and second order
    are there; masks, dropout and norms are not.

    Returns:
        [total, H, E].
    """
    tensors = dict(query=query, key=key, value=value, cu_seqlens_q=cu_seqlens_q)
    for name, tensor in tensors.items():
        check_type(_OP, name, tensor, Tensor)
        if tensor.is_nested:
            raise TypeError(
                f"[{_OP}] {name} is a nested tensor: give its values() and offsets()"
            )
    check_type(_OP, "cu_seqlens_k", cu_seqlens_k, Tensor, type(None))
    check_type(_OP, "coefficients", coefficients, Tensor, type(None))
    check_type(_OP, "activation", activation, str)
    check_type(_OP, "causal_alignment", causal_alignment, str, type(None))
    check_type(_OP, "path", path, str)
    check_type(_OP, "scale", scale, Real, type(None))
    window_size = check_window(_OP, window_size)
    ends_k = cu_seqlens_q if cu_seqlens_k is None else cu_seqlens_k
    watched = _transforms.supported() and _transforms.active()
    alignment = causal_alignment or "upper_left"
    if causal_alignment is None and is_causal and ends_k is not cu_seqlens_q:
        # What a tensor holds must not steer a compiler.
        if watched or not torch.equal(cu_seqlens_q, ends_k):
            raise ValueError(
                f"[{_OP}] queries and keys may differ in length: say which rows are "
                "aligned, causal_alignment='upper_left' (as torch) or 'lower_right' "
                "(as flash-attention)"
            )
    scale = None if scale is None else float(scale)
    try:
        if watched:
            options = (
                is_causal,
                scale,
                True,
                activation,
                alignment,
                path,
                window_size,
            )
            return _transforms.attention(
                query,
                key,
                value,
                (None, None, coefficients),
                options,
                cu_seqlens=(cu_seqlens_q, ends_k),
            )
        return torch.ops.polyattn.attention_varlen(
            query,
            key,
            value,
            cu_seqlens_q,
            ends_k,
            bool(is_causal),
            scale=scale,
            activation=activation,
            coefficients=coefficients,
            causal_alignment=alignment,
            path=path,
            window_size=window_size,
        )
    except RuntimeError:
        check_path(_OP, path, alignment)
        check_formula(activation)
        raise
