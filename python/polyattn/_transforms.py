"""Attention under torch.compile, torch.export and torch.func (torch 2.5 and later).

Calls go to one op forward and one backward that take the arguments as they are
(src/torch/opaque.cc). Here torch learns what it has to know of them: the shapes of
what they return, without numbers, so that lengths may be symbols; the derivative;
and what an added batch dimension means.
"""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

# What follows the tensors in both ops.
Options = Tuple[bool, Optional[float], bool, str, str, str, Tuple[int, int]]


def supported() -> bool:
    """Whether this torch takes rules from Python."""
    return hasattr(torch.library, "register_vmap")


def active() -> bool:
    """Whether a compiler or a transform looks at the calls."""
    if torch.compiler.is_compiling():
        return True
    return torch._C._are_functorch_transforms_active()


def wants_gradient(t: Optional[Tensor]) -> bool:
    """Whether anybody wants one: under vmap, what is batched hides who does."""
    if t is None:
        return False
    if torch.compiler.is_compiling():
        return t.requires_grad
    functorch = torch._C._functorch
    while not t.requires_grad:
        if not functorch.is_functorch_wrapped_tensor(t):
            return False
        t = functorch.get_unwrapped(t)
    return True


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    extras: Tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]],
    options: Options,
    *,
    norms: bool = False,
    cu_seqlens: Tuple[Optional[Tensor], Optional[Tensor]] = (None, None),
) -> Any:
    """The output; with `norms` also the four tensors of AttentionNorms.

    The extras are mask, bias and coefficients."""
    # The rules that ops take are not for torch.func, which wants a Function; a
    # compiler sees through the ops alone.
    compiling = torch.compiler.is_compiling()
    forward = torch.ops.polyattn._opaque_forward if compiling else _Forward.apply
    output, _, found = forward(
        query, key, value, *extras, *cu_seqlens, *options, norms
    )
    if not norms:
        return output
    weight, jacobian, score, bad = found.unbind(-1)
    # As the op with norms has it: rounding may leave a square below zero.
    return output, weight.sqrt(), jacobian.clamp_min(0).sqrt(), score, bad.long()


# Shapes.


def _rows_outside(like: Tensor, sizes: Sequence[Any], **options: Any) -> Tensor:
    """New, laid out as the ops do it: [..., N, H, D] in memory."""
    sizes = list(sizes)
    if len(sizes) < 3:
        return like.new_empty(sizes, **options)
    sizes[-3], sizes[-2] = sizes[-2], sizes[-3]
    return like.new_empty(sizes, **options).transpose(-3, -2)


def _leading(query: Tensor, key: Tensor, value: Tensor, gqa: bool) -> List[Any]:
    """Sizes of the output before N and E."""
    tensors = (query, key, value)
    batch = torch.broadcast_shapes(*(t.shape[:-3] for t in tensors))
    if max(t.dim() for t in tensors) < 3:
        return []
    if gqa:
        return [*batch, query.shape[-3]]
    heads = [t.shape[-3:-2] for t in tensors if t.dim() >= 3]
    return [*batch, *torch.broadcast_shapes(*heads)]


def _forward_shapes(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor],
    bias: Optional[Tensor],
    coefficients: Optional[Tensor],
    cu_seqlens_q: Optional[Tensor],
    cu_seqlens_k: Optional[Tensor],
    is_causal: bool,
    scale: Optional[float],
    enable_gqa: bool,
    activation: str,
    causal_alignment: str,
    path: str,
    window_size: Sequence[int],
    norms: bool,
) -> Tuple[Tensor, Tensor, Tensor]:
    double = {"dtype": torch.float64}
    if cu_seqlens_q is not None:
        total, heads = query.shape[0], query.shape[1]
        output = query.new_empty([total, heads, value.shape[-1]])
        rows = query.new_empty([1, heads, total, 2], **double)
        return output, rows, query.new_empty([0], **double)
    leading = _leading(query, key, value, enable_gqa)
    n, e = query.shape[-2], value.shape[-1]
    output = _rows_outside(query, [*leading, n, e])
    heads = leading[-1] if leading else 1
    rows = query.new_empty([math.prod(leading[:-1]), heads, n, 2], **double)
    return output, rows, query.new_empty([*leading, 4] if norms else [0], **double)


