"""What torch.vmap's added dimension means for the ops of _transforms.py.

The ops take any number of leading dimensions, so the added one becomes the first of
them.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

_TENSORS = 8  # query, key, value, attn_mask, bias, coefficients, the two offsets


def _check(dims: Tuple[Optional[int], ...], tensors: Tuple[Any, ...]) -> None:
    if any(t is not None for t in tensors[6:]):
        raise NotImplementedError(
            "[attention_varlen] no vmap over a packed batch: it is one already"
        )
    if dims[5] is not None:
        raise NotImplementedError(
            "[attention] no vmap over coefficients: give one set for each head"
        )


def _rank(dims: Tuple[Optional[int], ...], tensors: Tuple[Any, ...]) -> int:
    """Dimensions that query, key and value have in common, the added one left out."""
    ranks = [t.dim() - (d is not None) for t, d in zip(tensors[:3], dims[:3])]
    return max(3, *ranks)


def _front(t: Optional[Tensor], dim: Optional[int], rank: int) -> Optional[Tensor]:
    """[added or 1, 1 ..., the dimensions of t], rank + 1 in all."""
    if t is None:
        return None
    moved = t.unsqueeze(0) if dim is None else t.movedim(dim, 0)
    missing = rank + 1 - moved.dim()
    return moved.reshape(moved.shape[0], *[1] * missing, *moved.shape[1:])


def _folded(
    size: int, dims: Tuple[Optional[int], ...], tensors: Tuple[Any, ...]
) -> Tuple[List[Optional[Tensor]], int]:
    _check(dims, tensors)
    rank = _rank(dims, tensors)
    moved = [_front(t, d, rank) for t, d in zip(tensors[:5], dims[:5])]
    # At least one of them carries the added dimension to the output.
    query = moved[0]
    assert query is not None
    moved[0] = query.expand(size, *query.shape[1:])
    return [*moved, *tensors[5:]], rank


def forward(info: Any, dims: Tuple[Any, ...], *arguments: Any) -> Tuple[Any, Any]:
    tensors, options = arguments[:_TENSORS], arguments[_TENSORS:]
    size = info.batch_size
    folded, rank = _folded(size, dims, tensors)
    output, rows, norms = torch.ops.polyattn._opaque_forward(*folded, *options)
    own = max(t.dim() - (d is not None) for t, d in zip(tensors[:3], dims[:3]))
    output = output.reshape(size, *output.shape[rank + 1 - own :])
    rows = rows.unflatten(0, (size, rows.shape[0] // max(size, 1)))
    if not options[-1]:  # no norms were asked for
        return (output, rows, norms), (0, 0, None)
    heads = norms.reshape(size, *norms.shape[rank + 1 - max(own, 2) :])
    return (output, rows, heads), (0, 0, 0)


def backward(info: Any, dims: Tuple[Any, ...], *arguments: Any) -> Tuple[Any, Any]:
    d_output, *rest = arguments
    tensors, (output, rows) = tuple(rest[:_TENSORS]), rest[_TENSORS : _TENSORS + 2]
    options, wanted = rest[_TENSORS + 2 : -1], rest[-1]
    size, own_dims = info.batch_size, dims[1 : _TENSORS + 1]
    if wanted[3]:
        raise NotImplementedError(
            "[attention] no vmap over the gradient of coefficients"
        )
    folded, rank = _folded(size, own_dims, tensors)

    def added(t: Tensor, dim: Optional[int]) -> Tensor:
        moved = t.unsqueeze(0) if dim is None else t.movedim(dim, 0)
        return moved.expand(size, *moved.shape[1:])

    # Each member has a gradient of its own, also by what they share.
    for i in range(3):
        t = folded[i]
        assert t is not None
        folded[i] = t.expand(size, *t.shape[1:])
    rows = added(rows, dims[_TENSORS + 2])
    found = torch.ops.polyattn._opaque_backward(
        _front(added(d_output, dims[0]), 0, rank),
        *folded,
        _front(added(output, dims[_TENSORS + 1]), 0, rank),
        rows.flatten(0, 1),
        *options,
        wanted,
    )
    result, places = [], []
    for i in range(3):
        own = tensors[i].dim() - (own_dims[i] is not None)
        gradient = found[i]
        if wanted[i]:
            gradient = gradient.reshape(size, *gradient.shape[rank + 1 - own :])
        result.append(gradient)
        places.append(0 if wanted[i] else None)
    return (*result, found[3]), (*places, None)
