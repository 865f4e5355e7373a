"""What runs when, and which runs touch one element: a program as exact integer relations.

A ``Unit`` is something that runs many times: a block without blocks inside (its ``init`` is a unit of its own), or
a bare statement. An instance of a unit is told by ``coords``; ``time`` gives each instance its place in the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..arith.sets import Formula, Names, NotAffine
from ..buffer import Buffer, BufferRegion, Range
from ..expr import (
    Add,
    And,
    BufferLoad,
    Call,
    Cast,
    Expr,
    IntImm,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Ramp,
    Select,
    Sub,
    Var,
    const,
)
from ..node import Node
from ..op import effect_of
from ..stmt import (
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
from ..visit import substitute, uses_var, walk
from .access import prefetched
from .reducers import combines

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
class Unit:
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


def units_of(stmt: Any, blocks: bool = True) -> list[Unit]:
    """The units of a statement in program order. ``blocks`` False takes blocks apart into bare statements, whose
    coordinates are their loops."""
    walker = _Walker(blocks)
    walker.visit(stmt, ())
    return walker.units


class _Walker:
    def __init__(self, blocks: bool):
        self.blocks = blocks
        self.units: list[Unit] = []
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
            Unit(
                f"{self.scope}#{count}", s,
                (*(v for v, _ in coords), *own), (*(e for _, e in coords), *own),
                tuple(self.loops), tuple(self.guards), time,
                inner=() if self.blocks else tuple(self.coords),
                accesses=found.found, commutes=commutes(s), local=frozenset(self.local),
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
            unit = Unit(block.name, block, time=(*time, 0), accesses=found.found, part="init", **common)
            unit.guards = guards
            self.units.append(unit)
        found = _Accesses(self.lets, aliases, block)
        found.visit(block.body)
        if found.opaque:
            for regions, write in ((block.reads, False), (block.writes, True)):
                for region in regions:
                    found.add(region.buffer, tuple((r.min, r.extent) for r in region.region), write, block)
        self.units.append(
            Unit(
                block.name, block, time=(*time, 1), accesses=found.found,
                commutes=commutes(block.body) or (bool(reduce_vars) and combines(block)), **common,
            )
        )  # fmt: skip


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
    from ..buffer import decl_buffer

    return decl_buffer((1,), str(pointer.pointer_dtype or "int8"), pointer.name, data=pointer)


_COMMUTING = (Add, Mul, Min, Max, And, Or)


def commutes(s: Any) -> bool:
    """Whether runs of ``s`` on one element may run in any order: ``C[i] = C[i] op v`` with one associative op."""
    while isinstance(s, (For, IfThenElse, LetStmt)):
        if isinstance(s, IfThenElse):
            if s.else_case is not None or not _reads_other(s.condition, s.then_case):
                return False
            s = s.then_case
        else:
            s = s.body
    if not isinstance(s, BufferStore):
        return False
    value = s.value
    if isinstance(value, Cast):
        return False
    if isinstance(value, Call) and value.op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        sides = value.args
    elif isinstance(value, _COMMUTING):
        sides = (value.a, value.b)
    elif isinstance(value, Sub):
        return _is_load_of(value.a, s) and not _mentions(value.b, s.buffer)
    else:
        return False
    kind = type(value)
    terms = _terms(kind, value) if not isinstance(value, Call) else list(sides)
    own = [t for t in terms if _is_load_of(t, s)]
    return len(own) == 1 and not any(_mentions(t, s.buffer) for t in terms if t is not own[0])


def _terms(kind: Any, e: Any) -> list[Any]:
    return [*_terms(kind, e.a), *_terms(kind, e.b)] if isinstance(e, kind) else [e]


def _reads_other(condition: Any, body: Any) -> bool:
    written = {n.buffer for n in walk(body) if isinstance(n, BufferStore)}
    return not any(_mentions(condition, b) for b in written)


def _mentions(e: Any, buffer: Buffer) -> bool:
    return any(isinstance(n, BufferLoad) and n.buffer.data is buffer.data for n in walk(e))


def _is_load_of(e: Any, store: BufferStore) -> bool:
    from ..arith.linear import key

    return (
        isinstance(e, BufferLoad)
        and e.buffer is store.buffer
        and [key(i) for i in e.indices] == [key(i) for i in store.indices]
    )


# ---------------------------------------------------------------- relations


def add_loops(formula: Formula, loops: Sequence[Loop], rough: bool = False) -> None:
    """``rough``: a loop whose bounds data decides may take any value."""
    for var, low, extent in loops:
        try:
            formula.within(var, low, extent)
        except NotAffine:
            if not rough:
                raise
            formula.var(var)


def time_map(unit: Unit, names: Names, length: int, coord_names: Sequence[str]) -> Any:
    """The relation from instances (``coord_names``) to the moments they run. Raises ``NotAffine``."""
    formula = Formula(names)
    add_loops(formula, unit.loops)
    for guard in unit.guards:
        try:
            formula.require(guard)
        except NotAffine:
            continue  # data decides: both programs are taken to ask the same question
    mine = {v for v, _, _ in unit.loops}
    for name, value in zip(coord_names, unit.values):
        formula.equal(name, value)
    moments = [formula.var(t) if isinstance(t, Var) else str(t) for t in unit.time]
    moments += ["0"] * (length - len(moments))
    return formula.map(coord_names, moments, [names.of(v) for v in mine])


def element_map(
    unit: Unit, access: Access, names: Names, coord_names: Sequence[str], on_loops: bool = False, rough: bool = False
) -> Any:
    """The relation from instances to the elements ``access`` touches (everything where an index is not affine).

    ``on_loops``: coordinates are the unit's own loops, whose bounds and guards are added; ``rough``: those that are
    affine (more instances than there are, and more elements).
    """
    formula = Formula(names)
    hidden: list[str] = []
    if on_loops:
        add_loops(formula, unit.loops, rough)
        for var, value in unit.inner:
            hidden.append(formula.var(var))
            try:
                formula.equal(names.of(var), value)
            except NotAffine:
                if not rough:
                    raise
        for guard in unit.guards:
            _try_require(formula, guard)
    elif has_bits(access):
        _know_coords(formula, unit)
    for var, low, extent in access.loops:
        formula.var(var)
        hidden.append(names.of(var))
        try:
            formula.within(var, low, extent)
        except NotAffine:
            continue
    for guard in access.guards:
        _try_require(formula, guard)
    element = []
    for axis in range(access.buffer.ndim):
        name = names.fresh("e")
        element.append(name)
        if access.indices is None:
            continue
        index = access.indices[axis]
        try:
            if isinstance(index, tuple):
                formula.between(name, *index)
            elif isinstance(index, Ramp):
                if not isinstance(index.stride, IntImm):
                    raise NotAffine(index)
                formula.lane_of(name, index.base, index.stride.value, index.lanes)
            else:
                formula.equal(name, index)
        except NotAffine:
            continue
    return formula.map(coord_names, element, [*hidden, *element])


def without_swizzles(units: Sequence[Unit]) -> list[Unit]:
    """``units`` with the accesses of each swizzled buffer as they would be without: its elements in other places, which
    changes nothing of which accesses meet. Buffers of which not all accesses are swizzled alike stay as they are."""
    swizzled = dict.fromkeys(a.buffer.data for u in units for a in u.accesses if has_bits(a))
    if not swizzled:
        return list(units)
    from ..arith import Analyzer
    from ..arith.swizzle import unswizzled

    plain: dict[int, Access] = {}
    rules: dict[Var, set[Any]] = {}
    for unit in units:
        for access in unit.accesses:
            if access.buffer.data not in swizzled:
                continue
            ctx = Analyzer({v: Range(low, extent) for v, low, extent in (*unit.loops, *access.loops)})
            for var, value in (*zip(unit.coords, unit.values), *unit.inner):
                if not any(var is v for v, _, _ in unit.loops):
                    least, most = ctx.bound(value)
                    if least is not None and most is not None:
                        ctx.bind(var, Range(const(least, var.dtype), const(most - least + 1, var.dtype)))
            indices = access.indices
            found = None
            if indices is not None and all(isinstance(i, Expr) and not isinstance(i, Ramp) for i in indices):
                found = unswizzled(indices, ctx)
            rules.setdefault(access.buffer.data, set()).add(None if found is None else (access.buffer, found.rule))
            if found is not None:
                plain[id(access)] = replace(access, indices=found.indices)
    alike = {data for data, seen in rules.items() if len(seen) == 1 and None not in seen}
    return [
        replace(u, accesses=[plain[id(a)] if a.buffer.data in alike else a for a in u.accesses]) for u in units
    ]  # fmt: skip


def has_bits(access: Access) -> bool:
    """Whether an index has operations on bits: exact sets speak of them, but not quickly."""
    parts = [p for i in access.indices or () for p in (i if isinstance(i, tuple) else (i,))]
    return any(isinstance(n, Call) and n.op.startswith("bitwise") for p in parts for n in walk(p))


def _know_coords(formula: Formula, unit: Unit) -> None:
    """What the loops say of the coordinates: between which numbers each is."""
    from ..arith import Analyzer

    ctx = Analyzer({var: Range(low, extent) for var, low, extent in unit.loops})
    for var, value in zip(unit.coords, unit.values):
        least, most = ctx.bound(value)
        if least is not None and most is not None:
            formula.know(var, least, most)


def _try_require(formula: Formula, condition: Expr) -> None:
    try:
        formula.require(condition)
    except NotAffine:
        return


def is_exact(unit: Unit, access: Access) -> bool:
    """Whether sets tell exactly which elements ``access`` touches: no data decides an index, a bound or a guard."""
    return access.indices is not None and why_inexact(unit, access) is None


def why_inexact(unit: Unit, access: Access) -> NotAffine | None:
    """The expression because of which sets do not tell exactly which elements ``access`` touches."""
    formula = Formula(Names())
    try:
        add_loops(formula, (*unit.loops, *access.loops))
        for guard in (*unit.guards, *access.guards):
            formula.require(guard)
        _know_coords(formula, unit)
        for index in access.indices or ():
            for part in index if isinstance(index, tuple) else (index.base,) if isinstance(index, Ramp) else (index,):
                formula.affine(part)
    except NotAffine as error:
        return error
    return None
