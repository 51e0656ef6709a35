"""Normalisation of the last dimension.

    layer  y = (x - mean(x)) / sqrt(var(x) + eps) * weight
    rms    y = x / sqrt(mean(x^2) + eps) * weight
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

KINDS = ("layer", "rms")


class Norm(torch.nn.Module):
    """Without bias, for q and k; torch 1.13 has neither form."""

    def __init__(
        self,
        dim: int,
        kind: str = "layer",
        eps: float = 1e-6,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"[Norm] kind is {kind!r}, expected one of {KINDS}")
        self.kind = kind
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(dim, device=device, dtype=dtype))

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, kind={self.kind!r}, eps={self.eps}"

    def forward(self, x: Tensor) -> Tensor:
        # The squares of half-precision numbers may not fit, so f32 at least.
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        weight = self.weight.to(wide.dtype)
        if self.kind == "layer":
            y = F.layer_norm(wide, weight.shape, weight, None, self.eps)
        else:
            mean_sq = wide.square().mean(dim=-1, keepdim=True)
            y = wide * torch.rsqrt(mean_sq + self.eps) * weight
        return y.to(x.dtype)
