"""What LLVM makes of loops without marks: the model counts straight code and vectors, and no vectors where it makes none."""

from __future__ import annotations

import re

import pytest

import tir
from tir import te
from tir.buffer import decl_buffer
from tir.expr import BufferLoad, Max, const
from tir.stmt import UNROLLED, BufferStore, For
from tir.tune.autovector import Compiled, vectors_of, work_of
from tir.visit import walk

ONE = "llvm -num-cores=1"


def window(size: int) -> tir.PrimFunc:
    x, k = te.placeholder((4096,), name="X"), te.reduce_axis((0, size), "k")
    return te.create_prim_func([x, te.compute((4097 - size,), lambda i: te.sum(x[i + k], axis=k), name="Y")])


def rows(dtype: str) -> tir.PrimFunc:
    x, k = te.placeholder((256, 1000), dtype, name="X"), te.reduce_axis((0, 1000), "k")
    return te.create_prim_func([x, te.compute((256,), lambda i: te.sum(x[i, k], axis=k), name="Y")])


def total() -> tir.PrimFunc:
    x, k = te.placeholder((1000,), "int32", name="X"), te.reduce_axis((0, 1000), "k")
    return te.create_prim_func([x, te.compute((), lambda: te.sum(x[k], axis=k), name="Y")])


def recurrence() -> tir.PrimFunc:
    x, state = te.placeholder((1000,), name="X"), te.placeholder((1000,), name="state")
    step = te.compute((1000,), lambda t: state[t - 1] * 0.5 + x[t])
    return te.create_prim_func([x, te.scan(te.compute((1,), lambda _: x[0]), step, state, name="Y")])


def names(variables) -> set[str]:
    return {v.name for v in variables}


def test_short_loops_become_straight_code_and_the_loop_around_vectors():
    short, long = (Compiled.of(window(size).body) for size in (5, 500))
    assert (names(short.straight), names(short.innermost)) == ({"k"}, {"i"})
    assert (names(long.straight), names(long.innermost)) == (set(), {"k"})


def rows_by_rows(size: int, term) -> tir.PrimFunc:
    x, y = te.placeholder((64, size), "uint32", name="X"), te.placeholder((100, size), "uint32", name="Y")
    k = te.reduce_axis((0, size), "k")
    return te.create_prim_func(
        [x, y, te.compute((64, 100), lambda i, j: te.sum(term(x[i, k], y[j, k]), axis=k), name="Z")]
    )


@pytest.mark.parametrize(
    ("term", "most"), [(lambda a, b: a * b, 43), (lambda a, b: a ^ b, 43), (lambda a, b: tir.popcount(a ^ b), 38)]
)
def test_a_sum_in_a_register_counts_no_store(term, most: int):
    for size in (most, most + 1):
        program = rows_by_rows(size, term)
        gathers = "gather" in tir.build(program, f"{ONE} -mcpu=x86-64-v4").source("asm")
        assert ("k" in names(Compiled.of(program.body).straight)) == gathers == (size == most)


@pytest.mark.parametrize(("term", "most"), [(lambda a, b: a * b, 17), (lambda a, b: (a - b) * (a - b), 13)])
def test_vectors_of_long_sums_stay_a_loop(term, most: int):
    """What each row takes again, LLVM takes out of the loop around only where it makes straight code of all vectors of the row."""
    for size in (most, most + 2):
        x, y = te.placeholder((64, size), name="X"), te.placeholder((64, size), name="Y")
        k = te.reduce_axis((0, size), "k")
        z = te.compute((64, 64), lambda i, j, x=x, y=y, k=k: te.sum(term(x[i, k], y[j, k]), axis=k), name="Z")
        program = te.create_prim_func([x, y, z])
        gathers = tir.build(program, f"{ONE} -mcpu=x86-64-v4").source("asm").count("vgather")
        (loop,) = (n for n in walk(program.body) if isinstance(n, For) and n.loop_var.name == "j")
        (block,) = (n for n in walk(loop) if isinstance(n, tir.stmt.BlockRealize))
        store = tir.visit.substitute(block.block.body, block.bindings)
        found = vectors_of(store, loop, [store], 16, copies=size)
        assert (found.loops[0].kind == UNROLLED) == (gathers == 4 * size) == (size == most)


