"""Copies of a buffer laid out by a block's iterators, and declared access regions.

reindex, reindex_cache_read, reindex_cache_write, cache_inplace, annotate_buffer_access, unsafe_hide_buffer_access.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...analysis.block_regions import block_access_region
from ...analysis.dependence.domains import runs_whole_domain
from ...analysis.dependence.initialization import check_initialized
from ...analysis.index import BlockRef
from ...analysis.simple_blocks import same_index
from ...analysis.structure import entered, statements, top_statement, uses_pointer
from ...arith import Analyzer
from ...arith.index_map import IndexMap
from ...arith.regions import intersect
from ...buffer import Buffer, BufferRegion, IterVar, Range, decl_buffer, index_expr
from ...errors import ScheduleError, require
from ...expr import GE, LT, BufferLoad, Call, Expr, Select, Var, all_of, as_expr, const
from ...node import frozendict
from ...stmt import Block, BlockRealize, BufferStore, IfThenElse, Stmt, seq
from ...visit import accesses, rewrite, substitute, uses_var, walk
from ..build import add_alloc, copy_block, nest, replace_buffer, unit_region
from ..handles import BlockRV
from ..legality import require_injective, require_legal, require_not_steering
from ..primitive import BadArgument, primitive
from ..state import State, pick_buffer, scope_of
from .layout import index_map_of
from .storage import pick_any


@dataclass(frozen=True)
class StagePlan:
    """The scope block with its new body, the buffer it allocates, the copying blocks' names."""

    scope: BlockRef
    body: Stmt
    buffer: Buffer
    names: tuple[str, ...]
    recorded: dict[str, Any]


