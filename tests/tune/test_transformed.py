"""Products between transforms of tiles (Winograd's convolution): all stages for strips of tiles."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.annotations import CONSTANT
from tir.testing import assert_same_result
from tir.tune.rules.transformed import transformed
from tir.tune.space import Env, block_names

# vectors of two numbers, and a cache in which not all tiles stay
SMALL = "llvm -vector_width=64 -num-cores={} -l2_bytes={}"


def convolution(
    shape: tuple[object, ...], outputs: int, padding: object = 1, m: int = 2, last: str = "relu"
) -> tir.PrimFunc:
    n, *size, channels = shape
    batch = te.var(n) if isinstance(n, str) else n
    x, w = te.placeholder((batch, *size, channels), name="x"), te.placeholder((3, 3, channels, outputs), name="w")
    y = ops.nn.conv2d_winograd_nhwc(x, w, 1, padding, tile_size=m)
    parameters = [x, w]
    if last == "residual":
        parameters.append(te.placeholder(y.shape, name="r"))
        y = ops.add(y, parameters[-1])
    y = ops.nn.relu(y) if last else y
    return te.create_prim_func([*parameters, y]).with_attr(CONSTANT, ("w",))


def scheduled(func: tir.PrimFunc, cores: int = 1, l2: int = 1 << 20) -> tir.Schedule:
    return tir.tune.default(func, SMALL.format(cores, l2))


def in_strips(sch: tir.Schedule) -> bool:
    """Whether all stages that run at each call have an outermost loop in common."""
    names = [n for n in block_names(sch) if not n.startswith("kernel")]
    return len({sch.get_loops(n)[0].var for n in names}) == 1


@pytest.mark.parametrize(
    ("shape", "padding", "m", "last"),
    [
        *(((1, 6, 8, 4), 1, 2, last) for last in ("", "relu", "residual")),
        ((2, 5, 7, 2), (0, 1, 2, 1), 2, "residual"),
        ((1, 3, 3, 2), 1, 2, "relu"),
        ((1, 9, 8, 2), "SAME", 4, "residual"),
    ],
)
def test_strips_of_tiles_compute_the_same(shape, padding, m, last):
    func = convolution(shape, 4, padding, m, last)
    sch = scheduled(func)
    assert in_strips(sch)
    assert_same_result(func, sch.func, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("cores", "l2"), [(1, 2048), (2, 1 << 20), (2, 2048), (3, 4096)])
def test_small_caches_and_threads_compute_the_same(cores, l2):
    func = convolution((1, 12, 8, 8), 8)
    assert_same_result(func, scheduled(func, cores, l2).func, rtol=1e-4, atol=1e-4)


def test_what_is_between_the_stages_stays_in_half_of_the_cache():
    sch = tir.tune.default(convolution((1, 28, 28, 128), 128), "llvm -vector_width=512 -num-cores=1 -l2_bytes=1048576")
    strips = [sch.get(loop).extent.value for loop in sch.get_loops("data_pack")[:3]]
    tiles = 14 * 14 // np.prod(strips)
    assert tiles >= 7 and 4 * 16 * tiles * (128 + 128) <= 1 << 19


def test_a_batch_of_any_size_computes_the_same():
    func = convolution(("n", 4, 6, 2), 4)
    sch = scheduled(func)
    assert in_strips(sch)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype("float32") for s in ((3, 4, 6, 2), (3, 3, 2, 4), (3, 4, 6, 4))]
    assert_same_result(func, sch.func, arrays, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shape", "outputs"), [((1, 6, 6, 3), 4), ((1, 6, 6, 4), 3), ((1, "h", 6, 4), 4)])
def test_vectors_with_tails_and_open_sizes_are_for_other_rules(shape, outputs):
    n, h, *rest = shape
    func = convolution((n, te.var(h) if isinstance(h, str) else h, *rest), outputs)
    sch = tir.Schedule(func)
    sch.compute_inline("conv2d_winograd")
    assert transformed(sch, "relu", Env.of(SMALL.format(1, 1 << 20))) == []


def test_weights_are_transformed_once():
    from tir.schedule.constants import at_each_call

    func = at_each_call(scheduled(convolution((1, 8, 8, 4), 4)).func)
    assert [b.name for b in func.buffers()] == ["x", "relu", "kernel_pack_global"]
