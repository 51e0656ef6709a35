"""The benchmark: what it compares with is attention, and its arithmetic is right."""

import json
import math

import pytest
import torch

import polyattn
from polyattn import _onnx, bench

old = int(torch.__version__.split(".")[0]) < 2
needs_torch_2 = pytest.mark.skipif(
    old, reason=f"torch {torch.__version__} has no fused attention of its own (2.x has)"
)


def test_ratio_is_of_the_same_round():
    middle, low, high = bench.ratio([2.0, 8.0, 3.0], [1.0, 2.0, 3.0])
    assert (middle, low, high) == (2.0, 1.5, 3.0)


def test_programs_take_turns():
    calls = []
    programs = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    found = bench.measure(programs, rounds=2)
    assert {name: len(times) for name, times in found.items()} == {"a": 2, "b": 2}
    assert calls[0] == "a" and calls[-1] == "b"


@pytest.mark.parametrize("causal", [False, True])
def test_the_cubic_by_hand_is_ours(causal):
    q, k, v = bench.inputs_of((1, 2, 9, 4, causal), False)
    want = polyattn.attention(q, k, v, is_causal=causal, activation="x^3/sqrt(N)")
    torch.testing.assert_close(bench.eager_cubic(q, k, v, causal), want)


@pytest.mark.skipif(_onnx.version() is None, reason="ONNX Runtime is not installed")
def test_onnx_computes_attention():
    inputs = bench.inputs_of((2, 3, 17, 8, False), False)
    got = torch.from_numpy(_onnx.multi_head_attention(inputs, 1)())
    want = polyattn.attention(*inputs).transpose(1, 2).reshape(2, 17, 24)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("grad", [False, True])
def test_the_float_mask_of_windows_is_bias_and_mask(grad):
    windows = bench.Windows((2, 4, 3, 9, 8), grad)
    assert windows.mask.shape == (4, 1, 9, 9)
    # One region in the first window, two in the next two, four in the last.
    assert [len(mask[0].unique(dim=0)) for mask in windows.mask] == [1, 2, 2, 4]
    q, k, v = windows.inputs
    scores = q @ k.transpose(-2, -1) * 8**-0.5 + windows.float_mask(windows.bias)
    got = windows.ours("softmax")(q, k, v, windows.bias)
    torch.testing.assert_close(got, scores.softmax(-1) @ v)
    if grad:
        want = torch.autograd.grad((scores.softmax(-1) @ v).sum(), windows.bias)
        torch.testing.assert_close(torch.autograd.grad(got.sum(), windows.bias), want)


@needs_torch_2
def test_the_baseline_of_windows_is_ours():
    windows = bench.Windows((2, 4, 3, 9, 8), False)
    inputs = [*windows.inputs, windows.bias]
    torch.testing.assert_close(
        windows.sdpa(*inputs), windows.ours("softmax")(*inputs)
    )


@needs_torch_2
def test_quick_run(tmp_path, capsys):
    path = tmp_path / "rows.json"
    arguments = ["--quick", "--threads", "1", "--only", "sdpa", "--only", "decode"]
    arguments += ["--only", "windows"]
    assert bench.main([*arguments, "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    rows = document["rows"]
    # Two shapes, two kinds of work, three formulas; one length, three ways; windows.
    assert len(rows) == 12 + 3 + 6
    for row in rows:
        assert row["low"] <= row["speed_up"] <= row["high"]
        assert math.isfinite(row["speed_up"]) and row["seconds"] > 0
    printed = capsys.readouterr().out
    assert "x^3/sqrt(N)" in printed and torch.__version__ in printed


@pytest.mark.skipif(not old, reason="this torch has what it compares with")
def test_old_torch_is_refused(capsys):
    assert bench.main(["--quick"]) == 2
    assert "it takes 2.x" in capsys.readouterr().err
