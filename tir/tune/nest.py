"""What a rule asks of a block: the loops around it, their iterators, and how it walks through memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import dropwhile
from math import prod
from typing import Any

from ..analysis.index import BlockRef, LoopRef, index_of
from ..analysis.reduction_forms import Reduction
from ..arith import simplify
from ..arith.linear import key, linear
from ..buffer import Buffer, IterVar
from ..errors import ScheduleError
from ..expr import BufferLoad, Call, Cast, Div, Expr, IntImm, Var, const, constant, is_const
from ..function import PrimFunc
from ..node import Memo, MemoAmong, cached_property, once
from ..op import effect_of
from ..schedule import BlockRV, LoopRV, Schedule
from ..schedule.constants import determined
from ..stmt import SERIAL, Block, BlockRealize, BufferStore
from ..target import LINE
from ..transform.layout import dot, strides_of
from ..visit import has_load, statements, substitute, uses_var, walk

USUAL = 256  # what a symbolic extent counts as
NO_FUNCTIONS = (
    "if_then_else",
    "likely",
    "reinterpret",
    "call_llvm_pure_intrin",
    *("fabs", "floor", "ceil", "trunc", "nearbyint"),
)  # calls that are one instruction, or none
FAR = 1 << 20  # the stride of an axis behind one of symbolic size


@dataclass(frozen=True)
class Axis:
    """A loop that is an iterator of its block: ``kind`` is "spatial" or "reduce"; ``size`` is its ``length``, or what a symbolic one counts as."""

    loop: LoopRV
    var: Var
    kind: str
    length: Expr
    size: int

    @property
    def extent(self) -> int | None:
        """The length; None if that is symbolic."""
        return constant(self.length)

    def fills(self, width: int) -> bool:
        """Whether strips of ``width`` are whole."""
        return self.extent is not None and self.extent % width == 0


@dataclass(frozen=True)
class Access:
    """A load or a store in a block."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def places(self) -> dict[Var, int]:
        """The axis of the buffer that each iterator is the index of."""
        return {i: n for n, i in enumerate(self.indices) if isinstance(i, Var)}

    def stride(self, var: Var) -> int | None:
        """Elements between the accesses of two neighbouring values of ``var``; None if they differ."""
        if var not in self._strides:
            self._strides[var] = self._stride(var)
        return self._strides[var]

    @cached_property
    def _strides(self) -> dict[Var, int | None]:
        return {}

    def _stride(self, var: Var) -> int | None:
        factors = [(_coefficient(i, var), step) for i, step in zip(self.indices, _steps(self.buffer))]
        if any(factor is None for factor, _ in factors):
            return _coefficient(self.address, var)
        return sum((factor or 0) * step for factor, step in factors)

    @cached_property
    def start(self) -> int:
        """Elements before the access where all iterators are zero, without those of digits."""
        return sum(linear(i).const * step for i, step in zip(self.indices, _steps(self.buffer)))

    def step(self, var: Var) -> Expr | None:
        """As :meth:`stride`, exact where sizes are symbolic."""
        if all(isinstance(s, IntImm) for s in (*self.buffer.shape, *self.buffer.strides)):
            found = self.stride(var)
            return None if found is None else const(found)
        factors = [(_coefficient(i, var), step) for i, step in zip(self.indices, strides_of(self.buffer))]
        if any(factor is None for factor, _ in factors):
            found = _coefficient(self.address, var)
            return None if found is None else IntImm(found)
        return simplify(dot([IntImm(factor or 0) for factor, _ in factors], [step for _, step in factors]))

    def is_injective(self, axes: Sequence[Axis]) -> bool:
        """Whether each iteration of ``axes`` accesses an element of its own: none is used twice."""
        steps = [(self.stride(a.var), a.size) for a in axes]
        span = 1  # elements that the axes with smaller steps stay within
        for step, size in sorted((abs(step), size) for step, size in steps if step is not None):
            if step < span and size > 1:
                return False
            span += step * (size - 1)
        return all(step is not None for step, _ in steps)

    @cached_property
    def address(self) -> Expr:
        """The place of the element as one index, in which digits that the indices are of one number are that number
        again."""
        return simplify(dot(self.indices, strides_of(self.buffer)))


def _steps(buffer: Buffer) -> list[int]:
    """Elements between neighbours along each axis."""
    found = _STEPS.get(buffer)
    if found is None:
        found = _STEPS[buffer] = [s.value if isinstance(s, IntImm) else FAR for s in strides_of(buffer)]
    return found


