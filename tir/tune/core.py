"""The seconds that the instructions of a program take in a core, before anything is built: what each store needs of its units, and waits for.

A cycle is one of the core's clock, by how long a multiply-add takes. Loops that no step has marked count as what LLVM makes of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import gcd, prod
from typing import Any

from ..annotations import PARTITION_HINT
from ..arith import Analyzer, simplify
from ..arith.linear import key
from ..buffer import Buffer
from ..cost.footprint import Part
from ..cost.footprint_table import Machine
from ..expr import Add, BufferLoad, Call, Div, Expr, IntImm, Max, Min, Mul, Shuffle, Sub, Var, const, constant
from ..function import PrimFunc
from ..stmt import (
    PARALLEL,
    SERIAL,
    UNROLLED,
    VECTORIZED,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
)
from ..target import LINE, VectorRegisters
from ..visit import has_load, rewrite, rewrite_statements, statements, substitute, uses_var, walk
from .autovector import LATENCY, Compiled, vectors_of, work_of
from .nest import Access, computed, own_cost, usual, width_of
from .space import Env
from .tile_costs import WAY

ROB = 512  # instructions that are under way at a time
DIGITS = 4  # loads of a vector whose place is computed by divisions: mostly of some runs of neighbours
MISS = 6.5  # loads that one takes whose line is in the L2 cache
WINDOW = 256  # instructions, of several vectors, that wait for operands at a time
PORTS = 2  # vector operations and loads a cycle, of vectors that a core does not do in parts
CLOSE = 4  # elements between the lanes of a vector that is selected from whole vectors, at most
INTERLEAVED = 8  # the same in loops of which LLVM makes vectors
SHUFFLE = 2.25  # loads that each lane of a strided vector but the first takes, where LLVM loads its elements one by one: a load and a shuffle, of which there is one a cycle
TILE_CYCLES = {"amx_tile_dot": 16, "amx_tile_store": 16, "amx_tile_zero": 1}  # loads of tiles run beside products


@dataclass(frozen=True)
class _Around:
    """Where a statement is: the loops around it, what iterators stand for, the share of runs that a guard lets pass, and of
    those that load: what does not depend on the rows of a tile is loaded for one that is not full, too."""

    loops: tuple[For, ...] = ()
    values: Mapping[Var, Expr] | None = None
    passes: float = 1.0
    loading: float = 1.0
    block: str = ""
    compiled: Compiled | None = None
    own: bool = False  # vectors that LLVM makes of loops
    turns: bool = False  # and neighbours that straight code stores, of as many vectors, take shuffles
    gather: float = 1.0  # loads that take as long as gathering an element
    parts: int = 1  # in which a core does an operation on a full vector
    vectors: VectorRegisters | None = None

    @property
    def innermost(self) -> For | None:
        """The innermost loop, if no step has marked it and LLVM may vectorize it."""
        left = next((loop for loop in reversed(self.loops) if loop.kind != UNROLLED), None)
        return left if left is not None and self.compiled and left.loop_var in self.compiled.innermost else None

    def inside(self, loop: For) -> _Around:
        """In the loop too, as what LLVM makes of it."""
        straight = self.compiled is not None and loop.loop_var in self.compiled.straight
        return replace(self, loops=(*self.loops, replace(loop, kind=UNROLLED) if straight else loop))

    def unrolls_late(self, store: BufferStore, target: Access) -> bool:
        """Whether LLVM unrolls a loop along the results so late that it no longer keeps sums in registers: where
        what is loaded may be in the same memory."""
        return (
            self.compiled is not None
            and target.buffer.scope != "local"
            and self.compiled.may_overlap(store)
            and any(
                loop.loop_var in self.compiled.straight and target.stride(loop.loop_var) != 0 for loop in self.loops
            )
        )

    @property
    def body(self) -> tuple[Var, ...]:
        """The loops that are left around: what is in the same ones runs beside each other."""
        return tuple(loop.loop_var for loop in self.loops if loop.kind in (SERIAL, PARALLEL))

    @property
    def part(self) -> Part:
        """The loops around that no step has unrolled or vectorized."""
        straight = self.compiled.straight if self.compiled else ()
        return tuple(x.loop_var for x in self.loops if x.kind in (SERIAL, PARALLEL) or x.loop_var in straight)

    def unmasked(self, e: Any) -> Expr | None:
        """What a load of a vector that leaves out lanes at no cost loads otherwise; None of others."""
        is_masked = isinstance(e, Call) and e.op == "if_then_else" and isinstance(e.args[1], BufferLoad)
        lanes = [loop.loop_var for loop in self.loops if loop.kind == VECTORIZED]
        if not is_masked or not lanes or has_load(e.args[0]) or any(uses_var(e.args[0], v) for v in lanes):
            return None
        return e.args[1] if self.vectors and self.vectors.masks(e.dtype.bits) else None

    def middle(self) -> dict[Var, int]:
        """An iteration that is far from the borders and diagonals of arrays, the first of straight code and vectors."""
        whole = {x.loop_var: _extent(x) for x in self.loops if x.kind in (SERIAL, PARALLEL)}
        first = {x.loop_var: 0 for x in self.loops}
        return first | {v: size // 2 + n % max(1, size // 4) for n, (v, size) in enumerate(whole.items())}

    def count(self, *kinds: str) -> int:
        return prod(_extent(loop) for loop in self.loops if loop.kind in kinds)


@dataclass(frozen=True)
class _Ports:
    """The cycles for which runs of stores need each unit of a core, and those that they wait for results."""

    operations: float = 0.0
    divisions: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    waits: float = 0.0

    @property
    def cycles(self) -> float:
        return max(self._all)

    @property
    def _all(self) -> tuple[float, ...]:
        return self.operations, self.divisions, self.loads, self.stores, self.waits

    def __add__(self, other: _Ports) -> _Ports:
        return _Ports(*(a + b for a, b in zip(self._all, other._all)))

    def __mul__(self, times: float) -> _Ports:
        return _Ports(*(times * n for n in self._all))


def _extent(loop: For) -> int:
    return usual(loop.extent)


def core_seconds(
    func: PrimFunc, machine: Machine, env: Env
) -> tuple[dict[str, float], dict[Part, tuple[float, float]], float, float]:
    """Seconds of the instructions of the busiest thread, by block, and by part together with those that it waits for results meanwhile; of the
    store that takes most of them, the number of threads and the share of runs that load."""
    blocks, parted = dict[str, float](), dict[Part, tuple[float, float]]()
    most, shared, loading = 0.0, 1.0, 1.0
    rate = LATENCY / machine.latency  # cycles a second
    parts = parts_of(machine, env)
    body = _in_place(func.body)
    gather = max(1.0, PORTS * machine.gather * rate)
    found = list(_stores(body, _Around(compiled=Compiled.of(body), parts=parts, gather=gather, vectors=env.vectors)))
    together: dict[For | None, list[BufferStore]] = {}  # in the body of an innermost loop
    for store, around in found:
        if isinstance(store, BufferStore):
            together.setdefault(around.innermost, []).append(store)
    read = _read(found)
    bodies = defaultdict[tuple[Var, ...], list[tuple[_Ports, _Around]]](list)  # stores that are done at once
    for store, around in found:
        if isinstance(store, BufferStore):
            around = replace(around, passes=around.passes * read.get(store.buffer, 1.0))
            ports = _compiled(store, around, together[around.innermost], env)
        elif isinstance(store, Shuffle):
            full = -(-store.dtype.lanes // env.lanes(store.dtype.element.bits))
            ports = _Ports(full * around.passes * around.count(SERIAL, PARALLEL, UNROLLED))  # one a cycle
        else:
            ports = _Ports(TILE_CYCLES[store.op] * around.count(SERIAL, PARALLEL, UNROLLED))
        bodies[around.body].append((ports, around))
    for several in bodies.values():
        beside = sum((ports for ports, _ in several), _Ports()).cycles / max(1e-9, sum(p.cycles for p, _ in several))
        for ports, around in several:
            seconds = ports.cycles * beside / rate
            count = max(1, around.count(PARALLEL))
            threads = count / -(-count // env.threads)  # as many as are never idle
            blocks[around.block] = blocks.get(around.block, 0.0) + seconds / threads
            before, waited = parted.get(around.part, (0.0, 0.0))
            parted[around.part] = (before + seconds / threads, waited + ports.waits / rate / threads)
            if seconds > most:
                most, shared, loading = seconds, threads, around.loading
    return blocks, parted, shared, loading


def _read(found: Sequence[tuple[BufferStore | Call | Shuffle, _Around]]) -> dict[Buffer, float]:
    """The share of the results in registers that another store reads: LLVM computes no others, such as those of panels beyond the last column."""
    made, read = defaultdict[Buffer, float](float), defaultdict[Buffer, float](float)
    for store, around in found:
        if isinstance(store, BufferStore):
            runs = around.passes * around.count(SERIAL, PARALLEL, UNROLLED, VECTORIZED)
            loaded = {n.buffer for n in walk(store.value) if isinstance(n, BufferLoad)}
            made[store.buffer] += runs if store.buffer not in loaded else 0
            for buffer in loaded - {store.buffer}:
                read[buffer] += runs
    return {b: read[b] / n for b, n in made.items() if b.scope == "local" and 0 < read[b] < n}


def _in_place(body: Stmt) -> Stmt:
    """A statement in which values of ``let`` that are used once are where they are used: they are work of the store."""
    used = Counter(n for n in walk(body) if isinstance(n, Var)) if any(map(_is_let, statements(body))) else {}

    def inlined(s: Any) -> Any:
        is_once = _is_let(s) and used[s.var] == 2  # of which one is where it is made
        return substitute(s.body, {s.var: s.value}) if is_once else None

    return rewrite_statements(body, inlined)


def _is_let(s: Any) -> bool:
    return isinstance(s, LetStmt)


def _stores(s: Any, around: _Around) -> Iterator[tuple[BufferStore | Call | Shuffle, _Around]]:
    """Every store and tile instruction of a statement, with what is around it; iterators are replaced by what they stand for."""
    if isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op in TILE_CYCLES:
        yield s.value, around
    elif isinstance(s, LetStmt):
        if isinstance(s.value, Shuffle):
            yield s.value, around
        yield from _stores(s.body, around)
    elif isinstance(s, BufferStore):
        yield _inside_borders(substitute(s, around.values) if around.values else s, around), around
    elif isinstance(s, For):
        yield from _stores(s.body, around.inside(s))
    elif isinstance(s, BlockRealize):
        known = dict(around.values or {})
        known.update({v: substitute(e, known) if known else e for v, e in s.bindings.items()})
        passes = _passing(s, around.loops)
        loading = min(1.0, passes * _past_borders(s, known, around.loops)) if passes < 1 else 1.0
        inside = replace(around, passes=around.passes * passes, loading=around.loading * loading)
        yield from _stores(s.block.body, replace(inside, values=known, block=s.block.name))
    elif isinstance(s, SeqStmt):
        for part in s.stmts:
            yield from _stores(part, around)
    elif isinstance(s, IfThenElse):
        yield from _stores(s.then_case, around)
    elif hasattr(s, "body"):
        yield from _stores(s.body, around)


def _inside_borders(store: BufferStore, around: _Around) -> BufferStore:
    """A store as most iterations of loops that are partitioned run it: without asking whether they are inside; and as vectors of a sum in registers
    are, of which masks leave out what is not, at no cost."""
    if not any(PARTITION_HINT in loop.annotations for loop in around.loops):
        return store.replace(value=rewrite(store.value, around.unmasked)) if store.buffer.scope == "local" else store

    middle = around.middle()

    def clamped(e: Any) -> Expr | None:
        if not isinstance(e, (Max, Min)) or has_load(e):
            return None
        a, b = (rewrite(x, clamped) for x in (e.a, e.b))
        return a if (_value(a, middle) < _value(b, middle)) == isinstance(e, Min) else b

    def inside(e: Any) -> Expr | None:
        if isinstance(e, BufferLoad):
            return replace(e, indices=tuple(rewrite(i, clamped) for i in e.indices))
        chosen = isinstance(e, Call) and e.op == "if_then_else" and not has_load(e.args[0])
        return rewrite(e.args[1], inside) if chosen else None

    return store.replace(value=rewrite(store.value, inside))


def _passing(realize: BlockRealize, loops: Sequence[For]) -> float:
    """The share of the iterations of ``loops`` that the predicate of a block lets pass: its domain, by their number."""
    if isinstance(realize.predicate, IntImm):
        return 1.0
    domain = prod(usual(i.dom.extent) for i in realize.block.iter_vars)
    return min(1.0, domain / max(1, prod(_extent(loop) for loop in loops)))


def _past_borders(realize: BlockRealize, values: Mapping[Var, Expr], loops: Sequence[For]) -> float:
    """How many times as many values ``loops`` give the iterators of a block as these have, as tiles reach past the borders: of those that not all
    loads depend on."""
    known = Analyzer({loop.loop_var: loop.domain for loop in loops})
    loads = [n for n in walk(realize.block.body) if isinstance(n, BufferLoad)]
    times = 1.0
    for i in realize.block.iter_vars:
        if all(any(uses_var(e, i.var) for e in load.indices) for load in loads):
            continue
        low, high = known.bound(values[i.var])
        if low is not None and high is not None:
            times *= max(1.0, (high - low + 1) / max(1, usual(i.dom.extent)))
    return times


def _compiled(store: BufferStore, around: _Around, inside: Sequence[BufferStore], env: Env) -> _Ports:
    """As :func:`_ports`, with the innermost loop as vectors where LLVM makes them and that takes less time."""
    plain = _ports(store, around, env)
    loop = around.innermost
    target = Access(store.buffer, store.indices)
    straight = (x for x in around.loops if x.kind == UNROLLED and target.stride(x.loop_var) == 1)
    if around.compiled and around.compiled.may_overlap(store) and around.count(UNROLLED) > 1:
        return plain  # too many places to compare
    widest = env.lanes(width_of(store.value))
    if loop is None or around.compiled is None:
        return plain
    at = around.loops.index(loop)
    copies = prod(map(_extent, around.loops[at + 1 :]))
    made = vectors_of(store, loop, inside, widest, prod(map(_extent, straight)), copies)
    if made is None:
        return plain
    loops = (*around.loops[:at], *made.loops, *around.loops[at + 1 :])

    def priced(gather: float, turns: bool) -> _Ports:
        inside = replace(around, loops=loops, own=True, gather=gather, turns=turns)
        return _ports(made.store, inside, env) * (1 + made.more) + plain * made.rest

    if priced(1.0, False).cycles >= plain.cycles:  # which is what LLVM takes it for
        return plain
    gathers = any(
        Access(n.buffer, n.indices).stride(loop.loop_var) not in (-1, 0, 1)
        for n in walk(store.value)
        if isinstance(n, BufferLoad)
    )
    return priced(around.gather if gathers else 1.0, True)


def _ports(store: BufferStore, around: _Around, env: Env) -> _Ports:
    """The cycles of all runs of a store: of arithmetic, loads, stores, and the
    chain of sums that wait for each other."""
    full = env.lanes(store.value.dtype.element.bits)
    width = around.count(VECTORIZED)
    registers = max(1, -(-width // full))
    parts = max(1, -(-width * around.parts // full))
    straight = [loop for loop in around.loops if loop.kind == UNROLLED]
    lanes = [loop.loop_var for loop in around.loops if loop.kind == VECTORIZED]
    copies = prod(_extent(loop) for loop in straight)
    runs = prod(_extent(loop) for loop in around.loops if loop.kind in (SERIAL, PARALLEL))
    known = Analyzer({loop.loop_var: loop.domain for loop in around.loops})
    target = _access(store, known)
    loads = list({key(n): _access(n, known) for n in walk(store.value) if isinstance(n, BufferLoad)}.values())
    work, depth = work_of(store.value)
    sums = any(a.buffer is store.buffer for a in loads)
    if sums and len(loads) == 1 and isinstance(simplify(store.value), BufferLoad):
        return _Ports()  # nothing is left of it
    divided = sum(own_cost(n) for n in {key(n): n for n in computed(store.value) if isinstance(n, Div)}.values())
    work -= divided + int(sums and len(loads) > 2 and _adds_product(store.value))
    operations = max(1.0, work) * copies * parts / PORTS
    divisions = divided * copies * parts / PORTS
    ways = max(1, env.machine.sizes["L1"] // WAY)
    most = env.vectors.count
    seen: dict[Any, set[int]] = {}
    results = prod(_extent(loop) for loop in straight if target.stride(loop.loop_var) != 0) * registers
    free = max(0, most - results - 2) / registers
    often = Counter(a.buffer for a in loads)
    counted = [
        (a, _loads(a, straight, around, seen, parts, ways, free, often[a.buffer] > 1))
        for a in loads
        if a.buffer is not store.buffer
    ]
    if around.own:
        counted = _hoisted(counted, straight, around, parts, most)
    gathered = [(a, n) for a, n in counted if has_load(*a.indices) and None in (a.stride(v) for v in lanes)]
    placing = sum(_placing(a, straight) for a, _ in gathered) * around.parts * width / full
    elements = sum(n for _, n in gathered)
    joined = (
        elements / around.gather / env.lanes(64) if width > env.lanes(64) else 0.0
    )  # a part for a vector of addresses
    operations += (elements + placing + joined) / PORTS  # gathers are done by the units of vectors too
    loaded = sum(n for a, n in counted if a.buffer.scope != "local" or n > most)
    inner = next((loop for loop in reversed(around.loops) if loop.kind == SERIAL), None)
    stays = sums and inner is not None and target.stride(inner.loop_var) == 0 and not around.unrolls_late(store, target)
    taken = sum(_taken_again(a, target, straight, around, registers) for a, _ in counted) if stays else 0
    steps = copies * registers / max(1, results)
    spilled = 1.5 * steps * max(0, results + taken + 2 - most)  # sums stay in registers as long as there are enough
    if around.turns:
        apart = max((abs(target.stride(v) or 0) for v in lanes), default=0)
        operations += results / registers * parts * max(0, apart - 1)
    stays_there = stays or (store.buffer.scope == "local" and results <= most)
    written = results / registers * parts * (1 + (0 if sums else _crossing(target, around, parts)))
    stored = max(spilled / registers * parts * sums, 0 if stays_there else written + (written / PORTS if sums else 0))
    issued = (operations + divisions) * PORTS + sum(
        copies * registers if has_load(*a.indices) else n for a, n in counted
    )
    latency = 1 if isinstance(store.value, Add) and not store.value.dtype.is_float else LATENCY
    chain = latency * copies * registers / results if stays else 0.0
    terms = takewhile(lambda loop: loop.kind != SERIAL or target.stride(loop.loop_var) == 0, reversed(around.loops))
    beside = min(1.0, issued * prod(_extent(loop) for loop in terms if loop.kind == SERIAL) / ROB)  # the next sums
    alone = copies * registers  # chains, of which no two are in the window
    waits = depth * min(issued / WINDOW, alone)
    return _Ports(operations, divisions, loaded / PORTS, stored, max(chain * beside, waits)) * (around.passes * runs)


def _placing(access: Access, straight: Sequence[For]) -> int:
    """Operations on whole vectors of the places of elements that data decides, in one run of straight code: those that results share are known once."""
    found = 0
    for e in filter(has_load, access.indices):
        own = sum(isinstance(n, (Max, Min, Add, Sub, Mul)) for n in computed(e)) + 1  # made as wide as an address
        found += own * prod(_extent(loop) for loop in straight if uses_var(e, loop.loop_var))
    return found


def _adds_product(value: Expr) -> bool:
    """Whether an addition takes no operation of its own: after a product."""
    return isinstance(value, (Add, Sub)) and any(isinstance(side, Mul) for side in (value.a, value.b))


def _hoisted(
    counted: Sequence[tuple[Access, float]], straight: Sequence[For], around: _Around, registers: int, most: int
) -> list[tuple[Access, float]]:
    """Load instructions of accesses, of which LLVM takes those that do not change out of the loops around its vectors: into registers or, where
    there are not as many, onto the stack."""
    serial = [loop for loop in reversed(around.loops) if loop.kind == SERIAL and _extent(loop) > 1]
    lanes = [loop for loop in around.loops if loop.kind == VECTORIZED]

    def held(access: Access) -> int:
        wide = registers if any(access.stride(loop.loop_var) != 0 for loop in lanes) else 1
        return wide * prod(_extent(loop) for loop in straight if access.stride(loop.loop_var) != 0)

    def same(access: Access) -> int:
        return prod(_extent(loop) for loop in takewhile(lambda loop: access.stride(loop.loop_var) == 0, serial))

    needed = sum(held(a) for a, _ in counted if same(a) > 1)
    return [(a, n if same(a) == 1 else n / same(a) + (held(a) if needed > most else 0)) for a, n in counted]


def _taken_again(access: Access, target: Access, straight: Sequence[For], around: _Around, registers: int) -> int:
    """The vectors of an operand that a step of a sum in straight code loads for other results, and a later step takes again, as neighbouring windows do."""
    results = [loop for loop in straight if access.stride(loop.loop_var) and target.stride(loop.loop_var) != 0]
    terms = [loop for loop in straight if access.stride(loop.loop_var) and target.stride(loop.loop_var) == 0]
    apart = [abs(access.stride(loop.loop_var) or 0) for loop in results]
    reach = [(abs(access.stride(loop.loop_var) or 0), _extent(loop) - 1) for loop in terms]
    if not any(a % step == 0 and a <= step * last for a in apart for step, last in reach):
        return 0
    wide = any(access.stride(loop.loop_var) != 0 for loop in around.loops if loop.kind == VECTORIZED)
    return prod(map(_extent, results)) * (registers if wide else 1)


def _access(item: BufferLoad | BufferStore, known: Analyzer) -> Access:
    """An access with simplified indices: those of packed panels divide what loops make of whole panels."""
    simple = [i if isinstance(i, Var) else known.simplify(i) for i in item.indices]
    return Access(item.buffer, tuple(simple))


def _loads(
    access: Access,
    straight: Sequence[For],
    around: _Around,
    seen: dict[Any, set[int]],
    parts: int,
    ways: int,
    free: float,
    shared: bool,
) -> float:
    """Load instructions of an access in one run of straight code: each place once where as many registers are ``free``, which keep what is loaded, else
    some from the stack wherever they are used again."""
    extents = [_extent(loop) for loop in straight if access.stride(loop.loop_var) != 0]
    apart = {access.stride(loop.loop_var) for loop in around.loops if loop.kind == VECTORIZED} - {-1, 0, 1, None}
    if apart or (len(extents) < 2 and not shared):
        return _instructions(access, prod(extents), straight, around, parts, ways)
    once = _places(access, straight, around, seen)
    again = prod(extents) - once
    wide = any(access.stride(loop.loop_var) != 0 for loop in around.loops if loop.kind == VECTORIZED)
    kept = min(1.0, free / max(1, once))
    return _instructions(access, once, straight, around, parts, ways) + max(0, again) * (1 - kept) * (
        parts if wide else 1
    )


def _places(access: Access, straight: Sequence[For], around: _Around, seen: dict[Any, set[int]]) -> int:
    """How many places straight code loads for an access. Where they are of windows, or digits (``v // 2``), several loops, and several accesses, are at
    the same one, which is loaded once: those that are not ``seen`` yet."""
    if has_load(*access.indices):
        return prod(_extent(loop) for loop in straight if access.stride(loop.loop_var) != 0)
    steps = tuple(access.stride(loop.loop_var) for loop in around.loops)
    if all(access.stride(loop.loop_var) is not None for loop in straight):
        found, together = _linear_places(access, straight), (access.buffer, access if None in steps else steps)
    else:
        middle = around.middle()
        places, together = _digit_places(access, straight, middle), access.buffer
        beside = _digit_places(access, straight, _before(access, around, middle))
        if [at - places[0] for at in places] != [at - beside[0] for at in beside]:
            return prod(_extent(loop) for loop in straight if access.stride(loop.loop_var) != 0)
        found = set(places)
    before = seen.setdefault(together, set())
    new = len(found - before)
    before |= found
    return new


def _linear_places(access: Access, straight: Sequence[For]) -> set[int]:
    """Where straight code loads in the first iteration of the loops around it."""
    found = {access.start}
    for loop in straight:
        if step := access.stride(loop.loop_var):
            found = {at + step * i for at in found for i in range(_extent(loop))}
    return found


def _digit_places(access: Access, straight: Sequence[For], values: Mapping[Var, int]) -> list[int]:
    """Where straight code loads in the iteration of the loops around it that has these ``values``, one after another."""
    found = [_value(access.address, values)]
    for loop in straight:
        step, n = access.stride(loop.loop_var), _extent(loop)
        if step is None:
            apart = [_value(access.address, {**values, loop.loop_var: i}) for i in range(n)]
            found = [at + other - apart[0] for at in found for other in apart]
        elif step:
            found = [at + step * i for at in found for i in range(n)]
    return found


def _before(access: Access, around: _Around, middle: Mapping[Var, int]) -> Mapping[Var, int]:
    """The iteration before the one in the ``middle``: where digits do not repeat, LLVM does not know which places are the same."""
    digits = (loop.loop_var for loop in around.loops if access.stride(loop.loop_var) is None)
    return {**middle, **{v: middle[v] - 1 for v in digits if middle.get(v, 0)}}


def _value(e: Expr, values: Mapping[Var, int]) -> int:
    """An index where loops have these ``values``."""
    found = constant(simplify(substitute(e, {v: const(n, v.dtype) for v, n in values.items()})))
    return 0 if found is None else found


def _instructions(
    access: Access, each: float, straight: Sequence[For], around: _Around, parts: int, ways: int
) -> float:
    """Load instructions of an access in one run of straight code: vectors, one for a broadcast, two for a vector backwards, the vectors
    between the lanes, which neighbours share, and what selects among them, where lanes are close; one for each element of a gather, more
    where its lines push each other out of a cache of so many ``ways``; what does not depend on an unrolled loop is loaded once."""
    lanes = [loop for loop in around.loops if loop.kind == VECTORIZED]
    steps = [access.stride(loop.loop_var) for loop in lanes]
    if all(s == 0 for s in steps):
        return each
    if all(s in (0, 1) for s in steps):
        return each * parts * (1 + _crossing(access, around, parts))
    if all(s in (0, -1) for s in steps):
        return each * parts * 2
    step = max((abs(s) for s in steps if s is not None), default=0)
    if None not in steps and step <= (INTERLEAVED if around.own else CLOSE):
        shared = prod(_extent(loop) for loop in straight if 0 < (access.stride(loop.loop_var) or 0) < step)
        return each * parts * (step - 1 + step / min(step, shared) * (1 + _crossing(access, around, parts)))
    by_data = has_load(*access.indices)
    clamped = any(
        isinstance(n, (Max, Min)) and any(uses_var(n, x.loop_var) for x in lanes)
        for i in access.indices
        for n in walk(i)
    )
    if None in steps and not by_data and not clamped:
        return each * parts * DIGITS
    several = prod(_extent(loop) for loop in lanes)
    if _collides(access, around, ways):
        return each * several * MISS
    return each * (several * around.gather if None in steps or around.own else (several - parts) * SHUFFLE)


def _crossing(access: Access, around: _Around, parts: int) -> float:
    """The share of the ``parts`` of vectors that lie in two lines of a cache, and are accessed twice: what the places of loops are multiples of
    decides where a part begins."""
    each = access.buffer.dtype.bytes
    part = each * around.count(VECTORIZED) // parts
    between = [part * (parts > 1)]
    for loop in around.loops:
        if loop.kind != VECTORIZED and _extent(loop) > 1:
            between.append(each * (access.stride(loop.loop_var) or 0))
    step = gcd(LINE, *between)
    places = range(each * access.start % step, LINE, step)
    return sum(at + part > LINE for at in places) / len(places)


def _collides(access: Access, around: _Around, ways: int) -> bool:
    """Whether a row of elements, each in a line of its own, takes more lines of the same sets of the L1 cache than these hold."""
    lines, step = 1, 0
    for loop in reversed(around.loops):
        found = access.stride(loop.loop_var)
        if found is None:
            return False
        stride = found * access.buffer.dtype.bytes
        step = step or abs(stride)
        if stride and stride % step:
            break
        lines *= _extent(loop) if stride else 1
    return step >= LINE and lines > ways * (WAY // gcd(WAY, step))


def parts_of(machine: Machine, env: Env) -> int:
    """In how many parts a core of ``machine`` does an operation on a full vector."""
    return max(1, round(PORTS * 2 * env.lanes(32) * LATENCY / machine.latency / machine.peak))
