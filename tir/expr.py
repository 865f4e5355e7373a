"""Expressions: the nodes, and what builds them, Python's operators among it.

Python's ``//`` and ``%`` build floor division and modulo; ``/`` builds ``Div`` (true division for floats; integers
must say ``truncdiv`` or ``floordiv``). Operators fold constants, and widen the narrower of two integer types.
"""

# ruff: noqa: F403, F405
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from .dtype import BOOL, INT32, VOID, DType
from .errors import DoesNotFit
from .expr_nodes import *
from .node import Node

NO_VALUE = "has no value: its type is void; a call says its type by dtype="


def const(value: int | float | bool, dtype: str | None = None) -> Expr:
    """A constant of exactly ``dtype``; without one: bool, int32 (int64 where it does not fit, or uint64), float32.

    Raises ``TypeError`` for a float given an integer dtype, ``ValueError`` for a number that does not fit: infinity is
    written as such.

    >>> const(0, "int8").dtype
    'int8'
    """
    if type(value) is int and type(dtype) is DType and dtype.is_int and dtype.lanes == 1:
        if dtype.min_value <= value <= dtype.max_value:
            return IntImm(value, dtype)
    if isinstance(value, Expr):
        return value if dtype is None else cast(dtype, value)
    if hasattr(value, "item"):
        value = value.item()  # numpy scalar
    want = dtype if type(dtype) is DType else DType(_usual_dtype(value) if dtype is None else dtype)
    if want is VOID:
        raise TypeError(f"the constant {value!r} beside an operand that {NO_VALUE}")
    if want.lanes > 1:
        return Broadcast(const(value, want.element), want.lanes)
    if not hasattr(value, "__float__"):
        raise TypeError(f"a constant of {want} is a number, not {value!r}")
    if want.is_float:
        return FloatImm(_number_of(want, value), want)
    if want.is_handle:
        if value == 0:
            return Call("reinterpret", (IntImm(0, DType("uint64")),), want)
        raise TypeError(f"a handle constant can only be 0, not {value!r}")
    if isinstance(value, float):
        if not value.is_integer():
            raise TypeError(f"constant {value!r} is not an integer, but the dtype asked for is {want}")
        value = int(value)
    if not isinstance(value, int):
        raise TypeError(f"a constant of {want} is a number, not {value!r}")
    if not want.min_value <= value <= want.max_value:
        raise DoesNotFit(f"constant {value} does not fit {want} ({want.min_value} to {want.max_value})")
    return IntImm(int(value), want)


@cache
def one(dtype: DType) -> Expr:
    """The constant 1 of a data type, one node for each: the extent of a single element."""
    return const(1, dtype)


def _usual_dtype(value: int | float | bool) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int32" if -(2**31) <= value < 2**31 else "int64" if value < 2**63 else "uint64"
    return "float32"


def _number_of(dtype: DType, value: Any) -> float:
    try:
        if dtype.holds(number := float(value)):
            return number
    except OverflowError:  # an integer larger than any double
        pass
    raise DoesNotFit(f'constant {value} does not fit {dtype} (at most {dtype.max_value:.8g}); infinity is float("inf")')


def is_const(e: Any, value: int | float | None = None) -> bool:
    """Whether ``e`` is a number (equal to ``value`` when one is given).

    >>> is_const(as_expr(2)), is_const(as_expr(2), 3)
    (True, False)
    """
    if type(e) is IntImm or isinstance(e, (IntImm, FloatImm)):
        return value is None or e.value == value
    return isinstance(e, (int, float)) and (value is None or e == value)