_STEPS: Memo[list[int]] = Memo()


def _coefficient(index: Expr, var: Var) -> int | None:
    """The factor of ``var`` in ``index``; None if the index is not linear in it."""
    if type(index) is Var:
        return int(index is var)
    form = linear(index)
    if form.is_of_variables:
        return form.coefficient(var)
    found = 0
    for factors, factor in form.items():
        if any(uses_var(f, var) for f in factors):
            if [f is var for f in factors] != [True]:
                return None
            found += factor
    return found


@dataclass(frozen=True)
class Nest:
    """A block alone in serial loops that are its iterators: what no rule has scheduled yet.

    >>> import tir
    >>> nest = tir.tune.Nest.of(tir.Schedule(tir.library.rows.row_sum(8, 16)), "total")
    >>> [axis.size for axis in nest.spatial], [axis.size for axis in nest.reduce]
    ([8], [16])
    """

    name: str
    block: Block
    axes: tuple[Axis, ...]
    around: int  # loops around it that repeat it, or are opaque iterators: the steps of a scan, which other blocks may be in, too
    func: PrimFunc = field(compare=False, repr=False)  # the function that it is in

    @staticmethod
    def of(sch: Schedule, name: str) -> Nest | None:
        """The nest of the block called ``name``; None if its loops are scheduled, shared, or not its iterators."""
        found = Nest.in_steps(sch, name)
        return None if found is None or found.in_time else found

    @staticmethod
    def in_steps(sch: Schedule, name: str) -> Nest | None:
        """As :meth:`of`, of a block that may also be in the steps of a scan: the loops inside of these."""
        found = _NESTED.found(sch.func, (), lambda: _nested(sch.func, name), name)
        if found is None:
            return None
        block, around, iters = found
        handles = sch.get_loops(name)[around:]  # asked of the schedule, so that its trace says which loops they are
        axes = tuple(Axis(h, i.var, i.iter_type, length, usual(length)) for h, (i, length) in zip(handles, iters))
        return Nest(name, block, axes, around, sch.func)

    @property
    def in_time(self) -> bool:
        """Whether it is in the steps of something."""
        return self.around > 0

    @cached_property
    def constants(self) -> frozenset[Buffer]:
        """What constant parameters determine: copies of it cost nothing at a call."""
        return determined(self.func)

    def is_given(self, buffer: Buffer) -> bool:
        """Whether a call gives the memory of a buffer."""
        return any(b is buffer for b in self.func.buffer_map.values())

    def crosses_lines(self, buffer: Buffer, pitch: int) -> bool:
        """Whether vectors along rows of a buffer, ``pitch`` elements apart, may lie in two lines of the cache: rows begin within them, or the buffer does, as
        arrays of NumPy do. Memory of the function's own, and what is declared so, begins with one."""
        begins_anywhere = self.is_given(buffer) and (buffer.data_alignment or 1) % LINE > 0
        return begins_anywhere or pitch * buffer.dtype.bytes % LINE > 0

    @property
    def spatial(self) -> list[Axis]:
        return [a for a in self.axes if a.kind == "spatial"]

    @property
    def reduce(self) -> list[Axis]:
        return [a for a in self.axes if a.kind == "reduce"]

    @cached_property
    def reduction(self) -> Reduction | None:
        """The reduction that the block is."""
        found = Reduction.of(self.block)
        return found if isinstance(found, Reduction) and self.reduce else None

    @cached_property
    def stores(self) -> list[Access]:
        return _stores(self.block)

    @cached_property
    def loads(self) -> list[Access]:
        """What the block loads, each element once, except the result that a reduction updates."""
        own = {s.buffer for s in self.stores} if self.reduce else set[Buffer]()
        return [a for a in _loads(self.block) if a.buffer not in own]

    def loads_of(self, buffer: Buffer) -> Sequence[tuple[Expr, ...]]:
        """The indices at which the block loads a buffer, each element once."""
        return self._places.get(buffer, ())

    @cached_property
    def _places(self) -> dict[Buffer, list[tuple[Expr, ...]]]:
        found: dict[Buffer, list[tuple[Expr, ...]]] = {}
        for load in self.loads:
            found.setdefault(load.buffer, []).append(load.indices)
        return found

    @cached_property
    def counts(self) -> Counter[Buffer]:
        """How many loads of each buffer the text of the block has."""
        return Counter(n.buffer for n in walk(self.block.body) if isinstance(n, BufferLoad))

    def reads(self, stage: Nest) -> bool:
        """Whether it loads results of ``stage``."""
        results = {s.buffer for s in stage.stores}
        return any(a.buffer in results for a in self.loads)

    @property
    def accesses(self) -> list[Access]:
        return [*self.stores, *self.loads]

    @cached_property
    def work(self) -> int:
        """About how many operations the block takes once."""
        return cost(self.block.body)

    @cached_property
    def computed(self) -> frozenset[Var]:
        """The iterators that it computes with, beside indexing what it accesses: those of a condition, or of a value."""
        return frozenset(_values(self.block.body)) & {a.var for a in self.axes}

    @property
    def width(self) -> int:
        """Bits of the widest element that the block accesses or computes."""
        stored = [width_of(n.value) for n in statements(self.block.body) if isinstance(n, BufferStore)]
        return max([*stored, *(a.buffer.dtype.element.bits for a in self.accesses)], default=32)

    @property
    def runs(self) -> int:
        """How often the block runs."""
        return volume(self.axes)

    def contiguous(self) -> Axis | None:
        """The spatial axis along which every store writes neighbouring elements."""
        return next((a for a in self.spatial if all(s.stride(a.var) == 1 for s in self.stores)), None)

    def slides_along(self, axis: Axis) -> bool:
        """Whether an operand is walked along by ``axis`` and by an axis of terms at once, as by windows."""
        indices = [i for load in self.loads for i in load.indices if uses_var(i, axis.var) and not has_load(i)]
        return any(uses_var(i, a.var) for i in indices for a in self.reduce)

    def by_stride(self, axes: Iterable[Axis]) -> list[Axis]:
        """``axes`` in the order in which the first store passes through memory, the contiguous one last."""
        if not self.stores:
            return list(axes)
        return sorted(axes, key=lambda a: -abs(self.stores[0].stride(a.var) or 0))


