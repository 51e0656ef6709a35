"""Trains a small ViT of torchvision with a polynomial in the place of softmax.

    python3 examples/train_vit.py --activation 'x^3/sqrt(N)'

The images are Fashion-MNIST: of Debian's package dataset-fashion-mnist, or four
gzipped idx files in another folder. It takes a minute on two cores.
"""

import argparse
import gzip
from pathlib import Path

import torch
import torch.nn.functional as F
from torchvision.models import VisionTransformer

import polyattn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--activation", default="x^3/sqrt(N)", help="a formula")
parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", type=Path)
parser.add_argument("--steps", default=1000, type=int, help="of 128 images each")
options = parser.parse_args()


def read(name):
    """An idx file: its rank is byte 3, sizes follow, then the values."""
    data = bytearray(gzip.decompress((options.data / f"{name}-ubyte.gz").read_bytes()))
    start = 4 + 4 * data[3]
    shape = [int.from_bytes(data[i : i + 4], "big") for i in range(4, start, 4)]
    return torch.frombuffer(data, dtype=torch.uint8, offset=start).reshape(shape)


def read_split(name):
    """Images [B, 3, 28, 28], because torchvision's ViT wants colours; labels [B]."""
    images = (read(f"{name}-images-idx3").float() / 255 - 0.286) / 0.353
    return images[:, None].expand(-1, 3, -1, -1), read(f"{name}-labels-idx1").long()


torch.manual_seed(0)
images, labels = read_split("train")
model = VisionTransformer(28, 7, 4, 4, hidden_dim=64, mlp_dim=128, num_classes=10)
print(polyattn.replace_softmax(model, options.activation, match=images[:128]))

optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, options.steps)
for step in range(1, options.steps + 1):
    batch = torch.randint(len(images), (128,))
    loss = F.cross_entropy(model(images[batch]), labels[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step == 1 or step % max(1, options.steps // 10) == 0:
        print(f"step {step}: loss {loss.item():.4f}")


def print_norms(attention):
    """A hook of the norm before an attention module: ||A||_F of its heads."""

    def hook(module, inputs, x):
        weights = attention(x, x, x, average_attn_weights=False)[1]
        each = weights.norm(dim=(2, 3)).mean(dim=0)
        print("norms of the heads:", *(f"{norm:.3f}" for norm in each.tolist()))

    return hook


model.eval()
images, labels = read_split("t10k")
with torch.no_grad():
    guess = torch.cat([model(part).argmax(dim=1) for part in images.split(500)])
    print(f"accuracy {100 * (guess == labels).float().mean():.2f} %")
    for layer in model.encoder.layers:
        layer.ln_1.register_forward_hook(print_norms(layer.self_attention))
    model(images[:500])
