"""Another implementation of safetensors, which needs only the standard library:
what it writes is read by ours, and what ours writes is read by it.

usage: safetensors_python_test.py path/of/safetensors_copy
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
         "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8}


def write(path, tensors, metadata, **json_options):
    """tensors: {name: (dtype, shape, bytes)}, laid out in this order."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"data_offsets": [len(data), len(data) + len(content)],
                        "dtype": dtype, "shape": shape}
        data += content
    if metadata:
        header["__metadata__"] = metadata
    text = json.dumps(header, **json_options).encode("utf-8")
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length].decode("utf-8"))
    data = content[8 + length:]
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], data[begin:end])
        assert (8 + length + begin) % SIZES[entry["dtype"]] == 0, f"{name} is not aligned"
    return tensors, metadata


def sample():
    """Every type, narrow ones first so that most tensors are not aligned."""
    tensors = {"one byte": ("U8", [1], b"\x07"), "empty": ("F64", [3, 0, 2], b"")}
    for number, (dtype, size) in enumerate(SIZES.items()):
        content = bytes((number * 31 + i) % 256 for i in range(6 * size))
        tensors[f"layer.{number}.{dtype}"] = (dtype, [2, 3], content)
        tensors[f"scalar {dtype}"] = (dtype, [], content[:size])
    tensors['quote " \\ \n \u00e9 \u6f22 \U0001f600 \u0000'] = (
        "F32", [2], struct.pack("<2f", 1.5, -0.0))
    metadata = {"format": "pt", "": "empty key", "\u00e9\n": 'a "value" \U0001f600'}
    return tensors, metadata


def run(copy, source, target):
    return subprocess.run([copy, source, target], capture_output=True, text=True)


def copied(copy, source, target):
    result = run(copy, source, target)
    assert result.returncode == 0, result.stderr
    return read(target)


def main(copy):
    tensors, metadata = sample()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs, again = (os.path.join(folder, name) for name in ("ours", "theirs", "again"))
        # Escapes or UTF-8, with spaces and new lines or without.
        for options in ({}, {"ensure_ascii": False}, {"indent": 1}, {"separators": (",", ":")}):
            write(theirs, tensors, metadata, **options)
            assert copied(copy, theirs, ours) == (tensors, metadata), options
        # What ours wrote, laid out again by Python, comes back as the same file.
        reordered = dict(sorted(read(ours)[0].items()))
        write(theirs, reordered, metadata)
        assert copied(copy, theirs, again) == (tensors, metadata)
        with open(ours, "rb") as first, open(again, "rb") as second:
            assert first.read() == second.read(), "the same tensors in another file"
        # Nothing at all.
        write(theirs, {}, {})
        assert copied(copy, theirs, ours) == ({}, {})
        # Refused: the file stays as it was.
        write(theirs, {"a": ("F32", [2], b"1234567")}, {})
        result = run(copy, theirs, ours)
        expected = (f'[safetensors] {theirs}: tensor "a": F32 of shape [2] takes 8 bytes, '
                    "but its offsets hold 7\n")
        assert (result.returncode, result.stderr) == (1, expected), result
        assert read(ours) == ({}, {})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
