"""DecodeState: token by token is the whole, whatever the pieces."""

import copy
import pickle

import pytest
import torch

import polyattn
from helpers import assert_equal, random

FORMULAS = ["softmax", "x^2/sqrt(N)", "x^3/N", "x^4/sum", "1 + x + x^2/2"]


def text(tokens=40, batch=2, heads=4, kv_heads=2):
    return (
        random(batch, heads, tokens, 3, seed=1),
        random(batch, kv_heads, tokens, 3, seed=2),
        random(batch, kv_heads, tokens, 5, seed=3),
    )


def whole(q, k, v, formula):
    return polyattn.attention(
        q, k, v, is_causal=True, enable_gqa=True, activation=formula
    )


def new_state(formula, mode="auto", batch=2, window=0):
    return polyattn.DecodeState(
        batch,
        4,
        3,
        kv_heads=2,
        value_dim=5,
        activation=formula,
        mode=mode,
        dtype=torch.float64,
        window=window,
    )


def read(state, tensors, pieces):
    parts, first = [], 0
    for count in pieces:
        part = [t[:, :, first : first + count] for t in tensors]
        parts.append(state.step(*part))
        first += count
    return torch.cat(parts, dim=2)


@pytest.mark.parametrize("mode", ["auto", "cache", "state"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_pieces_are_the_whole(formula, mode):
    tensors = text()
    if formula == "softmax" and mode == "state":
        with pytest.raises(ValueError, match="softmax"):
            new_state(formula, mode)
        return
    for pieces in ([40], [1] * 40, [7, 1, 1, 30, 1]):
        state = new_state(formula, mode)
        assert_equal(read(state, tensors, pieces), whole(*tensors, formula))
        assert state.lengths == [40, 40]


def test_a_state_does_not_grow():
    state = polyattn.DecodeState(1, 2, 8, activation="x^2/sqrt(N)", mode="state")
    sizes = []
    for _ in range(6):
        q, k, v = (torch.randn(1, 2, 500, 8) for _ in range(3))
        state.step(q, k, v)
        sizes.append(state.nbytes)
    assert len(set(sizes[1:])) == 1
    assert state.folded[0] > 2000
    cache = polyattn.DecodeState(1, 2, 8, activation="softmax")
    cache.step(q, k, v)
    before = cache.nbytes
    cache.step(q, k, v)
    assert cache.nbytes > before


@pytest.mark.parametrize("formula", ["softmax", "x^2/sqrt(N)", "x^4/sum"])
def test_a_window(formula, tmp_path):
    q, k, v = text(tokens=60)
    for window in (1, 7, 100):
        want = polyattn.attention(
            q,
            k,
            v,
            is_causal=True,
            enable_gqa=True,
            activation=formula,
            window_size=(window - 1, 0),
        )
        state = new_state(formula, window=window)
        assert_equal(read(state, (q, k, v), [50, 1, 1]), want[:, :, :52])
        state.save(tmp_path / "state")
        state = polyattn.DecodeState.load(tmp_path / "state")
        rest = tuple(t[:, :, 52:] for t in (q, k, v))
        assert_equal(read(state, rest, [1, 7]), want[:, :, 52:])


def test_a_window_does_not_grow():
    state = new_state("softmax", window=8)
    tensors = text(tokens=200)
    read(state, tensors, [200])
    after_a_prompt = state.nbytes
    for _ in range(20):
        state.append(*tensors[1:])
    read(state, tensors, [1] * 200)
    assert state.lengths == [4400, 4400] and state.nbytes == after_a_prompt


def test_texts_of_different_lengths():
    formula = "x^3/sqrt(N)"
    q, k, v = text(tokens=9)
    state = new_state(formula)
    first = state.step(q[:, :, :6], k[:, :, :6], v[:, :, :6], counts=[6, 4])
    assert_equal(first[1, :, 4:], torch.zeros(4, 2, 5, dtype=torch.float64))
    # The second text goes on with its own fifth token.
    rows = [slice(6, 7), slice(4, 5)]
    q1, k1, v1 = (
        torch.stack([t[b, :, rows[b]] for b in range(2)]) for t in (q, k, v)
    )
    got = state.step(q1, k1, v1)
    assert state.lengths == [7, 5]
    want = whole(q, k, v, formula)
    assert_equal(got[0, :, 0], want[0, :, 6])
    assert_equal(got[1, :, 0], want[1, :, 4])


def test_append_is_step_without_queries():
    tensors = text()
    state = new_state("x^2/sqrt(N)")
    state.append(tensors[1][:, :, :30], tensors[2][:, :, :30])
    got = state.step(*(t[:, :, 30:] for t in tensors))
    assert_equal(got, whole(*tensors, "x^2/sqrt(N)")[:, :, 30:])


def test_fork_select_save_load(tmp_path):
    tensors = text()
    head = [t[:, :, :25] for t in tensors]
    tail = [t[:, :, 25:] for t in tensors]
    state = new_state("x^2/sqrt(N)")
    state.step(*head)
    fork = state.fork()
    want = state.step(*tail)
    assert fork.lengths == [25, 25]
    fork.save(tmp_path / "state")
    loaded = polyattn.DecodeState.load(tmp_path / "state")
    assert torch.equal(fork.step(*tail), want)
    assert torch.equal(loaded.step(*tail), want)
    assert loaded.activation == "x^2/sqrt(N)"

    beams = new_state("x^2/sqrt(N)")
    beams.step(*head)
    beams.select(torch.tensor([1, 1, 0]))
    assert beams.batch == 3
    got = beams.step(*(t[[1, 1, 0]] for t in tail))
    assert_equal(got, want[[1, 1, 0]])
    with pytest.raises(IndexError, match="3"):
        beams.select([3])


def test_copies_go_their_own_way():
    tensors = text()
    state = new_state("x^2/sqrt(N)")
    state.step(*(t[:, :, :25] for t in tensors))
    tail = [t[:, :, 25:] for t in tensors]
    copies = [copy.deepcopy(state), pickle.loads(pickle.dumps(state))]
    want = state.step(*tail)
    for other in copies:
        assert other.lengths == [25, 25]
        assert torch.equal(other.step(*tail), want)


def test_errors(tmp_path):
    with pytest.raises(TypeError, match="batch is float, expected int"):
        polyattn.DecodeState(1.5, 2, 4)
    with pytest.raises(TypeError, match="scale is str, expected Real or None"):
        polyattn.DecodeState(1, 2, 4, scale="a")
    with pytest.raises(TypeError, match="window"):
        polyattn.DecodeState(1, 2, 4, window=1.5)
    with pytest.raises(ValueError, match="a window of -1 tokens"):
        polyattn.DecodeState(1, 2, 4, window=-1)
    with pytest.raises(ValueError, match="no sums: a window of 3 tokens"):
        polyattn.DecodeState(1, 2, 4, activation="x^2/N", mode="state", window=3)
    with pytest.raises(ValueError, match="mode is 'sums', expected"):
        new_state("x^2", mode="sums")
    with pytest.raises(ValueError, match=r"\^"):
        new_state("x^^2")
    with pytest.raises(ValueError, match="heads"):
        polyattn.DecodeState(1, 3, 4, kv_heads=2)
    state = new_state("x^2")
    q, k, v = text(tokens=1)
    with pytest.raises(RuntimeError, match=r"key of size .* is not \[2, 2, tokens, 3\]"):
        state.step(q, q, v)
    with pytest.raises(RuntimeError, match="wants a gradient"):
        state.step(q.clone().requires_grad_(), k, v)
    with pytest.raises(RuntimeError, match="a count of 2 of 1 tokens"):
        state.step(q, k, v, counts=[1, 2])
    assert state.lengths == [0, 0]
    for damage in (b"", b"nonsense", b"\0" * 200):
        (tmp_path / "bad").write_bytes(damage)
        with pytest.raises(ValueError, match="bad"):
            polyattn.DecodeState.load(tmp_path / "bad")
