"""Layouts: where the axes of images and kernels are among the dimensions of a tensor.

A layout is a word like those of others: ``NCHW``, ``NHWC``; in ``NCHW4c`` channels are in groups of 4, the last dimension.
Without the number, ``NCHWc``, the size of a group is the extent of that dimension.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ... import Expr, simplify
from ...te import Tensor, equate, error
from ..element_places import integer

_PART = re.compile(r"(\d*)([A-Za-z])")


@dataclass(frozen=True)
class Layout:
    """Letters of the axes, in the order of dimensions: a small letter is the inner part of the axis of the large one.

    ``factors`` has the sizes of the inner parts.
    """

    parts: tuple[str, ...]
    factors: Mapping[str, int]

    def shape(self, extents: Mapping[str, Any]) -> tuple[Any, ...]:
        """The shape of a tensor with these extents of whole axes."""
        return tuple(self._extent(part, extents[part.upper()]) for part in self.parts)

    def _extent(self, part: str, whole: Any) -> Any:
        factor = self.factors.get(part.upper())
        if part.islower():
            return factor
        return whole if factor is None else simplify((whole + factor - 1) // factor)

    def coordinates(self, indices: Sequence[Any]) -> dict[str, Any]:
        """The place on each axis of the element at ``indices``."""
        found = dict(zip(self.parts, indices))
        return {
            axis: index * self.factors[axis] + found[axis.lower()] if axis in self.factors else index
            for axis, index in found.items()
            if axis.isupper()
        }

    def indices(self, place: Mapping[str, Any]) -> tuple[Any, ...]:
        """The indices of the element at a place on each axis; axes that the layout does not have do not count."""
        return tuple(self._index(part, place[part.upper()]) for part in self.parts)

    def _index(self, part: str, at: Any) -> Any:
        factor = self.factors.get(part.upper())
        return at if factor is None else at % factor if part.islower() else at // factor

    def __str__(self) -> str:
        return "".join(f"{self.factors[p.upper()]}{p}" if p.islower() else p for p in self.parts)


@dataclass(frozen=True)
class Arranged:
    """A tensor in a layout."""

    tensor: Tensor
    layout: Layout

    def extent(self, axis: str) -> Any:
        """The extent of a whole axis; 1 of one that the layout does not have."""
        if axis not in self.layout.parts:
            return 1
        outer = self.tensor.shape[self.layout.parts.index(axis)]
        return simplify(outer * self.layout.factors[axis]) if axis in self.layout.factors else outer

    def at(self, place: Mapping[str, Any]) -> Expr:
        """The element at a place on each axis."""
        return self.tensor(*self.layout.indices(place))


def arranged(tensor: Tensor, word: str, axes: str, what: str) -> Arranged:
    """``tensor`` in the layout that ``word`` says; ``axes`` are the letters it must have, each once.

    Raises ``TensorExpressionError`` for a word that is no layout of these axes, and for another number of dimensions.
    """
    legal = f"an order of {axes}, each axis in one part or two, as in {axes}4{axes[1].lower()}"
    found = _PART.findall(word) if isinstance(word, str) else []
    parts = tuple(letter for _, letter in found)
    inner = [p for p in parts if p.islower()]
    is_whole = isinstance(word, str) and "".join(n + p for n, p in found) == word
    if not is_whole or sorted(p for p in parts if p.isupper()) != sorted(axes) or len(set(parts)) < len(parts):
        raise error(f"the layout of {what} is {word!r}", legal)
    if any(p.upper() not in axes for p in inner) or any(n for n, p in found if p.isupper()):
        raise error(f"the layout of {what} is {word!r}", legal)
    if tensor.ndim != len(parts):
        raise error(
            f"{what} in layout {word} has {len(parts)} dimensions, but `{tensor.name}` has {tensor.ndim}: {tensor.shape}"
        )
    factors: dict[str, int] = {}
    for (number, part), extent in zip(found, tensor.shape):
        if part.islower():
            if number and not equate(extent, int(number)):
                raise error(
                    f"axis {part.upper()} of {what} in layout {word} is in groups of {number}, but `{tensor.name}` of "
                    f"shape {tensor.shape} has groups of {extent!r}"
                )
            factors[part.upper()] = integer(extent, f"the size of a group of axis {part.upper()} of {what}")
    return Arranged(tensor, Layout(parts, factors))


def shape_text(word: str, **extents: str) -> str:
    """The shape of a tensor in a layout, as docstrings show it; ``extents`` are what axes are called other than their letters.

    >>> shape_text("OIHW", I="C / groups")
    '(O, C / groups, H, W)'
    """
    return f"({', '.join(extents.get(letter, letter) for letter in word)})"
