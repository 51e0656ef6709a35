"""torch.compile, torch.export and torch.func: what torch 2.5 and later can do."""

import pytest
import torch

import polyattn
from helpers import assert_equal, random
from polyattn import _transforms

pytestmark = pytest.mark.skipif(
    not _transforms.supported(),
    reason=f"torch {torch.__version__} takes no rules of ops from Python (2.5 does)",
)

FORMULAS = ["softmax", "x^3/sqrt(N)", "x^4/sum", "sigmoid"]


def tensors(*leading, heads=(4, 4, 4), n=6, m=6, grad=True):
    return [
        random(*leading, h, rows, width, seed=seed, grad=grad)
        for seed, (h, rows, width) in enumerate(
            zip(heads, (n, m, m), (3, 3, 5)), start=1
        )
    ]


def gradients(output, inputs):
    return torch.autograd.grad(output, inputs, random(*output.shape, seed=9))


def compiled(function, dynamic=False, counter=None):
    torch._dynamo.reset()
    return torch.compile(
        function, fullgraph=True, backend=counter or "aot_eager", dynamic=dynamic
    )


CALLS = {
    "causal": dict(is_causal=True),
    "grouped": dict(enable_gqa=True),
    "bool mask": dict(attn_mask=random(6, 6, seed=5) > 0),
    "bias": dict(attn_mask=random(2, 1, 6, 6, seed=5)),
    "scale": dict(scale=0.3, path="dense"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("formula", FORMULAS)
def test_compiled_is_eager(formula, name):
    inputs = tensors(2, heads=(4, 2, 2) if name == "grouped" else (4, 4, 4))

    options = CALLS[name]

    def run(q, k, v):
        return polyattn.attention(q, k, v, activation=formula, **options)

    got, want = compiled(run)(*inputs), run(*inputs)
    assert torch.equal(got, want)
    for a, b in zip(gradients(got, inputs), gradients(want, inputs)):
        assert torch.equal(a, b)


def test_norms_and_coefficients_compile():
    inputs = tensors(2)
    c = random(3, seed=7, grad=True)

    def run(q, k, v, c):
        return polyattn.attention(
            q, k, v, activation="x^2/sqrt(N)", coefficients=c, return_norms=True
        )

    got, norms = compiled(run)(*inputs, c)
    want, expected = run(*inputs, c)
    assert torch.equal(got, want)
    assert_equal(torch.stack(norms[:3]), torch.stack(expected[:3]))
    assert torch.equal(norms.non_finite, expected.non_finite)
    every = [*inputs, c]
    for a, b in zip(gradients(got, every), gradients(want, every)):
        assert_equal(a, b)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((5, 2, 3), (1, 2, 3))])
def test_broadcast_shapes_compile(shapes):
    q = random(*shapes[0], seed=1, grad=True)
    k = random(*shapes[1], seed=2, grad=True)

    def run(q, k):
        return polyattn.attention(q, k, k, activation="x^2/N")

    got, want = compiled(run)(q, k), run(q, k)
    assert torch.equal(got, want)
    for a, b in zip(gradients(got, [q, k]), gradients(want, [q, k])):
        assert_equal(a, b)


def test_one_graph_for_all_lengths():
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("aot_eager")

    def run(q, k, v):
        return polyattn.attention(q, k, v, is_causal=True, activation="x^3/sqrt(N)")

    fast = compiled(run, dynamic=True, counter=counter)
    counts = []
    for n in (10, 7, 13, 64):
        inputs = tensors(2, n=n, m=n)
        got = fast(*inputs)
        assert torch.equal(got, run(*inputs))
        got.sum().backward()
        counts.append(counter.frame_count)
    assert len(set(counts)) == 1


def test_packed_batches_compile():
    inputs = [random(9, 2, 3, seed=seed, grad=True) for seed in range(3)]
    ends = torch.tensor([0, 4, 9])

    def run(q, k, v, ends):
        return polyattn.attention_varlen(
            q, k, v, ends, is_causal=True, activation="x^2/sqrt(N)"
        )

    got, want = compiled(run)(*inputs, ends), run(*inputs, ends)
    assert torch.equal(got, want)
    for a, b in zip(gradients(got, inputs), gradients(want, inputs)):
        assert torch.equal(a, b)


