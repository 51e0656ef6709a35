"""polyattn.attention against its definition in plain torch ops."""

import math

import pytest
import torch

import polyattn
import reference
from helpers import assert_equal, random


@pytest.fixture
def warn_always():
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


def qkv(heads=4, groups=None, rows=7, keys=11):
    groups = heads if groups is None else groups
    return (
        random(2, heads, rows, 6, seed=1),
        random(2, groups, keys, 6, seed=2),
        random(2, groups, keys, 5, seed=3),
    )


def some_mask(rows=7, keys=11):
    mask = random(2, 1, rows, keys, seed=4) > -0.5
    mask[0, 0, 2] = False  # this row sees nothing
    return mask


@pytest.mark.parametrize("formula", reference.FORMULAS)
class TestDefinition:
    def test_full(self, formula):
        q, k, v = qkv()
        actual = polyattn.attention(q, k, v, activation=formula)
        assert_equal(actual, reference.attention(q, k, v, formula))

    @pytest.mark.parametrize("alignment", ["upper_left", "lower_right"])
    def test_causal(self, formula, alignment):
        q, k, v = qkv()
        actual = polyattn.attention(
            q, k, v, is_causal=True, activation=formula, causal_alignment=alignment
        )
        expected = reference.attention(q, k, v, formula, causal=alignment)
        assert_equal(actual, expected)

    def test_bool_mask(self, formula):
        q, k, v = qkv()
        actual = polyattn.attention(q, k, v, some_mask(), activation=formula)
        assert_equal(actual, reference.attention(q, k, v, formula, mask=some_mask()))
        assert (actual[0, :, 2] == 0).all()

    def test_added_mask_with_causality(self, formula):
        q, k, v = qkv()
        bias = random(4, 7, 11, seed=5).masked_fill(~some_mask()[0], -math.inf)
        actual = polyattn.attention(q, k, v, bias, is_causal=True, activation=formula)
        expected = reference.attention(
            q, k, v, formula, mask=bias, causal="upper_left"
        )
        assert_equal(actual, expected)

    def test_bias_beside_a_mask_of_each_window(self, formula):
        q, k, v = (random(3, 2, 4, n, 5, seed=n) for n in (7, 11, 11))
        mask = random(2, 1, 7, 11, seed=6) > -0.5
        bias = random(4, 7, 11, seed=7)
        bias[1, 2, 3] = -math.inf
        actual = polyattn.attention(q, k, v, mask, activation=formula, bias=bias)
        expected = reference.attention(
            q, k, v, formula, mask=bias.masked_fill(~mask, -math.inf)
        )
        assert_equal(actual, expected)
        added = polyattn.attention(q, k, v, bias, activation=formula, bias=2 * bias)
        assert_equal(
            added, reference.attention(q, k, v, formula, mask=3 * bias)
        )

    def test_grouped_heads(self, formula):
        q, k, v = qkv(groups=2)
        actual = polyattn.attention(q, k, v, enable_gqa=True, activation=formula)
        assert_equal(actual, reference.attention(q, k, v, formula))

    def test_norms(self, formula):
        q, k, v = qkv(rows=3, keys=4)
        output, norms = polyattn.attention(
            q, k, v, scale=0.3, activation=formula, return_norms=True
        )
        s = reference.scores(q, k, scale=0.3)
        seen = torch.ones_like(s, dtype=torch.bool)
        a = reference.weights_of(s, seen, formula)
        jacobian = torch.autograd.functional.jacobian(
            lambda x: reference.weights_of(x, seen, formula), s
        )
        # Matrices do not depend on each other: [b, h] stands out of the rest.
        squares = jacobian.square().sum(dim=(2, 3, 4, 5, 6, 7))
        assert_equal(output, a @ v)
        assert_equal(norms.weight, a.square().sum(dim=(2, 3)).sqrt())
        assert_equal(norms.jacobian, squares.sqrt())
        assert_equal(norms.max_abs_score, s.abs().amax(dim=(2, 3)))
        assert norms.non_finite.tolist() == [[0] * 4] * 2


def test_one_line_replacement():
    """The positional call of scaled_dot_product_attention."""
    q, k, v = qkv()
    actual = polyattn.attention(q, k, v, some_mask(), 0.0, False, 0.7, False)
    expected = reference.attention(q, k, v, mask=some_mask(), scale=0.7)
    assert_equal(actual, expected)


@pytest.mark.parametrize("leading", [(), (3,), (2, 3, 4)])
def test_leading_dimensions(leading):
    q, k, v = random(*leading, 5, 6), random(*leading, 7, 6), random(*leading, 7, 2)
    actual = polyattn.attention(q, k, v, activation="x^3/sqrt(N)")
    w = reference.scores(q, k) ** 3 / math.sqrt(7)
    assert_equal(actual, w @ v)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_lower_precision(dtype):
    q, k, v = (t.to(dtype) for t in qkv())
    actual = polyattn.attention(q, k, v, activation="x^3/sqrt(N)")
    assert actual.dtype == dtype
    wide = [t.double() for t in (q, k, v)]
    w = reference.weights(*wide[:2], "x^3/sqrt(N)")
    # Computed in f32 and stored once: 3 D + M + 10 roundings of f32 on the sum
    # of the sizes of all products, and one of the storage type.
    s = (wide[0].abs() @ wide[1].abs().transpose(-2, -1)) / math.sqrt(6)
    sizes = (s**3 / math.sqrt(11)) @ wide[2].abs()
    bound = sizes * (3 * 6 + 11 + 10) * 2**-24
    bound += (w @ wide[2]).abs() * torch.finfo(dtype).eps
    assert ((actual.double() - w @ wide[2]).abs() <= bound).all()


