"""Decay: against its definition in plain torch ops."""

import math
import re

import pytest
import torch

import polyattn
from helpers import assert_equal, random

FORMULAS = {
    "x/sqrt(N)": lambda s, n: s / n.sqrt(),
    "x^3/N": lambda s, n: s**3 / n,
    "1 + x + x^2/2": lambda s, n: 1 + s + s**2 / 2,
    "x^2/sum": lambda s, n: s**2,
}
CALL = dict(is_causal=True, enable_gqa=True)


def fades(log_decay, rows):
    """[..., N, M]: the product of the factors of the keys after j up to row i, where
    the last row is at the last key."""
    keys = log_decay.shape[-1]
    factor = log_decay.exp()
    table = []
    for i in range(rows):
        last = i + keys - rows
        row = []
        for j in range(keys):
            one = torch.ones_like(factor[..., 0])
            fade = one * 0 if j > last else one
            for t in range(j + 1, last + 1):
                fade = fade * factor[..., t]
            row.append(fade)
        table.append(torch.stack(row, -1))
    return torch.stack(table, -2)


def definition(q, k, v, log_decay, formula):
    group = q.shape[-3] // k.shape[-3]
    log_decay = log_decay.expand(*k.shape[:-1])
    k, v, log_decay = (
        t.repeat_interleave(group, d) for t, d in ((k, -3), (v, -3), (log_decay, -2))
    )
    fade = fades(log_decay, q.shape[-2])
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    n = (fade**2).sum(-1, keepdim=True)
    a = fade * FORMULAS[formula](s, n)
    if "sum" in formula:
        a = a / a.abs().sum(-1, keepdim=True)
    return a @ v


def inputs(rows=6, keys=6, grad=True):
    sizes = [(2, 4, rows, 3), (2, 2, keys, 3), (2, 2, keys, 2)]
    return [random(*size, seed=i, grad=grad) for i, size in enumerate(sizes)]


def decays(*size, grad=True):
    logs = -torch.nn.functional.softplus(random(*size, seed=7) - 1)
    return logs.requires_grad_(grad)


@pytest.mark.parametrize("size", [(2, 2, 6), (2, 1), (1, 6), (2, 1, 1)])
@pytest.mark.parametrize("formula", FORMULAS)
def test_is_its_definition(formula, size):
    leaves = [*inputs(), decays(*size)]
    found = polyattn.attention(
        *leaves[:3], activation=formula, log_decay=leaves[3], **CALL
    )
    expected = definition(*leaves, formula)
    assert_equal(found, expected)
    d_o = random(*found.shape, seed=9)
    for got, want in zip(
        torch.autograd.grad(found, leaves, d_o), torch.autograd.grad(expected, leaves, d_o)
    ):
        assert_equal(got, want)


@pytest.mark.parametrize("formula", FORMULAS)
def test_at_the_last_key_and_resets(formula):
    q, k, v = inputs(rows=3, keys=7)
    logs = decays(2, 2, 7, grad=False)
    logs[:, :, 4] = -math.inf
    logs.requires_grad_(True)
    found = polyattn.attention(
        q,
        k,
        v,
        activation=formula,
        log_decay=logs,
        causal_alignment="lower_right",
        **CALL,
    )
    assert_equal(found, definition(q, k, v, logs, formula))
    gradient = torch.autograd.grad(found.sum(), logs)[0]
    assert gradient.isfinite().all()
    assert (gradient[:, :, 4] == 0).all()


@pytest.mark.parametrize("formula", FORMULAS)
def test_derivatives_of_both_orders(formula):
    q, k, v = (t[:1, :2, :4].detach().requires_grad_() for t in inputs())
    k, v = k[:, :1], v[:, :1]
    logs = decays(1, 1, 4)

    def call(q, k, v, logs):
        return polyattn.attention(
            q, k, v, activation=formula, log_decay=logs, **CALL
        )

    # A row of `sum` that sees one key does not depend on its score.
    assert torch.autograd.gradcheck(call, (q, k, v, logs))
    assert torch.autograd.gradgradcheck(call, (q, k, v, logs), atol=1e-4)


def test_coefficients_of_each_head():
    q, k, v = inputs()
    logs = decays(2, 2, 6)
    c = torch.tensor([[0.1, 0.2, 0.5]] * 4, dtype=torch.float64, requires_grad=True)
    shared = torch.tensor([0.1, 0.2, 0.5], dtype=torch.float64, requires_grad=True)
    options = dict(activation="x^2/sqrt(N)", log_decay=logs, **CALL)
    one = polyattn.attention(q, k, v, coefficients=c, **options)
    other = polyattn.attention(q, k, v, coefficients=shared, **options)
    assert_equal(one, other)
    first = torch.autograd.grad(one.sum(), [logs, c])
    second = torch.autograd.grad(other.sum(), [logs, shared])
    assert_equal(first[0], second[0])
    assert_equal(first[1].sum(0), second[1])


