"""``tir.build(mod, "cuda-ptx")``: arguments, orders, reports and errors of the module."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tir
from tests.gpu_examples import NAMES
from tests.tools.executed_kernels import Record, examples, executed, operators, programs_of_the_library, table
from tir import BuildError, RunError
from tir.dtype import DType
from tir.interp.numbers import array_dtype
from tir.script import parse

SCALE = """
@T.prim_func
def scale(a: T.handle, B: T.Buffer((3, 8), "float32"), factor: T.float32):
    s0, s1 = T.int32(), T.int32()
    A = T.match_buffer(a, (3, 8), "float32", strides=[s0, s1])
    for i in T.thread_binding(3, thread="blockIdx.x"):
        for j in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * factor + T.Cast("float32", s0)
"""


def test_arrays_of_numpy_are_written_in_place():
    mod = tir.build(parse(SCALE), "cuda-ptx")
    a, b = np.arange(24, dtype="float32").reshape(3, 8), np.zeros((3, 8), "float32")
    mod(a, b, 2.0)
    assert (b == a * 2 + 8).all()
    mod(a, factor=3.0, B=b)
    assert (b == a * 3 + 8).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_arrays_of_types_that_numpy_lacks_are_held_as_their_bits(dtype: str):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((8,), "{dtype}"), B: T.Buffer((8,), "{dtype}")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        B[t] = A[7 - t]
""")
    a, b = np.arange(8).astype(array_dtype(DType(dtype))), np.zeros(8, array_dtype(DType(dtype)))
    tir.build(func, "cuda-ptx")(a, b)
    np.testing.assert_array_equal(b, a[::-1])


@pytest.mark.parametrize("view", [lambda x: x[:, ::2], lambda x: x[:, 5:13], lambda x: x.T[:8].T])
def test_arrays_keep_their_strides(view):
    a, out = view(np.arange(48, dtype="float32").reshape(3, 16)), np.zeros((3, 8), "float32")
    tir.build(parse(SCALE), "cuda-ptx")(a, out, 2.0)
    assert (out == a * 2 + a.strides[0] // 4).all()


def test_arrays_that_overlap_do_so_in_the_kernel():
    mod = tir.build(
        parse("""
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tir.noalias": False})
    for t in T.thread_binding(1, thread="threadIdx.x"):
        for i in range(8):
            B[i] = A[i] + 1
"""),
        "cuda-ptx",
    )
    memory = np.zeros(12, "int32")
    mod(memory[:8], memory[1:9])
    assert memory.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0]


def test_the_order_of_threads_is_an_option_and_an_attribute():
    mod = tir.build(parse(SCALE), "cuda-ptx -arch=sm_75 -order=reverse")
    assert mod.order == "reverse" and ".target sm_75" in mod.source("ptx")
    mod.order = "threads"
    with pytest.raises(ValueError, match="no order 'random' of warps; there are together, forward, reverse, threads"):
        mod.order = "random"
    with pytest.raises(BuildError, match="no order 'random'"):
        tir.build(parse(SCALE), "cuda-ptx -order=random")
    with pytest.raises(BuildError, match="target cuda-ptx has no option 'speed'"):
        tir.build(parse(SCALE), "cuda-ptx -speed=3")


def test_the_report_counts_what_was_executed():
    mod = tir.build(parse(SCALE), "cuda-ptx")
    assert str(mod.report) == "no launch yet"
    mod(np.zeros((3, 8), "float32"), np.zeros((3, 8), "float32"), 1.0)
    (row,) = mod.report
    assert row.executed["st.global.f32"] == 24 and row.kinds()["memory"] == 48 and row.registers > 0
    assert "main_kernel" in str(mod.report) and "instructions" in str(mod.report)


def test_a_fault_is_a_run_error_that_names_kernel_and_line():
    mod = tir.build(
        parse("""
@T.prim_func
def f(I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        B[I[i]] = 1.0
"""),
        "cuda-ptx",
    )
    with pytest.raises(
        RunError, match=r"main_kernel: an access of 4 bytes .* outside of every allocation .*PTX line \d+"
    ):
        mod(np.full(8, 99, "int32"), np.zeros(8, "float32"))


def test_buffers_between_kernels_have_bounds_of_their_own():
    program = """
@T.prim_func
def f(I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        B[I[i]] = i
    for i in T.thread_binding(8, thread="threadIdx.x"):
        C[i] = B[i]
"""
    mod, out = tir.build(parse(program), "cuda-ptx"), np.zeros(8, "int32")
    mod(np.arange(8, dtype="int32")[::-1].copy(), out)
    assert out.tolist() == list(range(8))[::-1]
    with pytest.raises(RunError, match="outside of every allocation"):
        mod(np.arange(1, 9, dtype="int32"), out)
    with pytest.raises(RunError, match="nothing has written"):
        mod(np.zeros(8, "int32"), out)  # and what an earlier call left there does not count


def test_prints_and_asserts_of_kernels(capsys: pytest.CaptureFixture[str]):
    mod = tir.build(
        parse("""
@T.prim_func
def f(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "int32")):
    for i in T.thread_binding(2, thread="threadIdx.x"):
        T.evaluate(T.print("value", A[i], B[i]))
        assert B[i] < 5, "too great"
"""),
        "cuda-ptx",
    )
    mod(np.array([1.5, 2.5], "float32"), np.array([3, -4], "int32"))
    assert capsys.readouterr().out.splitlines() == ["value 1.5 3", "value 2.5 -4"]
    with pytest.raises(RunError, match="trap"):
        mod(np.zeros(2, "float32"), np.array([3, 7], "int32"))


