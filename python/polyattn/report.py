"""What replace_softmax did, to be printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Optional

import torch

from .match import MatchReport


@dataclass(frozen=True)
class Swap:
    """A module whose activation was replaced."""

    name: str
    kind: str
    heads: int
    old: str
    new: str

    def __str__(self) -> str:
        return (
            f"{_shown(self.name)}  {self.kind}, {_count(self.heads, 'head')}: "
            f"{self.old} -> {self.new}"
        )


@dataclass(frozen=True)
class Kept:
    """A module that looked like attention and was left as it was."""

    name: str
    kind: str
    reason: str

    def __str__(self) -> str:
        return f"{_shown(self.name)}  {self.kind}: {self.reason}"


@dataclass
class ReplaceReport:
    """What replace_softmax did."""

    model: torch.nn.Module = field(repr=False)
    activation: str
    swapped: List[Swap] = field(default_factory=list)
    kept: List[Kept] = field(default_factory=list)
    start: Optional[MatchReport] = None
    """With `match`: the norms before and after."""

    def __str__(self) -> str:
        lines = [f"{self.activation} in {_count(len(self.swapped), 'module')}:"]
        lines += [f"  {swap}" for swap in self.swapped]
        if self.kept:
            lines.append(f"not in {_count(len(self.kept), 'module')}:")
            lines += [f"  {kept}" for kept in self.kept]
        if self.start is not None:
            lines.append(str(self.start))
        return "\n".join(lines)


def _shown(name: str) -> str:
    return name or "(the model itself)"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
