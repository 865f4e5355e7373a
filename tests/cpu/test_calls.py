"""Calling what was built: by name, with results in new arrays, with arrays of every kind, after pickling."""

from __future__ import annotations

import array
import logging
import pickle

import ml_dtypes
import numpy as np
import pytest

import tir
from tir.errors import RunError
from tir.script import parse

AXPY = parse("""
@T.prim_func
def axpy(a: T.handle, x: T.handle, y: T.handle, k: T.float32):
    T.func_attr({"global_symbol": "axpy"})
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (2 * n,), "float32")
    for i in range(n):
        with T.block("Y"):
            vi = T.axis.spatial(n, i)
            Y[vi] = A[vi] * k + X[vi]
            Y[n + vi] = X[vi]
""")
BOTH = parse("""
@T.prim_func
def both(A: T.Buffer((4,), "float32"), S: T.Buffer((1,), "float32"), D: T.Buffer((4,), "bfloat16")):
    for i in range(4):
        with T.block("S"):
            vi = T.axis.reduce(4, i)
            S[0] = S[0] + A[vi]
    for i in range(4):
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            D[vi] = T.cast(A[vi], "bfloat16")
""")
TARGETS = ["interpreter", "llvm"]
a, x = np.arange(4, dtype="float32"), np.ones(4, "float32")
want = np.concatenate([2 * a + x, x])


@pytest.mark.parametrize("target", TARGETS)
def test_arguments_by_name(target):
    module = tir.build(AXPY, target)
    for call in (module, module.entry):
        for args, named in [((), {"A": a, "X": x, "k": 2.0}), ((a, x), {"k": 2.0}), ((a,), {"k": 2.0, "X": x})]:
            y = np.zeros(8, "float32")
            call(*args, Y=y, **named)
            np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("args", "named", "says"),
    [
        ((a, x), {"Z": a, "k": 2.0}, "axpy has no parameter `Z`; it takes A, X, Y, k"),
        ((a, x), {"A": a}, "axpy: `A` is given by position and by name"),
        ((a, x), {"k": 2.0}, "axpy: `Y` missing; it takes A, X, Y, k"),
        ((a, x), {"Y": np.zeros(3, "float32"), "k": 2.0}, "argument 3 `Y` of axpy: expected shape"),
        ((a, x, 3, 2.0), {}, "argument 3 `Y` of axpy"),
    ],
)
def test_wrong_names_are_refused_in_the_functions_own_name(target, args, named, says):
    with pytest.raises(RunError) as caught:
        tir.build(AXPY, target)(*args, **named)
    assert says in str(caught.value)


def test_every_message_has_the_functions_own_name():
    module = tir.build(tir.Schedule(AXPY).mod)
    fixed = np.zeros(8, "float32")
    fixed.setflags(write=False)
    for args in [(a, x, fixed, 2.0), (a, x, "y", 2.0), (a, x, a, 2.0), (a, x), (a, x, np.zeros(8, "float32"), "k")]:
        with pytest.raises(RunError) as caught:
            module(*args)
        assert "axpy" in str(caught.value) and "main" not in str(caught.value)


@pytest.mark.parametrize("target", TARGETS)
def test_results_in_new_arrays(target):
    module = tir.build(AXPY, target)
    y = module.new(a, x, 2.0)
    assert y.dtype == np.float32 and y.ctypes.data % 64 == 0
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(module.entry.new(a, k=2.0, X=x), want)
    total, small = tir.build(BOTH, target).new(a)
    assert total.tolist() == [6.0] and small.dtype.itemsize == 2
    held = np.array([10.0], "float32")
    small = tir.build(BOTH, target).new(a, S=held)
    assert held.tolist() == [16.0]
    np.testing.assert_array_equal(small.view(np.uint16), (a.view(np.uint32) >> 16).astype(np.uint16))


def test_small_floats_come_as_numbers():
    small = tir.build(BOTH, "interpreter").new(a)[1]
    assert small.dtype == ml_dtypes.bfloat16 and small.astype("float32").tolist() == a.tolist()


