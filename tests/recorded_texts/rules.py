"""What each rule of the tuner makes of programs at the borders of its conditions: all its offers, as steps.

Nothing is run, so that sizes may be those at which a decision turns: a vector more or less, one row more than a tile has, what
a cache holds and what it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import tir
from tests.fuzz.kernel_programs import family_program
from tir import ops, te
from tir.library import elementwise
from tir.tune.space import block_names, space_of

from .stages import GPU, Texts, cpu, steps
from .tune import of, product

Sizes = tuple[Any, ...]


def offers(make: Callable[[], Any], target: str) -> Texts:
    """The offers of every rule for every block, of the schedule that has the first offer of each rule before."""
    space = space_of(target)
    sch = tir.Schedule(make(), seed=0, target=space.env.target, error_render_level="none")
    lines: list[str] = []
    for one in space.rules:
        for block in reversed(block_names(sch)):
            made = space.forks(one, sch, block)
            before = steps(sch).splitlines()
            lines += [f"{one.name} {block} {number}\n{added(before, fork)}" for number, fork in enumerate(made)]
            sch = made[0] if made else sch
    yield "offers", "\n".join([*lines, f"dropped {space.dropped} {list(space.faults)}"])


def added(before: list[str], sch: tir.Schedule) -> str:
    """The steps after those that were taken before."""
    now = steps(sch).splitlines()
    return "\n".join(now[len(before) :] if now[: len(before)] == before else now)


def summed(shapes: list[Sizes], result: Sizes, terms: Sizes, element: Callable[..., Any], kind: Any = te.sum) -> Any:
    """A reduction over ``terms`` of what ``element`` makes of tensors, indices and terms."""
    tensors = [te.placeholder(shape, name=f"x{n}") for n, shape in enumerate(shapes)]
    axes = [te.reduce_axis((0, extent), f"r{n}") for n, extent in enumerate(terms)]
    made = te.compute(result, lambda *i: kind(element(*tensors, i, [a.var for a in axes]), axis=axes), name="C")
    scalars = [e for shape in shapes for e in shape if isinstance(e, tir.Var)]
    return te.create_prim_func([*dict.fromkeys(scalars), *tensors, made])


def gemv(m: Any, k: Any) -> Any:
    return summed([(m, k), (k,)], (m,), (k,), lambda a, x, i, r: a[i[0], r[0]] * x[r[0]])


def rows_by_rows(m: int, n: int, k: int) -> Any:
    """A product whose operands both lie along the terms."""
    return summed([(m, k), (n, k)], (m, n), (k,), lambda a, b, i, r: a[i[0], r[0]] * b[i[1], r[0]])


def sum_of(shape: Sizes, axis: Sizes, kind: Any = te.sum, function: Any = lambda x: x) -> Any:
    """``shape`` reduced along some of its axes."""
    kept = [n for n in range(len(shape)) if n not in axis]

    def element(x: Any, i: Any, r: Any) -> Any:
        at = dict(zip(kept, i)) | dict(zip(axis, r))
        return function(x(*(at[n] for n in range(len(shape)))))

    return summed([shape], tuple(shape[n] for n in kept), tuple(shape[n] for n in axis), element, kind)


def turned(shape: Sizes, order: Sizes, dtype: str = "float32", function: Any = lambda x: x) -> Any:
    x = te.placeholder(shape, dtype, name="x")
    made = te.compute(
        [shape[n] for n in order], lambda *i: function(x(*(i[order.index(n)] for n in range(len(order)))))
    )
    return te.create_prim_func([x, made])


def stencil(height: Any, width: Any, depth: int = 2, reach: int = 1) -> Any:
    """Stages of which each reads neighbours above and below of the one before."""
    scalars = [e for e in (height,) if isinstance(e, tir.Var)]
    x = te.placeholder((height + 2 * reach * depth, width), name="x")
    made = x
    for stage in range(depth):
        shape = (height + 2 * reach * (depth - stage - 1), width)
        made = te.compute(shape, lambda i, j, a=made: a[i, j] + a[i + reach, j] + a[i + 2 * reach, j], name=f"s{stage}")
    return te.create_prim_func([*scalars, x, made])


def normalized(height: int, width: int, inner: tuple[int, ...] = ()) -> Any:
    """Rows divided by their sums, over more axes where ``inner`` is given."""
    shape = (height, *inner, width)
    x = te.placeholder(shape, name="x")
    axes = [te.reduce_axis((0, extent), f"r{n}") for n, extent in enumerate(shape[1:])]
    total = te.compute((height,), lambda i: te.sum(te.exp(x(i, *axes)), axis=axes), name="total")
    return te.create_prim_func([x, te.compute(shape, lambda i, *j: te.exp(x(i, *j)) / total[i], name="out")])


def windowed(image: Sizes, channels_last: bool, window: int = 3, stride: int = 1, relu: bool = False) -> Any:
    """A depthwise convolution of a padded image."""
    n, h, w, c = image
    x = te.placeholder((n, h, w, c) if channels_last else (n, c, h, w), name="x")
    weight = te.placeholder((window, window, c) if channels_last else (c, window, window), name="w")
    pads = [0, window // 2, window // 2, 0] if channels_last else [0, 0, window // 2, window // 2]
    padded = ops.nn.pad(x, pads, pads)
    p, q = te.reduce_axis((0, window), "p"), te.reduce_axis((0, window), "q")
    high, wide = ((size - 1) // stride + 1 for size in (h, w))
    if channels_last:
        made = te.compute(
            (n, high, wide, c),
            lambda b, i, j, k: te.sum(padded[b, i * stride + p, j * stride + q, k] * weight[p, q, k], axis=[p, q]),
        )
    else:
        made = te.compute(
            (n, c, high, wide),
            lambda b, k, i, j: te.sum(padded[b, k, i * stride + p, j * stride + q] * weight[k, p, q], axis=[p, q]),
        )
    return te.create_prim_func([x, weight, ops.nn.relu(made) if relu else made])


def chained(rows_: int, middle: int, columns: int, softmax: bool = False) -> Any:
    a, b, c = (
        te.placeholder(s, name=n) for s, n in (((rows_, 32), "a"), ((32, middle), "b"), ((middle, columns), "c"))
    )
    first = ops.matmul(a, b)
    return te.create_prim_func([a, b, c, ops.matmul(ops.nn.softmax(first, axis=-1) if softmax else first, c)])


def interleaved(height: int, width: int, parts: int) -> Any:
    """Turned matrices whose elements are stored side by side, as the parts of complex numbers are."""
    given = [te.placeholder((height, width), name=f"x{n}") for n in range(parts)]

    def element(i: Any, j: Any, c: Any) -> Any:
        made = given[0][j, i]
        for n, x in enumerate(given[1:], 1):
            made = tir.Select(c < n, made, x[j, i])
        return made

    return te.create_prim_func([*given, te.compute((width, height, parts), element, name="out")])


N = te.var("n")
CPU_PROGRAMS: dict[str, list[Callable[[], Any]]] = {
    "gemv": [partial(gemv, m, k) for m, k in ((64, 1000), (7, 1000), (6, 32), (4, 31), (1, 64), (2048, 1024), (N, 64))],
    "rows_by_rows": [
        partial(rows_by_rows, m, n, k)
        for m, n, k in ((1, 64, 100), (2, 64, 100), (5, 7, 49), (4, 6, 48), (16, 64, 64), (17, 64, 64), (3, 12, 33))
    ],
    "thin": [
        partial(product, m, n, k)
        for m, n, k in ((4, 2048, 1024), (8, 600, 4096), (48, 512, 1000), (49, 512, 1000), (16, 1024, 256), (2, 49, 9000))
    ],
    "thin-vector": [
        lambda: summed([(64, 20), (64, 20, 512)], (512,), (64, 20), lambda x, b, i, r: x[r[0], r[1]] * b[r[0], r[1], i[0]])
    ],
    "sums": [
        partial(sum_of, shape, axis)
        for shape, axis in (
            ((1 << 21,), (0,)), ((1 << 10, 1 << 11), (0, 1)), (((1 << 21) - 1,), (0,)), ((15,), (0,)), ((16,), (0,)),
            ((N,), (0,)), ((5, 40), (1,)), ((5, 15), (1,)), ((40, 5), (0,)), ((64, 7), (0,)), ((64, 8), (0,)), ((12, 64), (0,)), ((20, 64), (0,)), ((30, 4, 64), (0, 2)),
            ((64, 4, 30), (0, 2)), ((4, 9, 5, 40), (1, 3)), ((1 << 12, 300, 1 << 5), (2,)),
        )
    ],
    "streams": [
        partial(sum_of, shape, axis)
        for shape, axis in (
            ((4096, 4096), (0,)), ((1004, 9000), (0,)), ((1002, 300), (0,)), ((1001, 300), (0,)), ((N, 300), (0,)),
            ((6, 512, 100), (0, 1)), ((512, N), (0,)),
        )
    ],
    "maxima": [partial(sum_of, shape, (1,), te.max, te.exp) for shape in ((64, 1000), (3, 33), (100, 8))],
    "transposes": [
        partial(turned, shape, order, dtype)
        for shape, order, dtype in (
            ((512, 640), (1, 0), "float32"), ((15, 64), (1, 0), "float32"), ((16, 64), (1, 0), "float32"), ((50, 70), (1, 0), "float64"),
            ((48, 80), (1, 0), "int8"), ((33, 47), (1, 0), "float16"), ((4, 32, 48), (0, 2, 1), "float32"), ((4, 32, 48), (2, 1, 0), "float32"),
            ((8, 4, 4, 64), (0, 3, 1, 2), "float32"), ((64, 32, 2), (1, 0, 2), "float32"), ((64, 32, 17), (1, 0, 2), "float32"),
            ((64, 8, 2), (1, 0, 2), "float32"), ((N, 64), (1, 0), "float32"), ((4096, 1024), (1, 0), "float32"), ((4, 32), (1, 0), "int64"),
        )
    ],
    "turned-sums": [partial(turned, (64, 96), (1, 0), "float32", te.exp), partial(turned, (64, 96, 2), (1, 0, 2), "float32", te.exp)],
    "interleaved": [partial(interleaved, *sizes) for sizes in ((64, 100, 2), (16, 16, 3), (15, 64, 2), (40, 40, 16), (512, 512, 2))],
    "copies": [partial(turned, (n, 64), (0, 1)) for n in (255, 256, 257, 1 << 15, N)],
    "maps": [
        partial(turned, shape, (0, 1), "float32", te.exp)
        for shape in ((3, 7), (3, 8), (3, 9), (64, 33), (1 << 12, 1 << 9), (1 << 12, (1 << 9) - 1), (1, 1 << 17), (N, 16))
    ],
    "stencils": [
        partial(stencil, *sizes)
        for sizes in ((64, 64), (37, 40), (61, 64, 3), (7, 64), (64, 7), (N, 64), (64, 64, 2, 40), (2048, 1024))
    ],
    "rows": [
        partial(normalized, *sizes)
        for sizes in ((64, 64), (3, 15), (3, 16), (100, 33), (1, 64), (5, 64, (3,)), (5, 8, (9,)), (2048, 1024))
    ],
    "windows": [
        partial(windowed, *sizes)
        for sizes in (
            ((1, 28, 28, 32), True), ((1, 14, 14, 12), True), ((1, 9, 9, 7), True), ((1, 28, 28, 16), False), ((2, 7, 7, 16), False),
            ((1, 28, 28, 32), True, 5, 2), ((1, 28, 28, 32), True, 3, 1, True), ((1, 14, 14, 8), False, 3, 2, True), ((1, 4, 1, 64), True),
        )
    ],
    "chains": [partial(chained, *sizes) for sizes in ((24, 64, 32), (25, 40, 16, True), (64, 9000, 32))],
    "scalars": [lambda: elementwise.scale_add(5), lambda: family_program("padded", 7), lambda: family_program("conditional", 7)],
    "products": [
        partial(product, m, n, k)
        for m, n, k in ((64, 64, 64), (6, 4, 8), (6, 3, 8), (100, 8, 30), (13, 9, 7), (14, 100, 2), (256, 512, 1024), (1024, 1024, 16))
    ],
    "dots": [
        partial(product, m, n, k, given, "int32" if given == "int8" else "float32")
        for given in ("int8", "bfloat16")
        for m, n, k in ((64, 64, 64), (5, 16, 32), (33, 30, 50))
    ],
    "digits": [
        lambda: of(ops.nn.group_conv2d_nchw, (1, 8, 9, 9), (8, 4, 3, 3), stride=1, padding=1, dilation=1, groups=2),
        lambda: of(ops.nn.depth_to_space, (1, 16, 8, 8), block_size=2),
        lambda: of(ops.nn.conv2d_nchw, (1, 8, 7, 7), (24, 8, 3, 3), stride=1, padding=1, dilation=1),
    ],
}  # fmt: skip
GPU_PROGRAMS: dict[str, list[Callable[[], Any]]] = {
    "sums": [
        partial(sum_of, shape, axis)
        for shape, axis in (((64, 128), (1,)), ((64, 127), (1,)), ((1 << 20,), (0,)), ((128, 64), (0,)), ((300, 70000), (1,)), ((5000, 200), (0,)), ((4, 1 << 12, 64), (1,)), ((N, 300), (1,)))
    ],
    "rows": [partial(normalized, *sizes) for sizes in ((64, 64), (3, 31), (100, 1024), (5, 64, (3,)), (7, 20000), (64, 30))],
    "transposes": [partial(turned, (m, n), (1, 0)) for m, n in ((64, 64), (31, 64), (32, 100), (512, 640))],
    "maps": [partial(turned, shape, (0, 1), "float32", te.exp) for shape in ((3, 7), (512, 512), (511, 513), (64, 32), (N, 64))],
    "products": [
        partial(product, m, n, k, given, "float32")
        for given, m, n, k in (
            ("float32", 3, 3, 16), ("float32", 130, 70, 33), ("float16", 16, 16, 4096), ("float16", 8, 8, 7)
        )
    ],
}  # fmt: skip


def all_offers(makes: list[Callable[[], Any]], target: str) -> Texts:
    with mock.patch("tir.tune.space.tiles_allowed", return_value=True):  # whatever this system permits
        for number, make in enumerate(makes):
            for label, text in offers(make, target):
                yield f"{number}.{label}", text


TARGETS = {"v2": cpu("v2", 1), "v3": cpu("v3", 4), "v4": cpu("v4", 8), "amx": cpu("amx", 2)}
CASES = {
    **{
        f"{name}-v3": partial(all_offers, makes, TARGETS["v3"])
        for name, makes in CPU_PROGRAMS.items()
        if name != "dots"
    },
    **{f"{name}-gpu": partial(all_offers, makes, GPU) for name, makes in GPU_PROGRAMS.items()},
    "dots-amx": partial(all_offers, CPU_PROGRAMS["dots"], TARGETS["amx"]),
    "products-v2": partial(all_offers, CPU_PROGRAMS["products"][:4], TARGETS["v2"]),
    "products-v4": partial(all_offers, CPU_PROGRAMS["products"][:4], TARGETS["v4"]),
    "transposes-v2": partial(all_offers, CPU_PROGRAMS["transposes"][:6], TARGETS["v2"]),
}
