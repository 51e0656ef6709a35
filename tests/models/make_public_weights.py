"""Weights of public models, with inputs and outputs, and the way back.

    make_public_weights.py make FOLDER    random weights of torchvision's
                                          VisionTransformer and SwinTransformer,
                                          of DeiT, GPT-2, XCiT, Nystromformer and
                                          PINNsformer, and files of torch.save
    make_public_weights.py full FOLDER    the same of vit_b_16, swin_t and
                                          swin_v2_t at full size
    make_public_weights.py check FOLDER   reads what the C++ test has saved and
                                          compares logits

GPT-2 is written out here in plain torch, under the names of Hugging Face, and
DeiT under those of facebookresearch and timm; XCiT in xcit_twin.py, what
Nystromformer has for Long Range Arena in lra_twin.py, PINNsformer in
pinnsformer_twin.py.
"""

import collections
import json
import math
import os
import pathlib
import struct
import sys

import lra_twin
import pinnsformer_twin
import torch
import torch.nn.functional as F
import torchvision
import xcit_twin
from torchvision.models import swin_transformer
from torchvision.models.vision_transformer import VisionTransformer

TYPES = {torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8",
         torch.int16: "I16", torch.int32: "I32", torch.int64: "I64",
         torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32",
         torch.float64: "F64"}
SIZES = {"vit": dict(image_size=32, patch_size=8, num_layers=3, num_heads=4,
                     hidden_dim=64, mlp_dim=128, num_classes=10),
         "full": dict(image_size=224, patch_size=16, num_layers=12,
                      num_heads=12, hidden_dim=768, mlp_dim=3072)}
DEIT = dict(side=32, patch=8, dim=48, depth=3, heads=3, classes=10)
GPT = dict(vocabulary=97, context=24, dim=48, depth=3, heads=4)
SWIN = dict(patch_size=[2, 2], embed_dim=24, depths=[2, 3, 2],
            num_heads=[3, 6, 12], window_size=[4, 4], num_classes=10)
# Maps that windows fill, that need padding in every stage, that are shifted
# along one axis only, and pixels that do not fill a patch.
SWIN_IMAGES = [(32, 32), (22, 38), (8, 40), (40, 8), (27, 17)]


