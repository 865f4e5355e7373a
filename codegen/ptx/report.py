"""What the kernels of a call executed, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tir.display import CallableReport, html_table, text_table

_HEAD = (
    "kernel",
    "grid",
    "block",
    "registers",
    "instructions",
    "memory",
    "floats",
    "tensor cores",
    "barriers",
    "others",
)
_MEMORY = ("ld", "st", "atom", "red", "cp", "ldmatrix", "stmatrix")


@dataclass(frozen=True)
class Row:
    """One launch. ``registers``: of a thread as ptxas counts them. The others: instructions executed, over all threads, in
    all and by kind; ``executed`` has them by opcode."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    executed: dict[str, int]

    @property
    def instructions(self) -> int:
        return sum(self.executed.values())

    def kinds(self) -> dict[str, int]:
        found: dict[str, int] = dict.fromkeys(("memory", "floats", "tensor cores", "barriers", "others"), 0)
        for opcode, count in self.executed.items():
            found[_kind(opcode)] += count
        return found


def _kind(opcode: str) -> str:
    parts = opcode.split(".")
    if parts[0] in ("mma", "wmma"):
        return "tensor cores"
    if parts[0] in ("bar", "barrier", "mbarrier"):
        return "barriers"
    if parts[0] in _MEMORY:
        return "others" if "param" in parts else "memory"
    floats = parts[-1] in ("f16", "f32", "f64", "bf16", "f16x2", "bf16x2")
    return "floats" if floats and parts[0] not in ("mov", "setp", "selp", "cvt") else "others"


@dataclass(frozen=True, repr=False)
class Report(CallableReport):
    """Rows in the order of launches; ``str(report)`` is a table."""

    arch: str
    rows: tuple[Row, ...]

    @staticmethod
    def of(module: Any) -> Report:
        launches = module.simulated.launches
        registers = {r.name: r.registers for r in module.binary.resources} if launches else {}
        return Report(
            module.arch,
            tuple(
                Row(n.kernel, tuple(n.grid), tuple(n.block), registers.get(n.kernel, 0), n.executed) for n in launches
            ),
        )

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                r.kernel,
                " x ".join(map(str, r.grid)),
                " x ".join(map(str, r.block)),
                str(r.registers),
                str(r.instructions),
                *map(str, r.kinds().values()),
            )
            for r in self.rows
        ]

    def __str__(self) -> str:
        return f"{self.arch}, executed on the CPU\n{text_table(_HEAD, self._cells())}" if self.rows else "no launch yet"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(_HEAD, self._cells(), f"{self.arch}, executed on the CPU")
