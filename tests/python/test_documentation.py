"""docs/python.md: its examples run, in their order, and print what it says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

pytest.importorskip("torchvision")

PAGE = (Path(__file__).parents[2] / "docs/python.md").read_text()


def test_examples():
    names = {}
    printed = io.StringIO()
    examples = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(examples) == 13
    with contextlib.redirect_stdout(printed):
        for example in examples:
            exec(compile(example, "docs/python.md", "exec"), names)

    lines = printed.getvalue().splitlines()
    promised = re.findall(r"^print\(.*\)  # (.*)$", PAGE, flags=re.MULTILINE)
    shown = re.search(r"\nprints\n\n((?:    .*\n)+)", PAGE).group(1)
    promised += [line[4:] for line in shown.splitlines()]
    assert len(promised) == 13
    for line in promised:
        assert line in lines
    assert lines[lines.index("x^3/sqt(N)") + 1].strip() == "^"
