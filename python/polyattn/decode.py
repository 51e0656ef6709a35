"""Decoding token by token, with a state of constant size for polynomials."""

from __future__ import annotations

from numbers import Real
from pathlib import Path
from typing import Any, List, Optional, Sequence, Union

import torch
from torch import Tensor

from ._errors import check_type
from .functional import check_formula

_OP = "DecodeState"
Counts = Optional[Sequence[int]]


class DecodeState:
    """What causal attention has read, for one layer: each new token sees all before.

    For a polynomial it can be sums over its features, whose size and time of a step
    do not depend on the length of the text; for every activation a cache of keys and
    values. The results are those of polyattn.attention on the whole sequence with
    is_causal=True, to rounding.

    >>> state = polyattn.DecodeState(batch=1, heads=4, head_dim=16,
    ...                              activation="x^2/sqrt(N)")
    >>> q, k, v = (torch.randn(1, 4, 100, 16) for _ in range(3))
    >>> y = state.step(q, k, v)  # a prompt
    >>> token = torch.randn(1, 4, 1, 16)
    >>> state.step(token, token, token).shape, state.lengths
    (torch.Size([1, 4, 1, 16]), [101])

    Args:
        batch: texts that are decoded together; they may differ in length.
        heads: H, of the queries.
        head_dim: D.
        kv_heads: G, of which H is a multiple; default H.
        value_dim: E; default D.
        activation: a formula, as polyattn.attention takes.
        scale: of the scores; default 1/sqrt(D).
        mode: "state" for the sums of a polynomial, "cache" for keys and values, or
            "auto": a cache while that is the smaller, then the sums, if there are any.
        dtype: of queries, keys and values.
        window: a token sees so many of the last ones, its own included, as
            window_size=(window - 1, 0) of polyattn.attention has it; 0: all. Any
            activation, not with mode "state" nor with decay: a cache that does not
            grow beyond the window.
    """

    def __init__(
        self,
        batch: int,
        heads: int,
        head_dim: int,
        *,
        kv_heads: Optional[int] = None,
        value_dim: Optional[int] = None,
        activation: str = "softmax",
        scale: Optional[float] = None,
        mode: str = "auto",
        dtype: torch.dtype = torch.float32,
        window: int = 0,
    ) -> None:
        sizes = dict(batch=batch, heads=heads, head_dim=head_dim, window=window)
        optional = dict(kv_heads=kv_heads, value_dim=value_dim)
        for name, size in sizes.items():
            check_type(_OP, name, size, int)
        for name, size in optional.items():
            check_type(_OP, name, size, int, type(None))
        check_type(_OP, "scale", scale, Real, type(None))
        check_type(_OP, "activation", activation, str)
        check_type(_OP, "mode", mode, str)
        check_type(_OP, "dtype", dtype, torch.dtype)
        if mode not in ("auto", "cache", "state"):
            raise ValueError(
                f"[{_OP}] mode is '{mode}', expected 'auto', 'cache' or 'state'"
            )
        check_formula(activation)
        shape = [
            batch,
            heads,
            heads if kv_heads is None else kv_heads,
            head_dim,
            head_dim if value_dim is None else value_dim,
        ]
        like = torch.empty(0, dtype=dtype)
        try:
            self._state = torch.classes.polyattn.DecodeState(
                shape,
                activation,
                None if scale is None else float(scale),
                mode,
                like,
                window,
            )
        except RuntimeError as error:
            raise ValueError(_first_line(error)) from None

    @classmethod
    def _of(cls, state: Any) -> "DecodeState":
        new = cls.__new__(cls)
        new._state = state
        return new

    def step(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        counts: Counts = None,
        log_decay: Optional[Tensor] = None,
    ) -> Tensor:
        """Reads tokens and returns [B, H, T, E].

        Token t sees what was read before and tokens 0 to t of this call. A prompt
        may come in one piece or in several.

        Args:
            query: [B, H, T, D].
            key: [B, G, T, D].
            value: [B, G, T, E].
            counts: how many of the T tokens belong to each text; default: all. Rows
                behind them are zeros.
            log_decay: [B, G, T], where a size of 1 is repeated, as polyattn.attention
                has it: the tokens fade what was read before them.
        """
        return self._state.step(query, key, value, _counts(counts), log_decay)

    def append(
        self,
        key: Tensor,
        value: Tensor,
        counts: Counts = None,
        log_decay: Optional[Tensor] = None,
    ) -> None:
        """Reads tokens of which no result is wanted: as step, without queries."""
        self._state.append(key, value, _counts(counts), log_decay)

    @property
    def lengths(self) -> List[int]:
        """Tokens that each text has read."""
        return self._state.lengths()

    @property
    def folded(self) -> List[int]:
        """Of these, how many are in sums."""
        return self._state.folded()

    @property
    def nbytes(self) -> int:
        """What the state takes."""
        return self._state.nbytes()

    @property
    def activation(self) -> str:
        return self._state.activation()

    @property
    def batch(self) -> int:
        return self._state.shape()[0]

    def fork(self) -> "DecodeState":
        """A copy that goes its own way."""
        return self._of(self._state.fork())

    def __deepcopy__(self, memo: Any) -> "DecodeState":
        return self.fork()

    def __reduce__(self) -> Any:
        return _from_bytes, (self._state.save().numpy().tobytes(),)

    def select(self, index: Union[Tensor, Sequence[int]]) -> None:
        """Text b becomes a copy of what text index[b] was: for beams."""
        rows = index.tolist() if isinstance(index, Tensor) else list(index)
        try:
            self._state.select(rows)
        except RuntimeError as error:
            raise IndexError(_first_line(error)) from None

    def save(self, path: Union[str, Path]) -> None:
        """To a file, to go on later or elsewhere."""
        Path(path).write_bytes(self._state.save().numpy().tobytes())

    @classmethod
    def load(cls, path: Union[str, Path]) -> "DecodeState":
        """From a file of save(). Nothing in it is trusted: ValueError says what is wrong."""
        try:
            return _from_bytes(Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(f"[{_OP}] {path}: {error}") from None

    def __repr__(self) -> str:
        batch, heads, kv_heads, d, e = self._state.shape()
        return (
            f"DecodeState({self.activation}, batch={batch}, heads={heads}, "
            f"kv_heads={kv_heads}, head_dim={d}, value_dim={e}, "
            f"lengths={self.lengths}, {self.nbytes} bytes)"
        )


def _from_bytes(content: bytes) -> DecodeState:
    if not content:
        raise ValueError("it is empty")
    saved = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    try:
        return DecodeState._of(torch.classes.polyattn.DecodeState.load(saved))
    except RuntimeError as error:
        raise ValueError(_first_line(error)) from None


def _counts(counts: Counts) -> Optional[List[int]]:
    return None if counts is None else [int(count) for count in counts]


def _first_line(error: RuntimeError) -> str:
    return str(error).split("\nException raised")[0]
