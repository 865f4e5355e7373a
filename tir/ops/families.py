"""Families of operators of single elements: a row each makes the function, its docstring and its entry in the table."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .. import te
from ..te import Tensor
from .cases import Case, arg, case
from .operands import Operand, common_type, elementwise, require_kind, values_of
from .registry import operator

SECTION = "elementwise"
Formula = Callable[..., Any]  # of scalars
_NUMBERS = ("integer", "float")


def pairs(values: str = "any", other: str | None = None, kinds: Sequence[str] = _NUMBERS) -> list[Case]:
    """Cases of an operator of two operands: broadcasting, empty, 0-d and symbolic shapes, types, special values."""
    second = values if other is None else other
    made: list[Case] = []
    if "float" in kinds:
        made += [
            case(arg((17, 1), "float32", "special"), arg((17,), "float32", "special")),
            case(arg((), "float64", values), arg((2, 0, 3), "float64", second)),
            case(arg((5, 7), "float64", values), arg((5, 1), "float32", second)),
            case(arg(("n", 3), "float16", values), arg(("n", 1), "float16", second)),
            case(2.5, arg((1, 7), "bfloat16", second)),
        ]
    if "integer" in kinds:
        made += [
            case(arg((6, 1), "int8", values), arg((6,), "uint8", second)),
            case(arg((7,), "uint32", values), arg((1,), "uint32", second)),
            case(arg((1, 9), "int64", values), 3),
        ]
    if "bool" in kinds:
        made += [case(arg((2, 3), "bool"), arg((3,), "bool")), case(arg((4,), "bool"), True)]
    return made


def binary(
    reference: Callable[..., Any],
    cases: Sequence[Case],
    kinds: Sequence[str] = _NUMBERS,
    aliases: Sequence[str] = (),
    result: str = "",
) -> Callable[[Formula], Callable[[Operand, Operand], Tensor]]:
    """The operator of two operands that broadcast, whose elements are what the function gives for two scalars.

    Operands are promoted to a common type of one of ``kinds``; the type of the ``result`` is that, where none is named.
    """

    def register(formula: Formula) -> Callable[[Operand, Operand], Tensor]:
        name = formula.__name__

        def function(x: Operand, y: Operand) -> Tensor:
            operands = values_of(x), values_of(y)
            dtype = common_type(operands)
            require_kind(dtype, kinds, "an operand")
            return elementwise(name, formula, *operands, dtype=dtype)

        gives = f", and give {result}" if result else ""
        _describe(
            function, formula, f"Operands broadcast, are promoted to a common type, and are {_either(kinds)}{gives}."
        )
        shapes = "(…*), (…*) -> (…*)"
        return operator(shapes=shapes, section=SECTION, reference=reference, cases=cases, aliases=aliases)(function)

    return register


def singles(values: str = "any", kinds: Sequence[str] = ("float",)) -> list[Case]:
    """Cases of an operator of one tensor: empty, 0-d and symbolic shapes, types, special values."""
    made: list[Case] = []
    if "float" in kinds:
        made += [
            case(arg((3, 7), "float32", "special")),
            case(arg(("n", 5), "float64", "special")),
            case(arg((), "float32", values)),
            case(arg((1, 4), "float16", values)),
            case(arg((2, 0, 3), "float16", values)),
            case(arg((9,), "bfloat16", values)),
        ]
    if "integer" in kinds:
        made += [case(arg((2, 3), "int8", values)), case(arg((5,), "int64", values)), case(arg((7,), "uint32", values))]
    if "bool" in kinds:
        made += [case(arg((2, 3), "bool"))]
    return made


def unary(
    reference: Callable[..., Any],
    cases: Sequence[Case],
    kinds: Sequence[str] = ("float",),
    aliases: Sequence[str] = (),
    tolerance: float | None = None,
    result: str = "",
) -> Callable[[Formula], Callable[[Tensor], Tensor]]:
    """The operator of one tensor of one of ``kinds``, whose elements are what the function gives for a scalar."""

    def register(formula: Formula) -> Callable[[Tensor], Tensor]:
        name = formula.__name__

        def function(x: te.Tensor) -> te.Tensor:
            return elementwise(name, formula, values_of(x))

        _describe(function, formula, f"The tensor is {_either(kinds)}{f', the result {result}' if result else ''}.")
        register = operator(
            shapes=f"(…) {'|'.join(kinds)} -> (…)",
            section=SECTION,
            reference=reference,
            cases=cases,
            aliases=aliases,
            tolerance=tolerance,
        )
        return register(function)

    return register


def _describe(function: Callable[..., Any], formula: Formula, more: str) -> None:
    """Give an operator the name and the docstring of its formula, with ``more``."""
    functools.update_wrapper(function, formula, assigned=("__module__", "__name__", "__qualname__"), updated=())
    del function.__wrapped__  # type: ignore[attr-defined]  (the parameters are its own)
    function.__doc__ = f"{inspect.getdoc(formula)}\n\n{more}"


def _either(kinds: Sequence[str]) -> str:
    words = {"bool": "bools", "integer": "integers", "float": "floats"}
    return " or ".join(words[k] for k in kinds)
