"""Legalizes vectorized loops to the widths that a GPU thread can access at once: up to 16 bytes, aligned."""

from __future__ import annotations

from typing import Any

from ..arith import Analyzer
from ..arith.linear import linear
from ..expr import BufferLoad, IntImm, Var, const, is_const
from ..function import PrimFunc
from ..levels import is_private
from ..node import frozendict
from ..stmt import SERIAL, UNROLLED, VECTORIZED, BufferStore, For, Stmt
from ..visit import accesses, rewrite_statements, substitute, uses_var
from .passes import func_pass
from .thread_axes import flat
from .vectorize_loop import REASON

BYTES = 16


def _obstacle(analyzer: Analyzer, a: BufferLoad | BufferStore, loop: For, lanes: int) -> str:
    """Why ``lanes`` consecutive iterations cannot be one access; empty if they can."""
    if is_private(a.buffer.scope) or not any(uses_var(i, loop.loop_var) for i in a.indices):
        return ""
    if len(a.indices) != 1:
        return ""
    index: Any = analyzer.simplify(a.indices[0])
    form = linear(index)
    step = form.terms.get(id(loop.loop_var))
    alone = step is not None and sum(any(uses_var(f, loop.loop_var) for f in fs) for fs, _ in form.items()) == 1
    if not alone or step is None or step[1] != 1:
        return ""  # no neighbours in memory: lanes are moved one by one
    size = lanes * a.buffer.dtype.bytes
    if size > BYTES or size & (size - 1):
        return f"{lanes} x {a.buffer.dtype} of {a.buffer.name} are no power of two up to {BYTES} bytes"
    start = substitute(index, {loop.loop_var: loop.min})
    if a.buffer.elem_offset is not None:
        start = start + a.buffer.elem_offset
    factor, rest = analyzer.modular(start)
    if factor % lanes or rest % lanes:
        return f"the address of {a.buffer.name} is not known to be a multiple of {size} bytes"
    return ""


def _split(loop: For, lanes: int) -> Stmt:
    extent = loop.extent.value  # type: ignore[attr-defined]
    dtype = loop.loop_var.dtype
    inner = Var(loop.loop_var.name, dtype)
    outer = Var(f"{loop.loop_var.name}_0", dtype)
    value = outer * lanes + inner if is_const(loop.min, 0) else loop.min + outer * lanes + inner
    body = substitute(loop.body, {loop.loop_var: value})
    vector = For(inner, const(0, dtype), const(lanes, dtype), VECTORIZED, body, span=loop.span)
    return For(outer, const(0, dtype), const(extent // lanes, dtype), UNROLLED, vector, span=loop.span)


class _Legalizer:
    def __init__(self, body: Stmt) -> None:
        self.analyzer = Analyzer()
        self.analyzer.bind_under(body)

    def visit(self, s: Any) -> Any:
        wide = isinstance(s, For) and s.kind == VECTORIZED and isinstance(s.extent, IntImm) and s.extent.value > 1
        return self.loop(s, s.extent.value) if wide else None

    def loop(self, s: For, extent: int) -> Stmt:
        why = ""
        touched = list(accesses(s.body))
        for lanes in (n for n in range(min(extent, 128), 1, -1) if extent % n == 0):
            found = next((w for a in touched if (w := _obstacle(self.analyzer, a, s, lanes))), "")
            if not found:
                return s if lanes == extent else _split(s, lanes)
            why = found
        return s.replace(kind=SERIAL if extent > BYTES else UNROLLED, annotations=frozendict({REASON: why}))


@func_pass
def legalize_vector_width(func: PrimFunc) -> PrimFunc:
    """A vectorized loop becomes vectors of the largest width that its accesses of global and shared memory allow.

    A vector is at most 16 bytes, a power of two, at an address that is a multiple of its size. If that cannot be
    proved, the loop stays scalar, with the reason in its annotation ``scalar_because``. Registers have no such rule.
    Expects flat buffers.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in T.vectorized(8):
    ...         B[i] = A[i]
    ... ''')
    >>> tir.transform.legalize_vector_width(f).body
    for i_0 in T.unroll(2):
        for i in T.vectorized(4):
            B[i_0 * 4 + i] = A[i_0 * 4 + i]
    """
    return func.with_body(flat(rewrite_statements(func.body, _Legalizer(func.body).visit)))
