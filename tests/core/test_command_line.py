"""``tir`` on the command line."""

from __future__ import annotations

import shutil
import subprocess
import sys

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
    assert "define" in printed("source", f"{file}:fast", "--kind", "llvm")


def test_what_is_not_there_is_said_without_a_traceback(file, capsys):
    for wrong, said in (
        (["show", str(file)], f"2 programs in {file}; say one of {file}:double, {file}:fast"),
        (["show", f"{file}:triple"], "no program `triple`"),
        (["show", "nowhere.py"], "nowhere.py"),
        (["lower", f"{file}:double", "--upto", "flaten"], "no pass 'flaten'"),
        (["source", f"{file}:double", "--target", "cdua"], "did you mean cuda"),
    ):
        assert main(wrong) == 1
        captured = capsys.readouterr()
        assert said in captured.err and captured.out == ""


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
