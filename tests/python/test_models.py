"""polyattn.models against the same models in plain torch ops."""

import doctest
import math

import pytest
import torch

import polyattn
import reference
from helpers import assert_equal, random
from polyattn.models import Gpt, SequenceClassifier, ViT, pixel_statistics
from test_nn import heads_of, project_out

CUBE = "x^3/sqrt(N)"


def make(kind, *sizes, **options):
    torch.manual_seed(0)
    model = kind(*sizes, **options).double().eval()
    for p in model.parameters():  # none of them neutral
        torch.nn.init.normal_(p, 0.0, 0.3)
    return model


def check_docstring(thing):
    """Its examples run and print what they say."""
    (test,) = doctest.DocTestFinder(recurse=False).find(
        thing, thing.__name__, globs={"polyattn": polyattn, "torch": torch}
    )
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("thing", [ViT, Gpt, SequenceClassifier, pixel_statistics])
def test_docstrings_say_what_is_true(thing):
    check_docstring(thing)


def small_rows(*modules):
    """So that the eps of a norm counts."""
    with torch.no_grad():
        for module in modules:
            for p in module.parameters():
                p.mul_(5e-3)


def normalised(module, x, eps):
    """LayerNorm, or the norm by the root mean square, which has no bias."""
    bias = getattr(module, "bias", None)
    if bias is not None:
        x = x - x.mean(dim=-1, keepdim=True)
    x = x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * module.weight
    return x if bias is None else x + bias


def gelu(x, kind):
    if kind == "none":
        return x * (1 + torch.erf(x / math.sqrt(2))) / 2
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x * (1 + torch.tanh(inner)) / 2


def run_blocks(model, x, formula, eps, kind="none", mask=None, causal=None):
    """Blocks with layer scales, and the norm behind them."""
    for block in model.blocks:
        heads = heads_of(block.attention, normalised(block.norm1, x, eps))
        o = reference.attention(*heads, formula, mask=mask, causal=causal)
        x = x + project_out(block.attention, o) * block.layer_scale1.weight
        y = gelu(block.mlp.fc1(normalised(block.norm2, x, eps)), kind)
        x = x + block.mlp.fc2(y) * block.layer_scale2.weight
    return normalised(model.norm, x, eps)


def vit(**options):
    sizes = dict(image_size=12, patch_size=4, channels=2, classes=5)
    return make(ViT, 8, 2, 2, layer_scale=0.1, mlp=12, **{**sizes, **options})


def embed_images(model, images):
    """Patch by patch, line by line."""
    rows = [
        images[:, :, y : y + 4, x : x + 4].flatten(1)
        for y in range(0, 12, 4)
        for x in range(0, 12, 4)
    ]
    proj = model.patches.proj
    return torch.stack(rows, dim=1) @ proj.weight.flatten(1).t() + proj.bias


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("pooling", ["class", "mean"])
def test_vit(norm, pooling):
    model = vit(norm=norm, pooling=pooling, activation=CUBE)
    embedding = (model.patches, model.positions, model.class_token)
    small_rows(*embedding[: 2 + (pooling == "class")])
    images = random(3, 2, 12, 12)
    x = embed_images(model, images)
    if pooling == "class":
        x = torch.cat([model.class_token.weight.expand(3, 1, 8), x], dim=1)
    x = run_blocks(model, x + model.positions.weight, CUBE, 1e-6)
    x = x[:, 0] if pooling == "class" else x.mean(dim=1)
    assert_equal(model.features(images), x)
    assert_equal(model(images), x @ model.head.weight.t() + model.head.bias)


def test_distilled_vit():
    model = vit(distilled=True, activation=CUBE)
    small_rows(model.patches, model.positions, model.class_token, model.dist_token)
    images = random(3, 2, 12, 12)
    tokens = [t.weight.expand(3, 1, 8) for t in (model.class_token, model.dist_token)]
    x = torch.cat([*tokens, embed_images(model, images)], dim=1)
    x = run_blocks(model, x + model.positions.weight, CUBE, 1e-6)
    expected = [
        x[:, i] @ head.weight.t() + head.bias
        for i, head in enumerate((model.head, model.head_dist))
    ]
    for found, logits in zip(model.distilled_logits(images), expected):
        assert_equal(found, logits)
    assert_equal(model(images), sum(expected) / 2)
    assert_equal(model.features(images), x[:, 0])
    with pytest.raises(ValueError, match=r"\[ViT\] pooling is 'mean', but a distilled"):
        vit(distilled=True, pooling="mean")
    with pytest.raises(ValueError, match="distilled_logits of a model that is not"):
        vit().distilled_logits(images)


def test_vit_with_all_parts_takes_the_grid():
    model = vit(
        kv_heads=1,
        qk_norm="layer",
        learned_scale=True,
        learned_coefficients="head",
        output_norm="rms",
        output_gate=True,
        center_values=True,
        short_conv=3,
        activation=CUBE,
    )
    names = {name: tuple(p.shape) for name, p in model.named_parameters()}
    start = "blocks.1.attention."
    part = {n[len(start) :]: s for n, s in names.items() if n.startswith(start)}
    assert part == {
        "in_proj_weight": (16, 8),
        "in_proj_bias": (16,),
        "out_proj.weight": (8, 8),
        "out_proj.bias": (8,),
        "gate_proj.weight": (8, 8),
        "gate_proj.bias": (8,),
        "q_norm.weight": (4,),
        "k_norm.weight": (4,),
        "output_norm.weight": (4,),
        "score_scale": (2,),
        "coefficients": (2, 4),
        "short_conv.weight": (4, 1, 3, 3),
    }
    assert model.blocks[0].attention.grid == (3, 3)
    x = model.positions(model.class_token(model.patches(random(2, 2, 12, 12))))
    for block in model.blocks:
        x = x + block.attention(block.norm1(x)) * block.layer_scale1.weight
        x = x + block.mlp(block.norm2(x)) * block.layer_scale2.weight
    assert_equal(model(random(2, 2, 12, 12)), model.head(model.norm(x)[:, 0]))


