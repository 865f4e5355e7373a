"""Convolutions by hand against NumPy in float64, at sizes that are multiples of nothing too."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tests.hand_schedules import conv, conv_nchw
from tir.library.conv import Layer
from tir.target import VectorRegisters

REGISTERS = [VectorRegisters(bits, count) for bits, count in ((512, 32), (256, 16), (128, 32), (128, 16))]
LAYERS = [Layer(2, 7, 5, 20, 3), Layer(1, 10, 3, 33, 3, 2), Layer(1, 5, 8, 16), Layer(1, 9, 7, 3, 1, 2)]


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def convolved(a: np.ndarray, w: np.ndarray, layer: Layer, each: str = "nyxc,co->nyxo") -> np.ndarray:
    """In float64, channels last."""
    around, last = (layer.pad, layer.pad), (layer.out - 1) * layer.stride + 1
    p = np.pad(a.astype(np.float64), ((0, 0), around, around, (0, 0)))
    shifted = ((y, x) for y in range(layer.kernel) for x in range(layer.kernel))
    step = layer.stride
    return sum(np.einsum(each, p[:, y : y + last : step, x : x + last : step], w[y, x]) for y, x in shifted)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("cores", [1, 2])
def test_conv2d_nhwc(layer: Layer, cores: int):
    a = values(layer.n, layer.size, layer.size, layer.inputs)
    w = values(layer.kernel, layer.kernel, layer.inputs, layer.outputs)
    c = np.full((layer.n, layer.out, layer.out, layer.outputs), np.nan, np.float32)
    tir.build(conv.scheduled_conv2d_nhwc(layer, cores).mod, target="llvm")(a, w, c)
    np.testing.assert_allclose(c, convolved(a, w, layer), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("cores", [1, 2])
def test_conv2d_nchw(layer: Layer, cores: int):
    a = values(layer.n, layer.size, layer.size, layer.inputs)
    w = values(layer.kernel, layer.kernel, layer.inputs, layer.outputs)
    c = np.full((layer.n, layer.outputs, layer.out, layer.out), np.nan, np.float32)
    given = [np.ascontiguousarray(a.transpose(0, 3, 1, 2)), np.ascontiguousarray(w.transpose(3, 2, 0, 1))]
    tir.build(conv_nchw.scheduled_conv2d_nchw(layer, cores).mod, target="llvm")(*given, c)
    np.testing.assert_allclose(c.transpose(0, 2, 3, 1), convolved(a, w, layer), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layer", [*LAYERS, Layer(1, 56, 64, 64, 3), Layer(1, 14, 256, 250, 3), Layer(1, 1, 8, 1, 1)])
@pytest.mark.parametrize("registers", REGISTERS)
def test_a_tile_of_pixels_by_channels_is_in_registers_and_reads_little(layer: Layer, registers: VectorRegisters):
    tile = conv_nchw.pick_tile_nchw(layer, registers)
    vectors, rest = divmod(tile.wide, registers.lanes())

    def reads(
        channels: int,
    ) -> int:  # of an input channel at one place: a weight for each channel, the pixels for each tile
        return -(-layer.outputs // channels) * (channels + 1)

    sizes = [c for c in range(1, layer.outputs + 1) if c * vectors + vectors + 1 <= registers.count]
    assert rest == 0 and tile.high == layer.out and tile.channels in sizes
    assert reads(tile.channels) == min(map(reads, sizes))


@pytest.mark.parametrize("layer", [Layer(2, 7, 20, 20, 3), Layer(1, 10, 33, 33, 3, 2), Layer(1, 8, 16, 16, 5)])
@pytest.mark.parametrize("parallel", [False, True])
def test_depthwise(layer: Layer, parallel: bool):
    a, w = values(layer.n, layer.size, layer.size, layer.inputs), values(layer.kernel, layer.kernel, layer.inputs)
    c = np.full((layer.n, layer.out, layer.out, layer.inputs), np.nan, np.float32)
    sch = conv_nchw.schedule_depthwise_nhwc(tir.Schedule(conv_nchw.depthwise_nhwc(layer)), parallel)
    tir.build(sch.mod, target="llvm")(a, w, c)
    np.testing.assert_allclose(c, convolved(a, w, layer, "nyxc,c->nyxc"), rtol=1e-4, atol=1e-4)


def test_weights_read_where_they_lie():
    layer = Layer(1, 6, 4, 32, 3)
    a, w = values(1, 6, 6, 4), values(3, 3, 4, 32)
    c = np.full((1, 6, 6, 32), np.nan, np.float32)
    func = conv.conv2d_nhwc(layer, conv.pick_tile(layer))
    sch = conv.schedule_conv2d_nhwc(tir.Schedule(func), together=0)
    assert "pack" not in str(sch.mod)
    tir.build(sch.mod, target="llvm")(a, w, c)
    np.testing.assert_allclose(c, convolved(a, w, layer), rtol=1e-4, atol=1e-4)


def test_the_schedule_keeps_the_meaning():
    from tir.testing import assert_same_result

    before = conv.conv2d_nhwc(Layer(1, 3, 2, 17, 3), conv.Tile(1, 2, 16))
    assert_same_result(before, conv.schedule_conv2d_nhwc(tir.Schedule(before)).mod, engines=["interpreter"])


def test_tiles_fit_the_registers():
    for registers in REGISTERS:
        for layer in (*LAYERS, *conv.RESNET50):
            tile = conv.pick_tile(layer, registers)
            vectors = tile.channels // registers.lanes()
            assert tile.high * tile.wide * vectors + vectors < registers.count
