"""``T.allocate_const`` of every type, on every target; on a GPU it is a part of the kernels that read it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tir
from tir.analysis.wellformed import verify
from tir.script import parse

HALVES = [0.0, -0.0, 1.5, 3.0e4, -2.75, "nan", "inf", "-inf"]
VALUES = {
    **dict.fromkeys(("float16", "float32", "float64", "bfloat16"), HALVES),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2"), [0.0, -0.0, 1.5, 2.0, -3.0, 0.5, -0.25, 16.0]),
    **dict.fromkeys(("int8", "int16", "int32", "int64"), [0, 1, -1, 100, -128, 127, 7, -7]),
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), [0, 1, 2, 255, 128, 127, 7, 9]),
    "bool": [True, False, True, True, False, False, True, False],
}
TEXT = """
@T.prim_func
def main(I: T.Buffer((8,), "int32"), O: T.Buffer((8,), "RESULT"), P: T.Buffer((4,), "RESULT")):
    data = T.allocate_const([VALUES], "TYPE", [2, 4])
    K = T.decl_buffer((2, 4), "TYPE", data=data)
    for i in range(8):
        with T.block("O"):
            vi = T.axis.spatial(8, i)
            O[vi] = T.Cast("RESULT", K[I[vi] // 4, I[vi] % 4])
    for i in range(4):
        with T.block("P"):
            vi = T.axis.spatial(4, i)
            P[vi] = T.Cast("RESULT", K[1, vi])
"""


@pytest.mark.parametrize("target", ["interpreter", "llvm", "cuda-sim", "cuda-ptx"])
@pytest.mark.parametrize("dtype", VALUES)
def test_constant_arrays_have_the_numbers_that_the_program_says(dtype, target):
    values, result = VALUES[dtype], "float64" if "float" in dtype else "int64"
    said = ", ".join(f'float("{v}")' if isinstance(v, str) else str(v) for v in values)
    sch = tir.Schedule(parse(TEXT.replace("VALUES", said).replace("TYPE", dtype).replace("RESULT", result)))
    if target.startswith("cuda"):
        for block in ("O", "P"):
            sch.bind(sch.get_loops(block)[0], "threadIdx.x")
    held = np.array([float(v) if isinstance(v, str) else v for v in values]).astype(getattr(ml_dtypes, dtype, dtype))
    right, order = held.astype(result), np.array([3, 1, 7, 0, 2, 5, 4, 6], "int32")
    made, row = np.zeros(8, result), np.zeros(4, result)
    tir.build(sch.mod, target)(order, made, row)
    np.testing.assert_array_equal(made, right[order])
    np.testing.assert_array_equal(row, right[4:])
    assert (np.signbit(made) == np.signbit(right[order])).all()


def test_the_data_of_a_node_may_be_of_any_type_of_numbers():
    func = parse(TEXT.replace("VALUES", "0, 1, 2, 3, 4, 5, 6, 7").replace("TYPE", "int16").replace("RESULT", "int64"))
    wide = tir.visit.rewrite(
        func.body, lambda s: s.replace(data=s.data.astype("int64")) if isinstance(s, tir.AllocateConst) else None
    )
    order, made, row = np.arange(8, dtype="int32"), np.zeros(8, "int64"), np.zeros(4, "int64")
    for target in ("interpreter", "llvm"):
        tir.build(func.with_body(wide), target)(order, made, row)
        assert made.tolist() == [*range(8)] and row.tolist() == [4, 5, 6, 7]
        made[:] = row[:] = 0


WRITTEN = {
    "a store": "K[I[0], 0] = 1",
    "a view": """with T.block("b"):
        W = T.match_buffer(K[0, 0:4], (4,), "int32")
        W[I[0]] = 1""",
}
LARGER = {
    "an allocation": ('T.allocate([8], "int32", "global")', "(4, 4), 'int32'", "0, 0"),
    "constants": ('T.allocate_const([1, 2, 3, 4, 5, 6, 7, 8], "int32", [8])', "(4, 4), 'int32'", "0, 0"),
    "a parameter": ("I.data", "(9,), 'int32'", "0"),
    "an offset": ("I.data", "(4,), 'int32', elem_offset=5", "0"),
    "strides": ("I.data", "(2, 4), 'int32', strides=(5, 1)", "0, 0"),
    "another type": ("I.data", "(5,), 'int64'", "0"),
    "an address": ("T.address_of(I[4])", "(5,), 'int32'", "0"),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_constant_arrays_are_not_written(written):
    text = TEXT.replace("VALUES", "0, 1, 2, 3, 4, 5, 6, 7").replace("TYPE", "int32").replace("RESULT", "int32")
    with pytest.raises(tir.errors.WellFormedError, match="`data` is of constants .*, which nothing may write"):
        parse(text.replace("    for i", f"    {WRITTEN[written]}\n    for i", 1))


@pytest.mark.parametrize("target", ["interpreter", "llvm", "cuda-sim"])
@pytest.mark.parametrize("larger", LARGER)
def test_a_buffer_beyond_the_end_of_its_memory_is_refused(larger, target):
    memory, shape, at = LARGER[larger]
    func = parse(f"""
@T.prim_func
def main(I: T.Buffer((8,), "int32"), O: T.Buffer((1,), "int32")):
    data = {memory}
    K = T.decl_buffer({shape}, data=data)
    O[0] = T.Cast("int32", K[{at}])
""")
    with pytest.raises((tir.BuildError, tir.RunError), match="buffer `K` of shape .* does not fit: its memory has"):
        tir.build(func, target)(np.zeros(8, "int32"), np.zeros(1, "int32"))


def test_a_node_has_as_many_constants_as_elements():
    func = parse(TEXT.replace("VALUES", "0, 1, 2, 3, 4, 5, 6, 7").replace("TYPE", "int16").replace("RESULT", "int64"))
    fewer = tir.visit.rewrite(
        func.body, lambda s: s.replace(data=s.data[0]) if isinstance(s, tir.AllocateConst) else None
    )
    with pytest.raises(tir.errors.WellFormedError, match="`data` has 4 constants"):
        verify(func.with_body(fewer))
    with pytest.raises(tir.BuildError, match="buffer `K` of shape .* does not fit"):
        tir.build(func.with_body(fewer))


@pytest.mark.parametrize("target", ["llvm", "cuda-sim", "cuda-ptx"])
def test_constants_that_are_all_zero_decide_what_runs(target):
    func = parse("""
@T.prim_func
def main(I: T.Buffer((8,), "int32"), O: T.Buffer((8,), "int32")):
    data = T.allocate_const([False, False, False], "bool", [3])
    K = T.decl_buffer((3,), "bool", data=data)
    for i in T.thread_binding(8, thread="threadIdx.x"):
        O[i] = 1
        if K[I[i] % 3]:
            O[i] = I[i]
""")
    if target == "llvm":
        func = parse(func.script().replace('T.thread_binding(8, thread="threadIdx.x")', "range(8)"))
    made = np.zeros(8, "int32")
    tir.build(func, target)(np.arange(8, dtype="int32"), made)
    assert made.tolist() == [1] * 8
