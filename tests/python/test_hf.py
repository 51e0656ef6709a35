"""polyattn.hf on small random models of transformers. Nothing is downloaded."""

import doctest
import importlib.util
import os
import subprocess
import sys
import types

import pytest
import torch

import polyattn
import reference
from helpers import assert_equal, random

os.environ["HF_HUB_OFFLINE"] = "1"

CUBE, SQUARE = "x^3/sqrt(N)", "x^2/sqrt(N)"
installed = importlib.util.find_spec("transformers") is not None
needs_transformers = pytest.mark.skipif(
    not installed, reason="transformers is not installed (Debian unstable has 5.12)"
)
if installed:
    import transformers
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    import polyattn.hf

# Eager attention computes its weights in f32, and so the whole model does there.
EAGER = dict(rtol=1e-5, atol=1e-5)
N, VOCABULARY = 9, 50
SIZES = dict(
    vocab_size=VOCABULARY,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=None,
)
GROUPED = dict(num_key_value_heads=2, head_dim=8)
KINDS = {
    "gpt2": dict(n_inner=48),
    "llama": dict(num_key_value_heads=2),
    "mistral": dict(num_key_value_heads=2, sliding_window=4),
    "gemma2": dict(**GROUPED, sliding_window=4, attn_logit_softcapping=None),
    "gpt_oss": dict(**GROUPED, num_local_experts=2, num_experts_per_tok=1),
    "bert": {},
    "vit": dict(image_size=16, patch_size=4, num_labels=3),
}


def plain(module, query, key, value, attention_mask, scaling=None, **_):
    """Attention with a cube by the reference, under masks that hide nothing."""
    seen = None if attention_mask is None else attention_mask == 0
    output = reference.attention(query, key, value, CUBE, mask=seen, scale=scaling)
    return output.transpose(1, 2), None


@pytest.fixture(autouse=True, scope="module")
def registered():
    if not installed:
        return {}
    AttentionInterface.register("plain", plain)
    AttentionMaskInterface.register("plain", eager_mask)
    formulas = dict(poly1="softmax", poly2=SQUARE, poly3=CUBE)
    return {name: polyattn.hf.register(name, f) for name, f in formulas.items()}


def model(
    kind,
    implementation,
    classes="AutoModelForCausalLM",
    dtype=torch.float64,
    **changes,
):
    sizes = {k: v for k, v in SIZES.items() if kind != "vit" or k != "vocab_size"}
    config = transformers.AutoConfig.for_model(
        kind, **{**sizes, **KINDS[kind], **changes}
    )
    made = getattr(transformers, classes).from_config(
        config, attn_implementation=implementation
    )
    torch.manual_seed(0)
    for p in made.parameters():  # scores of size one, not of 0.02
        torch.nn.init.normal_(p, 0.0, 0.25)
    return made.to(dtype).eval()


def tokens(seed=0, rows=2, length=N):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (rows, length), generator=generator)


def padding(side):
    mask = torch.ones(2, N, dtype=torch.long)
    mask[0, slice(0, 3) if side == "left" else slice(N - 3, N)] = 0
    return mask


def logits(made, ids, **call):
    with torch.no_grad():
        return made(ids, **call).logits


def step_by_step(made, ids, steps, cache, mask=None):
    """Logits of tokens that come in pieces, the last ones by the cache."""
    found, first = [], 0
    for length in steps:
        last = first + length
        call = {} if mask is None else dict(attention_mask=mask[:, :last])
        position = torch.arange(first, last).expand(ids.shape[0], -1)
        piece = ids[:, first:last]
        found.append(
            logits(made, piece, past_key_values=cache, position_ids=position, **call)
        )
        first = last
    return torch.cat(found, dim=1)


def caches(made):
    return {
        "dynamic": lambda: transformers.DynamicCache(config=made.config),
        "static": lambda: transformers.StaticCache(
            config=made.config, max_cache_len=N + 4
        ),
    }


DECODERS = ["gpt2", "llama", "mistral", "gemma2"]


