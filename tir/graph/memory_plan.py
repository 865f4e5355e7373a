"""Where the intermediate tensors of a model are: offsets into one workspace."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..display import html_table, text_table
from ..errors import ModelError
from .fusion import Group
from .graph import Value
from .sizes import ALIGNMENT, Extent, Size, aligned, number, symbols, usual

CHECKED = (
    (1, 0),
    (2, 5),
    (37, 0),
    (131, 64),
)  # the value of the first symbol, and by how much each is more than the one before
TRIES = 500  # of the order in which tensors are placed


class Place(NamedTuple):
    """Memory: that of ``root``, a tensor that is no view, from byte ``begin`` on."""

    root: Value
    begin: Extent = 0


@dataclass(frozen=True, repr=False)
class Plan:
    """``offsets`` are the bytes at which tensors begin in a workspace of ``nbytes``; ``lives`` the first and the last
    group, counted in the order of running, in which each must be kept: of what a kernel works in, its own. ``views`` are the places of those that share
    their memory with another; of these, ``replaced`` has what a kernel writes over the input that it has here."""

    offsets: Mapping[Value, Extent]
    lives: Mapping[Value, tuple[int, int]]
    views: Mapping[Value, Place]
    nbytes: Extent
    replaced: Mapping[Value, Value] = field(default_factory=dict)

    @property
    def bound(self) -> int:
        """The most bytes that are in use at once: no workspace has fewer. Raises ``ModelError`` for a plan with symbols: see :meth:`at`."""
        if names := self.symbols:
            raise ModelError(f"the bytes in use depend on {', '.join(names)}: ask plan.at({{{names[0]!r}: 128}})")
        return most_in_use(self.lives, {v: aligned(v.nbytes) for v in self.lives})

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the sizes on which it depends."""
        return symbols([self.nbytes, *(s for v in self.lives for s in v.shape)])

    def at(self, values: Mapping[str, int]) -> Plan:
        """The plan for values of the symbols."""
        return Plan(
            {v.at(values): number(offset, values) for v, offset in self.offsets.items()},
            {v.at(values): life for v, life in self.lives.items()},
            {v.at(values): Place(p.root.at(values), number(p.begin, values)) for v, p in self.views.items()},
            number(self.nbytes, values),
            {v.at(values): source.at(values) for v, source in self.replaced.items()},
        )

    def place(self, value: Value) -> Place:
        """The tensor in whose memory a value is, and where in it."""
        return self.views.get(value, Place(value))

    HEAD = ("tensor", "bytes", "from byte", "first group", "last group", "shared by")

    def _rows(self) -> list[tuple[str, ...]]:
        shared: dict[Value, list[str]] = {}
        for value, place in self.views.items():
            shared.setdefault(place.root, []).append(value.name)
        return [
            (v.name, str(v.nbytes), str(at), *map(str, self.lives[v]), ", ".join(shared.get(v, [])))
            for v, at in sorted(self.offsets.items(), key=lambda item: (self.lives[item[0]], usual(item[1])))
        ]

    def __repr__(self) -> str:
        """A table of the tensors, in the order in which they are made."""
        return f"{text_table(self.HEAD, self._rows(), right=range(1, 5))}\nworkspace: {self.nbytes} bytes"

    def svg(self) -> str:
        """A picture: groups from left to right, bytes of the workspace from below, and a box for each tensor."""
        from .model_picture import plan_picture

        return plan_picture(self)

    def _repr_html_(self) -> str:
        return self.svg() + html_table(self.HEAD, self._rows(), right=range(1, 5), code=[0])


Over = Callable[[Group, Value, Value], Any]  # whether the kernel of a group may write a result over an input


Temporaries = Callable[[Group], Sequence[Value]]  # what the kernel of a group works in


def _never(*_: Any) -> None:
    """No kernel writes over its inputs."""


def _none(_: Group) -> tuple[Value, ...]:
    """Kernels need no memory of their own."""
    return ()


def plan(
    order: Sequence[Group],
    elsewhere: Iterable[Value],
    over: Over = _never,
    state: Mapping[Value, Value] | None = None,
    temporaries: Temporaries = _none,
) -> Plan:
    """Offsets for what groups make, and for the ``temporaries`` of their kernels, but for what is ``elsewhere``: results, which are in the caller's memory.

    The largest tensors are placed first, each in the lowest gap that is free while it lives; while that takes more than is in use at once, other
    orders, near the best so far, are tried. Views share the place of what they are of, and a result that its kernel may write ``over`` an input that nothing reads after is there. ``state`` has the input in whose memory a
    result of the graph must be: a kernel that writes it over that, or the place of a view. Raises ``ModelError`` where that cannot be.

    >>> from tir.graph import Builder, groups, plan
    >>> b = Builder()
    >>> x, w = b.input("x", (4, 16)), b.input("w", (16, 16))
    >>> a = b.call("matmul", b.call("matmul", b.call("matmul", x, w), w), w)
    >>> plan(groups(b.graph(a)), [a]).nbytes  # two tensors, both needed by the second product
    512
    """
    made = _Planning(order, elsewhere, over, state or {})
    for step, group in enumerate(order):
        made.lives.update(dict.fromkeys(temporaries(group), (step, step)))
    offsets, total = _in_parts(made.lives)
    return Plan(offsets, made.lives, made.views, total, made.replaced)


