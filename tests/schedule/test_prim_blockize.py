"""blockize and tensorize: shapes of the outer block, matching, refusals."""

from __future__ import annotations

import pytest
from prim_checks import refused, same, schedule

import tir
from tir.intrin import TensorIntrin
from tir.script import parse

MATMUL = """
@T.prim_func
def main(A: T.Buffer((8, 12), "float32"), B: T.Buffer((12, 16), "float32"), C: T.Buffer((8, 16), "float32")):
    for i, j, k in T.grid(8, 16, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

ELEMENTWISE = """
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for i in range(32):
        with T.block("B"):
            vi = T.axis.spatial(32, i)
            B[vi] = A[vi] * T.float32(2)
"""


ROW_OF_TWO = """
@T.prim_func
def main(A: T.Buffer((4, 2), "float32"), B: T.Buffer((2, 4), "float32")):
    with T.block("root"):
        T.reads(A[0:4, 0:2])
        T.writes(B[0:2, 0:4])
        for i, j in T.grid(4, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj, vi] = A[vi, vj]
"""


def tiled(text: str = MATMUL) -> tir.Schedule:
    sch = schedule(text)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    return sch


def test_elementwise() -> None:
    sch = schedule(ELEMENTWISE)
    sch.split("i", [4, 8], names=["io", "ii"])
    outer = sch.blockize("ii")
    assert outer.name == "B_o"
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for io in range(4):
        with T.block("B_o"):
            vi_o = T.axis.spatial(4, io)
            T.reads(A[vi_o * 8 : vi_o * 8 + 8])
            T.writes(B[vi_o * 8 : vi_o * 8 + 8])
            for ii in range(8):
                with T.block("B"):
                    vi_i = T.axis.spatial(8, ii)
                    T.reads(A[vi_o * 8 + vi_i])
                    T.writes(B[vi_o * 8 + vi_i])
                    B[vi_o * 8 + vi_i] = A[vi_o * 8 + vi_i] * T.float32(2)
""",
    )


@pytest.mark.parametrize("units", [True, False])
@pytest.mark.parametrize("depth", range(6))
def test_each_loop_of_a_tiled_matmul(depth: int, units: bool) -> None:
    sch = tiled()
    sch.blockize(sch.get_loops("C")[depth], units)
    same(sch)


@pytest.mark.parametrize("units", [True, False])
def test_the_block_itself(units: bool) -> None:
    sch = schedule(ELEMENTWISE)
    sch.blockize("B", units)
    same(sch)


@pytest.mark.parametrize("loop", ["i_0", "i_1"])
def test_predicated(loop: str) -> None:
    sch = schedule(ELEMENTWISE.replace("(32", "(30"))
    sch.split("i", [None, 8])
    answer = sch.can.blockize(loop)
    if answer:
        sch.blockize(loop)
        same(sch)
    else:
        refused(lambda: sch.blockize(loop), "do not divide")


def test_twice_and_names() -> None:
    sch = tiled()
    sch.blockize(sch.get_loops("C")[3])
    outer = sch.blockize(sch.get_loops("C_o")[2])
    assert outer.name == "C_o_o"
    same(sch)


def test_handles_survive() -> None:
    sch = tiled()
    loops = sch.get_loops("C")
    sch.blockize(loops[3])
    assert [sch.get(x).loop_var.name for x in loops] == ["i_0", "j_0", "k_0", "i_1", "j_1", "k_1"]


def test_refuses_two_blocks() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.float32(1)
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
""")
    refused(lambda: sch.blockize("i"), "2 blocks")


def test_refuses_the_root() -> None:
    sch = schedule(ELEMENTWISE)
    refused(lambda: sch.blockize("root"), "root block")


def test_refuses_indivisible_bindings() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi = T.axis.spatial(16, i + j)
            B[vi] = A[vi]
""")
    refused(lambda: sch.blockize("j"), "do not divide")


# ---------------------------------------------------------------- tensorize


