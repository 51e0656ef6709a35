"""Steps of training in plain PyTorch: softmax by its own fused attention.

`polyattn bench time-to-quality TASK --prepare` writes the steps: the weights that a
model begins with, and batches. This program makes the same steps with PyTorch's layers,
its attention and its AdamW, and writes down what a step takes and the loss of each, by
which the bench checks that it is the same model. It needs PyTorch 1.13 or newer alone.
"""

import argparse
import json
import struct
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

TYPES = {"F32": torch.float32, "I64": torch.int64}
FUSED = hasattr(F, "scaled_dot_product_attention")
ATTENTION = "scaled_dot_product_attention" if FUSED else "matmul, softmax, matmul"


def read_steps(path):
    """Tensors and metadata of a safetensors file."""
    data = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    missing = {"id", "description", "decays"} - metadata.keys()
    if missing:
        raise ValueError(f"{path} is not what --prepare writes: no {min(missing)}")
    body = bytearray(data[8 + size :])
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype = TYPES[entry["dtype"]]
        part = torch.frombuffer(body[begin:end], dtype=dtype)
        tensors[name] = part.reshape(entry["shape"])
    return tensors, metadata


def attend(q, k, v, mask):
    """[B, H, N, D], and a mask that is true for keys that are seen."""
    if FUSED:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ v


class Attention(torch.nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.in_proj_weight = torch.nn.Parameter(torch.empty(3 * dim, dim))
        self.in_proj_bias = torch.nn.Parameter(torch.empty(3 * dim))
        self.out_proj = torch.nn.Linear(dim, dim)

    def forward(self, x, mask):
        batch, rows, dim = x.shape
        qkv = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        qkv = qkv.view(batch, rows, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        o = attend(q, k, v, mask)
        return self.out_proj(o.transpose(1, 2).reshape(batch, rows, dim))


class Mlp(torch.nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1 = torch.nn.Linear(dim, hidden)
        self.fc2 = torch.nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(torch.nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.norm1 = torch.nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.norm2 = torch.nn.LayerNorm(dim)
        self.mlp = Mlp(dim, hidden)

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Table(torch.nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(*shape))


class Classifier(torch.nn.Module):
    """Sequences with padding at their ends, as polyattn's SequenceClassifier."""

    def __init__(self, options, shapes):
        super().__init__()
        dim = options["dim"]
        self.tokens = Table(*shapes["tokens.weight"])
        self.positions = Table(*shapes["positions.weight"])
        self.class_token = None
        if options["pooling"] == "class":
            self.class_token = Table(*shapes["class_token.weight"])
        self.blocks = torch.nn.ModuleList(
            Block(dim, options["heads"], options["mlp"])
            for _ in range(options["depth"])
        )
        self.norm = torch.nn.LayerNorm(dim)
        self.head = torch.nn.Linear(dim, shapes["head.weight"][0])

    def forward(self, tokens, lengths):
        x = F.embedding(tokens, self.tokens.weight)
        seen = torch.arange(tokens.shape[1]) < lengths.unsqueeze(1)
        if self.class_token is not None:
            x = torch.cat([self.class_token.weight.expand(len(x), -1, -1), x], 1)
            seen = F.pad(seen, (1, 0), value=True)
        x = x + self.positions.weight[: x.shape[1]]
        mask = None if bool(seen.all()) else seen[:, None, None]
        for block in self.blocks:
            x = block(x, mask)
        x = self.norm(x)
        if self.class_token is not None:
            return self.head(x[:, 0])
        rows = x.masked_fill(~seen.unsqueeze(2), 0.0).sum(1)
        return self.head(rows / seen.sum(1, keepdim=True))


class Steps:
    def __init__(self, path, double=False):
        tensors, metadata = read_steps(path)
        self.id = metadata["id"]
        self.description = json.loads(metadata["description"])
        self.batches = [
            [tensors.pop(f"batch.{i}.{part}") for part in ("inputs", "lengths", "targets")]
            for i in range(self.description["batches"])
        ]
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        self.model = Classifier(self.description["model"], shapes)
        self.model.load_state_dict(tensors)
        if double:
            self.model.double()
        self.optimizer = self._optimizer(set(json.loads(metadata["decays"])))
        self.made = 0

    def _optimizer(self, decays):
        train = self.description["train"]
        groups = [
            {
                "params": [p for n, p in self.model.named_parameters() if (n in decays) == on],
                "weight_decay": train["weight_decay"] * on,
            }
            for on in (True, False)
        ]
        version = tuple(int(part) for part in torch.__version__.split(".")[:2])
        return torch.optim.AdamW(
            groups,
            betas=(train["beta1"], train["beta2"]),
            eps=train["eps"],
            # On the CPU since 2.4.
            **({"fused": True} if version >= (2, 4) else {}),
        )

    def step(self):
        """The loss before the step, as a number."""
        train = self.description["train"]
        tokens, lengths, targets = self.batches[self.made % len(self.batches)]
        for group in self.optimizer.param_groups:
            group["lr"] = train["lr"][self.made]
        self.made += 1
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(
            self.model(tokens, lengths),
            targets,
            label_smoothing=train["label_smoothing"],
        )
        loss.backward()
        if train["clip"] > 0:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), train["clip"])
        self.optimizer.step()
        return loss.item()

    def measure(self):
        """Rounds over the batches, the first of which warms up."""
        count = len(self.batches)
        found = {"losses": [], "processor_seconds": [], "seconds": []}
        for round_ in range(self.description["rounds"] + 1):
            used, start = time.process_time(), time.perf_counter()
            found["losses"] += [self.step() for _ in range(count)]
            if round_ > 0:
                used, start = time.process_time() - used, time.perf_counter() - start
                found["processor_seconds"].append(used / count)
                found["seconds"].append(start / count)
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("steps", help="steps.safetensors of --prepare")
    parser.add_argument("--json", help="write what was measured there")
    parser.add_argument("--threads", type=int, default=1, help="default: 1")
    parser.add_argument(
        "--double", action="store_true", help="in f64, to see what f32 rounds"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    try:
        steps = Steps(options.steps, options.double)
    except (OSError, ValueError, KeyError, struct.error) as error:
        print(f"pytorch_steps: {options.steps}: {error!r}", file=sys.stderr)
        return 1
    found = {
        "torch": torch.__version__,
        "attention": ATTENTION,
        "threads": options.threads,
        "steps": steps.id,
        **steps.measure(),
    }
    if options.json:
        Path(options.json).write_text(json.dumps(found) + "\n")
    processor = sorted(found["processor_seconds"])[len(found["processor_seconds"]) // 2]
    print(
        f"PyTorch {found['torch']}, {ATTENTION}: {processor:.3f} s of processor time a "
        f"step, {len(found['losses'])} steps, last loss {found['losses'][-1]:.4f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
