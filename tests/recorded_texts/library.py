"""Every schedule of ``tir.library``, for a machine that is described: its steps, its program, its code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

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
    """The library asks about this machine: it gets the answers of one that is the same everywhere."""
    modules = [m for n, m in sorted(sys.modules.items()) if n.startswith("tir.library.") or n == "tir.target"]
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


CASES = {
    name: partial(scheduled, make, "amx" if name.startswith(("dot_gemm", "tile_gemm")) else "v3")
    for name, make in replay.library_schedules().items()
}
