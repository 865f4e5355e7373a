"""What became of the loops a schedule marked: a table to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tir.expr import BufferLoad, IntImm
from tir.function import IRModule, PrimFunc
from tir.stmt import BufferStore, For
from tir.visit import walk


@dataclass(frozen=True)
class Row:
    """One marked loop: what was asked, and what happened to it."""

    function: str
    loop: str
    asked: str
    extent: str
    outcome: str


@dataclass(frozen=True)
class Report:
    """Rows in program order; ``str(report)`` is a table."""

    rows: tuple[Row, ...]

    @staticmethod
    def of(source: IRModule, lowered: IRModule) -> Report:
        rows: list[Row] = []
        for name, func in source.items():
            if name in lowered:
                rows.extend(_rows(name, func, lowered[name]))
        return Report(tuple(rows))

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __str__(self) -> str:
        head = ("function", "loop", "asked", "extent", "outcome")
        lines = [head, *((r.function, r.loop, r.asked, r.extent, r.outcome) for r in self.rows)]
        if not self.rows:
            return "no loop was marked parallel, vectorized or unrolled"
        widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
        return "\n".join("  ".join(t.ljust(w) for t, w in zip(line, widths)).rstrip() for line in lines)


def _rows(name: str, func: PrimFunc, lowered: PrimFunc) -> Iterator[Row]:
    left: dict[str, list[For]] = {}
    for node in walk(lowered.body):
        if isinstance(node, For):
            left.setdefault(node.loop_var.name, []).append(node)
    parallel_depth = _nested_parallel(func)
    lanes = _vector_accesses(lowered)
    for node in walk(func.body):
        if not isinstance(node, For) or node.kind not in ("parallel", "vectorized", "unrolled"):
            continue
        loops = left.get(node.loop_var.name, [])
        extent = str(node.extent.value) if isinstance(node.extent, IntImm) else repr(node.extent)
        yield Row(name, node.loop_var.name, node.kind, extent, _outcome(node, loops, node in parallel_depth, lanes))


def _outcome(loop: For, left: list[For], nested: bool, lanes: dict[int, int]) -> str:
    """In words: done, or not and why."""
    if loop.kind == "parallel":
        if nested:
            return "serial: inside another parallel loop"
        return "a team of threads, equal shares" if left else "gone: one iteration, or merged"
    if not left:
        if loop.kind == "unrolled":
            return "unrolled"
        width = loop.extent.value if isinstance(loop.extent, IntImm) else 0
        count = lanes.get(width, 0)
        return f"vectors of {width} lanes, {count} accesses" if count else "one lane or folded"
    if not isinstance(loop.extent, IntImm):
        return f"left a loop: extent `{loop.extent!r}` is not a constant"
    if loop.kind == "unrolled":
        return "left to LLVM to unroll"
    return "left a scalar loop: its body cannot be written in vectors"


def _nested_parallel(func: PrimFunc) -> set[For]:
    nested: set[For] = set()
    for outer in walk(func.body):
        if isinstance(outer, For) and outer.kind == "parallel":
            nested.update(n for n in walk(outer.body) if isinstance(n, For) and n.kind == "parallel")
    return nested


def _vector_accesses(func: PrimFunc) -> dict[int, int]:
    """Loads and stores by number of lanes."""
    found: dict[int, int] = {}
    for node in walk(func.body):
        if isinstance(node, (BufferLoad, BufferStore)) and node.indices:
            lanes = max(i.dtype.lanes for i in node.indices)
            found[lanes] = found.get(lanes, 0) + 1
    return found
