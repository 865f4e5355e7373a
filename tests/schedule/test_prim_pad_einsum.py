"""pad_einsum: padded copies in, the padding left out on the way back, and reductions that the padding would change."""

from __future__ import annotations

import pytest
from prim_checks import refused, same, schedule

import tir

MATMUL = """
@T.prim_func
def main(A: T.Buffer((6, 6), "float32"), B: T.Buffer((6, 8), "float32"), C: T.Buffer((6, 8), "float32")):
    for i, j, k in T.grid(6, 8, 6):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

INT8 = (
    MATMUL.replace(
        'A: T.Buffer((6, 6), "float32"), B: T.Buffer((6, 8), "float32"), C: T.Buffer((6, 8), "float32")',
        'A: T.Buffer((6, 6), "int8"), B: T.Buffer((6, 8), "int8"), C: T.Buffer((6, 8), "int32")',
    )
    .replace("T.float32(0)", "0")
    .replace("A[vi, vk] * B[vk, vj]", 'T.cast(A[vi, vk], "int32") * T.cast(B[vk, vj], "int32")')
)

SYMBOLIC = """
@T.prim_func
def main(n: T.int32, a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (n, 6), "float32")
    B = T.match_buffer(b, (6, 8), "float32")
    C = T.match_buffer(c, (n, 8), "float32")
    for i, j, k in T.grid(n, 8, 6):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            vj = T.axis.spatial(8, j)
            vk = T.axis.reduce(6, k)
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

SCALE = """
@T.prim_func
def main(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
    for i in range(7):
        with T.block("B"):
            vi = T.axis.spatial(7, i)
            B[vi] = A[vi] + T.float32(1)
"""


def updated(term: str, start: str = "T.float32(0)") -> str:
    old = "C[vi, vj] + A[vi, vk] * B[vk, vj]"
    return MATMUL.replace("T.float32(0)", start).replace(old, term)


def names(sch: tir.Schedule) -> list[str]:
    return [b.name for b in sch.get_child_blocks("root")]


