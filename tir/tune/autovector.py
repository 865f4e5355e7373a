"""What LLVM makes of loops that no step has marked: short ones become straight code, the innermost ones vectors.

The model counts a serial loop as what it becomes, so that the program as it was written is judged by the same terms as its
schedules. LLVM unrolls a loop whose iterations together, but for the first, which is simpler, are fewer than :data:`STRAIGHT`
instructions, from the inside out; of the loops that are innermost then, it vectorizes those whose iterations are independent, or are a sum or an extremum of integers. Sums of floating-point numbers
keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from ..arith.linear import key
from ..buffer import Buffer
from ..expr import Add, BufferLoad, Call, Cast, Expr, FloatImm, FloorDiv, FloorMod, IntImm, Max, Min, Sub, Var
from ..stmt import SERIAL, UNROLLED, VECTORIZED, Block, BlockRealize, BufferStore, Evaluate, For
from ..visit import rewrite, statements, substitute, uses_var, walk
from .nest import Access, computed, own_cost, usual

STRAIGHT = 300  # instructions of a loop that becomes straight code
LONG = 75  # instructions of a loop of which the generator of code lets LLVM make no copies
COUNTED = 1  # instructions of a loop beside those of its statement
STORED = 2  # instructions of a store to another place in each iteration
TOGETHER = 4  # vectors at a time
SMALL = 20  # instructions of all of these, at most
LEAST = 4  # lanes of a vector
NAN = 2  # operations more of an extremum of floating-point numbers: what is not a number is compared and selected
GROUP = 8  # neighbours that each iteration stores, at most
LATENCY = 4  # cycles until the result of an operation can be used


@dataclass(frozen=True)
class Compiled:
    """What becomes of the serial loops of a statement, by their variables: ``straight`` code, or perhaps vectors (``innermost``).
    ``allocated`` are its own buffers: parts of one memory, which LLVM tells apart while the program runs."""

    straight: frozenset[Var]
    innermost: frozenset[Var]
    allocated: frozenset[Buffer]

    def may_overlap(self, store: BufferStore) -> bool:
        """Whether a store is to the memory that it also loads other buffers of."""
        loaded = {n.buffer for n in walk(store.value) if isinstance(n, BufferLoad)} - {store.buffer}
        return store.buffer in self.allocated and not loaded.isdisjoint(self.allocated)

    @staticmethod
    def of(s: Any) -> Compiled:
        """Of all loops in ``s``."""
        straight, innermost = set[Var](), set[Var]()
        _size(s, straight, innermost, set())
        own = (b for n in statements(s) if isinstance(n, Block) for b in n.alloc_buffers)
        return Compiled(frozenset(straight), frozenset(innermost), frozenset(own))


def _size(s: Any, straight: set[Var], innermost: set[Var], moving: Set[Var], copies: int = 1) -> int | None:
    """The instructions of a statement without loops, or whose loops become straight code; None if a loop is left. Loops are added
    to ``straight`` or, if no loop is left in them, to ``innermost``. ``moving`` are the variables of the loop around, and the iterators
    that change with it: what is loaded or stored at one place is kept in a register. Of stores of which the loop has so many ``copies`` that it stays one
    anyway, the instructions are not counted."""
    if isinstance(s, BufferStore):
        return COUNTED + (_instructions_of(s, moving) if copies * COUNTED <= LONG else 0)
    if isinstance(s, Evaluate):
        return None
    if isinstance(s, For):
        inside = copies * usual(s.extent) if s.kind == UNROLLED else copies if s.kind == VECTORIZED else 1
        size = _size(s.body, straight, innermost, {s.loop_var}, inside)
        if size is None or s.kind not in (SERIAL, UNROLLED):
            return size if s.kind == VECTORIZED else None
        short = size <= LONG and isinstance(s.extent, IntImm) and size * (s.extent.value - 1) < STRAIGHT
        if s.kind == SERIAL:
            (straight if short else innermost).add(s.loop_var)
        return size * usual(s.extent) if short or s.kind == UNROLLED else None
    if isinstance(s, BlockRealize):
        moved = {*moving, *(v for v, e in s.bindings.items() if uses_var(e, moving))}
        return _size(s.block, straight, innermost, moved, copies)
    sizes = [_size(c, straight, innermost, moving, copies) for c in _statements(s)]
    return None if None in sizes else sum(n for n in sizes if n is not None)


def _instructions_of(store: BufferStore, moving: Set[Var]) -> int:
    """The instructions of a store in a loop of ``moving`` variables, those that it has twice counted once."""
    made = {key(n): n for n in computed(store.value) if not isinstance(n, (IntImm, FloatImm, Var))}
    loads = [n for n in made.values() if isinstance(n, BufferLoad)]
    moved = [n for n in (store, *loads) if not moving or any(uses_var(i, moving) for i in n.indices)]
    addresses = {key(a.address): _address(a, moving) for a in map(_access, moved)}
    operations = sum(
        _instructions(n) for n in made.values() if not isinstance(n, BufferLoad) and (not moving or uses_var(n, moving))
    )
    return operations + sum(STORED if n is store else 1 for n in moved) + sum(addresses.values())


def _address(access: Access, moving: Set[Var]) -> int:
    """Instructions of the place of an element: each moving part is multiplied, unless neighbours are next to each other, and added to the
    others, of which those that stay are one."""
    variables = {n for i in access.indices for n in walk(i) if isinstance(n, Var)}
    steps = [access.stride(v) for v in variables & moving]
    return sum(s not in (0, 1) for s in steps) + max(0, len(steps) + bool(variables - moving) - 1)


def _instructions(e: Expr) -> int:
    """Instructions of an operation, without its operands: an integer is loaded as a wider one; the greater of two is compared and selected, and NaN as well."""
    if isinstance(e, Cast):
        return int(e.dtype.is_float)
    if isinstance(e, (Max, Min)):
        return 4 if e.dtype.is_float else 2
    return 1 if isinstance(e, Call) and not e.dtype.is_float else max(1, own_cost(e))


def _statements(s: Any) -> list[Any]:
    if isinstance(s, Block):
        return [s.body]
    return [c for c in s.children() if not isinstance(c, Expr) and hasattr(c, "children")]


@dataclass(frozen=True)
class Vectors:
    """A store whose innermost loop is one of vectors: ``loops`` stand in its place. ``more`` is a vector of half as many lanes for what is left over,
    as a share of these; ``rest`` the share of iterations that are left then, one at a time."""

    store: BufferStore
    loops: tuple[For, ...]
    more: float
    rest: float


def vectors_of(
    store: BufferStore, loop: For, inside: Sequence[BufferStore], lanes: int, group: int = 1, copies: int = 1
) -> Vectors | None:
    """``store`` with ``loop``, around it and the other stores ``inside``, as vectors of at most ``lanes``; None where LLVM leaves it. Few vectors
    of few instructions are straight code, of ``copies`` of the stores.

    Each iteration stores a ``group`` of neighbours, in straight code. Sums of integers are of parts, as many as there are lanes.
    """
    size = usual(loop.extent)
    lanes = min(lanes, 1 << (size.bit_length() - 1)) if size else 1
    if lanes < LEAST or not all(_is_free(s, loop.loop_var, inside, group) for s in inside):
        return None
    each = sum(COUNTED + STORED + copies * _vectors(s, loop.loop_var) for s in inside)
    most = max(1, min(TOGETHER, SMALL // each))
    together = next(n for n in range(most, 0, -1) if size // lanes % n == 0)
    part, lane = (Var(f"{loop.loop_var.name}_{n}", loop.loop_var.dtype) for n in range(2))
    inner = part * lanes + lane
    made = substitute(store, {loop.loop_var: loop.loop_var * (together * lanes) + inner})
    if not _access(store).stride(loop.loop_var):
        if not made.indices:  # places of parts need an axis
            made = replace(made, buffer=replace(made.buffer, shape=(IntImm(1),)), indices=(IntImm(0),))
        made = replace(
            made, indices=(*made.indices[:-1], made.indices[-1] + inner), value=rewrite(made.value, difference_of_bytes)
        )
    whole, left = divmod(size, lanes)
    extents = (
        (loop.loop_var, whole // together, UNROLLED if whole * each < STRAIGHT else SERIAL),
        (part, together, UNROLLED),
        (lane, lanes, VECTORIZED),
    )
    loops = tuple(replace(loop, loop_var=v, extent=IntImm(n), kind=kind) for v, n, kind in extents)
    half = max(LEAST, lanes // 2)
    return Vectors(made, loops, (left >= half) / whole, left % half / size)


def difference_of_bytes(e: Any) -> Expr | None:
    """Of an absolute difference of bytes, the difference, which stands for the one operation that it is: along a row, ``psadbw`` has it."""
    difference = e.args[0] if isinstance(e, Call) and e.op == "abs" else None
    sides = (difference.a, difference.b) if isinstance(difference, Sub) else ()
    are_bytes = bool(sides) and all(isinstance(s, Cast) and str(s.value.dtype) == "uint8" for s in sides)
    return difference if are_bytes else None


def _vectors(store: BufferStore, var: Var) -> int:
    """The instructions of the value of a store in a loop of ``var`` vectors, with the places of strided elements; what does not change there is
    known before, and sums are in registers."""
    made = {key(n): n for n in computed(store.value) if not isinstance(n, Var) and uses_var(n, var)}
    loads = [
        _access(n).stride(var) for n in made.values() if isinstance(n, BufferLoad) and n.buffer is not store.buffer
    ]
    operations = sum(_instructions(n) for n in made.values() if not isinstance(n, BufferLoad))
    return operations + sum(1 if step == 1 else 2 for step in loads)


def _access(item: BufferStore | BufferLoad) -> Access:
    return Access(item.buffer, item.indices)


def _is_free(store: BufferStore, var: Var, inside: Sequence[BufferStore], group: int) -> bool:
    """Whether the iterations of a loop of ``var`` store neighbours that none of them reads elsewhere, or update one integer."""
    step = _access(store).stride(var)
    if any(isinstance(n, (FloorDiv, FloorMod)) for n in walk(store)) and any(
        isinstance(n, Call) and n.op == "if_then_else" for n in walk(store.value)
    ):
        return False  # the generator of code forbids it
    loads = [n for s in inside for n in walk(s.value) if isinstance(n, BufferLoad) and n.buffer is store.buffer]
    if step == 0:
        known = isinstance(store.value, (Add, Min, Max)) and not store.value.dtype.is_float
        return known and len(loads) == 1 and key(loads[0]) == key(BufferLoad(store.buffer, store.indices))
    return step in (1, -1, group if group <= GROUP else 1) and all(
        key(a) == key(b)
        for load in loads
        for a, b in zip(load.indices, store.indices)
        if uses_var(a, var) or uses_var(b, var)
    )


def work_of(value: Expr) -> tuple[float, float]:
    """The operations of a value, those that it has twice counted once, without loads; and the cycles from loading its operands
    until it is known."""
    seen: set[Any] = set()

    def visit(e: Expr) -> tuple[float, float]:
        if isinstance(e, BufferLoad):
            return 0.0, LATENCY
        children = [c for c in e.children() if isinstance(c, Expr)]
        parts = [visit(c) for c in children]  # noqa: F821  (deleted only afterwards)
        own = own_cost(e)
        again = own > 0 and key(e) in seen
        seen.add(key(e))
        is_of_nan = isinstance(e, (Max, Min)) and e.dtype.is_float and not isinstance(e.b, FloatImm)
        work = 0.0 if again else own + NAN * is_of_nan + sum(w for w, _ in parts)
        return work, LATENCY * own + max((d for _, d in parts), default=0.0)

    found = visit(value)
    del visit  # it refers to itself, and would stay until garbage is collected
    return found
