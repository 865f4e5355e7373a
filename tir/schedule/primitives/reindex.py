"""Copies of a buffer laid out by a block's iterators: reindex, reindex_cache_read, reindex_cache_write, cache_inplace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...aliases import memory_of
from ...analysis.dependence.domains import require_injective, runs_whole_domain, values_taken
from ...analysis.evaluation import entered, is_certain, unproved_condition
from ...analysis.index import BlockRef, LoopRef, Place, common_host, met_around, top_statement
from ...analysis.reduction_init import begins_with_init
from ...analysis.simple_blocks import same_index
from ...analysis.users import bare_writers, blocks_using, uses_pointer
from ...arith import Analyzer
from ...arith.index_map import IndexMap
from ...arith.linear import key
from ...buffer import Buffer, IterVar, Range, decl_buffer
from ...errors import ScheduleError, require, require_none
from ...expr import BufferLoad, Expr, Var, all_of, const, is_const
from ...stmt import BlockRealize, BufferStore, Stmt
from ...visit import accesses, contains, has_load, nodes_of, substitute, uses_var
from ..handles import BlockRV
from ..nests import unit_region
from ..primitive import primitive
from ..staged_copies import (
    Indices,
    Stage,
    box_inside,
    cached_buffer,
    cached_name,
    copy_block,
    elementwise_block,
    position,
    redirect,
    require_known_uses,
    require_not_steering,
    require_stored_in_blocks,
)
from ..state import State, pick_buffer, scope_of
from .storage import pick_any
from .transform_layout import index_map_of, require_positive_divisors


@primitive(group="memory")
def reindex(state: State, block: BlockRef, buffer: Any, *, unsafe: bool = False) -> Stage:
    """Give ``block`` a copy of a buffer indexed by its iterators; returns the block that copies.

    ``buffer`` is a name, or ``("read" | "write", number)`` of the regions of ``block``. The copy has one axis for each
    iterator that the buffer's indices depend on, in the block's order: not for one that drops out as an index
    simplifies, but an index that would become a constant is kept as it is written (``vi`` of one value, or
    ``vi // 4`` of four). It is named ``<buffer>_reindex``.

    Before, and after ``sch.reindex("C", ("read", 0))``::

        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vj, vi] * 2.0

        A_reindex = T.alloc_buffer((8, 8), "float32")
        for ax0, ax1 in T.grid(8, 8):
            with T.block("A_reindex"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                A_reindex[v0, v1] = A[v1, v0]
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A_reindex[vi, vj] * 2.0

    Raises ``ScheduleError`` when ``block`` accesses the buffer at more than one element per instance, or when the
    buffer is written between the copy and ``block``.
    """
    found = pick_any(block, buffer)
    writes = _side_of(block, buffer, found) == "write"
    stage = _stage_write if writes else _stage_read
    return stage(state, block, found, "global", None, f"{found.name}_reindex", unsafe)


@primitive(group="memory")
def reindex_cache_read(
    state: State,
    block: BlockRef,
    read_buffer_index: int | str | Buffer,
    storage_scope: str,
    index_map: IndexMap | Callable[..., Any],
    *,
    unsafe: bool = False,
) -> Stage:
    """Read a buffer through a copy in ``storage_scope`` laid out by ``index_map(*iterators)``.

    Returns the block that copies.

    Before, and after ``sch.reindex_cache_read("B", 0, "shared", lambda i, j: (j, i))``::

        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

        A_shared = T.alloc_buffer((4, 8), "float32", scope="shared")
        for ax0, ax1 in T.grid(8, 4):
            with T.block("A_shared"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                A_shared[v1, v0] = A[v0, v1]
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A_shared[vj, vi] * 2.0

    Raises ``ScheduleError`` as ``reindex`` does, and when the map is not injective.
    """
    found = pick_buffer(block, "reads", read_buffer_index)
    return _stage_read(state, block, found, storage_scope, index_map, cached_name(found, storage_scope), unsafe)


@primitive(group="memory")
def reindex_cache_write(
    state: State,
    block: BlockRef,
    write_buffer_index: int | str | Buffer,
    storage_scope: str,
    index_map: IndexMap | Callable[..., Any],
    *,
    unsafe: bool = False,
) -> Stage:
    """Write a buffer through a copy in ``storage_scope`` laid out by ``index_map(*iterators)``.

    Returns the block that copies back.

    Before, and after ``sch.reindex_cache_write("B", 0, "local", lambda i, j: (j, i))``::

        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

        B_local = T.alloc_buffer((4, 8), "float32", scope="local")
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B_local[vj, vi] = A[vi, vj] * 2.0
        for ax0, ax1 in T.grid(8, 4):
            with T.block("B_local"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                B[v0, v1] = B_local[v1, v0]

    Raises ``ScheduleError`` as ``reindex`` does, and when the map is not injective.
    """
    found = pick_buffer(block, "writes", write_buffer_index)
    return _stage_write(state, block, found, storage_scope, index_map, cached_name(found, storage_scope), unsafe)


def _side_of(block: BlockRef, given: Any, found: Buffer) -> str:
    if isinstance(given, (tuple, list)):
        return given[0]
    return "write" if any(r.buffer is found for r in block.block.writes) else "read"


@dataclass(frozen=True)
class _Staged:
    """A buffer, the only indices at which the block accesses it, its copy, and the indices there."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    copy: Buffer
    places: tuple[Expr, ...]
    iters: tuple[IterVar, ...]
    recorded: dict[str, Any]


def _staged(state: State, block: BlockRef, buffer: Buffer, storage_scope: str, index_map: Any, name: str) -> _Staged:
    indices = _one_place(block, buffer)
    every = block.block.iter_vars
    for i in every:
        require(i.dom is not None and Analyzer().can_prove_equal(i.dom.min, const(0, i.dtype)),
                "iterator {0} of block {1} does not start at 0", i.var.name, block, nodes=())  # fmt: skip
    outside = {r.var for r in block.loops()}
    require(not any(uses_var(i, outside) for i in indices),
            "block {0} indexes buffer {1} by a loop, not by its iterators", block, buffer.name)  # fmt: skip
    copied = _by_iterators(indices, every) if index_map is None else _by_map(state, buffer, indices, every, index_map)
    indices, iters, places, shape, recorded = copied
    tied = next((i for i in iters if uses_var(i.dom, outside)), None)
    require(tied is None and not any(uses_var(e, outside) for e in shape),
            "how many values iterator {0} of block {1} has depends on a loop: a copy outside of it has no fixed size",
            tied.var.name if tied else every[0].var.name if every else "", block,
            legal="cache_read or cache_write, and compute_at inside of that loop")  # fmt: skip
    if not places:  # one element: a buffer still has an axis
        places, shape = (const(0),), (const(1),)
    copy = decl_buffer(shape, buffer.dtype, name, scope=storage_scope)
    return _Staged(buffer, indices, copy, places, iters, recorded)


# indices of the buffer, the iterators that they or the places use, places in the copy, its shape, what is recorded
_Copied = tuple[tuple[Expr, ...], tuple[IterVar, ...], tuple[Expr, ...], Sequence[Expr], dict[str, Any]]


def _by_iterators(indices: tuple[Expr, ...], every: Sequence[IterVar]) -> _Copied:
    """The places are the iterators that ``indices`` use, in order."""
    analyzer = Analyzer({i.var: i.dom for i in every})
    made = tuple(map(analyzer.simplify, indices))  # an index may name an iterator without depending on it
    indices = tuple(old if is_const(new) else new for old, new in zip(indices, made))
    iters = tuple(i for i in every if any(uses_var(e, i.var) for e in indices))
    return indices, iters, tuple(i.var for i in iters), tuple(i.dom.extent for i in iters), {}


def _by_map(
    state: State, buffer: Buffer, indices: tuple[Expr, ...], every: Sequence[IterVar], index_map: Any
) -> _Copied:
    """The places are those of a map of all iterators. Raises ``ScheduleError`` where two elements would go to one."""
    domains = {i.var: i.dom for i in every if i.dom is not None}
    analyzer, extents = Analyzer(domains), [i.dom.extent for i in every]
    made = index_map_of(index_map, len(every), every[0].var.dtype if every else "int32")
    require_positive_divisors(state, buffer, made, extents)
    places = made.map_indices([i.var for i in every], analyzer)
    iters = tuple(i for i in every if any(uses_var(e, i.var) for e in (*indices, *places)))
    if not {key(analyzer.simplify(e)) for e in indices} <= {key(analyzer.simplify(e)) for e in places}:
        rule = "two elements would go to one place of the copy of buffer {0}"
        require_injective(places, {i.var: domains[i.var] for i in iters}, rule, buffer.name)
    try:
        return indices, iters, places, made.map_shape(extents), {"index_map": made}
    except ValueError as error:
        raise ScheduleError("{0}", error) from None


def _one_place(block: BlockRef, buffer: Buffer) -> tuple[Expr, ...]:
    """The indices at which ``block`` accesses ``buffer``: the same everywhere in it."""
    require(not contains(BlockRealize, block.block.body),
            "block {0} has blocks inside; only a block that loads and stores itself has one place", block, nodes=())  # fmt: skip
    require(not uses_pointer(block.node, buffer),
            "cannot prove where block {0} uses buffer {1}: its pointer is used directly or through another view",
            block, buffer.name, nodes=())  # fmt: skip
    found = [a.indices for a in accesses(block.block) if a.buffer is buffer]
    require(found, "block {0} does not load or store buffer {1} itself", block, buffer.name, nodes=())
    for other in found[1:]:
        require(same_index(found[0], other),
                "block {0} uses buffer {1} at more than one place: [{2}] and [{3}]",
                block, buffer.name, _listed(found[0]), _listed(other),
                legal="cache_read or cache_write, which copy the buffer at its own indices")  # fmt: skip
    wide = next((e for e in found[0] if e.dtype.lanes > 1), None)
    require(wide is None,
            "block {0} indexes buffer {1} by a vector, `{2}`: it uses many places at a time",
            block, buffer.name, wide, legal="cache_read or cache_write, which copy the buffer at its own indices")  # fmt: skip
    own = {i.var for i in block.block.iter_vars}
    inner = {n.loop_var for n in nodes_of(block.block.body) if hasattr(n, "loop_var")}
    require(not any(uses_var(e, inner - own) for e in found[0]),
            "block {0} indexes buffer {1} by a loop inside it: it uses many places at a time", block, buffer.name)  # fmt: skip
    return found[0]


def _listed(indices: Sequence[Expr]) -> str:
    return ", ".join(repr(i) for i in indices)


def _box(block: BlockRef, staged: _Staged, host: BlockRef | LoopRef) -> tuple[dict[Var, Range], bool]:
    """The values that the iterators of the copy take each time that ``host`` runs, and whether surely all of them."""
    variables = {i.var for i in staged.iters}
    if isinstance(host, LoopRef):
        return values_taken(block, variables, host)
    return {i.var: i.dom for i in staged.iters if i.dom is not None}, runs_whole_domain(block)


def _copying(
    block: BlockRef, staged: _Staged, host: BlockRef | LoopRef, box: Mapping[Var, Range], name: str, *, to_copy: bool
) -> Stmt:
    """The loops over ``box`` and block that copy from the buffer to its copy, or back."""

    def at(values: Sequence[Expr]) -> tuple[Indices, Indices]:
        renamed = {i.var: value for i, value in zip(staged.iters, values)}
        there, here = (tuple(substitute(e, renamed) for e in indices) for indices in (staged.indices, staged.places))
        return there, here

    def body(point: Sequence[Expr]) -> Stmt:
        there, here = at(point)
        if to_copy:
            return BufferStore(staged.copy, BufferLoad(staged.buffer, there), here)
        return BufferStore(staged.buffer, BufferLoad(staged.copy, here), there)

    domains = [i.dom for i in staged.iters if i.dom is not None]
    inside = all_of([*met_around(block, host), _inside(block, staged) if to_copy else _computed(block, staged)])
    where = {i.var: n for n, i in enumerate(staged.iters)}
    return elementwise_block(
        name,
        [box[i.var] for i in staged.iters],
        domains,
        body,
        lambda values: substitute(inside, {v: values[n] for v, n in where.items()}),
    )


def _computed(block: BlockRef, staged: _Staged) -> Expr:
    """The condition under which the block computes what is copied back: it reduces over domains that are not empty."""
    reduced = [i.dom.extent for i in block.block.iter_vars if i not in staged.iters and i.dom is not None]
    pairs = zip(block.block.iter_vars, block.node.iter_values)
    own = {value: i.var for i, value in pairs if i in staged.iters and isinstance(value, Var)}
    found = entered(reduced, Analyzer({r.var: r.range for r in block.loops() if r.var in own}))
    require(not any(uses_var(c, r.var) for c in found for r in block.loops() if r.var not in own),
            "whether block {0} computes anything depends on a loop: what is copied back is not known", block)  # fmt: skip
    found = [substitute(c, own) for c in found]
    return all_of(found)


def _inside(block: BlockRef, staged: _Staged) -> Expr:
    """The condition, of the iterators, under which the place in the buffer exists, where that is not certain.

    The block may skip some of its iterations, but the copy runs all of them; and it has none if the domain of an iterator
    is empty over which the copy does not run.
    """
    analyzer = Analyzer({i.var: i.dom for i in staged.iters if i.dom is not None})
    parts = [
        part
        for index, extent in zip(staged.indices, staged.buffer.shape)
        for part in (index >= 0, index < extent)
        if not analyzer.can_prove(part)
    ]
    data = has_load(*staged.indices)
    condition = unproved_condition(staged.indices, analyzer)
    rest = entered(
        [i.dom.extent for i in block.block.iter_vars if i not in staged.iters and i.dom is not None], Analyzer()
    )
    local = any(uses_var(c, p.var) for c in rest for p in block.loops())
    everywhere = runs_whole_domain(block) and _surely_reads(block, staged.buffer) and not local
    rule = "block {0} reads buffer {1} only where a condition holds, and the place {2}: the copy would have to read everywhere"
    for known, why in (
        (not (data and parts), "depends on data"),
        (condition is None, f"has no value unless `{condition!r}`"),
    ):
        require(known or everywhere, rule, block, staged.buffer.name, why)
    certain = rest if data and parts or condition is not None else [] if data else parts
    return analyzer.simplify(all_of(certain))


def _on_copy(block: BlockRef, staged: _Staged) -> Stmt:
    """The block working on the copy."""
    there = unit_region(staged.copy, staged.places)
    return redirect(block, staged.buffer, staged.copy, index=lambda _: staged.places, region=lambda _: there)


def _apart_from(others: Sequence[Place], block: BlockRef, scope: BlockRef) -> BlockRef | LoopRef:
    """``scope``, or the innermost loop that ``block`` shares with one of ``others``: where they are in separate
    statements."""
    hosts = [common_host([other, block], scope) for other in others]
    return max(hosts, key=lambda host: (isinstance(host, LoopRef), len(host.all_loops())), default=scope)


def _beside(others: Sequence[BlockRef], block: BlockRef, host: BlockRef | LoopRef) -> list[BlockRef]:
    """The first of ``others`` in the statement of ``host`` that holds ``block``, if there is one."""
    top = top_statement(block, host).node
    return [other for other in others if any(p.node is top for p in (other, *other.ancestors()))][:1]


def _stage_read(
    state: State, block: BlockRef, buffer: Buffer, storage_scope: str, index_map: Any, name: str, unsafe: bool
) -> Stage:
    scope = scope_of(block)
    staged = _staged(state, block, buffer, storage_scope, index_map, name)
    sources = {buffer, *(n.buffer for e in staged.indices for n in nodes_of(e) if isinstance(n, BufferLoad))}
    require(unsafe or not any(r.buffer in sources for r in block.block.writes),
            "block {0} writes buffer {1} as well; a copy made before would miss that",
            block, buffer.name, legal="cache_inplace, or reindex its write")  # fmt: skip
    others = [b for b in blocks_using(scope, memory_of(sources), "writes") if b is not block]
    host = _apart_from([*others, *(place for source in sources for place in bare_writers(scope, source))], block, scope)
    rule = "block {0} writes in the loops of block {1} what the copy before those loops would read"
    require_none([] if unsafe else _beside(others, block, host), rule, block)
    for source in () if unsafe else sources:
        require_stored_in_blocks(source, [top_statement(block, host).node])
    box, whole = _box(block, staged, host)
    stage = _laid_out(state, block, staged, host, box, name, to_copy=True)
    rest = [i.dom.extent for i in block.block.iter_vars if i not in staged.iters and i.dom is not None]
    if not (unsafe or whole and _surely_reads(block, buffer) and not entered(rest, Analyzer())):
        # the copy reads what the block, where its condition does not hold or it does not run, leaves alone
        stage.require_initialized(buffer)
    return stage


def _laid_out(
    state: State,
    block: BlockRef,
    staged: _Staged,
    host: BlockRef | LoopRef,
    box: Mapping[Var, Range],
    name: str,
    *,
    to_copy: bool,
) -> Stage:
    """``block`` working on the copy, of ``box``, that is made before its statement of ``host``, or written back after
    it."""
    block_name = state.fresh_block_name(name)
    copying = _copying(block, staged, host, box, block_name, to_copy=to_copy)
    at = position(block, host) + (0 if to_copy else 1)
    changed = {block.node: _on_copy(block, staged)}
    scope = scope_of(block)
    return Stage(state, scope, host, (staged.copy,), changed, {at: [copying]}, (block_name,), staged.recorded)


def _stage_write(
    state: State, block: BlockRef, buffer: Buffer, storage_scope: str, index_map: Any, name: str, unsafe: bool
) -> Stage:
    scope = scope_of(block)
    staged = _staged(state, block, buffer, storage_scope, index_map, name)
    others = [b for b in blocks_using(scope, buffer) if b is not block]
    host = _apart_from(others, block, scope)
    box, whole = _box(block, staged, host)
    require(
        unsafe or whole and _surely_writes(block, buffer),
        "block {0} does not store at every value of its iterators: the copy back would store what was never computed",
        block,
    )
    updates = any(isinstance(a, BufferLoad) and a.buffer is buffer for a in accesses(block.block.body))
    require(unsafe or not updates or block.block.init is not None,
            "block {0} reads {1} before anything here has written it: the copy would start uninitialised",
            block, buffer.name, legal="cache_inplace")  # fmt: skip
    rule = "block {0} stores more than once at one place of buffer {1}, and the copy back would not keep their order"
    if not unsafe:
        domains = {i.var: i.dom for i in staged.iters if i.dom is not None}
        require_injective(staged.indices, domains, rule, block, buffer.name)
    if not unsafe:
        early = _beside(others, block, host) or ([] if _ends_in(block, host) else others[:1])
        rule = "block {0} uses buffer {1} in the loops of block {2}, before the copy back after those loops"
        require_none(early, rule, buffer.name, block)
        require_not_steering(buffer, [top_statement(block, host).node])
        require_stored_in_blocks(buffer, [top_statement(block, host).node])
    stage = _laid_out(state, block, staged, host, box, name, to_copy=False)
    if not (unsafe or begins_with_init(block)):
        stage.require_initialized(staged.copy)
    return stage


def _ends_in(block: BlockRef, host: BlockRef | LoopRef) -> bool:
    """Whether reductions of ``block`` begin and end in one iteration of ``host``."""
    around = {host.var, *(loop.var for loop in host.loops())} if isinstance(host, LoopRef) else ()
    reduced = [v for i, v in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type == "reduce"]
    return not any(uses_var(v, around) for v in reduced)


def _surely_reads(block: BlockRef, buffer: Buffer) -> bool:
    """Whether every instance of ``block`` loads its element of ``buffer``, whatever its conditions give."""
    return is_certain(block.block.body, lambda n: isinstance(n, BufferLoad) and n.buffer is buffer, _in_domains(block))


def _surely_writes(block: BlockRef, buffer: Buffer) -> bool:
    """Whether every result of ``block`` in ``buffer`` is stored, by its init or by its body, whatever its conditions give."""
    parts = [p for p in (block.block.init, block.block.body) if p is not None]
    stores = lambda n: isinstance(n, BufferStore) and n.buffer is buffer  # noqa: E731
    return any(is_certain(p, stores, _in_domains(block)) for p in parts)


def _in_domains(block: BlockRef) -> Analyzer:
    return Analyzer({i.var: i.dom for i in block.block.iter_vars if i.dom is not None})


# ---------------------------------------------------------------- cache_inplace


@primitive(instead=("cache_write", "cache_read"), group="memory")
def cache_inplace(
    state: State, block: BlockRef, read_buffer_index: int | str | Buffer, storage_scope: str, *, unsafe: bool = False
) -> tuple[State, list[BlockRV]]:
    """Work on a copy of a buffer that ``block`` both reads and writes: copied in before, copied back after.

    Returns the two copying blocks.

    Before, and after ``sch.cache_inplace("A", 0, "local")``::

        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi] + 1.0

        A_local = T.alloc_buffer((8,), "float32", scope="local")
        for ax0 in range(8):
            with T.block("A_local"):
                v0 = T.axis.spatial(8, ax0)
                A_local[v0] = A[v0]
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A_local[vi] = A_local[vi] + 1.0
        for ax0 in range(8):
            with T.block("A_local_1"):
                v0 = T.axis.spatial(8, ax0)
                A[v0] = A_local[v0]

    Raises ``ScheduleError`` when ``block`` does not do both, or another block in the same loops uses the buffer.
    """
    scope = scope_of(block)
    buffer = pick_buffer(block, "reads", read_buffer_index)
    require(any(r.buffer is buffer for r in block.block.writes),
            "block {0} does not write buffer {1}, which it reads", block, buffer.name, legal="cache_read", nodes=())  # fmt: skip
    require_known_uses([block], buffer, unsafe)
    others = [b for b in blocks_using(scope, buffer) if b is not block]
    host = _apart_from(others, block, scope)
    if not unsafe:
        rule = "block {0} uses buffer {1} in the loops of block {2}, between the copy in and the copy back"
        require_none(_beside(others, block, host), rule, buffer.name, block)
        require_not_steering(buffer, [top_statement(block, host).node])
        require_stored_in_blocks(buffer, [top_statement(block, host).node])
    box = box_inside([block], buffer, host, "reads", "writes")
    cached = cached_buffer(buffer, storage_scope)
    first = state.fresh_block_name(cached.name)
    last = state.fresh_block_name(cached.name, {first})
    at = position(block, host)
    added = {at: [copy_block(first, buffer, cached, box)], at + 1: [copy_block(last, cached, buffer, box)]}
    changed = {block.node: redirect(block, buffer, cached)}
    stage = Stage(state, scope, host, (cached,), changed, added, (first, last))
    if not unsafe:
        stage.require_initialized(buffer)
    return stage.after, stage.handles()
