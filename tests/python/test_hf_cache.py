"""Generation with a state of constant size against transformers' own cache."""

import doctest

import pytest
import torch

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed"
)

import polyattn  # noqa: E402
import polyattn.hf  # noqa: E402
from polyattn.hf_cache import StateLayer  # noqa: E402

VOCABULARY = 50
PAD = 0
polyattn.hf.register("state-quadratic", "x^2/sqrt(N)")
polyattn.hf.register("state-softmax", "softmax")


def gpt2(name):
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=128,
        n_embd=16,
        n_head=2,
        n_layer=2,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=PAD,
    )
    return build(transformers.GPT2LMHeadModel, config, name)


def llama(name):
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=PAD,
    )
    return build(transformers.LlamaForCausalLM, config, name)


def build(kind, config, name):
    config._attn_implementation = name
    torch.manual_seed(3)
    # In f64 the choice of a token does not hang on rounding.
    return kind(config).double().eval()


def tokens(batch, length, seed=5):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (batch, length), generator=generator)


def padded(lengths, length):
    ids = tokens(len(lengths), length)
    mask = torch.ones_like(ids)
    for row, real in enumerate(lengths):
        ids[row, : length - real] = PAD
        mask[row, : length - real] = 0
    return ids, mask


def generate(model, ids, cache, mask=None, count=12, **options):
    mask = torch.ones_like(ids) if mask is None else mask
    result = model.generate(
        ids,
        attention_mask=mask,
        past_key_values=cache,
        max_new_tokens=count,
        min_new_tokens=count,
        pad_token_id=PAD,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
        **options,
    )
    return result.sequences, torch.stack(result.logits)


MODELS = pytest.mark.parametrize("make", [gpt2, llama])
MODES = pytest.mark.parametrize("mode", ["auto", "cache", "state"])


@MODELS
@MODES
def test_generates_what_a_growing_cache_generates(make, mode):
    model, ids = make("state-quadratic"), tokens(2, 9)
    cache = polyattn.hf.StateCache(mode)
    got, logits = generate(model, ids, cache)
    want, expected = generate(model, ids, transformers.DynamicCache())
    assert torch.equal(got, want)
    torch.testing.assert_close(logits, expected, rtol=1e-9, atol=1e-9)
    assert cache.get_seq_length() == 9 + 12 - 1
    assert all(layer.state.lengths == [20, 20] for layer in cache.layers)


@MODELS
@pytest.mark.parametrize("name", ["state-quadratic", "state-softmax"])
def test_left_padding(make, name):
    model = make(name)
    ids, mask = padded([9, 4, 1], 9)
    cache = polyattn.hf.StateCache()
    got, logits = generate(model, ids, cache, mask)
    want, expected = generate(model, ids, transformers.DynamicCache(), mask)
    assert torch.equal(got, want)
    torch.testing.assert_close(logits, expected, rtol=1e-9, atol=1e-9)
    # What was padding is not in the state.
    assert cache.layers[0].state.lengths == [20, 15, 12]


@MODELS
def test_beams(make):
    model = make("state-quadratic")
    ids, mask = padded([7, 5], 7)
    options = dict(mask=mask, num_beams=3)
    got, _ = generate(model, ids, polyattn.hf.StateCache(), **options)
    want, _ = generate(model, ids, transformers.DynamicCache(), **options)
    assert torch.equal(got, want)


@MODELS
def test_a_prompt_in_pieces(make):
    model, ids = make("state-quadratic"), tokens(2, 15)
    with torch.no_grad():
        want = model(ids).logits
        cache, parts = polyattn.hf.StateCache("state"), []
        for piece in ids.split([6, 1, 5, 3], dim=1):
            parts.append(model(piece, past_key_values=cache, use_cache=True).logits)
    torch.testing.assert_close(torch.cat(parts, 1), want, rtol=1e-9, atol=1e-9)


def test_a_padded_prompt_in_pieces():
    model = llama("state-quadratic")
    ids, mask = padded([8, 3], 8)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        want = model(ids, attention_mask=mask, position_ids=positions).logits
        cache, parts = polyattn.hf.StateCache(), []
        for first, last in ((0, 4), (4, 7), (7, 8)):
            parts.append(
                model(
                    ids[:, first:last],
                    attention_mask=mask[:, :last],
                    position_ids=positions[:, first:last],
                    past_key_values=cache,
                    use_cache=True,
                ).logits
            )
    got, real = torch.cat(parts, 1), mask.bool()
    torch.testing.assert_close(got[real], want[real], rtol=1e-9, atol=1e-9)
    assert cache.layers[0].state.lengths == [8, 3]


def test_size_does_not_depend_on_the_text():
    model = gpt2("state-quadratic")
    sizes = []
    for count in (60, 110):
        cache = polyattn.hf.StateCache("state")
        generate(model, tokens(1, 5), cache, count=count)
        sizes.append(cache.nbytes)
    assert sizes[0] == sizes[1] > 0


def test_repeat_reset_and_crop():
    model, ids = llama("state-quadratic"), tokens(2, 6)
    cache = polyattn.hf.StateCache()
    with torch.no_grad():
        model(ids, past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(2)
        assert cache.layers[0].state.batch == 4
        next_token = torch.full((4, 1), 7)
        got = model(next_token, past_key_values=cache, use_cache=True).logits
    assert torch.equal(got[0], got[1])
    cache.crop(7)
    with pytest.raises(NotImplementedError, match="7 tokens cannot be cut to 3"):
        cache.crop(3)
    cache.reset()
    assert cache.get_seq_length() == 0 and cache.nbytes == 0


def test_a_model_with_another_attention_is_noticed():
    model, ids = gpt2("sdpa"), tokens(1, 5)
    with pytest.raises(RuntimeError, match="attn_implementation=NAME"):
        generate(model, ids, polyattn.hf.StateCache())


def test_masks_that_a_state_cannot_have():
    layer = StateLayer()
    q = torch.randn(1, 2, 3, 4)
    options = dict(activation="x^2/sqrt(N)", scale=None)
    window = torch.ones(3, 3, dtype=torch.bool).tril().triu(-1)[None, None]
    key, value = layer.update(q, q)
    with pytest.raises(ValueError, match="hides more than padding"):
        layer.attend(q, key, value, window, **options)

    layer = StateLayer()
    key, value = layer.update(q, q)
    layer.attend(q, key, value, None, **options)
    token = torch.randn(1, 2, 1, 4)
    key, value = layer.update(token, token)
    past = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    past[..., 1] = False
    with pytest.raises(ValueError, match="hides more than padding"):
        layer.attend(token, key, value, past, **options)


@pytest.mark.parametrize("asked", [dict(output_attentions=True), dict(dropout=0.1)])
def test_dropout_and_weights_are_refused(asked):
    attend = polyattn.hf.register("state-quadratic", "x^2/sqrt(N)")
    q = torch.randn(1, 2, 3, 4)
    key, value = StateLayer().update(q, q)
    with pytest.raises(ValueError, match="asks for dropout or for attention weights"):
        attend(torch.nn.Identity(), q, key, value, None, **asked)


def test_docstring_says_what_is_true():
    names = dict(polyattn=polyattn, torch=torch, transformers=transformers)
    finder = doctest.DocTestFinder(recurse=False)
    (test,) = finder.find(polyattn.hf.StateCache, "StateCache", globs=names)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
