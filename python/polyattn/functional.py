"""Attention as a function, and formulas."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, NamedTuple, Optional, Tuple, Union, overload

import torch
from torch import Tensor

from . import _transforms
from ._errors import check_type

_NoneType = type(None)
_WATCHES = _transforms.supported()

WindowSize = Tuple[int, int]
NO_WINDOW: WindowSize = (-1, -1)


class Activation(NamedTuple):
    """A formula that was understood."""

    formula: str
    """In canonical form."""
    coefficients: Optional[Tuple[float, ...]]
    """Of x^0 .. x^P; None if the formula is not a polynomial."""


class AttentionNorms(NamedTuple):
    """Of each attention matrix, as [..., H], without gradient."""

    weight: Tensor
    """||A||_F, before dropout."""
    jacobian: Tensor
    """||dA/dS||_F, where S are the scores."""
    max_abs_score: Tensor
    """The largest score in absolute value that was seen by its row."""
    non_finite: Tensor
    """How many elements of the output are inf or NaN."""


def activation(formula: str) -> Activation:
    """Reads a formula; a bad one is a ValueError with a caret under the fault.

    >>> polyattn.activation("x*x^2 / sqrt( N )")
    Activation(formula='x^3/sqrt(N)', coefficients=(0.0, 0.0, 0.0, 1.0))
    """
    check_type("activation", "formula", formula, str)
    canonical = check_formula(formula)
    try:
        coefficients = torch.ops.polyattn.polynomial_coefficients(canonical)
    except RuntimeError:
        return Activation(canonical, None)
    return Activation(canonical, tuple(coefficients))


@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor] = ...,
    dropout_p: float = ...,
    is_causal: bool = ...,
    scale: Optional[float] = ...,
    enable_gqa: bool = ...,
    *,
    activation: str = ...,
    coefficients: Optional[Tensor] = ...,
    causal_alignment: str = ...,
    path: str = ...,
    bias: Optional[Tensor] = ...,
    return_norms: Literal[False] = ...,
    window_size: WindowSize = ...,
    log_decay: Optional[Tensor] = ...,
) -> Tensor: ...


@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor] = ...,
    dropout_p: float = ...,
    is_causal: bool = ...,
    scale: Optional[float] = ...,
    enable_gqa: bool = ...,
    *,
    activation: str = ...,
    coefficients: Optional[Tensor] = ...,
    causal_alignment: str = ...,
    path: str = ...,
    bias: Optional[Tensor] = ...,
    return_norms: Literal[True],
    window_size: WindowSize = ...,
    log_decay: Optional[Tensor] = ...,
) -> Tuple[Tensor, AttentionNorms]: ...


@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor] = ...,
    dropout_p: float = ...,
    is_causal: bool = ...,
    scale: Optional[float] = ...,
    enable_gqa: bool = ...,
    *,
    activation: str = ...,
    coefficients: Optional[Tensor] = ...,
    causal_alignment: str = ...,
    path: str = ...,
    bias: Optional[Tensor] = ...,
    return_norms: bool,
    window_size: WindowSize = ...,
    log_decay: Optional[Tensor] = ...,
) -> Union[Tensor, Tuple[Tensor, AttentionNorms]]: ...


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor] = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
    *,
    activation: str = "softmax",
    coefficients: Optional[Tensor] = None,
    causal_alignment: str = "upper_left",
    path: str = "auto",
    bias: Optional[Tensor] = None,
    return_norms: bool = False,
    window_size: WindowSize = NO_WINDOW,
    log_decay: Optional[Tensor] = None,
) -> Union[Tensor, Tuple[Tensor, AttentionNorms]]:
    """Attention whose weights are any formula of the scores.

    The arguments up to `enable_gqa` are those of
    `torch.nn.functional.scaled_dot_product_attention`, with their meaning: a
    bool mask is True where a query may see a key, a floating-point one is added
    to the scores. Unlike there, a mask and `is_causal` may be given together,
    and a row that sees no key gives zeros.

    >>> q = k = v = torch.ones(1, 2, 16, 4)
    >>> polyattn.attention(q, k, v, scale=0.5, activation="x^3/sqrt(N)")[0, 0, 0, 0]
    tensor(32.)

    Args:
        query: [..., H, N, D].
        key: [..., G, M, D], where G is H unless `enable_gqa`.
        value: [..., G, M, E].
        activation: a formula: "softmax", "x^3/sqrt(N)", "1 + x + x^2/2",
            "x^4/sum", "sigmoid", "relu^2/N". N is the number of keys that the
            row sees.
        coefficients: of x^0 .. x^P, [P + 1] or [H, P + 1], in the place of
            those of a polynomial formula, whose divisor is kept. May want a
            gradient.
        causal_alignment: "upper_left", the first query is aligned with the
            first key; or "lower_right", the last with the last.
        path: "dense", or "linear" for a polynomial, whose time grows linearly
            with the length; "auto" takes whichever is expected to be faster.
            Norms are computed on the dense path.
        bias: floating point, broadcast to [..., H, N, M] and added to the
            scores beside a mask of either kind; -inf removes the key. May want
            a gradient.
        return_norms: also return the AttentionNorms, from the same pass.
        window_size: (left, right), as flash-attention has it: a row sees no more
            than `left` keys before the one at its own position and `right`
            behind it; -1 is no limit. Takes time in proportion to N, for any
            activation. Causality limits the right side to 0.
        log_decay: broadcast to [..., G, M], for a polynomial under causality: the
            logarithms, none above 0, of the factors by which each key fades all
            weights of keys before it. [G, 1] is a number for each key head, -inf
            a reset. N is the sum of the squared fades then. May want a gradient.
            Under torch.compile and torch.func it goes by the definition, which
            takes memory in proportion to N M.

    Returns:
        [..., H, N, E], and the norms if they were asked for.
    """
    _check_tensors(
        query=query,
        key=key,
        value=value,
        attn_mask=attn_mask,
        coefficients=coefficients,
        bias=bias,
        log_decay=log_decay,
    )
    check_type("attention", "activation", activation, str)
    check_type("attention", "causal_alignment", causal_alignment, str)
    check_type("attention", "path", path, str)
    check_type("attention", "dropout_p", dropout_p, Real)
    check_type("attention", "scale", scale, Real, _NoneType)
    window_size = check_window("attention", window_size)
    scale = None if scale is None else float(scale)
    ops = torch.ops.polyattn
    op = ops.attention_with_norms if return_norms else ops.attention
    try:
        under_sum = coefficients if "sum" in activation else None
        watched = _is_watched(query, float(dropout_p), attn_mask, bias, under_sum)
        if watched and log_decay is None:
            options = (
                is_causal,
                scale,
                enable_gqa,
                activation,
                causal_alignment,
                path,
                window_size,
            )
            result = _transforms.attention(
                query,
                key,
                value,
                (attn_mask, bias, coefficients),
                options,
                norms=return_norms,
            )
        else:
            result = op(
                query,
                key,
                value,
                attn_mask,
                float(dropout_p),
                bool(is_causal),
                scale=scale,
                enable_gqa=bool(enable_gqa),
                activation=activation,
                coefficients=coefficients,
                causal_alignment=causal_alignment,
                path=path,
                bias=bias,
                window_size=window_size,
                log_decay=log_decay,
            )
    except RuntimeError:
        check_path("attention", path, causal_alignment)
        check_formula(activation)
        raise
    return (result[0], AttentionNorms(*result[1:])) if return_norms else result


def _is_watched(query: Tensor, dropout_p: float, *learned: Optional[Tensor]) -> bool:
    """Whether a compiler or a transform is to see one op: where the kernels do it,
    which under these have no gradient of what is `learned`."""
    if not _WATCHES or not _transforms.active():
        return False
    here = query.device.type == "cpu" and dropout_p == 0
    return here and not any(_transforms.wants_gradient(t) for t in learned)


def _check_tensors(**arguments: Any) -> None:
    for name, value in arguments.items():
        optional = () if name in ("query", "key", "value") else (_NoneType,)
        check_type("attention", name, value, Tensor, *optional)
        if value is not None and value.is_nested:
            raise TypeError(
                f"[attention] {name} is a nested tensor: polyattn.attention_varlen "
                "takes its values() and offsets()"
            )


def check_window(op: str, window_size: Any) -> WindowSize:
    # In words that a compiler follows.
    two = isinstance(window_size, (tuple, list)) and len(window_size) == 2
    left, right = window_size if two else (None, None)
    if not isinstance(left, int) or not isinstance(right, int):
        raise TypeError(
            f"[{op}] window_size is {window_size!r}, expected two integers: keys "
            "before a row's own position, and behind it"
        )
    for side, keys in (("left", left), ("right", right)):
        if keys < -1:
            raise ValueError(f"[{op}] window_size {side} {keys} < -1 (no limit)")
    return left, right


def check_path(op: str, path: str, causal_alignment: str) -> None:
    """After a failure: was it a wrong value rather than a wrong tensor?"""
    if path not in ("auto", "dense", "linear"):
        raise ValueError(
            f"[{op}] path is '{path}', expected 'auto', 'dense' or 'linear'"
        ) from None
    if causal_alignment not in ("upper_left", "lower_right"):
        raise ValueError(
            f"[{op}] causal_alignment is '{causal_alignment}', expected "
            "'upper_left' or 'lower_right'"
        ) from None


def check_formula(formula: str) -> str:
    """In canonical form; ValueError with a caret under the fault."""
    try:
        return torch.ops.polyattn.canonical_formula(formula)
    except RuntimeError as error:
        raise ValueError(str(error)) from None