def test_dropout_and_learned_bias_compile():
    q, k, v = tensors(2)
    bias = random(6, 6, seed=5, grad=True)

    def run(q, k, v, bias):
        return polyattn.attention(q, k, v, bias, activation="x^3/sqrt(N)")

    got, want = compiled(run)(q, k, v, bias), run(q, k, v, bias)
    assert_equal(got, want)
    assert_equal(gradients(got, [bias])[0], gradients(want, [bias])[0])

    def drop(q, k, v):
        return polyattn.attention(q, k, v, dropout_p=0.5, activation="x^3/sqrt(N)")

    assert compiled(drop)(q, k, v).isfinite().all()


def test_autocast_compiles():
    inputs = [t.float().detach() for t in tensors(2)]

    def run(q, k, v):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return polyattn.attention(q, k, v, activation="x^3/sqrt(N)")

    got = compiled(run)(*inputs)
    assert got.dtype == torch.bfloat16
    assert torch.equal(got, run(*inputs))


def test_export_keeps_the_length_open():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = polyattn.nn.Attention(
                8, 2, activation="x^3/sqrt(N)", causal=True
            )

        def forward(self, x):
            return self.attention(x)

    model = Model().eval()
    length = torch.export.Dim("length", min=2, max=1000)
    program = torch.export.export(
        model, (torch.randn(2, 9, 8),), dynamic_shapes={"x": {1: length}}
    )
    assert any("_opaque_forward" in str(node.target) for node in program.graph.nodes)
    for n in (9, 4, 33):
        x = torch.randn(2, n, 8)
        assert torch.equal(program.module()(x), model(x))


def test_torch_checks_the_ops():
    q, k, v = tensors(2)
    bias = random(5, 5, seed=3)
    arguments = (q, k, v, None, bias, None, None, None, True, None, False)
    torch.library.opcheck(
        torch.ops.polyattn._opaque_forward.default,
        (*arguments, "x^3/sqrt(N)", "upper_left", "auto", True),
    )


@pytest.mark.parametrize("formula", FORMULAS)
def test_func_grad_is_autograd(formula):
    inputs = tensors(2)

    def loss(q, k, v):
        o = polyattn.attention(q, k, v, is_causal=True, activation=formula)
        return o.square().sum()

    got = torch.func.grad(loss, argnums=(0, 1, 2))(*inputs)
    for a, b in zip(got, torch.autograd.grad(loss(*inputs), inputs)):
        assert_equal(a, b)


def test_func_second_derivatives():
    (x,) = tensors(1, heads=(1,), n=3)

    def loss(x):
        return polyattn.attention(x, x, x, activation="x^3/sqrt(N)").square().sum()

    got = torch.func.jacrev(torch.func.grad(loss))(x.detach())
    assert_equal(got, torch.autograd.functional.hessian(loss, x.detach()))


@pytest.mark.parametrize("in_dims", [(0, 0, 0), (1, None, 0), (None, 2, None)])
def test_vmap_is_a_loop(in_dims):
    sizes = [(2, 4, 3), (2, 6, 3), (2, 6, 5)]
    inputs, members = [], []
    for seed, (size, dim) in enumerate(zip(sizes, in_dims)):
        t = random(*size, seed=seed) if dim is None else random(7, *size, seed=seed)
        inputs.append(t if dim is None else t.movedim(0, dim))
        members.append([t] * 7 if dim is None else list(t))

    def run(q, k, v):
        return polyattn.attention(q, k, v, activation="x^3/sqrt(N)")

    def loss(*tensors):
        return run(*tensors).square().sum()

    got = torch.vmap(run, in_dims=in_dims)(*inputs)
    assert_equal(got, torch.stack([run(*one) for one in zip(*members)]))
    by = torch.func.grad(loss, argnums=(0, 1, 2))
    got = torch.vmap(by, in_dims=in_dims)(*inputs)
    want = [by(*one) for one in zip(*members)]
    for i in range(3):
        assert_equal(got[i], torch.stack([w[i] for w in want]))


def test_vmap_of_rows_alone_and_of_masks():
    q = random(3, 5, 2, seed=1)
    mask = random(3, 5, 5, seed=2) > 0

    def run(q, mask):
        return polyattn.attention(q, q, q, mask, activation="x^2/N")

    got = torch.vmap(run)(q, mask)
    assert_equal(got, torch.stack([run(*one) for one in zip(q, mask)]))