def test_vit_is_torchvisions():
    """With softmax, by the names in docs/models.md."""
    torchvision = pytest.importorskip("torchvision")
    theirs = torchvision.models.VisionTransformer(
        image_size=16, patch_size=4, num_layers=2, num_heads=2, hidden_dim=8, mlp_dim=12
    ).double()
    for p in theirs.parameters():
        torch.nn.init.normal_(p, 0.0, 0.3)
    ours = ViT(8, 2, 2, image_size=16, patch_size=4, mlp=12).double().eval()
    renamed = [
        ("encoder.layers.encoder_layer_", "blocks."),
        ("encoder.pos_embedding", "positions.weight"),
        ("encoder.ln", "norm"),
        ("heads.head", "head"),
        ("conv_proj", "patches.proj"),
        ("self_attention", "attention"),
        ("ln_", "norm"),
        ("mlp.0", "mlp.fc1"),
        ("mlp.3", "mlp.fc2"),
    ]
    state = {}
    for name, tensor in theirs.state_dict().items():
        for old, new in renamed:
            name = name.replace(old, new)
        name = "class_token.weight" if name == "class_token" else name
        state[name] = tensor[0] if name == "positions.weight" else tensor
    ours.load_state_dict(state)
    images = random(2, 3, 16, 16)
    assert_equal(ours(images), theirs.eval()(images))


def gpt(**options):
    sizes = dict(vocabulary=11, context=6)
    return make(Gpt, 8, 2, 2, layer_scale=0.1, **{**sizes, **options})


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_gpt(norm, tied):
    model = gpt(norm=norm, tied=tied, activation=CUBE)
    small_rows(model.tokens, model.positions)
    tokens = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 10]])
    x = model.tokens.weight[tokens] + model.positions.weight[:5]
    x = run_blocks(model, x, CUBE, 1e-5, "tanh", causal="upper_left")
    table = model.tokens.weight if tied else model.head.weight
    assert_equal(model(tokens), x @ table.t())
    assert ("head.weight" in model.state_dict()) is not tied


def test_gpt_with_rotary_positions():
    model = gpt(positions="rotary", activation=CUBE)
    assert model.positions is None
    tokens = torch.randint(11, (2, 9))  # beyond the context
    x = model.tokens.weight[tokens]
    for block in model.blocks:
        q, k, v = heads_of(block.attention, block.norm1(x))
        q, k = (polyattn.nn.Rotary().rotate(t) for t in (q, k))
        o = reference.attention(q, k, v, CUBE, causal="upper_left")
        x = x + project_out(block.attention, o) * block.layer_scale1.weight
        x = x + block.mlp(block.norm2(x)) * block.layer_scale2.weight
    assert_equal(model(tokens), model.norm(x) @ model.tokens.weight.t())


def test_gpt_takes_bytes():
    model = gpt(vocabulary=256, context=20)
    text = b"\x00 caf\xc3\xa9 \xff"
    logits = model(text)
    assert logits.shape == (1, len(text), 256)
    for dtype in (torch.uint8, torch.int32, torch.int64):
        assert torch.equal(model(torch.tensor([list(text)]).to(dtype)), logits)


def test_gpt_loss():
    model = gpt()
    tokens = torch.tensor([[3, 1, 4, 1]])
    targets = torch.tensor([[1, 4, 1, -100]])
    log_p = model(tokens).log_softmax(dim=-1)[0]
    expected = -(log_p[0, 1] + log_p[1, 4] + log_p[2, 1]) / 3
    assert_equal(model.loss(tokens, targets), expected)
    with pytest.raises(ValueError, match=r"targets have shape \(1, 3\), expected \(1,"):
        model.loss(tokens, targets[:, 1:])


@pytest.mark.parametrize("pooling", ["mean", "class"])
def test_classifier_sees_no_padding(pooling):
    model = make(
        SequenceClassifier,
        8,
        2,
        2,
        vocabulary=11,
        context=6,
        classes=3,
        pooling=pooling,
        layer_scale=0.1,
        activation=CUBE,
    )
    tokens, lengths = torch.randint(11, (3, 6)), torch.tensor([6, 2, 4])
    together = model(tokens, lengths)
    for i, length in enumerate(lengths):
        alone = tokens[i : i + 1, :length]
        assert_equal(model(alone), together[i : i + 1])
        x = model.tokens.weight[alone]
        if pooling == "class":
            x = torch.cat([model.class_token.weight, x], dim=1)
        x = x + model.positions.weight[: x.shape[1]]
        x = run_blocks(model, x, CUBE, 1e-5)
        x = x[:, 0] if pooling == "class" else x.mean(dim=1)
        assert_equal(together[i : i + 1], x @ model.head.weight.t() + model.head.bias)
