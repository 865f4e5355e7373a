"""Compiled code against NumPy and Python: arithmetic, control flow, memory, threads, calls."""

from __future__ import annotations

import ctypes
import gc
import pathlib
import traceback

import numpy as np
import pytest

import tir
from codegen.build import compile_lowered
from codegen.llvm.compile import Loaded, machine, optimised, parsed
from codegen.runtime.packed_functions import register_func
from tir import te
from tir.buffer import decl_buffer
from tir.errors import BuildError, RunError
from tir.expr import (
    EQ,
    LT,
    TRUE,
    Add,
    Broadcast,
    BufferLoad,
    Call,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Ramp,
    Select,
    Shuffle,
    StringImm,
    Var,
    const,
)
from tir.function import IRModule, PrimFunc
from tir.node import frozendict
from tir.stmt import Allocate, AssertStmt, BufferStore, Evaluate, For, IfThenElse, LetStmt, While, seq


def function(buffers, body, scalars=(), **attrs):
    """A PrimFunc over ``buffers`` then ``scalars``."""
    handles = [Var(b.name.lower(), "handle") for b in buffers]
    return PrimFunc((*handles, *scalars), body, buffer_map=frozendict(zip(handles, buffers)), attrs=frozendict(attrs))


def compiled(*args, **kwargs):
    return compile_lowered(IRModule.of(function(*args, **kwargs)))


def loop(var, extent, body, kind="serial"):
    return For(var, IntImm(0), IntImm(extent) if isinstance(extent, int) else extent, kind, body)


