"""The smallest program, and the shortest schedule, that still show a fault: ``reduce_case``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from ..analysis.block_regions import with_regions
from ..analysis.wellformed import verify
from ..buffer import Buffer, BufferRegion, IterVar
from ..expr import TRUE, BufferLoad, Expr, FloatImm, IntImm, Let, Reduce, Var, const, is_const
from ..function import IRModule, PrimFunc
from ..node import frozendict
from ..schedule import Schedule
from ..schedule.trace import Entry, Trace
from ..stmt import Block, BlockRealize, BufferStore, For, IfThenElse, LetStmt, SeqStmt, Stmt, While, is_nop, seq
from ..visit import buffers_in, free_vars, rewrite, substitute, walk

Program = PrimFunc | IRModule
Candidate = Callable[[], tuple[Program, Trace]]


@dataclass(frozen=True)
class Case:
    """A program and the schedule of it that show a fault: the ``error`` that the check raised, after ``tried`` checks.

    >>> import tir
    >>> from tir.testing import Case
    >>> case = Case(tir.library.elementwise.scale_add(4), tir.Trace([]), AssertionError("B[0] is 1.0, not 4.0"), tried=7)
    >>> print(case)
    # from tir.script import tir as T
    <BLANKLINE>
    @T.prim_func
    def scale_add(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        # with T.block("root"):
        for i in range(4):
            with T.block("out"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3.0 + 1.0
    <BLANKLINE>
    <BLANKLINE>
    AssertionError: B[0] is 1.0, not 4.0
    """

    program: Program
    trace: Trace
    error: BaseException
    tried: int

    def __str__(self) -> str:
        steps = f"\n{self.trace.as_python()}" if len(self.trace) else ""
        return f"{self.program.script()}\n{steps}\n{type(self.error).__name__}: {self.error}"

    __repr__ = __str__


def reduce_case(
    program: Program,
    check: Callable[..., Any],
    trace: Trace | None = None,
    *,
    message: str = "",
    tries: int = 2000,
    seconds: float = 60.0,
) -> Case:
    """The smallest case found that ``check`` refuses as it refuses ``program``.

    ``check(program)`` raises an error for a faulty program. With a ``trace``, ``check(program, sch)`` gets a schedule of
    it to which the trace was applied (what a step raises counts too). A smaller case has to raise the same type of error,
    with ``message`` in its text, and ``check`` has to accept its program without steps, if it does so of the first. Steps are left out and their numbers made smaller; functions, statements, loops,
    conditions, operators and parameters are left out, and extents made smaller, until nothing of it can be done or
    ``tries`` checks or ``seconds`` are over. Every program tried is well-formed.

    Raises ``ValueError`` if ``check`` accepts ``program``.

    >>> import tir
    >>> from tir import testing
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    ...     for i in range(64):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(64, i)
    ...             B[vi] = A[vi] * T.float32(2)
    ...     for i in range(64):
    ...         with T.block("C"):
    ...             vi = T.axis.spatial(64, i)
    ...             C[vi] = B[vi] + T.exp(A[vi])
    ... ''')
    >>> def check(program):  # of a pass, say, that does not know exp
    ...     assert "exp" not in program.script()
    >>> testing.reduce_case(f, check).program.root.body
    C[0] = T.exp(T.float32(1))
    """
    search = _Search(check, trace is not None, message, tries, time.monotonic() + seconds)
    case = search.first(program, trace or Trace([]))
    while True:
        smaller = search.descend(case, _smaller_traces)
        smaller = search.descend(smaller, _smaller_programs)
        if smaller is case:
            return Case(case.program, case.trace, case.error, search.tried)
        case = smaller


class _Search:
    """Runs the check on candidates, and counts."""

    def __init__(self, check: Callable[..., Any], scheduled: bool, message: str, tries: int, end: float):
        self.check, self.scheduled, self.message = check, scheduled, message
        self.tries, self.end, self.tried = tries, end, 0
        self.kind: type[BaseException] = BaseException
        self.right: Program | None = (
            None  # of which the check accepts the schedule without steps, as of all that follow
        )

    def first(self, program: Program, trace: Trace) -> Case:
        error = self._error(program, trace)
        if error is None or self.message not in str(error):
            found = "accepts" if error is None else f"raises another error ({error}) for"
            raise ValueError(f"nothing to reduce: the check {found} this case")
        self.kind = type(error)
        if self.scheduled and self._error(program, Trace([])) is None:
            self.right = program
        return Case(program, trace, error, 0)

    def descend(self, case: Case, smaller: Callable[[Case], Iterator[Candidate]]) -> Case:
        """``case`` made smaller as long as a candidate fails; after a success it goes on at the same place."""
        place = 0
        while True:
            candidates = list(smaller(case))
            for number in range(len(candidates)):
                if self.tried >= self.tries or time.monotonic() > self.end:
                    return case
                at = (place + number) % len(candidates)
                found = self._still(*candidates[at]())
                if found is not None:
                    case, place = found, at
                    break
            else:
                return case

    def _still(self, program: Program, trace: Trace) -> Case | None:
        try:
            verify(program)
        except Exception:  # a candidate that a pass over it cannot follow is no candidate
            return None
        self.tried += 1
        error = self._error(program, trace)
        if error is None or type(error) is not self.kind or self.message not in str(error):
            return None
        if self.right is not None and program is not self.right:
            if self._error(program, Trace([])) is not None:
                return None  # the program is wrong by itself
            self.right = program
        return Case(program, trace, error, 0)

    def _error(self, program: Program, trace: Trace) -> Exception | None:
        try:
            if self.scheduled:
                sch = Schedule(program)
                trace.apply_to_schedule(sch)
                self.check(program, sch)
            else:
                self.check(program)
        except Exception as error:  # whatever it is: the fault, or another
            return error
        return None


# ---------------------------------------------------------------- schedules


def _smaller_traces(case: Case) -> Iterator[Candidate]:
    steps = case.trace.steps
    for count in _halves(len(steps)):
        for start in range(len(steps) - count, -1, -count):
            yield partial(_with_steps, case, [*steps[:start], *steps[start + count :]])
    for number, step in enumerate(steps):
        for args in _smaller_arguments(step.args):
            changed = Entry(step.name, args, step.result)
            yield partial(_with_steps, case, [*steps[:number], changed, *steps[number + 1 :]])


def _with_steps(case: Case, steps: Sequence[Entry]) -> tuple[Program, Trace]:
    return case.program, Trace(steps)


def _halves(count: int) -> Iterator[int]:
    """Lengths of runs to leave out: half of them, a quarter, …, one."""
    if count == 1:
        yield 1
    while count > 1:
        count //= 2
        yield count


def _smaller_arguments(args: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name, value in args.items():
        for less in _smaller_values(value):
            yield {**args, name: less}


def _smaller_values(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        for n, item in enumerate(items):
            for less in _smaller_values(item):
                yield type(value)([*items[:n], less, *items[n + 1 :]])
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from _smaller_numbers(value)


def _smaller_numbers(value: int) -> Iterator[int]:
    """Smaller positive numbers, the smallest first."""
    yield from (n for n in dict.fromkeys((1, 2, 3, value // 2, value - 1)) if 0 < n < value)


# ---------------------------------------------------------------- programs


def _smaller_programs(case: Case) -> Iterator[Candidate]:
    mod = IRModule.of(case.program)
    if len(mod) > 1:
        yield from (partial(_with_function, case, name, None) for name in mod.functions)
    for name, func in mod.functions.items():
        for old, new in _smaller_parts(func.body):
            yield partial(_with_function, case, name, partial(_with_part, func, old, new))
        for value in sorted(_extents(func), reverse=True):
            for less in _smaller_numbers(value):
                yield partial(_with_function, case, name, partial(_with_number, func, value, less))


def _with_function(case: Case, name: str, make: Callable[[], PrimFunc] | None) -> tuple[Program, Trace]:
    """The case with another function ``name``, or without it."""
    if isinstance(case.program, PrimFunc):
        return case.program if make is None else make(), case.trace
    functions = {n: f for n, f in case.program.functions.items() if n != name}
    return IRModule(frozendict(functions if make is None else {**functions, name: make()})), case.trace


def _smaller_parts(root: Stmt) -> Iterator[tuple[Any, Any]]:
    """Nodes, from the outside in, each with a smaller one that may stand in its place."""
    for item in walk(root, enter=lambda n: not isinstance(n, BufferRegion)):
        if isinstance(item, SeqStmt):
            for n in range(len(item.stmts)):
                yield item, seq([*item.stmts[:n], *item.stmts[n + 1 :]])
        elif isinstance(item, For):
            yield item, substitute(item.body, {item.loop_var: item.min})
            if item.kind != "serial" or item.annotations:
                yield item, For(item.loop_var, item.min, item.extent, "serial", item.body)
        elif isinstance(item, IfThenElse):
            yield from ((item, case) for case in (item.then_case, item.else_case) if case is not None)
        elif isinstance(item, LetStmt):
            yield item, substitute(item.body, {item.var: item.value})
        elif isinstance(item, While):
            yield item, item.body
        elif isinstance(item, BlockRealize):
            yield from ((item, smaller) for smaller in _smaller_blocks(item))
        elif isinstance(item, (Expr, BufferStore)):
            yield from ((item, smaller) for smaller in _smaller_values_of(item))


def _smaller_blocks(realize: BlockRealize) -> Iterator[BlockRealize | Stmt]:
    block = realize.block
    if not block.alloc_buffers and not block.match_buffers and block.name != "root":
        values = realize.bindings
        yield seq([substitute(s, values) for s in (block.init, block.body) if s is not None])
    if not is_const(realize.predicate, 1):
        yield realize.replace(predicate=TRUE)
    if block.init is not None:
        yield realize.replace(block=block.replace(init=None))
    if block.annotations:
        yield realize.replace(block=block.replace(annotations=frozendict()))
    for n, iterator in enumerate(block.iter_vars):
        values = realize.iter_values
        rest = block.replace(iter_vars=(*block.iter_vars[:n], *block.iter_vars[n + 1 :]))
        yield BlockRealize(
            (*values[:n], *values[n + 1 :]), realize.predicate, substitute(rest, {iterator.var: values[n]})
        )


def _smaller_values_of(item: Any) -> Iterator[Any]:
    """The expression as one of its operands or a constant; a store of one of these."""
    if isinstance(item, BufferStore):
        yield from (item.replace(value=v) for v in _smaller_values_of(item.value))
    elif not isinstance(item, (Var, IntImm, FloatImm, Let, Reduce)) and (item.dtype.is_float or item.dtype.is_int):
        operands = (
            []
            if isinstance(item, BufferLoad)
            else [c for c in item.children() if isinstance(c, Expr) and c.dtype is item.dtype]
        )
        yield from operands
        if item.dtype.lanes == 1:
            yield const(1, str(item.dtype))


def _with_part(func: PrimFunc, old: Any, new: Any) -> PrimFunc:
    return _tidy(func, rewrite(func.body, lambda n: new if n is old else None))


def _extents(func: PrimFunc) -> set[int]:
    """Numbers above one in shapes, loops and domains."""
    parts: list[Any] = [s for b in (*func.buffer_map.values(), *buffers_in(func.body)) for s in b.shape]
    for item in walk(func.body):
        if isinstance(item, For):
            parts += [item.min, item.extent]
        elif isinstance(item, IterVar) and item.dom is not None:
            parts += [item.dom.min, item.dom.extent]
    return {n.value for p in parts for n in walk(p) if isinstance(n, IntImm) and n.value > 1}


def _with_number(func: PrimFunc, value: int, less: int) -> PrimFunc:
    """``func`` with ``less`` wherever an integer is ``value``, in shapes too."""
    changed: dict[Buffer, Buffer] = {}

    def smaller(item: Any) -> Any:
        return IntImm(less, item.dtype) if isinstance(item, IntImm) and item.value == value else None

    for buffer in dict.fromkeys((*func.buffer_map.values(), *buffers_in(func.body))):
        shape, strides = (tuple(rewrite(s, smaller) for s in part) for part in (buffer.shape, buffer.strides))
        offset = buffer.elem_offset if buffer.elem_offset is None else rewrite(buffer.elem_offset, smaller)
        changed[buffer] = buffer.replace(shape=shape, strides=strides, elem_offset=offset)
    body = substitute(rewrite(func.body, smaller), {}, changed)
    buffers = {p: changed[b] for p, b in func.buffer_map.items()}
    return func.replace(body=body, buffer_map=frozendict(buffers))


def _tidy(func: PrimFunc, body: Stmt) -> PrimFunc:
    """``func`` with another body: regions of its blocks anew, and no buffers or parameters that nothing uses."""

    def again(item: Any) -> Any:
        if isinstance(item, SeqStmt):
            return seq([s for s in item.stmts if not is_nop(s)])
        if not isinstance(item, Block):
            return None
        used = set(buffers_in(item.body)) | set(buffers_in(item.init) if item.init is not None else ())
        block = item.replace(alloc_buffers=tuple(b for b in item.alloc_buffers if b in used))
        if not (block.reads or block.writes):
            return block
        return with_regions(block)

    body = rewrite(body, again)
    buffers = set(buffers_in(body))
    kept = {p: b for p, b in func.buffer_map.items() if b in buffers}
    used = set(free_vars(body)) | {v for b in kept.values() for e in (*b.shape, *b.strides) for v in walk(e)}
    params = tuple(p for p in func.params if p in kept or (p not in func.buffer_map and p in used))
    return func.replace(params=params, body=body, buffer_map=frozendict(kept))