def _check_reindex(state: State, block: BlockRef, buffer: Any, *, unsafe: bool = False) -> StagePlan:
    """Give ``block`` a copy of a buffer indexed by its iterators; returns the block that copies.

    ``buffer`` is a name, or ``("read" | "write", number)`` of the regions of ``block``. The copy has one axis for each
    iterator used in the buffer's indices, in the block's order. It is named ``<buffer>_reindex``.

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
) -> StagePlan:
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
    return _stage_read(state, block, found, storage_scope, index_map, _cached_name(found, storage_scope), unsafe)


def _check_reindex_cache_write(
    state: State,
    block: BlockRef,
    write_buffer_index: int | str | Buffer,
    storage_scope: str,
    index_map: IndexMap | Callable[..., Any],
    *,
    unsafe: bool = False,
) -> StagePlan:
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
    return _stage_write(state, block, found, storage_scope, index_map, _cached_name(found, storage_scope), unsafe)


def _side_of(block: BlockRef, given: Any, found: Buffer) -> str:
    if isinstance(given, (tuple, list)):
        return given[0]
    return "write" if any(r.buffer is found for r in block.block.writes) else "read"


def _cached_name(buffer: Buffer, scope: str) -> str:
    return f"{buffer.name}_{scope.replace('.', '_')}"


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
    loops = [(Var(f"ax{n}", i.dtype), i.dom.extent) for n, i in enumerate(staged.iters) if i.dom is not None]
    iters = tuple(IterVar(i.dom, Var(f"v{n}", i.dtype)) for n, i in enumerate(staged.iters))
    renamed = {old.var: new.var for old, new in zip(staged.iters, iters)}
    there = tuple(substitute(e, renamed) for e in staged.indices)
    here = tuple(substitute(e, renamed) for e in staged.places)
    if to_copy:
        body = BufferStore(staged.copy, BufferLoad(staged.buffer, there), here)
    else:
        body = BufferStore(staged.buffer, BufferLoad(staged.copy, here), there)
    made = Block(iters, (), (), name, body)
    reads, writes = block_access_region(made)
    at = {new.var: loop for new, (loop, _) in zip(iters, loops)}
    guard = substitute(_inside(block, staged, there, iters), at) if to_copy else _computed(block, staged)
    return nest(loops, BlockRealize(tuple(v for v, _ in loops), guard, made.replace(reads=reads, writes=writes)))


def _computed(block: BlockRef, staged: _Staged) -> Expr:
    """The condition under which the block computes what is copied back: it reduces over domains that are not empty."""
    reduced = [i.dom.extent for i in block.block.iter_vars if i not in staged.iters and i.dom is not None]
    return all_of(entered(reduced, Analyzer()))


def _inside(block: BlockRef, staged: _Staged, indices: Sequence[Expr], iters: Sequence[IterVar]) -> Expr:
    """The condition under which ``indices`` are in bounds, where that is not proved.

    The block may skip some of its iterations, but the copy runs all of them.
    """
    analyzer = Analyzer({i.var: i.dom for i in iters if i.dom is not None})
    parts = [
        part
        for index, extent in zip(indices, staged.buffer.shape)
        for part in (GE(index, const(0, index.dtype)), LT(index, extent))
        if not analyzer.can_prove(part)
    ]
    data = any(isinstance(n, BufferLoad) for e in indices for n in walk(e))
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


def _on_copy(block: BlockRef, staged: _Staged) -> BlockRealize:
    """The block working on the copy."""

    def visit(item: Any) -> Any:
        if isinstance(item, BufferLoad) and item.buffer is staged.buffer:
            return BufferLoad(staged.copy, staged.places)
        if isinstance(item, BufferStore) and item.buffer is staged.buffer:
            return item.replace(buffer=staged.copy, indices=staged.places)
        if isinstance(item, BufferRegion) and item.buffer is staged.buffer:
            return unit_region(staged.copy, staged.places)
        return None

    return block.node.replace(block=rewrite(block.block, visit))


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
) -> StagePlan:
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
    body = _around(scope, block, _on_copy(block, staged), [copying], [])
    plan = StagePlan(scope, body, staged.copy, (block_name,), staged.recorded)
    everywhere = runs_whole_domain(block) and not _has_condition(block.block)
    if not (unsafe or everywhere):
        # the copy would read elements that the block skips where its predicate is false
        _require_written(state, plan, block, buffer)
    return plan


def _require_written(state: State, plan: StagePlan, block: BlockRef, buffer: Buffer) -> None:
    """Raise ``ScheduleError``, naming the element, if ``buffer`` would be read uninitialised."""
    if buffer in state.func.buffer_map.values():
        return
    require_legal(check_initialized(_placed(state, plan).func, buffer), state.func, nodes=[block.node])


def _stage_write(
    state: State, block: BlockRef, buffer: Buffer, storage_scope: str, index_map: Any, name: str, unsafe: bool
) -> StagePlan:
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
    body = _around(scope, block, _on_copy(block, staged), [], [copying])
    return StagePlan(scope, body, staged.copy, (block_name,), staged.recorded)


def _skips_store(block: Block, buffer: Buffer) -> bool:
    """Whether a store to ``buffer`` is under a condition."""
    return any(
        isinstance(n, IfThenElse) and any(isinstance(s, BufferStore) and s.buffer is buffer for s in walk(n))
        for n in walk(block.body)
    )


def _around(scope: BlockRef, block: BlockRef, new: BlockRealize, first: list[Stmt], last: list[Stmt]) -> Stmt:
    """The body of ``scope`` with ``block`` replaced, and statements before and after the one that holds it."""
    top = top_statement(block, scope).node
    above = {id(p.node) for p in (block, *block.ancestors())}
    changed = rewrite(top, lambda n: new if n is block.node else None, enter=lambda n: id(n) in above)
    return seq(s for stmt in statements(scope) for s in ([*first, changed, *last] if stmt is top else [stmt]))


def _placed(state: State, plan: StagePlan) -> State:
    return state.replace(plan.scope.block, add_alloc(plan.scope.block.replace(body=plan.body), plan.buffer))


def _apply(state: State, plan: StagePlan) -> tuple[State, BlockRV]:
    after = _placed(state, plan)
    return after, after.block_rv(plan.names[0])


@primitive(check=_check_reindex)
def reindex(state: State, plan: StagePlan) -> tuple[State, BlockRV]:
    return _apply(state, plan)


@primitive(check=_check_reindex_cache_read)
def reindex_cache_read(state: State, plan: StagePlan) -> tuple[State, BlockRV]:
    return _apply(state, plan)


@primitive(check=_check_reindex_cache_write)
def reindex_cache_write(state: State, plan: StagePlan) -> tuple[State, BlockRV]:
    return _apply(state, plan)


# ---------------------------------------------------------------- cache_inplace


def _check_cache_inplace(
    state: State, block: BlockRef, read_buffer_index: int | str | Buffer, storage_scope: str, *, unsafe: bool = False
) -> StagePlan:
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
    require(
        not uses_pointer(block.node, buffer),
        "cannot prove what uses buffer {0}: its pointer is used directly or through another view", buffer.name,
    )  # fmt: skip
    other = _others_here(scope, block, {buffer}, reads=True)
    require(
        unsafe or other is None,
        "block {0} uses buffer {1} in the loops of block {2}, between the copy in and the copy back",
        other, buffer.name, block, nodes=[other.node if other else block.node],
    )  # fmt: skip
    require_not_steering(buffer, [top_statement(block, scope).node], unsafe)
    region = _box(block, buffer)
    axes = buffer.axis_separators
    cached = decl_buffer(
        buffer.shape, buffer.dtype, _cached_name(buffer, storage_scope), scope=storage_scope, axis_separators=axes
    )
    first = state.fresh_block_name(cached.name)
    last = state.fresh_block_name(cached.name, {first})
    copies = copy_block(first, buffer, cached, region), copy_block(last, cached, buffer, region)
    new = replace_buffer(block.node, buffer, cached)
    body = _around(scope, block, new, [copies[0]], [copies[1]])
    plan = StagePlan(scope, body, cached, (first, last), {})
    if not unsafe:
        _require_written(state, plan, block, buffer)
    return plan


def _box(block: BlockRef, buffer: Buffer) -> tuple[Range, ...]:
    """The box of ``buffer`` that ``block`` touches over all its iterations."""
    box = block.region_in(block.loop_ranges(), buffer, "reads", "writes")
    assert box is not None
    return intersect([box, buffer.full_region().region])


@primitive(check=_check_cache_inplace)
def cache_inplace(state: State, plan: StagePlan) -> tuple[State, list[BlockRV]]:
    after = _placed(state, plan)
    return after, [after.block_rv(name) for name in plan.names]


# ---------------------------------------------------------------- declared access regions


@dataclass(frozen=True)
class RegionsPlan:
    old: Block
    new: Block
    recorded: dict[str, Any]


def _side(block: BlockRef, buf_type: str) -> str:
    require(buf_type in ("read", "write"), "the side of a buffer is `read` or `write`, not `{0}`", buf_type)
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
        not bad, "block {0} {1} {2} regions, so there is no number {3}", block, side, len(regions), bad[0] if bad else 0
    )
    kept = tuple(r for n, r in enumerate(regions) if n not in gone)
    return RegionsPlan(block.block, block.block.replace(**{side: kept}), {})


@primitive(check=_check_unsafe_hide_buffer_access)
def unsafe_hide_buffer_access(state: State, plan: RegionsPlan) -> State:
    return state.replace(plan.old, plan.new)
