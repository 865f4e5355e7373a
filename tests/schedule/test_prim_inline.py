"""compute_inline, reverse_compute_inline, auto_inline: through any invertible index, where dependences allow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prim_checks import refused, same, schedule

import tir
from tir import te
from tir.schedule.invariants import Keeps
from tir.schedule.primitive import PRIMITIVES

CHAIN = """
@T.prim_func
def main(A: T.Buffer((8, 12), "float32"), D: T.Buffer(({ds}), "float32")):
    B = T.alloc_buffer(({bs}), "float32")
    for i, j in T.grid(8, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[{bi}] = A[vi, vj] * T.float32(2)
    for i, j in T.grid({cg}):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[{di}] = {val}
"""

MERGED = """
@T.prim_func
def main(A: T.Buffer((8, 12), "float32"), D: T.Buffer(({ds}), "float32")):
    for i, j in T.grid({grid}):
        with T.block("{name}"):
            vi, vj = T.axis.remap("SS", [i, j])
            {where}D[{di}] = {val}
"""

MID = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    C = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[15 - vi] * T.float32(3)
    for i in range(16):
        with T.block("D"):
            vi = T.axis.spatial(16, i)
            D[vi] = B[vi] + C[15 - vi]
"""


def chain(bs="8, 12", bi="vi, vj", cg="8, 12", di="vi, vj", ds="8, 12", val="B[vi, vj] + T.float32(1)"):
    return CHAIN.format(bs=bs, bi=bi, cg=cg, di=di, ds=ds, val=val)


def merged(name, val, grid="8, 12", di="vi, vj", ds="8, 12", where=""):
    return MERGED.format(
        name=name, val=val, grid=grid, di=di, ds=ds, where=f"T.where({where})\n            " if where else ""
    )


# how the buffer between is indexed -> what the consumer and what the producer becomes
CASES = {
    "plain": (chain(), merged("D", "A[vi, vj] * T.float32(2) + T.float32(1)"),
              merged("B", "A[vi, vj] * T.float32(2) + T.float32(1)")),
    "transposed": (chain(bs="12, 8", bi="vj, vi", val="B[vj, vi]"), merged("D", "A[vi, vj] * T.float32(2)"),
                   merged("B", "A[vi, vj] * T.float32(2)")),
    "fused": (chain(bs="96,", bi="vi * 12 + vj", val="B[vi * 12 + vj]"), merged("D", "A[vi, vj] * T.float32(2)"),
              merged("B", "A[vi, vj] * T.float32(2)")),
    "shifted": (chain(cg="8, 10", val="B[vi, vj + 1]"), merged("D", "A[vi, vj + 1] * T.float32(2)", grid="8, 10"),
                None),
    "strided": (chain(bs="8, 24", bi="vi, vj * 2", val="B[vi, vj * 2]"), merged("D", "A[vi, vj] * T.float32(2)"),
                merged("B", "A[vi, vj] * T.float32(2)")),
    "every other": (chain(cg="8, 6", ds="8, 6", val="B[vi, vj * 2]"),
                    merged("D", "A[vi, vj * 2] * T.float32(2)", grid="8, 6", ds="8, 6"),
                    merged("B", "A[vi, vj] * T.float32(2)", di="vi, vj // 2", ds="8, 6", where="j % 2 == 0")),
    "reversed": (chain(bi="7 - vi, vj", val="B[vi, vj]"), merged("D", "A[7 - vi, vj] * T.float32(2)"),
                 merged("B", "A[vi, vj] * T.float32(2)", di="7 - vi, vj")),
    "used twice": (chain(val="B[vi, vj] * B[vi, vj]"),
                   merged("D", "A[vi, vj] * T.float32(2) * (A[vi, vj] * T.float32(2))"),
                   merged("B", "A[vi, vj] * T.float32(2) * (A[vi, vj] * T.float32(2))")),
    "reshaped": (chain(bs="96,", bi="vi * 12 + vj", cg="12, 8", ds="12, 8", val="B[vi * 8 + vj]"), None, None),
    "output transposed": (chain(ds="12, 8", di="vj, vi"), None, None),
    "another operand": (chain(val="B[vi, vj] + A[vj % 8, vi]"), None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_inline(name):
    text, expected, _ = CASES[name]
    sch = schedule(text)
    sch.compute_inline("B")
    same(sch, expected)


@pytest.mark.parametrize("name", CASES)
def test_reverse_inline(name):
    text, _, expected = CASES[name]
    sch = schedule(text)
    sch.reverse_compute_inline("D")
    same(sch, expected)


@pytest.mark.parametrize("val", ["B[vi, vj + 1] + B[vi, vj]", "B[vi, 0]"])
def test_forward_only(val):
    text = chain(cg="8, 10", val=val)
    sch = schedule(text)
    sch.compute_inline("B")
    same(sch)
    refused(lambda: schedule(text).reverse_compute_inline("D"), "`D`")


def test_padding_is_not_lost():
    text = chain(cg="8, 16", ds="8, 16", val="T.if_then_else(2 <= vj and vj < 14, B[vi, vj - 2], T.float32(0))")
    sch = schedule(text)
    sch.compute_inline("B")
    same(sch)
    refused(
        lambda: schedule(text).reverse_compute_inline("D"),
        "would no longer run for every iterator value",
        "D at (vi=0, vj=0) would not run",
    )


@pytest.mark.parametrize("step, block", [("compute_inline", "B"), ("reverse_compute_inline", "D")])
def test_tails(step, block):
    sch = schedule(chain())
    sch.split("B.j", [None, 5])
    sch.split("D.j", [None, 5])
    getattr(sch, step)(block)
    same(sch)


def test_into_the_last_of_several_producers():
    sch = schedule(MID)
    sch.reverse_compute_inline("D")
    same(sch)
    assert [b.name for b in sch.get_child_blocks("root")] == ["B", "C"]


def test_auto_inline():
    sch = schedule(MID)
    sch.auto_inline()
    same(sch)
    assert [b.name for b in sch.get_child_blocks("root")] == ["D"]


def stages() -> tir.PrimFunc:
    """B, C (of B twice), D (of C, turned round) and E (rows of D), which F reads with D."""
    x = te.placeholder((6, 6), name="A")
    b = te.compute((6, 6), lambda i, j: x[i, j] + 1.0, name="B")
    c = te.compute((6, 6), lambda i, j: b[i, j] * b[5 - i, j], name="C")
    d = te.compute((6, 6), lambda i, j: c[j, i] + 2.0, name="D")
    k = te.reduce_axis((0, 6), "k")
    e = te.compute((6,), lambda i: te.sum(d[i, k], axis=k), name="E")
    return te.create_prim_func([x, te.compute((6, 6), lambda i, j: d[i, j] - e[i], name="F")])


def test_blocks_are_inlined_together_as_one_by_one():
    one, together = (tir.Schedule(stages()) for _ in range(2))
    for block in "DCB":
        one.compute_inline(block)
    together.auto_inline("B", "C", "D")
    same(together)
    assert together.mod.script() == one.mod.script()


def test_only_the_blocks_that_are_given_are_inlined():
    sch = tir.Schedule(stages())
    sch.auto_inline("C", "D")
    same(sch)
    assert [b.name for b in sch.get_child_blocks("root")] == ["B", "E", "F"]


def test_blocks_whose_operands_are_overwritten_on_their_way_stay():
    parts = [
        "B[vi] = A[vi] + 1.0",
        "A[vi] = A[vi] * 3.0",
        "C[vi] = B[15 - vi] * 2.0",
        "E[vi] = C[vi] - A[vi]",
        "D[vi] = C[15 - vi] * E[vi]",
    ]
    nests = "".join(
        f'    for i in range(16):\n        with T.block("{name}"):\n            vi = T.axis.spatial(16, i)\n            {store}\n'
        for name, store in zip("BWCED", parts)
    )
    sch = schedule(
        '@T.prim_func\ndef main(A: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32")):\n'
        + "".join(f'    {name} = T.alloc_buffer((16,), "float32")\n' for name in "BCE")
        + nests
    )
    sch.auto_inline()
    same(sch)
    assert [b.name for b in sch.get_child_blocks("root")] == ["B", "W", "D"]


def test_an_operand_overwritten_in_between():
    text = MID.replace("C[vi] = A[15 - vi] * T.float32(3)", "A[vi] = A[vi] * T.float32(3)")
    text = text.replace("B[vi] + C[15 - vi]", "B[vi] + A[15 - vi]")
    text = text.replace('    C = T.alloc_buffer((16,), "float32")\n', "")
    refused(lambda: schedule(text).compute_inline("B"), "overwritten before it is read", "reads A[0]")


TWICE = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((4, 4), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[v] * 2.0
    for i, j in T.grid(4, 4):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[v * 4 + w] * B[PLACE]
"""


def test_one_element_read_at_two_places_that_are_the_same():
    sch = schedule(TWICE.replace("PLACE", "(v * 8 + w * 2) // 2"))
    sch.reverse_compute_inline("C")
    same(sch)


def test_two_elements_are_not_one():
    sch = schedule(TWICE.replace("PLACE", "v * 4 + (w + 1) % 4"))
    refused(lambda: sch.reverse_compute_inline("C"), "several places")


def test_iterators_that_run_together_are_one():
    text = TWICE.replace("(4, 4)", "(16,)").replace("for i, j in T.grid(16,)", "for i in range(16)")
    text = text.replace('"SS", [i, j]', '"SS", [i, i]').replace("C[v, w]", "C[v]").replace("v * 4 + w", "v")
    sch = schedule(text.replace("PLACE", "w"))
    sch.reverse_compute_inline("C")
    same(sch)


def test_a_border_that_only_the_consumer_writes_is_not_lost():
    """What was left out inside the loops that changed is read outside of them."""
    sch = schedule(
        """
@T.prim_func
def main(X: T.Buffer((3, 3), "float32"), Y: T.Buffer((5, 5), "float32")):
    P = T.alloc_buffer((5, 5), "float32")
    for y, x in T.grid(5, 5):
        with T.block("pad"):
            vy, vx = T.axis.remap("SS", [y, x])
            P[vy, vx] = T.if_then_else(1 <= vy and vy < 4 and 1 <= vx and vx < 4, X[vy - 1, vx - 1], T.float32(0))
    for y, x in T.grid(5, 5):
        with T.block("Y"):
            vy, vx = T.axis.remap("SS", [y, x])
            Y[vy, vx] = P[vy, vx]
"""
    )
    sch.stage("pad", 0, sch.get_loops("pad")[1])
    refused(lambda: sch.reverse_compute_inline("pad"), "pad at (vy=0, vx=0) would not run")


@pytest.mark.parametrize("made, used", [("int32", "int64"), ("int64", "int32")])
@pytest.mark.parametrize("step", ["compute_inline", "reverse_compute_inline", "auto_inline"])
def test_iterators_of_two_widths(made, used, step):
    """What stands for an iterator has its type: text of a sum of both would read back as another program."""
    program = f"""
@T.prim_func
def main(A: T.Buffer((3, 3), "float32"), C: T.Buffer((3, 2), "float32")):
    B = T.alloc_buffer((3, 2), "float32")
    for i, j in T.grid(3, 2):
        with T.block("B"):
            vi = T.axis.spatial(3, i)
            vj = T.axis.spatial(T.{made}(2), T.Cast("{made}", j))
            B[vi, vj] = A[vi, vj + T.{made}(1)] * 2.0
    for i, k in T.grid(3, 2):
        with T.block("C"):
            vi = T.axis.spatial(3, i)
            vk = T.axis.spatial(T.{used}(2), T.Cast("{used}", k))
            C[vi, vk] = B[vi, T.{used}(1) - vk] + A[vi, vk]
"""
    sch = schedule(program)
    getattr(sch, step)(*{"compute_inline": ["B"], "reverse_compute_inline": ["C"], "auto_inline": []}[step])
    assert len(sch.get_child_blocks("root")) == 1
    same(sch)


def test_an_element_that_is_prefetched_stays():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    B = T.alloc_buffer((64,), "float32")
    for i in range(64):
        with T.block("B"):
            v = T.axis.spatial(64, i)
            B[v] = A[v] * 2.0
    for i in range(64):
        with T.block("C"):
            v = T.axis.spatial(64, i)
            C[v] = B[v] + 1.0
""")
    sch.prefetch(sch.get_loops("C")[0], "C", "B", 3)
    refused(lambda: sch.compute_inline("B"), "takes the address of an element of B")
    same(sch)


@pytest.mark.parametrize("keeps", [Keeps.NOTHING, Keeps.ACCESSES], ids=["nothing", "accesses"])
def test_what_is_private_to_a_loop_is_not_prefetched_outside_of_it(monkeypatch, keeps):
    """The step drops the clause, so the race is asked again, whatever the primitive keeps."""
    monkeypatch.setitem(PRIMITIVES, "prefetch", replace(PRIMITIVES["prefetch"], keeps=keeps))
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    B = T.alloc_buffer((4,), "float32")
    for i, j in T.grid(4, 8):
        with T.block("B"):
            v, w = T.axis.spatial(4, i), T.axis.opaque(8, j)
            B[v] = A[v, w] * 2.0
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[v] + 1.0
""")
    i, j = sch.get_loops("C")
    sch.parallel(j)
    assert "private=[B]" in sch.mod.script()
    refused(lambda: sch.prefetch(i, "C", "B", 1), "loop `j` cannot be parallel", "writes B[0] as well")
    same(sch)


def test_a_consumer_that_stores_where_it_was_told():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((7,), "int32"), idx: T.Buffer((7,), "uint8"), O: T.Buffer((8,), "int32")):
    H = T.alloc_buffer((7,), "uint8")
    for i in range(8):
        with T.block("zero"):
            vi = T.axis.spatial(8, i)
            O[vi] = 0
    for i in range(7):
        with T.block("H"):
            vi = T.axis.spatial(7, i)
            H[vi] = idx[vi] & T.uint8(3)
        with T.block("O"):
            vi = T.axis.spatial(7, i)
            T.reads(A[vi], H[vi])
            T.writes(O[0:8])
            O[T.Cast("int32", H[vi])] = A[vi]
""")
    sch.reverse_compute_inline("O")
    assert "H" not in {b.name for b in sch.get("root").alloc_buffers}
    same(sch)
