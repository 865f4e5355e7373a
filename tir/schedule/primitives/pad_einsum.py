"""Padding iteration domains to a multiple: pad_einsum."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...aliases import shares_memory
from ...analysis.block_regions import with_regions
from ...analysis.evaluation import entered, evaluated_parts
from ...analysis.index import BlockRef, LoopRef
from ...analysis.private_clause import with_private
from ...analysis.reduction_forms import Combiner, NotAReduction, Reduction
from ...analysis.users import reads_own_writes, uses_pointer
from ...arith import Analyzer
from ...buffer import Buffer, Range, decl_buffer
from ...errors import ScheduleError, require, require_none
from ...expr import (
    NE,
    Add,
    BufferLoad,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Select,
    Sub,
    Var,
    all_of,
    const,
    floordiv,
    is_const,
    min_,
)
from ...op import call
from ...script.printer import short_text
from ...stmt import SERIAL, UNROLLED, Block, BufferStore, SeqStmt, Stmt, seq
from ...visit import accesses, is_pure, nodes_of, rewrite, uses_var
from ..primitive import primitive
from ..staged_copies import Stage, elementwise_block
from ..state import State, scope_of
from .loops import require_perfect

_Groups = Mapping[tuple[Buffer, tuple[Any, ...]], Sequence[tuple[Any, Range]]]


@dataclass(frozen=True)
class _Copies:
    """Padded copies ``of`` buffers by the way in which they are indexed, and the blocks that fill them and copy back."""

    of: dict[tuple[Buffer, tuple[Any, ...]], Buffer]
    before: list[Stmt]
    after: list[Stmt]


def _copies(
    state: State,
    block: BlockRef,
    stores: Sequence[BufferStore],
    groups: _Groups,
    padded: set[Var],
    sizes: Mapping[Var, Expr],
) -> _Copies:
    written = list(dict.fromkeys(s.buffer for s in stores))
    values = _pad_values(block, padded)
    made = _Copies({}, [], [])
    taken: set[str] = set()
    for (buffer, pattern), axes in sorted(groups.items(), key=lambda item: item[0][0] in written):
        grown = [r if v is None or v not in padded else Range(r.min, sizes[v]) for v, r in axes]
        shape = [b if v is None else r.extent for (v, _), r, b in zip(axes, grown, buffer.shape)]
        copy = decl_buffer(shape, buffer.dtype, f"{buffer.name}_pad", scope=buffer.scope)
        made.of[buffer, pattern] = copy
        name = state.fresh_block_name(copy.name, taken)
        taken.add(name)
        limits = _limits(axes, padded, buffer)
        if buffer not in written or _reads_own(block.block, buffer):
            pad_name = name if buffer not in written else state.fresh_block_name(f"{copy.name}_in", taken)
            taken.add(pad_name)
            made.before.append(_pad_block(pad_name, buffer, copy, grown, limits, values))
        if buffer in written:
            elsewhere = [i.dom.extent for i in block.block.iter_vars if not any(v is i.var for v, _ in axes)]
            made_where = [] if _reads_own(block.block, buffer) else entered(elsewhere, Analyzer())
            made.after.append(_unpad_block(name, copy, buffer, [r for _, r in axes], made_where))
    return made


@primitive(group="tile")
def pad_einsum(state: State, block: BlockRef, padding: Sequence[int]) -> State:
    """Make the iterators of a block run to a multiple of ``padding``, over padded copies of the buffers it uses.

    ``padding`` has one factor for each iterator of the block; 1 means no padding. Where a padded iterator indexes a
    buffer, and in what the block writes, every index must be an iterator or a constant. A buffer that a padded iterator indexes is copied before, to ``…_pad``, with a value past
    the end that does not change the reduction (0 for a sum of products); one that is written is copied back after,
    without the padding. Sizes may be symbolic. Nothing changes if every extent is a multiple already.

    Raises ``ScheduleError`` when the block is not alone in loops bound to its iterators, the extent of one depends on
    another loop, an index is composite, the block might read out of bounds or divide by zero past a domain, or a padded
    element would change the result of a reduction.

    Before, and after ``sch.pad_einsum("C", [4, 1, 8])``::

        for i, j, k in T.grid(6, 8, 6):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

        A_pad = T.alloc_buffer((8, 8), "float32")
        B_pad = T.alloc_buffer((8, 8), "float32")
        C_pad = T.alloc_buffer((8, 8), "float32")
        for ax0, ax1 in T.grid(8, 8):
            with T.block("A_pad"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                A_pad[v0, v1] = T.if_then_else(v0 < 6 and v1 < 6, A[v0, v1], T.float32(0))
        for ax0, ax1 in T.grid(8, 8):
            with T.block("B_pad"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                B_pad[v0, v1] = T.if_then_else(v0 < 6, B[v0, v1], T.float32(0))
        for i, j, k in T.grid(8, 8, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_pad[vi, vj] = T.float32(0)
                C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vk, vj]
        for ax0, ax1 in T.grid(6, 8):
            with T.block("C_pad"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                C[v0, v1] = C_pad[v0, v1]
    """
    body = block.block
    factors = [int(p) for p in padding]
    scope = scope_of(block)
    require(len(factors) == len(body.iter_vars),
            "block {0} has {1} iterators, but there are {2} padding factors", block, len(body.iter_vars), len(factors),
            legal=f"{len(body.iter_vars)} factors, 1 for an iterator that is not padded")  # fmt: skip
    require(all(p >= 1 for p in factors),
            "a padding factor is at least 1; they are {0}", factors, legal="factors of 1 or more; 1 pads nothing")  # fmt: skip
    loops = own_nest(block)
    sizes = _sizes(block, factors)
    if not sizes:
        return state
    top = loops[0]
    around = [p for p in top.all_loops() if p.node.kind not in (SERIAL, UNROLLED)]
    rule = "loop {0} around the nest of block {1} is {2}: its iterations would share the padded copies"
    legal = "pad_einsum before the loop is made so"
    require_none(around, rule, block, lambda p: p.node.kind, legal=legal)
    stores = _stores(block)
    domains = {i.var: i.dom.extent for i in body.iter_vars}
    padded = {v for v in domains if v in sizes}
    groups = _groups(block, stores, domains, padded)
    extents = {i.var: sizes.get(i.var, i.dom.extent) for i in body.iter_vars}
    for store in stores:
        _Total(block, padded, extents).require(store.value)
    copies = _copies(state, block, stores, groups, padded, sizes)
    inner = _swapped(body, copies.of)
    iters = tuple(i.replace(dom=Range(i.dom.min, extents[i.var])) for i in body.iter_vars)
    inner = inner.replace(iter_vars=iters)
    stmt: Stmt = block.node.replace(block=with_regions(inner))
    longer = {v for i, v in zip(body.iter_vars, block.node.iter_values) if i.var in sizes}
    by_loop = {v: extents[i.var] for i, v in zip(body.iter_vars, block.node.iter_values)}
    for ref in reversed(loops):
        # what one iteration had for itself, more iterations may share
        shared = ref.var in longer and ref.node.kind in (SERIAL, UNROLLED)
        loop = with_private(ref.node, ()) if shared else ref.node
        stmt = loop.replace(extent=by_loop[ref.var], body=stmt)
    stage = Stage(
        state, scope, scope, tuple(copies.of.values()), {top.node: seq([*copies.before, stmt, *copies.after])}
    )
    if _reads_more(block, groups):
        stage.require_initialized(*(buffer for buffer, _ in groups))
    return stage.after


def _uses_all(axes: Sequence[tuple[Any, Range]], shape: Sequence[Expr]) -> bool:
    """Whether the block uses each element of a copy: every axis is indexed by an iterator, and no two by the same."""
    used = [v for (v, _), size in zip(axes, shape) if not is_const(size, 1)]
    return all(v is not None for v in used) and len({*used}) == len(used)


def _reads_more(block: BlockRef, groups: Mapping[tuple[Buffer, Any], Sequence[tuple[Any, Range]]]) -> bool:
    """Whether a copy may read an element that the block does not: the block uses part of the copy only, it reads under
    a guard, or it has stored to the element itself."""
    guarded = any(isinstance(n, Call) and n.op == "if_then_else" for n in nodes_of(block.block.body))
    partial = not all(_uses_all(axes, buffer.shape) for (buffer, _), axes in groups.items())
    return partial or guarded or any(reads_own_writes(block.block, buffer) for buffer, _ in groups)


def own_nest(block: BlockRef) -> list[LoopRef]:
    """The loops bound to the iterators: starting at zero, with the extents of the domains, around nothing else."""
    values = block.node.iter_values
    loops = {p.var: p for p in block.loops()}
    for iterator, value in zip(block.block.iter_vars, values):
        require(isinstance(value, Var) and value in loops,
                "iterator {0} of block {1} is `{2}`, not a loop", iterator.var.name, block, lambda: short_text(value))  # fmt: skip
        require(iterator.iter_type in ("spatial", "reduce"),
                "iterator {0} of block {1} is {2}: it may mean anything", iterator.var.name, block, iterator.iter_type)  # fmt: skip
    require(len({*values}) == len(values) > 0 and is_const(block.node.predicate, 1),
            "block {0} runs under a condition, or a loop is named twice", block)  # fmt: skip
    nest = [p for p in block.loops() if p.var in {*values}]
    analyzer = Analyzer()
    for iterator, value in zip(block.block.iter_vars, values):
        assert isinstance(value, Var)
        node = loops[value].node
        exact = is_const(node.min, 0) and is_const(iterator.dom.min, 0)
        require(exact and analyzer.can_prove_equal(node.extent, iterator.dom.extent),
                "loop {0} does not run over just the domain of iterator {1}, from zero", node, iterator.var.name)  # fmt: skip
        outer = next((p for p in block.loops() if uses_var(node.extent, p.var)), None)
        require(
            outer is None,
            "the extent of loop {0} depends on loop {1}: the padded copies would have another size in each of its iterations",
            node,
            outer.node if outer else "",
            nodes=[node],
        )
    require_perfect(nest, block, "loop {0} is around more than block {1} and its loops")
    return nest


def _sizes(block: BlockRef, factors: Sequence[int]) -> dict[Var, Expr]:
    """The new extents of the iterators whose extent is not a multiple already."""
    analyzer = Analyzer()
    found: dict[Var, Expr] = {}
    for iterator, factor in zip(block.block.iter_vars, factors):
        extent = iterator.dom.extent
        by = const(factor, extent.dtype)
        size = analyzer.simplify(floordiv(extent + (factor - 1), by) * by)
        if not analyzer.can_prove_equal(size, extent):
            found[iterator.var] = size
    return found


def _stores(block: BlockRef) -> list[BufferStore]:
    body = block.block
    parts = list(body.body.stmts) if isinstance(body.body, SeqStmt) else [body.body]
    parts += [] if body.init is None else list(body.init.stmts) if isinstance(body.init, SeqStmt) else [body.init]
    plain = all(isinstance(s, BufferStore) for s in parts) and not body.match_buffers and not body.alloc_buffers
    require(plain, "block {0} is more than stores of elements", block)
    pointed = [b for b in {a.buffer for a in accesses(body)} if uses_pointer(body.body, b)]
    require_none(pointed, "block {1} uses the pointer of buffer {2}", block, lambda b: b.name)
    stores = [s for s in parts if isinstance(s, BufferStore)]
    impure = [s.value for s in stores if not is_pure(s.value)]
    require_none(impure, "`{0}` of block {1} has effects, which padded runs would repeat", block, short_text)
    return stores


def _pattern(indices: Sequence[Expr]) -> tuple[Any, ...]:
    """The key of a way to index a buffer: the iterator or number of each axis."""
    # by identity: comparing expressions builds one
    return tuple(("number", i.value) if isinstance(i, IntImm) else ("iterator", id(i)) for i in indices)


def _groups(
    block: BlockRef, stores: Sequence[BufferStore], domains: Mapping[Var, Expr], padded: set[Var]
) -> dict[tuple[Buffer, tuple[Any, ...]], list[tuple[Var | None, Range]]]:
    """Buffers that a padded iterator indexes, separately for each way of indexing, with the extent of every axis."""
    found: dict[tuple[Buffer, tuple[Any, ...]], list[tuple[Var | None, Range]]] = {}
    written = {s.buffer.data: s for s in stores}
    for access in accesses(block.block):
        if not shares_memory(access, written) and not any(uses_var(i, v) for i in access.indices for v in padded):
            continue
        composite = [i for i in access.indices if not (isinstance(i, IntImm) or (isinstance(i, Var) and i in domains))]
        rule = "block {1} uses {2} at `{3}`, which is not an iterator or a constant"
        require_none(composite, rule, block, access.buffer.name, short_text, nodes=[block.node])
        store = written.get(access.buffer.data)
        require(store is None or _is_same_element(access, store),
                "block {0} uses {1} at other elements than the one it writes", block, access.buffer.name)  # fmt: skip
        if any(i in padded for i in access.indices if isinstance(i, Var)):
            axes: list[tuple[Var | None, Range]] = [
                (i, Range(const(0, i.dtype), domains[i])) if isinstance(i, Var) else (None, Range(i, const(1, i.dtype)))
                for i in access.indices
            ]
            found.setdefault((access.buffer, _pattern(access.indices)), axes)
    _require_indexed(block, stores, padded)
    return found


def _is_same_element(access: Any, store: BufferStore) -> bool:
    return (
        access.buffer is store.buffer
        and _pattern(access.indices) == _pattern(store.indices)
        and [short_text(i) for i in access.indices] == [short_text(i) for i in store.indices]
    )


def _require_indexed(block: BlockRef, stores: Sequence[BufferStore], padded: set[Var]) -> None:
    """Refuse stores that a padded spatial iterator does not index, or a reduction iterator does."""
    for store in stores:
        used = {i for i in store.indices if isinstance(i, Var)}
        spatial = [i.var for i in block.block.iter_vars if i.iter_type == "spatial" and i.var in padded]
        missing = [v.name for v in spatial if v not in used]
        rule = "iterator {0} of block {1} is spatial but does not index {2}: every padded run would write it"
        require_none(missing, rule, block, store.buffer.name, nodes=[block.node])
        reduced = [i.var.name for i in block.block.iter_vars if i.iter_type == "reduce" and i.var in used]
        require_none(reduced, "block {1} writes {2} at reduction iterator {0}", block, store.buffer.name)


def _reads_own(block: Block, buffer: Buffer) -> bool:
    """Whether ``block`` is an update without init of a buffer: it starts from the old content."""
    return block.init is None and any(isinstance(a, BufferLoad) and a.buffer is buffer for a in accesses(block.body))


def _pad_values(block: BlockRef, padded: set[Var]) -> dict[Buffer, Expr]:
    """The padding value of each buffer, such that no instance past the end of a reduction changes its result."""
    read = {a.buffer for a in accesses(block.block) if isinstance(a, BufferLoad)}
    plain: dict[Buffer, Expr] = {b: const(0, b.dtype) for b in read}
    reduce = [i for i in block.block.iter_vars if i.iter_type == "reduce" and i.var in padded]
    if not reduce:
        return plain
    combiner, term = _combined(block)
    identity = _number(combiner.identity(term.dtype))
    choices = [plain]
    if identity != 0:
        choices.append({b: combiner.identity(b.dtype) for b in read})
    wrong = ""
    for values in choices:
        wrong = ""
        for iterator in reduce:
            fills = {b: _number(v) for b, v in values.items()}
            if identity is None or _folded(term, iterator.var, fills) != identity:
                wrong = iterator.var.name
        if not wrong:
            return values
    require(
        False,
        "past the end of reduction iterator {0}, block {1} would combine `{2}` of padded elements, "
        "which cannot be proved to leave the result as it is",
        wrong,
        block,
        lambda: short_text(term),
        nodes=[block.node],
        legal="padding 1 for that iterator; or padding every factor of the term along it",
    )
    raise AssertionError


def _combined(block: BlockRef) -> tuple[Combiner, Expr]:
    """The combiner of a block that updates one result, and the other operand."""
    found = Reduction.of(block.block)
    if isinstance(found, NotAReduction):
        raise ScheduleError(found.rule, *found.parts, nodes=[block.node])
    one = found.of_one_value()
    require(one, "block {0} is not a reduction of one store", block)
    assert one is not None and one.combination is not None
    return one.combination.combiner, one.combination.applied_to(None)


class _Total:
    """Asks of the body of a block whether everything that it evaluates has a value at padded instances too.

    ``padded`` are the iterators that go past their domain, and what depends on them. An element that one of them indexes
    is in a copy, and another that the block reads at every instance was read before.
    """

    def __init__(self, block: BlockRef, padded: set[Var], extents: Mapping[Var, Expr]):
        self.block, self.padded, self.known = block, set(padded), Analyzer()
        for iterator in block.block.iter_vars:
            self.known.bind(iterator.var, Range(iterator.dom.min, extents[iterator.var]))

    def require(self, e: Expr, when: Sequence[Expr] = ()) -> None:
        """Refuse ``e`` if it may fail past a domain; it is evaluated under the conditions ``when``."""
        if isinstance(e, Let) and uses_var(e.value, self.padded):
            self.padded.add(e.var)
        for part, condition in evaluated_parts(e):
            if isinstance(part, Expr):
                self.require(part, when if condition is None else [*when, condition])
        self._require_operation(e, when)

    def _require_operation(self, e: Expr, when: Sequence[Expr]) -> None:
        holds: list[Expr] = []
        if isinstance(e, (FloorDiv, FloorMod, Div, Mod)) and e.dtype.is_int:
            holds = [NE(e.b, const(0, e.b.dtype))] if uses_var(e.b, self.padded) else []
        elif isinstance(e, Call) and e.op in ("shift_left", "shift_right") and uses_var(e.args[1], self.padded):
            holds = [e.args[1] >= 0, e.args[1] < e.dtype.bits]
        elif isinstance(e, BufferLoad) and not any(i in self.padded for i in e.indices if isinstance(i, Var)):
            if any(uses_var(c, self.padded) for c in when):
                holds = [c for i, size in zip(e.indices, e.buffer.shape) for c in (i >= 0, i < size)]
        with self.known.scope():
            for condition in when:
                self.known.assume(condition)
            require(
                all(map(self.known.can_prove, holds)),
                "past the domain of a padded iterator, block {0} would evaluate `{1}`, which may have no value there",
                self.block,
                lambda: short_text(e),
                legal="padding 1 for the iterators that it depends on",
            )


def _number(e: Expr) -> Any:
    return e.value if isinstance(e, (IntImm, FloatImm)) else None


_FOLDS: dict[Any, Any] = {Add: operator.add, Sub: operator.sub, Mul: operator.mul, Max: max, Min: min}


def _folded(e: Any, past: Var, fills: Mapping[Buffer, Any]) -> Any:
    """The constant value of ``e`` where ``past`` is beyond its domain, whatever else it reads; None if it varies."""
    if isinstance(e, (IntImm, FloatImm)):
        return e.value
    if isinstance(e, BufferLoad):
        return fills[e.buffer] if any(i is past for i in e.indices) else None
    if isinstance(e, Cast):
        return _folded(e.value, past, fills)
    if isinstance(e, Select) or (isinstance(e, Call) and e.op == "if_then_else"):
        sides = [_folded(c, past, fills) for c in e.children()[-2:]]
        return sides[0] if sides[0] == sides[1] else None
    fold = _FOLDS.get(type(e))
    if fold is not None:
        a, b = _folded(e.a, past, fills), _folded(e.b, past, fills)
        if isinstance(e, Mul) and e.dtype.is_int and 0 in (a, b):
            return 0
        return None if a is None or b is None else fold(a, b)
    return None


def _limits(axes: Sequence[tuple[Var | None, Range]], padded: set[Var], buffer: Buffer) -> list[tuple[int, Expr]]:
    """For each axis the end of what is copied: that of the domain, or of a buffer that a guard keeps in bounds."""
    analyzer = Analyzer()
    found: list[tuple[int, Expr]] = []
    for n, ((var, bounds), size) in enumerate(zip(axes, buffer.shape)):
        if var is not None and not analyzer.can_prove(bounds.extent <= size):
            found.append((n, analyzer.simplify(min_(bounds.extent, size))))
        elif var in padded:
            found.append((n, bounds.extent))
    return found


def _pad_block(
    name: str,
    source: Buffer,
    target: Buffer,
    box: Sequence[Range],
    limits: Sequence[tuple[int, Expr]],
    values: Mapping[Buffer, Expr],
) -> Stmt:
    """Loops around a block that copies ``source`` into the larger ``target``, and fills the rest."""

    def padded(point: tuple[Var, ...]) -> Stmt:
        inside = all_of([point[n] < limit for n, limit in limits])
        value = call("if_then_else", inside, BufferLoad(source, point), values[source], dtype=source.dtype)
        return BufferStore(target, value, point)

    return elementwise_block(name, box, target.full_region().region, padded)


def _unpad_block(name: str, source: Buffer, target: Buffer, box: Sequence[Range], made_where: Sequence[Expr]) -> Stmt:
    """Loops around a block that copies ``box`` back where it was made; its iterators know that they stay out of the
    padding."""
    domains = [r if is_const(r.min, 0) else Range(const(0, size.dtype), size) for r, size in zip(box, source.shape)]

    def copied(point: tuple[Var, ...]) -> Stmt:
        return BufferStore(target, BufferLoad(source, point), point)

    return elementwise_block(name, box, domains, copied, lambda _: all_of(made_where))


def _swapped(block: Block, swap: Mapping[Any, Buffer]) -> Block:
    def visit(item: Any) -> Any:
        if isinstance(item, (BufferLoad, BufferStore)):
            copy = swap.get((item.buffer, _pattern(item.indices)))
            return None if copy is None else item.replace(buffer=copy)
        return None

    init = None if block.init is None else rewrite(block.init, visit)
    return block.replace(body=rewrite(block.body, visit), init=init)
