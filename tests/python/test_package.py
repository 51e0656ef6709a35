"""The package as users meet it: installed, or not quite."""

import doctest
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

import polyattn
from polyattn import _library

BUILD = Path(polyattn.__file__).parent.parent
REPOSITORY = Path(__file__).parents[2]
VERSION_HEADER = REPOSITORY / "include/polyattn/version.h"


def python(*arguments, path, **variables):
    """Runs Python with this PYTHONPATH; returns what it printed, errors last."""
    environment = {**os.environ, "PYTHONPATH": str(path), **variables}
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.fixture
def package(tmp_path):
    """A copy of the package that may be spoilt."""
    shutil.copytree(BUILD / "polyattn", tmp_path / "polyattn")
    return tmp_path


def import_from(path, **variables):
    return python("-c", "import polyattn", path=path, **variables)


def test_version_is_that_of_the_header():
    numbers = re.findall(r"VERSION_\w+ (\d+)", VERSION_HEADER.read_text())
    assert polyattn.__version__ == ".".join(numbers)


def test_docstrings_say_what_is_true():
    examples = [
        "DecodeState",
        "activation",
        "attention",
        "attention_varlen",
        "nn.Attention",
        "nn.MultiheadAttention",
    ]
    names = {"polyattn": polyattn, "torch": torch}
    for name in examples:
        found = polyattn
        for part in name.split("."):
            found = getattr(found, part)
        finder = doctest.DocTestFinder(recurse=False)
        (test,) = finder.find(found, name, globs=dict(names))
        assert test.examples
        assert doctest.DocTestRunner().run(test).failed == 0


def make_wheel(folder, path="", **variables):
    """pip wheel on a copy of what setup.py needs where there is a library."""
    source = folder / "source"
    (source / "include/polyattn").mkdir(parents=True)
    shutil.copy(VERSION_HEADER, source / "include/polyattn")
    for name in ("setup.py", "pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(REPOSITORY / name, source)
    shutil.copytree(REPOSITORY / "python/polyattn", source / "python/polyattn")
    pip = ("-m", "pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation")
    return python(*pip, "-w", str(folder), str(source), path=path, **variables)


def test_wheel(tmp_path):
    """pip makes a wheel for this platform, which works away from the build. The
    library is that of this build; scripts/test debian13 has pip build its own."""
    pytest.importorskip("pip")
    pytest.importorskip("wheel")
    status, output = make_wheel(tmp_path, POLYATTN_BUILD=str(BUILD.parent))
    assert status == 0, output
    (wheel,) = tmp_path.glob("*.whl")
    minor = ".".join(torch.__version__.split(".")[:2])
    name = f"polyattn-{polyattn.__version__}+torch{minor}-py3-none-linux"
    assert wheel.name.startswith(name)

    pip = ("-m", "pip", "install", "--quiet", "--no-index", "--no-deps")
    target = tmp_path / "target"
    status, output = python(*pip, "--target", str(target), str(wheel), path="")
    assert status == 0, output
    with zipfile.ZipFile(wheel) as archive:
        files = set(archive.namelist())
    assert {"polyattn/py.typed", "polyattn/libpolyattn_torch.so"} <= files
    assert any(file.endswith("/LICENSE") for file in files)
    check = (
        "import polyattn, torch; q = torch.ones(1, 16, 4); "
        "print(polyattn.__file__); "
        "print(polyattn.attention(q, q, q, activation='x^3/sqrt(N)')[0, 0, 0].item())"
    )
    status, output = python("-c", check, path=target)
    # Sixteen keys with the score 2: the weights are 8/4.
    assert (status, output.split()[-2:]) == (
        0,
        [str(target / "polyattn" / "__init__.py"), "32.0"],
    )


def test_wheel_without_torch_or_cmake(tmp_path):
    """One clear line at the end, not a trace of pip's innards alone."""
    pytest.importorskip("pip")
    pytest.importorskip("wheel")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "torch.py").write_text("raise ImportError('hidden')")
    status, output = make_wheel(tmp_path, path=hidden)
    assert status != 0
    assert "no torch to build against" in output and "--no-build-isolation" in output

    shutil.rmtree(tmp_path / "source")
    tools = tmp_path / "tools"
    tools.mkdir()
    status, output = make_wheel(tmp_path, PATH=str(tools))
    assert status != 0
    assert "there is no cmake" in output and "libhwy-dev" in output


class TestLibrary:
    """In this process, where the library is loaded already."""

    @pytest.fixture(autouse=True)
    def elsewhere(self, monkeypatch, tmp_path):
        monkeypatch.delenv("POLYATTN_LIBRARY", raising=False)
        monkeypatch.setattr(_library, "__file__", str(tmp_path / "_library.py"))
        self.beside = tmp_path / "libpolyattn_torch.so"

    def test_is_beside_the_package(self):
        with pytest.raises(ImportError) as caught:
            _library.load(torch.__version__)
        assert str(caught.value).startswith(f"[polyattn] no file {self.beside} ")
        assert "pip install --no-build-isolation ." in str(caught.value)
        self.beside.write_bytes(b"")
        assert _library.find() == self.beside

    def test_or_where_the_environment_says(self, monkeypatch, tmp_path):
        named = tmp_path / "other.so"
        monkeypatch.setenv("POLYATTN_LIBRARY", str(named))
        with pytest.raises(ImportError, match=r"other.so \(POLYATTN_LIBRARY names it"):
            _library.find()
        named.write_bytes(b"")
        assert _library.find() == named

    def test_for_another_torch(self):
        self.beside.write_bytes(b"")
        with pytest.raises(ImportError) as caught:
            _library.load("0.4.1")
        assert "was built against torch 0.4.1, but this is torch " in str(caught.value)

    def test_that_is_none(self):
        self.beside.write_bytes(b"not a library")
        with pytest.raises(ImportError, match=r"\[polyattn\] cannot load"):
            _library.load(torch.__version__)


def test_library_of_the_environment(package):
    (package / "polyattn" / "libpolyattn_torch.so").unlink()
    built = BUILD / "polyattn" / "libpolyattn_torch.so"
    status, output = import_from(package, POLYATTN_LIBRARY=str(built))
    assert (status, output) == (0, "")


def test_sources_are_not_the_package(package):
    (package / "polyattn" / "_build.py").unlink()
    status, output = import_from(package)
    assert status == 1
    assert "these are the sources of the package" in output
