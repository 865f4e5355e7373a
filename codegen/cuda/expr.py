"""Expressions other than loads and calls.

Every rule returns text that is valid in any context: anything but a name, a constant or a call is in parentheses.
Vectors have the operators of their lanes (see the prelude), so ``a + b`` is written the same for them.
"""

from __future__ import annotations

import re
from typing import Any

from tir.dtype import DType
from tir.expr import (
    COMPARED,
    SYMBOLS,
    Add,
    And,
    Broadcast,
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

from .generator import Generator, expr_rule
from .types import c_type, float_constant, int_constant, is_small, scalar_type


def declare_type(g: Generator, dtype: DType) -> str:
    """The C type of ``dtype``; its definition is added to what the kernel needs."""
    if is_small(dtype):
        g.need(str(dtype.element))
    if dtype.lanes > 1:
        g.need("vec")
        return g.function(str(dtype), f"using {dtype} = {c_type(dtype)};")
    return c_type(dtype)


def each(g: Generator, dtype: DType, spelled: str, *args: str) -> str:
    """A call of the function ``spelled``, lane by lane for vectors."""
    if dtype.lanes == 1:
        return f"{spelled}({', '.join(map(bare, args))})"
    g.need("each")
    names = "abcd"[: len(args)]
    parameters = ", ".join(f"auto {n}" for n in names)
    return f"each([]({parameters}) {{ return {spelled}({', '.join(names)}); }}, {', '.join(args)})"


@expr_rule(Var)
def _var(g: Generator, e: Var) -> str:
    if e in g.pointers:
        return g.pointers[e].text(g)
    found = g.names.get(e)
    if found is None:
        raise g.error(f"variable `{e.name}` ({e.dtype}) is undefined")
    return found


@expr_rule(IntImm)
def _int(g: Generator, e: IntImm) -> str:
    return int_constant(e.value, e.dtype)


@expr_rule(FloatImm)
def _float(g: Generator, e: FloatImm) -> str:
    declare_type(g, e.dtype)
    return float_constant(e.value, e.dtype)


@expr_rule(StringImm)
def _string(g: Generator, e: StringImm) -> str:
    return quoted(e.value)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_INFIX = {kind: SYMBOLS[kind] for kind in (Add, Sub, Mul, *COMPARED)} | {And: "&&", Or: "||"}


# How tightly C's operators bind: the tighter, the higher. Unary operators and casts bind at UNARY.
LEVELS = {"?": 1, ":": 1, "||": 2, "&&": 3, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7, "<": 8, "<=": 8, ">": 8, ">=": 8}
LEVELS |= {"<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "%": 11}
UNARY = 12
_KEPT = {"/", "%", "&", "|", "^", "<<", ">>", "?", "||"}  # in parentheses as operands, whether C needs them or not
_INNERMOST = re.compile(r"[(\[{][^()\[\]{}]*[)\]}]")  # brackets with none inside
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def signs(text: str) -> list[str]:
    """The operators with two or three operands in ``text``, outside of brackets and quotes. The rules write
    blanks around them, and around nothing else.

    >>> signs("a + b[i - 1] < 4"), signs("(float)x")
    (['+', '<'], [])
    """
    if " " not in text:
        return []
    text, inner = _QUOTED.sub("_", text), 1
    while inner:
        text, inner = _INNERMOST.subn("_", text)
    return [word for word in text.split(" ") if word in LEVELS]


def within(text: str, least: int) -> str:
    """``text`` as an operand of what takes operands that bind at least so tightly: in parentheses where it does not."""
    inner = bare(text)
    return inner if min((LEVELS[sign] for sign in signs(inner)), default=UNARY) >= least else text


def _operand(text: str, dtype: DType, parent: str, left: bool) -> str:
    """An operand of ``parent``, without parentheses where C and its readers need none."""
    if parent == "||" or (dtype.is_int and dtype.bits in (8, 16)) or not _KEPT.isdisjoint(signs(bare(text))):
        return text
    same = left and LEVELS[parent] >= LEVELS["+"]
    return within(text, LEVELS[parent] + (not same))


def plain(e: Any, other: Any) -> str:
    """A constant without suffix or cast, if C converts it to the other operand's type or computes in int; else ``""``."""
    if (
        isinstance(e, IntImm)
        and (str(e.dtype) == "int64" or e.dtype.bits in (8, 16))
        and 0 <= e.value < 2**31
        and not isinstance(other, IntImm)
    ):
        return str(e.value)
    return ""


def widened(e: Any, other: Any) -> Any:
    """``e`` without a cast from int32 to int64 that C makes implicitly because of the other operand."""
    implied = isinstance(e, Cast) and e.dtype == "int64" and e.value.dtype == "int32"
    return e.value if implied and not isinstance(other, (IntImm, Cast)) else e


def bare(text: str) -> str:
    """``text`` without its outermost parentheses: for brackets, statements and arguments, which may hold anything."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for bracket in re.finditer("[()]", text):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0 and bracket.end() < len(text):
            return text
    return text[1:-1]


@expr_rule(*_INFIX)
def _infix(g: Generator, e: Any) -> str:
    if _overflows(g, e):
        return f"(({scalar_type(e.dtype)}){_modular(g, e)})"
    need_operators(g, e.dtype)
    a, sign, b = _terms(g, e)
    if isinstance(e, Sub) and str(e.dtype) in ("int8", "int16"):
        g.need("hidden")
        return f"hidden<{scalar_type(e.dtype)}>({a} {sign} {b})"
    return narrowed(f"({a} {sign} {b})", e.dtype)


def _terms(g: Generator, e: Any) -> tuple[str, str, str]:
    """The left operand, the operator and the right operand of ``e``."""
    sign = _INFIX[type(e)]
    x, y = widened(e.a, e.b), widened(e.b, e.a)
    a = plain(e.a, e.b) or _operand(g.expr(x), x.dtype, sign, True)
    b = plain(e.b, e.a) or _operand(g.expr(y), y.dtype, sign, False)
    return a, sign, b


def _overflows(g: Generator, e: Expr) -> bool:
    return (
        isinstance(e, (Add, Sub, Mul)) and e.dtype.lanes == 1 and g.may_overflow(e)
    )  # the operators of vectors wrap around


def _modular(g: Generator, e: Any) -> str:
    """A sum, difference or product in the unsigned type, in which C makes it wrap around; that of int it leaves undefined."""
    a, sign, b = _terms(g, e)
    left, right = _overflows(g, e.a), _overflows(g, e.b)
    if left:
        a = _operand(_modular(g, e.a), e.dtype, sign, True)
    if right:
        b = _operand(_modular(g, e.b), e.dtype, sign, False)
    if not left and not right:
        a = f"({scalar_type(DType(f'uint{max(32, e.dtype.bits)}'))}){within(a, UNARY)}"
    return f"({a} {sign} {b})"


def narrowed(text: str, dtype: DType) -> str:
    """``text``, computed by C's operators, in its own type: of narrow integers C makes int."""
    narrow = dtype.is_int and dtype.bits in (8, 16) and dtype.lanes == 1
    return f"({scalar_type(dtype)}){text}" if narrow else text


def need_operators(g: Generator, dtype: DType) -> None:
    """Request C's operators for values of ``dtype``."""
    if dtype.lanes > 1:
        g.need("vec_operators")


@expr_rule(Div, Mod)
def _truncating(g: Generator, e: Any) -> str:
    need_operators(g, e.dtype)
    a, b = g.expr(e.a), g.expr(e.b)
    if isinstance(e, Div):
        return narrowed(f"({a} / {b})", e.dtype)
    if e.dtype.is_float:
        return g.expr(Call("fmod", (e.a, e.b), e.dtype))
    return narrowed(f"({a} % {b})", e.dtype)


@expr_rule(FloorDiv, FloorMod)
def _flooring(g: Generator, e: Any) -> str:
    """``//`` and ``%``: a shift or a mask for a power of two (correct for either sign), C's operators if both sides are
    known to be non-negative, else a helper."""
    is_div = isinstance(e, FloorDiv)
    need_operators(g, e.dtype)
    divisor = e.b.value if isinstance(e.b, Broadcast) else e.b
    a = g.expr(e.a)
    if isinstance(divisor, IntImm) and divisor.value > 0 and divisor.value & (divisor.value - 1) == 0:
        mask = IntImm(divisor.value - 1, divisor.dtype)
        b = str(divisor.value.bit_length() - 1) if is_div else plain(mask, e.a) or g.expr(mask)
        return narrowed(f"({a} {'>>' if is_div else '&'} {b})", e.dtype)
    b = g.expr(e.b)
    if g.is_nonnegative(e.a) and g.is_nonnegative(e.b):
        return narrowed(f"({a} {'/' if is_div else '%'} {b})", e.dtype)
    return each(g, e.dtype, g.need("floordiv" if is_div else "floormod"), a, b)


@expr_rule(Min, Max)
def _extreme(g: Generator, e: Any) -> str:
    """nan if either operand is nan, as in NumPy; C's fminf returns the other operand."""
    name = "min" if isinstance(e, Min) else "max"
    if e.dtype.is_float:
        declare_type(g, e.dtype)
        spelled = g.need(f"{name}imum")
        if g.fast_math and str(e.dtype.element) == "float32":
            spelled = f"f{name}f"
        return each(g, e.dtype, spelled, g.expr(e.a), g.expr(e.b))
    if e.dtype.bits in (8, 16):
        return each(g, e.dtype, g.need(f"{name}imum"), g.expr(e.a), g.expr(e.b))
    return each(g, e.dtype, name, g.expr(e.a), g.expr(e.b))


@expr_rule(Not)
def _not(g: Generator, e: Not) -> str:
    need_operators(g, e.dtype)
    return f"(!{g.expr(e.a)})"


@expr_rule(Select)
def _select(g: Generator, e: Select) -> str:
    return choice(g, e.condition, e.true_value, e.false_value)


def choice(g: Generator, condition: Any, yes: Any, no: Any) -> str:
    c, a, b = g.expr(condition), g.expr(yes), g.expr(no)
    if condition.dtype.lanes > 1:
        return f"{g.need('select')}({c}, {a}, {b})"
    return f"({within(c, LEVELS['||'])} ? {a} : {b})"


@expr_rule(Cast)
def _cast(g: Generator, e: Cast) -> str:
    return convert(g, g.expr(e.value), e.value.dtype, e.dtype)


def convert(g: Generator, text: str, source: DType, target: DType) -> str:
    """Convert ``text``: floats to integers toward zero, to the nearest that there is and 0 for nan, the narrow ones through
    int; to narrower floats to nearest, ties to even."""
    if source is target:
        return text
    declare_type(g, target)
    if target.is_handle:
        return f"((void*){text})"
    to_integer = source.is_float and target.is_int
    if target.lanes > 1:
        return f"{g.need('to_integers' if to_integer else 'convert')}<{scalar_type(target)}>({bare(text)})"
    if target.is_bool:
        return f"({text} != {'0' if not source.is_float else float_constant(0.0, source)})"
    if is_small(source) and (not target.is_float or is_small(target)):
        text = f"(float){text}"  # through float, which holds every small float exactly
    if to_integer and 64 in (source.bits, target.bits):
        return f"{g.need('to_integer')}<{scalar_type(target)}>({bare(text)})"
    if to_integer and target.bits < 32:
        text = f"(int){text}"
    return f"(({scalar_type(target)}){text})"


@expr_rule(Let)
def _let(g: Generator, e: Let) -> str:
    value, name = g.expr(e.value), g.name(e.var, e.var.name)
    with g.analyzer.scope():
        g.analyzer.bind(e.var, e.value)
        return f"[&] {{ const {declare_type(g, e.var.dtype)} {name} = {value}; return {g.expr(e.body)}; }}()"


@expr_rule(Ramp)
def _ramp(g: Generator, e: Ramp) -> str:
    if e.base.dtype.lanes > 1:
        raise g.error(f"`{e!r}`: a ramp of vectors has no CUDA spelling; lower it first")
    declare_type(g, e.dtype)
    if g.may_overflow(e):
        counts = Ramp(IntImm(0, e.base.dtype), IntImm(1, e.base.dtype), e.lanes)
        return g.expr(Broadcast(e.base, e.lanes) + counts * Broadcast(e.stride, e.lanes))
    return f"{g.need('ramp')}<{e.lanes}>({g.expr(e.base)}, {g.expr(e.stride)})"


@expr_rule(Broadcast)
def _broadcast(g: Generator, e: Broadcast) -> str:
    if e.value.dtype.lanes > 1:
        raise g.error(f"`{e!r}`: a broadcast of vectors has no CUDA spelling; lower it first")
    declare_type(g, e.dtype)
    return f"{g.need('broadcast')}<{e.lanes}>({g.expr(e.value)})"


def lane(text: str, k: int) -> str:
    """Lane ``k`` of a vector."""
    return f"({text})[{k}]" if text.startswith("*") else f"{text}[{k}]"


@expr_rule(Shuffle)
def _shuffle(g: Generator, e: Shuffle) -> str:
    lanes: list[str] = []
    for part in e.vectors:
        text = g.expr(part)
        lanes += [text] if part.dtype.lanes == 1 else [lane(text, k) for k in range(part.dtype.lanes)]
    picked = []
    for index in e.indices:
        if not isinstance(index, IntImm) or not 0 <= index.value < len(lanes):
            raise g.error(f"`{e!r}`: shuffle indices must be constants in [0, {len(lanes)})")
        picked.append(lanes[index.value])
    if e.dtype.lanes == 1:
        return picked[0]
    return f"{declare_type(g, e.dtype)}{{{{{', '.join(picked)}}}}}"
