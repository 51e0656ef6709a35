"""polyattn.nn.Attention with decay."""

import math

import pytest
import torch

import polyattn
from helpers import assert_equal, random
from test_decay import definition


def module(decay, **options):
    torch.manual_seed(3)
    return polyattn.nn.Attention(
        8,
        4,
        2,
        activation="x^2/sqrt(N)",
        causal=True,
        decay=decay,
        dtype=torch.float64,
        **options,
    )


@pytest.mark.parametrize("decay", ["head", "gate"])
def test_modules(decay):
    attention = module(decay)
    names = {name for name, _ in attention.named_parameters()}
    new = {"log_decay_rate"} if decay == "head" else {"decay_proj.weight"}
    assert new <= names
    x = random(2, 7, 8, seed=4)
    first = attention.log_decay(x).exp()
    if decay == "head":
        assert_equal(first.flatten(), torch.tensor([1 - 2**-5, 1 - 2**-6]).double())
    else:
        assert_equal(first, torch.full((2, 2, 7), 0.999, dtype=torch.float64))
        torch.nn.init.normal_(attention.decay_proj.weight)
    q, k, v = attention._project(x, None)
    o = definition(q, k, v, attention.log_decay(x), "x/sqrt(N)")
    attention.activation = "x/sqrt(N)"
    assert_equal(attention(x), attention._project_out(x, o))
    attention(x).sum().backward()
    for name, p in attention.named_parameters():
        assert p.grad is not None and p.grad.isfinite().all(), name
        if "decay" in name:
            assert p.grad.abs().max() > 0


@pytest.mark.parametrize("decay", ["head", "gate"])
def test_a_matched_start(decay):
    attention = module(decay)
    attention.activation = "x^3/sqrt(N)"
    with torch.no_grad():
        attention.in_proj_weight.mul_(3)
    x = random(3, 32, 8, seed=4)
    report = polyattn.match_start(attention, x)
    for head in report.layers[""]:
        assert head.after <= head.before
        assert math.isfinite(head.after)


def test_refusals():
    for options, message in [
        (dict(decay="both"), "decay is 'both', expected None, 'head' or 'gate'"),
        (dict(decay="gate", causal=False), "needs causal=True"),
        (dict(decay="gate", activation="softmax"), "not for softmax"),
        (dict(decay="head", center_values=True), "together with center_values"),
        (dict(decay="head", dropout=0.1), "together with dropout"),
    ]:
        all_of = {**dict(activation="x^2/N", causal=True), **options}
        with pytest.raises(ValueError, match=message):
            polyattn.nn.Attention(8, 2, **all_of)
