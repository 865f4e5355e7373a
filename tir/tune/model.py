"""What schedules cost, before anything is built: an analytic model of one core, its caches, and the start of threads.

The time is the largest of the times that instructions take in the core and that each level of memory takes to deliver
its bytes, in part hidden by prefetching, and of what no schedule avoids, smoothly: ``(sum of t ** 6) ** (1 / 6)``, plus what
starting threads costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from ..analysis.constants import at_each_call
from ..analysis.footprint import operations, traffic
from ..analysis.footprint_table import Machine
from ..analysis.index import index_of
from ..arith import Analyzer
from ..expr import BufferLoad, Call, Expr, IntImm, Mul, Var
from ..function import PrimFunc
from ..intrin.dot_products import DotProduct
from ..schedule import Schedule
from ..stmt import PARALLEL, SERIAL, UNROLLED, VECTORIZED, BlockRealize, BufferStore, Evaluate, For, IfThenElse, SeqStmt
from ..target import GPUS
from ..transform.lower_match_buffer import lower_match_buffer
from ..visit import substitute, walk
from .machine import measured
from .nest import Access, cost, unconverted, usual
from .space import Env

SHARPNESS = 6  # of the smooth maximum
FITS = (0.7, 0.85, 1.0)  # shares of a cache that data is taken to fill before it overflows
# The share of the time of each level that prefetching and other instructions do not hide, fitted to candidates of the programs
# without a star of benchmarks.model_order.
EXPOSED = {"L2": 0.5, "L3": 0.1, "memory": 1.0}
START = 5e-6  # seconds to start and to join threads
LATENCY = 4  # cycles until the result of a multiply-add can be used
PORTS = 2  # vector operations and loads a cycle
TILE_CYCLES = {"amx_tile_dot": 16, "amx_tile_store": 16, "amx_tile_zero": 1}  # loads of tiles run beside products
TILES_FASTER = 8  # times as many products of a group a cycle as a core's vectors do


@dataclass(frozen=True)
class Prediction:
    """``seconds`` that a schedule should take; ``terms`` are its parts in seconds; none can be faster than ``floor``."""

    seconds: float
    terms: Mapping[str, float]
    floor: float


def predict(program: Schedule | PrimFunc, env: Env) -> Prediction | None:
    """The time of a scheduled program on one core of a CPU, or on a GPU. None where the model has no answer: sizes that are not constants, and
    threads of a GPU on a CPU.

    >>> from tir.library import rows
    >>> from tir.tune import Env
    >>> found = predict(rows.row_sum(64, 100), Env.of("llvm -l2_bytes=1048576"))
    >>> found is not None and found.floor <= found.seconds
    True
    """
    if env.target.kind in GPUS:
        from .gpu_model import predict_kernels

        return predict_kernels(program, env)
    func = at_each_call(program.func if isinstance(program, Schedule) else program)
    if any(loop.thread for loop in index_of(func).marked):
        return None
    machine = measured(env.target)
    try:
        terms = _memory(func, machine)
        lowest = floor(program, env)
    except ValueError:  # a size that is not a constant
        return None
    core, shared, passes = _core(lower_match_buffer(func), machine, env)
    terms = {level: t * passes / (1 if level == "memory" else shared) for level, t in terms.items()}
    if _argument_bytes(func) <= machine.sizes["L3"]:
        terms["memory"] = 0.0  # the call before has left them in the cache
    terms = {"core": core, **{level: EXPOSED[level] * t for level, t in terms.items()}, "arguments": lowest}
    seconds = sum(t**SHARPNESS for t in terms.values()) ** (1 / SHARPNESS)
    if shared > 1:
        terms["threads"] = START
        seconds += START
    return Prediction(max(seconds, lowest), terms, lowest)


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
    func = program.history[0].mod[program.func_working_on] if isinstance(program, Schedule) else program
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
    return sum(b.dtype.bytes * prod(usual(s) for s in b.shape) for b in func.buffer_map.values())


def floor(program: Schedule | PrimFunc, env: Env) -> float:
    """Seconds that no schedule of a program can be faster than: its operations at the peak, its arguments read and
    written once."""
    return roofline(program, env).seconds


def _memory(func: PrimFunc, machine: Machine) -> dict[str, float]:
    """The seconds in which each level delivers what is loaded from it. What nearly fills a level overflows in part."""
    levels = [("L2", machine.sizes["L1"]), ("L3", machine.sizes["L2"]), ("memory", machine.sizes["L3"])]
    moved = traffic(func, [int(size * share) for _, size in levels for share in FITS])
    count = len(FITS)
    return {
        level: sum(moved[n * count : (n + 1) * count]) / count / machine.bandwidth[level]
        for n, (level, _) in enumerate(levels)
    }


@dataclass(frozen=True)
class _Around:
    """Where a statement is: the loops around it, what iterators stand for, and the share of runs that a guard lets pass."""

    loops: tuple[For, ...] = ()
    values: Mapping[Var, Expr] | None = None
    passes: float = 1.0

    def count(self, *kinds: str) -> int:
        return prod(_extent(loop) for loop in self.loops if loop.kind in kinds)


def _extent(loop: For) -> int:
    return usual(loop.extent)


def _core(func: PrimFunc, machine: Machine, env: Env) -> tuple[float, int, float]:
    """Seconds of the instructions of the busiest thread; of the store that takes most of them, the number of threads and
    the share of runs that a guard lets pass."""
    total, most, shared, passes = 0.0, 0.0, 1, 1.0
    for store, around in _stores(func.body, _Around()):
        cycles, lanes = _cycles(store, around, env) if isinstance(store, BufferStore) else _of_tiles(store, around, env)
        threads = min(env.threads, around.count(PARALLEL))
        rate = machine.peak / (2 * PORTS * lanes)  # cycles a second
        seconds = cycles / rate / max(1, threads)
        total += seconds
        if cycles / rate > most:
            most, shared, passes = cycles / rate, max(1, threads), around.passes
    return total, shared, passes


def _stores(s: Any, around: _Around) -> Iterator[tuple[BufferStore | Call, _Around]]:
    """Every store and tile instruction of a statement, with what is around it; iterators are replaced by what they stand for."""
    if isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op in TILE_CYCLES:
        yield s.value, around
    elif isinstance(s, BufferStore):
        yield (substitute(s, around.values) if around.values else s), around
    elif isinstance(s, For):
        yield from _stores(s.body, replace(around, loops=(*around.loops, s)))
    elif isinstance(s, BlockRealize):
        known = dict(around.values or {})
        known.update({v: substitute(e, known) if known else e for v, e in s.bindings.items()})
        passes = around.passes * _passing(s, around.loops)
        yield from _stores(s.block.body, replace(around, values=known, passes=passes))
    elif isinstance(s, SeqStmt):
        for part in s.stmts:
            yield from _stores(part, around)
    elif isinstance(s, IfThenElse):
        yield from _stores(s.then_case, around)
    elif hasattr(s, "body"):
        yield from _stores(s.body, around)


def _passing(realize: BlockRealize, loops: Sequence[For]) -> float:
    """The share of the iterations of ``loops`` that the predicate of a block lets pass: its domain, by their number."""
    if isinstance(realize.predicate, IntImm):
        return 1.0
    domain = prod(usual(i.dom.extent) for i in realize.block.iter_vars)
    return min(1.0, domain / max(1, prod(_extent(loop) for loop in loops)))


def _cycles(store: BufferStore, around: _Around, env: Env) -> tuple[float, int]:
    """The cycles of all runs of a store, and the lanes of its vectors: the slowest of arithmetic, loads, stores, and the
    chain of sums that wait for each other."""
    full = env.lanes(store.value.dtype.element.bits)
    width = around.count(VECTORIZED)
    registers = max(1, -(-width // full))
    straight = [loop for loop in around.loops if loop.kind == UNROLLED]
    copies = prod(_extent(loop) for loop in straight)
    runs = prod(_extent(loop) for loop in around.loops if loop.kind in (SERIAL, PARALLEL))
    known = Analyzer({loop.loop_var: loop.domain for loop in around.loops})
    target = _access(store, known)
    loads = [_access(n, known) for n in walk(store.value) if isinstance(n, BufferLoad)]
    sums = any(a.buffer is store.buffer for a in loads)
    operations = max(1, cost(store.value) - len(loads) - int(sums and len(loads) > 2)) * copies * registers / PORTS
    loaded = sum(_instructions(a, straight, around, registers) for a in loads if a.buffer is not store.buffer)
    inner = next((loop for loop in reversed(around.loops) if loop.kind == SERIAL), None)
    stays = sums and inner is not None and target.stride(inner.loop_var) == 0
    results = prod(_extent(loop) for loop in straight if target.stride(loop.loop_var) != 0) * registers
    most = env.vectors.count
    spilled = 1.5 * max(0, results + 2 - most)  # sums stay in registers as long as there are enough
    stored = spilled if stays else results + (results / PORTS if sums else 0)
    chain = LATENCY * copies * registers / results if stays else 0.0
    return around.passes * runs * max(operations, loaded / PORTS, stored, chain), full


def _of_tiles(instruction: Call, around: _Around, env: Env) -> tuple[float, int]:
    """The cycles of all runs of a tile instruction, and the lanes of vectors beside it."""
    return TILE_CYCLES[instruction.op] * around.count(SERIAL, PARALLEL, UNROLLED), env.lanes(32)


def _access(item: BufferLoad | BufferStore, known: Analyzer) -> Access:
    """An access with simplified indices: those of packed panels divide what loops make of whole panels."""
    simple = [i if isinstance(i, Var) else known.simplify(i) for i in item.indices]
    return Access(item.buffer, tuple(simple))


def _instructions(access: Access, straight: Sequence[For], around: _Around, registers: int) -> float:
    """Load instructions of an access in one run of straight code: vectors, one for a broadcast, one for each element of a
    gather; what does not depend on an unrolled loop is loaded once."""
    each = prod(_extent(loop) for loop in straight if access.stride(loop.loop_var) != 0)
    lanes = [loop for loop in around.loops if loop.kind == VECTORIZED]
    steps = [access.stride(loop.loop_var) for loop in lanes]
    if all(s == 0 for s in steps):
        return each
    if all(s in (0, 1) for s in steps):
        return each * registers
    return each * prod(_extent(loop) for loop in lanes)


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
