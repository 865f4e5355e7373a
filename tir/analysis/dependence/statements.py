"""What runs when, and which runs touch one element: a program as exact integer relations.

A ``Statement`` is something that runs many times: a block without blocks inside (its ``init`` is a unit of its own), or
a bare statement. An instance of a unit is told by ``coords``; ``time`` gives each instance its place in the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...buffer import Buffer, BufferRegion
from ...expr import (
    BufferLoad,
    Call,
    Expr,
    IntImm,
    Let,
    Not,
    Select,
    Var,
    const,
)
from ...node import Node
from ...op import effect_of
from ...stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    While,
)
from ...visit import substitute, uses_var, walk
from ..block_regions import prefetched
from ..reductions import Reduction

Loop = tuple[Var, Expr, Expr]


@dataclass(frozen=True)
class Access:
    """One load or store. ``indices`` None: anywhere in the buffer; a (low, extent) pair stands for a range."""

    buffer: Buffer
    indices: tuple[Any, ...] | None
    write: bool
    loops: tuple[Loop, ...] = ()
    guards: tuple[Expr, ...] = ()
    node: Any = None


@dataclass
class Statement:
    """Something that runs: ``coords`` tell its instances apart, ``values`` says what they are in terms of loops."""

    name: str
    node: Any
    coords: tuple[Var, ...]
    values: tuple[Expr, ...]
    loops: tuple[Loop, ...]
    guards: tuple[Expr, ...]
    time: tuple[Any, ...]
    inner: tuple[tuple[Var, Expr], ...] = ()
    accesses: list[Access] = field(default_factory=list)
    commutes: bool = False
    part: str = ""
    local: frozenset[Any] = frozenset()

    @property
    def key(self) -> tuple[str, str]:
        return (self.name, self.part)

    def reads(self) -> list[Access]:
        return [a for a in self.accesses if not a.write]

    def writes(self) -> list[Access]:
        return [a for a in self.accesses if a.write]


def statements_of(stmt: Any, blocks: bool = True) -> list[Statement]:
    """The units of a statement in program order. ``blocks`` False takes blocks apart into bare statements, whose
    coordinates are their loops."""
    walker = _Walker(blocks)
    walker.visit(stmt, ())
    return walker.units


class _Walker:
    def __init__(self, blocks: bool):
        self.blocks = blocks
        self.units: list[Statement] = []
        self.loops: list[Loop] = []
        self.guards: list[Expr] = []
        self.lets: dict[Var, Expr] = {}
        self.bound: dict[Var, Expr] = {}  # iterators of the blocks around, in terms of loops
        self.coords: list[tuple[Var, Expr]] = []
        self.scope = ""
        self.local: set[Any] = set()
        self.bare: dict[str, int] = {}
        self.regions: list[tuple[Any, Any]] = []
        self.block: Block | None = None
        self.aliases: dict[Any, Any] = {}  # views of the blocks around, and what they are views of

    def visit(self, s: Any, time: tuple[Any, ...]) -> None:
        if isinstance(s, SeqStmt):
            for position, child in enumerate(s.stmts):
                self.visit(child, (*time, position))
        elif isinstance(s, For):
            self.loops.append((s.loop_var, self.in_loops(s.min), self.in_loops(s.extent)))
            self.visit(s.body, (*time, s.loop_var))
            self.loops.pop()
        elif isinstance(s, While):
            trip = Var("while")
            self.loops.append((trip, const(0), const(2**30)))
            self.visit(Evaluate(s.condition), (*time, trip, 0))
            self.visit(s.body, (*time, trip, 1))
            self.loops.pop()
        elif isinstance(s, IfThenElse):
            if any(isinstance(n, BufferLoad) for n in walk(s.condition)):
                self.visit(Evaluate(s.condition), (*time, 0))
                time = (*time, 1)
            for condition, case in ((s.condition, s.then_case), (Not(s.condition), s.else_case)):
                if case is not None:
                    self.guards.append(self.in_loops(condition))
                    self.visit(case, time)
                    self.guards.pop()
        elif isinstance(s, LetStmt):
            reads = any(isinstance(n, BufferLoad) for n in walk(s.value))
            if reads:
                self.visit(Evaluate(s.value), (*time, 0))
                time = (*time, 1)
            self.lets[s.var] = self.known(s.value)
            self.visit(s.body, time)
        elif isinstance(s, (Allocate, AllocateConst)):
            self.local.add(s.buffer_var)
            self.visit(s.body, time)
        elif isinstance(s, (AttrStmt, DeclBuffer)):
            if isinstance(s, AttrStmt) and s.attr_key == "thread_extent" and hasattr(s.node, "var"):
                self.loops.append((s.node.var, const(0, s.node.var.dtype), self.known(s.value)))
                self.visit(s.body, (*time, s.node.var))
                self.loops.pop()
            else:
                self.visit(s.body, time)
        elif isinstance(s, BlockRealize):
            self.realize(s, time)
        elif hasattr(s, "body"):
            self.visit(s.body, time)
        else:
            self.statement(s, time)

    def known(self, e: Expr) -> Expr:
        return substitute(e, self.lets) if self.lets else e

    def in_loops(self, e: Expr) -> Expr:
        """``e`` without lets and iterators of blocks."""
        e = self.known(e)
        return substitute(e, self.bound) if self.bound else e

    def statement(self, s: Any, time: tuple[Any, ...]) -> None:
        if isinstance(s, Evaluate) and isinstance(s.value, IntImm):
            return
        found = _Accesses(self.lets, self.aliases, self.block)
        found.visit(s)
        count = self.bare[self.scope] = self.bare.get(self.scope, -1) + 1
        own = [v for v, _, _ in self.loops] if not self.blocks else [
            v for v, _, _ in self.loops if not any(uses_var(value, v) for _, value in self.coords)
        ]  # fmt: skip
        coords = self.coords if self.blocks else []
        self.units.append(
            Statement(
                f"{self.scope}#{count}", s,
                (*(v for v, _ in coords), *own), (*(e for _, e in coords), *own),
                tuple(self.loops), tuple(self.guards), time,
                inner=() if self.blocks else tuple(self.coords),
                accesses=found.found, commutes=_commutes(s, found.found, False), local=frozenset(self.local),
            )
        )  # fmt: skip

    def realize(self, s: BlockRealize, time: tuple[Any, ...]) -> None:
        block = s.block
        outer = len(self.coords), len(self.guards), self.scope
        self.guards.append(self.in_loops(s.predicate))
        values = {iv.var: self.in_loops(value) for iv, value in zip(block.iter_vars, s.iter_values)}
        self.coords.extend(values.items())
        around, self.bound = self.bound, {**self.bound, **values}
        self.local.update(b.data for b in block.alloc_buffers)
        aliases, outer_block = self.aliases, self.block
        self.block = block
        self.aliases = {**aliases, **{m.buffer: m.source for m in block.match_buffers}}
        if block.name != "root" or block.iter_vars:
            self.scope = block.name
        leaf = not any(isinstance(n, BlockRealize) for n in walk(block.body))
        if leaf and self.blocks:
            self.leaf(block, time, self.aliases)
        else:
            if block.init is not None:
                first = [
                    self.in_loops(iv.var.__eq__(iv.dom.min))
                    for iv in block.iter_vars
                    if iv.iter_type == "reduce" and iv.dom
                ]
                self.guards.extend(first)
                self.visit(block.init, (*time, 0))
                del self.guards[len(self.guards) - len(first) :]
            self.visit(block.body, (*time, 1))
        del self.coords[outer[0] :], self.guards[outer[1] :]
        self.scope, self.bound, self.aliases, self.block = outer[2], around, aliases, outer_block

    def leaf(self, block: Block, time: tuple[Any, ...], aliases: Any) -> None:
        coords = list(self.coords)
        bound = [value for _, value in coords]
        # A loop no iterator speaks of repeats the block: its variable tells the runs apart.
        own = [v for v, _, extent in self.loops if not any(uses_var(value, v) for value in bound)]
        own = [v for v in own if not _is_one(next(e for w, _, e in self.loops if w is v))]
        common: dict[str, Any] = {
            "coords": (*(v for v, _ in coords), *own),
            "values": (*bound, *own),
            "loops": tuple(self.loops),
            "guards": tuple(self.guards),
            "local": frozenset(self.local),
        }
        reduce_vars = [iv for iv in block.iter_vars if iv.iter_type == "reduce" and iv.dom is not None]
        if block.init is not None:
            found = _Accesses(self.lets, aliases, block)
            found.visit(block.init)
            values = dict(coords)
            first = [substitute(iv.var.__eq__(iv.dom.min), {iv.var: values[iv.var]}) for iv in reduce_vars]
            guards = (*self.guards, *first)
            unit = Statement(block.name, block, time=(*time, 0), accesses=found.found, part="init", **common)
            unit.guards = guards
            self.units.append(unit)
        found = _Accesses(self.lets, aliases, block)
        found.visit(block.body)
        if found.opaque:
            for regions, write in ((block.reads, False), (block.writes, True)):
                for region in regions:
                    found.add(region.buffer, tuple((r.min, r.extent) for r in region.region), write, block)
        self.units.append(
            Statement(
                block.name, block, time=(*time, 1), accesses=found.found,
                commutes=_commutes(block, found.found, bool(reduce_vars)), **common,
            )
        )  # fmt: skip


def _commutes(node: Any, accesses: Sequence[Access], reduces: bool) -> bool:
    """Whether runs of a block (or a bare statement) on one element may run in any order. Which of equal candidates a
    selection picks is open only where the program ``reduces``, by iterators of that kind."""
    found = Reduction.of(node)
    if not isinstance(found, Reduction) or (found.selects and not reduces):
        return False
    written = {a.buffer.data for a in accesses if a.write}
    return all(getattr(a.node, "buffer", None) in found.targets for a in accesses if a.buffer.data in written)


def _is_one(e: Expr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


class _Accesses:
    """Loads and stores of a statement, with the loops and guards they are under inside it."""

    def __init__(self, lets: dict[Var, Expr], aliases: Any = None, block: Block | None = None):
        self.lets = dict(lets)
        self.aliases = aliases or {}
        # what the block around says that it reads and writes: so much for views that only a pointer names
        self.declared = None if block is None else tuple({self.source(r.buffer) for r in rs} for rs in (block.reads, block.writes))  # fmt: skip
        self.loops: list[Loop] = []
        self.guards: list[Expr] = []
        self.found: list[Access] = []
        self.opaque = False
        self.private: set[Any] = set()
        self.pointers: dict[Var, Buffer] = {}

    def source(self, buffer: Buffer) -> Var:
        """The memory that ``buffer`` is, or is a view of."""
        while buffer in self.aliases:
            buffer = self.aliases[buffer].buffer
        return buffer.data

    def add(self, buffer: Buffer, indices: Any, write: bool, node: Any) -> None:
        while buffer in self.aliases:
            source = self.aliases[buffer]
            indices, buffer = tuple((r.min, r.extent) for r in source.region), source.buffer
        self.pointers[buffer.data] = buffer
        if buffer.data not in self.private:
            self.found.append(Access(buffer, indices, write, tuple(self.loops), tuple(self.guards), node))

    def known(self, e: Any) -> Any:
        return substitute(e, self.lets) if self.lets else e

    def visit(self, s: Any) -> None:
        if isinstance(s, For):
            self.visit(s.min)
            self.visit(s.extent)
            self.loops.append((s.loop_var, self.known(s.min), self.known(s.extent)))
            self.visit(s.body)
            self.loops.pop()
        elif isinstance(s, IfThenElse):
            self.visit(s.condition)
            self.guarded(s.condition, s.then_case, s.else_case)
        elif isinstance(s, Select) or (isinstance(s, Call) and s.op == "if_then_else"):
            condition, yes, no = (s.condition, s.true_value, s.false_value) if isinstance(s, Select) else s.args
            self.visit(condition)
            if isinstance(s, Select):
                self.visit(yes)
                self.visit(no)
            else:
                self.guarded(condition, yes, no)
        elif isinstance(s, (LetStmt, Let)):
            self.visit(s.value)
            self.lets[s.var] = self.known(s.value)
            self.visit(s.body)
        elif isinstance(s, BufferStore):
            self.visit(s.value)
            for index in s.indices:
                self.visit(index)
            self.add(s.buffer, tuple(self.known(i) for i in s.indices), True, s)
        elif isinstance(s, BufferLoad):
            for index in s.indices:
                self.visit(index)
            self.add(s.buffer, tuple(self.known(i) for i in s.indices), False, s)
        elif isinstance(s, Call):
            self.call(s)
        elif isinstance(s, (Allocate, AllocateConst)):
            self.private.add(s.buffer_var)
            self.visit(s.body)
        elif isinstance(s, Var):
            if s.dtype.is_handle:
                self.opaque = True
                view = next((v for v in self.aliases if v.data is s), None)
                for write in (False, True):
                    if view is None:
                        self.add(_whole(s), None, write, s)
                    elif self.declared is None or self.source(view) in self.declared[write]:
                        self.add(view, None, write, s)
        elif isinstance(s, Node) and not isinstance(s, Buffer):
            for child in s.children():
                self.visit(child)

    def guarded(self, condition: Expr, yes: Any, no: Any) -> None:
        for test, case in ((condition, yes), (Not(condition), no)):
            if case is not None:
                self.guards.append(self.known(test))
                self.visit(case)
                self.guards.pop()

    def call(self, s: Call) -> None:
        if s.op == "prefetch":  # touches a cache, no element
            for index in prefetched(s):
                self.visit(index)
            return
        opaque = effect_of(s) == "opaque"
        self.opaque = self.opaque or opaque
        for arg in s.args:
            if isinstance(arg, BufferRegion):
                box = tuple((self.known(r.min), self.known(r.extent)) for r in arg.region)
                self.add(arg.buffer, box, False, s)
                if opaque:
                    self.add(arg.buffer, box, True, s)
            elif s.op == "address_of" and isinstance(arg, BufferLoad):
                self.opaque = True
                self.add(arg.buffer, None, False, s)
                self.add(arg.buffer, None, True, s)
            elif isinstance(arg, Node):
                self.visit(arg)


def _whole(pointer: Var) -> Buffer:
    """A stand-in buffer for memory that only its pointer names."""
    from ...buffer import decl_buffer

    return decl_buffer((1,), str(pointer.pointer_dtype or "int8"), pointer.name, data=pointer)


# ---------------------------------------------------------------- relations
