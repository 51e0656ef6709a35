"""polyattn.nn.MultiheadAttention: with softmax against torch's own module, with
polynomials against plain torch ops."""

import copy
import math
import pickle

import pytest
import torch

import reference
from helpers import assert_equal, random
from polyattn.nn import MultiheadAttention

L, S, B, E, H = 5, 7, 3, 12, 4


def pair(**options):
    """Torch's module and ours with the same state."""
    torch.manual_seed(0)
    options = dict(dtype=torch.float64, **options)
    theirs = torch.nn.MultiheadAttention(E, H, **options)
    for p in theirs.parameters():
        torch.nn.init.normal_(p, 0.0, 0.3)
    ours = MultiheadAttention(E, H, **options)
    assert [n for n, _ in ours.named_parameters()] == [
        n for n, _ in theirs.named_parameters()
    ]
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def inputs(batch_first=False, kdim=E, vdim=E, batched=True):
    sizes = [(L, E), (S, kdim), (S, vdim)]
    if not batched:
        return [random(*s, seed=i) for i, s in enumerate(sizes)]
    rows = [random(B, *s, seed=i) for i, s in enumerate(sizes)]
    return rows if batch_first else [t.transpose(0, 1) for t in rows]


def compare(theirs, ours, arguments, **options):
    """Outputs, weights and gradients of all parameters."""
    expected, actual = theirs(*arguments, **options), ours(*arguments, **options)
    assert (expected[1] is None) == (actual[1] is None)
    for a, e in zip(actual, expected):
        if e is not None:
            assert_equal(a, e)
    probe = random(*expected[0].shape, seed=9)
    grads = [
        torch.autograd.grad((o * probe).sum(), list(m.parameters()))
        for m, o in ((ours, actual[0]), (theirs, expected[0]))
    ]
    assert_equal(*grads)


BOOL_MASK = torch.ones(L, S, dtype=torch.bool).triu(3)
PADDING = torch.arange(S).expand(B, S) >= torch.tensor([[7], [5], [2]])
MASKS = {
    "bool": dict(attn_mask=BOOL_MASK),
    "added": dict(attn_mask=random(L, S, seed=5).masked_fill(BOOL_MASK, -math.inf)),
    "bool for each head": dict(attn_mask=random(B * H, L, S, seed=6) > 1.5),
    "added for each head": dict(attn_mask=random(B * H, L, S, seed=6)),
    "padding": dict(key_padding_mask=PADDING),
    "added padding": dict(key_padding_mask=random(B, S, seed=7)),
    "bool and padding": dict(attn_mask=BOOL_MASK, key_padding_mask=PADDING),
    "added and padding": dict(
        attn_mask=random(L, S, seed=5), key_padding_mask=PADDING
    ),
}


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("mask", [None, *MASKS])
class TestMasks:
    def test_as_torch(self, mask, batch_first):
        options = {} if mask is None else MASKS[mask]
        theirs, ours = pair(batch_first=batch_first)
        compare(theirs, ours, inputs(batch_first), **options)
        compare(theirs, ours, inputs(batch_first), need_weights=False, **options)

    def test_with_appended_keys_as_torch(self, mask, batch_first):
        options = {} if mask is None else MASKS[mask]
        theirs, ours = pair(
            batch_first=batch_first, add_bias_kv=True, add_zero_attn=True
        )
        compare(theirs, ours, inputs(batch_first), **options)


@pytest.mark.parametrize(
    "options",
    [
        dict(bias=False),
        dict(kdim=5, vdim=6),
        dict(kdim=5, vdim=6, bias=False),
        dict(add_bias_kv=True),
        dict(add_zero_attn=True),
    ],
)
def test_options_as_torch(options):
    theirs, ours = pair(**options)
    widths = {k: v for k, v in options.items() if k in ("kdim", "vdim")}
    compare(theirs, ours, inputs(**widths))
    compare(theirs, ours, inputs(**widths), average_attn_weights=False)


