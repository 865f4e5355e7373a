"""Operators of single elements: arithmetic, comparisons, bits, functions of floats, conversions.

Names and types are those of the Array API standard (:mod:`tir.ops.promotion`), beside names of TOPI. Operands broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import te
from ..expr import const
from ..te import Tensor
from .operands import Operand, common_type, elementwise, require_kind, values_of
from .registry import Case, arg, case, operator

SECTION = "elementwise"
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int32", "int8", "uint8", "int16", "int64", "uint16", "uint32", "uint64")


# ---------------------------------------------------------------- binary operators


def _pairs(values: str = "any", other: str | None = None, kinds: Sequence[str] = ("float", "integer")) -> list[Case]:
    """Cases of an operator of two operands: broadcasting, empty, 0-d and symbolic shapes, types, special values."""
    second = values if other is None else other
    made = []
    if "float" in kinds:
        made += [
            case(arg((3, 1), "float32", values), arg((4,), "float32", second)),
            case(arg((), "float64", values), arg((2, 0, 3), "float64", second)),
            case(arg(("n", 3), "float16", values), arg(("n", 1), "float32", second)),
            case(arg((5,), "bfloat16", values), arg((1,), "bfloat16", second)),
            case(arg((13, 1), "float32", "special"), arg((13,), "float32", "special")),
            case(arg((3, 4), "float32", values), 2.5),
        ]
    if "integer" in kinds:
        made += [
            case(arg((2, 3), "int8", values), arg((1, 3), "int8", second)),
            case(arg((7,), "int32", values), arg((1,), "uint8", second)),
            case(arg((1, 2), "int64", values), 3),
            case(arg((6, 1), "uint8", values), arg((6,), "uint16", second)),
        ]
    if "bool" in kinds:
        made += [case(arg((2, 3), "bool"), arg((3,), "bool")), case(arg((4,), "bool"), True)]
    return made


def binary(
    name: str,
    text: str,
    reference: Callable[..., Any],
    formula: Callable[[Any, Any], Any],
    cases: Sequence[Case],
    kinds: Sequence[str] = ("integer", "float"),
    aliases: Sequence[str] = (),
) -> Callable[[Operand, Operand], Tensor]:
    """Register the operator ``name`` of two operands that broadcast, promoted to a common type of one of ``kinds``."""

    def function(x: Operand, y: Operand) -> Tensor:
        operands = values_of(x), values_of(y)
        dtype = common_type(operands)
        require_kind(dtype, kinds, "an operand")
        return elementwise(name, formula, *operands, dtype=dtype)

    dtype = "bool" if kinds == ("bool",) else "int32" if "float" not in kinds else "float32"
    example = te.compute((4, 3), lambda *_: formula(const(1, dtype), const(1, dtype)), name=name)
    function.__doc__ = f"""{text}

    Operands broadcast, and are of kind {" or ".join(kinds)}.

    >>> {name}(te.placeholder((4, 1), "{dtype}"), te.placeholder((3,), "{dtype}"))
    {example!r}
    """
    function.__name__ = function.__qualname__ = name
    return operator(section=SECTION, reference=reference, cases=cases, aliases=aliases)(function)


add = binary("add", "``x + y``.", np.add, lambda x, y: x + y, _pairs(), aliases=("broadcast_add",))
subtract = binary("subtract", "``x - y``.", np.subtract, lambda x, y: x - y, _pairs(), aliases=("broadcast_sub",))
multiply = binary("multiply", "``x * y``.", np.multiply, lambda x, y: x * y, _pairs(), aliases=("broadcast_mul",))
