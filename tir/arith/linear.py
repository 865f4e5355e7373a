"""Linear forms ``sum of coefficient * term + constant`` over integer expressions, and structural keys.

A term is a product of atoms: expressions that are not themselves sums or products. Forms are equal modulo the size of the
type; they are equal as unbounded integers for index arithmetic, which does not overflow. What is computed from data may:
of it :func:`.bounds.value_form` has the form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

from ..buffer import Buffer
from ..dtype import DType
from ..expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    IntImm,
    Max,
    Min,
    Mul,
    Not,
    Ramp,
    Select,
    StringImm,
    Sub,
    Var,
    arithmetic,
    cast,
)
from ..node import Memo, Node
from ..op import effect_of
from ..visit import LEAVES, N, free_vars, rewrite, uses_var


def is_index(dtype: DType) -> bool:
    """Whether integer algebra applies: scalar signed integers wide enough that indices do not wrap."""
    return dtype.code == "int" and dtype.bits >= 32 and dtype.lanes == 1


def is_data(e: Expr, names: Collection[Var] = ()) -> bool:
    """Whether ``e`` is computed from data, so that its sums and products wrap around.

    Data is loads, results of calls and of left shifts, conversions from another kind of number or from a wider integer, operations on
    constants that overflow, and the variables ``names``. All other sums and products of int32 and int64, of loop
    variables, sizes and scalar parameters, do not overflow.
    """
    found = _DATA.get(e)
    if found is None:
        found = _DATA[e] = _is_data(e)
    return found or (bool(names) and uses_var(e, names))


_DATA: Memo[bool] = Memo()


def _is_data(e: Expr) -> bool:
    parts: list[Any] = [e]
    for item in parts:  # which grows
        if type(item) is IntImm:
            continue
        known = _DATA.get(item)
        more = _sources(item) if known is None else None if known else ()
        if more is None:
            return True
        parts += more
    return False


def _sources(e: Any) -> Sequence[Any] | None:
    """The operands on which it depends whether ``e`` is data; None where ``e`` is data by itself, such as a load, or an
    operation on constants whose result overflows the type."""
    if isinstance(e, Var):
        return () if is_index(e.dtype.element) else None
    if isinstance(e, BufferLoad):
        return None
    if isinstance(e, Cast):
        source = e.value.dtype.element
        held = (is_index(source) and source.bits <= e.dtype.bits) or source.is_bool
        return (e.value,) if held and type(e.value) is not IntImm else None
    if isinstance(e, (Add, Sub, Mul, FloorDiv, Div)):
        if type(e.a) is not IntImm or type(e.b) is not IntImm:
            return e.a, e.b
        return () if not e.b.value or type(arithmetic(type(e), e.a, e.b)) is IntImm else None
    if isinstance(e, Select):
        return e.true_value, e.false_value
    if isinstance(e, Call):
        if effect_of(e) != "pure" or e.op == "shift_left":
            return None
        return e.args[1:] if e.op == "if_then_else" else e.args
    return e.children() if isinstance(e, Expr) else ()


def key(e: Any) -> Hashable:
    """A hashable key, equal for expressions that are structurally equal up to the order of sums, of min, max, == and !=.

    Variables and buffers count by identity; a call with effects equals only itself.
    """
    kind = type(e)
    if kind is Var or kind is Buffer:
        return id(e)
    if kind is IntImm:
        return (e.value, e.dtype)
    found = _KEYS.get(e)
    if found is None:
        found = _KEYS[e] = _key(e)
    return found


_KEYS: Memo[Hashable] = Memo()


def _key(e: Any) -> Hashable:
    kind = type(e)
    if kind in _SUMS or kind is Mul:
        return linear(e).key() if is_index(e.dtype) else (kind, key(e.a), key(e.b))
    if kind in (Min, Max, EQ, NE):
        return (kind, frozenset((key(e.a), key(e.b))))
    if kind is FloatImm:
        return (repr(e.value), e.dtype)
    if kind is StringImm:
        return e.value
    if kind is Call:
        if effect_of(e) not in ("pure", "read"):
            return id(e)
        return (e.op, e.dtype, tuple(key(a) for a in e.args))
    if kind is BufferLoad:
        return (BufferLoad, id(e.buffer), tuple(key(i) for i in e.indices))
    if kind is Cast:
        return (Cast, e.dtype, key(e.value))
    if isinstance(e, (Ramp, Broadcast)):
        return (type(e), e.lanes, *(key(c) for c in e.children()))
    if isinstance(e, (Not, Select)) or hasattr(e, "a"):
        return (type(e), *(key(c) for c in e.children()))
    return id(e)


def same(a: Any, b: Any) -> bool:
    """Whether two expressions are the same tree, operand order included."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b) or kind is Var or kind is Buffer:
        return False
    if kind is IntImm:
        return a.dtype is b.dtype and a.value == b.value
    if kind is FloatImm:
        return a.dtype is b.dtype and repr(a.value) == repr(b.value)
    for name in a.fields:
        x, y = getattr(a, name), getattr(b, name)
        if isinstance(x, Node):
            if not same(x, y):
                return False
        elif isinstance(x, tuple):
            if len(x) != len(y) or not all(same(p, q) if isinstance(p, Node) else p == q for p, q in zip(x, y)):
                return False
        elif x != y:
            return False
    return True


