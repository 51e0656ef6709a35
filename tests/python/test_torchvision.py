"""replace_softmax on the models of torchvision."""

import math

import pytest
import torch

import polyattn
import reference
from helpers import assert_equal, random
from test_replace import CUBE, attend

torchvision = pytest.importorskip("torchvision")


def vit():
    torch.manual_seed(0)
    model = torchvision.models.VisionTransformer(
        image_size=16,
        patch_size=4,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        mlp_dim=16,
        num_classes=5,
    )
    for p in model.parameters():  # torchvision's head begins with zeros
        torch.nn.init.normal_(p, 0.0, 0.3)
    return model.double()


def run_vit(model, images):
    """The model with attention in plain torch ops."""
    x = model.conv_proj(images).flatten(2).transpose(1, 2)
    x = torch.cat([model.class_token.expand(x.shape[0], -1, -1), x], dim=1)
    x = x + model.encoder.pos_embedding
    for block in model.encoder.layers:
        x = x + attend(block.self_attention, block.ln_1(x))
        x = x + block.mlp(block.ln_2(x))
    return model.heads(model.encoder.ln(x)[:, 0])


@pytest.mark.parametrize("training", [False, True])
def test_softmax_is_the_original(training):
    model, images = vit().train(training), random(2, 3, 16, 16)
    with torch.set_grad_enabled(training):
        before = model(images)
        report = polyattn.replace_softmax(model, "softmax")
        assert_equal(model(images), before)
    assert [s.heads for s in report.swapped] == [2, 2]


@pytest.mark.parametrize("training", [False, True])
def test_polynomial(training):
    model, images = vit().train(training), random(2, 3, 16, 16)
    with torch.set_grad_enabled(training):
        before = model(images)
        polyattn.replace_softmax(model, CUBE)
        after = model(images)
        expected = run_vit(model, images)
    assert_equal(after, expected)
    assert not torch.allclose(after, before, rtol=1e-3)
    if training:
        parameters = list(model.parameters())
        assert_equal(
            torch.autograd.grad(after.square().sum(), parameters),
            torch.autograd.grad(expected.square().sum(), parameters),
        )


def swin(version, **options):
    torch.manual_seed(1)
    room = torchvision.models.swin_transformer
    blocks = {1: room.SwinTransformerBlock, 2: room.SwinTransformerBlockV2}
    merging = {1: room.PatchMerging, 2: room.PatchMergingV2}
    model = room.SwinTransformer(
        patch_size=[2, 2],
        embed_dim=8,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=[4, 3],
        num_classes=5,
        stochastic_depth_prob=0.0,
        block=blocks[version],
        downsample_layer=merging[version],
        **options,
    )
    for p in model.parameters():
        torch.nn.init.normal_(p, 0.0, 0.3)
    return model.double()


def swin_attentions(model):
    names = ("ShiftedWindowAttention", "ShiftedWindowAttentionV2")
    return [m for m in model.modules() if type(m).__name__ in names]


def swin_bias(module, offsets):
    """[H, ...] of offsets [..., 2] inside a window."""
    wh, ww = module.window_size
    if hasattr(module, "cpb_mlp"):
        # In f32, as the table of torchvision.
        relative = offsets.float() / torch.tensor([wh - 1, ww - 1]) * 8
        relative = relative.sign() * (relative.abs() + 1).log2() / 3
        bias = module.cpb_mlp(relative.double()).sigmoid().movedim(-1, 0) - 0.5
        return 16 * bias  # softmax does not see what is subtracted
    row = (offsets[..., 0] + wh - 1) * (2 * ww - 1) + offsets[..., 1] + ww - 1
    return module.relative_position_bias_table[row.long()].movedim(-1, 0)


def swin_attention(module, x, formula):
    return reference.windowed(
        x,
        (module.qkv.weight, module.qkv.bias, module.num_heads),
        (module.window_size, module.shift_size),
        lambda offsets: swin_bias(module, offsets),
        module.proj,
        formula,
        getattr(module, "logit_scale", None),
    )


# Sizes that are padded, and one window along an axis, which is not shifted.
SIZES = [(8, 6), (7, 11), (4, 6), (3, 9)]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("formula", ["softmax", CUBE])
def test_swin_attention(version, size, formula):
    model = swin(version)
    polyattn.replace_softmax(model, formula)
    module = swin_attentions(model)[1]
    assert module.shift_size == [2, 1] and module.activation == formula
    x = random(2, *size, 8).requires_grad_()
    inputs = [x, *module.parameters()]
    got, expected = module(x), swin_attention(module, x, formula)
    assert_equal(got, expected)
    d = random(*got.shape)
    assert_equal(
        torch.autograd.grad(got, inputs, d), torch.autograd.grad(expected, inputs, d)
    )


@pytest.mark.parametrize("version", [1, 2])
def test_swin_with_softmax_is_the_original(version):
    model, images = swin(version), random(2, 3, 19, 30)
    expected = model(images)
    attentions = swin_attentions(model)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    report = polyattn.replace_softmax(model, "softmax")
    # torchvision adds -100 to what is to be hidden.
    assert_equal(model(images), expected)
    assert [s.heads for s in report.swapped] == [2, 2, 4, 4]
    assert swin_attentions(model) == attentions
    assert_equal(list(model.state_dict().values()), list(state.values()))
    assert list(model.state_dict()) == list(state)


@pytest.mark.parametrize("version", [1, 2])
def test_swin_starts_at_the_norm_of_softmax(version):
    model, images = swin(version), random(4, 3, 24, 24)
    if version == 2:  # as torchvision begins; what a bias gives cannot be shrunk
        for module in swin_attentions(model):
            torch.nn.init.constant_(module.logit_scale, math.log(10))
            torch.nn.init.normal_(module.cpb_mlp[2].weight, 0.0, 0.01)
    report = polyattn.replace_softmax(model, CUBE, match=images, match_factor=0.5)
    heads = [h for layer in report.start.layers.values() for h in layer]
    assert len(heads) == 12
    shrunk = [h for h in heads if h.gain < 1]
    assert shrunk
    for head in shrunk:
        assert head.after == pytest.approx(head.softmax / 2, rel=3e-4)
    again = polyattn.match_start(model, images, factor=0.5)
    for head in (h for layer in again.layers.values() for h in layer):
        assert head.gain == pytest.approx(1, rel=1e-3)


def test_swin_drops_weights_in_training_alone():
    model = swin(1, attention_dropout=0.5)
    polyattn.replace_softmax(model, CUBE)
    module, x = swin_attentions(model)[0], random(1, 8, 6, 8)
    assert not torch.equal(module(x), module(x))
    assert torch.equal(module.eval()(x), module(x))


def test_swin_is_pickled(tmp_path):
    model, images = swin(2), random(1, 3, 16, 12)
    polyattn.replace_softmax(model, CUBE)
    torch.save(model, tmp_path / "model.pt")
    options = {"weights_only": False} if torch.__version__ >= "2" else {}
    assert_equal(torch.load(tmp_path / "model.pt", **options)(images), model(images))
