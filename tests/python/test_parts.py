"""The optional parts of polyattn.nn.Attention against their definition."""

import math

import pytest
import torch
import torch.nn.functional as F

from helpers import assert_equal, random
from polyattn.nn import Attention


def make(**options):
    torch.manual_seed(0)
    options = {"activation": "x^3/sqrt(N)", **options}
    module = Attention(12, 4, 2, dtype=torch.float64, **options)
    for p in module.parameters():  # none of them neutral
        torch.nn.init.normal_(p, 0.2, 0.4)
    return module


def convolved(conv, rows):
    x, channels = rows.transpose(1, 2), rows.shape[2]
    if conv.grid is None:
        x = F.pad(x, (conv.weight.shape[2] - 1, 0))
        return F.conv1d(x, conv.weight, groups=channels).transpose(1, 2)
    before = rows.shape[1] - math.prod(conv.grid)
    picture = x[:, :, before:].unflatten(2, conv.grid)
    y = F.conv2d(picture, conv.weight, padding=1, groups=channels).flatten(2)
    return torch.cat([x[:, :, :before], y], dim=2).transpose(1, 2)


def windowed(s, seen, module):
    """Softmax of the scores of rows that are near."""
    rows = torch.arange(s.shape[-1])
    ahead = rows - rows[:, None]
    near = (
        (ahead <= 0) & (ahead > -module.window)
        if module.causal
        else ahead.abs() <= module.window
    )
    weights = s.masked_fill(~(near & (seen > 0)), -math.inf).softmax(dim=-1)
    return weights.nan_to_num(0.0)


def plain(module, x, seen):
    """x^3/sqrt(N), every matrix written out; seen: bool [..., N, N]."""
    d = module.head_dim
    rows = F.linear(x, module.in_proj_weight, module.in_proj_bias)
    if module.short_conv is not None and module.grid is None:
        rows = convolved(module.short_conv, rows)
    q, k, v = rows.split([4 * d, 2 * d, 2 * d], dim=-1)
    if module.grid is not None:
        v = convolved(module.short_conv, v)
    q, k, v = (t.unflatten(-1, (-1, d)).transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(2, dim=1) for t in (k, v))
    seen = seen.to(x.dtype)
    count = seen.sum(dim=-1, keepdim=True).clamp(min=1)
    s = q @ k.transpose(-2, -1) / math.sqrt(d)
    a = s**3 / count.sqrt() * seen
    o = a @ v
    if module.center_values:
        mean = (seen @ v / count).unsqueeze(-2)
        o = (a.unsqueeze(-1) * (v.unsqueeze(-3) - mean)).sum(-2) + mean.squeeze(-2)
    if module.window > 0:
        near = windowed(s, seen, module) @ v
        gate = module.hybrid_gate
        o = near if gate is None else near + gate[:, None, None] * o
    o = o.transpose(1, 2)
    if module.output_norm is not None:
        o = o / (o.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        o = o * module.output_norm.weight
    o = o.flatten(2)
    if module.gate_proj is not None:
        o = o / (1 + (-module.gate_proj(x)).exp())
    return module.out_proj(o)


def lower(n, causal):
    all_pairs = torch.ones(n, n, dtype=torch.bool)
    return all_pairs.tril() if causal else all_pairs


def check(module, x, mask, seen):
    y, expected = module(x, None, mask), plain(module, x, seen)
    assert_equal(y, expected)
    inputs = [x, *module.parameters()]
    actual = torch.autograd.grad(y.square().sum(), inputs)
    for a, b in zip(actual, torch.autograd.grad(expected.square().sum(), inputs)):
        # Sums of some hundred terms of up to 10^3.
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


ALL = dict(output_norm="rms", output_gate=True, center_values=True, short_conv=3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        dict(output_norm="rms"),
        dict(output_gate=True, bias=False),
        dict(center_values=True),
        dict(short_conv=4),
        dict(window=3),
        dict(window=1, activation="softmax", center_values=True),
        dict(window=3, **ALL),
        ALL,
    ],
)
def test_definition(options, causal):
    module = make(causal=causal, **options)
    check(module, random(2, 7, 12, grad=True), None, lower(7, causal))


def test_a_window_under_a_mask():
    module = make(window=2)
    mask = torch.ones(2, 1, 1, 7, dtype=torch.bool)
    mask[1, ..., 4:] = False
    check(module, random(2, 7, 12, grad=True), mask, mask & lower(7, False))


