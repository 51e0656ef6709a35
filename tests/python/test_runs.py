"""load_run on folders as `polyattn train` leaves them, made here."""

import builtins
import json
import sys

import pytest
import torch

import polyattn
from data_files import write_safetensors
from polyattn.models import Gpt, SequenceClassifier, ViT
from test_models import check_docstring

if sys.version_info < (3, 11):
    pytest.skip("configs are TOML: Python 3.11 reads it", allow_module_level=True)

TASK = dict(name="fashion-mnist", path="", validation=0.0, train_limit=0, context=8)
MODEL = dict(
    activation="x^3/sqrt(N)",
    dim=8,
    depth=2,
    heads=2,
    kv_heads=0,
    mlp=12,
    patch=4,
    pooling="mean",
    positions="learned",
    norm="layer",
    qk_norm="none",
    learned_scale=False,
    learned_coefficients="none",
    layer_scale=0.1,
    initialisation="xavier",
    dropout=0.1,
    attention_dropout=0.0,
    drop_path=0.0,
    tied=True,
)


def vit(**options):
    sizes = dict(image_size=12, patch_size=4, channels=1, classes=3, pooling="mean")
    return ViT(8, 2, 2, mlp=12, layer_scale=0.1, **{**sizes, **options})


def write_config(folder, task=(), model=()):
    """A config as C++ writes it; what is None is left out."""
    lines = ["# Every choice of a run of polyattn."]
    sections = dict(task={**TASK, **dict(task)}, model={**MODEL, **dict(model)})
    for name, section in sections.items():
        lines += ["", f"[{name}]"]
        for key, value in section.items():
            if value is not None:  # JSON is TOML, for these values
                lines.append(f"{key} = {json.dumps(value)}  # why")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text("\n".join(lines) + "\n")


def write_checkpoint(folder, step, model, ema=None):
    """As C++ writes it, with the moments of Adam."""
    state = model.state_dict()
    tensors = {f"adam.m.{name}": torch.zeros_like(p) for name, p in state.items()}
    tensors.update({f"model.{name}": p for name, p in state.items()})
    if ema is not None:
        tensors.update({f"ema.{name}": p for name, p in ema.state_dict().items()})
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir(exist_ok=True)
    write_safetensors(checkpoints / f"step-{step:08}.safetensors", tensors)
    (checkpoints / f"step-{step:08}.json").write_text(json.dumps({"step": step}))


def write_best(folder, state, step=7):
    (folder / "checkpoints").mkdir(exist_ok=True)
    write_safetensors(folder / "checkpoints" / "best.safetensors", state)
    (folder / "checkpoints" / "best.json").write_text(json.dumps({"step": step}))


def same(found, expected):
    state = expected.state_dict()
    assert found.state_dict().keys() == state.keys()
    return all(torch.equal(p, state[name]) for name, p in found.state_dict().items())


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    write_config(folder)
    return folder


def refusal(run, kind=ValueError, **options):
    with pytest.raises(kind) as caught:
        polyattn.load_run(run, **options)
    assert str(caught.value).startswith("[load_run] ")
    assert str(run) in str(caught.value)
    return str(caught.value)


def test_docstring_says_what_is_true(tmp_path, monkeypatch):
    run = tmp_path / "runs" / "cubic"
    write_config(run)
    write_checkpoint(run, 1, vit(image_size=28, classes=10))
    monkeypatch.chdir(tmp_path)
    check_docstring(polyattn.load_run)


class TestFamilies:
    def test_without_a_name_it_is_of_before(self, run):
        write_checkpoint(run, 1, vit())
        assert isinstance(polyattn.load_run(run), ViT)

    @pytest.mark.parametrize("name", ["vit", "vit-tiny28", "deit-tiny32"])
    def test_names_of_vit(self, run, name):
        write_config(run, model=dict(name=name))
        write_checkpoint(run, 1, vit())
        model = polyattn.load_run(run)
        assert model.dist_token is None and len(model.blocks) == 2

    def test_distilled_ones(self, run):
        write_config(run, model=dict(name="vit-distilled", pooling="class"))
        model = vit(pooling="class", distilled=True)
        write_checkpoint(run, 1, model)
        found = polyattn.load_run(run)
        assert same(found, model) and found.image_size == 12
        # Weights of another model than the config says.
        write_checkpoint(run, 2, vit(pooling="class"))
        assert "8 patches are not those of a square image" in refusal(run)

    def test_families_of_cpp_alone(self, run):
        write_checkpoint(run, 1, vit())
        write_config(run, model=dict(name="resnet"))
        message = refusal(run)
        assert "model.name is 'resnet', a family that polyattn.models" in message
        assert "(only vit, deit, swin, xcit, gpt, classifier, lra)" in message
        assert "polyattn eval" in message


