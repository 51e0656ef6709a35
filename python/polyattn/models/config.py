"""The model that a run's config describes (docs/config.md).

Sizes that the data decides (classes, channels, vocabulary) are not in the config:
they are those of the weights.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Optional, Tuple

import torch
from torch import Tensor

from .classifier import SequenceClassifier
from .gpt import Gpt
from .image import ImageModel
from .named import make_swin, make_xcit
from .vit import ViT

IMAGES = ("fashion-mnist", "mnist", "cifar10", "images", "imagenet", "tiny-imagenet")
TEXTS = ("sotu", "brown", "text")
SEQUENCES = (
    "listops",
    "imdb",
    "cifar10-pixels",
    "pathfinder",
    "aan",
    "sotu-pairs",
)
# Of model.name, up to its first hyphen.
_FAMILIES = ("vit", "deit", "swin", "xcit", "gpt", "classifier", "lra")

_Section = Mapping[str, Any]
_Tensors = Mapping[str, Tensor]

# Of pixels from 0 to 1, over the whole training set: mean, standard deviation.
_STATISTICS = {
    "fashion-mnist": ((0.2860405969887955,), (0.35302424451492254,)),
    "mnist": ((0.13066047627384286,), (0.3081078038564627,)),
    "cifar10": (
        (0.49139967861519607, 0.48215840839460783, 0.44653091444546567),
        (0.247032232463282, 0.24348512800005562, 0.26158784172796445),
    ),
}

# Every key of the section [model], with a value of its type.
_KEYS: Dict[str, Any] = {
    "activation": "",
    "dim": 1,
    "depth": 1,
    "heads": 1,
    "kv_heads": 1,
    "mlp": 1,
    "patch": 1,
    "pooling": "",
    "positions": "",
    "norm": "",
    "qk_norm": "",
    "learned_scale": False,
    "learned_coefficients": "",
    "layer_scale": 1.0,
    "dropout": 1.0,
    "attention_dropout": 1.0,
    "drop_path": 1.0,
    "tied": False,
}
# Younger ones, with what their absence means.
_YOUNG: Dict[str, Any] = {
    "name": "",
    "output_norm": "none",
    "output_gate": False,
    "center_values": False,
    "decay": "none",
    "short_conv": 0,
    "window": 0,
    "norm_clamp": "none",
    "attention": "full",
    "landmarks": 64,
    "landmark_conv": 35,
    "landmark_inverse": "iterative",
    "landmark_scaling": "matrix",
    "head": "linear",
    "mask_zeros": False,
}
# How training begins, and what is retired: nothing to a model that is trained.
_BEGINNING = (
    "initialisation",
    "start",
    "start_factor",
    "qk_gain",
    "norm_factor",
    "fused",
)


def make_model(config: Mapping[str, _Section], weights: _Tensors) -> torch.nn.Module:
    """A model for these weights, which are not yet in it; ValueError if the
    config and the weights do not agree on one, or it is one of C++ alone."""
    model, task = _model_section(config), _section(config, "task")
    if model["norm_clamp"] not in ("none", "penalty"):  # which is of training alone
        raise ValueError(
            f"model.norm_clamp is {model['norm_clamp']!r}, which only C++ computes: "
            "evaluate the run with `polyattn eval`"
        )
    name = _value("task", task, "name", "")
    _check_family(model["name"], name)
    makers = ((IMAGES, _image_model), (TEXTS, _gpt), (SEQUENCES, _classifier))
    for tasks, make in makers:
        if name in tasks:
            return make(model, task, weights)
    known = ", ".join(IMAGES + TEXTS + SEQUENCES)
    raise ValueError(f"task.name is {name!r}, expected one of {known}")


def _check_family(name: str, task: str) -> None:
    """Of model.name, which runs of before have not: "vit-tiny32" is of vit."""
    family = name.split("-")[0]
    if family not in ("", *_FAMILIES):
        raise ValueError(
            f"model.name is {name!r}, a family that polyattn.models does not have "
            f"(only {', '.join(_FAMILIES)}): evaluate the run with `polyattn eval`"
        )
    if family in ("swin", "xcit") and task not in IMAGES:
        raise ValueError(
            f"model.name is {name!r}, but task.name {task!r} has no images"
        )


def _image_model(model: _Section, task: _Section, weights: _Tensors) -> ImageModel:
    mean, std = _statistics(task)
    options: Dict[str, Any] = dict(
        classes=_size(weights, "head.weight", 0), mean=mean, std=std
    )
    family = model["name"].split("-")[0]
    if family == "xcit":
        channels = _size(weights, "patches.convs.0.weight", 1)
        return make_xcit(model, channels=channels, **options)
    options["channels"] = _size(weights, "patches.proj.weight", 1)
    if family == "swin":
        return make_swin(model, **options)
    return _vit(model, weights, **options)


def _vit(model: _Section, weights: _Tensors, **options: Any) -> ViT:
    distilled = model["name"].endswith("-distilled")
    return ViT(
        *_sizes(model),
        image_size=_image_size(weights, (model["pooling"] == "class") + distilled),
        patch_size=model["patch"],
        pooling=model["pooling"],
        distilled=distilled,
        **options,
        **_options(model),
    )


def _gpt(model: _Section, task: _Section, weights: _Tensors) -> Gpt:
    return Gpt(
        *_sizes(model),
        vocabulary=_size(weights, "tokens.weight", 0),
        context=_value("task", task, "context", 1),
        positions=model["positions"],
        tied=model["tied"],
        decay=None if model["decay"] == "none" else model["decay"],
        **_options(model),
    )


def _classifier(
    model: _Section, task: _Section, weights: _Tensors
) -> SequenceClassifier:
    options = _options(model)
    if model["positions"] == "learned":
        rows = _size(weights, "positions.weight", 0)
        options["context"] = rows - (model["pooling"] == "class")
    return SequenceClassifier(
        *_sizes(model),
        vocabulary=_size(weights, "tokens.weight", 0),
        classes=_size(weights, "head.weight", 0),
        positions=model["positions"],
        pooling=model["pooling"],
        mask_zeros=model["mask_zeros"],
        head=model["head"],
        towers=_towers(model["head"], weights),
        nystrom=_nystrom(model),
        **options,
    )


def _towers(head: str, weights: _Tensors) -> int:
    """Of two sequences the head reads four vectors."""
    first = "head_hidden" if head == "mlp" else "head"
    dim = _size(weights, "tokens.weight", 1)
    return 2 if _size(weights, f"{first}.weight", 1) == 4 * dim else 1


def _nystrom(model: _Section) -> Optional[Dict[str, Any]]:
    if model["attention"] == "full":
        return None
    if model["attention"] != "nystrom":
        raise ValueError(f"model.attention is {model['attention']!r}, expected nystrom")
    keys = ("conv", "inverse", "scaling")
    return dict(
        landmarks=model["landmarks"], **{key: model[f"landmark_{key}"] for key in keys}
    )


def _section(config: Mapping[str, _Section], name: str) -> _Section:
    section = config.get(name)
    if not isinstance(section, Mapping):
        raise ValueError(f"config.toml has no section [{name}]")
    return section


def _model_section(config: Mapping[str, _Section]) -> Dict[str, Any]:
    section = _section(config, "model")
    unknown = sorted(set(section) - {*_KEYS, *_YOUNG, *_BEGINNING})
    if unknown:
        raise ValueError(
            f"unknown key model.{unknown[0]}: is the run of a newer polyattn?"
        )
    known = {**_KEYS, **_YOUNG}
    section = {**_YOUNG, **section}
    return {key: _value("model", section, key, known[key]) for key in known}


def _value(name: str, section: _Section, key: str, like: Any) -> Any:
    """Of the type of `like`; an integer will do where a number is asked for."""
    if key not in section:
        raise ValueError(f"there is no key {name}.{key}")
    value = section[key]
    if type(value) is type(like):
        return value
    if type(like) is float and type(value) is int:
        return float(value)
    raise ValueError(f"{name}.{key} is {value!r}, expected {type(like).__name__}")


def _sizes(model: _Section) -> Tuple[int, int, int]:
    return model["dim"], model["depth"], model["heads"]


def _options(model: _Section) -> Dict[str, Any]:
    """What all models take, as they spell it."""
    options = {
        key: model[key]
        for key in (
            "activation",
            "mlp",
            "norm",
            "learned_scale",
            "output_gate",
            "center_values",
            "short_conv",
            "window",
            "dropout",
            "attention_dropout",
            "drop_path",
        )
    }
    for key in ("qk_norm", "output_norm"):
        options[key] = None if model[key] == "none" else model[key]
    learned = model["learned_coefficients"]
    options["learned_coefficients"] = False if learned == "none" else learned
    options["kv_heads"] = model["kv_heads"] or None
    options["layer_scale"] = model["layer_scale"] or None
    return options


def _statistics(
    task: _Section,
) -> Tuple[Optional[Tuple[float, ...]], Optional[Tuple[float, ...]]]:
    """Known if the run was trained on all of a set whose files are always the
    same."""
    if task.get("path") or task.get("train_limit") or task.get("validation"):
        return None, None
    return _STATISTICS.get(task["name"], (None, None))


def _size(weights: _Tensors, name: str, dim: int) -> int:
    if name not in weights or weights[name].dim() <= dim:
        raise ValueError(f"the weights hold no {name} with {dim + 1} dimensions")
    return weights[name].shape[dim]


def _image_size(weights: _Tensors, prefix: int) -> int:
    """From the number of rows, which are the patches of a square after others."""
    rows = _size(weights, "positions.weight", 0) - prefix
    side = math.isqrt(max(rows, 0))
    if side * side != rows:
        raise ValueError(f"{rows} patches are not those of a square image")
    return side * _size(weights, "patches.proj.weight", 3)
