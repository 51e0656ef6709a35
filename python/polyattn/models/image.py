"""Models of images: how pixels are normalised before they go in."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

_Statistics = Optional[Tuple[float, ...]]


def pixel_statistics(images: Tensor) -> Tuple[Tuple[float, ...], Tuple[float, ...]]:
    """Mean and standard deviation of each channel, of pixels from 0 to 1.

    Training normalises its images by these, over all that it trains on. A
    channel without contrast has a deviation of 1/25500, not 0.

    >>> images = torch.tensor([0, 255], dtype=torch.uint8).expand(3, 1, 2, 2)
    >>> polyattn.models.pixel_statistics(images)
    ((0.5,), (0.5,))

    Args:
        images: bytes, [B, channels, height, width], or [B, height, width] of
            grey ones.
    """
    if images.dtype != torch.uint8 or images.dim() not in (3, 4) or not len(images):
        raise ValueError(
            f"[pixel_statistics] images are {images.dtype} of shape "
            f"{tuple(images.shape)}, expected uint8 [B, channels, height, width]"
        )
    images = images if images.dim() == 4 else images.unsqueeze(1)
    levels = torch.arange(256, dtype=torch.float64)
    mean, std = [], []
    for channel in images.unbind(1):
        share = torch.bincount(channel.flatten(), minlength=256).double()
        share = share / share.sum()
        mean.append(float(share @ levels))
        square = float(share @ levels.square())
        std.append(max(square - mean[-1] ** 2, 1e-4) ** 0.5)
    return tuple(m / 255 for m in mean), tuple(s / 255 for s in std)


class ImageModel(torch.nn.Module):
    """Has a head, and checks the shape of images by _check."""

    head: torch.nn.Linear

    def __init__(
        self,
        channels: int,
        mean: Optional[Sequence[float]],
        std: Optional[Sequence[float]],
    ) -> None:
        super().__init__()
        self.channels = channels
        self.set_statistics(mean, std)

    def set_statistics(
        self, mean: Optional[Sequence[float]], std: Optional[Sequence[float]]
    ) -> None:
        """Of each channel, of pixels from 0 to 1, for `preprocess`."""
        self.mean, self.std = _checked(self._op, mean, std, self.channels)

    @property
    def _op(self) -> str:
        return type(self).__name__

    def _check(self, images: Tensor) -> None:
        raise NotImplementedError

    def preprocess(self, images: Tensor) -> Tensor:
        """Pixels as the model takes them: (pixel - mean) / std.

        Args:
            images: bytes from 0 to 255, or floats from 0 to 1, as torchvision's
                ToTensor gives them; [B, channels, height, width], or
                [B, height, width] of grey ones.
        """
        if self.mean is None or self.std is None:
            raise ValueError(
                f"[{self._op}] mean and std of the images are not known: they are "
                "those of all images of the training "
                "(polyattn.models.pixel_statistics); give them to "
                f"{self._op} or load_run"
            )
        if images.dim() == 3 and self.channels == 1:
            images = images.unsqueeze(1)
        if images.dtype != torch.uint8 and not images.is_floating_point():
            raise ValueError(
                f"[{self._op}] images are {images.dtype}, expected uint8 or floating "
                "point"
            )
        self._check(images)
        pixels = images.double()
        pixels = pixels / 255 if images.dtype == torch.uint8 else pixels
        mean, std = (
            torch.tensor(s, dtype=torch.float64, device=images.device).view(-1, 1, 1)
            for s in (self.mean, self.std)
        )
        return ((pixels - mean) / std).to(self.head.weight)


def check_shape(
    op: str,
    images: Tensor,
    channels: int,
    height: Union[int, str] = "height",
    width: Union[int, str] = "width",
) -> None:
    """A name is for any size of at least one pixel."""
    wanted = (channels, height, width)
    shape = tuple(images.shape)
    if images.dim() != 4 or not all(
        size == w if isinstance(w, int) else size > 0
        for size, w in zip(shape[1:], wanted)
    ):
        raise ValueError(
            f"[{op}] images have shape {shape}, expected "
            f"[B, {', '.join(map(str, wanted))}]"
        )


def _checked(
    op: str,
    mean: Optional[Sequence[float]],
    std: Optional[Sequence[float]],
    channels: int,
) -> Tuple[_Statistics, _Statistics]:
    if mean is None and std is None:
        return None, None
    if mean is None or std is None or len(mean) != channels or len(std) != channels:
        raise ValueError(
            f"[{op}] mean is {mean} and std is {std}, expected {channels} of each"
        )
    if not all(s > 0 for s in std):
        raise ValueError(f"[{op}] std is {std}, expected numbers above 0")
    return tuple(float(m) for m in mean), tuple(float(s) for s in std)
