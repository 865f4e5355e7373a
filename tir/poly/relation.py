"""Sets of integer points and relations between them, made of linear constraints over named integers: the only file that
imports islpy; it limits isl's time.

An ``IntegerSet`` holds points of one rank, a ``Relation`` pairs of points; both may have parameters. Every operation
is exact. One that takes too long raises :class:`TooLong`, which like :class:`NotAffine` is an :class:`Undecided`: no
answer. :func:`decide` answers a question within one common limit of time for its operations, with the reason as a value
where there is no answer; :class:`Together` limits several questions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass
from functools import cache
from time import thread_time
from typing import Any, TypeVar

MOST_SECONDS = 2.0  # of processor time, for one question
LEAST_SECONDS = 0.1  # after others that ran out of it
FIRST_STEPS = 20_000  # of isl, in the first attempt at one operation
MOST_MORE = 8.0  # times the steps, in the next one
# an attempt of k times the steps takes up to k ** COST times as long: systems of constraints and numbers grow
COST = 2.5

R = TypeVar("R")
Points = TypeVar("Points", bound="_Points")


class Undecided(Exception):
    """Exact sets give no answer: the question is not quasi-affine, or takes too long."""


class TooLong(Undecided):
    """The answer takes too long."""

    def __init__(self) -> None:
        super().__init__("exact sets do not decide it in bounded time")


class NotAffine(Undecided):
    """``expr`` is not quasi-affine: exact sets cannot represent it."""

    def __init__(self, expr: Any, reason: str = "it is not affine"):
        super().__init__(reason)
        self.expr = expr
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.expr}: {self.reason}" if isinstance(self.expr, str) else f"`{self.expr!r}`: {self.reason}"


class Together(ContextDecorator):
    """In this context, which may be entered again, the questions that run out of time have that of one together. Each has
    ``LEAST_SECONDS``, also after these."""

    def __init__(self) -> None:
        self.left = MOST_SECONDS
        self._outer: list[Together | None] = []

    def __enter__(self) -> None:
        self._outer.append(_current.together)
        _current.together = _current.together or self

    def __exit__(self, *_: object) -> None:
        _current.together = self._outer.pop()


class _Limit:
    """What is left of the processor time of one question. It is counted from the first operation on."""

    def __init__(self) -> None:
        self.end: float | None = None

    def left(self) -> float:
        now = thread_time()
        if self.end is None:
            together = _current.together
            self.end = now + (MOST_SECONDS if together is None else max(together.left, LEAST_SECONDS))
        return self.end - now

    def ran_out(self) -> TooLong:
        if _current.together is not None:
            _current.together.left = min(_current.together.left, self.left())
        return TooLong()


class _Current(threading.local):
    """What this thread asks: the limit of the question that is being answered, and the questions of a step."""

    limit: _Limit | None = None
    together: Together | None = None


_current = _Current()


def decide(question: Callable[..., R], *args: Any) -> R | Undecided:
    """The answer of ``question(*args)``, or the reason why exact sets give none: it is not quasi-affine, or its operations
    together take more than ``MOST_SECONDS`` of the processor. A question that another one asks shares its limit.

    >>> decide(lambda: IntegerSet.point([1, 2]).sample())
    [1, 2]
    """
    outer = _current.limit
    _current.limit = outer or _Limit()
    try:
        return question(*args)
    except Undecided as reason:
        return reason.with_traceback(None)  # the frames would be kept, and hold the reason
    finally:
        _current.limit = outer


def _run(operation: Callable[..., R], *args: Any) -> R:
    """Run an operation of isl within the budget. Raises ``TooLong``.

    isl can only be stopped after a number of steps, of which each may take the longer the more there were: there is an
    attempt of few steps, and others of more while they fit into the time that is left.
    """
    limit = _current.limit or _Limit()
    context, steps = _isl().DEFAULT_CONTEXT, FIRST_STEPS
    while True:
        left = limit.left()
        if left < 0.0:
            raise limit.ran_out()
        context.reset_operations()
        context.set_max_operations(steps)
        try:
            return operation(*args)
        except _isl().Error as error:
            if "maximal number of operations" not in str(error):
                raise
        finally:
            context.set_max_operations(0)
        after = limit.left()
        more = (max(after, 0.0) / (left - after)) ** (1 / COST)
        if more < 2.0:
            raise limit.ran_out()
        steps = int(steps * min(more, MOST_MORE))


@cache
def _isl() -> Any:
    import islpy

    return islpy


# ---------------------------------------------------------------- constraints


@dataclass(frozen=True)
class Row:
    """``sum(terms) + constant >= 0``, or ``= 0`` where ``equality``."""

    terms: Mapping[str, int]
    constant: int
    equality: bool = False


Alternatives = list[list[Row]]  # one of several conjunctions holds
Constraints = Sequence["Row | Alternatives"]  # all of them hold
Sum = tuple[dict[str, int], int]  # multiples of names, and a number


def plus(a: Sum, b: Sum, times: int = 1) -> Sum:
    """a + times * b."""
    terms = dict(a[0])
    for name, c in b[0].items():
        total = terms.get(name, 0) + times * c
        if total:
            terms[name] = total
        else:
            terms.pop(name, None)
    return terms, a[1] + times * b[1]


def both(a: Alternatives, b: Alternatives) -> Alternatives:
    """One of ``a`` and one of ``b``."""
    return [[*x, *y] for x in a for y in b]


def without_given(parts: Constraints, names: Sequence[str]) -> tuple[list[Row | Alternatives], list[str]]:
    """The parts after eliminating those of ``names`` that an equality determines, and the remaining names. Those in
    alternatives stay."""
    found = [part for part in parts if isinstance(part, Row)]
    choices = [part for part in parts if not isinstance(part, Row)]
    chosen = {name for choice in choices for case in choice for row in case for name in row.terms}
    left: list[str] = []
    for name in names:
        given = next((r for r in found if r.equality and abs(r.terms.get(name, 0)) == 1), None)
        if given is None or name in chosen:
            if name in chosen or any(name in r.terms for r in found):
                left.append(name)
            continue
        found = [_without(name, row, given) for row in found if row is not given]
    return [*found, *choices], left


def _without(name: str, row: Row, given: Row) -> Row:
    """``row`` with ``name`` replaced by what the equality ``given`` says of it."""
    c = row.terms.get(name)
    if c is None:
        return row
    times = -c * given.terms[name]
    return Row(*plus((dict(row.terms), row.constant), (dict(given.terms), given.constant), times), row.equality)


# ---------------------------------------------------------------- sets and relations


class _Points:
    """What sets of points and of pairs of points have in common."""

    __slots__ = ("_isl",)

    def __init__(self, isl_object: Any):
        self._isl = isl_object

    def __repr__(self) -> str:
        return str(self._isl)

    def is_empty(self) -> bool:
        return _run(self._isl.is_empty)

    def is_equal(self: Points, other: Points) -> bool:
        return _run(self._isl.is_equal, other._isl)

    def intersect(self: Points, other: Points) -> Points:
        return type(self)(_run(self._isl.intersect, other._isl))

    def subtract(self: Points, other: Points) -> Points:
        return type(self)(_run(self._isl.subtract, other._isl))

    def union(self: Points, other: Points) -> Points:
        return type(self)(_run(self._isl.union, other._isl))

    def where(self: Points, parameters: IntegerSet) -> Points:
        """The same for these values of the parameters."""
        return type(self)(_run(self._isl.intersect_params, parameters._isl))


class IntegerSet(_Points):
    """A set of integer points ``(x0, x1, …)``."""

    __slots__ = ()

    @staticmethod
    def from_rows(
        parts: Constraints, params: Sequence[str], dims: Sequence[str], hidden: Collection[str]
    ) -> IntegerSet:
        """The set of ``dims`` for which all ``parts`` hold, with ``hidden`` names existentially quantified."""
        return Relation.from_rows(parts, params, [], dims, [*dims, *hidden]).range()

    @staticmethod
    def point(coordinates: Sequence[int]) -> IntegerSet:
        names = [f"a{n}" for n in range(len(coordinates))]
        return IntegerSet.from_rows([Row({a: 1}, -x, True) for a, x in zip(names, coordinates)], [], names, [])

    def is_subset(self, other: IntegerSet) -> bool:
        return _run(self._isl.is_subset, other._isl)

    def image(self, relation: Relation) -> IntegerSet:
        """The image of the set under ``relation``."""
        return IntegerSet(_run(self._isl.apply, relation._isl))

    def parameters(self) -> IntegerSet:
        """The values of the parameters for which the set is not empty."""
        return IntegerSet(_run(self._isl.params))

    def sample(self) -> list[int] | None:
        """Some point, near the origin if possible; None for the empty set."""
        return _run(_sample, self._isl)


class Relation(_Points):
    """A set of pairs of integer points, written ``source -> target``."""

    __slots__ = ()

    # ------------------------------------------------------------ constructors

    @staticmethod
    def from_rows(
        parts: Constraints,
        params: Sequence[str],
        dims: Sequence[str],
        out: Sequence[str | int],
        hidden: Collection[str],
    ) -> Relation:
        """From ``dims`` to ``out`` (names or numbers) where ``parts`` hold, with ``hidden`` names existentially
        quantified."""
        return Relation(_run(_relation, parts, params, dims, out, hidden))

    @staticmethod
    def identity(rank: int) -> Relation:
        return Relation.same_prefix(rank, rank)

    @staticmethod
    def same_prefix(count: int, rank: int) -> Relation:
        """Pairs of points of ``rank`` that agree in their first ``count`` coordinates."""
        return Relation.from_rows(*_pair_rows(rank, [Row({f"a{n}": 1, f"b{n}": -1}, 0, True) for n in range(count)]))

    @staticmethod
    def lex_before(rank: int) -> Relation:
        """Pairs of points of ``rank``, the first lexicographically before the second."""
        points = IntegerSet.from_rows([], [], [f"a{n}" for n in range(rank)], [])
        return Relation(_run(_isl().Map.lex_lt, points._isl.get_space()))

    @staticmethod
    def shifted_by_multiples(rank: int, axis: int, modulus: int) -> Relation:
        """Pairs of points that differ only in coordinate ``axis``, where they are congruent modulo ``modulus``."""
        rows = [Row({f"a{n}": 1, f"b{n}": -1}, 0, True) for n in range(rank) if n != axis]
        rows.append(Row({f"a{axis}": 1, f"b{axis}": -1, "q": -modulus}, 0, True))
        _, params, a, b, hidden = _pair_rows(rank, [])
        made = Relation.from_rows(rows, params, a, b, [*hidden, "q"])
        return made.subtract(Relation.identity(rank))

    # ------------------------------------------------------------ queries

    @property
    def source_rank(self) -> int:
        return self._isl.dim(_isl().dim_type.in_)

    @property
    def target_rank(self) -> int:
        return self._isl.dim(_isl().dim_type.out)

    def is_single_valued(self) -> bool:
        return _run(self._isl.is_single_valued)

    def sample(self) -> tuple[list[int], list[int]] | None:
        """Some pair, near the origin if possible; None for the empty relation."""
        point = _run(lambda m: _sample(m.wrap().flatten()), self._isl)
        return None if point is None else (point[: self.source_rank], point[self.source_rank :])

    # ------------------------------------------------------------ operations

    def domain(self) -> IntegerSet:
        return IntegerSet(_run(self._isl.domain))

    def range(self) -> IntegerSet:
        return IntegerSet(_run(self._isl.range))

    def reverse(self) -> Relation:
        return Relation(_run(self._isl.reverse))

    def then(self, other: Relation) -> Relation:
        """The composition: ``a -> c`` where ``a -> b`` here and ``b -> c`` in ``other``."""
        return Relation(_run(self._isl.apply_range, other._isl))

    def domain_in(self, sources: IntegerSet) -> Relation:
        """The relation restricted to ``sources``."""
        return Relation(_run(self._isl.intersect_domain, sources._isl))

    def range_in(self, targets: IntegerSet) -> Relation:
        """The relation restricted to targets in ``targets``."""
        return Relation(_run(self._isl.intersect_range, targets._isl))

    def domain_not_in(self, sources: IntegerSet) -> Relation:
        return Relation(_run(self._isl.subtract_domain, sources._isl))

    def different(self) -> Relation:
        """The pairs of two different points of one space."""
        return Relation(_run(lambda m: m.subtract(_isl().Map.identity(m.get_space())), self._isl))

    def prefix(self, count: int) -> Relation:
        """The relation to the first ``count`` coordinates of the target."""
        out = _isl().dim_type.out
        return Relation(_run(self._isl.project_out, out, count, self.target_rank - count))

    def increasing(self, axis: int = 0) -> Relation:
        """The pairs with a smaller coordinate ``axis`` in the source than in the target."""
        return Relation(_run(_increasing, self._isl, axis))

    def equating(self, pairs: Sequence[tuple[int, int]]) -> Relation:
        """The pairs with, for each of the positions ``(n, m)``, coordinate n of the source equal to m of the target."""
        kinds = _isl().dim_type
        made = self._isl
        for n, m in pairs:
            made = _run(made.equate, kinds.in_, n, kinds.out, m)
        return Relation(made)

    def at(self, source: Sequence[int]) -> IntegerSet:
        """The targets of a point."""
        return Relation(_run(_fixed, self._isl, source)).range()

    def pairs_to_source(self) -> Relation:
        """``(a -> b) -> a``, of the pairs as points."""
        return Relation(_run(self._isl.domain_map))

    def pairs_to_target(self) -> Relation:
        """``(a -> b) -> b``, of the pairs as points."""
        return Relation(_run(self._isl.range_map))

    # ------------------------------------------------------------ lexicographic order of targets

    def before(self, other: Relation) -> Relation:
        """Pairs of sources of the two relations such that the first's target is lexicographically before the
        other's."""
        return Relation(_run(self._isl.lex_lt_map, other._isl))

    def after(self, other: Relation) -> Relation:
        return Relation(_run(self._isl.lex_gt_map, other._isl))

    def not_before(self, other: Relation) -> Relation:
        return Relation(_run(self._isl.lex_ge_map, other._isl))


