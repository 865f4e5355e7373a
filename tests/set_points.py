"""The points of exact sets, by enumeration: for tests that compare sets with what they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy  # noqa: TID251  (enumeration is for tests alone)

from tir.poly import IntegerSet, Relation

KINDS = islpy.dim_type


def points(found: IntegerSet | Relation) -> list[tuple[int, ...]]:
    """All points of a bounded set without parameters; of a relation all pairs, source and target in one tuple."""
    isl = found._isl.wrap().flatten() if isinstance(found, Relation) else found._isl
    made: list[tuple[int, ...]] = []
    axes = range(isl.dim(KINDS.set))
    isl.foreach_point(lambda p: made.append(tuple(p.get_coordinate_val(KINDS.set, n).to_python() for n in axes)))
    return made


def contains(found: IntegerSet, point: Sequence[int], parameters: Mapping[str, int]) -> bool:
    """Whether ``point`` is in the set for these values of the parameters (others it does not have)."""
    isl = found._isl
    for name, value in parameters.items():
        axis = isl.find_dim_by_name(KINDS.param, name)
        isl = isl if axis < 0 else isl.fix_val(KINDS.param, axis, value)
    for axis, value in enumerate(point):
        isl = isl.fix_val(KINDS.set, axis, value)
    return not isl.is_empty()
