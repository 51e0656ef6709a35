"""python -m polyattn."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import polyattn
from polyattn import __main__ as program

LIBRARY = Path(polyattn.__file__).parent / "libpolyattn_torch.so"


def run(*arguments, **variables):
    environment = {**os.environ, "PYTHONPATH": str(LIBRARY.parents[1]), **variables}
    done = subprocess.run(
        [sys.executable, "-m", "polyattn", *arguments],
        env=environment,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def test_text():
    status, output = run(OMP_NUM_THREADS="1")
    assert status == 0, output
    names = [line[:15].rstrip() for line in output.splitlines()]
    assert names == [
        "polyattn",
        "torch",
        "Python",
        "instruction set",
        "threads",
        "library",
        "self-test",
    ]
    assert all(line[15:17] == "  " and line[17] != " " for line in output.splitlines())
    values = {line[:15].rstrip(): line[17:] for line in output.splitlines()}
    assert values["polyattn"] == polyattn.__version__
    assert values["torch"].startswith(f"{torch.__version__} (built against ")
    assert values["Python"] == platform.python_version()
    assert values["threads"] == "1"
    assert values["library"] == str(LIBRARY)
    assert values["self-test"].startswith("ok: largest error ")


def test_json():
    status, output = run("--json")
    assert status == 0, output
    found = json.loads(output)
    assert found["polyattn"] == polyattn.__version__
    assert found["torch"] == torch.__version__
    assert found["torch"].split(".")[:2] == found["built_against"].split(".")[:2]
    assert found["library"] == str(LIBRARY)
    assert found["instruction_set"] == torch.ops.polyattn.active_target()
    test = found["self_test"]
    assert test["ok"] is True and 0 < test["largest_error"] < test["limit"]


def test_another_library_and_instruction_set():
    status, output = run(POLYATTN_TARGET="abacus")
    assert status == 1
    assert output.startswith('[target] "abacus" is not a target of this machine')
    others = output.split("there are: ")[1].split("\n")[0].split(", ")
    variables = dict(POLYATTN_LIBRARY=str(LIBRARY), POLYATTN_TARGET=others[-1])
    status, output = run("--json", **variables)
    assert status == 0, output
    found = json.loads(output)
    assert found["built_against"] is None
    assert found["instruction_set"] == others[-1]


@pytest.mark.parametrize(
    "spoil, shown",
    [
        (lambda y: y * 1.001, "FAILED: largest error 1.0e-03 (limit"),
        (lambda y: y * float("nan"), "FAILED: largest error not finite (limit"),
    ],
)
def test_failure(monkeypatch, capsys, spoil, shown):
    def attention(*arguments, **options):
        y = polyattn.attention(*arguments, **options)
        return spoil(y) if options["activation"] == "sigmoid" else y

    monkeypatch.setattr(program, "attention", attention)
    assert program.main([]) == 1
    assert shown in capsys.readouterr().out
    assert program.main(["--json"]) == 1
    found = json.loads(capsys.readouterr().out)["self_test"]
    assert found["ok"] is False
    assert found["largest_error"] is None or found["largest_error"] > found["limit"]


@pytest.mark.parametrize("formula", program._FORMULAS)
@pytest.mark.parametrize("causal", [False, True])
def test_every_formula_is_compared(monkeypatch, formula, causal):
    """A wrong gradient of any shows."""

    def attention(*arguments, **options):
        y = polyattn.attention(*arguments, **options)
        if (options["activation"], options["is_causal"]) != (formula, causal):
            return y
        return y.detach() + 1.01 * (y - y.detach())

    assert program._self_test()["ok"]
    monkeypatch.setattr(program, "attention", attention)
    assert not program._self_test()["ok"]


def test_usage():
    status, output = run("--help")
    assert status == 0 and output.startswith("usage: python -m polyattn")
    status, output = run("--jsn")
    assert status == 2 and "unrecognized arguments: --jsn" in output
