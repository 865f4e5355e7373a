"""Loops in LLVM's rotated form: a guard before the loop, the counter a phi, the condition in the latch."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tir.arith.linear import is_index
from tir.expr import BufferLoad, Call, Cast, Expr, FloorMod, IntImm, Let, Mod, Var
from tir.stmt import BufferStore, For, LetStmt, Stmt
from tir.visit import Somewhere, nodes_of, statements, uses_var, walk

from ..c_names import identifier
from .generator import Generator
from .invariants import reciprocal
from .text import FunctionText
from .types import memory_element, value_type

UNROLL, NO_VECTORS = '!"llvm.loop.unroll.full"', '!"llvm.loop.vectorize.enable", i1 false'
ROLLED = '!"llvm.loop.unroll.disable"'
LONG = 100  # lines of a body: copies of it hide no more latency, and LLVM takes half as long again for them


def counted_loop(g: Generator, s: For, first: str, end: str | None, hints: list[str]) -> None:
    """The loop over [first, end); ``end`` None means first + extent."""
    out, type_ = g.out, value_type(s.loop_var.dtype)
    fits = is_index(
        s.loop_var.dtype
    )  # the end of another type may be too large for it, or have the sign bit: 0 for one of 8 bits
    known = end is None and isinstance(s.extent, IntImm)
    if known and s.extent.value <= 0:  # type: ignore[attr-defined]
        return
    if end is None:
        extent = g.plain(s.extent)
        if first.startswith("%") or extent.startswith("%"):
            end = extent if first == "0" else out.value(f"add {'nsw ' * fits}{type_} {first}, {extent}")
        else:
            end = str(int(first) + int(extent))
        runs = f"{'sgt' if s.extent.dtype.code == 'int' else 'ne'} {type_} {extent}, 0"
    else:
        runs = f"ne {type_} {first}, {end}"
    if fits:
        runs = f"slt {type_} {first}, {end}"
    body, done = out.label(f"for.{identifier(s.loop_var.name)}"), out.label("end")
    if not known:
        out.branch(out.value(f"icmp {runs}"), body, done)
        # a preheader, so that the loop has one entering edge
        out.lines[-1] = out.lines[-1].replace(f"label %{body},", f"label %{body}.in,")
        out.start(f"{body}.in")
    for division in g.hoisted.divisions.get(s, ()):
        g.invariant[division] = g.ahead(division)
    for divisor in g.hoisted.divisors.get(s, ()):
        g.reciprocals[divisor] = reciprocal(g, divisor)
    entry, before, so_far = out.placeholder(), out.block, _counts(out)
    out.start(body)
    place, var = out.placeholder(), out.fresh()
    g.env[s.loop_var] = var
    with g.analyzer.scope():
        g.analyzer.bind(s.loop_var, s.domain, s.body)
        g.stmt(s.body)
    conditions, divisions, truncations = (now > old for now, old in zip(_counts(out), so_far))
    # LLVM 22 computes a conditional uniform division in the first lane alone, under that lane's condition, and broadcasts
    # it, which is wrong if another lane needs it. It also makes divisions conditional by sinking them to their uses.
    if conditions and divisions or _indexes_by_last_bits(s):
        hints = [*hints, NO_VECTORS]
    if not hints and len(out.lines) - place > LONG:
        hints = [ROLLED]
    if conditions and truncations and _stores_narrow(s):
        first, end = _hidden(out, entry, type_, first, end)
    following = out.value(f"add {'nsw ' * fits}{type_} {var}, 1")
    more = out.value(f"icmp {'slt' if fits else 'ne'} {type_} {following}, {end}")
    latch = out.block
    out.repeat(more, body, done, hints)
    for division in g.hoisted.divisions.get(s, ()):
        g.invariant.pop(division, None)
    for divisor in g.hoisted.divisors.get(s, ()):
        g.reciprocals.pop(divisor, None)
    out.fill(place, f"{var} = phi {type_} [ {first}, %{before} ], [ {following}, %{latch} ]")
    out.start(done)


def _stores_narrow(s: For) -> bool:
    """Whether a loop stores integers of fewer than 64 bits, or other numbers that are held in them."""
    stored = (memory_element(n.buffer.dtype) for n in statements(s.body) if isinstance(n, BufferStore))
    return any(element in ("i8", "i16", "i32") for element in stored)


def _counts(out: FunctionText) -> tuple[int, int, int]:
    return out.conditions, out.divisions, out.truncations


def _hidden(out: FunctionText, entry: int, type_: str, first: str, end: str) -> tuple[str, str]:
    """The ends of a loop, the first not known to LLVM; they are computed at the line ``entry`` before the loop.

    A condition on the loop's variable is then not known either. Where LLVM 22 makes vectors of the loop, the lanes in which it
    holds are the mask of a store, and if all masks are constants and one has a single lane, the x86 back end for AVX-512
    replaces the store of narrowed integers by one of the wide integer in that lane: it overwrites the elements behind.
    """
    if first.startswith("%"):
        return first, end
    start, lines = out.fresh(), []
    lines.append(f"{start} = {out.hidden(type_, first)}")
    if not end.startswith("%"):
        lines.append(f"{(limit := out.fresh())} = add nsw {type_} {start}, {int(end) - int(first)}")
        end = limit
    out.fill(entry, "\n  ".join(lines))
    return start, end


def _indexes_by_last_bits(s: For) -> bool:
    """Whether the last bits of a loop's variable, such as ``f % 4``, are part of an index.

    LLVM 22's loop vectorizer takes them for a counter that never wraps, without a check that it does not: it loads the
    elements of a whole vector from the first one on.
    """
    if not _has_last_bits(s.body):
        return False
    moving, wrapping = {s.loop_var}, set[Var]()

    def concerned(n: Any) -> bool:
        return bool(wrapping) or not isinstance(n, Stmt) or _has_last_bits(n)

    for n in walk(s.body, concerned):
        if isinstance(n, For) and (uses_var(n.min, moving) or uses_var(n.extent, moving)):
            moving.add(n.loop_var)
        elif isinstance(n, (LetStmt, Let)) and uses_var(n.value, moving):
            moving.add(n.var)
            if _wraps(n.value, moving, wrapping):
                wrapping.add(n.var)
        elif isinstance(n, (BufferLoad, BufferStore)) and any(_wraps(i, moving, wrapping) for i in n.indices):
            return True
    return False


def _wraps(e: Expr, moving: Collection[Var], wrapping: Collection[Var]) -> bool:
    return uses_var(e, wrapping) or any(_is_last_bits(n) and uses_var(n, moving) for n in nodes_of(e))


def _is_last_bits(n: Any) -> bool:
    if isinstance(n, (FloorMod, Mod)):
        by = n.b.value if isinstance(n.b, IntImm) else 0
        return by > 1 and not by & (by - 1)
    if isinstance(n, Cast):
        return n.dtype.is_int and n.value.dtype.is_int and n.dtype.bits < n.value.dtype.bits
    return isinstance(n, Call) and n.op == "bitwise_and"


_has_last_bits = Somewhere(_is_last_bits, FloorMod, Mod, Cast, Call)
