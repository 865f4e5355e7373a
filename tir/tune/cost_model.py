"""What schedules cost, before anything is built: an analytic model of one core, its caches, and the start of threads.

The time is the largest of the times that instructions take in the core, with what they wait for there, and that each level of memory takes to deliver
its bytes, in part hidden by prefetching, and of what no schedule avoids, smoothly: ``(sum of t ** 6) ** (1 / 6)``, plus what
starting threads costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, prod

from ..analysis.index import index_of
from ..arith import simplify
from ..buffer import Buffer
from ..cost.footprint import Moved, Part, operations, traffic_of_parts
from ..cost.footprint_table import Machine
from ..display import duration
from ..errors import BuildError
from ..expr import BufferLoad, Mul, Var, const
from ..function import IRModule, PrimFunc
from ..intrin.dot_products import DotProduct
from ..schedule import Schedule
from ..schedule.constants import at_each_call
from ..stmt import Block
from ..target import GPUS, Target
from ..transform.lower_match_buffer import lower_match_buffer
from ..transform.plan_and_update_buffer_allocation_location import plan_and_update_buffer_allocation_location
from ..transform.simplify import simplify as simplified
from ..visit import has_load, statements, substitute, walk, with_recursion_limit
from .core import core_seconds
from .machine import measured
from .nest import unconverted, usual
from .space import Env

SHARPNESS = 6  # of the smooth maximum
FITS = (0.7, 0.85, 1.0)  # shares of a cache that data is taken to fill before it overflows
# The share of the time of each level that prefetching and other instructions do not hide, fitted to candidates of the programs
# of benchmarks.model_order.
EXPOSED = {"L2": 0.5, "L3": 1.0, "memory": 1.0}
EXPOSED_FAR = {**EXPOSED, "L3": 2.2}  # the same of lines that prefetching does not see come
START = 5e-6  # seconds to start and to join threads
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
    <... us predicted: core ... us,... arguments ... ns; at least ... ns>
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
        blocks, parts, shared, loading = core_seconds(lower_match_buffer(func), machine, env)
        if sum(blocks.values()) >= below:
            return None
        terms = _memory(_allocated(func, machine), machine)
    except (ValueError, BuildError):  # a size that is not a constant; memory that no CPU has
        return None
    shares = {level: loading / (1 if level == "memory" else shared) for level in terms}
    near = {part: shares["L2"] * t for part, t in terms["L2"].items()}  # which results wait for as well
    terms = {
        "core": sum(max(t, waited + near.get(part, 0.0)) for part, (t, waited) in parts.items()),
        **{level: shares[level] * sum(t.values()) for level, t in terms.items()},
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


def _allocated(func: PrimFunc, machine: Machine) -> PrimFunc:
    """``func`` with memory where it is allocated when it is built: iterations of a loop may share it. Where all fits the L2 cache, that takes longer to find
    than it is worth."""
    own = [b for n in statements(func.body) if isinstance(n, Block) for b in n.alloc_buffers if b.scope != "local"]
    size = sum(b.dtype.bytes * prod(usual(s) for s in b.shape) for b in (*own, *func.buffers()))
    return plan_and_update_buffer_allocation_location(func) if own and size > machine.sizes["L2"] else func


def _memory(func: PrimFunc, machine: Machine) -> dict[str, dict[Part, float]]:
    """The seconds in which each part waits for what it loads from each level. What nearly fills a level overflows in part."""
    levels = [("L2", machine.sizes["L1"]), ("L3", machine.sizes["L2"]), ("memory", machine.sizes["L3"])]
    count, terms = len(FITS), {level: dict[Part, float]() for level, _ in levels}
    if _argument_bytes(func) <= machine.sizes["L3"]:
        levels.pop()  # the call before has left them in the cache
    moved = traffic_of_parts(func, [int(size * share) for _, size in levels for share in FITS], warm=True)
    for n, (level, _) in enumerate(levels):
        for (part, far, parted), size in sum(moved[n * count : (n + 1) * count], Moved()).items():
            lines = size / count * (1 if level == "L2" else 1 + parted)
            seconds = lines / machine.bandwidth[level] * (EXPOSED_FAR if far else EXPOSED)[level]
            terms[level][part] = terms[level].get(part, 0.0) + seconds
    return terms