def _backward_shapes(
    d_output: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor],
    bias: Optional[Tensor],
    coefficients: Optional[Tensor],
    cu_seqlens_q: Optional[Tensor],
    cu_seqlens_k: Optional[Tensor],
    output: Tensor,
    rows: Tensor,
    is_causal: bool,
    scale: Optional[float],
    enable_gqa: bool,
    activation: str,
    causal_alignment: str,
    path: str,
    window_size: Sequence[int],
    wanted: Sequence[bool],
) -> Tuple[Tensor, ...]:
    def like(i: int, t: Tensor) -> Tensor:
        if not wanted[i]:
            return query.new_empty([0])
        if cu_seqlens_q is not None:
            return t.new_empty(t.shape)
        return _rows_outside(t, t.shape)

    found = [like(i, t) for i, t in enumerate((query, key, value))]
    if wanted[3] and coefficients is not None:
        return (*found, torch.empty_like(coefficients))
    return (*found, query.new_empty([0]))


# Derivatives.

_TENSORS = 8  # query to cu_seqlens_k
_GRADIENTS = (0, 1, 2, 5)  # of these: query, key, value, coefficients


def _save_forward(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Any, ...]) -> None:
    ctx.save_for_backward(*inputs[:_TENSORS], *output[:2])
    ctx.options = inputs[_TENSORS:-1]
    ctx.mark_non_differentiable(*output[1:])


def _differentiate_forward(ctx: Any, d_output: Optional[Tensor], *_: Any) -> Any:
    result: List[Optional[Tensor]] = [None] * (_TENSORS + len(ctx.options) + 1)
    if d_output is None:
        return tuple(result)
    *tensors, output, rows = ctx.saved_tensors
    wanted = [ctx.needs_input_grad[i] for i in _GRADIENTS]
    compiling = torch.compiler.is_compiling()
    backward = torch.ops.polyattn._opaque_backward if compiling else _Backward.apply
    found = backward(d_output, *tensors, output, rows, *ctx.options, wanted)
    for place, wants, gradient in zip(_GRADIENTS, wanted, found):
        if wants:
            result[place] = gradient
    return tuple(result)


def _save_backward(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[: _TENSORS + 1])
    ctx.options, ctx.wanted = inputs[_TENSORS + 3 : -1], inputs[-1]
    ctx.count = len(inputs)


def _differentiate_backward(ctx: Any, *outer: Optional[Tensor]) -> Any:
    """By the definition in torch ops, which has derivatives of every order."""
    d_output, *tensors = ctx.saved_tensors
    query, key, value, mask, bias, coefficients, cu_seqlens_q, _ = tensors
    if cu_seqlens_q is not None:
        raise NotImplementedError(
            "[attention_varlen] no second derivative under torch.compile or torch.func"
        )
    causal, scale, gqa, activation, alignment, _, window_size = ctx.options

    def definition(*by: Tensor) -> Tensor:
        c = by[3] if len(by) > 3 else None
        return torch.ops.polyattn._composed_attention(
            *by[:3],
            mask,
            0.0,
            causal,
            scale=scale,
            enable_gqa=gqa,
            activation=activation,
            coefficients=c,
            causal_alignment=alignment,
            path="dense",
            bias=bias,
            window_size=window_size,
        )

    by = [query, key, value] + ([] if coefficients is None else [coefficients])

    def first(d: Tensor, *by: Tensor) -> Tuple[Tensor, ...]:
        return torch.func.vjp(definition, *by)[1](d)

    cotangents = [
        o if wants and o is not None else torch.zeros_like(t)
        for wants, o, t in zip(ctx.wanted, outer, by)
    ]
    _, pull = torch.func.vjp(first, d_output, *by)
    found = pull(tuple(cotangents))
    result: List[Optional[Tensor]] = [None] * ctx.count
    result[0] = found[0]
    for place, gradient in zip(_GRADIENTS, found[1:]):
        result[place + 1] = gradient
    return tuple(result)


class _Forward(torch.autograd.Function):
    generate_vmap_rule = True
    setup_context = staticmethod(_save_forward)
    backward = staticmethod(_differentiate_forward)

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return torch.ops.polyattn._opaque_forward(*arguments)


class _Backward(torch.autograd.Function):
    generate_vmap_rule = True
    setup_context = staticmethod(_save_backward)
    backward = staticmethod(_differentiate_backward)

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return torch.ops.polyattn._opaque_backward(*arguments)


def register() -> None:
    """Once, when the ops are there."""
    from . import _vmap

    library = torch.library
    forward, backward = "polyattn::_opaque_forward", "polyattn::_opaque_backward"
    library.register_fake(forward, _forward_shapes)
    library.register_fake(backward, _backward_shapes)
    library.register_autograd(
        forward, _differentiate_forward, setup_context=_save_forward
    )
    library.register_autograd(
        backward, _differentiate_backward, setup_context=_save_backward
    )
    library.register_vmap(forward, _vmap.forward)
    library.register_vmap(backward, _vmap.backward)
