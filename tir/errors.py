"""The exception family, and how an error about a program is rendered.

An error has the request, the rule it breaks, the witness (instances or elements that prove it), the place (the
program with the part underlined) and what would be legal. Text is rendered when it is first shown, not when raised.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, TypeVar

from .render import to_lines

Legal = str | Sequence[str] | Callable[[], str | Sequence[str]]  # what would be accepted, or a function that finds it


class TirError(Exception):
    """Base of every error this package raises on purpose.

    >>> import tir
    >>> try:
    ...     tir.script.parse("not a program")
    ... except tir.TirError as error:
    ...     print(type(error).__name__)
    ParseError
    """

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the lines of the user's own code that led here, and the message."""
        import linecache
        import traceback
        from pathlib import Path

        ours = tuple(str(Path(__file__).parent.parent / package) + os.sep for package in ("tir", "codegen"))
        lines: list[str] = []
        for frame, number in traceback.walk_tb(self.__traceback__):
            name = frame.f_code.co_filename
            if not name.startswith(ours) and f"{os.sep}IPython{os.sep}" not in name:
                where = "in this cell" if "ipykernel" in name else f"in {name}"
                lines += [f"line {number} {where}", f"    {linecache.getline(name, number).strip()}"]
        return [*lines, f"{type(self).__name__}: {self}"]


class ParseError(TirError):
    """A program text that is not in the dialect; ``diagnostics`` lists every fault found.

    >>> import tir
    >>> try:
    ...     tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     A[0] = C[0]
    ... ''')
    ... except tir.ParseError as error:
    ...     print(len(error.diagnostics), "in line", error.diagnostics[0].span.line)
    1 in line 4
    """

    diagnostics: Sequence[Any] = ()


class WellFormedError(TirError):
    """A program that breaks a rule of the IR.

    >>> import tir
    >>> A, i = tir.decl_buffer((8,), "float32", "A"), tir.Var("i")
    >>> func = tir.PrimFunc((A.data,), tir.BufferStore(A, tir.FloatImm(1.0, "float32"), (i,)), buffer_map={A.data: A})
    >>> try:
    ...     tir.analysis.wellformed.verify(func)
    ... except tir.WellFormedError as error:
    ...     print(str(error).splitlines()[1].strip())
    variable `i` is not defined here
    """


class BuildError(TirError):
    """A program that cannot be lowered or compiled.

    >>> import tir
    >>> tir.build(tir.library.rows.row_sum(4, 8), "llvm -mcpu=none")
    Traceback (most recent call last):
        ...
    tir.errors.BuildError: LLVM knows no processor 'none'; did you mean nocona?
    """


class TensorExpressionError(TirError):
    """A tensor expression that is none: ``place`` is the line of the user's that is at fault, where one is known.

    ``legal`` says what would be accepted. ``request`` is what was asked, where that is the call of an operator.

    >>> from tir import te
    >>> try:
    ...     te.compute((16, 32), lambda i: te.var("x"), name="row")
    ... except te.TensorExpressionError as error:
    ...     error.rule, error.legal
    ('`row` has 2 dimensions, but its function takes 1 (i)', 'one parameter a dimension, or *i for those that are left')
    """

    def __init__(self, rule: str, place: Any = None, legal: str = ""):
        super().__init__(rule)
        self.rule = rule
        self.place = place
        self.legal = legal
        self.request = ""

    def __str__(self) -> str:
        lines = [f"{self.request}: {self.rule}" if self.request else self.rule]
        if self.place is not None:
            import linecache

            text = linecache.getline(self.place.filename, self.place.line).strip()
            lines.append(f"  {self.place.filename}:{self.place.line}: {text}".rstrip(": "))
        if self.legal:
            lines.append(f"legal: {self.legal}")
        return "\n".join(lines)


