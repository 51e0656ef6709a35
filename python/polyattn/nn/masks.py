"""The masks of torch.nn.MultiheadAttention as those of attention."""

from __future__ import annotations

from typing import Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

_OP = "MultiheadAttention"


def visibility(
    *,
    attn_mask: Optional[Tensor],
    key_padding_mask: Optional[Tensor],
    is_causal: bool,
    scores: Tuple[int, int, int, int],
    appended: int,
    like: Tensor,
) -> Tuple[Optional[Tensor], bool]:
    """attn_mask and is_causal for polyattn.attention.

    `scores` is [B, H, N, M] without the `appended` keys, which come last and
    are seen by all. The two kinds of mask are opposites: there a bool that is
    True hides the key, here it shows it.
    """
    causal = is_causal and attn_mask is None
    if causal and appended > 0:
        hidden = torch.ones(scores[2:], dtype=torch.bool, device=like.device)
        attn_mask, causal = hidden.triu(1), False
    hiding = []
    if attn_mask is not None:
        hiding.append(_attn_mask(attn_mask, scores))
    if key_padding_mask is not None:
        hiding.append(_key_padding_mask(key_padding_mask, scores))
    if not hiding:
        return None, causal
    mask = _combine(hiding, like)
    if appended > 0:
        mask = F.pad(mask, (0, appended))
    return (~mask if mask.dtype == torch.bool else mask), causal


def _attn_mask(mask: Tensor, scores: Tuple[int, int, int, int]) -> Tensor:
    b, h, n, m = scores
    if mask.dtype == torch.uint8:
        mask = mask.bool()
    _check_dtype("attn_mask", mask)
    if mask.shape not in ((n, m), (b * h, n, m)):
        raise ValueError(
            f"[{_OP}] attn_mask has shape {tuple(mask.shape)}, expected "
            f"{(n, m)} or {(b * h, n, m)}"
        )
    return mask.reshape(b, h, n, m) if mask.dim() == 3 else mask.expand(1, 1, n, m)


def _key_padding_mask(mask: Tensor, scores: Tuple[int, int, int, int]) -> Tensor:
    b, _, _, m = scores
    _check_dtype("key_padding_mask", mask)
    if mask.shape != (b, m) and not (b == 1 and mask.shape == (m,)):
        raise ValueError(
            f"[{_OP}] key_padding_mask has shape {tuple(mask.shape)}, expected "
            f"{(b, m)}"
        )
    return mask.reshape(b, 1, 1, m)


def _check_dtype(name: str, mask: Tensor) -> None:
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise TypeError(f"[{_OP}] {name} is {mask.dtype}, expected bool or float")


def _combine(masks: list[Tensor], like: Tensor) -> Tensor:
    """Any bool that is True hides; floats add up, and then True is -inf."""
    if any(mask.is_floating_point() for mask in masks):
        masks = [_as_bias(mask, like) for mask in masks]
        return masks[0] if len(masks) == 1 else masks[0] + masks[1]
    return masks[0] if len(masks) == 1 else masks[0] | masks[1]


def _as_bias(mask: Tensor, like: Tensor) -> Tensor:
    if mask.is_floating_point():
        return mask.to(like.dtype)
    zeros = torch.zeros(mask.shape, dtype=like.dtype, device=like.device)
    return zeros.masked_fill(mask, float("-inf"))
