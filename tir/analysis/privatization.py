"""Privatization: whether each iteration of a loop could have its own copy of a buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..aliases import Views, memory_of, shares_memory, sharing, source_of, views_in
from ..arith import Analyzer
from ..arith.itermap import covered_box
from ..arith.linear import key
from ..arith.regions import encloses, relax
from ..arith.swizzle import Unswizzled, unswizzled
from ..buffer import Buffer, IterVar, Range
from ..expr import BufferLoad, Call, Expr, Var, all_of, conjuncts, const
from ..function import PrimFunc
from ..levels import ends_with_launch, is_private, is_shared, is_thread_axis
from ..node import EMPTY, MemoAmong
from ..stmt import Block, BlockRealize, BufferStore, For, SeqStmt, Stmt
from ..visit import contains, free_vars, has_load, nodes_of, uses_var, vars_in, walk
from .contents import path_to
from .dependence.initialization import initialized_before_read
from .effects import Effect, effects
from .evaluation import is_steered_by_memory
from .reduction_init import runs_first
from .users import used_memory

Box = tuple[Range, ...]
Filled = tuple[Box, frozenset[Any]]  # a box all of whose elements are written, where all of the conditions hold


def is_privatizable(buffer: Buffer, loops: Sequence[For]) -> bool:
    """Whether each iteration of the innermost of nested ``loops`` initializes what it reads of ``buffer``.

    First a syntactic test: the loop's body, or a loop in it, is a sequence, and what a later part reads lies in a box
    that an earlier part fills completely. Otherwise exact sets decide. False means "not shown".
    """
    analyzer = Analyzer()
    for loop in loops:
        analyzer.bind(loop.loop_var, loop.domain, loop)
    return _writes_first(buffer, loops, (), analyzer) or initialized_before_read(buffer, loops)


def _writes_first(buffer: Buffer, loops: Sequence[For], before: Sequence[_Access], analyzer: Analyzer) -> bool:
    """Whether the body of the innermost loop reads only what its own or earlier (``before``) writes have filled."""
    body: Stmt = loops[-1].body
    written = list(before)
    for part in body.stmts if isinstance(body, SeqStmt) else (body,):
        accesses = _known_accesses(part, buffer, loops)
        reads = (a for a in accesses if not a.is_write)
        if not all(a.own or _within(analyzer, a, written) for a in reads):
            if not isinstance(part, For):
                return False
            analyzer.bind(part.loop_var, part.domain, part)
            if not _writes_first(buffer, [*loops, part], written, analyzer):
                return False
        written += [a for a in accesses if a.is_write]
    return True


def _within(analyzer: Analyzer, access: _Access, written: Sequence[_Access]) -> bool:
    box = access.box(analyzer) if written else None
    if box is None:
        return False
    given = _conjuncts(access.condition)
    for write in reversed(written):  # what was written last is most likely what is read
        found = access.inside.get(write)
        if found is None:
            filled = write.filled(analyzer)
            found = filled is not None and filled[1] <= given and encloses(filled[0], box, analyzer)
            access.inside[write] = found
        if found:
            return True
    return False


_KNOWN: MemoAmong[list[_Access]] = MemoAmong()


def _known_accesses(part: Stmt, buffer: Buffer, loops: Sequence[For]) -> list[_Access]:
    """The accesses of ``buffer`` in ``part``, which is inside ``loops``; cached, since steps keep most parts."""
    about = tuple(x for loop in loops for x in (loop.loop_var, loop.min, loop.extent))

    def find() -> list[_Access]:
        found = _accesses(part, buffer, [loop.loop_var for loop in loops])
        if any(map(has_load, about)):  # what the loops' bounds are changes in them
            return list(found)
        return [_ACCESSES.found(loops[-1].loop_var, (buffer, *about), lambda a=a: a, a.key()) for a in found]

    return _KNOWN.found(part, (buffer, *about), find)


_ACCESSES: MemoAmong[_Access] = MemoAmong()  # the first of equal ones in the same loops, with what is known of it


def _conjuncts(condition: Expr) -> frozenset[Any]:
    """The conjuncts of a condition, comparable by value."""
    return frozenset(key(c) for c in conjuncts(condition))


def could_be_private(func: PrimFunc, loop: For, memory: Var) -> bool:
    """Whether the buffer with the pointer ``memory`` is allocated around ``loop`` and privatizable for it.

    All its uses are in the loop, and an iteration reads only what it has written. Threads of a block share shared
    memory: there they must write the same values (:func:`is_redundant_write`). Global memory cannot be private to a
    thread.
    """
    crossed: list[For] = [loop]
    for item in reversed(path_to(func.body, loop)[:-1]):
        if isinstance(item, For):
            crossed.insert(0, item)
        elif isinstance(item, BlockRealize):
            buffer = next(iter(sharing(item.block.alloc_buffers, {memory})), None)
            if buffer is not None:
                if not ends_with_launch(buffer.scope) and any(n.thread for n in crossed):
                    return False
                common = is_thread_axis(loop.thread) and is_shared(buffer.scope)
                if common and not is_redundant_write(loop, buffer):
                    return False
                return memory not in used_memory(func.body, {loop}) and is_privatizable(buffer, crossed)
    return False


def views_under(root: Any) -> Views:
    """The views that the blocks under ``root`` make, outermost first."""
    return views_in(n for n in nodes_of(root) if type(n) is Block)


def is_redundant_write(loop: For, buffer: Buffer) -> bool:
    """Whether iterations of ``loop`` that write the same element of ``buffer`` write the same value: one block writes
    it, each element by one instance, from values that are uniform over threads."""
    makers = []
    if sharing([view.source for view in views_under(loop).values()], buffer):
        return False  # what is written through a view is not looked for
    stack: list[Any] = [loop]
    while stack:
        item = stack.pop()
        if isinstance(item, BlockRealize) and not contains(item.block.body, BlockRealize):
            if sharing((n for n in walk(item.block) if isinstance(n, BufferStore)), buffer):
                if is_steered_by_memory(item):
                    return False
                makers.append(item.block)
            continue
        if isinstance(item, BufferStore) and shares_memory(item, buffer):
            return False
        stack += [c for c in item.children() if isinstance(c, (Stmt, Block))]
    return len(makers) == 1 and is_uniform(makers[0], loop)


def is_uniform(block: Block, loop: For, views: Views = EMPTY) -> bool:
    """Whether what ``block`` stores is a function of its iterators, each element stored by one instance: running it
    again in another iteration of ``loop`` stores the same values. ``views``: those of the program, see
    :func:`views_under`."""
    stores = [n for n in walk(block) if isinstance(n, BufferStore)]
    spatial = {v.var for v in block.iter_vars}
    if block.init is not None or any(v.iter_type != "spatial" for v in block.iter_vars):
        return False
    if not all(spatial <= {i for i in s.indices if isinstance(i, Var)} for s in stores):
        return False
    made = memory_of(source_of(s.buffer, views) for s in stores)
    loads = [n.buffer for n in walk(block) if isinstance(n, BufferLoad)]
    if any(shares_memory(source_of(b, views), made) or is_private(b.scope) for b in loads):
        return False
    inside = {n.loop_var for n in nodes_of(loop) if isinstance(n, For)}
    inside |= {n.var for n in nodes_of(loop) if isinstance(n, IterVar)} - spatial
    for pointer, view in views_under(loop).items():  # they show what iterators around the block say
        if uses_var(view.source, inside) or shares_memory(view.source, inside):
            inside.add(pointer)
    return inside.isdisjoint(free_vars(block))


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
        self._filled: Any = False  # not asked yet
        self._box: Any = False
        self.inside: dict[_Access, bool] = {}  # whether what it touches lies in what another access fills

    def key(self) -> Any:
        """Equal for accesses of which everything else is equal too."""
        loops = tuple((id(v), key(r.min), key(r.extent)) for v, r in self.loops.items())
        indices = None if self.indices is None else tuple(map(key, self.indices))
        return indices, loops, key(self.condition), self.is_write, self.own

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
        if box is None or has_load(self.condition):
            return None  # what it loads may have changed by the time of the read
        if any(has_load(e) for r in self.loops.values() for e in (r.min, r.extent)):
            return None  # how often it runs, if at all, is up to data
        moving = {n: i for n, i in enumerate(self.indices or ()) if any(v in self.loops for v in vars_in(i))}
        inner = {v: self.loops[v] for i in moving.values() for v in vars_in(i) if v in self.loops}
        guards = [c for c in conjuncts(self.condition) if uses_var(c, list(self.loops))]
        if any(v in self.loops and v not in inner for c in guards for v in vars_in(c)):
            return None  # it leaves out iterations, and with them perhaps elements
        if moving:
            plain = self._unswizzled(analyzer)
            indices = list(moving.values()) if plain is None else [plain.indices[n] for n in moving]
            found = covered_box(indices, inner, all_of(guards))
            if found is None:
                return None
            taken = dict(zip(moving, found))
            if plain is not None and plain.axis in taken:
                # where elements are exchanged within whole runs, all of them are written if they were before
                run = taken[plain.axis]
                if guards or not all(analyzer.can_prove_equal(e % plain.period, 0) for e in (run.min, run.extent)):
                    return None
            box = tuple(taken.get(n, axis) for n, axis in enumerate(box))
        return box, frozenset(key(c) for c in conjuncts(self.condition) if all(c is not g for g in guards))

    def _unswizzled(self, analyzer: Analyzer) -> Unswizzled | None:
        if not any(isinstance(n, Call) for i in self.indices or () for n in nodes_of(i)):
            return None
        with analyzer.scope():
            for var, dom in self.loops.items():
                analyzer.bind(var, dom)
            return unswizzled(self.indices or (), analyzer)


def _accesses(root: Stmt, buffer: Buffer, step_vars: Sequence[Var]) -> Iterator[_Access]:
    """Accesses of ``buffer`` under ``root`` in program order; a use of its pointer reads any element.

    ``step_vars`` are the variables of the loops asked about: where they step a reduction, init runs in their first
    iterations only. An init counts as a write of every result where the first instance of each runs it, else not at all.
    """
    found = effects(root).of(buffer)
    made: dict[Any, set[Any]] = {}  # by block, what its init writes for every result
    for effect in found:
        first: Sequence[Expr] = ()
        if effect.write and effect.first is not None:
            if any(uses_var(c, step_vars) for c in effect.first) or not runs_first(effect):
                continue
            first = effect.first
            made.setdefault(effect.block, set()).add(_index_key(effect))
        condition = all_of(c for c in effect.guards if not any(c is d for d in first))
        indices, around = effect.elements() if effect.buffer is buffer else (None, ())
        loops = {var: Range(low, extent) for var, low, extent in around}
        own = effect.first is None and not effect.write and _index_key(effect) in made.get(effect.block, ())
        yield _Access(indices, loops, condition, effect.write, own)


def _index_key(effect: Effect) -> tuple[Any, ...]:
    indices = effect.indices
    if indices is None:
        return (id(effect),)
    return tuple(tuple(map(key, i)) if isinstance(i, tuple) else key(i) for i in indices)