def everything(source: Relation, target: Relation) -> Relation:
    """All pairs of points of the spaces in which the sources of two relations lie."""
    spaces = (r._isl.get_space().domain().drop_all_params() for r in (source, target))
    space = _isl().Space.map_from_domain_and_range(*spaces)
    return Relation(_isl().Map.universe(space))


# ---------------------------------------------------------------- isl itself


def _pair_rows(rank: int, rows: list[Row]) -> tuple[list[Row], list[str], list[str], list[str], list[str]]:
    """Arguments of ``Relation.from_rows`` for ``(a0, …) -> (b0, …)``."""
    a, b = ([f"{side}{n}" for n in range(rank)] for side in "ab")
    return rows, [], a, b, b


def _increasing(relation: Any, axis: int) -> Any:
    isl = _isl()
    row = isl.Constraint.alloc_inequality(isl.LocalSpace.from_space(relation.get_space()))
    row = row.set_coefficient_val(isl.dim_type.in_, axis, -1)
    row = row.set_coefficient_val(isl.dim_type.out, axis, 1).set_constant_val(-1)
    return relation.add_constraint(row)


def _fixed(relation: Any, source: Sequence[int]) -> Any:
    for axis, value in enumerate(source):
        relation = relation.fix_val(_isl().dim_type.in_, axis, _number(value))
    return relation


