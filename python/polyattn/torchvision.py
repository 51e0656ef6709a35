"""The windowed attention of torchvision's Swin transformers with any activation.

replace_softmax imports this when it meets one; it needs torchvision.
"""

from __future__ import annotations

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision.models import swin_transformer

from .nn.windows import WindowedAttention, Windows


class ShiftedWindowAttention(
    WindowedAttention, swin_transformer.ShiftedWindowAttention
):
    """torchvision's module of this name with a formula in the place of softmax.

    Parameters and state dict are torchvision's. A row sees the keys of its
    window, under the shift those of its own region alone: N of a formula is
    their number.
    """

    @property
    def head_dim(self) -> int:
        return self.qkv.out_features // (3 * self.num_heads)

    # Under the names of the other attentions, for match_start.
    @property
    def in_proj_weight(self) -> Tensor:
        return self.qkv.weight

    @property
    def in_proj_bias(self) -> Optional[Tensor]:
        return self.qkv.bias

    def extra_repr(self) -> str:
        return f"heads={self.num_heads}, activation={self.activation!r}"

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, W, C] -> [B, H, W, C]."""
        windows = Windows(x, self.window_size, self.shift_size)
        dropout = self.attention_dropout if self.training else 0.0
        mask = windows.mask(x.device)
        y = self._attend(windows.split(x), mask, self._bias(), dropout)
        return windows.join(F.dropout(self.proj(y), self.dropout, self.training))

    def _bias(self) -> Tensor:
        """[1, H, N, N]."""
        return self.get_relative_position_bias()


if hasattr(swin_transformer, "ShiftedWindowAttentionV2"):  # torchvision 0.14

    class ShiftedWindowAttentionV2(
        ShiftedWindowAttention, swin_transformer.ShiftedWindowAttentionV2
    ):
        """The same for Swin v2: cosine scores, and a bias that is computed.

        That bias lies in 0 .. 16 and begins near 8. softmax does not see what all
        scores have in common, any other formula does: for it 8 is subtracted.
        """

        def _bias(self) -> Tensor:
            bias = self.get_relative_position_bias()
            return bias if self.activation == "softmax" else bias - 8


def adopt(module: torch.nn.Module, formula: str) -> None:
    """Makes an attention of torchvision one of ours; it stays the same object."""
    module.__class__ = globals()[type(module).__name__]
    module.activation = formula  # type: ignore[assignment]
