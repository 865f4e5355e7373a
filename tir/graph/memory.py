"""Where the intermediate tensors of a model are: offsets into one workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import ModelError
from .fusion import Group
from .graph import Value

ALIGNMENT = 64


class Place(NamedTuple):
    """Memory: that of ``root``, a tensor that is no view, from byte ``begin`` on."""

    root: Value
    begin: int = 0


@dataclass(frozen=True)
class Plan:
    """``offsets`` are the bytes at which tensors begin in a workspace of ``nbytes``; ``lives`` the first and the last
    group, counted in the order of running, in which each must be kept. ``views`` are the places of those that share
    their memory with another."""

    offsets: Mapping[Value, int]
    lives: Mapping[Value, tuple[int, int]]
    views: Mapping[Value, Place]
    nbytes: int

    def place(self, value: Value) -> Place:
        """The tensor in whose memory a value is, and where in it."""
        return self.views.get(value, Place(value))


def aligned(nbytes: int) -> int:
    """``nbytes`` rounded up to whole units of the alignment.

    >>> aligned(1), aligned(64)
    (64, 64)
    """
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def plan(order: Sequence[Group], elsewhere: Iterable[Value]) -> Plan:
    """Offsets for what groups make, but for what is ``elsewhere``: results, which are in the caller's memory.

    The largest tensors are placed first, each in the lowest gap that is free while it lives; views share the place of what
    they are of.

    >>> from tir.graph import Builder, groups, plan
    >>> b = Builder()
    >>> x = b.input("x", (4, 16))
    >>> a = b.call("cumsum", b.call("cumsum", b.call("cumsum", x, 1), 0), 1)
    >>> plan(groups(b.graph(a)), [a]).nbytes  # two tensors, both needed by the second sum
    512
    """
    views: dict[Value, Place] = {}
    lives: dict[Value, tuple[int, int]] = {}
    apart = set(elsewhere)
    for step, group in enumerate(order):
        for value in group.inputs:
            root = views.get(value, Place(value)).root
            if root in lives:
                lives[root] = (lives[root][0], step)
        if group.view is not None:
            root, begin = views.get(group.view.source, Place(group.view.source))
            views[group.outputs[0]] = Place(root, begin + group.view.begin)
            continue
        lives.update({v: (step, step) for v in group.outputs if v not in apart})
    offsets: dict[Value, int] = {}
    for value in sorted(lives, key=lambda v: (-v.nbytes, lives[v])):
        offsets[value] = _lowest_gap(value, lives, offsets)
    total = max((offset + aligned(v.nbytes) for v, offset in offsets.items()), default=0)
    return Plan(offsets, lives, views, total)


def _lowest_gap(value: Value, lives: Mapping[Value, tuple[int, int]], offsets: Mapping[Value, int]) -> int:
    at = 0
    for other in sorted((o for o in offsets if _meet(lives[value], lives[o])), key=offsets.__getitem__):
        if at + value.nbytes <= offsets[other]:
            break
        at = max(at, offsets[other] + aligned(other.nbytes))
    return at


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def check_plan(made: Plan, order: Sequence[Group]) -> None:
    """Raise ``ModelError`` for a tensor that is overwritten before its last reader ran.

    The groups are followed in order with the bytes that each one writes; of the lives in the plan nothing is used.
    """
    holder: dict[Value, tuple[int, int]] = {}  # what is in memory: its bytes
    for step, group in enumerate(order):
        for value in group.inputs:
            root = made.place(value).root
            if root in made.offsets and root not in holder:
                raise ModelError(f"group {step}, {group.name}, reads {value}, whose memory has been overwritten")
        if group.view is not None:
            continue
        for value in group.outputs:
            if value not in made.offsets:
                continue
            begin = made.offsets[value]
            end = begin + value.nbytes
            if begin % ALIGNMENT or begin < 0 or end > made.nbytes:
                raise ModelError(f"{value} at byte {begin} is not aligned, or not inside of {made.nbytes} bytes")
            written = [v for v, (b, e) in holder.items() if b < end and begin < e]
            kept = {made.place(v).root for v in (*group.inputs, *group.outputs)}
            if clash := [v for v in written if v in kept]:
                raise ModelError(f"group {step}, {group.name}, writes {value} over {clash[0]}, which it uses")
            for gone in written:
                del holder[gone]
            holder[value] = (begin, end)
