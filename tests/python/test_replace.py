"""polyattn.replace_softmax on models that know nothing of polyattn."""

import copy
import re

import pytest
import torch

import polyattn
import reference
from helpers import assert_equal, random

CUBE = "x^3/sqrt(N)"
E, H = 8, 2


def encoder(layers=2, **options):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        E, H, 16, dropout=0.0, batch_first=True, dtype=torch.float64, **options
    )
    model = torch.nn.TransformerEncoder(layer, layers)
    for p in model.parameters():  # the layers begin as copies
        torch.nn.init.normal_(p, 0.0, 0.5)
    return model


def attend(module, x, mask=None):
    """What a swapped torch module must compute, in plain torch ops."""
    q, k, v = (
        t.unflatten(-1, (module.num_heads, -1)).transpose(1, 2)
        for t in torch.nn.functional.linear(
            x, module.in_proj_weight, module.in_proj_bias
        ).chunk(3, dim=-1)
    )
    o = reference.attention(q, k, v, CUBE, mask=mask)
    return module.out_proj(o.transpose(1, 2).flatten(2))


def run_layer(layer, x, mask=None):
    x = layer.norm1(x + attend(layer.self_attn, x, mask))
    return layer.norm2(x + layer.linear2(layer.linear1(x).relu()))


def run_encoder(model, x, mask=None):
    for layer in model.layers:
        x = run_layer(layer, x, mask)
    return x


class TestTransformerEncoder:
    """In eval mode without gradients torch takes a path of its own, which knows
    softmax only. Two heads and relu are among its conditions."""

    def test_the_fast_path_exists(self, monkeypatch):
        self.count_fast_calls(monkeypatch)
        with torch.no_grad():
            encoder().eval()(random(2, 5, E))
        assert self.calls == 2

    def count_fast_calls(self, monkeypatch):
        self.calls = 0
        fast = torch._transformer_encoder_layer_fwd

        def counted(*arguments):
            self.calls += 1
            return fast(*arguments)

        monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", counted)

    @pytest.mark.parametrize("training", [False, True])
    @pytest.mark.parametrize("gradients", [False, True])
    def test_swapped(self, monkeypatch, training, gradients):
        self.count_fast_calls(monkeypatch)
        model, x = encoder().train(training), random(2, 5, E)
        before = model(x)
        polyattn.replace_softmax(model, CUBE)
        with torch.set_grad_enabled(gradients):
            self.calls = 0
            after = model(x)
        assert self.calls == 0
        assert_equal(after, run_encoder(model, x))
        assert not torch.allclose(after, before, rtol=1e-3)

    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
    @pytest.mark.parametrize("only", [None, "layers.1.*"])
    @pytest.mark.parametrize("formula", ["softmax", CUBE])
    def test_padding(self, only, formula):
        """torch would make a nested tensor of this."""
        model, x = encoder().eval(), random(2, 5, E)
        padding = torch.arange(5) >= torch.tensor([[5], [3]])
        with torch.no_grad():
            before = model(x, src_key_padding_mask=padding)
            polyattn.replace_softmax(model, formula, only=only)
            after = model(x, src_key_padding_mask=padding)
            expected = run_encoder(model, x, ~padding[:, None, None, :])
        if formula == "softmax":
            assert_equal(after[~padding], before[~padding])
        elif only is None:
            assert_equal(after[~padding], expected[~padding])
        else:
            assert not torch.allclose(after[~padding], before[~padding], rtol=1e-3)

    def test_nested_tensors_of_torch_2(self):
        """There the constructor decides, and keeps the decision."""
        model = encoder()
        model.use_nested_tensor = True
        polyattn.replace_softmax(model, CUBE, only="layers.1.*")
        assert not model.use_nested_tensor and not model.enable_nested_tensor

    def test_softmax_leads_back(self):
        model, x = encoder().eval(), random(2, 5, E)
        before = model(x)
        polyattn.replace_softmax(model, CUBE)
        report = polyattn.replace_softmax(model, "softmax")
        assert [(s.old, s.new) for s in report.swapped] == [(CUBE, "softmax")] * 2
        with torch.no_grad():
            assert_equal(model(x), before)

    def test_layer_alone_and_attention_alone(self):
        layer = encoder(1).eval().layers[0]
        x = random(2, 5, E)
        report = polyattn.replace_softmax(layer, CUBE)
        assert [s.name for s in report.swapped] == ["self_attn"]
        with torch.no_grad():
            assert_equal(layer(x), run_layer(layer, x))
        alone = encoder(1).layers[0].self_attn
        report = polyattn.replace_softmax(alone, CUBE)
        assert "(the model itself)" in str(report)
        assert_equal(alone(x, x, x)[0], attend(alone, x))


