"""What scripts of other systems write: types of operators, targets, pointers; and what is refused, with its reason."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import tir
from tir import ParseError
from tir.script import parse
from tir.target import Target
from tir.testing.oracle import assert_roundtrip

HEAD = '@T.prim_func\ndef f(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int8"), n: T.int32, x: T.int64):\n'


def program(body: str) -> tir.PrimFunc:
    func = parse(HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "    "))
    assert_roundtrip(func)
    return func


def refusal(body: str) -> str:
    with pytest.raises(ParseError) as caught:
        program(body)
    assert len(caught.value.diagnostics) == 1
    return str(caught.value)


# ---------------------------------------------------------------- vectors of indices

GATHERS = [
    "A[P[i]]",
    "A[A[P[i]]]",
    "A[P[i] // 2 + 1]",
    "T.Select(P[i] > A[P[i]], A[P[i]], P[i])",
    "T.if_then_else(A[P[i]] > 3, A[P[i]], 0)",
    "T.max(A[P[i]], A[15 - P[i]])",
]


@pytest.mark.parametrize("value", GATHERS)
def test_a_gather_by_a_vector_load_reads_back_at_every_stage(value):
    func = parse(f"""
@T.prim_func
def f(P: T.Buffer((16,), "int32"), A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in T.vectorized(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = {value.replace("[i]", "[vi]")}
""")
    mod = tir.IRModule.of(func)
    for step in tir.transform.pipeline.cpu_pipeline():
        mod = step(mod)
        assert_roundtrip(mod)
    assert "A[P[0:16]" in mod.script() or "T.Ramp" in mod.script()


def test_a_scatter_by_a_vector_load():
    func = parse("""
@T.prim_func
def f(P: T.Buffer((4,), "int32"), B: T.Buffer((16,), "int32")):
    B[P[0:4]] = T.Broadcast(7, 4)
""")
    assert_roundtrip(func)
    b = np.zeros(16, "int32")
    tir.build(func, "interpreter")(np.array([1, 3, 5, 7], "int32"), b)
    assert b.nonzero()[0].tolist() == [1, 3, 5, 7]


# ---------------------------------------------------------------- types of operators


@pytest.mark.parametrize(
    "call",
    [
        "T.q_multiply_shift(n, n, 31, 0)",
        'T.q_multiply_shift("int32", n, n, 31, 0)',
        'T.q_multiply_shift(n, n, 31, 0, dtype="int32")',
        "T.q_multiply_shift_per_axis(n, n, n, n, 31, T.bool(True), T.bool(False))",
        "T.clz(x)",
        "T.clz(n)",
        'T.clz(T.Cast("uint8", n))',
        'T.Cast("int32", T.boolean(True))',
    ],
)
def test_operators_give_int32(call):
    program(f"C[0] = {call}")


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("loop", ["T.serial(64)", "T.vectorized(64)"])
def test_leading_zeros_are_counted_in_the_operands_type(dtype, loop):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((64,), "{dtype}"), B: T.Buffer((64,), "int32")):
    for i in {loop}:
        B[i] = T.clz(A[i])
""")
    a = (np.arange(64) * 37 % 101).astype(dtype)
    for target in ("interpreter", "llvm"):
        b = np.zeros(64, "int32")
        tir.build(func, target)(a, b)
        assert b.tolist() == [a.dtype.itemsize * 8 - int(v).bit_length() for v in a]


def test_a_stack_pointer_is_a_handle():
    program("""
        p: T.handle = T.tvm_stack_alloca("array", 3)
        T.evaluate(T.call_extern("void", "f", p))
    """)


@pytest.mark.parametrize(
    "value",
    [
        '4 * T.call_extern("void", "f")',
        '-T.call_extern("void", "f")',
        'T.sqrt(T.call_extern("void", "f"))',
        'T.call_extern("void", "f") + T.call_extern("void", "f")',
    ],
)
def test_what_has_no_value_is_no_operand(value):
    assert "void" in refusal(f"C[0] = {value}")


def test_scalable_vectors_are_refused_at_their_place():
    assert "scalable vectors are not supported" in refusal("for i in T.vectorized(4 * T.vscale()):\n    C[i] = 0")
    assert "scalable vectors are not supported" in refusal('C[0] = T.Cast("float32xvscalex4", n)')


# ---------------------------------------------------------------- two widths


def test_a_number_too_large_for_its_neighbour_widens_both():
    func = program("C[1] = T.Cast('int32', T.max(T.min(n, 7), 2**31))")
    assert 'T.max(T.Cast("int64", T.min(n, 7)), 2147483648)' in func.script()
    assert "holds int32, but the value stored is int64" in refusal("C[1] = T.max(T.min(n, 7), 2**31)")


def test_a_range_has_one_type():
    r = tir.Range(tir.const(0, "int64"), tir.const(4))
    assert (r.min.dtype, r.extent.dtype) == ("int64", "int64")


# ---------------------------------------------------------------- constants stored to another type


@pytest.mark.parametrize(
    "store",
    [
        "D[0] = T.int32(3)",
        "D[0] = T.float32(3)",
        "D[0] = T.min(1, 2)",
        "A[0, 0] = T.min(1, 2)",
        "A[0, 0:4] = T.float64(0.5)",
        'A[0, 0] = T.float16("inf")',
    ],
)
def test_a_constant_is_stored_in_the_buffers_type(store):
    program(store)


@pytest.mark.parametrize(
    "store",
    [
        "D[0] = T.int32(300)",
        "D[0] = T.float32(3.5)",
        "D[0] = n",
        "A[0, 0] = T.float64(0.1)",
        "A[0, 0] = T.int32(16777217)",
    ],
)
def test_what_the_buffers_type_does_not_represent_is_refused(store):
    assert "but the value stored is" in refusal(store)


@pytest.mark.parametrize(
    "dtype,exact,inexact",
    [
        ("float16", [0.5, 65504.0, 2.0**-24, -0.0], [0.1, 65505.0, 2.0**-25]),
        ("bfloat16", [1.0078125, 2.0**127], [1.00390625]),
        ("float32", [16777216.0, 2.0**-149], [16777217.0, 0.1, 2.0**-150]),
        ("float64", [0.1, 5e-324], [2**53 + 1]),
        ("float8_e4m3fn", [448.0, 2.0**-9], [449.0, 17.0]),
        ("int8", [-128, 3.0], [128, 0.5]),
        ("bool", [0, 1], [2, 0.5]),
    ],
)
def test_exact_representation(dtype, exact, inexact):
    kind = tir.dtype.DType(dtype)
    assert all(kind.represents(v) for v in exact)
    assert not any(kind.represents(v) for v in inexact)


# ---------------------------------------------------------------- buffers and pointers


@pytest.mark.parametrize(
    "opening",
    [
        'row = T.decl_buffer((4,), "float32", data=T.address_of(A[i, 0]))\n    row[1] = T.float32(1)',
        'with T.decl_buffer((4,), "float32", data=T.address_of(A[i, 0])) as row:\n        row[1] = T.float32(1)',
    ],
)
def test_a_buffer_behind_a_computed_pointer(opening):
    func = program(f"for i in range(8):\n    {opening}")
    for target in ("interpreter", "llvm"):
        a = np.zeros((8, 4), "float32")
        tir.build(func, target)(a, np.zeros(8, "int32"), np.zeros(8, "int8"), 0, 0)
        assert a.sum(axis=0).tolist() == [0, 8, 0, 0]


@pytest.mark.parametrize("data", ["A", "3", "n"])
def test_a_buffers_data_is_a_pointer(data):
    assert "the data of buffer `row` is a pointer" in refusal(f'row = T.decl_buffer((4,), "float32", data={data})')


def test_addresses():
    program('T.evaluate(T.call_extern("void", "f", T.address_of(C[0], dtype="handle")))')
    assert "is a value, which has no address" in refusal('T.evaluate(T.call_extern("void", "f", T.address_of(n)))')


# ---------------------------------------------------------------- names and attributes

BLOCK = "for i, j in T.grid(8, 8):\n    with T.block('b'):\n        {}\n        C[v] = 0"


@pytest.mark.parametrize(
    "lines", ['v, v = T.axis.remap("SS", [i, j])', "v = T.axis.spatial(8, i)\n        v = T.axis.spatial(8, j)"]
)
def test_an_iterator_is_defined_once(lines):
    assert "`v` is an iterator of this scope already" in refusal(BLOCK.format(lines))


def test_a_buffer_is_defined_once():
    assert "`B` is a buffer of this scope already" in refusal("B = T.alloc_buffer((4,))\nB = T.alloc_buffer((4,))")


@pytest.mark.parametrize("axis", ["1.5, 0.5", "8, 0.5", "1.5, i", "8, A[0, 0]"])
def test_iterators_are_integers(axis):
    assert "must be an integer" in refusal(
        BLOCK.format(f"v = T.axis.spatial({axis})")
    ) or "is not an integer" in refusal(BLOCK.format(f"v = T.axis.spatial({axis})"))


def test_attributes_are_merged_and_have_one_value():
    axis = "v = T.axis.spatial(8, i)\n        "
    func = program(
        BLOCK.format(axis + 'T.block_attr({"k": {"a": 1}, "z": 1})\n        T.block_attr({"k": {"b": 2}, "z": 1})')
    )
    assert 'T.block_attr({"k": {"a": 1, "b": 2}, "z": 1})' in func.script()
    two = BLOCK.format(axis + 'T.block_attr({"k": 1})\n        T.block_attr({"k": 2})')
    assert "gives `k` a second value: 2 after 1" in refusal(two)
    nested = BLOCK.format(axis + 'T.block_attr({"k": {"a": 1}})\n        T.block_attr({"k": {"a": 2}})')
    assert "gives `a` a second value" in refusal(nested)
    assert "gives `q` a second value" in refusal('T.func_attr({"q": 1})\nT.func_attr({"q": 2})')


def test_a_private_function_has_no_global_symbol():
    with pytest.raises(ParseError, match="is private, but has the global_symbol 'x'"):
        parse(
            '@T.prim_func(private=True)\ndef f(n: T.int32):\n    T.func_attr({"global_symbol": "x"})\n    T.evaluate(n)'
        )


# ---------------------------------------------------------------- targets


@pytest.mark.parametrize(
    "text",
    [
        '"cuda", host="llvm"',
        '{"kind": "cuda", "host": T.target("llvm")}',
        '{"kind": "cuda", "host": {"kind": "llvm"}}',
        '"llvm -mcpu=x", "llvm -num-cores=4"',
        '"nvidia/nvidia-a100"',
        '"c"',
        '"ext_dev"',
        '"hexagon -keys=a,b"',
        '{"kind": "ext_dev", "keys": ["a", "b"], "options": {"x": [1, 2.5], "y": True}}',
    ],
)
def test_a_target_as_an_attribute_reads_back(text):
    func = program(f'T.func_attr({{"target": T.target({text})}})\nC[0] = 1')
    assert isinstance(func.attrs["target"], Target)


def test_targets():
    assert Target("cuda", host="llvm").attrs["host"] == Target("llvm")
    assert Target("nvidia/nvidia-a100").attrs["arch"] == "sm_80"
    assert Target.named(str(Target("cuda", host="llvm -num-cores=4"))) == Target("cuda", host="llvm -num-cores=4")
    with pytest.raises(ValueError, match="did you mean cuda"):
        Target("cdua")
    with pytest.raises(ValueError, match="no GPU is known as 'nvidia/none'"):
        Target("nvidia/none")
    with pytest.raises(tir.BuildError, match="no backend builds for target 'ext_dev'"):
        tir.build(program("C[0] = 1"), Target.named("ext_dev"))


def test_a_tensor_map_has_the_shape_and_strides_of_its_buffer():
    body = """
    E = T.decl_buffer((4, 2), "float32", data=A.data, strides=(8, 1))
    T.ptx_cp_async_bulk_tensor(C.data, 0, T.tensor_map(A, (2, 4)), 0, 0, 0)
    T.ptx_cp_async_bulk_tensor(C.data, 0, T.tensor_map(E, (2, 2), swizzle=32), 0, 0, 0)
    """
    text = program(body).script()
    assert 'T.tensor_map(A.data, "float32", 0, 8, 4, 4, 1, 2, 4)' in text
    assert 'T.tensor_map(A.data, "float32", 32, 4, 2, 8, 1, 2, 2)' in text


@pytest.mark.parametrize(
    "made, reason",
    [
        ("T.tensor_map(A, (4,))", "has 1 axes, and `A` has 2"),
        ('T.tensor_map(A.data, "float32", 0, 8, 4, 4, 1, 2)', "of as many numbers each, not 5 numbers"),
        ("T.tensor_map(A.data, box=(2, 2))", "with a buffer, not with a pointer"),
    ],
)
def test_a_tensor_map_describes_each_axis(made, reason):
    assert reason in refusal(f"T.ptx_cp_async_bulk_tensor(C.data, 0, {made}, 0, 0, 0)")


@pytest.mark.parametrize(
    "written, meant",
    [
        ("x: T.i32 = A[0]\n    B[0] = x + T.i32(1)", "x: T.int32 = A[0]\n    B[0] = x + T.int32(1)"),
        ("B[0] = T.Cast('int32', T.u8(3)) + T.Cast('int32', T.f16(2.5))",
         "B[0] = T.Cast('int32', T.uint8(3)) + T.Cast('int32', T.float16(2.5))"),
        ("x: T.let = A[0]\n    B[0] = x", "x: T.int32 = A[0]\n    B[0] = x"),
        ('assert A[0] > 1, ("ValueError", ["A[0]", " is small"])', 'assert A[0] > 1, "A[0] is small"'),
        ("for i in T.serial(8, unroll=2):\n        B[i] = A[i]",
         'for i in T.serial(8, annotations={"pragma_unroll": 2}):\n        B[i] = A[i]'),
        ("for i in T.serial(8, unroll=False):\n        B[i] = A[i]",
         'for i in T.serial(8, annotations={"disable_unroll": True}):\n        B[i] = A[i]'),
        ('B[0] = T.call_intrin("int32", "tirx.popcount", A[0])', "B[0] = T.popcount(A[0])"),
    ],
)  # fmt: skip
def test_forms_of_tvm_0_27(written, meant):
    head = '@T.prim_func\ndef f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):\n    '
    tir.assert_structural_equal(parse(head + written + "\n"), parse(head + meant + "\n"))
