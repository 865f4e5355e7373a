"""A user's script is clean under type checkers, which see the package as if it were installed."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typed_script

import codegen
import tir
from tests.tools.generated import FILES, script_stubs

ROOT = Path(__file__).parents[2]
SCRIPT = Path(typed_script.__file__)
CHECKERS = {
    "pyright": ["--pythonpath", sys.executable],
    # what it knows of modules that are as they were it keeps for the next run: of NumPy's most of all
    "mypy": ["--strict", "--python-executable", sys.executable, "--cache-dir", str(ROOT / ".mypy_cache")],
}
STRICT = '{"typeCheckingMode": "strict"}'  # pyright's, from a file
ONLY_STRICT = re.compile(r"\(reportUnknown\w+\)|\[no-untyped-def\]")  # what neither says unless it is strict
AT_MOST = {"pyright": 5, "mypy": 3}  # of these in the script: a call is no type (`A: T.Buffer((8, 8), "float32")`)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with copies of the packages, as a wheel would put them."""
    site = tmp_path_factory.mktemp("site")
    for package in (tir, codegen):
        source = Path(package.__file__).parent
        shutil.copytree(source, site / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return site


def complaints(checker: str, site: Path, folder: Path) -> list[str]:
    """The errors in the scripts of a folder, all checked strictly in one run."""
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    (folder / "pyrightconfig.json").write_text(STRICT)
    done = subprocess.run(
        [sys.executable, "-m", checker, *CHECKERS[checker], *sorted(s.name for s in folder.glob("*.py"))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "error: " in done.stdout or done.returncode == 0, done.stdout + done.stderr
    lines = re.sub(r"\n\s{4,}", " ", done.stdout).splitlines()
    return [line for line in lines if "error: " in line or "- error" in line]


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_script_is_clean_and_faults_in_it_are_found(checker, installed, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import tir\n"
        "from tir.script import tir as T\n"
        "def f(sch: tir.Schedule):\n"
        "    sch.split('i', factor=[4])\n"
        "    sch.vectorise('i')\n"
        "    tir.build(sch.mod).sav('x.so')\n"
        "    a, b = T.grid(1, 2, 3)[0], T.exq(1)\n"
        "    for i, j in T.grid(4, 4, 4): T.exp(i, j)\n"
        "    sch.can.vectorise('i')\n"
        "    tir.tune(sch.mod, trails=3)\n"
        "    tir.testing.check_shedule(sch)\n"
        "    tir.ops.nn.softmax(tir.te.placeholder((4,)), axes=0)\n"
    )
    shutil.copy(SCRIPT, tmp_path / "script.py")
    every = complaints(checker, installed, tmp_path)
    found = [line for line in every if not ONLY_STRICT.search(line)]
    assert [line for line in found if "script.py" in line] == []
    assert len([line for line in every if "script.py" in line]) <= AT_MOST[checker], every
    for line in range(4, 13):
        assert any(f"wrong.py:{line}:" in one for one in found), (line, found)


def test_the_script_runs(tmp_path, capsys):
    typed_script.run(tmp_path)
    assert isinstance(typed_script.lowered(), tir.IRModule)
    typed_script.checked()
    typed_script.tuned(typed_script.expressions())
    typed_script.looked_at()


def test_the_stubs_are_up_to_date():
    """As a process of its own writes them: tests before this one may have registered operators."""
    code = (
        "from tests.tools.generated import FILES\n"
        "print('\\0'.join(made() for file, made in FILES.items() if file.suffix == '.pyi'), end='')"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    stubs = [file for file in FILES if file.suffix == ".pyi"]
    for stub, text in zip(stubs, made.stdout.split("\0"), strict=True):
        assert stub.read_text(encoding="utf-8") == text, "run: make generated"


def test_every_name_of_the_dialect_is_in_its_stub():
    from tir.script import tir as dialect

    stub = script_stubs.text()
    missing = [n for n in dir(dialect) if f" {n}" not in stub and f"\n{n} = " not in stub]
    assert set(missing) <= {"annotations", "DataType"}
