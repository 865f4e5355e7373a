"""Every schedule by hand, for a machine that is described: its steps, its program, its code; of sizes and options at which a
schedule decides otherwise, steps and program alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import tir
from tests.hand_schedules import attention, conv, conv_nchw, dot_gemm, elementwise, gemm, gemv, rows
from tests.tools import replay
from tir.target import VectorRegisters

from .stages import Texts, cpu, generated

MACHINE = {
    "vector_registers": lambda: VectorRegisters(256, 16),
    "cache_bytes": lambda level=2: {1: 32 << 10, 2: 1 << 20}.get(level, 16 << 20),
    "threads": lambda: 2,
}


@contextmanager
def described_machine() -> Iterator[None]:
    """The schedules depend on this machine: here on one that is the same everywhere."""
    modules = [m for n, m in sorted(sys.modules.items()) if n.startswith("tests.hand_schedules.") or n == "tir.target"]
    with ExitStack() as patches:
        for module, name in ((m, name) for m in modules for name in MACHINE if name in vars(m)):
            patches.enter_context(mock.patch.object(module, name, MACHINE[name]))
        yield


def scheduled(make: Callable[[], Any], level: str) -> Texts:
    with described_machine():
        sch = make()
        yield "steps", str(sch.trace)
        yield "scheduled", sch.mod.script()
        yield from generated(sch.mod, cpu(level))


def taken(makes: Callable[[], list[Any]]) -> Texts:
    with described_machine():
        for number, sch in enumerate(makes()):
            yield f"{number}.steps", str(sch.trace)
            yield f"{number}.scheduled", sch.mod.script()


def of(schedule: Callable[..., Any], func: Callable[..., Any], sizes: list[tuple[Any, ...]], **options: Any) -> Any:
    """A program of each of ``sizes``, scheduled."""
    return lambda: [schedule(tir.Schedule(func(*size)), **options) for size in sizes]


LARGE = 1 << 21  # elements of float32 that are stored past the described caches
DECISIONS: dict[str, Callable[[], list[Any]]] = {
    "gemm-rows": of(gemm.schedule_gemm, gemm.gemm, [(13, 36, 6, 6, 16)], together=2, parallel="rows", lanes=4),
    "gemm-steps": of(gemm.schedule_gemm, gemm.gemm, [(6, 16, k, 6, 16) for k in (4, 6, 9, 7)], together=0),
    "gemm-batch": of(gemm.schedule_gemm, gemm.batched_gemm, [(2, 6, 32, 4, 6, 16)], together=2, parallel="batch"),
    "gemm-large": lambda: [gemm.scheduled_gemm(1024, n, k, 1) for n, k in ((2048, 48), (2052, 48), (2048, 49))],
    "gemm-thin": of(gemm.schedule_thin_gemm, gemm.thin_gemm, [(7, 30, 33)], rows=5, columns=16, lanes=4, cores=9),
    "gemm-deep": of(gemm.schedule_deep_gemm, gemm.deep_gemm, [(7, 30, 300)], rows=5, depth=64, lanes=4, cores=9),
    "gemv": lambda: [gemv.scheduled_gemv(m, 1000, 2) for m in (100, 101)],
    "dot_gemm": lambda: [dot_gemm.scheduled_dot_gemm(16, 32, 8, kind, 1, False) for kind in dot_gemm.KINDS],
    "conv2d_nhwc-in_place": of(
        conv.schedule_conv2d_nhwc,
        conv.conv2d_nhwc,
        [(conv.Layer(1, 5, c, 16, k), conv.Tile(1, 5, 16)) for c, k in ((8, 1), (6, 3), (9, 1), (5, 3))],
        together=0,
        parallel=True,
    ),
    "conv2d_nchw-lines": of(
        conv_nchw.schedule_conv2d_nchw,
        conv_nchw.conv2d_nchw,
        [(conv.Layer(1, 8, 2, 9, 3), conv.Tile(high, 16, 4)) for high in (1, 2, 8)],
        parallel=True,
    ),
    "depthwise-channels": of(
        conv_nchw.schedule_depthwise_nhwc,
        conv_nchw.depthwise_nhwc,
        [(conv.Layer(1, size, c, c, 3),) for size, c in ((8, 256), (7, 257), (4, 8), (5, 8), (3, 8), (2, 8), (11, 8))],
    ),
    "transpose": of(
        elementwise.schedule_transpose,
        elementwise.transpose,
        [(16, 16), (37, 64), (64, 37), (8, 40), (40, 8), (15, 17), (2048, 1024), (2048, 1040), (2040, 1024), (48, 80)],
    ),
    "blur": of(elementwise.schedule_blur, elementwise.blur, [(64, 64), (16, 40), (8, 32), (7, 32), (37, 32), (62, 32)]),
    "blur-parallel": of(
        elementwise.schedule_blur,
        elementwise.blur,
        [(64, 64), (64, 40), (37, 32), (2048, 1024)],
        strip=16,
        parallel=True,
    ),
    "chain": of(elementwise.schedule_scale_add, elementwise.scale_add, [(LARGE,), (LARGE - 1,), (30,)]),
    "chain-parallel": of(elementwise.schedule_gelu_chain, elementwise.gelu_chain, [(LARGE,), (30,)], parallel=True),
    "softmax": of(rows.schedule_softmax, rows.softmax, [(LARGE // 64, 64), (3, 8), (3, 33), (3, 31)]),
    "layer_norm": of(rows.schedule_layer_norm, rows.layer_norm, [(LARGE // 32, 32), (3, 9)]),
    "row_sum": of(rows.schedule_row_sum, rows.row_sum, [(5, n) for n in (4, 8, 9, 32, 33, 128)]),
    "row_sum-parts": lambda: [
        *(sch := tir.Schedule(rows.row_sum(5, 200)), rows.reduce_in_parts(sch, "total", (64, 16, 4)))[:1]
    ],
    "column_sum": of(
        rows.schedule_column_sum,
        rows.column_sum,
        [(m, n) for m, n in ((8, 64), (12, 4096), (10, 4100), (14, 9), (9, 8), (6, 8), (11, 8), (1, 8))],
    ),
    "attention-rows": of(
        attention.schedule_attention, attention.attention, [(q, 20, 8, c) for q, c in ((12, 8), (14, 16), (5, None))]
    ),
}
CASES = {
    **{
        name: partial(scheduled, make, "amx" if name.startswith(("dot_gemm", "tile_gemm")) else "v3")
        for name, make in replay.library_schedules().items()
    },
    **{f"decisions-{name}": partial(taken, makes) for name, makes in DECISIONS.items()},
}
