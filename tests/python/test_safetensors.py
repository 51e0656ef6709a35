"""The reader of safetensors files, on whole ones and on damaged ones."""

import json
import random
import struct

import pytest
import torch

from data_files import bytes_of, safetensors, write_safetensors
from polyattn._safetensors import read_safetensors

ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
LATER = {"dtype": "F32", "shape": [2], "data_offsets": [9, 17]}
TENSORS = {
    "matrix": torch.arange(6, dtype=torch.float32).reshape(2, 3) / 7,
    "scalar": torch.tensor(-2.5, dtype=torch.float64),
    "empty": torch.empty(3, 0, dtype=torch.int32),
    "half": torch.tensor([1.5, -0.25], dtype=torch.float16),
    "brain": torch.tensor([3.0, 1e30], dtype=torch.bfloat16),
    "flags": torch.tensor([True, False, True]),
    "bytes": torch.tensor([0, 255], dtype=torch.uint8),
    "tiny": torch.tensor([-128, 127], dtype=torch.int8),
    "short": torch.tensor([-32768], dtype=torch.int16),
    "long": torch.tensor([[2**62], [-1]], dtype=torch.int64),
}


def refused(path, content):
    """What is said of a file with this content."""
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        read_safetensors(path)
    assert str(caught.value).startswith(f"[safetensors] {path}: ")
    return str(caught.value)[len(f"[safetensors] {path}: ") :]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.safetensors"


def test_every_type_and_shape(path):
    write_safetensors(path, TENSORS)
    found = read_safetensors(path)
    assert found.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert torch.equal(found[name], tensor)


def test_only_what_is_kept(path):
    write_safetensors(path, TENSORS)
    found = read_safetensors(path, lambda name: name.startswith("b"))
    assert found.keys() == {"brain", "bytes"}
    assert torch.equal(found["brain"], TENSORS["brain"])


def test_metadata_and_padding_are_read_over(path):
    header = json.dumps({"__metadata__": {"format": "pt"}, "a": ENTRY}).encode()
    path.write_bytes(safetensors(header + b"   ", struct.pack("<2f", 1, 2)))
    assert read_safetensors(path)["a"].tolist() == [1, 2]


def test_any_byte_but_zero_is_true(path):
    entry = {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}
    path.write_bytes(safetensors({"a": entry}, b"\0\1\x80"))
    assert read_safetensors(path)["a"].tolist() == [False, True, True]


def test_tensors_are_their_own(path):
    write_safetensors(path, TENSORS)
    first = read_safetensors(path)
    first["matrix"].zero_()
    assert torch.equal(read_safetensors(path)["matrix"], TENSORS["matrix"])


def test_no_file(path):
    with pytest.raises(FileNotFoundError):
        read_safetensors(path)


def with_entry(**fields):
    return safetensors({"a": {**ENTRY, **fields}}, bytes(8))


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "file has 0 bytes, fewer than the 8"),
        (bytes(7), "file has 7 bytes"),
        (struct.pack("<Q", 2**40) + bytes(9), "> limit 100000000: this is not a"),
        (struct.pack("<Q", 10) + b"{}", "header length 10 > 2 bytes that follow"),
        (safetensors(b""), "header is not an object"),
        (safetensors(b" {}"), "header is not an object"),
        (safetensors(b"[]"), "header is not an object"),
        (safetensors(b"{} x"), "not valid JSON at character 3: Extra data"),
        (safetensors(b'{"a":'), "not valid JSON at character 5"),
        (safetensors(b'{"\xff": 1}'), "header is not UTF-8 at byte 2"),
        (safetensors(b'{"a":' * 100_000), "nested too deep"),
        (safetensors(b'{"a": {}, "a": {}}'), "header has the key 'a' twice"),
        (safetensors(b'{"a": {"shape": 1, "shape": 2}}'), "the key 'shape' twice"),
        (safetensors({"__metadata__": {"a": 1}}), "not an object of strings"),
        (safetensors({"__metadata__": []}), "not an object of strings"),
        (safetensors({"a": 1}), "tensor 'a' has not the keys dtype, shape,"),
        (safetensors({"a": {"dtype": "F32"}}), "tensor 'a' has not the keys"),
        (with_entry(more=1), "tensor 'a' has not the keys"),
        (with_entry(dtype="F8_E4M3"), "dtype 'F8_E4M3' is none of BOOL, U8"),
        (with_entry(dtype=["F32"]), "dtype ['F32'] is none of"),
        (with_entry(shape=2), "shape 2 is not a list of integers"),
        (with_entry(shape=[-2]), "shape [-2] is not a list of integers"),
        (with_entry(shape=[2.0]), "shape [2.0] is not a list of integers"),
        (with_entry(shape=[True, 2]), "shape [True, 2] is not a list"),
        (with_entry(shape=[2**63]), "is not a list of integers from 0 to 2^63 - 1"),
        (with_entry(data_offsets=None), "data_offsets None is not a list"),
        (with_entry(data_offsets=[0]), "data_offsets has 1 numbers, not 2"),
        (with_entry(data_offsets=[0, 4, 8]), "data_offsets has 3 numbers, not 2"),
        (with_entry(data_offsets=[8, 0]), "begin 8 > end 0"),
        (with_entry(data_offsets=[0, 9]), "end 9 > 8 bytes of data"),
        (with_entry(shape=[3]), "shape [3] takes 12 bytes, but its offsets hold 8"),
        (with_entry(shape=[2**62, 2**62]), "does not fit 63 bits"),
        (with_entry(shape=[0, 2**62, 2**62]), "does not fit 63 bits"),
        (with_entry(shape=[1], data_offsets=[4, 8]), "begin 4 is not 0, where"),
        (with_entry(shape=[1], data_offsets=[0, 4]), "tensors end at 4, but the data"),
        (safetensors({}, b"a"), "tensors end at 0, but the data has 1 bytes"),
        (safetensors({"a": ENTRY, "b": ENTRY}, bytes(8)), "they overlap"),
        (
            safetensors({"a": ENTRY, "b": LATER}, bytes(17)),
            "tensor 'b': begin 9 is not 8, where the tensor before it ends: a hole",
        ),
    ],
)
def test_damaged(path, content, message):
    assert message in refused(path, content)


def test_every_cut_is_refused(path):
    write_safetensors(path, TENSORS)
    whole = path.read_bytes()
    for size in range(len(whole)):
        refused(path, whole[:size])
    refused(path, whole + b"\0")


def test_other_bytes_in_the_header(path):
    """Either they are refused with a ValueError, or they change a value that may
    have any: a name, or the type or shape of a tensor of the same size."""
    write_safetensors(path, TENSORS)
    whole = path.read_bytes()
    (length,) = struct.unpack_from("<Q", whole)
    draw = random.Random(1)
    refusals = 0
    for _ in range(2000):
        spoilt = bytearray(whole)
        spoilt[draw.randrange(8 + length)] = draw.randrange(256)
        path.write_bytes(spoilt)
        try:
            found = read_safetensors(path)
        except ValueError:
            refusals += 1
        else:
            sizes = [len(bytes_of(tensor)) for tensor in found.values()]
            assert sum(sizes) == len(whole) - 8 - length
    assert 1000 < refusals < 2000
