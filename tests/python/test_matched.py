"""The matched start, against norms of drawn scores."""

import doctest
import math

import pytest
import torch

import polyattn
import polyattn.matched
from test_errors import raises


def test_docstring():
    failed, tried = doctest.testmod(
        polyattn.matched, globs={"polyattn": polyattn}, verbose=False
    )
    assert (failed, tried) == (0, 3)


def measured(activation, scale, tokens, causal):
    """Mean squared norms of 100 matrices: queries are 0, scores are the mask."""
    scores = scale * torch.randn(100, 1, tokens, tokens, generator=generator(tokens))
    if causal:  # the last row alone
        scores = scores[:, :, -1:]
    q = torch.zeros(100, 1, scores.shape[2], 1)
    k = torch.zeros(100, 1, tokens, 1)
    _, norms = polyattn.attention(
        q, k, k, scores, activation=activation, return_norms=True
    )
    return norms.weight.double().square()


def generator(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("activation", ["x^3/sqrt(N)", "x^2/sqrt(N)", "sigmoid", "x/N"])
def test_norms_are_what_drawn_scores_have(activation, causal):
    match = polyattn.matched_gain(activation, 64, causal=causal)
    for formula, norm in (activation, match.norm), ("softmax", match.softmax_norm):
        squares = measured(formula, match.scale, 64, causal)
        error = squares.std() / math.sqrt(len(squares))
        assert abs(squares.mean() - norm**2) < 4 * error


def test_factor_and_score_std():
    match = polyattn.matched_gain("x^2/sqrt(N)", 64, score_std=2, factor=0.3)
    assert match.norm == pytest.approx(0.3 * match.softmax_norm, rel=1e-8)
    assert match.gain == pytest.approx(math.sqrt(match.scale / 2))
    assert match.reason is None


def test_no_match():
    above = polyattn.matched_gain("1 + x", 64)
    assert (above.gain, above.scale) == (1, 1)
    assert above.reason == "its norm is above the target at every smaller scale"
    sums = polyattn.matched_gain("x^4/sum", 64)
    assert sums.gain == 1 and sums.norm is None
    assert "divided by their sums" in sums.reason


@pytest.mark.parametrize(
    "kind, text, arguments",
    [
        (ValueError, "[matched_gain] tokens 0 ", dict(tokens=0)),
        (ValueError, "[matched_gain] score_std 17", dict(score_std=17)),
        (ValueError, "[matched_gain] factor nan", dict(factor=math.nan)),
        (ValueError, "x^3/sqt(N)", dict(activation="x^3/sqt(N)")),
        (TypeError, "[matched_gain] tokens is float", dict(tokens=6.4)),
        (TypeError, "[matched_gain] activation is int", dict(activation=3)),
        (TypeError, "[matched_gain] factor is str", dict(factor="1")),
    ],
)
def test_errors(kind, text, arguments):
    with raises(kind, text):
        polyattn.matched_gain(**{"activation": "x^3", "tokens": 8, **arguments})