def as_expr(value: ExprLike, dtype: str | None = None) -> Expr:
    """An expression from a Python number (of ``dtype`` when given) or an expression (unchanged).

    >>> as_expr(2, "int8").dtype
    'int8'
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, (int, float)) or hasattr(value, "item"):
        return const(value, dtype)
    dtype_of_iter = getattr(value, "var", None)  # an IterVar stands for its variable
    if isinstance(dtype_of_iter, Var):
        return dtype_of_iter
    raise TypeError(f"expected an expression or a number, got {type(value).__name__}: {value!r}")


def matched(a: ExprLike, b: ExprLike, what: Any) -> tuple[Expr, Expr]:
    """Both operands in one dtype: a Python number takes the other's where it fits; a narrower integer widens.

    ``what`` has them as operands, for errors: a class of nodes, or some words.
    """
    if isinstance(a, Expr):
        if not isinstance(b, Expr):
            b = _number_like(b, a, what)
    elif isinstance(b, Expr):
        a = _number_like(a, b, what)
    else:
        a = as_expr(a)
        b = _number_like(b, a, what)
    if a.dtype is b.dtype and a.dtype is not VOID:
        return a, b
    if a.dtype.lanes != b.dtype.lanes:
        if a.dtype.lanes == 1:
            a = Broadcast(a, b.dtype.lanes)
        elif b.dtype.lanes == 1:
            b = Broadcast(b, a.dtype.lanes)
        else:
            raise TypeError(f"operands of {_title(what)} have {a.dtype.lanes} and {b.dtype.lanes} lanes")
        if a.dtype is b.dtype:
            return a, b
    common = _common_dtype(a.dtype, b.dtype, what)
    return cast(common, a), cast(common, b)


def converts(value: Expr, dtype: DType) -> bool:
    """Whether an operator of ``value`` and of one of ``dtype`` computes in ``dtype``: no constant, whose value decides, and
    of a type that is no wider."""
    if is_const(value) or value.dtype.lanes != dtype.lanes:
        return False
    try:
        return _common_dtype(value.dtype, dtype, "a store") is dtype
    except TypeError:
        return False


def with_number(a: ExprLike, b: ExprLike, kind: Any) -> tuple[Expr, Expr]:
    """The operands of a node ``kind`` that is given a number of Python beside an expression, whose type it takes."""
    if not isinstance(a, Node) and not isinstance(b, Node):
        raise TypeError(
            f"{kind.__name__} takes two expressions, or one and a number that takes its type, not {a!r} and {b!r}"
        )
    return matched(a, b, kind)


def _number_like(value: Any, other: Expr, what: Any) -> Expr:
    dtype = other.dtype
    if type(value) is not int:
        if hasattr(value, "var") and isinstance(value.var, Var):
            return matched(value.var, other, what)[0]
        value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, (int, float)):
        raise TypeError(f"{_title(what)} takes expressions and numbers, not {value!r}")
    if isinstance(value, float) and dtype.is_int:
        raise TypeError(f"{_title(what)} mixes {dtype} with the float {value!r}; cast one side explicitly")
    if isinstance(value, int) and dtype.is_bool and not isinstance(value, bool):
        return const(value, "int32")
    if dtype.is_int and not dtype.min_value <= value <= dtype.max_value and dtype.bits < 64:
        dtype = DType("int64").with_lanes(dtype.lanes)
    return const(value, dtype)


def _title(what: Any) -> str:
    """What an error calls an operator."""
    return what if isinstance(what, str) else f"`{SYMBOLS.get(what, what.__name__)}`"


def _common_dtype(a: DType, b: DType, what: Any) -> DType:
    if a.is_handle or b.is_handle:
        raise TypeError(f"operands of {_title(what)} are {a} and {b}: a handle takes no arithmetic")
    if a is VOID or b is VOID:
        raise TypeError(f"an operand of {_title(what)} {NO_VALUE}")
    if a.is_bool:
        return b
    if b.is_bool:
        return a
    if a.is_float and b.is_float:
        if a.bits != b.bits:
            return a if a.bits > b.bits else b
        raise TypeError(f"operands of {_title(what)} are {a} and {b}; cast one side explicitly")
    if a.is_float:
        return a
    if b.is_float:
        return b
    if a.code == b.code:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.code == "int" else (b, a)
    return signed if signed.bits > unsigned.bits else unsigned


def _wrap(value: int, dtype: DType) -> int | None:
    return value if dtype.min_value <= value <= dtype.max_value else None


def _fold(kind: Any, a: Expr, b: Expr) -> Expr | None:
    """The constant result of ``kind`` on two integer constants, where it fits their dtype."""
    if type(a) is not IntImm or type(b) is not IntImm:
        return None
    if b.value == 0 and kind in _DIVISIONS:
        raise ZeroDivisionError(f"division of {a.value} by the constant zero")
    value = _wrap(FOLDED[kind](a.value, b.value), a.dtype)
    return None if value is None else IntImm(value, a.dtype)


def trunc_div(x: int, y: int) -> int:
    """Integer division rounding toward zero."""
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


_DIVISIONS = frozenset((Div, Mod, FloorDiv, FloorMod))
FOLDED: dict[Any, Any] = {  # what operators are of Python's numbers
    Add: operator.add, Sub: operator.sub, Mul: operator.mul, Div: trunc_div, FloorDiv: operator.floordiv,
    Mod: lambda x, y: x - y * trunc_div(x, y), FloorMod: operator.mod, Min: min, Max: max,
}  # fmt: skip


def arithmetic(kind: Any, a: ExprLike, b: ExprLike) -> Expr:
    """``kind(a, b)`` with dtypes matched, constants folded, and x+0, x*1, x//1 and the like dropped for integers."""
    x, y = matched(a, b, kind)
    dtype = x.dtype
    if dtype.is_handle:
        raise TypeError(f"{_title(kind)} does not take {dtype} operands")
    if dtype.is_bool and kind is not Min and kind is not Max:
        x, y = cast(INT32, x), cast(INT32, y)
    if type(x) is not IntImm and type(y) is not IntImm:
        return kind(x, y)
    folded = _fold(kind, x, y)
    if folded is None and x.dtype.is_int:
        folded = _dropped(kind, x, y)
    return kind(x, y) if folded is None else folded


