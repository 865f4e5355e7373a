"""The must-write relation: which elements of a buffer an access surely writes, and whether what is read was written before.

An access fills a box if an iterator map shows that its indices take every element of it. No sets are built: the answer is
"shown" or "not shown".
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from ...arith import Analyzer
from ...arith.itermap import covered_box
from ...arith.linear import key
from ...arith.regions import encloses, relax
from ...arith.swizzle import Unswizzled, unswizzled
from ...buffer import Buffer, Range
from ...expr import Call, Expr, Var, all_of, conjuncts, const, is_const
from ...node import MemoAmong
from ...stmt import BlockRealize, For, Stmt
from ...visit import has_load, nodes_of, uses_var, vars_in
from ..contents import members_of
from ..effects import Effect, effects
from ..reduction_init import runs_first

Box = tuple[Range, ...]
Filled = tuple[Box, tuple[Expr, ...]]  # a box all of whose elements are written, where all of the conditions hold


def reads_after_writes(body: Any, buffer: Buffer, loops: Sequence[For]) -> bool:
    """Whether ``body``, inside of nested ``loops``, reads of ``buffer`` only what it has written before.

    It, or a loop in it, is a sequence, and what a later part reads lies in a box that an earlier part fills completely. Where
    no iteration of ``loops`` writes at all, none reads what an earlier one has stored.
    """
    analyzer = Analyzer()
    for loop in loops:
        analyzer.bind(loop.loop_var, loop.domain, loop)
    given = _of_all_writes(body, buffer, loops) if loops else frozenset()
    return _writes_first(_inside(body), buffer, loops, len(loops), (), analyzer, given)


def _of_all_writes(body: Any, buffer: Buffer, loops: Sequence[For]) -> frozenset[Any]:
    """The conditions under which all writes are that no loop changes, also that loops which only repeat them are not empty."""
    around = [loop.loop_var for loop in loops]
    writes = [
        {
            key(c)
            for c in (*_guards(effect), *_entered(effect, around))
            if not has_load(c) and not uses_var(c, _loops_of(effect, around))
        }
        for effect in effects(body).of(buffer)
        if effect.write
    ]
    return frozenset(set.intersection(*writes)) if writes else frozenset()


def _inside(body: Any) -> Any:
    """The body of a block that only allocates memory, as the root of a function does; anything else as it is."""
    if not isinstance(body, BlockRealize) or not is_const(body.predicate, 1):
        return body
    block = body.block
    return body if block.iter_vars or block.match_buffers or block.init is not None else block.body


def _writes_first(
    body: Stmt,
    buffer: Buffer,
    loops: Sequence[For],
    outer: int,
    before: Sequence[_Access],
    analyzer: Analyzer,
    given: frozenset[Any],
) -> bool:
    """Whether ``body``, in ``loops`` (of which the first ``outer`` are those in question), reads only what its own or
    earlier (``before``) writes have filled, where the conditions ``given`` hold."""
    written = list(before)
    for part in members_of(body):
        accesses = _known_accesses(part, buffer, loops, outer)
        reads = (a for a in accesses if not a.is_write)
        if not all(a.own or _within(analyzer, a, written, given) for a in reads):
            if not isinstance(part, For):
                return False
            analyzer.bind(part.loop_var, part.domain, part)
            if not _writes_first(part.body, buffer, [*loops, part], outer, written, analyzer, given):
                return False
        written += [a for a in accesses if a.is_write]
    return True


def _within(
    analyzer: Analyzer, access: _Access, written: Sequence[_Access], given: frozenset[Any] = frozenset()
) -> bool:
    box = access.box(analyzer) if written else None
    if box is None:
        return False
    given |= _conjuncts(access.condition)
    for write in reversed(written):  # what was written last is most likely what is read
        if write not in access.inside:
            filled = write.filled(analyzer)
            inside = filled is not None and encloses(filled[0], box, analyzer)
            access.inside[write] = filled[1] if filled is not None and inside else None
        conditions = access.inside[write]
        missing = None if conditions is None else [c for c in conditions if key(c) not in given]
        if missing is not None and (not missing or access.implies(missing, analyzer)):
            return True
    return False


_KNOWN: MemoAmong[list[_Access]] = MemoAmong()


def _known_accesses(part: Stmt, buffer: Buffer, loops: Sequence[For], outer: int) -> list[_Access]:
    """The accesses of ``buffer`` in ``part``, which is inside ``loops``; cached, since steps keep most parts."""
    about = (outer > 0, *(x for loop in loops for x in (loop.loop_var, loop.min, loop.extent)))

    around = [loop.loop_var for loop in loops]
    return _KNOWN.found(part, (buffer, *about), lambda: list(_accesses(part, buffer, around, outer)))


def _conjuncts(condition: Expr) -> frozenset[Any]:
    """The conjuncts of a condition, comparable by value."""
    return frozenset(key(c) for c in conjuncts(condition))


class _Access:
    """One load or store, the loops around it (inside the loop in question), and its guard."""

    def __init__(
        self, indices: tuple[Expr, ...] | None, loops: dict[Var, Range], condition: Expr, is_write: bool, own: bool
    ):
        self.indices = indices  # None: any element
        self.loops = loops
        self.condition = condition
        self.is_write = is_write
        self.own = own  # a read of the element that the same block's init has written
        self._filled: Any = False  # not computed yet
        self._box: Any = False
        # the conditions under which what it touches lies in what another access fills
        self.inside: dict[_Access, tuple[Expr, ...] | None] = {}

    def implies(self, conditions: Sequence[Expr], analyzer: Analyzer) -> bool:
        """Whether it is only made where all of the conditions hold, which have no loads."""
        if is_const(self.condition, 1):
            return False
        with analyzer.scope():
            for var, dom in self.loops.items():
                analyzer.bind(var, dom)
            analyzer.assume(analyzer.simplify(self.condition))
            return all(map(analyzer.can_prove, conditions))

    def box(self, analyzer: Analyzer) -> Box | None:
        if self._box is False:
            ranges = [Range(i, const(1, i.dtype)) for i in self.indices or ()]
            self._box = None if self.indices is None else relax(ranges, self.loops, self.condition, analyzer)
        return self._box

    def filled(self, analyzer: Analyzer) -> Filled | None:
        """The box written, if every element of it is, and under which conditions."""
        if self._filled is False:
            self._filled = self._find_filled(analyzer)
        return self._filled

    def _find_filled(self, analyzer: Analyzer) -> Filled | None:
        box = self.box(analyzer)
        moving = {n: i for n, i in enumerate(self.indices or ()) if self._loops_in(i)}
        inner = {v: self.loops[v] for i in moving.values() for v in self._loops_in(i)}
        if box is None or not self._is_sure_to_run(inner, analyzer):
            return None
        conditions = conjuncts(self.condition)
        guards = [c for c in conditions if self._loops_in(c)]
        if any(v not in inner for c in guards for v in self._loops_in(c)):
            return None  # it leaves out iterations, and with them perhaps elements
        taken = self._taken(moving, inner, guards, analyzer) if moving else {}
        if taken is None:
            return None
        filled = tuple(taken.get(n, axis) for n, axis in enumerate(box))
        return filled, tuple(c for c in conditions if all(c is not g for g in guards))

    def _is_sure_to_run(self, moving: Container[Var], analyzer: Analyzer) -> bool:
        """Whether it runs in each iteration of its loops ``moving``, if its condition holds: no other one is empty. Data that
        decides it may have changed by the time of the read."""
        bounds = [e for r in self.loops.values() for e in (r.min, r.extent)]
        if has_load(self.condition, *bounds):
            return False
        with analyzer.scope():
            for var, dom in self.loops.items():
                if var not in moving and not analyzer.can_prove(dom.extent > 0):
                    return False
                analyzer.bind(var, dom)
        return True

    def _loops_in(self, e: Expr) -> set[Var]:
        return vars_in(e) & self.loops.keys()

    def _taken(
        self, moving: Mapping[int, Expr], loops: Mapping[Var, Range], guards: Sequence[Expr], analyzer: Analyzer
    ) -> dict[int, Range] | None:
        """What the indices ``moving``, by their axes, take in all iterations of ``loops`` where ``guards`` hold: each element of
        a box; None if that is not shown."""
        plain = self._unswizzled(analyzer)
        found = covered_box([(plain.indices if plain else moving)[n] for n in moving], loops, all_of(guards))
        if found is None:
            return None
        taken = dict(zip(moving, found))
        if plain is not None and plain.axis in taken:
            # where elements are exchanged within whole runs, all of them are written if they were before
            run = taken[plain.axis]
            if guards or not all(analyzer.can_prove_equal(e % plain.period, 0) for e in (run.min, run.extent)):
                return None
        return taken

    def _unswizzled(self, analyzer: Analyzer) -> Unswizzled | None:
        if not any(isinstance(n, Call) for i in self.indices or () for n in nodes_of(i)):
            return None
        with analyzer.scope():
            for var, dom in self.loops.items():
                analyzer.bind(var, dom)
            return unswizzled(self.indices or (), analyzer)


def _accesses(root: Stmt, buffer: Buffer, around: Sequence[Var], outer: int) -> Iterator[_Access]:
    """Accesses of ``buffer`` under ``root`` in program order; a use of its pointer reads any element.

    ``around`` are the variables of the loops outside: where they step a reduction, init runs in their first iterations
    only. An init counts as a write of every result where the first instance of each runs it, else not at all.
    """
    inits: list[Effect] = []
    for effect in effects(root).of(buffer):
        if effect.write and effect.first is not None:
            if any(uses_var(c, around) for c in effect.first) or not runs_first(effect):
                continue
            inits.append(effect)
        inner = {v for v, _, extent in effect.loops if not (outer and _repeats(effect, v, extent, around))}
        conditions = [*_guards(effect), *(_entered(effect, around) if outer else ())]
        yield _access(effect, buffer, inner, conditions, inits)


def _guards(effect: Effect) -> list[Expr]:
    """The conditions on an effect; on an init, those of the first iterations."""
    return [c for c in effect.guards if not any(c is d for d in effect.first or ())]


def _entered(effect: Effect, around: Sequence[Var]) -> list[Expr]:
    """That loops which only repeat an effect, in the loops ``around``, have iterations."""
    return [n > 0 for v, _, n in effect.loops if _repeats(effect, v, n, around)]


def _loops_of(effect: Effect, around: Sequence[Var]) -> set[Var]:
    return {*around, *(v for v, _, _ in effect.loops)}


def _access(
    effect: Effect, buffer: Buffer, inner: Container[Var], conditions: Sequence[Expr], inits: Sequence[Effect] = ()
) -> _Access:
    """An effect under ``conditions``, before which ``inits`` may have run, as an access in those of the loops around it that are
    among ``inner``."""
    own = effect.first is None and not effect.write and any(_has_started(init, effect) for init in inits)
    condition = all_of(conditions)
    indices, loops = effect.elements() if effect.buffer is buffer else (None, effect.loops)
    left = {v for v, _, _ in effect.loops if v not in inner}
    return _Access(indices, {v: Range(low, n) for v, low, n in loops if v not in left}, condition, effect.write, own)


def _repeats(effect: Effect, var: Var, extent: Expr, around: Sequence[Var]) -> bool:
    """Whether a loop only repeats an access, in all iterations of the loops ``around`` or in none."""
    return not (effect.uses((var,)) or has_load(extent) or uses_var(extent, _loops_of(effect, around)))


def _has_started(init: Effect, read: Effect) -> bool:
    """Whether ``init`` has stored what ``read`` reads, in the same iteration of the loops that both are in or an earlier one."""
    if init.block is read.block and init.indices is not None and _index_key(init) == _index_key(read):
        return True
    return fills(init, read)


def fills(write: Effect, read: Effect) -> bool:
    """Whether ``write`` stores all that ``read`` reads in the same iteration of the loops that both are in, and as much in
    each."""
    shared = [a for a, b in zip(write.loops, read.loops) if a[0] is b[0]]
    around = {var: Range(low, extent) for var, low, extent in shared}
    if any(uses_var(e, around) for _, low, extent in write.loops[len(shared) :] for e in (low, extent)):
        return False
    store, load = (
        _access(e, write.buffer, {v for v, _, _ in e.loops[len(shared) :]}, _guards(e)) for e in (write, read)
    )
    return _within(Analyzer(around), load, [store])


def _index_key(effect: Effect) -> tuple[Any, ...]:
    return tuple(tuple(map(key, i)) if isinstance(i, tuple) else key(i) for i in effect.indices or ())
