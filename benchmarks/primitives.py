"""Latency of each schedule primitive on a 1024 matmul, and of a whole schedule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tir
from tir.script import tir as T

from . import sgemm_schedule
from .timing import median_us


@T.prim_func
def matmul(
    A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32"), C: T.Buffer((1024, 1024), "float32")
):
    for i, j, k in T.grid(1024, 1024, 1024):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


def _tiled() -> tir.Schedule:
    sch = tir.Schedule(matmul)
    i, j, k = sch.get_loops("C")
    sch.split(i, [None, 8])
    sch.split(j, [None, 48 // 3, 16])
    return sch


STEPS = {
    "split": (lambda: tir.Schedule(matmul), lambda s: s.split(s.get_loops("C")[0], [None, 8])),
    "fuse": (lambda: tir.Schedule(matmul), lambda s: s.fuse(*s.get_loops("C")[:2])),
    "reorder": (lambda: tir.Schedule(matmul), lambda s: s.reorder(*reversed(s.get_loops("C")))),
    "vectorize": (_tiled, lambda s: s.vectorize(s.get_loops("C")[4])),
    "unroll": (_tiled, lambda s: s.unroll(s.get_loops("C")[1])),
    "parallel": (_tiled, lambda s: s.parallel(s.get_loops("C")[0])),
    "script": (lambda: tir.Schedule(matmul), lambda s: s.mod.script()),
}


def measure() -> Iterator[dict]:
    for name, (setup, call) in STEPS.items():
        yield {"what": f"{name} on a matmul", "value": median_us(setup, call), "unit": "us"}
    yield from sgemm_schedule.measure(_fresh)


def _fresh() -> tuple[tir.Schedule, Any]:
    sch = tir.Schedule(matmul)
    return sch, sch.get_block("C")
