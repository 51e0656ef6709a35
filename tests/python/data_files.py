"""Files as tests need them: tensors and images."""

import gzip
import json
import struct
import zlib

import torch

DTYPES = {
    "torch.bool": "BOOL",
    "torch.uint8": "U8",
    "torch.int8": "I8",
    "torch.int16": "I16",
    "torch.int32": "I32",
    "torch.int64": "I64",
    "torch.float16": "F16",
    "torch.bfloat16": "BF16",
    "torch.float32": "F32",
    "torch.float64": "F64",
}


def bytes_of(tensor):
    flat = tensor.detach().contiguous().flatten()
    return flat.view(torch.uint8).numpy().tobytes() if len(flat) else b""


def safetensors(header, data=b""):
    """The bytes of a file with this header, an object or bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = bytes_of(tensor)
        header[name] = {
            "dtype": DTYPES[str(tensor.dtype)],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    path.write_bytes(safetensors(header, data))


def write_idx(path, bytes_):
    """A tensor of bytes as an idx file, gzipped."""
    head = struct.pack(f">HBB{bytes_.dim()}I", 0, 8, bytes_.dim(), *bytes_.shape)
    path.write_bytes(gzip.compress(head + bytes_.numpy().tobytes()))


def write_idx_folder(folder, train, test):
    """Images [B, height, width] and labels [B], under the names of MNIST."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, (images, labels) in (("train", train), ("t10k", test)):
        write_idx(folder / f"{split}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{split}-labels-idx1-ubyte.gz", labels)


def read_idx(path):
    data = gzip.decompress(path.read_bytes())
    shape = struct.unpack_from(f">{data[3]}I", data, 4)
    bytes_ = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return bytes_[4 + 4 * len(shape) :].reshape(shape)


def write_png(path, image):
    """Bytes [3, height, width]."""

    def chunk(kind, data):
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    height, width = image.shape[1:]
    rows = image.permute(1, 2, 0).reshape(height, -1)
    data = b"".join(b"\0" + row.numpy().tobytes() for row in rows)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )
