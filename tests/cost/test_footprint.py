"""Footprints against counts by hand."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import tir
from tests.hand_schedules.elementwise import schedule_blur
from tir.cost import Footprint, Machine, footprint
from tir.cost.footprint import traffic, traffic_of_parts
from tir.cost.footprint_table import roofline_figure
from tir.library.elementwise import blur
from tir.script import parse
from tir.script import tir as T

N = 64


@T.prim_func
def matmul(A: T.Buffer((N, N), "float32"), B: T.Buffer((N, N), "float32"), C: T.Buffer((N, N), "float32")):
    for i, j, k in T.grid(N, N, N):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


def machine(registers: int = 2048, l1: int = 32 << 10, l2: int = 1 << 20, l3: int = 16 << 20) -> Machine:
    rates = {"L1": 64e9, "L2": 32e9, "L3": 16e9, "memory": 8e9}
    return Machine({"registers": registers, "L1": l1, "L2": l2, "L3": l3}, 100e9, rates)


def test_matmul():
    found = footprint(matmul, machine())
    i, j, k = found["i"], found["j"], found["k"]
    assert found.flops == i.flops == 2 * N**3 and j.flops == 2 * N**2 and k.flops == 2 * N
    assert i.touched == {"A": 4 * N * N, "B": 4 * N * N, "C": 4 * N * N}
    assert j.touched == {"A": 4 * N, "B": 4 * N * N, "C": 4 * N}
    assert k.touched == {"A": 4 * N, "B": 4 * N, "C": 4}
    assert (i.runs, j.runs, k.runs) == (1, N, N * N)
    assert i.accessed == 4 * 4 * N**3  # A, B, and C twice
    assert i.reuse == pytest.approx(4 * N**3 / (3 * N * N))
    assert i.intensity == pytest.approx(2 * N**3 / (12 * N * N))
    # 48 KB in all; with a row of A and of C, B is 16.5 KB; a column of B takes a line an element
    assert (i.holds, j.holds, k.holds) == ("L2", "L1", "L1")


def test_what_moves_between_the_levels():
    found = footprint(matmul, machine())
    line, elements = 64, 4 * N * N
    # one iteration of i fits L1: each element comes in once
    assert found.traffic["L2"] == found.traffic["L3"] == found.traffic["memory"] == 3 * elements
    # no iteration of j fits 2 KB: every run of k brings a row of A, a column of B, an element of C
    assert found.traffic["L1"] == N * N * (4 * N + N * line + line)
    tight = footprint(matmul, machine(l1=8 << 10))
    # an iteration of j fits 8 KB, B does not: for each row all of B, and a row of A and of C
    assert tight.traffic["L2"] == N * (elements + 2 * 4 * N)


def test_tiled_matmul():
    sch = tir.Schedule(matmul)
    i, j, k = sch.get_loops("C")
    (io, ii), (jo, ji) = sch.split(i, [None, 16]), sch.split(j, [None, 16])
    sch.reorder(io, jo, k, ii, ji)
    found = footprint(sch, machine())
    assert found["k"].touched == {"A": 4 * 16 * N, "B": 4 * N * 16, "C": 4 * 16 * 16}
    assert found["i_1"].touched == {"A": 4 * 16, "B": 4 * 16, "C": 4 * 16 * 16}
    assert found["k"].flops == 2 * 16 * 16 * N and found["k"].runs == 16
    # one k touches 16 lines of A, one of B, 16 of C: they fit the registers of 4 KB, so a tile moves its 16 rows of A
    # (256 bytes), 64 of B (a line each) and 16 of C once
    wide = footprint(sch, machine(registers=4096))
    assert wide.traffic["L1"] == 16 * (16 * 4 * N + N * 64 + 16 * 64)


def test_stencil():
    height, width, strip = 64, 128, 16
    found = footprint(schedule_blur(tir.Schedule(blur(height, width)), strip), machine())
    outer = found["y_0"]
    assert outer.touched["A"] == 4 * (height + 2) * (width + 2)
    assert outer.touched["B"] == 4 * height * width
    stage = found["ax0"]  # makes strip + 2 rows from as many
    assert stage.touched == {"A": 4 * (strip + 2) * (width + 2), "along": 4 * (strip + 2) * width}
    assert stage.extent == strip + 2 and stage.runs == height // strip
    assert stage.flops == 3 * (strip + 2) * width
    assert found.flops == height // strip * (3 * (strip + 2) * width + 3 * strip * width)


@T.prim_func
def copy(A: T.Buffer((1 << 20,), "float32"), B: T.Buffer((1 << 20,), "float32")):
    for i in range(1 << 20):
        with T.block("B"):
            vi = T.axis.spatial(1 << 20, i)
            B[vi] = A[vi] * T.float32(2)


def test_the_bottleneck():
    found = footprint(copy, machine())
    assert found.traffic == dict.fromkeys(("L1", "L2", "L3", "memory"), 8 << 20)
    assert found.bottleneck == "memory"
    assert found.seconds["memory"] == pytest.approx((8 << 20) / 8e9)
    assert found.bound == pytest.approx((1 << 20) / found.seconds["memory"])
    resting = Machine(machine().sizes, 1e6, machine().bandwidth)
    assert footprint(copy, resting).bottleneck == "compute"


def test_views_of_it():
    found = footprint(matmul, machine())
    text = repr(found)
    assert "bottleneck" in text and "held by" in text and "j (64)" in text
    assert "<table>" in found._repr_html_()
    picture = ET.fromstring(found.svg())
    words = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert any("bottleneck" in (w or "") for w in words) and any("L1" in (w or "") for w in words)
    boxes = [[float(r.attrib[k]) for k in ("y", "height")] for r in picture.iter("{http://www.w3.org/2000/svg}rect")]
    assert all(y + height < below for (y, height), (below, _) in zip(boxes, boxes[1:]))

    # the line of a cache passes all bars of loops, and none of those below
    ends = [(float(r.attrib["y1"]), float(r.attrib["y2"])) for r in picture.iter("{http://www.w3.org/2000/svg}line")]
    first, last, below = boxes[0], boxes[len(found.rows) - 1], boxes[len(found.rows)]
    assert ends and all(top < first[0] and sum(last) < bottom < below[0] for top, bottom in ends)


def test_sizes_must_be_known():
    @T.prim_func
    def symbolic(a: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            with T.block("A"):
                vi = T.axis.spatial(n, i)
                A[vi] = T.float32(0)

    with pytest.raises(ValueError, match="loop i has the length n"):
        footprint(symbolic)
    with pytest.raises(KeyError, match="no loop 'z'; there are i, j, k"):
        footprint(matmul)["z"]


def test_sizes_of_the_target():
    using = Machine.of({"kind": "llvm", "l1_bytes": 48 << 10, "vector_width": 256})
    assert using.sizes["L1"] == 48 << 10 and using.sizes["registers"] == 16 * 32
    assert isinstance(footprint(matmul, target="llvm -l2-bytes=4096"), Footprint)


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_rates_of_a_core_at_three_ghz_with_two_vector_units(bits):
    using = Machine.of({"kind": "llvm", "vector_width": bits})
    a_cycle = {level: rate / 3e9 for level, rate in using.bandwidth.items()}
    assert a_cycle == {"L1": 2 * bits / 8, "L2": 48, "L3": 10, "memory": 4}
    assert using.peak / 3e9 == 2 * 2 * bits / 32  # a product and a sum of float32 in each lane of both


BODY = """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), K: T.Buffer((1,), "int32")):
    for i in range(8):
        {}
"""


@pytest.mark.parametrize(
    ("body", "touched"),
    [
        pytest.param("with T.LetStmt(i * 2) as k:\n    B[k] = A[k]", {"A": 60, "B": 60}, id="a_let"),
        pytest.param("if K[0] > 0:\n    B[i] = A[i]", {"K": 4, "A": 32, "B": 32}, id="a_condition_on_memory"),
        pytest.param(
            "B[i] = A[0]\nT.evaluate(T.prefetch(T.address_of(A[i + 64]), 0, 3, 1))", {"A": 4, "B": 32}, id="a_prefetch"
        ),
        pytest.param("B[i] = A[i] + A[63 - i]", {"A": 64, "B": 32}, id="the_other_end"),
        pytest.param("for j in range(4):\n    B[j] = A[(i * 4 + j) // 2 + j % 2]", {"A": 68, "B": 16}, id="digits"),
        pytest.param('for j in range(4):\n    B[j] = A[T.Cast("int32", A[j + 32])]', {"A": 32, "B": 16}, id="a_gather"),
        pytest.param("B[K[0]] = A[i]", {"A": 32, "K": 4, "B": 4}, id="an_index_from_memory"),
        pytest.param(
            'with T.block("b"):\n    T.reads(A[i * 8 : i * 8 + 8])\n    T.writes(B[i])\n'
            '    T.evaluate(T.call_extern("int32", "g", A.data, B.data))',
            {"A": 256, "B": 32},
            id="a_call_that_declares_regions",
        ),
        pytest.param(
            'with T.block("b"):\n    T.reads(A[i * 8 : i * 8 + 8])\n    T.writes(B[i])\n'
            "    W = T.match_buffer(A[i * 8 : i * 8 + 8], (8,), offset_factor=1)\n    B[i] = W[2]",
            {"A": 228, "B": 32},
            id="a_view",
        ),
    ],
)
def test_what_a_loop_touches(body, touched):
    program = parse(BODY.format(body.replace("\n", "\n        ")))
    assert footprint(program, machine())["i"].touched == touched


def test_two_loads_that_are_apart_are_no_box_between_them():
    program = parse("""
