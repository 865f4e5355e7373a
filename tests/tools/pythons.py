"""Whether the wheel of this checkout works on every supported Python: ``python -m tests.tools.pythons``.

For each version: finds an interpreter (on PATH, under the folder of pyenv, or given as ``--python PATH``), makes an
environment in ``build``, installs the wheel with its dependencies there, imports it, asks it what the machine can do, runs
the code of the README and a part of the tests (``--selection``) against the installed package, and removes the environment
(600 MB each). A version without an interpreter is listed as not found. The exit status is 1 if a version that was found
fails, or none was found.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
# what runs where the sources are not: rooms from parsing to machine code, each as its users see it
SELECTIONS = {
    "short": (
        "script/test_parser.py", "schedule/test_schedule.py", "lower/test_transform_passes.py", "cpu/test_build.py",
    ),
    "core": (
        "arith", "core/test_equal.py", "core/test_python_floor.py", "core/test_memory.py", "core/test_operand_types.py",
        "script/test_parser.py", "script/test_printer.py", "script/test_corpus.py", "script/test_deep_text.py",
        "interp/test_interp.py", "schedule/test_golden_primitives.py", "schedule/test_schedule.py",
        "lower/test_transform_passes.py", "lower/test_storage_rewrite.py", "lower/test_common_subexpr_elim.py",
        "cpu/test_llvm.py", "cpu/test_build.py", "cpu/test_dlpack.py", "te/test_tensors.py", "testing/test_testing.py",
    ),
}  # fmt: skip
IMPORT = "import sys, tir; assert tir.__file__.startswith(sys.prefix), tir.__file__; tir.build"
# what no machine lacks: the rest depends on where this runs
DOCTOR = "import tir; d = tir.doctor(); assert all(d[k].ok for k in ('packages', 'CPU', 'LLVM', 'exact sets')), d"


@dataclass
class Tried:
    """A version of Python, its interpreter (None: there is none), and what happened in each step."""

    version: str
    python: Path | None
    steps: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return any(result.startswith("failed") for result in self.steps.values())

    def __str__(self) -> str:
        if self.python is None:
            return f"{self.version:6} not found"
        return f"{self.version:6} " + "; ".join(f"{step}: {result}" for step, result in self.steps.items())


def interpreter(version: str, given: list[str]) -> Path | None:
    """An interpreter of ``version`` (``"3.12"``): one of those given, on PATH, installed by pyenv, or this one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = shutil.which(f"python{version}")
    candidates = [
        *map(Path, given),
        *([Path(on_path)] if on_path else []),
        *sorted(pyenv.glob(f"{version}.*/bin/python")),
        Path(sys.executable),
    ]
    asked = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"
    for python in candidates:
        found = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
        if found.returncode == 0 and found.stdout.strip() == version:
            return python
    return None


def wheel(folder: Path) -> Path:
    """The wheel of this checkout, built from a copy of what it is made of, so that nothing is left behind here."""
    source = folder / "source"
    for name in ("tir", "codegen"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, source], check=True)
    return next(folder.glob("*.whl"))


def beside(folder: Path) -> Path:
    """A folder with the tests and the pages, and without the packages."""
    place = folder / "checkout"
    for name in ("tests", "docs", "benchmarks"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, place)
    return place


def environment(tried: Tried, built: Path, folder: Path) -> None:
    """Make an environment with the wheel in ``folder``."""
    assert tried.python is not None
    _run([tried.python, "-m", "venv", folder], ROOT)
    _run([folder / "bin" / "python", "-m", "pip", "install", "-q", f"{built}[test,cuda]"], ROOT)


def _run(command: list[object], folder: Path) -> str:
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([*map(str, command)], cwd=folder, env=clean, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stdout + done.stderr).strip())
    return done.stdout


def try_version(tried: Tried, built: Path, checkout: Path, selection: str, folder: Path) -> None:
    """Fill ``tried.steps``, with an environment in ``folder``; the first failure is printed and ends it."""
    python = folder / "bin" / "python"
    tests = [f"tests/{part}" for part in SELECTIONS[selection]]
    steps: dict[str, Callable[[], object]] = {
        "install": lambda: environment(tried, built, folder),
        "import": lambda: _run([python, "-c", IMPORT], checkout),
        "doctor": lambda: _run([python, "-c", DOCTOR], checkout),
        "README": lambda: _run([python, "-m", "pytest", "tests/docs/test_docs.py", "-k", "README"], checkout),
        "tests": lambda: _run([python, "-m", "pytest", *tests], checkout),
    }
    for name, step in steps.items():
        try:
            passed = re.search(r"\d+ passed.*", str(step()))
            tried.steps[name] = passed[0] if passed else "ok"
        except RuntimeError as error:
            print(error)
            tried.steps[name] = "failed"
            return


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], help="a further interpreter to try; may be repeated")
    parser.add_argument("--selection", choices=SELECTIONS, default="core", help="the tests that are run")
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    options = parser.parse_args(arguments)
    found = [Tried(version, interpreter(version, options.python)) for version in options.versions]
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        here = [tried for tried in found if tried.python is not None]
        built, checkout = (wheel(Path(folder)), beside(Path(folder))) if here else (Path(), Path())
        for tried in found:
            if tried.python is not None:
                with tempfile.TemporaryDirectory(dir=BUILD) as made:
                    try_version(tried, built, checkout, options.selection, Path(made))
            print(tried, flush=True)
    return int(not here or any(tried.failed for tried in found))


if __name__ == "__main__":
    sys.exit(main())
