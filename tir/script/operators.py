"""Python's operators on Python values and IR expressions; Python's own evaluation, with bounds."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import expr as _e
from .. import op as _op
from ..buffer import Buffer, BufferRegion
from ..expr import Expr, IntImm, Var
from ..neighbours import call_here
from ..node import Node
from .diagnostics import type_name
from .values import to_expr

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_KINDS: dict[type, Any] = {
    ast.Eq: _e.EQ, ast.NotEq: _e.NE, ast.Lt: _e.LT, ast.LtE: _e.LE, ast.Gt: _e.GT, ast.GtE: _e.GE,
}  # fmt: skip
MOST_BITS = 1 << 12  # of an integer that Python computes while a program is read
MOST_ITEMS = 1 << 20  # that a comprehension runs over, or a repeated sequence holds
_GROWING = {"Pow": ast.Pow, "LShift": ast.LShift, "Mult": ast.Mult}


def apply(op: ast.operator, a: Any, b: Any) -> Any:
    """``a op b``: an IR expression where either side is one.

    Raises ``TypeError`` for an invalid operand, ``ValueError`` for an integer of more than ``MOST_BITS`` bits.
    """
    a, b = plain(a), plain(b)
    if isinstance(op, ast.Pow) and (isinstance(a, Expr) or isinstance(b, Expr)):
        return _op.math_call("pow", a, b)
    fn = _BINARY.get(type(op))
    if fn is None:
        raise TypeError(f"matrix multiplication `@` is not an operator of the dialect; write {call_here('matmul')}")
    for side in (a, b):
        if isinstance(side, Node) and not isinstance(side, Expr):
            raise TypeError(f"{type_name(side)} is not a value; index it")
    _refuse_huge(op, a, b)
    return fn(a, b)


def _refuse_huge(op: ast.operator, a: Any, b: Any) -> None:
    """Raise ``ValueError`` before Python computes a huge number, or repeats a sequence excessively."""
    if isinstance(a, int) and isinstance(b, int):
        bits = a.bit_length()
        if isinstance(op, ast.Pow):
            bits = bits * b if abs(a) > 1 else 1
        elif isinstance(op, ast.LShift):
            bits = bits + b if a else 0
        elif isinstance(op, ast.Mult):
            bits += b.bit_length()
        if type(op) in _GROWING.values() and bits > MOST_BITS:
            raise ValueError(f"this integer has more than {MOST_BITS} bits")
    elif isinstance(op, ast.Mult):
        sequence, count = (b, a) if isinstance(a, int) else (a, b)
        if isinstance(sequence, (str, bytes, list, tuple)) and isinstance(count, int):
            if len(sequence) * count > MOST_ITEMS:
                raise ValueError(f"this {type(sequence).__name__} has more than {MOST_ITEMS} items")


def _bounded(items: Iterable[Any], budget: Iterator[int]) -> Iterator[Any]:
    """``items``, until ``budget`` is used up. Raises ``ValueError`` then."""
    for item in items:
        if next(budget, None) is None:
            raise ValueError(f"a comprehension runs over more than {MOST_ITEMS} items")
        yield item


def evaluate(node: ast.expr, names: dict[str, Any]) -> Any:
    """The value of ``node`` in Python, over ``names``; operators accept expressions, and numbers are bounded."""
    budget = iter(range(MOST_ITEMS))
    names = {
        **names,
        "__tir_combine": combine,
        "__tir_choose": choose,
        "__tir_not": negate,
        "__tir_apply": lambda kind, a, b: apply(_GROWING[kind](), a, b),
        "__tir_items": lambda items: _bounded(items, budget),
    }
    code = ast.fix_missing_locations(ast.Expression(_Rewrite().visit(node)))
    return eval(builtins.compile(code, "<prim_func>", "eval"), names)  # the user's own code, as Python would run it


class _Rewrite(ast.NodeTransformer):
    """Operators inside Python-evaluated code, as calls that know expressions and keep numbers and loops bounded."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        kind = type(node.op).__name__
        if kind not in _GROWING:
            return node
        return ast.Call(ast.Name("__tir_apply", ast.Load()), [ast.Constant(kind), node.left, node.right], [])

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.iter = ast.Call(ast.Name("__tir_items", ast.Load()), [node.iter], [])
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        parts = [_thunk(v) for v in node.values]
        flag = ast.Constant(isinstance(node.op, ast.And))
        return ast.Call(ast.Name("__tir_combine", ast.Load()), [flag, ast.List(parts, ast.Load())], [])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return ast.Call(ast.Name("__tir_not", ast.Load()), [node.operand], [])
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) > 1:
            sides = [node.left, *node.comparators]
            pairs = [ast.Compare(a, [op], [b]) for a, op, b in zip(sides, node.ops, sides[1:])]
            return self.visit(ast.BoolOp(ast.And(), pairs))  # type: ignore[arg-type]
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        lazily = [node.test, _thunk(node.body), _thunk(node.orelse)]
        return ast.Call(ast.Name("__tir_choose", ast.Load()), lazily, [])


