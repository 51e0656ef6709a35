"""Forward mode: against finite differences, and against torch's own of the
definition in torch ops."""

import pytest
import torch
from torch.autograd import forward_ad

import polyattn
from helpers import random

FORMULAS = ["softmax", "x^3/sqrt(N)", "1 + x + x^2/2", "x^4/sum", "sigmoid", "relu^2/N"]


def inputs(groups=2):
    return (
        random(2, 4, 5, 3, seed=1),
        random(2, groups, 7, 3, seed=2),
        random(2, groups, 7, 2, seed=3),
    )


def tangents(tensors):
    return [random(*t.shape, seed=10 + i) for i, t in enumerate(tensors)]


def along(function, tensors, directions, step=1e-5):
    """Central differences; the error is of order step^2."""
    up = function(*(t + step * u for t, u in zip(tensors, directions)))
    down = function(*(t - step * u for t, u in zip(tensors, directions)))
    return (up - down) / (2 * step)


def dual(function, tensors, directions):
    with forward_ad.dual_level():
        pairs = [forward_ad.make_dual(t, u) for t, u in zip(tensors, directions)]
        return forward_ad.unpack_dual(function(*pairs)).tangent


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("causal", [False, True])
def test_finite_differences(formula, causal):
    def run(q, k, v):
        return polyattn.attention(
            q, k, v, is_causal=causal, enable_gqa=True, activation=formula
        )

    t = inputs()
    u = tangents(t)
    want = along(run, t, u)
    output, change = polyattn.attention_jvp(
        *t, *u, is_causal=causal, enable_gqa=True, activation=formula
    )
    assert torch.equal(output, run(*t))
    torch.testing.assert_close(change, want, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(dual(run, t, u), change, rtol=0, atol=0)


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_definition(formula):
    """torch has forward mode of its own for the definition in torch ops."""
    t = [*inputs(groups=4), random(4, 5, 7, seed=4)]
    u = tangents(t)
    mask = random(5, 7, seed=5) > -1

    def definition(q, k, v, bias):
        return torch.ops.polyattn._composed_attention(
            q, k, v, mask, activation=formula, bias=bias
        )

    def op(q, k, v, bias):
        return polyattn.attention(q, k, v, mask, activation=formula, bias=bias)

    want = dual(definition, t, u)
    torch.testing.assert_close(dual(op, t, u), want, rtol=1e-10, atol=1e-10)
    _, change = polyattn.attention_jvp(
        *t[:3], *u[:3], mask, activation=formula, bias=t[3], bias_tangent=u[3]
    )
    torch.testing.assert_close(change, want, rtol=1e-10, atol=1e-10)


def test_of_coefficients_and_dropout():
    """What the kernel does not know goes by the definition."""
    t = [*inputs(groups=4), random(4, seed=4)]
    u = tangents(t)

    def run(q, k, v, c):
        return polyattn.attention(q, k, v, activation="x/sqrt(N)", coefficients=c)

    want = along(run, t, u)
    torch.testing.assert_close(dual(run, t, u), want, rtol=1e-6, atol=1e-8)

    def dropped(q, k, v):
        torch.manual_seed(5)
        return polyattn.attention(q, k, v, dropout_p=0.3, activation="x^3/sqrt(N)")

    want = along(dropped, t[:3], u[:3])
    torch.testing.assert_close(dual(dropped, t[:3], u[:3]), want, rtol=1e-6, atol=1e-8)


def test_forward_over_reverse():
    """The tangent of a gradient is a product with the Hessian."""
    t = [x.requires_grad_(True) for x in inputs(groups=4)]
    u = tangents(t)

    def gradient(*tensors):
        o = polyattn.attention(*tensors, activation="x^3/sqrt(N)")
        return torch.autograd.grad(o.square().sum(), tensors, create_graph=True)[0]

    with forward_ad.dual_level():
        pairs = [forward_ad.make_dual(x, y) for x, y in zip(t, u)]
        got = forward_ad.unpack_dual(gradient(*pairs)).tangent
    want = along(gradient, t, u).detach()
    torch.testing.assert_close(got.detach(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("formula", FORMULAS)
def test_both_results_have_gradients(formula):
    t = [x.requires_grad_(True) for x in inputs(groups=4)]
    u = [x.requires_grad_(True) for x in tangents(t)]

    def run(*all_of_them):
        return polyattn.attention_jvp(*all_of_them, activation=formula)

    small = [x[:1, :1, :2].detach().requires_grad_(True) for x in (*t, *u)]
    assert torch.autograd.gradcheck(run, small)


def test_what_does_not_change():
    q, k, v = inputs(groups=4)
    output, change = polyattn.attention_jvp(q, k, v, activation="x^2/N")
    assert torch.equal(output, polyattn.attention(q, k, v, activation="x^2/N"))
    assert torch.equal(change, torch.zeros_like(output))
    u = random(*v.shape, seed=9)
    _, change = polyattn.attention_jvp(q, k, v, value_tangent=u, activation="x^2/N")
    want = polyattn.attention(q, k, u, activation="x^2/N")
    torch.testing.assert_close(change, want)


def test_errors():
    q, k, v = inputs(groups=4)
    with pytest.raises(RuntimeError, match=r"query_tangent has size \[2, 4, 7, 3\]"):
        polyattn.attention_jvp(q, k, v, k)
    with pytest.raises(RuntimeError, match="value_tangent has type Float, value has"):
        polyattn.attention_jvp(q, k, v, value_tangent=v.float())
    with pytest.raises(RuntimeError, match="bias_tangent without a bias"):
        polyattn.attention_jvp(q, k, v, bias_tangent=v)
    with pytest.raises(TypeError, match="key_tangent"):
        polyattn.attention_jvp(q, k, v, key_tangent=3)
