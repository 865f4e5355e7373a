"""Effects of a kernel's statements on memory that threads share, and whether two accesses conflict.

An access is an interval of bytes behind a pointer, as an expression of the thread variables and the loops around it.
Two accesses conflict if one writes, and two different threads of a block may access the same byte.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from math import gcd
from typing import Any

from ..arith import Analyzer
from ..arith.linear import key
from ..buffer import Buffer, Range
from ..dtype import DType
from ..expr import (
    LT,
    NE,
    TRUE,
    Broadcast,
    BufferLoad,
    Call,
    Expr,
    IntImm,
    Let,
    Or,
    Ramp,
    StringImm,
    Var,
    as_bool,
    const,
    is_const,
    logical_not,
)
from ..op import effect_of
from ..poly import Formula, Names, NotAffine, TooLong
from ..stmt import AssertStmt, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, IfThenElse, LetStmt, While
from ..visit import rewrite, substitute, walk

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

    def from_before(self, loop: Var, next_only: bool) -> Access:
        return dataclasses.replace(self, earlier=loop, next_only=next_only)

    def at_wait(self) -> Access:
        return dataclasses.replace(self, waited=True, earlier=None)


class Conflicts:
    """Decides conflicts between accesses of the threads ``axes`` (variable, extent) of one block; caches answers."""

    def __init__(self, axes: Sequence[tuple[Var, Expr]], known: Sequence[Loop] = ()):
        self.axes = tuple(axes)
        self.known = tuple(known)
        self.memo: dict[Any, bool] = {}

    def any(self, before: Sequence[Access], after: Sequence[Access]) -> tuple[Access, Access] | None:
        """A conflicting pair of an earlier and a later access."""
        for b in after:
            for a in before:
                if a.base is b.base and (a.is_write or b.is_write) and self.meet(a, b):
                    return a, b
        return None

    def meet(self, a: Access, b: Access) -> bool:
        if a.first is None or b.first is None:
            return True
        shared = 0
        if not a.waited:
            while shared < min(len(a.loops), len(b.loops)) and a.loops[shared][0] is b.loops[shared][0]:
                if a.loops[shared][0] is a.earlier:
                    break
                shared += 1
        found_key = (self._key(a), self._key(b), shared, id(a.earlier), a.next_only)
        found = self.memo.get(found_key)
        if found is None:
            found = self.memo[found_key] = self._meet(a, b, shared)
        return found

    @staticmethod
    def _key(a: Access) -> Any:
        loops = tuple((id(v), key(low), key(extent)) for v, low, extent in (*a.loops, *a.own))
        return a.unit, key(a.first), a.count, loops, tuple(key(c) for c in a.conditions), a.warp

    def _meet(self, a: Access, b: Access, shared: int) -> bool:
        names = Names()
        formula = Formula(names)
        first_a, first_b = self._side(formula, a, shared), self._side(formula, b, shared)
        if first_a is None or first_b is None:
            return True
        index_a, threads_a, vars_a = first_a
        index_b, threads_b, vars_b = first_b
        try:
            for v, low, extent in (*self.known, *a.loops[:shared]):
                formula.within(v, low, extent)
        except NotAffine:
            pass  # fewer facts: more pairs seem to meet
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
        try:
            formula.require(LT(index_a * ua, (index_b + b.count) * ub))
            formula.require(LT(index_b * ub, (index_a + a.count) * ua))
        except NotAffine:
            return True
        try:
            return not formula.set([]).is_empty()
        except TooLong:
            return True

    def _side(self, formula: Formula, a: Access, shared: int) -> Any:
        """The index of one access with fresh variables for all but the first ``shared`` loops."""
        fresh: dict[Var, Any] = {}
        threads = []
        for v, extent in self.axes:
            fresh[v] = Var(v.name, v.dtype)
            threads.append(fresh[v])
            formula.within(fresh[v], const(0, v.dtype), extent) if isinstance(extent, IntImm) else None
        private = (*a.loops[shared:], *a.own)
        for v, _, _ in private:
            fresh[v] = Var(v.name, v.dtype)
        for v, low, extent in private:
            try:
                formula.within(fresh[v], substitute(low, fresh), substitute(extent, fresh))
            except NotAffine:
                continue
        for condition in a.conditions:
            try:
                formula.require(substitute(condition, fresh))
            except NotAffine:
                continue
        assert a.first is not None
        bounds = Analyzer({v: Range(const(0, v.dtype), e) for v, e in self.axes})
        for v, low, extent in private:
            bounds.bind(v, Range(low, extent))
        for v, low, extent in (*self.known, *a.loops[:shared]):
            bounds.bind(v, Range(low, extent))
        return substitute(_bounded_bits(a.first, bounds, formula), fresh), threads, fresh


def _bounded_bits(e: Expr, bounds: Analyzer, formula: Formula) -> Expr:
    """``e`` with bitwise operations on small numbers (swizzled indices) replaced by any number of as many bits."""

    def change(item: Any) -> Any:
        if not (isinstance(item, Call) and item.op in ("bitwise_and", "bitwise_or", "bitwise_xor")):
            return None
        limits = [bounds.bound(x) for x in item.args]
        if any(low is None or low < 0 or high is None for low, high in limits):
            return None
        bits = max(high.bit_length() for _, high in limits if high is not None)
        value = Var("bits", item.dtype)
        bounds.bind(value, Range(const(0, item.dtype), const(1 << bits, item.dtype)))
        formula.within(value, const(0, item.dtype), const(1 << bits, item.dtype))
        return value

    return rewrite(e, change)


class Collector:
    """Accesses of single statements in program order, under the loops and conditions pushed."""

    def __init__(self, tracked: Callable[[Var], bool]):
        self.tracked = tracked
        self.loops: list[Loop] = []
        self.conditions: list[Expr] = []
        self.lets: dict[Var, Any] = {}
        self.found: list[Access] = []

    def of(self, s: Any) -> list[Access]:
        self.found = []
        self.visit(s)
        return self.found

    def visit(self, s: Any) -> None:
        if isinstance(s, BufferStore):
            self.visit(s.value)
            for index in s.indices:
                self.visit(index)
            self.touch(s.buffer, s.indices, True, s)
        elif isinstance(s, BufferLoad):
            for index in s.indices:
                self.visit(index)
            self.touch(s.buffer, s.indices, False, s)
        elif isinstance(s, IfThenElse) or (isinstance(s, Call) and s.op == "if_then_else"):
            condition, yes, no = s.args if isinstance(s, Call) else (s.condition, s.then_case, s.else_case)
            self.visit(condition)
            self.under(condition, yes)
            if no is not None:
                self.under(logical_not(condition) if condition.dtype.lanes == 1 else TRUE, no)
        elif isinstance(s, For):
            self.visit(s.min)
            self.visit(s.extent)
            self.loops.append(self.loop(s))
            self.visit(s.body)
            self.loops.pop()
        elif isinstance(s, (LetStmt, Let)):
            self.visit(s.value)
            self.bind(s.var, s.value)
            self.visit(s.body)
        elif isinstance(s, Call):
            self.call(s)
        elif isinstance(s, (Evaluate, AssertStmt, While, AttrStmt, DeclBuffer)) or not isinstance(s, (Buffer, Var)):
            for child in s.children():
                self.visit(child)

    def loop(self, s: For) -> Loop:
        return s.loop_var, self.known(s.min), self.known(s.extent)

    def bind(self, var: Var, value: Any) -> None:
        if var.dtype.is_int or var.dtype.is_bool:
            self.lets[var] = self.known(value)

    def known(self, e: Any) -> Any:
        return substitute(e, self.lets) if self.lets else e

    def under(self, condition: Expr, s: Any) -> None:
        if condition.dtype.lanes > 1 or is_const(condition):
            self.visit(s)
            return
        self.conditions.append(as_bool(self.known(condition)))
        self.visit(s)
        self.conditions.pop()

    def add(self, base: Var, unit: int, first: Any, count: int, write: bool, node: Any, **more: Any) -> None:
        if first is not None:
            first = self.known(first)
        conditions = tuple(c for c in self.conditions if not any(isinstance(n, BufferLoad) for n in walk(c)))
        self.found.append(Access(base, unit, first, count, write, tuple(self.loops), conditions, node, **more))

    def touch(self, buffer: Buffer, indices: Any, write: bool, node: Any, **more: Any) -> None:
        if not self.tracked(buffer.data):
            return
        unit = buffer.dtype.bytes
        if len(indices) != 1:
            self.add(buffer.data, unit, None, 0, write, node, **more)
            return
        (index,) = indices
        offset = buffer.elem_offset
        if isinstance(index, Broadcast):
            index = index.value
        if isinstance(index, Ramp):
            first = index.base if offset is None else index.base + offset
            if is_const(index.stride, 1):
                self.add(buffer.data, unit, first, index.lanes, write, node, **more)
                return
            lane = Var("lane", index.base.dtype)
            own = ((lane, const(0, lane.dtype), const(index.lanes, lane.dtype)),)
            self.add(buffer.data, unit, first + lane * index.stride, 1, write, node, own=own, **more)
            return
        self.add(buffer.data, unit, index if offset is None else index + offset, 1, write, node, **more)

    # ------------------------------------------------------------ calls that take pointers

    def call(self, s: Call) -> None:
        rule = _POINTER_RULES.get(s.op)
        if rule is not None:
            rule(self, s)
            return
        opaque = effect_of(s) not in ("pure", "read")
        for arg in s.args:
            if isinstance(arg, Var) and arg.dtype.is_handle:
                if self.tracked(arg):
                    self.add(arg, 1, None, 0, opaque, s, warp=True)
            else:
                self.visit(arg)

    def pointer(self, e: Any) -> tuple[Var, int, Expr] | None:
        """The base of a pointer expression, the bytes of an element, and the element it points to."""
        if isinstance(e, Var):
            dtype = e.pointer_dtype
            return e, (dtype.bytes if dtype is not None else 1), const(0)
        if isinstance(e, Call) and e.op == "tvm_access_ptr":
            return e.args[1], _pointee(e.args[0]), e.args[2]
        if isinstance(e, Call) and e.op == "address_of" and isinstance(e.args[0], BufferLoad):
            load = e.args[0]
            if len(load.indices) == 1:
                offset = load.buffer.elem_offset
                first = load.indices[0] if offset is None else load.indices[0] + offset
                return load.buffer.data, load.buffer.dtype.bytes, first
        return None

    def through(self, e: Any, extra: Any, count: int, write: bool, s: Call, **more: Any) -> None:
        """``count`` elements from ``extra`` past the pointer ``e``."""
        place = self.pointer(e)
        if place is None:
            self.visit(e)
            return
        base, unit, first = place
        if self.tracked(base):
            first = first if extra is None else first + extra
            self.add(base, unit, first, count, write, s, **more)

    def tile(self, e: Any, rows: Any, columns: Any, stride: Expr, write: bool, s: Call) -> None:
        """A matrix tile with ``stride`` elements between rows, accessed by an entire warp."""
        row = Var("row")
        self.through(e, row * stride, columns, write, s, own=((row, const(0), const(rows)),), warp=True)


def _pointee(annotation: Any) -> int:
    dtype = annotation.dtype if isinstance(annotation, Call) else DType(str(annotation.value))
    return dtype.bytes


def _access_ptr(c: Collector, s: Call) -> None:
    _, base, first, extent, mask = s.args
    if not c.tracked(base):
        return
    mode = mask.value if isinstance(mask, IntImm) else 3
    count = extent.value if isinstance(extent, IntImm) else None
    for bit, write in ((1, False), (2, True)):
        if mode & bit:
            if count is None:
                c.add(base, _pointee(s.args[0]), None, 0, write, s, warp=True)
            else:
                c.add(base, _pointee(s.args[0]), first, count, write, s, warp=True)


def _cp_async(c: Collector, s: Call) -> None:
    dst, dst_offset, src, src_offset, size = s.args[:5]
    for extra in s.args[5:]:
        c.visit(extra)
    unit = s.dtype.bytes if s.dtype.bits else 1
    count = max(1, size.value // unit) if isinstance(size, IntImm) else 16
    c.through(src, src_offset, count, False, s)
    c.through(dst, dst_offset, count, True, s, asynchronous=True)


def _ldmatrix(c: Collector, s: Call) -> None:
    _, _, _, _, offset, shared, shared_offset = s.args[:7]
    c.visit(offset)
    place = c.pointer(shared)
    unit = place[1] if place is not None else 2
    c.through(shared, shared_offset, max(1, 16 // unit), False, s, warp=True)


def _fragment_io(write: bool) -> Any:
    def rule(c: Collector, s: Call) -> None:
        _, m, n, k, index, pointer, stride = s.args[:7]
        c.visit(index)
        sizes = [x.value if isinstance(x, IntImm) else 32 for x in (m, n, k)]
        c.tile(pointer, max(sizes), max(sizes), stride, write, s)

    return rule


def _mma_store(c: Collector, s: Call) -> None:
    m, n, dst, _, offset, stride = s.args[:6]
    c.visit(offset)
    sizes = [x.value if isinstance(x, IntImm) else 16 for x in (m, n)]
    c.tile(dst, sizes[0], sizes[1], stride, True, s)


def _address(c: Collector, s: Call) -> None:
    place = c.pointer(s)
    if place is not None and c.tracked(place[0]):
        c.add(place[0], place[1], None, 0, True, s, warp=True)


def _nothing(c: Collector, s: Call) -> None:
    for a in s.args:
        if not (isinstance(a, Var) and a.dtype.is_handle) and not isinstance(a, StringImm):
            c.visit(a)


_POINTER_RULES: dict[str, Any] = {
    "tvm_access_ptr": _access_ptr,
    "address_of": _address,
    "ptx_cp_async": _cp_async,
    "ptx_ldmatrix": _ldmatrix,
    "tvm_load_matrix_sync": _fragment_io(False),
    "tvm_store_matrix_sync": _fragment_io(True),
    "mma_store": _mma_store,
    "tvm_mma_sync": _nothing,
    "tvm_fill_fragment": _nothing,
    "mma_fill": _nothing,
    "ptx_mma": _nothing,
}


def depends_on_threads(e: Any, threads: Any) -> bool:
    """Whether ``e`` may differ between threads: it uses a thread variable, or memory, or an impure call."""
    for n in walk(e):
        if isinstance(n, BufferLoad) or (isinstance(n, Var) and n in threads):
            return True
        if isinstance(n, Call) and (effect_of(n) != "pure" or n.op.startswith("tvm_warp_")):
            return True
    return False