def _dropped(kind: Any, x: Expr, y: Expr) -> Expr | None:
    """What remains of ``kind(x, y)``, of integers, where one of them is zero or one; None where both matter."""
    if type(y) is IntImm:
        if y.value == 0 and (kind is Add or kind is Sub):
            return x
        if y.value == 1 and kind in (Mul, FloorDiv, Div):
            return x
        if y.value == 0 and kind in _DIVISIONS:
            raise ZeroDivisionError(f"division of `{x!r}` by the constant zero")
        if ((y.value == 0 and kind is Mul) or (y.value == 1 and kind in (FloorMod, Mod))) and not _calls(x):
            return IntImm(0, x.dtype)
    if type(x) is IntImm:
        if x.value == 0 and kind is Add:
            return y
        if x.value == 1 and kind is Mul:
            return y
        if x.value == 0 and (kind is Mul or kind in _DIVISIONS) and not _calls(y):
            return x
    return None


def _calls(e: Any) -> bool:
    """Whether ``e`` contains a call, which may have effects: it is not dropped."""
    return isinstance(e, Call) or any(_calls(child) for child in e.children() if isinstance(child, Expr))


SYMBOLS: dict[Any, str] = {
    Add: "+", Sub: "-", Mul: "*", Div: "/", Mod: "truncmod", FloorDiv: "//", FloorMod: "%", Min: "min", Max: "max",
    EQ: "==", NE: "!=", LT: "<", LE: "<=", GT: ">", GE: ">=",
}  # fmt: skip


def add(a: ExprLike, b: ExprLike) -> Expr:
    """``a + b``, dtypes matched, constants folded."""
    return arithmetic(Add, a, b)


def sub(a: ExprLike, b: ExprLike) -> Expr:
    """``a - b``, dtypes matched, constants folded."""
    return arithmetic(Sub, a, b)


def mul(a: ExprLike, b: ExprLike) -> Expr:
    """``a * b``, dtypes matched, constants folded."""
    return arithmetic(Mul, a, b)


def div(a: ExprLike, b: ExprLike) -> Expr:
    """``a / b`` as in C: of two integers rounded toward zero, as ``truncdiv``.

    >>> import tir
    >>> tir.div(tir.Var("x", "float32"), 2.0), tir.div(-7, 2)
    (x / 2.0, -3)
    """
    x, y = matched(a, b, "div")
    return Div(x, y) if x.dtype.is_float else truncdiv(x, y)


