"""Interval analysis: inclusive integer bounds of an expression, None where there is no bound on that side."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

from ..dtype import DType
from ..expr import (
    Add,
    Broadcast,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Ramp,
    Select,
    Sub,
    Var,
    trunc_div,
)
from ..visit import is_pure
from .linear import Linear, is_data, is_index, key, linear

if TYPE_CHECKING:
    from .analyzer import Analyzer

Interval = tuple[int | None, int | None]
UNBOUNDED: Interval = (None, None)


def meet(a: Interval, b: Interval) -> Interval:
    """The intersection of two intervals."""
    lo = a[0] if b[0] is None else b[0] if a[0] is None else max(a[0], b[0])
    hi = a[1] if b[1] is None else b[1] if a[1] is None else min(a[1], b[1])
    return lo, hi


def join(a: Interval, b: Interval) -> Interval:
    """The smallest interval containing both."""
    return (
        None if a[0] is None or b[0] is None else min(a[0], b[0]),
        None if a[1] is None or b[1] is None else max(a[1], b[1]),
    )


def plus(a: Interval, b: Interval) -> Interval:
    return (
        None if a[0] is None or b[0] is None else a[0] + b[0],
        None if a[1] is None or b[1] is None else a[1] + b[1],
    )


def scale(a: Interval, by: int) -> Interval:
    lo = None if a[0] is None else a[0] * by
    hi = None if a[1] is None else a[1] * by
    return (lo, hi) if by >= 0 else (hi, lo)


def times(a: Interval, b: Interval) -> Interval:
    if b[0] is not None and b[0] == b[1]:
        return (0, 0) if b[0] == 0 else scale(a, b[0])
    if a[0] is not None and a[0] == a[1]:
        return (0, 0) if a[0] == 0 else scale(b, a[0])
    corners = [x * y for x in a if x is not None for y in b if y is not None]
    if len(corners) == 4:
        return min(corners), max(corners)
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], None
    return UNBOUNDED


def _is_empty(a: Interval) -> bool:
    """Whether no value is in ``a``: the code that it is about never runs."""
    return a[0] is not None and a[1] is not None and a[1] < a[0]


def _by_sign(positive: Callable[[Interval, Interval], Interval], negative: Callable[[Interval, Interval], Interval]):
    """The rule for any divisor from that for a positive one, and for the magnitude of a negative one: zero is no divisor."""

    def rule(a: Interval, b: Interval) -> Interval:
        found: list[Interval] = []
        for side, of in ((b, positive), (scale(b, -1), negative)):
            magnitudes = meet(side, (1, None))
            if not _is_empty(side) and not _is_empty(magnitudes):
                found.append(of(a, magnitudes))
        return reduce(join, found) if found else UNBOUNDED

    return rule


def _positive_div(a: Interval, b: Any) -> Interval:
    # y >= 1: x // y is monotone in x; in y it moves toward 0 (x >= 0) or toward -1 (x < 0)
    lo: int | None = None
    hi: int | None = None
    if a[0] is not None:
        lo = a[0] // b[0] if a[0] < 0 else (0 if b[1] is None else a[0] // b[1])
    if a[1] is not None:
        hi = a[1] // b[0] if a[1] >= 0 else (-1 if b[1] is None else a[1] // b[1])
    return lo, hi


def _positive_mod(a: Interval, b: Any) -> Interval:
    if b[0] == b[1] and None not in a and a[0] // b[0] == a[1] // b[0]:  # type: ignore[operator]
        return a[0] % b[0], a[1] % b[0]  # type: ignore[operator]
    hi = None if b[1] is None else b[1] - 1
    if a[0] is not None and a[0] >= 0 and a[1] is not None:
        if a[1] < b[0]:
            return a
        hi = a[1] if hi is None else min(hi, a[1])
    return 0, hi


def _positive_trunc_div(a: Interval, b: Any) -> Interval:
    lo: int | None = None
    hi: int | None = None
    if a[0] is not None:
        lo = trunc_div(a[0], b[0]) if a[0] < 0 else (0 if b[1] is None else a[0] // b[1])
    if a[1] is not None:
        hi = a[1] // b[0] if a[1] >= 0 else (0 if b[1] is None else trunc_div(a[1], b[1]))
    return lo, hi


def _positive_trunc_mod(a: Interval, b: Any) -> Interval:
    most = None if b[1] is None else b[1] - 1
    lo = 0 if a[0] is not None and a[0] >= 0 else (None if most is None else -most)
    hi = 0 if a[1] is not None and a[1] <= 0 else most
    if a[0] is not None and lo is not None and a[0] <= 0:
        lo = max(lo, a[0])
    if a[1] is not None and a[1] >= 0:
        hi = a[1] if hi is None else min(hi, a[1])
    return lo, hi


# x // -y = -x // y, x % -y = -(-x % y); a truncated quotient changes its sign, a truncated remainder does not
floor_div = _by_sign(_positive_div, lambda a, b: _positive_div(scale(a, -1), b))
floor_mod = _by_sign(_positive_mod, lambda a, b: scale(_positive_mod(scale(a, -1), b), -1))
trunc_division = _by_sign(_positive_trunc_div, lambda a, b: scale(_positive_trunc_div(a, b), -1))
trunc_modulo = _by_sign(_positive_trunc_mod, _positive_trunc_mod)


def minimum(a: Interval, b: Interval) -> Interval:
    lo = None if a[0] is None or b[0] is None else min(a[0], b[0])
    hi = b[1] if a[1] is None else a[1] if b[1] is None else min(a[1], b[1])
    return lo, hi


def maximum(a: Interval, b: Interval) -> Interval:
    lo, hi = minimum(scale(a, -1), scale(b, -1))
    return scale((lo, hi), -1)


_BINARY: dict[Any, Any] = {
    FloorDiv: floor_div, FloorMod: floor_mod, Div: trunc_division, Mod: trunc_modulo, Min: minimum, Max: maximum,
}  # fmt: skip


def is_nonnegative(ctx: Analyzer, e: Expr) -> bool:
    """Whether ``e``, or every lane of it, is known to be at least zero."""
    low, _ = bound_of(ctx, e)
    return low is not None and low >= 0


def bound_of_linear(ctx: Analyzer, form: Linear) -> Interval:
    """Bounds of a linear form: sum of the terms' bounds, sharpened by a known fact about the same terms."""
    total: Interval = (0, 0)
    for factors, coefficient in form.terms.values():
        part = bound_of(ctx, factors[0])
        for factor in factors[1:]:
            part = times(part, bound_of(ctx, factor))
        total = plus(total, scale(part, coefficient))
        if total == UNBOUNDED:
            break
    fact = ctx.fact_bound(form)
    if fact is not None:
        total = meet(total, fact)
    return plus(total, (form.const, form.const))


