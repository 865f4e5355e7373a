"""Every pair of data types has the common type that the Array API standard names, or is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tir.dtype import DType
from tir.errors import TensorExpressionError
from tir.ops.promotion import kind_of, result_type

TYPES = ["bool", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]


def promoted(first: str, second: str) -> str | None:
    """What NumPy promotes to, where the standard has a common type: within a kind, without a float of two integers."""
    found = str(np.promote_types(first, second))
    same = kind_of(DType(first)) == kind_of(DType(second)) == kind_of(DType(found))
    return found if same else None


@pytest.mark.parametrize("first", TYPES)
def test_with_every_other_type(first):
    for second in TYPES:
        expected = promoted(first, second)
        try:
            assert result_type([DType(first), DType(second)]) == expected, second
        except TensorExpressionError:
            assert expected is None, second


def test_the_order_of_operands_does_not_count():
    for pair in itertools.combinations(["float16", "bfloat16", "float8_e4m3", "float8_e5m2", "float32", "float64"], 2):
        made = result_type(map(DType, pair))
        assert made == result_type(map(DType, reversed(pair))) and made.bits >= max(DType(d).bits for d in pair)
