"""Whether each iteration of a loop writes what it reads of a buffer, by exact sets.

Where the shapes of :mod:`tir.analysis.privatization` see nothing (a ragged last tile, guards that cut the box that a block
fills), sets of elements still decide.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...buffer import Buffer
from ...expr import Var
from ...poly import Formula, Names, Relation, Undecided, bounded
from ...stmt import For, While
from ...visit import walk
from .access_relations import access_map, has_bits, is_exact, without_swizzles
from .statements import Access, Statement, statements_of


def initialized_before_read(buffer: Buffer, loops: Sequence[For]) -> bool:
    """Whether every read of ``buffer`` in an iteration of the innermost of nested ``loops`` is of an element that this
    iteration wrote before. False means "not shown"."""
    body = loops[-1].body
    if any(isinstance(n, While) for n in walk(body)):
        return False  # how often it runs is not known
    units = [u for u in statements_of(body, blocks=False) if any(a.buffer.data is buffer.data for a in u.accesses)]
    units = without_swizzles(units)
    if any(a.buffer.data is buffer.data and has_bits(a) for u in units for a in u.accesses):
        return False  # sets with so many quotients are not subtracted in bounded time
    try:
        with bounded():
            return _covered(buffer, loops, units)
    except Undecided:
        return False


def _covered(buffer: Buffer, loops: Sequence[For], units: Sequence[Statement]) -> bool:
    """``initialized_before_read`` of the body's ``units``. Raises ``NotAffine``."""
    length = max((len(u.time) for u in units), default=0)
    names = Names()
    around = Formula(names)
    for loop in loops:
        around.within(loop.loop_var, loop.min, loop.extent)
    known = around.set([]).parameters()
    writes = [(_times(u, names, length), access_map(u, a, names, _dims(u, names), True)) for u, a in _writes(units, buffer)]  # fmt: skip
    for unit in units:
        when = _times(unit, names, length)
        for access in unit.reads():
            if access.buffer.data is not buffer.data:
                continue
            if access.buffer is not buffer:
                return False
            bare = access_map(unit, access, names, _dims(unit, names), True).where(known)
            for moment, elements in writes:
                bare = bare.subtract(when.after(moment).then(elements))
            if not bare.is_empty():
                return False
    return True


def _writes(units: Sequence[Statement], buffer: Buffer) -> list[tuple[Statement, Access]]:
    """The stores to ``buffer`` of which it is known exactly when they run and where they go."""
    return [
        (u, a) for u in units for a in u.writes()
        if a.buffer is buffer and is_exact(u, a) and not any(isinstance(i, tuple) for i in a.indices or ())
    ]  # fmt: skip


def _dims(unit: Statement, names: Names) -> list[str]:
    return [names.of(v) for v in unit.coords]


def _times(unit: Statement, names: Names, length: int) -> Relation:
    """From runs of ``unit``, told apart by its loops, to the moments of them."""
    formula = Formula(names)
    moments = [formula.var(t) if isinstance(t, Var) else str(t) for t in unit.time]
    return formula.map(_dims(unit, names), [*moments, *["0"] * (length - len(moments))])
