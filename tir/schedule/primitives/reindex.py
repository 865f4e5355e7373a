"""Copies of a buffer laid out by a block's iterators, and declared access regions.

reindex, reindex_cache_read, reindex_cache_write, cache_inplace, annotate_buffer_access, unsafe_hide_buffer_access.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...analysis.dependence.domains import runs_whole_domain
from ...analysis.index import BlockRef
from ...analysis.reduction_init import begins_with_init
from ...analysis.simple_blocks import same_index
from ...analysis.structure import entered, top_statement, uses_pointer
from ...arith import Analyzer
from ...arith.index_map import IndexMap
from ...buffer import Buffer, BufferRegion, IterVar, Range, decl_buffer, index_expr
from ...errors import ScheduleError, require
from ...expr import GE, LT, BufferLoad, Call, Expr, Select, Var, all_of, as_expr, const, is_const
from ...node import frozendict
from ...stmt import Block, BlockRealize, BufferStore, IfThenElse, Stmt
from ...visit import accesses, substitute, uses_var, walk
from ..build import unit_region
from ..handles import BlockRV
from ..legality import require_injective, require_not_steering
from ..primitive import BadArgument, primitive
from ..staging import (
    Indices,
    Stage,
    accessed_box,
    cached_buffer,
    cached_name,
    copy_block,
    elementwise_block,
    position,
    redirect,
    require_known_uses,
)
from ..state import State, pick_buffer, scope_of
from .layout import index_map_of
from .storage import pick_any


def _check_reindex(state: State, block: BlockRef, buffer: Any, *, unsafe: bool = False) -> Stage:
    """Give ``block`` a copy of a buffer indexed by its iterators; returns the block that copies.

    ``buffer`` is a name, or ``("read" | "write", number)`` of the regions of ``block``. The copy has one axis for each
    iterator that the buffer's indices depend on, in the block's order: not for one that has a single value, or that
    drops out as the indices simplify. It is named ``<buffer>_reindex``.

    Before → after, for ``sch.reindex("C", ("read", 0))``::

        for i, j in T.grid(8, 8):                for ax0, ax1 in T.grid(8, 8):
            C[i, j] = A[j, i] * 2.0                  A_reindex[ax0, ax1] = A[ax1, ax0]
                                                 for i, j in T.grid(8, 8):
                                                     C[i, j] = A_reindex[i, j] * 2.0

    Raises ``ScheduleError`` when ``block`` accesses the buffer at more than one element per instance, or when the
    buffer is written between the copy and ``block``.
    """
    found = pick_any(block, buffer)
    writes = _side_of(block, buffer, found) == "write"
    stage = _stage_write if writes else _stage_read
    return stage(state, block, found, "global", None, f"{found.name}_reindex", unsafe)


def _check_reindex_cache_read(
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

    Before → after, for ``sch.reindex_cache_read("C", 0, "shared", lambda i, j: (j, i))``::

        for i, j in T.grid(8, 4):                for ax0, ax1 in T.grid(8, 4):
            C[i, j] = A[i, j] * 2.0                  A_shared[ax1, ax0] = A[ax0, ax1]
                                                 for i, j in T.grid(8, 4):
                                                     C[i, j] = A_shared[j, i] * 2.0

    Raises ``ScheduleError`` as ``reindex`` does, and when the map is not injective.
    """
    found = pick_buffer(block, "reads", read_buffer_index)
    return _stage_read(state, block, found, storage_scope, index_map, cached_name(found, storage_scope), unsafe)


