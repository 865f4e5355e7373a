"""Loops of operators that are no formula of an element, but statements (:func:`tir.te.hybrid.statements`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import Expr
from ..ir_builder import BufferVar, IRBuilder


@contextmanager
def loops(ib: IRBuilder, extents: Sequence[Expr], prefix: str = "i") -> Iterator[tuple[Any, ...]]:
    """A nest of loops over ``extents``."""
    if not extents:
        yield ()
        return
    with ib.for_range(0, extents[0], f"{prefix}{len(extents)}") as first, loops(ib, extents[1:], prefix) as rest:
        yield (first, *rest)


def copy(ib: IRBuilder, source: BufferVar, target: BufferVar) -> None:
    """Store all elements of one buffer in another of the same shape."""
    with loops(ib, source.buffer.shape, "c") as at:
        target[at] = source[at]
