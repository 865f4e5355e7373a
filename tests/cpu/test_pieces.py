"""Modules compiled in pieces compute, fail, free memory and are cached as whole ones."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from codegen.build import build
from codegen.llvm import compile as llvm
from codegen.llvm import pieces
from codegen.llvm.compile import parsed
from tir.function import IRModule
from tir.script import ir as I
from tir.script import tir as T

N = 1 << 12


@I.ir_module
class Several:
    @T.prim_func
    def twice(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32")):
        for i in T.parallel(N):
            B[i] = A[i] * T.float32(2)

    @T.prim_func
    def picky(A: T.Buffer((N,), "float32"), n: T.int32, B: T.Buffer((N,), "float32")):
        assert n > 0, "n must be positive"
        C = T.decl_buffer((N, 64), "float32")
        for i, j in T.grid(N, 64):
            C[i, j] = T.exp(A[i]) + T.Cast("float32", j)
        for i in T.serial(N):
            B[i] = C[i, n % 64]

    @T.prim_func
    def again(A: T.Buffer((N,), "float32"), n: T.int32, B: T.Buffer((N,), "float32")):
        assert n < 9, "n must be small"
        C = T.decl_buffer((N, 64), "float32")
        for i, j in T.grid(N, 64):
            C[i, j] = A[i] - T.Cast("float32", j)
        for i in T.vectorized(N):
            B[i] = C[i, n]

    @T.prim_func
    def main(A: T.Buffer((N,), "float32"), n: T.int32, B: T.Buffer((N,), "float32"), C: T.Buffer((N,), "float32")):
        T.func_attr({"tir.noalias": False})
        Several.twice(A.data, B.data)
        Several.picky(A.data, n, B.data)
        Several.again(B.data, n, C.data)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TIR_CACHE", "1")
    return tmp_path


def check(module) -> None:
    a = np.random.default_rng(1).standard_normal(N).astype("float32")
    b, c = np.zeros(N, "float32"), np.zeros(N, "float32")
    module["main"](a, 3, b, c)
    np.testing.assert_allclose(b, np.exp(a.astype("float64")) + 3, rtol=1e-5)
    np.testing.assert_allclose(c, b - 3, rtol=1e-5, atol=1e-5)
    module["twice"](a, b)
    np.testing.assert_array_equal(b, 2 * a)
    for n, message in ((0, "n must be positive"), (9, "n must be small")):
        with pytest.raises(tir.RunError, match=message):
            module["main"](a, n, b, c)


def test_pieces_compute_what_the_whole_does(folder, monkeypatch):
    whole = build(Several)
    check(whole)
    monkeypatch.setattr(pieces, "LEAST", 1)
    made = build(IRModule.of(Several).replace(attrs={"in": "pieces"}))
    assert len(whole.compiled.code) == 1 and len(made.compiled.code) == 4
    check(made)
    assert made.source("llvm") == whole.source("llvm")
    made.save(folder / "made.so")
    loaded = tir.load(folder / "made.so")
    check(loaded)


def test_pieces_that_were_kept_are_found(monkeypatch):
    monkeypatch.setattr(pieces, "LEAST", 1)
    first = build(Several)
    monkeypatch.setattr("codegen.compiled.object_codes", None)
    again = build(Several)
    assert again.compiled.code == first.compiled.code
    check(again)


def test_each_piece_is_a_module_and_defines_its_functions_once(monkeypatch):
    monkeypatch.setattr(pieces, "LEAST", 1)
    text = build(Several).source("llvm")
    found = pieces.pieces(str(text))
    seen = [name for piece in found for name in re.findall(r"^define (?!internal)[^@]*(@\S+)\(", piece, re.M)]
    assert sorted(seen) == sorted(set(re.findall(r"^define (?!internal)[^@]*(@\S+)\(", str(text), re.M)))
    for piece in found:
        with parsed(piece):
            pass
    assert [llvm.object_code(piece, llvm.machine()) for piece in found] == list(build(Several).compiled.code)
