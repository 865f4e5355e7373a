"""Built modules from outside: arguments, sources, timing, the cache, saving and loading, the report."""

from __future__ import annotations

import errno
import sys

import numpy as np
import pytest

import tir
from codegen import disk
from codegen.build import build, compile_lowered
from codegen.llvm import compile as compile_
from codegen.machine_peak import _KINDS, _TILES, measure_copy_bandwidth, measure_fma_peak
from codegen.module import load, measure
from tir.buffer import decl_buffer
from tir.config import cache_folder
from tir.errors import BuildError, RunError
from tir.expr import BufferLoad, IntImm, Var
from tir.function import IRModule, PrimFunc
from tir.node import frozendict
from tir.script import parse
from tir.stmt import BufferStore, For


def add_scalar(kind: str = "serial", **attrs) -> PrimFunc:
    """B[i] = A[i] + x for i in range(n)"""
    a, b, x, n, i = Var("a", "handle"), Var("b", "handle"), Var("x", "float32"), Var("n"), Var("i")
    A, B = decl_buffer((n,), name="A"), decl_buffer((n,), name="B")
    body = For(i, IntImm(0), n, kind, BufferStore(B, BufferLoad(A, (i,)) + x, (i,)))
    return PrimFunc((a, b, x), body, buffer_map=frozendict({a: A, b: B}), attrs=frozendict(attrs))


@pytest.fixture(scope="module")
def module():
    return compile_lowered(IRModule.of(add_scalar()))


def arrays(n=8):
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


def test_scalars_of_every_kind_of_number(module):
    a, b = arrays()
    for x in (2, 2.5, np.float32(3), np.int64(4), True):
        module(a, b, x)
        np.testing.assert_array_equal(b, a + np.float32(x))


def test_anything_with_dlpack_is_an_array(module):
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    a, b = arrays()
    module(Foreign(a), Foreign(b), 1)
    np.testing.assert_array_equal(b, a + 1)


def test_bad_arguments_are_refused_by_name(module):
    a, b = arrays()
    read_only = b.copy()
    read_only.flags.writeable = False
    for args, words in [
        ((a, b), "3 arguments"),
        ((a, b, 1, 2), "3 arguments"),
        ((a.astype(np.float64), b, 1), "`A`"),
        ((a, b[:4], 1), "`B`"),
        ((a.reshape(2, 4), b, 1), "`A`"),
        (([1, 2], b, 1), "`A`"),
        ((a, read_only, 1), "`B`"),
        ((a, b, "one"), "`x`"),
        ((a, a, 1), "overlaps"),
    ]:
        for _ in range(2):  # a refusal is not remembered as success
            with pytest.raises(RunError, match=words):
                module(*args)


def test_the_same_array_twice_where_the_function_allows_it():
    m = compile_lowered(IRModule.of(add_scalar(**{"tir.noalias": False})))
    a, _ = arrays()
    m(a, a, 1)
    np.testing.assert_array_equal(a, np.arange(8) + 1)


def test_sources(module):
    assert "define" in module.source("llvm")
    assert "main" in module.source("asm")
    assert "target triple" in module.source("llvm-opt")
    with pytest.raises(ValueError, match="asm"):
        module.source("cuda")


def test_time_evaluator(module):
    timing = module.time_evaluator("main", number=3, repeat=4)(*arrays(), 1.0)
    assert len(timing.results) == 4
    assert timing.min <= timing.median <= timing.max
    with pytest.raises(KeyError, match="main"):
        module["other"]


def test_targets_that_are_not_there():
    with pytest.raises(BuildError, match="llvm"):
        build(add_scalar(), "tpu")
    with pytest.raises(ValueError, match="no option 'mcup'.* did you mean mcpu"):
        compile_lowered(IRModule.of(add_scalar()), {"kind": "llvm", "mcup": "haswell"})


def test_a_user_without_a_home_builds_without_a_cache(monkeypatch):
    for name in ("TIR_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIR_CACHE", "1")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # what Python does where there is no home
    assert cache_folder() is None
    a, b = arrays()
    compile_lowered(IRModule.of(add_scalar()))(a, b, 1)
    np.testing.assert_array_equal(b, a + 1)


