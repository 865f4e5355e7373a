"""The cache of programs: what is found again runs, answers every question, and is never another program."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import tir
from codegen import disk
from codegen.build import build
from codegen.program_key import program_key
from tir.buffer import decl_buffer
from tir.expr import BufferLoad, Call, FloatImm, IntImm, Var
from tir.function import IRModule, PrimFunc
from tir.node import frozendict
from tir.script import tir as T
from tir.stmt import AttrStmt, BufferStore, For
from tir.target import Target
from tir.transform import cpu_pipeline, func_pass, pipeline, unroll_loop
from tir.transform.passes import PASSES


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TIR_CACHE", "1")
    return tmp_path


def scaled(times: float = 2.0) -> tir.Schedule:
    @T.prim_func
    def scaled(A: T.Buffer((32, 16), "float32"), n: T.int32, C: T.Buffer((32, 16), "float32")):
        B = T.alloc_buffer((32, 16), "float32")
        for i, j in T.grid(32, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(times)
        for i, j in T.grid(32, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.Cast("float32", n)

    sch = tir.Schedule(scaled)
    sch.compute_at("B", "C.i")
    sch.vectorize("C.j")
    sch.parallel("C.i")
    return sch


def check(module, times: float = 2.0) -> None:
    a, c = np.random.rand(32, 16).astype("float32"), np.zeros((32, 16), "float32")
    module(a, 3, c)
    np.testing.assert_allclose(c, a * times + 3, rtol=1e-6)


def no_lowering(monkeypatch):
    def refuse(*_args, **_named):
        raise AssertionError("lowered, though the program was kept")

    monkeypatch.setattr(pipeline, "_until", refuse)  # which every lowering calls


def test_a_program_that_was_kept_is_not_lowered(monkeypatch):
    first = build(scaled().mod)
    with monkeypatch.context() as patch:
        no_lowering(patch)
        again = build(scaled().mod)
        check(again)
        with pytest.raises(tir.RunError, match="`A`"):
            again(np.zeros((3, 16), "float32"), 3, np.zeros((32, 16), "float32"))
        with pytest.raises(tir.RunError, match="overlaps"):
            x = np.zeros((32, 16), "float32")
            again(x, 3, x)
    for kind in again.source_kinds:  # made when asked for
        assert again.source(kind) == first.source(kind)
    assert str(again.report) == str(first.report)
    assert "a team of threads" in str(again.report)


def test_one_that_was_kept_can_be_saved(tmp_path):
    build(scaled().mod)
    again = build(scaled().mod)
    again.save(tmp_path / "again.o")
    check(tir.load(tmp_path / "again.o"))


def test_messages_and_python_calls_are_kept(monkeypatch):
    from codegen.runtime.packed_functions import register_func

    got = []
    register_func("test_program_cache.note", lambda *args: got.append(args) or 0, override=True)

    @T.prim_func
    def picky(A: T.Buffer((4,), "float32"), n: T.int32):
        assert n > 0, "n must be positive"
        T.evaluate(T.call_packed("test_program_cache.note", n))
        A[0] = T.float32(1)

    build(picky)
    no_lowering(monkeypatch)
    again = build(picky)
    again(np.zeros(4, "float32"), 7)
    assert got == [(7,)]
    with pytest.raises(tir.RunError, match="n must be positive"):
        again(np.zeros(4, "float32"), 0)


@pytest.mark.parametrize("suffix", [".program", ".o"])
@pytest.mark.parametrize("harm", ["cut", "empty", "other", "gone", "nonsense"])
def test_a_harmed_file_is_compiled_anew(folder, suffix, harm):
    check(build(scaled().mod))
    (kept,) = folder.rglob("*" + suffix)
    whole = kept.read_bytes()
    build(scaled(3.0).mod)
    (other,) = (p for p in folder.rglob("*" + suffix) if p != kept)
    if harm == "gone":
        kept.unlink()
    else:
        kept.write_bytes({"cut": whole[:50], "empty": b"", "other": other.read_bytes(), "nonsense": b"[1]" * 99}[harm])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check(build(scaled().mod))
    assert [w.category for w in told] == ([] if harm == "gone" else [RuntimeWarning])
    assert kept.read_bytes() == whole


def test_nothing_is_kept_where_it_was_turned_off(folder, monkeypatch):
    monkeypatch.setenv("TIR_CACHE", "0")
    check(build(scaled().mod))
    assert not list(folder.rglob("*.program"))


def test_stages_are_dumped_though_the_program_was_kept(folder):
    build(scaled().mod)
    with tir.config.override(dump=str(folder / "stages")):
        check(build(scaled().mod))
    assert list((folder / "stages").iterdir())


def test_readers_see_whole_files_while_many_write(folder):
    path = disk.place("ab" * 32, ".program")
    contents = [bytes([k]) * 100_000 for k in range(4)]
    done = []

    def work(content):
        for _ in range(25):
            disk.write(path, content)
            seen = disk.read(path)
            assert seen in contents
        done.append(content)

    threads = [threading.Thread(target=work, args=(c,)) for c in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def plain(
    dtype="float32", value=None, parameter="a", loop="i", attrs=None, notes=None, op="exp", kind="serial", **layout
) -> IRModule:
    a, b, i = Var(parameter, "handle"), Var("b", "handle"), Var(loop)
    A, B = decl_buffer((64,), dtype, "A", **layout), decl_buffer((64,), dtype, "B")
    added = FloatImm(0.0 if value is None else value, A.dtype)
    store = BufferStore(B, Call(op, (BufferLoad(A, (i,)),), A.dtype) + added, (i,))
    body = AttrStmt(
        A, "mark", IntImm(1), For(i, IntImm(0), IntImm(64), kind, store, annotations=frozendict(notes or {}))
    )
    return IRModule.of(PrimFunc((a, b), body, buffer_map=frozendict({a: A, b: B}), attrs=frozendict(attrs or {})))


def key(mod=None, target="llvm", machine="cpu", passes=None):
    return program_key(plain() if mod is None else mod, Target(target), machine, passes or cpu_pipeline())


def test_what_changes_the_meaning_changes_the_name():
    func = plain()["main"]
    different = [
        key(),
        key(plain(dtype="float64")),
        key(plain(value=-0.0)),
        key(plain(value=float("nan"))),
        key(plain(value=float("inf"))),
        key(plain(value=1.0)),
        key(plain(parameter="b")),
        key(plain(loop="j")),
        key(plain(op="tanh")),
        key(plain(kind="vectorized")),
        key(plain(strides=[2])),
        key(plain(strides=[1])),
        key(plain(elem_offset=4)),
        key(plain(elem_offset=4, offset_factor=2)),
        key(plain(data_alignment=64)),
        key(plain(scope="local")),
        key(plain(attrs={"tir.noalias": False})),
        key(plain(attrs={"tir.noalias": True})),
        key(plain(attrs={"global_symbol": "f"})),
        key(plain(notes={"n": 1})),
        key(plain(notes={"n": True})),
        key(plain(notes={"n": "1"})),
        key(plain(notes={"n": (1,)})),
        key(plain(notes={"n": np.int64(1)})),
        key(plain(notes={"n": np.array([1])})),
        key(plain(notes={"n": np.array([2])})),
        key(plain(notes={"m": 1})),
        key(IRModule(frozendict({"main": func, "other": func}))),
        key(IRModule(frozendict({"other": func}))),
        key(target="llvm -mcpu=haswell"),
        key(target="llvm -num-cores=2"),
        key(target="llvm -l2-bytes=1000"),
        key(machine="another"),
        key(passes=cpu_pipeline()[:-1]),
        key(passes=[*cpu_pipeline(), unroll_loop]),
        key(passes=[*cpu_pipeline(), unroll_loop.configured(auto_max_step=4)]),
    ]
    assert None not in different
    assert len(set(different)) == len(different)
    assert key() == key(plain())


def test_variables_of_one_name_are_told_apart():
    def product(same: bool):
        a, i, j = Var("a", "handle"), Var("i"), Var("i")
        A = decl_buffer((8, 8), "float32", "A")
        store = BufferStore(A, FloatImm(1.0, A.dtype), (i, i if same else j))
        loops = For(i, IntImm(0), IntImm(8), "serial", For(j, IntImm(0), IntImm(8), "serial", store))
        return IRModule.of(PrimFunc((a,), loops, buffer_map=frozendict({a: A})))

    assert key(product(True)) != key(product(False))
    assert key(product(False)) == key(product(False))


def test_what_is_from_outside_is_not_kept(monkeypatch):
    from codegen.llvm.generator import RULES

    @func_pass
    def mine(func):
        return func

    PASSES.pop("mine")
    assert key(passes=[*cpu_pipeline(), mine]) is None
    assert key(passes=[*cpu_pipeline(), lambda mod: mod]) is None
    assert key(plain(notes={"n": object()})) is None
    assert key() is not None
    monkeypatch.setitem(RULES.ops, "exp", lambda g, e: g.expr(e.args[0]))
    assert key() is None