class ModelError(TirError):
    """A model that cannot be read, or a graph that is none.

    ``faults`` has a row for each operator of a model that cannot be imported: operator, version, count, first node, why.
    ``needs`` are the inputs whose values these take as attributes and would have to be known, if that is all that is wrong.

    >>> import tir
    >>> b = tir.graph.Builder()
    >>> try:
    ...     b.input("x", (2, 3)), b.input("x", (4,))
    ... except tir.ModelError as error:
    ...     print(error)
    there are two values named 'x'
    """

    def __init__(self, rule: str, faults: Sequence[tuple[str, str, int, str, str]] = (), needs: Sequence[str] = ()):
        super().__init__(rule)
        self.rule = rule
        self.faults = tuple(faults)
        self.needs = tuple(needs)

    def __str__(self) -> str:
        if not self.faults:
            return self.rule
        rows = [("operator", "version", "count", "first node", "why"), *((*map(str, row),) for row in self.faults)]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        table = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths)), row[4]]) for row in rows]
        return "\n".join([self.rule, *("  " + line for line in table)])


class RunError(TirError, RuntimeError):
    """A fault while a program runs, or arguments it cannot run with.

    >>> import numpy as np
    >>> import tir
    >>> total = tir.build(tir.library.rows.row_sum(4, 8), "interpreter")
    >>> total(np.zeros((4, 9), "float32"), np.zeros(4, "float32"))
    Traceback (most recent call last):
        ...
    tir.errors.RunError: argument 1 `A` of row_sum: expected shape (4, 8), got (4, 9)
    """