@pytest.mark.parametrize(
    ("args", "named", "says"),
    [
        ((a, x, 2.0, 3.0), {}, "new takes A, X, k by position and makes Y, but got 4 arguments"),
        ((a,), {"k": 2.0}, "axpy: `X` missing"),
        ((a, x, 2.0), {"Y": np.zeros(8, "float32")}, "there is no array to make"),
        ((), {"X": "x", "k": 1.0}, "argument 2 `X` of axpy: expected a float32 array"),
    ],
)
def test_what_new_refuses(args, named, says):
    with pytest.raises(RunError) as caught:
        tir.build(AXPY, "interpreter").new(*args, **named)
    assert says in str(caught.value)


def test_a_result_of_unknown_shape_is_given_by_the_caller():
    module = tir.build(
        parse("""
@T.prim_func
def fill(y: T.handle):
    n = T.int32()
    Y = T.match_buffer(y, (n,), "float32")
    for i in range(n):
        Y[i] = T.float32(1)
""")
    )
    with pytest.raises(RunError, match="`Y` has a shape that the arguments do not determine"):
        module.new()


class Interface:
    """Memory as some libraries show it: by NumPy's array interface only."""

    def __init__(self, values: np.ndarray):
        self.held, self.__array_interface__ = values, values.__array_interface__


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "made", [array.array("f", [0] * 8), memoryview(np.zeros(8, "float32")), Interface(np.zeros(8, "float32"))]
)
def test_memory_of_every_kind_is_used_in_place(target, made):
    for _ in range(3):
        tir.build(AXPY, target)(array.array("f", a), memoryview(x), made, 2.0)
    seen = np.asarray(made.held if isinstance(made, Interface) else made)
    np.testing.assert_array_equal(seen, want)
    with pytest.raises(RunError, match="argument 1 `A` of axpy: expected dtype float32, got float64"):
        tir.build(AXPY, target)(array.array("d", a), memoryview(x), made, 2.0)
    with pytest.raises(RunError, match="argument 3 `Y` of axpy.*(read-only|must be an array)"):
        tir.build(AXPY, target)(a, x, memoryview(np.zeros(8, "float32")).toreadonly(), 2.0)


@pytest.mark.parametrize("target", [*TARGETS, "cuda-sim", "cuda"])
def test_modules_pickle(target):
    sch = tir.Schedule(AXPY)
    if target.startswith("cuda"):
        block, thread = sch.split("i", [None, 32])
        sch.bind(block, "blockIdx.x")
        sch.bind(thread, "threadIdx.x")
    module = tir.build(sch.mod, target)
    again = pickle.loads(pickle.dumps(module))
    assert type(again) is type(module) and repr(again) == repr(module)
    for kind in set(module.source_kinds) - {"sass", "ptx"}:
        assert again.source(kind) == module.source(kind)
    if target != "cuda":
        np.testing.assert_array_equal(again.new(a, x, 2.0), want)


def test_modules_lowered_elsewhere_and_loaded_ones_pickle(tmp_path):
    from codegen.build import compile_lowered

    module = compile_lowered(tir.lower(AXPY))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(module)).new(a, x, 2.0), want)
    module.save(tmp_path / "axpy.o")
    loaded = pickle.loads(pickle.dumps(tir.load(tmp_path / "axpy.o")))
    np.testing.assert_array_equal(loaded.new(a, x, 2.0), want)


def test_what_is_compiled_and_what_is_cached_is_logged(caplog, monkeypatch, tmp_path):
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path))
    with caplog.at_level(logging.INFO):
        tir.build(AXPY)
        tir.build(AXPY)
    told = [r.getMessage() for r in caplog.records if r.name == "codegen.build"]
    assert (
        len(told) == 2
        and told[0].startswith("axpy for llvm: lowered and compiled in")
        and "loaded from the cache in" in told[1]
    )
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "tir"):
        tir.lower(tir.Schedule(AXPY).mod)
        sch = tir.Schedule(AXPY)
        sch.split("i", [None, 4])
    told = [r.getMessage() for r in caplog.records]
    assert (
        any(t.startswith("lower_opaque_block: changed, ") for t in told)
        and 'step 1: split("i", factors=[None, 4])' in told
    )


def test_a_list_for_one_factor_is_told_where_it_goes():
    with pytest.raises(tir.ScheduleError, match=r"did you mean factors=\[4, 2\]\?"):
        tir.Schedule(AXPY).split("i", factor=[4, 2])
