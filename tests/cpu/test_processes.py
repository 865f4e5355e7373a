"""Compiled code in other surroundings: forked processes, and CPUs that lack what it was compiled for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import tir
from codegen.llvm import cpu_features
from codegen.llvm.compile import Machine
from codegen.runtime.openmp import openmp
from tir.errors import RunError
from tir.script import parse


@pytest.mark.parametrize(
    ("variable", "cores", "threads"),
    [("1", 4, 1), ("3", None, 3), ("3", 1, 3), ("2,4", 8, 2), (" 2 ", 8, 2), ("0", 4, 4), ("all", 4, 4), ("", 4, 4)],
)
def test_how_many_threads_run_a_parallel_loop(variable, cores, threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert tir.target.threads(cores) == threads


PARALLEL = """
@T.prim_func
def f(A: T.Buffer((64,), "int32")):
    for i in T.parallel(64):
        A[i] = A[i] + 1
"""
FORKS = f"""
import os, warnings, numpy as np, tir
module = tir.build(tir.script.parse('''{PARALLEL}'''))
a = np.zeros(64, "int32")
module(a)
child = os.fork()
if not child:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module(a)
        module(a)
        tir.build(tir.script.parse('''{PARALLEL.replace("+ 1", "+ 2")}'''))(a)  # built in the child
    told = [w for w in caught if "fork" in str(w.message)]
    os._exit(0 if (a == 5).all() and len(told) == 1 else 1)
_, status = os.waitpid(child, 0)
module(a)
assert (a == 2).all()
print("child", os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_runs_parallel_loops_serially_and_says_so_once():
    if openmp() is None or "gomp" not in openmp().library:
        pytest.skip("this OpenMP library sees to forks by itself")
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    parent = subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS],
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert parent.communicate(timeout=100)[0] == "child 0\n"
    except subprocess.TimeoutExpired:
        os.killpg(parent.pid, signal.SIGKILL)
        pytest.fail("the forked process hangs")


FULL = """
import ctypes, mmap, numpy as np, tir
from tir import te

libc = ctypes.CDLL(None)
libc.mmap.argtypes = ctypes.c_size_t, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_size_t
libc.munmap.argtypes = ctypes.c_size_t, ctypes.c_size_t
libc.mmap.restype = ctypes.c_size_t
mapped = lambda size: libc.mmap(0, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)

x = te.placeholder((64,), name="x")
f = te.create_prim_func([x, te.compute((64,), lambda i: sum(tir.erf(x[i] * k) for k in range(1, 20)), name="y")])
tir.build(te.create_prim_func([x, te.compute((64,), lambda i: x[i], name="y")]))
wall, size, page = mapped(4 << 30), 1 << 30, 0
while size >= 4096:  # fill what is free above it, but for a page
    place = mapped(size)
    if place > wall:
        page = place
        continue
    libc.munmap(place, size)
    size //= 2
libc.munmap(page, 4096)
y = np.zeros(64, "float32")
tir.build(f)(np.ones(64, "float32"), y)
print(y[0] > 18)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the order of mappings is that of Linux")
def test_code_is_loaded_where_memory_is_free_only_far_apart():
    made = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True)
    assert made.stdout == "True\n", made.stderr


def lacking(monkeypatch, *names: str) -> None:
    there = {**cpu_features._host(), **dict.fromkeys(names, False)}
    monkeypatch.setattr(cpu_features, "_host", lambda: there)


x86 = pytest.mark.skipif("x86" not in Machine().triple, reason="names of x86 features")


@x86
def test_the_features_of_a_named_cpu():
    assert {"avx2", "fma", "bmi2"} <= set(cpu_features.Needs.of(Machine("haswell", "")).features)
    assert "avx512f" not in cpu_features.Needs.of(Machine("haswell", "")).features
    assert "avx512fp16" in cpu_features.Needs.of(Machine("sapphirerapids", "")).features
    assert "avx512f" in cpu_features.Needs.of(Machine("x86-64", "+avx512vl")).features


def test_this_machine_runs_its_own_code():
    assert cpu_features.Needs.of(Machine()).refusal() is None


@x86
def test_code_for_another_cpu_is_refused_and_not_run(monkeypatch):
    lacking(monkeypatch, "avx512fp16", "amx-int8")
    module = tir.build(parse(PARALLEL), "llvm -mcpu=sapphirerapids")
    a = np.zeros(64, "int32")
    for _ in range(4):  # the fast way does not go round it
        with pytest.raises(RunError, match="compiled for sapphirerapids; this CPU .* lacks .*amx-int8, .*avx512fp16"):
            module(a)
    with pytest.raises(RunError, match="sapphirerapids"):
        module.time_evaluator()(a)


@x86
def test_a_file_for_another_cpu_is_refused_when_it_is_loaded(monkeypatch, tmp_path):
    path = tmp_path / "module.o"
    tir.build(parse(PARALLEL)).save(path)
    tir.load(path)
    lacking(monkeypatch, "sse2")
    with pytest.raises(RunError, match=r"module\.o: compiled for .* lacks sse2"):
        tir.load(path)
