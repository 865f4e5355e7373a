"""Statements, their instances and timestamps: a program as exact integer relations.

A ``Statement`` is a block without nested blocks (its ``init`` is a statement of its own), or a bare statement. An
instance is identified by ``coords``; ``time`` gives each instance its timestamp.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import is_, itemgetter
from typing import Any

from ...aliases import memory_of, shares_memory, sharing
from ...buffer import Buffer, MatchBufferRegion
from ...expr import EQ, Expr, IntImm, Not, Var, const, is_const
from ...node import cached_property, changed, frozendict
from ...poly import Formula, Names
from ...stmt import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from ...visit import has_load, substitute, uses_var, vars_in
from ..block_regions import explicit_regions
from ..contents import has_blocks
from ..effects import PREFETCH, READ, Effect, Effects, Loop, Surroundings, declared, effects, steering
from ..evaluation import evaluated_before_body, is_steered, starts
from ..reduction_forms import Reduction

Access = Effect
Views = Mapping[Var, MatchBufferRegion]


@dataclass
class Statement:
    """Something that runs: ``coords`` identify its instances, ``values`` defines them in terms of loops. ``control``
    has the pointers of memory that is read just before each instance runs: by predicates, bindings and places of views.
    ``ordered``: instances on the same element do not commute, whatever they do.
    ``lifetimes``: by pointer, how many entries of ``time`` identify the buffer that each instance of a block
    or iteration of a loop has for itself."""

    name: str
    node: Any
    coords: tuple[Var, ...]
    values: tuple[Expr, ...]
    loops: tuple[Loop, ...]
    guards: tuple[Expr, ...]
    time: tuple[Any, ...]
    inner: tuple[tuple[Var, Expr], ...] = ()
    accesses: list[Access] = field(default_factory=list)
    ordered: bool = False
    part: str = ""
    local: frozenset[Any] = frozenset()
    lifetimes: Mapping[Var, int] = field(default_factory=dict)
    control: frozenset[Var] = frozenset()

    @property
    def key(self) -> tuple[str, str]:
        return (self.name, self.part)

    def shown_at(self, point: Sequence[int]) -> str:
        """The coordinates of an instance, as a message shows them."""
        return ", ".join(f"{v.name}={x}" for v, x in zip(self.coords, point))

    @cached_property
    def commutes(self) -> bool:
        """Whether instances on the same element commute. An arg-reduction may select any of equal candidates only if the
        program declares a reduction."""
        updates = sharing(self.accesses, self.written)
        found = None if self.ordered or all(a.write for a in updates) else Reduction.of(self.node)
        if not isinstance(found, Reduction) or (found.selects and not _has_reduce_iterator(self.node)):
            return False
        return all(getattr(a.node, "buffer", None) in found.targets for a in updates)

    @property
    def is_on_loops(self) -> bool:
        """Whether its instances are identified by the loops around it."""
        return len(self.coords) == len(self.loops) and all(v is loop[0] for v, loop in zip(self.coords, self.loops))

    @property
    def written(self) -> frozenset[Var]:
        """The memory that it writes."""
        return memory_of(self.writes())

    def accesses_of(self, buffer: Buffer) -> list[Access]:
        """Its accesses of the memory of ``buffer``."""
        return sharing(self.accesses, buffer)

    def writes_to(self, buffer: Buffer) -> bool:
        """Whether it writes to the memory of ``buffer``."""
        return shares_memory(buffer, self.written)

    def reads(self) -> list[Access]:
        return [a for a in self.accesses if not a.write]

    def writes(self) -> list[Access]:
        return [a for a in self.accesses if a.write]


def deciding(unit: Statement, access: Access) -> tuple[Any, ...]:
    """The objects that decide which elements an access touches in the iterations of its loops, in whichever order."""
    loops = sorted((*unit.loops, *access.loops), key=lambda loop: id(loop[0]))
    kinds = map(type, access.indices or ())
    return (*kinds, None, *access.index_parts(), None, *chain(*loops), None, *chain(*unit.inner))


def statements_of(stmt: Any) -> list[Statement]:
    """The statements of a part of a program in program order."""
    return _Walker().units_of(stmt, ())


def statements_of_both(old: Any, new: Any, without: Collection[Any] = ()) -> tuple[list[Statement], list[Statement]]:
    """The :func:`statements_of` two versions of a part, but those in members ``without`` of their sequences: what a block does in the same loops is found once."""
    walker = _Walker()
    return walker.units_of(old, without), _Walker(walker.placed).units_of(new, without)


def statements_in(loop: For) -> list[Statement]:
    """The :func:`statements_of` the iterations of ``loop``: without the reads of its own bounds."""
    walker = _Walker()
    walker.iterations(loop, ())
    return walker.units


def bare_statements_of(stmt: Any) -> list[Statement]:
    """As :func:`statements_of`, with blocks split into the statements in them, whose coordinates are their loops."""
    walker = _BareWalker()
    walker.visit(stmt, ())
    return walker.units


def bare_statements_in(loop: For) -> list[Statement]:
    """The :func:`bare_statements_of` the iterations of ``loop``, as :func:`statements_in`."""
    walker = _BareWalker()
    walker.iterations(loop, ())
    return walker.units


Placed = tuple[list[Any], list[Statement]]  # what is around a block, and the statements that it is there


class _Walker:
    def __init__(self, elsewhere: Mapping[BlockRealize, Placed] = frozendict()) -> None:
        self.elsewhere = elsewhere  # of blocks in another version
        self.placed: dict[BlockRealize, Placed] = {}
        self.units: list[Statement] = []
        self.loops: list[Loop] = []
        self.guards: list[Expr] = []
        self.lets: dict[Var, Expr] = {}
        self.bound: dict[Var, Expr] = {}  # iterators of the blocks around, in terms of loops
        self.coords: list[tuple[Var, Expr]] = []
        self.scope = ""
        self.local: set[Any] = set()
        self.lifetimes: dict[Var, int] = {}
        self.bare: dict[str, int] = {}
        self.block: Block | None = None
        self.views: Views = {}  # those of the blocks around, by pointer

    def units_of(self, stmt: Any, without: Collection[Any]) -> list[Statement]:
        if without:
            for position, child in enumerate(stmt.stmts):
                if child not in without:
                    self.visit(child, (position,))
        else:
            self.visit(stmt, ())
        return self.units

    def visit(self, s: Any, time: tuple[Any, ...]) -> None:
        kind = type(s)
        if kind is For:
            fixed = type(s.min) is IntImm and type(s.extent) is IntImm
            self.iterations(s, time if fixed else self.after(time, s.min, s.extent))
        elif kind is SeqStmt:
            for position, child in enumerate(s.stmts):
                self.visit(child, (*time, position))
        elif kind is BlockRealize:
            self.realize(s, time)
        elif isinstance(s, While):
            trip = Var("while")
            self.loops.append((trip, const(0), const(2**30)))
            self.statement(s.condition, (*time, trip, 0))
            self.guards.append(self.in_loops(s.condition))
            self.visit(s.body, (*time, trip, 1))
            self.guards.pop()
            self.loops.pop()
        elif isinstance(s, IfThenElse):
            time = self.after(time, s.condition)
            for condition, case in ((s.condition, s.then_case), (Not(s.condition), s.else_case)):
                if case is not None:
                    self.guards.append(self.in_loops(condition))
                    self.visit(case, time)
                    self.guards.pop()
        elif isinstance(s, LetStmt):
            time = self.after(time, s.value)
            self.lets[s.var] = self.known(s.value)
            self.visit(s.body, time)
        elif isinstance(s, Allocate):
            self.local.add(s.buffer_var)
            self.lifetimes[s.buffer_var] = len(time)
            self.visit(s.body, time)
        elif isinstance(s, AttrStmt) and s.attr_key == "thread_extent" and hasattr(s.node, "var"):
            self.loops.append((s.node.var, const(0, s.node.var.dtype), self.known(s.value)))
            self.visit(s.body, (*time, s.node.var))
            self.loops.pop()
        elif hasattr(s, "body"):
            self.visit(s.body, time)
        else:
            self.statement(s, time)

    def iterations(self, loop: For, time: tuple[Any, ...]) -> None:
        self.loops.append((loop.loop_var, self.in_loops(loop.min), self.in_loops(loop.extent)))
        for buffer in loop.private:
            self.lifetimes[buffer.data] = len(time) + 1
        self.visit(loop.body, (*time, loop.loop_var))
        self.loops.pop()

    def after(self, time: tuple[Any, ...], *controls: Expr) -> tuple[Any, ...]:
        """The timestamp of a statement after its control expressions, each of which is a statement if it reads
        memory."""
        for e in controls if has_load(*controls) else ():
            if has_load(e):
                self.statement(e, (*time, 0))
                time = (*time, 1)
        return time

    def known(self, e: Expr) -> Expr:
        return substitute(e, self.lets) if self.lets else e

    def in_loops(self, e: Expr) -> Expr:
        """``e`` with lets and block iterators substituted."""
        if type(e) is IntImm:
            return e
        e = self.known(e)
        return substitute(e, self.bound) if self.bound else e

    def around(self) -> Surroundings:
        return Surroundings(self.lets, self.views, self.block)

    def statement(self, s: Any, time: tuple[Any, ...]) -> None:
        if isinstance(s, Evaluate) and isinstance(s.value, IntImm):
            return
        count = self.bare[self.scope] = self.bare.get(self.scope, -1) + 1
        found = effects(s, self.around())
        regions = sharing(self.declared(self.block, found), memory_of(e for e in found if e.behind_pointer))
        accesses = _as_declared(self.block, _accesses(found), regions)
        self.add(f"{self.scope}#{count}", s, time, self.instances(), accesses, inner=self.inner())

    def add(
        self,
        name: str,
        node: Any,
        time: tuple[Any, ...],
        instances: Sequence[tuple[Var, Expr]],
        accesses: list[Access],
        **more: Any,
    ) -> None:
        coords, values = tuple(map(itemgetter(0), instances)), tuple(map(itemgetter(1), instances))
        around = tuple(self.loops), tuple(self.guards)
        lives: dict[str, Any] = {"local": frozenset(self.local), "lifetimes": self.lifetimes}
        self.units.append(Statement(name, node, coords, values, *around, time, accesses=accesses, **lives, **more))

    def instances(self) -> list[tuple[Var, Expr]]:
        """What identifies the instances of a bare statement: the iterators around, and the loops that they do not use."""
        used = vars_in(*(value for _, value in self.coords))
        own = [v for v, _, _ in self.loops if v not in used]
        return [*self.coords, *((v, v) for v in own)]

    def inner(self) -> tuple[tuple[Var, Expr], ...]:
        """The iterators around that do not identify the instances of a bare statement."""
        return ()

    def is_leaf(self, block: Block) -> bool:
        """Whether a block is one statement."""
        return not has_blocks(block.body)

    def realize(self, s: BlockRealize, time: tuple[Any, ...]) -> None:
        if not self.is_leaf(s.block) or self.lets or self.views:
            self.block_of(s, time)
            return
        around, first = [*chain(*self.loops, *self.coords), None, *self.guards, None, self.block], len(self.units)
        there, known = self.elsewhere.get(s, ((), ()))
        if len(there) == len(around) and all(map(is_, there, around)):
            self.again(s.block, known, time)
        else:
            self.block_of(s, time)
        self.placed[s] = around, self.units[first:]

    def again(self, block: Block, known: Sequence[Statement], time: tuple[Any, ...]) -> None:
        """The statements of a block, as they are in the same loops of another version."""
        self.local.update(b.data for b in block.alloc_buffers)
        self.lifetimes.update((b.data, len(time)) for b in block.alloc_buffers)
        lives: dict[str, Any] = {"local": frozenset(self.local), "lifetimes": self.lifetimes}
        self.units += [changed(unit, time=(*time, unit.time[-1]), **lives) for unit in known]

    def block_of(self, s: BlockRealize, time: tuple[Any, ...]) -> None:
        block = s.block
        leaf = self.is_leaf(block)
        steered = steering(s, self.around()) if leaf else Effects(())
        views, outer_block = self.views, self.block
        self.views = {**views, **{m.buffer.data: m for m in block.match_buffers}}
        if not leaf and is_steered(s):
            time = self.after(time, *evaluated_before_body(s))
        outer = len(self.coords), len(self.guards), self.scope
        self.guards.append(self.in_loops(s.predicate))
        values = {iv.var: self.in_loops(value) for iv, value in zip(block.iter_vars, s.iter_values)}
        self.coords.extend(values.items())
        bound, self.bound = self.bound, {**self.bound, **values}
        self.local.update(b.data for b in block.alloc_buffers)
        self.lifetimes.update((b.data, len(time)) for b in block.alloc_buffers)
        self.block = block
        # a loop that no iterator uses repeats the block: its variable distinguishes the instances
        used = vars_in(*[value for _, value in self.coords]) if leaf else set()
        repeats = [v for v, _, extent in self.loops if v not in used and not is_const(extent, 1)] if leaf else []
        if block.name != "root" or block.iter_vars:
            self.scope = block.name
        for position, part, conditions in ((0, block.init, starts(block)), (1, block.body, [])):
            if part is not None:
                guards = len(self.guards)
                self.guards += map(self.in_loops, conditions)
                if leaf:
                    self.leaf(block, part, (*time, position), steered, repeats)
                else:
                    self.visit(part, (*time, position))
                del self.guards[guards:]
        del self.coords[outer[0] :], self.guards[outer[1] :]
        self.scope, self.bound, self.views, self.block = outer[2], bound, views, outer_block

    def leaf(self, block: Block, part: Stmt, time: tuple[Any, ...], steered: Effects, repeats: Sequence[Var]) -> None:
        """The init or the body of a block that is one statement, which the loops of ``repeats`` repeat."""
        control: list[Effect] = []
        if steered.effects:
            around = [loop for loop in self.loops if loop[0] not in {*repeats}]
            control = list(_by_instance(steered, self.coords, around))
        found = effects(part, self.around())
        accesses = [*control, *_as_stated(block, _as_declared(block, _accesses(found), self.declared(block, found)))]
        ordered = part is block.init or bool(sharing(control, memory_of(a for a in accesses if a.write)))
        kind = "init" if part is block.init else ""
        instances = [*self.coords, *((v, v) for v in repeats)]
        self.add(block.name, block, time, instances, accesses, ordered=ordered, part=kind, control=steered.reads)

    def declared(self, block: Block | None, found: Effects) -> list[Effect]:
        """The declared regions of ``block``, if some of the effects ``found`` in it are unknown."""
        return [] if block is None or not found.opaque else [*declared(block, self.around(), found)]


class _BareWalker(_Walker):
    """Takes every block apart."""

    def instances(self) -> list[tuple[Var, Expr]]:
        return [(v, v) for v, _, _ in self.loops]

    def inner(self) -> tuple[tuple[Var, Expr], ...]:
        return tuple(self.coords)

    def is_leaf(self, block: Block) -> bool:
        return False


def _accesses(found: Effects) -> list[Effect]:
    return [e for e in found if e.kind != PREFETCH and not shares_memory(e, found.allocated)]


def _as_declared(block: Block | None, made: Sequence[Effect], regions: Sequence[Effect]) -> list[Effect]:
    """The accesses ``made`` in ``block`` and those of ``regions``: these alone of what is behind pointers, if it declares writes."""
    known = memory_of(regions) if block is not None and block.writes else frozenset[Var]()
    return [*(e for e in made if not (e.behind_pointer and shares_memory(e, known))), *regions]


def _as_stated(block: Block, accesses: Sequence[Effect]) -> list[Effect]:
    """``accesses``, with reads whose indices are not affine in the region that the user has stated for them."""
    stated = {r.buffer: tuple((axis.min, axis.extent) for axis in r.region) for r in explicit_regions(block, "reads")}
    return [
        replace(e, indices=stated[e.buffer]) if e.kind == READ and e.buffer in stated and not _is_affine(e) else e
        for e in accesses
    ]


def _is_affine(access: Effect) -> bool:
    formula = Formula(Names())
    return access.indices is not None and all(Formula.takes(formula.sum, part) for part in access.index_parts())


def _has_reduce_iterator(node: Any) -> bool:
    """Whether it is a block that sums over an iterator."""
    return any(iv.iter_type == "reduce" and iv.dom is not None for iv in getattr(node, "iter_vars", ()))


def _by_instance(found: Effects, coords: Sequence[tuple[Var, Expr]], loops: Sequence[Loop]) -> Iterator[Effect]:
    """Reads in terms of ``loops``, expressed over the instances of a block, identified by ``coords``."""
    bound = {value: v for v, value in coords if isinstance(value, Var)}
    rest = tuple(loop for loop in loops if loop[0] not in bound)
    moving = {v for v, _, _ in rest}
    ties = tuple(EQ(v, value) for v, value in coords if uses_var(value, moving))
    for access in _accesses(found):
        if access.uses(moving):
            access = replace(access, guards=(*ties, *access.guards), loops=(*rest, *access.loops))
        yield access.substituted(bound)