def _truediv(a: ExprLike, b: ExprLike) -> Expr:
    """The operator ``/``: of floats. Raises ``TypeError`` for two integers: say floordiv or truncdiv."""
    x, y = matched(a, b, "`/`")
    if not x.dtype.is_float:
        raise TypeError(
            f"`/` of two integers ({x.dtype}) is ambiguous: use `//` (rounds down) or T.truncdiv (rounds toward zero)"
        )
    return Div(x, y)


def truncdiv(a: ExprLike, b: ExprLike) -> Expr:
    """``a / b`` rounded toward zero, as in C.

    >>> import tir
    >>> tir.truncdiv(-7, 2)
    -3
    """
    return arithmetic(Div, a, b)


def digits_of(number: Any, sizes: Sequence[Any]) -> list[Any]:
    """The digits of ``number`` in mixed radix, highest first: each is below its size but the highest, which has the rest.

    >>> digits_of(17, (2, 3, 4))
    [1, 1, 1]
    """
    found: list[Any] = []
    for size in reversed(sizes[1:]):
        found.append(number % size)
        number = number // size
    return [number, *reversed(found)] if len(sizes) else []


def truncmod(a: ExprLike, b: ExprLike) -> Expr:
    """What ``truncdiv`` leaves, with the sign of ``a``.

    >>> import tir
    >>> tir.truncmod(-7, 2)
    -1
    """
    return arithmetic(Mod, a, b)


def floordiv(a: ExprLike, b: ExprLike) -> Expr:
    """``a // b``: rounded down, as in Python.

    >>> import tir
    >>> tir.floordiv(-7, 2)
    -4
    """
    x, y = matched(a, b, "`//`")
    if x.dtype.is_float:
        return Call("floor", (Div(x, y),), x.dtype)
    return arithmetic(FloorDiv, x, y)


def floormod(a: ExprLike, b: ExprLike) -> Expr:
    """``a % b``: with the sign of ``b``, as in Python.

    >>> import tir
    >>> tir.floormod(-7, 2)
    1
    """
    x, y = matched(a, b, "`%`")
    if x.dtype.is_float:
        return Sub(x, Mul(y, Call("floor", (Div(x, y),), x.dtype)))
    return arithmetic(FloorMod, x, y)


def min_(a: ExprLike, b: ExprLike) -> Expr:
    """The smaller of two values.

    >>> import tir
    >>> tir.min(3, 5)
    3
    """
    return arithmetic(Min, a, b)


def max_(a: ExprLike, b: ExprLike) -> Expr:
    """The larger of two values.

    >>> import tir
    >>> tir.max(3, 5)
    5
    """
    return arithmetic(Max, a, b)


def neg(a: ExprLike) -> Expr:
    """``-a``."""
    x = as_expr(a)
    if isinstance(x, FloatImm) and x.dtype.holds(-x.value):
        return FloatImm(-x.value, x.dtype)
    if x.dtype.is_float:
        return Mul(x, const(-1.0, x.dtype))
    return arithmetic(Sub, const(0, x.dtype), x)


COMPARED: dict[Any, Any] = {
    EQ: operator.eq, NE: operator.ne, LT: operator.lt, LE: operator.le, GT: operator.gt, GE: operator.ge,
}  # fmt: skip


def compare(kind: Any, a: ExprLike, b: ExprLike) -> Expr:
    """``kind(a, b)`` for a comparison, folded on constants.

    >>> import tir
    >>> tir.compare(tir.LT, tir.Var("i", "int32"), 8)
    i < 8
    """
    x, y = matched(a, b, kind)
    if isinstance(x, (IntImm, FloatImm)) and isinstance(y, (IntImm, FloatImm)):
        p, q = x.value, y.value
        return IntImm(int(COMPARED[kind](p, q)), BOOL)
    return kind(x, y)


def as_bool(a: ExprLike) -> Expr:
    """A condition from a bool or an integer expression (nonzero is true)."""
    x = as_expr(a)
    if x.dtype.is_bool:
        return x
    if isinstance(x, IntImm):
        return IntImm(int(x.value != 0), BOOL)
    if x.dtype.is_int:
        return NE(x, const(0, x.dtype))
    raise TypeError(f"a condition must be bool or integer, not {x.dtype}: `{x!r}`")


