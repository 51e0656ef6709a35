"""replace_softmax on the models of torchvision."""

import pytest
import torch

import polyattn
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


def test_swin_is_reported():
    swin = torchvision.models.SwinTransformer(
        patch_size=[4, 4],
        embed_dim=8,
        depths=[2],
        num_heads=[2],
        window_size=[2, 2],
        num_classes=3,
    )
    with pytest.raises(ValueError, match="ShiftedWindowAttention: computes its"):
        polyattn.replace_softmax(swin, CUBE)
    both = torch.nn.ModuleDict(dict(vit=vit(), swin=swin))
    report = polyattn.replace_softmax(both, CUBE)
    assert len(report.swapped) == 2
    assert {k.kind for k in report.kept} == {"ShiftedWindowAttention"}
    assert len(report.kept) == 2
