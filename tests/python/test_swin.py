"""polyattn.models.Swin, and the attention that it is made of."""

import math

import pytest
import torch

import polyattn
import reference
from helpers import assert_equal, random
from polyattn.models import Swin
from polyattn.nn import WindowAttention
from polyattn.nn.window_attention import log_offsets
from test_models import check_docstring, make

CUBE = "x^3/sqrt(N)"


def bias_of(module):
    def bias(offsets):
        reach = module.window - 1
        if not module.cosine:
            row = (offsets[..., 0] + reach) * (2 * reach + 1) + offsets[..., 1] + reach
            return module.bias_table[row.long()].movedim(-1, 0)
        relative = offsets * 8 / reach
        relative = relative.sign() * (relative.abs() + 1).log2() / 3
        y = module.bias_fc2(module.bias_fc1(relative).relu())
        return (16 * y.sigmoid() - 8).movedim(-1, 0)

    return bias


# Sizes that are filled up, and one window along an axis, which is not shifted.
@pytest.mark.parametrize("size", [(8, 8), (7, 11), (4, 6), (3, 9)])
@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("formula", ["softmax", CUBE, "relu^2/N"])
def test_window_attention(size, cosine, formula):
    options = dict(shift=1, cosine=cosine, activation=formula)
    module = make(WindowAttention, 8, 2, 4, **options)
    if cosine:  # one head at its limit
        module.logit_scale.data.copy_(torch.tensor([1.0, 5.0]).view(2, 1, 1))
    x = random(2, *size, 8, grad=True)
    inputs = [x, *module.parameters()]
    got = module(x)
    expected = reference.windowed(
        x,
        (module.in_proj_weight, module.in_proj_bias, 2),
        ((4, 4), (1, 1)),
        bias_of(module),
        module.out_proj,
        formula,
        module.logit_scale if cosine else None,
    )
    assert_equal(got, expected)
    d = random(*got.shape, seed=1)
    assert_equal(
        torch.autograd.grad(got, inputs, d), torch.autograd.grad(expected, inputs, d)
    )


def swin(version=1, **options):
    sizes = dict(version=version, window=4, patch_size=2, channels=3, classes=5)
    return make(Swin, 8, [2, 2], [2, 4], **{**sizes, **options})


def torchvision_name(name):
    """As docs/models.md has them."""
    head, *rest = name.split(".")
    if head == "stages":
        head = f"features.{2 * int(rest[0]) + 1}"
        del rest[0]
    elif head == "merging":
        head = f"features.{2 * int(rest[0]) + 2}"
        del rest[0]
    elif head in ("patches", "patch_norm"):
        head = "features.0.0" if rest.pop(0) == "proj" else "features.0.2"
        rest = [name.split(".")[-1]]
    renamed = [
        ("attention.in_proj_", "attn.qkv."),
        ("attention.out_proj", "attn.proj"),
        ("attention.bias_table", "attn.relative_position_bias_table"),
        ("attention.logit_scale", "attn.logit_scale"),
        ("attention.bias_fc1", "attn.cpb_mlp.0"),
        ("attention.bias_fc2", "attn.cpb_mlp.2"),
        ("mlp.fc1", "mlp.0"),
        ("mlp.fc2", "mlp.3"),
    ]
    name = ".".join([head, *rest])
    for ours, theirs in renamed:
        name = name.replace(ours, theirs)
    return name


def torchvision_swin(version):
    room = pytest.importorskip("torchvision").models.swin_transformer
    blocks = {1: room.SwinTransformerBlock, 2: room.SwinTransformerBlockV2}
    merging = {1: room.PatchMerging, 2: room.PatchMergingV2}
    model = room.SwinTransformer(
        patch_size=[2, 2],
        embed_dim=8,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=[4, 4],
        num_classes=5,
        block=blocks[version],
        downsample_layer=merging[version],
    )
    return model.double().eval()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("formula", ["softmax", CUBE])
