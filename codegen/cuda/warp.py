"""Warp memory in registers: possible if every lane accesses only its own elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tir.aliases import shares_memory
from tir.arith.linear import linear
from tir.expr import BufferLoad, Call, Expr, FloorMod, IntImm, Ramp, Var
from tir.stmt import Allocate, BufferStore
from tir.visit import walk

from .generator import Generator
from .memory import WARP, flat_index


def lanes_of_warp(g: Generator, s: Allocate, count: int) -> int:
    """The number n of consecutive elements per lane, if every access is proved to be to element
    ``fragment * 32 * n + lane * n + k`` with 0 <= k < n; else 0."""
    with g.analyzer.scope():
        g.analyzer.bind_under(s.body)
        return _each_lanes(g, s, count)


def _each_lanes(g: Generator, s: Allocate, count: int) -> int:
    """:func:`lanes_of_warp`, with the ranges of the loops inside of ``s`` known."""
    each = 0
    for index in _accesses(s.buffer_var, s.body, g):
        found = _lane(g, index)
        if found is None or (each and found[1] != each) or count % (WARP * found[1]):
            return 0
        lane, each = found
        if not g.analyzer.can_prove((index - lane * each) % (WARP * each) < each):
            return 0
    return each


def _accesses(data: Var, body: Any, g: Generator) -> Iterator[Expr]:
    """The flat index of every access to ``data``; for an operator, the offset argument after the pointer."""
    for node in walk(body):
        if isinstance(node, (BufferLoad, BufferStore)) and shares_memory(node, {data}):
            index = flat_index(node.buffer, node.indices)
            first = index.base if isinstance(index, Ramp) else index
            yield first if node.buffer.elem_offset is None else first + node.buffer.elem_offset
        elif isinstance(node, Call):
            for k, arg in enumerate(node.args):
                if arg is data:
                    after = node.args[k + 1] if k + 1 < len(node.args) else IntImm(0)
                    yield after


def _lane(g: Generator, index: Expr) -> tuple[Expr, int] | None:
    """The lane number in ``index`` and its coefficient; None unless there is exactly one, with a positive one."""
    found = [(f[0], c) for f, c in linear(index).items() if len(f) == 1 and _is_lane(g, f[0])]
    return found[0] if len(found) == 1 and found[0][1] > 0 else None


def _is_lane(g: Generator, e: Expr) -> bool:
    """Whether ``e`` is ``threadIdx.x`` of at most 32 threads, or ``threadIdx.x % 32``."""
    if isinstance(e, FloorMod):
        return isinstance(e.b, IntImm) and e.b.value == WARP and e.a in g.lane_vars
    return e in g.lane_vars and g.analyzer.bound(e)[1] in range(WARP)
