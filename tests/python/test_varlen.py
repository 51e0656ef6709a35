"""Packed batches against the same sequences one by one."""

import pytest
import torch

import polyattn
from helpers import assert_equal, random

LENGTHS = [5, 0, 9, 1]


def ends(lengths, dtype=torch.int32):
    return torch.tensor([0, *lengths], dtype=dtype).cumsum(0).to(dtype)


def one_by_one(q, k, v, lengths_q, lengths_k, **options):
    pieces = zip(q.split(lengths_q), k.split(lengths_k), v.split(lengths_k))
    return torch.cat(
        [
            polyattn.attention(
                *(t.transpose(0, 1) for t in piece), enable_gqa=True, **options
            ).transpose(0, 1)
            for piece in pieces
        ]
    )


def tensors(lengths_q, lengths_k=None, heads=(4, 2)):
    rows_q, rows_k = sum(lengths_q), sum(lengths_k or lengths_q)
    return (
        random(rows_q, heads[0], 3, seed=1, grad=True),
        random(rows_k, heads[1], 3, seed=2, grad=True),
        random(rows_k, heads[1], 6, seed=3, grad=True),
    )


@pytest.mark.parametrize("path", ["auto", "dense", "linear"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("formula", ["softmax", "x^2/sqrt(N)", "x^4/sum", "sigmoid"])
def test_is_each_sequence_by_itself(formula, causal, path):
    if path == "linear" and formula in ("softmax", "sigmoid"):
        with pytest.raises(RuntimeError, match="linear"):
            polyattn.attention_varlen(
                *tensors(LENGTHS), ends(LENGTHS), activation=formula, path=path
            )
        return
    inputs = tensors(LENGTHS)
    options = dict(activation=formula, is_causal=causal)
    got = polyattn.attention_varlen(*inputs, ends(LENGTHS), path=path, **options)
    want = one_by_one(*inputs, LENGTHS, LENGTHS, **options)
    assert_equal(got, want)
    weight = random(*want.shape, seed=4)
    for a, b in zip(
        torch.autograd.grad(got, inputs, weight),
        torch.autograd.grad(want, inputs, weight),
    ):
        assert_equal(a, b)


@pytest.mark.parametrize("alignment", ["upper_left", "lower_right"])
def test_queries_and_keys_of_different_lengths(alignment):
    lengths_q, lengths_k = [2, 3], [6, 3]
    inputs = tensors(lengths_q, lengths_k)
    options = dict(
        activation="x^3/sqrt(N)", is_causal=True, causal_alignment=alignment
    )
    got = polyattn.attention_varlen(
        *inputs, ends(lengths_q), ends(lengths_k, torch.int64), **options
    )
    assert_equal(got, one_by_one(*inputs, lengths_q, lengths_k, **options))
    del options["causal_alignment"]
    with pytest.raises(ValueError, match="flash-attention"):
        polyattn.attention_varlen(*inputs, ends(lengths_q), ends(lengths_k), **options)


def test_derivatives_of_second_order():
    def run(*inputs):
        return polyattn.attention_varlen(
            *inputs, ends([2, 3]), activation="x^3/sqrt(N)", is_causal=True
        )

    inputs = tensors([2, 3], heads=(2, 1))
    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


def test_coefficients_learn():
    inputs = tensors(LENGTHS)
    c = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    options = dict(activation="x^2/sqrt(N)", coefficients=c)
    got = polyattn.attention_varlen(*inputs, ends(LENGTHS), **options)
    want = one_by_one(*inputs, LENGTHS, LENGTHS, **options)
    assert_equal(got, want)
    assert_equal(
        torch.autograd.grad(got.square().sum(), c)[0],
        torch.autograd.grad(want.square().sum(), c)[0],
    )


@pytest.mark.parametrize(
    "offsets, message",
    [
        ([0, 5], "ends at 5, but there are 15 rows"),
        ([1, 15], "begins with 1, not 0"),
        ([0, 9, 7, 15], r"cu_seqlens_q\[2\] 7 < 9 before it"),
        ([15], r"is not i32 or i64 \[B \+ 1\]"),
        ([0.0, 15.0], r"is not i32 or i64 \[B \+ 1\]"),
    ],
)
def test_bad_offsets(offsets, message):
    with pytest.raises(RuntimeError, match=message):
        polyattn.attention_varlen(*tensors(LENGTHS), torch.tensor(offsets))


def test_learned_coefficients_under_sum():
    inputs = [t.detach() for t in tensors(LENGTHS)]
    c = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    options = dict(activation="x^2/sum", coefficients=c)
    with torch.no_grad():
        got = polyattn.attention_varlen(*inputs, ends(LENGTHS), **options)
        assert_equal(got, one_by_one(*inputs, LENGTHS, LENGTHS, **options))
    got = polyattn.attention_varlen(*inputs, ends(LENGTHS), **options)
    want = one_by_one(*inputs, LENGTHS, LENGTHS, **options)
    assert_equal(got, want)
    assert_equal(
        torch.autograd.grad(got.square().sum(), c)[0],
        torch.autograd.grad(want.square().sum(), c)[0],
    )


def test_bad_arguments():
    q, k, v = tensors(LENGTHS)
    with pytest.raises(TypeError, match="coefficients is int, expected Tensor or None"):
        polyattn.attention_varlen(q, k, v, ends(LENGTHS), coefficients=3)
    with pytest.raises(RuntimeError, match="query of size"):
        polyattn.attention_varlen(q[None], k[None], v[None], ends(LENGTHS))
    with pytest.raises(RuntimeError, match=r"not \[total, heads, width\]"):
        polyattn.attention_varlen(q[None], k, v, ends(LENGTHS))
    with pytest.raises(RuntimeError, match="for 4 sequences, cu_seqlens_k for 1"):
        polyattn.attention_varlen(q, k, v, ends(LENGTHS), ends([15]))
    with pytest.raises(TypeError, match="cu_seqlens_q is list, expected Tensor"):
        polyattn.attention_varlen(q, k, v, [0, 15])
    with pytest.raises(ValueError, match=r"\^"):
        polyattn.attention_varlen(q, k, v, ends(LENGTHS), activation="x^3/sqt(N)")
    with pytest.raises(ValueError, match="path is 'fast'"):
        polyattn.attention_varlen(q, k, v, ends(LENGTHS), path="fast")
    nested = torch.nested_tensor if hasattr(torch, "nested_tensor") else None
    if hasattr(torch, "nested"):
        nested = torch.nested.nested_tensor
    t = nested([torch.ones(2, 3), torch.ones(1, 3)])
    with pytest.raises(TypeError, match="nested tensor: give its values"):
        polyattn.attention_varlen(t, t, t, ends(LENGTHS))
    with pytest.raises(TypeError, match="nested tensor: polyattn.attention_varlen"):
        polyattn.attention(t, t, t)
