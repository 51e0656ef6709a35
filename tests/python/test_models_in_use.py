"""polyattn.models in training, their first weights, pixels, and what they refuse."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F

import polyattn
from helpers import assert_equal, random
from polyattn.models import Gpt, SequenceClassifier, ViT, pixel_statistics
from test_models import CUBE, gpt, make, vit


def models():
    return [
        (vit(activation=CUBE), (random(4, 2, 12, 12),)),
        (gpt(activation=CUBE, positions="rotary"), (torch.randint(11, (4, 6)),)),
    ]


@pytest.mark.parametrize("model, inputs", models())
def test_trains_and_matches(model, inputs):
    model = copy.deepcopy(model).train()
    report = polyattn.match_start(model, inputs)
    assert list(report.layers) == ["blocks.0.attention", "blocks.1.attention"]
    targets = torch.zeros(model(*inputs).shape[:-1], dtype=torch.long).flatten()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(8):
        loss = F.cross_entropy(model(*inputs).flatten(0, -2), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("model, inputs", models())
def test_replace_softmax_knows_them(model, inputs):
    model = copy.deepcopy(model)
    before = model(*inputs)
    polyattn.replace_softmax(model, "softmax")
    assert not torch.allclose(model(*inputs), before)
    polyattn.replace_softmax(model, CUBE)
    assert torch.equal(model(*inputs), before)


def test_dropout_is_of_training_alone():
    options = dict(dropout=0.3, attention_dropout=0.2, drop_path=0.5)
    images, tokens = random(2, 2, 12, 12), torch.randint(11, (2, 6))
    for model, inputs in ((vit(**options), images), (gpt(**options), tokens)):
        assert torch.equal(model(inputs), model(inputs))
        assert [b.drop_path for b in model.blocks] == [0.0, 0.5]
        model.train()
        assert not torch.equal(model(inputs), model(inputs))
    assert Gpt(8, 1, 2, drop_path=0.5).blocks[0].drop_path == 0.5


def test_drop_path_keeps_the_mean():
    block = make(Gpt, 8, 1, 2, drop_path=0.25).blocks[0].train()
    y = torch.ones(4000, 1, 8, dtype=torch.float64)
    kept = block._branch(y, None)[:, 0]
    assert set(kept.flatten().tolist()) == {0.0, 1 / 0.75}
    assert torch.equal(kept, kept[:, :1].expand(-1, 8))  # whole samples
    # Four standard deviations of the mean of 4000.
    assert abs(kept[:, 0].mean() - 1) < 4 * math.sqrt(0.25 / 0.75 / 4000)


def test_first_weights():
    """The schemes of docs/models.md; deviations to within a tenth, which is four
    standard errors of those of 1000 numbers or more."""

    def std(tensor):
        assert tensor.numel() >= 1000
        return tensor.std().item()

    torch.manual_seed(0)
    cut = 0.8796  # what cutting at two deviations leaves of one
    model = ViT(64, 2, 2, channels=4, image_size=32, output_gate=True, layer_scale=0.1)
    block = model.blocks[1]
    weights = (block.attention.in_proj_weight, block.mlp.fc2.weight, model.head.weight)
    for weight in (*weights, block.attention.gate_proj.weight):
        assert std(weight) == pytest.approx(0.02 * cut, rel=0.1)
        assert weight.abs().max() <= 0.04
    patches = model.patches.proj
    assert std(patches.weight) == pytest.approx(cut / 32, rel=0.1)  # 4 * 16 * 16
    assert not patches.bias.any() and not block.mlp.fc1.bias.any()
    assert model.class_token.weight.abs().max() < 1e-5
    assert (block.layer_scale2.weight == 0.1).all() and (model.norm.weight == 1).all()

    model = Gpt(64, 2, 2, tied=False)
    block = model.blocks[1]
    for weight in (model.tokens.weight, model.positions.weight, model.head.weight):
        assert std(weight) == pytest.approx(0.02, rel=0.1)
    assert std(block.mlp.fc1.weight) == pytest.approx(0.02, rel=0.1)
    for end in (block.attention.out_proj, block.mlp.fc2):
        assert std(end.weight) == pytest.approx(0.01, rel=0.1)
        assert not end.bias.any()


class TestPixels:
    def test_statistics(self):
        draw = torch.Generator().manual_seed(1)
        images = torch.randint(256, (5, 3, 4, 4), generator=draw).to(torch.uint8)
        images[:, 2] = 7
        mean, std = pixel_statistics(images)
        pixels = images.double() / 255
        assert mean == pytest.approx(pixels.mean(dim=(0, 2, 3)).tolist())
        expected = pixels.std(dim=(0, 2, 3), unbiased=False).tolist()
        assert std[:2] == pytest.approx(expected[:2])
        assert std[2] == pytest.approx(0.01 / 255)  # no contrast
        assert pixel_statistics(images[:, 0])[0] == mean[:1]

    def test_preprocess(self):
        model = vit(mean=[0.25, 0.5], std=[0.5, 2.0])
        images = torch.randint(256, (3, 2, 12, 12)).to(torch.uint8)
        found = model.preprocess(images)
        assert found.dtype == torch.float64
        assert_equal(found[:, 0], (images[:, 0].double() / 255 - 0.25) / 0.5)
        assert_equal(found[:, 1], (images[:, 1].double() / 255 - 0.5) / 2)
        assert_equal(model.preprocess(images.double() / 255), found)
        assert model.float().preprocess(images).dtype == torch.float32

    def test_grey_images_need_no_channel(self):
        model = vit(channels=1, mean=[0.5], std=[0.5])
        images = torch.randint(256, (3, 12, 12)).to(torch.uint8)
        assert_equal(model.preprocess(images), model.preprocess(images[:, None]))

    def test_errors(self):
        with pytest.raises(ValueError, match=r"\[ViT\] mean and std of the images are"):
            vit().preprocess(torch.zeros(1, 2, 12, 12))
        with pytest.raises(ValueError, match="std is None, expected 2 of each"):
            vit(mean=[0.1, 0.2])
        with pytest.raises(ValueError, match="expected 2 of each"):
            vit(mean=[0.1], std=[0.2])
        with pytest.raises(ValueError, match="expected numbers above 0"):
            vit(mean=[0.1, 0.2], std=[0.2, 0])
        model = vit(mean=[0.1, 0.2], std=[0.2, 0.3])
        with pytest.raises(ValueError, match=r"shape \(1, 3, 12, 12\), expected \[B, "):
            model.preprocess(torch.zeros(1, 3, 12, 12))
        with pytest.raises(ValueError, match="images are torch.int64, expected uint8"):
            model.preprocess(torch.zeros(1, 2, 12, 12, dtype=torch.int64))
        for images in (torch.zeros(2, 2, 2), torch.zeros(0, 2, 2, dtype=torch.uint8)):
            with pytest.raises(ValueError, match=r"\[pixel_statistics\] images are"):
                pixel_statistics(images)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: vit(pooling="max"), "[ViT] pooling is 'max', expected 'class'"),
        (lambda: vit(patch_size=5), "[ViT] image_size 12 is not a multiple of patch_s"),
        (lambda: vit(norm="batch"), "[Norm] kind is 'batch'"),
        (lambda: vit(short_conv=4), "[Attention] a short_conv on a grid is 3 wide"),
        (lambda: vit()(torch.zeros(1, 2, 8, 8)), "[ViT] images have shape (1, 2, 8"),
        (lambda: ViT(8, 0, 2), "[Block] depth 0 < 1"),
        (lambda: vit(drop_path=1.0), "[Block] drop_path 1.0 is not in [0, 1)"),
        (lambda: gpt(positions="sine"), "[Gpt] positions is 'sine', expected 'lear"),
        (lambda: gpt(rotary=True), "[Gpt] positions are learned, but the attention"),
        (lambda: gpt(context=0), "[Gpt] context 0 < 1"),
        (lambda: gpt(vocabulary=0), "[TokenEmbedding] rows 0 < 1"),
        (lambda: gpt()(torch.ones(3).long()), "[Gpt] tokens have shape (3,), expected"),
        (lambda: gpt(vocabulary=256)(b""), "[Gpt] tokens have shape (1, 0), expected [B"),
        (lambda: gpt()(b"a"), "[Gpt] a text in bytes, but the model has 11 tokens"),
        (lambda: gpt()(torch.ones(1, 7).long()), "a sequence of 7 tokens is longer"),
        (lambda: gpt()(torch.ones(1, 2)), "[TokenEmbedding] tokens of type torch"),
        (lambda: gpt()(torch.tensor([[1, 11]])), "token 11 is not in [0, 11)"),
        (lambda: gpt()(torch.tensor([[-1, 3]])), "token -1 is not in [0, 11)"),
        (lambda: SequenceClassifier(8, 1, 2, pooling="max"), "pooling is 'max', expec"),
        (lambda: SequenceClassifier(8, 1, 2, head="deep"), "head is 'deep', expected"),
        (lambda: SequenceClassifier(8, 1, 2, towers=3), "towers is 3, expected one of"),
        (
            lambda: SequenceClassifier(8, 1, 2, pooling="padded", positions="rotary"),
            "pooling 'padded' needs positions 'learned'",
        ),
        (
            lambda: SequenceClassifier(8, 1, 2, towers=2)(torch.ones(3, 2).long()),
            "3 sequences are no pairs",
        ),
        (
            lambda: SequenceClassifier(8, 1, 2, mask_zeros=True)(
                torch.zeros(1, 2).long()
            ),
            "sequence 0 holds nothing but zeros",
        ),
        (
            lambda: SequenceClassifier(8, 1, 2)(torch.ones(2, 3).long(), torch.ones(2)),
            "lengths are torch.float32 of shape (2,), expected integers [2]",
        ),
        (
            lambda: SequenceClassifier(8, 1, 2)(
                torch.ones(2, 3).long(), torch.tensor([0, 4])
            ),
            "lengths are from 0 to 4, expected from 1 to 3",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert message in str(caught.value)
