"""The simplifier: canonical, readable, equal expressions.

Index sums come out as terms in source order with the constant last; divisions and remainders by constants are split
by what is known of the terms; conditions are decided or normalized. Floating arithmetic is never reassociated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

from ..buffer import Buffer
from ..dtype import BOOL
from ..expr import (
    EQ,
    FALSE,
    GE,
    GT,
    LE,
    LT,
    NE,
    TRUE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Comparison,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Select,
    Sub,
    Var,
    arithmetic,
    bit_op,
    cast,
    compare,
    matched,
    trunc_div,
)
from ..op import OPS
from ..visit import is_pure, nodes_of, substitute, walk
from .bounds import bound_of, bound_of_linear, is_exact, value_form
from .comparisons import MIRRORED, OPPOSITE, by_bounds, decide, leaves_one_value, normal_form
from .divide import fits, quotient_form, remainder_form, xor_parts
from .extremes import extreme_form, gathered, operands
from .linear import Linear, is_index, key, linear, same
from .mixed_radix import recombine, size_of

if TYPE_CHECKING:
    from .analyzer import Analyzer


class Simplifier:
    """One simplification under the assumptions of ``ctx``, which caches the conclusions."""

    def __init__(self, ctx: Analyzer):
        self.ctx = ctx
        self.pure: bool | None = None  # whether no part of the whole expression has effects

    def visit(self, e: Any) -> Any:
        kind = type(e)
        if kind in _CONSTANT:
            return e
        if kind is Var:
            if e.dtype is BOOL:
                known = self.ctx.truths.get(id(e))
                return e if known is None else TRUE if known else FALSE
            lo, hi = self.ctx.var_bound(e)
            return IntImm(lo, e.dtype) if lo is not None and lo == hi and e.dtype.is_int else e
        memo = self.ctx.simplify_memo
        found = memo.get(e)
        if found is None:
            found = self._visit(e)
            # others, and all of floats, are rebuilt where a part has changed
            if found is not e and kind in _METHODS and not e.dtype.is_float and same(found, e):
                found = e
            memo[e] = found
            if found is not e:
                memo[found] = found
        return found

    def _visit(self, e: Any) -> Any:
        if self.pure is None:
            self.pure = is_pure(e)
        if not self.pure and not is_pure(e):
            return self._with_effects(e)
        if isinstance(e, Expr) and self.ctx.truths and e.dtype.is_bool:
            known = self.ctx.truths.get(key(e))
            if known is not None:
                return TRUE if known else FALSE
        method = _METHODS.get(type(e))
        if method is not None:
            return method(self, e)
        return e.map_children(self.visit)

    def _with_effects(self, e: Any) -> Any:
        """``e`` with its parts simplified: another rule could drop a call with effects, or make it twice."""
        if isinstance(e, Let):
            return self.let(e)
        return self.call(e) if isinstance(e, Call) and e.op == "if_then_else" else e.map_children(self.visit)

    # ------------------------------------------------------------ arithmetic

    def _built(self, form: Linear, e: Expr) -> Expr:
        """``form`` as an expression; ``e`` with simplified operands where a constant would not fit the type."""
        if is_exact(self.ctx, e):
            form = gathered(self.ctx, recombine(self.ctx, form, e.dtype), e.dtype)
        return form.build(e.dtype) if fits(form, e.dtype) else e.map_children(self.visit)

    def sum(self, e: Any) -> Expr:
        if not is_index(e.dtype):
            return self.other_arithmetic(e)
        form = linear(e, self.visit, distribute=False)
        if form.is_const:
            return self._built(form, e)
        if not self.ctx.facts and form.is_of_variables and form.fits(e.dtype):
            known, at = self.ctx.sums, (*form.items(), form.const, e.dtype)
            if at not in known:
                made = form.build(e.dtype)
                if form.const and type(made) in (Add, Sub) and type(made.b) is IntImm:
                    # sums that differ in the number have the rest in common
                    made = made.updated(a=known.setdefault((*form.items(), 0, e.dtype), made.a))
                known[at] = made
            return known[at]  # nothing cancels, and it varies: variables of one value are numbers in it
        products = any(len(f) > 1 or isinstance(f[0], Mul) for f, _ in form.items())  # pyright: ignore[reportGeneralTypeIssues]
        if products and is_exact(self.ctx, e):
            # multiply products out where that cancels something
            wide = recombine(self.ctx, linear(form.build(e.dtype)), e.dtype) if form.fits(e.dtype) else form
            if (wide.is_const and not form.is_const) or size_of(wide) < size_of(form):
                form = wide
        lo, hi = bound_of_linear(self.ctx, form)
        if lo is not None and lo == hi:
            return self._built(Linear(lo), e)
        return self._built(form, e)

    def other_arithmetic(self, e: Any) -> Expr:
        """Arithmetic that is not index arithmetic: operands simplified, constants folded, vectors kept as ramps."""
        a, b = self.visit(e.a), self.visit(e.b)
        if e.dtype.lanes > 1 and is_index(e.dtype.element):
            vector = self._vector(type(e), a, b)
            if vector is not None:
                return vector
        if e.dtype.is_int and isinstance(a, IntImm) and isinstance(b, IntImm):
            folded = _fold_wrapping(type(e), a, b)
            if folded is not None:
                return folded
        if type(e) is Sub and e.dtype.is_int and e.dtype.lanes == 1 and key(a) == key(b):
            return IntImm(0, e.dtype)
        return e if a is e.a and b is e.b else type(e)(a, b)

    def _vector(self, kind: Any, a: Expr, b: Expr) -> Expr | None:
        lanes = a.dtype.lanes
        if isinstance(a, Broadcast) and isinstance(b, Broadcast) and a.lanes == b.lanes:
            if kind in (FloorDiv, FloorMod, Div, Mod) and isinstance(b.value, IntImm) and b.value.value == 0:
                return None
            return Broadcast(self.visit(arithmetic(kind, a.value, b.value)), a.lanes)
        ra, rb = _as_ramp(a, lanes), _as_ramp(b, lanes)
        if ra is None or rb is None:
            return None
        if kind in (Add, Sub):
            # (b1 + k*s1) + (b2 + k*s2) = (b1 + b2) + k*(s1 + s2)
            base, stride = self.visit(kind(ra[0], rb[0])), self.visit(kind(ra[1], rb[1]))
        elif kind is Mul and isinstance(b, Broadcast):
            base, stride = self.visit(Mul(ra[0], rb[0])), self.visit(Mul(ra[1], rb[0]))
        elif kind is Mul and isinstance(a, Broadcast):
            base, stride = self.visit(Mul(rb[0], ra[0])), self.visit(Mul(rb[1], ra[0]))
        else:
            return None
        if isinstance(stride, IntImm) and stride.value == 0:
            return Broadcast(base, lanes)
        return Ramp(base, stride, lanes)

    def floordiv(self, e: Any) -> Expr:
        return self._divided(e, quotient_form)

    def floormod(self, e: Any) -> Expr:
        return self._divided(e, remainder_form)

    def _divided(self, e: Any, form_of: Callable[..., Linear]) -> Expr:
        if not is_index(e.dtype):
            return self.other_arithmetic(e)
        a, b = self.visit(e.a), self.visit(e.b)
        made = e if a is e.a and b is e.b else type(e)(a, b)
        if not is_exact(self.ctx, made):
            lo, hi = bound_of(self.ctx, made)
            return IntImm(lo, e.dtype) if lo is not None and lo == hi else made
        return self._built(form_of(self.ctx, linear(a), b, e.dtype), e)

    def truncated(self, e: Any) -> Expr:
        """Truncating division and remainder are the floor ones when nothing is negative."""
        if not is_index(e.dtype):
            return self.other_arithmetic(e)
        a, b = self.visit(e.a), self.visit(e.b)
        if isinstance(a, IntImm) and isinstance(b, IntImm) and b.value:
            q = trunc_div(a.value, b.value)
            value = q if isinstance(e, Div) else a.value - b.value * q
            return IntImm(value, e.dtype) if Linear(value).fits(e.dtype) else type(e)(a, b)
        (alo, _), (blo, _) = bound_of(self.ctx, a), bound_of(self.ctx, b)
        if alo is not None and alo >= 0 and blo is not None and blo > 0 and is_exact(self.ctx, e):
            form_of = quotient_form if isinstance(e, Div) else remainder_form
            return self._built(form_of(self.ctx, linear(a), b, e.dtype), e)
        return e if a is e.a and b is e.b else type(e)(a, b)

    def extreme(self, e: Any) -> Expr:
        """min and max: operands bounded by another one are dropped."""
        a, b = self.visit(e.a), self.visit(e.b)
        kind: Any = type(e)
        if is_index(e.dtype) and is_exact(self.ctx, a) and is_exact(self.ctx, b):
            forms = [linear(x) for side in (a, b) for x in operands(side, kind)]
            return self._built(extreme_form(self.ctx, kind, forms, e.dtype), e)
        if not e.dtype.is_int or e.dtype.lanes > 1:
            return e if a is e.a and b is e.b else kind(a, b)
        kept: list[Expr] = []
        for item in (*operands(a, kind), *operands(b, kind)):
            if not any(self._bounds(kind, k, item) for k in kept):
                kept = [k for k in kept if not self._bounds(kind, item, k)]
                kept.append(item)
        kept.sort(key=lambda x: isinstance(x, IntImm))  # constants last
        return reduce(kind, kept)

    def _bounds(self, kind: Any, a: Expr, b: Expr) -> bool:
        """Whether ``a`` stands for both in kind(a, b), for types that wrap around."""
        (low, high) = (a, b) if kind is Min else (b, a)
        most, least = bound_of(self.ctx, low)[1], bound_of(self.ctx, high)[0]
        return key(a) == key(b) or (most is not None and least is not None and most <= least)

    # ------------------------------------------------------------ conditions

    def comparison(self, e: Any) -> Expr:
        a, b = self.visit(e.a), self.visit(e.b)
        changed = e if a is e.a and b is e.b else type(e)(a, b)
        if not is_index(a.dtype):
            if isinstance(a, (IntImm, FloatImm)) and isinstance(b, (IntImm, FloatImm)):
                return compare(type(e), a, b)
            if not (a.dtype.is_int or a.dtype.is_bool):
                return changed
            if key(a) == key(b):
                known = TRUE if type(e) in (EQ, LE, GE) else FALSE
            else:
                known = by_bounds(type(e), bound_of(self.ctx, a), bound_of(self.ctx, b))
            return changed if known is None else known if e.dtype.lanes == 1 else Broadcast(known, e.dtype.lanes)
        left, right = value_form(self.ctx, a), value_form(self.ctx, b)
        diff, exact = left.minus(right), is_exact(self.ctx, a) and is_exact(self.ctx, b)
        if not diff.is_const and exact:
            diff = recombine(self.ctx, diff, a.dtype)
        decided = decide(self.ctx, type(e), diff)
        if decided is not None:
            return decided
        if not exact:
            return changed
        if leaves_one_value(self.ctx, type(e), diff):
            # a < b is a == b - 1
            value = right.copy()
            value.const += {LT: -1, GT: 1}.get(type(e), 0)
            if value.fits(a.dtype):
                return self.visit(EQ(a, value.build(a.dtype)))
        return self._without_functions(normal_form(self.ctx, changed, diff))

    def _without_functions(self, e: Any) -> Expr:
        """A comparison in the argument of a quotient, or in that of two of which the other cannot matter."""
        kind, a, b = (type(e), e.a, e.b) if isinstance(e.a, (Min, Max, FloorDiv)) else (MIRRORED[type(e)], e.b, e.a)
        if kind in (EQ, NE):
            return e
        if isinstance(a, (Min, Max)):
            # min(x, y) < b is x < b or y < b; of the greatest, or above b, it is both
            either = isinstance(a, Min) == (kind in (LT, LE))
            for x, y in ((a.a, a.b), (a.b, a.a)):
                first = self.visit(kind(x, b))
                if isinstance(first, IntImm):
                    return first if bool(first.value) == either else self.visit(kind(y, b))
        elif isinstance(a, FloorDiv) and isinstance(a.b, IntImm) and a.b.value > 0 and isinstance(b, IntImm):
            # x // c < k is x < c * k
            end = a.b.value * (b.value + (kind in (LE, GT)))
            if b.dtype.min_value <= end <= b.dtype.max_value:
                return self.visit((LT if kind in (LT, LE) else GE)(a.a, IntImm(end, b.dtype)))
        return e

    def _undecided(self, kind: Any, parts: list[Expr]) -> list[Expr] | None:
        """The ``parts`` of a conjunction or a disjunction, each simplified where those before leave that open; None if one decides it."""
        left: list[Expr] = []  # most parts are decided without what those before say
        for part in parts:
            made = self.visit(part)
            if not isinstance(made, IntImm):
                left.append(part)
            elif bool(made.value) is (kind is Or):
                return None
        with self.ctx.scope():
            kept: list[Expr] = []
            told, seen = 0, set[Any]()
            for part in left:
                for before in kept[told:]:  # the later parts matter only where these hold, or fail
                    self.ctx.assume(before if kind is And else Not(before))
                told = len(kept)
                for item in operands(self.visit(part), kind):
                    if isinstance(item, IntImm):
                        if bool(item.value) is (kind is Or):
                            return None
                    elif key(item) not in seen:
                        seen.add(key(item))
                        kept.append(item)
        return kept

    def _without_implied(self, parts: list[Expr], neutral: Expr) -> list[Expr]:
        """``parts`` without those that a later one on the same terms makes ``neutral``.

        In a conjunction x < 10 goes where x < 5 follows (x < 5 implies x < 10), in a disjunction x < 5 where x < 10
        follows. What comes after runs where the part that goes would have stopped it, so none of it may fail.
        """
        terms = [_terms(part) for part in parts]
        kept: list[Expr] = []
        for k, part in enumerate(parts):
            implied = False
            for later in range(k + 1, len(parts)) if terms[k] else ():
                if not _total(parts[later]):
                    break
                if terms[later] == terms[k]:
                    fact = parts[later] if neutral is TRUE else Not(parts[later])
                    with self.ctx.constraint(fact):
                        implied = self.visit(part) is neutral
                if implied:
                    break
            if not implied:
                kept.append(part)
        return kept

    def logical(self, e: Any) -> Expr:
        if e.dtype is not BOOL:
            return e.map_children(self.visit)
        if isinstance(e, And):
            kept = self._undecided(And, operands(e, And))
            return FALSE if kept is None else _joined(And, self._without_implied(kept, TRUE), TRUE)
        kept = self._undecided(Or, self._without_implied(operands(e, Or), FALSE))
        return TRUE if kept is None else _joined(Or, kept, FALSE)

    def negation(self, e: Any) -> Expr:
        a = self.visit(e.a)
        if isinstance(a, IntImm):
            return IntImm(1 - a.value, BOOL)
        if isinstance(a, Not):
            return a.a
        if type(a) in OPPOSITE and not a.a.dtype.is_float:
            return self.visit(OPPOSITE[type(a)](a.a, a.b))
        return e if a is e.a else Not(a)

    # ------------------------------------------------------------ the rest

    def select(self, e: Any) -> Expr:
        # both sides run whatever the condition: no side may be simplified under it
        condition = self.visit(e.condition)
        of_all = condition.value if isinstance(condition, Broadcast) else condition
        if isinstance(of_all, IntImm):
            return self.visit(e.true_value if of_all.value else e.false_value)
        yes, no = self.visit(e.true_value), self.visit(e.false_value)
        if key(yes) == key(no) and is_pure(yes) and is_pure(condition):
            return yes
        if condition is e.condition and yes is e.true_value and no is e.false_value:
            return e
        return Select(condition, *matched(yes, no, "Select"))

    def call(self, e: Any) -> Expr:
        if e.op == "if_then_else":
            condition = self.visit(e.args[0])
            if isinstance(condition, IntImm):
                return self.visit(e.args[1] if condition.value else e.args[2])
            yes, no = self._where(condition, e.args[1]), self._where(Not(condition), e.args[2])
            if key(yes) == key(no) and is_pure(yes) and is_pure(condition):
                return yes
            new = (condition, *matched(yes, no, e.op))
            return e if all(x is y for x, y in zip(new, e.args)) else e.replace(args=new, dtype=new[1].dtype)
        made = e.map_children(self.visit)
        if _operands_differ(made):
            made = bit_op(e.op, *made.args)
            if not isinstance(made, Call):
                return made
        if e.op == "likely" and isinstance(made.args[0], IntImm):
            return made.args[0]
        if e.op == "reinterpret" and made.args[0].dtype is e.dtype:
            return made.args[0]
        if e.op == "bitwise_xor" and is_index(made.dtype):
            return self.exclusive_or(made)
        if made.args and all(isinstance(a, (IntImm, FloatImm)) for a in made.args):
            return _folded(made)
        return made

    def _where(self, condition: Expr, e: Expr) -> Expr:
        """``e`` where a condition holds, which says nothing of a number."""
        if type(e.value if isinstance(e, Broadcast) else e) in _CONSTANT:
            return e
        with self.ctx.constraint(condition):
            return self.visit(e)

    def exclusive_or(self, e: Any) -> Expr:
        a, b = e.args
        if isinstance(a, IntImm) and isinstance(b, IntImm):
            return IntImm(a.value ^ b.value, e.dtype)
        for x, other in ((a, b), (b, a)):
            if isinstance(other, IntImm) and other.value == 0:
                return x
        if same(a, b):
            return IntImm(0, e.dtype)
        parts = xor_parts(self.ctx, linear(a), linear(b)) if is_exact(self.ctx, e) else None
        if parts is None:
            return e
        # (g*t + u) ^ (g*v + w) = g * (t ^ v) + (u ^ w) where u and w are below g, a power of two
        g, high, low = parts
        ends = [self.exclusive_or(e.replace(args=tuple(p.build(e.dtype) for p in pair))) for pair in (high, low)]
        return self._built(linear(ends[0]).scaled(g).add(linear(ends[1])), e)

    def cast(self, e: Any) -> Expr:
        value = self.visit(e.value)
        if isinstance(value, FloatImm) and is_index(e.dtype) and abs(value.value) < 2 ** (e.dtype.bits - 1):
            return IntImm(int(value.value), e.dtype)  # towards zero, as at run time
        made = cast(e.dtype, value)
        return e if isinstance(made, Cast) and value is e.value else made

    def let(self, e: Any) -> Expr:
        value = self.visit(e.value)
        if isinstance(value, (IntImm, FloatImm, Var)):
            return self.visit(substitute(e.body, {e.var: value}))
        with self.ctx.scope():
            if e.var.dtype.is_int or e.var.dtype is BOOL:
                self.ctx.bind(e.var, value)
            body = self.visit(e.body)
        if is_pure(value) and not any(n is e.var for n in nodes_of(body)):
            return body
        return e if value is e.value and body is e.body else Let(e.var, value, body)


_CONSTANT = frozenset((IntImm, FloatImm, Buffer))
_METHODS: dict[type, Callable[[Simplifier, Any], Any]] = {
    Add: Simplifier.sum, Sub: Simplifier.sum, Mul: Simplifier.sum,
    FloorDiv: Simplifier.floordiv, FloorMod: Simplifier.floormod,
    Div: Simplifier.truncated, Mod: Simplifier.truncated,
    Min: Simplifier.extreme, Max: Simplifier.extreme,
    EQ: Simplifier.comparison, NE: Simplifier.comparison, LT: Simplifier.comparison,
    LE: Simplifier.comparison, GT: Simplifier.comparison, GE: Simplifier.comparison,
    And: Simplifier.logical, Or: Simplifier.logical, Not: Simplifier.negation,
    Select: Simplifier.select, Call: Simplifier.call, Cast: Simplifier.cast, Let: Simplifier.let,
}  # fmt: skip


def _joined(kind: Any, parts: list[Expr], empty: Expr) -> Expr:
    if not parts:
        return empty
    out = parts[0]
    for part in parts[1:]:
        out = kind(out, part)
    return out


def _terms(e: Expr) -> frozenset[Any]:
    """Which terms a comparison of indices is about; empty for anything else."""
    if not isinstance(e, Comparison) or not is_index(e.a.dtype):
        return frozenset()
    return frozenset(linear(e.a).minus(linear(e.b)).terms)


def _total(e: Expr) -> bool:
    """Whether ``e`` has a value whatever its variables are: it reads no memory, calls nothing, divides by constants."""
    return not any(
        isinstance(n, (BufferLoad, Call))
        or (isinstance(n, (Div, Mod, FloorDiv, FloorMod)) and not (isinstance(n.b, IntImm) and n.b.value))
        for n in walk(e)
    )


def _operands_differ(e: Call) -> bool:
    """Whether ``e`` is a bitwise operator on integers of two types: a variable was replaced by a wider one."""
    op = OPS.get(e.op)
    return op is not None and op.takes == "integers" and op.arity == 2 and e.args[0].dtype is not e.args[1].dtype


def _folded(e: Call) -> Expr:
    """The value of a pure operator on constants, as the executor computes it; ``e`` where it is not finite."""
    op = OPS.get(e.op)
    if op is None or op.numpy is None or op.effect != "pure" or not {str(x.dtype) for x in (e, *e.args)} <= _FOLDED:
        return e
    if e.op.startswith("shift") and not 0 <= e.args[1].value < e.dtype.bits:  # type: ignore[attr-defined]
        return e
    import numpy as np

    with np.errstate(all="ignore"):
        value = op.numpy(*(getattr(np, str(a.dtype))(a.value) for a in e.args))  # type: ignore[attr-defined]
    if e.dtype.is_int:
        return IntImm(int(value), e.dtype)
    return FloatImm(float(value), e.dtype) if np.isfinite(value) else e


_FOLDED = frozenset(("float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))))


def _as_ramp(e: Expr, lanes: int) -> tuple[Expr, Expr] | None:
    """(base, stride) of a ramp or broadcast of scalars."""
    if isinstance(e, Ramp) and e.lanes == lanes:
        return e.base, e.stride
    if isinstance(e, Broadcast) and e.lanes == lanes:
        return e.value, IntImm(0, e.value.dtype)
    return None


def _fold_wrapping(kind: Any, a: IntImm, b: IntImm) -> Expr | None:
    """Constants of unsigned and narrow types, where the result fits."""
    if kind in (FloorDiv, FloorMod, Div, Mod) and b.value == 0:
        return None
    made = arithmetic(kind, a, b)
    return made if isinstance(made, IntImm) else None