@once
def _stores(block: Block) -> list[Access]:
    """Those to memory that outlives the block."""
    stores = [n for n in statements(block.body) if isinstance(n, BufferStore)]
    return [Access(n.buffer, n.indices) for n in stores if n.buffer not in block.alloc_buffers]


@once
def _loads(block: Block) -> list[Access]:
    """Those of memory from outside of the block, of each element one."""
    found = [n for n in walk(block.body) if isinstance(n, BufferLoad) and n.buffer not in block.alloc_buffers]
    return list({key(n): Access(n.buffer, n.indices) for n in found}.values())


def _nested(func: PrimFunc, name: str) -> tuple[Block, int, list[tuple[IterVar, Expr]]] | None:
    """The block of a nest, how many loops are around the nest, and the iterator and the length of each of its loops; None if it is no nest."""
    ref = index_of(func).blocks.get(name)
    if ref is None or ref.scope is None or ref.scope.scope is not None:
        return None
    realize = ref.node
    steps = {v for i, v in zip(realize.block.iter_vars, realize.iter_values) if i.iter_type == "opaque"}
    loops = list(dropwhile(lambda loop: loop.var in steps or _goes_on(func, loop, ref), ref.loops()))
    around = len(ref.loops()) - len(loops)
    bodies = [loop.node.body for loop in loops]
    if not is_const(realize.predicate, 1) or bodies != [*(loop.node for loop in loops[1:]), *([realize] * bool(loops))]:
        return None
    if any(isinstance(n, BlockRealize) for n in statements(realize.block.body)) or realize.block.annotations:
        return None
    if not _are_axes(loops, realize, steps - {loop.var for loop in loops}):
        return None
    iters = dict(zip(realize.iter_values, realize.block.iter_vars))
    return realize.block, around, [(iters[loop.var], loop.node.extent) for loop in loops]


def _goes_on(func: PrimFunc, loop: LoopRef, ref: BlockRef) -> bool:
    """Whether each iteration of a loop, which no iterator tells apart, goes on with what the blocks in it have made in the one before."""
    if any(uses_var(v, loop.var) for v in ref.node.iter_values):
        return False
    others = [b for b in index_of(func).blocks_below(loop) if b is not ref]
    read = {r.buffer for r in ref.block.reads}
    return any(w.buffer in read for b in others for w in b.block.writes)


_NESTED: MemoAmong[Any] = MemoAmong()


def are_as_long(some: Sequence[Axis], others: Sequence[Axis]) -> bool:
    """Whether the first of ``some`` have the lengths of ``others``, each of these."""
    lengths = [[key(a.length) for a in axes] for axes in (some, others)]
    return lengths[0][: len(others)] == lengths[1]


