"""XCiT: patches by convolutions, Fourier positions, blocks in which channels attend
to channels, then a class token with blocks of its own, norm, head."""

from __future__ import annotations

import math
from typing import Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .block import LayerNorm, check_drop_path
from .embedding import ClassToken, initialise_vit
from .image import ImageModel, check_shape
from .xca_block import ClassBlock, XcaBlock

_OP = "XCiT"
_FREQUENCIES = 16  # of each axis
_NORM_EPS = 1e-6


class ConvPatchEmbedding(torch.nn.Module):
    """[B, channels, height, width] -> [B, N, dim], by convolutions of 3 x 3 with
    stride 2, each with a BatchNorm, and gelu between them."""

    def __init__(self, channels: int, dim: int, patch_size: int) -> None:
        super().__init__()
        steps = int(math.log2(patch_size))
        widths = [channels] + [dim >> i for i in reversed(range(steps))]
        self.convs = torch.nn.ModuleList(
            torch.nn.Conv2d(into, out, 3, stride=2, padding=1, bias=False)
            for into, out in zip(widths, widths[1:])
        )
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(w) for w in widths[1:])

    def forward(self, images: Tensor) -> Tensor:
        x = images
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            x = norm(conv(x if i == 0 else F.gelu(x)))
        return x.flatten(2).transpose(1, 2)


class FourierPositions(torch.nn.Module):
    """Adds to each patch of a grid (height, width) a projection of sines and cosines
    of where it lies."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.projection = torch.nn.Conv2d(4 * _FREQUENCIES, dim, 1)

    def forward(self, x: Tensor, grid: Tuple[int, int]) -> Tensor:
        height, width = grid
        down = _waves(height, x.device).t()[:, :, None].expand(-1, -1, width)
        across = _waves(width, x.device).t()[:, None].expand(-1, height, -1)
        waves = torch.cat([down, across])[None].to(self.projection.weight)
        return x + self.projection(waves).flatten(2).transpose(1, 2)


def _waves(places: int, device: torch.device) -> Tensor:
    """sin, cos, sin, ... of the places of an axis, f64 [places, 32]."""
    options = dict(dtype=torch.float64, device=device)
    at = torch.arange(1, places + 1, **options) / (places + 1e-6) * (2 * math.pi)
    periods = 10000 ** (torch.arange(_FREQUENCIES, **options) / _FREQUENCIES)
    angles = at[:, None] / periods
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


class XCiT(ImageModel):
    """Images [B, channels, height, width] -> logits [B, classes].

    The twin of polyattn::models::XCiT in C++: names, shapes and meaning of the
    parameters and buffers are the same. Images may have any size that the patches
    divide. N of a formula is the number of channels of a head, in the class blocks
    that of the patches and the class token.

    >>> model = polyattn.models.XCiT(
    ...     32, 2, 4, patch_size=4, channels=1, classes=10,
    ...     activation="x^3/sqrt(N)", mean=[0.286], std=[0.353],
    ... ).eval()
    >>> images = torch.randint(256, (8, 1, 28, 28), dtype=torch.uint8)
    >>> model(model.preprocess(images)).shape
    torch.Size([8, 10])

    Args:
        dim, depth, heads: width of the rows, blocks, heads of each.
        class_depth: blocks of the class token.
        tokens_norm: whether these normalise all rows before their mlp.
        patch_size: a power of 2 above 1, half of which divides dim.
        mlp: hidden width; default 4 C.
        activation: a formula, as polyattn.attention takes.
        layer_scale: the first value of the layer scales.
        dropout: of the embedded patches, after attention and in the mlp.
        attention_dropout: of the attention weights.
        drop_path: of every block but those of the class token.
        mean, std: of each channel, of pixels from 0 to 1, for `preprocess`.
    """

    def __init__(
        self,
        dim: int,
        depth: int,
        heads: int,
        *,
        class_depth: int = 2,
        tokens_norm: bool = True,
        patch_size: int = 16,
        channels: int = 3,
        classes: int = 1000,
        mlp: Optional[int] = None,
        activation: str = "softmax",
        layer_scale: float = 1.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        drop_path: float = 0.0,
        mean: Optional[Sequence[float]] = None,
        std: Optional[Sequence[float]] = None,
    ) -> None:
        super().__init__(channels, mean, std)
        _check_sizes(dim, depth, class_depth, patch_size)
        check_drop_path(drop_path)
        self.patch_size, self.dropout = patch_size, dropout
        block = dict(
            mlp=4 * dim if mlp is None else mlp,
            norm_eps=_NORM_EPS,
            layer_scale=layer_scale,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation=activation,
        )
        self.patches = ConvPatchEmbedding(channels, dim, patch_size)
        self.positions = FourierPositions(dim)
        self.blocks = torch.nn.ModuleList(
            XcaBlock(dim, heads, drop_path=drop_path, **block) for _ in range(depth)
        )
        self.class_token = ClassToken(dim, alone=True)
        self.class_blocks = torch.nn.ModuleList(
            ClassBlock(dim, heads, tokens_norm=tokens_norm, **block)
            for _ in range(class_depth)
        )
        self.norm = LayerNorm(dim, _NORM_EPS)
        self.head = torch.nn.Linear(dim, classes)
        initialise_vit(self)

    def features(self, images: Tensor) -> Tensor:
        """The row that the head reads, [B, dim]."""
        self._check(images)
        height, width = (size // self.patch_size for size in images.shape[2:])
        grid = (height, width)
        x = self.positions(self.patches(images), grid)
        x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x, grid)
        x = self.class_token(x)
        for block in self.class_blocks:
            x = block(x)
        return self.norm(x[:, 0])

    def forward(self, images: Tensor) -> Tensor:
        """Of images that went through `preprocess`, or were normalised alike."""
        return self.head(self.features(images))

    def _check(self, images: Tensor) -> None:
        check_shape(_OP, images, self.channels)
        height, width = images.shape[2:]
        if height % self.patch_size or width % self.patch_size:
            raise ValueError(
                f"[{_OP}] images of {height} x {width} pixels are no multiple of "
                f"patch_size {self.patch_size}"
            )


def _check_sizes(dim: int, depth: int, class_depth: int, patch_size: int) -> None:
    for name, count in (("depth", depth), ("class_depth", class_depth)):
        if count < 1:
            raise ValueError(f"[{_OP}] {name} {count} < 1")
    if patch_size < 2 or patch_size & (patch_size - 1):
        raise ValueError(f"[{_OP}] patch_size {patch_size} is no power of 2 above 1")
    if dim < 1 or 2 * dim % patch_size:
        raise ValueError(
            f"[{_OP}] dim {dim} is no positive multiple of {patch_size // 2}, half of "
            "patch_size"
        )
