"""Matrix multiplication in single precision near the CPU's peak: panels of B, a register tile of C, by schedule alone.

``gemm(m, n, k)`` defines the computation: panels of ``columns`` columns of B, zero-padded to complete panels, the
tiles of A times B, and their copy to C without the padding. ``schedule_gemm`` is the schedule. ``pick_tile`` chooses
the register tile for a size, ``build_gemm`` does all of it.

A tile reads one row of vectors of its panel per step of the reduction, so the panels in use at the same time, together
half of the L2 cache, are packed just before they are used; A is read in place, one element at a time.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from tir.function import PrimFunc
from tir.schedule import Schedule
from tir.script import tir as T
from tir.target import VectorRegisters, cache_bytes, streams, threads, vector_registers

THIN = 48  # most rows of A for which B is read in place


def gemm(m: int, n: int, k: int, rows: int = 6, columns: int = 64) -> PrimFunc:
    """C = A @ B for float32 A (m, k), B (k, n), C (m, n) of any sizes, in tiles of ``rows`` by ``columns``."""
    strips, panels = -(-m // rows), -(-n // columns)

    @T.prim_func
    def gemm(A: T.Buffer((m, k), "float32"), B: T.Buffer((k, n), "float32"), C: T.Buffer((m, n), "float32")):
        packed = T.alloc_buffer((panels, k, columns), "float32")
        tiles = T.alloc_buffer((strips, panels, rows, columns), "float32")
        for jo, p, ji in T.grid(panels, k, columns):
            with T.block("pack"):
                vjo, vp, vji = T.axis.remap("SSS", [jo, p, ji])
                packed[vjo, vp, vji] = T.if_then_else(vjo * columns + vji < n, B[vp, vjo * columns + vji], T.float32(0))
        for io, jo, p, ii, ji in T.grid(strips, panels, k, rows, columns):
            with T.block("multiply"):
                vio, vjo, vp, vii, vji = T.axis.remap("SSRSS", [io, jo, p, ii, ji])
                T.where(io * rows + ii < m)
                with T.init():
                    tiles[vio, vjo, vii, vji] = T.float32(0)
                tiles[vio, vjo, vii, vji] += A[vio * rows + vii, vp] * packed[vjo, vp, vji]
        for io, jo, ii, ji in T.grid(strips, panels, rows, columns):
            with T.block("store"):
                vio, vjo, vii, vji = T.axis.remap("SSSS", [io, jo, ii, ji])
                if vio * rows + vii < m and vjo * columns + vji < n:
                    C[vio * rows + vii, vjo * columns + vji] = tiles[vio, vjo, vii, vji]

    return gemm


def schedule_gemm(sch: Schedule, together: int = 1, lanes: int | None = None, parallel: str = "") -> Schedule:
    """Schedule :func:`gemm`: ``together`` panels of B are packed, then every strip of A is multiplied with each of
    them.

    ``together`` 0: B is read in place (for few strips, for which packing does not pay off). ``lanes``: of a vector
    (default: as many as this machine's vectors have). ``parallel``: what is distributed over the threads: "batch" (the products of :func:`batched_gemm`), "columns" (the groups of panels), "rows"
    (the strips of A; then all of B is packed first), or "" for one thread.
    """
    lanes = lanes or vector_registers().lanes()
    *batch, io, jo, p, ii, ji = sch.get_loops("multiply")
    jc, jr = sch.split(jo, [None, together or 1], names=["jc", "jr"])
    steps = next(f for f in (4, 2, 3, 1) if sch.get(p).extent.value % f == 0)
    po, pi = sch.split(p, [None, steps], names=["po", "pi"])
    jv, lane = sch.split(ji, [None, lanes], names=["jv", "lane"])
    sch.reorder(*([io, jc] if parallel == "rows" else [jc, io]), jr, po, pi, ii, jv, lane)
    if not together:
        sch.compute_inline("pack")
    elif parallel == "rows":
        sch.parallel(sch.get_loops("pack")[0])
    else:
        sch.compute_at("pack", jc, preserve_unit_loops=True)
    if parallel:
        sch.parallel({"rows": io, "columns": jc, "batch": next(iter(batch), None)}[parallel])
    sch.reverse_compute_at("store", jr)
    sch.set_scope("multiply", 0, "local")
    sch.vectorize(lane)
    init = sch.decompose_reduction("multiply", po)
    *_, row, column = sch.get_loops("store")
    column, lane = sch.split(column, [None, lanes])
    sch.vectorize(lane)
    for loop in (pi, ii, jv, *sch.get_loops(init)[-3:-1], row, column):
        sch.unroll(loop)
    if together:
        *_, jr, p, ji = sch.get_loops("pack")
        jv, lane = sch.split(ji, [None, lanes])
        sch.reorder(p, jr, jv, lane)
        sch.vectorize(lane)
        sch.unroll(jv)
    return sch


def pick_tile(m: int, n: int, registers: VectorRegisters | None = None) -> tuple[int, int]:
    """Rows and columns of the tile in ``registers`` (default: this machine's) for a product of m by n: little padding,
    and few loads for each FMA.
    """
    registers = registers or vector_registers()
    lanes = registers.lanes()

    def cost(tile: tuple[int, int]) -> float:
        rows, wide = tile
        padded = -(-m // rows) * rows * -(-n // (wide * lanes)) * wide * lanes
        loads = (rows + wide) / (rows * wide)  # for each FMA; one is what the core sustains
        stream = max(0.0, 6 / rows - 1)  # of B from L2
        return padded * (
            1 + 0.1 * max(0.0, loads - 0.4) + 0.03 * stream + 0.01 * (m % rows > 0) + 0.01 * (n % (wide * lanes) > 0)
        )

    tiles = [
        (rows, wide)
        for wide in (4, 3, 2, 1)
        for rows in range(1, 15)
        if rows * wide + wide + 1 <= registers.count and (rows <= m or rows == 1)
    ]
    rows, wide = min(tiles, key=cost)
    return rows, wide * lanes


def batched_gemm(count: int, m: int, n: int, k: int, rows: int = 6, columns: int = 64) -> PrimFunc:
    """C[b] = A[b] @ B[b] for float32 A (count, m, k), B (count, k, n), C (count, m, n), as :func:`gemm` does each."""
    strips, panels = -(-m // rows), -(-n // columns)

    @T.prim_func
    def gemm(
        A: T.Buffer((count, m, k), "float32"),
        B: T.Buffer((count, k, n), "float32"),
        C: T.Buffer((count, m, n), "float32"),
    ):
        packed = T.alloc_buffer((count, panels, k, columns), "float32")
        tiles = T.alloc_buffer((count, strips, panels, rows, columns), "float32")
        for b, jo, p, ji in T.grid(count, panels, k, columns):
            with T.block("pack"):
                vb, vjo, vp, vji = T.axis.remap("SSSS", [b, jo, p, ji])
                packed[vb, vjo, vp, vji] = T.if_then_else(
                    vjo * columns + vji < n, B[vb, vp, vjo * columns + vji], T.float32(0)
                )
        for b, io, jo, p, ii, ji in T.grid(count, strips, panels, k, rows, columns):
            with T.block("multiply"):
                vb, vio, vjo, vp, vii, vji = T.axis.remap("SSSRSS", [b, io, jo, p, ii, ji])
                T.where(io * rows + ii < m)
                with T.init():
                    tiles[vb, vio, vjo, vii, vji] = T.float32(0)
                tiles[vb, vio, vjo, vii, vji] += A[vb, vio * rows + vii, vp] * packed[vb, vjo, vp, vji]
        for b, io, jo, ii, ji in T.grid(count, strips, panels, rows, columns):
            with T.block("store"):
                vb, vio, vjo, vii, vji = T.axis.remap("SSSSS", [b, io, jo, ii, ji])
                if vio * rows + vii < m and vjo * columns + vji < n:
                    C[vb, vio * rows + vii, vjo * columns + vji] = tiles[vb, vio, vjo, vii, vji]

    return gemm


def scheduled_batched_gemm(count: int, m: int, n: int, k: int, cores: int | None = None) -> Schedule:
    """:func:`batched_gemm` of any sizes, its products distributed over ``cores`` cores (default: all)."""
    cores = threads() if cores is None else cores
    rows, columns = pick_tile(m, n)
    sch = Schedule(batched_gemm(count, m, n, k, rows, columns))
    return schedule_gemm(sch, _together(m, n, k, rows, columns), parallel="batch" if cores > 1 else "")


def _together(m: int, n: int, k: int, rows: int, columns: int, cores: int = 1) -> int:
    """Panels of B to pack at a time: half of the L2 cache, divided by the cores, and none if few strips use them or
    all of B stays in the L1 cache anyway."""
    if m <= max(3 * rows, THIN) or 4 * n * k <= cache_bytes(1) * 3 // 2:
        return 0
    panels = -(-n // columns)
    fitting = max(1, min(cache_bytes(2) // 2 // (4 * k * columns), panels // cores))
    return max(f for f in range(1, min(fitting, panels) + 1) if panels % f == 0 or f * 2 > fitting)


def thin_gemm(m: int, n: int, k: int) -> PrimFunc:
    """C = A @ B as :func:`gemm`, without panels: for few rows of A, for which packing does not pay off."""

    @T.prim_func
    def gemm(A: T.Buffer((m, k), "float32"), B: T.Buffer((k, n), "float32"), C: T.Buffer((m, n), "float32")):
        for i, j, p in T.grid(m, n, k):
            with T.block("multiply"):
                vi, vj, vp = T.axis.remap("SSR", [i, j, p])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vp] * B[vp, vj]

    return gemm


def schedule_thin_gemm(
    sch: Schedule, rows: int, columns: int, depth: int = 32, cores: int = 1, lanes: int | None = None
) -> Schedule:
    """Schedule :func:`thin_gemm`: ``depth`` rows of B are read at a time, each from end to end, for sequential memory
    access; C stays in the cache, and its tile in registers for ``depth`` steps. The columns are distributed over
    ``cores`` cores.
    """
    lanes = lanes or vector_registers().lanes()
    i, j, p = sch.get_loops("multiply")
    io, ii = sch.split(i, [None, rows], names=["io", "ii"])
    jo, jv, lane = sch.split(j, [None, columns // lanes, lanes], names=["jo", "jv", "lane"])
    jc, jr = sch.split(jo, [min(cores, sch.get(jo).extent.value), None], names=["jc", "jr"])
    po, pi = sch.split(p, [None, depth], names=["po", "pi"])
    sch.reorder(jc, po, jr, io, pi, ii, jv, lane)
    if cores > 1:
        sch.parallel(jc)
    init = sch.decompose_reduction("multiply", po)
    sch.vectorize(lane)
    sch.vectorize(sch.get_loops(init)[-1])
    for loop in (ii, jv):
        sch.unroll(loop)
    return sch


def deep_gemm(m: int, n: int, k: int, columns: int = 32) -> PrimFunc:
    """C = A @ B as :func:`gemm`, with panels of B but without tiles of C: for few rows and a long reduction."""
    panels = -(-n // columns)

    @T.prim_func
    def gemm(A: T.Buffer((m, k), "float32"), B: T.Buffer((k, n), "float32"), C: T.Buffer((m, n), "float32")):
        packed = T.alloc_buffer((panels, k, columns), "float32")
        for jo, p, ji in T.grid(panels, k, columns):
            with T.block("pack"):
                vjo, vp, vji = T.axis.remap("SSS", [jo, p, ji])
                packed[vjo, vp, vji] = T.if_then_else(vjo * columns + vji < n, B[vp, vjo * columns + vji], T.float32(0))
        for i, jo, p, ji in T.grid(m, panels, k, columns):
            with T.block("multiply"):
                vi, vjo, vp, vji = T.axis.remap("SSRS", [i, jo, p, ji])
                T.where(jo * columns + ji < n)
                with T.init():
                    C[vi, vjo * columns + vji] = T.float32(0)
                C[vi, vjo * columns + vji] += A[vi, vp] * packed[vjo, vp, vji]

    return gemm


def schedule_deep_gemm(
    sch: Schedule, rows: int, depth: int = 128, cores: int = 1, lanes: int | None = None
) -> Schedule:
    """Schedule :func:`deep_gemm`: ``depth`` rows of B are read sequentially, packed, and used while they are in the
    cache, where C always is. The panels are distributed over ``cores`` cores.
    """
    lanes = lanes or vector_registers().lanes()
    i, jo, p, ji = sch.get_loops("multiply")
    io, ii = sch.split(i, [None, rows], names=["io", "ii"])
    jc, jr = sch.split(jo, [min(cores, sch.get(jo).extent.value), None], names=["jc", "jr"])
    jv, lane = sch.split(ji, [None, lanes], names=["jv", "lane"])
    po, pi = sch.split(p, [None, depth], names=["po", "pi"])
    sch.reorder(jc, po, jr, io, pi, ii, jv, lane)
    sch.compute_at("pack", po, preserve_unit_loops=True)
    if cores > 1:
        sch.parallel(jc)
    init = sch.decompose_reduction("multiply", po)
    sch.vectorize(lane)
    sch.vectorize(sch.get_loops(init)[-1])
    for loop in (ii, jv):
        sch.unroll(loop)
    *_, jr, p, ji = sch.get_loops("pack")
    jv, lane = sch.split(ji, [None, lanes])
    sch.reorder(p, jr, jv, lane)
    sch.vectorize(lane)
    sch.unroll(jv)
    return sch


def scheduled_gemm(m: int, n: int, k: int, cores: int | None = None) -> Schedule:
    """:func:`gemm` of any sizes, scheduled for ``cores`` cores (default: as many as parallel loops run on)."""
    cores = threads() if cores is None else cores
    rows, columns = pick_tile(m, n)
    if m <= THIN and n > THIN and 4 * n * k > cache_bytes(2):
        shared = cores if 2 * m * n * k > 1e6 else 1
        registers = vector_registers()
        # B's rows are not aligned to cache lines, and each is used for a short row of C; or tiles have few of the rows, so
        # that each element of B is loaded often
        if (n % 8 and k > 4 * n) or m >= registers.count == 16:
            most = (registers.count - 3) // 2  # rows of two vectors of sums, beside those of B and an element of A
            deep = deep_gemm(m, n, k, 2 * registers.lanes())
            return schedule_deep_gemm(Schedule(deep), -(-m // -(-m // most)), cores=shared)
        return schedule_thin_gemm(Schedule(thin_gemm(m, n, k)), rows, columns, min(32, k), shared)
    parallel = ""
    if cores > 1 and 2 * m * n * k > 1e6:
        parallel = "columns" if -(-n // columns) >= cores else "rows"
    together = _together(m, n, k, rows, columns, cores if parallel == "columns" else 1)
    if parallel == "rows":
        together = together or 1
    written = (
        k <= THIN and n % vector_registers().lanes() == 0 and streams(m * n)
    )  # little work for each element of a large C
    sch = schedule_gemm(
        Schedule(gemm(m, n, k, rows, columns)), min(together, 4) if written else together, parallel=parallel
    )
    if written:
        sch.annotate(sch.get_loops("store")[0], "pragma_nontemporal", "C")
    return sch
