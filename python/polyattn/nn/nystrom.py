"""Attention by way of landmarks, of Nystromformer."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import functional
from .checks import check_rows
from .joint import JointAttention

_OP = "NystromAttention"
_TINY = torch.finfo(torch.float32).tiny


class NystromAttention(JointAttention):
    """Rows and keys meet by way of landmarks: [B, N, C] -> [B, N, C].

        F = f(q k~^T / sqrt(D)), A = f(q~ k~^T / sqrt(D)), B = f(q~ k^T / sqrt(D))
        y = out_proj(F Z B v + conv(v)),   Z about the pseudo-inverse of A

    where q~ and k~ are the means of N / landmarks consecutive rows. The twin of
    polyattn::nn::NystromAttention in C++: names, shapes and meaning of the
    parameters are the same; docs/models.md says what it does with masks and
    lengths. Beside in_proj_weight, in_proj_bias and out_proj.* there is
    conv_weight [H, 1, width, 1]. N of a formula is the number of landmarks in F
    and A, that of visible keys in B.

    >>> attention = polyattn.nn.NystromAttention(64, 4, landmarks=16)
    >>> attention(torch.randn(2, 100, 64)).shape
    torch.Size([2, 100, 64])

    Args:
        dim, heads, activation, projection_dropout: as CrossCovariance.
        dropout: of the weights F and B, in training.
        landmarks: how many.
        conv: the width of a convolution of v over the rows, odd; 0: none.
        inverse: "iterative" or "exact", by singular values.
        iterations: of "iterative".
        rcond: of "exact": smaller singular values, as a share of the largest,
            count as zero.
        scaling: the first divisor of "iterative": of each "matrix", or of the
            whole "batch", as published.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        landmarks: int = 64,
        conv: int = 35,
        inverse: str = "iterative",
        iterations: int = 6,
        rcond: float = 1e-3,
        scaling: str = "matrix",
        device: Any = None,
        dtype: Any = None,
        **attention: Any,
    ) -> None:
        place = {"device": device, "dtype": dtype}
        super().__init__(dim, heads, **place, **attention)
        self.landmarks, self.conv = landmarks, conv
        self.inverse, self.iterations, self.rcond = inverse, iterations, rcond
        self.scaling = scaling
        self._check()
        self.conv_weight = (
            torch.nn.Parameter(torch.empty(heads, 1, conv, 1, **place))
            if conv
            else None
        )
        self.reset_parameters()

    def _check(self) -> None:
        for name in ("landmarks", "iterations"):
            if getattr(self, name) < 1:
                raise ValueError(f"[{_OP}] {name} {getattr(self, name)} < 1")
        if self.conv < 0 or (self.conv and self.conv % 2 == 0):
            raise ValueError(f"[{_OP}] conv {self.conv} is neither 0 nor odd")
        if not 0 <= self.rcond < 1:
            raise ValueError(f"[{_OP}] rcond {self.rcond} is not in [0, 1)")
        choices = {"inverse": ("iterative", "exact"), "scaling": ("matrix", "batch")}
        for name, words in choices.items():
            if getattr(self, name) not in words:
                raise ValueError(
                    f"[{_OP}] {name} is {getattr(self, name)!r}, expected one of "
                    f"{words}"
                )

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.conv_weight is not None:
            bound = self.conv**-0.5
            torch.nn.init.uniform_(self.conv_weight, -bound, bound)

    def forward(self, x: Tensor, attn_mask: Optional[Tensor] = None) -> Tensor:
        """The mask is of keys: bool [B or 1, 1, 1, N], True where the row is no
        padding."""
        check_rows("x", x, self.dim, _OP)
        self._check_mask(x, attn_mask)
        n = x.shape[1]
        rows = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        if attn_mask is not None:
            rows = rows.masked_fill(~attn_mask.reshape(-1, n, 1), 0.0)
        more = -n % self.landmarks if n > self.landmarks else 0
        if more:
            if attn_mask is None:
                attn_mask = torch.ones(1, 1, 1, n, dtype=torch.bool, device=x.device)
            attn_mask = F.pad(attn_mask, (0, more), value=False)
        q, k, v = (
            F.pad(t, (0, 0, 0, more)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for t in rows.chunk(3, dim=-1)
        )
        if self._before_weights is not None:
            q = self._before_weights(q, k, attn_mask, False)
        y = self._attend(q, k, v, attn_mask, self._weight_dropout())
        if self.conv_weight is not None:
            y = y + self._convolved(v)
        return self._project_out(y[:, :, :n].transpose(1, 2).flatten(2))

    def _check_mask(self, x: Tensor, mask: Optional[Tensor]) -> None:
        if mask is None:
            return
        rest = (1, 1, x.shape[1])
        sizes = ((1, *rest), (x.shape[0], *rest))
        if mask.dtype != torch.bool or tuple(mask.shape) not in sizes:
            raise ValueError(
                f"[{_OP}] attn_mask is {mask.dtype} of shape {tuple(mask.shape)}, "
                f"expected bool {sizes[1]}, of keys: rows meet landmarks, not keys"
            )

    def _attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Optional[Tensor],
        dropout: float,
        **options: Any,
    ) -> Tensor:
        options.setdefault("activation", self.activation)
        if k.shape[-2] <= self.landmarks:
            return functional.attention(q, k, v, mask, dropout, **options)
        q_marks, k_marks, z = self._landmarks(q, k, options)
        seen = functional.attention(q_marks, k, v, mask, dropout, **options)
        with torch.autocast(q.device.type, enabled=False):
            seen = (z @ seen.to(z.dtype)).to(q.dtype)
        return functional.attention(q, k_marks, seen, None, dropout, **options)

    def _landmarks(
        self, q: Tensor, k: Tensor, options: Dict[str, Any]
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """Those of q and k, and Z, which is wide: an inverse of what has three
        digits has none."""
        with torch.autocast(q.device.type, enabled=False):
            wide = torch.promote_types(q.dtype, torch.float32)
            q_marks, k_marks = (
                t.to(wide).unflatten(-2, (self.landmarks, -1)).mean(-2) for t in (q, k)
            )
            one = torch.eye(self.landmarks, dtype=wide, device=q.device)
            one = one.expand(*q.shape[:2], -1, -1)
            a = functional.attention(q_marks, k_marks, one, **options)
            z = self._inverse(a)
        return q_marks.to(q.dtype), k_marks.to(q.dtype), z

    def _inverse(self, a: Tensor) -> Tensor:
        if self.inverse == "exact":
            return torch.linalg.pinv(a.double(), rtol=self.rcond).to(a.dtype)
        columns = a.abs().sum(-2).amax(-1)[..., None, None]
        rows = a.abs().sum(-1).amax(-1)[..., None, None]
        if self.scaling == "batch":
            columns, rows = columns.max(), rows.max()
        z = a.transpose(-2, -1) / (columns * rows).clamp_min(_TINY)
        one = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
        for _ in range(self.iterations):
            az = a @ z
            z = 0.25 * z @ (13 * one - az @ (15 * one - az @ (7 * one - az)))
        return z

    def _convolved(self, v: Tensor) -> Tensor:
        taps = self.conv_weight.to(v.dtype)
        return F.conv2d(v, taps, padding=(self.conv // 2, 0), groups=self.heads)

    def weight_norms(
        self, q: Tensor, k: Tensor, mask: Optional[Tensor], **options: Any
    ) -> Tensor:
        """||F Z B||_F [B, H], what match_start matches."""
        keys = torch.eye(k.shape[-2], dtype=q.dtype, device=q.device)
        keys = keys.expand(*k.shape[:2], -1, -1)
        return self._attend(q, k, keys, mask, 0.0, **options).norm(dim=(-2, -1))
