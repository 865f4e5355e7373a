"""Operators of operands that they do not take: an error where the expression is made, not in generated code."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tir
from tir.dtype import DType
from tir.errors import ParseError
from tir.interp.arguments import evaluate
from tir.interp.numbers import storage_dtype
from tir.script import parse
from tir.script import tir as T

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((4,), "{given}"), B: T.Buffer((4,), "{given}"), C: T.Buffer((4,), "{result}")):
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = {value}
"""


def program(value: str, given: str, result: str = "") -> tir.PrimFunc:
    return parse(PROGRAM.format(value=value, given=given, result=result or given))


@pytest.mark.parametrize(
    "value",
    [
        *(
            f"T.{name}(A[v], B[v])"
            for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")
        ),
        *(f"A[v] {symbol} B[v]" for symbol in ("&", "|", "^", "<<", ">>")),
        "T.bitwise_and(A[v], 3)",
        "~A[v]",
        "T.bitwise_not(A[v])",
        "T.popcount(A[v])",
        'T.Cast("float32", T.clz(A[v]))',
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_operators_on_bits_of_floats_are_refused(value, dtype):
    with pytest.raises(ParseError, match=f"takes integers, not {dtype}|mixes {dtype}"):
        program(value, dtype)


@pytest.mark.parametrize(
    "value, dtype, reason",
    [
        ("T.fma(A[v], A[v], B[v])", "int32", "fma takes floats, not int32"),
        ("T.fabs(A[v])", "int32", "fabs takes floats, not int32"),
        ("T.abs(A[v])", "bool", "abs takes numbers, not bool"),
        ("A[v] << B[v]", "bool", "shift_left takes integers, not bool"),
        ("A[v] / B[v]", "bool", "of two integers .bool. is ambiguous"),
        ("T.shift_left(A[v], 1.5)", "int32", "mixes int32 with the float 1.5"),
    ],
)
def test_other_types_that_an_operator_does_not_take(value, dtype, reason):
    with pytest.raises(ParseError, match=reason):
        program(value, dtype)


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
@pytest.mark.parametrize(
    "value, dtype, result, expected",
    [
        ("T.bitwise_and(A[v], T.int64(2**33 + 1))", "int32", "int64", [1, 0, 1, 2**33 + 1]),
        ("T.bitwise_or(T.int64(1), A[v])", "int32", "int64", [1, 3, 3, -1]),
        ("-A[v]", "bool", "int32", [-1, -1, -1, -1]),
    ],
)
def test_operands_of_two_types_take_the_wider(target, value, dtype, result, expected):
    a, c = np.array([1, 2, 3, -1]).astype(dtype), np.zeros(4, result)
    tir.build(program(value, dtype, result), target)(a, a, c)
    assert c.tolist() == expected


def test_nodes_made_by_hand_take_the_name_of_a_type():
    pointer = tir.Var("A", "handle", "float32", "global")
    nothing, yes = tir.Evaluate(tir.IntImm(0)), tir.IntImm(1, "bool")
    made = [
        tir.IntImm(3, "int64").dtype,
        tir.FloatImm(0.5, "float16").dtype,
        tir.Cast("float32x4", tir.Var("i")).dtype,
        tir.Call("exp", (tir.Var("x", "float32"),), "float32").dtype,
        tir.Allocate(pointer, "float32", (tir.IntImm(8),), yes, nothing).dtype,
        tir.PrimFunc((), nothing, "int32").ret_type,
        pointer.pointer_dtype,
    ]
    assert [type(dtype) for dtype in made] == [tir.DType] * len(made)
    with pytest.raises(ValueError, match="unknown data type 'flot32'.*did you mean"):
        tir.FloatImm(0.5, "flot32")


@pytest.mark.parametrize("a, b, quotient", [(7, 2, 3), (-7, 2, -3), (7, -2, -3)])
def test_div_is_division_as_in_c(a, b, quotient):
    x, y = tir.Var("x"), tir.Var("y")
    assert evaluate(tir.div(x, y), {x: a, y: b}) == quotient


def test_select_takes_numbers_of_python():
    x, y = tir.Var("x", "int8"), tir.Var("y", "float16")
    assert repr(tir.Select(x > 0, x, -1)) == "T.Select(x > 0, x, T.int8(-1))"
    assert [e.dtype for e in tir.Select(True, 0, y).children()] == ["bool", "float16", "float16"]
    with pytest.raises(TypeError, match="`Select` mixes int8 with the float 0.5"):
        tir.Select(x > 0, x, 0.5)


LEAVING = ["-{least}", "-{one}", "-(-{least})"]
BY_MINUS_ONE = ["{least} // {minus}", "T.truncdiv({least}, {minus})"]
SIGNED, UNSIGNED = ["int4", "int8", "int16", "int32", "int64"], ["uint8", "uint32", "uint64"]


@pytest.mark.parametrize("value, dtype", [*product(LEAVING, [*SIGNED, *UNSIGNED]), *product(BY_MINUS_ONE, SIGNED)])
def test_constants_that_leave_their_type_are_computed_at_run_time(value, dtype):
    """They wrap, as where an operand is no constant; a constant is one of its type, before and after simplification."""
    info = DType(dtype)
    parts = {name: f"T.{dtype}({int(n)})" for name, n in (("least", info.min_value), ("one", 1), ("minus", -1))}
    texts = value.format(**parts), value.format(least="B[0]", one="B[1]", minus="B[2]")
    func, run_time = (program(text, dtype) for text in texts)
    simple = tir.transform.simplify(func)
    tir.assert_structural_equal(parse(func.script()), func)
    tir.assert_structural_equal(parse(simple.script()), simple)
    b = np.array([info.min_value, 1, -1 if info.code == "int" else 0, 0]).astype(storage_dtype(info))
    results = []
    for made in (func, simple, run_time):
        for engine in ("interpreter", "llvm"):
            results.append(np.zeros_like(b))
            tir.build(made, engine)(np.zeros_like(b), b, results[-1])
    assert all(np.array_equal(r, results[0]) for r in results), results


def test_a_float_without_signs_is_not_negated():
    with pytest.raises(ValueError, match="constant -1.0 does not fit float8_e8m0fnu"):
        -T.float8_e8m0fnu(1)


@pytest.mark.parametrize(
    "call, reason",
    [
        ('T.ptx_ldmatrix(False, 4, ".b16", A.data, 0, B.data)',
         "ptx_ldmatrix takes 7 arguments .transposed, count, type, registers.*, got 6"),
        ('T.ptx_cp_async(A.data, 0, B.data, 0)', "ptx_cp_async takes at least 5 arguments .*, got 4"),
        ("T.atomic_add(A.data, 1, 2, 3)", "atomic_add takes at most 3 arguments .*, got 4"),
        ("T.tvm_warp_shuffle(1, 2)", "tvm_warp_shuffle takes at least 4 arguments .*, got 2"),
        ("T.call_packed()", "call_packed takes at least 1 argument, got 0"),
        ("T.tvm_storage_sync()", "tvm_storage_sync takes at least 1 argument"),
        ("T.ptx_cp_async(A[0], 0, B.data, 0, 16)", "ptx_cp_async takes pointers as `shared`, not int32: `A.0.`"),
        ("T.ptx_cp_async(A.data, 0, B.data, 0.5, 16)", "ptx_cp_async takes integers as `from_offset`, not float32"),
        ('T.exp("x")', "a string cannot be converted to float32"),
        ("T.isnan(A.data)", "isnan takes values, not handle"),
        ("T.vectorlow(A[0], dtype='int32')", "vectorlow takes vectors, not int32"),
    ],
)  # fmt: skip
def test_calls_with_other_arguments_than_the_operator_has(call, reason):
    with pytest.raises(ParseError, match=reason):
        tir.script.parse(
            '@T.prim_func\ndef f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):\n    T.evaluate('
            + call
            + ")\n"
        )


@pytest.mark.parametrize("target", ["cuda-sim", "cuda -arch=sm_80"])
@pytest.mark.parametrize(
    "call",
    [
        'T.ptx_cp_async("int32", S.data, 0, A.data, 0, n)',
        'T.ptx_ldmatrix(False, n, ".b16", L.data, 0, S.data, 0, dtype="float16")',
    ],
)
def test_what_an_instruction_holds_is_a_constant(target, call):
    program = tir.script.parse(
        "@T.prim_func\ndef f(A: T.Buffer((32,), 'int32'), n: T.int32):\n    tx = T.launch_thread('threadIdx.x', 32)\n"
        "    S = T.alloc_buffer((32,), 'int32', scope='shared')\n    L = T.alloc_buffer((8,), 'int32', scope='local')\n"
        f"    {call}\n"
    )
    with pytest.raises(tir.TirError, match="constant, not `n`"):
        module = tir.build(program, target)
        module(np.zeros(32, "int32"), 4)
