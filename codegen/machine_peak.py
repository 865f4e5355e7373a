"""The peak of this machine: FMA rate and latency of one core, the rates of its caches and memory. Measured, with kernels compiled here."""

from __future__ import annotations

import ctypes
import functools
import time

from tir.errors import BuildError
from tir.interp.named_arguments import aligned_zeros

from .llvm.amx_tiles import configure, request_tiles
from .llvm.compile import Loaded, Machine, machine, object_code
from .llvm.rotated_loops import ROLLED
from .llvm.text import FunctionText, ModuleText
from .llvm.types import vector

_CHAINS = 16  # independent sums: more than latency x issue width of any current core

# data type: (accumulator type, its bits, products per accumulator, instruction if not fma, features)
_KINDS = {
    "float32": ("float", 32, 1, "", ""),
    "float64": ("double", 64, 1, "", ""),
    "bfloat16": ("float", 32, 2, "llvm.x86.avx512bf16.dpbf16ps.512", "+avx512bf16"),
    "int8": ("i32", 32, 4, "llvm.x86.avx512.vpdpbusd.512", "+avx512vnni"),
}
# products of AMX tiles: (instruction, multiply-adds, features)
_TILES = {
    "bfloat16 tiles": ("llvm.x86.tdpbf16ps", 16 * 16 * 32, "+amx-bf16"),
    "int8 tiles": ("llvm.x86.tdpbusd", 16 * 16 * 64, "+amx-int8"),
}
_SUMS = 4  # independent accumulator tiles


class FmaPeak:
    """One core running full-width multiply-adds on random data, for a given time.

    ``dtype``: float32, float64, bfloat16 (vdpbf16ps, two products a lane), int8 (vpdpbusd, four), "bfloat16 tiles" and
    "int8 tiles" (AMX). Raises ``BuildError`` where this CPU has no such instruction. ``chains`` independent sums, where it is not tiles.
    """

    def __init__(self, dtype: str = "float32", chains: int = _CHAINS):
        import numpy as np

        on = machine()
        feature = _TILES[dtype][2] if dtype in _TILES else _KINDS[dtype][4]
        if feature and feature not in on.features.split(","):
            raise BuildError(f"this CPU ({on.cpu}) has no {dtype} dot products ({feature[1:]})")
        if dtype in _TILES:
            request_tiles()
            kernel = _tile_kernel(on, _TILES[dtype][0])
            self._operations = 2.0 * _TILES[dtype][1] * _SUMS
        else:
            element, bits, products, instruction, _ = _KINDS[dtype]
            lanes = on.width // bits
            kernel = _fma_kernel(on, element, lanes, instruction, chains)
            self._operations = 2.0 * lanes * products * chains
        self._loaded = Loaded(object_code(kernel, on))
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(self._loaded.function("fma_peak"))
        # not zeros, which use less power and so run at a higher clock; |x| < 1 keeps the sums finite
        data = np.random.default_rng(0).uniform(0.25, 0.99, 256)
        kind = np.float64 if dtype == "float64" else np.float32
        self._data = np.repeat(data.astype(kind), 2)
        self._count = 20_000

    def rate(self, seconds: float) -> float:
        """GFLOP/s (or giga-operations) of this thread over about ``seconds``, by the time the thread was running."""
        count = self._count
        while True:
            start = time.thread_time()
            self._run(count, self._data.ctypes.data)
            took = time.thread_time() - start
            if took > 0.5 * seconds:
                return self._operations * count / took * 1e-9
            count = int(count * min(16.0, max(2.0, seconds / max(took, 1e-6))))


@functools.cache
def measure_fma_peak(dtype: str = "float32", seconds: float = 0.2) -> float:
    """GFLOP/s of one core doing nothing but full-width fused multiply-adds (two operations each).

    ``dtype``: as for :class:`FmaPeak`. The best of many short runs, so that other load disturbs little.
    """
    return _best(FmaPeak(dtype), seconds)


