"""What the files of this package register their operators by."""

from __future__ import annotations

import functools

from ..registry import arg, case, operator

__all__ = ["arg", "case", "nn_operator", "of_products"]

nn_operator = functools.partial(operator, section="nn", namespace="nn")


def of_products(terms: int) -> float:
    """A tolerance, in units of the last place at 1, of a sum of ``terms`` products of up to 9 each.

    Each of ``terms`` roundings is off by half a unit of a partial sum (Higham, "Accuracy and Stability of Numerical
    Algorithms", §3.1).
    """
    return max(16.0, terms * terms * 4.5)
