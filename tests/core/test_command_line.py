"""``tir`` on the command line."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tir
from tir.__main__ import main

FILE = """
import tir
from tir.script import tir as T

@T.prim_func
def double(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.func_attr({"global_symbol": "double_it"})
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(2)

fast = tir.Schedule(double)
fast.vectorize(fast.split("i", [None, 16])[1])
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(FILE)
    return path


def test_a_program_a_schedule_and_what_they_become(file, capsys):
    def printed(*arguments: str) -> str:
        assert main([str(a) for a in arguments]) == 0
        return capsys.readouterr().out

    assert "def double_it(" in printed("show", f"{file}:double")
    assert "T.vectorized(16)" in printed("show", f"{file}:fast")
    assert "i_1" in printed("tree", f"{file}:fast")
    assert "T.Broadcast" in printed("lower", f"{file}:fast")
    assert "with T.block" in printed("lower", f"{file}:fast", "--upto", "lower_init_block")
    assert printed("source", f"{file}:fast") == printed("source", f"{file}:fast", "--kind", "llvm")
    assert "define" in printed("source", f"{file}:fast")


def test_what_is_not_there_is_said_without_a_traceback(file, capsys):
    for wrong, said in (
        (["show", str(file)], f"2 programs in {file}; give one of {file}:double, {file}:fast"),
        (["show", f"{file}:triple"], "no program `triple`"),
        (["show", "nowhere.py"], "nowhere.py"),
        (["lower", f"{file}:double", "--upto", "flaten"], "no pass 'flaten'"),
        (["source", f"{file}:double", "--target", "cdua"], "did you mean cuda"),
    ):
        assert main(wrong) == 1
        captured = capsys.readouterr()
        assert said in captured.err and captured.out == ""


def test_a_verb_an_option_or_a_choice_that_is_misspelt_is_named_with_what_it_resembles(file, capsys):
    for wrong, said in (
        (["shwo", str(file)], "invalid choice: 'shwo'; did you mean show? (see tir --help)"),
        (["lower", str(file), "--uptoo=simplify"], "--uptoo=simplify; did you mean --upto? (see tir lower --help)"),
        (["build", str(file), "-o", "k.o", "--threads", "opnemp"], "did you mean openmp? (see tir build --help)"),
        (["run", str(file), "more"], "unrecognized arguments: more (see tir run --help)"),
    ):
        assert main(wrong) == 2
        assert said in capsys.readouterr().err


def test_a_built_file_is_read_back(file, tmp_path, capsys):
    if shutil.which("cc") is None:
        pytest.skip("linking needs a C compiler")
    library, header = tmp_path / "double.so", tmp_path / "double.h"
    assert main(["build", f"{file}:fast", "-o", str(library), "--header", str(header)]) == 0
    a, b = np.ones(64, "float32"), np.zeros(64, "float32")
    tir.load(library)(a, b)
    assert (b == 2).all() and "double_it" in header.read_text()


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "tir", "--help"], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in ("doctor", "show", "tree", "lower", "source", "build"))


def test_options_of_a_target_with_and_without_an_equals_sign():
    assert tir.Target("llvm -num-cores 4 -mcpu=znver4") == tir.Target("llvm -num-cores=4 -mcpu=znver4")
    assert tir.Target("llvm -num-cores 4").attrs["num_cores"] == 4
    with pytest.raises(ValueError, match="'4' should read -name=value"):
        tir.Target("llvm 4")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(:\n", r"bad\.py:1: SyntaxError: "),
        ("\nimport no_such_module\n", r"bad\.py:2: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f():\n    return 1 / 0\nf()\n", r"bad\.py:2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", r"bad\.py:2: SystemExit: 3"),
        ("open('/no/such/file')\n", r"bad\.py:1: FileNotFoundError: "),
        ("import tir\ntir.Target('cdua')\n", "did you mean cuda"),
        ("x = 1\0\n", "(SyntaxError|ValueError): .*null bytes"),
        ("\xff\xfe", r"bad\.py(:\d+)?: SyntaxError: "),
        ("raise RecursionError('deep')", "RecursionError: deep"),
    ],
)
def test_what_a_file_raises_is_one_line_with_its_place(tmp_path, capsys, text, said):
    (tmp_path / "bad.py").write_text(text, encoding="latin-1")
    assert main(["show", str(tmp_path / "bad.py")]) == 1
    found = capsys.readouterr()
    assert re.search(said, found.err) and len(found.err.splitlines()) == 1 and found.out == ""


@pytest.mark.parametrize("path", ["", ".", "/", "a\0b", "/dev/null/x", "nowhere.py", "nowhere.py:f", ":", "::"])
def test_what_is_no_file_is_named(path, capsys):
    assert main(["show", path]) == 1
    found = capsys.readouterr()
    assert found.err.startswith("no file ") and len(found.err.splitlines()) == 1


def test_outputs_are_looked_at_before_anything_is_built(file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("codegen.build.build", lambda *_: pytest.fail("it was built"))
    good = str(tmp_path / "k.o")
    for options, said in (
        (["-o", "/no/such/folder/k.o"], "there is no folder '/no/such/folder'"),
        (["-o", str(tmp_path)], "it is a folder"),
        (["-o", good, "--header", "/no/such/folder/k.h"], "there is no folder"),
        (["-o", good, "--header", str(tmp_path)], "it is a folder"),
    ):
        assert main(["build", f"{file}:double", *options]) == 1
        assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [file]


def test_targets_that_there_are_not_are_refused(file, capsys):
    for command in ("lower", "source"):
        for target, said in (
            ("llvm -mcpu=nope", "LLVM knows no processor 'nope'"),
            ("llvm -mtriple=z80", "z80"),
            ("llvm -colour=red", "no option 'colour'"),
            ("cuda -arch=sm_x", "no GPU architecture"),
        ):
            assert main([command, f"{file}:double", "--target", target]) == 1
            assert said in capsys.readouterr().err


def test_a_reader_that_stops_early_is_no_error(tmp_path):
    (tmp_path / "long.py").write_text(
        "from tir import te\nimport tir\nA = te.placeholder((9,), name='A')\nB = A\n"
        "for n in range(600):\n    B = te.compute((9,), lambda i, B=B: B[i] + 1.0, name=f'a_stage_of_a_long_name_{n}')\n"
        "f = te.create_prim_func([A, B])\n"
    )
    command = [sys.executable, "-m", "tir", "show", f"{tmp_path / 'long.py'}:f"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as shown:
        assert shown.stdout.readline() and shown.stdout.close() is None
        assert shown.stderr.read() == "" and shown.wait() == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_that_cannot_be_written_is_an_error(file):
    for command in (["tir", "show", f"{file}:double"], ["tir.tune", "show", str(file.parent / "a.db")]):
        if command[0] == "tir.tune":
            subprocess.run(
                [sys.executable, "-m", "tir.tune", "import", command[-1]], input=b"", check=True, capture_output=True
            )
            command = ["tir.tune", "prune", command[-1]]
        with open("/dev/full", "w") as full:
            done = subprocess.run([sys.executable, "-m", *command], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode in (1, 2) and "No space left" in done.stderr and "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == 1