@pytest.mark.parametrize("formula", FORMULAS)
def test_norms(formula):
    q, k, v = inputs(grad=False)
    logs = decays(2, 2, 6, grad=False)
    found, norms = polyattn.attention(
        q, k, v, activation=formula, log_decay=logs, return_norms=True, **CALL
    )
    assert_equal(found, definition(q, k, v, logs, formula))
    one = torch.eye(6, dtype=q.dtype).expand(2, 2, 6, 6)
    a = definition(q, k, one, logs, formula)
    assert_equal(norms.weight, a.square().sum((-2, -1)).sqrt())
    s = q @ k.repeat_interleave(2, 1).transpose(-2, -1) / math.sqrt(3)
    assert_equal(norms.max_abs_score, s.tril().abs().amax((-2, -1)))
    assert (norms.non_finite == 0).all()


def test_padding_is_no_time():
    q, k, v = inputs(grad=False)
    logs = decays(2, 2, 6, grad=False)
    seen = torch.tensor([True, False, True, True, False, True])
    options = dict(activation="x^2/sqrt(N)", causal_alignment="lower_right", **CALL)
    found = polyattn.attention(q[:, :, -1:], k, v, seen, log_decay=logs, **options)
    expected = polyattn.attention(
        q[:, :, -1:],
        k[:, :, seen],
        v[:, :, seen],
        log_decay=logs[..., seen],
        **options,
    )
    assert_equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gates_may_be_wider_than_the_rows(dtype):
    q, k, v = inputs(grad=False)
    logs = decays(2, 2, 6, grad=False).float().requires_grad_()
    rows = [t.to(dtype) for t in (q, k, v)]
    found = polyattn.attention(*rows, activation="x/sqrt(N)", log_decay=logs, **CALL)
    assert found.dtype == dtype
    expected = definition(*(t.double() for t in rows), logs.double(), "x/sqrt(N)")
    torch.testing.assert_close(found.double(), expected, rtol=2e-2, atol=2e-2)
    assert torch.autograd.grad(found.sum(), logs)[0].dtype == torch.float32


def test_transforms():
    q, k, v = inputs(grad=False)
    logs = decays(2, 2, 6, grad=False)
    options = dict(activation="x^2/sqrt(N)", is_causal=True, enable_gqa=True)

    def call(q, k, v, logs):
        return polyattn.attention(q, k, v, log_decay=logs, **options)

    expected = call(q, k, v, logs)
    if hasattr(torch, "vmap"):
        assert_equal(torch.vmap(call)(q, k, v, logs), expected)
    meta = call(*(t.to("meta") for t in (q, k, v, logs)))
    assert meta.shape == expected.shape


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(activation="softmax"), "log_decay is for polynomials, and softmax"),
        (dict(is_causal=False), "log_decay without causality"),
        (dict(path="dense"), "log_decay has no dense path"),
        (dict(window_size=(2, 0)), "log_decay together with window_size 2, 0"),
        (dict(dropout_p=0.1), "log_decay together with dropout_p 0.1"),
        (dict(bias=torch.zeros(6, 6).double()), "log_decay together with a bias"),
        (
            dict(attn_mask=torch.ones(6, 6, dtype=torch.bool)),
            "log_decay together with a mask of size",
        ),
        (dict(log_decay=torch.zeros(3, 6).double()), "does not broadcast to"),
        (dict(log_decay=torch.zeros(2, 6).long()), "which is not floating point"),
        (dict(log_decay=torch.full((2, 1), 0.5)), "0.5 is not <= 0"),
        (dict(log_decay=torch.full((2, 1), math.nan)), "nan is not <= 0"),
        (
            dict(activation="x^3/sum"),
            "no linear path: x^3/sum has weights of both signs",
        ),
    ],
)
def test_errors(change, message):
    q, k, v = inputs(grad=False)
    options = dict(activation="x^2/N", log_decay=torch.zeros(2, 6).double(), **CALL)
    with pytest.raises(RuntimeError, match=re.escape(message)):
        polyattn.attention(q, k, v, **{**options, **change})
    with pytest.raises(TypeError, match="log_decay"):
        polyattn.attention(q, k, v, **{**options, "log_decay": -0.1})


@pytest.mark.parametrize("mode", ["auto", "cache", "state"])
def test_decoding(mode):
    q, k, v = (random(2, h, 130, 3, seed=h) for h in (4, 2, 2))
    logs = decays(2, 2, 130, grad=False)
    state = polyattn.DecodeState(
        2, 4, 3, kv_heads=2, activation="x^2/sqrt(N)", mode=mode, dtype=q.dtype
    )
    state.append(k[:, :, :70], v[:, :, :70], log_decay=logs[:, :, :70])
    found = []
    for t in range(70, 130):
        at = slice(t, t + 1)
        found.append(
            state.step(q[:, :, at], k[:, :, at], v[:, :, at], None, logs[:, :, at])
        )
    expected = polyattn.attention(
        q, k, v, activation="x^2/sqrt(N)", log_decay=logs, **CALL
    )
    assert_equal(torch.cat(found, 2), expected[:, :, 70:])
    with pytest.raises(RuntimeError, match="is not <= 0"):
        state.step(q[:, :, :1], k[:, :, :1], v[:, :, :1], None, -logs[:, :, :1])
