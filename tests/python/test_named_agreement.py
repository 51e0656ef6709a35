"""load_run against C++, as test_run_agreement, for Swin and XCiT."""

import pytest
import torch

import polyattn
from data_files import read_idx, write_idx_folder
from polyattn.models import Swin, XCiT, pixel_statistics
from test_run_agreement import (
    LOGIT,
    LOSS,
    evaluate,
    images,
    loss_of,
    pytestmark,  # noqa: F401
    randomise,
    train,
    write_coloured,
)

CUBE = "x^3/sqrt(N)"


@pytest.fixture(scope="module")
def grey(tmp_path_factory):
    """Of 10 x 10 patches of Swin: two by two windows, filled up and shifted, and
    behind them one, filled up from 5 x 5."""
    folder = tmp_path_factory.mktemp("grey")
    train_set, test_set = images(40, 20, 20), images(200, 20, 20, seed=1)
    write_idx_folder(folder, train_set, test_set)
    mean, std = pixel_statistics(train_set[0])
    return folder, dict(mean=mean, std=std), test_set


def named(folder, data, name, activation, task="fashion-mnist", **settings):
    settings.update(model__name=name, model__activation=activation)
    return train(folder, task, data, **settings)


@pytest.mark.parametrize("activation", ["softmax", CUBE])
@pytest.mark.parametrize(
    "name, settings",
    [
        ("swin-tiny28", {}),
        ("swin-tiny28", dict(model__layer_scale=0.1)),
        ("swin-v2-tiny28", {}),
        ("xcit-tiny28", {}),
    ],
)
def test_loss(tmp_path, grey, name, settings, activation):
    folder, statistics, (pixels, labels) = grey
    run = named(tmp_path / "run", folder, name, activation, **settings)
    model = randomise(run, **statistics)
    assert isinstance(model, XCiT if name.startswith("xcit") else Swin)
    loss = loss_of(model, [model.preprocess(pixels)], labels)
    found = evaluate(run, "--best")
    assert found["examples"] == 200
    assert loss == pytest.approx(found["loss"], **LOSS)


@pytest.mark.parametrize("name", ["swin-v2-tiny28", "xcit-tiny28"])
def test_every_logit_of_an_image(tmp_path, grey, name):
    """A test set of one image, with each label in turn."""
    folder, statistics, (pixels, _) = grey
    run = named(tmp_path / "run", folder, name, CUBE)
    model = randomise(run, **statistics)
    train_set = [
        read_idx(folder / f"train-{part}-ubyte.gz")
        for part in ("images-idx3", "labels-idx1")
    ]
    with torch.no_grad():
        log_p = model(model.preprocess(pixels[:1])).log_softmax(dim=1)[0]
    for label in range(10):
        one = (pixels[:1], torch.tensor([label], dtype=torch.uint8))
        write_idx_folder(tmp_path / "one", train_set, one)
        loss = evaluate(run, "--best", "--data", tmp_path / "one")["loss"]
        assert -log_p[label].item() == pytest.approx(loss, abs=LOGIT, rel=0)
    assert log_p.max() - log_p.min() > 0.5  # they differ by more than that


@pytest.mark.parametrize("name", ["swin-tiny32", "swin-v2-tiny32", "xcit-tiny32"])
def test_coloured_images(tmp_path, name):
    splits = write_coloured(tmp_path / "data")
    size = dict(task__image_size=8)
    run = named(tmp_path / "run", tmp_path / "data", name, CUBE, task="images", **size)
    model = randomise(run)  # mean and deviation are in the record
    expected = pixel_statistics(splits["train"][0])
    assert (model.mean, model.std) == tuple(pytest.approx(e) for e in expected)
    pixels, labels = splits["test"]
    loss = loss_of(model, [model.preprocess(pixels)], labels)
    assert loss == pytest.approx(evaluate(run, "--best")["loss"], **LOSS)


@pytest.mark.parametrize("name", ["swin-v2-tiny28", "xcit-tiny28"])
def test_weights_that_were_trained(tmp_path, grey, name):
    """The last ones, averaged, with what BatchNorm has seen."""
    folder, statistics, (pixels, labels) = grey
    run = named(tmp_path / "run", folder, name, CUBE, steps=6, train__ema=0.5)
    model = polyattn.load_run(run, **statistics)
    found = evaluate(run)
    assert model.run.step == found["step"] == 6
    if name.startswith("xcit"):
        assert model.blocks[0].local.norm.running_var.ne(1).all()
    loss = loss_of(model, [model.preprocess(pixels)], labels)
    assert loss == pytest.approx(found["loss"], **LOSS)