class Linear:
    """``sum(coefficient * product(factors)) + const``; terms keep the order in which they first appeared."""

    __slots__ = ("terms", "const")

    def __init__(self, const: int = 0):
        self.terms: dict[Hashable, tuple[tuple[Expr, ...], int]] = {}
        self.const = const

    def copy(self) -> Linear:
        made = Linear(self.const)
        made.terms = dict(self.terms)
        return made

    def add_term(self, factors: tuple[Expr, ...], coefficient: int, term_key: Hashable = None) -> None:
        if coefficient == 0:
            return
        if term_key is None:
            term_key = product_key(factors)
        old = self.terms.get(term_key)
        if old is None:
            self.terms[term_key] = (factors, coefficient)
        elif old[1] + coefficient:
            self.terms[term_key] = (old[0], old[1] + coefficient)
        else:
            del self.terms[term_key]

    def add(self, other: Linear, scale: int = 1) -> Linear:
        """Add ``scale * other`` in place."""
        terms = self.terms
        for term_key, (factors, coefficient) in other.terms.items() if scale else ():
            old = terms.get(term_key)
            total = coefficient * scale + (0 if old is None else old[1])
            if total:
                terms[term_key] = (factors if old is None else old[0], total)
            else:
                del terms[term_key]
        self.const += other.const * scale
        return self

    def minus(self, other: Linear) -> Linear:
        return self.copy().add(other, -1)

    def scaled(self, scale: int) -> Linear:
        return Linear().add(self, scale)

    def times(self, other: Linear) -> Linear:
        """The product, distributed."""
        out = Linear(self.const * other.const)
        for factors, coefficient in self.items():
            out.add_term(factors, coefficient * other.const)
            for more, times in other.items():
                out.add_term(factors + more, coefficient * times)
        for factors, coefficient in other.items():
            out.add_term(factors, coefficient * self.const)
        return out

    def items(self) -> Iterator[tuple[tuple[Expr, ...], int]]:
        return iter(self.terms.values())

    def key(self) -> Hashable:
        if len(self.terms) == 1 and self.const == 0:
            ((term_key, (_, coefficient)),) = self.terms.items()
            if coefficient == 1:
                return term_key
        return (self.terms_key(), self.const)

    def terms_key(self) -> frozenset[tuple[Hashable, int]]:
        """A key without the constant: the same for forms that differ by a number."""
        return frozenset((k, c) for k, (_, c) in self.terms.items())

    @property
    def is_const(self) -> bool:
        return not self.terms

    @property
    def is_of_variables(self) -> bool:
        """Whether each term is a variable and its coefficient."""
        return all(type(factors[0]) is Var and len(factors) == 1 for factors, _ in self.terms.values())

    @property
    def is_zero(self) -> bool:
        return not self.terms and self.const == 0

    def contains(self, other: Linear) -> bool:
        """Whether each term of ``other`` is a term of this form, with the same coefficient."""
        return all(self.terms.get(k, ((), 0))[1] == c for k, (_, c) in other.terms.items())

    def replaced(self, gone: Collection[Hashable], new: Linear) -> Linear:
        """This form without the terms ``gone``, and ``new`` where the first of them stood."""
        out, done = Linear(self.const), False
        for term_key, (factors, c) in self.terms.items():
            if term_key not in gone:
                out.add_term(factors, c, term_key)
            elif not done:
                out.add(new)
                done = True
        return out

    def single(self) -> Expr | None:
        """The atom, if the form is one atom with coefficient 1 (ignoring the constant)."""
        if len(self.terms) == 1:
            ((factors, coefficient),) = self.terms.values()
            if coefficient == 1 and len(factors) == 1:
                return factors[0]
        return None

    def coefficients(self) -> dict[Var, int] | None:
        """The coefficient of each variable; None if a term is anything but a variable."""
        found: dict[Var, int] = {}
        for factors, c in self.terms.values():
            if len(factors) != 1 or type(factors[0]) is not Var:
                return None
            found[factors[0]] = c
        return found

    def coefficient(self, var: Var) -> int:
        """What ``var`` is multiplied by where it is a term of its own; 0 if it is none."""
        return self.terms.get(id(var), ((), 0))[1]

    def split(self, variables: Any) -> tuple[Linear, Linear]:
        """The terms that use any of ``variables``, and the others with the constant."""
        using, rest = Linear(), Linear(self.const)
        for term_key, (factors, coefficient) in self.terms.items():
            moving = uses_var(factors[0], variables) or any(uses_var(f, variables) for f in factors[1:])
            part = using if moving else rest
            part.terms[term_key] = (factors, coefficient)
        return using, rest

    def in_one(self, variables: Any) -> tuple[Var, int, Linear] | None:
        """``(v, scale, rest)`` if the form is ``scale * v + rest`` with one ``v`` of ``variables``; else None.

        >>> from tir.expr import Var
        >>> i, n = Var("i"), Var("n")
        >>> _, scale, rest = linear((i + n) * 4 - 1).in_one([i])
        >>> scale, rest.build(i.dtype)
        (4, n * 4 - 1)
        """
        using, rest = self.split(variables)
        found = using.coefficients()
        if found is None or len(found) != 1:
            return None
        ((var, scale),) = found.items()
        return var, scale, rest

    def interval(self, ends: Mapping[Var, tuple[int, int] | None]) -> tuple[int, int] | None:
        """The least and the greatest value for variables between their ``ends``; None if a term has none.

        >>> from tir.expr import Var
        >>> i, j = Var("i"), Var("j")
        >>> linear(i * 4 - j + 1).interval({i: (0, 7), j: (0, 2)})
        (-1, 29)
        """
        low = high = self.const
        for factors, coefficient in self.terms.values():
            known = ends.get(factors[0]) if len(factors) == 1 and type(factors[0]) is Var else None
            if known is None:
                return None
            first, last = known if coefficient > 0 else (known[1], known[0])
            low, high = low + coefficient * first, high + coefficient * last
        return low, high

    def fits(self, dtype: DType) -> bool:
        low, high = dtype.min_value, dtype.max_value
        return low <= self.const <= high and all(low <= c <= high for _, c in self.terms.values())

    def build(self, dtype: DType) -> Expr:
        """The expression: terms in order, a positive one first where there is one, the constant last."""
        items = list(self.terms.values())
        if not items:
            return IntImm(self.const, dtype)
        const = self.const
        if items[0][1] < 0:
            first = next((n for n, item in enumerate(items) if item[1] > 0), None)
            if first is not None:
                items.insert(0, items.pop(first))
        total: Expr | None = None
        if items[0][1] < 0 and (const > 0 or items[0][1] == -1):
            total, const = IntImm(const if const > 0 else 0, dtype), min(const, 0)
        for factors, coefficient in items:
            if total is None:
                total = _product(factors, coefficient, dtype)
            elif coefficient < 0 and -coefficient <= dtype.max_value:
                total = Sub(total, _product(factors, -coefficient, dtype))
            else:
                total = Add(total, _product(factors, coefficient, dtype))
        assert total is not None
        if const > 0:
            return Add(total, IntImm(const, dtype))
        if const < 0:
            return Sub(total, IntImm(-const, dtype)) if -const <= dtype.max_value else Add(total, IntImm(const, dtype))
        return total