def test_is_torchvisions(version, formula):
    ours, theirs = swin(version, activation=formula), torchvision_swin(version)
    # The eps of the norms is the same.
    with torch.no_grad():
        for p in ours.patches.parameters():
            p.mul_(5e-3)
    names = {torchvision_name(name): p for name, p in ours.state_dict().items()}
    made = ("relative_position_index", "relative_coords_table")
    missing, unexpected = theirs.load_state_dict(names, strict=False)
    assert not unexpected and all(name.endswith(made) for name in missing)
    for name, table in theirs.named_buffers():
        if name.endswith("relative_coords_table"):  # in f32, there
            exact = log_offsets(4).view_as(table)
            torch.testing.assert_close(table, exact, rtol=1e-6, atol=1e-6)
            table.copy_(exact)
    if formula == CUBE:
        polyattn.replace_softmax(theirs, CUBE)
    # Maps of 9 x 15, filled up, and 5 x 8.
    images = random(2, 3, 19, 30)
    assert_equal(ours(images), theirs(images))


@pytest.mark.parametrize("thing", [Swin, WindowAttention])
def test_docstrings_say_what_is_true(thing):
    check_docstring(thing)


@pytest.mark.parametrize("cosine", [False, True])
def test_names(cosine):
    shapes = {
        name: tuple(p.shape)
        for name, p in WindowAttention(8, 2, 4, cosine=cosine).state_dict().items()
    }
    bias = dict(bias_table=(49, 2))
    if cosine:
        bias = {
            "logit_scale": (2, 1, 1),
            "bias_fc1.weight": (512, 2),
            "bias_fc1.bias": (512,),
            "bias_fc2.weight": (2, 512),
        }
    assert shapes == {
        "in_proj_weight": (24, 8),
        "in_proj_bias": (24,),
        "out_proj.weight": (8, 8),
        "out_proj.bias": (8,),
        **bias,
    }


def test_windows_of_every_second_block_are_shifted():
    shifts = [b.attention.shift for blocks in swin().stages for b in blocks]
    assert shifts == [0, 2, 0, 2]
    model = Swin(8, [3], [2], window=7, drop_path=0.4)
    assert [b.attention.shift for b in model.stages[0]] == [0, 3, 0]
    assert [b.drop_path for b in model.stages[0]] == [0, 0.2, 0.4]
    assert [b.drop_path for b in Swin(8, [1], [2], drop_path=0.4).stages[0]] == [0.4]


@pytest.mark.parametrize("version", [1, 2])
def test_layer_scales_are_the_last_of_each_branch(version):
    model = swin(version, layer_scale=0.1)
    block, x = model.stages[1][1], random(2, 5, 6, 16)
    assert block.layer_scale1.weight.shape == (16,)

    def branch(inner, norm, x):
        return inner(norm(x)) if version == 1 else norm(inner(x))

    y = x + branch(block.attention, block.norm1, x) * block.layer_scale1.weight
    y = y + branch(block.mlp, block.norm2, y) * block.layer_scale2.weight
    assert_equal(block(x), y)
    first = Swin(8, [1], [2], layer_scale=0.1).stages[0][0]
    for scale in (first.layer_scale1, first.layer_scale2):
        assert scale.weight.eq(torch.tensor(0.1)).all()
    plain = swin(version).state_dict()
    assert {n for n in model.state_dict() if "layer_scale" not in n} == set(plain)
    assert len(model.state_dict()) == len(plain) + 2 * 4


def test_first_weights():
    torch.manual_seed(0)
    for version in (1, 2):
        model = Swin(64, [2], [4], version=version)
        for block in model.stages[0]:
            attention = block.attention
            drawn = [attention.in_proj_weight]
            if version == 1:
                drawn.append(attention.bias_table)
            else:
                assert attention.logit_scale.eq(math.log(10)).all()
                drawn += [attention.bias_fc1.weight, attention.bias_fc2.weight]
            for p in drawn:  # truncated at two deviations, narrower by 0.88
                assert p.std().item() == pytest.approx(0.88 * 0.02, rel=0.06)
                assert p.abs().max() <= 0.04
            assert attention.in_proj_bias.eq(0).all()


@pytest.mark.parametrize("rate", ["dropout", "attention_dropout", "drop_path"])
def test_training_drops(rate):
    model, images = swin(**{rate: 0.5}), random(3, 3, 16, 16)
    assert torch.equal(model(images), model(images))
    assert_equal(model(images), swin()(images))
    model.train()
    assert not torch.equal(model(images), model(images))