@T.prim_func
def f(A: T.Buffer((256, 256), "float32"), B: T.Buffer((256, 256), "float32")):
    for i, j in T.grid(256, 256):
        B[i, j] = A[i, j] + A[j, i]
""")
    rows, columns = 2 * 256 * 1024, 256 * 256 * 64
    assert traffic(program, [1 << 13]) == [rows + columns]


def test_a_walk_through_planes_in_vectors_that_do_not_divide_a_row():
    """Each iteration touches some rows of some planes, and not all rows of each."""
    program = parse("""
@T.prim_func
def f(A: T.Buffer((4, 100, 100), "float32"), B: T.Buffer((2500, 16), "float32")):
    for i, j in T.grid(2500, 16):
        B[i, j] = A[i // 625, (i % 625 * 16 + j) // 100, (i * 16 + j) % 100]
""")
    rows, columns = 1 + (15 + 99) // 100, 16
    assert footprint(program, machine())["j"].touched == {"A": 4 * rows * columns, "B": 64}
    assert traffic(program, [1 << 12]) == [2 * 4 * 40000]


def test_what_registers_hold_is_not_loaded():
    sch = tir.Schedule(matmul)
    before = traffic(sch, [1 << 20])
    copy = sch.cache_write("C", 0, "local")
    sch.reverse_compute_at(copy, sch.get_loops("C")[1])
    assert traffic(sch, [1 << 20]) == before == [3 * 4 * N * N]


def test_neighbours_in_a_line_are_loaded_once():
    """A plane of interleaved ones: all lines, and not one for each element."""
    program = parse("""
@T.prim_func
def f(A: T.Buffer((64, 64, 4), "uint8"), B: T.Buffer((64, 64), "uint8")):
    for i, j in T.grid(64, 64):
        B[i, j] = A[i, j, 1]
""")
    [moved] = traffic(program, [1 << 20])
    assert moved <= 64 * 64 * 5


def test_the_least_point_of_the_roofline_is_the_bound():
    found = footprint(matmul, machine())
    assert min(allowed for _, allowed in found.roofline.values()) == pytest.approx(found.bound)
    for level, (intensity, allowed) in found.roofline.items():
        assert intensity == found.flops / found.traffic[level]
        assert allowed == min(intensity * found.machine.bandwidth[level], found.machine.peak)
    drawn = ET.fromstring(found.roofline_svg())
    circles = list(drawn.iter("{http://www.w3.org/2000/svg}circle"))
    assert [c[0].text.partition(":")[0] for c in circles] == list(found.roofline)
    x, y = (float(c.get(k)) for k in ("cx", "cy") for c in circles[:1])
    assert 0 < x < 720 and 0 < y < 320
    # the words below the axis stand between its numbers
    words = [(t.text or "", float(t.attrib["x"])) for t in drawn.iter("{http://www.w3.org/2000/svg}text")]
    numbers = [x for text, x in words if text.replace(".", "").isdigit()]
    assert min(numbers) < dict(words)["flop/byte from this level"] < max(numbers)


def test_the_lowest_mark_of_a_roofline_stands_on_its_axis():
    text = roofline_figure(footprint(matmul, machine(l1=8 << 10)))
    starts = [float(y) for y in re.findall(r'<polyline points="[^,]*,([0-9.]+)', text)]
    points = [float(y) for y in re.findall(r'<circle cx="[^"]*" cy="([0-9.]+)"', text)]
    assert starts and points and max(starts + points) == 300 and min(starts + points) > 40


def test_what_a_value_has_twice_is_computed_once():
    a, b, k = (tir.te.placeholder((8, 4), name="a"), tir.te.placeholder((9, 4), name="b"), tir.te.reduce_axis((0, 4)))
    squares = tir.te.compute(
        (8, 9), lambda i, j: tir.te.sum((a[i, k] - b[j, k]) * (a[i, k] - b[j, k]), axis=k), name="d"
    )
    assert footprint(tir.te.create_prim_func([a, b, squares])).flops == 3 * 8 * 9 * 4


def test_a_loop_without_iterations_touches_what_it_loads_indices_of():
    func = parse("""
@T.prim_func
def f(P: T.Buffer((0,), "int32"), A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(0):
        B[P[i]] = A[P[i], P[i]]
""")
    assert footprint(func) is not None


def rows_at_once(columns: int, rows: int, vectors: int) -> tir.PrimFunc:
    """Tiles of ``rows`` and some ``vectors`` of 16 are stored one after another."""
    return parse(f"""
@T.prim_func
def f(A: T.Buffer((120, {columns}), "float32"), B: T.Buffer((120, {columns}), "float32")):
    for y, x in T.grid({120 // rows}, {columns // vectors // 16}):
        for r in T.unroll({rows}):
            for c in T.unroll({vectors}):
                for v in T.vectorized(16):
                    with T.block("B"):
                        vy = T.axis.spatial(120, y * {rows} + r)
                        vx = T.axis.spatial({columns}, x * {vectors * 16} + c * 16 + v)
                        B[vy, vx] = A[vy, vx]
""")


@pytest.mark.parametrize(
    ("columns", "rows", "vectors", "parted"),
    [(1500, 2, 1, 48 / 64), (1500, 2, 4, 48 / 256), (1496, 2, 1, 32 / 64), (1536, 2, 1, 0), (1500, 1, 1, 0)],
)
def test_lines_of_rows_that_begin_inside_of_a_line_are_stored_in_parts(columns, rows, vectors, parted):
    (found,) = traffic_of_parts(rows_at_once(columns, rows, vectors), [1 << 14])
    assert max(share for _, _, share in found) == parted


def test_what_a_cache_holds_from_the_call_before_is_not_loaded():
    assert [found.total() > 0 for found in traffic_of_parts(matmul, [1 << 20, 1 << 14], warm=True)] == [False, True]


def test_iterations_share_what_is_allocated_in_them():
    outside = parse("""
@T.prim_func
def f(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32")):
    H = T.alloc_buffer((1024, 1024), "float32")
    for y in range(1024):
        for x in range(1024):
            with T.block("H"):
                vy, vx = T.axis.remap("SS", [y, x])
                H[vy, vx] = A[vy, vx] * 2.0
        for x in range(1024):
            with T.block("B"):
                vy, vx = T.axis.remap("SS", [y, x])
                B[vy, vx] = H[vy, vx] + 1.0
""")
    inside = tir.transform.plan_and_update_buffer_allocation_location(outside)
    assert traffic(outside, [1 << 20]) == [3 << 22] and traffic(inside, [1 << 20]) == [(2 << 22) + (1 << 12)]