def _product(factors: tuple[Expr, ...], coefficient: int, dtype: DType) -> Expr:
    out = _in_dtype(factors[0], dtype)
    for factor in factors[1:]:
        out = Mul(out, _in_dtype(factor, dtype))
    return out if coefficient == 1 else Mul(out, IntImm(coefficient, dtype))


def _in_dtype(e: Expr, dtype: DType) -> Expr:
    """``e`` as an operand of ``dtype``: forms mix int32 and int64 atoms, the nodes built from them must not."""
    if e.dtype is dtype:
        return e
    if isinstance(e, Cast) and e.value.dtype is dtype and is_index(e.dtype):
        return e.value
    return cast(dtype, e)


def product_key(factors: tuple[Expr, ...]) -> Hashable:
    if len(factors) == 1:
        return key(factors[0])
    return (Mul, frozenset(Counter(key(f) for f in factors).items()))


def linear(e: Expr, visit: Callable[[Expr], Expr] | None = None, distribute: bool = True) -> Linear:
    """The linear form of an integer expression. ``visit`` simplifies each atom first.

    Products of two sums are multiplied out when ``distribute``; else they are atoms. The caller may change the form.
    """
    if type(e) in _COMPOUND and visit is None and distribute:
        known = _FORMS.get(e)
        if known is None:
            known = _FORMS[e] = Linear()
            _collect(e, 1, None, True, known)
        return known.copy()
    out = Linear()
    if type(e) is Var and visit is None:
        out.terms[id(e)] = ((e,), 1)
        return out
    _collect(e, 1, visit, distribute, out)
    return out