def continued(last: Axis, axes: Sequence[Axis], accesses: Sequence[Access]) -> list[Axis]:
    """Those of ``axes`` that ``accesses`` walk through as through one with ``last``, which is the last of them."""
    steps, together = [a.step(last.var) for a in accesses], [last]
    length: Expr = last.length
    while True:
        around = [
            a
            for a in axes
            if a not in together and all(_follow(c.step(a.var), step, length) for c, step in zip(accesses, steps))
        ]
        if not around:
            return together
        together.insert(0, min(around, key=lambda a: a.size))  # those of one element first
        length = length * together[0].length


def _follow(outer: Expr | None, inner: Expr | None, length: Expr) -> bool:
    """Whether elements ``outer`` apart follow ``length`` elements that are ``inner`` apart."""
    if outer is None or inner is None:
        return False
    apart = simplify(outer - inner * length)
    return isinstance(apart, IntImm) and apart.value == 0


def reach(stage: Nest, reader: Nest, one: Axis, other: Axis) -> tuple[int, int] | None:
    """How ``reader`` walks along the axis ``one`` of the results of ``stage`` with its own axis ``other``.

    ``(step, span)``: in iteration ``n`` of ``other`` it reads results at ``step * n + offset``, with ``span`` successive
    offsets, over all of its loads and the rest of its iterators. None where that is not known, as for loads that walk with
    different steps (``E[i, j] + E[j, i]``). An axis of one iteration is walked along by one element.
    """
    buffers = {s.buffer: s.places.get(one.var) for s in stage.stores}
    walks: list[tuple[int, int, int]] = []
    for load in reader.loads:
        if load.buffer not in buffers:
            continue
        at = buffers[load.buffer]
        found = None if at is None else _walk(load.indices[at], other, reader)
        if found is None:
            return None
        walks.append(found)
    steps = {step for step, _, _ in walks}
    if not walks or one.extent == 1:
        return (1, 1)
    low, high = min(low for _, low, _ in walks), max(high for _, _, high in walks)
    return (steps.pop(), high - low + 1) if len(steps) == 1 else None


def _walk(index: Expr, axis: Axis, of: Nest) -> tuple[int, int, int] | None:
    """The factor of ``axis`` in an index, and the least and greatest value of the rest; None if it is not linear."""
    step, low, high = 0, 0, 0
    sizes: dict[Expr, int] = {a.var: a.size for a in of.axes}
    for factors, factor in linear(index).items():
        if not factors:
            low, high = low + factor, high + factor
        elif len(factors) != 1 or factors[0] not in sizes:
            return None
        elif factors[0] is axis.var:
            step = factor
        else:
            ends = sorted((0, factor * (sizes[factors[0]] - 1)))
            low, high = low + ends[0], high + ends[1]
    return step, low, high


def kinds_under(sch: Schedule, block: BlockRV | str, loop: LoopRV) -> set[str]:
    """The kinds of the iterators of ``block`` that depend on ``loop``."""
    ref = index_of(sch.func).blocks[block if isinstance(block, str) else block.name]
    return {i.iter_type for i, e in zip(ref.block.iter_vars, ref.node.iter_values) if uses_var(e, loop.var)}


def loop_of(sch: Schedule, block: str, var: Var, inside: LoopRV) -> LoopRV:
    """The loop inside of ``inside`` that the iterator ``var`` of a block runs with. Raises ``ScheduleError`` if it is outside."""
    value = index_of(sch.func).blocks[block].node.bindings[var]
    loops = sch.get_loops(block)
    found = next((loop for loop in loops[loops.index(inside) + 1 :] if uses_var(value, loop.var)), None)
    if found is None:
        raise ScheduleError(f"{var.name} of {block} does not run inside of loop {inside.name}")
    return found


def extent_of(sch: Schedule, loop: LoopRV) -> int:
    """The number of iterations of a loop; the usual one if it is symbolic."""
    return usual(sch.get(loop).extent)


def _are_axes(loops: Sequence[LoopRef], realize: BlockRealize, steps: Set[Expr]) -> bool:
    """Whether the loops are the iterators of the block, one each but for ``steps``, serial and from zero. An extent may depend
    on loops around it, as in a product with a triangular matrix: it counts as symbolic."""
    if {v for v in realize.iter_values if not isinstance(v, IntImm)} - steps != {loop.var for loop in loops}:
        return False
    return not any(
        loop.node.kind != SERIAL or loop.node.annotations or getattr(loop.node.min, "value", None) != 0
        for loop in loops
    )