def test_attention_drops_its_output_in_training():
    x = random(2, 5, 6, 8)
    module = make(WindowAttention, 8, 2, 4, shift=2, projection_dropout=0.5)
    plain, y = module(x), module.train()(x)
    assert (y == 0).any()
    assert_equal(y[y != 0] / 2, plain[y != 0])


@pytest.mark.parametrize("version", [1, 2])
def test_starts_at_the_norm_of_softmax(version):
    model, images = swin(version, activation=CUBE), random(4, 3, 24, 24)
    attentions = [b.attention for blocks in model.stages for b in blocks]
    for module in attentions:  # as they begin; what a bias gives cannot be shrunk
        if version == 1:
            torch.nn.init.normal_(module.bias_table, 0.0, 0.02)
            module.in_proj_weight.data.mul_(3)
        else:
            torch.nn.init.constant_(module.logit_scale, math.log(10))
            torch.nn.init.normal_(module.bias_fc2.weight, 0.0, 0.01)
    before = [m.in_proj_weight.clone() for m in attentions]
    report = polyattn.match_start(model, images, factor=0.5)
    names = [f"stages.{s}.{i}.attention" for s in (0, 1) for i in (0, 1)]
    assert list(report.layers) == names
    heads = [h for layer in report.layers.values() for h in layer]
    assert len(heads) == 12
    shrunk = [h for h in heads if h.gain < 1]
    assert shrunk
    for head in shrunk:
        assert head.after == pytest.approx(head.softmax / 2, rel=3e-4)
    kept = [torch.equal(m.in_proj_weight, w) for m, w in zip(attentions, before)]
    assert all(kept) if version == 2 else not all(kept)
    again = polyattn.match_start(model, images, factor=0.5)
    for head in (h for layer in again.layers.values() for h in layer):
        assert head.gain == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("version", [1, 2])
def test_replace_softmax(version):
    model, images = swin(version), random(2, 3, 19, 16)
    report = polyattn.replace_softmax(model, CUBE)
    assert [(s.kind, s.heads) for s in report.swapped] == [
        ("WindowAttention", heads) for heads in (2, 2, 4, 4)
    ]
    assert_equal(model(images), swin(version, activation=CUBE)(images))


@pytest.mark.parametrize("version", [1, 2])
def test_autocast(version):
    model = swin(version, activation=CUBE).float()
    images = random(2, 3, 24, 16, dtype=torch.float32)
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
        (lambda: Swin(8, [], []), "[Swin] depths of 0 stages, heads of 0"),
        (lambda: Swin(8, [2], [2, 4]), "[Swin] depths of 1 stages, heads of 2"),
        (lambda: Swin(8, [2, 0], [2, 4]), "[Swin] depth 0 < 1"),
        (lambda: swin(3), "[Swin] version is 3, expected 1 or 2"),
        (lambda: Swin(9, [2], [2]), "[WindowAttention] dim 9 is not a multiple of hea"),
        (lambda: swin(window=1), "[WindowAttention] window 1 < 2"),
        (lambda: WindowAttention(8, 2, 4, shift=4), "shift 4 is not in [0, 4)"),
        (lambda: swin(drop_path=1.0), "[Block] drop_path 1.0 is not in [0, 1)"),
        (lambda: swin(activation="x^"), "x^"),
        (lambda: swin(mean=[0.1]), "[Swin] mean is [0.1] and std is None"),
        (lambda: swin().preprocess(random(1, 3, 8, 8)), "[Swin] mean and std of the"),
        (lambda: swin()(random(3, 8, 8)), "[Swin] images have shape (3, 8, 8), expec"),
        (lambda: swin()(random(1, 2, 8, 8)), "expected [B, 3, height, width]"),
        (lambda: swin()(random(1, 3, 9, 7)), "9 x 7 pixels are smaller than a window,"),
        (
            lambda: WindowAttention(8, 2, 4)(torch.zeros(2, 4, 8)),
            "[WindowAttention] x has shape (2, 4, 8), expected [B, height, width, 8]",
        ),
        (
            lambda: WindowAttention(8, 2, 4)(torch.zeros(2, 4, 0, 8)),
            "expected [B, height, width, 8] with tokens",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert message in str(caught.value)