class TestWeights:
    def test_of_the_last_step(self, run):
        first, last = vit(), vit()
        write_checkpoint(run, 9, first)
        write_checkpoint(run, 20, last)
        model = polyattn.load_run(run)
        assert same(model, last) and not same(model, first)
        assert not model.training
        assert [b.attention.activation for b in model.blocks] == ["x^3/sqrt(N)"] * 2
        assert (model.run.folder, model.run.step) == (run, 20)
        assert model.run.config["model"]["dropout"] == 0.1
        assert model.blocks[0].mlp.dropout == 0.1
        assert same(polyattn.load_run(str(run)), last)

    def test_of_the_best_step(self, run):
        last, best = vit(), vit()
        write_checkpoint(run, 20, last)
        assert "no file" in refusal(run, FileNotFoundError, best=True)
        write_best(run, best.state_dict())
        model = polyattn.load_run(run, best=True)
        assert same(model, best) and model.run.step == 7
        assert same(polyattn.load_run(run), last)

    def test_that_are_averaged(self, run):
        averaged = vit()
        write_checkpoint(run, 20, vit(), averaged)
        assert same(polyattn.load_run(run), averaged)

    def test_damaged_ones_are_passed_over(self, run):
        whole = vit()
        write_checkpoint(run, 9, whole)
        write_checkpoint(run, 20, vit())
        path = run / "checkpoints" / "step-00000020.safetensors"
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.warns(UserWarning, match="took step 9, because.*00020.safetensors"):
            model = polyattn.load_run(run)
        assert same(model, whole) and model.run.step == 9
        (run / "checkpoints" / "step-00000009.json").write_text('{"step": 8}')
        message = refusal(run)
        assert "no checkpoint that can be used" in message and "cut short" in message

    def test_without_json_they_are_not_whole(self, run):
        write_checkpoint(run, 20, vit())
        (run / "checkpoints" / "step-00000020.json").unlink()
        assert "has no checkpoint yet" in refusal(run, FileNotFoundError)

    @pytest.mark.parametrize("text", ["", "{}", "[]", '{"step": "a"}', "\ud800"])
    def test_json_that_is_damaged(self, run, text):
        write_checkpoint(run, 20, vit())
        path = run / "checkpoints" / "step-00000020.json"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        assert "it does not say its step" in refusal(run)

    def test_none(self, run):
        assert "has no checkpoint yet" in refusal(run, FileNotFoundError)

    def test_must_fit_the_config(self, run):
        state = vit().state_dict()
        write_best(run, {k: v for k, v in state.items() if k != "norm.bias"})
        assert 'Missing key(s) in state_dict: "norm.bias"' in refusal(run, best=True)
        write_best(run, {**state, "more": torch.ones(1)})
        assert 'Unexpected key(s) in state_dict: "more"' in refusal(run, best=True)
        write_best(run, {**state, "norm.bias": torch.ones(7)})
        assert "size mismatch for norm.bias" in refusal(run, best=True)
        write_best(run, {**state, "positions.weight": torch.ones(10, 8)})
        assert "10 patches are not those of a square" in refusal(run, best=True)
        write_best(run, {})
        assert "the weights hold no head.weight" in refusal(run, best=True)


