"""polyattn.models.XCiT against plain torch functions (tests/models/xcit_twin.py)."""

import importlib.util
from pathlib import Path

import pytest
import torch

import polyattn
import reference
from helpers import assert_equal, random
from polyattn.models import XCiT
from polyattn.nn import ClassAttention, CrossCovariance
from test_models import check_docstring, make

CUBE = "x^3/sqrt(N)"
TWIN = Path(__file__).parents[1] / "models" / "xcit_twin.py"


@pytest.fixture
def twin(monkeypatch):
    spec = importlib.util.spec_from_file_location("xcit_twin", TWIN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kind = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield module
    torch.set_default_dtype(kind)


def public_name(name):
    """That of facebookresearch/xcit, as docs/models.md has them."""
    if name.startswith("patches"):
        _, part, i, last = name.split(".")
        return f"patch_embed.proj.{2 * int(i)}.{int(part == 'norms')}.{last}"
    renamed = [
        ("positions.projection", "pos_embeder.token_projection"),
        ("class_token.weight", "cls_token"),
        ("class_blocks", "cls_attn_blocks"),
        ("attention.in_proj_", "attn.qkv."),
        ("attention.out_proj", "attn.proj"),
        ("attention.temperature", "attn.temperature"),
        ("local.norm", "local_mp.bn"),
        ("local.conv", "local_mp.conv"),
    ]
    for ours, theirs in renamed:
        name = name.replace(ours, theirs)
    if "layer_scale" in name:
        name = name.replace("layer_scale", "gamma").replace(".weight", "")
    return name


@pytest.mark.parametrize("size", ["xcit_p16", "xcit_p8"])
@pytest.mark.parametrize("formula", ["softmax", CUBE])
def test_logits_and_gradients(monkeypatch, twin, size, formula):
    sizes = dict(twin.SIZES[size])
    torch.manual_seed(3)
    weights = twin.weights(**sizes)
    height, width = sizes.pop("height"), sizes.pop("width")
    model = XCiT(
        *(sizes[name] for name in ("dim", "depth", "heads")),
        patch_size=sizes["patch"],
        classes=sizes["classes"],
        tokens_norm=sizes["tokens_norm"],
        activation=formula,
    ).eval()
    names = {name: public_name(name) for name in model.state_dict()}
    assert set(names.values()) == set(weights)  # parameters and buffers, all of them
    model.load_state_dict(
        {
            ours: weights[name].reshape(model.state_dict()[ours].shape)
            for ours, name in names.items()
        }
    )
    ours = dict(model.named_parameters())
    theirs = [weights[names[name]].requires_grad_() for name in ours]
    images = random(2, 3, height, width)
    if formula == CUBE:  # N is the number of keys: channels, or rows
        cube = lambda scores, dim: scores**3 / scores.shape[dim] ** 0.5  # noqa: E731
        monkeypatch.setattr(torch.Tensor, "softmax", cube)
    expected = twin.logits(weights, images, **sizes)
    found = model(images)
    assert_equal(found, expected)
    d = random(*found.shape, seed=1)
    got = torch.autograd.grad(found, list(ours.values()), d)
    wanted = torch.autograd.grad(expected, theirs, d)
    assert_equal(got, tuple(g.view_as(p) for g, p in zip(wanted, got)))


def xcit(**options):
    sizes = dict(patch_size=4, channels=2, classes=5)
    return make(XCiT, 8, 2, 2, **{**sizes, **options})


def heads_of(module, x):
    weights = module.in_proj_weight.chunk(3), module.in_proj_bias.chunk(3)
    return [
        (x @ w.t() + b).unflatten(-1, (module.heads, -1)).transpose(1, 2)
        for w, b in zip(*weights)
    ]


@pytest.mark.parametrize("formula", reference.FORMULAS)
def test_attentions(formula):
    x = random(2, 7, 8)
    channels = make(CrossCovariance, 8, 2, activation=formula)
    q, k, v = (t.transpose(2, 3) for t in heads_of(channels, x))
    q, k = (t / t.norm(dim=-1, keepdim=True) for t in (q, k))
    q = q * channels.temperature[:, None, None]
    y = reference.attention(q, k, v, formula, scale=1.0)
    y = y.flatten(1, 2).transpose(1, 2)
    assert_equal(channels(x), channels.out_proj(y))

    of_class = make(ClassAttention, 8, 2, activation=formula)
    q, k, v = heads_of(of_class, x)
    y = reference.attention(q[:, :, :1], k, v, formula)
    assert_equal(of_class(x), of_class.out_proj(y.transpose(1, 2).flatten(2)))


@pytest.mark.parametrize("kind", [CrossCovariance, ClassAttention])
@pytest.mark.parametrize("rate", ["dropout", "projection_dropout"])
def test_attentions_drop_in_training_alone(kind, rate):
    module, x = make(kind, 8, 2, **{rate: 0.5}), random(2, 7, 8)
    plain = make(kind, 8, 2)(x)
    assert torch.equal(module(x), plain)
    y = module.train()(x)
    assert not torch.equal(y, plain)
    if rate == "projection_dropout":
        assert (y == 0).any()
        assert_equal(y[y != 0] / 2, plain[y != 0])


def test_rows_of_zeros_have_no_direction():
    module = make(CrossCovariance, 8, 2, activation=CUBE)
    torch.nn.init.zeros_(module.in_proj_bias)
    x = torch.zeros(1, 3, 8, dtype=torch.float64, requires_grad=True)
    y = module(x)
    assert_equal(y, module.out_proj.bias.expand_as(y))
    y.sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("thing", [XCiT, CrossCovariance, ClassAttention])
def test_docstrings_say_what_is_true(thing):
    check_docstring(thing)


def test_first_weights():
    torch.manual_seed(0)
    model = XCiT(64, 2, 4, patch_size=4, layer_scale=1e-5)
    for block in model.blocks:
        assert block.attention.temperature.eq(1).all()
        assert block.attention.in_proj_bias.eq(0).all()
        assert block.layer_scale3.weight.eq(1e-5).all()
        # Truncated at two deviations, which makes it narrower by 0.88.
        std = block.attention.in_proj_weight.std().item()
        assert std == pytest.approx(0.88 * 0.02, rel=0.03)
    assert 0.01 < model.class_token.weight.std() < 0.03


@pytest.mark.parametrize("rate", ["dropout", "attention_dropout", "drop_path"])
def test_training_drops_and_counts(rate):
    torch.manual_seed(0)
    model = xcit(**{rate: 0.5})
    images = random(3, 2, 8, 8)
    assert torch.equal(model(images), model(images))
    before = model.blocks[0].local.norm.running_mean.clone()
    model.train()
    assert not torch.equal(model(images), model(images))
    plain = xcit().train()
    assert torch.equal(plain(images), plain(images))
    assert model.patches.norms[0].num_batches_tracked == 2
    assert not torch.equal(model.blocks[0].local.norm.running_mean, before)


def test_starts_at_the_norm_of_softmax():
    """BatchNorms that have seen nothing compute by the batch, and forget it."""
    model, images = xcit(activation=CUBE), random(4, 2, 16, 12)
    torch.nn.init.constant_(model.blocks[0].attention.temperature, 8.0)
    before = {name: b.clone() for name, b in model.named_buffers()}
    rows = model.blocks[0].attention.in_proj_weight.clone()
    report = polyattn.match_start(model, images, factor=0.5)
    assert list(report.layers) == [
        f"{kind}.{i}.attention" for kind in ("blocks", "class_blocks") for i in range(2)
    ]
    shrunk = [h for heads in report.layers.values() for h in heads if h.gain < 1]
    assert shrunk
    for head in shrunk:
        assert head.after == pytest.approx(head.softmax / 2, rel=3e-4)
    assert all(h.gain < 1 for h in report.layers["blocks.0.attention"])
    temperature = model.blocks[0].attention.temperature
    gains = [h.gain for h in report.layers["blocks.0.attention"]]
    assert_equal(temperature / 8, torch.tensor(gains, dtype=torch.float64))
    assert torch.equal(model.blocks[0].attention.in_proj_weight, rows)
    assert not model.training and not model.patches.norms[0].training
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, before[name])
    again = polyattn.match_start(model, images, factor=0.5)
    for head in (h for heads in again.layers.values() for h in heads):
        assert head.gain == pytest.approx(1, rel=1e-3)


