"""polyattn.nn.Attention against plain torch ops."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F

import polyattn
import reference
from helpers import assert_equal, random
from polyattn.nn import Attention, Rotary


def make(*sizes, **options):
    torch.manual_seed(0)
    module = Attention(*sizes, dtype=torch.float64, **options)
    for p in module.parameters():  # none of them neutral
        torch.nn.init.normal_(p, 0.0, 0.3)
    return module


def heads_of(module, x, context=None):
    """q, k and v by three products, one for each."""
    d = module.head_dim
    rows = [module.heads * d, module.kv_heads * d, module.kv_heads * d]
    weights = module.in_proj_weight.split(rows)
    bias = module.in_proj_bias
    biases = [None] * 3 if bias is None else bias.split(rows)
    inputs = [x] + [x if context is None else context] * 2
    return [
        F.linear(t, w, b).unflatten(-1, (-1, d)).transpose(1, 2)
        for t, w, b in zip(inputs, weights, biases)
    ]


def project_out(module, o):
    return module.out_proj(o.transpose(1, 2).flatten(2))


def names(module):
    return {name: tuple(p.shape) for name, p in module.state_dict().items()}


def test_self_attention():
    module = make(12, 3, activation="x^3/sqrt(N)", causal=True)
    x = random(2, 5, 12)
    o = reference.attention(
        *heads_of(module, x), "x^3/sqrt(N)", causal="upper_left"
    )
    assert_equal(module(x), project_out(module, o))


def test_softmax_is_torch_multihead_attention():
    torch.manual_seed(0)
    ours = Attention(12, 3, dtype=torch.float64)
    theirs = torch.nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(ours.state_dict())
    x = random(2, 5, 12)
    assert_equal(ours(x), theirs(x, x, x)[0])


def test_cross_attention_with_groups_and_mask():
    module = make(12, 6, 2, 5, activation="sigmoid", bias=False)
    x, context = random(2, 3, 12, seed=1), random(2, 7, 12, seed=2)
    mask = random(2, 1, 3, 7, seed=3) > -0.5
    o = reference.attention(*heads_of(module, x, context), "sigmoid", mask=mask)
    assert_equal(module(x, context, mask), project_out(module, o))


def normalised(t, kind):
    if kind == "layer":
        t = t - t.mean(dim=-1, keepdim=True)
    return t / (t.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norms_and_learned_scale(kind):
    module = make(12, 3, activation="x^3/14", qk_norm=kind, learned_scale=True)
    x = random(2, 5, 12)
    q, k, v = heads_of(module, x)
    q = normalised(q, kind) * module.q_norm.weight
    k = normalised(k, kind) * module.k_norm.weight
    s = q @ k.transpose(-2, -1) * module.score_scale.reshape(3, 1, 1)
    assert_equal(module(x), project_out(module, s**3 / 14 @ v))


@pytest.mark.parametrize("kind", [True, "shared", "head"])
def test_learned_coefficients(kind):
    module = make(12, 3, activation="x^2/N", learned_coefficients=kind)
    assert module.coefficients.shape == ((3, 3) if kind == "head" else (3,))
    x = random(2, 5, 12)
    q, k, v = heads_of(module, x)
    s = reference.scores(q, k)
    a, b, c = (t.reshape(-1, 1, 1) for t in module.coefficients.unbind(-1))
    y = project_out(module, (a + b * s + c * s**2) / 5 @ v)
    assert_equal(module(x), y)
    gradient = torch.autograd.grad(module(x).sum(), module.coefficients)
    assert_equal(gradient, torch.autograd.grad(y.sum(), module.coefficients))


class TestRotary:
    def rotate_one(self, x, position, base, width):
        y = x.clone()
        for i in range(width // 2):
            angle = position * base ** (-2 * i / width)
            a, b = x[i], x[i + width // 2]
            y[i] = a * math.cos(angle) - b * math.sin(angle)
            y[i + width // 2] = b * math.cos(angle) + a * math.sin(angle)
        return y

    @pytest.mark.parametrize("fraction, width", [(1.0, 6), (0.7, 4)])
    def test_definition(self, fraction, width):
        x = random(4, 6)
        actual = Rotary(100.0, fraction).rotate(x, first=3)
        rows = [self.rotate_one(r, 3 + i, 100.0, width) for i, r in enumerate(x)]
        assert_equal(actual, torch.stack(rows))

    def test_in_the_module(self):
        module = make(12, 2, activation="x^3/sqrt(N)", rotary=Rotary(base=50.0))
        x = random(2, 5, 12)
        q, k, v = heads_of(module, x)
        q, k = (Rotary(50.0).rotate(t) for t in (q, k))
        y = project_out(module, reference.attention(q, k, v, "x^3/sqrt(N)"))
        assert_equal(module(x), y)
        assert module.rotary == Rotary(50.0, 1.0)

    def test_true_is_the_default(self):
        assert Attention(8, 2, rotary=True).rotary == Rotary(10000.0, 1.0)
        assert Attention(8, 2).rotary is None

    @pytest.mark.parametrize(
        "rotary, text",
        [
            (Rotary(base=1.0), r"\[Rotary\] base 1.0 is not above 1"),
            (Rotary(fraction=1.5), r"\[Rotary\] fraction 1.5 is not in"),
            (Rotary(fraction=0.4), r"\[Rotary\] fraction 0.4 of head_dim 4"),
        ],
    )
    def test_errors(self, rotary, text):
        with pytest.raises(ValueError, match=text):
            Attention(8, 2, rotary=rotary)


def test_names_and_shapes():
    module = Attention(
        12,
        4,
        2,
        5,
        activation="x^3",
        qk_norm="rms",
        learned_scale=True,
        learned_coefficients=True,
    )
    assert names(module) == {
        "in_proj_weight": (40, 12),
        "in_proj_bias": (40,),
        "out_proj.weight": (12, 20),
        "out_proj.bias": (12,),
        "q_norm.weight": (5,),
        "k_norm.weight": (5,),
        "score_scale": (4,),
        "coefficients": (4,),
    }
    assert_equal(module.score_scale, torch.full((4,), 5**-0.5))
    assert module.coefficients.tolist() == [0, 0, 0, 1]
    assert names(Attention(12, 4, bias=False)) == {
        "in_proj_weight": (36, 12),
        "out_proj.weight": (12, 12),
    }


def test_state_dict_round_trip(tmp_path):
    options = dict(qk_norm="layer", learned_scale=True, activation="x^3/sqrt(N)")
    a, b = make(12, 3, **options), Attention(12, 3, **options).double()
    x = random(2, 5, 12)
    assert not torch.allclose(a(x), b(x))
    torch.save(a.state_dict(), tmp_path / "state.pt")
    b.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert torch.equal(a(x), b(x))


def test_whole_module_can_be_saved_and_copied(tmp_path):
    module = make(12, 3, activation="x^3/sqrt(N)", rotary=True)
    x = random(2, 5, 12)
    torch.save(module, tmp_path / "module.pt")
    loaded = torch.load(tmp_path / "module.pt", weights_only=False)
    for twin in (loaded, copy.deepcopy(module)):
        assert twin.activation == "x^3/sqrt(N)"
        assert torch.equal(twin(x), module(x))


def test_norms():
    module = make(12, 3, activation="x^3/sqrt(N)")
    x = random(2, 5, 12)
    y, norms = module.forward_with_norms(x)
    a = reference.weights(*heads_of(module, x)[:2], "x^3/sqrt(N)")
    assert_equal(y, module(x))
    assert_equal(norms.weight, a.square().sum(dim=(2, 3)).sqrt())


def test_dropout_is_for_training():
    module = make(12, 3, dropout=0.5, projection_dropout=0.5)
    x = random(2, 5, 12)
    plain = make(12, 3)(x)
    assert torch.equal(module.eval()(x), plain)
    y = module.train()(x)
    assert (y == 0).any() and not torch.allclose(y[y != 0] / 2, plain[y != 0])


def test_autocast():
    module = Attention(
        16,
        2,
        activation="x^3/sqrt(N)",
        qk_norm="layer",
        rotary=True,
        learned_scale=True,
    )
    x = torch.randn(2, 5, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = module(x)
        types = {t.dtype for t in module._project(x, None)}
    assert y.dtype == torch.bfloat16 and y.isfinite().all()
    # Not every device has an op that would cast what is mixed.
    assert types == {torch.bfloat16}


@pytest.mark.parametrize(
    "sizes, options, text",
    [
        ((12, 5), {}, "dim 12 is not a multiple of heads 5"),
        ((12, 0), {}, "heads 0 < 1"),
        ((12, 4, 3), {}, "heads 4 is not a multiple of kv_heads 3"),
        ((12, 4, 4, 0), {}, "head_dim 0 < 1"),
        ((12, 4), dict(qk_norm="batch"), "qk_norm is 'batch'"),
        ((12, 4), dict(learned_coefficients=True), "are for polynomials, not for"),
        ((12, 4), dict(learned_coefficients="all"), "learned_coefficients is 'all'"),
    ],
)
def test_constructor_errors(sizes, options, text):
    with pytest.raises(ValueError, match=r"\[Attention\] " + ".*" + text):
        Attention(*sizes, **options)


def test_call_errors():
    module = Attention(12, 4, causal=True)
    x = torch.zeros(1, 3, 12)
    with pytest.raises(ValueError, match=r"\[Attention\] x has shape \(3, 12\)"):
        module(x[0])
    with pytest.raises(ValueError, match=r"\[Attention\] .* causal has no meaning"):
        module(x, x)
    with pytest.raises(ValueError, match=r"\[Attention\] context has shape"):
        Attention(12, 4)(x, torch.zeros(1, 3, 11))


def test_activation_may_be_assigned():
    module = make(12, 3)
    module.activation = "x*x*x / sqrt(N)"
    assert module.activation == "x^3/sqrt(N)"
    x = random(2, 5, 12)
    assert_equal(module(x), make(12, 3, activation="x^3/sqrt(N)")(x))
    learned = Attention(12, 3, activation="x^3", learned_coefficients=True)
    with pytest.raises(ValueError, match="are learned"):
        learned.activation = "softmax"
    with pytest.raises(ValueError, match="x\\^\\^"):
        module.activation = "x^^"
    assert polyattn.activation(module.activation).formula == "x^3/sqrt(N)"
