"""A sliding window is the bool mask that shows the same keys."""

import pytest
import torch

import polyattn
import reference
from helpers import assert_equal, random
from polyattn import _transforms

WINDOWS = [(2, 1), (-1, 3), (3, 0), (0, -1), (40, 40)]
FORMULAS = ["softmax", "x^3/sqrt(N)", "x^4/sum", "sigmoid"]


def qkv(rows=7, keys=11, grad=False):
    sizes = [(4, rows, 6), (2, keys, 6), (2, keys, 5)]
    return [
        random(2, *size, seed=seed, grad=grad) for seed, size in enumerate(sizes, 1)
    ]


def band(rows, keys, window, own=0):
    ahead = torch.arange(keys) - torch.arange(rows)[:, None] - own
    left, right = (10**6 if n < 0 else n for n in window)
    return (ahead >= -left) & (ahead <= right)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("formula", FORMULAS)
def test_is_its_mask(formula, window):
    q, k, v = qkv()
    options = dict(activation=formula, enable_gqa=True)
    found, norms = polyattn.attention(
        q, k, v, window_size=window, return_norms=True, **options
    )
    mask = band(7, 11, window)
    assert_equal(found, reference.attention(q, k, v, formula, mask=mask))
    _, expected = polyattn.attention(q, k, v, mask, return_norms=True, **options)
    assert_equal(norms.weight, expected.weight)
    assert_equal(norms.jacobian, expected.jacobian)


@pytest.mark.parametrize("window", WINDOWS)
def test_causal_at_the_last_key(window):
    q, k, v = qkv()
    found = polyattn.attention(
        q,
        k,
        v,
        is_causal=True,
        enable_gqa=True,
        activation="x^3/sqrt(N)",
        causal_alignment="lower_right",
        window_size=window,
    )
    mask = band(7, 11, window, own=4)
    expected = reference.attention(
        q, k, v, "x^3/sqrt(N)", mask=mask, causal="lower_right"
    )
    assert_equal(found, expected)


@pytest.mark.parametrize("formula", FORMULAS)
def test_derivatives(formula):
    inputs = [
        random(1, h, rows, width, seed=seed, grad=True)
        for seed, (h, rows, width) in enumerate([(2, 3, 2), (1, 4, 2), (1, 4, 3)], 1)
    ]

    def run(*t):
        return polyattn.attention(
            *t, activation=formula, enable_gqa=True, window_size=(1, 1)
        )

    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


def test_packed_batch():
    q, k = random(12, 4, 3, seed=1), random(14, 2, 3, seed=2)
    ends_q, ends_k = torch.tensor([0, 5, 12]), torch.tensor([0, 8, 14])
    options = dict(
        is_causal=True,
        activation="x^2/N",
        causal_alignment="lower_right",
        window_size=(2, 0),
    )
    found = polyattn.attention_varlen(q, k, k, ends_q, ends_k, **options)
    parts = [
        polyattn.attention(
            *(t.transpose(0, 1) for t in (a, b, b)), enable_gqa=True, **options
        ).transpose(0, 1)
        for a, b in ((q[:5], k[:8]), (q[5:], k[8:]))
    ]
    assert_equal(found, torch.cat(parts))


def test_refused():
    q, k, v = qkv()
    for bad in ((1,), (1, 2, 3), 5, (1.5, 0), ("a", "b")):
        with pytest.raises(TypeError, match="window_size is .*, expected two int"):
            polyattn.attention(q, k, v, enable_gqa=True, window_size=bad)
    with pytest.raises(ValueError, match=r"\[attention\] window_size left -2 < -1"):
        polyattn.attention(q, k, v, enable_gqa=True, window_size=(-2, 0))
    with pytest.raises(ValueError, match=r"\[attention_varlen\] .* right -9 < -1"):
        polyattn.attention_varlen(
            q[0], k[0], v[0], torch.tensor([0, 4]), window_size=(0, -9)
        )
    with pytest.raises(RuntimeError, match="a window shows each row other keys"):
        polyattn.attention(
            q, k, v, enable_gqa=True, activation="x", path="linear", window_size=(1, 1)
        )


@pytest.mark.skipif(
    not _transforms.supported(), reason="needs the rules of ops of torch 2.5"
)
class TestTransforms:
    OPTIONS = dict(activation="x^3/sqrt(N)", enable_gqa=True, window_size=(2, 1))

    def run(self, q, k, v):
        return polyattn.attention(q, k, v, **self.OPTIONS)

    def test_compiled(self):
        inputs = qkv(grad=True)
        torch._dynamo.reset()
        compiled = torch.compile(self.run, fullgraph=True, backend="aot_eager")
        found, expected = compiled(*inputs), self.run(*inputs)
        assert torch.equal(found, expected)
        weight = random(*found.shape, seed=9)
        for a, b in zip(
            torch.autograd.grad(found, inputs, weight),
            torch.autograd.grad(expected, inputs, weight),
        ):
            assert torch.equal(a, b)

    def test_vmap(self):
        inputs = qkv()
        found = torch.func.vmap(self.run)(*inputs)
        assert_equal(found, self.run(*inputs))

    def test_second_derivative(self):
        q, k, v = qkv(rows=3, keys=4)

        def loss(q):
            return self.run(q, k, v).square().sum()

        def first(q):
            return torch.func.grad(loss)(q).square().sum()

        leaf = q.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss(leaf), leaf, create_graph=True)
        (expected,) = torch.autograd.grad(slope.square().sum(), leaf)
        assert_equal(torch.func.grad(first)(q), expected)