def _check_reindex_cache_write(
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

    Before → after, for ``sch.reindex_cache_write("C", 0, "local", lambda i, j: (j, i))``::

        for i, j in T.grid(8, 4):                for i, j in T.grid(8, 4):
            C[i, j] = A[i, j] * 2.0                  C_local[j, i] = A[i, j] * 2.0
                                                 for ax0, ax1 in T.grid(8, 4):
                                                     C[ax0, ax1] = C_local[ax1, ax0]

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


def _staged(block: BlockRef, buffer: Buffer, storage_scope: str, index_map: Any, name: str) -> _Staged:
    indices = _one_place(block, buffer)
    every = block.block.iter_vars
    for i in every:
        require(
            i.dom is not None and Analyzer().can_prove_equal(i.dom.min, const(0, i.dtype)),
            "iterator {0} of block {1} does not start at 0", i.var.name, block,
        )  # fmt: skip
    outside = {r.var for r in block.loops()}
    require(
        not any(uses_var(i, outside) for i in indices),
        "block {0} indexes buffer {1} by a loop, not by its iterators", block, buffer.name, nodes=[block.node],
    )  # fmt: skip
    domains = {i.var: i.dom for i in every if i.dom is not None}
    recorded: dict[str, Any] = {}
    analyzer = Analyzer(domains)
    if index_map is None:
        # an index may name an iterator without depending on it: one that has a single value, or leaves on division
        single = {i.var: const(0, i.dtype) for i in every if is_const(i.dom.extent, 1)}
        indices = tuple(analyzer.simplify(substitute(e, single)) for e in indices)
        iters = tuple(i for i in every if any(uses_var(e, i.var) for e in indices))
        places: tuple[Expr, ...] = tuple(i.var for i in iters)
        shape: Sequence[Expr] = tuple(domains[i.var].extent for i in iters)
    else:
        made = index_map_of(index_map, len(every), every[0].var.dtype if every else "int32")
        places = made.map_indices([i.var for i in every], analyzer)
        iters = tuple(i for i in every if any(uses_var(e, i.var) for e in (*indices, *places)))
        rule = "two elements would go to one place of the copy of buffer {0}"
        require_injective(places, {i.var: domains[i.var] for i in iters}, rule, buffer.name)
        try:
            shape = made.map_shape([domains[i.var].extent for i in every])
        except ValueError as error:
            raise ScheduleError("{0}", error) from None
        recorded["index_map"] = made
    if not places:  # one element: a buffer still has an axis
        places, shape = (const(0),), (const(1),)
    copy = decl_buffer(shape, buffer.dtype, name, scope=storage_scope)
    return _Staged(buffer, indices, copy, places, iters, recorded)


def _one_place(block: BlockRef, buffer: Buffer) -> tuple[Expr, ...]:
    """The indices at which ``block`` accesses ``buffer``: the same everywhere in it."""
    require(
        not any(isinstance(n, BlockRealize) for n in walk(block.block.body)),
        "block {0} has blocks inside; only a block that loads and stores itself has one place", block,
    )  # fmt: skip
    require(
        not uses_pointer(block.node, buffer),
        "cannot prove where block {0} uses buffer {1}: its pointer is used directly or through another view",
        block, buffer.name,
    )  # fmt: skip
    found = [a.indices for a in accesses(block.block) if a.buffer is buffer]
    require(found, "block {0} does not load or store buffer {1} itself", block, buffer.name)
    for other in found[1:]:
        require(
            same_index(found[0], other),
            "block {0} uses buffer {1} at more than one place: [{2}] and [{3}]",
            block, buffer.name, _listed(found[0]), _listed(other), nodes=[block.node],
            legal="cache_read or cache_write, which copy the buffer at its own indices",
        )  # fmt: skip
    own = {i.var for i in block.block.iter_vars}
    inner = {n.loop_var for n in walk(block.block.body) if hasattr(n, "loop_var")}
    require(
        not any(uses_var(e, inner - own) for e in found[0]),
        "block {0} indexes buffer {1} by a loop inside it: it uses many places at a time", block, buffer.name,
        nodes=[block.node],
    )  # fmt: skip
    return found[0]


def _listed(indices: Sequence[Expr]) -> str:
    return ", ".join(repr(i) for i in indices)


def _copying(block: BlockRef, staged: _Staged, name: str, *, to_copy: bool) -> Stmt:
    """The loops and block that copy from the buffer to its copy, or back."""

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
    inside = _inside(block, staged) if to_copy else _computed(block, staged)
    where = {i.var: n for n, i in enumerate(staged.iters)}
    return elementwise_block(
        name, domains, domains, body, lambda values: substitute(inside, {v: values[n] for v, n in where.items()})
    )


def _computed(block: BlockRef, staged: _Staged) -> Expr:
    """The condition under which the block computes what is copied back: it reduces over domains that are not empty."""
    reduced = [i.dom.extent for i in block.block.iter_vars if i not in staged.iters and i.dom is not None]
    return all_of(entered(reduced, Analyzer()))


def _inside(block: BlockRef, staged: _Staged) -> Expr:
    """The condition, of the iterators, under which the place in the buffer exists, where that is not certain.

    The block may skip some of its iterations, but the copy runs all of them.
    """
    analyzer = Analyzer({i.var: i.dom for i in staged.iters if i.dom is not None})
    parts = [
        part
        for index, extent in zip(staged.indices, staged.buffer.shape)
        for part in (GE(index, const(0, index.dtype)), LT(index, extent))
        if not analyzer.can_prove(part)
    ]
    data = any(isinstance(n, BufferLoad) for e in staged.indices for n in walk(e))
    require(
        not (data and parts) or (runs_whole_domain(block) and not _has_condition(block.block)),
        "block {0} reads buffer {1} only where a condition holds, and the place depends on data: "
        "the copy would have to read everywhere", block, staged.buffer.name, nodes=[block.node],
    )  # fmt: skip
    return const(1, "bool") if data else analyzer.simplify(all_of(parts))


def _has_condition(block: Block) -> bool:
    return any(
        isinstance(n, (IfThenElse, Select)) or (isinstance(n, Call) and n.op == "if_then_else") for n in walk(block)
    )


def _on_copy(block: BlockRef, staged: _Staged) -> Stmt:
    """The block working on the copy."""
    there = unit_region(staged.copy, staged.places)
    return redirect(block, staged.buffer, staged.copy, index=lambda _: staged.places, region=lambda _: there)


def _others_here(scope: BlockRef, block: BlockRef, buffers: set[Buffer], *, reads: bool) -> BlockRef | None:
    """Another block in the same statement of ``scope`` as ``block`` that writes (or also reads) one of ``buffers``."""
    top = top_statement(block, scope).node
    for other in scope.children:
        regions = (*other.block.writes, *(other.block.reads if reads else ()))
        if other is not block and top_statement(other, scope).node is top and any(r.buffer in buffers for r in regions):
            return other
    return None


def _stage_read(
    state: State, block: BlockRef, buffer: Buffer, storage_scope: str, index_map: Any, name: str, unsafe: bool
) -> Stage:
    scope = scope_of(state, block)
    staged = _staged(block, buffer, storage_scope, index_map, name)
    sources = {buffer, *(n.buffer for e in staged.indices for n in walk(e) if isinstance(n, BufferLoad))}
    require(
        unsafe or not any(r.buffer in sources for r in block.block.writes),
        "block {0} writes buffer {1} as well; a copy made before would miss that", block, buffer.name,
        nodes=[block.node], legal="cache_inplace, or reindex its write",
    )  # fmt: skip
    other = _others_here(scope, block, sources, reads=False)
    require(
        unsafe or other is None,
        "block {0} writes in the loops of block {1} what the copy before those loops would read", other, block,
        nodes=[other.node if other else block.node],
    )  # fmt: skip
    block_name = state.fresh_block_name(name)
    copying = _copying(block, staged, block_name, to_copy=True)
    at = position(block, scope)
    changed = {block.node: _on_copy(block, staged)}
    stage = Stage(state, scope, scope, (staged.copy,), changed, {at: [copying]}, (block_name,), staged.recorded)
    everywhere = runs_whole_domain(block) and not _has_condition(block.block)
    if not (unsafe or everywhere):
        # the copy reads what the block, where its condition does not hold, leaves alone
        stage.require_initialized(buffer)
    return stage


def _stage_write(
    state: State, block: BlockRef, buffer: Buffer, storage_scope: str, index_map: Any, name: str, unsafe: bool
) -> Stage:
    scope = scope_of(state, block)
    staged = _staged(block, buffer, storage_scope, index_map, name)
    require(
        unsafe or runs_whole_domain(block) and not _skips_store(block.block, buffer),
        "block {0} does not store at every value of its iterators: the copy back would store what was never computed",
        block, nodes=[block.node],
    )  # fmt: skip
    updates = any(isinstance(a, BufferLoad) and a.buffer is buffer for a in accesses(block.block.body))
    require(
        unsafe or not updates or block.block.init is not None,
        "block {0} reads {1} before anything here has written it: the copy would start uninitialised",
        block, buffer.name, nodes=[block.node], legal="cache_inplace",
    )  # fmt: skip
    rule = "block {0} stores more than once at one place of buffer {1}, and the copy back would not keep their order"
    if not unsafe:
        domains = {i.var: i.dom for i in staged.iters if i.dom is not None}
        require_injective(staged.indices, domains, rule, block, buffer.name)
    other = _others_here(scope, block, {buffer}, reads=True)
    require(
        unsafe or other is None,
        "block {0} uses buffer {1} in the loops of block {2}, before the copy back after those loops",
        other, buffer.name, block, nodes=[other.node if other else block.node],
    )  # fmt: skip
    require_not_steering(buffer, [top_statement(block, scope).node], unsafe)
    block_name = state.fresh_block_name(name)
    copying = _copying(block, staged, block_name, to_copy=False)
    at = position(block, scope) + 1
    changed = {block.node: _on_copy(block, staged)}
    stage = Stage(state, scope, scope, (staged.copy,), changed, {at: [copying]}, (block_name,), staged.recorded)
    if not (unsafe or begins_with_init(block)):
        stage.require_initialized(staged.copy)
    return stage


def _skips_store(block: Block, buffer: Buffer) -> bool:
    """Whether a store to ``buffer`` is under a condition."""
    return any(
        isinstance(n, IfThenElse) and any(isinstance(s, BufferStore) and s.buffer is buffer for s in walk(n))
        for n in walk(block.body)
    )


@primitive(check=_check_reindex)
def reindex(state: State, plan: Stage) -> tuple[State, BlockRV]:
    return plan.result()


@primitive(check=_check_reindex_cache_read)
def reindex_cache_read(state: State, plan: Stage) -> tuple[State, BlockRV]:
    return plan.result()


@primitive(check=_check_reindex_cache_write)
def reindex_cache_write(state: State, plan: Stage) -> tuple[State, BlockRV]:
    return plan.result()


# ---------------------------------------------------------------- cache_inplace


def _check_cache_inplace(
    state: State, block: BlockRef, read_buffer_index: int | str | Buffer, storage_scope: str, *, unsafe: bool = False
) -> Stage:
    """Work on a copy of a buffer that ``block`` both reads and writes: copied in before, copied back after.

    Returns the two copying blocks.

    Before → after, for ``sch.cache_inplace("A", 0, "local")``::

        for i in range(8):                       for ax0 in range(8):
            A[i] = A[i] + 1.0                        A_local[ax0] = A[ax0]
                                                 for i in range(8):
                                                     A_local[i] = A_local[i] + 1.0
                                                 for ax0 in range(8):
                                                     A[ax0] = A_local[ax0]

    Raises ``ScheduleError`` when ``block`` does not do both, or another block in the same loops uses the buffer.
    """
    scope = scope_of(state, block)
    buffer = pick_buffer(block, "reads", read_buffer_index)
    require(
        any(r.buffer is buffer for r in block.block.writes), "block {0} does not write buffer {1}, which it reads",
        block, buffer.name, legal="cache_read",
    )  # fmt: skip
    require_known_uses([block], buffer, unsafe)
    other = _others_here(scope, block, {buffer}, reads=True)
    require(
        unsafe or other is None,
        "block {0} uses buffer {1} in the loops of block {2}, between the copy in and the copy back",
        other, buffer.name, block, nodes=[other.node if other else block.node],
    )  # fmt: skip
    require_not_steering(buffer, [top_statement(block, scope).node], unsafe)
    box = accessed_box([block], buffer, scope, "reads", "writes")
    cached = cached_buffer(buffer, storage_scope)
    first = state.fresh_block_name(cached.name)
    last = state.fresh_block_name(cached.name, {first})
    at = position(block, scope)
    added = {at: [copy_block(first, buffer, cached, box)], at + 1: [copy_block(last, cached, buffer, box)]}
    changed = {block.node: redirect(block, buffer, cached)}
    stage = Stage(state, scope, scope, (cached,), changed, added, (first, last))
    if not unsafe:
        stage.require_initialized(buffer)
    return stage


@primitive(check=_check_cache_inplace)
def cache_inplace(state: State, plan: Stage) -> tuple[State, list[BlockRV]]:
    return plan.after, plan.handles()


# ---------------------------------------------------------------- declared access regions


@dataclass(frozen=True)
class RegionsPlan:
    old: Block
    new: Block
    recorded: dict[str, Any]


def _side(block: BlockRef, buf_type: str) -> str:
    require(buf_type in ("read", "write"), "a block has no buffers `{0}`", buf_type, legal='"read" or "write"')
    return buf_type + "s"


def _check_annotate_buffer_access(
    state: State,
    block: BlockRef,
    buffer_index: int | str | Buffer,
    buf_type: str,
    gen_new_ranges: IndexMap | Callable[..., Any],
) -> RegionsPlan:
    """Declare the region of a buffer that ``block`` accesses, where you know it better than it can be inferred.

    ``gen_new_ranges(*iterators)`` gives for each axis an index, or a pair (begin, end). It is not checked: if the
    region omits an element that the block accesses, later steps may be wrong.

    Before → after, for ``sch.annotate_buffer_access("B", 0, "read", lambda vi: [(vi - 1, vi + 2)])``::

        T.reads(A[0:8])                          T.reads(A[vi - 1:vi + 2])
                                                 T.block_attr({"explicit_read_region": [0]})

    Raises ``ScheduleError`` when the number of ranges is not the number of axes.
    """
    side = _side(block, buf_type)
    buffer = pick_buffer(block, side, buffer_index)
    regions = getattr(block.block, side)
    number = next(n for n, r in enumerate(regions) if r.buffer is buffer)
    if isinstance(buffer_index, int):
        number = buffer_index
    iters = block.block.iter_vars
    made = _ends(gen_new_ranges, iters, buffer)
    ends = made.map_indices([i.var for i in iters], Analyzer({i.var: i.dom for i in iters if i.dom is not None}))
    require(
        len(ends) == 2 * buffer.ndim, "{0} ranges are given for the {1} axes of buffer {2}", len(ends) // 2,
        buffer.ndim, buffer.name,
        legal=f"{buffer.ndim} pairs of begin and end",
    )  # fmt: skip
    analyzer = Analyzer()
    ranges = tuple(Range(a, analyzer.simplify(b - a)) for a, b in zip(ends[::2], ends[1::2]))
    changed = tuple(BufferRegion(buffer, ranges) if n == number else r for n, r in enumerate(regions))
    key = f"explicit_{buf_type}_region"
    marked = tuple(dict.fromkeys((*block.block.annotations.get(key, ()), number)))
    notes = frozendict({**block.block.annotations, key: marked})
    return RegionsPlan(
        block.block, block.block.replace(**{side: changed}, annotations=notes), {"gen_new_ranges": RangesMap(made)}
    )


@dataclass(frozen=True)
class RangesMap:
    """A function of a block's iterators to one (begin, end) for each axis; ``ends`` has them flat."""

    ends: IndexMap

    def __call__(self, *iterators: Any) -> list[tuple[Expr, Expr]]:
        flat = self.ends.map_indices(iterators)
        return list(zip(flat[::2], flat[1::2]))

    def as_python(self) -> str:
        flat = [repr(e) for e in self.ends.final_indices]
        pairs = ", ".join(f"({a}, {b})" for a, b in zip(flat[::2], flat[1::2]))
        return f"lambda {', '.join(v.name for v in self.ends.initial_indices)}: [{pairs}]"


def _ends(given: Any, iters: Sequence[IterVar], buffer: Buffer) -> IndexMap:
    """Begin and end of each axis, in turn, as one index map over the iterators."""
    if isinstance(given, (IndexMap, RangesMap)):
        return given if isinstance(given, IndexMap) else given.ends
    if not callable(given):
        raise BadArgument(f"gen_new_ranges is a function of the block's iterators, not {given!r}")
    variables = tuple(Var(i.var.name, i.dtype) for i in iters)
    try:
        axes: Any = given(*variables)
    except Exception as error:  # whatever the user's function raises
        raise BadArgument(f"gen_new_ranges takes the {len(iters)} iterators of the block: {error}") from error
    ends: list[Expr] = []
    for axis in axes if isinstance(axes, (list, tuple)) else [axes]:
        if isinstance(axis, (list, tuple)) and len(axis) != 2:
            raise BadArgument(f"a range is an index or a pair (begin, end), not {axis!r}")
        dtype = buffer.shape[0].dtype
        try:
            begin, end = axis if isinstance(axis, (list, tuple)) else (axis, as_expr(axis, dtype) + 1)
            ends += [index_expr(as_expr(begin, dtype)), index_expr(as_expr(end, dtype))]
        except (TypeError, ValueError) as error:
            raise BadArgument(f"a range is an index or a pair (begin, end): {error}") from error
    return IndexMap(variables, tuple(ends))


@primitive(check=_check_annotate_buffer_access)
def annotate_buffer_access(state: State, plan: RegionsPlan) -> State:
    return state.replace(plan.old, plan.new)


def _check_unsafe_hide_buffer_access(
    state: State, block: BlockRef, buf_type: str, buf_index_array: Sequence[int]
) -> RegionsPlan:
    """Remove regions from a block's declared reads or writes; ``buf_index_array`` has their numbers.

    Unsafe, as the name says: later steps no longer see the dependences through them.

    Before → after, for ``sch.unsafe_hide_buffer_access("B", "read", [1])``::

        T.reads(A[vi], idx[vi])                  T.reads(A[vi])

    Raises ``ScheduleError`` for a number without a region.
    """
    side = _side(block, buf_type)
    regions = getattr(block.block, side)
    gone = {int(n) for n in buf_index_array}
    bad = [n for n in sorted(gone) if not 0 <= n < len(regions)]
    require(
        not bad,
        "block {0} {1} {2} regions, so there is no number {3}",
        block,
        side,
        len(regions),
        bad[0] if bad else 0,
        legal=[f"{n} ({r.buffer.name})" for n, r in enumerate(regions)],
    )
    kept = tuple(r for n, r in enumerate(regions) if n not in gone)
    return RegionsPlan(block.block, block.block.replace(**{side: kept}), {})


@primitive(check=_check_unsafe_hide_buffer_access)
def unsafe_hide_buffer_access(state: State, plan: RegionsPlan) -> State:
    return state.replace(plan.old, plan.new)
