"""Images of another size, and read at places that are data: what is refused, and what is exact."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.errors import TensorExpressionError
from tir.interp import run

x = te.placeholder((1, 2, 4, 5), name="x")
grid = te.placeholder((1, 2, 3, 3), name="grid")
boxes, which = te.placeholder((3, 4), name="boxes"), te.placeholder((3,), "int32", name="which")

REFUSED = {
    "layout": (lambda: ops.image.resize2d(x, None, (2, 2), "NCHT"), r"with the axes H, W"),
    "method": (lambda: ops.image.resize2d(x, None, (2, 2), method="spline"), r"'nearest_neighbor'"),
    "mode": (lambda: ops.image.resize2d(x, None, (2, 2), coordinate_transformation_mode="half"), r"'half_pixel'"),
    "rounding": (lambda: ops.image.resize2d(x, None, (2, 2), rounding_method="up"), r"'round_prefer_floor'"),
    "size": (lambda: ops.image.resize2d(x, None, (2, 2, 2)), r"is not that of H, W"),
    "region": (
        lambda: ops.image.resize2d(x, (0, 1), (2, 2), coordinate_transformation_mode="tf_crop_and_resize"),
        r"all begins, all ends",
    ),
    "region of True": (
        lambda: ops.image.resize2d(x, True, (2, 2), coordinate_transformation_mode="tf_crop_and_resize"),
        r"the region True does not say where H, W begin",
    ),
    "anchors: steps": (lambda: ops.vision.ssd.multibox_prior(x, steps=(1,)), r"two of each, y and x"),
    "anchors: sizes": (lambda: ops.vision.ssd.multibox_prior(x, None), r"sizes is a list of numbers, not None"),
    "anchors: one size": (lambda: ops.vision.ssd.multibox_prior(x, (1, "2")), r"each of sizes is a number, not '2'"),
    "coordinates": (lambda: ops.image.grid_sample(x, te.placeholder((1, 3, 3, 3))), r"2 coordinates"),
    "padding": (lambda: ops.image.grid_sample(x, grid, padding_mode="wrap"), r"'zeros', 'border', 'reflection'"),
    "boxes": (
        lambda: ops.image.crop_and_resize(x, te.placeholder((2, 4)), which, (2, 2)),
        r"box_indices \(3,\) is not \(n\)",
    ),
    "channels": (lambda: ops.image.dilation2d_nchw(x, te.placeholder((3, 2, 2)), 1, 0, 1), r"not the channels"),
    "filter": (lambda: ops.image.dilation2d_nchw(x, te.placeholder((2, 5, 2)), 1, 0, 1), r"larger than the 4 elements"),
    "regions": (lambda: ops.vision.roi_align_nchw(x, boxes, 2, 1.0, "avg"), r"image, x, y, x, y"),
    "pool": (lambda: ops.vision.roi_align_nchw(x, te.placeholder((3, 5)), 2, 1.0, "sum"), r"'avg', 'max'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_errors_say_what_is_wrong(what):
    call, text = REFUSED[what]
    with pytest.raises(TensorExpressionError, match=text):
        call()


def test_the_nearest_element_of_every_pair_of_sizes():
    """Places are fractions of integers: no rounding of floats decides which element is the nearest."""
    old, new = te.var("old"), te.var("new")
    row = te.placeholder((1, 1, old), "int32", name="row")
    made = ops.image.resize1d(row, None, (new,), "NCW", "nearest_neighbor", "asymmetric", "floor")
    resize = tir.build(te.create_prim_func([row, made]), "llvm")
    for n in range(1, 24):
        data = np.arange(n, dtype="int32").reshape(1, 1, n)
        for m in range(1, 24):
            out = np.zeros((1, 1, m), "int32")
            resize(data, out)
            assert out.ravel().tolist() == [k * n // m for k in range(m)]


def test_a_region_counts_where_regions_are_cropped_alone():
    """Of two numbers for two axes, no axis would be resized."""
    sizes = [ops.image.resize2d(x, region, (2, 3)) for region in (None, (0.0,), (0.5, 0.5), (0.5, 0.5, 1.0, 1.0))]
    data = np.random.default_rng(0).standard_normal((1, 2, 4, 5)).astype("float32")
    results = [np.zeros((1, 2, 2, 3), "float32") for _ in sizes]
    for made, out in zip(sizes, results):
        run(te.create_prim_func([x, made]), data, out)
    assert all((out == results[0]).all() for out in results)


def test_a_grid_of_no_transformation_gives_the_image():
    theta = te.placeholder((1, 2, 3), name="theta")
    same = ops.image.grid_sample(x, ops.image.affine_grid(theta, (4, 5)))
    data = np.random.default_rng(0).standard_normal((1, 2, 4, 5)).astype("float32")
    out = np.zeros_like(data)
    tir.build(te.create_prim_func([x, theta, same]), "llvm")(data, np.eye(2, 3, dtype="float32")[None], out)
    np.testing.assert_allclose(out, data, atol=1e-5)
