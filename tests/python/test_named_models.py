"""load_run on folders of Swin and XCiT, which the name of the model decides."""

import re
import sys
from pathlib import Path

import pytest
import torch

import polyattn
from polyattn.models import Swin, XCiT, named
from polyattn.models.config import _YOUNG
from test_runs import MODEL, refusal, run, same  # noqa: F401 (a fixture)
from test_runs import write_best, write_config

if sys.version_info < (3, 11):
    pytest.skip("configs are TOML: Python 3.11 reads it", allow_module_level=True)

DOCS = Path(__file__).parents[2] / "docs"
SWIN = dict(name="swin-v2-tiny28", dim=48, depth=6, heads=3, mlp=192, patch=2)
SWIN.update(pooling="mean", layer_scale=0.0)
XCIT = dict(name="xcit-tiny28", dim=96, depth=4, heads=4, mlp=384, patch=4)
XCIT.update(pooling="class", layer_scale=1.0)


def swin():
    sizes = dict(version=2, patch_size=2, channels=1, classes=3)
    return Swin(48, [2, 4], [3, 6], **sizes)


def xcit():
    return XCiT(96, 4, 4, patch_size=4, channels=1, classes=3)


@pytest.mark.parametrize("model, make", [(SWIN, swin), (XCIT, xcit)])
def test_loads(run, model, make):  # noqa: F811
    rates = dict(dropout=0.1, attention_dropout=0.2, drop_path=0.3)
    write_config(run, model={**model, **rates})
    expected = make()
    write_best(run, expected.state_dict())
    found = polyattn.load_run(run, best=True)
    assert type(found) is type(expected) and same(found, expected)
    assert not found.training and found.run.step == 7
    last = (found.blocks if "xcit" in model["name"] else found.stages[1])[-1]
    assert last.attention.activation == "x^3/sqrt(N)"
    dropouts = (found.dropout, last.mlp.dropout, last.attention.projection_dropout)
    assert dropouts == (0.1, 0.1, 0.1)
    assert (last.attention.dropout, last.drop_path) == (0.2, 0.3)
    # Fashion-MNIST, whose files are always the same.
    assert found.mean == pytest.approx([0.286], abs=1e-3)
    images = torch.randint(256, (2, 28, 28), dtype=torch.uint8)
    assert found(found.preprocess(images)).shape == (2, 3)
    found = polyattn.load_run(run, best=True, mean=[0.5], std=[0.25])
    assert (found.mean, found.std) == ((0.5,), (0.25,))


@pytest.mark.parametrize(
    "model, message",
    [
        (dict(SWIN, name="swin-huge"), "'swin-huge', which is none of polyattn.models"),
        (dict(SWIN, name="swin"), "model.name is 'swin', which is none of"),
        (dict(SWIN, name="swin-v2-"), "model.name is 'swin-v2-', which is none of"),
        (dict(SWIN, dim=64), "model.dim is 64, but swin-v2-tiny28 has 48"),
        (dict(SWIN, pooling="class"), "model.pooling is 'class', but swin-v2-tiny28"),
        (dict(SWIN, qk_norm="rms"), "model.qk_norm is 'rms', but swin-v2-tiny28 has"),
        (dict(SWIN, norm_clamp="penalty"), "model.norm_clamp is 'penalty', but swin"),
        (dict(SWIN, name="swin-tiny28"), "Missing key(s) in state_dict"),
        (XCIT, "the weights hold no patches.convs.0.weight with 2 dimensions"),
        (dict(XCIT, name="xcit-nano-12-p4"), "'xcit-nano-12-p4', which is none of"),
        (dict(XCIT, name="xcit"), "model.name is 'xcit', which is none of"),
    ],
)
def test_configs_that_cannot_be(run, model, message):  # noqa: F811
    write_config(run, model=model)
    of_xcit = "xcit" in model["name"] and "hold no" not in message
    write_best(run, (xcit() if of_xcit else swin()).state_dict())
    assert message in refusal(run, best=True)


def test_of_images_alone(run):  # noqa: F811
    write_config(run, task=dict(name="text"), model=SWIN)
    write_best(run, swin().state_dict())
    message = "model.name is 'swin-v2-tiny28', but task.name 'text' has no images"
    assert message in refusal(run, best=True)


def rows_of(page, start):
    lines = re.findall(rf"^\| `{start}.*$", (DOCS / page).read_text(), flags=re.M)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def made(monkeypatch, kind, name, sizes):
    """What the class is called with."""
    calls = []
    monkeypatch.setattr(named, kind, lambda *a, **k: calls.append((a, k)))
    model = {**MODEL, **_YOUNG, "name": name, **sizes, "mlp": 4 * sizes["dim"]}
    getattr(named, f"make_{kind.lower()}")(model, classes=3)
    (call,) = calls
    return call


def numbers(cell):
    return tuple(int(n) for n in re.findall(r"\d+", cell))


def test_sizes_of_swin_are_those_of_the_docs(monkeypatch):
    rows = rows_of("models.md", "swin-")
    assert len(rows) == 10
    for name, image, window, width, depths, heads, *_ in rows:
        name = re.sub("(tiny|small|base)$", lambda m: m[0][0], name.strip("`"))
        patch, dim = numbers(image)[-1], int(width)
        sizes = dict(dim=dim, depth=sum(numbers(depths)), heads=numbers(heads)[0])
        sizes.update(patch=patch, pooling="mean")
        found, options = made(monkeypatch, "Swin", name, sizes)
        assert found == (dim, numbers(depths), numbers(heads))
        assert options["window"] == numbers(window)[0]
        assert options["version"] == (2 if "-v2-" in name else 1)
        assert options["patch_size"] == patch


def test_sizes_of_xcit_are_those_of_the_docs(monkeypatch):
    rows = rows_of("models.md", r"\w+_(?:12|24)_p16`, `_p8` ")
    assert len(rows) == 7
    for names, _, width, depth, heads, scale, tokens_norm, _ in rows:
        for patch in (16, 8):
            stem = names.split("`")[1].replace("_", "-")[: -len("-p16")]
            sizes = dict(dim=int(width), depth=int(depth), heads=numbers(heads)[0])
            rest = dict(patch=patch, pooling="class", layer_scale=float(scale))
            name = f"xcit-{stem}-p{patch}"
            found, options = made(monkeypatch, "XCiT", name, {**sizes, **rest})
            assert found == tuple(sizes.values())
            assert options["tokens_norm"] == (tokens_norm == "yes")
            assert options["layer_scale"] == float(scale)
            assert options["patch_size"] == patch


def test_parameters_are_counted():
    """Of what is small enough to be made here; docs/models.md has their number."""
    counts = {}
    for family, start in (("", "swin-"), ("xcit-", "tiny[23]")):
        for name, *_, count in rows_of("models.md", start):
            counts[family + name.strip("`")] = count
    grey = dict(channels=1, classes=10)
    colour = dict(channels=3, classes=10)
    small = dict(patch_size=2, window=4)
    models = {
        "swin-tiny28": Swin(48, [2, 4], [3, 6], patch_size=2, **grey),
        "swin-v2-tiny32": Swin(32, [2, 4, 2], [2, 4, 8], version=2, **small, **colour),
        "xcit-tiny28": XCiT(96, 4, 4, patch_size=4, **grey),
        "xcit-tiny32": XCiT(96, 4, 4, patch_size=4, **colour),
    }
    for name, model in models.items():
        count = sum(p.numel() for p in model.parameters())
        assert f"{count:,}" == counts[name]
