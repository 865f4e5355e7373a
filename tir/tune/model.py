"""What schedules cost, before anything is built: an analytic model of one core, its caches, and the start of threads.

The time is the largest of the times that instructions take in the core and that each level of memory takes to deliver
its bytes, in part hidden by prefetching, and of what no schedule avoids, smoothly: ``(sum of t ** 6) ** (1 / 6)``, plus what
starting threads costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import gcd, inf, prod
from typing import Any

from ..analysis.index import index_of
from ..annotations import PARTITION_HINT
from ..arith import Analyzer, simplify
from ..arith.linear import key
from ..buffer import Buffer
from ..cost.footprint import operations, traffic
from ..cost.footprint_table import Machine
from ..display import duration
from ..expr import Add, BufferLoad, Call, Expr, IntImm, Mul, Sub, Var, const
from ..function import IRModule, PrimFunc
from ..intrin.dot_products import DotProduct
from ..recursion import with_recursion_limit
from ..schedule import Schedule
from ..schedule.constants import at_each_call
from ..stmt import (
    PARALLEL,
    SERIAL,
    UNROLLED,
    VECTORIZED,
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
)
from ..target import GPUS, Target
from ..transform.lower_match_buffer import lower_match_buffer
from ..transform.simplify import simplify as simplified
from ..visit import has_load, rewrite, statements, substitute, walk
from .autovector import LATENCY, Compiled, vectors_of, work_of
from .machine import measured
from .nest import Access, unconverted, usual, width_of
from .space import Env

SHARPNESS = 6  # of the smooth maximum
FITS = (0.7, 0.85, 1.0)  # shares of a cache that data is taken to fill before it overflows
# The share of the time of each level that prefetching and other instructions do not hide, fitted to candidates of the programs
# without a star of benchmarks.model_order.
EXPOSED = {"L2": 0.5, "L3": 0.1, "memory": 1.0}
START = 5e-6  # seconds to start and to join threads
ROB = 512  # instructions that are under way at a time
PAGE, LINE = 4096, 64  # bytes: of lines of the L1 cache, one of each set, and of one of them
DIGITS = 4  # loads of a vector whose place is computed by divisions: mostly of some runs of neighbours
MISS = 6.5  # loads that one takes whose line is in the L2 cache
WINDOW = 256  # instructions, of several vectors, that wait for operands at a time
PORTS = 2  # vector operations and loads a cycle
CLOSE = 4  # elements between the lanes of a vector that is selected from whole vectors, at most
INTERLEAVED = 8  # the same in loops of which LLVM makes vectors
GATHER = 1.6  # loads that one lane of a strided vector takes, where LLVM loads the elements of a vector one by one
TILE_CYCLES = {"amx_tile_dot": 16, "amx_tile_store": 16, "amx_tile_zero": 1}  # loads of tiles run beside products
TILES_FASTER = 8  # times as many products of a group a cycle as a core's vectors do


@dataclass(frozen=True)
class Prediction:
    """``seconds`` that a schedule should take; ``terms`` are its parts in seconds; none can be faster than ``floor``. ``blocks`` has the seconds
    of the instructions of each block, by name, on a CPU."""

    seconds: float
    terms: Mapping[str, float]
    floor: float
    blocks: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        terms = ", ".join(f"{name} {duration(seconds, 3)}" for name, seconds in self.terms.items() if seconds)
        return f"<{duration(self.seconds, 3)} predicted: {terms}; at least {duration(self.floor, 3)}>"

    def least(self, core: float) -> float:
        """Seconds that another schedule takes at least of which some blocks, whose instructions take ``core`` seconds, are those of this one: beside these
        it reads and writes arguments, and where they have threads, it starts them or takes as long again for others on one."""
        return smooth_maximum([core, self.floor]) + min(core, self.terms.get("threads", 0.0))


@with_recursion_limit
def predict(
    program: Schedule | PrimFunc | IRModule,
    env: Env | Target | str = "llvm",
    sizes: Mapping[str, int] | None = None,
    below: float = inf,
) -> Prediction | None:
    """The time of a scheduled program on one core of a CPU, or on a GPU; ``env`` may be a target. None where the model has no answer:
    symbolic sizes that ``sizes`` does not give by name, and threads of a GPU on a CPU; and where it is not less than ``below`` seconds, which is
    known sooner. Of a module: the function that a schedule of it works on.

    >>> from tir.library import rows
    >>> from tir.tune import Env
    >>> found = predict(rows.row_sum(64, 100), Env.of("llvm -l2_bytes=1048576"))
    >>> found is not None and found.floor <= found.seconds
    True
    >>> found  # doctest: +ELLIPSIS
    <... us predicted: core ... us, L2 ... ns, ...; at least ... ns>
    >>> import tir
    >>> from tir import te
    >>> x = te.placeholder((te.var("n"), 64), name="x")
    >>> func = te.create_prim_func([x, tir.ops.exp(x)])
    >>> predict(func, Env.of("llvm")) is None
    True
    >>> short, long = (predict(func, Env.of("llvm"), {"n": n}).seconds for n in (100, 1000))
    >>> short < long
    True
    """
    env = env if isinstance(env, Env) else Env.of(env)
    program = program if isinstance(program, (Schedule, PrimFunc)) else Schedule(program)
    if sizes:
        before, now = (_of_sizes(f, sizes) for f in (_unscheduled(program), _current(program)))
        found = _predicted(now, before, env, below)
    else:
        found = _predicted(program, program, env, below)
    return found if found is not None and found.seconds < below else None


def _current(program: Schedule | PrimFunc) -> PrimFunc:
    return program.func if isinstance(program, Schedule) else program


def _unscheduled(program: Schedule | PrimFunc) -> PrimFunc:
    return program.states[0].program[program.func_working_on] if isinstance(program, Schedule) else program


def _of_sizes(func: PrimFunc, sizes: Mapping[str, int]) -> PrimFunc:
    """``func`` for some values of its symbolic sizes."""
    extents = (n for buffer in func.buffer_map.values() for e in buffer.shape for n in walk(e) if isinstance(n, Var))
    known = {v: const(sizes[v.name], v.dtype) for v in extents if v.name in sizes}
    blocks = (n for n in walk(func.body) if isinstance(n, Block))
    shapes = {b: tuple(simplify(substitute(e, known)) for e in b.shape) for n in blocks for b in n.alloc_buffers}
    buffers = {b: substitute(b, known).replace(shape=shape) for b, shape in shapes.items()}
    return simplified(substitute(func, known, buffers))


def _predicted(program: Schedule | PrimFunc, before: Schedule | PrimFunc, env: Env, below: float) -> Prediction | None:
    """The time of ``program``, which was ``before`` unscheduled; None if its instructions alone take ``below`` seconds or more."""
    if env.target.kind in GPUS:
        from .gpu_model import predict_kernels

        return predict_kernels(program, env)
    func = at_each_call(_current(program))
    if any(loop.thread for loop in index_of(func).marked):
        return None
    machine = measured(env.target)
    try:
        lowest = floor(before, env)
        blocks, shared, passes = _core(lower_match_buffer(func), machine, env)
        if sum(blocks.values()) >= below:
            return None
        terms = _memory(func, machine)
    except ValueError:  # a size that is not a constant
        return None
    terms = {level: t * passes / (1 if level == "memory" else shared) for level, t in terms.items()}
    terms = {
        "core": sum(blocks.values()),
        **{level: EXPOSED[level] * t for level, t in terms.items()},
        "arguments": lowest,
    }
    seconds = smooth_maximum(terms.values())
    if shared > 1:
        terms["threads"] = START
        seconds += START
    return Prediction(max(seconds, lowest), terms, lowest, blocks)


def smooth_maximum(times: Iterable[float]) -> float:
    """The time of what happens at once and takes these: a little more than the longest."""
    return sum(t**SHARPNESS for t in times) ** (1 / SHARPNESS)


@dataclass(frozen=True)
class Roofline:
    """What limits a program, whatever its schedule: its operations, the bytes of its arguments, and the machine's rates of
    both a second, with all threads."""

    operations: float
    bytes: float
    peak: float
    bandwidth: float

    @property
    def seconds(self) -> float:
        """The least time; writing may be as fast as reading, beside it."""
        return max(self.operations / self.peak, self.bytes / 2 / self.bandwidth)


def roofline(program: Schedule | PrimFunc, env: Env) -> Roofline:
    """The limits of a program, as it was before it was scheduled. Raises ``ValueError`` for a size that is not constant."""
    func = _unscheduled(program)
    if env.target.kind in GPUS:
        from .gpu_model import kernel_roofline

        return kernel_roofline([func], env.target)
    machine = measured(env.target)
    moved = _argument_bytes(func)
    holds = next((lv for lv in ("L1", "L2", "L3") if moved <= machine.sizes[lv]), "memory")
    cores = env.threads if holds in ("L1", "L2") else 1
    peak = machine.peak * env.threads * _times_faster(func, env)
    return Roofline(operations(func), moved, peak, machine.bandwidth[holds] * cores)


def _times_faster(func: PrimFunc, env: Env) -> int:
    """How many times the peak of float32 the dot products are that a program may use."""
    sides = [(unconverted(n.a), unconverted(n.b), n) for n in walk(func.body) if isinstance(n, Mul)]
    kinds = {DotProduct.of(a.dtype, b.dtype, n.dtype) for a, b, n in sides} - {None}
    rates = [1]
    for kind in kinds:
        assert kind is not None
        if env.has(kind.vector_feature):
            rates.append(kind.group)
        if env.has(kind.tile_feature):
            rates.append(TILES_FASTER * kind.group)
    return max(rates)


def _argument_bytes(func: PrimFunc) -> int:
    """The bytes of all arguments; of one that is read where data says, no more than are read."""
    refs = [ref for ref in index_of(func).blocks.values() if ref.scope is not None]
    loads = [(n, ref) for ref in refs for n in walk(ref.block.body) if isinstance(n, BufferLoad)]
    known = {n.buffer for n, _ in loads if not has_load(*n.indices)}
    read = Counter[Buffer]()
    for n, ref in loads:
        read[n.buffer] += prod(usual(loop.node.extent) for loop in ref.loops())
    sizes = {b: prod(usual(s) for s in b.shape) for b in func.buffer_map.values()}
    return sum(b.dtype.bytes * (n if b in known or b not in read else min(n, read[b])) for b, n in sizes.items())


def floor(program: Schedule | PrimFunc, env: Env) -> float:
    """Seconds that no schedule of a program can be faster than: its operations at the peak, its arguments read and
    written once."""
    return roofline(program, env).seconds


def _memory(func: PrimFunc, machine: Machine) -> dict[str, float]:
    """The seconds in which each level delivers what is loaded from it. What nearly fills a level overflows in part."""
    levels = [("L2", machine.sizes["L1"]), ("L3", machine.sizes["L2"]), ("memory", machine.sizes["L3"])]
    moved = traffic(func, [int(size * share) for _, size in levels for share in FITS])
    count, terms = len(FITS), dict.fromkeys((level for level, _ in levels), 0.0)
    if _argument_bytes(func) <= machine.sizes["L3"]:
        levels.pop()  # the call before has left them in the cache
    for n, (level, _) in enumerate(levels):
        terms[level] = sum(moved[n * count : (n + 1) * count]) / count / machine.bandwidth[level]
    return terms


@dataclass(frozen=True)
class _Around:
    """Where a statement is: the loops around it, what iterators stand for, and the share of runs that a guard lets pass."""

    loops: tuple[For, ...] = ()
    values: Mapping[Var, Expr] | None = None
    passes: float = 1.0
    block: str = ""
    compiled: Compiled | None = None
    gather: float = GATHER

    @property
    def innermost(self) -> For | None:
        """The innermost loop, if no step has marked it and LLVM may vectorize it."""
        left = next((loop for loop in reversed(self.loops) if loop.kind != UNROLLED), None)
        return left if left is not None and self.compiled and left.loop_var in self.compiled.innermost else None

    def inside(self, loop: For) -> _Around:
        """In the loop too, as what LLVM makes of it."""
        straight = self.compiled is not None and loop.loop_var in self.compiled.straight
        return replace(self, loops=(*self.loops, replace(loop, kind=UNROLLED) if straight else loop))

    def count(self, *kinds: str) -> int:
        return prod(_extent(loop) for loop in self.loops if loop.kind in kinds)


def _extent(loop: For) -> int:
    return usual(loop.extent)


def _core(func: PrimFunc, machine: Machine, env: Env) -> tuple[dict[str, float], float, float]:
    """Seconds of the instructions of the busiest thread, by block; of the store that takes most of them, the number of threads and
    the share of runs that a guard lets pass."""
    blocks: dict[str, float] = {}
    most, shared, passes = 0.0, 1.0, 1.0
    rate = machine.peak / (2 * PORTS * env.lanes(32))  # cycles a second, by the peak of float32
    body = _in_place(func.body)
    found = list(_stores(body, _Around(compiled=Compiled.of(body))))
    together: dict[For | None, list[BufferStore]] = {}  # in the body of an innermost loop
    for store, around in found:
        if isinstance(store, BufferStore):
            together.setdefault(around.innermost, []).append(store)
    for store, around in found:
        if isinstance(store, BufferStore):
            cycles = _compiled_cycles(store, around, together[around.innermost], env)
        else:
            cycles = TILE_CYCLES[store.op] * around.count(SERIAL, PARALLEL, UNROLLED)
        count = max(1, around.count(PARALLEL))
        threads = count / -(-count // env.threads)  # as many as are never idle
        blocks[around.block] = blocks.get(around.block, 0.0) + cycles / rate / threads
        if cycles / rate > most:
            most, shared, passes = cycles / rate, threads, around.passes
    return blocks, shared, passes


def _in_place(body: Stmt) -> Stmt:
    """A statement in which values of ``let`` that are used once are where they are used: they are work of the store."""
    used = Counter(n for n in walk(body) if isinstance(n, Var)) if any(map(_is_let, statements(body))) else {}

    def inlined(s: Any) -> Any:
        is_once = _is_let(s) and used[s.var] == 2  # of which one is where it is made
        return substitute(s.body, {s.var: s.value}) if is_once else None

    return rewrite(body, inlined)


def _is_let(s: Any) -> bool:
    return isinstance(s, LetStmt)


def _stores(s: Any, around: _Around) -> Iterator[tuple[BufferStore | Call, _Around]]:
    """Every store and tile instruction of a statement, with what is around it; iterators are replaced by what they stand for."""
    if isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op in TILE_CYCLES:
        yield s.value, around
    elif isinstance(s, BufferStore):
        yield _inside_borders(substitute(s, around.values) if around.values else s, around), around
    elif isinstance(s, For):
        yield from _stores(s.body, around.inside(s))
    elif isinstance(s, BlockRealize):
        known = dict(around.values or {})
        known.update({v: substitute(e, known) if known else e for v, e in s.bindings.items()})
        passes = around.passes * _passing(s, around.loops)
        yield from _stores(s.block.body, replace(around, values=known, passes=passes, block=s.block.name))
    elif isinstance(s, SeqStmt):
        for part in s.stmts:
            yield from _stores(part, around)
    elif isinstance(s, IfThenElse):
        yield from _stores(s.then_case, around)
    elif hasattr(s, "body"):
        yield from _stores(s.body, around)


def _inside_borders(store: BufferStore, around: _Around) -> BufferStore:
    """A store as most iterations of loops that are partitioned run it: without asking whether they are inside."""
    if not any(PARTITION_HINT in loop.annotations for loop in around.loops):
        return store

    def inside(e: Any) -> Expr | None:
        chosen = isinstance(e, Call) and e.op == "if_then_else" and not has_load(e.args[0])
        return rewrite(e.args[1], inside) if chosen else None

    return store.replace(value=rewrite(store.value, inside))


def _passing(realize: BlockRealize, loops: Sequence[For]) -> float:
    """The share of the iterations of ``loops`` that the predicate of a block lets pass: its domain, by their number."""
    if isinstance(realize.predicate, IntImm):
        return 1.0
    domain = prod(usual(i.dom.extent) for i in realize.block.iter_vars)
    return min(1.0, domain / max(1, prod(_extent(loop) for loop in loops)))


def _compiled_cycles(store: BufferStore, around: _Around, inside: Sequence[BufferStore], env: Env) -> float:
    """As :func:`_cycles`, with the innermost loop as vectors where LLVM makes them and that takes less time."""
    cycles = _cycles(store, around, env)
    loop = around.innermost
    target = Access(store.buffer, store.indices)
    straight = (x for x in around.loops if x.kind == UNROLLED and target.stride(x.loop_var) == 1)
    if around.compiled and around.compiled.may_overlap(store) and around.count(UNROLLED) > 1:
        return cycles  # too many places to compare
    widest = env.lanes(width_of(store.value))
    if loop is None or around.compiled is None:
        return cycles
    each = around.compiled.innermost[loop.loop_var]
    made = vectors_of(store, loop, inside, widest, prod(map(_extent, straight)), each)
    if made is None:
        return cycles
    at = around.loops.index(loop)
    loops = (*around.loops[:at], *made.loops, *around.loops[at + 1 :])
    vectors = replace(around, loops=loops, gather=1.0)
    return min(cycles, (1 + made.more) * _cycles(made.store, vectors, env) + made.rest * cycles)


def _cycles(store: BufferStore, around: _Around, env: Env) -> float:
    """The cycles of all runs of a store: the slowest of arithmetic, loads, stores, and the
    chain of sums that wait for each other."""
    full = env.lanes(store.value.dtype.element.bits)
    width = around.count(VECTORIZED)
    registers = max(1, -(-width // full))
    straight = [loop for loop in around.loops if loop.kind == UNROLLED]
    copies = prod(_extent(loop) for loop in straight)
    runs = prod(_extent(loop) for loop in around.loops if loop.kind in (SERIAL, PARALLEL))
    known = Analyzer({loop.loop_var: loop.domain for loop in around.loops})
    target = _access(store, known)
    loads = list({key(n): _access(n, known) for n in walk(store.value) if isinstance(n, BufferLoad)}.values())
    work, depth = work_of(store.value)
    sums = any(a.buffer is store.buffer for a in loads)
    if sums and len(loads) == 1 and isinstance(simplify(store.value), BufferLoad):
        return 0.0  # nothing is left of it
    operations = (
        max(1.0, work - int(sums and len(loads) > 2 and _adds_product(store.value))) * copies * registers / PORTS
    )
    ways = max(1, env.machine.sizes["L1"] // PAGE)
    most = env.vectors.count
    counted = [(a, _instructions(a, straight, around, registers, ways)) for a in loads if a.buffer is not store.buffer]
    if around.gather < GATHER:
        counted = _hoisted(counted, straight, around, registers, most)
    loaded = sum(n for a, n in counted if a.buffer.scope != "local" or n > most)
    inner = next((loop for loop in reversed(around.loops) if loop.kind == SERIAL), None)
    stays = sums and inner is not None and target.stride(inner.loop_var) == 0
    results = prod(_extent(loop) for loop in straight if target.stride(loop.loop_var) != 0) * registers
    taken = sum(_taken_again(a, target, straight, around, registers) for a, _ in counted) if stays else 0
    steps = copies * registers / max(1, results)
    spilled = 1.5 * steps * max(0, results + taken + 2 - most)  # sums stay in registers as long as there are enough
    stays_there = stays or (store.buffer.scope == "local" and results <= most)
    stored = max(spilled * sums, 0 if stays_there else results + (results / PORTS if sums else 0))
    issued = operations * PORTS + sum(copies * registers if has_load(*a.indices) else n for a, n in counted)
    latency = 1 if isinstance(store.value, Add) and not store.value.dtype.is_float else LATENCY
    chain = latency * copies * registers / results if stays else 0.0
    terms = takewhile(lambda loop: loop.kind != SERIAL or target.stride(loop.loop_var) == 0, reversed(around.loops))
    beside = min(1.0, issued * prod(_extent(loop) for loop in terms if loop.kind == SERIAL) / ROB)  # the next sums
    alone = copies * registers  # chains, of which no two are in the window
    waits = depth * min(issued / WINDOW, alone)
    return around.passes * runs * max(operations, loaded / PORTS, stored, chain * beside, waits)


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


def _instructions(access: Access, straight: Sequence[For], around: _Around, registers: int, ways: int) -> float:
    """Load instructions of an access in one run of straight code: vectors, one for a broadcast, two for a vector backwards, the vectors
    between the lanes, which neighbours share, and what selects among them, where lanes are close; one for each element of a gather, more
    where its lines push each other out of a cache of so many ``ways``; what does not depend on an unrolled loop is loaded once."""
    each = prod(_extent(loop) for loop in straight if access.stride(loop.loop_var) != 0)
    lanes = [loop for loop in around.loops if loop.kind == VECTORIZED]
    steps = [access.stride(loop.loop_var) for loop in lanes]
    if all(s == 0 for s in steps):
        return each
    if all(s in (0, 1) for s in steps):
        return each * registers
    if all(s in (0, -1) for s in steps):
        return each * registers * 2
    step = max((abs(s) for s in steps if s is not None), default=0)
    if None not in steps and step <= (CLOSE if around.gather > 1 else INTERLEAVED):
        shared = prod(_extent(loop) for loop in straight if 0 < (access.stride(loop.loop_var) or 0) < step)
        return each * registers * (step - 1 + step / min(step, shared))
    by_data = has_load(*access.indices)
    if None in steps and not by_data:
        return each * registers * DIGITS
    return (
        each
        * prod(_extent(loop) for loop in lanes)
        * (MISS if _collides(access, around, ways) else 1.0 if by_data else around.gather)
    )


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
    return step >= LINE and lines > ways * (PAGE // gcd(PAGE, step))


def tile_cost(rows: Sequence[tuple[int, int]], columns: int, vectors: int, lanes: int) -> float:
    """The cost of a register tile: multiply-adds with padding, times what loads, latency and streaming add to each.

    ``rows`` has the size and the tile of each axis of rows; the tile is ``vectors`` vectors of ``lanes`` wide.

    >>> tile_cost([(1024, 6)], 1024, 4, 16) < tile_cost([(1024, 6)], 1024, 1, 16)
    True
    """
    high = prod(tile for _, tile in rows)
    padded = prod(-(-size // tile) * tile for size, tile in rows) * -(-columns // (vectors * lanes)) * vectors * lanes
    loads = (high + vectors) / (high * vectors)  # for each multiply-add; one is what a core sustains
    stream = max(0.0, 6 / high - 1)  # of panels from L2
    latency = max(0.0, 2 * LATENCY / (high * vectors) - 1)
    tails = sum(size % tile > 0 for size, tile in rows) + (columns % (vectors * lanes) > 0)
    return padded * (1 + 0.25 * max(0.0, loads - 0.4) + 0.03 * stream + latency + 0.01 * tails)