def test_vmap_says_what_it_cannot_do():
    q = random(3, 2, 4, 3, seed=1)
    c = random(3, 3, seed=2)
    with pytest.raises(NotImplementedError, match="no vmap over coefficients"):
        torch.vmap(
            lambda q, c: polyattn.attention(
                q, q, q, activation="x^2/N", coefficients=c
            )
        )(q, c)


@pytest.mark.parametrize("wrap", ["parameter", "func"])
def test_a_bias_that_vmap_batches_has_its_gradient(wrap):
    x = random(3, 2, 5, 4, seed=1)
    bias = random(3, 2, 5, 5, seed=2, grad=wrap == "parameter")

    def run(x, bias):
        return polyattn.attention(x, x, x, bias, activation="x^3/sqrt(N)")

    def loss(bias):
        return torch.vmap(run)(x, bias).square().sum()

    if wrap == "parameter":
        (got,) = torch.autograd.grad(loss(bias), bias)
    else:
        got = torch.func.grad(loss)(bias)
    plain = bias.detach().requires_grad_()
    total = sum(run(*one).square().sum() for one in zip(x, plain))
    assert_equal(got, torch.autograd.grad(total, plain)[0])
    per_member = torch.func.grad(lambda b, x: run(x, b).square().sum())
    assert_equal(torch.vmap(per_member)(bias.detach(), x), got)


@pytest.mark.parametrize("learned", [False, True])
def test_a_bias_beside_a_mask(learned):
    x = random(3, 2, 4, 5, 4, seed=1, grad=True)
    mask = random(2, 1, 5, 5, seed=2) > -0.5
    bias = random(4, 5, 5, seed=3, grad=learned)

    def run(x, bias):
        return polyattn.attention(x, x, x, mask, activation="x^3/sqrt(N)", bias=bias)

    by = [x, bias] if learned else [x]
    want = gradients(run(x, bias), by)
    for a, b in zip(gradients(compiled(run)(x, bias), by), want):
        assert_equal(a, b)
    members = [run(one, bias) for one in x]
    assert_equal(torch.vmap(run, in_dims=(0, None))(x, bias), torch.stack(members))
    of_one = torch.func.grad(lambda x: run(x, bias).square().sum())
    got = torch.vmap(of_one)(x.detach())
    assert_equal(got, torch.stack([of_one(one) for one in x.detach()]))


def test_masks_with_large_numbers_hide_keys_under_a_compiler():
    x = random(1, 2, 5, 4, seed=1, dtype=torch.float32)
    low = torch.full((5, 5), torch.finfo(torch.float32).min).triu(1)
    bias = torch.zeros(5, 5, requires_grad=True)

    def learned(x, bias):
        return polyattn.attention(x, x, x, low + bias, activation="x^2/N")

    def drop(x):
        return polyattn.attention(x, x, x, low, 0.5, activation="x^2/N")

    want = polyattn.attention(x, x, x, is_causal=True, activation="x^2/N")
    torch.testing.assert_close(compiled(learned)(x, bias), want)
    assert compiled(drop)(x).abs().max() < 4 * want.abs().max()


def test_second_derivatives_whatever_the_path():
    (x,) = tensors(1, heads=(1,), n=3, grad=False)
    for formula in ("x^2/N", "x^4/sum"):

        def loss(x, path):
            o = polyattn.attention(x, x, x, activation=formula, path=path)
            return o.square().sum()

        def hessian(path):
            return torch.func.jacrev(torch.func.grad(lambda x: loss(x, path)))(x)

        assert_equal(hessian("linear"), hessian("dense"))


def test_vmap_of_nothing():
    x = random(3, 2, 5, 4, seed=1)

    def run(q, k):
        return polyattn.attention(q, k, k, activation="x^2/N")

    assert torch.vmap(run)(x[:, :, :0], x).shape == (3, 2, 0, 4)


def test_coefficients_under_sum_of_packed_batches_have_no_wrong_gradient():
    q = random(10, 2, 4, seed=1)
    ends, c = torch.tensor([0, 4, 10]), random(5, seed=2)

    def loss(c):
        o = polyattn.attention_varlen(
            q, q, q, ends, activation="x^4/sum", coefficients=c
        )
        return o.square().sum()

    with pytest.raises(RuntimeError, match="under `sum` have no gradient here"):
        torch.func.grad(loss)(c)


def test_errors_are_those_of_plain_calls():
    x = random(3, 2, 5, 4, seed=1)
    with pytest.raises(ValueError, match=r"\^"):
        torch.vmap(lambda x: polyattn.attention(x, x, x, activation="x^^3"))(x)
