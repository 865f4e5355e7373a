"""Views of a block around that give memory a second name: what is written by one is read by the other."""

import pytest

from tests.prim_checks import refused, same, schedule

VIEWS = """
@T.prim_func
def main(B: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
    for u in range(2):
        with T.block("outer"):
            z = T.axis.spatial(2, u)
            T.reads(B[0:12])
            T.writes(B[0:12])
            V = T.match_buffer({written}, (8,), offset_factor=1)
            W = T.match_buffer({read}, (8,), offset_factor=1)
            for i, j in T.grid(4, 2):
                with T.block("in"):
                    v, w = T.axis.remap("SS", [i, j])
                    V[v * 2 + w] = W[v * 2 + w] * 2.0
"""


@pytest.mark.parametrize(
    "written, read", [("B[0:8]", "B[1:9]"), ("B[1:9]", "B[0:8]"), ("B[z : z + 8]", "B[z + 1 : z + 9]")]
)
def test_iterations_that_meet_by_two_views(written, read):
    text = VIEWS.format(written=written, read=read)
    refused(lambda: schedule(text).parallel("i"), "two of its iterations touch the same element")
    refused(lambda: schedule(text).vectorize("j"), "two of its iterations touch the same element")
    refused(lambda: schedule(text).reorder("j", "i"), "element")


def test_a_view_and_its_source():
    text = VIEWS.format(written="B[0:8]", read="C[0:8]").replace("W[v * 2 + w] *", "B[v * 2 + w + 1] *")
    refused(lambda: schedule(text).parallel("i"), "two of its iterations touch the same element")


@pytest.mark.parametrize(
    "written, read", [("B[0:8]", "B[0:8]"), ("B[z : z + 8]", "B[z : z + 8]"), ("B[0:8]", "C[1:9]")]
)
def test_views_of_the_same_elements_or_of_other_memory(written, read):
    sch = schedule(VIEWS.format(written=written, read=read))
    sch.reorder("j", "i")
    sch.parallel("i")
    same(sch)


STAGED = """
@T.prim_func
def main(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
    for u in range(2):
        with T.block("outer"):
            z = T.axis.spatial(2, u)
            T.reads(A[0:12], B[0:12])
            T.writes(B[0:12], C[0:12])
            V = T.match_buffer(B[0:8], (8,), offset_factor=1)
            W = T.match_buffer(B[1:9], (8,), offset_factor=1)
            D = T.alloc_buffer((8,), "float32")
            for i in range(8):
                with T.block("D"):
                    v = T.axis.spatial(8, i)
                    D[v] = W[v] * 2.0
            for j in range(8):
                with T.block("C"):
                    v = T.axis.spatial(8, j)
                    C[v] = D[v]
                with T.block("V"):
                    v = T.axis.spatial(8, j)
                    V[v] = A[v] + 3.0
"""


def test_moves_over_a_write_by_another_view():
    """D reads B[v + 1], which is written one iteration later; by the other view B[v], which is written already."""
    sch = schedule(STAGED)
    sch.compute_at("D", "j")
    same(sch)
    late = STAGED.replace("W[v] * 2.0", "V[v] * 2.0").replace("V[v] = A", "W[v] = A")
    refused(lambda: schedule(late).compute_at("D", "j"), "overwritten before it is read")
    refused(lambda: schedule(late).compute_inline("D"), "overwritten before it is read")
    refused(lambda: schedule(late).merge("i", "j"), "overwritten before it is read")


def test_a_copy_of_what_another_view_writes():
    text = VIEWS.format(written="B[0:8]", read="B[0:8]")
    for step in ("cache_read", "cache_write"):
        refused(lambda: getattr(schedule(text), step)("in", 0, "global"), "as V" if step == "cache_read" else "as W")
    sch = schedule(VIEWS.format(written="B[0:8]", read="C[0:8]"))
    sch.cache_read("in", 0, "global")
    sch.cache_write("in", 0, "global")
    same(sch)
