"""Short convolution of each channel by itself."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

_OP = "ShortConv"


class ShortConv(torch.nn.Module):
    """Of rows [B, N, C]: causal, of a sequence, or 3 x 3, of the patches of a
    grid (height, width), line by line, before which there may be other rows, as
    a class token. weight is [C, 1, width] or [C, 1, 3, 3], and begins as the
    identity."""

    def __init__(
        self,
        channels: int,
        width: int,
        grid: Optional[Tuple[int, int]] = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if width < 1:
            raise ValueError(f"[{_OP}] width {width} < 1")
        if grid is not None and width != 3:
            raise ValueError(
                f"[{_OP}] width {width} is not 3, which it is on a grid"
            )
        self.grid = grid
        shape = (channels, 1, width) if grid is None else (channels, 1, 3, 3)
        self.weight = torch.nn.Parameter(
            torch.empty(shape, device=device, dtype=dtype)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The identity."""
        taps = self.weight.detach().flatten(1)
        taps.zero_()
        taps[:, -1 if self.grid is None else 4] = 1

    def extra_repr(self) -> str:
        grid = "" if self.grid is None else f", grid={self.grid}"
        return f"{self.weight.shape[0]}, width={self.weight.shape[2]}{grid}"

    def forward(self, rows: Tensor) -> Tensor:
        # Under autocast rows are narrower than the weight.
        x = rows.to(torch.promote_types(rows.dtype, torch.float32))
        taps = self.weight.to(x.dtype).flatten(1).t()
        y = self._causal(x, taps) if self.grid is None else self._on_grid(x, taps)
        return y.to(rows.dtype)

    def _causal(self, x: Tensor, taps: Tensor) -> Tensor:
        n = x.shape[1]
        padded = F.pad(x, (0, 0, len(taps) - 1, 0))
        return sum(padded[:, i : i + n] * tap for i, tap in enumerate(taps))

    def _on_grid(self, x: Tensor, taps: Tensor) -> Tensor:
        height, width = self.grid
        before = x.shape[1] - height * width
        if before < 0:
            raise ValueError(
                f"[{_OP}] {x.shape[1]} rows are fewer than the {height * width} "
                "patches of the grid"
            )
        padded = F.pad(x[:, before:].unflatten(1, (height, width)), (0, 0, 1, 1, 1, 1))
        y = sum(
            padded[:, i // 3 : i // 3 + height, i % 3 : i % 3 + width] * tap
            for i, tap in enumerate(taps)
        )
        return torch.cat([x[:, :before], y.flatten(1, 2)], dim=1)
