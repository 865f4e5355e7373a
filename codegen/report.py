"""The outcome of each loop annotation (vectorized, unrolled, parallel) and of scalar replacement, as a table.

Annotated loops are numbered, the passes run again, and each loop is looked up before and after the passes that
implement its annotation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tir.aliases import shares_memory
from tir.arith.linear import linear
from tir.display import CallableReport, html_table, text_table
from tir.expr import BufferLoad, Call, Expr, IntImm, Var, choice_parts
from tir.function import IRModule, PrimFunc
from tir.node import frozendict
from tir.stmt import Allocate, BufferStore, For, IfThenElse, Stmt
from tir.transform.pipeline import name_of
from tir.transform.unroll_loop import REASON as ROLLED
from tir.transform.vectorize_loop import REASON
from tir.visit import rewrite, uses_var, walk

from .llvm.peel import peel_first_iterations
from .llvm.scalar_replacement import HELD, is_constant, promote_accumulators
from .runtime.openmp import openmp

MARKS = ("parallel", "vectorized", "unrolled")
TAG = "report_number"
_HEAD = ("function", "loop", "asked", "extent", "outcome")
_NOTHING = "no loop was marked parallel, vectorized or unrolled, and nothing is held in registers"


@dataclass(frozen=True)
class Row:
    """An annotated loop, or a buffer: what was requested, and the outcome.

    ``asked`` is the loop's kind, or ``registers`` for elements that a loop updates in each iteration (``loop`` names the
    loop) and for a buffer in scope ``local`` (``loop`` names the buffer). ``extent``: of the loop, or elements held.
    """

    function: str
    loop: str
    asked: str
    extent: str
    outcome: str


@dataclass(frozen=True)
class Report(CallableReport):
    """Rows in program order; ``str(report)`` is a table, as it is in a notebook."""

    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        return str(self)

    @staticmethod
    def of(module: IRModule, passes: Iterable[Any] = ()) -> Report:
        """The report on ``module`` lowered by ``passes`` (none: it is lowered already)."""
        marked: dict[str, list[For]] = {}
        module = IRModule(frozendict({name: _tagged(func, marked, name) for name, func in module.items()}))
        stages = {"vectorize_loop": module, "unroll_loop": module}
        done = {"vectorize_loop": module, "unroll_loop": module}
        lowered = module
        for step in passes:
            before, lowered = lowered, step(lowered)
            if name_of(step) in stages:
                stages[name_of(step)], done[name_of(step)] = before, lowered
        rows: list[Row] = []
        for name, loops in marked.items():
            if name not in lowered:
                continue
            look = _Look(loops, *(_loops(m[name]) for m in (*stages.values(), *done.values(), lowered)))
            rows += (Row(name, x.loop_var.name, x.kind, _extent(x), look.outcome(k)) for k, x in enumerate(loops))
            rows += _registers(name, lowered[name])
        return Report(tuple(rows))

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def _cells(self) -> list[tuple[str, ...]]:
        return [(r.function, r.loop, r.asked, r.extent, r.outcome) for r in self.rows]

    def __str__(self) -> str:
        return text_table(_HEAD, self._cells()) if self.rows else _NOTHING

    def _repr_html_(self) -> str:
        return html_table(_HEAD, self._cells()) if self.rows else f"<p>{_NOTHING}</p>"


def _extent(loop: For) -> str:
    return str(loop.extent.value) if isinstance(loop.extent, IntImm) else repr(loop.extent)


def _tagged(func: PrimFunc, marked: dict[str, list[For]], name: str) -> PrimFunc:
    """``func`` with a number in the annotations of each loop to report on; ``marked`` gets these loops in order."""
    loops = marked.setdefault(name, [])
    numbers: dict[Any, int] = {}
    for node in walk(func.body, lambda n: not isinstance(n, Expr)):
        if isinstance(node, For) and node.kind in MARKS:
            numbers[node.loop_var] = len(loops)
            loops.append(node)

    def tag(item: Any) -> Any:
        if isinstance(item, For) and item.kind in MARKS:
            return item.replace(annotations=frozendict({**item.annotations, TAG: numbers[item.loop_var]}))
        return None

    return func.with_body(rewrite(func.body, tag, lambda n: isinstance(n, (Stmt, type(None)))))


def _loops(func: PrimFunc) -> dict[int, list[For]]:
    found: dict[int, list[For]] = {}
    for node in walk(func.body, lambda n: not isinstance(n, Expr)):
        if isinstance(node, For) and TAG in node.annotations:
            found.setdefault(int(node.annotations[TAG]), []).append(node)
    return found


class _Look:
    """The loops of one function at the stages that implement their annotations, by number."""

    def __init__(self, loops: list[For], to_vector: Any, to_unroll: Any, vector: Any, unrolled: Any, lowered: Any):
        self.loops = loops
        self.to_vector, self.to_unroll, self.vector, self.unrolled = to_vector, to_unroll, vector, unrolled
        self.lowered = lowered
        self.nested = {
            inner.loop_var
            for outer in loops
            if outer.kind == "parallel"
            for inner in walk(outer.body)
            if isinstance(inner, For) and inner.kind == "parallel"
        }

    def outcome(self, number: int) -> str:
        """The outcome as text: done, or why not."""
        loop = self.loops[number]
        return getattr(self, "_" + loop.kind)(number, loop)

    def _parallel(self, number: int, loop: For) -> str:
        if loop.loop_var in self.nested:
            return "serial: inside another parallel loop"
        left = self.lowered.get(number, [])
        if not left:
            return "gone: no iteration, or nothing to do"
        if all(_extent(x) == "1" for x in left):
            return "one thread of a team: it has one iteration"
        if openmp() is None:
            return "serial: there is no OpenMP library to run it"
        return "a team of threads, equal shares"

    def _unrolled(self, number: int, loop: For) -> str:
        before, left = self.to_unroll.get(number, []), self.unrolled.get(number, [])
        if not before:
            return "gone: no iteration, or nothing to do"
        if not left:
            return "unrolled" + _parts(before)
        if not isinstance(left[0].extent, IntImm):
            return f"left a loop: extent `{left[0].extent!r}` is not a constant"
        return f"left a loop: {left[0].annotations.get(ROLLED, 'no pass unrolled it')}"

    def _vectorized(self, number: int, loop: For) -> str:
        before, left = self.to_vector.get(number, []), self.vector.get(number, [])
        if not before:
            return "gone: no iteration, or nothing to do"
        if all(_extent(x) == "1" for x in before):
            return "gone: one lane"
        open_ = next((x for x in before if not isinstance(x.extent, IntImm)), None)
        if open_ is not None:
            return f"left a loop: extent `{open_.extent!r}` is not a constant"
        reasons = dict.fromkeys(str(x.annotations[REASON]) for x in left if REASON in x.annotations)
        why = "; ".join(reasons) or "its body cannot be written in vectors"
        if left and _stores(left) >= _stores(before):
            return f"left a scalar loop: {why}"
        lanes = "/".join(dict.fromkeys(_extent(x) for x in before))
        kinds = Counter(kind for x in before for kind in _accesses(x))
        counts = ", ".join(f"{kinds[k]} {k}" for k in ("contiguous", "strided", "gathered", "broadcast") if kinds[k])
        masks = ", under masks" if any(map(_masked, before)) else ""
        scalar = f"; in part a scalar loop: {why}" if left else ""
        return f"vectors of {lanes} lanes: {counts or 'no memory'}{masks}{_parts(before)}{scalar}"


def _parts(loops: list[For]) -> str:
    return f" ({len(loops)} copies)" if len(loops) > 1 else ""


def _stores(loops: list[For]) -> int:
    return sum(isinstance(n, (BufferStore, Call)) for x in loops for n in walk(x.body))


def _accesses(loop: For) -> Iterator[str]:
    """The stride of each load and store of a vectorized loop from lane to lane, in words."""
    var = loop.loop_var
    for node in walk(loop.body):
        if not isinstance(node, (BufferLoad, BufferStore)):
            continue
        used = [k for k, index in enumerate(node.indices) if uses_var(index, var)]
        if not used:
            yield "broadcast"
            continue
        moving, _ = linear(node.indices[-1]).split(var)
        step = (moving.coefficients() or {}).get(var) if used == [len(node.indices) - 1] else None
        yield "gathered" if step is None else "contiguous" if step == 1 else "strided"


def _masked(loop: For) -> bool:
    for node in walk(loop.body):
        condition, *_ = (node.condition,) if isinstance(node, IfThenElse) else choice_parts(node) or (None,)
        if condition is not None and uses_var(condition, loop.loop_var):
            return True
    return False


def _registers(name: str, func: PrimFunc) -> Iterator[Row]:
    """Rows for elements that loops hold in registers, and for buffers in scope ``local``."""
    notes: list[Any] = []
    made = promote_accumulators(peel_first_iterations(func), notes)
    seen: Counter[Row] = Counter()
    for loop, buffer, count, lanes, why in notes:
        size = str(count) if lanes == 1 else f"{count} x {lanes}"
        held = f"`{buffer}` is held in registers" if not why else f"`{buffer}` is loaded and stored each time: {why}"
        seen[Row(name, loop, "registers", size, held)] += 1
    for row, count in seen.items():
        times = f" ({count} copies)" if count > 1 else ""
        yield Row(row.function, row.loop, row.asked, row.extent, row.outcome + times)
    local: dict[Var, tuple[str, list[Any]]] = {}
    for node in walk(made.body):
        if isinstance(node, Allocate) and node.buffer_var.scope == "local":
            local[node.buffer_var] = " x ".join(str(getattr(e, "value", e)) for e in node.extents), []
        elif isinstance(node, (BufferLoad, BufferStore)) and shares_memory(node, local):
            local[node.buffer.data][1].extend(i for i in node.indices if not is_constant(i))
    for buffer, size, index in dict.fromkeys((v.name, n, repr(i[0]) if i else "") for v, (n, i) in local.items()):
        if not buffer.endswith(HELD):
            where = f"memory on the stack: index `{index}` is not a constant" if index else "registers"
            yield Row(name, buffer, "registers", size, where)