def _in_parts(lives: Mapping[Value, tuple[int, int]]) -> tuple[dict[Value, Extent], Extent]:
    """Where tensors begin, and the bytes of all: those whose bytes are multiples of one size, such as ``n`` or ``n * n``, share a part of the workspace, planned
    in its units; the parts follow one another."""
    parts: dict[tuple[Extent, int], dict[Value, int]] = {(1, ALIGNMENT): {}}
    for value in lives:
        unit, count = _unit(value.nbytes)
        step = ALIGNMENT if unit == 1 else math.gcd(count, ALIGNMENT)
        parts.setdefault((unit, step), {})[value] = -(-count // step) * step
    offsets: dict[Value, Extent] = {}
    total: Extent = 0
    for (unit, step), sizes in parts.items():
        found = _offsets({v: lives[v] for v in sizes}, sizes)
        units = ALIGNMENT // step
        whole = (unit + (units - 1)) // units * units  # a step of this begins at the alignment
        offsets.update({v: total + at * whole for v, at in found.items()})
        total = total + _end(found, sizes) * whole
    return offsets, total


def _unit(nbytes: Extent) -> tuple[Extent, int]:
    """A size as a product of one without a common factor, and a number."""
    if not isinstance(nbytes, Size):
        return 1, nbytes
    factor = math.gcd(nbytes.form.const, *(c for _, c in nbytes.form.items()))
    return nbytes // factor, factor


def _offsets(lives: Mapping[Value, tuple[int, int]], sizes: Mapping[Value, int]) -> dict[Value, int]:
    """Where tensors of so many ``sizes`` begin, so that those whose lives meet have nothing in common, and the last end is low."""
    others = {v: [o for o in lives if o is not v and _meet(lives[v], lives[o])] for v in lives}
    order = sorted(lives, key=lambda v: (-sizes[v], lives[v]))
    best = _placed(order, others, sizes)
    end, bound, draw = _end(best, sizes), most_in_use(lives, sizes), random.Random(0)
    for _ in range(TRIES):
        if end <= bound:
            break
        tried = order.copy()
        tried.insert(draw.randrange(len(order)), tried.pop(draw.randrange(len(order))))
        found = _placed(tried, others, sizes)
        if (last := _end(found, sizes)) <= end:
            best, end, order = found, last, tried
    return best


def _placed(
    order: Iterable[Value], others: Mapping[Value, Sequence[Value]], sizes: Mapping[Value, int]
) -> dict[Value, int]:
    """Offsets of tensors, each in the lowest gap that the ``others`` before it leave."""
    offsets: dict[Value, int] = {}
    for value in order:
        taken = [(offsets[o], offsets[o] + sizes[o]) for o in others[value] if o in offsets]
        offsets[value] = _lowest_gap(sizes[value], taken)
    return offsets


def _lowest_gap(size: int, taken: Iterable[tuple[int, int]]) -> int:
    """The first byte of the lowest ``size`` bytes that no span has."""
    at = 0
    for begin, end in sorted(taken):
        if at + size <= begin:
            break
        at = max(at, end)
    return at


def _end(offsets: Mapping[Value, int], sizes: Mapping[Value, int]) -> int:
    return max((offset + sizes[v] for v, offset in offsets.items()), default=0)


def most_in_use(lives: Mapping[Value, tuple[int, int]], sizes: Mapping[Value, int]) -> int:
    """The most bytes that are in use at once, of tensors of such ``sizes``."""
    steps = range(1 + max((last for _, last in lives.values()), default=-1))
    return max((sum(sizes[v] for v, (a, b) in lives.items() if a <= step <= b) for step in steps), default=0)


class _Planning:
    """Who shares memory, and how long it is kept."""

    def __init__(self, order: Sequence[Group], elsewhere: Iterable[Value], over: Over, state: Mapping[Value, Value]):
        self._over = over
        self.views: dict[Value, Place] = {}
        self.lives: dict[Value, tuple[int, int]] = {}
        self.replaced: dict[Value, Value] = {}
        self._state = state
        self._last = _last_readers(order)
        self._apart = set(elsewhere)
        for step, group in enumerate(order):
            self._add(step, group)

    def place(self, value: Value) -> Place:
        return self.views.get(value, Place(value))

    def _add(self, step: int, group: Group) -> None:
        for root in {self.place(v).root for v in group.inputs} & self.lives.keys():
            self.lives[root] = (self.lives[root][0], step)
        if group.view is not None:
            root, begin = self.place(group.view.source)
            self.views[group.outputs[0]] = Place(root, begin + group.view.begin)
            return
        for value in group.outputs:
            source = self._state[value] if value in self._state else self._replaceable(step, group, value)
            if source is not None:
                self._replace(step, group, value, source)
            elif value not in self._apart:
                self.lives[value] = (step, step)

    def _replaceable(self, step: int, group: Group, value: Value) -> Value | None:
        """An input that fills the memory it is in, which nothing needs after this group, and over which it may write ``value``."""
        if value in self._apart or len(group.outputs) > 1:
            return None
        for source in group.inputs:
            root = self.place(source).root
            is_alone = [self.place(v).root for v in group.inputs].count(root) == 1 and source.nbytes == root.nbytes
            if (
                is_alone
                and root in self.lives
                and self._last[root] == step
                and self._over(group, value, source) is not None
            ):
                return source
        return None

    def _replace(self, step: int, group: Group, value: Value, source: Value) -> None:
        if value in self._state and (why := self._refusal(step, group, value, source)):
            raise ModelError(f"state {source} cannot be updated in place by {group.name}: {why}")
        root = self.place(source).root
        self.views[value] = Place(root)
        if source in group.inputs:
            self.replaced[value] = source
        if root in self.lives:
            self.lives[root] = (self.lives[root][0], step)
        self._last[root] = self._last.get(value, step)

    def _refusal(self, step: int, group: Group, value: Value, source: Value) -> str:
        if self._last.get(source, step) > step:
            return "it is read after that as it was before"
        if source in group.inputs and (len(group.outputs) > 1 or self._over(group, value, source) is None):
            return "its elements are read after others were written, or not by that kernel"
        return ""


def _last_readers(order: Sequence[Group]) -> dict[Value, int]:
    """The last group that reads each tensor that is no view, or a view of it."""
    roots: dict[Value, Value] = {}
    found: dict[Value, int] = {}
    for step, group in enumerate(order):
        for value in group.inputs:
            found[roots.get(value, value)] = step
        if group.view is not None:
            roots[group.outputs[0]] = roots.get(group.view.source, group.view.source)
    return found


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def check_plan(made: Plan, order: Sequence[Group], over: Over = _never, temporaries: Temporaries = _none) -> None:
    """Raise ``ModelError`` for a tensor that is overwritten before its last reader ran.

    The groups are followed in order with the bytes that each one writes; of the lives in the plan nothing is used. A plan with symbols is followed for
    several values of these, small and large, equal and not, of which no tensor has a negative size: with others no call runs.
    """
    sizes = {s for group in order for v in (*group.inputs, *group.outputs) for s in v.shape}
    names = symbols(sizes)
    for first, step in CHECKED if names else CHECKED[:1]:
        values = {name: first + step * n for n, name in enumerate(names)}
        if all(number(s, values) >= 0 for s in sizes):
            _check_at(values, made, order, over, temporaries)


def _check_at(
    values: Mapping[str, int], made: Plan, order: Sequence[Group], over: Over, temporaries: Temporaries
) -> None:
    nbytes = number(made.nbytes, values)
    whole: dict[Value, Value] = {}  # what views are of
    given = {place.root for place in made.views.values()} - made.offsets.keys() - {v for g in order for v in g.outputs}
    held = {
        v: bytes_of(made, v, values) for v in given
    }  # what is in memory: the tensor that has it or the workspace, bytes
    gone: set[Value] = set()
    for step, group in enumerate(order):
        reading = {whole.get(v, v) for v in group.inputs}
        for value in reading:
            if value in gone or (made.place(value).root in made.offsets and value not in held):
                raise ModelError(f"group {step}, {group.name}, reads {value}, whose memory has been overwritten")
        if group.view is not None:
            whole[group.outputs[0]] = whole.get(group.view.source, group.view.source)
            continue
        writes = (*group.outputs, *temporaries(group))
        for value in writes:
            memory, begin, end = bytes_of(made, value, values)
            if memory is None and (begin % ALIGNMENT or begin < 0 or end > nbytes):
                raise ModelError(f"{value} at byte {begin} is not aligned, or not inside of {nbytes} bytes")
            source = made.replaced.get(value)
            replaced = whole.get(source, source) if source is not None else None
            if source is not None and (
                bytes_of(made, source, values) != (memory, begin, end) or not over(group, value, source)
            ):
                raise ModelError(f"group {step}, {group.name}, cannot write {value} over {source}")
            written = [v for v, (m, b, e) in held.items() if m is memory and b < end and begin < e]
            kept = (reading | {v for v in writes if v in held}) - {replaced}
            if clash := [v for v in written if v in kept]:
                raise ModelError(f"group {step}, {group.name}, writes {value} over {clash[0]}, which it uses")
            gone.update(written, [] if replaced is None else [replaced])
            for each in written:
                del held[each]
            held[value] = memory, begin, end


def bytes_of(made: Plan, value: Value, values: Mapping[str, int]) -> tuple[Value | None, int, int]:
    """The bytes of a value in the workspace, or in a tensor that is elsewhere, for values of the symbols."""
    root, begin = made.place(value)
    memory = None if root in made.offsets else root
    first = number(begin, values) + number(made.offsets.get(root, 0), values)
    return memory, first, first + number(value.nbytes, values)
