"""Expressions other than loads and calls."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tir.analysis.evaluation import Certain
from tir.arith.linear import key
from tir.dtype import DType
from tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
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
    Shuffle,
    StringImm,
    Sub,
    Var,
)
from tir.interp.numbers import encode
from tir.stmt import BufferStore, LetStmt
from tir.visit import walk

from .convert import F32
from .generator import INT_OPS, Generator, expr_rule
from .invariants import divisor_of, is_runtime_division
from .tables import of_four_bits
from .types import element_type, emulated, float_constant, splat, value_type, vector


@expr_rule(Var)
def _var(g: Generator, e: Var) -> str:
    value = g.env.get(e)
    if value is None:
        raise g.error(f"variable `{e.name}` ({e.dtype}) is undefined")
    return value


@expr_rule(IntImm)
def _int(g: Generator, e: IntImm) -> str:
    if e.dtype.is_bool:
        return "true" if e.value else "false"
    return str(e.value)


@expr_rule(FloatImm)
def _float(g: Generator, e: FloatImm) -> str:
    if emulated(e.dtype):
        return str(encode(e.value, e.dtype))
    return float_constant(e.value, e.dtype)


@expr_rule(StringImm)
def _string(g: Generator, e: StringImm) -> str:
    return g.out.module.constant(e.value.encode() + b"\0", 1, "string")


FLOAT_OPS = {Add: "fadd", Sub: "fsub", Mul: "fmul", Div: "fdiv", Mod: "frem"}


@expr_rule(Add, Sub, Mul)
def _arithmetic(g: Generator, e: Any) -> str:
    if (found := of_four_bits(g, e)) is not None:
        return found
    a, b = g.expr(e.a), g.expr(e.b)
    if e.dtype.is_float:
        return float_op(g, FLOAT_OPS[type(e)], a, b, e.dtype)
    op, operands = INT_OPS[type(e)], f"{value_type(e.dtype)} {a}, {b}"
    return g.out.value(f"{op} {g.no_wrap(e, op + operands)}{operands}")


def float_op(g: Generator, op: str, a: str, b: str, dtype: DType) -> str:
    if emulated(dtype):
        wide = F32.with_lanes(dtype.lanes)
        result = float_op(g, op, g.convert(a, dtype, wide), g.convert(b, dtype, wide), wide)
        return g.convert(result, wide, dtype)
    return g.out.value(f"{op} {g.flags}{value_type(dtype)} {a}, {b}")


def _divisor(g: Generator, e: Any) -> tuple[str, str, bool]:
    """Both operands of an integer division, and whether the divisor may be -1. A zero divisor is a run-time error; in a
    speculative computation it is replaced by one."""
    a, b = g.plain(e.a), g.plain(e.b)
    divisor = divisor_of(e)
    if isinstance(divisor, IntImm):
        if divisor.value == 0:
            raise g.error(f"`{e!r}` divides by zero")
        return a, b, divisor.value == -1
    lanes, type_ = e.dtype.lanes, value_type(e.dtype)
    zero = splat(element_type(e.dtype), "0", lanes)
    one = splat(element_type(e.dtype), "1", lanes)
    if g.mask is not None and lanes == g.mask_lanes:  # inactive lanes divide by one
        b = g.out.value(f"select {vector('i1', lanes)} {g.mask}, {type_} {b}, {type_} {one}")
    fine = g.out.value(f"icmp ne {type_} {b}, {zero}")
    if lanes > 1:
        fine = g.out.reduced("and", fine, lanes)
    elif g.mask is not None or g.speculative:
        b = g.out.value(f"select i1 {fine}, {type_} {b}, {type_} {one}")
        return a, b, not g.is_nonnegative(e.b)
    g.check(fine, f"{g.func_name}: integer division by zero in `{e!r}`")
    return a, b, not g.is_nonnegative(e.b)


@expr_rule(Div, Mod)
def _truncating(g: Generator, e: Any) -> str:
    if e.dtype.is_float:
        if isinstance(e, Mod):
            return g.expr(Call("fmod", (e.a, e.b), e.dtype))
        return float_op(g, "fdiv", _dividend(g, e), g.expr(e.b), e.dtype)
    a, b, minus_one = _divisor(g, e)
    if e in g.invariant:
        return g.invariant[e]
    if _has_reciprocal(g, e):
        return _by_reciprocal(g, e, a, b, isinstance(e, Div))
    q, r = _quotient(g, e, a, b, minus_one)
    return q if isinstance(e, Div) else r


def _dividend(g: Generator, e: Any) -> str:
    """What a float is divided from: zero in inactive lanes. What memory of its own has there may be anything, and dividing numbers that are
    almost zero takes a hundred cycles."""
    a, lanes, type_ = g.expr(e.a), e.dtype.lanes, value_type(e.dtype)
    if g.mask is None or lanes != g.mask_lanes:
        return a
    return g.out.value(f"select {vector('i1', lanes)} {g.mask}, {type_} {a}, {type_} zeroinitializer")


def _has_reciprocal(g: Generator, e: Any) -> bool:
    return divisor_of(e) in g.reciprocals and g.is_nonnegative(e.a) and g.is_nonnegative(e.b)


def _by_reciprocal(g: Generator, e: Any, a: str, b: str, is_div: bool) -> str:
    """The quotient or the remainder of values that are not negative, by a divisor whose reciprocal is known."""
    out, lanes, type_ = g.out, e.dtype.lanes, value_type(e.dtype)
    wide = vector("i64", lanes)
    multiplier, shift = (out.splat("i64", part, lanes) for part in g.reciprocals[divisor_of(e)])
    product = out.value(f"mul {wide} {out.value(f'zext {type_} {a} to {wide}')}, {multiplier}")
    quotient = out.value(f"trunc {wide} {out.value(f'lshr {wide} {product}, {shift}')} to {type_}")
    if is_div:
        return quotient
    return out.value(f"sub {type_} {a}, {out.value(f'mul {type_} {quotient}, {b}')}")


def _quotient(g: Generator, e: Any, a: str, b: str, minus_one: bool) -> tuple[str, str]:
    """Quotient and remainder, rounding toward zero. The least integer divided by -1, which would trap, wraps around."""
    out, type_, lanes = g.out, value_type(e.dtype), e.dtype.lanes
    element = element_type(e.dtype)
    if e.dtype.code == "uint":
        return out.value(f"udiv {type_} {a}, {b}"), out.value(f"urem {type_} {a}, {b}")
    if not minus_one:
        return out.value(f"sdiv {type_} {a}, {b}"), out.value(f"srem {type_} {a}, {b}")
    is_it = out.value(f"icmp eq {type_} {b}, {splat(element, '-1', lanes)}")
    flag = vector("i1", lanes)
    safe = out.value(f"select {flag} {is_it}, {type_} {splat(element, '1', lanes)}, {type_} {b}")
    q, r = out.value(f"sdiv {type_} {a}, {safe}"), out.value(f"srem {type_} {a}, {safe}")
    negated = out.value(f"sub {type_} {splat(element, '0', lanes)}, {a}")
    return out.value(f"select {flag} {is_it}, {type_} {negated}, {type_} {q}"), r


@expr_rule(FloorDiv, FloorMod)
def _flooring(g: Generator, e: Any) -> str:
    """``//`` and ``%``. A power of two is a shift or a mask, for either sign; else the truncated result is corrected
    if remainder and divisor differ in sign, unless both are known to be non-negative."""
    out, type_, lanes = g.out, value_type(e.dtype), e.dtype.lanes
    element = element_type(e.dtype)
    is_div = isinstance(e, FloorDiv)
    divisor = divisor_of(e)
    if isinstance(divisor, IntImm) and divisor.value > 0 and divisor.value & (divisor.value - 1) == 0:
        a = g.plain(e.a)
        if is_div:
            shift = "ashr" if e.dtype.code == "int" else "lshr"
            return out.value(f"{shift} {type_} {a}, {splat(element, str(divisor.value.bit_length() - 1), lanes)}")
        return out.value(f"and {type_} {a}, {splat(element, str(divisor.value - 1), lanes)}")
    a, b, minus_one = _divisor(g, e)
    if e in g.invariant:
        return g.invariant[e]
    if _has_reciprocal(g, e):
        return _by_reciprocal(g, e, a, b, is_div)
    if g.is_nonnegative(e.a) and g.is_nonnegative(e.b):
        return out.value(f"{'udiv' if is_div else 'urem'} {type_} {a}, {b}")
    q, r = _quotient(g, e, a, b, minus_one)
    flag, zero = vector("i1", lanes), splat(element, "0", lanes)
    mixed = out.value(f"xor {type_} {r}, {b}")
    mixed = out.value(f"icmp slt {type_} {mixed}, {zero}")
    inexact = out.value(f"icmp ne {type_} {r}, {zero}")
    wrong = out.value(f"and {flag} {mixed}, {inexact}")
    if is_div:
        step = out.value(f"sext {flag} {wrong} to {type_}")
        return out.value(f"add {type_} {q}, {step}")
    step = out.value(f"select {flag} {wrong}, {type_} {b}, {type_} {zero}")
    return out.value(f"add {type_} {r}, {step}")


@expr_rule(Min, Max)
def _extreme(g: Generator, e: Any) -> str:
    a, b = g.expr(e.a), g.expr(e.b)
    if e.dtype.is_float:
        if _is_number(e.b):  # with the constant first no test for nan is needed
            return float_extreme(g, isinstance(e, Min), b, a, e.dtype, True)
        if _goes_on(g, e):  # the test for nan is of the other operand, so that the next extreme need not wait for it
            return float_extreme(g, isinstance(e, Min), b, a, e.dtype)
        return float_extreme(g, isinstance(e, Min), a, b, e.dtype, _is_number(e.a))
    name = ("s" if e.dtype.code == "int" else "u") + ("min" if isinstance(e, Min) else "max")
    return g.out.intrinsic(name, element_type(e.dtype), e.dtype.lanes, [a, b])


def _goes_on(g: Generator, e: Any) -> bool:
    """Whether the first operand of an extreme is what was found so far, of other elements or in an earlier iteration."""
    around = g.statements[-1] if g.statements else None
    if isinstance(e.a, BufferLoad) and isinstance(around, BufferStore):
        return e.a.buffer is around.buffer
    return isinstance(e.a, type(e))


def float_extreme(g: Generator, least: bool, a: str, b: str, dtype: DType, a_is_number: bool = False) -> str:
    """Minimum or maximum; nan if either is nan, as in NumPy. ``a_is_number``: ``a`` is known not to be nan."""
    if emulated(dtype):
        wide = F32.with_lanes(dtype.lanes)
        result = float_extreme(g, least, g.convert(a, dtype, wide), g.convert(b, dtype, wide), wide, a_is_number)
        return g.convert(result, wide, dtype)
    type_, flag = value_type(dtype), vector("i1", dtype.lanes)
    # `a < b ? a : b` is one instruction and returns b if either is nan; then a nan in a is selected
    picks_a = g.out.value(f"fcmp {'olt' if least else 'ogt'} {type_} {a}, {b}")
    result = g.out.value(f"select {flag} {picks_a}, {type_} {a}, {type_} {b}")
    if g.program.fast_math or a_is_number:
        return result
    result = g.out.value(f"freeze {type_} {result}")  # else LLVM joins both tests before it selects
    nan = g.out.value(f"fcmp uno {type_} {a}, {a}")
    return g.out.value(f"select {flag} {nan}, {type_} {a}, {type_} {result}")


def _is_number(e: Expr) -> bool:
    """Whether ``e`` is a constant other than nan."""
    value = e.value if isinstance(e, Broadcast) else e
    return isinstance(value, FloatImm) and value.value == value.value


SIGNED = {LT: "slt", LE: "sle", GT: "sgt", GE: "sge", EQ: "eq", NE: "ne"}
UNSIGNED = {LT: "ult", LE: "ule", GT: "ugt", GE: "uge", EQ: "eq", NE: "ne"}
FLOATING = {LT: "olt", LE: "ole", GT: "ogt", GE: "oge", EQ: "oeq", NE: "une"}


@expr_rule(*SIGNED)
def _compare(g: Generator, e: Any) -> str:
    a, b, dtype = g.expr(e.a), g.expr(e.b), e.a.dtype
    if emulated(dtype):
        wide = F32.with_lanes(dtype.lanes)
        a, b, dtype = g.convert(a, dtype, wide), g.convert(b, dtype, wide), wide
    if dtype.is_float:
        return g.out.value(f"fcmp {FLOATING[type(e)]} {value_type(dtype)} {a}, {b}")
    table = SIGNED if dtype.code == "int" else UNSIGNED
    return g.out.value(f"icmp {table[type(e)]} {value_type(dtype)} {a}, {b}")


def may_fault(g: Generator, e: Expr) -> bool:
    """Whether evaluating ``e`` speculatively could trap, or access memory that the statement does not access anyway."""
    for node in walk(e):
        if isinstance(node, Call) and node.op not in HARMLESS:
            return True
        if is_runtime_division(node):
            return True
        if isinstance(node, BufferLoad) and node not in g.speculatable and key(node) not in _unconditional(g):
            return True
    return False


def _unconditional(g: Generator) -> set[Hashable]:
    """The loads that a statement makes, whatever its conditions give: they need no condition anywhere in it."""
    if g.unconditional is None:
        values = [s.value for s in g.statements if isinstance(s, (LetStmt, BufferStore))]
        loads = Certain(lambda n: [key(n)] if isinstance(n, BufferLoad) else [])
        g.unconditional = set[Hashable]().union(*map(loads.of, values))
    return g.unconditional


_HARMLESS = (
    "exp log sqrt rsqrt tanh sigmoid erf fabs abs floor ceil trunc round nearbyint fma copysign isnan isinf isfinite "
    "popcount clz likely bitwise_and bitwise_or bitwise_xor bitwise_not shift_left shift_right reinterpret"
)
HARMLESS = frozenset(_HARMLESS.split())  # operators that are cheap and cannot fault


@expr_rule(And, Or)
def _logic(g: Generator, e: Any) -> str:
    """Short-circuits if evaluating the right side could fault."""
    is_and = isinstance(e, And)
    a = g.expr(e.a)
    if not may_fault(g, e.b):
        return g.out.value(f"{'and' if is_and else 'or'} {value_type(e.dtype)} {a}, {g.expr(e.b)}")
    if e.dtype.lanes > 1:
        flag, lanes = value_type(e.dtype), e.dtype.lanes
        wanted = a if is_and else g.out.value(f"xor {flag} {a}, {splat('i1', 'true', lanes)}")
        b = masked(g, wanted, lanes, e.b)
        both = g.out.value(f"and {flag} {wanted}, {b}")
        return both if is_and else g.out.value(f"or {flag} {a}, {both}")
    if is_and:
        return g.choose(a, lambda: g.expr(e.b), lambda: "false", "i1")
    return g.choose(a, lambda: "true", lambda: g.expr(e.b), "i1")


def masked(g: Generator, mask: str, lanes: int, e: Expr) -> str:
    """``e`` with memory accessed only in the lanes of ``mask`` (and of the mask in force)."""
    old, old_lanes = g.mask, g.mask_lanes
    if old is not None:
        mask = g.out.value(f"and <{lanes} x i1> {old}, {mask}")
    g.mask, g.mask_lanes = mask, lanes
    value = g.expr(e)
    g.mask, g.mask_lanes = old, old_lanes
    return value


@expr_rule(Not)
def _not(g: Generator, e: Not) -> str:
    a = g.expr(e.a)
    return g.out.value(f"xor {value_type(e.dtype)} {a}, {splat('i1', 'true', e.dtype.lanes)}")


@expr_rule(Select)
def _select(g: Generator, e: Select) -> str:
    c, a, b = g.expr(e.condition), g.expr(e.true_value), g.expr(e.false_value)
    type_ = value_type(e.dtype)
    return g.out.value(f"select {value_type(e.condition.dtype)} {c}, {type_} {a}, {type_} {b}")


@expr_rule(Cast)
def _cast(g: Generator, e: Cast) -> str:
    return of_four_bits(g, e) or g.convert(g.expr(e.value), e.value.dtype, e.dtype)


@expr_rule(Let)
def _let(g: Generator, e: Let) -> str:
    g.env[e.var] = g.plain(e.value)
    g.out.indices.clear()  # of another value of it
    with g.analyzer.scope():
        g.analyzer.bind(e.var, e.value)
        return g.expr(e.body)


def _concatenated(g: Generator, parts: list[tuple[str, DType]], dtype: DType) -> str:
    """One vector of all lanes of ``parts``, vectors, in order."""
    type_, element = value_type(dtype), element_type(dtype)
    result, lane = "poison", 0
    for text, part in parts:
        for k in range(part.lanes):
            piece = g.out.value(f"extractelement {value_type(part)} {text}, i64 {k}")
            result = g.out.value(f"insertelement {type_} {result}, {element} {piece}, i64 {lane}")
            lane += 1
    return result


@expr_rule(Ramp)
def _ramp(g: Generator, e: Ramp) -> str:
    out, element, lanes = g.out, element_type(e.dtype), e.lanes
    nsw = g.no_wrap(e)
    if isinstance(e.stride, IntImm) and e.base.dtype.lanes == 1:
        # adding constants last lets ramps that differ by a constant share the vector of their base
        base, first = (
            (e.base.a, e.base.b.value) if isinstance(e.base, Add) and isinstance(e.base.b, IntImm) else (e.base, 0)
        )
        last = first + e.stride.value * (lanes - 1)
        if all(e.dtype.min_value <= end <= e.dtype.max_value for end in (first, last)):
            counts = f"<{', '.join(f'{element} {first + k * e.stride.value}' for k in range(lanes))}>"
            return out.value(f"add {nsw}{value_type(e.dtype)} {out.splat(element, g.expr(base), lanes)}, {counts}")
    base, stride = g.expr(e.base), g.expr(e.stride)
    if e.base.dtype.lanes > 1:
        parts = []
        for k in range(lanes):
            step = out.value(f"mul {value_type(e.base.dtype)} {stride}, {splat(element, str(k), e.base.dtype.lanes)}")
            parts.append((out.value(f"add {value_type(e.base.dtype)} {base}, {step}"), e.base.dtype))
        return _concatenated(g, parts, e.dtype)
    counts = f"<{', '.join(f'{element} {k}' for k in range(lanes))}>"
    type_ = value_type(e.dtype)
    steps = out.value(f"mul {nsw}{type_} {out.splat(element, stride, lanes)}, {counts}")
    return out.value(f"add {nsw}{type_} {out.splat(element, base, lanes)}, {steps}")


@expr_rule(Broadcast)
def _broadcast(g: Generator, e: Broadcast) -> str:
    value = g.expr(e.value)
    if e.value.dtype.lanes > 1:
        inner = e.value.dtype.lanes
        lanes = ", ".join(f"i32 {k % inner}" for k in range(inner * e.lanes))
        type_ = value_type(e.value.dtype)
        return g.out.value(f"shufflevector {type_} {value}, {type_} poison, <{inner * e.lanes} x i32> <{lanes}>")
    return g.out.splat(element_type(e.dtype), value, e.lanes)


@expr_rule(Shuffle)
def _shuffle(g: Generator, e: Shuffle) -> str:
    count = sum(part.dtype.lanes for part in e.vectors)
    picks = []
    for index in e.indices:
        if not isinstance(index, IntImm) or not 0 <= index.value < count:
            raise g.error(f"`{e!r}`: shuffle indices must be constants in [0, {count})")
        picks.append(index.value)
    element, out = element_type(e.dtype), g.out
    parts = [(g.expr(part), part.dtype.lanes) for part in e.vectors]
    parts = [(text if n > 1 else _single(g, text, element), n) for text, n in parts]
    while len(parts) > 1:  # join adjacent vectors until one holds all lanes
        parts = [_joined(g, parts[k : k + 2], element) for k in range(0, len(parts), 2)]
    text, lanes = parts[0]
    if len(picks) == 1:
        return out.value(f"extractelement {_many(lanes, element)} {text}, i64 {picks[0]}")
    order = ", ".join(f"i32 {k}" for k in picks)
    type_ = _many(lanes, element)
    return out.value(f"shufflevector {type_} {text}, {type_} poison, <{len(picks)} x i32> <{order}>")


def _many(lanes: int, element: str) -> str:
    return f"<{lanes} x {element}>"


def _single(g: Generator, text: str, element: str) -> str:
    """A scalar as a vector of one lane."""
    return g.out.value(f"insertelement {_many(1, element)} poison, {element} {text}, i64 0")


def _joined(g: Generator, parts: list[tuple[str, int]], element: str) -> tuple[str, int]:
    """The lanes of one or two vectors, concatenated."""
    if len(parts) == 1:
        return parts[0]
    (a, n), (b, m) = parts
    if n != m:  # shufflevector needs equal types
        size = max(n, m)
        a, b = (_widened(g, text, lanes, size, element) for text, lanes in parts)
    size = max(n, m)
    lanes = [*range(n), *range(size, size + m)]
    order, type_ = ", ".join(f"i32 {k}" for k in lanes), _many(size, element)
    return g.out.value(f"shufflevector {type_} {a}, {type_} {b}, <{n + m} x i32> <{order}>"), n + m


def _widened(g: Generator, text: str, lanes: int, size: int, element: str) -> str:
    if lanes == size:
        return text
    order = ", ".join(f"i32 {k}" if k < lanes else "i32 poison" for k in range(size))
    type_ = _many(lanes, element)
    return g.out.value(f"shufflevector {type_} {text}, {type_} poison, <{size} x i32> <{order}>")
