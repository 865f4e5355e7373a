"""What kernels cost on a GPU, before any runs: an analytic model of a multiprocessor, of memory, and of how many blocks fit.

The accesses of a lowered kernel are counted as the simulator counts them (sectors of global memory, passes over the banks of
shared memory), for some warps, blocks and iterations, and multiplied by how often they run. The time is the largest of the
times of instructions, tensor cores, shared memory, the L2 cache, memory, and of waiting where too few threads are there to
hide it; smoothly, as in :mod:`tir.tune.cost_model`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, prod
from typing import Any

import numpy as np

from ..arith.pointwise import Unsupported, compile_numpy
from ..cost.footprint import operations
from ..expr import Add, BufferLoad, Call, Div, Expr, FloatImm, IntImm, Mul, Sub, Var
from ..function import IRModule, PrimFunc
from ..interp.gpu.counts import SECTOR, bank_passes, sectors
from ..launches import is_launch
from ..levels import is_private, is_shared
from ..schedule import Schedule
from ..stmt import UNROLLED, Allocate, BufferStore, Evaluate, For
from ..target import Target
from ..transform.gpu_memory_effects import Access, Accesses
from ..transform.thread_axes import WARP
from ..visit import walk
from .cost_model import Prediction, Roofline, smooth_maximum
from .nest import usual
from .space import Env
from .staged_operands import architecture

LAUNCH = 3e-6  # seconds from one kernel to the next
LATENCY = 600  # cycles until global memory answers
BARRIER = 30  # cycles
ISSUE = 4  # instructions of warps that a multiprocessor starts in a cycle
L2 = 64  # bytes from the L2 cache to a multiprocessor in a cycle
PASS = 128  # bytes of shared memory in a cycle: one pass over the banks
FRACTION = 0.8  # of the peak rates that kernels reach
POINTS = 3  # blocks and iterations at which accesses are looked at
WARPS = 4  # of a block, likewise
SLOW = 8  # instructions of a division, or a function such as exp
OWN_REGISTERS = 32  # of a thread, beside its arrays


@dataclass(frozen=True)
class Chip:
    """A GPU: ``multiprocessors``, their ``clock`` in Hz, multiply-adds a cycle of each by ``lanes`` and, of half precision, by
    its ``tensor`` cores; bytes a second of memory, bytes of the L2 cache."""

    multiprocessors: int
    clock: float
    lanes: int
    tensor: int
    memory: float
    l2: int


# the usual chip of each architecture, by the vendor's data sheets (dense rates, boost clocks)
CHIPS = {
    70: Chip(80, 1.53e9, 64, 512, 900e9, 6 << 20), 75: Chip(40, 1.59e9, 64, 512, 320e9, 4 << 20),
    80: Chip(108, 1.41e9, 64, 1024, 1555e9, 40 << 20), 86: Chip(84, 1.70e9, 128, 512, 936e9, 6 << 20),
    87: Chip(16, 1.30e9, 128, 512, 204e9, 4 << 20), 89: Chip(128, 2.52e9, 128, 512, 1008e9, 72 << 20),
    90: Chip(132, 1.76e9, 128, 2048, 3350e9, 50 << 20), 100: Chip(148, 1.85e9, 128, 4096, 8000e9, 126 << 20),
    120: Chip(170, 2.40e9, 128, 512, 1792e9, 96 << 20),
}  # fmt: skip


def chip_of(target: Target) -> Chip:
    """The chip that a target is compiled for: of its architecture, or of the next older one that is known.

    >>> chip_of(Target("cuda", arch="sm_90a")).multiprocessors
    132
    """
    number = architecture(target)
    return CHIPS[max((n for n in CHIPS if n <= number), default=70)]


@dataclass
class Counts:
    """What one thread block does: ``instructions`` of warps, ``passes`` over the banks, ``sectors`` by pointer, multiply-adds
    of ``tensor`` cores, ``barriers``, and how often it waits for global memory (``waits``)."""

    blocks: int = 1
    threads: int = 1
    instructions: float = 0.0
    passes: float = 0.0
    sectors: float = 0.0
    memory: float = 0.0  # bytes that no other block of the same wave reads too
    tensor: float = 0.0
    barriers: float = 0.0
    waits: float = 0.0
    shared: int = 0
    registers: int = OWN_REGISTERS


@dataclass(frozen=True)
class Used:
    """What the compiler says of a kernel: registers of a thread, bytes spilled, bytes of shared memory."""

    registers: int
    spills: int
    shared: int


def predict_kernels(
    program: Schedule | IRModule | PrimFunc, env: Env, used: Mapping[str, Used] | None = None
) -> Prediction | None:
    """The time of a scheduled program on a GPU; ``used`` has what the compiler says of kernels, by name. None where the model
    has no answer: what cannot be lowered, and sizes that are not constants.

    >>> import tir
    >>> from tir.library import elementwise
    >>> env = Env.of("cuda -arch=sm_80")
    >>> found = predict_kernels(tir.tune.default(elementwise.scale_add(1 << 20), env.target), env)
    >>> 0 < found.floor <= found.seconds < 1e-3
    True
    """
    from ..errors import TirError
    from ..transform.pipeline import go_on_from, lower, lowered_before

    mod = program.mod if isinstance(program, Schedule) else IRModule.of(program)
    try:
        begun = {f: lowered_before("split_host_device", f, env.target) for f in mod.functions.values() if len(mod) == 1}
        for func, first in begun.items():
            go_on_from(func, first)
        lowered = lower(mod, target=env.target)
        for func, first in begun.items():
            go_on_from(func, first)  # once more: what should be the fastest is built next
    except TirError:
        return None
    kernels = {name: f for name, f in lowered.items() if f.attrs.get("calling_conv") == "device_kernel"}
    if not kernels:
        return None
    chip = chip_of(env.target)
    seconds, total = 0.0, dict[str, float]()
    for name, kernel in kernels.items():
        terms = _terms(counted(kernel, chip), chip, env.target, (used or {}).get(name))
        if terms is None:
            return None
        one = smooth_maximum(terms.values()) + LAUNCH
        seconds += one
        for part, t in {**terms, "launch": LAUNCH}.items():
            total[part] = total.get(part, 0.0) + t
    try:
        first = program.states[0].program if isinstance(program, Schedule) else mod
        lowest = kernel_roofline(list(first.functions.values()), env.target).seconds
    except ValueError:  # a size that is not a constant
        return None
    return Prediction(max(seconds, lowest), total, lowest)


def kernel_roofline(funcs: Sequence[PrimFunc], target: Target) -> Roofline:
    """The limits of programs on a GPU. Raises ``ValueError`` for a size that is not constant."""
    chip = chip_of(target)
    buffers = [b for f in funcs for b in f.buffer_map.values()]
    size = sum(b.dtype.bytes * prod(usual(s) for s in b.shape) for b in buffers)
    each = chip.tensor if any(b.dtype.bits < 32 for b in buffers) else chip.lanes
    peak = 2.0 * each * chip.clock * chip.multiprocessors
    return Roofline(sum(map(operations, funcs)), size, peak, chip.memory / 2)  # reading and writing share it


def _terms(counts: Counts | None, chip: Chip, target: Target, used: Used | None) -> dict[str, float] | None:
    """The seconds of one kernel, by what they are spent on."""
    from codegen.cuda.report import resident_blocks

    if counts is None:
        return None
    registers = used.registers if used else min(255, counts.registers)
    shared = used.shared if used else counts.shared
    resident, _ = resident_blocks(f"sm_{architecture(target)}", counts.threads, registers, shared)
    if not resident:
        return None
    here = ceil(counts.blocks / chip.multiprocessors)  # blocks of the busiest multiprocessor
    cycle = 1 / chip.clock / FRACTION
    spilled = 0.0 if used is None else used.spills * ceil(counts.threads / WARP) * WARP / L2
    waves = ceil(here / resident)
    return {
        "instructions": here * counts.instructions / ISSUE * cycle,
        "tensor": here * counts.tensor / chip.tensor * cycle,
        "shared": here * counts.passes * cycle,
        "L2": here * (counts.sectors * SECTOR / L2 + spilled) * cycle,
        "memory": counts.blocks * counts.memory / chip.memory / FRACTION,
        "waiting": waves * (counts.waits * LATENCY + counts.barriers * BARRIER + LATENCY) * cycle,
    }


def counted(kernel: PrimFunc, chip: Chip) -> Counts | None:
    """What a lowered kernel does; None for sizes that are not constants."""
    axes = {n.node.thread_tag: (n.node.var, n.value) for n in walk(kernel.body) if is_launch(n)}
    if not all(isinstance(extent, IntImm) for _, extent in axes.values()):
        return None
    made = _Counter(chip, {tag: (var, extent.value) for tag, (var, extent) in axes.items()}, _together(kernel.body))
    for access in Accesses(lambda pointer: True, ()).of(kernel.body):
        made.access(access)
    made.statements(kernel.body, 1.0)
    return made.counts


def _together(body: Any) -> frozenset[Var]:
    """The variables of loops that are straight code without a barrier."""
    straight = (n for n in walk(body) if isinstance(n, For) and n.kind == UNROLLED)
    return frozenset(
        n.loop_var for n in straight if not any(isinstance(c, Call) and c.op == "tvm_storage_sync" for c in walk(n))
    )


@dataclass
class _Counter:
    chip: Chip
    axes: dict[str, tuple[Var, int]]
    together: frozenset[Var]  # variables of loops in straight code, of whose loads none waits for another one's
    counts: Counts = field(default_factory=Counts)
    _waits: dict[Any, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        extent = {tag: count for tag, (_, count) in self.axes.items()}
        self.counts.blocks = prod(extent.get(f"blockIdx.{a}", 1) for a in "xyz")
        self.counts.threads = prod(extent.get(f"threadIdx.{a}", 1) for a in "xyz")
        self.warps = ceil(self.counts.threads / WARP)
        self.random = np.random.default_rng(0)
        self.places = self._places()

    def _places(self) -> dict[Var, np.ndarray]:
        """Values of the thread axes at the points that are looked at: a row of lanes for each warp."""
        chosen = np.unique(np.linspace(0, self.warps - 1, min(WARPS, self.warps)).astype(int))
        thread = np.tile((chosen[:, None] * WARP + np.arange(WARP)).reshape(-1), POINTS)
        found, rest = self._along("threadIdx", thread)
        self.inactive = rest > 0
        for axis in "xyz":
            if f"blockIdx.{axis}" in self.axes:
                var, extent = self.axes[f"blockIdx.{axis}"]
                found[var] = self._spread(extent)
        return found

    def _along(self, kind: str, number: np.ndarray) -> tuple[dict[Var, Any], np.ndarray]:
        """The places of threads, or of blocks, along the axes, by their number; what is left of it is beyond the last axis."""
        found: dict[Var, Any] = {}
        for axis in "xyz":
            if f"{kind}.{axis}" in self.axes:
                var, extent = self.axes[f"{kind}.{axis}"]
                number, found[var] = number // extent, number % extent
        return found, number

    def _spread(self, extent: int) -> np.ndarray:
        """A value below ``extent`` for each point, the same for all lanes."""
        lanes = WARP * min(WARPS, self.warps)
        return np.repeat(self.random.integers(0, max(1, extent), POINTS), lanes)[: POINTS * lanes]

    def access(self, access: Access) -> None:
        """Count an access of global or shared memory."""
        scope = access.base.scope or "global"
        if is_private(scope) or scope == "local":
            return
        inner = [(var, usual(extent)) for var, _, extent in (*access.loops, *access.own) if var not in self.places]
        runs = float(prod(extent for _, extent in inner))
        width = access.unit * access.count
        if access.warp:
            self._whole_warp(scope, runs / prod(usual(e) for _, _, e in access.own), access)
            return
        pieces, width = ceil(width / 16), min(width, 16)
        addresses, active = self._addresses(access, inner)
        requests = runs * pieces * self.warps
        self.counts.instructions += requests * active
        rows = addresses.reshape(-1, WARP)
        if is_shared(scope):
            passes, _ = bank_passes(rows, max(4, width))
            self.counts.passes += requests * passes / len(rows)
            return
        found, _ = sectors(rows, width)
        found = max(found, int((rows >= 0).any(axis=1).sum()) * max(1, width * WARP // SECTOR) if pieces > 1 else found)
        self._global(access, requests * found / len(rows))
        if not access.is_write and not access.asynchronous and not _is_ahead(access):
            waited = [(var, extent) for var, extent in inner if var not in self.together]
            serial = tuple(var for var, _ in waited)
            self._waits[serial] = max(self._waits.get(serial, 0.0), float(prod(extent for _, extent in waited)))

    def _whole_warp(self, scope: str, runs: float, access: Access) -> None:
        """An access of all lanes together, such as a matrix fragment."""
        size = access.unit * access.count * prod(usual(e) for _, _, e in access.own)
        self.counts.instructions += runs * self.warps
        if is_shared(scope):
            self.counts.passes += runs * self.warps * size / PASS
        else:
            self._global(access, runs * self.warps * size / SECTOR)

    def _global(self, access: Access, found: float) -> None:
        """``found`` sectors of global memory by a block."""
        self.counts.sectors += found
        self.counts.memory += found * SECTOR * self._own_share(access)

    def _own_share(self, access: Access) -> float:
        """The share of what the blocks of a wave access that is not accessed by others of them, too."""
        count = min(self.counts.blocks, 2 * self.chip.multiprocessors)
        values, _ = self._along("blockIdx", np.arange(count))
        for var in (*self.places, *(v for v, _, _ in (*access.loops, *access.own))):
            values.setdefault(var, np.zeros(count, np.int64))
        try:
            if access.first is None:
                raise Unsupported
            at = np.broadcast_to(compile_numpy(access.first, list(values))(*values.values()), (count,))
        except (Unsupported, ZeroDivisionError):
            return 1.0
        return len(np.unique(at)) / count

    def _addresses(self, access: Access, inner: Sequence[tuple[Var, int]]) -> tuple[np.ndarray, float]:
        """Byte addresses of the lanes, -1 where a guard or the end of the block keeps one from it, and the share of warps of
        which any lane takes part; scattered where the index is not to be computed."""
        values = {**self.places, **{var: self._spread(extent) for var, extent in inner}}
        names = list(values)
        count = POINTS * WARP * min(WARPS, self.warps)
        try:
            if access.first is None:
                raise Unsupported
            at = compile_numpy(access.first, names)(*values.values()) * access.unit
        except (Unsupported, ZeroDivisionError):
            at = np.arange(count) * 4 * SECTOR
        at = np.broadcast_to(np.asarray(at, np.int64), (count,)).copy()
        for condition in access.conditions:
            try:
                at[~np.broadcast_to(compile_numpy(condition, names)(*values.values()).astype(bool), (count,))] = -1
            except (Unsupported, ZeroDivisionError, AttributeError):
                continue
        at[self.inactive] = -1
        return at, float((at.reshape(-1, WARP) >= 0).any(axis=1).mean())

    def statements(self, body: Any, runs: float) -> None:
        """Count arithmetic, barriers, and what is allocated."""
        for s, times in _leaves(body, runs):
            if isinstance(s, Allocate):
                size = s.dtype.bytes * prod(usual(e) for e in s.extents)
                if is_shared(s.buffer_var.scope):
                    self.counts.shared += size
                else:
                    self.counts.registers += ceil(size / 4)
            elif isinstance(s, For):
                self.counts.instructions += 2 * times * self.warps
            elif isinstance(s, BufferStore):
                lanes = max(i.dtype.lanes for i in (s.value, *s.indices))
                self.counts.instructions += times * lanes * _operations(s.value) * self.warps * self._per_lane
            else:
                self._call(s, times)
        self.counts.waits = max(self._waits.values(), default=0.0)

    @property
    def _per_lane(self) -> float:
        """Turns of the multiprocessor that an instruction of a warp takes, of the :data:`ISSUE` there are in a cycle."""
        return ISSUE * WARP / self.chip.lanes

    def _call(self, s: Evaluate, times: float) -> None:
        for call in (n for n in walk(s.value) if isinstance(n, Call)):
            if call.op == "tvm_storage_sync":
                self.counts.barriers += times
            elif call.op == "ptx_mma":
                shape = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", str(getattr(call.args[0], "value", "")))
                halves = _halves(str(getattr(call.args[3], "value", "")))
                self.counts.tensor += (
                    times * self.warps * prod(int(n) for n in shape.groups()) * halves if shape else 0.0
                )
            elif call.op == "tvm_mma_sync":
                self.counts.tensor += times * self.warps * WARP * WARP * 4


def _halves(dtype: str) -> float:
    """How long a multiply-add of a type takes on tensor cores, in those of half precision."""
    return 0.5 if dtype in ("int8", "s8", "u8", "uint8", "e4m3", "e5m2") else 2.0 if dtype == "tf32" else 1.0


def _leaves(s: Any, runs: float) -> Iterator[tuple[Any, float]]:
    """Stores, calls, allocations and serial loops, with how often each runs in one thread."""
    if isinstance(s, For):
        if s.kind != UNROLLED:
            yield s, runs * usual(s.extent)
        yield from _leaves(s.body, runs * usual(s.extent))
        return
    if isinstance(s, (Allocate, BufferStore, Evaluate)):
        yield s, runs
    for child in s.children():
        if not isinstance(child, Expr):
            yield from _leaves(child, runs)


def _operations(value: Expr) -> int:
    """Instructions of an expression beside its loads; a product that is added to something is part of the sum."""
    if isinstance(value, (BufferLoad, Var, IntImm, FloatImm)):
        return 0
    own = SLOW if isinstance(value, Div) or (isinstance(value, Call) and value.dtype.is_float) else 1
    if isinstance(value, (Add, Sub)) and any(isinstance(x, Mul) for x in (value.a, value.b)):
        own = 0
    return own + sum(_operations(c) for c in value.children() if isinstance(c, Expr))


def _is_ahead(access: Access) -> bool:
    """Whether nothing waits for an access: an asynchronous copy makes it."""
    return isinstance(access.node, Call) and "cp_async" in access.node.op
