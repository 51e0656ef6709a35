"""polyattn.match_start: each head at softmax's norm, by explicit matrices."""

import math

import pytest
import torch

import polyattn
from helpers import random

E, H = 24, 4
CUBE = "x^3/sqrt(N)"


def make(**options):
    torch.manual_seed(1)
    layer = polyattn.nn.Attention(E, H, dtype=torch.float64, **options)
    with torch.no_grad():
        layer.in_proj_weight.mul_(2)
    return layer


def scores(layer, x):
    rows = torch.nn.functional.linear(x, layer.in_proj_weight, layer.in_proj_bias)
    rows = rows.unflatten(-1, (H + 2 * layer.kv_heads, -1)).transpose(1, 2)
    keys = rows[:, H : H + layer.kv_heads].repeat_interleave(H // layer.kv_heads, 1)
    return rows[:, :H] @ keys.mT / math.sqrt(E // H)


def norms(a):
    return a.flatten(2).norm(dim=-1).mean(0)


@pytest.mark.parametrize("factor", [1.0, 0.3])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_each_head_meets_softmax(factor, kv_heads):
    x = random(6, 16, E)
    layer = make(activation=CUBE, kv_heads=kv_heads)
    before = norms(scores(layer, x) ** 3 / 4)
    heads = polyattn.match_start(layer, x, factor=factor).layers[""]
    s = scores(layer, x)
    own, softmax = norms(s**3 / 4), norms(s.softmax(-1))
    torch.testing.assert_close(own, factor * softmax, rtol=3e-4, atol=0)
    for name, expected in (("before", before), ("after", own), ("softmax", softmax)):
        found = torch.tensor([getattr(h, name) for h in heads], dtype=torch.float64)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)
    assert all(h.gain < 1 for h in heads)


def test_causal_attention_is_matched_in_its_last_rows():
    x = random(6, 32, E)
    layer = make(activation="x^2/sqrt(N)", causal=True)
    polyattn.match_start(layer, (x,))
    s = scores(layer, x)
    hidden = torch.ones(32, 32, dtype=torch.bool).triu(1)
    seen = torch.arange(1, 33, dtype=torch.float64).sqrt()[:, None]
    own = (s**2).masked_fill(hidden, 0) / seen
    softmax = s.masked_fill(hidden, -math.inf).softmax(-1)
    torch.testing.assert_close(
        norms(own[:, :, -4:]), norms(softmax[:, :, -4:]), rtol=3e-4, atol=0
    )


@pytest.mark.parametrize("formula", ["x/N", "relu/N", "1 + x", "x^4/sum", "softmax"])
def test_what_no_scale_brings_there_stays(formula):
    layer = make(activation=formula)
    weight = layer.in_proj_weight.clone()
    report = polyattn.match_start(layer, random(3, 16, E) / 2)
    assert torch.equal(layer.in_proj_weight, weight)
    assert all(h.gain == 1 for heads in report.layers.values() for h in heads)


def test_a_learned_scale_starts_there():
    layer = make(activation=CUBE, qk_norm="rms", learned_scale=True)
    weight, scale = layer.in_proj_weight.clone(), layer.score_scale.clone()
    heads = polyattn.match_start(layer, random(4, 16, E)).layers[""]
    assert torch.equal(layer.in_proj_weight, weight)
    gains = torch.tensor([h.gain for h in heads], dtype=torch.float64)
    torch.testing.assert_close(layer.score_scale.detach(), scale.detach() * gains)
    assert all(abs(h.after / h.softmax - 1) < 3e-4 for h in heads)


def test_norms_of_q_and_k_take_the_mean():
    layer = make(activation=CUBE, qk_norm="rms")
    heads = polyattn.match_start(layer, random(4, 16, E)).layers[""]
    product = layer.q_norm.weight * layer.k_norm.weight
    torch.testing.assert_close(
        product.detach(), torch.full_like(product, heads[0].gain)
    )
    assert {h.gain for h in heads} == {heads[0].gain}


def test_replace_softmax_says_before_and_after():
    torch.manual_seed(2)
    layer = torch.nn.TransformerEncoderLayer(
        E, H, 32, dropout=0.1, batch_first=True, dtype=torch.float64
    )
    model = torch.nn.TransformerEncoder(layer, 2).train()
    for p in model.parameters():
        if p.dim() > 1:
            torch.nn.init.xavier_uniform_(p, 2.0)
    report = polyattn.replace_softmax(model, CUBE, match=random(5, 16, E))
    assert list(report.start.layers) == ["layers.0.self_attn", "layers.1.self_attn"]
    for heads in report.start.layers.values():
        assert all(abs(h.after / h.softmax - 1) < 3e-4 for h in heads)
    assert "layers.0.self_attn head 0: " in str(report)
    assert model.training
    before = [p.clone() for p in model.parameters()]
    model(random(5, 16, E))
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))


def test_bad_input():
    layer = make(activation=CUBE)
    weight = layer.in_proj_weight.clone()
    with pytest.raises(ValueError, match="factor 0"):
        polyattn.match_start(layer, random(2, 4, E), factor=0)
    with pytest.raises(TypeError, match="batch is int"):
        polyattn.match_start(layer, 3)
    with pytest.raises(ValueError, match="not finite"):
        polyattn.match_start(layer, random(2, 4, E) * math.nan)
    assert torch.equal(layer.in_proj_weight, weight)
