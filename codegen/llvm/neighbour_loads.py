"""Vectors of neighbouring elements in registers: what several loads of straight code have in common is loaded once.

``B[j:j + 16] = A[j:j + 16] + A[j + 1:j + 17]`` loads each element of ``A`` twice, the second time across two cache lines, which takes
twice as long. Of a run of such stores every whole vector is loaded once, and those between are picked from two of them. A load of what
the run has stored is picked from the stored values: in memory it would wait for both stores. Stores of every second element, beside those
of the others, are stores of whole vectors whose lanes are picked from these.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from tir.aliases import may_alias, shares_memory
from tir.arith.linear import Linear, key, linear
from tir.arith.strided_lanes import first_lane, lane_offsets
from tir.buffer import Buffer
from tir.expr import COMPARED, And, Broadcast, BufferLoad, Call, Expr, IntImm, Let, Or, Ramp, Shuffle, Var
from tir.function import PrimFunc
from tir.node import once
from tir.stmt import AttrStmt, BufferStore, IfThenElse, LetStmt, SeqStmt, Stmt, seq
from tir.visit import has_load, is_pure, kinds, statements, walk

from .vector_loads import constant_step

LINE = 64  # bytes of a vector: every one between two whole ones lies across cache lines; of half as many, every second
HELD = 24  # vectors, and orders of lanes, that are in registers at a time, of 32
MEMBERS = 8  # of a group whose elements are stored one beside the other, such as coordinates of points
AT_ONCE = 4  # stores whose values wait in registers for each other: vectors are loaded before all of these
Lanes = frozenset[int]


def share_neighbours(func: PrimFunc) -> PrimFunc:
    """``func`` with each run of stores of whole vectors loading what it needs once, for a processor with vectors of half a line at
    least."""
    is_volatile = any(isinstance(s, AttrStmt) and "volatile" in s.attr_key for s in statements(func.body))
    if is_volatile or may_alias(func) or Ramp not in kinds(func.body):
        return func
    return func.with_body(_shared(func.body))


def _shared(s: Stmt) -> Stmt:
    if isinstance(s, (BufferStore, SeqStmt)):
        stmts = s.stmts if isinstance(s, SeqStmt) else (s,)
        made = [part for group in _with_one_guard(stmts) for part in _interleaved(group)]
        return s if all(map(operator.is_, made, stmts)) and len(made) == len(stmts) else seq(made)
    if isinstance(s, IfThenElse) and s.condition.dtype.lanes > 1:  # a mask: what it leaves out must not be loaded
        return s
    return s.map_statements(_shared)


def _interleaved(stmts: Sequence[Stmt]) -> Iterator[Stmt]:
    """``stmts`` with whole vectors stored where neighbours store every second element, or every third and so on, and all of them together."""
    at = 0
    while at < len(stmts):
        step = _step(stmts[at])
        group = [s for s in stmts[at : at + step] if isinstance(s, BufferStore) and _step(s) == step > 1]
        made = _whole(group) if len(group) == step else None
        yield made or _in_let(stmts[at])
        at += step if made else 1


def _in_let(s: Stmt) -> Stmt:
    """A statement, with :func:`_interleaved` stores where it is the body of vectors that are loaded once."""
    if not isinstance(s, LetStmt):
        return s
    inside = s.body.stmts if isinstance(s.body, SeqStmt) else (s.body,)
    made = list(_interleaved(inside))
    return s if all(map(operator.is_, made, inside)) else s.replace(body=seq(made))


def _step(s: Stmt) -> int:
    """How far apart the elements are that a statement stores, if it may be one of a group; else 1."""
    if not isinstance(s, BufferStore) or len(s.indices) != 1 or s.buffer.strides or s.buffer.dtype.lanes > 1:
        return 1
    lanes, found = s.indices[0].dtype.lanes, lane_offsets(s.indices[0])
    step = constant_step(found[1]) if found and lanes * s.buffer.dtype.bytes in (LINE // 2, LINE) else None
    is_plain = s.value.dtype.lanes == lanes and is_pure(s.value)
    return step if is_plain and step and 1 < step <= MEMBERS else 1


def _whole(group: Sequence[BufferStore]) -> Stmt | None:
    """Stores of every so many elements as stores of whole vectors; None if they are not all of them, or read what they store."""
    step, lanes, buffer = len(group), group[0].indices[0].dtype.lanes, group[0].buffer
    loads = (n for s in group for n in walk(s.value) if isinstance(n, BufferLoad))
    if any(s.buffer is not buffer for s in group) or any(shares_memory(n, buffer) for n in loads):
        return None
    members: dict[tuple[Any, int], tuple[BufferStore, Var]] = {}
    for s in group:
        members[_row(first_lane(s.indices[0]))] = s, Var("member", s.value.dtype)
    terms, first = min(members, key=lambda place: place[1])
    inside = [members.get((terms, first + n)) for n in range(step)]
    if terms is None or None in inside:
        return None
    found = [member for member in inside if member]
    begin, whole = found[0][0], []
    for number in range(step):
        elements = [divmod(number * lanes + lane, step) for lane in range(lanes)]
        index = _moved(begin, number * lanes).indices
        whole.append(begin.replace(value=_merged([var for _, var in found], elements), indices=index))
    body = seq(whole)
    for s, member in reversed(members.values()):
        body = LetStmt(member, s.value, body)
    return body


def _merged(members: Sequence[Expr], elements: Sequence[tuple[int, int]]) -> Expr:
    """The vector of ``elements``, each a lane of one of the ``members``: picked from two of these at a time, then from two that are picked."""
    found, lanes, width = list(members), len(elements), 1
    places: Sequence[int] = [lane for lane, _ in elements]
    while len(found) > 1:
        pairs = [tuple(found[n : n + 2]) for n in range(0, len(found), 2)]
        picked = [at + member // width % 2 * lanes for at, (_, member) in zip(places, elements)]
        found = [Shuffle(pair, tuple(IntImm(n % (len(pair) * lanes)) for n in picked)) for pair in pairs]
        places, width = range(lanes), 2 * width
    return found[0]


def _with_one_guard(stmts: Sequence[Stmt]) -> Iterator[Sequence[Stmt]]:
    """Runs of ``stmts`` with what they share; neighbours with the same condition are one, for their stores do not change it."""

    def guard(s: Stmt) -> Hashable:
        plain = isinstance(s, IfThenElse) and s.else_case is None and s.condition.dtype.lanes == 1
        return key(s.condition) if plain and not has_load(s.condition) and is_pure(s.condition) else None  # type: ignore[attr-defined]

    def is_plain(s: Stmt) -> bool:
        return isinstance(s, BufferStore) and (Call not in kinds(s) or is_pure(s.value))

    for (condition, plain), group in groupby(stmts, lambda s: (guard(s), is_plain(s))):
        found: list[Any] = list(group)
        if plain:
            yield _Run(found).made()
        elif condition is None:
            yield [s if isinstance(s, BufferStore) else _shared(s) for s in found]
        else:
            body = seq([s.then_case for s in found])
            made = _shared(body)
            yield found if made is body else [found[0].replace(then_case=made)]


@dataclass(frozen=True)
class _Place:
    """Lanes in memory, a whole vector or at steps that vary. Those with the same ``row`` are a number of elements apart: the first lane of
    this one is ``at``, the others by ``offsets`` further."""

    row: tuple[Buffer, int, frozenset[Any]]
    at: int
    offsets: tuple[int, ...]

    @staticmethod
    def of(buffer: Buffer, indices: Sequence[Expr]) -> _Place | None:
        lanes = indices[0].dtype.lanes if len(indices) == 1 else 0
        if (
            lanes * buffer.dtype.bytes not in (LINE // 2, LINE)
            or buffer.strides
            or buffer.dtype.lanes > 1
            or buffer.dtype.is_bool
        ):
            return None
        found = lane_offsets(indices[0])
        if found is None or constant_step(found[1]) not in (1, None):
            return None
        terms, const = _row(found[0])
        return None if terms is None else _Place((buffer, lanes, terms), const, found[1])

    @property
    def is_whole(self) -> bool:
        return constant_step(self.offsets) == 1

    @property
    def range(self) -> tuple[int, int]:
        """The first element, and the one after the last."""
        return self.at + min(self.offsets), self.at + max(self.offsets) + 1

    def elements(self, needs: Lanes) -> list[int]:
        """Where the lanes ``needs`` are."""
        return [self.at + self.offsets[lane] for lane in sorted(needs)]


@once
def _row(first: Expr) -> tuple[frozenset[Any] | None, int]:
    """The terms of an index, and its constant; no terms if it depends on data."""
    form = linear(first)
    return None if not form.is_of_variables and has_load(first) else form.terms_key(), form.const


class _Run:
    """Stores one after another. ``wanted`` are the lanes of each place that they load, between two stores to its buffer."""

    def __init__(self, stores: Sequence[BufferStore]):
        self.stores = stores
        self.places = [_Place.of(s.buffer, s.indices) for s in stores]
        self.loaded: dict[BufferLoad, _Place | None] = {}  # the places of loads, which copies of a body share
        self.wanted: dict[tuple[int, Any], dict[_Place, Lanes]] = defaultdict(dict)  # by the last store before, and row
        self.first: dict[tuple[int, Any], tuple[int, BufferLoad, _Place]] = {}  # by the store
        self.since: list[dict[Var, int]] = []  # for each store: the last before it to each buffer
        self.lets: dict[int, list[tuple[Var, Expr]]] = defaultdict(list)  # before each store
        self.may_load = True
        self.values: dict[int, Var] = {}  # of stores whose values are picked from
        last: dict[Var, int] = {}
        for number, s in enumerate(stores):
            self.since.append(dict(last))
            _mapped(s.value, partial(self._note, number))
            last[s.buffer.data] = number

    def made(self) -> Sequence[Stmt]:
        """The stores, with what they load."""
        if not self._overlaps():
            return self.stores
        known, values = self._rebuilt()
        if self.lets and not self._pays(values):
            self.may_load = False
            known, values = self._rebuilt()
        if not any(known.values()):
            return self.stores
        body: list[Stmt] = []
        for number in reversed(range(len(self.stores))):
            s, value = self.stores[number], values[number]
            kept = self.values.get(number)
            body.insert(0, s.replace(value=value if kept is None else kept))
            lets = [*self.lets[number], *([] if kept is None else [(kept, value)])]
            for var, bound in reversed(lets):
                body = [LetStmt(var, bound, seq(body))]
        return body

    def _overlaps(self) -> bool:
        """Whether some vectors that are loaded, or loaded and stored, have elements in common, or not all of their lanes are used."""
        ranges: dict[Any, set[tuple[int, int]]] = defaultdict(set)
        for (_, row), wanted in self.wanted.items():
            ranges[row].update(place.range for place in wanted)
            if any(len(needs) < row[1] or not place.is_whole for place, needs in wanted.items()):
                return True
        for place in filter(None, self.places):
            if place.row in ranges:
                ranges[place.row].add(place.range)
        return any(b[0] < a[1] for found in map(sorted, ranges.values()) for a, b in zip(found, found[1:]))

    def _rebuilt(self) -> tuple[Mapping[Any, Mapping[int, Var]], Sequence[Expr]]:
        """The vectors from which others are picked, and what is stored with these."""
        self.lets.clear()
        self.values.clear()
        known = {at: self._vectors(at, wanted) for at, wanted in self.wanted.items()}
        return known, [_mapped(s.value, partial(self._picked, n, known)) for n, s in enumerate(self.stores)]

    def _pays(self, values: Sequence[Expr]) -> bool:
        """Whether the slower of loads (one a cycle, two cycles across lines) and arithmetic with the vectors that are picked (two a
        cycle) takes less time than before, and the vectors fit the registers beside what picks them."""
        before, after = (
            {id(n): n for e in es for n in walk(e)}.values() for es in ([s.value for s in self.stores], values)
        )
        loaded = [bound for lets in self.lets.values() for _, bound in lets]
        orders = {n.indices for n in after if isinstance(n, Shuffle)}
        if len(loaded) + len(orders) > HELD:
            return False
        own = {s.buffer.data for s in self.stores}  # what is updated stays in registers
        return _cycles(after, loaded, own) < _cycles(before, [], own)

    def _place(self, load: BufferLoad) -> _Place | None:
        if load not in self.loaded:
            self.loaded[load] = _Place.of(load.buffer, load.indices)
        return self.loaded[load]

    def _note(self, number: int, load: BufferLoad, lanes: Lanes) -> Expr:
        place = self._place(load)
        if place is not None and lanes:
            at = (self.since[number].get(load.buffer.data, -1), place.row)
            wanted = self.wanted[at]
            wanted[place] = wanted.get(place, frozenset()) | lanes
            self.first.setdefault(at, (number, load, place))
        return load

    def _picked(self, number: int, known: Mapping[Any, Mapping[int, Var]], load: BufferLoad, lanes: Lanes) -> Expr:
        place = self._place(load)
        if place is None or not lanes:
            return load
        at = (self.since[number].get(load.buffer.data, -1), place.row)
        found = _pick(place, self.wanted[at][place], known[at])
        return load if found is None else found

    def _vectors(self, at: tuple[int, Any], wanted: Mapping[_Place, Lanes]) -> dict[int, Var]:
        """The vectors, by where they begin, from which those ``wanted`` are picked: stored ones, and if they are lines, loaded ones."""
        last, row = at
        lanes = row[1]
        stored = self._stored(last, row) if last >= 0 else {}
        found: dict[int, Var] = {}
        missing: dict[_Place, list[int]] = {}
        for place, needs in wanted.items():
            parts = _parts(place, needs, stored)
            if parts is None:
                missing[place] = place.elements(needs)
            elif parts != [place.at] or not place.is_whole:  # LLVM finds what is stored as a whole
                for part in parts:
                    found[part] = self.values.setdefault(stored[part], Var("stored", row[0].dtype.with_lanes(lanes)))
        number, load, origin = self.first[at]
        before = max(last + 1, number - number % AT_ONCE)
        for group in _neighbours(missing):
            starts = _starts([missing[place] for place in group], lanes, row[2])
            if self.may_load and len(starts) < len(group) and lanes * row[0].dtype.bytes == LINE:
                for start in starts:
                    found[start] = Var("loaded", load.dtype)
                    self.lets[before].append((found[start], _moved(load, start - origin.at)))
        return found

    def _stored(self, last: int, row: Any) -> dict[int, int]:
        """The places of ``row`` whose vectors are what stores up to ``last`` have stored, and the number of the store."""
        found: dict[int, int] = {}
        later: set[int] = set()  # where stores after it begin
        for number in range(last, -1, -1):
            if shares_memory(self.stores[number], row[0]):
                place = self.places[number]
                if place is None or place.row != row or not place.is_whole:
                    break
                if all(abs(place.at - other) >= row[1] for other in later):
                    found[place.at] = number
                later.add(place.at)
        return found


def _moved(load: Any, by: int) -> Any:
    """The whole vector that begins ``by`` elements after the first lane of ``load``, or of a store."""
    [index] = load.indices
    form: Linear = linear(first_lane(index)).copy()
    form.const += by
    kind = index.dtype.element
    return load.replace(indices=(Ramp(form.build(kind), IntImm(1, kind), index.dtype.lanes),))


def _neighbours(wanted: Mapping[_Place, list[int]]) -> Iterator[list[_Place]]:
    """Places that overlap, or follow each other."""
    group: list[_Place] = []
    end = 0
    for place in sorted(wanted, key=lambda p: min(wanted[p])):
        if group and min(wanted[place]) > end:
            yield group
            group = []
        end = max(end if group else 0, max(wanted[place]) + 1)
        group.append(place)
    if group:
        yield group


def _starts(wanted: Sequence[list[int]], lanes: int, terms: Iterable[tuple[Any, int]]) -> list[int]:
    """Where vectors begin that have all elements ``wanted``, and nothing before the first or beyond the last. If rows begin at
    multiples of a vector, they begin there, too, where they can; else where most do."""
    firsts = [min(elements) for elements in wanted]
    low, high = min(firsts), max(map(max, wanted)) + 1
    if high - low < lanes:
        return firsts
    phase = 0 if _is_aligned(terms, lanes) else Counter(first % lanes for first in firsts).most_common(1)[0][0]
    begin = low + (phase - low) % lanes
    return sorted({low, *(min(start, high - lanes) for start in range(begin, high, lanes))})


def _is_aligned(terms: Iterable[tuple[Any, int]], lanes: int) -> bool:
    return all(coefficient % lanes == 0 for _, coefficient in terms)


def _cycles(nodes: Iterable[Any], loads: Iterable[Expr], own: Container[Var]) -> float:
    """The least cycles that vector expressions of these ``nodes`` take, with these ``loads`` but for those of ``own`` memory."""
    parts = [n for n in nodes if isinstance(n, Expr) and n.dtype.lanes > 1]
    found = [n for n in (*parts, *loads) if isinstance(n, BufferLoad) and n.buffer.data not in own]
    places = {_Place.of(n.buffer, n.indices) for n in found} - {None}
    several = [p for p in places if p is not None and not p.is_whole]  # two vectors each, whose lanes are selected
    slots = sum(1 if p.at % p.row[1] == 0 and _is_aligned(p.row[2], p.row[1]) else 2 for p in places if p is not None)
    work = sum(1 for n in parts if not isinstance(n, (Broadcast, BufferLoad, Ramp, Var)))
    return max(slots + 2 * len(several), work / 2 + len(several))


def _parts(place: _Place, needs: Lanes, known: Iterable[int]) -> list[int] | None:
    """The vectors, two at most, that have the lanes ``needs`` of ``place``; None if some lane is in none."""
    lanes = place.row[1]
    if place.is_whole and place.at in known:
        return [place.at]
    parts: list[int] = []
    for element in sorted(place.elements(needs)):
        if not parts or element >= parts[-1] + lanes:
            start = max((k for k in known if k <= element < k + lanes), default=None)
            if start is None or len(parts) == 2:
                return None
            parts.append(start)
    return parts


def _pick(place: _Place, needs: Lanes, known: Mapping[int, Var]) -> Expr | None:
    parts, lanes = _parts(place, needs, known), place.row[1]
    if parts is None or (place.is_whole and parts == [place.at]):
        return None if parts is None else known[place.at]

    def source(lane: int) -> int:
        element = place.at + place.offsets[lane]
        n = next((n for n, start in enumerate(parts) if 0 <= element - start < lanes), None)
        return lane if n is None else n * lanes + element - parts[n]

    return Shuffle(tuple(known[p] for p in parts), tuple(IntImm(source(lane)) for lane in range(lanes)))


def _mapped(e: Any, at: Callable[[BufferLoad, Lanes], Expr], needs: Lanes | None = None) -> Any:
    """``e`` with its loads of vectors replaced, each of which is given the lanes whose values are asked for."""
    if not isinstance(e, Expr) or e.dtype.lanes == 1 or isinstance(e, (Broadcast, Let, Ramp, Shuffle)):
        return e
    if isinstance(e, BufferLoad):
        return at(e, frozenset(range(e.dtype.lanes)) if needs is None else needs)
    both = frozenset(range(e.dtype.lanes)) if needs is None else needs
    if isinstance(e, (And, Or)):  # the second is computed where the first does not decide
        flags = _flags(e.a)
        own = frozenset[int]() if flags is None else flags[isinstance(e, Or)]
        return e.replace(a=_mapped(e.a, at, needs), b=_mapped(e.b, at, both & own))
    if not isinstance(e, Call):
        return e.map_children(lambda child: _mapped(child, at, needs))
    if e.op != "if_then_else":
        return e if needs is not None else e.map_children(lambda child: _mapped(child, at))
    condition, yes, no = e.args
    flags = _flags(condition)
    if flags is None:
        return e
    return e.replace(args=(condition, *(_mapped(part, at, both & own) for part, own in zip((yes, no), flags))))


def _flags(condition: Expr) -> tuple[Lanes, Lanes] | None:
    """The lanes in which a vector condition holds, and the others; None if that is not constant."""
    compared = COMPARED.get(type(condition))
    sides = [lane_offsets(e) for e in (condition.a, condition.b)] if compared else []  # type: ignore[attr-defined]
    if compared is None or condition.dtype.lanes == 1 or any(s is None for s in sides):
        return None
    (a, left), (b, right) = sides  # type: ignore[misc]
    if not isinstance(a, IntImm) or not isinstance(b, IntImm):
        return None
    holds = [compared(a.value + x, b.value + y) for x, y in zip(left, right)]
    return tuple(frozenset(n for n, flag in enumerate(holds) if flag is way) for way in (True, False))  # type: ignore[return-value]
