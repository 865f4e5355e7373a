"""Sums over windows of what is padded: tiles of columns and vectors in registers, with what follows."""

from __future__ import annotations

import importlib
import random
from typing import Any

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.annotations import PARTITION_HINT
from tir.expr import BufferLoad, FloorMod, Max, Min, choice_parts
from tir.interp.same_results import assert_same_call, random_inputs, reference
from tir.stmt import For
from tir.testing import assert_same_result
from tir.tune import Env, space
from tir.tune.drawing import RuleSource
from tir.tune.rules import windows
from tir.visit import accesses, walk

TARGET = "llvm -vector_width={} -num-cores={}"


def depthwise(image: tuple[Any, ...], window: int = 3, stride: int = 1, follow: bool = True) -> tir.PrimFunc:
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


@pytest.mark.parametrize("width", [128, 512])
@pytest.mark.parametrize("name", DEPTHWISE)
def test_depthwise_convolutions_are_right(name: str, width: int):
    """Every kind with each width, once on one core and once on two; each width has kinds on one and on two."""
    cores = 1 + (list(DEPTHWISE).index(name) + width // 512) % 2
    sch = tir.tune.default(DEPTHWISE[name], TARGET.format(width, cores))
    assert_same_result(DEPTHWISE[name], sch.mod, engines=("llvm",))


def test_windows_along_rows_stay_in_registers_with_what_follows():
    x, k = te.placeholder((8, 130), name="x"), te.reduce_axis((0, 2), "k")
    sums = te.compute((8, 64), lambda i, j: te.sum(x[i, j * 2 + k] * x[i, j * 2 + k], axis=k), name="sums")
    func = te.create_prim_func([x, te.compute((8, 64), lambda i, j: te.sqrt(sums[i, j]), name="y")])
    sch = tir.tune.default(func, TARGET.format(512, 1))
    assert sch.get("sums_update").writes[0].buffer.scope == "local"
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_windows_clamped_to_the_ends_of_rows_are_no_stage_of_rows():
    x, k = te.placeholder((64, 64), name="x"), te.reduce_axis((0, 5), "k")
    sums = te.compute((64, 64), lambda i, j: te.sum(x[i, te.max(te.min(j + k - 2, 63), 0)], axis=k), name="sums")
    func = te.create_prim_func([x, te.compute((64, 64), lambda i, j: sums[i, j] * 2.0, name="y")])
    sch = tir.tune.default(func, TARGET.format(512, 1))
    first = [sch.get(sch.get_loops(name)[0]).loop_var for name in ("sums", "y")]
    assert first[0] is not first[1]


def filters(shape: tuple[int, ...], taps: int, stride: int) -> tir.PrimFunc:
    """Sums of products with taps that all results share."""
    x, w, k = te.placeholder(shape, name="x"), te.placeholder((taps,), name="w"), te.reduce_axis((0, taps), "k")
    sizes = (*shape[:-1], (shape[-1] - taps) // stride + 1)
    return te.create_prim_func(
        [x, w, te.compute(sizes, lambda *at: te.sum(x[(*at[:-1], at[-1] * stride + k)] * w[k], k), name="y")]
    )


def channels_first(stride: int) -> tir.PrimFunc:
    x, w = te.placeholder((1, 5, 37, 37), name="x"), te.placeholder((5, 1, 3, 3), name="w")
    return ops.function_of(ops.nn.depthwise_conv2d_nchw(x, w, stride, 1, 1))


@pytest.mark.parametrize(
    "func", [filters((3, 301), 9, 1), filters((700,), 32, 4), channels_first(1), channels_first(2)]
)
def test_taps_that_vectors_share_are_windows_too(func: tir.PrimFunc):
    sch = tir.tune.default(func, TARGET.format(512, 1))
    assert "sch.cache_write(" in str(sch.trace.as_python())
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_terms_that_rows_of_a_tile_share_are_summed_last():
    sch = tir.tune.default(channels_first(1), TARGET.format(512, 1))
    terms = [
        v.name for v in (sch.get(loop).loop_var for loop in sch.get_loops("conv2d_update")) if v.name in ("rh", "rw")
    ]
    assert terms == ["rw", "rh"]


@pytest.mark.parametrize("channels", [8, 192])
def test_images_from_beyond_l2_have_the_same_tiles_where_sums_take_longer_than_reading(channels: int):
    x, w = te.placeholder((1, channels, 56, 56), name="x"), te.placeholder((channels, 1, 5, 5), name="w")
    func = ops.function_of(ops.nn.conv2d(x, w, padding=2, groups=channels))
    sch = tir.tune.default(func, TARGET.format(512, 1) + " -l2_bytes=1048576 -l3_bytes=33554432")
    assert {v.name: sch.get(loop).extent for loop in sch.get_loops("conv2d_update") for v in [sch.get(loop).loop_var]}[
        "i2_1"
    ] == 7


BATCH = te.var("n")


@pytest.mark.parametrize("stride", [1, 2])
def test_a_batch_of_symbolic_size_is_a_loop_around_the_same_tiles(stride: int):
    func, one = (depthwise((n, 9, 11, 24), stride=stride) for n in (BATCH, 1))
    made, fixed = (offered(f, "conv2d") for f in (func, one))
    assert made is not None and fixed is not None
    kinds = [
        [made.get(loop).kind for loop in made.get_loops("conv2d")],
        [fixed.get(loop).kind for loop in fixed.get_loops("conv2d")],
    ]
    assert kinds[0] == kinds[1]
    module, rng = tir.build(tir.tune.default(func, TARGET.format(128, 1)).mod), np.random.default_rng(0)
    for n in (1, 3):
        x, w, b = (rng.standard_normal(s).astype("f4") for s in ((n, 9, 11, 24), (3, 3, 1, 24), (24,)))
        rows, columns = (-(-size // stride) for size in (9, 11))
        y = np.zeros((n, rows, columns, 24), "f4")
        module(x, w, b, y)
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        want = sum(padded[:, i : i + 9 : stride, j : j + 11 : stride] * w[i, j, 0] for i in range(3) for j in range(3))
        np.testing.assert_allclose(y, np.maximum(want + b, 0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_images_of_symbolic_size(at: int, layout: str):
    """Of any height, width or number of channels: what the tile is of, a short one or the last one too, is right."""

    def image(size: Any) -> tuple[Any, ...]:
        return tuple(size if n == at else extent for n, extent in enumerate((2, 9, 10, 8)))

    func = pool(image(BATCH), 3, 1, 1, layout=layout)
    assert offered(func, "max_pool") is not None
    module, rng = tir.build(tir.tune.default(func, TARGET.format(512, 1)).mod), np.random.default_rng(0)
    for size in (1, 2, 3, 5, 8, 9, 16, 17, 31, 32, 33, 65):
        x = rng.standard_normal(image(size)).astype("f4")
        module(x, y := np.full_like(x, np.nan))
        axes = (1, 2) if layout == "NHWC" else (2, 3)
        padded = np.pad(x, [(1, 1) if n in axes else (0, 0) for n in range(4)], constant_values=-np.inf)
        want = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axes).max(axis=(-2, -1))
        np.testing.assert_array_equal(y, want)


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


def pool(shape: tuple[Any, ...], window: int, stride: int, padding: int, kind: str = "max", layout: str = "NCHW"):
    x = te.placeholder(shape, name="x")
    return ops.function_of(ops.nn.pool2d(x, window, stride, 1, padding, kind, False, layout))


def offered(func: tir.PrimFunc, block: str, target: str = TARGET.format(128, 1)) -> tir.Schedule | None:
    """What the rule makes of a block, if anything."""
    found = windows.windows(tir.Schedule(func, seed=0), block, Env.of(target))
    return space.as_schedule(found[0]() if callable(found[0]) else found[0]) if found else None


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_what_is_padded_is_read_in_place(padding: int, stride: int, layout: str):
    func = pool((1, 9, 20, 18), 5, stride, padding, "avg", layout)
    sch = offered(func, "avg_pool_sum")
    assert sch is not None and {b.name for b in sch.get_child_blocks("root")} == {
        "avg_pool_sum_init", "avg_pool_sum_update", "avg_pool"
    }  # fmt: skip
    assert sch.func.root.alloc_buffers[0].scope == "local"
    hints = [loop for loop in sch.get_loops("avg_pool") if sch.get(loop).annotations]
    assert len(hints) == (2 if padding else 0), "the loops of both axes of the image are cut at its borders"
    assert_same_result(func, sch.mod, engines=("llvm",))


@pytest.mark.parametrize(
    ("dtype", "width", "places", "cut"),
    [("float32", 512, 3, 0), ("float32", 512, 5, 2), ("int8", 512, 3, 3), ("float32", 256, 3, 3)],
)
def test_borders_are_masked_where_that_takes_no_longer(dtype: str, width: int, places: int, cut: int):
    """Else the loop of columns is cut, and that inside of a tile, too; that of rows where a window has more places than registers for masks."""
    x = te.placeholder((1, 9, 20, 64), dtype, name="x")
    sch = offered(
        ops.function_of(ops.nn.pool2d(x, places, 1, 1, places // 2, "max", False, "NHWC")),
        "max_pool",
        f"{TARGET.format(width, 1)} -l1_bytes=32768",
    )
    assert sch is not None
    assert sum(PARTITION_HINT in sch.get(loop).annotations for loop in sch.get_loops("max_pool")) == cut


def test_inside_of_the_borders_nothing_is_asked():
    sch = offered(pool((1, 2, 12, 34), 3, 1, 1), "max_pool")
    assert sch is not None
    nodes = list(walk(tir.lower(sch.mod)["main"].body))
    loads = [n for n in nodes if isinstance(n, BufferLoad) and n.buffer.name.startswith("x")]
    asked = [load for n in nodes if choice_parts(n) for load in walk(n) if isinstance(load, BufferLoad)]
    free = [n for n in loads if not any(n is load for load in asked)]
    assert len(free) >= 3 * 3 * 4, "a tile of four rows in the middle"


def test_what_is_computed_before_is_made_for_strips():
    x = te.placeholder((1, 20, 20, 8), name="x")
    p = te.compute((1, 22, 22, 8), lambda n, i, j, c: tir.if_then_else(
        tir.all(i >= 1, i < 21, j >= 1, j < 21), te.exp(x[n, i - 1, j - 1, c]) * 2.0 + 1.0, 0.0), name="p")  # fmt: skip
    k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "m")
    s = te.compute(x.shape, lambda n, i, j, c: te.max(p[n, i + k, j + m, c], axis=[k, m]), name="s")
    func = te.create_prim_func([x, s])
    sch = offered(func, "s")
    assert sch is not None and len(sch.get_loops("p")) > 4, "inside of the loop of strips"
    assert_same_result(func, sch.mod, engines=("llvm",))


@pytest.mark.parametrize(("row", "lanes"), [(4, 4), (6, 8), (8, 8), (14, 16), (16, 16), (20, 16)])
def test_rows_are_as_few_vectors_as_possible_of_as_few_lanes(row: int, lanes: int):
    func = pool((1, 3, 9, row), 3, 1, 1)
    sch = offered(func, "max_pool", TARGET.format(512, 1))
    assert sch is not None and sch.get(sch.get_loops("max_pool_update")[-1]).extent.value == lanes
    assert_same_result(func, sch.mod, engines=("llvm",))


@pytest.mark.parametrize("name", ["odd sizes", "stride", "three dimensions"])
def test_tiles_of_other_columns_vectors_and_rows_are_right(name: str):
    func, target = DEPTHWISE[name], TARGET.format(128, 1)
    source = RuleSource(space.space_of(target), tir.IRModule.of(func))
    drawn = list(source.draw(random.Random(0), 20))
    assert len(drawn) == 20
    arguments = random_inputs(func, 0)
    expected = reference(tir.IRModule.of(func), arguments, "main")
    for sch in drawn[::4]:
        assert_same_call(func, tir.build(sch.mod), arguments, "llvm", expected=expected)


@pytest.mark.parametrize("name, offers", [("whole vectors", 3), ("one dimension", 1)])
def test_tiles_of_several_rows_are_offered_where_windows_share_rows(name: str, offers: int):
    sch = tir.Schedule(DEPTHWISE[name])
    block = next(b.name for b in sch.get_child_blocks("root") if b.name.startswith("conv"))
    assert len(windows.windows(sch, block, Env.of(TARGET.format(128, 1)))) == offers


@pytest.mark.parametrize(("near", "rows"), [(1 << 20, 1), (1 << 12, 2)])
def test_tiles_have_two_rows_where_a_window_of_rows_does_not_stay_near(near: int, rows: int):
    func = depthwise((1, 9, 10, 32), window=5)
    sch = offered(func, "conv2d", f"{TARGET.format(512, 1)} -l1_bytes={near}")
    assert sch is not None
    assert sum(a.extent.value == 9 for a in map(sch.get, sch.get_loops("conv2d_update"))) == 2 - rows
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_rows_of_less_than_a_quarter_of_a_vector_are_for_other_rules():
    assert offered(pool((1, 3, 9, 3), 3, 1, 1), "max_pool", TARGET.format(512, 1)) is None


def test_borders_are_not_cut_off_vectors():
    sch = offered(pool((1, 2, 12, 34), 3, 1, 1), "max_pool")
    assert sch is not None
    hints = [PARTITION_HINT in sch.get(loop).annotations for loop in sch.get_loops("max_pool_update")]
    assert any(hints[:-1]) and not hints[-1]


@pytest.mark.parametrize(("row", "most", "vectors"), [(38, 99, 3), (48, 99, 1), (38, 37, 1)])
def test_vectors_of_rows_that_begin_anywhere_are_stored_side_by_side(row: int, most: int, vectors: int):
    """Not where rows begin at a vector, nor where each vector asks for the end of the row."""
    x, k = te.placeholder((30, row), name="x"), te.reduce_axis((0, 3), "k")
    value = (lambda i, j: x[i, j]) if most > row else (lambda i, j: tir.if_then_else(j < most, x[i, j], 0.0))
    sums = te.compute((28, row), lambda i, j: te.sum(value(i + k, j), axis=k), name="s")
    sch = offered(te.create_prim_func([x, sums]), "s", TARGET.format(512, 1))
    assert sch is not None and sch.get(sch.get_loops("s_update")[-2]).extent.value == vectors


@pytest.mark.parametrize(
    ("begins", "size", "cache", "are_requested"),
    [("", 128, 32, True), (", align=64", 128, 32, False), ("", 128, 192, False), ("", 1024, 32, False)],
)
def test_rows_whose_vectors_lie_in_two_lines_are_requested(begins: str, size: int, cache: int, are_requested: bool):
    """As those of an array that NumPy made; not of what L1 holds, nor where all rows of the arguments fall into the same sets of it."""
    x, k = te.placeholder((66, size), name="x"), te.reduce_axis((0, 3), "k")
    sums = te.compute((64, size), lambda i, j: te.sum(x[i + k, j], axis=k), name="s")
    text = (
        te.create_prim_func([x, sums]).script().replace(f'(64, {size}), "float32"', f'(64, {size}), "float32"{begins}')
    )
    func = tir.script.from_source(text)
    sch = offered(func, "s", TARGET.format(512, 1) + f" -l1_bytes={cache << 10}")
    assert sch is not None and ("T.prefetch(T.address_of(s[" in sch.mod.script()) is are_requested
    if not begins:
        assert_same_result(func, sch.mod, engines=("llvm",))


def test_lanes_far_from_each_other_are_for_other_rules():
    assert offered(pool((1, 1, 8, 40), 2, 4, 0), "max_pool") is not None
    assert offered(pool((1, 1, 8, 50), 2, 5, 0), "max_pool") is None


def test_sums_without_windows_are_for_other_rules():
    x, i = te.placeholder((40, 16), name="x"), te.placeholder((8, 3), "int32", name="i")
    k = te.reduce_axis((0, 3), "k")
    rows = te.compute((8, 16), lambda r, c: te.sum(x[r * 3 + k, c], axis=k), name="s")
    bags = te.compute((8, 16), lambda r, c: te.sum(x[i[r, k], c], axis=k), name="s")
    assert offered(te.create_prim_func([x, rows]), "s") is not None
    assert offered(te.create_prim_func([x, i, bags]), "s") is None, "places that data decides"
    columns = te.compute((16,), lambda c: te.sum(x[k, c], axis=k), name="s")
    assert offered(te.create_prim_func([x, columns]), "s") is None


def test_few_rows_of_an_image_beyond_the_cache_are_read_at_a_time():
    func, target = pool((1, 1, 64, 512), 3, 2, 0), TARGET.format(128, 1)
    tall = [offered(func, "max_pool", f"{target} -l2_bytes={size}") for size in (1 << 20, 1 << 12)]
    sizes = [sch and next(int(sch.get(x).extent) for x in sch.get_loops("max_pool_local")[4:]) for sch in tall]
    assert [sch and "i2_1_init in T.unroll(4)" in sch.mod.script() for sch in tall] == [True, False], sizes


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


@pytest.mark.parametrize("image", [(1, 28, 9, 16), (2, 9, 9, 16), (1, 150, 3, 16)])
def test_tiles_are_shared_out_to_threads(image: tuple[int, ...], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(space, "PARALLEL", 0)
    func = depthwise(image)
    sch = tir.tune.default(func, TARGET.format(128, 2))
    product = next(b.name for b in sch.get_child_blocks("root") if b.name.endswith("_update"))
    assert sch.get(product).writes[0].buffer.scope == "local", "the sums stay in registers"
    assert [sch.get(loop).kind for loop in sch.get_loops(product)].count("parallel") == 1
    assert not [b for b in sch.get_child_blocks("root") if b.name.startswith("pad")]
    assert_same_result(func, sch.mod, engines=("llvm", "interpreter"))


def test_what_follows_and_takes_little_time_is_not_tried_apart(monkeypatch: pytest.MonkeyPatch):
    tried: list[str] = []
    without = space.Space.without
    chosen_by = importlib.import_module("tir.tune.default")
    monkeypatch.setattr(chosen_by, "NEAR", 0.0)  # nothing is too near the floor
    monkeypatch.setattr(chosen_by, "LESS", 0.8)
    monkeypatch.setattr(space.Space, "without", lambda *of: tried.append(of[1].rule) or without(*of))
    tir.tune.default(depthwise((1, 57, 57, 64), stride=2), TARGET.format(512, 1) + " -l1_bytes=49152 -l2_bytes=2097152")
    assert "inline" not in tried and "windows" in tried


EDGES = {
    "begins again": lambda i, n: (i + n - 1) % n,
    "stays": lambda i, n: te.max(te.min(i - 1, n - 1), 0),
}


@pytest.mark.parametrize("reducer", [te.sum, te.max])
@pytest.mark.parametrize("inside", EDGES.values(), ids=EDGES)
def test_windows_are_straight_code_between_the_edges(inside, reducer):
    """Where no window leaves the array, nothing asks for its edges."""
    x = te.placeholder((20, 40), name="x")
    p, q = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q")
    y = te.compute((20, 40), lambda i, j: reducer(x[inside(i + p, 20), inside(j + q, 40)], axis=[p, q]), name="y")
    func = te.create_prim_func([x, y])
    sch = tir.tune.default(func, "llvm -num-cores=1")
    rows = [n for n in walk(tir.lower(sch.mod)["main"].body) if isinstance(n, For) and n.loop_var.name == "j"]
    asks = [
        any(isinstance(n, (FloorMod, Max, Min)) for a in accesses(r) for i in a.indices for n in walk(i)) for r in rows
    ]
    assert False in asks
    assert_same_result(func, sch.mod)