@needs_transformers
@pytest.mark.parametrize("kind", DECODERS)
class TestDecoders:
    def test_softmax_is_the_original(self, kind, registered):
        count = registered["poly1"].count
        actual = logits(model(kind, "poly1"), tokens())
        assert registered["poly1"].count == count + 2
        assert_equal(actual, logits(model(kind, "sdpa"), tokens()))
        actual, expected = (
            logits(model(kind, name, dtype=torch.float32), tokens())
            for name in ("poly1", "eager")
        )
        torch.testing.assert_close(actual, expected, **EAGER)

    @pytest.mark.parametrize("side", ["left", "right"])
    def test_padding(self, kind, side):
        call = dict(attention_mask=padding(side))
        seen = padding(side).bool()
        softmax, sdpa, cube, expected = (
            logits(model(kind, name), tokens(), **call)
            for name in ("poly1", "sdpa", "poly3", "plain")
        )
        assert_equal(softmax, sdpa)
        assert_equal(cube[seen], expected[seen])
        assert not torch.allclose(cube, softmax, rtol=1e-2)
        softmax, eager = (
            logits(model(kind, name, dtype=torch.float32), tokens(), **call)
            for name in ("poly1", "eager")
        )
        torch.testing.assert_close(softmax[seen], eager[seen], **EAGER)

    def test_polynomial(self, kind):
        actual = logits(model(kind, "poly3"), tokens())
        assert_equal(actual, logits(model(kind, "plain"), tokens()))

    @pytest.mark.parametrize("name", ["poly1", "poly2"])
    def test_no_token_sees_a_later_one(self, kind, name):
        made, ids, changed = model(kind, name), tokens(), tokens()
        changed[:, 5] = (changed[:, 5] + 1) % VOCABULARY
        before, after = logits(made, ids), logits(made, changed)
        assert torch.equal(before[:, :5], after[:, :5])
        assert (before[:, 5:] != after[:, 5:]).any(dim=-1).all(dim=0)[0]

    @pytest.mark.parametrize("steps", [[1] * N, [5, 3, 1]])
    @pytest.mark.parametrize("cache", ["dynamic", "static"])
    @pytest.mark.parametrize("name", ["poly1", "poly2"])
    def test_token_by_token_is_the_whole(self, kind, name, cache, steps):
        made = model(kind, name)
        found = step_by_step(made, tokens(), steps, caches(made)[cache]())
        assert_equal(found, logits(made, tokens()))
        if name == "poly1":
            assert_equal(found, logits(model(kind, "sdpa"), tokens()))

    @pytest.mark.parametrize("cache", ["dynamic", "static"])
    def test_token_by_token_with_padding(self, kind, cache):
        made, mask = model(kind, "poly2"), padding("left")
        position = torch.arange(N).expand(2, -1)
        whole = logits(made, tokens(), attention_mask=mask, position_ids=position)
        made_cache = caches(made)[cache]()
        found = step_by_step(made, tokens(), [4] + [1] * 5, made_cache, mask)
        assert_equal(found[mask.bool()], whole[mask.bool()])

    @pytest.mark.parametrize("cache", ["dynamic", "static"])
    def test_generate(self, kind, cache):
        def generate(name, **options):
            found = model(kind, name).generate(
                tokens(),
                attention_mask=padding("left"),
                max_new_tokens=6,
                do_sample=False,
                return_dict_in_generate=True,
                output_logits=True,
                **options,
            )
            return torch.stack(found.logits)

        softmax = generate("poly1", cache_implementation=cache)
        assert_equal(softmax, generate("sdpa", cache_implementation=cache))
        square = generate("poly2", cache_implementation=cache)
        assert_equal(square, generate("poly2", use_cache=False))
        assert not torch.allclose(square, softmax, rtol=1e-2)


@needs_transformers
class TestEncoders:
    @pytest.mark.parametrize("name, original", [("poly1", "sdpa"), ("poly3", "plain")])
    def test_vit(self, name, original):
        images = random(2, 3, 16, 16)
        actual, expected = (
            logits(model("vit", n, "AutoModelForImageClassification"), images)
            for n in (name, original)
        )
        assert_equal(actual, expected)

    @pytest.mark.parametrize("padded", [False, True])
    @pytest.mark.parametrize("name, original", [("poly1", "sdpa"), ("poly3", "plain")])
    def test_bert(self, name, original, padded):
        call = dict(attention_mask=padding("right")) if padded else {}
        actual, expected = (
            logits(model("bert", n, "AutoModelForMaskedLM"), tokens(), **call)
            for n in (name, original)
        )
        seen = padding("right").bool() if padded else slice(None)
        assert_equal(actual[seen], expected[seen])


