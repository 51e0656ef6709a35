"""polyattn.nn.NystromAttention against plain torch functions
(tests/models/nystrom_twin.py)."""

import importlib.util
from pathlib import Path

import pytest
import torch

import polyattn
from helpers import assert_equal, random
from polyattn.models import SequenceClassifier
from polyattn.nn import Attention, NystromAttention
from test_models import check_docstring, make

CUBE = "x^3/sqrt(N)"
SQUARE = "x^2/sqrt(N)"
TWIN = Path(__file__).parents[1] / "models" / "nystrom_twin.py"

# Six steps leave an inverse whose norm is at most 1178 times what it would be
# without them, and rounding errors with it.
INVERTED = dict(rtol=1e-8, atol=1e-8)


def assert_close(actual, expected):
    torch.testing.assert_close(actual, expected, **INVERTED)


@pytest.fixture
def twin():
    spec = importlib.util.spec_from_file_location("nystrom_twin", TWIN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kind = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield module
    torch.set_default_dtype(kind)


def power(p):
    """Of scores whose divisor is the root of the number of visible keys."""
    return lambda s, seen: (s**p * seen) / seen.sum(-1, keepdim=True).sqrt()


def public_names(name):
    """Those of Nystromformer: three for a packed projection."""
    if name.startswith("blocks."):
        _, i, rest = name.split(".", 2)
        rest = rest.replace("attention.out_proj", "mha.ff")
        rest = rest.replace("attention.conv_weight", "mha.attn.conv.weight")
        rest = rest.replace("mlp.fc1", "mlpblock.0").replace("mlp.fc2", "mlpblock.3")
        names = [f"model.transformer_{i}.{rest}"]
        if "in_proj" in rest:
            kind = rest.rsplit("_", 1)[1]
            names = [f"model.transformer_{i}.mha.W_{p}.{kind}" for p in "qkv"]
        return names
    tables = {"tokens": "embeddings.word", "positions": "embeddings.position"}
    for ours, theirs in tables.items():
        if name == ours + ".weight":
            return [f"model.{theirs}_embeddings.weight"]
    return ["model." + name]


def rows_of(model, tokens, seen):
    """Those that the pooling gets, padding zero."""
    x = model.positions(model.tokens(tokens))
    for block in model.blocks:
        x = block(x, seen[:, None, None])
    return model.norm(x) * seen[:, :, None]


@pytest.mark.parametrize("formula", ["softmax", SQUARE, CUBE])
def test_rows_and_gradients(twin, formula):
    sizes = twin.SIZES
    torch.manual_seed(3)
    weights = {n: w.requires_grad_() for n, w in twin.weights(**sizes).items()}
    model = SequenceClassifier(
        *(sizes[name] for name in ("dim", "depth", "heads")),
        mlp=sizes["hidden"],
        vocabulary=sizes["vocabulary"],
        context=sizes["length"],
        activation=formula,
        nystrom=dict(
            landmarks=sizes["landmarks"], conv=sizes["conv"], scaling="batch"
        ),
    ).eval()
    ours = {n: p for n, p in model.named_parameters() if not n.startswith("head.")}
    names = {n: public_names(n) for n in ours}
    assert {name for list_ in names.values() for name in list_} == set(weights)
    with torch.no_grad():
        for name, p in ours.items():
            p.copy_(torch.cat([weights[n] for n in names[name]]))
    tokens = torch.randint(1, sizes["vocabulary"], (3, sizes["length"]))
    seen = torch.arange(sizes["length"]) < torch.tensor([[24], [13], [3]])
    tokens = tokens * seen
    f = {"softmax": twin.softmax, SQUARE: power(2), CUBE: power(3)}[formula]
    expected = twin.rows(weights, tokens, seen.double(), f=f, **sizes)
    found = rows_of(model, tokens, seen)
    assert_close(found, expected)
    d = random(*found.shape, seed=1)
    got = torch.autograd.grad(found, list(ours.values()), d)
    wanted = dict(zip(weights, torch.autograd.grad(expected, weights.values(), d)))
    for name, gradient in zip(ours, got):
        assert_close(gradient, torch.cat([wanted[n] for n in names[name]]))


def nystrom(**options):
    return make(NystromAttention, 8, 2, **{**dict(landmarks=4, conv=3), **options})


def mask_of(*lengths, n):
    seen = torch.arange(n) < torch.tensor(lengths)[:, None]
    return seen[:, None, None]


def test_docstring():
    check_docstring(NystromAttention)


@pytest.mark.parametrize("inverse", ["iterative", "exact"])
@pytest.mark.parametrize("n", [8, 10, 3])
def test_lengths_are_filled_up(inverse, n):
    """As if hidden rows had stood there."""
    attention = nystrom(activation=CUBE, inverse=inverse)
    x, full = random(2, n, 8), -(-n // 4) * 4
    padded = torch.cat([x, torch.full((2, full - n, 8), float("nan")).double()], 1)
    found = attention(x)
    if n > 4:
        assert_close(found, attention(padded, mask_of(n, n, n=full))[:, :n])
    else:
        whole = Attention(8, 2, activation=CUBE).double()
        whole.load_state_dict(
            {k: v for k, v in attention.state_dict().items() if k != "conv_weight"}
        )
        attention.conv_weight.data.zero_()
        assert_close(attention(x), whole(x))


def test_exact_where_a_polynomial_has_few_features():
    """x^2 of heads 2 wide has three, and there are four landmarks."""
    attention = make(
        NystromAttention, 4, 2, landmarks=4, conv=0, inverse="exact", rcond=1e-10,
        activation=SQUARE,
    )
    whole = Attention(4, 2, activation=SQUARE).double()
    whole.load_state_dict(attention.state_dict())
    x, mask = random(2, 21, 4), mask_of(21, 13, n=21)
    kept = mask.squeeze(1).transpose(1, 2)
    assert_close(attention(x, mask) * kept, whole(x, attn_mask=mask) * kept)


def test_matched_start():
    attention = nystrom(activation=CUBE)
    batch = (3 * random(2, 10, 8), mask_of(10, 7, n=10))
    (heads,) = polyattn.match_start(attention, batch, factor=0.5).layers.values()
    for head in heads:
        assert head.gain < 1
        assert head.after / head.softmax == pytest.approx(0.5, rel=1e-3)
    again = polyattn.match_start(attention, batch, factor=0.5).layers[""]
    assert [h.gain for h in again] == pytest.approx([1, 1], rel=1e-3)


def test_dropout_is_of_training():
    attention = nystrom(dropout=0.5)
    x = random(1, 12, 8)
    assert_equal(attention(x), attention(x))
    attention.train()
    assert not torch.equal(attention(x), attention(x))


def test_autocast():
    attention = nystrom().float()
    x = random(2, 12, 8).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = attention(x)
    torch.testing.assert_close(y.float(), attention(x), rtol=0.1, atol=0.1)


def test_a_classifier_pads_to_its_context():
    """So that the other sequences of a batch do not matter."""
    model = make(
        SequenceClassifier, 8, 2, 2, vocabulary=9, context=20,
        nystrom=dict(landmarks=4, conv=3),
    )
    tokens = torch.randint(1, 9, (2, 14), generator=torch.Generator().manual_seed(1))
    both = model(tokens, lengths=torch.tensor([14, 9]))
    assert_close(model(tokens[:1]), both[:1])
    assert_close(model(tokens[1:, :9]), both[1:])


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(landmarks=0), "landmarks 0 < 1"),
        (dict(conv=2), "conv 2 is neither 0 nor odd"),
        (dict(iterations=0), "iterations 0 < 1"),
        (dict(rcond=1.0), r"rcond 1.0 is not in \[0, 1\)"),
        (dict(inverse="qr"), "inverse is 'qr', expected one of"),
        (dict(scaling="row"), "scaling is 'row', expected one of"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=r"\[NystromAttention\] " + message):
        NystromAttention(8, 2, **options)


def test_bad_input():
    attention = nystrom()
    with pytest.raises(ValueError, match="x has shape"):
        attention(random(2, 8))
    with pytest.raises(ValueError, match="rows meet landmarks, not keys"):
        attention(random(2, 8, 8), torch.ones(8, 8, dtype=torch.bool))
    with pytest.raises(ValueError, match="short_conv is not for attention by way"):
        SequenceClassifier(8, 1, 2, short_conv=3, nystrom=dict(landmarks=4))
    with pytest.raises(ValueError, match="landmarks 64 are more than the context 20"):
        SequenceClassifier(8, 1, 2, context=20, nystrom={})
