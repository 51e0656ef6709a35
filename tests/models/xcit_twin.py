"""XCiT in plain torch functions, from weights by facebookresearch's names."""

import math

import torch
import torch.nn.functional as F

SIZES = {"xcit_p16": dict(dim=48, depth=2, heads=4, patch=16, classes=10,
                          tokens_norm=False, height=48, width=32),
         "xcit_p8": dict(dim=48, depth=2, heads=4, patch=8, classes=10,
                         tokens_norm=True, height=24, width=40)}


def shapes(dim, depth, patch, heads, classes, **_):
    shapes = {}

    def batch_norm(name, channels):
        for part in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}.{part}"] = (channels,)
        shapes[name + ".num_batches_tracked"] = ()

    def linear(name, out, into):
        shapes[name + ".weight"] = (out, into)
        shapes[name + ".bias"] = (out,)

    def block(name, gammas):
        for i in range(1, gammas + 1):
            shapes[f"{name}.gamma{i}"] = (dim,)
            shapes[f"{name}.norm{i}.weight"] = (dim,)
            shapes[f"{name}.norm{i}.bias"] = (dim,)
        linear(name + ".attn.qkv", 3 * dim, dim)
        linear(name + ".attn.proj", dim, dim)
        linear(name + ".mlp.fc1", 4 * dim, dim)
        linear(name + ".mlp.fc2", dim, 4 * dim)

    steps = int(math.log2(patch))
    widths = [3] + [dim >> i for i in reversed(range(steps))]
    for i in range(steps):
        name = f"patch_embed.proj.{2 * i}"
        shapes[name + ".0.weight"] = (widths[i + 1], widths[i], 3, 3)
        batch_norm(name + ".1", widths[i + 1])
    shapes["pos_embeder.token_projection.weight"] = (dim, 64, 1, 1)
    shapes["pos_embeder.token_projection.bias"] = (dim,)
    shapes["cls_token"] = (1, 1, dim)
    for i in range(depth):
        name = f"blocks.{i}"
        block(name, 3)
        shapes[name + ".attn.temperature"] = (heads, 1, 1)
        for conv in ("conv1", "conv2"):
            shapes[f"{name}.local_mp.{conv}.weight"] = (dim, 1, 3, 3)
            shapes[f"{name}.local_mp.{conv}.bias"] = (dim,)
        batch_norm(name + ".local_mp.bn", dim)
    for i in range(2):
        block(f"cls_attn_blocks.{i}", 2)
    shapes["norm.weight"] = shapes["norm.bias"] = (dim,)
    linear("head", classes, dim)
    return shapes


def weights(**size):
    """Random ones, none at its usual first value."""
    tensors = {}
    for name, shape in shapes(**size).items():
        if name.endswith("num_batches_tracked"):
            tensors[name] = torch.tensor(7)
        elif name.endswith("running_var"):
            tensors[name] = 0.5 + torch.rand(shape)
        elif len(shape) == 1 or "temperature" in name:
            around = 0.0 if "bias" in name or "mean" in name else 1.0
            tensors[name] = around + 0.1 * torch.randn(shape)
        else:
            into = math.prod(shape[1:])
            tensors[name] = torch.randn(shape) / math.sqrt(into)
    return tensors


def logits(w, images, dim, depth, heads, patch, tokens_norm, **_):
    def linear(x, name):
        return F.linear(x, w[name + ".weight"], w[name + ".bias"])

    def norm(x, name):
        return F.layer_norm(x, (dim,), w[name + ".weight"], w[name + ".bias"],
                            1e-6)

    def batch_norm(x, name):
        return F.batch_norm(x, *(w[f"{name}.{part}"] for part in (
            "running_mean", "running_var", "weight", "bias")))

    def mlp(x, name):
        return linear(F.gelu(linear(x, name + ".mlp.fc1")), name + ".mlp.fc2")

    x = images
    for i in range(int(math.log2(patch))):
        x = F.gelu(x) if i else x
        name = f"patch_embed.proj.{2 * i}"
        x = F.conv2d(x, w[name + ".0.weight"], stride=2, padding=1)
        x = batch_norm(x, name + ".1")
    b, _, height, width = x.shape

    wave = torch.empty(64, height, width)
    for channel in range(64):
        period = 10000 ** (2 * (channel % 32 // 2) / 32)
        trig = math.cos if channel % 2 else math.sin
        for r in range(height):
            for c in range(width):
                at = ((r + 1) / (height + 1e-6) if channel < 32
                      else (c + 1) / (width + 1e-6))
                wave[channel, r, c] = trig(at * 2 * math.pi / period)
    x = x + F.conv2d(wave[None], w["pos_embeder.token_projection.weight"],
                     w["pos_embeder.token_projection.bias"])
    x = x.flatten(2).transpose(1, 2)
    d = dim // heads

    def xca(y, name):
        qkv = linear(y, name + ".attn.qkv").reshape(b, -1, 3, heads, d)
        q, k, v = qkv.permute(2, 0, 3, 4, 1)
        a = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
             * w[name + ".attn.temperature"]).softmax(-1)
        y = (a @ v).permute(0, 3, 1, 2).reshape(b, -1, dim)
        return linear(y, name + ".attn.proj")

    def local(y, name):
        y = y.transpose(1, 2).reshape(b, dim, height, width)
        for i in (1, 2):
            conv = f"{name}.local_mp.conv{i}"
            y = F.conv2d(y, w[conv + ".weight"], w[conv + ".bias"], padding=1,
                         groups=dim)
            y = batch_norm(F.gelu(y), name + ".local_mp.bn") if i == 1 else y
        return y.flatten(2).transpose(1, 2)

    for i in range(depth):
        name = f"blocks.{i}"
        for number, branch in ((1, xca), (3, local), (2, mlp)):
            x = x + w[f"{name}.gamma{number}"] * branch(
                norm(x, f"{name}.norm{number}"), name)

    def class_attention(y, name):
        q, k, v = linear(y, name + ".attn.qkv").reshape(
            b, -1, 3, heads, d).permute(2, 0, 3, 1, 4)
        a = (q[:, :, :1] @ k.transpose(-2, -1) / math.sqrt(d)).softmax(-1)
        token = linear((a @ v).transpose(1, 2).reshape(b, 1, dim),
                       name + ".attn.proj")
        return torch.cat([token, y[:, 1:]], 1)

    x = torch.cat([w["cls_token"].expand(b, 1, dim), x], 1)
    for i in range(2):
        name = f"cls_attn_blocks.{i}"
        x = x + w[name + ".gamma1"] * class_attention(
            norm(x, name + ".norm1"), name)
        if tokens_norm:
            x = norm(x, name + ".norm2")
        else:
            x = torch.cat([norm(x[:, :1], name + ".norm2"), x[:, 1:]], 1)
        token = w[name + ".gamma2"] * mlp(x[:, :1], name)
        x = x + torch.cat([token, x[:, 1:]], 1)
    return linear(norm(x, "norm")[:, 0], "head")


def timm_names(tensors):
    theirs = {}
    for name, tensor in tensors.items():
        name = name.replace("pos_embeder", "pos_embed")
        if name.startswith("cls_attn") and ".qkv." in name:
            for letter, part in zip("qkv", tensor.chunk(3)):
                theirs[name.replace(".qkv.", f".{letter}.")] = part.clone()
        else:
            theirs[name] = tensor
    return theirs
