"""Sizes that are known when a model runs: integer expressions of symbols, with the arithmetic and the comparisons of integers."""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from ..arith import simplify
from ..arith.index_map import in_wider
from ..arith.linear import Linear, key, linear, uncast
from ..buffer import Range
from ..errors import ModelError
from ..expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Sub,
    Var,
    cast,
    const,
    max_,
    min_,
)
from ..expr_nodes import is_shared, shared_var
from ..names import identifier
from ..visit import free_vars, walk


class Size:
    """A size that depends on symbols, each of which is a number of at least 1. Arithmetic with integers and sizes gives integers where symbols cancel.

    Two sizes are equal if they are for all values of the symbols. Other comparisons, and the truth of a size, raise ``ModelError`` where they depend on values; a
    conversion to an integer raises ``TypeError``.

    >>> n, m = symbol("n"), symbol("m")
    >>> (n + 1) * 4 - 4 == 4 * n, n == m, n * m * 6 // (m * 2), n * 4 > 3, n - n
    (True, False, n * 3, True, 0)
    """

    __slots__ = ("form", "names", "text")

    def __init__(self, form: Linear):
        self.form = Linear(form.const)
        ordered = [(k, tuple(sorted(factors, key=repr)), c) for k, (factors, c) in form.terms.items()]
        for term, factors, c in sorted(ordered, key=lambda each: (-len(each[1]), repr(each[1]))):
            self.form.add_term(factors, c, term)
        expr = self.expr
        self.text = repr(expr)
        self.names = tuple(dict.fromkeys(v.name for v in free_vars(expr)))  # of the symbols

    @property
    def expr(self) -> Expr:
        """The expression of variables, of int32 if its numbers fit."""
        small = const(0).dtype
        return self.form.build(small) if self.form.fits(small) else self.wide

    @property
    def wide(self) -> Expr:
        """The expression in int64, what is divided in it too."""
        wide = const(1 << 40).dtype
        form = Linear(self.form.const)
        for factors, c in self.form.items():
            form.add_term(tuple(in_wider(f, {v: cast(wide, v) for v in free_vars(f)}) for f in factors), c)
        return form.build(wide)

    def at(self, values: Mapping[str, Any]) -> Any:
        """The number for values of the symbols; a size, where some of these are sizes.

        >>> size = symbol("n") * 4 + symbol("m") // 2
        >>> size.at({"n": 3, "m": 5}), size.at({"n": symbol("k"), "m": 5})
        (14, k * 4 + 2)
        """
        return _value(self.form, values)

    def __add__(self, other: Any) -> Any:
        return _joined(self, other, lambda a, b: a.copy().add(b))

    def __sub__(self, other: Any) -> Any:
        return _joined(self, other, Linear.minus)

    def __rsub__(self, other: Any) -> Any:
        return _joined(self, other, lambda a, b: b.minus(a))

    def __mul__(self, other: Any) -> Any:
        return _joined(self, other, Linear.times)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return _made(self.form.scaled(-1))

    def __floordiv__(self, other: Any) -> Any:
        return _divided(self, other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return _divided(other, self, operator.floordiv)

    def __mod__(self, other: Any) -> Any:
        return _divided(self, other, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return _divided(other, self, operator.mod)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __lt__(self, other: Any) -> bool:
        return _decided(self, other, operator.lt, "<")

    def __le__(self, other: Any) -> bool:
        return _decided(self, other, operator.le, "<=")

    def __gt__(self, other: Any) -> bool:
        return _decided(self, other, operator.gt, ">")

    def __ge__(self, other: Any) -> bool:
        return _decided(self, other, operator.ge, ">=")

    def __bool__(self) -> bool:
        return _decided(self, 0, operator.ne, "!=")

    def __index__(self) -> int:
        raise TypeError(f"the size {self} is known only when the model runs; give numbers for sizes, as shapes=")

    def __reduce__(self) -> tuple[Any, ...]:
        return sized, (self.expr,)  # the keys of a form are of this process

    def __repr__(self) -> str:
        return self.text


Extent = int | Size  # of a tensor along an axis
ALIGNMENT = 64  # bytes, of weights, workspaces and what is in them
Limits = Mapping[Size, tuple[int, int | None]]  # of sizes: the least and, where there is one, the largest value
_LIMITS: ContextVar[Limits | None] = ContextVar("_LIMITS", default=None)


@contextmanager
def inside(limits: Limits) -> Iterator[None]:
    """Compare sizes as those that are inside ``limits``.

    >>> n = symbol("n")
    >>> with inside({n: (3, 9)}):
    ...     n > 2, least(n, 3), most(9 - n, 0), n != 2
    (True, 3, 9 - n, True)
    """
    token = _LIMITS.set(limits)
    try:
        yield
    finally:
        _LIMITS.reset(token)


def symbol(name: str) -> Size:
    """The size that is a symbol by itself. Raises ``ModelError`` for a name that is no identifier."""
    if not name.isidentifier():
        raise ModelError(f"{name!r} is no name of a size: letters, digits and underscores")
    return Size(linear(shared_var(name)))


def sized(e: Any) -> Extent:
    """The size that an expression of symbols is.

    >>> n = symbol("n").expr
    >>> sized((n * 4 + 2) // 2), sized(n // n), sized(max_((n + 1) // 2, 0))
    (n * 2 + 1, 1, (n + 1) // 2)
    """
    if not isinstance(e, Expr):
        return e if isinstance(e, Size) else int(e)
    e = simple(e)
    if isinstance(e, Max) and isinstance(is_first := simple(GE(e.a, e.b)), IntImm):
        e = e.a if is_first.value else e.b
    return _made(linear(e, uncast))


def parsed(text: str) -> Extent:
    """The size that is written so: ``n``, ``4 * n + 1``, ``n // 2``; a symbol for a text that is no such expression.

    >>> parsed("2*n + 2*m") == (symbol("n") + symbol("m")) * 2, parsed("my batch")
    (True, my_batch)
    """
    try:
        return read_size(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError):
        return symbol(identifier(text))


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def read_size(node: ast.expr) -> Any:
    """The size that a parsed expression is. Raises ``ValueError`` for what is none."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return symbol(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -read_size(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](read_size(node.left), read_size(node.right))
    if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        name = ast.unparse(node.func).rpartition(".")[2].lower()
        if name in ("min", "max"):
            return (least if name == "min" else most)(*map(read_size, node.args))
    raise ValueError(ast.unparse(node))


def least(a: Extent, b: Extent) -> Extent:
    """The smaller of two sizes.

    >>> n = symbol("n")
    >>> least(n, 3), least(n, 1)
    (T.min(n, 3), 1)
    """
    return _chosen(a, b, operator.le, min_)


def most(a: Extent, b: Extent) -> Extent:
    """The larger of two sizes."""
    return _chosen(a, b, operator.ge, max_)


def _chosen(a: Extent, b: Extent, is_first: Callable[[Any, Any], Any], otherwise: Callable[[Any, Any], Expr]) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return a if is_first(a, b) else b
    for one, other in ((a, b), (b, a)):
        known = simple(is_first(_expr(one), _expr(other)), _LIMITS.get())
        if isinstance(known, IntImm) and known.value:
            return one
    return sized(otherwise(_expr(a), _expr(b)))


def is_size(e: Expr) -> bool:
    """Whether an expression is a size: of symbols and numbers alone."""
    parts = [n for n in walk(e) if isinstance(n, Expr)]
    return all(is_shared(n) if isinstance(n, Var) else type(n) in _PARTS for n in parts)


def variables(names: Iterable[str]) -> list[Var]:
    """The variables that symbols are in expressions."""
    return list(map(shared_var, names))


def extents(shape: Iterable[Extent]) -> tuple[Any, ...]:
    """Sizes as tensor expressions take them."""
    return tuple(s.expr if isinstance(s, Size) else s for s in shape)


def is_fixed(*sizes: Extent) -> bool:
    """Whether sizes are numbers."""
    return not any(isinstance(s, Size) for s in sizes)


def may_be(size: Extent, other: int) -> bool:
    """Whether a size can be a number, as far as that can be told, for some values of the symbols.

    >>> n = symbol("n")
    >>> may_be(n, 1), may_be(n + 1, 1), may_be(4 * n, 1), may_be(1, 1)
    (True, False, False, True)
    """
    if not isinstance(size, Size):
        return size == other
    equal = simple(EQ(size.expr, const(other)), _LIMITS.get())
    return not isinstance(equal, IntImm) or bool(equal.value)


def aligned(nbytes: Any) -> Any:
    """``nbytes`` rounded up to whole units of the alignment.

    >>> aligned(1), aligned(64)
    (64, 64)
    """
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def usual(size: Extent) -> int:
    """The number that a size counts as where what is best is decided, and not what is right."""
    from ..tune.nest import USUAL

    return size.at(dict.fromkeys(size.names, USUAL)) if isinstance(size, Size) else size


def number(size: Extent, values: Mapping[str, Any]) -> Any:
    """The number that a size is for values of the symbols."""
    return size.at(values) if isinstance(size, Size) else size


def symbols(sizes: Iterable[Any]) -> tuple[str, ...]:
    """The symbols of sizes, in order."""
    return tuple(dict.fromkeys(name for s in sizes if isinstance(s, Size) for name in s.names))


def _expr(size: Extent) -> Expr:
    return size.expr if isinstance(size, Size) else const(size)


def _form(size: Any) -> Linear | None:
    if isinstance(size, Size):
        return size.form
    return Linear(operator.index(size)) if hasattr(size, "__index__") else None


def _made(form: Linear) -> Extent:
    return form.const if form.is_const else Size(form)


def _joined(a: Size, b: Any, how: Callable[[Linear, Linear], Linear]) -> Any:
    other = _form(b)
    return NotImplemented if other is None else _made(how(a.form, other))


def _divided(a: Any, b: Any, how: Callable[[Any, Any], Any]) -> Any:
    whole, by = _form(a), _form(b)
    if whole is None or by is None:
        return NotImplemented
    if by.is_zero:
        raise ZeroDivisionError(f"{a} is divided by 0")
    exact = _quotient(whole, by)
    if exact is not None:
        return _made(exact) if how is operator.floordiv else 0
    return sized(how(_expr(a), _expr(b)))


def _quotient(whole: Linear, by: Linear) -> Linear | None:
    """The form that is ``whole`` if it is multiplied by ``by``; None if none is found, term by term."""
    lead, scale = next(by.items(), ((), by.const))
    made, rest = Linear(), whole.copy()
    for _ in range(4 * (len(whole.terms) + 1)):
        if rest.is_zero:
            return made
        terms = [*rest.items(), ((), rest.const)]
        found = next(
            (each for each in terms if each[1] and each[1] % scale == 0 and _without(each[0], lead) is not None), None
        )
        if found is None:
            return None
        step, left = Linear(), _without(found[0], lead)
        if left:
            step.add_term(left, found[1] // scale)
        else:
            step.const = found[1] // scale
        made.add(step)
        rest.add(step.times(by), -1)
    return None


def _without(factors: Sequence[Expr], gone: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """Factors without others; None if one of these is none of them."""
    count = Counter(map(key, gone))
    left = []
    for factor in factors:
        if count[key(factor)]:
            count[key(factor)] -= 1
        else:
            left.append(factor)
    return None if count.total() else tuple(left)


def simple(e: Expr, limits: Limits | None = None) -> Expr:
    """``e`` as it is where each symbol is at least 1, and inside its ``limits``."""
    known = {size.text: ends for size, ends in (limits or {}).items()}
    return simplify(e, {v: _values(v, *known.get(v.name, (1, None))) for v in free_vars(e)})


def _values(v: Var, low: int, high: int | None) -> Range:
    return Range(const(low, v.dtype), const(v.dtype.max_value if high is None else high - low + 1, v.dtype))


def _decided(a: Size, b: Any, how: Callable[[Any, Any], Any], sign: str) -> bool:
    if _form(b) is None:
        return NotImplemented
    known = simple(how(a.expr, _expr(b)), _LIMITS.get())
    if not isinstance(known, IntImm):
        _refuse(f"{a} {sign} {b}")
    return bool(known.value)


def _refuse(question: str) -> NoReturn:
    raise ModelError(f"whether {question} is known only when the model runs; give numbers for sizes, as shapes=")


_PARTS = (IntImm, Cast, Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)
_VALUES: dict[type, Callable[[Any, Any], Any]] = {
    FloorDiv: operator.floordiv, FloorMod: operator.mod, Min: least, Max: most, And: operator.and_,
    EQ: operator.eq, NE: operator.ne, LT: operator.lt, LE: operator.le, GT: operator.gt, GE: operator.ge,
}  # fmt: skip


def _value(form: Linear, values: Mapping[str, Any]) -> Any:
    total = form.const
    for factors, c in form.items():
        for factor in factors:
            c *= value_of(factor, values)
        total += c
    return total


def value_of(e: Any, values: Mapping[str, Any]) -> Any:
    """The number that an expression of sizes, or a comparison of two, is for values of the symbols."""
    if isinstance(e, Var):
        return values[e.name]
    if isinstance(e, Cast):
        return value_of(e.value, values)
    if type(e) in _VALUES:
        return _VALUES[type(e)](value_of(e.a, values), value_of(e.b, values))
    return _value(linear(e), values)