def rows_while_matching(model, images):
    """What the first block reads."""
    rows = []
    model.blocks[0].register_forward_pre_hook(lambda _, args: rows.append(args[0]))
    polyattn.match_start(model, images)
    return rows[0]


def test_starts_by_the_batch_if_batch_norms_have_seen_nothing():
    model, images = xcit(activation=CUBE), random(4, 2, 16, 12)
    found = rows_while_matching(model, images)
    model.train()
    assert_equal(found, model.positions(model.patches(images), (4, 3)))


def test_starts_by_what_batch_norms_have_seen():
    model, images = xcit(activation=CUBE), random(4, 2, 16, 12)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.num_batches_tracked.fill_(3)
            module.running_var.fill_(1e-4)
    found = rows_while_matching(model, images)
    assert_equal(found, model.positions(model.patches(images), (4, 3)))


def test_replace_softmax():
    model, images = xcit(), random(2, 2, 8, 8)
    expected = xcit(activation=CUBE)(images)
    report = polyattn.replace_softmax(model, CUBE)
    assert [(s.kind, s.heads) for s in report.swapped] == [
        ("CrossCovariance", 2),
        ("CrossCovariance", 2),
        ("ClassAttention", 2),
        ("ClassAttention", 2),
    ]
    assert_equal(model(images), expected)


