"""The models of runs, as `polyattn train` leaves them behind."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from torch import Tensor

from ._errors import check_type
from ._safetensors import read_safetensors
from .models import Gpt, SequenceClassifier, Swin, ViT, XCiT
from .models.config import make_model
from .models.image import ImageModel

_OP = "load_run"
_Weights = Tuple[Dict[str, Tensor], int]


@dataclass(frozen=True)
class Run:
    """Where a model is from."""

    folder: Path
    step: int
    """After which the weights were taken."""
    config: Mapping[str, Any]
    """Its config.toml, by section and key."""


def load_run(
    run: Union[str, "os.PathLike[str]"],
    *,
    best: bool = False,
    mean: Optional[Sequence[float]] = None,
    std: Optional[Sequence[float]] = None,
) -> Union[ViT, Swin, XCiT, Gpt, SequenceClassifier]:
    """The model of a run, in eval mode.

    A run on images gives a ViT (distilled or not), Swin or XCiT of polyattn.models,
    whose `preprocess` normalises images as the run did; one on a text a Gpt, which
    takes bytes; one on sequences, as listops, a SequenceClassifier. The logits are
    those of C++.
    `model.run` says where it is from.

    >>> model = polyattn.load_run("runs/cubic")  # of fashion-mnist
    >>> images = torch.randint(256, (8, 28, 28), dtype=torch.uint8)
    >>> model(model.preprocess(images)).shape
    torch.Size([8, 10])

    Args:
        run: the folder of a run.
        best: the weights of the best evaluation, not the last ones. Averaged
            weights (train.ema) are what is evaluated, and so what is loaded.
        mean, std: of each channel of the images, of pixels from 0 to 1; default:
            those by which the run normalised its images. Runs of older versions did
            not keep them: then they are known for the whole of fashion-mnist, mnist
            and cifar10, and polyattn.models.pixel_statistics gives them for others.

    Raises:
        FileNotFoundError: if it is not the folder of a run, or has no weights.
        ValueError: if a file is damaged, the weights are not those of the
            config, or the model can be computed in C++ alone
            (model.norm_clamp = "rescale", a model.name that Python does not know).
    """
    check_type(_OP, "run", run, str, os.PathLike)
    folder = Path(run)
    config = _read_config(folder)
    weights, step = _best_weights(folder) if best else _last_weights(folder)
    try:
        model = make_model(config, weights)
        model.load_state_dict(weights)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"[{_OP}] {folder}: {error}") from error
    if mean is not None or std is not None:
        _set_statistics(model, mean, std)
    elif isinstance(model, ImageModel):
        _take_statistics(model, folder)
    model.run = Run(folder, step, config)
    return model.eval()


def _read_config(folder: Path) -> Mapping[str, Any]:
    path = folder / "config.toml"
    if not path.is_file():
        raise FileNotFoundError(
            f"[{_OP}] no file {path}: {folder} is not the folder of a run"
        )
    try:
        return _toml().loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # bad UTF-8 and bad TOML, both
        raise ValueError(f"[{_OP}] {path}: {error}") from None


def _toml() -> Any:
    try:
        import tomllib
    except ModuleNotFoundError:
        try:
            import tomli as tomllib
        except ModuleNotFoundError:
            raise ImportError(
                f"[{_OP}] the config of a run is TOML, which Python reads from 3.11 "
                f"on, and this is Python {sys.version.split()[0]}: install the "
                "package tomli"
            ) from None
    return tomllib


def _best_weights(folder: Path) -> _Weights:
    path = folder / "checkpoints" / "best.safetensors"
    if not path.is_file():
        raise FileNotFoundError(
            f"[{_OP}] no file {path}: the run has not been evaluated"
        )
    return read_safetensors(path), _step_of(path.with_suffix(".json"))


def _last_weights(folder: Path) -> _Weights:
    """Of the last checkpoint that is whole."""
    damaged: List[str] = []
    for step in sorted(_steps(folder / "checkpoints"), reverse=True):
        try:
            weights = _read_checkpoint(folder / "checkpoints", step)
        except (OSError, ValueError) as error:
            damaged.append(str(error))
            continue
        if damaged:
            warnings.warn(
                f"[{_OP}] {folder}: took step {step}, because of a damaged checkpoint: "
                f"{damaged[0]}",
                stacklevel=3,
            )
        return weights, step
    if damaged:
        raise ValueError(
            f"[{_OP}] {folder} has no checkpoint that can be used: {damaged[0]}"
        )
    raise FileNotFoundError(f"[{_OP}] {folder} has no checkpoint yet")


def _steps(checkpoints: Path) -> List[int]:
    """Those with a JSON file, which is written last: the others are not whole."""
    names = [p.name for p in checkpoints.iterdir()] if checkpoints.is_dir() else []
    found = [re.fullmatch(r"step-([0-9]{8,})\.json", name) for name in names]
    return [int(match.group(1)) for match in found if match]


def _read_checkpoint(checkpoints: Path, step: int) -> Dict[str, Tensor]:
    """model.* and in its place, if weights are averaged, ema.*."""
    path = checkpoints / f"step-{step:08}.safetensors"
    if _step_of(path.with_suffix(".json")) != step:
        raise ValueError(f"{path.with_suffix('.json')}: it is of another step")
    tensors = read_safetensors(path, lambda name: name.startswith(("model.", "ema.")))
    weights = {}
    for prefix in ("model.", "ema."):
        for name, tensor in tensors.items():
            if name.startswith(prefix):
                weights[name[len(prefix) :]] = tensor
    return weights


def _step_of(path: Path) -> int:
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))["step"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: it does not say its step: {error!r}") from None


def _take_statistics(model: ImageModel, folder: Path) -> None:
    """Those that the run kept, if it did."""
    path = folder / "run.json"
    if not path.is_file():
        return
    try:
        pixels = json.loads(path.read_text(encoding="utf-8")).get("pixels")
        if pixels is not None:
            _set_statistics(model, pixels["mean"], pixels["std"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"[{_OP}] {path}: \"pixels\" is damaged: {error}") from None


def _set_statistics(
    model: Any, mean: Optional[Sequence[float]], std: Optional[Sequence[float]]
) -> None:
    if not isinstance(model, ImageModel):
        raise ValueError(
            f"[{_OP}] mean and std are for images, not for a {type(model).__name__}"
        )
    model.set_statistics(mean, std)
