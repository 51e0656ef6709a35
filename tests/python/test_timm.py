"""polyattn.timm, against a plain twin: timm itself is not in Debian.

The twin is written from timm's documented layout (timm.layers.Attention in timm
1.0): qkv.weight has the rows of q, k and v in this order, head by head; the norms
are called q_norm, k_norm and norm, the output projection proj.
"""

import copy
import doctest
import functools
import io
import math
import subprocess
import sys

import pytest
import torch

import polyattn
import polyattn.timm
import reference
from helpers import assert_equal, random

CUBE = "x^3/sqrt(N)"
C, H, N = 12, 3, 5
NORM = functools.partial(torch.nn.LayerNorm, eps=1e-6)
KEYS = {"qkv.weight", "proj.weight", "proj.bias"}


class Twin(torch.nn.Module):
    """timm's module, which computes softmax."""

    formula = "softmax"

    def __init__(self, dim, num_heads, qkv_bias, qk_norm, scale_norm, norm_layer):
        super().__init__()
        self.heads, width = num_heads, dim // num_heads
        self.qkv = torch.nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.q_norm = norm_layer(width) if qk_norm else torch.nn.Identity()
        self.k_norm = norm_layer(width) if qk_norm else torch.nn.Identity()
        self.norm = norm_layer(dim) if scale_norm else torch.nn.Identity()
        self.proj = torch.nn.Linear(dim, dim)

    def forward(self, x, **options):
        rows = self.qkv(x)
        width = x.shape[-1] // self.heads
        heads = []
        for h in range(self.heads):
            q, k, v = (
                rows[..., part * x.shape[-1] + h * width :][..., :width]
                for part in range(3)
            )
            q, k, v = (t.unsqueeze(1) for t in (self.q_norm(q), self.k_norm(k), v))
            heads.append(reference.attention(q, k, v, self.formula, **options))
        return self.proj(self.norm(torch.cat(heads, dim=-1).squeeze(1)))


def options(**changes):
    arguments = dict(qkv_bias=True, qk_norm=True, scale_norm=True, norm_layer=NORM)
    return {**arguments, **changes}


def pair(activation="softmax", **changes):
    """A twin, and a module of ours with its state dict."""
    torch.manual_seed(0)
    twin = Twin(C, H, **options(**changes)).double()
    for p in twin.parameters():
        torch.nn.init.normal_(p, 0.0, 0.5)
    twin.formula = activation
    ours = polyattn.timm.Attention(
        C, num_heads=H, activation=activation, dtype=torch.float64, **options(**changes)
    )
    ours.load_state_dict(twin.state_dict())
    return twin, ours


@pytest.mark.parametrize("formula", ["softmax", CUBE])
@pytest.mark.parametrize(
    "changes", [{}, dict(qkv_bias=False, qk_norm=False, scale_norm=False)]
)
def test_is_the_twin(formula, changes):
    twin, ours = pair(formula, **changes)
    x = random(2, N, C, grad=True)
    actual, expected = ours(x), twin(x)
    assert_equal(actual, expected)
    wanted = [x, *ours.parameters()], [x, *twin.parameters()]
    names = [[n for n, _ in m.named_parameters()] for m in (ours, twin)]
    assert names[0] == names[1]
    assert_equal(
        torch.autograd.grad(actual.square().sum(), wanted[0]),
        torch.autograd.grad(expected.square().sum(), wanted[1]),
    )


@pytest.mark.parametrize("fused", [False, True])
def test_masks(fused):
    twin, ours = pair(CUBE)
    ours.fused_attn = fused
    x, mask, bias = random(2, N, C), random(N, N) > -0.5, random(2, 1, N, N, seed=1)
    assert_equal(ours(x, attn_mask=mask), twin(x, mask=mask))
    assert_equal(ours(x, bias), twin(x, mask=bias))
    assert_equal(ours(x, is_causal=True), twin(x, causal="upper_left"))


def test_names_in_the_state_dict():
    plain = polyattn.timm.Attention(C, H)
    assert set(plain.state_dict()) == KEYS
    full = polyattn.timm.Attention(C, H, **options())
    norms = {n + p for n in ("q_norm", "k_norm", "norm") for p in (".weight", ".bias")}
    assert set(full.state_dict()) == KEYS | norms | {"qkv.bias"}
    assert full.q_norm.eps == 1e-6
    unbiased = polyattn.timm.Attention(C, H, proj_bias=False)
    assert set(unbiased.state_dict()) == KEYS - {"proj.bias"}


def test_sizes():
    module = polyattn.timm.Attention(C, 5, attn_head_dim=4, dim_out=7)
    assert module.qkv.weight.shape == (60, C) and module.proj.weight.shape == (7, 20)
    assert module(torch.ones(2, N, C)).shape == (2, N, 7)
    assert polyattn.timm.Attention(C, H, device="meta").qkv.weight.is_meta