_FORMS: Memo[Linear] = Memo()


def inequality(part: Expr, var: Var) -> tuple[int, Linear] | None:
    """``part`` as ``coefficient * var + rest >= 0``; None when it is no such inequality."""
    if not isinstance(part, (LT, LE, GT, GE)) or not is_index(part.a.dtype):
        return None
    low, high = (part.a, part.b) if isinstance(part, (LT, LE)) else (part.b, part.a)
    form = linear(high).minus(linear(low))
    form.const -= isinstance(part, (LT, GT))
    using, rest = form.split(var)
    coefficient = (using.coefficients() or {}).get(var)
    return None if coefficient is None else (coefficient, rest)


def in_terms_of(e: Any, values: Mapping[Var, Expr]) -> Any:
    """``e`` in terms of variables that have these ``values``, where these are parts of its sums: the inverse of a
    substitution. Of two values that fit, that of more terms is taken.

    >>> from tir.expr import Var
    >>> i, j, v = Var("i"), Var("j"), Var("v")
    >>> in_terms_of(i * 8 + j * 2 + 1 < j, {v: i * 4 + j})
    v * 2 + 1 < j
    """
    forms = sorted(((v, linear(value)) for v, value in values.items()), key=lambda pair: -len(pair[1].terms))
    return _in_terms(e, [pair for pair in forms if pair[1].terms])