def elementwise(make, dtype, count, lanes=1, out=None):
    A, B, C = (decl_buffer((count,), d, n) for n, d in (("A", dtype), ("B", dtype), ("C", out or dtype)))
    i = Var("i")
    at = (i if lanes == 1 else Ramp(i * lanes, IntImm(1), lanes),)
    return compiled([A, B, C], loop(i, count // lanes, BufferStore(C, make(BufferLoad(A, at), BufferLoad(B, at)), at)))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_integer_division_of_every_sign(dtype, lanes):
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    a = np.concatenate([rng.integers(info.min, info.max, 60, dtype=dtype), np.array([info.min, info.max, 0, 7], dtype)])
    b = np.where((x := rng.integers(max(info.min, -9), 9, 64)) == 0, 1, x).astype(dtype)
    if info.min < 0:
        b[60] = -1  # least integer // -1 wraps around instead of trapping
    for kind, want in ((FloorDiv, np.floor_divide), (FloorMod, np.mod), (Div, None), (Mod, np.fmod)):
        c = np.zeros(64, dtype)
        elementwise(kind, dtype, 64, lanes)(a, b, c)
        with np.errstate(over="ignore"):
            expected = want(a, b) if want else ((a - np.fmod(a, b)) // b).astype(dtype)
        np.testing.assert_array_equal(c, expected, err_msg=kind.__name__)


@pytest.mark.parametrize("divisor", [1, 2, 8, 3, 7, -3])
def test_division_by_constants(divisor):
    a = np.arange(-32, 32, dtype=np.int32)
    for kind, want in ((FloorDiv, a // divisor), (FloorMod, a % divisor)):
        c = np.zeros(64, np.int32)
        elementwise(lambda x, _, kind=kind: kind(x, const(divisor)), "int32", 64)(a, a, c)
        np.testing.assert_array_equal(c, want)


def test_division_by_zero_is_an_error_not_a_crash():
    m = elementwise(FloorDiv, "int32", 16)
    with pytest.raises(RunError, match="division by zero"):
        m(np.ones(16, np.int32), np.zeros(16, np.int32), np.zeros(16, np.int32))


@pytest.mark.parametrize("lanes", [1, 16])
def test_minimum_and_maximum_keep_nan(lanes):
    a = np.array([np.nan, 1, 2, np.nan] * 4, np.float32)
    b = np.array([1, np.nan, 1, np.nan] * 4, np.float32)
    for kind, want in ((Min, np.minimum), (Max, np.maximum)):
        c = np.zeros(16, np.float32)
        elementwise(kind, "float32", 16, lanes)(a, b, c)
        np.testing.assert_array_equal(c, want(a, b))
    c = np.zeros(16, np.float32)
    zero = const(0.0, "float32")
    elementwise(lambda x, _: Max(x, zero if lanes == 1 else Broadcast(zero, lanes)), "float32", 16, lanes)(a, b, c)
    np.testing.assert_array_equal(c, np.maximum(a, 0))


@pytest.mark.parametrize("step", [1, -1, 2, 3, 0])
def test_strided_vector_loads(step):
    A, B = decl_buffer((64,), name="A"), decl_buffer((8,), name="B")
    start = 32
    body = BufferStore(B, BufferLoad(A, (Ramp(IntImm(start), IntImm(step), 8),)), (Ramp(IntImm(0), IntImm(1), 8),))
    a, b = np.arange(64, dtype=np.float32), np.zeros(8, np.float32)
    compiled([A, B], body)(a, b)
    np.testing.assert_array_equal(b, a[start + step * np.arange(8)])


@pytest.mark.parametrize("step", [1, -1, 5])
def test_strided_vector_stores(step):
    A, B = decl_buffer((8,), name="A"), decl_buffer((128,), name="B")
    body = BufferStore(B, BufferLoad(A, (Ramp(IntImm(0), IntImm(1), 8),)), (Ramp(IntImm(50), IntImm(step), 8),))
    a, b = np.arange(8, dtype=np.float32), np.zeros(128, np.float32)
    compiled([A, B], body)(a, b)
    want = np.zeros(128, np.float32)
    want[50 + step * np.arange(8)] = a
    np.testing.assert_array_equal(b, want)


def test_two_dimensional_buffers_without_flattening():
    A, B = decl_buffer((8, 16), name="A"), decl_buffer((16, 8), name="B")
    i, j = Var("i"), Var("j")
    column = BufferLoad(A, (Ramp(IntImm(0), IntImm(1), 8), Broadcast(j, 8)))
    body = loop(j, 16, BufferStore(B, column, (j, Ramp(IntImm(0), IntImm(1), 8))))
    a, b = np.random.rand(8, 16).astype(np.float32), np.zeros((16, 8), np.float32)
    compiled([A, B], body)(a, b)
    np.testing.assert_array_equal(b, a.T)
    assert i is not j


def test_masked_vectors_touch_only_their_lanes():
    A, B, n, i = decl_buffer((20,), name="A"), decl_buffer((20,), name="B"), Var("n"), Var("i")
    at = Ramp(i * 8, IntImm(1), 8)
    inside = LT(at, Broadcast(n, 8))
    body = loop(i, 3, IfThenElse(inside, BufferStore(B, BufferLoad(A, (at,)) + Broadcast(const(1.0), 8), (at,))))
    a, b = np.arange(20, dtype=np.float32), np.zeros(20, np.float32)
    compiled([A, B], body, [n])(a, b, 17)
    np.testing.assert_array_equal(b, np.where(np.arange(20) < 17, a + 1, 0))


def test_lazy_choice_does_not_evaluate_the_other_side():
    A, B, i = decl_buffer((4,), name="A"), decl_buffer((8,), name="B"), Var("i")
    far = BufferLoad(A, (i * 1000000,))
    body = loop(i, 8, BufferStore(B, Call("if_then_else", (EQ(i, IntImm(0)), far, const(-1.0)), far.dtype), (i,)))
    b = np.zeros(8, np.float32)
    compiled([A, B], body)(np.full(4, 5, np.float32), b)
    np.testing.assert_array_equal(b, [5] + [-1] * 7)


def test_while_let_and_select():
    B, x = decl_buffer((1,), "int32", "B"), Var("x")
    here = BufferLoad(B, (IntImm(0),))
    step = LetStmt(x, here, BufferStore(B, Select(LT(x, const(50)), x * 2, x + 1), (IntImm(0),)))
    b = np.array([3], np.int32)
    compiled([B], While(LT(here, const(100)), step))(b)
    assert b[0] == 100


def test_shuffle_picks_lanes():
    A, B = decl_buffer((8,), name="A"), decl_buffer((4,), name="B")
    at = Ramp(IntImm(0), IntImm(1), 8)
    picked = Shuffle((BufferLoad(A, (at,)),), tuple(IntImm(k) for k in (7, 0, 3, 3)))
    a, b = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    compiled([A, B], BufferStore(B, picked, (Ramp(IntImm(0), IntImm(1), 4),)))(a, b)
    np.testing.assert_array_equal(b, [7, 0, 3, 3])


@pytest.mark.parametrize("index", [IntImm(8), IntImm(-1), Var("n")])
def test_a_shuffle_picks_lanes_that_are_known_and_there(index):
    A, B = decl_buffer((8,), name="A"), decl_buffer((2,), name="B")
    picked = Shuffle((BufferLoad(A, (Ramp(IntImm(0), IntImm(1), 8),)),), (IntImm(0), index))
    with pytest.raises(BuildError, match=r"shuffle indices must be constants in \[0, 8\)"):
        compiled([A, B], BufferStore(B, picked, (Ramp(IntImm(0), IntImm(1), 2),)))


def test_an_expression_that_lowering_removes_is_named():
    A, B = te.placeholder((4, 8), name="A"), decl_buffer((1,), name="B")
    k = te.reduce_axis((0, 8), "k")
    total = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), "B").op.body[0]
    with pytest.raises(BuildError, match=r"\(Reduce\) cannot be compiled; lower it first"):
        compiled([B], BufferStore(B, total, (IntImm(0),)))


@pytest.mark.parametrize("size", [16, 100_000])
def test_allocations_on_stack_and_heap(size):
    A, i = decl_buffer((size,), name="A"), Var("i")
    T, j = decl_buffer((size,), name="T"), Var("j")
    body = seq(
        [
            loop(i, size, BufferStore(T, BufferLoad(A, (i,)) * 2.0, (i,))),
            loop(j, size, BufferStore(A, BufferLoad(T, (IntImm(size - 1) - j,)), (j,))),
        ]
    )
    a = np.arange(size, dtype=np.float32)
    compiled([A], Allocate(T.data, T.dtype, T.shape, TRUE, body))(a)
    np.testing.assert_array_equal(a, np.arange(size, dtype=np.float32)[::-1] * 2)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_parallel_loops_cover_every_iteration_once(threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    B, n, i, j = decl_buffer((100,), "int32", "B"), Var("n"), Var("i"), Var("j")
    bump = BufferStore(B, BufferLoad(B, (i * 10 + j,)) + i, (i * 10 + j,))
    m = compiled([B], loop(i, n, loop(j, 10, bump, "parallel"), "parallel"), [n])
    for size in (0, 1, 7, 10):
        b = np.zeros(100, np.int32)
        m(b, size)
        np.testing.assert_array_equal(b, np.where(np.arange(100) < size * 10, np.arange(100) // 10, 0))


def test_asserts_name_what_failed_also_in_parallel_loops():
    B, i = decl_buffer((8,), "int32", "B"), Var("i")
    check = AssertStmt(LT(BufferLoad(B, (i,)), const(5)), StringImm("B must stay below 5"))
    for kind in ("serial", "parallel"):
        m = compiled([B], loop(i, 8, check, kind))
        m(np.zeros(8, np.int32))
        with pytest.raises(RunError, match="B must stay below 5"):
            m(np.arange(8, dtype=np.int32))


def test_symbolic_sizes_come_from_shapes():
    n, i = Var("n"), Var("i")
    A, B = decl_buffer((n,), name="A"), decl_buffer((n,), name="B")
    m = compiled([A, B], loop(i, n, BufferStore(B, BufferLoad(A, (i,)) + 1.0, (i,))))
    for size in (5, 9, 5):
        a, b = np.random.rand(size).astype(np.float32), np.zeros(size, np.float32)
        m(a, b)
        np.testing.assert_array_equal(b, a + np.float32(1))
    with pytest.raises(RunError, match="`B`"):
        m(np.zeros(4, np.float32), np.zeros(5, np.float32))


def test_calls_between_functions_and_return_values():
    x = Var("x", "float32")
    square = PrimFunc((x,), Evaluate(Call("ret", (x * x,), x.dtype)), ret_type=x.dtype)
    B = decl_buffer((1,), name="B")
    called = Call("call_extern", (StringImm("square"), BufferLoad(B, (IntImm(0),))), x.dtype)
    m = compile_lowered(
        IRModule(
            frozendict(
                {
                    "square": square,
                    "main": function([B], BufferStore(B, called + 1.0, (IntImm(0),))),
                }
            )
        )
    )
    assert m["square"](3.0) == 9.0
    b = np.array([4], np.float32)
    m(b)
    assert b[0] == 17


def test_extern_c_functions_and_llvm_intrinsics():
    def cube_root(x, _):
        return Call("call_pure_extern", (StringImm("cbrtf"), x), x.dtype)

    def fused(x, y):
        return Call("call_llvm_pure_intrin", (StringImm("llvm.fma.f32"), x, y, x), x.dtype)

    a, b, c = np.array([8, 27], np.float32), np.array([2, 3], np.float32), np.zeros(2, np.float32)
    elementwise(cube_root, "float32", 2)(a, b, c)
    np.testing.assert_allclose(c, [2, 3], rtol=1e-6)
    elementwise(fused, "float32", 2)(a, b, c)
    np.testing.assert_array_equal(c, a * b + a)


def test_packed_calls_reach_python_and_carry_its_exceptions():
    seen: list[object] = []

    def note(text, value):
        seen.append((text, value))
        if value > 2:
            raise KeyError("too much")
        return value * 10

    register_func("test.note", note, override=True)
    B = decl_buffer((1,), "int32", "B")
    here = BufferLoad(B, (IntImm(0),))
    call = Call("call_packed", (StringImm("test.note"), StringImm("hi"), here), here.dtype)
    m = compiled([B], BufferStore(B, call, (IntImm(0),)))
    b = np.array([2], np.int32)
    m(b)
    assert b[0] == 20 and seen == [("hi", 2)]
    with pytest.raises(KeyError, match="too much"):
        m(b)


def test_four_bit_and_bool_elements_take_a_byte():
    A, B = decl_buffer((4,), "int4", "A"), decl_buffer((4,), "bool", "B")
    i = Var("i")
    a_at = BufferLoad(A, (i,))
    body = loop(
        i, 4, seq([BufferStore(A, a_at + const(7, "int4"), (i,)), BufferStore(B, LT(a_at, const(0, "int4")), (i,))])
    )
    a, b = np.array([0, 1, -8, 3], np.int8), np.zeros(4, np.bool_)
    compiled([A, B], body)(a, b)
    np.testing.assert_array_equal(a, [7, -8, -1, -6])
    np.testing.assert_array_equal(b, [False, True, True, True])


def test_accumulators_stay_in_registers():
    """A register tile updated in a loop, its init under `k == 0`: no store inside the loop, full-width fused adds."""
    n, lanes = 64, 16
    A, B, C = (decl_buffer((n, n), name=s) for s in "ABC")
    io, jo, k = Var("io"), Var("jo"), Var("k")
    stmts = []
    for r in range(4):
        at = (io * 4 + r, Ramp(jo * lanes, IntImm(1), lanes))
        stmts.append(IfThenElse(EQ(k, IntImm(0)), BufferStore(C, Broadcast(const(0.0), lanes), at)))
        product = Broadcast(BufferLoad(A, (io * 4 + r, k)), lanes) * BufferLoad(B, (k, at[1]))
        stmts.append(BufferStore(C, Add(BufferLoad(C, at), product), at))
    m = compiled([A, B, C], loop(io, n // 4, loop(jo, n // lanes, loop(k, n, seq(stmts)))))
    a, b, c = (np.random.rand(n, n).astype(np.float32) for _ in range(3))
    m(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    assert "fma" in m.source("asm") or "vfmadd" in m.source("asm")


def test_vectors_of_every_ordinary_type_add():
    for dtype in ("int8", "int16", "int64", "uint8", "float16", "float32", "float64"):
        a, b, c = (np.arange(16).astype(dtype) for _ in range(3))
        elementwise(Add, dtype, 16, 16)(a, b, c)
        np.testing.assert_array_equal(c, a + b)


def test_gpu_loops_are_refused_by_name():
    B, i = decl_buffer((8,), "int32", "B"), Var("i")
    bound = For(i, IntImm(0), IntImm(8), "thread_binding", BufferStore(B, i, (i,)), "threadIdx.x")
    with pytest.raises(BuildError, match="threadIdx.x"):
        compiled([B], bound)


def test_a_function_that_no_library_has():
    """The call is refused when it is reached; before, the process would have jumped to address zero."""
    func = tir.script.parse("""
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    for i in T.parallel(4):
        A[i] = T.call_pure_extern("float32", "no_such_function", A[i])
""")
    with pytest.raises(RunError, match="call_extern.'no_such_function'.: no library that is loaded has this"):
        tir.build(func, "llvm")(np.zeros(4, "float32"))


def test_loads_at_places_that_data_gives_see_the_stores_before_them():
    """LLVM's superword vectorizer, left on, gathers them too early."""
    program = tir.script.parse("""
@T.prim_func
def main(A: T.Buffer((5,), "int32"), idx: T.Buffer((5,), "int32"), O: T.Buffer((5, 2), "int32")):
    lo = T.alloc_buffer((5,), "int32")
    for i, k in T.grid(5, 1):
        with T.block("lo"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                lo[vi] = 100
            lo[vi] = T.min(lo[vi], A[vi])
    for i, j in T.grid(5, 2):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = A[vi] - lo[idx[vi] % 5]
""")
    a, idx, out = np.arange(5, dtype="i4"), np.array([-1, -2, -3, -4, -5], "i4"), np.zeros((5, 2), "i4")
    tir.build(program, target="llvm")(a, idx, out)
    np.testing.assert_array_equal(out, np.repeat(a - a[idx % 5], 2).reshape(5, 2))


@pytest.mark.parametrize(
    "mask", ["A[i] & T.int64(255)", "T.Cast('int64', T.Cast('uint8', A[i]))", "A[i] % T.int64(256)"]
)
@pytest.mark.parametrize("is_straight", [True, False], ids=["straight", "loop"])
def test_shifts_beside_masks_are_each_its_own(mask, is_straight):
    """LLVM's superword vectorizer makes vectors of both, in which lanes that nothing uses are shifted by the mask; the code for AVX-512
    takes these for zeros."""
    shift = "A[i] >> T.int64(1)"
    lines = [f"    O[{i}] = {shift if i in (0, 3, 8, 11) else mask}".replace("[i]", f"[{i}]") for i in range(16)]
    loop = ["    for i in range(16):", f"        O[i] = T.if_then_else(i % 8 == 0 or i % 8 == 3, {shift}, {mask})"]
    head = '@T.prim_func\ndef main(A: T.Buffer((16,), "int64"), O: T.Buffer((16,), "int64")):\n'
    func = tir.script.parse(head + "\n".join(lines if is_straight else loop))
    a, made = -np.arange(1, 17), np.zeros(16, "int64")
    tir.build(func, "llvm")(a, made)
    np.testing.assert_array_equal(made, np.where(np.isin(np.arange(16), (0, 3, 8, 11)), a >> 1, a & 255))


def test_signed_shifts_of_superwords_are_each_its_own():
    """Each by 8 or 16, to the left and to the right, or the other way round, which is a mask."""
    forms = [
        "(A[{k}] << {c}) >> {c}",
        "(A[{k}] >> {c}) << {c}",
        "((A[{k}] + 1) << {c}) >> {c}",
        "((A[{k}] + 1) >> {c}) << {c}",
    ]
    values = [form.replace("{c}", f"T.int32({c})") for c in (8, 16) for form in forms]
    lines = [f"    O[{first + n}] = " + v.format(k=first + n) for first in (0, 28) for n, v in enumerate(values)]
    head = '@T.prim_func\ndef main(A: T.Buffer((36,), "int32"), O: T.Buffer((36,), "int32")):\n'
    func = tir.script.parse(head + "\n".join(lines))
    a = np.repeat(np.array([2**30, 2**31 - 1], "int32"), [28, 8])
    made, right = np.zeros(36, "int32"), np.zeros(36, "int32")
    tir.build(func, "llvm")(a, made)
    by, right_first = np.repeat([8, 16], 4).astype("int32"), np.tile([False, True], 4)
    for first in (0, 28):
        x = a[first : first + 8] + np.tile([0, 0, 1, 1], 2).astype("int32")
        right[first : first + 8] = np.where(right_first, (x >> by) << by, (x << by) >> by)
    np.testing.assert_array_equal(made, right)


def test_signs_of_lanes_are_read_from_their_own_register():
    """Remainders beside narrowed numbers: superwords whose masks of signs LLVM's code for AVX-512 takes from a register of the lower half."""
    remainder, narrowed = "A[{k}] % T.int32(31)", "T.Cast('int32', T.Cast('int16', A[{k}]))"
    four, five = f"({remainder}) % T.int32(31)", f"{narrowed} % T.int32(31)"
    kinds = {2: narrowed, 7: narrowed, 10: narrowed, 15: narrowed, 4: four, 12: four, 5: five, 13: five}
    plain = f"T.Cast('int32', T.Cast('int16', {remainder}))"
    lines = [f"    O[{k}] = " + kinds.get(k % 16, plain).format(k=k) for k in range(64)]
    func = tir.script.parse(
        '@T.prim_func\ndef main(A: T.Buffer((64,), "int32"), O: T.Buffer((64,), "int32")):\n' + "\n".join(lines)
    )
    a, made = np.random.default_rng(0).integers(-(2**31), 2**31, 64).astype("int32"), np.zeros(64, "int32")
    tir.build(func, "llvm")(a, made)
    low, at = a.astype("int16").astype("int32"), np.arange(64) % 16
    right = np.select([np.isin(at, (2, 7, 10, 15)), np.isin(at, (5, 13))], [low, low % 31], a % 31)
    np.testing.assert_array_equal(made, right)


SIGNS = """
define i32 @signs(ptr %a) {{
  %l = load <{lanes} x {element}>, ptr %a, align 1
  %x = mul <{lanes} x {element}> %l, splat ({element} 31)
  call void asm sideeffect "", "{lower}"()
  %c = icmp slt <{lanes} x {element}> %x, zeroinitializer
  %c0 = extractelement <{lanes} x i1> %c, i64 0
  %c3 = extractelement <{lanes} x i1> %c, i64 3
  %s = select i1 %c0, i32 5, i32 1
  %t = select i1 %c3, i32 7, i32 %s
  ret i32 %t
}}
"""


@pytest.mark.parametrize("element", ["i8", "i32"])
def test_masks_of_lanes_in_the_upper_registers(element):
    """The lower half of the registers is taken, and holds other numbers."""
    lower, lanes = ",".join(f"~{{xmm{k}}}" for k in range(16)), 256 // int(element[1:])
    a = np.zeros(lanes, element.replace("i", "int"))
    a[0] = 1 << a.itemsize * 8 - 4  # negative only after it is multiplied
    if machine().width != 512:
        pytest.skip("a fault of AVX-512")
    text = SIGNS.format(lower=lower, lanes=lanes, element=element)
    with optimised(text, machine()) as (module, target_machine):
        code = Loaded(target_machine.emit_object(module))
    signs = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code.function("signs"))
    assert signs(a.ctypes.data) == 5


@pytest.mark.parametrize("source", ["int8", "int16"])
def test_negative_numbers_as_uint64_are_floats_of_64_bits(source):
    """LLVM's superword vectorizer would convert the last 32 bits: 2**32 for -1."""
    func = tir.script.parse(f"""
@T.prim_func
def main(A: T.Buffer((32,), "{source}"), O: T.Buffer((32,), "float32")):
    for i in range(32):
        O[i] = T.Cast("float32", T.Cast("uint64", A[i]))
""")
    a, made = np.arange(-16, 16).astype(source), np.zeros(32, "float32")
    tir.build(func, "llvm")(a, made)
    np.testing.assert_array_equal(made, a.astype("uint64").astype("float32"))


def test_a_value_is_computed_once_in_a_block_of_code():
    """Index arithmetic that several accesses share; loads and stores are not shared."""
    A, B = decl_buffer((64,), name="A"), decl_buffer((64,), name="B")
    a, b, i = Var("a", "handle"), Var("b", "handle"), Var("i")
    twice = [BufferStore(B, BufferLoad(A, (i * 4 + k,)) + BufferLoad(B, (i * 4,)), (i * 4,)) for k in (1, 2)]
    loop = For(i, IntImm(0), IntImm(16), "serial", seq(twice))
    m = compile_lowered(IRModule.of(PrimFunc((a, b), loop, buffer_map=frozendict({a: A, b: B}))))
    text = m.source("llvm")
    assert text.count(" = mul ") == 1 and text.count("store float") == 2
    x, y = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    m(x, y)
    np.testing.assert_array_equal(y[::4], 1 + x[1::4] + x[2::4])


def test_a_loop_of_unknown_length_is_left_in_silence(capfd, monkeypatch):
    func = tir.script.parse("""
@T.prim_func
def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 30), "float32")
    for i in T.unroll(n):
        for j in range(30):
            A[i, j] = A[i, j] / T.Cast("float32", i + j)
""")
    monkeypatch.setenv("TIR_CACHE", "0")
    tir.build(func, "llvm")
    assert capfd.readouterr().err == ""


def _resident() -> int:
    """Bytes of memory that this process has."""
    import resource

    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not pathlib.Path("/proc/self/statm").exists(), reason="memory is looked up as Linux has it")
def test_a_compilation_keeps_no_memory():
    text = "define i32 @f(i32 %x) {\n  %y = add i32 %x, 1\n  ret i32 %y\n}\n"
    for _ in range(50):
        with optimised(text, machine()):
            pass
    before = _resident()
    for _ in range(200):
        with optimised(text, machine()):
            pass
    assert _resident() - before < 2 << 20


@pytest.mark.skipif(not pathlib.Path("/proc/self/statm").exists(), reason="memory is looked up as Linux has it")
def test_the_numbers_of_a_program_are_not_kept():
    def compiled(first: int) -> None:
        stores = "".join(f"  store volatile i64 {n}, ptr %p\n" for n in range(first, first + 1000))
        with parsed(f"define void @f(ptr %p) {{\n{stores}  ret void\n}}\n"):
            pass

    compiled(10**6)
    before = _resident()
    for n in range(60):
        compiled(10**7 + 1000 * n)
    assert _resident() - before < 2 << 20


def test_a_module_is_freed_before_its_context_where_a_build_fails():
    """Frames of an exception hold both; Python's collector frees what is in a cycle in any order."""
    with pytest.raises(BuildError) as caught, parsed("define void @f() {\na:\n  br label %a\n}\n"):
        pass
    frames = [frame.f_locals for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    held = [v for names in frames for v in names.values() if type(v).__name__ in ("ModuleRef", "ContextRef")]
    assert len(held) == 2 and all(each.closed for each in held)
    with pytest.raises(ZeroDivisionError), parsed("define void @f() {\n  ret void\n}\n") as module:
        raise ZeroDivisionError
    assert module.closed
