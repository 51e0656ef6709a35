"""python -m polyattn: what is installed, and whether it computes rightly."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from . import TORCH_VERSION, __version__, _library, attention

# Weights from scores and N. Hidden scores are -inf for softmax and 0 for the others,
# whose weights are then set to 0.
_FORMULAS: Dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "softmax": lambda s, n: torch.softmax(s, dim=-1),
    "x^3/sqrt(N)": lambda s, n: s**3 / n.sqrt(),
    "1 + x + x^2/2": lambda s, n: 1 + s + s**2 / 2,
    "x^4/sum": lambda s, n: s**4 / (s**4).sum(dim=-1, keepdim=True),
    "sigmoid": lambda s, n: torch.sigmoid(s - n.log()),
    "relu^2/N": lambda s, n: s.relu() ** 2 / n,
}

# Of the largest number. A result in f32 has passed through some 100 additions and a
# power of at most 4, each of which rounds by 2^-24 of the largest term: 2.4e-5 in all.
# What is wrong shows in the first digits.
_LARGEST_ERROR = 3e-5


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Prints the facts; 1 if the self-test fails."""
    parser = argparse.ArgumentParser(
        prog="python -m polyattn", description="Versions, machine, and a self-test."
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    options = parser.parse_args(arguments)
    try:
        facts, test = _facts(), _self_test()
    except RuntimeError as error:  # of the library: POLYATTN_TARGET names no target
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps({**facts, "self_test": test}, indent=2))
    else:
        print(_text(facts, test))
    return 0 if test["ok"] else 1


def _facts() -> Dict[str, Any]:
    # A library that the environment names may be of another build.
    named = os.environ.get(_library.LIBRARY_VARIABLE)
    return {
        "polyattn": __version__,
        "torch": torch.__version__,
        "built_against": None if named else TORCH_VERSION,
        "python": platform.python_version(),
        "instruction_set": torch.ops.polyattn.active_target(),
        "threads": torch.get_num_threads(),
        "library": str(_library.find()),
    }


def _text(facts: Dict[str, Any], test: Dict[str, Any]) -> str:
    built = facts["built_against"] or f"unknown, {_library.LIBRARY_VARIABLE} is set"
    largest = test["largest_error"]
    error = "not finite" if largest is None else f"{largest:.1e}"
    lines = {
        "polyattn": facts["polyattn"],
        "torch": f"{facts['torch']} (built against {built})",
        "Python": facts["python"],
        "instruction set": facts["instruction_set"],
        "threads": facts["threads"],
        "library": facts["library"],
        "self-test": f"{'ok' if test['ok'] else 'FAILED'}: largest error "
        f"{error} (limit {_LARGEST_ERROR:.0e}), {len(_FORMULAS)} formulas, forward and "
        "backward",
    }
    width = max(map(len, lines))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines.items())


def _self_test() -> Dict[str, Any]:
    errors = [
        _error(formula, causal) for formula in _FORMULAS for causal in (False, True)
    ]
    largest = float(torch.stack(errors).max())  # NaN if one of them is
    return {
        "ok": largest <= _LARGEST_ERROR,
        "largest_error": largest if math.isfinite(largest) else None,
        "limit": _LARGEST_ERROR,
    }


def _error(formula: str, causal: bool) -> Tensor:
    """Of the output and the gradients, of the largest number in each."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(2, 4, 37, 16), (2, 2, 37, 16), (2, 2, 37, 16), (2, 4, 37, 16)]
    q, k, v, d_o = (torch.randn(shape, generator=generator) for shape in shapes)

    def ours(*inputs: Tensor) -> Tensor:
        return attention(
            *inputs, is_causal=causal, enable_gqa=True, activation=formula
        )

    def plain(*inputs: Tensor) -> Tensor:
        return _plain_attention(*inputs, formula, causal)

    found = _with_gradients(ours, [q, k, v], d_o)
    wanted = _with_gradients(plain, [t.double() for t in (q, k, v)], d_o.double())
    errors = [(f - w).abs().max() / w.abs().max() for f, w in zip(found, wanted)]
    return torch.stack(errors).max()


def _with_gradients(
    function: Callable[..., Tensor], inputs: List[Tensor], d_o: Tensor
) -> Tuple[Tensor, ...]:
    inputs = [t.clone().requires_grad_() for t in inputs]
    output = function(*inputs)
    return (output.detach(),) + torch.autograd.grad(output, inputs, d_o)


def _plain_attention(
    q: Tensor, k: Tensor, v: Tensor, formula: str, causal: bool
) -> Tensor:
    """From the definition, in torch ops."""
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    seen = torch.ones(s.shape[-2:], dtype=torch.bool)
    seen = seen.tril() if causal else seen
    n = seen.sum(dim=-1, keepdim=True).to(s.dtype)
    s = s.masked_fill(~seen, -math.inf if formula == "softmax" else 0.0)
    return _FORMULAS[formula](s, n).masked_fill(~seen, 0.0) @ v


if __name__ == "__main__":
    sys.exit(main())
