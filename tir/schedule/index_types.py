"""Programs compared without regard to the width of their indices."""

from __future__ import annotations

from typing import Any

from ..buffer import IterVar, Range
from ..dtype import DType
from ..expr import BinaryOp, BufferLoad, Cast, Expr, IntImm, Var, cast, const
from ..stmt import BlockRealize, BufferStore, For
from ..visit import rewrite, substitute, walk

WIDE, NARROW = DType("int64"), DType("int32")
MOST = 2**31 - 1


def with_narrow_indices(stmt: Any) -> Any:
    """``stmt`` with its loops and iterators in int32, and what is computed from them as index: a form to compare. Those
    whose domain is not a small constant stay as they are.

    >>> from tir.script import parse
    >>> program = parse('''
    ... @T.prim_func
    ... def main(A: T.Buffer((T.int64(8),), "int32")):
    ...     for i in range(T.int64(8)):
    ...         A[i] = T.Cast("int32", i * 2)
    ... ''')
    >>> with_narrow_indices(program.body)
    for i in range(8):
        A[i] = i * 2
    """
    domains = {n.loop_var: n.domain for n in walk(stmt) if isinstance(n, For)}
    domains |= {n.var: n.dom for n in walk(stmt) if isinstance(n, IterVar) and n.dom is not None}
    narrow = {v: Var(v.name, NARROW) for v, dom in domains.items() if v.dtype is WIDE and _is_small(dom)}
    return rewrite(substitute(stmt, narrow), _in_one_type) if narrow else stmt


def same_size(a: Expr, b: Expr) -> bool:
    """Whether two extents are equal, whatever their types."""
    from ..equal import structural_equal

    return structural_equal(a, cast(a.dtype, b))


def _is_small(dom: Range) -> bool:
    ends = (dom.min, dom.extent)
    return all(isinstance(e, IntImm) and 0 <= e.value <= MOST for e in ends)


def _in_one_type(item: Any) -> Any:
    """``item``, whose children are in one type each, in one type itself."""
    if (
        isinstance(item, BinaryOp)
        and item.a.dtype is not item.b.dtype
        and {item.a.dtype, item.b.dtype} == {WIDE, NARROW}
    ):
        a, b = _narrowed(item.a), _narrowed(item.b)
        if a.dtype is not b.dtype:
            a, b = cast(str(WIDE), a), cast(str(WIDE), b)
        return item.replace(a=a, b=b)
    if isinstance(item, Cast) and item.value.dtype is item.dtype:
        return item.value
    if isinstance(item, (BufferLoad, BufferStore)):
        return item.replace(indices=tuple(map(_narrowed, item.indices)))
    if isinstance(item, Range):
        return Range(_narrowed(item.min), _narrowed(item.extent))
    if isinstance(item, For):
        return item.replace(min=_narrowed(item.min), extent=_narrowed(item.extent))
    if isinstance(item, BlockRealize):
        return item.replace(iter_values=tuple(map(_narrowed, item.iter_values)))
    return None


def _narrowed(e: Expr) -> Expr:
    """``e`` in int32, if it is a constant or an int32 value that was widened."""
    if isinstance(e, IntImm) and e.dtype is WIDE and abs(e.value) <= MOST:
        return const(e.value, NARROW)
    return e.value if isinstance(e, Cast) and e.dtype is WIDE and e.value.dtype is NARROW else e
