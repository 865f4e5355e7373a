"""Scalar replacement: elements that a loop updates repeatedly are loaded before it and stored after it.

``for k: C[i, j] = C[i, j] + …`` becomes a local element updated in the loop, which LLVM keeps in a register; LLVM's own
store motion gives up on unrolled tiles of them. Done only if provably correct: the loop accesses the buffer at
invariant, pairwise disjoint elements, each one in every iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tir.aliases import may_alias
from tir.analysis.evaluation import Certain
from tir.arith.linear import linear
from tir.buffer import Buffer, decl_buffer
from tir.expr import TRUE, Add, Broadcast, BufferLoad, Call, Expr, FloatImm, IntImm, Let, Mul, Ramp, Sub, Var
from tir.function import PrimFunc
from tir.op import effect_of
from tir.stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    seq,
)
from tir.visit import kinds, nodes_of, rewrite, uses_var, walk

_READS = {BufferLoad, Call, Let}
MOST = 64  # elements (or vectors) held at once
HELD = "_held"  # suffix of the local buffers that hold them


def promote_accumulators(func: PrimFunc, notes: list[Any] | None = None) -> PrimFunc:
    """``func`` with the loop-invariant elements that its serial loops update held in local memory.

    ``notes`` gets a tuple for each buffer with such elements: the loop's name, the buffer's, the number of elements, the
    lanes of each, and why they were not held (empty if they were).
    """
    if may_alias(func):
        return func
    handed_out = set()
    for node in nodes_of(func.body) if Call in kinds(func.body) else ():
        if isinstance(node, Call):
            handed_out.update(a for a in node.args if isinstance(a, Var) and a.dtype.is_handle)
            if node.op == "address_of" and isinstance(node.args[0], BufferLoad):
                handed_out.add(node.args[0].buffer.data)

    known = _Known()

    def visit(item: Any) -> Any:
        if not isinstance(item, Stmt):
            return item
        new = item.map_children(visit)  # noqa: F821  (deleted only afterwards)
        return _promote(new, handed_out, known, notes) if isinstance(new, For) and new.kind == "serial" else new

    body = visit(func.body)
    del visit  # it refers to itself, and would stay until garbage is collected
    return func.with_body(body)


class _Place:
    """One element, or one vector of adjacent elements, of a buffer."""

    def __init__(self, buffer: Buffer, indices: tuple[Expr, ...]):
        self.buffer, self.indices = buffer, indices
        self.lanes = 1
        self.ok = bool(indices)
        self.reads = False  # whether an index loads or calls
        forms = []
        for axis, index in enumerate(indices):
            if isinstance(index, Ramp):
                self.ok &= axis == len(indices) - 1 and isinstance(index.stride, IntImm) and index.stride.value == 1
                self.ok &= index.base.dtype.lanes == 1
                self.reads |= not isinstance(index.stride, IntImm)
                self.lanes, index = index.lanes, index.base
            forms.append(linear(index))
            self.reads |= not _READS.isdisjoint(map(type, nodes_of(index)))
            self.ok &= index.dtype.lanes == 1
        self.ok &= not self.reads
        self.constants = tuple(form.const for form in forms)
        self.atoms = tuple(form.terms_key() for form in forms)
        self.key = (buffer, self.lanes, self.constants, self.atoms)

    def disjoint(self, other: _Place) -> bool:
        """Whether two different places are proved to share no element."""
        if self.atoms != other.atoms or len(self.constants) != len(other.constants):
            return False
        if any(a != b for a, b in zip(self.constants[:-1], other.constants[:-1])):
            return self.buffer is other.buffer
        gap = self.constants[-1] - other.constants[-1]
        return self.buffer is other.buffer and (gap >= other.lanes or -gap >= self.lanes)


@dataclass
class _Facts:
    """What a statement does: ``barred`` if loops around it must not be changed; the variables it binds; the places it
    accesses, by memory; the memory it stores to."""

    barred: bool = False
    bound: set[Var] = field(default_factory=set)
    places: dict[Var, dict[Any, _Place]] = field(default_factory=dict)
    stored: set[Var] = field(default_factory=set)

    def add(self, other: _Facts) -> None:
        self.barred |= other.barred
        self.bound |= other.bound
        self.stored |= other.stored
        for data, places in other.places.items():
            mine = self.places.get(data)
            if mine is None:
                self.places[data] = dict(places)
            else:
                mine.update(places)


_SILENT = frozenset(
    (Var, IntImm, FloatImm, Buffer, Ramp, Broadcast, Add, Sub, Mul)
)  # expressions without facts of their own


class _Known:
    """Caches facts of statements and places of accesses, which every enclosing loop asks for."""

    def __init__(self) -> None:
        places: dict[Any, _Place] = {}
        self.place = partial(_place, places)
        self.facts: dict[Stmt, _Facts] = {}
        self.always = Certain(partial(_accessed, places))  # keys of places, accessing which before a statement is safe

    def of(self, s: Stmt) -> _Facts:
        found = self.facts.get(s)
        if found is None:
            found = self.facts[s] = _Facts()
            self._see(s, found)
            for child in s.children():
                if isinstance(child, Stmt):
                    found.add(self.of(child))
                elif not isinstance(child, (Var, Buffer)):
                    for node in walk(child, self._enters):
                        self._see(node, found)
        return found

    def _enters(self, node: Any) -> bool:
        """Whether to visit the children: the indices of most loads need no visit."""
        return not isinstance(node, BufferLoad) or self.place(node).reads

    def _see(self, node: Any, facts: _Facts) -> None:
        """Add the facts of ``node`` itself, without its children."""
        if type(node) in _SILENT:
            return
        if isinstance(node, (BufferLoad, BufferStore)):
            place = self.place(node)
            facts.places.setdefault(node.buffer.data, {})[place.key] = place
            if isinstance(node, BufferStore):
                facts.stored.add(node.buffer.data)
        elif isinstance(node, (AssertStmt, While)) or (isinstance(node, AttrStmt) and "volatile" in node.attr_key):
            facts.barred = True
        elif isinstance(node, (Allocate, AllocateConst)):
            facts.bound.add(node.buffer_var)
        elif isinstance(node, Call):
            facts.barred |= effect_of(node) not in ("pure", "read")
        elif isinstance(node, For):
            facts.bound.add(node.loop_var)
            facts.barred |= node.kind == "parallel"
        elif isinstance(node, (LetStmt, Let)):
            facts.bound.add(node.var)


def _place(places: dict[Any, _Place], access: BufferLoad | BufferStore) -> _Place:
    key = (access.buffer, access.indices)
    found = places.get(key)
    if found is None:
        found = places[key] = _Place(access.buffer, access.indices)
    return found


def _accessed(places: dict[Any, _Place], node: Any) -> list[Any]:
    return [_place(places, node).key] if isinstance(node, (BufferLoad, BufferStore)) else []


def _promote(loop: For, handed_out: set[Var], known: _Known, notes: list[Any] | None) -> Stmt:
    facts = known.of(loop.body)
    if facts.barred:
        return loop
    bound = {loop.loop_var, *facts.bound}
    chosen: dict[Any, _Place] = {}
    for data, places in facts.places.items():  # in the order of the text, so that the code is the same each time
        mine = list(places.values())
        if data not in facts.stored or data in bound or not all(_steady(p, bound) for p in mine):
            continue
        why = _obstacle(mine, data in handed_out, len(chosen)) or ""
        if not why and not all(p.key in known.always.of(loop.body) for p in mine):
            why = "some of it is not touched in every iteration"
        if not why:
            chosen.update((p.key, p) for p in mine)
        if notes is not None:
            notes.append((loop.loop_var.name, mine[0].buffer.name, len(mine), max(p.lanes for p in mine), why))
    return _rewritten(loop, chosen, known) if chosen else loop


def _obstacle(places: list[_Place], handed_out: bool, already: int) -> str | None:
    if handed_out:
        return "its address is passed on"
    if len(places) + already > MOST:
        return f"more than {MOST} elements or vectors would be held"
    return None if _all_disjoint(places) else "its accesses may overlap"


def _steady(place: _Place, bound: set[Var]) -> bool:
    """Whether the place is loop-invariant."""
    buffer = place.buffer
    parts = (
        *place.indices,
        *buffer.shape,
        *buffer.strides,
        *(() if buffer.elem_offset is None else (buffer.elem_offset,)),
    )
    return place.ok and not any(uses_var(part, bound) for part in parts)


def _all_disjoint(places: list[_Place]) -> bool:
    return all(a.disjoint(b) for k, a in enumerate(places) for b in places[:k])


def _rewritten(loop: For, chosen: dict[Any, _Place], known: _Known) -> Stmt:
    """Loads, the loop on local elements, stores; guarded by the condition that the loop runs at least once."""
    local: dict[Any, tuple[Buffer, Expr]] = {}
    before: list[Stmt] = []
    after: list[Stmt] = []
    buffers: list[Buffer] = []
    groups: dict[tuple[Any, int], list[_Place]] = {}
    for place in chosen.values():
        groups.setdefault((place.buffer.dtype, place.lanes), []).append(place)
    for (dtype, lanes), places in groups.items():
        buffer = decl_buffer((len(places) * lanes,), dtype, places[0].buffer.name + HELD, scope="local")
        buffers.append(buffer)
        for k, place in enumerate(places):
            at = IntImm(k * lanes)
            index: Expr = at if lanes == 1 else Ramp(at, IntImm(1), lanes)
            local[place.key] = (buffer, index)
            before.append(BufferStore(buffer, BufferLoad(place.buffer, place.indices), (index,)))
            after.append(BufferStore(place.buffer, BufferLoad(buffer, (index,)), place.indices))

    def redirect(node: Any) -> Any:
        if isinstance(node, (BufferLoad, BufferStore)):
            found = local.get(known.place(node).key)
            if found is not None:
                return node.replace(buffer=found[0], indices=(found[1],))
        return None

    body: Stmt = seq([*before, loop.replace(body=rewrite(loop.body, redirect)), *after])
    if not isinstance(loop.extent, IntImm):
        body = IfThenElse(loop.extent > IntImm(0, loop.extent.dtype), body)
    elif loop.extent.value <= 0:
        return loop
    for buffer in buffers:
        body = Allocate(buffer.data, buffer.dtype, buffer.shape, TRUE, DeclBuffer(buffer, body))
    return body
