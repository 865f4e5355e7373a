"""Refuses accesses that are provably out of bounds: compiled code would corrupt memory."""

from __future__ import annotations

from typing import Any

from tir.analysis.effects import PREFETCH, Effect, effects
from tir.arith.linear import linear
from tir.errors import BuildError
from tir.expr import Broadcast, BufferLoad, Expr, IntImm, Ramp, Var
from tir.function import IRModule, PrimFunc
from tir.stmt import Block, Stmt
from tir.visit import nodes_of, statements, walk

Bounds = dict[Var, tuple[int, int]]


def check_bounds(mod: IRModule) -> None:
    """Raise ``BuildError`` if an access is out of bounds in some iteration of its loops.

    Only provable errors are refused: unconditional accesses in loops of constant extent whose indices are affine in the
    loop variables. The reference executor and the simulator check every access at run time. A prefetch does not count
    as an access: it may be past the end.
    """
    for func in mod.functions.values():
        # whose memory is as large as they say; what else is declared may say anything
        sized = set(func.buffer_map.values())
        sized.update(b for block in statements(func.body) if isinstance(block, Block) for b in block.alloc_buffers)
        for effect in effects(func.body):
            if effect.buffer in sized and effect.kind != PREFETCH and not effect.guards:
                _check(func, effect)


def _check(func: PrimFunc, effect: Effect) -> None:
    loops = _constant(effect)
    if loops is None:
        return
    for axis, (index, size) in enumerate(zip(effect.indices or (), effect.buffer.shape)):
        for form in map(linear, _lanes(index) if isinstance(size, IntImm) else ()):
            terms, ends = form.coefficients() or {}, form.interval(loops)
            for value, last in () if ends is None else zip(ends, (0, 1)):
                if not 0 <= value < size.value:
                    at = {v: loops[v][last if c > 0 else 1 - last] for v, c in terms.items()}
                    _refuse(func, effect, axis, value, size.value, at)


def _lanes(index: Any) -> tuple[Expr, ...]:
    """The index, or the indices of the first and the last lane of a vector; empty for a region, and for a vector without a constant step."""
    if isinstance(index, Ramp):
        return index.base, index.base + index.stride * (index.lanes - 1)
    if isinstance(index, Broadcast):
        return (index.value,)
    return () if isinstance(index, tuple) or index.dtype.lanes > 1 or not index.dtype.is_int else (index,)


def _constant(effect: Effect) -> Bounds | None:
    """The first and last value of each loop; None if one may not run, or its trip count is unknown."""
    found: Bounds = {}
    for var, low, extent in effect.loops:
        if not isinstance(low, IntImm) or not isinstance(extent, IntImm) or extent.value <= 0:
            return None
        found[var] = (low.value, low.value + extent.value - 1)
    return found


def _refuse(func: PrimFunc, effect: Effect, axis: int, value: int, size: int, at: dict[Var, int]) -> None:
    from tir.render import short_text, to_lines

    node: Any = effect.node
    text = short_text(BufferLoad(node.buffer, node.indices))
    where = ", ".join(f"{v.name}={x}" for v, x in at.items())
    which = f"index {axis} is {value}" + (f" at ({where})" if where else "")
    head = f"{func.name}: `{text}` is out of bounds: {which}, and `{effect.buffer.name}` has {size} there"
    around = (s for s in walk(func.body) if isinstance(s, Stmt) and s.span and any(n is node for n in nodes_of(s)))
    line = [f"  {s.span.filename}:{s.span.line}" for s in around][-1:]
    raise BuildError("\n".join([head, *line, to_lines(func, underline=(node,))]))