def test_autocast():
    model = xcit(activation=CUBE).float()
    images = random(2, 2, 24, 16, dtype=torch.float32)
    expected = model(images)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model(images)
        found.float().square().sum().backward()
    assert found.dtype == torch.bfloat16
    # Some fifty roundings by 2^-9, one upon the other.
    assert (found - expected).norm() < 0.1 * expected.norm()
    for p in model.parameters():
        assert p.grad.isfinite().all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: xcit(patch_size=6), "[XCiT] patch_size 6 is no power of 2 above 1"),
        (lambda: xcit(patch_size=32), "[XCiT] dim 8 is no positive multiple of 16, ha"),
        (lambda: xcit(class_depth=0), "[XCiT] class_depth 0 < 1"),
        (lambda: XCiT(8, 0, 2), "[XCiT] depth 0 < 1"),
        (lambda: XCiT(16, 1, 3), "[CrossCovariance] dim 16 is not a multiple of heads"),
        (lambda: XCiT(16, 1, 0), "[CrossCovariance] heads 0 < 1"),
        (lambda: xcit(drop_path=1.0), "[Block] drop_path 1.0 is not in [0, 1)"),
        (lambda: xcit(activation="x^"), "x^"),
        (lambda: xcit(mean=[0.1]), "[XCiT] mean is [0.1] and std is None"),
        (lambda: xcit().preprocess(random(1, 2, 8, 8)), "[XCiT] mean and std of the"),
        (lambda: xcit()(random(2, 8, 8)), "[XCiT] images have shape (2, 8, 8), expec"),
        (lambda: xcit()(random(1, 3, 8, 8)), "expected [B, 2, height, width]"),
        (lambda: xcit()(random(1, 2, 0, 8)), "images have shape (1, 2, 0, 8)"),
        (lambda: xcit()(random(1, 2, 8, 6)), "8 x 6 pixels are no multiple of patch_"),
        (
            lambda: CrossCovariance(8, 2)(torch.zeros(2, 8)),
            "[CrossCovariance] x has shape (2, 8), expected [B, N, 8]",
        ),
        (
            lambda: ClassAttention(8, 2)(torch.zeros(2, 3, 9)),
            "[ClassAttention] x has shape (2, 3, 9), expected [B, N, 8]",
        ),
        (
            lambda: ClassAttention(8, 2)(torch.zeros(2, 0, 8)),
            "[ClassAttention] x has no row that could ask",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert message in str(caught.value)
