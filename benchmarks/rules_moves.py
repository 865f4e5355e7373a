"""Concatenations, splits, padding, transposes and slices, beside a copy of as many bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tir import ops, te

from .arrays import aligned
from .rules_cases import Case, copy_of

MUST = 0.8
Shape = tuple[int, ...]


def moves() -> Iterator[Case]:
    """Two dozen shapes."""
    yield from _joins()
    yield from _parts()
    yield from _pads()
    yield from _turns()


def _joins() -> Iterator[Case]:
    for axis, shapes in (
        (1, [(1, 256, 28, 28)] * 2),
        (0, [(512, 1024)] * 2),
        (1, [(1024, 1024)] * 2),
        (1, [(1, 64, 56, 56), (1, 32, 56, 56), (1, 96, 56, 56)]),
        (1, [(4096, 64), (4096, 40)]),
        (2, [(12, 1024, 64)] * 2),
    ):
        yield _case(
            f"concatenate {shapes} along {axis}",
            shapes,
            lambda *x, axis=axis: ops.concatenate(list(x), axis),
            lambda *x, axis=axis: np.concatenate(x, axis),
        )


def _parts() -> Iterator[Case]:
    for axis, parts, shape in (
        (1, 2, (1024, 1024)),
        (0, 3, (768, 1024)),
        (1, 3, (512, 2304)),
        (1, 2, (1, 256, 28, 28)),
    ):
        yield _case(
            f"split {shape} in {parts} along {axis}",
            [shape],
            lambda x, p=parts, axis=axis: ops.split(x, p, axis),
            lambda x, p=parts, axis=axis: np.split(x, p, axis),
        )
    for begin, end, strides in (([0, 128], [1024, 896], [1, 1]), ([0, 3], [1024, 1003], [1, 1]), ([100, 0], [900, 1024], [1, 1]), ([0, 0], [1024, 1024], [2, 1])):  # fmt: skip
        where = tuple(slice(*each) for each in zip(begin, end, strides))
        yield _case(
            f"slice (1024, 1024) {begin} to {end} by {strides}",
            [(1024, 1024)],
            lambda x, at=(begin, end, strides): ops.strided_slice(x, *at),
            lambda x, where=where: x[where],
        )


def _pads() -> Iterator[Case]:
    for shape, width in (
        ((1, 64, 56, 56), [(0, 0), (0, 0), (1, 1), (1, 1)]),
        ((1, 56, 56, 64), [(0, 0), (1, 1), (1, 1), (0, 0)]),
        ((1024, 1024), [(1, 1), (2, 2)]),
        ((1024, 1000), [(0, 0), (0, 24)]),
    ):
        yield _case(
            f"pad {shape} by {width}",
            [shape],
            lambda x, width=width: ops.pad(x, width),
            lambda x, width=width: np.pad(x, width),
        )


def _turns() -> Iterator[Case]:
    for shape, order in (
        ((1024, 1024), (1, 0)),
        ((2048, 512), (1, 0)),
        ((1000, 1000), (1, 0)),
        ((1, 128, 12, 64), (0, 2, 1, 3)),
        ((1, 64, 56, 56), (0, 2, 3, 1)),
        ((1, 56, 56, 64), (0, 3, 1, 2)),
    ):
        yield _case(
            f"transpose {shape} to {order}",
            [shape],
            lambda x, order=order: ops.transpose(x, order),
            lambda x, order=order: np.transpose(x, order),
        )


def _case(name: str, shapes: Sequence[Shape], ours: Callable[..., Any], numpy: Callable[..., Any]) -> Case:
    inputs = [te.placeholder(s, name=f"x{n}") for n, s in enumerate(shapes)]
    made = ours(*inputs)
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    sizes = [tuple(int(n) for n in o.shape) for o in outputs]
    moved = 2 * 4 * sum(int(np.prod(s)) for s in sizes)
    return Case(
        name,
        MUST,
        te.create_prim_func([*inputs, *outputs]),
        lambda: [*(_numbers(s) for s in shapes), *(aligned(s) for s in sizes)],
        "copy",
        copy_of(moved),
        numpy,
        len(outputs),
        0,
    )


def _numbers(shape: Shape) -> np.ndarray:
    made = aligned(shape)
    np.random.default_rng(0).standard_normal(dtype=np.float32, out=made)
    return made