@pytest.mark.parametrize("batch_first", [False, True])
def test_without_batch_as_torch(batch_first):
    theirs, ours = pair(batch_first=batch_first)
    arguments = inputs(batched=False)
    compare(theirs, ours, arguments)
    compare(theirs, ours, arguments, average_attn_weights=False)
    compare(theirs, ours, arguments, key_padding_mask=PADDING[1])
    compare(theirs, ours, arguments, attn_mask=random(H, L, S, seed=6))


@pytest.mark.parametrize("batch_first", [False, True])
def test_self_attention_as_torch(batch_first):
    theirs, ours = pair(batch_first=batch_first)
    x = inputs(batch_first)[0]
    compare(theirs, ours, [x, x, x])
    theirs.eval(), ours.eval()
    with torch.no_grad():  # torch's fast path
        assert_equal(ours(x, x, x), theirs(x, x, x))


@pytest.mark.parametrize("options", [dict(add_bias_kv=True), dict(kdim=5, vdim=6)])
def test_initial_parameters_are_torchs(options):
    modules = []
    for kind in (torch.nn.MultiheadAttention, MultiheadAttention):
        torch.manual_seed(1)
        modules.append(kind(E, H, **options))
    theirs, ours = modules
    for reset in (False, True):
        for module in modules:
            torch.manual_seed(2)
            if reset:
                module._reset_parameters()
        for a, b in zip(ours.parameters(), theirs.parameters()):
            assert torch.equal(a, b)
    assert ours._qkv_same_embed_dim is False


class TestPolynomial:
    def make(self, **options):
        _, ours = pair(batch_first=True, **options)
        ours.activation = "x^3/sqrt(N)"
        return ours

    def expected(self, ours, x, **options):
        q, k, v = (
            t.unflatten(-1, (H, -1)).transpose(1, 2)
            for t in torch.nn.functional.linear(
                x, ours.in_proj_weight, ours.in_proj_bias
            ).chunk(3, dim=-1)
        )
        w = reference.weights(q, k, "x^3/sqrt(N)", **options)
        return ours.out_proj((w @ v).transpose(1, 2).flatten(2)), w

    def test_padding_is_not_counted_in_n(self):
        ours, x = self.make(), random(B, S, E)
        y, w = ours(x, x, x, key_padding_mask=PADDING, average_attn_weights=False)
        expected = self.expected(ours, x, mask=~PADDING[:, None, None, :])
        assert_equal((y, w), expected)
        alone = x[2:, :2]
        assert_equal(y[2:, :2], ours(alone, alone, alone)[0])

    @pytest.mark.parametrize("need_weights", [False, True])
    def test_causal_hint_without_mask(self, need_weights):
        ours, x = self.make(), random(B, S, E)
        y, w = ours(x, x, x, is_causal=True, need_weights=need_weights)
        expected = self.expected(ours, x, causal="upper_left")
        assert_equal(y, expected[0])
        if need_weights:
            assert_equal(w, expected[1].mean(dim=1))

    def test_causal_hint_with_mask_is_the_mask(self):
        ours, x = self.make(), random(B, S, E)
        hidden = torch.ones(S, S, dtype=torch.bool).triu(2)
        with_hint = ours(x, x, x, attn_mask=hidden, is_causal=True)[0]
        assert_equal(with_hint, self.expected(ours, x, mask=~hidden)[0])

    def test_causal_hint_leaves_appended_keys_visible(self):
        ours, x = self.make(add_zero_attn=True, add_bias_kv=True), random(B, S, E)
        mask = torch.ones(S, S, dtype=torch.bool).triu(1)
        expected = ours(x, x, x, attn_mask=mask)
        assert_equal(ours(x, x, x, is_causal=True), expected)

    def test_row_that_sees_nothing(self):
        ours, x = self.make(), random(B, S, E)
        padding = torch.zeros(B, S, dtype=torch.bool)
        padding[1] = True
        y = ours(x, x, x, key_padding_mask=padding)[0]
        assert torch.equal(y[1], ours.out_proj.bias.expand(S, E))

    def test_dropout_gives_the_weights_that_were_used(self):
        ours, x = self.make(dropout=0.5), random(1, S, E)
        torch.manual_seed(0)
        y, w = ours(x, x, x, average_attn_weights=False)
        v = torch.nn.functional.linear(
            x, ours.in_proj_weight[2 * E :], ours.in_proj_bias[2 * E :]
        )
        v = v.unflatten(-1, (H, -1)).transpose(1, 2)
        assert (w == 0).any()
        assert_equal(y, ours.out_proj((w @ v).transpose(1, 2).flatten(2)))
        torch.manual_seed(0)
        assert torch.equal(y, ours(x, x, x)[0])
        assert not torch.equal(y, ours(x, x, x)[0])
        assert torch.equal(ours.eval()(x, x, x)[0], ours(x, x, x)[0])


