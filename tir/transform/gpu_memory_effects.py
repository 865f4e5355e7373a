"""Effects of a kernel's statements on memory that threads share, and whether two accesses conflict.

An access is an interval of bytes behind a pointer, as an expression of the thread variables and the loops around it.
Two accesses conflict if one writes, and two different threads of a block may access the same byte.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Sequence
from math import gcd
from typing import Any

from ..aliases import shares_memory
from ..analysis.effects import PREFETCH, Effect, Surroundings, effects
from ..arith import Analyzer
from ..arith.linear import key
from ..buffer import Range
from ..dtype import DType
from ..expr import (
    LT,
    NE,
    Add,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Expr,
    IntImm,
    Let,
    Mul,
    Or,
    Ramp,
    Sub,
    Var,
    as_bool,
    const,
    constant,
    is_const,
)
from ..op import ANY_ELEMENT, OPS, Pointer, effect_of, is_shift
from ..poly import Formula, Names, decide
from ..stmt import For, LetStmt
from ..visit import has_load, rewrite, substitute, uses_var, walk

Loop = tuple[Var, Expr, Expr]  # variable, minimum, extent


@dataclasses.dataclass(frozen=True, eq=False)
class Access:
    """Elements ``first`` … ``first + count - 1`` of ``unit`` bytes behind ``base``; ``first`` None is all of it.

    ``loops`` are those around it, outermost first; ``own`` are further loops that span its footprint. ``warp``: it is
    an access of the entire warp. ``waited``: what an asynchronous copy wrote, at the wait for it. ``earlier`` is the
    loop in an earlier iteration of which it was made, ``next_only`` that this is the iteration just before.
    """

    base: Var
    unit: int
    first: Expr | None
    count: int
    is_write: bool
    loops: tuple[Loop, ...]
    conditions: tuple[Expr, ...]
    node: Any
    own: tuple[Loop, ...] = ()
    warp: bool = False
    asynchronous: bool = False
    waited: bool = False
    earlier: Var | None = None
    next_only: bool = False

    def place(self) -> Any:
        """What is accessed, whichever expression says it: one that a let is put into is made anew each time."""
        loops = tuple((id(v), key(low), key(extent)) for v, low, extent in (*self.loops, *self.own))
        first = None if self.first is None else key(self.first)
        conditions = tuple(key(c) for c in self.conditions)
        return id(self.base), self.unit, first, self.count, loops, conditions, self.warp, self.is_write, self.waited

    def from_before(self, loop: Var, next_only: bool) -> Access:
        return dataclasses.replace(self, earlier=loop, next_only=next_only)

    def at_wait(self) -> Access:
        return dataclasses.replace(self, waited=True, earlier=None)


class Conflicts:
    """Decides conflicts between accesses of the threads ``axes`` (variable, extent) of one block; caches answers.
    ``aliased`` has the pointers of memory that may be one."""

    def __init__(self, axes: Sequence[tuple[Var, Expr]], known: Sequence[Loop], aliased: frozenset[Var]):
        self.axes = tuple(axes)
        self.known = tuple(known)
        self.aliased = aliased
        self.memo: dict[Any, bool] = {}

    def any(self, before: Sequence[Access], after: Sequence[Access]) -> tuple[Access, Access] | None:
        """A conflicting pair of an earlier and a later access."""
        for b in after:
            for a in before:
                if (a.is_write or b.is_write) and self.meet(a, b):
                    return a, b
        return None

    def meet(self, a: Access, b: Access) -> bool:
        if a.base is not b.base:
            return a.base in self.aliased and b.base in self.aliased
        if a.first is None or b.first is None:
            return True
        shared = 0
        if not a.waited:
            while shared < min(len(a.loops), len(b.loops)) and a.loops[shared][0] is b.loops[shared][0]:
                if a.loops[shared][0] is a.earlier:
                    break
                shared += 1
        found_key = (a.place(), b.place(), shared, id(a.earlier), a.next_only)
        found = self.memo.get(found_key)
        if found is None:
            found = self.memo[found_key] = self._meet(a, b, shared)
        return found

    def _meet(self, a: Access, b: Access, shared: int) -> bool:
        parts = (a.first, b.first, *a.conditions, *b.conditions)
        amounts = (n.args[1] for e in parts for n in walk(e) if is_shift(n))
        if all(isinstance(n, IntImm) for n in amounts):
            return self._may_meet(a, b, shared, _with_unknowns)
        return self._may_meet(a, b, shared, _with_unknowns) and self._may_meet(a, b, shared, _as_it_is)

    def _may_meet(self, a: Access, b: Access, shared: int, told: Callable[[Expr, Analyzer, Formula], Expr]) -> bool:
        names = Names()
        formula = Formula(names)
        index_a, threads_a, vars_a = self._side(formula, a, shared, told)
        index_b, threads_b, vars_b = self._side(formula, b, shared, told)
        for loop in (*self.known, *a.loops[:shared]):  # without one that is not affine, more pairs seem to meet
            Formula.takes(formula.within, *loop)
        if not (a.warp or b.warp):
            different: Expr | None = None
            for x, y in zip(threads_a, threads_b):
                one = NE(x, y)
                different = one if different is None else Or(different, one)
            if different is None:
                return False
            formula.require(different)
        if a.earlier is not None and not a.waited:
            x, y = vars_a.get(a.earlier), vars_b.get(a.earlier)
            if x is not None and y is not None:
                formula.require(LT(x, y))
                if a.next_only:
                    formula.require(LT(y, x + 2))
        unit = gcd(a.unit, b.unit)
        ua, ub = a.unit // unit, b.unit // unit

        def are_apart() -> bool:
            formula.require(LT(index_a * ua, (index_b + b.count) * ub))
            formula.require(LT(index_b * ub, (index_a + a.count) * ua))
            return formula.set([]).is_empty()

        return decide(are_apart) is not True

    def _side(
        self, formula: Formula, a: Access, shared: int, told: Callable[[Expr, Analyzer, Formula], Expr]
    ) -> tuple[Expr, list[Var], dict[Var, Any]]:
        """The index of one access with fresh variables for all but the first ``shared`` loops, as ``told``."""
        fresh: dict[Var, Any] = {}
        threads = []
        for v, extent in self.axes:
            fresh[v] = Var(v.name, v.dtype)
            threads.append(fresh[v])
            formula.within(fresh[v], const(0, v.dtype), extent) if isinstance(extent, IntImm) else None
        private = (*a.loops[shared:], *a.own)
        for v, _, _ in private:
            fresh[v] = Var(v.name, v.dtype)
        bounds = Analyzer({v: Range(const(0, v.dtype), e) for v, e in self.axes})
        for v, low, extent in (*self.known, *a.loops[:shared], *private):
            bounds.bind(v, Range(low, extent))
        for v, _, _ in (*a.loops, *a.own):
            least, most = bounds.bound(v)
            if least is not None and most is not None:
                formula.know(fresh.get(v, v), least, most)
        for v, low, extent in private:
            Formula.takes(formula.within, fresh[v], substitute(low, fresh), substitute(extent, fresh))
        for condition in a.conditions:
            Formula.takes(formula.require, substitute(condition, fresh))
        assert a.first is not None
        return substitute(told(a.first, bounds, formula), fresh), threads, fresh


def _as_it_is(e: Expr, bounds: Analyzer, formula: Formula) -> Expr:
    return e


def _with_unknowns(e: Expr, bounds: Analyzer, formula: Formula) -> Expr:
    """``e`` with any number in the place of what is loaded, and any number of as many bits in that of bitwise operations on
    small numbers (swizzled indices)."""

    def change(item: Any) -> Any:
        if isinstance(item, BufferLoad) and item.dtype in _INDICES:
            return Var("loaded", item.dtype)
        if not (isinstance(item, Call) and item.op in ("bitwise_and", "bitwise_or", "bitwise_xor")):
            return None
        limits = [bounds.bound(x) for x in item.args]
        if any(low is None or low < 0 or high is None for low, high in limits):
            return None
        most = (1 << max(high.bit_length() for _, high in limits if high is not None)) - 1
        value = Var("bits", item.dtype)
        formula.know(value, 0, most)
        for limit in (value >= 0, value <= most):
            bounds.assume(limit)
            formula.require(limit)
        return value

    return rewrite(e, change)


class Accesses:
    """The accesses of single statements in program order, under the lets, loops and conditions around them.

    ``tracked(pointer)``: whether its memory matters. ``launched``: the variables of thread axes, which are no loops. An
    access that the program itself orders (``Pointer.ordered``) is none.

    What is loaded from memory of ``constant``, which nothing writes, at one index for all threads and iterations, is one
    number, and a variable stands for it in sums. ``varying``: variables that differ between threads.
    """

    def __init__(
        self,
        tracked: Callable[[Var], bool],
        launched: Collection[Var],
        constant: Collection[Var] = (),
        varying: Collection[Var] = (),
    ):
        self.tracked = tracked
        self.launched = launched
        self.constant = constant
        self.varying = varying
        self.loaded: dict[Any, Var] = {}
        self.loops: list[Loop] = []
        self.conditions: list[Expr] = []
        self.lets: dict[Var, Any] = {}

    def of(self, s: Any) -> list[Access]:
        found = effects(s, Surroundings(self.lets))
        mine = (e for e in found if e.kind != PREFETCH and self.tracked(e.buffer.data) and not _pointer_of(e).ordered)
        return [self._access(e, s) for e in mine]

    def loop(self, s: For) -> Loop:
        return s.loop_var, self.known(s.min), self.known(s.extent)

    def bind(self, var: Var, value: Any) -> None:
        if var.dtype.is_int or var.dtype.is_bool:
            self.lets[var] = self.known(value)

    def known(self, e: Any) -> Any:
        return substitute(e, self.lets) if self.lets else e

    def _numbers(self, e: Expr, local: Collection[Var]) -> Expr:
        """``e`` with variables for its terms that are loaded from constant memory, the same for all values of ``local``.

        A sum with such a number may wrap around, and then does so for all: two are equal if the others' terms are. Behind a
        division or a comparison that would not do.
        """
        if not self.constant or not has_load(e):
            return e
        if e.dtype in _INDICES and self._is_one(e, local):
            return self.loaded.setdefault(key(e), Var("loaded", e.dtype))
        if isinstance(e, (Add, Sub)) or (isinstance(e, Mul) and isinstance(e.b, IntImm)):
            return e.replace(a=self._numbers(e.a, local), b=self._numbers(e.b, local))
        return e

    def _is_one(self, e: Expr, local: Collection[Var]) -> bool:
        """Whether ``e`` has one value, whichever the values of ``local``: constant memory, and no effects."""
        return all(
            shares_memory(n, self.constant)
            if isinstance(n, BufferLoad)
            else n not in local
            if isinstance(n, Var)
            else not isinstance(n, Call) or not depends_on_threads(n, ())
            for n in walk(e)
        )

    def _access(self, e: Effect, s: Any) -> Access:
        pointer = _pointer_of(e)
        unit, first, count, own = _elements(e, s) if e.indices is not None else _through(e, pointer)
        loops = (*self.loops, *(loop for loop in e.loops if loop[0] not in self.launched))
        guards = (as_bool(c) for c in e.guards if c.dtype.lanes == 1 and not is_const(c))
        local = {*self.varying, *(v for v, _, _ in (*loops, *own))}
        conditions = tuple(c for c in (*self.conditions, *guards) if not has_load(c))
        first = None if first is None else self._numbers(first, local)
        together = e.indices is None and not pointer.each_thread
        unfinished = e.write and pointer.asynchronous
        node = e.node if e.through is None else e.through[0]
        return Access(e.buffer.data, unit, first, count, e.write, loops, conditions, node, own, together, unfinished)


_INDICES = (DType("int32"), DType("int64"))
Elements = tuple[int, Expr | None, int, tuple[Loop, ...]]  # bytes of one, the first, how many, loops over them


def _elements(e: Effect, s: Any) -> Elements:
    """The elements of an access with indices."""
    unit, offset = e.buffer.dtype.bytes, e.buffer.elem_offset
    if e.indices is None or len(e.indices) != 1 or (offset is not None and _uses_lets(offset, s)):
        return unit, None, 0, ()
    (index,) = e.indices
    lanes = 1
    if isinstance(index, tuple):
        index, extent = index
        if not isinstance(extent, IntImm):
            return unit, None, 0, ()
        lanes = extent.value
    index = index.value if isinstance(index, Broadcast) else index
    own: tuple[Loop, ...] = ()
    if isinstance(index, Ramp) and is_const(index.stride, 1):
        index, lanes = index.base, index.lanes
    elif index.dtype.lanes > 1:
        lane = _own("lane", index.dtype.element)
        own = ((lane, const(0, lane.dtype), const(index.dtype.lanes, lane.dtype)),)
        index = _element(index, lane)
    return unit, index if offset is None else index + offset, lanes, own


@functools.cache
def _own(name: str, dtype: DType) -> Var:
    """The variable of a loop over an access's own elements, one for all, so that equal accesses are equal."""
    return Var(name, dtype)


