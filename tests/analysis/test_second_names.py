"""Views that give memory a second name: a schedule takes programs in which memory that is written has one."""

import pytest

from tests.prim_checks import refused, same, schedule

VIEWS = """
@T.prim_func
def main(B: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
    for u in range(2):
        with T.block("outer"):
            z = T.axis.spatial(2, u)
            T.reads(B[0:12], C[0:12])
            T.writes(B[0:12])
            V = T.match_buffer({written}, (8,), offset_factor=1)
            W = T.match_buffer({read}, (8,), offset_factor=1)
            for i, j in T.grid(4, 2):
                with T.block("in"):
                    v, w = T.axis.remap("SS", [i, j])
                    V[v * 2 + w] = {value} * 2.0
"""


@pytest.mark.parametrize(
    "read, value, names",
    [
        ("B[1:9]", "W[v * 2 + w]", "W and V"),
        ("B[z + 1 : z + 9]", "W[v * 2 + w]", "W and V"),
        ("C[0:8]", "B[v * 2 + w + 1]", "B and V"),
    ],
)
def test_memory_that_is_written_has_one_name(read, value, names):
    text = VIEWS.format(written="B[0:8]", read=read, value=value)
    error = refused(lambda: schedule(text), f"writes the memory of B, and uses it by two names, {names}")
    assert "B itself" in str(error)


def test_memory_that_is_read_may_have_two():
    text = VIEWS.format(written="B[0:8]", read="C[0:8]", value="(W[v * 2 + w] + C[v * 2 + w + 1])")
    sch = schedule(text)
    sch.reorder("j", "i")
    sch.parallel("i")
    same(sch)


def test_a_block_without_blocks_inside_is_a_unit():
    sch = schedule("""
@T.prim_func
def main(B: T.Buffer((12,), "float32"), C: T.Buffer((4,), "float32")):
    for u in range(4):
        with T.block("in"):
            v = T.axis.spatial(4, u)
            V = T.match_buffer(B[2 * v : 2 * v + 2], (2,), offset_factor=1)
            V[0] = B[2 * v + 1]
            C[v] = V[0]
""")
    sch.parallel("u")
    same(sch)
