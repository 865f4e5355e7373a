"""Index expressions and conditions as exact integer sets (isl).

A linear condition becomes a row of coefficients, any other becomes text in isl's language; variables get isl names,
distinguished by identity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..buffer import Range
from ..expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
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
from ..visit import walk
from .relation import IntegerSet, NotAffine, Relation
from .rows import Row, Sum, plus

# what to add of x & y to x + y
_BITWISE = {"bitwise_and": 0, "bitwise_or": -1, "bitwise_xor": -2}
MOST_BITS = 6  # of the smaller operand
MOST_NESTED = 3  # operations on bits in one another: sets of more can take minutes
_COMPARE = {EQ: "=", NE: "!=", LT: "<", LE: "<=", GT: ">", GE: ">="}


class Names:
    """isl names of variables: a unique one for each."""

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}
        self.count = 0

    def of(self, var: Var) -> str:
        name = self.names.get(var)
        if name is None:
            name = self.names[var] = self.fresh(var.name)
        return name

    def fresh(self, hint: str = "t") -> str:
        self.count += 1
        return f"{re.sub(r'[^A-Za-z0-9_]', '_', hint) or 'v'}_{self.count}x"

    def copy(self) -> Names:
        made = Names()
        made.names, made.count = dict(self.names), self.count
        return made


class Formula:
    """A conjunction under construction: constraints, helper variables, and the variables that it uses."""

    def __init__(self, names: Names):
        self.names = names
        self.parts: list[Row | str] = []
        self.helpers: list[str] = []
        self.used: dict[str, None] = {}
        self.quotients: dict[Any, str] = {}
        self.known: dict[Var, tuple[int, int]] = {}
        self.chosen: dict[tuple[str, str, str], str] = {}  # the helper of a choice, by its test and its two values

    def require(self, condition: Expr) -> None:
        """Add a condition. Raises ``NotAffine``, leaving the formula as it was."""
        before = self._mark()
        if self._linear_condition(condition):
            return
        self._undo(before)
        try:
            text = self.condition(condition)
        except NotAffine:
            self._undo(before)
            raise
        if text != "true":
            self.parts.append(text)

    def within(self, var: Var, low: Expr, extent: Expr) -> None:
        if isinstance(low, IntImm) and isinstance(extent, IntImm):
            self.know(var, low.value, low.value + extent.value - 1)
        self.between(self.var(var), low, extent)

    def know(self, var: Var, least: int, most: int) -> None:
        """Assume that ``var`` is between two numbers: bitwise operations can only be linearised with bounds."""
        self.known[var] = (least, most)

    def between(self, name: str, low: Expr, extent: Expr) -> None:
        """``name`` is one of the ``extent`` integers from ``low`` on."""
        before = self._mark()
        while isinstance(extent, Max) and is_const(extent.b, 0):
            extent = extent.a  # that no integer is in a range of less than none goes without saying
        counts = _least_of(extent)
        first, sums = self._linear(low), [self._linear(count) for count in counts]
        if first is not None and all(count is not None for count in sums):
            self._at_least(plus(({name: 1}, 0), first, -1))
            for count in sums:
                self._at_least(plus(plus(first, count), ({name: 1}, 1), -1))  # pyright: ignore[reportArgumentType]
            return
        self._undo(before)
        text = self.affine(low)
        for count in counts:
            self.parts.append(f"{text} <= {name} < {text} + {self.affine(count)}")

    def equal(self, name: str, value: Expr) -> None:
        before = self._mark()
        found = self._linear(value)
        if found is not None:
            self.parts.append(Row(*plus(found, ({name: 1}, 0), -1), True))
            return
        self._undo(before)
        self.parts.append(f"{name} = {self.affine(value)}")

    def lane_of(self, name: str, base: Expr, step: int, lanes: int) -> None:
        """``name`` is ``base`` + ``step`` times one of the numbers below ``lanes``."""
        lane = self.helper()
        self._at_least(({lane: 1}, 0))
        self._at_least(({lane: -1}, lanes - 1))
        before = self._mark()
        found = self._linear(base)
        if found is not None:
            self.parts.append(Row(*plus(plus(found, ({lane: 1}, 0), step), ({name: 1}, 0), -1), True))
            return
        self._undo(before)
        self.parts.append(f"{name} = {self.affine(base)} + {step} * {lane}")

    # ------------------------------------------------------------ rows

    def _mark(self) -> tuple[Any, ...]:
        return len(self.parts), len(self.helpers), dict(self.used), dict(self.quotients), dict(self.chosen)

    def _undo(self, mark: tuple[Any, ...]) -> None:
        del self.parts[mark[0] :], self.helpers[mark[1] :]
        self.used, self.quotients, self.chosen = dict(mark[2]), dict(mark[3]), dict(mark[4])

    def _at_least(self, total: Sum) -> None:
        """The sum is not negative."""
        self.parts.append(Row(*total))

    def _linear_condition(self, e: Expr) -> bool:
        """Add a condition as rows; false (possibly with some rows added) if it is not linear."""
        if isinstance(e, And):
            return self._linear_condition(e.a) and self._linear_condition(e.b)
        if isinstance(e, Call) and e.op == "likely":
            return self._linear_condition(e.args[0])
        if isinstance(e, IntImm):
            return bool(e.value)
        if not isinstance(e, (LT, LE, GT, GE, EQ)) or not e.a.dtype.is_int:
            return False
        if isinstance(e, EQ):
            a, b = self._linear(e.a), self._linear(e.b)
            if a is None or b is None:
                return False
            self.parts.append(Row(*plus(a, b, -1), True))
            return True
        small, large = (e.a, e.b) if isinstance(e, (LT, LE)) else (e.b, e.a)
        sums = [[self._linear(x) for x in parts] for parts in (_greatest_of(small), _least_of(large))]
        if any(x is None for side in sums for x in side):
            return False
        for a in sums[0]:
            for b in sums[1]:
                terms, constant = plus(b, a, -1)  # pyright: ignore[reportArgumentType]
                self._at_least((terms, constant - isinstance(e, (LT, GT))))
        return True

    def _linear(self, e: Expr) -> Sum | None:
        """``e`` as a linear form over names; None if it is not linear."""
        if isinstance(e, IntImm):
            return {}, e.value
        if isinstance(e, Var):
            return ({self.var(e): 1}, 0) if e.dtype.is_int or e.dtype.is_bool else None
        if isinstance(e, (Add, Sub)):
            a, b = self._linear(e.a), self._linear(e.b)
            return None if a is None or b is None else plus(a, b, 1 if isinstance(e, Add) else -1)
        if isinstance(e, Mul):
            for factor, other in ((e.a, e.b), (e.b, e.a)):
                if isinstance(factor, IntImm):
                    found = self._linear(other)
                    return None if found is None else plus(({}, 0), found, factor.value)
            return None
        if isinstance(e, (FloorDiv, FloorMod)) and isinstance(e.b, IntImm) and e.b.value > 0:
            total = self._linear(e.a)
            if total is None:
                return None
            quotient = self._quotient(total, e.b.value)
            return quotient if isinstance(e, FloorDiv) else plus(total, quotient, -e.b.value)
        if isinstance(e, Call) and e.op == "likely":
            return self._linear(e.args[0])
        if isinstance(e, Call) and e.op in _BITWISE and e.dtype.is_int:
            return self._bits(e)
        if isinstance(e, Cast) and e.value.dtype.is_int and e.dtype.is_int:
            return self._linear(e.value)
        return None

    def _bits(self, e: Call) -> Sum | None:
        """x & y, x | y, x ^ y if one of the two is known to have few bits: one product of bits for each of them."""
        if sum(isinstance(n, Call) and n.op in _BITWISE for n in walk(e)) > MOST_NESTED:
            return None
        a, b = self._linear(e.args[0]), self._linear(e.args[1])
        count = min(self._bit_count(x) for x in e.args)
        if a is None or b is None or count > MOST_BITS:
            return None
        both: Sum = {}, 0
        for k in range(count):
            # of two bits both are set where half their sum is 1
            sum_of_bits = plus(self._bit(a, k), self._bit(b, k))
            both = plus(both, self._quotient(sum_of_bits, 2), 2**k)
        return both if e.op == "bitwise_and" else plus(plus(a, b), both, _BITWISE[e.op])

    def _bit(self, total: Sum, k: int) -> Sum:
        return plus(self._quotient(total, 2**k), self._quotient(total, 2 ** (k + 1)), -2)

    def _bit_count(self, e: Expr) -> int:
        """Number of bits of a non-negative value; a large number if it is unknown."""
        from ..arith.analyzer import Analyzer

        ctx = Analyzer(
            {v: Range(const(lo, v.dtype), const(hi - lo + 1, v.dtype)) for v, (lo, hi) in self.known.items()}
        )
        low, high = ctx.bound(e)
        return 64 if low is None or high is None or low < 0 else high.bit_length()

    def _quotient(self, total: Sum, by: int) -> Sum:
        """``total // by``."""
        terms, constant = total
        whole = {name: c // by for name, c in terms.items() if c % by == 0}
        rest = {name: c for name, c in terms.items() if c % by}
        if not rest:
            return whole, constant // by
        key = (frozenset(rest.items()), constant % by, by)
        name = self.quotients.get(key)
        if name is None:
            name = self.quotients[key] = self.helper()
            left = plus((rest, constant % by), ({name: 1}, 0), -by)
            self._at_least(left)
            self._at_least(plus(({}, by - 1), left, -1))
        return plus((whole, constant // by), ({name: 1}, 0))

    # ------------------------------------------------------------ text

    def var(self, var: Var) -> str:
        name = self.names.of(var)
        self.used[name] = None
        return name

    def helper(self) -> str:
        name = self.names.fresh()
        self.helpers.append(name)
        return name

    def affine(self, e: Expr) -> str:
        """``e`` as text. Raises ``NotAffine``."""
        if isinstance(e, IntImm):
            return str(e.value) if e.value >= 0 else f"({e.value})"
        if isinstance(e, Var):
            if not (e.dtype.is_int or e.dtype.is_bool):
                raise NotAffine(e, "it is not an integer")
            return self.var(e)
        if isinstance(e, Add):
            return f"({self.affine(e.a)} + {self.affine(e.b)})"
        if isinstance(e, Sub):
            return f"({self.affine(e.a)} - {self.affine(e.b)})"
        if isinstance(e, Mul):
            for factor, other in ((e.a, e.b), (e.b, e.a)):
                if isinstance(factor, IntImm):
                    return f"({factor.value} * {self.affine(other)})"
            raise NotAffine(e, "it is a product of two variables")
        if isinstance(e, (FloorDiv, FloorMod, Div, Mod)):
            return self._division(e)
        if isinstance(e, (Min, Max)):
            a, b = self.affine(e.a), self.affine(e.b)
            order = "<=" if isinstance(e, Min) else ">="
            return self._either(f"{a} {order} {b}", a, b, f"not ({a} {order} {b})")
        if isinstance(e, Select):
            return self._choice(e.condition, e.true_value, e.false_value)
        if isinstance(e, Call) and e.op == "if_then_else":
            return self._choice(*e.args)
        if isinstance(e, Call) and e.op == "likely":
            return self.affine(e.args[0])
        if isinstance(e, Call) and e.op in _BITWISE and e.dtype.is_int:
            found = self._bits(e)
            if found is not None:
                return f"({' + '.join([*(f'{c} * {name}' for name, c in found[0].items()), str(found[1])])})"
        if isinstance(e, Cast) and (e.value.dtype.is_int or e.value.dtype.is_bool) and e.dtype.is_int:
            return self._choice(e.value, IntImm(1), IntImm(0)) if e.value.dtype.is_bool else self.affine(e.value)
        raise NotAffine(e, "it depends on data" if _depends_on_data(e) else "it is not affine")

    def _division(self, e: Any) -> str:
        if not isinstance(e.b, IntImm) or e.b.value == 0:
            raise NotAffine(e, "it divides by something that is not a constant")
        a, by = self.affine(e.a), e.b.value
        quotient = f"floor({a}/{by})" if by > 0 else f"floor((0 - {a})/{-by})"
        if isinstance(e, (Div, Mod)):
            toward_zero = f"floor(({a})/{abs(by)})"
            negative = f"(0 - floor((0 - {a})/{abs(by)}))"
            quotient = self._either(f"{a} >= 0", toward_zero, negative, f"{a} < 0")
            if by < 0:
                quotient = f"(0 - {quotient})"
        return quotient if isinstance(e, (FloorDiv, Div)) else f"({a} - {by} * {quotient})"

    def _choice(self, condition: Expr, yes: Expr, no: Expr) -> str:
        test = self.condition(condition)
        return self._either(test, self.affine(yes), self.affine(no), f"not ({test})")

    def _either(self, test: str, yes: str, no: str, otherwise: str) -> str:
        name = self.chosen.get((test, yes, no))
        if name is not None:
            return name
        name = self.chosen[test, yes, no] = self.helper()
        self.parts.append(f"(({test} and {name} = {yes}) or ({otherwise} and {name} = {no}))")
        return name

    def condition(self, e: Expr) -> str:
        """A boolean expression as text. Raises ``NotAffine``."""
        if isinstance(e, IntImm):
            return "true" if e.value else "false"
        if isinstance(e, (And, Or)):
            return f"({self.condition(e.a)} {'and' if isinstance(e, And) else 'or'} {self.condition(e.b)})"
        if isinstance(e, Not):
            return f"not ({self.condition(e.a)})"
        sign = _COMPARE.get(type(e))
        if sign is not None and (e.a.dtype.is_int or e.a.dtype.is_bool):
            return f"({self.affine(e.a)} {sign} {self.affine(e.b)})"
        if isinstance(e, Call) and e.op == "likely":
            return self.condition(e.args[0])
        if isinstance(e, Call) and e.op in ("bitwise_and", "bitwise_or") and e.dtype.is_bool:
            word = "and" if e.op == "bitwise_and" else "or"
            return f"({self.condition(e.args[0])} {word} {self.condition(e.args[1])})"
        if e.dtype.is_bool and isinstance(e, Var):
            return f"({self.affine(e)} = 1)"
        raise NotAffine(e, "it depends on data" if _depends_on_data(e) else "it is not affine")

    # ------------------------------------------------------------ results

    def set(self, dims: Sequence[str]) -> IntegerSet:
        """The set of points ``dims``; other names that are not helpers are parameters."""
        rows = self._rows()
        if rows is None:
            return IntegerSet.from_text(self._text(f"[{', '.join(dims)}]", dims))
        return IntegerSet.from_rows(rows, self._parameters(dims), dims, self.helpers)

    def map(self, dims: Sequence[str], out: Sequence[str], hidden: Iterable[str] = ()) -> Relation:
        """The relation from ``dims`` to the expressions ``out``; ``hidden`` names are quantified away."""
        hidden = tuple(hidden)
        known = {*self.used, *dims, *self.helpers, *hidden}
        results: list[str | int] = [int(e) if e.isdigit() else e for e in out]
        rows = self._rows()
        if rows is not None and all(isinstance(e, int) or e in known for e in results):
            return Relation.from_rows(rows, self._parameters(dims, hidden), dims, results, (*self.helpers, *hidden))
        made = Formula(self.names)
        made.parts, made.helpers, made.used = list(self.parts), self.helpers, self.used
        names = [self.names.fresh("o") for _ in out]
        made.parts += [f"{name} = {text}" for name, text in zip(names, out)]
        head = f"[{', '.join(dims)}] -> [{', '.join(names)}]"
        return Relation.from_text(made._text(head, (*dims, *names), hidden))

    def _rows(self) -> list[Row] | None:
        """The constraints, if all of them are rows."""
        rows = [part for part in self.parts if isinstance(part, Row)]
        return rows if len(rows) == len(self.parts) else None

    def _parameters(self, dims: Sequence[str], hidden: Iterable[str] = ()) -> list[str]:
        bound = {*dims, *self.helpers, *hidden}
        return [name for name in self.used if name not in bound]

    def _text(self, head: str, dims: Sequence[str], hidden: Iterable[str] = ()) -> str:
        parameters = self._parameters(dims, hidden)
        inner = [name for name in (*self.helpers, *hidden) if name not in dims]
        body = " and ".join(map(str, self.parts)) or "true"
        if inner:
            body = f"exists ({', '.join(inner)}: {body})"
        return f"[{', '.join(parameters)}] -> {{ {head} : {body} }}"


def _least_of(e: Expr) -> list[Expr]:
    """Expressions whose minimum is ``e``: min is distributed, also over sums."""
    if isinstance(e, Min):
        return _least_of(e.a) + _least_of(e.b)
    if isinstance(e, Add):
        return [Add(x, y) for x in _least_of(e.a) for y in _least_of(e.b)]
    if isinstance(e, Sub):
        return [Sub(x, y) for x in _least_of(e.a) for y in _greatest_of(e.b)]
    return [e]


def _greatest_of(e: Expr) -> list[Expr]:
    if isinstance(e, Max):
        return _greatest_of(e.a) + _greatest_of(e.b)
    if isinstance(e, Add):
        return [Add(x, y) for x in _greatest_of(e.a) for y in _greatest_of(e.b)]
    if isinstance(e, Sub):
        return [Sub(x, y) for x in _greatest_of(e.a) for y in _least_of(e.b)]
    return [e]


def _depends_on_data(e: Any) -> bool:
    from ..expr import BufferLoad

    return any(isinstance(n, BufferLoad) for n in walk(e))
