"""Kernels in lowered functions: what launches them, the memory that they allocate and access."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .errors import BuildError
from .expr import BufferLoad, Call, Expr, Ramp, Var, cast, const, constant
from .levels import is_launch_axis
from .stmt import Allocate, AttrStmt, BufferStore, Stmt
from .visit import accesses


def is_launch(item: Any, counts: Callable[[str], bool] = is_launch_axis) -> bool:
    """Whether ``item`` launches an axis that ``counts``; by default any but virtual threads."""
    return isinstance(item, AttrStmt) and item.attr_key == "thread_extent" and counts(item.node.thread_tag)


def kernels_of(root: Any) -> list[Any]:
    """The statements that launch kernels, in order."""
    found: list[Any] = []
    stack = [root]
    while stack:
        item = stack.pop()
        if is_launch(item):
            found.append(item)
        else:
            stack.extend(reversed([c for c in item.children() if isinstance(c, Stmt)]))
    return found


def with_kernels(root: Stmt, fn: Callable[[Any], Stmt]) -> Stmt:
    """``root`` with each statement that launches a kernel as ``fn`` makes it."""
    return fn(root) if is_launch(root) else root.map_statements(lambda child: with_kernels(child, fn))


def launches(kernel: Any) -> dict[str, Any]:
    """The extent of each axis that a kernel is launched with."""
    found: dict[str, Any] = {}
    while isinstance(kernel, AttrStmt) and is_launch(kernel):
        found[kernel.node.thread_tag] = kernel.value
        kernel = kernel.body
    return found


def place_of(pointer: Expr) -> tuple[Var, Expr]:
    """The memory that a pointer leads into, and after how many of its bytes: a variable, or the address of an element of flat memory.

    Raises ``BuildError`` for another expression.
    """
    if isinstance(pointer, Var):
        return pointer, const(0, "int64")
    place = pointer.args[0] if isinstance(pointer, Call) and pointer.op == "address_of" else None
    if not isinstance(place, BufferLoad) or len(place.indices) != 1:
        raise BuildError(f"`{pointer!r}` is computed outside of kernels; pass the buffer, or the address of an element")
    return place.buffer.data, cast("int64", place.indices[0]) * place.buffer.dtype.bytes


def vector_accesses(kernel: Any) -> Iterator[tuple[BufferLoad | BufferStore, int]]:
    """The accesses of adjacent elements of memory, with how many bytes one thread moves."""
    for a in accesses(kernel):
        index = a.indices[-1] if a.indices else None
        if isinstance(index, Ramp) and constant(index.stride) == 1 and a.buffer.scope != "local":
            yield a, a.buffer.dtype.bytes * index.lanes


def bytes_of(a: Allocate) -> int:
    """Bytes of an allocation. Raises ``BuildError`` where its size is not constant."""
    total = a.dtype.bytes
    for extent in a.extents:
        size = constant(extent)
        if size is None:
            raise BuildError(
                f"`{a.buffer_var.name}` in {a.buffer_var.scope} memory has `{extent!r}` elements; the size of memory "
                "in a kernel has to be a constant"
            )
        total *= size
    return total
