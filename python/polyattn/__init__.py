"""Attention without softmax, on torch tensors.

    import polyattn

    y = polyattn.attention(q, k, v, activation="x^3/sqrt(N)")
    print(polyattn.replace_softmax(model, "x^3/sqrt(N)"))
"""

from . import _library

try:
    from ._build import TORCH_VERSION, __version__
except ModuleNotFoundError as error:
    raise ImportError(
        "[polyattn] these are the sources of the package: CMake puts the package "
        "together in the folder `python` of the build folder"
    ) from error

_library.load(TORCH_VERSION)

from . import _transforms  # noqa: E402 (the ops must be there first)

if _transforms.supported():
    _transforms.register()

from . import models, nn  # noqa: E402
from .decode import DecodeState  # noqa: E402
from .functional import Activation, AttentionNorms, activation, attention  # noqa: E402
from .jvp import attention_jvp  # noqa: E402
from .match import HeadStart, MatchReport, match_start  # noqa: E402
from .matched import MatchedGain, matched_gain  # noqa: E402
from .replace import Kept, ReplaceReport, Swap, replace_softmax  # noqa: E402
from .runs import Run, load_run  # noqa: E402
from .swap import swap_sdpa  # noqa: E402
from .varlen import attention_varlen  # noqa: E402

__all__ = [
    "Activation",
    "AttentionNorms",
    "DecodeState",
    "HeadStart",
    "Kept",
    "MatchReport",
    "MatchedGain",
    "ReplaceReport",
    "Run",
    "Swap",
    "__version__",
    "activation",
    "attention",
    "attention_jvp",
    "attention_varlen",
    "load_run",
    "match_start",
    "matched_gain",
    "models",
    "nn",
    "replace_softmax",
    "swap_sdpa",
]