def test_weights_pass_through_attn_drop():
    """Where people look for them: timm's own module has them there, unfused."""
    twin, ours = pair(CUBE, qk_norm=False)
    ours.fused_attn = False
    seen = []
    ours.attn_drop.register_forward_hook(lambda m, inputs, output: seen.append(output))
    x = random(2, N, C)
    assert_equal(ours(x), twin(x))
    q, k = (
        t.unflatten(-1, (H, C // H)).transpose(1, 2)
        for t in twin.qkv(x).chunk(3, dim=-1)[:2]
    )
    assert_equal(seen, [reference.weights(q, k, CUBE)])


@pytest.mark.parametrize("fused", [False, True])
def test_dropout(fused):
    module = polyattn.timm.Attention(C, H, attn_drop=0.5, activation=CUBE)
    module.fused_attn = fused
    x = random(2, N, C, dtype=torch.float32)
    module.eval()
    assert torch.equal(module(x), module(x))
    module.train()
    assert not torch.equal(module(x), module(x))
    projected = polyattn.timm.Attention(C, H, proj_drop=0.5)
    assert (projected(x) == 0).any() and not (projected.eval()(x) == 0).any()


class Block(torch.nn.Module):
    """How timm makes a layer of `attn_layer`, and calls it."""

    def __init__(self, attn_layer):
        super().__init__()
        assert not issubclass(attn_layer, Twin)  # timm asks this of one of its own
        self.attn = attn_layer(
            C,
            num_heads=H,
            attn_drop=0.0,
            proj_drop=0.0,
            proj_bias=True,
            device=None,
            dtype=None,
            **options(),
        )

    def forward(self, x, attn_mask=None, is_causal=False):
        return x + self.attn(x, attn_mask=attn_mask, is_causal=is_causal)


class TestBound:
    def test_in_a_block(self):
        twin, _ = pair(CUBE)
        block = Block(polyattn.timm.attention("x*x^2 / sqrt(N)")).double()
        block.attn.load_state_dict(twin.state_dict())
        x = random(2, N, C)
        assert_equal(block(x), x + twin(x))
        assert block.attn.activation == CUBE

    def test_is_copied_and_saved(self):
        block = Block(polyattn.timm.attention(CUBE)).double()
        x = random(2, N, C)
        file = io.BytesIO()
        torch.save(block.attn, file)
        file.seek(0)
        safe = {} if torch.__version__ < "2" else {"weights_only": False}
        for other in (copy.deepcopy(block.attn), torch.load(file, **safe)):
            assert_equal(other(x), block.attn(x))
            assert type(other) is polyattn.timm.Attention

    def test_several(self):
        layers = [polyattn.timm.attention(f)(C, H) for f in ("softmax", "x^2/N")]
        assert [layer.activation for layer in layers] == ["softmax", "x^2/N"]

    def test_formula_error_comes_at_once(self):
        with pytest.raises(ValueError, match=r"(?s)sqt.*\^"):
            polyattn.timm.attention("x^3/sqt(N)")
        with pytest.raises(TypeError, match="activation is int, expected str"):
            polyattn.timm.attention(3)


def test_activation_may_be_assigned_to():
    twin, ours = pair("softmax")
    twin.formula = CUBE
    ours.activation = "x * x^2/sqrt(N)"
    assert "activation='x^3/sqrt(N)'" in repr(ours)
    x = random(2, N, C)
    assert_equal(ours(x), twin(x))


@pytest.mark.parametrize(
    "arguments, text",
    [
        (dict(dim=C, num_heads=5), r"\[timm.Attention\] dim 12 is not a multiple of"),
        (dict(dim=C, num_heads=0), r"\[timm.Attention\] num_heads 0 < 1"),
        (dict(dim=C, num_heads=H, qk_norm=True), "qk_norm needs a norm_layer"),
        (dict(dim=C, num_heads=H, scale_norm=True), "scale_norm needs a norm_layer"),
    ],
)
def test_errors(arguments, text):
    with pytest.raises(ValueError, match=text):
        polyattn.timm.Attention(**arguments)


def test_timm_is_not_imported():
    check = "import sys, polyattn.timm; assert 'timm' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_docstrings_say_what_is_true():
    names = {"polyattn": polyattn, "torch": torch}
    done = doctest.testmod(polyattn.timm, extraglobs=names)
    assert done.failed == 0 and done.attempted > 3


@pytest.mark.parametrize("qk_norm", [False, True])
def test_replace_softmax_and_the_matched_start(qk_norm):
    torch.manual_seed(2)
    options = dict(qk_norm=qk_norm, norm_layer=NORM, qkv_bias=True)
    model = polyattn.timm.Attention(C, H, **options).double()
    with torch.no_grad():
        model.qkv.weight.mul_(4)
    x = random(6, 20, C)
    report = polyattn.replace_softmax(model, CUBE, match=x)
    assert [(s.heads, s.old, s.new) for s in report.swapped] == [(H, "softmax", CUBE)]
    heads = report.start.layers[""]
    # Norms of q and k are shared: their gain is the mean of those of the heads.
    worst = max(abs(math.log(h.after / h.softmax)) for h in heads)
    assert worst < (0.5 if qk_norm else 3e-4)
    assert all(h.gain < 1 and h.before > h.after for h in heads)

    q, k, _ = model.qkv(x).unflatten(-1, (3, H, C // H)).permute(2, 0, 3, 1, 4)
    weights = (model.q_norm(q) @ model.k_norm(k).mT / (C // H) ** 0.5) ** 3 / 20**0.5
    norms = weights.flatten(2).norm(dim=-1).mean(0)
    assert norms.tolist() == pytest.approx([h.after for h in heads], rel=1e-9)
