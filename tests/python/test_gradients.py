"""First and second derivatives against finite differences."""

import pytest
import torch

import polyattn
from helpers import random

SIZES = [(2, 3), (3, 3), (3, 2)]
FORMULAS = ["softmax", "x^3/sqrt(N)", "1 + x + x^2/2", "x^4/sum", "sigmoid"]


def qkv(groups=2):
    return (
        random(1, 2, 2, 3, seed=1, grad=True),
        random(1, groups, 3, 3, seed=2, grad=True),
        random(1, groups, 3, 2, seed=3, grad=True),
    )


def check(function, inputs):
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize("formula", FORMULAS + ["relu^2/N"])
def test_plain(formula):
    # The second derivative of relu^2 jumps at 0, where no score is.
    check(lambda *t: polyattn.attention(*t, activation=formula), qkv())


@pytest.mark.parametrize("formula", FORMULAS)
def test_causal(formula):
    def run(*t):
        return polyattn.attention(
            *t, is_causal=True, causal_alignment="lower_right", activation=formula
        )

    check(run, qkv())


@pytest.mark.parametrize("formula", FORMULAS)
def test_bool_mask(formula):
    mask = torch.tensor([[True, False, True], [False, False, False]])
    check(lambda *t: polyattn.attention(*t, mask, activation=formula), qkv())


@pytest.mark.parametrize("formula", FORMULAS)
def test_added_mask(formula):
    bias = random(2, 2, 3, seed=4, grad=True)
    check(
        lambda *t: polyattn.attention(*t, activation=formula), (*qkv(), bias)
    )


@pytest.mark.parametrize("formula", FORMULAS)
def test_bias_beside_a_mask(formula):
    """Of windows, which share the bias, and of images, which share the masks."""
    mask = torch.tensor([[[True, False, True], [True, True, True]]] * 2)
    mask[1, 0] = False
    t = [random(2, 2, 1, *s, seed=i, grad=True) for i, s in enumerate(SIZES)]
    bias = random(1, 2, 3, seed=4, grad=True)

    def run(q, k, v, bias):
        return polyattn.attention(
            q, k, v, mask[:, None], activation=formula, bias=bias
        )

    check(run, (*t, bias))


@pytest.mark.parametrize("formula", ["softmax", "x^3/sqrt(N)"])
def test_grouped_heads(formula):
    check(
        lambda *t: polyattn.attention(*t, enable_gqa=True, activation=formula),
        qkv(groups=1),
    )


@pytest.mark.parametrize("formula", ["x^2/sqrt(N)", "x^2/sum"])
@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_coefficients(formula, shape):
    c = random(*shape, seed=5, grad=True)

    def run(q, k, v, c):
        return polyattn.attention(q, k, v, activation=formula, coefficients=c)

    check(run, (*qkv(), c))


def test_shared_history():
    """q, k and v that are functions of the same tensor."""
    x = random(1, 2, 3, 3, seed=6, grad=True)
    check(lambda x: polyattn.attention(x, 2 * x, x, activation="x^3/sqrt(N)"), (x,))
