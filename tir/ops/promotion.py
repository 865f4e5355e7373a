"""The data type of a result, as the Array API standard promotes types.

Two types of one kind give the least type that holds both: ``int8`` and ``uint8`` give ``int16``, ``float16`` and
``bfloat16`` give ``float32``. Types of two kinds (bool, integer, float) have no result: the user says which by ``astype``.
Numbers of Python are weak: they take the type of the tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from .. import DType
from ..te import error


def kind_of(dtype: DType) -> str:
    """``"bool"``, ``"integer"`` or ``"float"``; ``""`` for what no operator takes.

    >>> kind_of(DType("uint8"))
    'integer'
    """
    return "float" if dtype.is_float else "integer" if dtype.is_int else "bool" if dtype.is_bool else ""


def result_type(dtypes: Iterable[DType]) -> DType:
    """The type of a result of operands of these types. Raises ``TensorExpressionError`` where there is none.

    >>> result_type([DType("int8"), DType("uint16"), DType("int8")])
    'int32'
    """
    return reduce(_wider, dict.fromkeys(dtypes))


def _wider(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if kind_of(a) != kind_of(b):
        number = b if a.is_bool or b.is_float else a
        raise error(
            f"operands are {a} and {b}: there is no common type of {kind_of(a)} and {kind_of(b)}",
            f'convert one of them: ops.astype(x, "{number}")',
        )
    if a.is_float:
        return _wider_float(a, b)
    if a.code == b.code:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.code == "int" else (b, a)
    if unsigned.bits == 64:
        raise error(
            f"operands are {a} and {b}: no integer type holds both", 'convert one of them: ops.astype(x, "int64")'
        )
    return DType(f"int{max(signed.bits, 2 * unsigned.bits)}")


def _wider_float(a: DType, b: DType) -> DType:
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return DType("float16" if a.bits == 8 else "float32")


def wide(dtype: DType) -> DType:
    """The type in which values of ``dtype`` are computed and accumulated: float32 for floats of 16 bits and less."""
    return DType("float32") if dtype.is_float and dtype.bits < 32 else dtype


def weak_type(value: Any, dtype: DType) -> None:
    """Raise ``TensorExpressionError`` unless the Python number ``value`` may take the place of a ``dtype``."""
    legal = (
        dtype.is_bool if isinstance(value, bool) else not dtype.is_bool if isinstance(value, int) else dtype.is_float
    )
    if not legal:
        kind = DType("bool") if isinstance(value, bool) else "an integer" if isinstance(value, int) else "a float"
        wanted = "float32" if isinstance(value, float) else "int32"
        raise error(f"the number {value!r} is {kind}, and the operand is {dtype}", f'ops.astype(x, "{wanted}")')
