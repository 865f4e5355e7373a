"""Convolutions of images whose channels come first, and depthwise ones: vectors along a row of pixels.

In ``conv2d_nchw`` the zero-padded pixels are copied so that vectors of them lie side by side whatever the stride, across the
ends of rows; the register tile is output channels by pixels. ``depthwise_nhwc`` has channels last, and vectors of them.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from tir.expr import Expr
from tir.function import PrimFunc
from tir.library.conv import depthwise_nhwc as depthwise_nhwc
from tir.schedule import Schedule
from tir.script import tir as T
from tir.target import VectorRegisters, threads, vector_registers

from .conv import Layer, Tile


def pick_tile_nchw(layer: Layer, registers: VectorRegisters | None = None) -> Tile:
    """The tile in ``registers`` (default: this machine's): rows of the image joined to one line, pixels (whole vectors)
    and output channels.
    """
    registers = registers or vector_registers()
    lanes = registers.lanes()
    pixels = layer.out**2  # all rows count as one
    dear = {
        4: 1.06,
        3: 1.0,
        2: 1.1,
        1: 1.25,
    }  # measured cost factors: pixels are read for few channels, or weights for few pixels
    vectors = min(dear, key=lambda v: -(-pixels // (v * lanes)) * v * dear[v])
    most = (registers.count - 1 - vectors) // vectors
    channels = min(range(min(most, layer.outputs), 0, -1), key=lambda c: -(-layer.outputs // c) * (c + 1))
    return Tile(layer.out, vectors * lanes, channels)


def conv2d_nchw(layer: Layer, tile: Tile) -> PrimFunc:
    """C[n, o, y, x] = sum of A[n, c, y * s + p - pad, x * s + q - pad] * W[o, c, p, q], zeros outside of A; float32.

    A (n, inputs, size, size), W (outputs, inputs, kernel, kernel), C (n, outputs, out, out).
    """
    n, size, inputs, outputs = layer.n, layer.size, layer.inputs, layer.outputs
    k, s, pad, out = layer.kernel, layer.stride, layer.pad, layer.out
    wide, channels = tile.wide, tile.channels
    lines, length = -(-out // tile.high), tile.high * out  # pixels are counted along a line of rows
    columns, panels = -(-length // wide), -(-outputs // channels)

    def row(line: Expr, pixel: Expr) -> Expr:
        return line * tile.high + pixel // out if tile.high > 1 else line

    def column(pixel: Expr) -> Expr:
        return pixel % out if tile.high > 1 else pixel

    @T.prim_func
    def conv2d_nchw(
        A: T.Buffer((n, inputs, size, size), "float32"),
        W: T.Buffer((outputs, inputs, k, k), "float32"),
        C: T.Buffer((n, outputs, out, out), "float32"),
    ):
        pixels = T.alloc_buffer((n, lines, columns, inputs, k, k, wide), "float32")
        tiles = T.alloc_buffer((n, lines, columns, panels, channels, wide), "float32")
        for b, y, xo, c, p, q, xi in T.grid(n, lines, columns, inputs, k, k, wide):
            with T.block("gather"):
                vb, vy, vxo, vc, vp, vq, vxi = T.axis.remap("SSSSSSS", [b, y, xo, c, p, q, xi])
                pixels[vb, vy, vxo, vc, vp, vq, vxi] = T.if_then_else(
                    row(vy, vxo * wide + vxi) * s + vp >= pad
                    and row(vy, vxo * wide + vxi) * s + vp < size + pad
                    and column(vxo * wide + vxi) * s + vq >= pad
                    and column(vxo * wide + vxi) * s + vq < size + pad,
                    A[vb, vc, row(vy, vxo * wide + vxi) * s + vp - pad, column(vxo * wide + vxi) * s + vq - pad],
                    T.float32(0),
                )
        for b, y, xo, oo, c, p, q, oi, xi in T.grid(n, lines, columns, panels, inputs, k, k, channels, wide):
            with T.block("multiply"):
                vb, vy, vxo, voo, vc, vp, vq, voi, vxi = T.axis.remap("SSSSRRRSS", [b, y, xo, oo, c, p, q, oi, xi])
                T.where(oo * channels + oi < outputs)
                with T.init():
                    tiles[vb, vy, vxo, voo, voi, vxi] = T.float32(0)
                tiles[vb, vy, vxo, voo, voi, vxi] += (
                    W[voo * channels + voi, vc, vp, vq] * pixels[vb, vy, vxo, vc, vp, vq, vxi]
                )
        for b, y, xo, oo, oi, xi in T.grid(n, lines, columns, panels, channels, wide):
            with T.block("store"):
                vb, vy, vxo, voo, voi, vxi = T.axis.remap("SSSSSS", [b, y, xo, oo, oi, xi])
                if voo * channels + voi < outputs and vxo * wide + vxi < length:
                    C[vb, voo * channels + voi, row(vy, vxo * wide + vxi), column(vxo * wide + vxi)] = tiles[
                        vb, vy, vxo, voo, voi, vxi
                    ]

    return conv2d_nchw


def schedule_conv2d_nchw(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`conv2d_nchw`: the pixels that a row of tiles needs are copied, all output channels use them."""
    b, y, xo, oo, c, p, q, oi, xi = sch.get_loops("multiply")
    lanes = vector_registers().lanes()
    xv, lane = sch.split(xi, [None, lanes])
    sch.reorder(oo, c, p, q, oi, xv, lane)
    if parallel:
        sch.parallel(y if sch.get(y).extent.value > 1 else xo)
    sch.compute_at("gather", xo, preserve_unit_loops=True)
    sch.reverse_compute_at("store", oo)
    sch.set_scope("multiply", 0, "local")
    sch.vectorize(lane)
    init = sch.decompose_reduction("multiply", c)
    vectors = []
    for block in ("gather", "store"):
        vector, each = sch.split(sch.get_loops(block)[-1], [None, lanes])
        sch.vectorize(each)
        vectors.append(vector)
    for loop in (p, q, oi, xv, *sch.get_loops(init)[4:-1], sch.get_loops("store")[-3], *vectors):
        sch.unroll(loop)
    return sch


def scheduled_conv2d_nchw(layer: Layer, cores: int | None = None) -> Schedule:
    """:func:`conv2d_nchw` with its schedule for ``cores`` cores (default: as many as parallel loops run on)."""
    cores = threads() if cores is None else cores
    return schedule_conv2d_nchw(Schedule(conv2d_nchw(layer, pick_tile_nchw(layer))), cores > 1)


def schedule_depthwise_nhwc(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`depthwise_nhwc`: vectors of channels, eight pixels at a time; strips of rows are padded as needed."""
    b, y, x, c, p, q = sch.get_loops("multiply")
    pixels, rows = (next(f for f in (8, 7, 4, 5, 3, 2, 1) if sch.get(loop).extent.value % f == 0) for loop in (x, y))
    strip, y = sch.split(y, [None, rows])
    xo, xi = sch.split(x, [None, pixels])
    many = sch.get(c).extent.value > 256  # channels of a few pixels would not stay in L1
    lanes = vector_registers().lanes()
    co, lane = sch.split(c, [None, lanes])
    order = [co, y, xo] if many else [y, xo, co]
    sch.reorder(b, strip, *order, p, q, xi, lane)
    if parallel:
        sch.parallel(strip)
    sch.compute_at("pad", strip)
    *_, last = sch.get_loops("pad")
    _, each = sch.split(last, [None, lanes])
    sch.vectorize(each)
    sch.vectorize(lane)
    init = sch.decompose_reduction("multiply", p)
    for loop in (p, q, xi, sch.get_loops(init)[-2]):
        sch.unroll(loop)
    return sch
