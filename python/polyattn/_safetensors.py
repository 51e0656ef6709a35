"""Reads safetensors files, and trusts nothing in them.

    8 bytes    length of the header, little endian
    header     JSON: name -> dtype, shape, data_offsets; spaces behind it
    data       the tensors, one behind the other, without holes
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, List, NamedTuple, Tuple, Union

import torch
from torch import Tensor

_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100_000_000
_DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}
_FIELDS = ("dtype", "shape", "data_offsets")


class _Entry(NamedTuple):
    """A tensor, as the header has it."""

    begin: int
    end: int
    name: str
    dtype: torch.dtype
    shape: List[int]


def read_safetensors(
    path: Union[str, Path], keep: Callable[[str], bool] = lambda name: True
) -> Dict[str, Tensor]:
    """The tensors whose names `keep` takes, in memory of their own.

    The whole header is checked before anything of it is used. What is wrong
    with a file is a ValueError that names it.
    """
    with open(path, "rb") as file:
        try:
            return _read(file, keep)
        except ValueError as error:
            raise ValueError(f"[safetensors] {path}: {error}") from None


def _read(file: BinaryIO, keep: Callable[[str], bool]) -> Dict[str, Tensor]:
    size = os.fstat(file.fileno()).st_size
    header = _header(file, size)
    start = file.tell()
    entries = sorted(_entry(name, fields) for name, fields in header.items())
    _check_layout(entries, size - start)
    return {e.name: _tensor(file, start, e) for e in entries if keep(e.name)}


def _header(file: BinaryIO, size: int) -> Dict[str, Any]:
    """The object of the header, without __metadata__."""
    if size < _LENGTH_BYTES:
        raise ValueError(
            f"file has {size} bytes, fewer than the {_LENGTH_BYTES} that hold the "
            "length of the header"
        )
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if length > _MAX_HEADER_BYTES:
        raise ValueError(
            f"header length {length} > limit {_MAX_HEADER_BYTES}: this is not a "
            "safetensors file"
        )
    if length > size - _LENGTH_BYTES:
        raise ValueError(
            f"header length {length} > {size - _LENGTH_BYTES} bytes that follow: the "
            "file is cut short, or is not a safetensors file"
        )
    header = _parse(file.read(length))
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(
        isinstance(value, str) for value in metadata.values()
    ):
        raise ValueError("__metadata__ is not an object of strings")
    return header


def _parse(text: bytes) -> Dict[str, Any]:
    if not text.startswith(b"{"):
        raise ValueError("header is not an object {...} with spaces behind it")
    try:
        return json.loads(text.decode().rstrip(" "), object_pairs_hook=_without_twins)
    except UnicodeDecodeError as error:
        raise ValueError(f"header is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"header is not valid JSON at character {error.pos}: {error.msg}"
        ) from None
    except RecursionError:
        raise ValueError("header is nested too deep") from None


def _without_twins(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"header has the key {key!r} twice")
        found[key] = value
    return found


def _entry(name: str, fields: Any) -> _Entry:
    if not isinstance(fields, dict) or sorted(fields) != sorted(_FIELDS):
        raise ValueError(f"tensor {name!r} has not the keys {', '.join(_FIELDS)}")
    dtype, shape, offsets = (fields[field] for field in _FIELDS)
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise ValueError(
            f"tensor {name!r}: dtype {dtype!r} is none of {', '.join(_DTYPES)}"
        )
    for field, numbers in (("shape", shape), ("data_offsets", offsets)):
        if not isinstance(numbers, list) or not all(map(_is_size, numbers)):
            raise ValueError(
                f"tensor {name!r}: {field} {numbers!r} is not a list of integers "
                "from 0 to 2^63 - 1"
            )
    if len(offsets) != 2:
        raise ValueError(
            f"tensor {name!r}: data_offsets has {len(offsets)} numbers, not 2"
        )
    return _Entry(offsets[0], offsets[1], name, _DTYPES[dtype], shape)


def _is_size(number: Any) -> bool:
    return type(number) is int and 0 <= number < 2**63


def _check_layout(entries: List[_Entry], size: int) -> None:
    """Of the entries in the order of their data, which has this many bytes."""
    covered = 0
    for begin, end, name, dtype, shape in entries:
        if begin > end:
            raise ValueError(f"tensor {name!r}: begin {begin} > end {end}")
        if end > size:
            raise ValueError(
                f"tensor {name!r}: end {end} > {size} bytes of data: the file is cut "
                "short"
            )
        item = torch.empty(0, dtype=dtype).element_size()
        if math.prod(max(n, 1) for n in shape) * item >= 2**63:
            raise ValueError(f"tensor {name!r}: shape {shape} does not fit 63 bits")
        wanted = math.prod(shape) * item
        if wanted != end - begin:
            raise ValueError(
                f"tensor {name!r}: {dtype} of shape {shape} takes {wanted} bytes, but "
                f"its offsets hold {end - begin}"
            )
        if begin != covered:
            what = "they overlap" if begin < covered else "a hole"
            raise ValueError(
                f"tensor {name!r}: begin {begin} is not {covered}, where the tensor "
                f"before it ends: {what}"
            )
        covered = end
    if covered != size:
        raise ValueError(
            f"tensors end at {covered}, but the data has {size} bytes: the rest "
            "belongs to no tensor"
        )


def _tensor(file: BinaryIO, start: int, entry: _Entry) -> Tensor:
    count = entry.end - entry.begin
    if count == 0:
        return torch.empty(entry.shape, dtype=entry.dtype)
    data = bytearray(count)
    file.seek(start + entry.begin)
    if file.readinto(data) != count:  # type: ignore[attr-defined]
        raise ValueError(f"tensor {entry.name!r}: the file became shorter")
    if entry.dtype == torch.bool:  # bytes other than 0 and 1 are no bools
        return torch.frombuffer(data, dtype=torch.uint8).ne(0).reshape(entry.shape)
    return torch.frombuffer(data, dtype=entry.dtype).reshape(entry.shape)
