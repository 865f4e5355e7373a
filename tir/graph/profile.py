"""Where the time of a model goes: each kernel timed in calls of the whole model."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..buffer import Buffer
from ..cost.footprint import operations
from ..cost.footprint_table import Machine
from ..display import FAINT, YES, html_table, svg_box, svg_figure, svg_text, text_table
from ..errors import RunError
from ..expr import BufferLoad, Call, StringImm, Var, const
from ..function import PrimFunc
from ..interp.numbers import array_dtype, storage_dtype
from ..node import frozendict
from ..stmt import Evaluate, IfThenElse, SeqStmt, Stmt
from ..transform import simplify
from ..visit import substitute
from .fusion import group_function, groups
from .model_picture import shortened
from .sizes import value_of

if TYPE_CHECKING:
    from .compiled_model import CompiledModel


_NAME, _BAR, _ROW = 280, 320, 20  # of a picture: columns for names and bars, the height of a row
_MOST = 40  # characters of a name


@dataclass(frozen=True)
class KernelTime:
    """A kernel: in how many places a call of the model ``calls`` it, and of all of these together the median ``seconds``,
    the ``bytes`` of their arguments, and the floating-point ``operations`` of their groups, before they are scheduled. ``roofline`` is the part of ``seconds`` in which one
    core could do it (above 1 for parallel loops), by its peak and by the bandwidth of the memory that holds the bytes; None where the rates are not known.
    """

    kernel: str
    calls: int
    seconds: float
    bytes: int
    operations: int
    roofline: float | None


@dataclass(frozen=True, repr=False)
class Profile:
    """The kernels of a model, the one that takes longest first; prints as a table. ``seconds`` is their sum, and ``seconds_of_calls`` has the
    median of each call, in the order of running."""

    kernels: tuple[KernelTime, ...]
    seconds_of_calls: tuple[float, ...] = ()

    HEAD = ("kernel", "calls", "ms", "share", "MB", "GFLOP/s", "GB/s", "of a core")

    @property
    def seconds(self) -> float:
        return sum(k.seconds for k in self.kernels)

    def _rows(self) -> list[tuple[str, ...]]:
        whole = self.seconds or 1.0
        return [
            (
                k.kernel,
                str(k.calls),
                f"{k.seconds * 1e3:.3f}",
                f"{k.seconds / whole:.1%}",
                f"{k.bytes / 1e6:.2f}",
                f"{k.operations / k.seconds / 1e9:.1f}",
                f"{k.bytes / k.seconds / 1e9:.1f}",
                "" if k.roofline is None else f"{k.roofline:.0%}",
            )
            for k in self.kernels
        ]

    def __repr__(self) -> str:
        total = f"{len(self.kernels)} kernels, {self.seconds * 1e3:.3f} ms"
        return f"{text_table(self.HEAD, self._rows(), right=range(1, len(self.HEAD)))}\n{total}"

    def _repr_html_(self) -> str:
        return html_table(self.HEAD, self._rows(), right=range(1, len(self.HEAD)), code=[0])

    def svg(self) -> str:
        """A bar for each kernel, as long as its share of the time; the green part is what a core needs at least."""
        longest = max((k.seconds for k in self.kernels), default=0.0) or 1.0
        whole = self.seconds or 1.0
        parts = []
        for n, k in enumerate(self.kernels):
            y, width = n * _ROW, _BAR * k.seconds / longest
            title = f"{k.kernel}: {k.seconds * 1e3:.3f} ms in {k.calls} calls, {k.bytes / 1e6:.2f} MB"
            parts.append(svg_text(_NAME - 8, y + 14, shortened(k.kernel, _MOST), "end"))
            parts.append(svg_box(_NAME, y + 3, width, _ROW - 6, FAINT, title))
            if k.roofline is not None:
                parts.append(svg_box(_NAME, y + 3, width * min(k.roofline, 1), _ROW - 6, YES, title))
            parts.append(svg_text(_NAME + width + 6, y + 14, f"{k.seconds * 1e3:.3f} ms, {k.seconds / whole:.0%}"))
        return svg_figure(_NAME + _BAR + 120, len(self.kernels) * _ROW + 4, *parts)

    def as_dict(self) -> dict[str, Any]:
        """The rows as plain data, with the share of the time."""
        whole = self.seconds or 1.0
        rows = [{**asdict(k), "share": k.seconds / whole} for k in self.kernels]
        return {"seconds": self.seconds, "kernels": rows}

    def as_json(self) -> str:
        """:meth:`as_dict` as text."""
        return json.dumps(self.as_dict())


def profile(model: CompiledModel, args: Sequence[Any], named: Mapping[str, Any], repeat: int) -> Profile:
    """Time the kernels of ``repeat`` calls, after one that is not counted. Raises ``RunError`` as a call of the model does, and
    for a ``repeat`` below 1."""
    if repeat < 1:
        raise RunError(f"repeat must be at least 1, got {repeat}")
    arrays = model.arrays(args, named)
    _, values, nbytes, outputs = model.sized(arrays)
    with model.workspace(nbytes) as work:
        made = [model.place.empty(p) for p in outputs]
        memory = [*arrays, *made, *model.new_state().values(), model.place.held(model.weights), work]
        names, calls = calls_of(model, memory, values)
        times = [model.place.timed(calls) for _ in range(repeat + 1)][1:]
    seconds = [statistics.median(each) for each in zip(*times)]
    return Profile(_summed(model, names, seconds, values), tuple(seconds))


def calls_of(
    model: CompiledModel, memory: Sequence[Any], values: Mapping[str, int] = frozendict()
) -> tuple[list[str], list[Callable[[], None]]]:
    """The calls of the entry of a model, by the names of their kernels, and with the arguments that they have there."""
    main: PrimFunc = model.module.ir["main"]
    arrays = dict(zip(main.params, memory))
    names, calls = [], []
    for call in _calls(main.body, values):
        name, *pointers = call.args
        assert isinstance(name, StringImm)
        function = model.module[name.value]
        given = [
            values[p.name]
            if p not in function.func.buffer_map
            else _array(model, function.func.buffer_map[p], given, arrays, values)
            for p, given in zip(function.func.params, pointers)
        ]
        names.append(name.value)
        prepare = getattr(function, "prepared", None)
        calls.append(prepare(*given) if prepare is not None else lambda f=function, g=given: f(*g))
    return names, calls


def _calls(stmt: Stmt, values: Mapping[str, int]) -> Iterator[Call]:
    """The calls that a statement of the entry makes for values of the symbols."""
    if isinstance(stmt, IfThenElse):
        assert stmt.else_case is not None
        yield from _calls(stmt.then_case if value_of(stmt.condition, values) else stmt.else_case, values)
    elif isinstance(stmt, SeqStmt):
        for each in stmt.stmts:
            yield from _calls(each, values)
    elif isinstance(stmt, Evaluate) and isinstance(stmt.value, Call):
        yield stmt.value


def _array(
    model: CompiledModel, buffer: Buffer, pointer: Any, arrays: Mapping[Var, Any], values: Mapping[str, int]
) -> Any:
    """The argument of a kernel that begins where a pointer of the entry points to."""
    shape = [value_of(size, values) for size in buffer.shape]
    if isinstance(pointer, Var):
        whole, begin = arrays[pointer], 0
    else:
        (place,) = pointer.args
        assert isinstance(place, BufferLoad)
        whole = arrays[place.buffer.data]
        first = np.ravel_multi_index([value_of(i, values) for i in place.indices], whole.shape)
        begin = int(first) * storage_dtype(place.buffer.dtype).itemsize
    return model.place.part(whole, begin, shape, storage_dtype(buffer.dtype))


def _summed(
    model: CompiledModel, names: Sequence[str], seconds: Sequence[float], values: Mapping[str, int]
) -> tuple[KernelTime, ...]:
    machine = _machine(model)
    case = model.case(values)
    made = dict(zip(case.kernels, (g for g in groups(case.graph) if g.view is None)))
    found = []
    for name in dict.fromkeys(names):
        func, group = model.module.ir[name], made[name]
        times = [s for n, s in zip(names, seconds) if n == name]
        sizes = ([value_of(n, values) for n in b.shape] for b in func.buffers())
        size = sum(math.prod(n) * array_dtype(b.dtype).itemsize for n, b in zip(sizes, func.buffers()))
        count, total = (
            operations(_at(group_function(group.nodes, group.inputs, group.outputs), values)),
            max(sum(times), 1e-12),
        )
        least = None if machine is None else len(times) * _least(machine, count, size) / total
        found.append(KernelTime(name, len(times), total, len(times) * size, len(times) * count, least))
    return tuple(sorted(found, key=lambda k: -k.seconds))


def _at(func: PrimFunc, values: Mapping[str, int]) -> PrimFunc:
    """A function for values of its scalars."""
    sizes = {p: const(values[p.name], p.dtype) for p in func.params if p not in func.buffer_map}
    buffers = {b: substitute(b, sizes) for b in func.buffers()}
    taken = {p: buffers[b] for p, b in func.buffer_map.items()}
    body = substitute(func.body, sizes, buffers)
    return simplify(func.replace(params=tuple(taken), body=body, buffer_map=frozendict(taken)))


def _machine(model: CompiledModel) -> Machine | None:
    from ..tune.machine import measured

    target = model.module.target
    return measured(target) if target.kind == "llvm" else None


def _least(machine: Machine, count: int, size: int) -> float:
    """The seconds that a core needs at least for operations on bytes that lie in the smallest memory that holds them."""
    level = next((n for n in ("L1", "L2", "L3") if size <= machine.sizes.get(n, 0)), "memory")
    return max(count / machine.peak, size / machine.bandwidth[level])
