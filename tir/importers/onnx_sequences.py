"""Rows of ONNX operators on sequences and optionals that the model itself makes: which tensors they hold is known at import."""

from __future__ import annotations

from typing import Any

import numpy as np

from .making import Unsupported, axis_of
from .onnx_table import Call, Items, Made, row


@row("SequenceEmpty", 11)
def _empty(c: Call) -> Any:
    return Items()


@row("SequenceConstruct", 11)
def _construct(c: Call) -> Any:
    return Items(c[n] for n in range(len(c.inputs)))


def _place(c: Call, index: int, size: int, usual: int) -> int:
    """A place in a sequence of ``size`` places; negative ones count from the end."""
    said = c.integers(index, "position")
    at = usual if said is None else said[0]
    if not -size <= at < size:
        raise Unsupported(f"position {at} of a sequence with {size} places")
    return at % size


@row("SequenceAt", 11)
def _at(c: Call) -> Any:
    items = c.sequence(0)
    return items[_place(c, 1, len(items), -1)]


@row("SequenceInsert", 11)
def _insert(c: Call) -> Any:
    items = c.sequence(0)
    said = c.integers(2, "position")
    at = len(items) if said is None else said[0]
    if not -len(items) <= at <= len(items):
        raise Unsupported(f"position {at} of a sequence of {len(items)}")
    at = at + len(items) if at < 0 else at
    return Items((*items[:at], c[1], *items[at:]))


@row("SequenceErase", 11)
def _erase(c: Call) -> Any:
    items = c.sequence(0)
    at = _place(c, 1, len(items), -1)
    return Items((*items[:at], *items[at + 1 :]))


@row("SequenceLength", 11)
def _length(c: Call) -> Any:
    return c.array(np.array(len(c.sequence(0)), "int64"))


@row("SplitToSequence", 11)
def _split(c: Call) -> Any:
    axis = axis_of(c.attribute("axis", 0), len(c[0].shape))
    size = c[0].shape[axis]
    said = c.constant(1, "sizes")
    if said is None:
        if c.attribute("keepdims", 1):
            return Items(c.parts(c[0], axis, [1] * size))
        return Items(c.one_of(c[0], axis, n) for n in range(size))
    if said.ndim:
        sizes = [int(n) for n in said]
    else:
        each = max(int(said), 1)
        sizes = [min(each, size - n) for n in range(0, size, each)]
    if sum(sizes) != size or min(sizes, default=0) < 0:
        raise Unsupported(f"sizes {sizes} of an axis of {size}")
    return Items(c.parts(c[0], axis, sizes))


@row("ConcatFromSequence", 11)
def _concat(c: Call) -> Any:
    items, axis = c.sequence(0), c.attribute("axis")
    if not items:
        raise Unsupported("its sequence is empty")
    if c.attribute("new_axis", 0):
        return c.op("stack", list(items), axis_of(axis, len(items[0].shape) + 1))
    return c.joined(items, axis_of(axis, len(items[0].shape)))


@row("Optional", 15)
@row("OptionalGetElement", 15)
def _element(c: Call) -> Made:
    if not c.inputs or c.inputs[0] is None:
        raise Unsupported("its optional is empty")
    return c.inputs[0]


@row("OptionalHasElement", 15)
def _has_element(c: Call) -> Any:
    return c.array(np.array(bool(c.inputs) and c.inputs[0] is not None))