class ScheduleError(TirError):
    """A refused schedule step. The schedule is as it was.

    ``request`` is the call as the user wrote it, ``rule`` one sentence about ``parts``, ``witness`` lines of proof, ``func``
    and ``nodes`` the place (the loops and blocks among the parts, unless others are given), ``legal`` what would be accepted. The first three and the last are strings or lists of them;
    ``legal`` may be a function that finds them, called when the text is first shown.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.row_sum(4, 8))
    >>> try:
    ...     sch.parallel("j")
    ... except tir.ScheduleError as error:
    ...     print(error.request, "|", error.witness[0], "|", error.legal)
    parallel("j") | j=0 and j=1 both write B[0] | reorder and mark a spatial loop (i), or rfactor this one
    """

    def __init__(
        self,
        rule: str,
        *parts: Any,
        request: str = "",
        witness: Sequence[str] = (),
        func: Any = None,
        nodes: Sequence[Any] | None = None,
        legal: Legal = "",
    ):
        super().__init__(rule)
        self._rule = rule
        self._parts = parts
        self.request = request
        self.witness = list(witness)
        self.func = func
        self.nodes = _loops_and_blocks(parts) if nodes is None else list(nodes)
        self._legal = legal

    @property
    def legal(self) -> str:
        """What would be accepted, or that nothing is; empty where that is not known."""
        if callable(self._legal):
            find, self._legal = self._legal, ""
            self._legal = find()
        return self._legal if isinstance(self._legal, str) else ", ".join(self._legal)

    @legal.setter
    def legal(self, legal: Legal) -> None:
        self._legal = legal

    def find_legal(self, find: Callable[[], str]) -> None:
        """Let ``find`` say what is legal, should the error itself have nothing to say."""
        own = self._legal
        self._legal = lambda: (own() if callable(own) else own) or find()

    @property
    def rule(self) -> str:
        return self._rule.format(*(describe(p) for p in self._parts)) if self._parts else self._rule

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as it reads: what is legal is found now, and the rule has its parts."""
        state = {**self.__dict__, "_rule": self.rule, "_parts": (), "_legal": self.legal}
        return type(self), (self.rule,), state

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._head()!r})"

    def _head(self) -> str:
        return f"{self.request}: {self.rule}" if self.request else self.rule

    def __str__(self) -> str:
        lines = [self._head(), *(f"  {line}" for line in self.witness)]
        if self.func is not None and self.nodes:
            lines.append(to_lines(self.func, underline=tuple(self.nodes)))
        if self.legal:
            lines.append(self.legal if self.legal.startswith("legal") else f"legal: {self.legal}")
        return "\n".join(line for line in lines if line)


class Unproved(ScheduleError):
    """A step refused because its rule could be neither proved nor refuted; it may be legal."""


class InternalError(ScheduleError):
    """A step that was not taken because this package failed in it: whether it is legal is not known."""


class DoesNotFit(ValueError):
    """A constant that a type cannot hold. A step that would put it into the program is refused for it.

    >>> import tir
    >>> tir.const(300, "int8")
    Traceback (most recent call last):
        ...
    tir.errors.DoesNotFit: constant 300 does not fit int8 (-128 to 127)
    """


def _loops_and_blocks(parts: Sequence[Any]) -> list[Any]:
    """Those among ``parts`` of a message, or of which these are the places."""
    from .stmt import Block, BlockRealize, For

    found = (getattr(part, "node", part) for part in parts)
    return [n for n in found if isinstance(n, (For, BlockRealize, Block))]


def describe(part: Any) -> str:
    """The name a person knows a thing by: a loop's or block's name, else its text."""
    from .stmt import Block, BlockRealize, For

    if isinstance(part, For):
        return f"`{part.loop_var.name}`"
    if isinstance(part, Block):
        return f"`{part.name}`"
    if isinstance(part, BlockRealize):
        return f"`{part.block.name}`"
    return str(part)


def require(
    condition: Any,
    rule: str,
    *parts: Any,
    witness: Sequence[str] = (),
    func: Any = None,
    nodes: Sequence[Any] | None = None,
    legal: Legal = "",
) -> None:
    """Raise ``ScheduleError`` unless ``condition``; ``{0}``, ``{1}`` … in ``rule`` name ``parts`` (loops, blocks, text, or
    functions that find these)."""
    if not condition:
        found = [part() if isinstance(part, FunctionType) else part for part in parts]
        raise ScheduleError(rule, *found, witness=witness, func=func, nodes=nodes, legal=legal)


R = TypeVar("R")


def require_none(
    found: Sequence[R],
    rule: str,
    *parts: object | Callable[[R], object],
    nodes: Sequence[Any] | None = None,
    legal: Legal = "",
) -> None:
    """Raise ``ScheduleError`` about the first of ``found``, if there is one: ``{0}`` in ``rule``. ``{1}`` … name ``parts``,
    which may be functions of it. The place are ``nodes``; by default those of all loops and blocks in ``found``.

    >>> require_none([], "{0} is odd")
    >>> refusal(lambda: require_none([3, 5], "{0} is odd, but {1} is not", lambda n: n + 1))
    ScheduleError('3 is odd, but 4 is not')
    """
    if found:
        offenders: Sequence[Any] = found
        places = [n.node for n in offenders if hasattr(n, "node")] if nodes is None else nodes
        named = [part(found[0]) if isinstance(part, FunctionType) else part for part in parts]
        raise ScheduleError(rule, found[0], *named, nodes=places, legal=legal)


def attempt(plan: Callable[[], R]) -> R | ScheduleError:
    """What ``plan`` returns, or its refusal. Refusals are raised; here, and nowhere else, they become values, which do not
    keep the frames that they passed, and with these all that the step has made. A fault of this package does.

    >>> attempt(lambda: 3), attempt(lambda: require(False, "loop {0} is {1}", "i", "parallel"))
    (3, ScheduleError('loop i is parallel'))
    """
    try:
        return plan()
    except ScheduleError as error:
        return error if isinstance(error, InternalError) else error.with_traceback(None)


def refusal(plan: Callable[[], Any]) -> ScheduleError | None:
    """Why ``plan`` is refused; None if it is accepted."""
    found = attempt(plan)
    return found if isinstance(found, ScheduleError) else None


def first_legal(plans: Iterable[Callable[[], R]]) -> R:
    """What the first of several plans for one step returns that is accepted. Raises the refusal of the first of all, which
    is the plan that was asked for.

    >>> first_legal([lambda: require(False, "too large"), lambda: "smaller"])
    'smaller'
    """
    first: ScheduleError | None = None
    for plan in plans:
        found = attempt(plan)
        if not isinstance(found, ScheduleError):
            return found
        first = first or found
    assert first is not None, "no plan"
    raise first


class on_refusal:
    """In this context, a refusal passes through ``note``, which completes it, or raises another error in its place."""

    __slots__ = ("note",)

    def __init__(self, note: Callable[[ScheduleError], None]):
        self.note = note

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, ScheduleError):
            self.note(error)