def _element(index: Expr, lane: Var) -> Expr:
    """The index of one lane of a vector."""

    def change(item: Any) -> Any:
        if isinstance(item, Ramp):
            return item.base + lane * item.stride
        if isinstance(item, Broadcast):
            return item.value
        if isinstance(item, (Call, Cast)) and item.dtype.lanes > 1:
            return item.replace(dtype=item.dtype.element)
        return None

    return rewrite(index, change)


def _uses_lets(e: Expr, s: Any) -> bool:
    """Whether ``e`` uses variables that lets in ``s`` bind."""
    return not isinstance(e, IntImm) and uses_var(e, {n.var for n in walk(s) if isinstance(n, (Let, LetStmt))})


def _pointer_of(e: Effect) -> Pointer:
    op = OPS.get(e.through[0].op) if e.through is not None else None
    return ANY_ELEMENT if op is None or e.through is None else op.pointer(e.through[1])


def _through(e: Effect, pointer: Pointer) -> Elements:
    """The elements that an operator accesses through a pointer argument: from the operator table, else the extent of its
    ``access_ptr``."""
    if e.through is None:
        return 1, None, 0, ()
    call, position = e.through
    unit, first, extent = _address(call.args[position])
    given = [call.args[p] if p is not None and p < len(call.args) else None for p in (pointer.offset, pointer.size)]
    if first is not None and isinstance(given[0], Expr):
        first = first + given[0]
    size = pointer.bytes if pointer.bytes is not None else constant(given[1])
    if pointer.rows:
        return _tile(call, pointer, unit, first)
    if size is not None:
        return unit, first, max(1, size // unit), ()
    if extent is None or pointer.offset is not None:
        return unit, None, 0, ()
    return unit, first, extent, ()


def _tile(call: Call, pointer: Pointer, unit: int, first: Expr | None) -> Elements:
    """A matrix tile with a constant number of elements between its rows, or any."""
    rows, columns = ([constant(call.args[p]) for p in at] for at in (pointer.rows, pointer.columns))
    stride = None if pointer.stride is None else call.args[pointer.stride]
    if first is None or None in rows or None in columns or not isinstance(stride, Expr):
        return unit, None, 0, ()
    row = _own("row", DType("int32"))
    own = ((row, const(0), const(max(r for r in rows if r is not None))),)
    return unit, first + row * stride, max(c for c in columns if c is not None), own


def _address(e: Any) -> tuple[int, Expr | None, int | None]:
    """Of a pointer expression: the bytes of an element, the element it points to, and how many it says to follow."""
    if isinstance(e, Var):
        dtype = e.pointer_dtype
        return (dtype.bytes if dtype is not None else 1), const(0), None
    if isinstance(e, Call) and e.op == "tvm_access_ptr":
        return _pointee(e.args[0]), e.args[2], constant(e.args[3])
    if isinstance(e, Call) and e.op == "address_of" and isinstance(e.args[0], BufferLoad):
        load = e.args[0]
        if len(load.indices) == 1:
            offset = load.buffer.elem_offset
            return load.buffer.dtype.bytes, load.indices[0] if offset is None else load.indices[0] + offset, None
    return 1, None, None


def _pointee(annotation: Any) -> int:
    dtype = annotation.dtype if isinstance(annotation, Call) else DType(str(annotation.value))
    return dtype.bytes


def depends_on_threads(e: Any, threads: Any) -> bool:
    """Whether ``e`` may differ between threads: it uses a thread variable, or memory, or an impure call."""
    for n in walk(e):
        if isinstance(n, BufferLoad) or (isinstance(n, Var) and n in threads):
            return True
        if isinstance(n, Call) and (effect_of(n) != "pure" or n.op.startswith("tvm_warp_")):
            return True
    return False
