"""Index expressions as Python functions of their variables: exact evaluation at points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..expr import (
    COMPARED,
    FOLDED,
    SYMBOLS,
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
    Sub,
    Var,
    choice_parts,
)


class Unsupported(Exception):
    """The expression has a part that is not scalar integer arithmetic on the given variables."""


_INFIX: dict[Any, str] = {
    **{kind: SYMBOLS[kind] for kind in (Add, Sub, Mul, FloorDiv, FloorMod, *COMPARED)}, And: "and", Or: "or",
}  # fmt: skip
_BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_PREFIX: dict[Any, str] = {Min: "min", Max: "max", Div: "trunc_div", Mod: "trunc_mod"}


_FUNCTIONS: dict[str, Any] = {name: FOLDED[kind] for kind, name in _PREFIX.items()}


def compile_expr(e: Expr, variables: Sequence[Var]) -> Callable[..., Any]:
    """A Python function of ``variables`` computing ``e`` on unbounded integers (conditions as bools).

    Raises ``Unsupported`` for loads, calls, floats and variables not given.
    """
    names = {v: f"x{n}" for n, v in enumerate(variables)}
    return eval(f"lambda {', '.join(names.values())}: {_python(e, names)}", dict(_FUNCTIONS))


def compile_values(e: Expr, variables: Sequence[Var]) -> Callable[..., list[Any]]:
    """A Python function of the ranges of ``variables``, one or more, that lists ``e`` at all of their points. Raises
    ``Unsupported`` as :func:`compile_expr` does, and ``ZeroDivisionError`` if a point has no value.

    >>> i, j = Var("i"), Var("j")
    >>> compile_values(i * 4 + j, [i, j])(range(2), range(3))
    [0, 1, 2, 4, 5, 6]
    """
    names = {v: f"x{n}" for n, v in enumerate(variables)}
    loops = " ".join(f"for {name} in of_{name}" for name in names.values())
    taken = ", ".join(f"of_{name}" for name in names.values())
    return eval(f"lambda {taken}: [{_python(e, names)} {loops}]", dict(_FUNCTIONS))


def _python(e: Any, names: dict[Var, str]) -> str:
    if isinstance(e, IntImm):
        return f"({e.value})"
    if isinstance(e, Var) and e in names:
        return names[e]
    if type(e) in _INFIX and not e.a.dtype.is_float:
        return f"({_python(e.a, names)} {_INFIX[type(e)]} {_python(e.b, names)})"
    if type(e) in _PREFIX and not e.a.dtype.is_float:
        return f"{_PREFIX[type(e)]}({_python(e.a, names)}, {_python(e.b, names)})"
    if isinstance(e, Not):
        return f"(not {_python(e.a, names)})"
    if (parts := choice_parts(e)) is not None:
        condition, yes, no = (_python(part, names) for part in parts)
        return f"({yes} if {condition} else {no})"
    if isinstance(e, Call) and e.op == "likely":
        return _python(e.args[0], names)
    if isinstance(e, Call) and e.op in _BITWISE and e.dtype.is_int:
        return f"({_python(e.args[0], names)} {_BITWISE[e.op]} {_python(e.args[1], names)})"
    if isinstance(e, Cast) and e.dtype.is_int and e.dtype.bits >= 32 and not e.value.dtype.is_float:
        return f"int({_python(e.value, names)})"
    raise Unsupported(type(e).__name__)


def compile_numpy(e: Expr, variables: Sequence[Var]) -> Callable[..., Any]:
    """As :func:`compile_expr`, on NumPy index arrays."""
    import numpy as np

    names = {v: f"x{n}" for n, v in enumerate(variables)}
    code = f"lambda {', '.join(names.values())}: {_python(e, names)}"
    scalar = eval(code, {**_FUNCTIONS, "min": np.minimum, "max": np.maximum})
    if any(word in code for word in (" if ", " and ", " or ", "not ", "trunc_", "int(")):
        return np.vectorize(scalar, otypes=[np.int64])  # not an array operation in Python
    return scalar
