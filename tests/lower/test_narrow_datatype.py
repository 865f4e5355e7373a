"""Index types: int32 where bounds prove it, int64 where they do not, the same results everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tir
from codegen.build import compile_lowered
from tir import transform
from tir.buffer import IterVar, Range, decl_buffer
from tir.expr import Add, Call, Cast, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Sub, Var, const
from tir.function import PrimFunc
from tir.interp import run
from tir.node import frozendict
from tir.script import tir as T
from tir.stmt import AttrStmt, BufferStore, For, IfThenElse
from tir.testing.oracle import assert_roundtrip, assert_same_result
from tir.visit import walk


def narrowed(func) -> str:
    """The body after the pass, with everything before it done."""
    before = tir.lower(func, upto="flatten_buffer")
    after = transform.narrow_datatype(transform.simplify(before))
    assert_roundtrip(after)
    return after.script()


def test_loops_and_indices_that_fit():
    @T.prim_func
    def f(A: T.Buffer((T.int64(128), T.int64(256)), "float32"), C: T.Buffer((T.int64(128), T.int64(256)), "float32")):
        for i, j in T.grid(T.int64(128), T.int64(256)):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj // T.int64(3)] + T.Cast("float32", vi)

    text = narrowed(f)
    assert "T.grid(128, 256)" in text
    assert 'C_1[i * 256 + j] = A_1[i * 256 + j // 3] + T.Cast("float32", i)' in text
    assert_same_result(f, tir.lower(f), engines=["interpreter"])


def test_what_is_made_of_a_size_stays_wide():
    @T.prim_func
    def f(a: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, T.int64(16)), "float32")
        C = T.match_buffer(c, (n, T.int64(16)), "float32")
        for i, j in T.grid(n, T.int64(16)):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, (vj * T.int64(5)) % T.int64(16)]

    text = narrowed(f)
    assert "T.grid(n, 16)" in text
    assert 'i * 16 + T.Cast("int64", j * 5 % 16)' in text
    assert tir.lower(f)["main"].body is not None
    a = np.random.rand(7, 16).astype("float32")
    for module in (tir.build(f), compile_lowered(transform.narrow_datatype(tir.lower(f)))):
        c = np.zeros_like(a)
        module(a, c)
        np.testing.assert_array_equal(c, a[:, np.arange(16) * 5 % 16])


def test_an_index_past_int32_is_computed_wide_from_narrow_loops():
    @T.prim_func
    def f(A: T.Buffer((T.int64(4096), T.int64(4096), T.int64(4096)), "float32")):
        for i, j, k in T.grid(T.int64(4096), T.int64(4096), T.int64(4096)):
            with T.block("A"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                A[vi, vj, vk] = T.float32(0)

    text = narrowed(f)
    assert "T.grid(4096, 4096, 4096)" in text
    assert 'T.Cast("int64", i) * 16777216 + T.Cast("int64", j * 4096) + T.Cast("int64", k)' in text


@pytest.mark.parametrize("extent, fits", [(2**31 - 1, True), (2**31, False), (2**33, False)])
def test_the_last_loop_that_fits(extent, fits):
    i, a = Var("i", "int64"), Var("a", "handle")
    A = decl_buffer((4,), "float32", "A")
    store = BufferStore(A, const(1.0), (i % 4,))
    func = PrimFunc(
        (a,), For(i, const(0, "int64"), const(extent, "int64"), "serial", store), buffer_map=frozendict({a: A})
    )
    loop = transform.narrow_datatype(func).body
    assert (loop.loop_var.dtype == "int32") == fits  # type: ignore[attr-defined]


def test_a_product_that_does_not_fit_is_not_cut_though_its_quotient_fits():
    @T.prim_func
    def f(A: T.Buffer((T.int64(100),), "int64")):
        for i in range(T.int64(100)):
            A[i] = i * T.int64(10**9) // T.int64(10**9)

    mod = tir.lower(f, passes=[transform.flatten_buffer, transform.narrow_datatype])  # as written: not simplified
    a = np.zeros(100, "int64")
    compile_lowered(mod)(a)
    np.testing.assert_array_equal(a, np.arange(100))
    assert 'T.Cast("int64", i) * 1000000000' in mod.script()


def test_conditions_are_used_and_only_steady_ones():
    @T.prim_func
    def f(n: T.int64, L: T.Buffer((T.int64(1),), "int64"), A: T.Buffer((T.int64(100),), "int64")):
        if n >= T.int64(0) and n <= T.int64(100):
            for i in range(n):
                A[i] = i
        if L[0] >= T.int64(0) and L[0] <= T.int64(100):
            for j in range(L[0]):
                A[j] = j

    text = transform.narrow_datatype(f).script()
    assert 'for i in range(T.Cast("int32", n))' in text and "A[i] = " in text
    assert "for j in range(L[0])" in text
    assert_same_result(f, transform.narrow_datatype(f), engines=["interpreter"])


def test_stored_and_passed_values_keep_their_type():
    @T.prim_func
    def f(A: T.Buffer((T.int64(8),), "int64"), B: T.Buffer((T.int64(8),), "int64")):
        for i in range(T.int64(8)):
            x: T.int64 = i * T.int64(3)
            A[i] = x + B[i]
            T.evaluate(T.call_extern("int32", "take_int64", i, x))

    text = transform.narrow_datatype(f).script()
    assert "for i in range(8)" in text and "x: T.int32 = i * 3" in text
    assert 'A[i] = T.Cast("int64", x) + B[i]' in text
    assert 'T.call_extern("int32", "take_int64", T.Cast("int64", i), T.Cast("int64", x))' in text


def test_variables_of_declarations_keep_their_type():
    @T.prim_func
    def f(A: T.Buffer((T.int64(64),), "float32")):
        for i in range(T.int64(8)):
            view = T.decl_buffer((T.int64(8),), "float32", data=A.data, elem_offset=i * T.int64(8))
            for j in range(T.int64(8)):
                view[j] = T.float32(1)

    text = transform.narrow_datatype(f).script()
    assert "for i in range(T.int64(8))" in text and "for j in range(8)" in text


def test_threads_of_a_kernel():
    @T.prim_func
    def f(A: T.Buffer((T.int64(64), T.int64(100)), "float32"), B: T.Buffer((T.int64(64),), "float32")):
        for i, k in T.grid(T.int64(64), T.int64(100)):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] += A[vi, vk]

    sch = tir.Schedule(f)
    i, k = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    sch.bind(sch.split(k, [None, T.int64(32)])[1], "threadIdx.x")
    lowered = tir.lower(sch.mod, target="cuda")
    kernel = lowered["main_kernel"].script()
    assert "int64(64)" not in kernel.replace("T.decl_buffer((T.int64(64),)", "") and 'T.Cast("int64"' not in kernel
    a, b = np.random.rand(64, 100).astype("float32"), np.zeros(64, "float32")
    tir.build(sch.mod, target="cuda-sim")(a, b)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-5)


@pytest.mark.parametrize(
    ("key", "narrow"), [("thread_extent", True), ("virtual_thread", True), ("pragma_of_mine", False)]
)
def test_only_attributes_that_launch_threads_bound_their_variable(key, narrow):
    """The value of any other attribute says nothing of the variable of the iterator that it is on."""
    x, out = Var("x", "int64"), decl_buffer((const(1 << 40, "int64"),), "int64", "O")
    node = IterVar(Range(const(0, "int64"), const(8, "int64")), x, "data_par", "threadIdx.x")
    store = BufferStore(out, x, (x,))
    handle = Var("O_handle", "handle")
    attr = AttrStmt(node, key, const(8, "int64"), store)
    func = PrimFunc((handle,), attr, buffer_map=frozendict({handle: out}))
    made = transform.narrow_datatype(func).body
    assert isinstance(made, AttrStmt) and (made.node.var.dtype.bits == 32) == narrow


def test_programs_of_int32_are_left_alone():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(0)

    assert transform.narrow_datatype(f) is f


N = 5
LOOPS = [Var("i", "int64"), Var("j", "int64")]
LARGE = [3, -5, 1000, 46341, 65536, 10**6, 10**9, 2**31 - 1, -(2**31), 2**31, 2**33]


def _expressions() -> st.SearchStrategy[Expr]:
    leaves = st.sampled_from(LOOPS) | st.sampled_from(LARGE).map(lambda v: IntImm(v, tir.DType("int64")))
    leaves |= st.sampled_from(LOOPS).map(lambda v: Cast(tir.DType("int64"), Cast(tir.DType("int8"), v)))

    def grown(inner):
        both = st.sampled_from([Add, Sub, Mul, Min, Max])
        whole = st.builds(lambda op, a, b: op(a, b), both, inner, inner)
        divisor = st.sampled_from([2, 3, 1000, 2**31]).map(lambda v: IntImm(v, tir.DType("int64")))
        return whole | st.builds(lambda op, a, b: op(a, b), st.sampled_from([FloorDiv, FloorMod]), inner, divisor)

    return st.recursive(leaves, grown, max_leaves=8)


def _fits_int64(e: Expr) -> bool:
    """Whether no part can leave int64: beyond it the meaning is open."""
    from tir.arith import Analyzer
    from tir.buffer import Range

    analyzer = Analyzer({v: Range(const(0, "int64"), const(N, "int64")) for v in LOOPS})
    for part in walk(e):
        low, high = analyzer.bound(part)
        if low is None or high is None or low < -(2**62) or high > 2**62:
            return False
    return True


@settings(max_examples=80, derandomize=True)
@given(_expressions().filter(_fits_int64), _expressions().filter(_fits_int64))
def test_any_expression_has_the_same_value(value, other):
    a, i, j = Var("a", "handle"), *LOOPS
    A = decl_buffer((N, N), "int64", "A")
    at = tuple(FloorMod(v, IntImm(N, tir.DType("int64"))) for v in (i, j))
    store = BufferStore(A, Call("if_then_else", (value < other, value, other), A.dtype), at)
    body = IfThenElse(value > Sub(other, IntImm(3, A.dtype)), store)
    for v in (j, i):
        body = For(v, const(0, "int64"), const(N, "int64"), "serial", body)
    func = PrimFunc((a,), body, buffer_map=frozendict({a: A}))
    narrow = transform.narrow_datatype(func)
    results = []
    for run_it in (lambda x: run(func, x), lambda x: run(narrow, x), compile_lowered(tir.IRModule.of(narrow))):
        array = np.full((N, N), -77, "int64")
        run_it(array)
        results.append(array)
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


@pytest.mark.parametrize(
    "declared, is_wide",
    [
        ("A: T.Buffer((65536, 32768), 'int8')", True),
        ("A: T.Buffer((65536, 16384), 'int8')", False),
        ("A: T.Buffer((3, 2), 'int8', strides=[1073741824, 1])", True),
        ("A: T.Buffer((3, 2), 'int8', strides=[1073741822, 1])", False),
    ],
)
def test_places_that_int32_does_not_hold_are_computed_in_int64(declared, is_wide):
    f = tir.script.parse(f"""
@T.prim_func
def f({declared}, i: T.int32):
    A[i, i] = T.int8(1)
""")
    assert ("int64" in tir.lower(f, upto="flatten_buffer").script().split("A_1[")[1]) == is_wide


def test_a_size_of_int64_places_elements_that_int32_counts():
    f = tir.script.parse("""
@T.prim_func
def f(a: T.handle, i: T.int32):
    n = T.int64()
    A = T.match_buffer(a, (n, 33554432), "int8")
    A[i, i] = T.int8(1)
""")
    assert 'A_1[T.Cast("int64", i) * ' in tir.lower(f, upto="flatten_buffer").script()
