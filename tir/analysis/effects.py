"""The memory effects of a statement: every element that it reads, writes or prefetches, found in one walk.

An effect has indices (or a box) in terms of variables defined outside the statement, the loops of the statement around
it, and its guards. Lets and iterators of inner blocks are substituted, accesses through a view (``match_buffer``)
become accesses of its source, and the operator table defines what calls do with their pointers. Effects of control
count too: loop bounds, conditions, predicates and bindings of inner blocks, places of views, values of lets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_not
from typing import Any

from ..aliases import Memory, Views, in_source, memory_of, shares_memory, sharing, source_of, views_in
from ..buffer import Buffer, BufferRegion, MatchBufferRegion, Range, as_rows, decl_buffer
from ..expr import And, BufferLoad, Call, Expr, IntImm, Let, Or, Ramp, Var, const, is_const, one
from ..node import Node, cached_property, changed, once, record
from ..op import OPS, effect_of
from ..stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    While,
)
from ..visit import LEAVES, has_load, substitute, uses_var
from .evaluation import evaluated_before_body, evaluated_parts, is_steered, places_of_views, starts

READ, WRITE, PREFETCH = "read", "write", "prefetch"
Loop = tuple[Var, Expr, Expr]  # variable, minimum, extent
Indices = Sequence[Any] | None  # a number, a ``Ramp`` or a (low, extent) pair for each axis
Through = tuple[Call, int] | None  # an operator, and the position of its pointer


@record
class Effect:
    """One access. ``indices`` has an index (a number or a ``Ramp``) or a (low, extent) pair for each axis; None means
    any element of the buffer.

    ``loops`` are those around it inside the statement, outermost first; ``guards`` is a conjunction. ``block`` is the
    inner block that contains it; in an ``init``, ``first`` has the guards that select the first instance. ``node`` is
    the load, store, call, pointer or region that the effect comes from. ``through``: an operator (the call, in the
    effect's terms) makes the access through its pointer at this position. ``commutes``: its order among the like of one
    element does not matter, as it is an atomic update whose value nothing uses.
    """

    buffer: Buffer
    indices: tuple[Any, ...] | None
    kind: str
    loops: tuple[Loop, ...] = ()
    guards: tuple[Expr, ...] = ()
    node: Any = None
    block: Block | None = None
    first: tuple[Expr, ...] | None = None
    through: Through = None
    commutes: bool = False

    @property
    def write(self) -> bool:
        return self.kind == WRITE

    @property
    def behind_pointer(self) -> bool:
        """Whether it is of what a pointer is given away for, at no index of its own."""
        return not self.is_in_one_element and (self.through is not None or self.indices is None)

    @property
    def caller(self) -> Any:
        """The call that has the address through which the access is made."""
        return self.node if self.through is None else self.through[0]

    @property
    def is_in_one_element(self) -> bool:
        """Whether the operator that has an address accesses nothing beyond the element there."""
        return self.through is not None and _is_in_one_element(*self.through, self.buffer)

    def index_parts(self) -> list[Expr]:
        """The expressions in its indices: of a box, the start and the extent of each axis."""
        return [e for index in self.indices or () for e in (index if isinstance(index, tuple) else (index,))]

    def uses(self, variables: Collection[Var]) -> bool:
        """Whether its indices, loops or guards depend on any of ``variables``."""
        parts = self.index_parts()
        for _, low, extent in self.loops:
            parts += (low, extent)
        return any(uses_var(e, variables) for e in (*parts, *self.guards))

    def substituted(self, values: Mapping[Var, Expr]) -> Effect:
        """The same effect, with outer variables replaced by ``values``."""
        if not values or not self.uses(values):
            return self

        def at(e: Any) -> Any:
            return tuple(substitute(x, values) for x in e) if isinstance(e, tuple) else substitute(e, values)

        return changed(
            self,
            indices=None if self.indices is None else tuple(map(at, self.indices)),
            loops=tuple((v, at(low), at(extent)) for v, low, extent in self.loops),
            guards=tuple(map(at, self.guards)),
            first=None if self.first is None else tuple(map(at, self.first)),
        )

    def elements(self) -> tuple[tuple[Expr, ...] | None, tuple[Loop, ...]]:
        """The index of one element on each axis, None if it is unknown, and the loops around it: vectors and boxes are loops
        over their lanes and elements."""
        loops, made = list(self.loops), []
        for index in self.indices or ():
            if isinstance(index, tuple):
                low, extent, step = *index, None
            elif isinstance(index, Ramp):
                low, extent, step = index.base, const(index.lanes, index.base.dtype), index.stride
            elif index.dtype.lanes > 1:
                return None, self.loops
            else:
                low, extent, step = index, None, None
            if extent is not None and not is_const(extent, 1):
                lane = Var("lane", low.dtype)
                loops.append((lane, const(0, low.dtype), extent))
                low = low + (lane if step is None or is_const(step, 1) else lane * step)
            made.append(low)
        return None if self.indices is None else tuple(made), tuple(loops)

    def box(self) -> tuple[Range, ...] | None:
        """The elements as ranges, including the lanes of vectors; None if they are unknown."""
        if self.indices is None:
            return None
        made = [as_range(i) for i in self.indices]
        return None if any(r is None for r in made) else tuple(made)  # type: ignore[arg-type]


@record
class Effects:
    """The effects of one statement in program order. ``opaque``: there are further, unknown effects (it passes a
    pointer on, or calls an impure function). ``allocated`` has the pointers of memory allocated inside. ``views`` has
    the regions that views inside refer to, in the form of reads: their elements need not be accessed.
    ``by_pointer``: an access is of whatever buffer is known to be behind a pointer.

    ``stored`` and ``viewed`` are the effects and the views, with ``_ITSELF`` in the place of ``stmt``; ``known``: what is
    kept with that."""

    stored: tuple[Effect, ...]
    opaque: bool = False
    allocated: frozenset[Var] = frozenset()
    viewed: tuple[Effect, ...] = ()
    by_pointer: bool = False
    stmt: Any = None
    known: Effects | None = None

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        return self.stored if self.stmt is None else _exchanged(self.stored, _ITSELF, self.stmt)

    @cached_property
    def views(self) -> tuple[Effect, ...]:
        return self.viewed if self.stmt is None else _exchanged(self.viewed, _ITSELF, self.stmt)

    def __iter__(self) -> Iterator[Effect]:
        return iter(self.effects)

    def of(self, memory: Memory) -> list[Effect]:
        """The reads and writes of ``memory``, in program order."""
        return [e for e in sharing(self.effects, memory) if e.kind != PREFETCH]

    def located(self) -> Iterator[Effect]:
        """The reads and writes that say best which elements they are of: in blocks that declare regions for what is behind
        pointers, these and the accesses by index of other memory."""
        declared = {(e.block, e.kind, e.buffer.data) for e in self.effects if e.node is e.block}
        opaque = {block for block, _, _ in declared}
        for e in self.effects:
            better = (e.block, e.kind, e.buffer.data) in declared or (e.block in opaque and e.behind_pointer)
            if e.kind != PREFETCH and (e.node is e.block or not better):
                yield e

    @cached_property
    def reads(self) -> frozenset[Var]:
        """Pointers of the memory that is read."""
        return memory_of([e for e in self.stored if e.kind == READ]) if self.known is None else self.known.reads

    @cached_property
    def writes(self) -> frozenset[Var]:
        """Pointers of the memory that is written."""
        return memory_of([e for e in self.stored if e.kind == WRITE]) if self.known is None else self.known.writes


@dataclass
class Surroundings:
    """The context of a statement: values of ``lets``, views, and the block (for the effects of its pointers)."""

    lets: Mapping[Var, Expr] = field(default_factory=dict)
    views: Views = field(default_factory=dict)
    block: Block | None = None


def effects(stmt: Any, within: Surroundings | None = None) -> Effects:
    """The effects of a statement, a block or an expression, in program order.

    ``within`` is the context, if it matters; without it, the result is cached for each statement.
    """
    if isinstance(stmt, Expr) or (within is not None and (within.lets or within.views)):
        return _Walker(within or Surroundings()).of(stmt)
    known = memory_effects(stmt)
    return known if known.stmt is None else changed(known, stmt=stmt, known=known)


@once
def memory_effects(stmt: Any) -> Effects:
    """As :func:`effects`, kept on the statement, for questions about memory alone. A ``node`` or ``block`` that is the statement itself
    is replaced by ``_ITSELF``: a reference to it would be a cycle."""
    found = _Walker(Surroundings()).of(stmt)
    stored, viewed = (_exchanged(part, stmt, _ITSELF) for part in (found.stored, found.viewed))
    has_itself = any(map(is_not, (*stored, *viewed), (*found.stored, *found.viewed)))
    return changed(found, stored=stored, viewed=viewed, stmt=_ITSELF if has_itself else None)


_ITSELF: Any = object()


def _exchanged(found: Sequence[Effect], old: Any, new: Any) -> tuple[Effect, ...]:
    """``found``, with ``new`` where ``old`` is the node or the block of an effect."""

    def at(effect: Effect) -> Effect:
        node, block = effect.node, effect.block
        if node is not old and block is not old:
            return effect
        return changed(effect, node=new if node is old else node, block=new if block is old else block)

    return tuple(map(at, found))


def _is_in_one_element(call: Call, position: int, buffer: Buffer) -> bool:
    size = OPS[call.op].pointer(position).bytes if call.op in OPS else None
    return size is not None and size <= buffer.dtype.bytes


def steering(realize: BlockRealize, within: Surroundings | None = None) -> Effects:
    """What executing a block reads before its body, in terms of the loops around it; cached as :func:`effects`."""
    if not is_steered(realize):
        return _NONE
    return _steering_alone(realize) if within is None else _steering(realize, within)


@once
def _steering_alone(realize: BlockRealize) -> Effects:
    return _steering(realize, Surroundings())


_NONE = Effects(())


def _steering(realize: BlockRealize, around: Surroundings) -> Effects:
    views = views_in([realize.block])
    inside = replace(around, views={**around.views, **views}) if views else around  # places of views may read others
    found = [effects(e, inside) for e in evaluated_before_body(realize) if has_load(e)]
    return Effects(tuple(e for part in found for e in part), any(part.opaque for part in found))


def declared(block: Block, within: Surroundings | None = None, known: Iterable[Effect] = ()) -> Effects:
    """The effects declared by the regions of ``block``, but for those that its effects ``known`` say better: of memory that is
    only loaded, or only stored to, by index, whatever calls beside that may do."""
    walker = _Walker(within or Surroundings())
    walker.regions(block, known)
    return Effects(tuple(walker.found))


def outline(block: Block) -> Effects:
    """The effects of ``block`` as its surroundings see them: the blocks inside it count by the regions they declare,
    and a pointer that is passed on by what the operator table says, whatever ``block`` declares."""
    walker = _Outliner(Surroundings(views=views_in([block])))
    walker.allocated.update(b.data for b in block.alloc_buffers)
    return walker.of(*places_of_views(block), *(part for part in (block.init, block.body) if part is not None))


def as_range(index: Any) -> Range | None:
    """The smallest range that contains an index of an effect; None if it is unknown."""
    if isinstance(index, tuple):
        return Range(*index)
    if isinstance(index, Ramp) and isinstance(index.stride, IntImm):
        step = index.stride.value * (index.lanes - 1)
        return Range(index.base if step >= 0 else index.base + step, const(abs(step) + 1, index.base.dtype))
    return None if index.dtype.lanes > 1 else Range(index, one(index.dtype))


class _Walker:
    def __init__(self, within: Surroundings):
        self.lets: dict[Var, Any] = dict(within.lets)  # and iterators of blocks inside
        self.views: dict[Var, MatchBufferRegion] = dict(within.views)
        self.block = within.block
        self.inner: Block | None = None
        self.alone: Any = None  # a call whose value nothing uses
        self.first: tuple[Expr, ...] | None = None
        self.loops: tuple[Loop, ...] = ()
        self.guards: tuple[Expr, ...] = ()
        self.found: list[Effect] = []
        self.viewed: list[Effect] = []
        self.opaque = False
        self.allocated: set[Var] = set()
        self.pointers: dict[Var, Buffer] = {}
        self.by_pointer = False

    def of(self, *stmts: Any) -> Effects:
        for stmt in stmts:
            self.walk(stmt) if type(stmt) is BlockRealize else self.visit(stmt)
        return Effects(tuple(self.found), self.opaque, frozenset(self.allocated), tuple(self.viewed), self.by_pointer)

    def known(self, e: Any) -> Any:
        return substitute(e, self.lets) if self.lets and not isinstance(e, IntImm) else e

    # ------------------------------------------------------------ statements

    def visit(self, item: Any) -> None:
        kind = type(item)
        handler = _VISIT.get(kind)
        if kind is Var:
            if item.dtype.is_handle:
                self._pointer(item, (READ, WRITE), item)
        elif handler is not None:
            handler(self, item)
        elif kind not in LEAVES:
            for child in item.children():
                self.visit(child)

    def each(self, parts: Iterable[Any]) -> None:
        for part in parts:
            self.visit(part)

    def _for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self._looped((loop.loop_var, self.known(loop.min), self.known(loop.extent)), loop.body)

    def _looped(self, loop: Loop, body: Any) -> None:
        around = self.loops
        self.loops = (*around, loop)
        self.visit(body)
        self.loops = around

    def _attr(self, attr: AttrStmt) -> None:
        self.visit(attr.value)
        if attr.attr_key in ("thread_extent", "virtual_thread") and hasattr(attr.node, "var"):
            var = attr.node.var
            self._looped((var, const(0, var.dtype), self.known(attr.value)), attr.body)
        else:
            self.visit(attr.body)

    def under(self, condition: Expr, body: Any) -> None:
        """``body``, which happens where ``condition`` holds."""
        around = self.guards
        if not is_const(condition, 1):
            self.guards = (*around, self.known(condition))
        self.visit(body)
        self.guards = around

    def _lazy(self, item: Any) -> None:
        for part, condition in evaluated_parts(item):
            self.visit(part) if condition is None else self.under(condition, part)

    def _let(self, item: Any) -> None:
        self.visit(item.value)
        self.lets[item.var] = self.known(item.value)
        self.visit(item.body)

    def _allocate(self, item: Any) -> None:
        self.allocated.add(item.buffer_var)
        self.each((*item.extents, item.body))

    def _evaluate(self, item: Evaluate) -> None:
        self.alone = item.value
        self.visit(item.value)

    def _store(self, store: BufferStore) -> None:
        for part in (store.value, *store.indices):
            self.visit(part)
        self.touch(WRITE, store.buffer, store.indices, store)

    def _load(self, load: BufferLoad) -> None:
        for index in load.indices:
            self.visit(index)
        self.touch(READ, load.buffer, load.indices, load)

    def realize(self, realize: BlockRealize) -> None:
        """The effects of a block, which are kept with it: here they are in the loops, and under the guards, around it."""
        plain = not self.lets and not self.views and self.first is None
        found = effects(realize) if plain else None
        if found is None or found.by_pointer:
            self.walk(realize)
            return
        self.opaque = self.opaque or found.opaque
        self.allocated |= found.allocated
        self.viewed += map(self._around, found.views)
        for effect in map(self._around, found.effects):
            self.pointers.setdefault(effect.buffer.data, effect.buffer)
            self.found.append(effect)

    def _around(self, effect: Effect) -> Effect:
        """An effect of a statement, as one of what is around it."""
        block = self.inner if effect.block is None else effect.block
        return changed(effect, loops=self.loops + effect.loops, guards=self.guards + effect.guards, block=block)

    def walk(self, realize: BlockRealize) -> None:
        block = realize.block
        for part in (*realize.iter_values, realize.predicate):
            self.visit(part)
        around = self.views, self.block, self.inner, self.first
        bound = {i.var: self.known(value) for i, value in zip(block.iter_vars, realize.iter_values)}
        predicate = self.known(realize.predicate)
        self.lets.update(bound)
        self.under(predicate, block)
        self.views, self.block, self.inner, self.first = around

    def _block(self, block: Block) -> None:
        self.block = self.inner = block
        self.allocated.update(b.data for b in block.alloc_buffers)
        self.each(places_of_views(block))
        for match in block.match_buffers:
            box = [(r.min, r.extent) for r in match.source.region]
            self.viewed.append(self._effect(READ, match.source.buffer, box, match))
        self.views = {**self.views, **views_in([block])}
        if block.init is not None:
            around, self.first = self.guards, tuple(map(self.known, starts(block)))
            self.guards = (*around, *self.first)
            self.visit(block.init)
            self.guards, self.first = around, None
        before, self.opaque, first = self.opaque, False, len(self.found)
        self.visit(block.body)
        if self.opaque:
            self.regions(block, self.found[first:])
        self.opaque = self.opaque or before

    # ------------------------------------------------------------ calls

    def _call(self, call: Call) -> None:
        if call.op == "if_then_else":
            self._lazy(call)
            return
        if call.op in _PLACES:
            _PLACES[call.op](self, call)
            return
        op = OPS.get(call.op)
        opaque = effect_of(call) not in ("pure", "read")
        self.opaque = self.opaque or opaque
        for position, arg in enumerate(call.args):
            kinds = (READ, WRITE) if op is None else op.accesses(position)
            if isinstance(arg, BufferRegion):
                self._region(arg, call, (READ, WRITE) if opaque else (READ,))
            elif isinstance(arg, Var) and arg.dtype.is_handle:
                self._pointer(arg, kinds, arg, (call, position))
            elif isinstance(arg, Call) and arg.op in _PLACES:
                _PLACES[arg.op](self, arg, kinds, (call, position))
            elif isinstance(arg, Node):
                self.visit(arg)

    def _region(self, region: BufferRegion, call: Call, kinds: Iterable[str]) -> None:
        box = tuple((r.min, r.extent) for r in region.region)
        self.each(part for pair in box for part in pair)
        for kind in kinds:
            self.touch(kind, region.buffer, box, call)

    def _pointer(self, pointer: Var, kinds: Iterable[str], node: Any, through: Through = None) -> None:
        """A pointer that is passed on: any element behind it may be accessed. For a view, the declared region of its
        block."""
        self.opaque = True
        view = self.views.get(pointer)
        for kind in kinds:
            if view is None:
                self.touch(kind, self._behind(pointer), None, node, through)
            elif self.block is None or shares_memory(source_of(view.source.buffer, self.views), self._declared(kind)):
                self.touch(kind, view.buffer, None, node, through)

    def _declared(self, kind: str) -> frozenset[Var]:
        assert self.block is not None
        regions = self.block.reads if kind == READ else self.block.writes
        return memory_of(source_of(r.buffer, self.views) for r in regions)

    def _behind(self, pointer: Var) -> Buffer:
        """The buffer of a pointer: a known one, or a placeholder."""
        self.by_pointer = True
        if pointer not in self.pointers:
            dtype = str(pointer.pointer_dtype or "int8")
            self.pointers[pointer] = decl_buffer((1,), dtype, pointer.name, data=pointer)
        return self.pointers[pointer]

    def _address_of(self, call: Call, kinds: Iterable[str] = (READ, WRITE), through: Through = None) -> None:
        (place,) = call.args
        if not isinstance(place, BufferLoad):
            self.visit(place)
            return
        self.opaque = True
        self.each(place.indices)
        located = through is not None and _is_in_one_element(*through, place.buffer)
        for kind in kinds:
            self.touch(kind, place.buffer, place.indices if located else None, call, through)

    def _access_ptr(self, call: Call, kinds: Iterable[str] = (READ, WRITE), through: Through = None) -> None:
        args = list(call.args)
        mask = args[4].value if len(args) > 4 and isinstance(args[4], IntImm) else 3
        allowed = [kind for bit, kind in ((1, READ), (2, WRITE)) if mask & bit and kind in kinds]
        self.each(args[2:])
        if isinstance(args[1], Var):
            self._pointer(args[1], allowed, call, through)
        else:
            self.visit(args[1])

    def _tensor_map(self, call: Call, kinds: Iterable[str] = (READ, WRITE), through: Through = None) -> None:
        """Memory that a copy engine accesses: any element behind the pointer."""
        pointer = call.args[0]
        self.each(call.args[1:])
        if isinstance(pointer, Call) and pointer.op in _PLACES:
            _PLACES[pointer.op](self, pointer, kinds, through)
        elif isinstance(pointer, Var):
            self._pointer(pointer, kinds, call, through)

    def _prefetch(self, call: Call, *_: Any) -> None:
        """Accesses a cache, not an element: an address past the end is allowed."""
        address, *rest = call.args
        self.each(rest)
        if not isinstance(address, Call):
            return
        place = address.args[0] if address.op == "address_of" and isinstance(address.args[0], BufferLoad) else None
        parts: Sequence[Any] = address.args if place is None else place.indices
        self.each(part for part in parts if not part.dtype.is_handle)
        if place is not None:
            self.touch(PREFETCH, place.buffer, place.indices, call)

    # ------------------------------------------------------------ accesses

    def touch(self, kind: str, buffer: Buffer, indices: Indices, node: Any, through: Through = None) -> None:
        self.pointers.setdefault(buffer.data, buffer)
        self.found.append(self._effect(kind, buffer, indices, node, through))

    def _effect(self, kind: str, buffer: Buffer, indices: Indices, node: Any, through: Through = None) -> Effect:
        known = [*map(self._index, indices)] if indices and self.lets else indices
        made = None if known is None else as_rows(buffer, list(known))
        while self.views and shares_memory(buffer, self.views):
            match = self.views[buffer.data]
            made = in_source(match, buffer, made, self.known)
            buffer = match.source.buffer
        place = None if made is None else tuple(made)
        if through is None:
            return Effect(buffer, place, kind, self.loops, self.guards, node, self.inner, self.first)
        call, position = through
        commutes = call is self.alone and call.op in OPS and OPS[call.op].pointer(position).commutes
        by = self.known(call), position
        return Effect(buffer, place, kind, self.loops, self.guards, node, self.inner, self.first, by, commutes)

    def regions(self, block: Block, known: Iterable[Effect] = ()) -> None:
        by_index = {(e.kind, e.buffer.data): True for e in known}
        by_index.update({(e.kind, e.buffer.data): False for e in known if e.behind_pointer})
        first = len(self.found)
        for kind, regions in ((READ, block.reads), (WRITE, block.writes)):
            for region in regions:
                self.touch(kind, region.buffer, [(r.min, r.extent) for r in region.region], block)
        self.found[first:] = [e for e in self.found[first:] if not by_index.get((e.kind, e.buffer.data))]

    def _index(self, index: Any) -> Any:
        return tuple(map(self.known, index)) if isinstance(index, tuple) else self.known(index)


class _Outliner(_Walker):
    """Blocks do what they declare."""

    realize = _Walker.walk

    def _block(self, block: Block) -> None:
        self.allocated.update(b.data for b in block.alloc_buffers)
        self.regions(block)


_PLACES: dict[str, Any] = {
    "address_of": _Walker._address_of,
    "tvm_access_ptr": _Walker._access_ptr,
    "tensor_map": _Walker._tensor_map,
    "prefetch": _Walker._prefetch,
}

_VISIT: dict[type, Any] = {
    For: _Walker._for,
    **dict.fromkeys((While, IfThenElse, And, Or), _Walker._lazy),
    LetStmt: _Walker._let,
    Let: _Walker._let,
    AttrStmt: _Walker._attr,
    Allocate: _Walker._allocate,
    AllocateConst: _Walker._allocate,
    Evaluate: _Walker._evaluate,
    BufferStore: _Walker._store,
    BufferLoad: _Walker._load,
    BlockRealize: lambda walker, item: walker.realize(item),
    Block: lambda walker, item: walker._block(item),
    Call: _Walker._call,
}
