"""What this machine can do at most: FMA rate of one core, memory bandwidth. Measured, with kernels compiled here."""

from __future__ import annotations

import ctypes
import functools
import time

from .llvm.compile import Loaded, Machine, machine, object_code
from .llvm.text import FunctionText, ModuleText
from .llvm.types import vector

_CHAINS = 12  # independent sums: more than latency x issue width of any current core


@functools.cache
def measure_fma_peak(dtype: str = "float32", seconds: float = 0.2) -> float:
    """GFLOP/s of one core doing nothing but full-width fused multiply-adds (two operations each).

    ``dtype``: float32 or float64. The best of many short runs, so that a busy machine disturbs little.
    """
    element, bits = {"float32": ("float", 32), "float64": ("double", 64)}[dtype]
    on = machine()
    lanes = on.width // bits
    loaded = Loaded(object_code(_fma_kernel(on, element, lanes), on), on)
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(loaded.function("fma_peak"))
    result = (ctypes.c_double * 64)()
    count = 200_000
    best, stop = 0.0, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        run(count, ctypes.addressof(result))
        now = time.perf_counter()
        best = max(best, 2.0 * lanes * _CHAINS * count / (now - start))
        if now > stop:
            return best * 1e-9


def _fma_kernel(on: Machine, element: str, lanes: int) -> str:
    """A loop of independent chains acc[k] = acc[k] * x + y, all in registers."""
    text = ModuleText(on.cpu, on.features, on.triple, on.width)
    out = FunctionText(text, "fma_peak", "void", ["i64 %count", "ptr %result"])
    type_ = vector(element, lanes)
    # values that come from memory, so that nothing can be folded
    first = out.value(f"load {element}, ptr %result, align 8")
    x = out.splat(element, first, lanes)
    before = out.block
    out.start("loop")
    counter, accumulators = out.fresh(), [out.fresh() for _ in range(_CHAINS)]
    places = [out.placeholder() for _ in range(_CHAINS + 1)]
    following = [out.intrinsic("fma", element, lanes, [a, x, x]) for a in accumulators]
    step = out.value(f"add nsw i64 {counter}, 1")
    out.fill(places[0], f"{counter} = phi i64 [ 0, %{before} ], [ {step}, %loop ]")
    for k, (place, a, new) in enumerate(zip(places[1:], accumulators, following)):
        start = f"splat ({element} {float(k + 1)})"
        out.fill(place, f"{a} = phi {type_} [ {start}, %{before} ], [ {new}, %loop ]")
    out.branch(out.value(f"icmp slt i64 {step}, %count"), "loop", "done")
    out.start("done")
    total = following[0]
    for new in following[1:]:
        total = out.value(f"fadd {type_} {total}, {new}")
    out.emit(f"store {type_} {total}, ptr %result, align 8")
    out.ret("void")
    out.finish()
    return text.render()


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