def bound_of(ctx: Analyzer, e: Expr) -> Interval:
    """Inclusive bounds of an integer or bool expression (of all lanes, for vectors)."""
    kind = type(e)
    if kind is IntImm:
        return e.value, e.value  # type: ignore[attr-defined]
    if kind is Var:
        return ctx.var_bound(e)  # type: ignore[arg-type]
    memo = ctx.bound_memo
    found = memo.get(e)
    if found is None:
        found = memo[e] = _bound(ctx, e)
    return found


def _bound(ctx: Analyzer, e: Expr) -> Interval:
    dtype = e.dtype
    kind = type(e)
    result = UNBOUNDED
    if kind in _GROWING:
        exact = _exact_bound(ctx, e)
        result = UNBOUNDED if _leaves_type(ctx, e, exact) else exact
    elif kind in _BINARY and (dtype.is_int or dtype.is_bool):
        # the least integer divided by -1 wraps around
        result = _in_type(_BINARY[kind](bound_of(ctx, e.a), bound_of(ctx, e.b)), dtype)  # type: ignore[attr-defined]
    elif isinstance(e, Select):
        result = join(bound_of(ctx, e.true_value), bound_of(ctx, e.false_value))
    elif isinstance(e, Cast):
        result = _cast_bound(ctx, e)
    elif isinstance(e, Let):
        result = bound_of(ctx, e.body) if ctx.knows(e.var) else _let_bound(ctx, e)
    elif isinstance(e, Broadcast):
        result = bound_of(ctx, e.value)
    elif isinstance(e, Call):
        result = _call_bound(ctx, e)
    if ctx.atom_bounds:
        known = ctx.atom_bounds.get(key(e))
        if known is not None:
            result = meet(result, known)
    return meet(result, dtype_bound(e))


def dtype_bound(e: Expr) -> Interval:
    """The bounds implied by the type: all of a narrow integer, the sign of a wide unsigned one; none for int32,
    int64."""
    dtype = e.dtype
    if dtype.is_bool:
        return 0, 1
    if dtype.code == "uint":
        return 0, dtype.max_value if dtype.bits < 32 else None  # type: ignore[return-value]
    if dtype.code == "int" and dtype.bits < 32:
        return dtype.min_value, dtype.max_value  # type: ignore[return-value]
    return UNBOUNDED


def within_type(found: Interval, dtype: DType) -> Interval:
    """The known ends of an index, which does not wrap around, as its type has them: squares of squares grow without end."""
    low, high = (None if end is None else max(dtype.min_value, min(end, dtype.max_value)) for end in found)
    return low, high  # type: ignore[return-value]


_GROWING = frozenset((Add, Sub, Mul, Ramp))
_DIVISIONS = frozenset((FloorDiv, FloorMod, Div, Mod))


def _exact_bound(ctx: Analyzer, e: Any) -> Interval:
    """The bounds of a sum, difference, product or ramp of unbounded integers; two calls with effects do not cancel."""
    if is_index(e.dtype) and is_pure(e):
        return bound_of_linear(ctx, linear(e))
    if type(e) is Ramp:
        return plus(bound_of(ctx, e.base), join((0, 0), scale(bound_of(ctx, e.stride), e.lanes - 1)))
    a, b = bound_of(ctx, e.a), bound_of(ctx, e.b)
    return plus(a, b) if type(e) is Add else plus(a, scale(b, -1)) if type(e) is Sub else times(a, b)


