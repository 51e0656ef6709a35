"""Vision transformer: patches, class token, learned positions, blocks, norm, head."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .block import make_blocks, make_norm
from .embedding import ClassToken, PatchEmbedding, PositionEmbedding, initialise_vit
from .image import ImageModel, check_shape

_OP = "ViT"


class ViT(ImageModel):
    """Images [B, channels, image_size, image_size] -> logits [B, classes].

    The twin of polyattn::models::ViT in C++: names, shapes and meaning of the
    parameters are the same.

    >>> model = polyattn.models.ViT(
    ...     64, 2, 2, image_size=28, patch_size=4, channels=1, classes=10,
    ...     activation="x^3/sqrt(N)", mean=[0.286], std=[0.353],
    ... )
    >>> images = torch.randint(256, (8, 1, 28, 28), dtype=torch.uint8)
    >>> model(model.preprocess(images)).shape
    torch.Size([8, 10])

    Args:
        dim, depth, heads: width of the rows, blocks, heads of each.
        pooling: what the head reads: "class", the row of a class token, or
            "mean", of all rows; there is no class token then.
        distilled: a second token and a second head, which learn from a teacher
            (DeiT). The logits are the mean of both heads.
        dropout: of the embedded patches, after attention and in the mlp.
        drop_path: of the last block; it grows linearly from 0 at the first.
        mean, std: of each channel, of pixels from 0 to 1, for `preprocess`.
        block: mlp, norm, layer_scale, attention_dropout, and what
            polyattn.nn.Attention takes: activation, kv_heads, qk_norm,
            learned_scale, learned_coefficients, output_norm, output_gate,
            center_values, short_conv.
    """

    def __init__(
        self,
        dim: int,
        depth: int,
        heads: int,
        *,
        image_size: int = 224,
        patch_size: int = 16,
        channels: int = 3,
        classes: int = 1000,
        pooling: str = "class",
        distilled: bool = False,
        dropout: float = 0.0,
        drop_path: float = 0.0,
        mean: Optional[Sequence[float]] = None,
        std: Optional[Sequence[float]] = None,
        **block: Any,
    ) -> None:
        super().__init__(channels, mean, std)
        if pooling not in ("class", "mean"):
            raise ValueError(
                f"[{_OP}] pooling is {pooling!r}, expected 'class' or 'mean'"
            )
        if patch_size < 1 or image_size < 1 or image_size % patch_size != 0:
            raise ValueError(
                f"[{_OP}] image_size {image_size} is not a multiple of patch_size "
                f"{patch_size}"
            )
        self.image_size, self.dropout = image_size, dropout
        if distilled and pooling != "class":
            raise ValueError(
                f"[{_OP}] pooling is {pooling!r}, but a distilled model reads the rows "
                "of its tokens"
            )
        side = image_size // patch_size
        self.patches = PatchEmbedding(channels, dim, patch_size)
        self.class_token = ClassToken(dim) if pooling == "class" else None
        self.dist_token = ClassToken(dim) if distilled else None
        rows = side * side + (pooling == "class") + distilled
        self.positions = PositionEmbedding(rows, dim)
        options = {"norm_eps": 1e-6, "dropout": dropout, "grid": (side, side), **block}
        self.blocks = make_blocks(dim, depth, heads, drop_path, **options)
        self.norm = make_norm(options.get("norm", "layer"), dim, options["norm_eps"])
        self.head = torch.nn.Linear(dim, classes)
        self.head_dist = torch.nn.Linear(dim, classes) if distilled else None
        initialise_vit(self)

    def features(self, images: Tensor) -> Tensor:
        """The rows that the head reads, [B, dim]."""
        x = self._rows(images)
        return x.mean(dim=1) if self.class_token is None else x[:, 0]

    def distilled_logits(self, images: Tensor) -> Tuple[Tensor, Tensor]:
        """Of the head that learns from labels and of the one that learns from a
        teacher: what a distilled model learns by."""
        if self.head_dist is None:
            raise ValueError(f"[{_OP}] distilled_logits of a model that is not distilled")
        x = self._rows(images)
        return self.head(x[:, 0]), self.head_dist(x[:, 1])

    def _rows(self, images: Tensor) -> Tensor:
        self._check(images)
        x = self.patches(images)
        if self.dist_token is not None:
            x = self.dist_token(x)
        if self.class_token is not None:
            x = self.class_token(x)
        x = F.dropout(self.positions(x), self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, images: Tensor) -> Tensor:
        """Of images that went through `preprocess`, or were normalised alike."""
        if self.head_dist is None:
            return self.head(self.features(images))
        head, head_dist = self.distilled_logits(images)
        return (head + head_dist) / 2

    def _check(self, images: Tensor) -> None:
        check_shape(_OP, images, self.channels, self.image_size, self.image_size)
