"""Modes of torch that look at every op see the inner ops, with the formula as text."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import polyattn


class Listener(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "polyattn" in str(function):
            self.ops.append((str(function), args))
        return function(*args, **(kwargs or {}))


def gradient(query):
    query.grad = None
    output = polyattn.attention(query, query, query, activation="x*x*x/sqrt(N)")
    output.square().sum().backward()
    return query.grad


def test_a_mode_sees_forward_and_backward():
    query = torch.randn(1, 2, 5, 4, requires_grad=True)
    expected = gradient(query)
    with Listener() as listener:
        seen = gradient(query)
    names = [name for name, _ in listener.ops]
    assert names == [
        "polyattn._fused_forward.default",
        "polyattn._fused_backward.default",
    ]
    assert "x^3/sqrt(N)" in listener.ops[0][1]
    assert torch.equal(seen, expected)
