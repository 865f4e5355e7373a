"""The part of ``T`` that is made from the table of operators: ``T.exp``, ``T.ptx_mma``; their signatures and docstrings."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

from ..dtype import DType
from ..expr import Expr, bit_op
from ..op import FLOAT_BINARY, FLOAT_UNARY, OPS, Op, call, math_call
from .tir_types import DataType
from .values import as_buffer_load, attributes, dtype_of, to_expr

FLOAT = {*FLOAT_UNARY, *FLOAT_BINARY}
_BINARY_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")  # as `&`, `|`, `^`, `<<`, `>>`

# operators whose result type follows from their arguments
_TYPED_BY: dict[str, Callable[[Any], Any]] = {
    "tvm_warp_activemask": lambda args: "uint32",
    **{f"tvm_warp_shuffle{how}": lambda args: to_expr(args[1]).dtype for how in ("", "_up", "_down", "_xor")},
}


def operator_function(name: str) -> Callable[..., Expr]:
    """The function ``T.<name>`` of an operator of the table."""
    entry = OPS[name]

    def build(*args: Any, dtype: Any = None, **options: Any) -> Expr:
        if dtype is None and args and _is_type(args[0], entry, len(args)):
            dtype, args = args[0], args[1:]
        if name == "tvm_struct_get" and dtype is None and len(args) == 4:
            dtype, args = args[3], args[:3]
        if dtype is None and name in _TYPED_BY and not entry.refused_count(len(args)):
            dtype = _TYPED_BY[name](args)
        given = None if dtype is None else dtype_of(dtype)
        values = [to_expr(a) if entry.effect == "pure" else as_buffer_load(a) for a in args]
        if entry.effect == "pure" and name in FLOAT:
            return math_call(name, *values)
        if name in _BINARY_BITS and len({v.dtype for v in values}) > 1:
            return bit_op(name, *args)  # which matches their types
        made = call(name, *values, dtype=given)
        return (
            made.replace(annotations=attributes(options["annotations"], f"T.{name}"))
            if "annotations" in options
            else made
        )

    build.__name__ = build.__qualname__ = name
    build.__doc__ = docstring(entry)
    build.__signature__ = signature(entry)  # type: ignore[attr-defined]
    return build


def _is_type(value: Any, entry: Op, count: int) -> bool:
    """Whether the first argument of an operator is its result type rather than an operand."""
    if isinstance(value, DataType):
        return True
    if not isinstance(value, str) or count == entry.arity or (entry.result != "given" and entry.arity is None):
        return False
    try:
        DType(value)
    except ValueError:
        return False
    return value != ""


# ---------------------------------------------------------------- signatures and docstrings


def signature(entry: Op) -> inspect.Signature:
    """The parameters as the table names them, and ``dtype`` where the call says its type."""
    unnamed = ["*args"] if entry.arity is None else [f"x{k}" for k in range(entry.arity)]
    made = [
        inspect.Parameter(
            p.strip("*?"),
            inspect.Parameter.VAR_POSITIONAL if p.startswith("*") else inspect.Parameter.POSITIONAL_ONLY,
            default=None if p.endswith("?") else inspect.Parameter.empty,
        )
        for p in entry.parameters or unnamed
    ]
    if entry.result == "given":
        made.append(inspect.Parameter("dtype", inspect.Parameter.KEYWORD_ONLY, default=None))
    return inspect.Signature(made)


def docstring(entry: Op) -> str:
    """What the operator computes, gives and refuses, and its example, from its row in the table."""
    example = _with_variables(entry.example) if entry.example else ""
    about = entry.about or f"The operator ``{entry.name}``."
    prose = [textwrap.fill(part, 110) for part in (about, f"{_returned(entry)} {_raised(entry)}")]
    return "\n\n".join([*prose, example] if example else prose)


def _returned(entry: Op) -> str:
    if entry.name in FLOAT:
        return (
            "The result has the type of the first operand, lane by lane for vectors; integers count as ``float32``, "
            "further operands become that type."
        )
    if entry.name in _TYPED_BY:
        return "The type of the result follows from the arguments."
    if entry.result == "same":
        return "The result has the type of the first operand, lane by lane for vectors."
    if entry.result != "given":
        return f"The result is ``{entry.result}``{', a lane for each of the operand' * (entry.effect == 'pure')}."
    kind = "A value" if entry.effect in ("pure", "read") else "A statement with an effect, or a value"
    return f"{kind}: ``dtype=`` says of which type, without it ``void``."


def _raised(entry: Op) -> str:
    any_number = entry.parameters[:1] and entry.parameters[0].startswith("*")
    number = "" if any_number else "``ValueError`` for another number of arguments"
    kinds = [f"{kind} as ``{name}``" for name, kind in zip(entry.parameters, entry.takes.split(",")) if kind]
    each = ", or no ".join(kinds) if "," in entry.takes else entry.takes
    kind = f"``TypeError`` for operands that are no {each}" if each and entry.name not in FLOAT else ""
    return f"Raises {' and '.join(filter(None, (number, kind)))}." if number or kind else ""


# what the examples of the table may name
_VARIABLES = {
    "i": 'T.Var("i", "int32")',
    "x": 'T.Var("x", "float32")',
    "v": 'T.Var("v", "float32x4")',
    **{name: f'T.Var("{name}", "handle")' for name in "ABC"},
}


def _with_variables(example: str) -> str:
    """An example after the lines that import and declare what it names."""
    calls = re.sub(r'"[^"]*"', "", "".join(line for line in example.splitlines() if line.startswith(">>> ")))
    named = [name for name in _VARIABLES if re.search(rf"\b{name}\b", calls)]
    head = ["from tir import simplify"] * ("simplify(" in calls) + ["from tir.script import tir as T"]
    head += [f"{', '.join(named)} = {', '.join(_VARIABLES[n] for n in named)}"] * bool(named)
    return "\n".join([*(f">>> {line}" for line in head), example])
