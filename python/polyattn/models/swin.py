"""Swin, versions 1 and 2: stages of blocks that attend within windows."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ..nn import WindowAttention
from .block import LayerNorm, LayerScale, Mlp, drop_path, drop_path_rates
from .embedding import PatchEmbedding, initialise_vit
from .image import ImageModel, check_shape

_OP = "Swin"


class SwinBlock(torch.nn.Module):
    """[B, height, width, C] -> the same, normalised before each branch, or with
    post_norm at its end. The others: as polyattn.nn.WindowAttention takes."""

    def __init__(
        self,
        dim: int,
        heads: int,
        window: int,
        *,
        mlp: int,
        post_norm: bool,
        layer_scale: Optional[float],
        drop_path: float,
        dropout: float,
        attention_dropout: float,
        **attention: Any,
    ) -> None:
        super().__init__()
        self.post_norm, self.drop_path = post_norm, drop_path
        self.norm1 = LayerNorm(dim)
        self.attention = WindowAttention(
            dim,
            heads,
            window,
            dropout=attention_dropout,
            projection_dropout=dropout,
            **attention,
        )
        self.norm2 = LayerNorm(dim)
        self.mlp = Mlp(dim, mlp, "none", dropout)
        for name in ("layer_scale1", "layer_scale2"):
            scale = None if layer_scale is None else LayerScale(dim, layer_scale)
            self.add_module(name, scale)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self._branch(self.attention, self.norm1, self.layer_scale1, x)
        return x + self._branch(self.mlp, self.norm2, self.layer_scale2, x)

    def _branch(
        self,
        branch: torch.nn.Module,
        norm: torch.nn.Module,
        scale: Optional[torch.nn.Module],
        x: Tensor,
    ) -> Tensor:
        y = norm(branch(x)) if self.post_norm else branch(norm(x))
        y = y if scale is None else scale(y)
        return drop_path(y, self.drop_path, self.training)


class PatchMerging(torch.nn.Module):
    """Two by two tokens become one: [B, height, width, C] ->
    [B, ceil(height / 2), ceil(width / 2), 2 C]; zeros fill up what is odd."""

    def __init__(self, dim: int, post_norm: bool) -> None:
        super().__init__()
        self.post_norm = post_norm
        self.reduction = torch.nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = LayerNorm(2 * dim if post_norm else 4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        """Of the four the columns go slowest: (0, 0), (1, 0), (0, 1), (1, 1)."""
        x = F.pad(x, (0, 0, 0, x.shape[2] % 2, 0, x.shape[1] % 2))
        x = x.unflatten(2, (-1, 2)).unflatten(1, (-1, 2))
        x = x.permute(0, 1, 3, 4, 2, 5).flatten(3)
        if self.post_norm:
            return self.norm(self.reduction(x))
        return self.reduction(self.norm(x))


class Swin(ImageModel):
    """Images [B, channels, height, width] -> logits [B, classes].

    The twin of polyattn::models::Swin in C++: names, shapes and meaning of the
    parameters are the same. Images may have any size from one window on; pixels
    that do not fill a patch are left out.

    >>> model = polyattn.models.Swin(
    ...     16, [2, 2], [2, 4], window=4, patch_size=2, channels=1, classes=10,
    ...     activation="x^3/sqrt(N)", mean=[0.286], std=[0.353],
    ... )
    >>> images = torch.randint(256, (8, 1, 28, 28), dtype=torch.uint8)
    >>> model(model.preprocess(images)).shape
    torch.Size([8, 10])

    Args:
        dim: width of the first stage; each has twice that of the one before.
        depths, heads: blocks of each stage, and heads of these.
        version: 1, or 2: cosine scores, a bias of the scores that an mlp computes,
            and norms at the ends of the branches.
        window: its side, in tokens.
        mlp_ratio: the width of the mlp, as a multiple of that of the stage.
        activation: a formula, as polyattn.attention takes.
        dropout: of the embedded patches, after attention and in the mlp.
        attention_dropout: of the attention weights.
        layer_scale: the first value of the layer scales, last of each branch; None:
            there are none.
        drop_path: of the last block; it grows linearly from 0 at the first.
        mean, std: of each channel, of pixels from 0 to 1, for `preprocess`.
    """

    def __init__(
        self,
        dim: int,
        depths: Sequence[int],
        heads: Sequence[int],
        *,
        version: int = 1,
        window: int = 7,
        patch_size: int = 4,
        channels: int = 3,
        classes: int = 1000,
        mlp_ratio: int = 4,
        activation: str = "softmax",
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        layer_scale: Optional[float] = None,
        drop_path: float = 0.0,
        mean: Optional[Sequence[float]] = None,
        std: Optional[Sequence[float]] = None,
    ) -> None:
        super().__init__(channels, mean, std)
        _check_stages(depths, heads, version)
        self.window, self.patch_size, self.dropout = window, patch_size, dropout
        second = version == 2
        self.patches = PatchEmbedding(channels, dim, patch_size)
        self.patch_norm = LayerNorm(dim)
        widths = [dim << s for s in range(len(depths))]
        rates = iter(drop_path_rates(sum(depths), drop_path))
        self.stages = torch.nn.ModuleList(
            torch.nn.ModuleList(
                SwinBlock(
                    width,
                    of_heads,
                    window,
                    shift=window // 2 if i % 2 else 0,
                    mlp=mlp_ratio * width,
                    post_norm=second,
                    cosine=second,
                    layer_scale=layer_scale,
                    drop_path=next(rates),
                    dropout=dropout,
                    attention_dropout=attention_dropout,
                    activation=activation,
                )
                for i in range(depth)
            )
            for width, depth, of_heads in zip(widths, depths, heads)
        )
        self.merging = torch.nn.ModuleList(
            PatchMerging(width, second) for width in widths[:-1]
        )
        self.norm = LayerNorm(widths[-1])
        self.head = torch.nn.Linear(widths[-1], classes)
        initialise_vit(self)

    def features(self, images: Tensor) -> Tensor:
        """What the head reads, the mean of the last map: [B, its width]."""
        self._check(images)
        height, width = (size // self.patch_size for size in images.shape[2:])
        x = self.patch_norm(self.patches(images)).unflatten(1, (height, width))
        x = F.dropout(x, self.dropout, self.training)
        for s, blocks in enumerate(self.stages):
            for block in blocks:
                x = block(x)
            if s < len(self.merging):
                x = self.merging[s](x)
        return self.norm(x).mean(dim=(1, 2))

    def forward(self, images: Tensor) -> Tensor:
        """Of images that went through `preprocess`, or were normalised alike."""
        return self.head(self.features(images))

    def _check(self, images: Tensor) -> None:
        check_shape(_OP, images, self.channels)
        height, width = images.shape[2:]
        least = self.window * self.patch_size
        if min(height, width) < least:
            raise ValueError(
                f"[{_OP}] images of {height} x {width} pixels are smaller than a "
                f"window, {least} x {least}"
            )


def _check_stages(depths: Sequence[int], heads: Sequence[int], version: int) -> None:
    if not depths or len(depths) != len(heads):
        raise ValueError(
            f"[{_OP}] depths of {len(depths)} stages, heads of {len(heads)}"
        )
    if min(depths) < 1:
        raise ValueError(f"[{_OP}] depth {min(depths)} < 1")
    if version not in (1, 2):
        raise ValueError(f"[{_OP}] version is {version!r}, expected 1 or 2")