def test_a_hybrid_has_a_gate_and_keeps_it():
    module = Attention(12, 4, activation="x^2/N", window=5)
    assert torch.equal(module.hybrid_gate, torch.ones(4))
    assert Attention(12, 4, window=5).hybrid_gate is None
    module.activation = "x^3/N"
    with pytest.raises(ValueError, match="x.3/N with window 5 cannot become softmax"):
        module.activation = "softmax"


def test_on_a_grid():
    module = make(short_conv=3, grid=(2, 3))
    assert module.short_conv.weight.shape == (6, 1, 3, 3)
    for rows in (6, 7):  # without and with a class token
        check(module, random(2, rows, 12, grad=True), None, lower(rows, False))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "shape", [(2, 1, 1, 6), (2, 4, 1, 6), (2, 1, 6, 6), (2, 4, 6, 6), (6, 6)]
)
def test_values_are_centred_over_what_is_seen(shape, causal):
    module = make(center_values=True, causal=causal)
    x = random(2, 6, 12, grad=True)
    mask = random(*shape, seed=1) > -0.3
    check(module, x, mask, mask & lower(6, causal))
    added = torch.zeros(shape, dtype=torch.float64).masked_fill(~mask, -math.inf)
    check(module, x, added, mask & lower(6, causal))


def test_cross_attention_is_centred():
    module = make(center_values=True, output_norm="rms", output_gate=True)
    x = random(2, 7, 12)
    assert_equal(module(x, x), module(x))


def test_names_and_shapes():
    module = Attention(12, 4, 2, 5, **ALL)
    assert {n: tuple(p.shape) for n, p in module.state_dict().items()} == {
        "in_proj_weight": (40, 12),
        "in_proj_bias": (40,),
        "out_proj.weight": (12, 20),
        "out_proj.bias": (12,),
        "gate_proj.weight": (20, 12),
        "gate_proj.bias": (20,),
        "output_norm.weight": (5,),
        "short_conv.weight": (40, 1, 3),
    }


@pytest.mark.parametrize(
    "options", [dict(short_conv=4), dict(short_conv=3, grid=(2, 3))]
)
def test_a_short_conv_begins_as_the_identity(options):
    with_conv = Attention(12, 4, dtype=torch.float64, **options)
    without = Attention(12, 4, dtype=torch.float64)
    without.load_state_dict(with_conv.state_dict(), strict=False)
    x = random(2, 7, 12)
    assert torch.equal(with_conv(x), without(x))


def test_norms_are_those_of_the_weights():
    module, x = make(causal=True, **ALL), random(2, 7, 12)
    plain_module = make(causal=True, short_conv=3)
    own = plain_module.state_dict()
    plain_module.load_state_dict({n: module.state_dict()[n] for n in own})
    y, norms = module.forward_with_norms(x)
    assert_equal(y, module(x))
    assert_equal(norms.weight, plain_module.forward_with_norms(x)[1].weight)


def test_autocast():
    module = Attention(16, 2, activation="x^3/sqrt(N)", causal=True, **ALL)
    x = torch.randn(2, 5, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = module(x)
    assert y.dtype == torch.bfloat16 and y.isfinite().all()


@pytest.mark.parametrize(
    "options, text",
    [
        (dict(output_norm="layer"), "output_norm is 'layer', expected None or 'rms'"),
        (dict(short_conv=-1), "short_conv -1 < 0"),
        (dict(window=-1), "window -1 < 0"),
        (dict(short_conv=4, grid=(2, 2)), "on a grid is 3 wide and not causal, not 4"),
        (dict(short_conv=3, grid=(2, 2), causal=True), "not 3 wide and causal"),
    ],
)
def test_constructor_errors(options, text):
    with pytest.raises(ValueError, match=r"\[Attention\] .*" + text):
        Attention(12, 4, **options)


def test_call_errors():
    x = torch.zeros(1, 3, 12)
    with pytest.raises(ValueError, match=r"\[Attention\] .* short_conv has no meaning"):
        Attention(12, 4, short_conv=2)(x, x)
    with pytest.raises(ValueError, match=r"\[Attention\] .* window has no meaning"):
        Attention(12, 4, window=2)(x, x)
    with pytest.raises(ValueError, match=r"3 rows are fewer than the 4 patches"):
        Attention(12, 4, short_conv=3, grid=(2, 2))(x)
