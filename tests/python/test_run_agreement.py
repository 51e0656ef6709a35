"""load_run against C++: runs of `polyattn train`, evaluated by `polyattn eval`.

C++ tells the mean loss over a test set. To see every parameter at work, the weights
of a run are replaced by random ones, none of them neutral, with rows so small that
the eps of the norms counts. A loss over all examples then depends on every logit.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import polyattn
from data_files import read_idx, write_idx_folder, write_png
from polyattn.models import pixel_statistics
from test_runs import write_best


# In the build folder that the package is in, unless the environment names one, which
# must be there then.
NAMED = os.environ.get("POLYATTN")
PROGRAM = Path(NAMED or Path(polyattn.__file__).parents[2] / "polyattn")
FASHION = Path("/usr/share/datasets/fashion-mnist")

pytestmark = pytest.mark.skipif(
    not NAMED and not PROGRAM.is_file(),
    reason=f"no program {PROGRAM} (POLYATTN names another): this build has no CLI",
)

# Of a mean over hundreds of losses in f32, which C++ and Python compute by the same
# steps: errors of 2^-24 that the order of a sum makes do not add up, but cancel.
LOSS = dict(rel=1e-6)
LOGIT = 1e-5

PARTS = dict(
    kv_heads=1,
    learned_scale="true",
    output_norm="rms",
    output_gate="true",
    center_values="true",
)


def command(*words):
    done = subprocess.run(
        [str(PROGRAM), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def train(folder, task, path, steps=1, **settings):
    sets = [f"train.steps={steps}", "train.batch=16", "record.norms=0"]
    if path is not None:
        sets.append(f"task.path={path}")
    sets += [f"{key.replace('__', '.')}={value}" for key, value in settings.items()]
    words = [word for key in sets for word in ("--set", key)]
    command("train", "--task", task, *words, "--out", folder, "--threads", 1)
    return folder


def evaluate(folder, *words):
    return json.loads(command("eval", folder, "--json", "--threads", 1, *words))


def model_keys(**settings):
    return {f"model__{key}": value for key, value in settings.items()}


def randomise(folder, **options):
    """Random weights into the place of the best ones; returns the model."""
    model = polyattn.load_run(folder, best=True, **options)
    draw = torch.Generator().manual_seed(5)
    rows = ("patches", "tokens", "positions", "class_token", "dist_token")
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.startswith(rows):
                p.normal_(0.0, 2e-3, generator=draw)
            elif p.dim() == 1:  # norms, biases, scales
                p.normal_(0.5, 0.3, generator=draw)
            else:
                p.normal_(0.0, 1.0 / p[0].numel() ** 0.5, generator=draw)
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(0.0, 0.3, generator=draw)
            elif name.endswith("running_var"):
                buffer.uniform_(0.5, 2.0, generator=draw)
        if hasattr(model, "tokens") and getattr(model, "head", None) is None:
            model.norm.weight.mul_(1e3)  # the table is small, logits are not to be
            model.norm.bias.mul_(1e3)
    write_best(folder, model.state_dict())
    return polyattn.load_run(folder, best=True, **options)


def images(count, *shape, classes=10, seed=0):
    """Bytes, brighter in some places than in others, and labels."""
    draw = torch.Generator().manual_seed(seed)
    pixels = torch.rand(count, *shape, generator=draw) ** 2 * 255
    labels = torch.randint(classes, (count,), generator=draw)
    return pixels.to(torch.uint8), labels.to(torch.uint8)


def loss_of(model, inputs, labels):
    with torch.no_grad():
        logits = model(*inputs)
    return F.cross_entropy(logits.flatten(0, -2), labels.long().flatten()).item()


@pytest.fixture(scope="module")
def grey(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grey")
    train_set, test_set = images(40, 12, 12), images(300, 12, 12, seed=1)
    write_idx_folder(folder, train_set, test_set)
    mean, std = pixel_statistics(train_set[0])
    return folder, dict(mean=mean, std=std), test_set


@pytest.mark.parametrize(
    "settings",
    [
        dict(activation="softmax"),
        dict(activation="x^3/sqrt(N)", pooling="class", layer_scale=0.0),
        dict(activation="relu^2/N", norm="rms", qk_norm="layer", norm_clamp="penalty"),
        dict(
            activation="x^3/sqrt(N)",
            pooling="class",
            qk_norm="rms",
            learned_coefficients="head",
            short_conv=3,
            **PARTS,
        ),
        dict(activation="1 + x + x^2/2", short_conv=3, learned_coefficients="shared"),
        dict(activation="x^3/sqrt(N)", name="vit-distilled", short_conv=3),
    ],
)
def test_images(tmp_path, grey, settings):
    folder, statistics, (pixels, labels) = grey
    run = train(tmp_path / "run", "fashion-mnist", folder, **model_keys(**settings))
    model = randomise(run, **statistics)
    found = evaluate(run, "--best")
    assert found["examples"] == 300
    loss = loss_of(model, [model.preprocess(pixels)], labels)
    assert loss == pytest.approx(found["loss"], **LOSS)


def test_every_logit_of_an_image(tmp_path, grey):
    """A test set of one image, with each label in turn."""
    folder, statistics, (pixels, _) = grey
    settings = model_keys(activation="x^3/sqrt(N)", **PARTS)
    run = train(tmp_path / "run", "fashion-mnist", folder, **settings)
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


def write_coloured(folder):
    """Images of two classes, in files; what is in them."""
    splits = {
        name: images(30, 3, 8, 8, classes=2, seed=i)
        for i, name in enumerate(("train", "test"))
    }
    for split, (pixels, labels) in splits.items():
        for i, (image, label) in enumerate(zip(pixels, labels)):
            target = folder / split / "ab"[label] / f"{i}.png"
            target.parent.mkdir(parents=True, exist_ok=True)
            write_png(target, image)
    return splits


def test_coloured_images(tmp_path):
    splits = write_coloured(tmp_path / "data")
    settings = dict(task__image_size=8, **model_keys(dim=16, depth=2))
    run = train(tmp_path / "run", "images", tmp_path / "data", **settings)
    model = randomise(run)  # mean and deviation are in the record
    expected = pixel_statistics(splits["train"][0])
    assert (model.mean, model.std) == tuple(pytest.approx(e) for e in expected)
    pixels, labels = splits["test"]
    loss = loss_of(model, [model.preprocess(pixels)], labels)
    assert loss == pytest.approx(evaluate(run, "--best")["loss"], **LOSS)


def test_weights_that_were_trained(tmp_path, grey):
    """The last ones, averaged, as training leaves them."""
    folder, statistics, (pixels, labels) = grey
    settings = {"train__ema": 0.9, **model_keys(activation="x^3/sqrt(N)")}
    run = train(tmp_path / "run", "fashion-mnist", folder, steps=30, **settings)
    model = polyattn.load_run(run, **statistics)
    found = evaluate(run)
    assert model.run.step == found["step"] == 30
    loss = loss_of(model, [model.preprocess(pixels)], labels)
    assert loss == pytest.approx(found["loss"], **LOSS)


def test_a_student(tmp_path, grey):
    """Named sizes, a teacher, and the logits of both heads."""
    folder, statistics, (pixels, labels) = grey
    teacher = train(tmp_path / "teacher", "fashion-mnist", folder)
    settings = dict(model__name="deit-tiny32-distilled", train__teacher=teacher)
    run = train(tmp_path / "run", "fashion-mnist", folder, **settings)
    model = polyattn.load_run(run, **statistics)
    assert (len(model.blocks), model.head_dist.weight.shape) == (6, (10, 192))
    images = model.preprocess(pixels)
    assert loss_of(model, [images], labels) == pytest.approx(
        evaluate(run)["loss"], **LOSS
    )
    with torch.no_grad():
        head, head_dist = model.distilled_logits(images)
        assert torch.equal(model(images), (head + head_dist) / 2)
        assert not torch.allclose(head, head_dist)


@pytest.mark.skipif(
    not FASHION.is_dir(), reason="no Fashion-MNIST (Debian: dataset-fashion-mnist)"
)
def test_fashion_mnist(tmp_path):
    """The whole set, whose mean and deviation are known."""
    settings = {"task__test_limit": 512, **model_keys(activation="x^3/sqrt(N)")}
    run = train(tmp_path / "run", "fashion-mnist", None, **settings)
    model = polyattn.load_run(run)
    pixels = read_idx(FASHION / "t10k-images-idx3-ubyte.gz")[:512]
    labels = read_idx(FASHION / "t10k-labels-idx1-ubyte.gz")[:512]
    loss = loss_of(model, [model.preprocess(pixels)], labels)
    assert loss == pytest.approx(evaluate(run)["loss"], **LOSS)
    mean, std = pixel_statistics(read_idx(FASHION / "train-images-idx3-ubyte.gz"))
    assert (model.mean, model.std) == (pytest.approx(mean), pytest.approx(std))


@pytest.mark.parametrize(
    "settings",
    [
        dict(activation="softmax", window=5),
        dict(activation="x^3/sqrt(N)", positions="learned", tied="false"),
        dict(
            activation="x^2/sqrt(N)",
            qk_norm="layer",
            learned_coefficients="head",
            short_conv=4,
            layer_scale=0.1,
            window=7,
            **PARTS,
        ),
        dict(activation="x^2/sqrt(N)", decay="head", kv_heads=1),
        dict(activation="x^3/sqrt(N)", decay="gate", output_norm="rms"),
    ],
)
def test_texts(tmp_path, settings):
    draw = torch.Generator().manual_seed(2)
    text = bytes(torch.randint(256, (8000,), generator=draw).tolist())
    (tmp_path / "text").write_bytes(text)
    settings = {"task__context": 24, **model_keys(dim=32, depth=2, **settings)}
    run = train(tmp_path / "run", "text", tmp_path / "text", **settings)
    model = randomise(run)
    found = evaluate(run, "--best")
    # Every byte of the last tenth but the first, in windows one after the other.
    assert 700 < found["examples"] < 900
    held = torch.tensor(list(text[-found["examples"] - 1 :]))
    loss = 0.0
    for inputs, targets in zip(held[:-1].split(24), held[1:].split(24)):
        with torch.no_grad():
            loss += model.loss(inputs[None], targets[None]).item() * len(inputs)
    assert loss / found["examples"] == pytest.approx(found["loss"], **LOSS)


@pytest.mark.parametrize(
    "settings",
    [
        dict(activation="x^3/sqrt(N)"),
        dict(
            activation="sigmoid",
            pooling="class",
            positions="rotary",
            norm="rms",
            qk_norm="rms",
            short_conv=2,
            window=6,
            **PARTS,
        ),
        dict(
            activation="x^3/sqrt(N)",
            attention="nystrom",
            landmarks=8,
            landmark_conv=5,
        ),
        dict(
            activation="softmax",
            attention="nystrom",
            pooling="class",
            landmarks=10,
            landmark_conv=0,
            landmark_inverse="exact",
        ),
    ],
)
def test_sequences_of_different_lengths(tmp_path, settings):
    draw = torch.Generator().manual_seed(2)
    reviews = []
    for split in ("train", "test"):
        for label, kind in enumerate(("neg", "pos")):
            folder = tmp_path / "data" / split / kind
            folder.mkdir(parents=True)
            for i in range(40):
                length = int(torch.randint(1, 60, (1,), generator=draw))
                review = torch.randint(1, 127, (length,), generator=draw)
                (folder / f"{i}.txt").write_bytes(bytes(review.tolist()))
                if split == "test":
                    reviews.append((review + 1, label))
    settings = {"task__context": 48, **model_keys(dim=16, depth=2, **settings)}
    run = train(tmp_path / "run", "imdb", tmp_path / "data", **settings)
    model = randomise(run)
    found = evaluate(run, "--best")
    assert found["examples"] == len(reviews) == 80
    tokens = torch.zeros(80, 48, dtype=torch.long)
    for row, (review, _) in zip(tokens, reviews):
        row[: len(review)] = review[:48]
    lengths = torch.tensor([min(len(review), 48) for review, _ in reviews])
    labels = torch.tensor([label for _, label in reviews])
    loss = loss_of(model, [tokens, lengths], labels)
    assert loss == pytest.approx(found["loss"], **LOSS)


def test_pairs_of_sequences(tmp_path):
    draw = torch.Generator().manual_seed(3)
    folder = tmp_path / "data"
    folder.mkdir()

    def text():
        length = int(torch.randint(1, 60, (1,), generator=draw))
        return bytes(torch.randint(97, 123, (length,), generator=draw).tolist())

    pairs = {}
    for split in ("train", "test"):
        pairs[split] = [(text(), text(), i % 2) for i in range(40)]
        lines = [b"%d.0\ta\tb\t%s\t%s\n" % (label, a, b) for a, b, label in pairs[split]]
        (folder / f"new_aan_pairs.{split}.tsv").write_bytes(b"".join(lines))
    settings = {"task__context": 48, **model_keys(dim=16, depth=2)}
    run = train(tmp_path / "run", "aan", folder, **settings)
    model = randomise(run)
    found = evaluate(run, "--best")
    assert found["examples"] == 40
    texts = [text for a, b, _ in pairs["test"] for text in (a, b)]
    tokens = torch.zeros(80, 48, dtype=torch.long)
    for row, text in zip(tokens, texts):
        row[: len(text)] = torch.tensor(list(text[:48])) + 1
    lengths = torch.tensor([min(len(text), 48) for text in texts])
    labels = torch.tensor([label for _, _, label in pairs["test"]])
    loss = loss_of(model, [tokens, lengths], labels)
    assert loss == pytest.approx(found["loss"], **LOSS)


def test_what_only_cpp_computes(tmp_path, grey):
    settings = model_keys(activation="x^3/sqrt(N)", norm_clamp="rescale")
    run = train(tmp_path / "run", "fashion-mnist", grey[0], **settings)
    with pytest.raises(ValueError, match="'rescale', which only C.. computes"):
        polyattn.load_run(run)
