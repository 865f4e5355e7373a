"""Convolutions near the peak: a register tile of neighbouring pixels by output channels, by schedule alone.

``conv2d_nhwc`` defines the computation, in three steps: the input with zero padding, tiles of the output, and their
copy to the output without the elements past its edges. A 1 by 1 convolution has no padding.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from dataclasses import dataclass

from tir.function import PrimFunc
from tir.library.conv import RESNET50 as RESNET50
from tir.library.conv import Layer as Layer
from tir.schedule import Schedule
from tir.script import tir as T
from tir.target import VectorRegisters, cache_bytes, threads, vector_registers


@dataclass(frozen=True)
class Tile:
    """A register tile: ``high`` by ``wide`` pixels by ``channels`` output channels."""

    high: int
    wide: int
    channels: int


def pick_tile(layer: Layer, registers: VectorRegisters | None = None) -> Tile:
    """The tile of the least cost in ``registers`` (default: this machine's): pixels computed past the edges, and loads
    for each multiply-add.
    """
    registers = registers or vector_registers()
    lanes = registers.lanes()

    def cost(tile: Tile) -> float:
        vectors, pixels = tile.channels // lanes, tile.high * tile.wide
        tiles = -(-layer.out // tile.high) * -(-layer.out // tile.wide) * -(-layer.outputs // tile.channels)
        multiply = max(5.0, pixels * vectors / 2)  # cycles of a step: two a cycle, and a result takes four
        loads = (pixels + vectors) / 2
        both = (
            max(multiply, loads) if registers.bits >= 512 else multiply + loads
        )  # AVX-512 broadcasts as it multiplies
        return tiles * (both + vectors / 2)  # weights are read from L2

    tiles = [
        Tile(high, wide, vectors * lanes)
        for vectors in (4, 3, 2, 1)
        for high in (1, 2)
        for wide in range(1, 14 // layer.stride + 1)  # more pixels would not stay in L1
        if high * wide * vectors + vectors + 1 <= registers.count and high <= layer.out and wide <= layer.out
    ]
    return min(tiles, key=cost)


def conv2d_nhwc(layer: Layer, tile: Tile) -> PrimFunc:
    """C[n, y, x, o] = sum of A[n, y * s + p - pad, x * s + q - pad, c] * W[p, q, c, o], zeros outside of A; float32.

    A (n, size, size, inputs), W (kernel, kernel, inputs, outputs), C (n, out, out, outputs).
    """
    n, size, inputs, outputs = layer.n, layer.size, layer.inputs, layer.outputs
    k, s, pad, out = layer.kernel, layer.stride, layer.pad, layer.out
    high, wide, channels = tile.high, tile.wide, tile.channels
    rows, columns, panels = -(-out // high), -(-out // wide), -(-outputs // channels)
    padded_rows, padded_columns = (rows * high - 1) * s + k, (columns * wide - 1) * s + k

    @T.prim_func
    def conv2d_nhwc(
        A: T.Buffer((n, size, size, inputs), "float32"),
        W: T.Buffer((k, k, inputs, outputs), "float32"),
        C: T.Buffer((n, out, out, outputs), "float32"),
    ):
        padded = T.alloc_buffer((n, padded_rows, padded_columns, inputs), "float32")
        weights = T.alloc_buffer((panels, k, k, inputs, channels), "float32")
        tiles = T.alloc_buffer((n, panels, rows, columns, high, wide, channels), "float32")
        for b, y, x, c in T.grid(n, padded_rows, padded_columns, inputs):
            with T.block("pad"):
                vb, vy, vx, vc = T.axis.remap("SSSS", [b, y, x, c])
                padded[vb, vy, vx, vc] = T.if_then_else(
                    vy >= pad and vy < size + pad and vx >= pad and vx < size + pad,
                    A[vb, vy - pad, vx - pad, vc],
                    T.float32(0),
                )
        for oo, p, q, c, oi in T.grid(panels, k, k, inputs, channels):
            with T.block("pack"):
                voo, vp, vq, vc, voi = T.axis.remap("SSSSS", [oo, p, q, c, oi])
                weights[voo, vp, vq, vc, voi] = T.if_then_else(
                    voo * channels + voi < outputs, W[vp, vq, vc, voo * channels + voi], T.float32(0)
                )
        for b, oo, yo, xo, p, q, c, yi, xi, oi in T.grid(n, panels, rows, columns, k, k, inputs, high, wide, channels):
            with T.block("multiply"):
                vb, voo, vyo, vxo, vp, vq, vc, vyi, vxi, voi = T.axis.remap(
                    "SSSSRRRSSS", [b, oo, yo, xo, p, q, c, yi, xi, oi]
                )
                with T.init():
                    tiles[vb, voo, vyo, vxo, vyi, vxi, voi] = T.float32(0)
                tiles[vb, voo, vyo, vxo, vyi, vxi, voi] += (
                    padded[vb, (vyo * high + vyi) * s + vp, (vxo * wide + vxi) * s + vq, vc]
                    * weights[voo, vp, vq, vc, voi]
                )
        for b, oo, yo, xo, yi, xi, oi in T.grid(n, panels, rows, columns, high, wide, channels):
            with T.block("store"):
                vb, voo, vyo, vxo, vyi, vxi, voi = T.axis.remap("SSSSSSS", [b, oo, yo, xo, yi, xi, oi])
                if vyo * high + vyi < out and vxo * wide + vxi < out and voo * channels + voi < outputs:
                    C[vb, vyo * high + vyi, vxo * wide + vxi, voo * channels + voi] = tiles[
                        vb, voo, vyo, vxo, vyi, vxi, voi
                    ]

    return conv2d_nhwc


def schedule_conv2d_nhwc(sch: Schedule, together: int = 1, parallel: bool = False) -> Schedule:
    """Schedule :func:`conv2d_nhwc`: all pixels are processed for one panel of output channels, a register tile at a
    time.

    ``together``: the number of panels of W that are packed at a time before they are used; 0: W is read in place.
    ``parallel``: panels are distributed over the threads.
    """
    b, oo, yo, xo, p, q, c, yi, xi, oi = sch.get_loops("multiply")
    steps = next(f for f in (4, 2, 3, 1) if sch.get(c).extent.value % f == 0)
    outer, oo = sch.split(oo, [None, together or 1])
    co, ci = sch.split(c, [None, steps])
    lanes = vector_registers().lanes()
    ov, lane = sch.split(oi, [None, lanes])
    sch.reorder(outer, b, oo, yo, xo, p, q, co, ci, yi, xi, ov, lane)
    if parallel:
        sch.parallel(outer)
    if _whole(sch, "pad"):
        sch.compute_inline("pad")
    else:
        _vectorize_last(sch, "pad")
    if together:
        sch.compute_at("pack", outer, preserve_unit_loops=True)
        _vectorize_last(sch, "pack")
    else:
        sch.compute_inline("pack")
    sch.reverse_compute_at("store", xo)
    sch.set_scope("multiply", 0, "local")
    sch.vectorize(lane)
    init = sch.decompose_reduction("multiply", p)
    *_, row, column, channel = sch.get_loops("store")
    vector, store_lane = sch.split(channel, [None, lanes])
    sch.vectorize(store_lane)
    for loop in (ci, yi, xi, ov, *sch.get_loops(init)[5:-1], row, column, vector):
        sch.unroll(loop)
    return sch


def _whole(sch: Schedule, block: str) -> bool:
    """Whether ``block`` copies without padding."""
    loads = sch.get(sch.get_block(block))
    return loads.reads[0].buffer.shape[1].value == loads.writes[0].buffer.shape[1].value


def _vectorize_last(sch: Schedule, block: str) -> None:
    """Vectorize the last loop of ``block``; panels of W are packed by reading whole rows of W."""
    *outer, last = sch.get_loops(block)
    vector, lane = sch.split(last, [None, vector_registers().lanes()])
    if block == "pack":
        *_, panel, p, q, c = outer
        sch.reorder(p, q, c, panel, vector)
        sch.unroll(vector)
    sch.vectorize(lane)


def scheduled_conv2d_nhwc(layer: Layer, cores: int | None = None) -> Schedule:
    """:func:`conv2d_nhwc` with its schedule for ``cores`` cores (default: as many as parallel loops run on)."""
    cores = threads() if cores is None else cores
    tile = pick_tile(layer)
    panels = -(-layer.outputs // tile.channels)
    bytes_ = 4 * layer.kernel**2 * layer.inputs * tile.channels
    fitting = max(1, min(panels // cores, int(0.6 * cache_bytes(2)) // bytes_))
    together = max(f for f in range(1, fitting + 1) if panels % f == 0)
    return schedule_conv2d_nhwc(Schedule(conv2d_nhwc(layer, tile)), together, cores > 1 and panels >= cores)
