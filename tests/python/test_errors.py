"""What a user reads who made a mistake."""

import re

import pytest
import torch

import polyattn
from helpers import random


def raises(kind, text):
    return pytest.raises(kind, match=re.escape(text))


def call(**changes):
    arguments = dict(
        query=random(1, 2, 3, 4), key=random(1, 2, 5, 4), value=random(1, 2, 5, 6)
    )
    return polyattn.attention(**{**arguments, **changes})


def test_unchanged_call_is_right():
    assert call().shape == (1, 2, 3, 6)


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("query", [1.0], "[attention] query is list, expected Tensor"),
        ("attn_mask", 1, "[attention] attn_mask is int, expected Tensor or None"),
        ("coefficients", [1.0], "[attention] coefficients is list"),
        ("bias", 1, "[attention] bias is int, expected Tensor or None"),
        ("activation", 3, "[attention] activation is int, expected str"),
        ("scale", "1", "[attention] scale is str, expected Real or None"),
        ("dropout_p", None, "[attention] dropout_p is NoneType, expected Real"),
    ],
)
def test_types(name, value, text):
    with raises(TypeError, text):
        call(**{name: value})


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("key", random(1, 2, 5, 3), "[attention] key width 3 != query width 4"),
        ("value", random(1, 2, 4, 6), "[attention] value rows 4 != key rows 5"),
        ("query", random(1, 3, 3, 4), "[attention] key heads 2 != query heads 3"),
        ("query", random(4), "[attention] query has 1 dimensions"),
        ("key", random(1, 2, 5, 4, dtype=torch.float32), "[attention] key has type"),
        ("key", torch.empty(1, 2, 5, 4, device="meta"), "[attention] key "),
        ("attn_mask", torch.ones(4, 4) > 0, "[attention] attn_mask of size"),
        ("bias", torch.ones(4, 4), "[attention] bias of size"),
        ("bias", torch.ones(3, 5) > 0, "[attention] bias has type Bool"),
        ("dropout_p", 1.5, "[attention] dropout_p 1.5"),
        ("scale", float("nan"), "[attention] scale nan"),
        ("coefficients", torch.ones(2), "[attention] coefficients are for polynomials"),
    ],
)
def test_tensors_and_numbers(name, value, text):
    with raises(RuntimeError, text) as caught:
        call(**{name: value})
    assert "frame #" not in str(caught.value)  # no C++ in the message


@pytest.mark.parametrize("read", [polyattn.activation, lambda f: call(activation=f)])
def test_formula_has_a_caret_under_the_fault(read):
    with pytest.raises(ValueError) as caught:
        read("x^3/sqt(N)")
    lines = str(caught.value).splitlines()
    assert "frame #" not in str(caught.value)
    assert lines[-2].strip() == "x^3/sqt(N)"
    assert lines[-1].index("^") == lines[-2].index("sqt")


def test_causal_alignment():
    with raises(ValueError, "[attention] causal_alignment is 'left'"):
        call(causal_alignment="left")


def test_meta_device_gives_shapes():
    meta = [torch.empty(2, 4, n, 8, device="meta") for n in (5, 7, 7)]
    output = polyattn.attention(*meta, activation="x^3/sqrt(N)")
    assert output.is_meta and output.shape == (2, 4, 5, 8)


def test_formula_must_be_text():
    with raises(TypeError, "[activation] formula is NoneType, expected str"):
        polyattn.activation(None)
