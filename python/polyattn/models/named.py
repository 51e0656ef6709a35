"""Swin and XCiT by model.name of a config, which alone decides their sizes."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

from .swin import Swin
from .xcit import XCiT

_Section = Mapping[str, Any]

# Width of the first stage, depths, heads, side of a patch, of a window of version 1
# and of version 2.
_SWINS: Dict[str, Tuple[int, Tuple[int, ...], Tuple[int, ...], int, int, int]] = {
    "tiny28": (48, (2, 4), (3, 6), 2, 7, 7),
    "tiny32": (32, (2, 4, 2), (2, 4, 8), 2, 4, 4),
    "t": (96, (2, 2, 6, 2), (3, 6, 12, 24), 4, 7, 8),
    "s": (96, (2, 2, 18, 2), (3, 6, 12, 24), 4, 7, 8),
    "b": (128, (2, 2, 18, 2), (4, 8, 16, 32), 4, 7, 8),
}

# Width, depth, heads.
_XCITS: Dict[str, Tuple[int, int, int]] = {
    "nano-12": (128, 12, 4),
    "tiny-12": (192, 12, 4),
    "tiny-24": (192, 24, 4),
    "small-12": (384, 12, 8),
    "small-24": (384, 24, 8),
    "medium-24": (512, 24, 8),
    "large-24": (768, 24, 16),
}

# Parts that neither has, in the words of a config.
_WITHOUT: Dict[str, Any] = {
    "kv_heads": 0,
    "norm": "layer",
    "qk_norm": "none",
    "learned_scale": False,
    "learned_coefficients": "none",
    "output_norm": "none",
    "output_gate": False,
    "center_values": False,
    "decay": "none",
    "short_conv": 0,
    "window": 0,
    "norm_clamp": "none",
}

_OPEN = ("activation", "dropout", "attention_dropout", "drop_path")


def make_swin(model: _Section, **options: Any) -> Swin:
    """What the name leaves open is in the section; options are of the data."""
    name = model["name"]
    second = name.startswith("swin-v2-")
    size = name[len("swin-v2-" if second else "swin-") :]
    if size not in _SWINS:
        raise ValueError(_unknown(name))
    dim, depths, heads, patch, window, window2 = _SWINS[size]
    sizes = dict(
        dim=dim, depth=sum(depths), heads=heads[0], mlp=4 * dim, patch=patch
    )
    _check_decided(model, {**sizes, "pooling": "mean"})
    return Swin(
        dim,
        depths,
        heads,
        version=2 if second else 1,
        window=window2 if second else window,
        patch_size=patch,
        layer_scale=model["layer_scale"] or None,
        **{key: model[key] for key in _OPEN},
        **options,
    )


def make_xcit(model: _Section, **options: Any) -> XCiT:
    """The same."""
    name = model["name"]
    dim, depth, heads, patch = _xcit_sizes(name)
    scale = 1e-5 if depth > 12 else 1.0
    sizes = dict(dim=dim, depth=depth, heads=heads, mlp=4 * dim, patch=patch)
    _check_decided(model, {**sizes, "pooling": "class", "layer_scale": scale})
    return XCiT(
        dim,
        depth,
        heads,
        tokens_norm=not name.startswith("xcit-nano-"),
        patch_size=patch,
        layer_scale=scale,
        **{key: model[key] for key in _OPEN},
        **options,
    )


def _xcit_sizes(name: str) -> Tuple[int, int, int, int]:
    if name in ("xcit-tiny28", "xcit-tiny32"):
        return 96, 4, 4, 4
    size, _, patch = name[len("xcit-") :].rpartition("-p")
    if size not in _XCITS or patch not in ("8", "16"):
        raise ValueError(_unknown(name))
    return (*_XCITS[size], int(patch))


def _unknown(name: str) -> str:
    return f"model.name is {name!r}, which is none of polyattn.models"


def _check_decided(model: _Section, sizes: Mapping[str, Any]) -> None:
    for key, value in {**_WITHOUT, **sizes}.items():
        if model[key] != value:
            raise ValueError(
                f"model.{key} is {model[key]!r}, but {model['name']} has {value!r}"
            )
