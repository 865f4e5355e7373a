"""Index expressions and conditions as exact integer sets.

What is linear becomes a row of coefficients; what has cases (a minimum, a choice, a disjunction) becomes alternatives of
rows. Variables get names, distinguished by identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any

from ..arith import Analyzer
from ..arith.bounds import wraps as may_wrap
from ..arith.comparisons import OPPOSITE
from ..arith.linear import is_index, linear
from ..buffer import Range
from ..equal import structural_equal
from ..expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BufferLoad,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
    const,
    is_const,
)
from ..op import is_shift
from ..visit import free_vars, rewrite, walk
from .relation import Alternatives, IntegerSet, NotAffine, Relation, Row, Sum, both, plus

MOST_AMOUNTS = 16  # of a shift, by which an expression is told apart
# what to add of x & y to x + y
_BITWISE = {"bitwise_and": 0, "bitwise_or": -1, "bitwise_xor": -2}


class Names:
    """isl names of variables: a unique one for each."""

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}
        self.count = 0
        self.outer: Callable[[], Mapping[Var, Range]] = (
            dict  # the ranges of variables that are defined outside of what is asked
        )

    def of(self, var: Var) -> str:
        name = self.names.get(var)
        if name is None:
            name = self.names[var] = self.fresh(var.name)
        return name

    def fresh(self, hint: str = "t") -> str:
        self.count += 1
        plain = hint if hint.isidentifier() and hint.isascii() else re.sub(r"[^A-Za-z0-9_]", "_", hint)
        return f"{plain or 'v'}_{self.count}x"


def _all_or_nothing(add: Callable[..., None]) -> Callable[..., None]:
    """Makes a method of a formula leave it as it was where it raises ``NotAffine``."""

    @wraps(add)
    def whole(self: Formula, *args: Any) -> None:
        counts = len(self.parts), len(self.helpers), len(self.used), len(self.values)
        try:
            add(self, *args)
        except NotAffine:
            del self.parts[counts[0] :], self.helpers[counts[1] :]
            for made, count in ((self.used, counts[2]), (self.values, counts[3])):
                for name in list(made)[count:]:
                    del made[name]
            raise

    return whole


class Formula:
    """A conjunction under construction: constraints, helper variables, and the variables that it uses.

    A method that raises ``NotAffine`` leaves the formula as it was.
    """

    def __init__(self, names: Names):
        self.names = names
        self.parts: list[Row | Alternatives] = []
        self.helpers: list[str] = []
        self.used: dict[str, None] = {}
        self.known: dict[str, tuple[int, int]] = {}  # the least and the greatest value
        self.values: dict[Any, str] = {}  # the helper of each quotient and of each choice

    @staticmethod
    def takes(add: Callable[..., Any], *args: Any) -> bool:
        """Whether the method ``add`` of a formula takes these arguments; what is not affine is left out."""
        try:
            add(*args)
        except NotAffine:
            return False
        return True

    @_all_or_nothing
    def require(self, condition: Expr) -> None:
        """Add a condition."""
        self._add(self.condition(condition))

    def within(self, var: Var, low: Expr, extent: Expr) -> None:
        if isinstance(low, IntImm) and isinstance(extent, IntImm):
            self.know(var, low.value, low.value + extent.value - 1)
        self.between(self.var(var), low, extent)

    def know(self, var: Var, least: int, most: int) -> None:
        """Assume that ``var`` is between two numbers: bitwise operations can only be linearised with bounds, and those of
        a quotient are added, since isl finds which digit of which name it is by them."""
        self.known[self.names.of(var)] = (least, most)

    @_all_or_nothing
    def between(self, name: str, low: Expr, extent: Expr) -> None:
        """``name`` is one of the ``extent`` integers from ``low`` on."""
        while isinstance(extent, Max) and is_const(extent.b, 0):
            extent = extent.a  # that no integer is in a range of less than none goes without saying
        first, counts = self.sum(low), [self.sum(count) for count in _parts_of(extent, Min)]
        self.parts.append(Row(*plus(({name: 1}, 0), first, -1)))
        self.parts += [Row(*plus(plus(first, count), ({name: 1}, 1), -1)) for count in counts]

    @_all_or_nothing
    def equal(self, name: str, value: Expr) -> None:
        self.parts.append(_equal(name, self.sum(value)))

    @_all_or_nothing
    def lane_of(self, name: str, base: Expr, step: int, lanes: int) -> None:
        """``name`` is ``base`` + ``step`` times one of the numbers below ``lanes``."""
        lane = self.helper()
        self.parts += [Row({lane: 1}, 0), Row({lane: -1}, lanes - 1)]
        self.parts.append(_equal(name, plus(self.sum(base), ({lane: 1}, 0), step)))

    def named(self, value: Expr) -> str:
        """A name of the value."""
        name = self.var(value) if isinstance(value, Var) else self.helper()
        if not isinstance(value, Var):
            self.equal(name, value)
        return name

    def var(self, var: Var) -> str:
        name = self.names.of(var)
        self.used[name] = None
        return name

    def helper(self) -> str:
        name = self.names.fresh()
        self.helpers.append(name)
        return name

    # ------------------------------------------------------------ values

    def sum(self, e: Expr) -> Sum:
        """``e`` as multiples of names, and a number. Raises ``NotAffine``, with helpers left behind."""
        if isinstance(e, (IntImm, Var)):
            return self._atom(e)
        if not is_index(e.dtype) and may_wrap(self._analyzer(e), e):
            raise NotAffine(e, "it may wrap around")
        form = linear(e)
        total: Sum = {}, form.const
        for factors, coefficient in form.items():
            if len(factors) != 1:
                product = factors[0]
                for factor in factors[1:]:
                    product = Mul(product, factor)
                raise NotAffine(product, "it is a product of two variables")
            total = plus(total, self._atom(factors[0]), coefficient)
        return total

    def _atom(self, e: Expr) -> Sum:
        if isinstance(e, IntImm):
            return {}, e.value
        if isinstance(e, Var):
            if not (e.dtype.is_int or e.dtype.is_bool):
                raise NotAffine(e, "it is not an integer")
            return {self.var(e): 1}, 0
        if isinstance(e, (FloorDiv, FloorMod, Div, Mod)):
            return self._division(e)
        if isinstance(e, (Min, Max)):
            test = LE(e.a, e.b) if isinstance(e, Min) else GE(e.a, e.b)
            return self._choice(test, e.a, e.b)
        if isinstance(e, Select):
            return self._choice(e.condition, e.true_value, e.false_value)
        if isinstance(e, Call) and e.op == "if_then_else":
            return self._choice(*e.args)
        if isinstance(e, Call) and e.op == "likely":
            return self.sum(e.args[0])
        if isinstance(e, Call) and e.op in _BITWISE and e.dtype.is_int:
            found = self._bits(e)
            if found is not None:
                return found
        if isinstance(e, Call) and e.op == "bitwise_not" and e.dtype.is_int:
            return plus(({}, int(e.dtype.min_value + e.dtype.max_value)), self.sum(e.args[0]), -1)
        if isinstance(e, Call) and e.op in ("shift_left", "shift_right") and e.dtype.is_int:
            found = self._shift(e)
            if found is not None:
                return found
        if isinstance(e, Cast) and e.dtype.is_int and e.value.dtype.is_bool:
            return self._choice(e.value, IntImm(1), IntImm(0))
        if isinstance(e, Cast) and e.dtype.is_int and e.value.dtype.is_int:
            if not self._keeps_value(e):
                raise NotAffine(e, "it may wrap around")
            return self.sum(e.value)
        return self._by_amount(e)

    def _by_amount(self, e: Expr) -> Sum:
        """``e`` for each of the few amounts of a shift in it; of an amount by which nothing shifts, any number."""
        shift = next((n for n in walk(e) if is_shift(n) and not isinstance(n.args[1], IntImm)), None)
        amount = None if shift is None else shift.args[1]
        low, high = (None, None) if amount is None else self._bounds(amount)
        if shift is None or amount is None or low is None or high is None or not e.dtype.is_int:
            raise _not_affine(e)
        low, high = max(low, 0), min(high, shift.dtype.bits - 1)
        if high - low >= MOST_AMOUNTS or any(isinstance(n, BufferLoad) for n in walk(e)):
            raise _not_affine(e)
        total, name, simplify = self.sum(amount), self.helper(), Analyzer().simplify
        cases: Alternatives = [[Row(*plus(({}, low - 1), total, -1))], [Row(*plus(total, ({}, -high - 1)))]]
        for count in range(low, high + 1):
            known = const(count, amount.dtype)
            value = simplify(rewrite(e, lambda n: known if structural_equal(n, amount) else None))
            cases.append([Row(*plus(total, ({}, -count)), True), _equal(name, self.sum(value))])
        self._add(cases)
        return {name: 1}, 0

    def _keeps_value(self, e: Cast) -> bool:
        """Whether a conversion of integers gives the same number: indices fit into either type of indices."""
        source, target = e.value.dtype, e.dtype
        if is_index(source) and is_index(target):
            return True
        low, high = self._bounds(e.value)
        least, most = source.min_value if low is None else low, source.max_value if high is None else high
        return target.min_value <= least and most <= target.max_value

    def _division(self, e: Any) -> Sum:
        if not isinstance(e.b, IntImm) or e.b.value == 0:
            raise NotAffine(e, "it divides by something that is not a constant")
        total, by = self.sum(e.a), e.b.value
        if by == -1 and not is_index(e.dtype):
            raise NotAffine(e, "it may wrap around")
        if isinstance(e, (FloorDiv, FloorMod)):
            quotient = self._quotient(total if by > 0 else plus(({}, 0), total, -1), abs(by))
        else:
            quotient = plus(({}, 0), self._toward_zero(total, abs(by)), 1 if by > 0 else -1)
        return quotient if isinstance(e, (FloorDiv, Div)) else plus(total, quotient, -by)

    def _toward_zero(self, total: Sum, by: int) -> Sum:
        negative = plus(({}, -1), total, -1)  # at least 0 where the total is negative
        ceiling = plus(({}, 0), self._quotient(plus(({}, 0), total, -1), by), -1)
        return self._either([[Row(*total)]], self._quotient(total, by), [[Row(*negative)]], ceiling)

    def _quotient(self, total: Sum, by: int) -> Sum:
        """``total // by``."""
        terms, constant = total
        whole = {name: c // by for name, c in terms.items() if c % by == 0}
        rest = {name: c for name, c in terms.items() if c % by}
        if not rest:
            return whole, constant // by
        key = (frozenset(rest.items()), constant % by, by)
        name = self.values.get(key)
        if name is None:
            name = self.values[key] = self.helper()
            left = plus((rest, constant % by), ({name: 1}, 0), -by)
            self.parts += [Row(*left), Row(*plus(({}, by - 1), left, -1))]
            if all(other in self.known for other in rest):
                ends = [[c * end for end in self.known[other]] for other, c in rest.items()]
                low, high = ((sum(map(end, ends)) + constant % by) // by for end in (min, max))
                self.known[name] = (low, high)
                self.parts += [Row({name: 1}, -low), Row({name: -1}, high)]
        return plus((whole, constant // by), ({name: 1}, 0))

    def _choice(self, test: Expr, yes: Expr, no: Expr) -> Sum:
        return self._either(self.condition(test), self.sum(yes), self.condition(_opposite(test)), self.sum(no))

    def _either(self, test: Alternatives, yes: Sum, otherwise: Alternatives, no: Sum) -> Sum:
        """A helper that is ``yes`` where ``test`` holds, and ``no`` where ``otherwise`` does."""
        key = str((test, yes, no))
        name = self.values.get(key)
        if name is None:
            name = self.values[key] = self.helper()
            cases = (both(test, [[_equal(name, yes)]]), both(otherwise, [[_equal(name, no)]]))
            self._add([*cases[0], *cases[1]])
        return {name: 1}, 0

    def _bits(self, e: Call) -> Sum | None:
        """x & y, x | y, x ^ y if one of the two is a constant; the latter two also where x and y have no bit in common."""
        x, y = e.args if isinstance(e.args[1], IntImm) else e.args[::-1]
        if not isinstance(y, IntImm):
            apart = e.op != "bitwise_and" and not self._bits_of(x) & self._bits_of(y)
            return plus(self.sum(x), self.sum(y)) if apart else None
        total = self.sum(x)
        common = self._masked(total, y.value)
        return common if e.op == "bitwise_and" else plus(plus(total, self.sum(y)), common, _BITWISE[e.op])

    def _bits_of(self, e: Expr) -> int:
        """A number that has every bit that ``e`` may have: -1 if it may have any."""
        found = self._bits_made(e)
        low, high = self._bounds(e) if found < 0 else (None, None)
        return found if low is None or high is None or low < 0 else found & (1 << high.bit_length()) - 1

    def _bits_made(self, e: Any) -> int:
        if isinstance(e, IntImm):
            return e.value
        called = isinstance(e, Call) and len(e.args) == 2
        if not called and not isinstance(e, (FloorDiv, FloorMod, Mul)):
            return -1
        (x, y), op = (e.args, e.op) if called else ((e.a, e.b), type(e))
        if op == "bitwise_and":
            return self._bits_of(x) & self._bits_of(y)
        if op in _BITWISE:
            return self._bits_of(x) | self._bits_of(y)
        if not isinstance(y, IntImm) or y.value < 0:
            return -1
        count = y.value if called else y.value.bit_length() - 1
        if op == "shift_left" or (op is Mul and y.value == 1 << count):
            return self._bits_of(x) << count
        if op == "shift_right" or (op is FloorDiv and y.value == 1 << count):
            return self._bits_of(x) >> count
        return self._bits_of(x) & y.value - 1 if op is FloorMod and y.value == 1 << count else -1

    def _shift(self, e: Call) -> Sum | None:
        """x << y and x >> y by a constant; the former if it is known to stay within its type."""
        x, y = e.args
        if not isinstance(y, IntImm) or y.value < 0:
            return None
        if e.op == "shift_right":
            return self._quotient(self.sum(x), 2**y.value)
        low, high = self._bounds(x)
        if (
            low is None
            or high is None
            or not e.dtype.min_value <= low << y.value <= high << y.value <= e.dtype.max_value
        ):
            return None
        return plus(({}, 0), self.sum(x), 2**y.value)

    def _masked(self, total: Sum, mask: int) -> Sum:
        """``total & mask``: each run of bits of the mask is a digit. Of a negative mask, which has all high bits: what the others cut off."""
        if mask < 0:
            return plus(total, self._masked(total, ~mask), -1)
        made: Sum = {}, 0
        for run in re.finditer("1+", f"{mask:b}"[::-1]):
            low, high = run.span()
            digit = plus(self._quotient(total, 2**low), self._quotient(total, 2**high), -(2 ** (high - low)))
            made = plus(made, digit, 2**low)
        return made

    def _bounds(self, e: Expr) -> tuple[int | None, int | None]:
        return self._analyzer(e).bound(e)

    def _analyzer(self, e: Expr) -> Analyzer:
        """What is known of the variables of ``e``."""
        ends = {v: self.known[self.names.of(v)] for v in free_vars(e) if self.names.of(v) in self.known}
        known = {v: Range(const(low, "int64"), const(high - low + 1, "int64")) for v, (low, high) in ends.items()}
        return Analyzer(known)

    # ------------------------------------------------------------ conditions

    def condition(self, e: Expr) -> Alternatives:
        """A boolean expression as alternatives. Raises ``NotAffine``, with helpers left behind."""
        if isinstance(e, IntImm):
            return [[]] if e.value else []
        if isinstance(e, And):
            return both(self.condition(e.a), self.condition(e.b))
        if isinstance(e, Or):
            return [*self.condition(e.a), *self.condition(e.b)]
        if isinstance(e, (EQ, NE, LT, LE, GT, GE)) and (e.a.dtype.is_int or e.a.dtype.is_bool):
            return self._comparison(e)
        if isinstance(e, Call) and e.op == "likely":
            return self.condition(e.args[0])
        if isinstance(e, Call) and e.op in ("bitwise_and", "bitwise_or") and e.dtype.is_bool:
            return self.condition((And if e.op == "bitwise_and" else Or)(*e.args))
        if isinstance(e, Var) and e.dtype.is_bool:
            return self._comparison(EQ(e, IntImm(1, e.dtype)))
        if isinstance(e, Not):
            opposite = _opposite(e.a)
            if not isinstance(opposite, Not):
                return self.condition(opposite)
        raise _not_affine(e)

    def _comparison(self, e: Any) -> Alternatives:
        if isinstance(e, (EQ, NE)):
            gap = plus(self.sum(e.a), self.sum(e.b), -1)
            if isinstance(e, EQ):
                return [[Row(*gap, True)]]
            return [[Row(*plus(gap, ({}, -1)))], [Row(*plus(({}, -1), gap, -1))]]
        strict, (small, large) = isinstance(e, (LT, GT)), (e.a, e.b) if isinstance(e, (LT, LE)) else (e.b, e.a)
        lows, highs = [self.sum(x) for x in _parts_of(small, Max)], [self.sum(x) for x in _parts_of(large, Min)]
        return [[Row(*plus(plus(b, a, -1), ({}, -strict))) for a in lows for b in highs]]

    def _add(self, alternatives: Alternatives) -> None:
        if len(alternatives) == 1:
            self.parts += alternatives[0]
        elif [] not in alternatives:
            self.parts.append(alternatives)

    # ------------------------------------------------------------ results

    def set(self, dims: Sequence[str]) -> IntegerSet:
        """The set of points ``dims``; other names that are not helpers are parameters."""
        return IntegerSet.from_rows(self.parts, self._parameters(dims), dims, self.helpers)

    def map(self, dims: Sequence[str], out: Sequence[str], hidden: Iterable[str] = ()) -> Relation:
        """The relation from ``dims`` to ``out``, names or numbers; ``hidden`` names are quantified away."""
        hidden = tuple(hidden)
        results: list[str | int] = [int(e) if e.isdigit() else e for e in out]
        return Relation.from_rows(self.parts, self._parameters(dims, hidden), dims, results, (*self.helpers, *hidden))

    def _parameters(self, dims: Sequence[str], hidden: Iterable[str] = ()) -> list[str]:
        bound = {*dims, *self.helpers, *hidden}
        return [name for name in self.used if name not in bound]


def _equal(name: str, total: Sum) -> Row:
    return Row(*plus(total, ({name: 1}, 0), -1), True)


def _opposite(e: Expr) -> Expr:
    """The negation of a condition; ``Not`` only around what is not made of comparisons."""
    if isinstance(e, (And, Or)):
        return (Or if isinstance(e, And) else And)(_opposite(e.a), _opposite(e.b))
    if isinstance(e, Not):
        return e.a
    if type(e) in OPPOSITE:
        return OPPOSITE[type(e)](e.a, e.b)  # type: ignore[attr-defined]
    if isinstance(e, Call) and e.op == "likely":
        return _opposite(e.args[0])
    if isinstance(e, Call) and e.op in ("bitwise_and", "bitwise_or") and e.dtype.is_bool:
        return _opposite((And if e.op == "bitwise_and" else Or)(*e.args))
    if isinstance(e, IntImm):
        return IntImm(1 - e.value, e.dtype)
    return NE(e, IntImm(1, e.dtype)) if isinstance(e, Var) and e.dtype.is_bool else Not(e)


def _parts_of(e: Expr, extreme: type[Any]) -> list[Expr]:
    """Expressions whose minimum or maximum (``extreme``) is ``e``: it is distributed, also over sums."""
    if isinstance(e, extreme):
        return _parts_of(e.a, extreme) + _parts_of(e.b, extreme)
    if isinstance(e, Add):
        return [Add(x, y) for x in _parts_of(e.a, extreme) for y in _parts_of(e.b, extreme)]
    if isinstance(e, Sub):
        opposite = Max if extreme is Min else Min
        return [Sub(x, y) for x in _parts_of(e.a, extreme) for y in _parts_of(e.b, opposite)]
    return [e]


def _not_affine(e: Expr) -> NotAffine:
    return NotAffine(e, "it depends on data" if any(isinstance(n, BufferLoad) for n in walk(e)) else "it is not affine")
