"""Scalar replacement: elements that a loop updates repeatedly are loaded before it and stored after it.

``for k: C[i, j] = C[i, j] + …`` becomes a local element updated in the loop, which LLVM keeps in a register; LLVM's own
store motion gives up on unrolled tiles of them. Done only if provably correct: the loop accesses the buffer at
invariant, pairwise disjoint elements, each one in every iteration or surely before the loop; or in the lanes of one
invariant mask, under which it is then loaded and stored, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tir.aliases import may_alias, shares_memory, sharing
from tir.analysis.evaluation import Certain
from tir.arith.linear import linear
from tir.buffer import Buffer, decl_buffer
from tir.equal import structural_equal
from tir.expr import BufferLoad, Call, Expr, IntImm, Let, Ramp, Var
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
    SeqStmt,
    Stmt,
    While,
    allocated,
    seq,
)
from tir.transform.use_workspace import fits_stack
from tir.visit import LEAVES, Somewhere, accesses, kinds, nodes_of, rewrite, statements, vars_in

_MEMORY = (Allocate, AllocateConst, DeclBuffer)  # their bodies run as often as they do, with all variables as before
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

    known = _Known({s.buffer.data for s in statements(func.body) if isinstance(s, BufferStore)}, _registers(func.body))

    def visit(item: Any, before: tuple[Stmt, ...] = ()) -> Any:
        if not isinstance(item, Stmt) or isinstance(item, BufferStore):
            return item
        if isinstance(item, SeqStmt):
            return item.updated(stmts=in_order(item.stmts, before))
        if isinstance(item, _MEMORY):
            return item.updated(body=visit(item.body, before))  # noqa: F821  (deleted only afterwards)
        new = item.map_children(visit)  # noqa: F821
        return _promote(new, handed_out, known, notes, before) if isinstance(new, For) and new.kind == "serial" else new

    def in_order(stmts: tuple[Stmt, ...], before: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(visit(s, (*before, *stmts[:k])) if For in kinds(s) else s for k, s in enumerate(stmts))  # noqa: F821

    body = visit(func.body)
    del visit  # it refers to itself, and would stay until garbage is collected
    return func.with_body(body)


class _Place:
    """One element, or one vector of adjacent elements, of a buffer."""

    def __init__(self, buffer: Buffer, indices: tuple[Expr, ...]):
        self.buffer, self.indices = buffer, indices
        self.lanes = 1
        self.ok = bool(indices)
        forms = []
        for axis, index in enumerate(indices):
            if isinstance(index, Ramp):
                self.ok &= axis == len(indices) - 1 and isinstance(index.stride, IntImm) and index.stride.value == 1
                self.ok &= index.base.dtype.lanes == 1
                self.lanes, index = index.lanes, index.base
            forms.append(linear(index))
            self.ok &= _READS.isdisjoint(map(type, nodes_of(index)))
            self.ok &= index.dtype.lanes == 1
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


class _Known:
    """Places of accesses, what these depend on, and those in ``stored`` memory that a statement surely touches, kept for all enclosing loops."""

    def __init__(self, stored: set[Var], registers: set[Var]):
        self.registers = registers
        self.place = partial(_place, {})
        self.variables: dict[Any, frozenset[Var]] = {}
        self.masks: list[Expr] = []
        self.mask = partial(_number_of_mask, self.masks, {})
        # keys of places, accessing which before a statement is safe; and pairs with the numbers of masks, under which it is
        self.always = Certain(partial(_accessed, stored, self.place, self.mask))

    def is_accessed(self, place: _Place, statements: Sequence[Stmt]) -> bool:
        """Whether one of some statements surely accesses ``place``."""
        return any(place.key in self.always.of(s) for s in statements)

    def mask_of(self, place: _Place, body: Stmt, bound: set[Var]) -> Expr | None:
        """The invariant mask under which every iteration of ``body`` accesses the vector ``place``; None if some access has another mask or none, or if
        nothing reads the vector."""
        always = self.always.of(body)
        if not any((place.key, n) in always for n in range(len(self.masks))):
            return None
        numbers, is_read = set[int | None](), False
        left: list[tuple[Any, int | None]] = [(body, None)]
        while left:
            item, mask = left.pop()
            if isinstance(item, (BufferLoad, BufferStore)) and self.place(item).key == place.key:
                numbers.add(mask)
                is_read |= isinstance(item, BufferLoad)
            own = self.mask(item)
            for child in () if type(item) in LEAVES else item.children():
                left.append((child, mask if own is None else own if mask is None and child is item.then_case else -1))
        number = numbers.pop() if is_read and len(numbers) == 1 else None
        if number is None or number < 0 or (place.key, number) not in always:
            return None
        mask = self.masks[number]
        is_fixed = bound.isdisjoint(vars_in(mask)) and _READS.isdisjoint(map(type, nodes_of(mask)))
        return mask if is_fixed and place.lanes == mask.dtype.lanes else None

    def is_steady(self, access: _Place | BufferStore, bound: set[Var]) -> bool:
        """Whether what is accessed is loop-invariant."""
        key = (access.buffer, access.indices)
        found = self.variables.get(key)
        if found is None:
            buffer = access.buffer
            offset = () if buffer.elem_offset is None else (buffer.elem_offset,)
            found = self.variables[key] = frozenset(vars_in(*access.indices, *buffer.shape, *buffer.strides, *offset))
        return found.isdisjoint(bound)


def _registers(body: Stmt) -> set[Var]:
    """The allocations on the stack of one function that are accessed at constants alone: LLVM splits them into registers by itself."""
    found = {
        s.buffer_var for s in statements(body) if isinstance(s, Allocate) and fits_stack(s) and not _has_threads(s.body)
    }
    accessed = sharing([n for n in nodes_of(body) if type(n) in (BufferLoad, BufferStore)], found) if found else ()
    return found - {a.buffer.data for a in accessed if not all(map(is_constant, a.indices))}


_has_threads = Somewhere(lambda loop: loop.kind == "parallel", For)


def is_constant(index: Any) -> bool:
    """Whether an index is a number, or numbers from one on."""
    return isinstance(index, IntImm) or (isinstance(index, Ramp) and isinstance(index.base, IntImm))


def _place(places: dict[Any, _Place], access: BufferLoad | BufferStore) -> _Place:
    key = (access.buffer, access.indices)
    found = places.get(key)
    if found is None:
        found = places[key] = _Place(access.buffer, access.indices)
    return found


def _accessed(
    stored: set[Var], place: Callable[[Any], _Place], mask: Callable[[Any], int | None], node: Any
) -> list[Any]:
    if isinstance(node, (BufferLoad, BufferStore)):
        return [place(node).key] if shares_memory(node, stored) else []
    number = mask(node)
    if number is None:
        return []
    return [(key, number) for key in Certain(partial(_accessed, stored, place, mask)).of(node.then_case)]


def _number_of_mask(masks: list[Expr], numbers: dict[Expr, int], node: Any) -> int | None:
    """The place in ``masks`` of the condition of a statement that runs in some lanes; equal ones have the same."""
    if not isinstance(node, IfThenElse) or node.condition.dtype.lanes == 1:
        return None
    number = numbers.get(node.condition)
    if number is None:
        equal = (k for k, mask in enumerate(masks) if structural_equal(mask, node.condition))
        number = numbers[node.condition] = next(equal, len(masks))
        if number == len(masks):
            masks.append(node.condition)
    return number


def _promote(loop: For, handed_out: set[Var], known: _Known, notes: list[Any] | None, before: tuple[Stmt, ...]) -> Stmt:
    bound, stored = _bound_and_stored(loop, known)
    if not stored or _is_barred(loop.body):
        return loop
    found: dict[Var, dict[Any, _Place]] = {}
    for access in sharing(
        accesses(loop.body), stored
    ):  # in the order of the text, so that the code is the same each time
        place = known.place(access)
        found.setdefault(access.buffer.data, {})[place.key] = place
    chosen: dict[Any, _Place] = {}
    masks: dict[Any, Expr | None] = {}
    for data, places in found.items():
        mine = list(places.values())
        if not all(p.ok and known.is_steady(p, bound) for p in mine):
            continue
        why = _obstacle(mine, data in handed_out, len(chosen)) or ""
        always = known.always.of(loop.body)
        left = [] if why else [p for p in mine if p.key not in always and not known.is_accessed(p, before)]
        under = {p.key: known.mask_of(p, loop.body, bound) for p in left}
        if None in under.values():
            why = "some of it is not touched in every iteration"
        if not why and data not in known.registers:
            chosen.update((p.key, p) for p in mine)
            masks.update(under)
        if notes is not None:
            notes.append((loop.loop_var.name, mine[0].buffer.name, len(mine), max(p.lanes for p in mine), why))
    return _rewritten(loop, chosen, masks, known) if chosen else loop


def _bound_and_stored(loop: For, known: _Known) -> tuple[set[Var], set[Var]]:
    """The variables that a loop binds, and the memory from outside that it stores to at the same elements each time."""
    bound, stores = {loop.loop_var}, list[BufferStore]()
    for s in statements(loop.body):
        if isinstance(s, BufferStore):
            stores.append(s)
        elif type(s) in _BINDING:
            bound.add(_BINDING[type(s)](s))
    if Let in kinds(loop.body):
        bound.update(n.var for n in nodes_of(loop.body) if isinstance(n, Let))
    moving = {s.buffer.data for s in stores if not known.is_steady(s, bound)}
    return bound, {s.buffer.data for s in stores} - moving - bound


_BINDING: dict[type, Callable[[Any], Var]] = {
    For: lambda s: s.loop_var,
    LetStmt: lambda s: s.var,
    **dict.fromkeys((Allocate, AllocateConst), lambda s: s.buffer_var),
}


def _is_barred(body: Stmt) -> bool:
    """Whether loops around a statement must not be changed."""
    return not _BARRING.isdisjoint(kinds(body)) and any(
        isinstance(n, (AssertStmt, While))
        or (isinstance(n, AttrStmt) and "volatile" in n.attr_key)
        or (isinstance(n, Call) and effect_of(n) not in ("pure", "read"))
        or (isinstance(n, For) and n.kind == "parallel")
        for n in nodes_of(body)
    )


_BARRING = {AssertStmt, While, AttrStmt, Call, For}


def _obstacle(places: list[_Place], handed_out: bool, already: int) -> str | None:
    if handed_out:
        return "its address is passed on"
    if len(places) + already > MOST:
        return f"more than {MOST} elements or vectors would be held"
    is_apart = all(a.disjoint(b) for k, a in enumerate(places) for b in places[:k])
    return None if is_apart else "its accesses may overlap"


def _rewritten(loop: For, chosen: dict[Any, _Place], masks: dict[Any, Expr | None], known: _Known) -> Stmt:
    """Loads, the loop on local elements, stores; guarded by the condition that the loop runs at least once, and by the ``masks``."""
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
            load = BufferStore(buffer, BufferLoad(place.buffer, place.indices), (index,))
            store = BufferStore(place.buffer, BufferLoad(buffer, (index,)), place.indices)
            mask = masks.get(place.key)
            before.append(load if mask is None else IfThenElse(mask, load))
            after.append(store if mask is None else IfThenElse(mask, store))

    memory = {place.buffer.data for place in chosen.values()}

    def redirect(node: Any) -> Any:
        if isinstance(node, (BufferLoad, BufferStore)) and shares_memory(node, memory):
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
        body = allocated(buffer, body)
    return body
