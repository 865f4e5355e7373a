"""Kernels call functions of their module that compute a number from numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse

MODULE = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def sign(x: T.float32) -> T.float32:
        if x < 0.0:
            return T.float32(-1)
        return T.float32(1)

    @T.prim_func(private=True)
    def poly(x: T.float32, k: T.int32) -> T.float32:
        y = x * x
        z = y * x
        return y + z * T.Cast("float32", k) + Module.sign(x)

    @T.prim_func
    def main(A: T.Buffer((40,), "float32"), B: T.Buffer((40,), "float32")):
        for i in range(40):
            with T.block("B"):
                v = T.axis.spatial(40, i)
                B[v] = CALL
"""


@pytest.mark.parametrize(
    "call",
    [
        "Module.poly(A[v] + 1.0, v % 3) + Module.poly(A[v], 2)",
        "Module.poly(Module.sign(Module.poly(A[v], 1)), v)",
        "Module.poly(3, A[v] > 0.0)",
        'T.Cast("float32", T.call_global("sign", A[v], dtype="int32"))',
    ],
)
def test_a_kernel_computes_what_they_return(call):
    module = parse(MODULE.replace("CALL", call))
    sch = tir.Schedule(module)
    outer, inner = sch.split("i", [None, 16])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    a = np.random.default_rng(0).standard_normal(40).astype("float32")
    found = [np.zeros(40, "float32") for _ in range(4)]
    for b, (mod, target) in zip(found, [(module, "interpreter"), (module, "llvm"), (module, "cuda-sim"), (sch.mod, "cuda-sim")]):  # fmt: skip
        tir.build(mod, target)["main"](a, b)
        np.testing.assert_allclose(b, found[0], rtol=1e-5)
    assert "call_global" not in tir.lower(sch.mod, target="cuda").script()


def test_a_host_computes_the_size_of_a_launch():
    module = parse("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add(a: T.int32, b: T.int32) -> T.int32:
        return a + b

    @T.prim_func
    def main(A: T.Buffer((16, 16), "int32"), C: T.Buffer((16, 16), "int32")):
        length: T.int32 = Module.add(8, 8)
        for bx in T.thread_binding(length, "blockIdx.x"):
            for tx in T.thread_binding(length, "threadIdx.x"):
                C[bx, tx] = Module.add(A[bx, tx], tx)
""")
    a, c = np.arange(256, dtype="int32").reshape(16, 16), np.zeros((16, 16), "int32")
    tir.build(module, "cuda-sim")["main"](a, c)
    np.testing.assert_array_equal(c, a + np.arange(16))


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("Module.poly(A[v], 1, 2)", "has 3 arguments; it takes 2"),
        ("Module.sign(A[v]) + Module.poly()", "has 0 arguments"),
    ],
)
def test_another_number_of_arguments_is_refused(call, why):
    with pytest.raises(tir.BuildError, match=why):
        tir.build(parse(MODULE.replace("CALL", call)), "cuda-sim")


def test_a_function_that_calls_itself_is_refused():
    module = parse(MODULE.replace("return T.float32(-1)", "return Module.sign(x + 1.0)").replace("CALL", "A[v]"))
    with pytest.raises(tir.BuildError, match="sign calls itself"):
        tir.build(module, "cuda-sim")


def test_a_kernel_that_passes_pointers_to_a_function_is_not_built():
    module = parse("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def row(A: T.Buffer((16,), "float32")):
        for i in range(16):
            A[i] = A[i] + 1.0

    @T.prim_func
    def main(A: T.Buffer((4, 16), "float32")):
        for i in T.thread_binding(4, "threadIdx.x"):
            Module.row(T.address_of(A[i, 0]))
""")
    for target in ("cuda", "cuda-sim"):
        with pytest.raises(tir.BuildError, match=r"the kernel calls a function of the module, .*row"):
            tir.build(module, target)
