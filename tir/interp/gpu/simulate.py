"""Running a kernel on simulated threads, in any order, with every check."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dtype import DType
from ...errors import RunError
from ...expr import IntImm, Var
from ...function import PrimFunc
from ...levels import is_shared
from ...node import Memo
from ...progress import track
from ...recursion import with_recursion_limit
from ..arguments import bind_arguments, evaluate
from .compiler import Compiler
from .debug import Breakpoint, Stop, hook
from .lanes import Group, Lanes, Launch
from .memory import LocalView, Memory, View
from .report import Access, Findings, SimReport

ORDERS = ("forward", "reverse", "random", "warp_interleaved")
_BATCH = 4096  # threads run at once
_MEMORY = 1 << 20  # limit of their shared memory in all, in bytes

_COMPILED: Memo[dict[Any, Any]] = Memo()


class Chunk(Lanes):
    """Threads run together, with the run-time interface of the compiled kernel."""

    def view(self, memory: Any, dtype: DType, shape: Any, offset: int, name: str) -> Any:
        """A view of ``shape`` (None: all of it) over memory."""
        if isinstance(memory, LocalView):
            return memory if shape is None else memory.of_shape(shape)
        if shape is None:
            copy = memory.size if memory.space() != "global" else memory.data.nbytes
            shape = (copy // max(1, dtype.bytes // dtype.lanes),)
        return View(self, memory, dtype, shape, offset, name)

    def local(self, count: int, dtype: DType, name: str) -> LocalView:
        return LocalView(self, count, dtype, name)

    def allocate(self, key: Any, name: str, scope: str, size: int, granule: int) -> Memory:
        """Memory of the block or the warp, allocated when its first thread gets here; or of the thread."""
        launch = self.launch
        if scope == "local":
            return Memory.fresh(name, scope, size, self.count, granule, False, launch)
        found = self.group.memories.get(key)
        if found is None:
            blocks = len(self.group.blocks)
            shared = is_shared(scope)
            copies = blocks if shared else blocks * -(-launch.threads // 32)
            found = Memory.fresh(name, scope, size, copies, granule, shared, launch)
            self.group.memories[key] = found
            if shared:
                launch.shared_bytes[key] = size
        return found

    def constant(self, name: str, data: np.ndarray, granule: int) -> Memory:
        return Memory(name, "global", np.ascontiguousarray(data).reshape(-1), granule, data.nbytes)


@with_recursion_limit
def simulate(
    kernel: PrimFunc,
    args: Sequence[Any],
    grid: Sequence[int] | int | None = None,
    block: Sequence[int] | int | None = None,
    dyn_shared: int = 0,
    order: str = "forward",
    seed: int = 0,
    *,
    strict: bool = True,
    trace: Callable[[Stop], Any] | None = None,
    breakpoints: Iterable[Breakpoint] = (),
    fresh: Mapping[int, np.ndarray] | None = None,
) -> SimReport:
    """Run a lowered kernel thread by thread on NumPy arrays (changed in place) and numbers.

    ``grid`` and ``block`` are the launch's extents (x, y, z), by default those in the kernel. ``order`` is the order of
    threads between barriers: ``forward`` (blocks in lockstep), ``reverse``, ``random`` (by ``seed``: warps take turns of
    random length), ``warp_interleaved`` (warps take turns statement by statement). ``trace`` is called with a
    :class:`Stop` before every statement, ``breakpoints`` at lines of the kernel's script. ``fresh`` maps the address of
    an array that starts undefined to flags of its written elements, which are updated.

    Returns the report. Raises ``SimulationError`` (a ``RunError``) with all findings if there are any, unless ``strict``
    is false; ``RunError`` for arguments that do not fit and for operations that no kernel can have.

    >>> import tir, numpy as np
    >>> kernel = tir.script.parse('''
    ... @T.prim_func
    ... def twice(A: T.Buffer((64,), "float32")):
    ...     tx = T.launch_thread("threadIdx.x", 64)
    ...     A[tx] = A[tx] * T.float32(2)
    ... ''')
    >>> a = np.ones(64, "float32")
    >>> simulate(kernel, [a]).sectors, a[0]
    (16, np.float32(2.0))
    """
    if order not in ORDERS:
        raise RunError(f"no thread order {order!r}; there are {', '.join(ORDERS)}")
    stops = list(breakpoints)
    stepping = order in ("random", "warp_interleaved")
    run, compiler = _compiled(kernel, stepping, trace is not None or bool(stops))
    scalars, arrays = bind_arguments(kernel, args)
    extents = {tag: _extent(tag, e, scalars) for tag, e in compiler.axes.items()}
    shape_grid = _shape(grid, "blockIdx", extents)
    shape_block = _shape(block, "threadIdx", extents)
    launch = Launch(shape_grid, shape_block, Findings(), compiler.sites)
    launch.warp_barriers = compiler.survey.warp_barriers
    if trace is not None or stops:
        launch.hook = hook(trace, stops, compiler.listing)
    memories = _memories(kernel, compiler, scalars, arrays, launch, fresh or {})
    with np.errstate(all="ignore"):
        _run_blocks(run, launch, memories, scalars, order, random.Random(seed), compiler.survey.shared_bytes)
    report = SimReport(kernel.name, shape_grid, shape_block, order, "\n".join(compiler.listing))
    report.findings = list(launch.findings.by_key.values())
    report.accesses = list(launch.traffic.values())
    report.barriers = -(-launch.arrivals // launch.threads)
    report.shared_bytes = sum(launch.shared_bytes.values())
    report.prints = launch.prints
    if dyn_shared:
        dynamic = sum(n for key, n in launch.shared_bytes.items() if key.buffer_var.scope == "shared.dyn")
        if dynamic > -(-dyn_shared // 16) * 16:
            raise RunError(
                f"{kernel.name} is launched with {dyn_shared} bytes of dynamic shared memory, uses {dynamic}"
            )
    return report.require() if strict else report


def _compiled(kernel: PrimFunc, stepping: bool, traced: bool) -> tuple[Any, Compiler]:
    kinds = _COMPILED.setdefault(kernel, {})
    found = kinds.get((stepping, traced))
    if found is None:
        compiler = Compiler(kernel, stepping, traced)
        source = compiler.compile()
        scope = compiler.constants
        exec(compile(source, f"<simulated {kernel.name}>", "exec"), scope)
        found = kinds[stepping, traced] = (scope["run"], compiler)
    return found


def _extent(tag: str, extents: list[Any], scalars: dict[Var, Any]) -> int:
    values = {v for v in (e.value if isinstance(e, IntImm) else evaluate(e, scalars) for e in extents) if v is not None}
    if len(values) > 1:
        raise RunError(f"the kernel launches {tag} with different extents: {', '.join(map(str, sorted(values)))}")
    return values.pop() if values else 0


def _shape(given: Any, kind: str, extents: dict[str, int]) -> tuple[int, int, int]:
    named = [extents.get(f"{kind}.{axis}") for axis in "xyz"]
    if given is None:
        if any(n == 0 for n in named):
            raise RunError(f"the extents of {kind} depend on more than the arguments: give them")
        x, y, z = (n or 1 for n in named)
        return x, y, z
    given = (given,) if isinstance(given, int) else tuple(int(g) for g in given)
    x, y, z = (*given, 1, 1, 1)[:3]
    full = (x, y, z)
    for axis, (got, n) in enumerate(zip(full, named)):
        if n and n != got:
            raise RunError(f"{kind}.{'xyz'[axis]} is launched with extent {got}; the kernel is made for {n}")
    if any(n < 1 for n in full):
        raise RunError(f"a launch needs positive extents, not {full} of {kind}")
    return full


def _memories(
    kernel: PrimFunc,
    compiler: Compiler,
    scalars: dict[Var, Any],
    arrays: dict[Any, np.ndarray],
    launch: Launch,
    fresh: Mapping[int, np.ndarray],
) -> dict[Var, Memory]:
    made: dict[Var, Memory] = {}
    for p in kernel.params:
        buffer = kernel.buffer_map.get(p)
        if buffer is None and not p.dtype.is_handle:
            continue
        var, array = (p, scalars[p]) if buffer is None else (buffer.data, arrays[buffer])
        if var in made:
            continue
        if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
            raise RunError(f"argument `{var.name}` of {kernel.name}: expected a compact row-major array")
        data = array.reshape(-1)
        sizes = compiler.survey.sizes.get(var, {data.itemsize})
        memory = made[var] = Memory(var.name, "global", data, min(min(sizes), data.itemsize), data.nbytes)
        if memory.granule == data.itemsize:
            memory.written = fresh.get(data.ctypes.data)
        if var in compiler.survey.written:
            memory.track(launch, False)
    _join_names(made, launch)
    return made


def _join_names(made: Mapping[Var, Memory], launch: Launch) -> None:
    """Keep one record of races for arguments that overlap."""
    group: list[Memory] = []
    for memory in sorted(made.values(), key=Memory.bytes):
        if group and memory.bytes()[0] >= max(m.bytes()[1] for m in group):
            _join(group, launch)
            group = []
        group.append(memory)
    _join(group, launch)


def _join(group: list[Memory], launch: Launch) -> None:
    if len(group) > 1 and any(m.races is not None for m in group):
        Memory.join(group, launch)


def _run_blocks(
    run: Any,
    launch: Launch,
    memories: dict[Var, Memory],
    scalars: dict[Var, Any],
    order: str,
    chance: random.Random,
    shared: int,
) -> None:
    total = launch.grid[0] * launch.grid[1] * launch.grid[2]
    numbers = list(range(total))
    if order == "reverse":
        numbers.reverse()
    elif order == "random":
        chance.shuffle(numbers)
    blocks = np.array(numbers)
    batch = max(1, min(_BATCH // launch.threads, _MEMORY // max(1, shared)))
    batches = range(0, total, batch)
    for first in track(batches, f"simulator: {min(batch, total)} thread blocks at a time", len(batches)):
        group = Group(blocks[first : first + batch])
        count = len(group.blocks)
        if order == "forward":
            place = np.repeat(np.arange(count), launch.threads)
            chunk = Chunk(launch, group, place, np.tile(np.arange(launch.threads), count))
            for _ in track(run(chunk, memories, scalars), "simulator: barriers"):
                pass
            continue
        chunks = []
        for start in range(0, launch.threads, 32):
            threads = np.arange(start, min(start + 32, launch.threads))
            if order == "reverse":
                threads = threads[::-1].copy()
            place = np.repeat(np.arange(count), len(threads))
            chunk = Chunk(launch, group, place, np.tile(threads, count))
            chunks.append((chunk, run(chunk, memories, scalars)))
        if order == "reverse":
            chunks.reverse()
        _run_warps(launch, chunks, order, chance)


def _run_warps(launch: Launch, chunks: list[Any], order: str, chance: random.Random) -> None:
    """Run the warps of blocks (the same warp of all blocks together), each up to the next barrier, until all end."""
    alive = list(chunks)
    while alive:
        running, waiting, ended = list(alive), [], []
        while running:
            at = chance.randrange(len(running)) if order == "random" else 0
            chunk, steps = running.pop(at)
            turns = chance.randrange(1, 16) if order == "random" else 1 if order == "warp_interleaved" else None
            state = _advance(steps, turns)
            if state is None:
                ended.append(chunk)
            elif state:
                waiting.append((chunk, steps))
            else:
                running.append((chunk, steps))
        _check_meeting(launch, waiting, ended)
        alive = sorted(waiting, key=lambda pair: chunks.index(pair))


def _advance(steps: Any, turns: int | None) -> int | None:
    """Run a warp for some statements (None: until it waits or ends). Returns 1 if it waits, 0 if it can continue, None if
    it has ended."""
    while turns is None or turns > 0:
        state = next(steps, None)
        if state is None or state == 1:
            return state
        if turns is not None:
            turns -= 1
    return 0


def _check_meeting(launch: Launch, waiting: list[Any], ended: list[Chunk]) -> None:
    """Check that all warps of a block reach the same barrier, and none ends while others wait."""
    if not waiting:
        return
    first = waiting[0][0]
    others = [c for c, _ in waiting if c.waits_at is not first.waits_at]
    here = Access(first.waits_at, *launch.who(first.stamp[0]), note="waits")
    for other in others[:1]:
        there = Access(other.waits_at, *launch.who(other.stamp[0]), note="waits here instead")
        launch.findings.add("barrier", "threads of a block wait at different barriers", (here, there))
    for other in ended[:1]:
        missing = Access(first.waits_at, *launch.who(other.stamp[0]), note="has ended")
        launch.findings.add("barrier", "a barrier that not all threads of the block reach", (here, missing))
