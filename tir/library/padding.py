"""Operands padded with zeros to whole panels."""

from __future__ import annotations

from ..buffer import Buffer
from ..expr import LT, And, BufferLoad, Expr, IntImm
from ..script import tir as T


def padded(buffer: Buffer, row: Expr, column: Expr, rows: int, columns: int) -> Expr:
    """``buffer[row, column]``, and zero outside of the buffer; ``rows`` by ``columns`` is the padded shape."""
    load = BufferLoad(buffer, (row, column))
    limits = [(i, size) for i, size, most in zip((row, column), buffer.shape, (rows, columns)) if size.value < most]
    if not limits:
        return load
    inside = [LT(i, IntImm(size.value, i.dtype)) for i, size in limits]
    return T.if_then_else(inside[0] if len(inside) == 1 else And(*inside), load, T.cast(0, buffer.dtype))
