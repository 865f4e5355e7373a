"""Replaying a trace on a program that differs in names from the one on which it was recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..analysis.index import BlockRef, Place
from ..canonical import canonical
from ..errors import TirError, attempt
from ..function import IRModule, PrimFunc
from ..visit import buffers_in
from .handles import BlockRV, LoopRV
from .primitive import QUERIES, Primitive
from .schedule import Schedule
from .trace import Trace, _identity, _map, installed, results_of


def replay_renamed(
    trace: Trace, recorded: PrimFunc | IRModule, program: PrimFunc | IRModule, **options: Any
) -> Schedule:
    """A schedule of ``program`` with a ``trace`` of ``recorded`` applied: the two differ in names alone.

    Blocks, loops and buffers that the trace names are those at the same position; ``options`` are those of
    :class:`Schedule`. Raises ``TirError`` for a program that differs in more, ``ScheduleError`` for a step that is
    refused.

    >>> import tir
    >>> text = '''
    ... @T.prim_func
    ... def f(A: T.Buffer((64,), "float32")):
    ...     for row in range(64):
    ...         with T.block("A"):
    ...             vi = T.axis.spatial(64, row)
    ...             A[vi] = T.float32(1)
    ... '''
    >>> f, g = tir.script.parse(text), tir.script.parse(text.replace("row", "y").replace('"A"', '"X"'))
    >>> sch = tir.Schedule(f)
    >>> _ = sch.split("row", [None, 8])
    >>> print(replay_renamed(sch.trace, f, g).trace)
    def apply_trace(sch: tir.Schedule) -> None:
        y_0, y_1 = sch.split("y", factors=[None, 8])
    <BLANKLINE>
    """
    if canonical(recorded).key != canonical(program).key:
        raise TirError("the trace is of another program: the two differ in more than names")
    return _Pair(Schedule(recorded, seed=0, enable_check=False), Schedule(program, **options)).run(trace)


class _Pair:
    """The recorded program and the new one, in step with each other for as long as the trace has names."""

    def __init__(self, old: Schedule, new: Schedule):
        self.old, self.new = old, new
        self.results: dict[Any, Any] = {}
        self.old_results: dict[Any, Any] = {}

    def run(self, trace: Trace) -> Schedule:
        named = [n for n, step in enumerate(trace.steps) if any(_names(step.args))]
        for number, step in enumerate(trace.steps):
            primitive = installed(step.name)
            result = self.new._apply_step(primitive, self.arguments(primitive, step.args))
            self.results |= _pairs(step.result, result)
            if named and number < named[-1]:
                given = {k: _map(v, self.old_results, self.old.func.sizes) for k, v in step.args.items()}
                self.old_results |= _pairs(step.result, self.old._apply_step(primitive, given))
        return self.new

    def arguments(self, step: Primitive, args: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments for the new program: names that mean something in the old one become those of the new."""
        near: Place | None = None
        made: dict[str, Any] = {}
        for name, value in args.items():
            places = "block" if step.name in QUERIES and name == "name" else step.kinds.get(name, "")
            if places:
                near = self.block_of(value) or near
                made[name] = _each(value, lambda item: self.place(places, item, near))
            elif name == "func_name" and isinstance(value, str):
                made[name] = dict(zip(self.old.mod, self.new.mod))[value]
            elif name.endswith(("buffer", "buffer_index")) and isinstance(value, str):
                made[name] = self.buffer(value)
            else:
                sizes = dict(zip(self.old.func.sizes, self.new.func.sizes.values()))
                made[name] = _map(value, self.results, sizes)
        return made

    def block_of(self, value: Any) -> BlockRef | None:
        """The block of the old program that an argument is, if it is one."""
        block = _map(value, self.old_results, {}) if isinstance(value, BlockRV) else value
        if not isinstance(block, (BlockRV, str)):
            return None
        found = attempt(lambda: self.old.state.find_block(block))
        return found if isinstance(found, BlockRef) else None

    def place(self, places: str, value: Any, near: Place | None) -> Any:
        """The block or the loop of the new program at the position of the old one's; a name where that is enough."""
        if not isinstance(value, str):
            if not isinstance(value, (LoopRV, BlockRV)) or value in self.results:
                return _map(value, self.results, {})
            value = value.name
        old, new = self.old.state, self.new.state
        block = self.block_of(value) if "block" in places else None
        if block is not None:
            return dict(zip(old.index.blocks, new.index.blocks))[block.name]
        found = dict(zip(old.index.loops, new.index.loops.values()))[old.find_loop(value, near).var]
        if len(new.index.loops_named(found.name)) == 1:
            return found.name
        handles = self.new.get_loops(new.index.blocks_below(found)[0].name)
        return next(h for h in handles if h.var is found.var)

    def buffer(self, text: str) -> str:
        old, new = (_buffer_names(s.state.func) for s in (self.old, self.new))
        return new[old.index(text)] if text in old else text


def _names(args: Mapping[str, Any]) -> Iterator[str]:
    for value in args.values():
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, str):
                yield item


def _buffer_names(func: PrimFunc) -> list[str]:
    return [b.name for b in dict.fromkeys((*func.buffers(), *buffers_in(func.body)))]


def _pairs(old: Any, new: Any) -> dict[Any, Any]:
    return {_identity(a): b for a, b in zip(results_of(old), results_of(new))}


def _each(value: Any, fn: Callable[[Any], Any]) -> Any:
    return [fn(item) for item in value] if isinstance(value, (list, tuple)) else fn(value)
