"""The signature of a lowered function: its argument slots, the arrays it may write, their alignment."""

from __future__ import annotations

from tir.buffer import Buffer
from tir.expr import Expr, Var
from tir.function import PrimFunc
from tir.visit import walk


def size_vars(func: PrimFunc) -> list[Var]:
    """The variables in shapes, strides and offsets of the parameter buffers that are not themselves parameters."""
    seen: dict[Var, None] = {}
    for buffer in func.buffers():
        for part in layout_of(buffer):
            for node in walk(part):
                if isinstance(node, Var) and not node.dtype.is_handle:
                    seen.setdefault(node)
    return [v for v in seen if all(v is not p for p in func.params)]


def layout_of(buffer: Buffer) -> tuple[Expr, ...]:
    """The expressions in a buffer's declaration: extents, strides, offset."""
    return (*buffer.shape, *buffer.strides, *((buffer.elem_offset,) if buffer.elem_offset is not None else ()))


def slots_of(func: PrimFunc) -> list[Var]:
    """The variable behind each argument slot of the entry: parameters, then sizes."""
    return [*func.params, *size_vars(func)]


def buffer_alignment(buffer: Buffer) -> int:
    """Bytes to which an argument's first element is aligned: as declared, else the element's size."""
    return max(buffer.data_alignment, buffer.dtype.element.bytes)
