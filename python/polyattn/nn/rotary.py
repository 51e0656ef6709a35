"""Rotary positions."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Rotary(NamedTuple):
    """Turns rows by angles that grow with their position.

    The pair (x_i, x_{i + R/2}) of the row at position p is turned by the angle
    p * base^(-2i/R), so that q . k depends on the distance of the two rows
    alone. R is `fraction` of the width, made even; the other columns stay.
    """

    base: float = 10000.0
    fraction: float = 1.0

    def check(self, head_dim: int) -> None:
        """ValueError if these are not rotations of rows of this width."""
        if not 1 < self.base < math.inf:
            raise ValueError(f"[Rotary] base {self.base} is not above 1")
        if not 0 < self.fraction <= 1:
            raise ValueError(f"[Rotary] fraction {self.fraction} is not in (0, 1]")
        if self._half(head_dim) < 1:
            raise ValueError(
                f"[Rotary] fraction {self.fraction} of head_dim {head_dim} leaves no "
                "pair to turn"
            )

    def rotate(self, x: Tensor, first: int = 0) -> Tensor:
        """x [..., N, D], whose first row has position `first`."""
        half = self._half(x.shape[-1])
        wide = torch.promote_types(x.dtype, torch.float32)
        angles = self._angles(first, x.shape[-2], half, x.device)
        cos, sin = angles.cos().to(wide), angles.sin().to(wide)
        a, b, rest = x.split([half, half, x.shape[-1] - 2 * half], dim=-1)
        a, b = a.to(wide), b.to(wide)
        turned = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
        return torch.cat([turned.to(x.dtype), rest], dim=-1)

    def _half(self, head_dim: int) -> int:
        return int(self.fraction * head_dim / 2)

    def _angles(
        self, first: int, rows: int, half: int, device: torch.device
    ) -> Tensor:
        """[N, R/2], in f64: an angle of a late position in f32 is a rough one."""
        column = torch.arange(half, dtype=torch.float64, device=device)
        position = torch.arange(
            first, first + rows, dtype=torch.float64, device=device
        )
        return position[:, None] * torch.pow(self.base, -column / half)
