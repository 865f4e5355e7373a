"""Index expressions and conditions as exact integer sets (isl).

An expression becomes text in isl's language; variables become isl names, kept apart by identity. islpy loads on first
use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

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
)

_COMPARE = {EQ: "=", NE: "!=", LT: "<", LE: "<=", GT: ">", GE: ">="}


class NotAffine(Exception):
    """``expr`` is not quasi-affine: exact sets cannot speak of it."""

    def __init__(self, expr: Any, reason: str = "it is not affine"):
        super().__init__(reason)
        self.expr = expr
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.expr}: {self.reason}" if isinstance(self.expr, str) else f"`{self.expr!r}`: {self.reason}"


class Names:
    """isl names of variables: one for each, whatever they are called."""

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
    """A conjunction under construction: constraint texts, helper variables, and every variable it mentions."""

    def __init__(self, names: Names):
        self.names = names
        self.parts: list[str] = []
        self.helpers: list[str] = []
        self.used: dict[str, None] = {}

    def require(self, condition: Expr) -> None:
        """Add a condition. Raises ``NotAffine``, leaving the formula as it was."""
        before = len(self.parts), len(self.helpers), dict(self.used)
        try:
            text = self.condition(condition)
        except NotAffine:
            del self.parts[before[0] :], self.helpers[before[1] :]
            self.used = before[2]
            raise
        if text != "true":
            self.parts.append(text)

    def within(self, var: Var, low: Expr, extent: Expr) -> None:
        name, first = self.var(var), self.affine(low)
        self.parts.append(f"{first} <= {name} < {first} + {self.affine(extent)}")

    def equal(self, name: str, value: Expr) -> None:
        self.parts.append(f"{name} = {self.affine(value)}")

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
        name = self.helper()
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

    def set(self, dims: Sequence[str]) -> Any:
        """The set of points ``dims``; other names that are not helpers are parameters."""
        return _isl().Set(self._text(f"[{', '.join(dims)}]", dims))

    def map(self, dims: Sequence[str], out: Sequence[str], hidden: Iterable[str] = ()) -> Any:
        """The relation from ``dims`` to the expressions ``out``; ``hidden`` names are quantified away."""
        made = Formula(self.names)
        made.parts, made.helpers, made.used = list(self.parts), self.helpers, self.used
        results = [self.names.fresh("o") for _ in out]
        made.parts += [f"{name} = {text}" for name, text in zip(results, out)]
        head = f"[{', '.join(dims)}] -> [{', '.join(results)}]"
        return _isl().Map(made._text(head, (*dims, *results), hidden))

    def _text(self, head: str, dims: Sequence[str], hidden: Iterable[str] = ()) -> str:
        bound = {*dims, *self.helpers, *hidden}
        parameters = [name for name in self.used if name not in bound]
        inner = [name for name in (*self.helpers, *hidden) if name not in dims]
        body = " and ".join(self.parts) or "true"
        if inner:
            body = f"exists ({', '.join(inner)}: {body})"
        return f"[{', '.join(parameters)}] -> {{ {head} : {body} }}"


def _depends_on_data(e: Any) -> bool:
    from ..expr import BufferLoad
    from ..visit import walk

    return any(isinstance(n, BufferLoad) for n in walk(e))


def _isl() -> Any:
    import islpy

    return islpy


MOST_OPERATIONS = 2_000_000  # of the sets' library for one question: about half a second


class TooLong(Exception):
    """Sets do not answer in bounded time."""


@contextmanager
def bounded() -> Iterator[None]:
    """Raises ``TooLong`` where what is asked of sets in the ``with`` block takes more than ``MOST_OPERATIONS``. Inside
    another such block that one's limit holds."""
    limits = _isl().DEFAULT_CONTEXT
    if limits.get_max_operations():
        yield
        return
    limits.reset_operations()
    limits.set_max_operations(MOST_OPERATIONS)
    try:
        yield
    except _isl().Error as error:
        if "maximal number of operations" not in str(error):
            raise
        raise TooLong from None
    finally:
        limits.set_max_operations(0)
        limits.reset_operations()


def sample(points: Any) -> list[int] | None:
    """The coordinates of some point of a set, near the origin where there is one; None for the empty set."""
    isl = _isl()
    if points.is_empty():
        return None
    plain = points
    zero_params = plain
    for i in range(points.dim(isl.dim_type.param)):
        zero_params = _pin_small(zero_params, isl.dim_type.param, i)
    for i in range(points.dim(isl.dim_type.set)):
        zero_params = _pin_small(zero_params, isl.dim_type.set, i)
    point = zero_params.sample_point()
    return [point.get_coordinate_val(isl.dim_type.set, i).to_python() for i in range(points.dim(isl.dim_type.set))]


def _pin_small(points: Any, kind: Any, at: int) -> Any:
    """``points`` with one coordinate fixed to a small value, where a small one is in it."""
    for value in (0, 1, 2, 3, 4):
        fixed = points.fix_val(kind, at, value)
        if not fixed.is_empty():
            return fixed
    return points