@pytest.mark.parametrize(
    ("reducer", "weighted", "most"), [(te.sum, False, 75), (te.sum, True, 50), (te.max, False, 43)]
)
def test_the_longest_window_of_straight_code_is_llvms(reducer, weighted: bool, most: int):
    """The place in a window, a NaN that is kept, and what is loaded are instructions; the first iteration has none."""
    for size in (most, most + 1):
        x, w, k = te.placeholder((4096,), name="X"), te.placeholder((size,), name="W"), te.reduce_axis((0, size), "k")
        y = te.compute((4000,), lambda i: reducer(x[i + k] * w[k] if weighted else x[i + k], axis=k), name="Y")
        program = te.create_prim_func([x, *([w] if weighted else []), y])
        vectors = re.search(
            r"v(add|max|cmp|fmadd)\w*p\w*\s.*%zmm", tir.build(program, f"{ONE} -mcpu=x86-64-v4").source("asm")
        )
        assert ("k" in names(Compiled.of(program.body).straight)) == bool(vectors) == (size == most)


@pytest.mark.parametrize(
    ("program", "has_vectors"),
    [(rows("float32"), False), (rows("int32"), True), (total(), True), (recurrence(), False)],
)
def test_vectors_are_made_where_llvm_makes_them(program: tir.PrimFunc, has_vectors: bool):
    loop = next(
        n for n in walk(program.body) if isinstance(n, For) and n.loop_var in Compiled.of(program.body).innermost
    )
    (store,) = (n for n in walk(loop) if isinstance(n, BufferStore) and isinstance(n.value, tir.expr.Add))
    block = next(n for n in walk(program.body) if isinstance(n, tir.stmt.BlockRealize) and store in walk(n.block.body))
    store = tir.visit.substitute(store, block.bindings)
    assert (vectors_of(store, loop, [store], 8) is not None) == has_vectors
    assert tir.tune.predict(program, ONE).seconds > 0
    code = tir.build(program, ONE).source("asm")
    assert bool(re.search(r"^\s*v(add|padd)[a-z]*[ps]?[sd]\s.*%[yz]mm", code, re.MULTILINE)) == has_vectors


@pytest.mark.parametrize("size", [64, 512])
def test_a_transposed_sum_is_tiled_where_its_lines_push_each_other_out(size: int):
    x = te.placeholder((size, size), name="X")
    program = te.create_prim_func([x, te.compute((size, size), lambda i, j: x[i, j] + x[j, i], name="Y")])
    loops = len(tir.tune.default(program, f"{ONE} -vector_width=512 -l1_bytes=49152 -l2_bytes=2097152").get_loops("Y"))
    assert (loops == 2) == (size == 64)


@pytest.mark.parametrize(("terms", "is_plain"), [(6, True), (64, False)])
def test_what_few_vectors_load_is_taken_out_of_the_loop_around(terms: int, is_plain: bool):
    """A vector of the 16 rows of ``b`` for each of few terms is in a register for all rows of ``a``."""
    a, b = (te.placeholder((64, 16, terms), name=name) for name in "ab")
    k = te.reduce_axis((0, terms), "k")
    program = te.create_prim_func(
        [a, b, te.compute((64, 16, 16), lambda n, i, j: te.sum(a[n, i, k] * b[n, j, k], axis=k), name="Y")]
    )
    caches = "-vector_width=512 -l1_bytes=32768 -l2_bytes=1048576 -l3_bytes=16777216"
    made = tir.tune.default(program, f"{ONE} {caches}")
    assert (made.mod.script() == tir.Schedule(program).mod.script()) == is_plain


@pytest.mark.parametrize("offset", [0, 1])
def test_every_eighth_element_is_selected_from_vectors_by_llvm_alone(offset: int):
    """Elsewhere an element takes a load and a shuffle; what is selected takes loads that may cross lines, and shuffles that do not."""
    x = te.placeholder((16, 776), name="X")
    program = te.create_prim_func([x, te.compute((16, 8, 96), lambda i, p, j: x[i, j * 8 + p + offset], name="Y")])
    made = tir.tune.default(program, f"{ONE} -vector_width=512 -l1_bytes=49152 -l2_bytes=2097152")
    assert made.mod.script() == tir.Schedule(program).mod.script()


def test_an_extremum_of_numbers_that_may_be_nan_is_compared_and_selected():
    x, y = (BufferLoad(decl_buffer((4,), "float32"), (const(n),)) for n in range(2))
    assert [work_of(e)[0] for e in (Max(x, y), x + y)] == [3, 1]