def save(path, tensors):
    header, data, end = {}, [], 0
    for name, tensor in tensors.items():
        tensor = tensor.detach().contiguous()
        if tensor.dtype == torch.bfloat16:  # which numpy does not have
            data.append(tensor.view(torch.int16).numpy().tobytes())
        else:
            data.append(tensor.numpy().tobytes())
        header[name] = {"dtype": TYPES[tensor.dtype],
                        "shape": list(tensor.shape),
                        "data_offsets": [end, end + len(data[-1])]}
        end += len(data[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for part in data:
            file.write(part)


def load(path):
    raw = bytearray(pathlib.Path(path).read_bytes())
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    types = {name: dtype for dtype, name in TYPES.items()}
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        part = raw[8 + length + begin:8 + length + end]
        tensors[name] = torch.frombuffer(
            part, dtype=types[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def randomise(tensors):
    """Nothing stays at 0 or 1, where a mistake would not be seen."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point():
            is_norm = ".ln_" in name or "norm" in name
            around = 1.0 if is_norm and "weight" in name else 0.0
            tensor.copy_(around + 0.1 * torch.randn(tensor.shape))


def vit_logits(weights, images, size):
    model = VisionTransformer(**size).eval()
    model.load_state_dict(weights)
    return model(images)


def deit_weights(side, patch, dim, depth, heads, classes, distilled):
    shapes = {"cls_token": (1, 1, dim),
              "pos_embed": (1, (side // patch) ** 2 + 1 + distilled, dim),
              "patch_embed.proj.weight": (dim, 3, patch, patch),
              "patch_embed.proj.bias": (dim,),
              "norm.weight": (dim,), "norm.bias": (dim,),
              "head.weight": (classes, dim), "head.bias": (classes,)}
    if distilled:
        shapes.update({"dist_token": (1, 1, dim),
                       "head_dist.weight": (classes, dim),
                       "head_dist.bias": (classes,)})
    for i in range(depth):
        for name, shape in {"norm1": (dim,), "attn.qkv": (3 * dim, dim),
                            "attn.proj": (dim, dim), "norm2": (dim,),
                            "mlp.fc1": (4 * dim, dim),
                            "mlp.fc2": (dim, 4 * dim)}.items():
            shapes[f"blocks.{i}.{name}.weight"] = shape
            shapes[f"blocks.{i}.{name}.bias"] = shape[:1]
    weights = {name: torch.zeros(shape) for name, shape in shapes.items()}
    randomise(weights)
    return weights


def deit_logits(w, images, patch, heads, depth):
    """Of both heads, or of the one that there is."""

    def linear(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"],
                            w[name + ".bias"], 1e-6)

    def attention(x, name):
        b, n, c = x.shape
        qkv = linear(x, name + ".qkv").reshape(b, n, 3, heads, c // heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        s = q @ k.transpose(-2, -1) * (c // heads) ** -0.5
        y = (s.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c)
        return linear(y, name + ".proj")

    x = F.conv2d(images, w["patch_embed.proj.weight"],
                 w["patch_embed.proj.bias"], stride=patch)
    x = x.flatten(2).transpose(1, 2)
    tokens = [w[name].expand(len(images), -1, -1)
              for name in ("cls_token", "dist_token") if name in w]
    x = torch.cat([*tokens, x], dim=1) + w["pos_embed"]
    for i in range(depth):
        x = x + attention(norm(x, f"blocks.{i}.norm1"), f"blocks.{i}.attn")
        y = F.gelu(linear(norm(x, f"blocks.{i}.norm2"), f"blocks.{i}.mlp.fc1"))
        x = x + linear(y, f"blocks.{i}.mlp.fc2")
    x = norm(x, "norm")
    return [linear(x[:, i], name) for i, name in enumerate(("head", "head_dist"))
            if name + ".weight" in w]


def gpt_weights(vocabulary, context, dim, depth, heads):
    shapes = {"wte.weight": (vocabulary, dim), "wpe.weight": (context, dim),
              "ln_f.weight": (dim,), "ln_f.bias": (dim,)}
    for i in range(depth):
        for name, shape in {"ln_1": (dim,), "attn.c_attn": (dim, 3 * dim),
                            "attn.c_proj": (dim, dim), "ln_2": (dim,),
                            "mlp.c_fc": (dim, 4 * dim),
                            "mlp.c_proj": (4 * dim, dim)}.items():
            shapes[f"h.{i}.{name}.weight"] = shape
            shapes[f"h.{i}.{name}.bias"] = shape[-1:]
    weights = {"transformer." + k: torch.zeros(s) for k, s in shapes.items()}
    randomise(weights)
    for i in range(depth):  # the masks that old files hold
        weights[f"transformer.h.{i}.attn.bias"] = torch.ones(
            1, 1, context, context, dtype=torch.uint8).tril()
        weights[f"transformer.h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    weights["lm_head.weight"] = weights["transformer.wte.weight"]
    return weights


def gpt_logits(weights, tokens, heads, depth):
    w = {k.replace("transformer.", ""): v for k, v in weights.items()}

    def linear(x, name):  # Conv1D: [in, out]
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"],
                            w[name + ".bias"], 1e-5)

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(
            math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))

    def attention(x, name):
        b, n, c = x.shape
        q, k, v = (t.view(b, n, heads, c // heads).transpose(1, 2)
                   for t in linear(x, name + ".c_attn").split(c, -1))
        s = q @ k.transpose(-2, -1) / math.sqrt(c // heads)
        s = s.masked_fill(torch.ones(n, n).tril() == 0, -math.inf)
        y = (s.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c)
        return linear(y, name + ".c_proj")

    x = w["wte.weight"][tokens] + w["wpe.weight"][:tokens.shape[1]]
    for i in range(depth):
        x = x + attention(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn")
        y = linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        x = x + linear(gelu(y), f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def make_vit(folder, name):
    size = SIZES[name]
    model = VisionTransformer(**size)
    weights = model.state_dict()
    if name != "full":
        randomise(weights)
    else:  # at this size only the head, which begins at 0, needs values
        torch.nn.init.normal_(model.heads.head.weight, std=0.1)
    images = torch.randn(2, 3, size["image_size"], size["image_size"])
    save(folder / f"{name}.safetensors", weights)
    save(folder / f"{name}_io.safetensors",
         {"input": images, "logits": model.eval()(images)})


def make_deit(folder, name, distilled):
    weights = deit_weights(**DEIT, distilled=distilled)
    images = torch.randn(2, 3, DEIT["side"], DEIT["side"])
    logits = deit_logits(weights, images, DEIT["patch"], DEIT["heads"],
                         DEIT["depth"])
    save(folder / f"{name}.safetensors", weights)
    save(folder / f"{name}_io.safetensors",
         {"input": images, "head": logits[0], "head_dist": logits[-1],
          "logits": sum(logits) / len(logits)})


def make_swin(folder, version):
    v2 = dict(block=swin_transformer.SwinTransformerBlockV2,
              downsample_layer=swin_transformer.PatchMergingV2)
    model = swin_transformer.SwinTransformer(
        **SWIN, **(v2 if version == 2 else {})).eval()
    randomise(dict(model.named_parameters()))
    for name, scale in model.named_parameters():
        if "logit_scale" in name:
            scale.add_(2)
            scale[0] = 5  # above the limit
    io = {}
    for i, (height, width) in enumerate(SWIN_IMAGES):
        io[f"input{i}"] = torch.randn(2, 3, height, width)
        io[f"logits{i}"] = model(io[f"input{i}"])
    save(folder / f"swin{version}.safetensors", model.state_dict())
    save(folder / f"swin{version}_io.safetensors", io)


def make_full_swin(folder, name, side):
    model = getattr(torchvision.models, name)().eval()
    images = torch.randn(1, 3, side, side)
    save(folder / f"{name}.safetensors", model.state_dict())
    save(folder / f"{name}_io.safetensors",
         {"input": images, "logits": model(images)})


def make_gpt(folder):
    weights = gpt_weights(**GPT)
    tokens = torch.randint(GPT["vocabulary"], (2, GPT["context"]))
    save(folder / "gpt.safetensors", weights)
    save(folder / "gpt_io.safetensors",
         {"input": tokens,
          "logits": gpt_logits(weights, tokens, GPT["heads"], GPT["depth"])})


def make_xcit(folder):
    for name, size in xcit_twin.SIZES.items():
        weights = xcit_twin.weights(**size)
        images = torch.randn(2, 3, size["height"], size["width"])
        torch.save({"model": weights}, folder / f"{name}.pth")
        save(folder / f"{name}_timm.safetensors",
             xcit_twin.timm_names(weights))
        save(folder / f"{name}_io.safetensors",
             {"input": images,
              "logits": xcit_twin.logits(weights, images, **size)})


def make_lra(folder):
    for name, size in lra_twin.SIZES.items():
        weights = lra_twin.weights(**size)
        rows, lengths = lra_twin.tokens(**size)
        torch.save({"model_state_dict": weights, "optimizer_state_dict": {}},
                   folder / f"{name}.pth")
        save(folder / f"{name}_io.safetensors",
             {"input": rows, "lengths": lengths,
              "logits": lra_twin.logits(weights, rows, **size)})


def make_pinnsformer(folder):
    for formula in (None, *pinnsformer_twin.FORMULAS):
        weights = pinnsformer_twin.weights(plain=formula is None)
        points = torch.rand(7, 2, dtype=torch.double)
        with torch.enable_grad():
            values = pinnsformer_twin.values(weights, points, formula)
        name = f"pinnsformer_{formula}" if formula else "pinn"
        torch.save({"model_state_dict": weights}, folder / f"{name}.pt")
        save(folder / f"{name}_io.safetensors",
             {key: value.detach() for key, value in values.items()})


class Harm:
    """What runs a command when it is loaded by Python."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def make_torch_files(folder):
    """What torch.save writes, and what the same is in safetensors."""
    values = torch.tensor([[0, 1, 2], [3, 0, 5]])
    types = {str(dtype): values.to(dtype) for dtype in TYPES}
    types |= {"scalar": torch.tensor(2.5), "empty": torch.empty(0, 3)}
    save(folder / "types.safetensors", types)
    torch.save(types, folder / "types.pth")
    torch.save({"epoch": 3, "lr": 0.1, "seen": [1, None, True, (2 ** 40,)],
                "model": {"module." + k: v for k, v in types.items()}},
               folder / "types_wrapped.pt")
    torch.save(types, folder / "types_protocol.bin", pickle_protocol=4)
    torch.save(types, folder / "types_named_by_nobody")

    shared = torch.arange(24.)
    views = collections.OrderedDict(
        all=shared.view(4, 6), part=shared[3:9].view(2, 3).t(),
        parameter=torch.nn.Parameter(shared.view(2, 3, 4)[:, 1]))
    save(folder / "views.safetensors", views)
    torch.save({"state_dict": views}, folder / "views.pth")

    weights = load(folder / "vit.safetensors")
    model = VisionTransformer(**SIZES["vit"])
    model.load_state_dict(weights)
    torch.save(torch.nn.DataParallel(model).state_dict(), folder / "vit.pth")

    torch.save(types, folder / "old.pth",
               _use_new_zipfile_serialization=False)
    torch.save({"w": shared, "x": Harm(f"touch {folder}/harm")},
               folder / "harm.pth")
    torch.jit.script(torch.nn.Linear(2, 3)).save(str(folder / "script.pt"))


def public_vit_names(tensors):
    theirs = {}
    for name, tensor in tensors.items():
        for ours, public in (("blocks.", "encoder.layers.encoder_layer_"),
                             (".norm1", ".ln_1"), (".norm2", ".ln_2"),
                             (".attention.", ".self_attention."),
                             ("mlp.fc1", "mlp.0"), ("mlp.fc2", "mlp.3"),
                             ("patches.proj", "conv_proj"),
                             ("class_token.weight", "class_token"),
                             ("positions.weight", "encoder.pos_embedding")):
            name = name.replace(ours, public)
        if name.startswith("norm."):
            name = "encoder.ln." + name[5:]
        if name.startswith("head."):
            name = "heads." + name
        if name == "encoder.pos_embedding":
            tensor = tensor.unsqueeze(0)
        theirs[name] = tensor
    return theirs


def public_deit_names(tensors):
    theirs = {}
    for name, tensor in tensors.items():
        for ours, public in (("attention.in_proj_", "attn.qkv."),
                             ("attention.out_proj", "attn.proj"),
                             ("patches.proj", "patch_embed.proj"),
                             ("class_token.weight", "cls_token"),
                             ("dist_token.weight", "dist_token"),
                             ("positions.weight", "pos_embed")):
            name = name.replace(ours, public)
        theirs[name] = tensor.unsqueeze(0) if name == "pos_embed" else tensor
    return theirs


def public_gpt_names(tensors):
    theirs = {}
    for name, tensor in tensors.items():
        for ours, public in (("blocks.", "h."), (".norm1", ".ln_1"),
                             (".norm2", ".ln_2"),
                             ("attention.in_proj_", "attn.c_attn."),
                             ("attention.out_proj", "attn.c_proj"),
                             ("mlp.fc1", "mlp.c_fc"), ("mlp.fc2", "mlp.c_proj"),
                             ("tokens.", "wte."), ("positions.", "wpe.")):
            name = name.replace(ours, public)
        if name.startswith("norm."):
            name = "ln_f." + name[5:]
        is_matrix = tensor.dim() == 2 and name.startswith("h.")
        theirs[name] = tensor.T if is_matrix else tensor
    return theirs


def check_close(what, ours, expected):
    error = ((ours - expected).abs().max() / expected.abs().max()).item()
    print(f"{what}: relative error {error:.2e}")
    if not error <= 1e-4:
        sys.exit(f"{what}: {error} > 1e-4")


def check(folder):
    vit = load(folder / "saved_vit.safetensors")
    images, logits = vit.pop("io.input"), vit.pop("io.logits")
    check_close("vit", logits,
                vit_logits(public_vit_names(vit), images, SIZES["vit"]))
    deit = load(folder / "saved_deit.safetensors")
    images, logits = deit.pop("io.input"), deit.pop("io.logits")
    theirs = deit_logits(public_deit_names(deit), images, DEIT["patch"],
                         DEIT["heads"], DEIT["depth"])
    check_close("deit", logits, sum(theirs) / 2)
    gpt = load(folder / "saved_gpt.safetensors")
    tokens, logits = gpt.pop("io.input"), gpt.pop("io.logits")
    check_close("gpt", logits, gpt_logits(public_gpt_names(gpt), tokens,
                                          GPT["heads"], GPT["depth"]))


def main():
    torch.manual_seed(1)
    what, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        if what == "make":
            make_vit(folder, "vit")
            make_deit(folder, "deit", distilled=False)
            make_deit(folder, "deit_distilled", distilled=True)
            make_swin(folder, 1)
            make_swin(folder, 2)
            make_gpt(folder)
            make_xcit(folder)
            make_lra(folder)
            make_pinnsformer(folder)
            make_torch_files(folder)
        elif what == "full":
            make_vit(folder, "full")
            make_full_swin(folder, "swin_t", 224)
            make_full_swin(folder, "swin_v2_t", 256)
        elif what == "check":
            check(folder)
        else:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