class TestConfig:
    def test_no_run(self, tmp_path):
        message = refusal(tmp_path, FileNotFoundError)
        assert "is not the folder of a run" in message
        with pytest.raises(TypeError, match=r"\[load_run\] run is int, expected str"):
            polyattn.load_run(3)

    @pytest.mark.parametrize("text", [b"[model", b"\xff", b"a = 1\na = 2"])
    def test_that_is_damaged(self, run, text):
        (run / "config.toml").write_bytes(text)
        assert "config.toml: " in refusal(run)

    @pytest.mark.parametrize("text, name", [("", "model"), ("task = 1\n[model]", "task")])
    def test_without_a_section(self, run, text, name):
        write_best(run, vit().state_dict())
        (run / "config.toml").write_text(text)
        if name == "task":
            model = "".join(f"{k} = {json.dumps(v)}\n" for k, v in MODEL.items())
            (run / "config.toml").write_text(f"{text}\n{model}")
        assert f"config.toml has no section [{name}]" in refusal(run, best=True)

    @pytest.mark.parametrize(
        "task, model, message",
        [
            (dict(name="chess"), {}, "task.name is 'chess', expected one of fashion"),
            (dict(name=None), {}, "there is no key task.name"),
            ({}, dict(dim=None), "there is no key model.dim"),
            ({}, dict(dim="8"), "model.dim is '8', expected int"),
            ({}, dict(dim=True), "model.dim is True, expected int"),
            ({}, dict(layer_scale="0.1"), "model.layer_scale is '0.1', expected float"),
            ({}, dict(magic=1), "unknown key model.magic: is the run of a newer"),
            ({}, dict(activation="x^"), "x^"),
            ({}, dict(heads=3), "dim 8 is not a multiple of heads 3"),
            ({}, dict(norm="batch"), "kind is 'batch'"),
            ({}, dict(qk_norm="batch"), "qk_norm is 'batch'"),
            ({}, dict(patch=5), "image_size 12 is not a multiple of patch_size 5"),
            ({}, dict(norm_clamp="rescale"), "norm_clamp is 'rescale', which only C++"),
            ({}, dict(norm_clamp="hold"), "norm_clamp is 'hold', which only C++"),
        ],
    )
    def test_that_says_what_cannot_be(self, run, task, model, message):
        write_config(run, task, model)
        write_best(run, vit().state_dict())
        assert message in refusal(run, best=True)

    def test_keys_of_older_and_newer_runs(self, run):
        """Younger keys may be missing; those that training alone heeds may not
        matter."""
        expected = vit()
        write_best(run, expected.state_dict())
        young = dict(
            output_norm="none",
            output_gate=False,
            center_values=False,
            short_conv=0,
            norm_clamp="penalty",
            norm_factor=0.5,
            start="plain",
            start_factor=0.3,
            qk_gain=2,
            fused=False,
        )
        for more in ({}, young):
            write_config(run, model=more)
            assert same(polyattn.load_run(run, best=True), expected)

    def test_numbers_may_be_integers(self, run):
        write_config(run, model=dict(layer_scale=1, dropout=0))
        write_best(run, vit().state_dict())
        assert polyattn.load_run(run, best=True).dropout == 0.0

    def test_every_part_of_a_model(self, run):
        parts = dict(kv_heads=1, learned_scale=True)
        words = dict(
            qk_norm="rms",
            learned_coefficients="head",
            output_norm="rms",
        )
        rest = dict(output_gate=True, center_values=True, short_conv=3, norm="rms")
        expected = vit(activation="x^2/N", **parts, **words, **rest)
        write_config(run, model=dict(activation="x^2/N", **parts, **words, **rest))
        write_best(run, expected.state_dict())
        model = polyattn.load_run(run, best=True)
        assert same(model, expected)
        images = torch.randn(2, 1, 12, 12)
        assert torch.equal(model(images), expected.eval()(images))
        assert model.blocks[0].attention.center_values

    def test_texts(self, run):
        for tied, positions in ((True, "rotary"), (False, "learned")):
            choice = dict(tied=tied, positions=positions)
            write_config(run, dict(name="sotu"), dict(layer_scale=0.0, **choice))
            expected = Gpt(8, 2, 2, mlp=12, context=8, **choice)
            polyattn.replace_softmax(expected, MODEL["activation"])
            write_best(run, expected.state_dict())
            model = polyattn.load_run(run, best=True)
            assert type(model) is Gpt and same(model, expected)
            assert torch.equal(model(b"My fell"), expected.eval()(b"My fell"))
        # Tokens of more than a byte: what they are is in the tokenizer's file.
        choice = dict(tied=True, positions="rotary")
        task = dict(name="brown", tokenizer="unigram:300")
        write_config(run, task, dict(layer_scale=0.0, **choice))
        expected = Gpt(8, 2, 2, mlp=12, context=8, vocabulary=300, **choice)
        polyattn.replace_softmax(expected, MODEL["activation"])
        write_best(run, expected.state_dict())
        model = polyattn.load_run(run, best=True)
        ids = torch.tensor([[299, 0, 7]])
        assert torch.equal(model(ids), expected.eval()(ids))
        with pytest.raises(ValueError, match="in bytes, but the model has 300 tokens"):
            model(b"My fell")
        message = "mean and std are for images, not for a Gpt"
        with pytest.raises(ValueError, match=message):
            polyattn.load_run(run, best=True, mean=[0.5], std=[0.5])

    @pytest.mark.parametrize("pooling", ["mean", "class"])
    @pytest.mark.parametrize("positions", ["rotary", "learned"])
    def test_sequences(self, run, positions, pooling):
        choice = dict(pooling=pooling, positions=positions)
        write_config(run, dict(name="listops"), dict(layer_scale=0.0, **choice))
        expected = SequenceClassifier(
            8, 2, 2, mlp=12, vocabulary=16, context=30, classes=10, **choice
        )
        write_best(run, expected.state_dict())
        model = polyattn.load_run(run, best=True)
        assert type(model) is SequenceClassifier and same(model, expected)
        assert model.context == (30 if positions == "learned" else 1024)

    @pytest.mark.parametrize("head", ["linear", "mlp"])
    @pytest.mark.parametrize("task, towers", [("pathfinder", 1), ("sotu-pairs", 2)])
    def test_long_range_arena(self, run, task, towers, head):
        choice = dict(pooling="padded", head=head, mask_zeros=True)
        keys = dict(name="lra-nystromformer", positions="learned", layer_scale=0.0)
        write_config(run, dict(name=task), dict(**keys, **choice))
        expected = SequenceClassifier(
            8,
            2,
            2,
            activation=MODEL["activation"],
            mlp=12,
            vocabulary=512,
            context=24,
            towers=towers,
            **choice,
        )
        write_best(run, expected.state_dict())
        model = polyattn.load_run(run, best=True)
        assert type(model) is SequenceClassifier and same(model, expected)
        tokens = torch.randint(1, 512, (4, 9))
        assert torch.equal(model(tokens), expected.eval()(tokens))

    def test_python_without_toml(self, run, monkeypatch):
        def refuse(name, *arguments):
            if name in ("tomllib", "tomli"):
                raise ModuleNotFoundError(name)
            return imports(name, *arguments)

        imports = builtins.__import__
        monkeypatch.setattr(builtins, "__import__", refuse)
        with pytest.raises(ImportError, match="from 3.11 on, and this.*package tomli"):
            polyattn.load_run(run)


