"""Handlers of XLA in saved files: called by records laid out here, and by JAX if it is installed."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tir
from tir.script import parse

PROGRAM = """
@T.prim_func
def dot(x: T.handle, y: T.handle, O: T.Buffer((4,), "{dtype}"), N: T.Buffer((), "int32")):
    n = T.int32()
    X = T.match_buffer(x, (n, 4), "{dtype}")
    Y = T.match_buffer(y, (n, 4), "{dtype}")
    for i, j in T.grid(n, 4):
        O[j] = O[j] + X[i, j] * Y[i, j]
    N[()] = n
"""
XLA = {"float32": 11, "float64": 12, "int8": 2, "uint16": 7, "float16": 10, "int32": 4, "int64": 5}
P, S, I = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32


def record(*fields: tuple[str, type]) -> type[ctypes.Structure]:
    """A record of the interface: its size and its extension come first."""
    return type("Record", (ctypes.Structure,), {"_fields_": [("size_of", S), ("extension", P), *fields]})


Buffer = record(("type", I), ("data", P), ("rank", S), ("sizes", P))
List = record(("count", S), ("types", P), ("given", P))
Version = record(("major", I), ("minor", I))
ErrorArguments = record(("message", ctypes.c_char_p), ("code", I))
Interface = record(("version", Version), ("internal", P), ("create_error", P))
Call = record(("api", P), ("context", P), ("stage", I), ("arguments", List), ("results", List))
Extension = type(
    "Extension", (ctypes.Structure,), {"_fields_": [("size_of", S), ("type", I), ("next", P), ("answer", P)]}
)
Metadata = type("Metadata", (ctypes.Structure,), {"_fields_": [("size_of", S), ("version", Version), ("traits", I)]})
CREATE = ctypes.CFUNCTYPE(P, ctypes.POINTER(ErrorArguments))


def passed(arrays: list[np.ndarray], kept: list) -> List:
    """The list of a call with these arrays; ``kept`` holds what it refers to."""
    buffers = []
    for array in arrays:
        sizes = (S * array.ndim)(*array.shape)
        buffers.append(Buffer(0, None, XLA[str(array.dtype)], array.ctypes.data, array.ndim, ctypes.addressof(sizes)))
        kept.append(sizes)
    places = (P * len(buffers))(*map(ctypes.addressof, buffers))
    kept += [buffers, places]
    return List(0, None, len(buffers), None, ctypes.addressof(places))


def run(handler, arguments: list[np.ndarray], results: list[np.ndarray], extension=None) -> str:
    """The message of the error; empty without one."""
    heard: list[tuple[bytes, int]] = []

    def create(given) -> int:
        heard.append((given.contents.message, given.contents.code))
        return 77

    kept: list = [CREATE(create)]
    api = Interface(0, None, Version(0, None, 0, 5), None, ctypes.cast(kept[0], P))
    call = Call(0, extension, ctypes.addressof(api), None, 3, passed(arguments, kept), passed(results, kept))
    handler.restype = P
    error = handler(ctypes.byref(call))
    assert (error == 77) == bool(heard) and all(code == 3 for _, code in heard)
    return heard[0][0].decode() if heard else ""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("xla")

    def handler(dtype: str):
        path = folder / f"{dtype}.so"
        if not path.exists():
            tir.build(parse(PROGRAM.format(dtype=dtype))).save(path, checks=True, header=path.with_suffix(".h"))
        return ctypes.CDLL(str(path)).dot_xla

    return handler


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "float16"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_results_begin_as_zeros_and_are_written(saved, dtype, n):
    x, y = (np.random.default_rng(k).integers(0, 4, (n, 4)).astype(dtype) for k in (0, 1))
    out, count = np.full(4, 9, dtype), np.full((), 9, "int32")
    assert run(saved(dtype), [x, y], [out, count]) == ""
    assert (out == (x.astype("float64") * y).sum(0)).all() and count == n


def test_the_version_is_the_callers(saved):
    answer = Metadata(0, Version(0, None, 9, 9), 9)
    extension = Extension(0, 1, None, ctypes.addressof(answer))
    assert run(saved("float32"), [], [], ctypes.addressof(extension)) == ""
    assert (answer.version.major, answer.version.minor, answer.traits) == (0, 5, 0)


ONES = np.ones((3, 4), "float32")
OUT = (np.zeros(4, "float32"), np.zeros((), "int32"))


@pytest.mark.parametrize(
    ("arguments", "results", "message"),
    [
        ([ONES, ONES[:2].copy()], OUT, "dot: size 0 of `Y` is not `n`, size 0 of `X`"),
        ([ONES.astype("float64"), ONES], OUT, "dot: `X` is not of type float32"),
        ([ONES, ONES[0].copy()], OUT, "dot: the ndim of `Y` is another"),
        ([ONES[:, :2].copy(), ONES], OUT, "dot: size 1 of `X` is not `4`"),
        ([ONES, ONES], (np.zeros(2, "float32"), OUT[1]), "dot: size 0 of `O` is not `4`"),
        ([ONES, ONES], (np.zeros(4, "int8"), OUT[1]), "dot: `O` is not of type float32"),
        ([ONES, ONES], (np.zeros((4, 2), "float32"), OUT[1]), "dot: the ndim of `O` is another"),
        ([ONES], OUT, "dot_xla takes 2 buffers and has 2 results"),
        ([ONES, ONES], OUT[:1], "dot_xla takes 2 buffers and has 2 results"),
    ],
)
def test_what_does_not_fit_is_an_error_of_xla(saved, arguments, results, message):
    before = [array.copy() for array in results]
    assert run(saved("float32"), arguments, list(results)) == message
    assert all((a == b).all() for a, b in zip(results, before))


NUMBER = """
@T.prim_func
def f(A: T.Buffer((4,), "float32"), k: T.int32):
    for i in range(4):
        A[i] = T.Cast("float32", k)
"""


def test_only_functions_of_arrays_have_a_handler(tmp_path):
    tir.build(parse(NUMBER)).save(tmp_path / "f.so", checks=True, header=tmp_path / "f.h")
    assert "_xla" not in (tmp_path / "f.h").read_text()
    assert not hasattr(ctypes.CDLL(str(tmp_path / "f.so")), "f_xla")


def test_jax_calls_a_saved_function_without_python(saved):
    jax = pytest.importorskip("jax", reason="jax is not installed: a compiler that calls handlers")
    jax.ffi.register_ffi_target("tir_dot", jax.ffi.pycapsule(saved("float32")), platform="cpu")
    shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in OUT]
    out, count = jax.jit(lambda x, y: jax.ffi.ffi_call("tir_dot", shapes)(x, y))(ONES, 2 * ONES)
    assert np.asarray(out).tolist() == [6, 6, 6, 6] and count == 3
    with pytest.raises(Exception, match="size 0 of `Y` is not `n`"):
        jax.block_until_ready(jax.ffi.ffi_call("tir_dot", shapes)(ONES, ONES[:2]))