@needs_transformers
class TestModels:
    @pytest.mark.parametrize("name, original", [("poly1", "sdpa"), ("poly3", "plain")])
    @pytest.mark.parametrize("kind", ["gpt2", "llama"])
    def test_gradients(self, kind, name, original):
        found = []
        for implementation in (name, original):
            made = model(kind, implementation)
            made(tokens(), labels=tokens()).loss.backward()
            found.append({n: p.grad for n, p in made.named_parameters()})
        assert set(found[0]) == set(found[1])
        for parameter, gradient in found[0].items():
            assert_equal(gradient, found[1][parameter])

    def test_float_mask_of_the_user(self):
        """With -inf, or with the lowest number of the type, as eager's is."""
        made = model("llama", "poly2")
        seen = torch.ones(N, N, dtype=torch.bool).tril()
        expected = logits(made, tokens(), attention_mask=seen.expand(2, 1, N, N))
        assert_equal(expected, logits(made, tokens()))
        for lowest in (-float("inf"), torch.finfo(torch.float64).min):
            mask = torch.zeros(2, 1, N, N, dtype=torch.float64)
            mask = mask.masked_fill(~seen, lowest)
            assert_equal(logits(made, tokens(), attention_mask=mask), expected)

    def test_bidirectional_decoder(self):
        call = dict(is_causal=False)
        softmax, sdpa, causal = (
            logits(model("llama", name, **options), tokens())
            for name, options in (("poly1", call), ("sdpa", call), ("poly1", {}))
        )
        assert_equal(softmax, sdpa)
        assert not torch.allclose(softmax, causal, rtol=1e-3)

    def test_packed_sequences(self):
        position = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]])
        ids = tokens(rows=1)
        made = model("llama", "poly2")
        packed = logits(made, ids, position_ids=position, use_cache=False)
        apart = [logits(made, ids[:, :4]), logits(made, ids[:, 4:])]
        assert_equal(packed, torch.cat(apart, dim=1))

    def test_implementation_may_be_set_later(self):
        made = model("llama", "sdpa")
        made.set_attn_implementation("poly3")
        assert_equal(logits(made, tokens()), logits(model("llama", "plain"), tokens()))

    def test_is_what_swap_sdpa_does(self):
        with polyattn.swap_sdpa(CUBE) as swap:
            found = logits(model("llama", "sdpa"), tokens())
        assert swap.count == 2
        assert_equal(found, logits(model("llama", "poly3"), tokens()))

    def test_compiled(self, registered):
        torch._dynamo.reset()
        made, count = model("llama", "poly3"), registered["poly3"].count
        compiled = torch.compile(made, backend="aot_eager", fullgraph=True)
        found = [logits(compiled, tokens(seed), use_cache=False) for seed in range(3)]
        assert registered["poly3"].count == count and registered["poly3"].compiled
        for seed in range(3):
            assert_equal(found[seed], logits(made, tokens(seed)))
        torch._dynamo.reset()

    def test_count_finds_a_model_without_the_interface(self, registered):
        """transformers takes the name all the same."""
        config = transformers.T5Config(
            vocab_size=VOCABULARY, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2
        )
        count = registered["poly3"].count
        made = transformers.T5EncoderModel._from_config(
            config, attn_implementation="poly3"
        )
        made(tokens())
        assert made.config._attn_implementation == "poly3"
        assert registered["poly3"].count == count

    def test_softcap_is_refused(self):
        made = model("gemma2", "poly1", attn_logit_softcapping=30.0)
        with pytest.raises(ValueError, match="Gemma2Attention passes `softcap`, a cap"):
            made(tokens())

    def test_sinks_are_refused(self):
        made = model("gpt_oss", "poly1")
        with pytest.raises(ValueError, match="GptOssAttention passes `s_aux`"):
            made(tokens())


    @pytest.mark.parametrize("kind", ["llama", "mistral"])
    def test_weights(self, kind):
        """Of the formula, where the model passes on that they are asked for."""
        call = dict(attention_mask=padding("left"), output_attentions=True)
        with torch.no_grad():
            actual, expected = (
                model(kind, name, dtype=torch.float32)(tokens(), **call)
                for name in ("poly1", "eager")
            )
        seen = padding("left").bool()
        torch.testing.assert_close(actual.logits[seen], expected.logits[seen], **EAGER)
        assert len(actual.attentions) == len(expected.attentions) == 2
        seen = seen[:, None, :].expand(2, 4, N)
        for found, wanted in zip(actual.attentions, expected.attentions):
            torch.testing.assert_close(found[seen], wanted[seen], **EAGER)