def _in_terms(e: Any, values: Sequence[tuple[Var, Linear]]) -> Any:
    def inside(part: Any) -> Any:
        return part if type(part) in LEAVES else part.map_children(lambda c: _in_terms(c, values))

    if not isinstance(e, Expr) or not is_index(e.dtype):
        return inside(e)
    form, told = linear(e, inside), False
    for variable, value in values:
        term, (_, per) = next(iter(value.terms.items()))
        times = form.terms.get(term, ((), 0))[1] // per
        if times and form.contains(value.scaled(times)):
            form = form.replaced(value.terms.keys(), linear(variable).scaled(times))
            form.const -= value.const * times
            told = True
    return form.build(e.dtype) if told else inside(e)


def with_products_named(*roots: N) -> tuple[tuple[N, ...], dict[Var, Expr]]:
    """``roots`` with a variable for each product of variables that are free in them, as of symbolic sizes, but in shapes of buffers; and the
    products, each made of free variables and of products before it. What is proved for all values of the new variables is true of the products.

    >>> from tir.expr import Var
    >>> n, m = Var("n"), Var("m")
    >>> with_products_named((n * n + 15) // 16, m * n * n - n)
    (((product + 15) // 16, product_2 - n), {product: n * n, product_1: m * n, product_2: product_1 * n})
    """
    free = {v for root in roots for v in free_vars(root) if is_index(v.dtype)}
    names: dict[Hashable, Var] = {}
    products: dict[Var, Expr] = {}

    def named(e: Any) -> Var | None:
        if not isinstance(e, Mul) or not is_index(e.dtype) or not {e.a, e.b} <= free:
            return None
        var = names.setdefault(key(e), Var(f"product_{len(names)}" if names else "product", e.dtype))
        products.setdefault(var, e)
        free.add(var)
        return var

    made = tuple(rewrite(root, named, lambda item: not isinstance(item, Buffer)) for root in roots) if free else roots
    return made, products


def uncast(e: Expr) -> Expr:
    """``e`` without a cast between types of indices, as atoms of a :func:`linear` form of either type.

    >>> i = Var("i", "int32")
    >>> linear(Cast("int64", i + 1) * 2, uncast).build(i.dtype)
    i * 2 + 2
    """
    return e.value if isinstance(e, Cast) and is_index(e.dtype) and is_index(e.value.dtype) else e


def _collect(e: Expr, scale: int, visit: Callable[[Expr], Expr] | None, distribute: bool, out: Linear) -> None:
    kind = type(e)
    if kind is IntImm:
        out.const += scale * e.value  # type: ignore[attr-defined]
    elif kind is Var:
        seen = e if visit is None else visit(e)
        if type(seen) is IntImm:
            out.const += scale * seen.value
        else:
            out.add_term((e,), scale, id(e))
    elif kind in _SUMS:
        _collect(e.a, scale, visit, distribute, out)  # type: ignore[attr-defined]
        _collect(e.b, _SUMS[kind] * scale, visit, distribute, out)  # type: ignore[attr-defined]
    elif kind is Mul:
        _collect_product(e, scale, visit, distribute, out)
    else:
        seen = e if visit is None else visit(e)
        if type(seen) in _COLLECTED:
            _collect(seen, scale, None, distribute, out)
        else:
            out.add_term((seen,), scale)


_SUMS: dict[type, int] = {Add: 1, Sub: -1}
_COMPOUND = frozenset((Add, Sub, Mul))
_COLLECTED = _COMPOUND | {IntImm}


def _collect_product(e: Any, scale: int, visit: Callable[[Expr], Expr] | None, distribute: bool, out: Linear) -> None:
    if type(e.b) is IntImm:
        _collect(e.a, scale * e.b.value, visit, distribute, out)
        return
    left, right = linear(e.a, visit, distribute), linear(e.b, visit, distribute)
    few = len(left.terms) + bool(left.const) <= 1 and len(right.terms) + bool(right.const) <= 1
    if distribute or few or left.is_const or right.is_const:
        out.add(left.times(right), scale)
    else:
        atom = Mul(left.build(e.dtype), right.build(e.dtype))
        out.add_term((e if same(atom, e) else atom,), scale, ("product", left.key(), right.key()))
