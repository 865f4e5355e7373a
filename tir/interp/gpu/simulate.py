"""Running a kernel on simulated threads, in any order, with every check."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...expr import IntImm, Var
from ...function import PrimFunc
from ...node import Memo
from ...visit import with_recursion_limit
from ..arguments import bind_arguments, evaluate
from .compiler import Compiler
from .debug import Breakpoint, Stop, hook
from .lanes import Launch
from .memory import Memory
from .report import Findings, SimReport
from .turns import run_blocks

ORDERS = ("forward", "reverse", "random", "warp_interleaved")
_COMPILED: Memo[dict[Any, Any]] = Memo()


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
    launch = Launch(shape_grid, shape_block, Findings(), compiler.sites, compiler.survey.engines)
    launch.cluster = compiler.survey.cluster
    launch.warp_barriers = compiler.survey.warp_barriers
    if trace is not None or stops:
        launch.hook = hook(trace, stops, compiler.listing)
    memories = _memories(kernel, compiler, scalars, arrays, launch, fresh or {})
    with np.errstate(all="ignore"):
        run_blocks(run, launch, memories, scalars, order, random.Random(seed), compiler.survey.shared_bytes)
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