@pytest.mark.parametrize("padding", [[4, 4, 4], [4, 1, 1], [1, 1, 8], [5, 3, 7], [16, 16, 16]])
@pytest.mark.parametrize("text", [MATMUL, INT8])
def test_matmul(text, padding):
    sch = schedule(text)
    sch.pad_einsum("C", padding)
    extents = [int(sch.get(loop).extent) for loop in sch.get_loops("C")]
    assert extents == [-(-size // p) * p for size, p in zip((6, 8, 6), padding)]
    same(sch)


def test_multiples_change_nothing():
    sch = schedule(MATMUL)
    before = sch.mod
    sch.pad_einsum("C", [2, 8, 3])
    assert sch.mod is before or tir.structural_equal(sch.mod, before)


def test_only_what_a_padded_iterator_indexes_is_copied():
    sch = schedule(MATMUL)
    sch.pad_einsum("C", [1, 3, 1])
    assert names(sch) == ["B_pad", "C", "C_pad"]
    same(sch)


@pytest.mark.parametrize("n", [1, 5, 8])
def test_symbolic(n):
    sch = schedule(SYMBOLIC)
    sch.pad_einsum("C", [4, 1, 4])
    same(sch, n=n)


@pytest.mark.parametrize("op, start", [("max", '"-inf"'), ("min", '"inf"')])
def test_extremes_are_padded_with_what_never_wins(op, start):
    sch = schedule(updated(f"T.{op}(C[vi, vj], A[vi, vk])", f"T.float32({start})"))
    sch.pad_einsum("C", [1, 1, 4])
    assert f"T.float32({start})" in sch.mod["main"].script().split("A_pad[v0, v1] =")[1].splitlines()[0]
    same(sch)


def test_products_are_padded_with_one():
    sch = schedule(updated("C[vi, vj] * A[vi, vk]", "T.float32(1)"))
    sch.pad_einsum("C", [1, 1, 4])
    same(sch)


def test_differences_cancel():
    sch = schedule(updated("C[vi, vj] - (A[vi, vk] - B[vk, vj]) * (A[vi, vk] - B[vk, vj])"))
    sch.pad_einsum("C", [1, 1, 4])
    same(sch)


def test_an_update_without_init_starts_from_what_is_there():
    sch = schedule(MATMUL)
    sch.decompose_reduction("C", "i")
    sch.pad_einsum("C_update", [4, 1, 4])
    assert names(sch) == ["C_init", "A_pad", "B_pad", "C_pad_in", "C_update", "C_pad"]
    same(sch)


def test_one_buffer_read_two_ways():
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((6, 6), "float32"), C: T.Buffer((6, 6), "float32")):
    for i, j in T.grid(6, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + A[vj, vi] + A[0, vi]
"""
    )
    sch.pad_einsum("C", [4, 1])
    same(sch)


def test_a_guard_that_keeps_a_read_inside():
    """The domain may be longer than a buffer that the block reads under a condition."""
    sch = schedule(
        SCALE.replace("A: T.Buffer((7,)", "A: T.Buffer((5,)").replace(
            "A[vi] + T.float32(1)", "T.if_then_else(vi < 5, A[vi], T.float32(1))"
        )
    )
    sch.pad_einsum("B", [4])
    same(sch)


def test_the_padding_can_be_padded_again():
    sch = schedule(MATMUL)
    sch.pad_einsum("C", [4, 1, 4])
    sch.pad_einsum("A_pad", [3, 5])
    same(sch)


def test_then_tiled():
    sch = schedule(MATMUL)
    sch.pad_einsum("C", [4, 4, 4])
    sch.tile("C", [4, 4, 4], tail="exact")
    sch.parallel("i_0")
    same(sch)


@pytest.mark.parametrize(
    "term, word",
    [
        ("C[vi, vj] + A[vi, vk]", ""),
        ("C[vi, vj] + T.exp(A[vi, vk])", "iterator vk"),
        ("C[vi, vj] + A[vi, vk] * B[0, vj]", "iterator vk"),
        ("C[vi, vj] + A[vi, vk] + T.float32(1)", "iterator vk"),
        ("T.max(C[vi, vj], A[vi, vk] * B[vk, vj])", "iterator vk"),
    ],
)
def test_reductions_that_the_padding_would_change(term, word):
    sch = schedule(updated(term))
    if not word:
        sch.pad_einsum("C", [1, 1, 4])
        return same(sch)
    error = refused(lambda: sch.pad_einsum("C", [1, 1, 4]), word, "leave the result as it is")
    assert "padding 1 for that iterator" in error.legal
    sch.pad_einsum("C", [4, 3, 1])
    return same(sch)


def test_refuses_the_wrong_number_of_factors():
    refused(lambda: schedule(MATMUL).pad_einsum("C", [4, 4]), "has 3 iterators, but there are 2 padding factors")
    refused(lambda: schedule(MATMUL).pad_einsum("C", [4, 0, 1]), "at least 1")
    with pytest.raises(TypeError, match="`padding` is a list of ints"):
        schedule(MATMUL).pad_einsum("C", 4)


def test_refuses_iterators_that_are_not_loops():
    sch = schedule(MATMUL)
    sch.split("i", [2, 3])
    refused(lambda: sch.pad_einsum("C", [4, 1, 1]), "iterator vi of block `C` is `i_0 * 3 + i_1`, not a loop")
    opaque = schedule(SCALE.replace("spatial", "opaque"))
    refused(lambda: opaque.pad_einsum("B", [4]), "is opaque")


def test_refuses_conditions():
    sch = schedule(SCALE.replace("B[vi] =", "T.where(i < 6)\n            B[vi] ="))
    refused(lambda: sch.pad_einsum("B", [4]), "runs under a condition")


def test_refuses_part_of_a_domain():
    sch = schedule(SCALE.replace("range(7)", "range(6)"))
    refused(lambda: sch.pad_einsum("B", [4]), "does not run over just the domain of iterator vi")


TRIANGLE = """
@T.prim_func
def main(A: T.Buffer((9,), "float32"), B: T.Buffer((9, 9), "float32")):
    for i in range(9):
        for j in range(i + 1):
            with T.block("B"):
                {iters}
                B[vi, vj] = A[vj]
"""


@pytest.mark.parametrize("padding", [[4, 4], [4, 1], [1, 4]])
def test_refuses_an_extent_that_depends_on_another_loop(padding):
    """Padded rows are longer than those inside: ``j`` would leave ``A``."""
    iters = "vi, vj = T.axis.remap('SS', [i, j])"
    sch = schedule(TRIANGLE.format(iters=iters))
    refused(lambda: sch.pad_einsum("B", padding), "the extent of loop `j` depends on loop `i`")
    inside = TRIANGLE.replace("B[vi, vj]", "B[0, vj]").format(iters="vj = T.axis.spatial(i + 1, j)")
    refused(lambda: schedule(inside).pad_einsum("B", padding[1:]), "the extent of loop `j` depends on loop `i`")


def test_refuses_a_shared_nest():
    sch = schedule(
        SCALE
        + """        with T.block("D"):
            vi = T.axis.spatial(7, i)
            A[vi] = T.float32(0)
"""
    )
    refused(lambda: sch.pad_einsum("B", [4]), "loop `i` is around more than block `B`")


def test_refuses_a_parallel_loop_around():
    sch = schedule(SCALE.replace("    for i in range(7):", "    for t in range(1):\n      for i in range(7):"))
    sch.parallel("t")
    refused(lambda: sch.pad_einsum("B", [4]), "loop `t` around the nest of block `B` is parallel")


def test_refuses_composite_indices():
    sch = schedule(SCALE.replace("A[vi] +", "A[vi // 2] +"))
    refused(lambda: sch.pad_einsum("B", [4]), "uses A at `vi // 2`, which is not an iterator or a constant")


def test_refuses_composite_indices_of_one_padded_iterator():
    sch = schedule(updated("C[vi, vj] + A[vi + vj, vk]"))
    refused(lambda: sch.pad_einsum("C", [4, 1, 1]), "which is not an iterator or a constant")


def test_refuses_more_than_stores():
    sch = schedule(SCALE.replace("B[vi] =", "for z in range(1):\n                B[vi] ="))
    refused(lambda: sch.pad_einsum("B", [4]), "more than stores of elements")


def test_refuses_other_elements_of_what_it_writes():
    sch = schedule(updated("C[vi, 0] + A[vi, vk]"))
    refused(lambda: sch.pad_einsum("C", [4, 1, 1]), "uses C at other elements than the one it writes")


def test_refuses_a_spatial_iterator_that_is_not_written():
    sch = schedule(SCALE.replace("B[vi] = A[vi]", "B[0] = A[vi]"))
    refused(lambda: sch.pad_einsum("B", [4]), "iterator vi of block `B` is spatial but does not index B")


def test_refuses_a_division_by_padding():
    text = (
        SCALE.replace("float32", "int32").replace("A[vi] + T.int32(1)", "B[0]").replace("B[0]", "T.int32(8) // A[vi]")
    )
    refused(lambda: schedule(text).pad_einsum("B", [4]), "would evaluate `8 // A[vi]`, which may have no value there")


@pytest.mark.parametrize(
    "value",
    [
        "T.cast(10 // (7 - vi), 'float32')",
        "T.cast(10 % (vi - 7), 'float32')",
        "T.cast(T.shift_left(T.int32(1), vi + 25), 'float32')",
        "T.if_then_else(vi == 7, A[8], A[vi])",
        "T.if_then_else(vi < 7, A[vi], A[8])",
        "T.if_then_else(vi < 7 and 10 // (7 - vi) > 0 or 10 // (7 - vi) > 1, A[vi], 0)",
        "T.Let(10 // x, where={x: 7 - vi})",
    ],
)
def test_refuses_what_has_no_value_past_the_domain(value):
    text = SCALE.replace("A[vi] + T.float32(1)", value)
    if "Let" in value:
        text = text.replace('"float32"', '"int32"').replace(
            "        with T.block", "        x = T.int32()\n        with T.block"
        )
    refused(
        lambda: schedule(text).pad_einsum("B", [8]), "past the domain of a padded iterator, block `B` would evaluate"
    )


@pytest.mark.parametrize(
    "value",
    [
        "T.if_then_else(vi < 7 and 10 // (7 - vi) > 0, A[vi], 0)",
        "T.if_then_else(vi > 6 or 10 // (7 - vi) > 0, A[vi], 0)",
        "T.if_then_else(vi == 7, A[3], A[vi])",
        "A[vi] / T.cast(7 - vi, 'float32')",
        "T.cast(10 // (vi + 1), 'float32')",
    ],
)
def test_what_has_a_value_past_the_domain(value):
    sch = schedule(SCALE.replace("A[vi] + T.float32(1)", value))
    sch.pad_einsum("B", [8])
    same(sch)


def test_refuses_a_read_that_a_guard_kept_from_memory_without_value():
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
    D = T.alloc_buffer((7,))
    for i in range(5):
        with T.block("D"):
            vi = T.axis.spatial(7, i)
            D[vi] = A[vi]
    for i in range(7):
        with T.block("B"):
            vi = T.axis.spatial(7, i)
            B[vi] = T.if_then_else(vi < 5, D[vi], T.float32(1))
"""
    )
    error = refused(lambda: sch.pad_einsum("B", [4]), "an element of `D` would be read without having been written")
    assert error.witness


def test_pad_einsum_of_a_loop_with_private_memory():
    """The one iteration had the sum for itself; the padded ones share it."""
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8, 1), "float32"), C: T.Buffer((8,), "float32")):
    S = T.alloc_buffer((8,), "float32")
    for i, k in T.grid(8, 1):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = 0.0
            S[vi] = S[vi] + A[vi, vk]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = 1.0
""")
    sch.privatize("k", buffer="S")
    sch.pad_einsum("S", [4, 4])
    assert "private" not in sch.script()
    same(sch)


def test_runs_with_effects_are_not_repeated():
    sch = schedule("""
@T.prim_func
def main(R: T.Buffer((1,), "int32"), E: T.Buffer((1,), "int32")):
    for i in range(1):
        with T.block("H"):
            vi = T.axis.spatial(1, i)
            T.reads(R[0])
            T.writes(R[0], E[vi])
            E[vi] = T.atomic_add(T.address_of(R[vi]), 1, dtype="int32")
""")
    refused(lambda: sch.pad_einsum("H", [2]), "of block `H` has effects, which padded runs would repeat")
