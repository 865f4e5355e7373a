"""What a kernel's text promises about its parameters: only what the program keeps."""

from __future__ import annotations

import pytest

import tir
from codegen.cuda.kernel import emit_kernel
from codegen.cuda.module import is_kernel
from codegen.cuda.promises import promises
from tir.script import parse


def kernels(body: str, attrs: str = "") -> list[tir.PrimFunc]:
    lines = body.strip("\n").splitlines()
    text = "\n".join(["@T.prim_func", lines[0], *([f"    {attrs}"] if attrs else []), *lines[1:]])
    return [f for f in tir.lower(parse(text), target="cuda").functions.values() if is_kernel(f)]


def restrict(body: str, attrs: str = "") -> str:
    """The names of the parameters that are restrict, in the one kernel."""
    (kernel,) = kernels(body, attrs)
    return " ".join(p.name for p, made in promises(kernel).items() if made.restrict)


THROUGH_GLOBAL = """
def f(A: T.Buffer((5,), "int32"), O: T.Buffer((5, 2), "int32")):
    S = T.alloc_buffer((5,), "int32")
    for i in T.thread_binding(5, thread="blockIdx.x"):
        for t in T.thread_binding(2, thread="threadIdx.x"):
            with T.block("S"):
                vi = T.axis.spatial(5, i)
                T.where(t == 0)
                S[vi] = A[vi]
        for t in T.thread_binding(2, thread="threadIdx.x"):
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, t])
                O[vi, vj] = S[vi] * 2 + vj
"""

ARGMAX = """
def f(
    idx: T.Buffer((14,), "int32"),
    val: T.Buffer((14,), "float32"),
    w: T.Buffer((14,), "float32"),
    oi: T.Buffer((2,), "int32"),
    ov: T.Buffer((2,), "float32"),
):
    for t in T.thread_binding(2, thread="threadIdx.x"):
        for k in range(14):
            with T.LetStmt(T.Select(ov[t] >= w[k], oi[t], idx[k])) as v:
                with T.LetStmt(T.Select(ov[t] >= w[k], ov[t], val[k])) as x:
                    oi[t] = v
                    ov[t] = x
"""


STAGED = """
def f(
    idx: T.Buffer((14,), "int32"),
    val: T.Buffer((14,), "float32"),
    w: T.Buffer((14,), "float32"),
    oi: T.Buffer((2,), "int32"),
    ov: T.Buffer((2,), "float32"),
):
    for t in T.thread_binding(1, thread="threadIdx.x"):
        for k in T.unroll(7):
            S = T.alloc_buffer((2,), "int32", scope="local")
            for j in T.unroll(2):
                S[j] = idx[j * 7 + k]
            for j in T.unroll(2):
                with T.LetStmt(T.Select(ov[j] >= w[j * 7 + k], oi[j], S[j])) as v:
                    with T.LetStmt(T.Select(ov[j] >= w[j * 7 + k], ov[j], val[j * 7 + k])) as x:
                        oi[j] = v
                        ov[j] = x
"""


def test_memory_that_a_kernel_writes_is_never_restrict():
    assert restrict(THROUGH_GLOBAL) == "A"


def test_nor_anything_where_a_kernel_chooses_and_reads_what_it_writes():
    assert restrict(ARGMAX) == restrict(STAGED) == ""


@pytest.mark.parametrize(
    "value, wanted",
    [
        ("T.if_then_else(t < 3, A[t], C[t])", "A C"),  # B is not read
        ("B[t] + A[t] * C[t]", "A C"),  # no choice
        ("T.max(B[t], A[t]) + C[t]", "A C"),
        ("T.if_then_else(t < 3, B[t], A[t]) + C[t]", ""),
        ("T.Select(t < 3, A[t], B[t]) + C[t]", ""),
        ("B[t] + T.if_then_else(t < 3, A[t], C[t])", ""),
    ],
)
def test_a_choice(value: str, wanted: str):
    text = f"""
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        B[t] = {value}
"""
    assert restrict(text) == wanted


def test_branches_of_statements():
    text = """
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        B[t] = 1.0
        if C[t] < 3.0:
            O[t] = B[7 - t]{0}
        {1}:
            O[t] = A[7 - t]
"""
    assert restrict(text.format("", "else")) == ""
    assert restrict(text.format("", "if C[t] > 5.0")) == "C"  # A and B are in different branches
    inside = text.format(" + A[t]", "if C[t] > 5.0").replace("            O[t] = A[7 - t]", "            O[t] = 2.0")
    assert restrict(inside) == "A C"


def test_overlapping_arguments_are_not_restrict():
    text = """
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        B[t] = A[t]
"""
    assert restrict(text) == "A"
    assert restrict(text, 'T.func_attr({"tir.noalias": False})') == ""
    (kernel,) = kernels(text, 'T.func_attr({"tir.noalias": False})')
    assert "const float* A, float* B" in emit_kernel(kernel, "k").text


def test_the_read_only_cache_is_for_memory_that_nothing_writes():
    text = """
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    memory = T.allocate([1], "float32", "local")
    T.evaluate(T.ptx_ldg32(memory, tx < 7, T.address_of({0}[tx]), 0))
    R = T.decl_buffer((1,), "float32", data=memory, scope="local")
    B[tx] = R[0]
"""
    for name, wanted in (("A", "__ldg(&A[tx])"), ("B", "*(&B[tx])")):
        (func,) = tir.IRModule.of(parse("@T.prim_func" + text.format(name))).functions.values()
        assert wanted in emit_kernel(func, "k").text
