"""Every program of the corpus prints as text that parses back to the same program, and prints the same again."""

import pytest
from corpus_programs import ALL

from tir.equal import assert_structural_equal, structural_hash
from tir.script import parse
from tir.small_floats import SMALL_FLOATS


def test_the_corpus_is_large():
    assert len(ALL) >= 150


@pytest.mark.parametrize("text", ALL)
def test_round_trip(text):
    program = parse(text)
    printed = program.script()
    again = parse(printed)
    assert_structural_equal(program, again)
    assert again.script() == printed
    assert structural_hash(program) == structural_hash(again)
    plain = program.script(syntax_sugar=False)
    assert_structural_equal(program, parse(plain))


ELEMENTS = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", *SMALL_FLOATS),
]


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_every_data_type(dtype):
    number = {"bool": "True"}.get(dtype, f"T.{dtype}(1)")
    program = parse(f"""
@T.prim_func
def copy(A: T.Buffer((16,), "{dtype}"), B: T.Buffer((16,), "{dtype}"), x: T.{dtype}):
    L = T.alloc_buffer((16,), "{dtype}", scope="local")
    for i in range(16):
        with T.block("copy"):
            vi = T.axis.spatial(16, i)
            L[vi] = A[vi]
            B[vi] = T.Select(L[vi] == x, {number}, T.Cast("{dtype}", T.Cast("int32", L[vi])))
""")
    assert_structural_equal(program, parse(program.script()))


@pytest.mark.parametrize("dtype", [d for d in ELEMENTS if "float" in d and "8" not in d[5:6]])
def test_every_float_type_as_vectors(dtype):
    program = parse(f"""
@T.prim_func
def scale(A: T.Buffer((16,), "{dtype}"), B: T.Buffer((16,), "{dtype}")):
    for i in range(4):
        B[i * 4 : i * 4 + 4] = A[i * 4 : i * 4 + 4] * T.Broadcast(T.{dtype}(0.5), 4)
""")
    assert_structural_equal(program, parse(program.script()))
