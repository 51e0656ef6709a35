"""Our attention against what a torch 2.x user would pick: python -m polyattn.bench.

Each row is measured in one process, the programs in turn, nine rounds, and the
figure is the median of the rounds' ratios: above 1 ours is faster.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

import polyattn

from . import _onnx

ROUNDS = 9
FORMULAS = ("softmax", "x^3/sqrt(N)", "x^2/sqrt(N)")
# B, H, N, D, causal
SHAPES = (
    (64, 3, 65, 64, False),
    (16, 12, 197, 64, False),
    (1, 12, 1024, 64, False),
    (1, 8, 1024, 128, False),
    (1, 4, 4096, 64, True),
    (1, 2, 16384, 64, True),
)
QUICK_SHAPES = ((4, 3, 65, 64, False), (1, 2, 256, 64, True))
# Images, windows of each, H, N, D, as Swin's first stages have them.
WINDOWS = ((64, 4, 3, 49, 32), (64, 4, 4, 64, 32))
QUICK_WINDOWS = ((2, 4, 3, 49, 32),)
DECODE_KEYS = (2048, 16384, 65536)
_LEAST_SECONDS = 0.03  # of one measurement
# Threads of one library spin for a while after a call, on the cores that the next
# program needs: they are given time to sleep.
_PAUSE = 0.05

Program = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """One comparison."""

    group: str
    shape: str
    threads: int
    ours: str
    baseline: str
    work: str
    """"forward", "forward and backward" or "step"."""
    speed_up: float
    """The median over the rounds of baseline time / our time."""
    low: float
    """The quartiles of that."""
    high: float
    seconds: float
    """Ours, median."""


def seconds_of(program: Program, repeats: int) -> float:
    """With one thread of processor time, which other programs do not add to."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    for _ in range(repeats):
        program()
    return (clock() - start) / repeats


