"""polyattn.swap_sdpa: a block in which torch's attention has another activation."""

import doctest
import threading
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import polyattn
import polyattn.swap
import reference
from helpers import assert_equal, random
from test_replace import CUBE, E, H, attend, encoder, run_encoder

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
since_2 = pytest.mark.skipif(
    TORCH < (2, 0), reason="scaled_dot_product_attention came with torch 2.0"
)
since_2_6 = pytest.mark.skipif(
    TORCH < (2, 6), reason="torch.compile traces the modes since torch 2.6"
)

N, M, D = 5, 7, 4


def qkv(rows=N, heads=2, groups=2, **options):
    sizes = [(heads, rows, D), (groups, M, D), (groups, M, 3)]
    return [random(2, *size, seed=i, **options) for i, size in enumerate(sizes)]


def sdpa(*arguments, **options):
    return F.scaled_dot_product_attention(*arguments, **options)


@pytest.mark.skipif(TORCH >= (2, 0), reason="torch before 2.0 only")
def test_torch_1():
    with pytest.raises(RuntimeError) as caught:
        polyattn.swap_sdpa(CUBE)
    assert f"[swap_sdpa] torch {torch.__version__} has no" in str(caught.value)
    assert "polyattn.replace_softmax" in str(caught.value)


BOOL = random(N, M) > -0.5
BOOL[:, 0] = True
BIAS = random(2, 1, N, M, seed=7)


@since_2
class TestArguments:
    @pytest.mark.parametrize("formula", ["softmax", CUBE, "x^4/sum"])
    @pytest.mark.parametrize(
        "arguments, options, expected",
        [
            ((), {}, {}),
            ((BOOL,), {}, dict(mask=BOOL)),
            ((BIAS,), {}, dict(mask=BIAS)),
            ((None, 0.0, True), {}, dict(causal="upper_left")),
            ((), dict(attn_mask=BOOL, scale=0.7), dict(mask=BOOL, scale=0.7)),
            ((), dict(is_causal=True, dropout_p=0.0), dict(causal="upper_left")),
        ],
    )
    def test_by_position_and_by_name(self, formula, arguments, options, expected):
        tensors = qkv(grad=True)
        with polyattn.swap_sdpa(formula) as swap:
            actual = sdpa(*tensors, *arguments, **options)
        expected = reference.attention(*tensors, formula, **expected)
        assert swap.count == 1
        assert_equal(actual, expected)
        assert_equal(
            torch.autograd.grad(actual.square().sum(), tensors),
            torch.autograd.grad(expected.square().sum(), tensors),
        )
        if formula == "softmax":
            assert_equal(actual, sdpa(*tensors, *arguments, **options))

    def test_all_by_name(self):
        q, k, v = qkv(heads=4)
        with polyattn.swap_sdpa(CUBE):
            actual = sdpa(query=q, key=k, value=v, enable_gqa=True)
        assert_equal(actual, reference.attention(q, k, v, CUBE))

    @pytest.mark.parametrize("rows", [N, M])
    def test_causal_bias_of_torch(self, rows):
        bias = pytest.importorskip("torch.nn.attention.bias")
        for make in (bias.causal_upper_left, bias.causal_lower_right):
            with polyattn.swap_sdpa(CUBE):
                actual = sdpa(*qkv(rows), attn_mask=make(rows, M))
            causal = make.__name__[len("causal_") :]
            assert_equal(actual, reference.attention(*qkv(rows), CUBE, causal=causal))

    def test_dropout(self):
        q, k, _ = qkv()
        unit = torch.eye(M, dtype=q.dtype).expand(2, 2, M, M)
        with polyattn.swap_sdpa(CUBE):
            dropped = sdpa(q, k, unit, dropout_p=0.25)
        kept = dropped != 0
        assert 0 < kept.sum() < kept.numel()
        weights = reference.weights(q, k, CUBE) / 0.75
        assert_equal(dropped[kept], weights[kept])

    def test_row_that_sees_no_key(self):
        mask = BOOL.clone()
        mask[2] = False
        with polyattn.swap_sdpa(CUBE):
            assert (sdpa(*qkv(), mask)[:, :, 2] == 0).all()

    def test_formula_error(self):
        with pytest.raises(ValueError) as caught:
            polyattn.swap_sdpa("x^3/sqt(N)")
        lines = str(caught.value).splitlines()
        assert lines[-1].index("^") == lines[-2].index("sqt")
        with pytest.raises(TypeError, match="formula is NoneType, expected str"):
            polyattn.swap_sdpa(None)