def wraps(ctx: Analyzer, e: Expr) -> bool:
    """Whether ``e`` is a sum, difference, product or ramp that may differ from that of unbounded integers: its type is narrow
    or unsigned, or it is computed from data, and it is not known to fit. Index arithmetic fits, unless both of its ends
    are known and one does not."""
    return type(e) in _GROWING and _leaves_type(ctx, e, _exact_bound(ctx, e))


def _leaves_type(ctx: Analyzer, e: Expr, exact: Interval) -> bool:
    if None in exact:
        return not is_index(e.dtype.element) or is_data(e, ctx.data)
    return _in_type(exact, e.dtype) != exact


def value_form(ctx: Analyzer, e: Expr) -> Linear:
    """The linear form of the value of ``e``: a sum of data that may wrap around is a term of its own."""
    if type(e) in _GROWING and is_data(e, ctx.data) and wraps(ctx, e):
        form = Linear()
        form.add_term((e,), 1)
        return form
    return linear(e)


def is_exact(ctx: Analyzer, e: Expr) -> bool:
    """Whether ``e`` may be computed in unbounded integers, in any order: it is index arithmetic, or the data in it has known
    bounds, and none of its sums and products is known to wrap around."""
    if not is_data(e, ctx.data):
        return True
    if type(e) in _GROWING or type(e) in _DIVISIONS:
        return is_index(e.dtype) and not wraps(ctx, e) and is_exact(ctx, e.a) and is_exact(ctx, e.b)  # type: ignore[attr-defined]
    return None not in bound_of(ctx, e)


def _in_type(exact: Interval, dtype: DType) -> Interval:
    """``exact`` if no end known is outside of the type, else no bounds."""
    fits = all(end is None or dtype.min_value <= end <= dtype.max_value for end in exact)
    return exact if fits or not dtype.is_int else UNBOUNDED


def _cast_bound(ctx: Analyzer, e: Cast) -> Interval:
    source, target = e.value.dtype, e.dtype
    if not (source.is_int or source.is_bool) or not target.is_int:
        return UNBOUNDED
    inner = bound_of(ctx, e.value)
    if target.code == "int" and target.bits >= max(32, source.bits) and source.code != "uint":
        return inner
    if source.code == "uint" and inner[1] is None:
        inner = (inner[0], int(source.max_value))
    return UNBOUNDED if None in inner else _in_type(inner, target)


def _let_bound(ctx: Analyzer, e: Let) -> Interval:
    if not e.value.dtype.is_int:
        return bound_of(ctx, e.body)
    with ctx.scope():
        ctx.bind(e.var, e.value)
        return bound_of(ctx, e.body)


def _call_bound(ctx: Analyzer, e: Call) -> Interval:
    if not e.dtype.is_int:
        return UNBOUNDED
    args = e.args
    if e.op == "if_then_else":
        return join(bound_of(ctx, args[1]), bound_of(ctx, args[2]))
    if e.op == "likely":
        return bound_of(ctx, args[0])
    if e.op == "abs":
        return _abs_bound(ctx, args[0])
    if e.op in ("clz", "popcount"):
        return 0, args[0].dtype.bits
    if e.op == "bitwise_not":
        ends = int(e.dtype.min_value + e.dtype.max_value)
        return plus((ends, ends), scale(bound_of(ctx, args[0]), -1))
    if e.op == "bitwise_and":
        # the result has no bit that a nonnegative operand lacks
        tops = [hi for lo, hi in (bound_of(ctx, a) for a in args) if lo is not None and lo >= 0]
        if tops:
            known = [t for t in tops if t is not None]
            return 0, min(known) if known else None
        return UNBOUNDED
    if e.op in ("bitwise_or", "bitwise_xor"):
        ends = [bound_of(ctx, a) for a in args]
        if all(lo is not None and lo >= 0 and hi is not None for lo, hi in ends):
            return 0, (1 << max(hi for _, hi in ends).bit_length()) - 1  # type: ignore[type-var,union-attr]
        return UNBOUNDED
    if e.op in ("shift_left", "shift_right"):
        a, by = bound_of(ctx, args[0]), bound_of(ctx, args[1])
        if None in by or min(by) < 0 or by[1] >= e.dtype.bits:  # type: ignore[operator]
            return UNBOUNDED
        powers: Interval = (1 << by[0], 1 << by[1])  # type: ignore[operator]
        if e.op == "shift_right":
            return floor_div(a, powers)
        shifted = times(a, powers)
        return UNBOUNDED if None in shifted else _in_type(shifted, e.dtype)
    return UNBOUNDED


def _abs_bound(ctx: Analyzer, e: Expr) -> Interval:
    """The absolute value of the least integer is the least integer again."""
    low, high = bound_of(ctx, e)
    if low is None and is_data(e, ctx.data) or low == e.dtype.min_value and e.dtype.code == "int":
        return UNBOUNDED
    return meet((0, None), maximum((low, high), scale((low, high), -1)))