def _sample(points: Any) -> list[int] | None:
    kinds = _isl().dim_type
    if points.is_empty():
        return None
    for kind in (kinds.param, kinds.set):
        for axis in range(points.dim(kind)):
            points = _pin_small(points, kind, axis)
    point = points.sample_point()
    return [point.get_coordinate_val(kinds.set, n).to_python() for n in range(points.dim(kinds.set))]


def _pin_small(points: Any, kind: Any, at: int) -> Any:
    """``points`` with one coordinate fixed to a small value, if the set has such a point."""
    for value in (0, 1, 2, 3, 4):
        fixed = points.fix_val(kind, at, value)
        if not fixed.is_empty():
            return fixed
    return points


def _relation(
    parts: Constraints, params: Sequence[str], dims: Sequence[str], out: Sequence[str | int], hidden: Collection[str]
) -> Any:
    isl = _isl()
    kinds = isl.dim_type
    place: dict[str, tuple[Any, int]] = {name: (kinds.param, n) for n, name in enumerate(params)}
    place.update((name, (kinds.in_, n)) for n, name in enumerate(dims))
    left = [name for name in dict.fromkeys(hidden) if name not in place]
    results: list[Row] = []
    for n, result in enumerate(out):
        if isinstance(result, str) and result in left:
            left.remove(result)
            place[result] = (kinds.out, n)
            continue
        name = f" {n}"  # no variable has a blank in its name
        place[name] = (kinds.out, n)
        terms = {name: 1, result: -1} if isinstance(result, str) else {name: 1}
        results.append(Row(terms, 0 if isinstance(result, str) else -result, True))
    made, left = without_given([*parts, *results], left)
    place.update((name, (kinds.out, len(out) + n)) for n, name in enumerate(left))
    space = isl.Space.alloc(isl.DEFAULT_CONTEXT, len(params), len(dims), len(out) + len(left))
    for n, name in enumerate(params):
        space = space.set_dim_name(kinds.param, n, name)
    return _constrained(space, made, place).project_out(kinds.out, len(out), len(left))


def _constrained(space: Any, parts: Constraints, place: Mapping[str, tuple[Any, int]]) -> Any:
    """The map of ``parts``."""
    made = _filled(space, [part for part in parts if isinstance(part, Row)], place).to_map()
    for cases in parts:
        if not isinstance(cases, Row):
            either = _isl().BasicMap.empty(space)
            for case in cases:
                either = either.union(_filled(space, case, place))
            made = made.intersect(either)
    return made


def _filled(space: Any, rows: Sequence[Row], place: Mapping[str, tuple[Any, int]]) -> Any:
    isl = _isl()
    made = isl.BasicMap.universe(space)
    local = isl.LocalSpace.from_space(space)
    for row in rows:
        start = isl.Constraint.alloc_equality if row.equality else isl.Constraint.alloc_inequality
        constraint = start(local)
        for name, c in row.terms.items():
            constraint = constraint.set_coefficient_val(*place[name], _number(c))
        made = made.add_constraint(constraint.set_constant_val(_number(row.constant)) if row.constant else constraint)
    return made


def _number(value: int) -> Any:
    """A number as isl takes it: islpy converts those of 64 bits, larger ones are text."""
    return value if -(2**63) <= value < 2**63 else _isl().Val(str(value))
