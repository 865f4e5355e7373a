"""Recognises XOR swizzles: one index is XORed with bits of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..expr import Call, Expr
from ..visit import rewrite, walk
from .analyzer import Analyzer


@dataclass(frozen=True)
class Unswizzled:
    """``indices`` without the XOR in number ``axis``. For fixed other indices, the swizzle permutes the elements within
    each aligned run of ``period`` values of that index.

    ``rule`` identifies the swizzle: two with the same rule move an element to the same position.
    """

    indices: tuple[Expr, ...]
    axis: int
    period: int
    rule: tuple[int, ...]


def unswizzled(indices: Sequence[Expr], analyzer: Analyzer) -> Unswizzled | None:
    """The indices before one swizzle ``… g * (t ^ w) + u …``; None if there is none, or w is not proved to be a digit
    of another index.

    >>> from tir.buffer import Range
    >>> from tir.expr import Var, const
    >>> i, j = Var("i"), Var("j")
    >>> ctx = Analyzer({i: Range(const(0), const(64)), j: Range(const(0), const(32))})
    >>> unswizzled([i, j ^ (i % 8)], ctx)
    Unswizzled(indices=(i, j), axis=1, period=8, rule=(1, 8, 0, 1, 8))
    """
    found = _swizzles(indices)
    return _without(indices, *found[0], analyzer) if len(found) == 1 else None


def without_all(indices: Sequence[Expr], analyzer: Analyzer) -> tuple[tuple[Expr, ...], tuple[Any, ...]] | None:
    """The indices before all of their swizzles, and the rules of these, last one first; None as for :func:`unswizzled`.

    >>> from tir.buffer import Range
    >>> from tir.expr import Var, const
    >>> i, j = Var("i"), Var("j")
    >>> ctx = Analyzer({i: Range(const(0), const(64)), j: Range(const(0), const(32))})
    >>> without_all([i, (j ^ (i % 8)) ^ (i // 8 % 4)], ctx)[0]
    (i, j)
    """
    rules: list[Any] = []
    plain = tuple(indices)
    while found := _swizzles(plain):
        each = (_without(plain, axis, call, analyzer) for axis, call in found)
        made = next((one for one in each if one is not None), None)
        if made is None:
            return None
        plain = made.indices
        rules.append(made.rule)
    return plain, tuple(rules)


def _swizzles(indices: Sequence[Expr]) -> list[tuple[int, Call]]:
    """The operations XOR in the indices, each with the number of its index."""
    return [(n, c) for n, e in enumerate(indices) for c in walk(e) if isinstance(c, Call) and c.op == "bitwise_xor"]


def _without(indices: Sequence[Expr], axis: int, call: Call, analyzer: Analyzer) -> Unswizzled | None:
    """The indices without one XOR, ``call`` in number ``axis``."""
    for t, w in (call.args, call.args[::-1]):
        least, most = analyzer.bound(w)
        if least is None or least < 0 or most is None:
            continue
        size = 1 << most.bit_length()
        digit = _digit(w, [(n, e) for n, e in enumerate(indices) if n != axis], size, analyzer)
        if digit is None:
            continue
        # exchanged values differ by less than ``size`` in t, so by less than ``size * g`` in the index
        shifted = rewrite(indices[axis], lambda item, t=t: t + size if item is call else None)
        plain = rewrite(indices[axis], lambda item, t=t: t if item is call else None)
        period, _ = analyzer.bound(shifted - plain)
        if (
            period is None
            or not analyzer.can_prove_equal(shifted - plain, period)
            or not _is_low(plain, t, period // size, analyzer)
        ):
            continue
        changed = (*indices[:axis], plain, *indices[axis + 1 :])
        return Unswizzled(changed, axis, period, (axis, period, *digit))
    return None


def _digit(w: Expr, others: Sequence[tuple[int, Expr]], size: int, analyzer: Analyzer) -> tuple[int, ...] | None:
    """(number, divisor, size) of the index of which ``w`` is e // divisor % size; of a multiple of such a digit by a power
    of two, (number, divisor, size, power)."""
    step, rest = analyzer.modular(w)
    power = step & -step if rest == 0 and step else 1
    for n, e in others:
        for divisor in (1, 2, 4, 8):
            if analyzer.can_prove_equal(w, e // divisor % size):
                return n, divisor, size
            if 1 < power < size and analyzer.can_prove_equal(w, e // divisor % (size // power) * power):
                return n, divisor, size, power
    return None


def _is_low(index: Expr, t: Expr, g: int, analyzer: Analyzer) -> bool:
    """Whether ``index`` is g * t + u with 0 <= u < g."""
    least, most = analyzer.bound(index - t * g)
    return least is not None and most is not None and least >= 0 and most < g
