"""Whether a reduction by selection (arg-max and the like) is associative and commutative: decided by enumeration.

Such a reducer only compares values and selects one, so it depends only on the order of the compared values: three
representatives of each region between constants cover all cases, as three values are combined at a time.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..dtype import DType
from ..expr import (
    COMPARED,
    EQ,
    FALSE,
    FOLDED,
    GE,
    GT,
    LE,
    LT,
    NE,
    TRUE,
    Add,
    And,
    CommReducer,
    Expr,
    FloatImm,
    IntImm,
    Max,
    Min,
    Not,
    Or,
    Sub,
    Var,
    choice_parts,
)
from ..render import short_text
from ..visit import nodes_of, rewrite, walk
from .analyzer import Analyzer
from .comparisons import MIRRORED
from .linear import key

_OPERATORS: dict[Any, Callable[[Any, Any], Any]] = {
    **COMPARED,
    **{kind: FOLDED[kind] for kind in (Add, Sub, Min, Max)},
    And: lambda a, b: a and b,
    Or: lambda a, b: a or b,
}


_MOST = 600_000  # triples of values tried


class _NoSelection(Exception):
    """The reducer does more than compare and select."""


def without_decided(value: Expr, known: Analyzer) -> Expr:
    """``value`` without the selections whose condition is ``known`` to hold, or not to.

    >>> import tir
    >>> i = tir.Var("i")
    >>> known = Analyzer({i: tir.Range.of(0, 8)})
    >>> without_decided(tir.if_then_else(tir.all(i >= 0, i < 8), i, -1), known)
    i
    """

    def chosen(e: Any) -> Expr | None:
        parts = choice_parts(e)
        if parts is None or parts[0].dtype.lanes > 1:
            return None
        condition, yes, no = parts
        return yes if known.can_prove(condition) else no if known.can_prove(Not(condition)) else None

    return rewrite(value, chosen)


@dataclass(frozen=True)
class _Selection:
    """A reducer that compares values and selects among them: ``join`` combines two, each the ``width`` values that are
    compared and those that are only picked; ``starts`` is the identity, ``ranges`` what each compared value may be."""

    functions: list[Callable[[tuple[Any, ...]], Any]]
    compared: list[int]
    picked: list[int]
    starts: tuple[Any, ...]
    ranges: list[list[Any]]

    @staticmethod
    def of(comm: CommReducer) -> _Selection | _NoSelection:
        """What ``comm`` selects; why nothing, of a reducer that does more."""
        try:
            return _Selection._of(comm)
        except _NoSelection as reason:
            return reason

    @staticmethod
    def _of(comm: CommReducer) -> _Selection:
        conditions = [parts[0] for r in comm.result for n in walk(r) if (parts := choice_parts(n))]
        used = {n for c in conditions for n in nodes_of(c) if isinstance(n, Var)}
        numbers = list(range(len(comm.lhs)))
        compared = [k for k in numbers if comm.lhs[k] in used or comm.rhs[k] in used]
        picked = [k for k in numbers if k not in compared and choice_parts(comm.result[k])]
        kept = compared + picked
        functions = [_compiled(comm.result[k], comm, kept) for k in kept]
        constants = [_number(n) for c in conditions for n in walk(c) if isinstance(n, (IntImm, FloatImm))]
        starts = tuple(_number(comm.identity[k]) if k in compared else "init" for k in kept)
        ranges = [list(_samples(comm.lhs[k].dtype, starts[n], constants)) for n, k in enumerate(compared)]
        return _Selection(functions, compared, picked, starts, ranges)

    def with_floats(self, comm: CommReducer, *more: float) -> _Selection:
        """The same where compared floats may be ``more`` values."""
        floats = [k for k in self.compared if comm.lhs[k].dtype.is_float]
        return replace(self, ranges=[[*r, *(more if k in floats else ())] for k, r in zip(self.compared, self.ranges)])

    @functools.cached_property
    def join(self) -> Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]]:
        @functools.cache
        def joined(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
            both = (*a, *b)
            return tuple(f(both) for f in self.functions)

        return joined

    def points(self, name: str) -> list[tuple[Any, ...]]:
        """All values, of which those that are only picked are called after ``name``."""
        return [(*p, *(f"{name}{k}" for k in self.picked)) for p in itertools.product(*self.ranges)]


def associativity_counterexample(comm: CommReducer) -> str | None:
    """Why the result of ``comm`` depends on the grouping of values, or on their order if no two are equal.

    None if it does not, except for NaN and rounding. Which of equal candidates is selected is unspecified.
    """
    found = _Selection.of(comm)
    if isinstance(found, _NoSelection):
        return f"{found}, so it cannot be proved that values may be grouped in any order"
    a, b, c = map(found.points, "abc")
    if len(a) ** 3 > _MOST:
        return "it compares too many values to prove that they may be grouped in any order"
    width, join = len(found.compared), found.join
    for x, y in itertools.product(a, b):
        apart = all(m != n for m, n in zip(x[:width], y[:width]))
        if apart and join(x, y) != join(y, x):
            return f"it matters which comes first, {_shown(x, width)} or {_shown(y, width)}"
    for x, y, z in itertools.product(a, b, c):
        if join(join(x, y), z) != join(x, join(y, z)):
            return f"of {', '.join(_shown(p, width) for p in (x, y, z))} it matters which two are combined first"
    init = found.starts
    for x, y in itertools.product([join(init, p) for p in a], b):
        if join(x, join(init, y)) != join(x, y):
            return f"partial results that start from init lose {_shown(x, width)} or {_shown(y, width)}"
    return None


def is_independent_of_order(comm: CommReducer) -> bool:
    """Whether ``comm``, which is associative but for NaN, selects the same in any order: among equal candidates and NaN too."""
    if any(isinstance(n, (Min, Max)) for r in comm.result for n in nodes_of(r)):
        return False  # of NaN another than Python's
    found = _Selection.of(comm)
    if isinstance(found, _NoSelection) or found.picked:
        return False
    found = found.with_floats(comm, math.nan)
    points, join = found.points(""), found.join
    return (
        len(points) ** 3 <= _MOST
        and all(_same(join(x, y), join(y, x)) for x, y in itertools.product(points, points))
        and all(_same(join(join(x, y), z), join(x, join(y, z))) for x, y, z in itertools.product(points, repeat=3))
    )


_OF_A_LARGER: dict[Any, Expr] = {LT: TRUE, LE: TRUE, NE: TRUE, GT: FALSE, GE: FALSE, EQ: FALSE}  # x op y, where x < y


def knowing_less(e: Expr, x: Expr, y: Expr) -> Expr:
    """``e`` with comparisons of ``x`` and ``y`` decided, where it is known that ``x < y``."""
    small, large = key(x), key(y)

    def visit(item: Any) -> Any:
        kind = type(item)
        if kind not in _OF_A_LARGER:
            return None
        sides = key(item.a), key(item.b)
        if sides == (small, large):
            return _OF_A_LARGER[kind]
        return _OF_A_LARGER[MIRRORED[kind]] if sides == (large, small) else None

    return rewrite(e, visit)


def starts_of_ascending(comm: CommReducer, k: int) -> str | None:
    """How ``comm`` may start where component ``k`` of each new value is larger than that of all before it, so that
    comparisons of this component need not be made: from its "identity", or with the component of the "first" value.

    None if neither gives what ``comm`` does, or if the first value may lose against the identity.
    """
    known = [knowing_less(r, comm.lhs[k], comm.rhs[k]) for r in comm.result]
    found = _Selection.of(comm)
    if isinstance(found, _NoSelection) or k not in found.compared:
        return None
    found = found.with_floats(comm, -math.inf, math.inf, math.nan)
    kept = found.compared + found.picked
    # of the same operators, and constants in place of some comparisons
    decided = replace(found, functions=[_compiled(known[c], comm, kept) for c in kept])
    at = found.compared.index(k)
    first = [(p, found.join(found.starts, p)) for p in found.points("a")]
    if any(made[at] != p[at] for p, made in first):
        return None
    if all(_same(decided.join(found.starts, p), made) for p, made in first):
        return "identity"
    starts = [(*found.starts[:at], p[at], *found.starts[at + 1 :]) for p, _ in first]
    return "first" if all(_same(decided.join(s, p), made) for s, (p, made) in zip(starts, first)) else None


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return all(m == n or (m != m and n != n) for m, n in zip(a, b))


def _shown(point: Sequence[Any], width: int) -> str:
    return str(point[0]) if width == 1 else f"({', '.join(map(str, point[:width]))})"


def _samples(dtype: DType, start: Any, constants: Sequence[Any]) -> Iterator[Any]:
    """Representative values: three below, between and above the constants that values are compared with, and some below
    and above the one that is started from."""
    around = [c + step for c in constants for step in range(-3, 4)]
    for value in dict.fromkeys((*(around or (0, 1, 2)), start - 1, start, start + 1)):
        if dtype.min_value <= value <= dtype.max_value:
            yield value


def _number(e: Any) -> Any:
    if isinstance(e, (IntImm, FloatImm)):
        return e.value
    raise _NoSelection("a value that is compared starts from one that is not constant")


def _compiled(e: Any, comm: CommReducer, kept: Sequence[int]) -> Callable[[tuple[Any, ...]], Any]:
    """``e`` as a function of the components ``kept`` of two values, one after the other."""
    places: dict[Any, int] = {}
    for at, k in enumerate(kept):
        places[comm.lhs[k]] = at
        places[comm.rhs[k]] = at + len(kept)

    def build(e: Any) -> Callable[[Any], Any]:
        if isinstance(e, Var) and e in places:
            return operator.itemgetter(places[e])
        if isinstance(e, (IntImm, FloatImm)):
            value = e.value
            return lambda p: value
        if type(e) in _OPERATORS:
            do, left, right = _OPERATORS[type(e)], build(e.a), build(e.b)
            return lambda p: do(left(p), right(p))
        if isinstance(e, Not):
            inner = build(e.a)
            return lambda p: not inner(p)
        parts = choice_parts(e)
        if parts is None:
            raise _NoSelection(f"`{short_text(e)}` is more than a comparison")
        condition, yes, no = map(build, parts)
        return lambda p: yes(p) if condition(p) else no(p)

    return build(e)