def test_transformer_with_decoder():
    torch.manual_seed(0)
    model = torch.nn.Transformer(E, H, 1, 1, 16, dropout=0.0, dtype=torch.float64)
    src, tgt = random(5, 2, E, seed=1), random(4, 2, E, seed=2)
    mask = model.generate_square_subsequent_mask(4).double()
    before = model(src, tgt, tgt_mask=mask)
    report = polyattn.replace_softmax(model, "softmax")
    assert [s.name for s in report.swapped] == [
        "encoder.layers.0.self_attn",
        "decoder.layers.0.self_attn",
        "decoder.layers.0.multihead_attn",
    ]
    assert_equal(model(src, tgt, tgt_mask=mask), before)
    polyattn.replace_softmax(model, CUBE)
    after = model(src, tgt, tgt_mask=mask)
    assert not torch.allclose(after, before, rtol=1e-3)
    changed = tgt.clone()
    changed[2:] += 1
    assert_equal(model(src, changed, tgt_mask=mask)[:2], after[:2])


class TestSameObjects:
    def test_parameters_hooks_and_modes_stay(self):
        model = encoder()
        model.layers[1].eval()
        modules, parameters = list(model.modules()), list(model.parameters())
        seen = []
        model.layers[0].self_attn.register_forward_hook(lambda *_: seen.append(1))
        polyattn.replace_softmax(model, CUBE)
        assert all(a is b for a, b in zip(model.modules(), modules))
        assert all(a is b for a, b in zip(model.parameters(), parameters))
        assert not model.layers[1].self_attn.training
        model(random(2, 5, E))
        assert seen == [1]

    def test_optimiser_made_before_trains_after(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(encoder(1), torch.nn.Linear(E, 1).double())
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
        polyattn.replace_softmax(model, CUBE)
        x = random(16, 6, E)
        # Does the row agree with the first one in sign? Rows must be compared.
        target = ((x * x[:, :1]).sum(dim=-1) > 0).double()
        first = model[0].layers[0].self_attn.in_proj_weight.clone()
        losses = []
        for _ in range(60):
            logits = model(x).squeeze(-1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, target)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < 0.5 * losses[0]
        assert not torch.equal(first, model[0].layers[0].self_attn.in_proj_weight)

    def test_copy_save_and_convert(self, tmp_path):
        model, x = encoder().eval(), random(2, 5, E)
        polyattn.replace_softmax(model, CUBE)
        padding = torch.arange(5) >= torch.tensor([[5], [3]])
        expected = model(x, src_key_padding_mask=padding)
        torch.save(model, tmp_path / "model.pt")
        loaded = torch.load(tmp_path / "model.pt", weights_only=False)
        for twin in (copy.deepcopy(model), loaded):
            with torch.no_grad():
                assert torch.equal(twin(x, src_key_padding_mask=padding), expected)
        fresh = encoder().eval()
        fresh.load_state_dict(model.state_dict())
        polyattn.replace_softmax(fresh, CUBE)
        assert torch.equal(fresh(x, src_key_padding_mask=padding), expected)
        narrow = model.to(torch.float32)(x.float())
        assert narrow.dtype == torch.float32

    def test_not_in_place(self):
        model, x = encoder(), random(2, 5, E)
        before = model(x)
        report = polyattn.replace_softmax(model, CUBE, inplace=False)
        assert report.model is not model
        assert torch.equal(model(x), before)
        assert_equal(report.model(x), run_encoder(model, x))


class TestSelection:
    def names(self, **options):
        report = polyattn.replace_softmax(encoder(3), CUBE, **options)
        return [s.name.split(".")[1] for s in report.swapped]

    @pytest.mark.parametrize(
        "only, expected",
        [
            (None, "012"),
            ("layers.1.*", "1"),
            (["layers.0.*", "*.2.self_attn"], "02"),
            (re.compile(r"\.[12]\."), "12"),
            ([re.compile("^layers.0"), "layers.1.*"], "01"),
            (lambda name, module: name.startswith("layers.2"), "2"),
        ],
    )
    def test_only_and_skip(self, only, expected):
        assert self.names(only=only) == list(expected)
        if only is not None:
            rest = [i for i in "012" if i not in expected]
            assert self.names(skip=only) == rest

    def test_what_was_left_out_is_reported(self):
        report = polyattn.replace_softmax(encoder(2), CUBE, skip="layers.0.*")
        assert [(k.name, k.reason) for k in report.kept] == [
            ("layers.0.self_attn", "among `skip`")
        ]

    def test_wrong_pattern_changes_nothing(self):
        model = encoder(2)
        with pytest.raises(TypeError, match="a pattern is int"):
            polyattn.replace_softmax(model, CUBE, only=["layers.0.*", 3])
        assert type(model.layers[0].self_attn) is torch.nn.MultiheadAttention


class Subclass(torch.nn.MultiheadAttention):
    pass


class MyAttention(torch.nn.Module):
    pass


class TestReport:
    def test_text(self):
        model = torch.nn.ModuleDict(
            dict(a=encoder(1), b=Subclass(E, H), c=MyAttention())
        )
        assert str(polyattn.replace_softmax(model, "x*x^2 / sqrt(N)")) == "\n".join(
            [
                "x^3/sqrt(N) in 1 module:",
                "  a.layers.0.self_attn  MultiheadAttention, 2 heads: "
                "softmax -> x^3/sqrt(N)",
                "not in 2 modules:",
                "  b  Subclass: a subclass of MultiheadAttention may do anything",
                "  c  MyAttention: computes its weights itself: call "
                "polyattn.attention there",
            ]
        )

    def test_modules_of_polyattn(self):
        learned = dict(activation="x^2", learned_coefficients=True)
        model = torch.nn.ModuleList(
            [
                polyattn.nn.Attention(E, H),
                polyattn.nn.Attention(E, H, **learned),
                polyattn.nn.MultiheadAttention(E, H, activation="sigmoid"),
            ]
        )
        report = polyattn.replace_softmax(model, CUBE)
        assert [(s.name, s.old, s.new) for s in report.swapped] == [
            ("0", "softmax", CUBE),
            ("2", "sigmoid", CUBE),
        ]
        assert [(k.name, k.reason) for k in report.kept] == [
            ("1", "its coefficients are learned")
        ]
        assert [m.activation for m in model] == [CUBE, "x^2", CUBE]

    def test_nothing_to_replace(self):
        with pytest.raises(ValueError) as caught:
            polyattn.replace_softmax(torch.nn.Linear(2, 2), CUBE)
        message = str(caught.value)
        assert message.startswith("[replace_softmax] nothing to replace in Linear")
        assert "torch.nn.MultiheadAttention" in message
        with pytest.raises(ValueError, match="MyAttention: computes its weights"):
            polyattn.replace_softmax(MyAttention(), CUBE)

    def test_bad_formula_changes_nothing(self):
        model = encoder(1)
        with pytest.raises(ValueError, match="x3"):
            polyattn.replace_softmax(model, "x3")
        assert type(model.layers[0].self_attn) is torch.nn.MultiheadAttention