@since_2
class TestBlock:
    def test_ends(self):
        tensors, open_before = qkv(), torch.backends.mha.get_fastpath_enabled()
        softmax = sdpa(*tensors)
        with pytest.raises(KeyError):
            with polyattn.swap_sdpa(CUBE):
                assert not torch.backends.mha.get_fastpath_enabled()
                raise KeyError
        assert torch.backends.mha.get_fastpath_enabled() == open_before
        assert (sdpa(*tensors) == softmax).all()

    def test_leaves_a_closed_fast_path_closed(self):
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            with polyattn.swap_sdpa(CUBE):
                sdpa(*qkv())
            assert not torch.backends.mha.get_fastpath_enabled()
        finally:
            torch.backends.mha.set_fastpath_enabled(True)

    def test_innermost_wins(self):
        tensors = qkv()
        with polyattn.swap_sdpa(CUBE) as outer:
            with polyattn.swap_sdpa("sigmoid") as inner:
                assert_equal(
                    sdpa(*tensors), reference.attention(*tensors, formula="sigmoid")
                )
            assert_equal(sdpa(*tensors), reference.attention(*tensors, formula=CUBE))
        assert (outer.count, inner.count) == (1, 1)

    def test_count_goes_on_when_entered_again(self):
        swap = polyattn.swap_sdpa(CUBE)
        for calls in (1, 2):
            with swap:
                sdpa(*qkv())
            assert swap.count == calls
        with pytest.warns(UserWarning, match="was not called in this block"):
            with swap:
                pass

    def test_warns_if_nothing_was_swapped(self):
        with pytest.warns(UserWarning) as caught:
            with polyattn.swap_sdpa(CUBE) as swap:
                random(2, 3).softmax(dim=-1)
        (warning,) = caught
        text = str(warning.message)
        assert text.startswith("[swap_sdpa] scaled_dot_product_attention was not")
        for remedy in ("replace_softmax", "hf.register", 'attn_implementation="sdpa"'):
            assert remedy in text
        assert warning.filename == __file__
        assert swap.count == 0

    def test_does_not_warn_otherwise(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with polyattn.swap_sdpa(CUBE):
                sdpa(*qkv())
            with pytest.raises(KeyError):
                with polyattn.swap_sdpa(CUBE):
                    raise KeyError

    def test_modules_of_polyattn_keep_their_activation(self):
        x = random(2, N, E)
        module = polyattn.nn.MultiheadAttention(
            E, H, batch_first=True, dtype=x.dtype, activation="sigmoid"
        )
        before, _ = module(x, x, x)
        with pytest.warns(UserWarning, match="was not called"):
            with polyattn.swap_sdpa(CUBE):
                assert_equal(module(x, x, x)[0], before)


@since_2
class TestThreads:
    def test_a_block_is_that_of_its_thread(self):
        tensors, found = qkv(), []
        with polyattn.swap_sdpa(CUBE) as swap:
            sdpa(*tensors)
            other = threading.Thread(target=lambda: found.append(sdpa(*tensors)))
            other.start()
            other.join()
        assert swap.count == 1
        assert_equal(found[0], reference.attention(*tensors))

    def test_fast_path_opens_with_the_last_block(self):
        """Blocks of two threads overlap, the first to open is the first to end."""
        opened, go_on, states = threading.Event(), threading.Event(), []

        def other():
            with polyattn.swap_sdpa(CUBE):
                sdpa(*qkv())
                opened.set()
                go_on.wait(60)
                states.append(torch.backends.mha.get_fastpath_enabled())

        assert torch.backends.mha.get_fastpath_enabled()
        with polyattn.swap_sdpa(CUBE):
            sdpa(*qkv())
            thread = threading.Thread(target=other)
            thread.start()
            assert opened.wait(60)
        go_on.set()
        thread.join()
        assert states == [False]
        assert torch.backends.mha.get_fastpath_enabled()


PADDING = torch.arange(N) >= torch.tensor([[N], [3]])
HIDDEN = torch.ones(N, N, dtype=torch.bool).triu(1)


@since_2
class TestMultiheadAttention:
    """torch computes the softmax there itself if it is asked for the weights."""

    def module(self, **options):
        torch.manual_seed(0)
        options = dict(batch_first=True, dtype=torch.float64, **options)
        module = torch.nn.MultiheadAttention(E, H, **options)
        for p in module.parameters():  # the biases begin as zeros
            torch.nn.init.normal_(p, 0.0, 0.5)
        return module

    @pytest.mark.parametrize("training", [False, True])
    @pytest.mark.parametrize("need_weights", [False, True])
    def test_polynomial(self, need_weights, training):
        module, x = self.module().train(training), random(2, N, E)
        with polyattn.swap_sdpa(CUBE) as swap, torch.set_grad_enabled(training):
            y, weights = module(
                x, x, x, key_padding_mask=PADDING, need_weights=need_weights
            )
        assert swap.count == 1
        assert_equal(y, attend(module, x, ~PADDING[:, None, None, :]))
        assert (weights is not None) == need_weights
        if need_weights:
            seen = ~PADDING[:, None, :].expand(2, N, N)
            assert (weights[~seen] == 0).all()
            assert (weights[seen] != 0).all()

    @pytest.mark.parametrize("need_weights", [False, True])
    @pytest.mark.parametrize(
        "options, call",
        [
            ({}, {}),
            ({}, dict(average_attn_weights=False)),
            (dict(bias=False), {}),
            (dict(add_bias_kv=True, add_zero_attn=True), {}),
            (dict(kdim=3, vdim=6), {}),
            (dict(kdim=3, vdim=6, add_bias_kv=True), dict(key_padding_mask=PADDING)),
            ({}, dict(attn_mask=HIDDEN, is_causal=True)),
            ({}, dict(attn_mask=HIDDEN, key_padding_mask=PADDING)),
            ({}, dict(attn_mask=random(2 * H, N, N))),
        ],
    )
    def test_softmax_is_the_original(self, options, call, need_weights):
        module = self.module(**options)
        sizes = (E, options.get("kdim", E), options.get("vdim", E))
        inputs = [random(2, N, size, seed=size) for size in sizes]
        expected = module(*inputs, need_weights=need_weights, **call)
        with polyattn.swap_sdpa("softmax") as swap:
            actual = module(*inputs, need_weights=need_weights, **call)
        assert swap.count == 1
        assert_equal(actual[0], expected[0])
        if need_weights:
            assert_equal(actual[1], expected[1])
        else:
            assert actual[1] is None

    def test_without_a_batch(self):
        module, x = self.module(), random(N, E)
        expected = module(x, x, x)
        with polyattn.swap_sdpa("softmax"):
            assert_equal(module(x, x, x), expected)

    def test_dropout_in_training_alone(self):
        module, x = self.module(dropout=0.5), random(2, N, E)
        with polyattn.swap_sdpa(CUBE):
            assert (module.train()(x, x, x)[1] == 0).any()
            assert not (module.eval()(x, x, x)[1] == 0).any()

    def test_static_keys(self):
        x, w = random(N, 1, E), random(3 * E, E)
        arguments = (x, x, x, E, H, w, None, None, None, False, 0.0, w[:E], None)
        with polyattn.swap_sdpa("softmax"):
            actual = F.multi_head_attention_forward(*arguments)
            with pytest.raises(NotImplementedError, match="static_k and static_v"):
                F.multi_head_attention_forward(*arguments, static_k=x)
        assert_equal(actual, F.multi_head_attention_forward(*arguments))


@since_2
class TestTransformerEncoder:
    """Whose layers have a fast path in eval mode."""

    @pytest.mark.parametrize("padded", [False, True])
    def test_eval(self, padded, monkeypatch):
        calls = []
        fast = torch._transformer_encoder_layer_fwd
        monkeypatch.setattr(
            torch,
            "_transformer_encoder_layer_fwd",
            lambda *arguments: calls.append(1) or fast(*arguments),
        )
        model, x = encoder().eval(), random(2, N, E)
        call = dict(src_key_padding_mask=PADDING) if padded else {}
        with torch.no_grad():
            model(x)
            assert len(calls) == 2  # the path exists
            with polyattn.swap_sdpa(CUBE) as swap:
                actual = model(x, **call)
            mask = ~PADDING[:, None, None, :] if padded else None
            expected = run_encoder(model, x, mask)
        assert (len(calls), swap.count) == (2, 2)
        assert_equal(actual, expected)


@since_2
class TestBackward:
    """Checkpointing runs the forward pass again, during the backward pass."""

    def gradients(self, run):
        q, k, v = tensors = qkv(grad=True)
        run(lambda: sdpa(q, k, v).square().sum(), tensors)
        return [t.grad for t in tensors]

    def expected(self):
        tensors = qkv(grad=True)
        reference.attention(*tensors, formula=CUBE).square().sum().backward()
        return [t.grad for t in tensors]

    def test_after_the_block(self):
        def run(loss, _):
            with polyattn.swap_sdpa(CUBE):
                value = loss()
            value.backward()

        assert_equal(self.gradients(run), self.expected())

    @pytest.mark.parametrize("reentrant", [False, True])
    @pytest.mark.parametrize("by", ["method", "function"])
    def test_checkpoint(self, reentrant, by):
        def run(_, tensors):
            with polyattn.swap_sdpa(CUBE) as swap:
                y = checkpoint(sdpa, *tensors, use_reentrant=reentrant)
                loss = y.square().sum()
                if by == "method":
                    loss.backward()
                else:
                    torch.autograd.backward(loss)
            assert swap.count == 2

        assert_equal(self.gradients(run), self.expected())

    def test_checkpoint_and_grad(self):
        tensors = qkv(grad=True)
        with polyattn.swap_sdpa(CUBE) as swap:
            y = checkpoint(sdpa, *tensors, use_reentrant=False)
            found = torch.autograd.grad(y.square().sum(), tensors)
            sdpa(*tensors)
        assert swap.count == 3
        assert_equal(list(found), self.expected())

    def test_arguments_of_backward(self):
        q, k, v = qkv(grad=True)
        with polyattn.swap_sdpa(CUBE):
            y = sdpa(q, k, v)
            y.backward(2 * y.detach(), retain_graph=True, inputs=[q, k])
            y.backward(gradient=2 * y.detach(), inputs=v)
        assert_equal([q.grad, k.grad, v.grad], self.expected())


@since_2_6
class TestCompile:
    """Compiled code knows the block that it is called in."""

    @pytest.fixture
    def compiler(self):
        torch._dynamo.reset()
        from torch._dynamo.testing import CompileCounterWithBackend

        yield CompileCounterWithBackend("aot_eager")
        torch._dynamo.reset()

    def test_function(self, compiler):
        tensors = qkv(grad=True)
        compiled = torch.compile(sdpa, backend=compiler, fullgraph=True)
        for formula in (CUBE, "sigmoid", CUBE):
            for _ in range(3):
                with polyattn.swap_sdpa(formula) as swap:
                    actual = [compiled(*tensors) for _ in range(3)]
                assert (swap.count, swap.compiled) == (0, True)
                expected = reference.attention(*tensors, formula=formula)
                assert_equal(actual, [expected] * 3)
        assert compiler.frame_count == 2
        assert_equal(compiled(*tensors), reference.attention(*tensors))
        assert_equal(
            torch.autograd.grad(actual[0].square().sum(), tensors),
            torch.autograd.grad(expected.square().sum(), tensors),
        )

    @pytest.mark.parametrize("need_weights", [False, True])
    def test_multihead_attention(self, compiler, need_weights):
        module, x = TestMultiheadAttention().module(), random(2, N, E)

        def run(x):
            return module(x, x, x, need_weights=need_weights)[0]

        compiled = torch.compile(run, backend=compiler)
        with polyattn.swap_sdpa(CUBE) as swap:
            assert_equal(compiled(x), attend(module, x))
        assert swap.compiled
        assert_equal(compiled(x), run(x))

    def test_encoder_without_gradients(self, compiler):
        model, x = encoder().eval(), random(2, N, E)
        compiled = torch.compile(model, backend=compiler)
        with torch.no_grad(), polyattn.swap_sdpa(CUBE):
            assert_equal(compiled(x), run_encoder(model, x))

    def test_block_in_compiled_code(self, compiler):
        def run(*tensors):
            with polyattn.swap_sdpa(CUBE):
                return sdpa(*tensors)

        tensors = qkv()
        compiled = torch.compile(run, backend=compiler)
        assert_equal(compiled(*tensors), reference.attention(*tensors, formula=CUBE))
        assert_equal(sdpa(*tensors), reference.attention(*tensors))
        assert torch.backends.mha.get_fastpath_enabled()


@since_2
def test_docstrings_say_what_is_true():
    names = {"polyattn": polyattn, "torch": torch}
    done = doctest.testmod(polyattn.swap, extraglobs=names)
    assert done.failed == 0 and done.attempted == 4
