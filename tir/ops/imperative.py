"""Operators that are no formula of an element: loops and stores, as they run one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import ir_builder
from ..buffer import Buffer, decl_buffer
from ..expr import Expr
from ..ir_builder import BufferVar, IRBuilder
from ..te import Tensor
from ..te.hybrid import HybridOp
from ..te.tag import notes
from .element_places import sized

Memory = Sequence[tuple[Any, Any]]  # shapes and data types


def statements(
    name: str, inputs: Sequence[Tensor], outputs: Memory, body: Callable[..., None], memory: Memory = ()
) -> list[Tensor]:
    """Tensors made by what ``body(ib, inputs, outputs, memory)`` emits with a builder, on buffers to be read and written.

    Its loops stay loops of the function, for schedules to transform. ``memory`` is of the operation's own.
    """
    ins = [decl_buffer(t.shape, t.dtype, t.name) for t in inputs]
    outs = [_declared(name if len(outputs) == 1 else f"{name}_{n}", *spec) for n, spec in enumerate(outputs)]
    own = [_declared(f"{name}_memory", *spec) for spec in memory]
    ib = ir_builder.create()
    body(ib, *([BufferVar(ib, b) for b in group] for group in (ins, outs, own)))
    op = HybridOp(name, tuple(inputs), tuple(ins), tuple(outs), ib.get(), local_buffers=tuple(own), **notes())
    return list(op.outputs)


def _declared(name: str, shape: Any, dtype: Any) -> Buffer:
    return decl_buffer(sized(shape, "memory"), dtype, name)


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