_ASSUMED: ContextVar[Mapping[Var, int] | None] = ContextVar("_ASSUMED", default=None)


@contextmanager
def assuming(sizes: Mapping[Var, int]) -> Iterator[None]:
    """Inside, symbolic sizes count as these; those that are not among them as the usual one."""
    before = _ASSUMED.set(sizes)
    try:
        yield
    finally:
        _ASSUMED.reset(before)


def usual(extent: Any) -> int:
    """An extent, or what one that is not constant counts as."""
    found, sizes = constant(extent), _ASSUMED.get()
    if found is None and sizes:
        known = {v: const(sizes.get(v, USUAL), v.dtype) for v in walk(extent) if isinstance(v, Var)}
        found = constant(simplify(substitute(extent, known))) if known.keys() & sizes.keys() else None
    return USUAL if found is None else found


def _values(item: Any) -> Iterator[Var]:
    """The variables of an expression or a statement, without those that index buffers."""
    if isinstance(item, Var):
        yield item
    elif isinstance(item, BufferStore):
        yield from _values(item.value)
    elif not isinstance(item, BufferLoad):
        for child in item.children():
            if hasattr(child, "children"):
                yield from _values(child)


def least(shape: Iterable[Any]) -> int:
    """The elements that an array has at least, whatever its symbolic sizes are: batches of one image, matrices of one row."""
    return prod(1 if constant(extent) is None else usual(extent) for extent in shape)


def volume(axes: Iterable[Axis]) -> int:
    """The number of iterations of ``axes``."""
    return prod(a.size for a in axes)


def cost(item: Any) -> int:
    """About how many simple operations an expression or a statement takes; calls such as ``exp`` count for many."""
    return own_cost(item) + sum(cost(c) for c in item.children() if hasattr(c, "children"))


def own_cost(item: Any) -> int:
    """As :func:`cost`, without its operands."""
    if isinstance(item, Call) and item.op not in NO_FUNCTIONS:
        each = 40 if item.op == "pow" else 20  # of a logarithm, and its exponential
        return each if effect_of(item) == "pure" and item.dtype.is_float else 2
    return 8 if isinstance(item, Div) else int(isinstance(item, (BufferLoad, BufferStore)) or _is_arithmetic(item))


def computed(value: Expr) -> Iterator[Expr]:
    """The numbers that a value is computed of, itself the first, without indices."""
    yield value
    if not isinstance(value, BufferLoad):
        for child in value.children():
            if isinstance(child, Expr):
                yield from computed(child)


def width_of(value: Expr) -> int:
    """Bits of the widest number that a value is computed of."""
    return max(n.dtype.element.bits for n in computed(value))


def unconverted(value: Expr) -> Expr:
    """A value without conversions of its type around it."""
    return unconverted(value.value) if isinstance(value, Cast) else value


def is_view(value: Expr) -> bool:
    """Whether a value is no work of its own: one element of another buffer, or a constant."""
    if isinstance(value, Cast):
        return is_view(value.value) and value.value.dtype == value.dtype
    return isinstance(value, BufferLoad) or cost(value) == 0


def is_padding(nest: Nest) -> bool:
    """Whether a block is a view of an array with a constant around it."""
    chosen = getattr(nest.block.body, "value", None)
    if nest.reduce or not isinstance(chosen, Call) or chosen.op != "if_then_else":
        return False
    asked, inside, around = chosen.args
    return is_view(inside) and not has_load(asked) and not has_load(around)


def epilogue(sch: Schedule, product: Nest) -> str | None:
    """The only consumer, if it is elementwise in the result: it is computed for a tile while that is in registers."""
    consumers = sch.get_consumers(product.name)
    nest = Nest.of(sch, consumers[0].name) if len(consumers) == 1 else None
    if nest is None or nest.reduce or len(nest.stores) != 1 or nest.runs != volume(product.spatial):
        return None
    own = [a for a in nest.loads if a.buffer is product.stores[0].buffer]
    if len(own) != 1 or len(own[0].places) != len(own[0].indices):
        return None
    store = nest.stores[0]
    in_place = own[0].places == store.places and len(own[0].indices) == len(store.indices)
    in_order = [own[0].places.get(a.var) for a in nest.axes] == list(range(len(own[0].indices)))
    return nest.name if in_place or in_order else None


def _is_arithmetic(item: Any) -> bool:
    return isinstance(item, Expr) and not isinstance(item, (Cast, IntImm, Var)) and item.dtype.is_float
