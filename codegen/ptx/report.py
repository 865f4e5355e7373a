"""What the kernels of a call executed, and what their requests of memory cost, as tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tir.display import CallableReport, html_table, text_table
from tir.interp.gpu.counts import HEAD, Cost

_HEAD = (
    "kernel", "grid", "block", "registers", "instructions", "memory", "floats", "tensor cores", "barriers", "others",
)  # fmt: skip
_MEMORY = ("ld", "st", "atom", "red", "cp", "ldmatrix", "stmatrix")
_TRAFFIC = ("line", "access", *HEAD, "text")
_NUMBERS = (0, *range(3, 9))


@dataclass
class Access(Cost):
    """The requests of warps by one line of the CUDA C: to read, to write, or atomic. ``buffer``: of global memory, the
    kernel's parameter. Counted by :mod:`codegen.ptx.traffic`."""

    line: int = 0
    text: str = ""
    what: str = ""
    buffer: str = ""

    def row(self) -> tuple[str, ...]:
        return (str(self.line or ""), f"{self.what} {self.buffer}".rstrip(), *self.cells(), self.text)


def _what(opcode: str, scope: str) -> str:
    parts = opcode.split(".")
    if parts[0] in ("atom", "red"):
        return "atomic"
    writes = (
        parts[0] in ("st", "stmatrix") or parts[:2] == ["wmma", "store"] or (parts[0] == "cp" and scope == "shared")
    )
    return "write" if writes else "read"


def _statement(lines: list[str], first: int) -> str:
    """The line numbered ``first``, and those after it up to a semicolon; empty if there is none."""
    parts = lines[first - 1 : first + 9] if first else []
    last = next((k for k, text in enumerate(parts) if text.rstrip().endswith((";", "{"))), 0)
    return " ".join(text.strip() for text in parts[: last + 1])


def _accesses(launch: Any, module: Any) -> tuple[Access, ...]:
    """The costs of a launch by line, kind, buffer and width; nothing if they were not counted."""
    if launch.traffic is None:
        return ()
    lines = module.code.splitlines()
    kernel = module.kernels.get(launch.kernel)
    found: dict[Any, Access] = {}
    for (place, scope, piece), cost in sorted(launch.traffic.costs.items()):
        inst = launch.body[place]
        number = launch.pointers.get(piece) if scope == "global" else None
        buffer = kernel.params[number].name if kernel is not None and number is not None else ""
        key = inst.source, _what(inst.opcode, scope), scope, buffer, cost.width
        one = found.setdefault(key, Access(scope, cost.width, line=key[0], what=key[1], buffer=buffer))
        one.add(cost)
        one.text = _statement(lines, inst.source) or inst.text
    return tuple(found[key] for key in sorted(found))


@dataclass(frozen=True)
class Row:
    """One launch. ``registers``: of a thread as ptxas counts them. ``executed``: instructions over all threads, by opcode.
    ``accesses``: the requests of memory, if they were counted (``module.traffic = True``)."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    executed: dict[str, int]
    accesses: tuple[Access, ...] = ()

    @property
    def instructions(self) -> int:
        return sum(self.executed.values())

    @property
    def sectors(self) -> int:
        """32-byte sectors of global memory moved by all accesses."""
        return sum(a.sectors for a in self.accesses)

    @property
    def conflicts(self) -> int:
        """Bank conflicts of all accesses of shared memory."""
        return sum(a.conflicts for a in self.accesses)

    def kinds(self) -> dict[str, int]:
        found: dict[str, int] = dict.fromkeys(("memory", "floats", "tensor cores", "barriers", "others"), 0)
        for opcode, count in self.executed.items():
            found[_kind(opcode)] += count
        return found


def _kind(opcode: str) -> str:
    parts = opcode.split(".")
    if parts[0] in ("mma", "wmma", "wgmma"):
        return "tensor cores"
    if parts[0] in ("bar", "barrier", "mbarrier"):
        return "barriers"
    if parts[0] in _MEMORY:
        return "others" if "param" in parts else "memory"
    floats = parts[-1] in ("f16", "f32", "f64", "bf16", "f16x2", "bf16x2")
    return "floats" if floats and parts[0] not in ("mov", "setp", "selp", "cvt") else "others"


@dataclass(frozen=True, repr=False)
class Report(CallableReport):
    """Rows in the order of launches; ``str(report)`` has a table of them, and of the accesses of each."""

    arch: str
    rows: tuple[Row, ...]

    @staticmethod
    def of(module: Any) -> Report:
        launches = module.simulated.launches
        registers = {r.name: r.registers for r in module.binary.resources} if launches else {}
        return Report(
            module.arch,
            tuple(
                Row(
                    n.kernel,
                    tuple(n.grid),
                    tuple(n.block),
                    registers.get(n.kernel, 0),
                    n.executed,
                    _accesses(n, module),
                )
                for n in launches
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

    def _title(self) -> str:
        return f"{self.arch}, executed on the CPU"

    def _tables(self) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
        for row in self.rows:
            if row.accesses:
                yield f"{row.kernel}: accesses of memory", [a.row() for a in row.accesses]

    def __str__(self) -> str:
        if not self.rows:
            return "no launch yet"
        parts = [self._title(), text_table(_HEAD, self._cells(), range(3, len(_HEAD)))]
        for title, rows in self._tables():
            cells = [(*row[:-1], textwrap.shorten(row[-1], 72, placeholder=" …")) for row in rows]
            parts += ["", title, text_table(_TRAFFIC, cells, _NUMBERS)]
        return "\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        more = (
            html_table(_TRAFFIC, cells, title, right=_NUMBERS, code=[len(_TRAFFIC) - 1])
            for title, cells in self._tables()
        )
        return html_table(_HEAD, self._cells(), self._title(), right=range(3, len(_HEAD))) + "".join(more)