def logical_and(a: ExprLike, b: ExprLike) -> Expr:
    """``a and b``; constants decide at once.

    >>> import tir
    >>> i = tir.Var("i", "int32")
    >>> tir.logical_and(i < 8, True), tir.logical_and(i < 8, i > 2)
    (i < 8, i < 8 and i > 2)
    """
    return _connected(And, a, b)


def logical_or(a: ExprLike, b: ExprLike) -> Expr:
    """``a or b``; constants decide at once.

    >>> import tir
    >>> i = tir.Var("i", "int32")
    >>> tir.logical_or(i < 2, False), tir.logical_or(i < 2, i > 8)
    (i < 2, i < 2 or i > 8)
    """
    return _connected(Or, a, b)


def _connected(kind: Any, a: ExprLike, b: ExprLike) -> Expr:
    x, y, neutral = as_bool(a), as_bool(b), int(kind is And)
    if isinstance(x, IntImm):
        return y if x.value == neutral else x
    if isinstance(y, IntImm) and (y.value == neutral or not _calls(x)):
        return x if y.value == neutral else y
    return kind(*matched(x, y, "`and`" if kind is And else "`or`"))


def logical_not(a: ExprLike) -> Expr:
    """``not a``; of a constant the other one.

    >>> import tir
    >>> tir.logical_not(tir.Var("i", "int32") < 2), tir.logical_not(False)
    (not i < 2, True)
    """
    x = as_bool(a)
    if isinstance(x, IntImm):
        return IntImm(1 - x.value, BOOL)
    return Not(x)


def all_of(conditions: Any) -> Expr:
    """The conjunction of ``conditions``; true when there are none.

    >>> import tir
    >>> i = tir.Var("i", "int32")
    >>> tir.all_of([i >= 0, i < 8])
    i >= 0 and i < 8
    """
    result: Expr = TRUE
    for condition in conditions:
        result = logical_and(result, condition)
    return result


def conjuncts(condition: Expr) -> list[Expr]:
    """The parts of a conjunction, left to right; none for true. The inverse of :func:`all_of`."""
    if isinstance(condition, And):
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    return [] if is_const(condition, 1) else [condition]


def bit_op(op: str, a: ExprLike, b: ExprLike) -> Expr:
    """Bitwise operators and shifts of integers; of bools, ``&`` and ``|`` are the logical ones.

    >>> bit_op("bitwise_xor", 6, 3), bit_op("shift_left", 1, 4)
    (5, 16)
    """
    x, y = matched(a, b, f"`{op}`")
    if x.dtype.is_bool and y.dtype.is_bool and not op.startswith("shift"):
        if op == "bitwise_and":
            return logical_and(x, y)
        if op == "bitwise_or":
            return logical_or(x, y)
        return NE(x, y)
    if not x.dtype.is_int:
        raise TypeError(f"{op} takes integers, not {x.dtype}")
    if isinstance(x, IntImm) and isinstance(y, IntImm):
        p, q = x.value, y.value
        if op.startswith("shift") and not 0 <= q < x.dtype.bits:
            raise ValueError(f"shift by {q} of a {x.dtype}")
        value = {
            "bitwise_and": lambda: p & q,
            "bitwise_or": lambda: p | q,
            "bitwise_xor": lambda: p ^ q,
            "shift_left": lambda: p << q,
            "shift_right": lambda: p >> q,
        }[op]()
        if _wrap(value, x.dtype) is not None:
            return IntImm(value, x.dtype)
    return Call(op, (x, y), x.dtype)


