"""Allocations whose lifetimes do not overlap share memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..arith.linear import key
from ..expr import Var
from ..function import PrimFunc
from ..stmt import SERIAL, UNROLLED, Allocate, AttrStmt, BufferStore, For, Stmt
from ..visit import free_vars, nodes_of, statements, substitute
from .layout import allocated_bytes
from .lifetimes import Lifetimes, Spans, disjoint, pointers_in
from .passes import func_pass
from .use_workspace import fits_stack, is_plain

SMALLEST = 1024  # bytes: smaller buffers are better kept apart, where they can live in registers
Path = tuple[Stmt, ...]


class _Places:
    """Where each pointer is allocated, and how pointers are used that cannot share memory, or only with their type."""

    def __init__(self, func: PrimFunc):
        self.paths: dict[Var, list[Path]] = {}  # the statements around each allocation, and itself
        self.zones: dict[Var, list[For | None]] = {}  # the innermost concurrent loop around it
        self.fixed: set[Var] = set()  # used when its statement is over, or by threads
        self.raw: set[Var] = set()  # used as a pointer to its type
        self._visit(func.body, (), None)

    def _visit(self, s: Stmt, path: Path, zone: For | None) -> None:
        path = (*path, s)
        if isinstance(s, Allocate):
            self.paths.setdefault(s.buffer_var, []).append(path)
            self.zones.setdefault(s.buffer_var, []).append(zone)
            self._visit(s.body, path, zone)
            return
        if isinstance(s, AttrStmt) and (s.attr_key.startswith("async_") or s.attr_key == "thread_extent"):
            self.fixed.update(pointers_in(s))
        if isinstance(s, BufferStore) and s.value.dtype.is_handle:
            self.fixed.update(pointers_in(s.value))
        if isinstance(s, For) and s.kind not in ("serial", "unrolled"):
            zone = s
        for child in s.children():
            if isinstance(child, Stmt):
                self._visit(child, path, zone)
            else:
                self.raw.update(n for n in nodes_of(child) if type(n) is Var and n.dtype.is_handle)

    def common(self, pointers: list[Var]) -> Stmt:
        """The innermost statement around all allocations of ``pointers``."""
        first, *others = (path for p in pointers for path in self.paths[p])
        return [s for depth, s in enumerate(first) if all(o[depth : depth + 1] == (s,) for o in others)][-1]


@dataclass
class _Memory:
    """An allocation, and the pointers that share it: the first is its own, the others are not larger."""

    owner: Allocate
    zone: For | None
    pointers: list[Var] = field(default_factory=list[Var])

    def has_room(self, other: Allocate, lives: Spans, raw: set[Var]) -> bool:
        """Whether ``other`` fits in size, scope, type and time."""
        if other.buffer_var.scope != self.owner.buffer_var.scope or not self._fits(other, raw):
            return False
        return all(disjoint(lives[other.buffer_var], lives[p]) for p in self.pointers)

    def _fits(self, other: Allocate, raw: set[Var]) -> bool:
        mine, its = self.owner.dtype, other.dtype
        room, needed = allocated_bytes(self.owner), allocated_bytes(other)
        if room is None or needed is None:
            return mine is its and room is needed and [*map(key, self.owner.extents)] == [*map(key, other.extents)]
        if fits_stack(other) and not fits_stack(self.owner):
            return False
        if mine is its:
            return needed <= room
        plain = all(t.bits % 8 == 0 and not t.is_bool and not t.is_handle for t in (mine, its))
        return plain and other.buffer_var not in raw and needed <= room and room % its.element.bytes == 0


def _may_share(a: Allocate, known: set[Var]) -> bool:
    """Whether the allocation may stand elsewhere in its function: it is large, unconditional, and of a size that is
    known at the start."""
    if not is_plain(a):
        return False
    size = allocated_bytes(a)
    return all(known.issuperset(free_vars(e)) for e in a.extents) if size is None else size >= SMALLEST


def _memories(lives: Lifetimes, places: _Places) -> list[_Memory]:
    """Who shares: the largest first, each in the first memory that has room."""
    made: dict[For | None, list[_Memory]] = {}
    largest_first = sorted(lives.allocs.values(), key=lambda a: -(allocated_bytes(a) or 0))
    for a in largest_first:
        pointer, zones = a.buffer_var, places.zones[a.buffer_var]
        if pointer in places.fixed or pointer not in lives.exact or any(z is not zones[0] for z in zones):
            continue
        memories = made.setdefault(zones[0], [])
        found = next((m for m in memories if m.has_room(a, lives.exact, places.raw)), None)
        if found is None:
            memories.append(found := _Memory(a, zones[0]))
        found.pointers.append(pointer)
    return [m for memories in made.values() for m in memories if len(m.pointers) > 1]


def _rebuilt(body: Stmt, shared: set[Var], placed: dict[Stmt, list[_Memory]]) -> Stmt:
    """``body`` without the allocations ``shared``, and with those ``placed`` around the statements they are for."""

    def visit(s: Stmt) -> Stmt:
        made = visit(s.body) if isinstance(s, Allocate) and s.buffer_var in shared else s.map_statements(visit)
        for memory in placed.get(s, ()):
            made = memory.owner.replace(body=made)
        return made

    return visit(body)


def _out_of_loops(s: Stmt, known: set[Var]) -> Stmt:
    """``s`` with allocations that the heap has to be asked for around the serial loops that they are in."""
    if not isinstance(s, For) or s.kind != SERIAL:
        return s.map_statements(lambda child: _out_of_loops(child, known))
    moved: list[Allocate] = []
    made: Stmt = s.map_statements(lambda child: _in_loop(child, known, moved))
    for allocation in moved:
        made = allocation.replace(body=made)
    return made


def _in_loop(s: Stmt, known: set[Var], moved: list[Allocate]) -> Stmt:
    """What is in a serial loop, without the allocations that are ``moved`` out of it."""
    if isinstance(s, For) and s.kind not in (SERIAL, UNROLLED):
        return _out_of_loops(s, known)
    if isinstance(s, Allocate) and not fits_stack(s) and _may_share(s, known):
        moved.append(s)
        return _in_loop(s.body, known, moved)
    return s.map_statements(lambda child: _in_loop(child, known, moved))


@func_pass
def storage_rewrite(func: PrimFunc) -> PrimFunc:
    """Buffers whose lifetimes do not overlap share one allocation, also across loop nests and types.

    Allocations of symbolic sizes, and of more than fits the stack, are made around serial loops, not in each iteration.
    Allocations from 1 KiB on take part, and those of symbolic sizes with others of the same extents and type; what fits
    the stack does not wait for memory of the heap, which only one branch may need. The largest of those that share stays,
    around all of them; views of the others name its pointer. Memory is shared
    within a function or within one iteration of a parallel loop, in one scope, never with what an asynchronous
    statement or a GPU thread uses (``plan_shared_memory`` does that for shared memory), nor with a pointer that is
    stored somewhere. Every allocation is aligned to 64 bytes, so sharing keeps alignment.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((512,), "float32"), B: T.Buffer((512,), "float32")):
    ...     H = T.decl_buffer((512,), "float32")
    ...     for i in range(512):
    ...         H[i] = A[i] * 2.0
    ...     for i in range(512):
    ...         B[i] = H[i]
    ...     G = T.decl_buffer((512,), "float32")
    ...     for i in range(512):
    ...         G[i] = B[i] + 1.0
    ...     for i in range(512):
    ...         A[i] = G[i]
    ... ''')
    >>> tir.transform.storage_rewrite(f).body
    H = T.allocate([512], "float32", "global")
    H_1 = T.decl_buffer((512,), "float32", data=H)
    for i in range(512):
        H_1[i] = A[i] * 2.0
    for i in range(512):
        B[i] = H_1[i]
    G = T.decl_buffer((512,), "float32", data=H)
    for i in range(512):
        G[i] = B[i] + 1.0
    for i in range(512):
        A[i] = G[i]
    """
    known = {*func.sizes.values()}
    sharing = [s for s in statements(func.body) if isinstance(s, Allocate) and _may_share(s, known)]
    if not all(map(fits_stack, sharing)):
        func = func.with_body(_out_of_loops(func.body, known))
    if len(sharing) < 2:
        return func
    lives = Lifetimes(func.body, lambda a: _may_share(a, known))
    places = _Places(func)
    memories = _memories(lives, places)
    if not memories:
        return func
    placed: dict[Stmt, list[_Memory]] = {}
    for memory in memories:
        placed.setdefault(places.common(memory.pointers), []).append(memory)
    owners = {p: m.owner.buffer_var for m in memories for p in m.pointers}
    return func.with_body(substitute(_rebuilt(func.body, set(owners), placed), owners))