@pytest.mark.parametrize("shape", ["shared", "head"])
def test_coefficients(shape):
    q, k, v = qkv()
    c = random(4, 3, seed=6) if shape == "head" else random(3, seed=6)
    actual = polyattn.attention(q, k, v, activation="x^2/sqrt(N)", coefficients=c)
    s = reference.scores(q, k)
    a, b, d = (x.reshape(-1, 1, 1) for x in c.unbind(-1))
    assert_equal(actual, (a + b * s + d * s**2) / math.sqrt(11) @ v)


def test_norms_count_what_is_not_finite():
    q, k, v = qkv()
    v[1, 2, 5, 3] = math.inf
    _, norms = polyattn.attention(q, k, v, activation="x^3", return_norms=True)
    # One column of the output, in every row.
    assert norms.non_finite.tolist() == [[0, 0, 0, 0], [0, 0, 7, 0]]


class TestDropout:
    def drop(self, seed, p=0.25):
        torch.manual_seed(seed)
        q, k, _ = qkv(rows=40, keys=50)
        unit = torch.eye(50, dtype=q.dtype).expand(2, 4, 50, 50)
        return polyattn.attention(q, k, unit, dropout_p=p, activation="x^3/sqrt(N)")

    def test_is_reproducible(self):
        assert torch.equal(self.drop(1), self.drop(1))
        assert not torch.equal(self.drop(1), self.drop(2))

    def test_zeroes_weights_and_scales_the_rest(self):
        q, k, _ = qkv(rows=40, keys=50)
        w = reference.weights(q, k, "x^3/sqrt(N)")
        dropped = self.drop(1)
        kept = dropped != 0
        assert_equal(dropped[kept], w[kept] / 0.75)
        # 16000 draws: six standard deviations are 0.0205.
        assert abs(kept.double().mean() - 0.75) < 0.0206

    def test_has_gradients(self):
        q, k, v = (t.requires_grad_() for t in qkv())

        def run(q, k, v):
            torch.manual_seed(3)
            return polyattn.attention(q, k, v, dropout_p=0.5, activation="x^3/14")

        grads = torch.autograd.grad(run(q, k, v).sum(), (q, k, v))
        step = 1e-6
        for i, t in enumerate((q, k, v)):
            moved = [x.detach().clone() for x in (q, k, v)]
            direction = random(*t.shape, seed=9)
            moved[i] += step * direction
            ahead = run(*moved).sum()
            moved[i] -= 2 * step * direction
            slope = (ahead - run(*moved).sum()) / (2 * step)
            # Central differences: 1e-12 of the third derivative, and 1e-16/1e-6
            # of a sum of order 100.
            torch.testing.assert_close(
                (grads[i] * direction).sum(), slope, rtol=1e-6, atol=1e-6
            )


class TestActivation:
    def test_polynomial(self):
        a = polyattn.activation(" 1 + x + x^2/2 ")
        assert a.coefficients == (1.0, 1.0, 0.5)
        assert polyattn.activation(a.formula) == a

    def test_divisor_is_apart(self):
        a = polyattn.activation("x*x^2 / sqrt( N )")
        assert a == ("x^3/sqrt(N)", (0.0, 0.0, 0.0, 1.0))

    @pytest.mark.parametrize("formula", ["softmax", "sigmoid", "relu^2/N"])
    def test_other_kinds_have_no_coefficients(self, formula):
        assert polyattn.activation(formula) == (formula, None)


@pytest.mark.parametrize("formula", ["x^3/sqrt(N)", "x^4/sum", "sigmoid", "relu/N"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("number", [-1e4, -1e9, None])
class TestFiniteMasks:
    """Large negative numbers, by which others mean a key that is not seen."""

    def test_are_removals(self, formula, dtype, number, warn_always, capfd):
        number = torch.finfo(dtype).min if number is None else number
        q, k, v = qkv()
        mask = some_mask()
        bias = torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, number)
        bias[1, 0, 0, 0] = -math.inf
        mask[1, 0, 0, 0] = False
        bias.requires_grad_()
        actual = polyattn.attention(q, k, v, bias, activation=formula)
        assert "at or below -1e4 are taken for keys" in capfd.readouterr().err
        expected = polyattn.attention(q, k, v, mask, activation=formula)
        assert_equal(actual, expected)
        actual.sum().backward()
        assert bias.grad.isfinite().all()
        assert (bias.grad[~mask] == 0).all()


def test_finite_masks_of_softmax_and_small_ones_stay(warn_always, capfd):
    q, k, v = qkv()
    mask = some_mask()[1, 0]
    bias = torch.zeros(7, 11, dtype=q.dtype).masked_fill(~mask, -1e4)
    polyattn.attention(q, k, v, bias)
    small = polyattn.attention(q, k, v, bias / 101, activation="x^3/sqrt(N)")
    assert capfd.readouterr().err == ""
    expected = reference.attention(q, k, v, "x^3/sqrt(N)", mask=bias / 101)
    assert_equal(small, expected)
    polyattn.attention(q, k, v, bias / 100, activation="x^3")
    assert "values down to -100, which x^3 takes for scores" in capfd.readouterr().err
