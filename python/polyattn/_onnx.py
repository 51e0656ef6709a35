"""ONNX Runtime's fused attention, for the benchmark alone.

A model of one node is a hundred bytes: they are written here, without the package
onnx.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Iterator, List, Optional, Sequence, Union

from torch import Tensor


def version() -> Optional[str]:
    try:
        with _quiet():
            import onnxruntime
    except ImportError:
        return None
    return onnxruntime.__version__


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Beside Debian's torch its library complains about each of a thousand schemas
    that both of them register."""
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def _field(number: int, value: Union[int, str, bytes]) -> bytes:
    """One field of a message of protocol buffers."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _value(name: str, sizes: Sequence[int]) -> bytes:
    shape = b"".join(_field(1, _field(1, size)) for size in sizes)
    tensor = _field(1, 1) + _field(2, shape)  # floats of 32 bits
    return _field(1, name) + _field(2, _field(1, tensor))


def _model(heads: int, sizes: Sequence[int]) -> bytes:
    """query, key, value [B, N, H D] -> output of the same size."""
    names = ("query", "key", "value")
    count = _field(1, "num_heads") + _field(3, heads) + _field(20, 2)
    node = b"".join(_field(1, name) for name in names) + _field(2, "output")
    node += _field(4, "MultiHeadAttention") + _field(5, count)
    node += _field(7, "com.microsoft")
    graph = _field(1, node) + _field(2, "attention")
    graph += b"".join(_field(11, _value(name, sizes)) for name in names)
    graph += _field(12, _value("output", sizes))
    sets = _field(8, _field(1, "") + _field(2, 17))
    sets += _field(8, _field(1, "com.microsoft") + _field(2, 1))
    return _field(1, 8) + _field(7, graph) + sets


def multi_head_attention(inputs: List[Tensor], threads: int) -> Callable[[], Any]:
    """A program that computes softmax attention of q, k, v [B, H, N, D]."""
    with _quiet():
        import onnxruntime

    b, heads, n, d = inputs[0].shape
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        _model(heads, (b, n, heads * d)), options, providers=["CPUExecutionProvider"]
    )
    feeds = {
        name: t.transpose(1, 2).reshape(b, n, heads * d).numpy()
        for name, t in zip(("query", "key", "value"), inputs)
    }
    return lambda: session.run(None, feeds)[0]