def measure(programs: Dict[str, Program], rounds: int) -> Dict[str, List[float]]:
    """Seconds of each program in each round; the programs take turns."""
    repeats = {}
    for name, program in programs.items():
        program()
        once = seconds_of(program, 1)
        repeats[name] = max(1, math.ceil(_LEAST_SECONDS / max(once, 1e-7)))
    found: Dict[str, List[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            time.sleep(_PAUSE)
            found[name].append(seconds_of(program, repeats[name]))
    return found


def ratio(baseline: Sequence[float], ours: Sequence[float]) -> Tuple[float, ...]:
    """Median and quartiles of baseline / ours."""
    ratios = sorted(b / o for b, o in zip(baseline, ours))
    if len(ratios) < 2:
        return (ratios[0],) * 3
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return middle, low, high


def eager_cubic(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """What people write by hand, for torch.compile to fuse."""
    s = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    n = k.shape[-2]
    if not causal:
        return (s * s * s / math.sqrt(n)) @ v
    seen = torch.arange(1, n + 1, dtype=q.dtype).rsqrt()[:, None]
    return ((s * s * s).tril() * seen) @ v


def inputs_of(shape: Sequence[Any], grad: bool) -> List[Tensor]:
    generator = torch.Generator().manual_seed(1)
    b, h, n, d = shape[:4]
    return [
        torch.randn(b, h, n, d, generator=generator).requires_grad_(grad)
        for _ in range(3)
    ]


def program_of(
    call: Callable[..., Tensor], inputs: List[Tensor], backward: bool
) -> Program:
    if not backward:

        def forward() -> Tensor:
            with torch.no_grad():
                return call(*inputs)

        return forward
    weight = torch.randn(inputs[0].shape, generator=torch.Generator().manual_seed(2))
    return lambda: torch.autograd.grad(call(*inputs), inputs, weight)


def ours(formula: str, causal: bool) -> Callable[..., Tensor]:
    return lambda q, k, v: polyattn.attention(
        q, k, v, is_causal=causal, activation=formula
    )


class Windows:
    """Shifted windows: a learned bias that all share, and a mask of each.

    q, k, v are [images x windows, H, N, D]; the mask is true for pairs of one
    region of the image, the last row and column of windows hold two or four.
    """

    def __init__(self, shape: Sequence[int], grad: bool) -> None:
        images, self.windows, heads, n, d = shape
        self.images = images
        self.inputs = inputs_of((images * self.windows, heads, n, d), grad)
        generator = torch.Generator().manual_seed(3)
        bias = torch.randn(heads, n, n, generator=generator)
        self.bias = bias.requires_grad_(grad)
        self.mask = self._regions(math.isqrt(n))
        self.added = torch.zeros(self.mask.shape)
        self.added.masked_fill_(~self.mask, float("-inf"))

    def _regions(self, side: int) -> Tensor:
        far = torch.arange(side) >= side - side // 2
        masks = []
        for window in range(self.windows):
            below = far[:, None].expand(side, side) & (window // 2 % 2 == 1)
            right = far[None].expand(side, side) & (window % 2 == 1)
            region = (below.int() + 2 * right.int()).flatten()
            masks.append(region[:, None] == region[None])
        return torch.stack(masks)[:, None]

    def float_mask(self, bias: Tensor) -> Tensor:
        """As timm does: bias and mask become one, with a copy for each image."""
        return (bias + self.added).repeat(self.images, 1, 1, 1)

    def sdpa(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
        mask = self.float_mask(bias)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def ours(self, formula: str) -> Callable[..., Tensor]:
        def call(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
            q, k, v = (x.unflatten(0, (self.images, self.windows)) for x in (q, k, v))
            o = polyattn.attention(q, k, v, self.mask, bias=bias, activation=formula)
            return o.flatten(0, 1)

        return call


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rounds = 3 if options.quick else ROUNDS
        self.shapes = QUICK_SHAPES if options.quick else SHAPES
        self.threads = 1

    def compare(
        self,
        group: str,
        shape: str,
        work: str,
        baseline: Tuple[str, Program],
        programs: Dict[str, Program],
    ) -> Iterator[Row]:
        print(f"  {group} {shape} {work}", file=sys.stderr, flush=True)
        name, program = baseline
        found = measure({"baseline": program, **programs}, self.rounds)
        for own in programs:
            middle, low, high = ratio(found["baseline"], found[own])
            yield Row(
                group,
                shape,
                self.threads,
                own,
                name,
                work,
                middle,
                low,
                high,
                statistics.median(found[own]),
            )

    def sdpa(self) -> Iterator[Row]:
        for shape in self.shapes:
            causal = shape[4]
            for work, backward in (("forward", False), ("forward and backward", True)):
                inputs = inputs_of(shape, backward)
                sdpa = lambda q, k, v: F.scaled_dot_product_attention(  # noqa: E731
                    q, k, v, is_causal=causal
                )
                yield from self.compare(
                    "sdpa",
                    shown(shape),
                    work,
                    ("SDPA", program_of(sdpa, inputs, backward)),
                    {
                        f: program_of(ours(f, causal), inputs, backward)
                        for f in FORMULAS
                    },
                )

    def windowed(self) -> Iterator[Row]:
        for shape in QUICK_WINDOWS if self.options.quick else WINDOWS:
            for work, backward in (("forward", False), ("forward and backward", True)):
                windows = Windows(shape, backward)
                inputs = [*windows.inputs, windows.bias]
                yield from self.compare(
                    "windows",
                    ",".join(map(str, shape)),
                    work,
                    ("SDPA, float mask", program_of(windows.sdpa, inputs, backward)),
                    {
                        f: program_of(windows.ours(f), inputs, backward)
                        for f in FORMULAS
                    },
                )

    def compiled(self) -> Iterator[Row]:
        for shape in self.shapes:
            causal = shape[4]
            if shape[2] > 4096:
                continue  # N x N numbers for each head, several times
            for work, backward in (("forward", False), ("forward and backward", True)):
                inputs = inputs_of(shape, backward)
                torch._dynamo.reset()
                cubic = torch.compile(
                    lambda q, k, v: eager_cubic(q, k, v, causal), dynamic=False
                )
                yield from self.compare(
                    "compile",
                    shown(shape),
                    work,
                    ("torch.compile of x^3", program_of(cubic, inputs, backward)),
                    {
                        "x^3/sqrt(N)": program_of(
                            ours("x^3/sqrt(N)", causal), inputs, backward
                        )
                    },
                )

    def onnx(self) -> Iterator[Row]:
        for shape in self.shapes:
            if shape[4] or shape[2] in (65,):
                continue
            yield from self._onnx_row(shape)
        if not self.options.quick:
            yield from self._onnx_row((1, 4, 4096, 64, False))

    def _onnx_row(self, shape: Tuple[Any, ...]) -> Iterator[Row]:
        inputs = inputs_of(shape, False)
        run = _onnx.multi_head_attention(inputs, self.threads)
        yield from self.compare(
            "onnx",
            shown(shape),
            "forward",
            ("ONNX Runtime", run),
            {f: program_of(ours(f, False), inputs, False) for f in FORMULAS[:2]},
        )

    def decode(self) -> Iterator[Row]:
        heads, d = 8, 64
        for keys in (512,) if self.options.quick else DECODE_KEYS:
            k, v = (torch.randn(1, heads, keys, d) for _ in range(2))
            q = torch.randn(1, heads, 1, d)
            programs: Dict[str, Program] = {
                "softmax": program_of(ours("softmax", False), [q, k, v], False)
            }
            for formula, mode in (("softmax", "cache"), ("x^2/sqrt(N)", "state")):
                state = polyattn.DecodeState(1, heads, d, activation=formula, mode=mode)
                state.append(k, v)
                programs[f"{formula}, {mode}"] = _step(state, q)
            yield from self.compare(
                "decode",
                f"1 query, {keys} keys, {heads} heads of {d}",
                "step",
                ("SDPA with a cache", lambda: F.scaled_dot_product_attention(q, k, v)),
                programs,
            )

    def run(self) -> List[Row]:
        groups: Dict[str, Callable[[], Iterator[Row]]] = {
            "sdpa": self.sdpa,
            "windows": self.windowed,
            "compile": self.compiled,
            "onnx": self.onnx,
            "decode": self.decode,
        }
        rows: List[Row] = []
        before = torch.get_num_threads()
        try:
            for self.threads in self.options.threads:
                torch.set_num_threads(self.threads)
                for name, group in groups.items():
                    if name in self.options.only:
                        rows += group()
        finally:
            torch.set_num_threads(before)
        return rows


def _step(state: "polyattn.DecodeState", q: Tensor) -> Program:
    token = torch.randn(q.shape)
    return lambda: state.step(q, token, token)


def shown(shape: Sequence[Any]) -> str:
    return ",".join(str(size) for size in shape[:4]) + (" causal" if shape[4] else "")


def table(rows: Sequence[Row]) -> str:
    header = ("threads", "shape", "work", "ours", "against", "speed-up", "quartiles")
    lines = [
        (
            str(row.threads),
            row.shape,
            row.work,
            row.ours,
            row.baseline,
            f"{row.speed_up:.2f}",
            f"{row.low:.2f} to {row.high:.2f}",
        )
        for row in rows
    ]
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(7)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in [header, tuple("-" * width for width in widths), *lines]
    )


def facts() -> Dict[str, str]:
    return {
        "torch": torch.__version__,
        "polyattn": polyattn.__version__,
        "type": "f32",
        "our instruction set": torch.ops.polyattn.active_target(),
        "torch's instruction set": torch.backends.cpu.get_cpu_capability(),
        "ONNX Runtime": _onnx.version() or "not installed",
    }


GROUPS = ("sdpa", "windows", "compile", "onnx", "decode")


def parse(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m polyattn.bench", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--only", action="append", choices=GROUPS, help="this group (may be repeated)"
    )
    parser.add_argument(
        "--threads", type=int, action="append", help="default: 1 and then 2"
    )
    parser.add_argument("--quick", action="store_true", help="small shapes, 3 rounds")
    parser.add_argument("--json", metavar="FILE", help="also write the rows there")
    options = parser.parse_args(arguments)
    options.threads = options.threads or [1, 2]
    options.only = options.only or list(GROUPS)
    return options


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = parse(arguments)
    if int(torch.__version__.split(".")[0]) < 2:
        print(
            f"[bench] this is torch {torch.__version__}, whose attention is not fused: "
            "it takes 2.x (`polyattn bench torch` compares with the ops of 1.13)",
            file=sys.stderr,
        )
        return 2
    if "onnx" in options.only and _onnx.version() is None:
        options.only.remove("onnx")
        print("[bench] without ONNX Runtime, which is not installed", file=sys.stderr)
    rows = Bench(options).run()
    print("\n".join(f"{name}: {value}" for name, value in facts().items()))
    print()
    print(table(rows))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"facts": facts(), "rows": [asdict(r) for r in rows]}, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