def _thunk(body: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def plain(value: Any) -> Any:
    """A value ready for arithmetic: regions become loads, NumPy scalars Python numbers, iterators their variables."""
    if isinstance(value, BufferRegion):
        return to_expr(value)
    if isinstance(value, (Expr, int, float, str)):
        return value
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    inner = getattr(value, "var", None)
    return inner if isinstance(inner, Var) else value


def combine(conjunction: bool, parts: list[Callable[[], Any]]) -> Any:
    """``and`` / ``or``: Python's own on Python values, nodes where expressions take part."""
    result: Any = conjunction
    for part in parts:
        value = plain(part())
        if isinstance(value, Expr) or isinstance(result, Expr):
            if isinstance(result, Expr):
                result = (_e.logical_and if conjunction else _e.logical_or)(result, value)
            else:
                result = value  # every Python value so far let the expression decide
        else:
            result = value
            if bool(value) is not conjunction:
                return value
    return _e.as_bool(result) if isinstance(result, Expr) else result


def negate(value: Any) -> Any:
    value = plain(value)
    return _e.logical_not(value) if isinstance(value, Expr) else not value


def compare(op: ast.cmpop, a: Any, b: Any) -> Any:
    a, b = plain(a), plain(b)
    if (isinstance(a, Expr) or isinstance(b, Expr)) and type(op) in _KINDS:
        if a is None or b is None or isinstance(a, str) or isinstance(b, str):
            return isinstance(op, ast.NotEq)
        return _e.compare(_KINDS[type(op)], a, b)
    return _COMPARE[type(op)](a, b)


def choose(condition: Any, true_value: Any, false_value: Any) -> Any:
    """The ternary: lazy ``if_then_else`` where the condition is an expression."""
    force = lambda v: v() if callable(v) else v  # noqa: E731
    condition = plain(condition)
    if not isinstance(condition, Expr):
        return force(true_value if condition else false_value)
    a, b = _e.matched(plain(force(true_value)), plain(force(false_value)), "the ternary")
    return _op.call("if_then_else", _e.as_bool(condition), a, b, dtype=a.dtype)


def _has_expr(args: tuple[Any, ...]) -> bool:
    return any(isinstance(a, (Expr, BufferRegion)) for a in args)


def _fold_pairs(python: Callable[..., Any], build: Callable[[Any, Any], Expr]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        items = tuple(args[0]) if len(args) == 1 else args
        if not _has_expr(items):
            return python(*args, **options)
        result = plain(items[0])
        for item in items[1:]:
            result = build(result, plain(item))
        return result

    return call


def _abs(x: Any) -> Any:
    x = plain(x)
    return _op.call("fabs" if x.dtype.is_float else "abs", x) if isinstance(x, Expr) else abs(x)


def _converter(python: type, dtype: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        if len(args) == 1 and _has_expr(args) and not isinstance(args[0], (IntImm, _e.FloatImm)):
            return _e.cast(dtype, to_expr(args[0]))
        if len(args) == 1 and isinstance(args[0], (IntImm, _e.FloatImm)):
            return python(args[0].value)
        return python(*args)

    return call


def _round(x: Any, *digits: Any) -> Any:
    """Python's: the nearest integer, of two the even one."""
    x = plain(x)
    if not isinstance(x, Expr):
        return round(x, *digits)
    if digits:
        raise TypeError("round(x, digits) takes no value of a program: round to a multiple, T.nearbyint(x * 100) / 100")
    return _e.cast("int32", _op.call("nearbyint", x)) if x.dtype.is_float else x


def _range(*args: Any) -> Any:
    if not _has_expr(args):
        return range(*args)
    from .tir import range as loop_range

    return loop_range(*args)


def _len(x: Any) -> Any:
    return x.shape[0] if isinstance(x, Buffer) else len(x)


def _print(*values: Any, **options: Any) -> Any:
    """Print values while the program runs; what is no value of a program, while it is being built."""
    if not all(isinstance(x, (Expr, BufferRegion, str, int, float)) for x in values):
        return print(*values, **options)
    if options:
        raise TypeError(f"print takes values alone in a program, not {', '.join(options)}=")
    return _op.call("print", *(_e.StringImm(x) if isinstance(x, str) else to_expr(x) for x in values), dtype="void")


# Python's own functions that take expressions, or compute numbers without a bound
_PYTHON: dict[Any, Callable[..., Any]] = {
    min: _fold_pairs(min, _e.min_),
    max: _fold_pairs(max, _e.max_),
    abs: _abs,
    int: _converter(int, "int32"),
    float: _converter(float, "float32"),
    bool: _converter(bool, "bool"),
    round: _round,
    divmod: lambda *args: (apply(ast.FloorDiv(), *args), apply(ast.Mod(), *args)) if len(args) == 2 else divmod(*args),
    range: _range,
    len: _len,
    print: _print,
    pow: lambda *args: apply(ast.Pow(), *args) if len(args) == 2 else pow(*args),
}


def python_function(fn: Any) -> Any:
    """Python's min, max, abs, int, float, bool, round, divmod, range and the like, made to take expressions; anything else unchanged."""
    try:
        return _PYTHON.get(fn, fn) if isinstance(fn, type) or callable(fn) and not isinstance(fn, Node) else fn
    except TypeError:  # not hashable
        return fn
