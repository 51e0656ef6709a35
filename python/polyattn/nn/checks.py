"""The checks of what the modules are made and called with."""

from __future__ import annotations

from typing import Optional, Tuple, Union

import torch
from torch import Tensor

from .norm import KINDS

_OP = "MultiheadAttention"


def check_sizes(dim: int, heads: int, kv_heads: int, head_dim: Optional[int]) -> None:
    """ValueError unless an Attention can have these."""
    sizes = {"dim": dim, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    for name, size in sizes.items():
        if size is not None and size < 1:
            raise ValueError(f"[Attention] {name} {size} < 1")
    if heads % kv_heads != 0:
        raise ValueError(
            f"[Attention] heads {heads} is not a multiple of kv_heads {kv_heads}"
        )
    if head_dim is None and dim % heads != 0:
        raise ValueError(
            f"[Attention] dim {dim} is not a multiple of heads {heads}: give head_dim"
        )


def check_equal_heads(op: str, dim: int, heads: int) -> None:
    """ValueError unless so many heads share the width among them."""
    for name, size in (("dim", dim), ("heads", heads)):
        if size < 1:
            raise ValueError(f"[{op}] {name} {size} < 1")
    if dim % heads != 0:
        raise ValueError(f"[{op}] dim {dim} is not a multiple of heads {heads}")


def check_norms(qk_norm: Optional[str], output_norm: Optional[str]) -> None:
    """ValueError unless these are kinds of norms, or None."""
    if qk_norm is not None and qk_norm not in KINDS:
        raise ValueError(
            f"[Attention] qk_norm is {qk_norm!r}, expected None or one of {KINDS}"
        )
    if output_norm not in (None, "rms"):
        raise ValueError(
            f"[Attention] output_norm is {output_norm!r}, expected None or 'rms'"
        )


def check_short_conv(
    width: int, grid: Optional[Tuple[int, int]], causal: bool
) -> None:
    """ValueError unless an Attention can have a short convolution like this."""
    if width < 0:
        raise ValueError(f"[Attention] short_conv {width} < 0")
    if width > 0 and grid is not None and (width != 3 or causal):
        raise ValueError(
            "[Attention] a short_conv on a grid is 3 wide and not causal, not "
            f"{width} wide{' and causal' if causal else ''}"
        )


def check_window(window: int) -> None:
    """ValueError unless it is a number of rows, or 0."""
    if window < 0:
        raise ValueError(f"[Attention] window {window} < 0")


def coefficient_kind(learned: Union[bool, str]) -> Optional[str]:
    """None, "shared" or "head"; ValueError for anything else."""
    if learned is True:
        return "shared"
    if learned is False:
        return None
    if learned not in ("shared", "head"):
        raise ValueError(
            f"[Attention] learned_coefficients is {learned!r}, expected False, True, "
            "'shared' or 'head'"
        )
    return learned


def check_rows(name: str, x: Tensor, dim: int, op: str = "Attention") -> None:
    """ValueError unless these are rows for an attention of this width."""
    if x.dim() != 3 or x.shape[-1] != dim:
        raise ValueError(
            f"[{op}] {name} has shape {tuple(x.shape)}, expected [B, N, {dim}]"
        )


def check_context(**options: bool) -> None:
    """ValueError for what has no meaning between two sequences."""
    for name, on in options.items():
        if on:
            raise ValueError(
                f"[Attention] a context is a second sequence: {name} has no meaning "
                "there"
            )


def check_inputs(
    module: torch.nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor
) -> None:
    """ValueError unless the three go with the module and with each other."""
    widths = (module.embed_dim, module.kdim, module.vdim)
    for name, x, width in zip(("query", "key", "value"), (query, key, value), widths):
        _check_input(name, x, width, query.dim())
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(
            f"[{_OP}] value has shape {tuple(value.shape)}, which does not go with "
            f"{tuple(key.shape)} of key"
        )
    batch = 0 if module.batch_first else 1
    if query.dim() == 3 and query.shape[batch] != key.shape[batch]:
        raise ValueError(
            f"[{_OP}] key batch {key.shape[batch]} != query batch {query.shape[batch]}"
        )


def _check_input(name: str, x: Tensor, width: int, dimensions: int) -> None:
    if x.is_nested:
        raise ValueError(
            f"[{_OP}] {name} is a nested tensor, expected a dense one "
            "(TransformerEncoder makes them unless enable_nested_tensor=False)"
        )
    if dimensions not in (2, 3):
        raise ValueError(
            f"[{_OP}] query has {dimensions} dimensions, expected 3, or 2 without "
            "a batch"
        )
    if x.dim() != dimensions:
        raise ValueError(
            f"[{_OP}] {name} has {x.dim()} dimensions != {dimensions} of query"
        )
    if x.shape[-1] != width:
        raise ValueError(f"[{_OP}] {name} width {x.shape[-1]} != {width} of the module")


def check_decay(
    kind: Optional[str],
    *,
    causal: bool,
    polynomial: bool,
    formula: str,
    center_values: bool,
    dropout: float,
) -> None:
    if kind not in (None, "none", "head", "gate"):
        raise ValueError(
            f"[Attention] decay is {kind!r}, expected None, 'head' or 'gate'"
        )
    if kind in (None, "none"):
        return
    if not causal:
        raise ValueError(f"[Attention] decay {kind!r} needs causal=True")
    if not polynomial:
        raise ValueError(f"[Attention] decay is for polynomials, not for {formula}")
    if center_values:
        raise ValueError(f"[Attention] decay {kind!r} together with center_values")
    if dropout > 0:
        raise ValueError(f"[Attention] decay {kind!r} together with dropout {dropout}")
