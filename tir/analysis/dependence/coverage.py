"""Whether everything that is read was written before."""

from __future__ import annotations

from ...buffer import Buffer
from ...function import PrimFunc
from ...poly import Names, NotAffine, Undecided, bounded
from ...stmt import BufferStore
from .access_relations import has_bits, is_exact, schedule_map, without_swizzles
from .relations import Context, StatementRelations, by_loops
from .statements import Access, Statement, statements_of
from .verdict import Violation, cannot_prove
from .witness import show_element


def check_initialized(func: PrimFunc, buffer: Buffer) -> Violation | None:
    """Whether every read of ``buffer`` is of an element some earlier instance wrote."""
    try:
        return _covered(func, buffer)
    except Undecided as error:
        return cannot_prove(error)


@bounded()
def _covered(func: PrimFunc, buffer: Buffer) -> Violation | None:
    """``check_initialized``. Raises ``Undecided``."""
    names = Names()
    sides = []
    units = [u for u in statements_of(func.body) if any(a.buffer.data is buffer.data for a in u.accesses)]
    units = without_swizzles(units)
    for access in (a for u in units for a in u.accesses):
        if access.buffer.data is buffer.data and has_bits(access):
            raise NotAffine(
                f"`{buffer.name}`",
                "its elements are swizzled, and not alike in all accesses; copy a buffer before its layout changes",
            )
    length = max((len(u.time) for u in units), default=0)
    for unit in units:
        side = StatementRelations(unit, names, fresh=True)
        side.before = schedule_map(unit, names, length, side.dims)
        if not side.before.is_single_valued():
            # each run has to find what it reads: they are told apart by the loops
            side = StatementRelations(by_loops(unit), names, fresh=True)
            side.on_loops = True
            side.before = schedule_map(side.unit, names, length, side.dims)
        side.touch(side.on_loops)
        if any(w.access.buffer is buffer and not is_exact(unit, w.access) for w in side.writes):
            return Violation(
                f"cannot prove that `{buffer.name}` is written before it is read: data decides where "
                f"`{unit.name}` writes", [], (unit.node,),
            )  # fmt: skip
        sides.append(side)
    context = Context(func, func.body, names)
    for t in sides:
        for b in t.reads:
            if b.access.buffer is not buffer:
                continue
            bare = b.map.domain_in(t.before.domain())
            for s in sides:
                for a in s.writes:
                    if a.access.buffer is buffer:
                        made = t.before.after(s.before).range_in(s.before.domain()).then(a.map)
                        bare = bare.subtract(made)
                        if s is t and _stores_first(s.unit, a.access, b.access):
                            bare = bare.subtract(a.map)
            bare = context.restrict(bare)
            if not bare.is_empty():
                at, element = bare.sample() or ([], [])
                read = f"{t.show(at)} reads {show_element(b.access, element)}, which nothing wrote before"
                return Violation(f"an element of `{buffer.name}` would be read without having been written",
                                 [read], (t.unit.node,))  # fmt: skip
    return None


def _stores_first(unit: Statement, store: Access, load: Access) -> bool:
    """Whether a run of ``unit`` has done all of ``store`` when it comes to ``load``."""
    together = bool(store.loops and load.loops) and store.loops[0][0] is load.loops[0][0]
    order = {id(access): n for n, access in enumerate(unit.accesses)}
    return isinstance(store.node, BufferStore) and not together and order[id(store)] < order[id(load)]