def mma(m: int = 4) -> TensorIntrin:
    desc = parse(f"""
@T.prim_func
def desc(A: T.Buffer(({m}, {m}), "float32", offset_factor=1), B: T.Buffer(({m}, {m}), "float32", offset_factor=1),
         C: T.Buffer(({m}, {m}), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads(C[0:{m}, 0:{m}], A[0:{m}, 0:{m}], B[0:{m}, 0:{m}])
        T.writes(C[0:{m}, 0:{m}])
        for i, j, k in T.grid({m}, {m}, {m}):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
    impl = parse(f"""
@T.prim_func
def impl(A: T.Buffer(({m}, {m}), "float32", offset_factor=1), B: T.Buffer(({m}, {m}), "float32", offset_factor=1),
         C: T.Buffer(({m}, {m}), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads(C[0:{m}, 0:{m}], A[0:{m}, 0:{m}], B[0:{m}, 0:{m}])
        T.writes(C[0:{m}, 0:{m}])
        for k, i, j in T.grid({m}, {m}, {m}):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]
""")
    return TensorIntrin(desc, impl, "mma")


def dot(n: int = 4) -> TensorIntrin:
    desc = parse(f"""
@T.prim_func
def desc(A: T.Buffer(({n},), "float32", offset_factor=1), B: T.Buffer(({n},), "float32", offset_factor=1),
         C: T.Buffer((1,), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads(C[0:1], A[0:{n}], B[0:{n}])
        T.writes(C[0:1])
        for k in range({n}):
            with T.block("update"):
                vk = T.axis.reduce({n}, k)
                C[0] = C[0] + A[vk] * B[vk]
""")
    impl = parse(f"""
@T.prim_func
def impl(A: T.Buffer(({n},), "float32", offset_factor=1), B: T.Buffer(({n},), "float32", offset_factor=1),
         C: T.Buffer((1,), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads(C[0:1], A[0:{n}], B[0:{n}])
        T.writes(C[0:1])
        for k in range({n}):
            C[0] = C[0] + A[{n} - 1 - k] * B[{n} - 1 - k]
""")
    return TensorIntrin(desc, impl, "dot")


DOT = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk] * B[vi, vk]
"""


def test_matmul_by_loop() -> None:
    sch = tiled()
    sch.tensorize(sch.get_loops("C")[3], mma())
    same(sch)
    assert "T.match_buffer" in sch.script()


def test_a_constant_spelled_as_a_cast() -> None:
    """As in a program made for any type: ``T.Cast(dtype, 0)``."""
    assert "T.float32(0)" in MATMUL
    sch = tiled(MATMUL.replace("T.float32(0)", 'T.Cast("float32", 0)'))
    sch.tensorize(sch.get_loops("C")[3], mma())
    same(sch)


def test_matmul_by_block() -> None:
    sch = tiled()
    outer = sch.blockize(sch.get_loops("C")[3])
    sch.tensorize(outer, mma())
    same(sch)


def test_matmul_decomposed() -> None:
    sch = tiled()
    sch.decompose_reduction("C", sch.get_loops("C")[2])
    sch.tensorize(sch.get_loops("C_update")[3], mma())
    same(sch)


def test_dot_product() -> None:
    sch = schedule(DOT)
    sch.split("k", [None, 4])
    sch.tensorize("k_1", dot())
    same(sch)


def test_the_order_of_iterators_does_not_matter() -> None:
    swapped = parse(ROW_OF_TWO.replace('vi, vj = T.axis.remap("SS", [i, j])', 'vj, vi = T.axis.remap("SS", [j, i])'))
    sch = schedule(swapped.script())
    sch.tensorize("i", TensorIntrin(parse(ROW_OF_TWO), parse(ROW_OF_TWO)))
    same(sch)


def test_twice_with_one_intrinsic() -> None:
    intrinsic = dot()
    sch = schedule(DOT)
    sch.split("k", [None, 4])
    sch.split("i", [2, 4], names=["io", "ii"])
    sch.tensorize("k_1", intrinsic)
    other = schedule(DOT)
    other.split("k", [None, 4])
    other.tensorize("k_1", intrinsic)
    same(sch)
    same(other)


def test_mismatch_shows_the_difference() -> None:
    text = MATMUL.replace("A[vi, vk] * B[vk, vj]", "A[vi, vk] + B[vk, vj]")
    sch = schedule(text)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    before = sch.mod
    refused(lambda: sch.tensorize(i1, mma()), "does not compute what the intrinsic mma describes", "difference")
    assert sch.mod is before


def test_wrong_size() -> None:
    sch = tiled()
    refused(lambda: sch.tensorize(sch.get_loops("C")[3], mma(2)), "does not compute")


def test_wrong_buffer_count() -> None:
    sch = schedule(ELEMENTWISE)
    refused(lambda: sch.tensorize("i", mma()), "uses 2 buffers")


def test_unknown_name() -> None:
    sch = schedule(ELEMENTWISE)
    refused(
        lambda: sch.tensorize("i", "dot_16x4_vni"), "no tensor intrinsic 'dot_16x4_vni'; did you mean dot_16x4_vnni"
    )


VIEW = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for o in range(2):
        with T.block("o"):
            vo = T.axis.spatial(2, o)
            M = T.match_buffer(B[vo * 4:vo * 4 + 4], (4,), "int32", offset_factor=1)
            for i in range(4):
                with T.block("i"):
                    vi = T.axis.spatial(4, i)
                    M[vi] = A[vo * 4 + vi]
"""

REDUCED_VIEWS = """
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            M = T.match_buffer(B[vi:vi + 1], (1,), "int32", offset_factor=1)
            N = T.match_buffer(A[vi, vk:vk + 1], (1,), "int32", offset_factor=1)
            with T.init():
                M[0] = 0
            M[0] = M[0] + N[0]
"""


@pytest.mark.parametrize("program", [VIEW, REDUCED_VIEWS])
@pytest.mark.parametrize("depth", [0, -1])
def test_views_of_the_block_follow_its_new_iterators(program, depth):
    sch = schedule(program)
    block = "o" if program is VIEW else "C"
    sch.blockize(sch.get_loops(block)[depth])
    same(sch)


@pytest.mark.parametrize("depth", [0, 1])
def test_an_init_taken_apart_keeps_the_views_that_it_uses(depth):
    sch = schedule(REDUCED_VIEWS)
    init = sch.decompose_reduction("C", sch.get_loops("C")[depth])
    assert [m.buffer.name for m in sch.get(init).match_buffers] == ["M"]
    same(sch)


ROWS_ADDED = """
@T.prim_func
def f(A: T.Buffer((6, 4), "int32"), C: T.Buffer((4, 4), "int32")):
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + A[vi + {far}, vj] * 2
"""
DOUBLED = """
@T.prim_func
def f(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "int32", offset_factor=1)
    C = T.match_buffer(c, (4,), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        for j in range(4):
            with T.block("C"):
                vj = T.axis.spatial(4, j)
                C[vj] = A[vj] * 2
"""


@pytest.mark.parametrize("far", [1, 2])
def test_a_region_of_more_rows_is_not_that_of_an_intrinsic(far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The description has no operand for the other rows, so that nothing of the block is compared with it."""
    monkeypatch.setitem(TensorIntrin._registry, "doubled", TensorIntrin(parse(DOUBLED), parse(DOUBLED), "doubled"))
    sch = schedule(ROWS_ADDED.format(far=far))
    refused(lambda: sch.tensorize("j", "doubled"), "does not compute what", f"the region of A ({far + 1}, 4)")


def test_the_init_of_a_tile_does_not_move_over_sums_that_share_its_elements() -> None:
    sch = schedule(MATMUL.replace("C[vi, vj]", "C[vi + vj, 0]").replace("C: T.Buffer((8", "C: T.Buffer((23"))
    refused(lambda: sch.blockize("i"), "write the same element of C", "(vi=1, vj=0) goes to [1, 0]")
    sch.blockize("j")
    same(sch)