@needs_transformers
class TestFunction:
    """Called as a model calls it."""

    def call(self, mask=None, rows=5, causal=True, **options):
        function = polyattn.hf.register("poly3", CUBE)
        module = torch.nn.Identity()
        module.is_causal, module.num_key_value_groups = causal, 2
        sizes = [(2, 4, rows, 4), (2, 2, 7, 4), (2, 2, 7, 3)]
        tensors = [random(*size, seed=i) for i, size in enumerate(sizes)]
        output, weights = function(module, *tensors, mask, **options)
        return output.transpose(1, 2), weights, tensors

    @pytest.mark.parametrize("rows, causal", [(1, True), (5, True), (5, False)])
    @pytest.mark.parametrize("given", [None, True, False])
    def test_without_a_mask(self, rows, causal, given):
        options = {} if given is None else dict(is_causal=given)
        found, weights, tensors = self.call(rows=rows, causal=causal, **options)
        causal = causal if given is None else given
        alignment = "upper_left" if causal and rows > 1 else None
        assert_equal(found, reference.attention(*tensors, CUBE, causal=alignment))
        assert weights is None

    def test_mask_is_all_that_counts(self):
        mask = random(2, 1, 5, 9) > 0
        found, _, tensors = self.call(mask, scaling=0.3)
        mask = mask[..., :7]  # a mask may be longer than the keys of a cache
        expected = reference.attention(*tensors, CUBE, mask=mask, scale=0.3)
        assert_equal(found, expected)

    def test_dropout_and_weights(self):
        found, weights, (q, k, v) = self.call(
            dropout=0.25, is_causal=False, output_attentions=True
        )
        kept = weights != 0
        assert 0 < kept.sum() < kept.numel()
        k, v = (t.repeat_interleave(2, dim=1) for t in (k, v))
        assert_equal(weights[kept], (reference.weights(q, k, CUBE) / 0.75)[kept])
        assert_equal(found, weights @ v)

    def test_layout(self):
        function = polyattn.hf.register("poly3", CUBE)
        tensors = [random(2, n, 4, 3).transpose(1, 2) for n in (5, 5, 5)]
        output, _ = function(torch.nn.Identity(), *tensors, None)
        assert output.shape == (2, 5, 4, 3) and output.is_contiguous()

    @pytest.mark.parametrize(
        "options, text",
        [
            (dict(softcap=3.0), "Identity passes `softcap`, a cap of the scores"),
            (dict(s_aux=torch.ones(4)), "passes `s_aux`, attention sinks"),
            (dict(position_bias=torch.ones(1)), "passes `position_bias`"),
            (dict(indices=torch.ones(1)), "passes `indices`"),
            (
                dict(sliding_window=6),
                "passes sliding_window 6 with 5 rows and 7 keys, but no mask",
            ),
            (dict(sliding_window=0), "passes sliding_window 0, expected a number of"),
            (dict(cu_seq_lens_q=torch.tensor([0, 2, 7])), "passes 2 packed sequences"),
            (dict(mask=torch.ones(5, 7)), r"has shape \(5, 7\), expected \[B, 1 or H"),
        ],
    )
    def test_refused(self, options, text):
        with pytest.raises(ValueError, match=rf"\[polyattn.hf\] .*{text}"):
            self.call(**options)

    def test_accepted(self):
        """What says nothing, or nothing that the mask does not say."""
        expected, _, _ = self.call()
        found, _, _ = self.call(
            softcap=None,
            s_aux=None,
            sliding_window=7,
            cu_seq_lens_q=torch.tensor([0, 5]),
            position_ids=torch.arange(5),
            use_cache=True,
        )
        assert_equal(found, expected)

    @pytest.mark.parametrize("is_causal", [False, True])
    def test_sliding_window(self, is_causal):
        """As many keys as it says, the row's own included."""
        function = polyattn.hf.register("poly3", CUBE)
        q, k, v = (random(2, 4, 9, 6, seed=seed) for seed in (1, 2, 3))
        ahead = torch.arange(9) - torch.arange(9)[:, None]
        seen = (ahead > -4) & (ahead < (1 if is_causal else 4))
        module = torch.nn.Identity()
        found, _ = function(
            module, q, k, v, None, is_causal=is_causal, sliding_window=4
        )
        expected = reference.attention(q, k, v, CUBE, mask=seen).transpose(1, 2)
        assert_equal(found, expected)
        # A token that is generated with a cache, and the mask of a whole text.
        found, _ = function(module, q[:, :, -1:], k, v, None, sliding_window=4)
        last = reference.attention(q, k, v, CUBE, mask=seen & (ahead <= 0))
        assert_equal(found, last[:, :, -1:].transpose(1, 2))
        found, _ = function(module, q, k, v, seen[None, None], sliding_window=4)
        assert_equal(found, expected)

    def test_mask_of_another_kind(self):
        with pytest.raises(TypeError, match="attention_mask of Identity is str"):
            self.call("mask")