def test_the_cache_is_where_the_user_or_else_the_system_keeps_caches(monkeypatch, tmp_path):
    monkeypatch.delenv("TIR_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "system"))
    if sys.platform == "linux":
        assert cache_folder() == tmp_path / "system" / "tensorir"
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


def test_a_full_disk_leaves_no_files(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    disk.write(tmp_path / "ab" / "abc.o", b"content")
    assert list(tmp_path.rglob("*.*")) == []


def test_a_damaged_cache_file_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TIR_CACHE", "1")
    compile_lowered(IRModule.of(add_scalar()))
    (kept,) = tmp_path.rglob("*.o")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:100])
    with pytest.warns(RuntimeWarning, match="damaged"):
        m = compile_lowered(IRModule.of(add_scalar()))
    assert kept.read_bytes() == whole
    a, b = arrays()
    m(a, b, 1)
    monkeypatch.setenv("TIR_CACHE", "0")
    kept.unlink()
    compile_lowered(IRModule.of(add_scalar()))
    assert not list(tmp_path.rglob("*.o"))


@pytest.mark.parametrize("suffix", [".so", ".o"])
def test_saved_modules_load_and_check_arguments(tmp_path, suffix):
    path = tmp_path / f"m{suffix}"
    compile_lowered(IRModule.of(add_scalar("parallel"))).save(path)
    m = load(path)
    a, b = arrays(9)
    m(a, b, 2)
    np.testing.assert_array_equal(b, a + 2)
    with pytest.raises(RunError, match="`B`"):
        m(a, b[:3], 2)


def test_files_that_are_no_modules(tmp_path):
    with pytest.raises(BuildError, match="no file"):
        load(tmp_path / "none.so")
    (tmp_path / "bad.so").write_bytes(b"nonsense")
    with pytest.raises(BuildError, match=r"bad\.so"):
        load(tmp_path / "bad.so")


def test_measured_limits_are_plausible():
    assert 1 < measure_fma_peak(seconds=0.02) < 10_000
    assert 0.1 < measure_copy_bandwidth(16, 2) < 10_000


def test_instructions_read_operands_as_wide_as_their_sums():
    """A lane of sums takes as many bytes of products; a tile is 16 rows of 64 bytes, its sums 16 x 16."""
    for dtype, (_, bits, products, _, _) in _KINDS.items():
        assert products * tir.DType(dtype).bits == bits
    for name, (_, products, _) in _TILES.items():
        assert products == 16 * 16 * (64 // tir.DType(name.removesuffix(" tiles")).bytes)


@pytest.mark.parametrize("target", [tir.Target("llvm", host="llvm"), tir.Target("cuda", arch="sm_80", host="llvm")])
def test_the_host_of_a_target_is_the_cpu_that_calls(target):
    func = parse("@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    for i in range(4):\n        A[i] = i\n")
    assert tir.build(func, target).target.attrs["host"].kind == "llvm"


@pytest.mark.parametrize("least", [5, 40, 300])
def test_a_repeat_has_about_as_many_calls_as_its_least_time_takes(monkeypatch, least):
    """By a clock that says that each call takes a millisecond."""
    calls, read = [], []

    def clock():
        read.append(len(calls))
        return len(calls) * 1e-3

    monkeypatch.setattr("codegen.module.time.perf_counter", clock)
    timing = measure(lambda: calls.append(0), number=1, repeat=1, min_repeat_ms=least)
    assert timing.median == pytest.approx(1e-3) and least <= read[-1] - read[-2] <= least * 1.5


def test_a_pass_builder_serves_some_runs_of_a_thread_only(monkeypatch):
    """Each run adds callbacks to it, which the passes of every later run call: the 5,000th build took seven times the first."""
    binding, made = compile_.llvm(), []
    monkeypatch.setattr(compile_, "_PASS_BUILDERS", compile_._PassBuilders())
    create = binding.create_pass_builder
    monkeypatch.setattr(binding, "create_pass_builder", lambda *of: made.append(create(*of)) or made[-1])
    on = compile_.Machine()
    for k in range(1, 101):
        with compile_.optimised(f"define i32 @f() {{\n  ret i32 {k}\n}}\n", on) as (module, _):
            assert f"ret i32 {k}" in str(module)
    assert 100 / 20 <= len(made) <= 100 / 10


def test_a_schedule_stands_for_its_program():
    sch = tir.Schedule(tir.library.rows.row_sum(4, 8))
    sch.split("j", [2, 4])
    assert tir.lower(sch).script() == tir.lower(sch.mod).script()
    assert tir.Schedule(sch).script() == sch.script()
    assert tir.build(sch).new(np.ones((4, 8), "float32")).tolist() == [8.0] * 4
