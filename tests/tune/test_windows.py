"""Sums over windows of what is padded: tiles of columns and vectors in registers, with what follows."""

from __future__ import annotations

import pytest

import tir
from tir import ops, te
from tir.testing import assert_same_result

TARGET = "llvm -vector_width={} -num-cores={}"


def depthwise(image: tuple[int, ...], window: int = 3, stride: int = 1, follow: bool = True) -> tir.PrimFunc:
    """A depthwise convolution of an image with channels last, with a bias for each channel and ReLU."""
    *sizes, channels = image[1:]
    x = te.placeholder(image, name="x")
    w = te.placeholder((*[window] * len(sizes), 1, channels), name="w")
    kind, layout = {1: ("conv1d", "NWC"), 2: ("conv2d", "NHWC"), 3: ("conv3d", "NDHWC")}[len(sizes)]
    y = getattr(ops.nn, kind)(x, w, stride, window // 2, 1, layout, groups=channels)
    if follow:
        y = ops.nn.relu(ops.add(y, te.placeholder((channels,), name="b")))
    return ops.function_of(y)


DEPTHWISE = {
    "whole vectors": depthwise((1, 12, 8, 32)),
    "odd sizes": depthwise((1, 11, 13, 27)),
    "several images": depthwise((2, 9, 5, 8)),
    "stride": depthwise((1, 13, 11, 16), stride=2),
    "large window": depthwise((1, 9, 10, 8), window=5),
    "window larger than the image": depthwise((1, 3, 3, 8), window=7),
    "nothing follows": depthwise((1, 11, 6, 16), follow=False),
    "one dimension": depthwise((2, 20, 17)),
    "three dimensions": depthwise((1, 5, 6, 7, 8)),
}


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("width", [128, 512])
@pytest.mark.parametrize("name", DEPTHWISE)
def test_depthwise_convolutions_are_right(name: str, width: int, cores: int):
    sch = tir.tune.default(DEPTHWISE[name], TARGET.format(width, cores))
    assert_same_result(DEPTHWISE[name], sch.mod, engines=("llvm",))


@pytest.mark.parametrize("name", ["whole vectors", "odd sizes", "stride", "large window"])
def test_sums_stay_in_registers_until_what_follows_is_stored(name: str):
    sch = tir.tune.default(DEPTHWISE[name], TARGET.format(128, 1))
    product, last = [b.name for b in sch.get_child_blocks("root") if not b.name.startswith("pad")][-2:]
    assert sch.get(product).writes[0].buffer.scope == "local"
    shared = [loop for loop in sch.get_loops(product) if loop in sch.get_loops(last)]
    assert len(shared) >= 4, "a tile is summed and stored inside of strips, rows, columns and channels"


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("stride", [1, 2])
def test_pools_are_right(kind: str, layout: str, stride: int):
    x = te.placeholder((1, 11, 9, 20), name="x")
    func = ops.function_of(ops.nn.pool2d(x, 3, stride, 1, 1, kind, False, layout))
    sch = tir.tune.default(func, TARGET.format(128, 1))
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_windows_along_the_vectors_are_summed_in_tiles_of_rows():
    x, w = te.placeholder((1, 6, 12, 20), name="x"), te.placeholder((6, 1, 3, 3), name="w")
    func = ops.function_of(ops.nn.conv2d(x, w, 1, 1, groups=6))
    sch = tir.tune.default(func, TARGET.format(128, 1))
    assert any(b.scope == "local" for b in sch.func.root.alloc_buffers)
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_several_reductions_of_one_window_are_stored_together():
    x = te.placeholder((1, 10, 9, 16), name="x")
    k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "m")
    p = te.compute(
        (1, 12, 11, 16),
        lambda n, i, j, c: tir.if_then_else(tir.all(i >= 1, i < 11, j >= 1, j < 10), x[n, i - 1, j - 1, c], 0.0),
        name="p",
    )
    pair = te.comm_reducer(
        lambda a, b: (a[0] + b[0], tir.max(a[1], b[1])), lambda s, t: (te.const(0, s), te.min_value(t))
    )
    both = te.compute(
        (1, 10, 9, 16), lambda n, i, j, c: pair((p[n, i + k, j + m, c], p[n, i + k, j + m, c]), axis=[k, m]), name="s"
    )
    func = te.create_prim_func([x, *both])
    sch = tir.tune.default(func, TARGET.format(128, 1))
    assert_same_result(func, sch.mod, engines=("llvm",))
