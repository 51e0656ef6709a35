"""PyTorch's softmax model and ours make the same steps: examples/pytorch_steps.py."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import polyattn

NAMED = os.environ.get("POLYATTN")
PROGRAM = Path(NAMED or Path(polyattn.__file__).parents[2] / "polyattn")
SCRIPT = Path(__file__).parents[2] / "examples" / "pytorch_steps.py"
STEPS = 50

pytestmark = pytest.mark.skipif(
    not NAMED and not PROGRAM.is_file(),
    reason=f"no program {PROGRAM} (POLYATTN names another): this build has no CLI",
)

# Short expressions, so that batches have padding.
EXPRESSIONS = (
    "task.min_length=8",
    "task.max_length=40",
    "task.train_count=3000",
    "task.test_count=100",
)
# Weights decay and gradients are clipped, so that these are compared too.
SETTINGS = (
    "task.validation=0.1",
    "train.batch=16",
    f"train.steps={STEPS}",
    "train.lr=2e-3",
    "train.weight_decay=0.1",
    "train.clip=0.5",
    "train.label_smoothing=0.1",
    "record.norms=0",
    "record.every=1",
    "model.dim=16",
    "model.mlp=24",
)


def run(*words):
    return subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def done(*words):
    ended = run(*words)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout


def sets(*more, task="listops"):
    own = EXPRESSIONS if task == "listops" else ()
    return [word for text in (*own, *SETTINGS, *more) for word in ("--set", text)]


def prepare(folder, *more, batches=STEPS, task="listops"):
    words = ("--batches", batches, "--repeats", 1, "--out", folder)
    words += tuple(sets(*more, task=task))
    done(PROGRAM, "bench", "time-to-quality", task, "--prepare", *words)
    return folder / "steps.safetensors"


def pytorch(steps, folder, *words):
    path = folder / "pytorch.json"
    done(sys.executable, SCRIPT, steps, "--json", path, *words)
    return json.loads(path.read_text())


def ours(folder, *more, task="listops"):
    words = ("--threads", 1, "--out", folder / "run", *sets(*more, task=task))
    done(PROGRAM, "train", "--task", task, *words)
    records = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in records]
    return [record["loss"] for record in found if record["kind"] == "train"]


def coloured_images(folder):
    """Files of CIFAR-10, a few images in each: brighter from class to class."""
    draw = torch.Generator().manual_seed(4)
    folder.mkdir()
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        labels = torch.randint(10, (30, 1), generator=draw)
        noise = torch.randint(60, (30, 3072), generator=draw)
        records = torch.cat([labels, noise + 15 * labels], 1)
        (folder / f"{name}.bin").write_bytes(bytes(records.flatten().tolist()))
    return folder


@pytest.mark.parametrize(
    "task, pooling",
    [("listops", "mean"), ("listops", "class"), ("cifar10-pixels", "mean")],
)
def test_losses_agree_step_by_step(tmp_path, task, pooling):
    """Both compute in f32, whose noise PyTorch's own model shows against f64: of 50
    steps the largest so far, and of a loss itself half a unit in its last place (2^-23
    of losses from 2 to 4), or what as many roundings as there are tokens in a mean come
    to, if it is more. Two such programs differ by no more than a few times that."""
    settings = [f"model.pooling={pooling}"]
    if task == "cifar10-pixels":
        # 1024 tokens an image: few of them take as long as many expressions.
        settings += ["train.batch=2", "model.depth=1"]
        settings.append(f"task.path={coloured_images(tmp_path / 'images')}")
    steps = prepare(tmp_path, *settings, task=task)
    single = pytorch(steps, tmp_path)["losses"][:STEPS]
    double = pytorch(steps, tmp_path, "--double")["losses"][:STEPS]
    losses = ours(tmp_path, *settings, task=task)
    assert len(losses) == len(single) == len(double) == STEPS
    assert double[-1] < double[0] - 0.01  # something was learned
    tokens = 1024 if task == "cifar10-pixels" else 1
    noise = max(2.0**-23, 2.0**-24 * tokens**0.5)
    for step in range(STEPS):
        noise = max(noise, abs(single[step] - double[step]))
        assert abs(losses[step] - double[step]) <= 4 * noise, step
        # And far below what any difference in the model would make.
        assert abs(losses[step] - double[step]) < 1e-5


def test_another_rule_of_the_optimiser_would_show(tmp_path):
    """What the test above could not see if its tolerance were too wide."""
    plain = pytorch(prepare(tmp_path), tmp_path, "--double")
    decayed = prepare(tmp_path / "other", "train.weight_decay=0.0")
    other = pytorch(decayed, tmp_path / "other", "--double")
    assert abs(plain["losses"][STEPS - 1] - other["losses"][STEPS - 1]) > 1e-5


def test_times_are_of_the_rounds_after_the_first(tmp_path):
    found = pytorch(prepare(tmp_path, batches=3), tmp_path)
    assert len(found["losses"]) == 6
    assert len(found["processor_seconds"]) == len(found["seconds"]) == 1
    assert found["processor_seconds"][0] > 0 and found["threads"] == 1


def test_from_runs_to_the_table(tmp_path):
    """The whole tool, on a model that learns next to nothing."""
    more = ("train.steps=4", "record.evaluate=2", "task.test_limit=50")
    words = ("--batches", 2, "--repeats", 1, "--seeds", 1, "--out", tmp_path)
    words += ("--activations", "softmax,x/N", *sets(*more))
    command = (PROGRAM, "bench", "time-to-quality", "listops", *words)
    done(*command, "--prepare")
    found = pytorch(tmp_path / "steps.safetensors", tmp_path)
    path = tmp_path / "pytorch.json"
    document = json.loads(done(*command, "--pytorch", path, "--json"))
    table = document["time_to_quality"]
    assert [row["model"] for row in table] == ["softmax", "softmax", "x/N"]
    assert found["torch"] in table[0]["by"] and table[1]["by"] == "polyattn"
    for row in table:
        assert row["step_processor_seconds"] > 0
    # Softmax gets there by definition, at the end or before.
    assert table[1]["steps"] in (2, 4)
    assert table[0]["processor_seconds"] == pytest.approx(
        table[0]["steps"] * table[0]["step_processor_seconds"]
    )
    assert len(document["quality_curves"][2]["accuracy"]) == 2
    assert len(document["rows"]) == 2
    assert [row["goal"] for row in document["rows"]] == [None, None]  # --set task.*

    found["losses"][1] += 0.01
    path.write_text(json.dumps(found))
    ended = run(*command, "--pytorch", path)
    assert ended.returncode == 1 and b"it is not the same model" in ended.stderr
    found["steps"] = "0123"
    path.write_text(json.dumps(found))
    ended = run(*command, "--pytorch", path)
    assert ended.returncode == 1 and b"is of other steps (0123, not" in ended.stderr


@pytest.mark.parametrize(
    "words, message",
    [
        (["cifar10"], "no task of sequences"),
        (["listops", "--set", "task.validation=0"], "task.validation is 0"),
        (["listops", "--activations", "x/N,softmax"], "softmax comes first"),
        (["listops", "--set", "model.norm=rms"], "only the plain layers"),
        (
            ["listops", "--set", "model.head=mlp", "--set", "model.pooling=padded"],
            'model.pooling is "padded", not "mean"; model.head is "mlp"',
        ),
        (["sotu-pairs"], "sotu-pairs has pairs"),
        (["listops", "--set", "model.dropout=0.1"], "model.dropout is 0.1, not 0"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(tmp_path, words, message):
    command = (PROGRAM, "bench", "time-to-quality", *words, "--out", tmp_path / "q")
    ended = run(*command, "--prepare", "--set", "train.steps=2")
    assert ended.returncode == 2 and message in ended.stderr.decode()
    assert not (tmp_path / "q").exists()


def test_files_that_are_no_steps_are_refused(tmp_path):
    path = tmp_path / "steps.safetensors"
    for data in (b"", b"12345678", b"\x02" + bytes(7) + b"{}"):
        path.write_bytes(data)
        ended = run(sys.executable, SCRIPT, path)
        assert ended.returncode == 1, ended.stderr
        assert str(path) in ended.stderr.decode()
        assert "Traceback" not in ended.stderr.decode()
