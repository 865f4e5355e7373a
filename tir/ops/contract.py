"""Shape contracts: ``"(…, k), (n, k), (n) -> (…, n)"`` says the shapes of an operator's tensors, and of what it gives.

From the one text come the check of a call, the assertions at run time where sizes are symbolic, the message, and the page of
operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import DType, Expr
from ..te import Tensor, equate, equate_shapes, error, is_multiple
from .promotion import kind_of
from .shapes import axis_of, broadcast

# why operators state no shapes
BY_LAYOUT = "which axis is which is for the layout to say"
BY_AXES = "which axes are left is for `axis` and `keepdims` to say"
BY_PADS = "each extent grows by what the call says"
BY_RANK = "a tensor of one dimension is a row or a column, and either may be transposed"
BY_CALL = "the call says the shape of the result"

_SHAPE = re.compile(r"\s*(?P<many>\[)?\((?P<extents>[^()]*)\)\s*(?P<kind>[\w|]*)(?(many)\])\s*(?:,|$)")
_EXTENT = re.compile(r"(\d*)([a-z]\w*|_(?=@))(?:@(\w+))?|(\d+)|_|…\w*\*?")
_KINDS = ("bool", "integer", "float")
_WORDS = {"bool": "bools", "integer": "integers", "float": "floats"}


@dataclass(frozen=True)
class Shape:
    """A tensor of a contract, or each of ``many``: its ``extents``, and its ``kind``: ``"float"``, ``"integer|float"``, or a
    letter that stands for one data type; empty for any."""

    text: str
    extents: tuple[str, ...]
    kind: str
    many: bool = False

    def each(self, name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
        """The tensors among what is given for it, with how errors call them."""
        if isinstance(value, Tensor):
            yield name, value
        elif self.many and isinstance(value, (list, tuple)):
            yield from ((f"{name}[{n}]", v) for n, v in enumerate(value) if isinstance(v, Tensor))


def _shapes(text: str) -> tuple[Shape, ...]:
    made: list[Shape] = []
    place = 0
    while place < len(text):
        found = _SHAPE.match(text, place)
        if found is None:
            raise ValueError(f"no shape begins at {text[place:]!r}: '(n, k) float, (…) T'")
        extents = tuple(e.strip() for e in found["extents"].split(",") if e.strip())
        for extent in extents:
            if _EXTENT.fullmatch(extent) is None:
                raise ValueError(f"{extent!r} is no extent: n, 4, 4n, n@axis, _ or …")
        if sum(e[0] == "…" for e in extents) > 1 + any("@" in e for e in extents):
            raise ValueError(f"({found['extents']}) has more than one …")
        made.append(Shape(f"({', '.join(extents)})", extents, found["kind"], found["many"] is not None))
        place = found.end()
    return tuple(made)


class Contract:
    """The shapes of the tensors of a call, in the order of the parameters, and of the results.

    An extent is a number, a name (the same size wherever it stands), a multiple of one (``4h``), ``_`` (any), ``…`` (any number of
    extents; those of ``…a`` are the same wherever it stands, those of ``…*`` broadcast), or ``c@axis`` between two ``…``: that of the
    axis which the parameter ``axis`` says (where it is None, nothing is said). After a shape may stand what kinds of numbers it
    holds, or a letter, the same for one data type. ``[(n) T]`` are several tensors.

    >>> Contract("(…, k) T, (n, k) T, (n) -> (…, n)")
    Contract("(…, k) T, (n, k) T, (n) -> (…, n)")
    >>> Contract("(n, k")
    Traceback (most recent call last):
    ValueError: the contract '(n, k' has no `->`
    """

    def __init__(self, text: str):
        given, arrow, made = text.partition("->")
        if not arrow:
            raise ValueError(f"the contract {text!r} has no `->`")
        self.text = text
        self.arguments = _shapes(given.strip())
        self.results = _shapes(made.strip())

    def __repr__(self) -> str:
        return f'Contract("{self.text}")'

    def check(self, names: Sequence[str], given: Mapping[str, Any]) -> None:
        """Raise ``TensorExpressionError`` unless the tensors ``names`` of a call have these shapes, or can: what depends on
        symbolic sizes is noted as a condition of the operations that are made (:mod:`tir.te.symbolic_sizes`)."""
        self._checked(names, given)

    def check_results(self, names: Sequence[str], given: Mapping[str, Any], made: Sequence[Tensor]) -> None:
        """Raise ``TensorExpressionError`` unless the results of a call have the shapes that the contract says."""
        sizes = self._checked(names, given)
        sizes.are_whole = True
        forms = list(self.results)
        if forms and forms[-1].many:
            forms += [forms[-1]] * (len(made) - len(forms))
        if len(made) > len(forms):
            raise error(f"there are {len(made)} results, and {len(forms)} in the contract", self._legal(names))
        for result, shape in zip(made, forms):
            sizes.take("the result", result, shape)

    def _checked(self, names: Sequence[str], given: Mapping[str, Any]) -> _Sizes:
        sizes = _Sizes(given, lambda: self._legal(names))
        for name, shape in zip(names, self.arguments):
            for each, tensor in shape.each(name, given.get(name)):
                sizes.take(each, tensor, shape)
        return sizes

    def _legal(self, names: Sequence[str]) -> str:
        shown = (f"{name} {s.text}{s.kind and f' {s.kind}'}" for name, s in zip(names, self.arguments))
        return f"{', '.join(shown)} -> {', '.join(s.text for s in self.results)}"


class _Sizes:
    """What the names of a contract stand for in a call, and the parameter that said so first."""

    def __init__(self, given: Mapping[str, Any], legal: Any):
        self.given, self.legal = given, legal
        self.are_whole = False  # what broadcasts has been seen
        self.known: dict[str, tuple[Any, str]] = {}
        self.broadcast: dict[str, list[Any]] = {}
        self.types: dict[str, tuple[DType, str]] = {}

    def take(self, name: str, value: Tensor, shape: Shape) -> None:
        self._take_type(name, value.dtype, shape.kind)
        what = f"{name} {value.shape}"
        for axis, extent, form in self._matched(name, value, shape):
            self._take_extent(what, f"{what} is not {shape.text}: axis {axis} is {extent}", extent, form)

    def _take_type(self, name: str, dtype: DType, kind: str) -> None:
        if not kind:
            return
        kinds = kind.split("|")
        if kinds[0] in _KINDS:
            if kind_of(dtype) not in kinds:
                wanted = " or ".join(_WORDS[k] for k in kinds)
                raise error(f"{name} is {dtype}, and holds {wanted}", self.legal())
            return
        first, said = self.types.setdefault(kind, (dtype, name))
        if dtype is not first:
            raise error(f"{name} is {dtype}, but {said} is {first}", f'ops.astype({name}, "{first}")')

    def _matched(self, name: str, value: Tensor, shape: Shape) -> Iterator[tuple[int, Any, str]]:
        """The axes of a tensor, each with its extent and how the contract has it."""
        forms, ndim = shape.extents, value.ndim
        at = next((f for f in forms if "@" in f), None)
        if at is not None:
            form, _, parameter = at.partition("@")
            if self.given[parameter] is not None:
                axis = axis_of(self.given[parameter], ndim, parameter)
                if form == "_":
                    self._take_others(f"{name} {value.shape}", value.shape[:axis] + value.shape[axis + 1 :], axis)
                yield axis, value.shape[axis], form
            return
        rest = next((n for n, f in enumerate(forms) if f[0] == "…"), None)
        many = ndim - len(forms) + 1
        if (ndim != len(forms)) if rest is None else many < 0:
            raise error(f"{name} has shape {value.shape}, which is not {shape.text}", self.legal())
        if rest is not None:
            self._take_rest(f"{name} {value.shape}", value.shape[rest : rest + many], forms[rest])
        for n, form in enumerate(forms):
            if n != rest:
                axis = n if rest is None or n < rest else n + many - 1
                yield axis, value.shape[axis], form

    def _take_others(self, what: str, extents: Sequence[Expr], axis: int) -> None:
        """The axes beside the one that a parameter says are alike in all tensors."""
        known, said = self.known.setdefault("…", (extents, what))
        if not equate_shapes(known, extents):
            raise error(f"{said} and {what} differ beside axis {axis}", self.legal())

    def _take_rest(self, what: str, extents: Sequence[Expr], form: str) -> None:
        if form.endswith("*") and not self.are_whole:
            shapes = [*self.broadcast.get(form, ()), tuple(extents)]
            self.broadcast[form] = shapes
            self.known[form] = broadcast(*shapes), " and ".join(map(str, shapes))
            return
        known, said = self.known.setdefault(form, (extents, what))
        if not equate_shapes(known, extents):
            raise error(f"`{form}` is {tuple(extents)} in {what}, and {tuple(known)} in {said}", self.legal())

    def _take_extent(self, what: str, wrong: str, extent: Expr, form: str) -> None:
        if form == "_":
            return
        found = _EXTENT.fullmatch(form)
        assert found is not None
        factor, name = int(found[1] or 1), found[2]
        if name is None:
            if not equate(extent, int(form)):
                raise error(wrong, self.legal())
            return
        if name not in self.known:
            if factor > 1 and not is_multiple(extent, factor):
                raise error(f"{wrong}, no multiple of {factor}", self.legal())
            self.known[name] = (extent // factor if factor > 1 else extent, what)
            return
        known, said = self.known[name]
        if not equate(extent, known * factor):
            raise error(f"{wrong}, and {form} is {known * factor} by {said}", self.legal())