class TestStatistics:
    """Known where a run saw all images of a set that is always the same."""

    @pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
    def test_known(self, run, name):
        channels = 3 if name == "cifar10" else 1
        write_config(run, dict(name=name))
        write_best(run, vit(channels=channels).state_dict())
        model = polyattn.load_run(run, best=True)
        assert len(model.mean) == len(model.std) == channels
        images = torch.zeros(1, channels, 12, 12, dtype=torch.uint8)
        expected = -model.mean[0] / model.std[0]
        assert model.preprocess(images)[0, 0, 0, 0].item() == pytest.approx(expected)

    @pytest.mark.parametrize(
        "task",
        [
            dict(name="images", path="mine"),
            dict(path="mine"),
            dict(train_limit=100),
            dict(validation=0.1),
        ],
    )
    def test_unknown(self, run, task):
        write_config(run, task)
        write_best(run, vit().state_dict())
        model = polyattn.load_run(run, best=True)
        assert model.mean is None and model.std is None
        with pytest.raises(ValueError, match="are not known.*load_run"):
            model.preprocess(torch.zeros(1, 1, 12, 12))
        model = polyattn.load_run(run, best=True, mean=[0.5], std=[0.25])
        assert (model.mean, model.std) == ((0.5,), (0.25,))
        with pytest.raises(ValueError, match="expected 1 of each"):
            polyattn.load_run(run, best=True, mean=[0.5, 0.5], std=[0.25])

    def test_of_the_record(self, run):
        write_config(run, dict(path="mine"))
        write_best(run, vit().state_dict())
        record = run / "run.json"
        record.write_text(json.dumps(dict(pixels=dict(mean=[0.5], std=[0.25]))))
        model = polyattn.load_run(run, best=True)
        assert (model.mean, model.std) == ((0.5,), (0.25,))
        for damage in ("{", "[]", '{"pixels": 3}', '{"pixels": {"mean": [1, 2]}}'):
            record.write_text(damage)
            with pytest.raises(ValueError, match='"pixels" is damaged'):
                polyattn.load_run(run, best=True)