def cast(dtype: str, value: ExprLike) -> Expr:
    """``value`` as ``dtype``; constants that fit are converted now.

    >>> import tir
    >>> tir.cast("float32", tir.const(3))
    T.float32(3)
    """
    want = dtype if type(dtype) is DType else DType(dtype)
    x = as_expr(value)
    if x.dtype is want:
        return x
    if x.dtype is VOID or want is VOID or isinstance(x, StringImm):
        given = "a string" if isinstance(x, StringImm) else f"a value of type {x.dtype}"
        raise TypeError(f"{given} cannot be converted to {want}")
    if x.dtype.lanes == 1 and want.lanes > 1:
        return Broadcast(cast(want.element, x), want.lanes)
    if isinstance(x, Broadcast) and want.lanes == x.lanes:
        return Broadcast(cast(want.element, x.value), x.lanes)
    if isinstance(x, IntImm) and want.is_int and _wrap(x.value, want) is not None:
        return IntImm(x.value, want)
    if isinstance(x, IntImm) and want.is_bool:
        return IntImm(int(x.value != 0), BOOL)
    if isinstance(x, IntImm) and want.code == "float" and abs(x.value) < 2**11:
        return FloatImm(float(x.value), want)
    if isinstance(x, FloatImm) and want.code == "float" and (want.bits >= x.dtype.bits or not math.isfinite(x.value)):
        return FloatImm(x.value, want)
    return Cast(want, x)


TRUE = IntImm(1, BOOL)
FALSE = IntImm(0, BOOL)


def invert(a: Expr) -> Expr:
    """``~a`` of an integer; of a bool, ``not a``."""
    if a.dtype.is_bool:
        return logical_not(a)
    if not a.dtype.is_int:
        raise TypeError(f"`~` takes integers, not {a.dtype}")
    return Call("bitwise_not", (a,), a.dtype)


# ---------------------------------------------------------------- Python's operators


def _attach_operators() -> None:
    """Give expressions the operators, also of a number on the left: ``1 + x`` is ``x.__radd__(1)``."""
    binary: dict[str, Callable[[Any, Any], Expr]] = {
        "add": partial(arithmetic, Add), "sub": partial(arithmetic, Sub), "mul": partial(arithmetic, Mul),
        "truediv": _truediv, "floordiv": floordiv, "mod": floormod, "lshift": partial(bit_op, "shift_left"),
        "rshift": partial(bit_op, "shift_right"), "and": partial(bit_op, "bitwise_and"),
        "or": partial(bit_op, "bitwise_or"), "xor": partial(bit_op, "bitwise_xor"),
    }  # fmt: skip
    for name, build in binary.items():
        setattr(Expr, f"__{name}__", _or_reflected(build))
        setattr(Expr, f"__r{name}__", lambda self, other, build=build: build(other, self))
    for kind in (LT, LE, GT, GE):
        setattr(Expr, f"__{kind.__name__.lower()}__", _or_reflected(partial(compare, kind)))
    for kind in (EQ, NE):
        setattr(Expr, f"__{kind.__name__.lower()}__", lambda self, other, kind=kind: _compare_with(kind, self, other))
    Expr.__neg__ = neg
    Expr.__invert__ = invert
    Expr.astype = lambda self, dtype: cast(dtype, self)
    Expr.equal = lambda self, other: compare(EQ, self, other)


def _or_reflected(build: Callable[[Any, Any], Expr]) -> Callable[[Expr, Any], Any]:
    """``build``, left to the operators of what stands on the right where that says so, as NumPy's operators do."""

    def apply(self: Expr, other: Any) -> Any:
        decides = not isinstance(other, (Expr, int)) and getattr(type(other), "__array_ufunc__", build) is None
        return NotImplemented if decides else build(self, other)

    return apply


def _compare_with(kind: Any, a: Expr, b: object) -> Any:
    """``a == b`` or ``a != b``; of what is no number, what Python makes of it."""
    if b is None or not isinstance(b, (Expr, int, float)):
        return NotImplemented
    return compare(kind, a, b)


_attach_operators()


def choice_parts(value: Any) -> tuple[Expr, Expr, Expr] | None:
    """Condition, true value and false value of a selection; None for anything else."""
    if isinstance(value, Select):
        return value.condition, value.true_value, value.false_value
    if isinstance(value, Call) and value.op == "if_then_else":
        return value.args[0], value.args[1], value.args[2]
    return None


def constant(e: Expr | None) -> int | None:
    """The value of an integer constant; None for anything else."""
    return e.value if isinstance(e, IntImm) else None