@functools.cache
def measure_fma_latency(seconds: float = 0.2) -> float:
    """Seconds until the result of a full-width multiply-add of float32 can be used.

    >>> 1e-11 < measure_fma_latency(0.01) < 1e-6
    True
    """
    return 2 * (machine().width // 32) / _best(FmaPeak(chains=1), seconds) * 1e-9


def _best(peak: FmaPeak, seconds: float) -> float:
    best, stop = 0.0, time.thread_time() + seconds
    while True:
        best = max(best, peak.rate(0.001))
        if time.thread_time() > stop:
            return best


def _fma_kernel(on: Machine, element: str, lanes: int, instruction: str, chains: int) -> str:
    """A loop of independent chains acc[k] = acc[k] * x + y (or acc[k] += x . y), all in registers."""
    text = ModuleText(on.cpu, on.features, on.triple, on.width)
    out = FunctionText(text, "fma_peak", "void", ["i64 %count", "ptr %data"])
    type_ = vector(element, lanes)
    # loaded from memory, so that nothing is constant-folded
    x = out.value(f"load {type_}, ptr %data, align 8")
    before = out.block
    out.start("loop")
    counter, accumulators = out.fresh(), [out.fresh() for _ in range(chains)]
    places = [out.placeholder() for _ in range(chains + 1)]
    if instruction:
        part = {"float": "i16", "i32": "i32"}[element]
        operand = vector(part, lanes * (2 if part == "i16" else 1))
        if operand != type_:
            x = out.value(f"bitcast {type_} {x} to {operand}")
        dot = text.declare(instruction, type_, [type_, operand, operand])
        following = [out.value(f"call {type_} {dot}({type_} {a}, {operand} {x}, {operand} {x})") for a in accumulators]
    else:
        following = [out.intrinsic("fma", element, lanes, [a, x, x]) for a in accumulators]
    step = out.value(f"add nsw i64 {counter}, 1")
    out.fill(places[0], f"{counter} = phi i64 [ 0, %{before} ], [ {step}, %loop ]")
    for k, (place, a, new) in enumerate(zip(places[1:], accumulators, following)):
        start = f"splat ({element} {k + 1 if element == 'i32' else float(k + 1)})"
        out.fill(place, f"{a} = phi {type_} [ {start}, %{before} ], [ {new}, %loop ]")
    out.repeat(out.value(f"icmp slt i64 {step}, %count"), "loop", "done", [ROLLED])
    out.start("done")
    total, add = following[0], "add" if element == "i32" else "fadd"
    for new in following[1:]:
        total = out.value(f"{add} {type_} {total}, {new}")
    place = out.value(f"getelementptr inbounds i8, ptr %data, i64 {on.width // 8}")
    out.emit(f"store {type_} {total}, ptr {place}, align 8")
    out.ret("void")
    out.finish()
    return text.render()


def _tile_kernel(on: Machine, instruction: str) -> str:
    """A loop of independent products of tiles: four of sums, two of each operand."""
    text = ModuleText(on.cpu, on.features, on.triple, on.width)
    out = FunctionText(text, "fma_peak", "void", ["i64 %count", "ptr %data"])
    configure(out)
    load = text.declare("llvm.x86.tileloadd64", "void", ["i8", "ptr", "i64"])
    for tile in range(2 * _SUMS):
        out.emit(f"call void {load}(i8 {tile}, ptr %data, i64 64)")
    before = out.block
    out.start("loop")
    counter, place = out.fresh(), out.placeholder()
    dot = text.declare(instruction, "void", ["i8"] * 3)
    for tile in range(_SUMS):
        out.emit(f"call void {dot}(i8 {tile}, i8 {_SUMS + tile // 2}, i8 {_SUMS + 2 + tile % 2})")
    step = out.value(f"add nsw i64 {counter}, 1")
    out.fill(place, f"{counter} = phi i64 [ 0, %{before} ], [ {step}, %loop ]")
    out.repeat(out.value(f"icmp slt i64 {step}, %count"), "loop", "done", [ROLLED])
    out.start("done")
    out.ret("void")
    out.finish()
    return text.render()


@functools.cache
def measure_gather(seconds: float = 0.2) -> float:
    """Seconds that gathering an element takes, of a vector of float32 from lines in the nearest cache; of one loaded alone where there is no such instruction.

    >>> 1e-11 < measure_gather(0.01) < 1e-7
    True
    """
    import numpy as np

    on = machine()
    lanes = on.width // 32
    text, type_, places = ModuleText(on.cpu, on.features, on.triple, on.width), f"<{lanes} x float>", f"<{lanes} x ptr>"
    out = FunctionText(text, "gather", "void", ["i64 %count", "ptr %data"])
    gather = text.declare(
        f"llvm.masked.gather.v{lanes}f32.v{lanes}p0", type_, [places, "i32", f"<{lanes} x i1>", type_]
    )
    before, counter, sums = out.block, out.fresh(), out.fresh()
    out.start("loop")
    at = [out.placeholder() for _ in range(2)]
    base = out.value(f"getelementptr float, ptr %data, i64 {out.value(f'and i64 {counter}, 63')}")
    apart = ", ".join(f"i64 {5 * n % 64}" for n in range(lanes))
    found = out.value(f"getelementptr float, ptr {base}, <{lanes} x i64> <{apart}>")
    loaded = out.value(
        f"call {type_} {gather}({places} {found}, i32 4, <{lanes} x i1> splat (i1 true), {type_} poison)"
    )
    added, step = out.value(f"fadd {type_} {sums}, {loaded}"), out.value(f"add i64 {counter}, 1")
    out.fill(at[0], f"{counter} = phi i64 [ 0, %{before} ], [ {step}, %loop ]")
    out.fill(at[1], f"{sums} = phi {type_} [ zeroinitializer, %{before} ], [ {added}, %loop ]")
    out.branch(out.value(f"icmp slt i64 {step}, %count"), "loop", "done")
    out.start("done")
    out.emit(f"store {type_} {added}, ptr %data, align 4")
    out.ret("void")
    out.finish()
    loaded_code = Loaded(object_code(text.render(), on))
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(loaded_code.function("gather"))
    data, count, best, stop = np.ones(256, np.float32), 10_000, float("inf"), time.thread_time() + seconds
    while time.thread_time() < stop:
        start = time.thread_time()
        run(count, data.ctypes.data)
        best = min(best, max(time.thread_time() - start, 1e-9))
    return best / (count * lanes)


_STEP = 256  # bytes that a step of a reader adds to its sums: four independent vectors


def measure_reading(size: int, seconds: float = 0.01) -> float:
    """Bytes a second of adding up the numbers of an array of ``size`` bytes again and again, on one core; the best of the times of some ``seconds``.
    No vector lies across lines, which a core loads as two: those would be its rate, not that of the level.

    >>> measure_reading(1 << 14) > 1e7
    True
    """
    import numpy as np

    steps = max(1, size // _STEP)
    data = aligned_zeros((steps * _STEP // 4 + 64,), np.dtype(np.float32))  # what follows has the sums
    data.fill(1)
    count = steps * max(1, (16 << 20) // size)
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(_reader().function("read"))
    run(steps, steps * _STEP, data.ctypes.data)  # fills the cache
    best, stop = float("inf"), time.thread_time() + seconds
    while best == float("inf") or time.thread_time() < stop:
        start = time.thread_time()
        run(count, steps * _STEP, data.ctypes.data)
        best = min(best, max(time.thread_time() - start, 1e-9))
    return _STEP * count / best


@functools.cache
def _reader() -> Loaded:
    """``read(count, size, data)``: ``count`` steps through ``size`` bytes, and again from their beginning; the sums go behind them."""
    on, type_ = machine(), "<16 x float>"
    text = ModuleText(on.cpu, on.features, on.triple, on.width)
    out = FunctionText(text, "read", "void", ["i64 %count", "i64 %size", "ptr %data"])
    before, phis = out.block, [(out.fresh(), "i64"), (out.fresh(), "i64"), *((out.fresh(), type_) for _ in range(4))]
    (counter, _), (place, _), *sums = phis
    out.start("loop")
    places = [out.placeholder() for _ in phis]
    pointers = [
        out.value(f"getelementptr inbounds i8, ptr %data, i64 {out.value(f'add i64 {place}, {64 * n}')}")
        for n in range(4)
    ]
    loads = [out.value(f"load {type_}, ptr {p}, align 4") for p in pointers]
    added = [out.value(f"fadd {type_} {total}, {item}") for (total, _), item in zip(sums, loads)]
    step, further = out.value(f"add i64 {counter}, 1"), out.value(f"add i64 {place}, {_STEP}")
    again = out.value(f"select i1 {out.value(f'icmp slt i64 {further}, %size')}, i64 {further}, i64 0")
    for at, (name, kind), new in zip(places, phis, [step, again, *added]):
        out.fill(
            at, f"{name} = phi {kind} [ {'0' if kind == 'i64' else 'zeroinitializer'}, %{before} ], [ {new}, %loop ]"
        )
    out.repeat(out.value(f"icmp slt i64 {step}, %count"), "loop", "done", [ROLLED])
    out.start("done")
    for n, total in enumerate(added):
        end = out.value(f"getelementptr inbounds i8, ptr %data, i64 {out.value(f'add i64 %size, {64 * n}')}")
        out.emit(f"store {type_} {total}, ptr {end}, align 4")
    out.ret("void")
    out.finish()
    return Loaded(object_code(text.render(), on))


@functools.cache
def measure_copy_bandwidth(megabytes: int = 256, repeat: int = 5) -> float:
    """GB/s of copying an array much larger than the caches on one core: bytes read plus bytes written."""
    import numpy as np

    source = np.ones(megabytes << 18, np.float32)
    target = np.zeros_like(source)
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return 2.0 * source.nbytes / best * 1e-9
