"""Finds libpolyattn_torch.so and loads it, which registers torch.ops.polyattn."""

from __future__ import annotations

import os
from pathlib import Path

import torch

LIBRARY_NAME = "libpolyattn_torch.so"
LIBRARY_VARIABLE = "POLYATTN_LIBRARY"

_HOW_TO_BUILD = (
    "In a clone of polyattn, `pip install --no-build-isolation .` builds it for the "
    f"torch of this environment; or point {LIBRARY_VARIABLE} to a library."
)


def find() -> Path:
    """The library that the environment names, or else the one in the package."""
    named = os.environ.get(LIBRARY_VARIABLE)
    path = Path(named) if named else Path(__file__).parent / LIBRARY_NAME
    if not path.is_file():
        source = f"{LIBRARY_VARIABLE} names it" if named else "beside the package"
        raise ImportError(f"[polyattn] no file {path} ({source}). {_HOW_TO_BUILD}")
    return path


def load(built_against: str) -> None:
    """Loads the library, which must fit the running torch.

    A library that the environment names may be from another build, so that
    nothing is known of its torch; the loader still finds missing symbols.
    """
    path = find()
    if not os.environ.get(LIBRARY_VARIABLE):
        _check_torch(built_against)
    try:
        torch.ops.load_library(str(path))
    except (OSError, RuntimeError) as error:
        raise ImportError(
            f"[polyattn] cannot load {path} into torch {torch.__version__}: {error}. "
            f"{_HOW_TO_BUILD}"
        ) from error


def _check_torch(built_against: str) -> None:
    """torch keeps its binary interface within a minor version only."""
    if _minor(built_against) != _minor(torch.__version__):
        raise ImportError(
            f"[polyattn] {LIBRARY_NAME} was built against torch {built_against}, "
            f"but this is torch {torch.__version__}. {_HOW_TO_BUILD}"
        )


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