def test_threads_that_atomics_serialise_end():
    """bfloat16 has no atomic addition on sm_80: a loop of compare and swap, in which all threads of a block contend."""
    mod = tir.build(
        parse("""
@T.prim_func
def f(A: T.Buffer((64,), "bfloat16"), B: T.Buffer((2,), "bfloat16")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        T.evaluate(T.atomic_add(T.address_of(B[i % 2]), A[i], dtype="bfloat16"))
"""),
        "cuda-ptx -arch=sm_80",
    )
    for order in ("together", "forward", "reverse", "threads"):
        mod.order = order
        out = np.zeros(2, "uint16")
        mod(np.full(64, 0x3F80, "uint16"), out)
        assert out.tolist() == [0x4200, 0x4200]  # 32


@pytest.mark.parametrize("name", NAMES)
def test_example(name: str):
    """The kernels of the documentation's examples, compiled and executed, give what NumPy gives."""
    (program,) = examples([name])
    assert not executed(program, ("reverse",)).wrong


SHARE = [
    *(program for name in ("argmax", "cumsum", "matrix_set_diag", "topk") for program in [*operators([name])][:1]),
    *programs_of_the_library(["softmax", "transpose"]),
]


@pytest.mark.parametrize("program", SHARE, ids=[p.title for p in SHARE])
def test_program_by_its_default_schedule(program):
    """A share of what ``python -m tests.tools.executed_kernels`` judges: all operators and libraries."""
    result = executed(program, ("threads",))
    assert not result.wrong and result.launches


def test_the_table_counts_what_is_right_and_says_what_is_not(tmp_path):
    (program,) = programs_of_the_library(["scale_add"])
    broken = replace(program, title="library: broken", judge=lambda function: program.judge(lambda *arrays: None))
    record = Record(tmp_path / "record")
    for p in (program, broken):
        record.add("library", p.title, executed(p, ("forward",)))
    right, wrong = Record(tmp_path / "record").found["library"].values()
    assert right.executed["st.global.f32"] == 300 and "AssertionError" in wrong.wrong
    (row,) = [line for line in table(record.found).splitlines() if "library" in line]
    assert row.split()[:4] == ["library", "2", "1", "1"]
    assert record.has("library", program.title) and not record.has("library", broken.title)


@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
@pytest.mark.parametrize("kernels", [1, 3])
def test_memory_that_only_views_name_is_declared(scope, kernels):
    """Each kernel writes and reads its memory by views of another shape alone, some of another type."""
    one = f"""
    for b in T.thread_binding(1, thread="blockIdx.x"):
        Y = T.allocate((64,), "float32", "{scope}")
        V = T.Buffer((32, 2), "float32", data=Y, scope="{scope}")
        W = T.Buffer((64,), "int32", data=Y, scope="{scope}")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            V[t, 0] = A[t * 2]
            W[t * 2 + 1] = T.reinterpret("int32", A[t * 2 + 1])
            T.evaluate(T.tvm_storage_sync("{scope}"))
            O[t] = O[t] + V[31 - t, 0]
            O[t + 32] = O[t + 32] + V[31 - t, 1]
"""
    head = '\n@T.prim_func\ndef f(A: T.Buffer((64,), "float32"), O: T.Buffer((64,), "float32")):'
    module = tir.build(parse(head + one * kernels), "cuda-ptx -arch=sm_80")
    a, out = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    module(a, out)
    assert (out == kernels * a.reshape(32, 2)[::-1].T.ravel()).all()


@pytest.mark.parametrize("view", ["", "I[t] = 7"])
@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
@pytest.mark.parametrize("target", ["cuda-sim", "cuda-ptx -arch=sm_80"])
def test_memory_that_only_pointers_of_operators_name_has_a_place(target, scope, view):
    """Also where a view of another type is there: what an operator adds counts elements of the allocation."""
    module = tir.build(
        parse(f"""
@T.prim_func
def f(A: T.Buffer((64,), "float16"), B: T.Buffer((64,), "float16")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        P = T.allocate((32,), "float32", "{scope}")
        S = T.allocate((64,), "float16", "{scope}")
        I = T.Buffer((32,), "int32", data=S, scope="{scope}")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            F = T.allocate((2,), "float16", "local")
            V = T.Buffer((2,), "float16", data=F, scope="local")
            {view}
            if t < 8:
                T.evaluate(T.ptx_cp_async("float16", S, t * 8, A.data, t * 8, 16))
            T.evaluate(T.ptx_commit_group())
            T.evaluate(T.ptx_wait_group(0))
            T.evaluate(T.tvm_storage_sync("{scope}"))
            T.evaluate(T.ptx_ldmatrix("float16", False, 1, ".b16", F, 0, S, t % 8 * 8))
            for k in range(2):
                B[t * 2 + k] = V[k]
"""),
        target,
    )
    a, out = np.arange(64, dtype="float16"), np.zeros(64, "float16")
    module(a, out)
    assert (out == a).all()


@pytest.mark.parametrize("dtype, n", [("int8", 9), ("int8", 7), ("int16", 5)])
def test_bytes_that_a_load_takes_along_need_not_be_written(dtype, n):
    """NVRTC loads whole vectors, and says which of their bytes are used."""
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer(({n},), "{dtype}"), B: T.Buffer(({n},), "{dtype}")):
    S = T.alloc_buffer(({n},), "{dtype}", scope="shared")
    for t in T.thread_binding(32, thread="threadIdx.x"):
        if t < {n}:
            S[t] = A[t]
        T.tvm_storage_sync("shared")
        if t < 1:
            for j in range({n}):
                B[j] = S[j]
""")
    mod = tir.build(func, "cuda-ptx")
    a, b = np.arange(n, dtype=dtype), np.zeros(n, dtype)
    mod(a, b)
    assert (a == b).all() and "used_bytes_mask" in mod.source("ptx")