def test_copies_and_pickles():
    ours = MultiheadAttention(E, H, activation="x^3/sqrt(N)")
    x = torch.randn(L, B, E)
    for twin in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert twin.activation == "x^3/sqrt(N)"
        assert twin._qkv_same_embed_dim is False
        assert torch.equal(twin(x, x, x)[0], ours(x, x, x)[0])


def test_half_precision_and_repr():
    ours = MultiheadAttention(E, H, activation="x^3/sqrt(N)").to(torch.bfloat16)
    x = torch.randn(L, B, E, dtype=torch.bfloat16)
    mask = torch.zeros(L, L)  # of another type than the model
    assert ours(x, x, x, attn_mask=mask)[0].dtype == torch.bfloat16
    assert "activation='x^3/sqrt(N)'" in repr(ours)


@pytest.mark.filterwarnings("ignore:Converting a tensor to a Python boolean")
def test_traces():
    ours = MultiheadAttention(E, H, activation="x^3/sqrt(N)").double().eval()
    x, other = random(L, B, E), random(L, B, E, seed=1)
    traced = torch.jit.trace(ours, (x, x, x))
    assert_equal(traced(other, other, other), ours(other, other, other))


@pytest.mark.parametrize(
    "change, options, text",
    [
        (dict(query=torch.zeros(L, B, 3)), {}, "query width 3 != 12 of the module"),
        (dict(key=torch.zeros(S, 2, E)), {}, "value has shape"),
        (dict(key=torch.zeros(S, E)), {}, "key has 2 dimensions != 3 of query"),
        (dict(query=torch.zeros(1, L, B, E)), {}, "query has 4 dimensions"),
        (
            dict(key=torch.zeros(S, 2, E), value=torch.zeros(S, 2, E)),
            {},
            "key batch 2 != query batch 3",
        ),
        ({}, dict(attn_mask=torch.zeros(L, L)), r"attn_mask has shape \(5, 5\)"),
        (
            {},
            dict(key_padding_mask=torch.zeros(B, L)),
            r"key_padding_mask has shape \(3, 5\), expected \(3, 7\)",
        ),
    ],
)
def test_errors(change, options, text):
    arguments = dict(zip(("query", "key", "value"), inputs()))
    module = MultiheadAttention(E, H, dtype=torch.float64)
    module(**arguments)
    with pytest.raises(ValueError, match=r"\[MultiheadAttention\] " + text):
        module(**{**arguments, **change}, **options)


def test_mask_of_bytes():
    """torch 1 takes it, and so do we."""
    _, ours = pair()
    expected = ours(*inputs(), attn_mask=BOOL_MASK)
    assert_equal(ours(*inputs(), attn_mask=BOOL_MASK.byte()), expected)


def test_mask_of_integers():
    module = MultiheadAttention(E, H, dtype=torch.float64)
    with pytest.raises(TypeError, match="key_padding_mask is torch.int64"):
        module(*inputs(), key_padding_mask=PADDING.long())