@needs_transformers
class TestRegister:
    @pytest.mark.parametrize(
        "name, text",
        [
            ("org/kernel", "expected letters, digits"),
            ("a:b", "expected letters, digits"),
            ("a@b", "expected letters, digits"),
            ("paged|poly", "expected letters, digits"),
            ("", "expected letters, digits"),
            ("3", "expected letters, digits"),
            ("sdpa", "contains 'sdpa'"),
            ("eager", "contains 'eager'"),
            ("my_flash", "contains 'flash'"),
            ("flex_attention", "contains 'flex_attention'"),
        ],
    )
    def test_names(self, name, text):
        with pytest.raises(ValueError, match=rf"\[hf.register\] name .*{text}"):
            polyattn.hf.register(name, CUBE)
        with pytest.raises(TypeError, match="name is int, expected str"):
            polyattn.hf.register(3, CUBE)

    def test_twice(self):
        first = polyattn.hf.register("poly3", CUBE)
        assert polyattn.hf.register("poly3", "x*x^2 / sqrt(N)") is first
        with pytest.raises(ValueError) as caught:
            polyattn.hf.register("poly3", "sigmoid")
        assert str(caught.value) == (
            "[hf.register] 'poly3' is x^3/sqrt(N) already, not sigmoid"
        )
        assert first.activation == CUBE

    def test_name_of_another_library(self):
        with pytest.raises(ValueError, match="the name 'plain' is taken"):
            polyattn.hf.register("plain", CUBE)

    def test_formula_error(self):
        with pytest.raises(ValueError, match=r"(?s)sqt.*\^"):
            polyattn.hf.register("poly4", "x^3/sqt(N)")
        assert "poly4" not in AttentionInterface()


@needs_transformers
def test_docstrings_say_what_is_true():
    names = {"polyattn": polyattn, "torch": torch, "transformers": transformers}
    done = doctest.testmod(polyattn.hf, extraglobs=names)
    assert done.failed == 0 and done.attempted > 5


class TestImport:
    def run(self, code):
        return subprocess.run(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def test_polyattn_alone_does_not_import_transformers(self):
        code = "import sys, polyattn; assert 'transformers' not in sys.modules"
        assert self.run(code).returncode == 0

    def test_without_transformers(self):
        hide = "import sys; sys.modules['transformers'] = None\n"
        done = self.run(hide + "import polyattn.hf")
        assert done.returncode == 1
        assert "ImportError: [polyattn.hf] needs a transformers that has" in done.stdout

    def test_with_an_old_one(self, monkeypatch):
        old = types.ModuleType("transformers")
        monkeypatch.setitem(sys.modules, "transformers", old)
        monkeypatch.delitem(sys.modules, "polyattn.hf", raising=False)
        with pytest.raises(ImportError, match="needs a transformers .* cannot"):
            importlib.import_module("polyattn.hf")
