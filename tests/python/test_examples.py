"""The programs in examples/ run, and what they print is what it should be."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import polyattn
from data_files import write_idx_folder

pytest.importorskip("torchvision")

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(Path(polyattn.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *map(str, arguments)],
        env=environment,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def stripes(tmp_path_factory):
    """Images of which a few steps learn something: the class is a bright row."""
    draw = torch.Generator().manual_seed(0)

    def split(count):
        labels = torch.randint(10, (count,), generator=draw)
        images = torch.randint(120, (count, 28, 28), generator=draw)
        for image, label in zip(images, labels):
            image[2 * label : 2 * label + 4] += 135
        return images.to(torch.uint8), labels.to(torch.uint8)

    folder = tmp_path_factory.mktemp("stripes")
    write_idx_folder(folder, split(1000), split(500))
    return folder


@pytest.mark.parametrize("activation", ["x^3/sqrt(N)", "1 + x + x^2/2"])
def test_train_vit(stripes, activation):
    arguments = ("--steps", 40, "--data", stripes, "--activation", activation)
    status, output = run("train_vit.py", *arguments)
    assert status == 0, output
    assert output.startswith(f"{activation} in 4 modules:\n")
    assert output.count(f"softmax -> {activation}") == 4
    assert len(re.findall(r"head \d: [0-9.]+ -> [0-9.]+, softmax", output)) == 16

    losses = [float(x) for x in re.findall(r"^step \d+: loss (.*)$", output, re.M)]
    assert len(losses) == 11
    assert losses[0] == pytest.approx(2.3, abs=0.1)  # ten classes, all alike
    assert losses[-1] < losses[0] - 0.5

    # A tenth is chance; 0.2 is four deviations above it, of 500 guesses.
    (accuracy,) = re.findall(r"^accuracy (.*) %$", output, re.M)
    assert 20 < float(accuracy) <= 100
    norms = re.findall(r"^norms of the heads: (.*)$", output, re.M)
    assert len(norms) == 4
    for line in norms:
        heads = [float(norm) for norm in line.split()]
        assert len(heads) == 4 and all(0 < norm < 100 for norm in heads)


def test_train_vit_says_what_is_wrong(tmp_path):
    status, output = run("train_vit.py", "--data", tmp_path)
    assert status == 1
    assert "train-images-idx3-ubyte.gz" in output
    status, output = run("train_vit.py", "--steps", "many")
    assert status == 2 and "invalid int value: 'many'" in output
