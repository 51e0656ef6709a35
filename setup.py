"""Builds the torch ops with CMake, for the torch of this environment.

Everything else is in pyproject.toml. POLYATTN_BUILD names a CMake build folder to
take the library from, in the place of one of its own.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

ROOT = Path(__file__).resolve().parent
LIBRARY = "libpolyattn_torch.so"
TOOLS = "g++ 12 or clang 14, CMake 3.25 and Highway (on Debian: g++ cmake libhwy-dev)"


def fail(message):
    sys.exit(f"[polyattn] {message}")


def find_torch():
    try:
        import torch
    except ImportError:
        fail(
            "no torch to build against. Install torch first, then run "
            "`pip install --no-build-isolation .`: with build isolation pip hides "
            "the torch of your environment"
        )
    return torch


def own_version():
    text = (ROOT / "include/polyattn/version.h").read_text()
    return ".".join(re.findall(r"VERSION_\w+ (\d+)", text))


def run(*command):
    print("[polyattn]", *command, flush=True)
    if subprocess.run([str(word) for word in command]).returncode:
        fail(f"`{command[0]} {command[1]}` failed, see above. It takes {TOOLS}")


def configure(torch, folder):
    """The core and the torch ops alone, on torch's threads."""
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_PREFIX_PATH": torch.utils.cmake_prefix_path,
        "CMAKE_SKIP_BUILD_RPATH": "ON",
        "POLYATTN_CLI": "OFF",
        "POLYATTN_INSTALL": "OFF",
        "POLYATTN_OPENMP": "OFF",
        "POLYATTN_TESTS": "OFF",
        "POLYATTN_TORCH": "ON",
    }
    settings = [f"-D{name}={value}" for name, value in options.items()]
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    cache = folder / "CMakeCache.txt"
    if cache.is_file():
        if f"CMAKE_HOME_DIRECTORY:INTERNAL={ROOT}\n" in cache.read_text():
            generator = []  # the one it has
        else:
            shutil.rmtree(folder)  # of a clone that was moved
    run("cmake", "-S", ROOT, "-B", folder, *generator, *settings)


def build_library(torch):
    """Returns the folder of the package that CMake put together."""
    if not shutil.which("cmake"):
        fail(f"there is no cmake. It takes {TOOLS}")
    named = os.environ.get("POLYATTN_BUILD")
    folder = Path(named) if named else ROOT / "build" / f"torch-{torch.__version__}"
    if not named:
        configure(torch, folder)
    jobs = ("--parallel", os.cpu_count() or 1)
    run("cmake", "--build", folder, "--target", "polyattn_python", *jobs)
    return folder / "python" / "polyattn"


class BuildWithLibrary(build_py):
    def run(self):
        if getattr(self, "editable_mode", False):
            fail("no editable installs: build with CMake and set PYTHONPATH to python/")
        # What an earlier build left there is not part of this one.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        built = build_library(find_torch())
        for name in (LIBRARY, "_build.py"):
            self.copy_file(built / name, Path(self.build_lib) / "polyattn" / name)


class PlatformWheel(bdist_wheel):
    """The library knows nothing of Python: a wheel for the platform."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class BinaryDistribution(Distribution):
    """setuptools does not see that the library, which CMake builds, is binary."""

    def has_ext_modules(self):
        return True


# torch keeps its binary interface within a minor version only, which the package
# checks when it is imported. It is not a requirement of the wheel: pip would go on to
# torch's own requirements, which Debian's packages do not meet to the letter.
torch_minor = ".".join(find_torch().__version__.split(".")[:2])
setup(
    version=f"{own_version()}+torch{torch_minor}",
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel},
    distclass=BinaryDistribution,
)
