"""Precomputing what depends on iterators alone, indices above all, into lookup tables: cache_index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...analysis.block_regions import accessed_regions
from ...analysis.evaluation import unproved_condition
from ...analysis.index import BlockRef
from ...arith import Analyzer
from ...arith.linear import key
from ...arith.regions import encloses, union
from ...buffer import Buffer, BufferRegion, Range, decl_buffer
from ...errors import require
from ...expr import BufferLoad, Call, Expr, FloatImm, IntImm, StringImm, Var, const
from ...op import effect_of
from ...stmt import Block, BufferStore, Stmt
from ...visit import bound_inside, nodes_of, rewrite, substitute, uses_var, walk
from ..handles import BlockRV
from ..nests import unit_region
from ..primitive import primitive
from ..staged_copies import Stage, elementwise_block, position
from ..state import State, scope_of


@primitive(group="memory")
def cache_index(state: State, block: BlockRef, storage_scope: str, cse_thresh: int = 0) -> tuple[State, list[BlockRV]]:
    """Compute the indices of what ``block`` reads ahead, into buffers in ``storage_scope``, and look them up; and so with
    the largest parts of what it stores that depend on iterators alone, as the weights of an interpolation do.

    With ``cse_thresh`` 0 every one that is not an iterator or a constant is precomputed; otherwise those
    subexpressions, largest first, that occur at least so often. Conditions stay, and expressions that read memory, or might
    divide by zero or shift too far. Each becomes a block ``index_0``, ``index_1`` … over the iterators that it uses, before the
    statement with ``block``. Returns these blocks; if there is nothing to compute, none, and the program is unchanged.

    The declared regions bound the accesses from there on; those of ``block`` and the blocks around it that do not hold
    what is accessed are widened. Raises ``ScheduleError`` for a negative threshold, or the root block.

    Before, and after ``sch.cache_index("B", "global")``::

        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi // 4 + vj // 4, vj // 2]

        index_var_0 = T.alloc_buffer((8, 8), "int32")
        index_var_1 = T.alloc_buffer((8,), "int32")
        for ax0, ax1 in T.grid(8, 8):
            with T.block("index_0"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                index_var_0[v0, v1] = v0 // 4 + v1 // 4
        for ax0 in range(8):
            with T.block("index_1"):
                v0 = T.axis.spatial(8, ax0)
                index_var_1[v0] = v0 // 2
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[index_var_0[vi, vj], index_var_1[vj]]
    """
    require(cse_thresh >= 0, "cse_thresh is a number of occurrences, not {0}", cse_thresh, legal="0 or more")
    given = state
    state, block = _covered(state, block)
    scope = scope_of(block)
    around = bound_inside(scope.block)
    domains = {i.var: i.dom for i in block.block.iter_vars if i.dom is not None and not uses_var(i.dom, around)}
    body: Any = block.block.body
    init: Any = block.block.init
    inner = around - set(domains)
    computed: list[Stmt] = []
    buffers: list[Buffer] = []
    names: list[str] = []
    while True:
        skipped = _written([body, init]) | set(buffers)  # what is looked up has the iterators as indices
        chosen = _next([body, init], skipped, domains, inner, max(1, int(cse_thresh)), whole=cse_thresh == 0)
        if chosen is None:
            break
        used = [v for v in domains if any(n is v for n in nodes_of(chosen))]
        name = state.fresh_block_name(f"index_{len(names)}", set(names))
        shape = tuple(domains[v].extent for v in used)
        buffer = decl_buffer(shape, chosen.dtype, f"index_var_{len(names)}", scope=storage_scope)
        analyzer = Analyzer()
        look_up = BufferLoad(buffer, tuple(analyzer.simplify(v - domains[v].min) for v in used))
        body, init = (_looked_up(part, chosen, look_up, skipped) for part in (body, init))
        computed.append(_compute(name, buffer, chosen, [(v, domains[v]) for v in used]))
        buffers.append(buffer)
        names.append(name)
    if not computed:
        return given, []
    regions = _look_ups([body, init], buffers)
    inner = block.block.replace(body=body, init=init, reads=(*block.block.reads, *regions))
    changed = {block.node: block.node.replace(block=inner)}
    added = {position(block, scope): computed}
    stage = Stage(state, scope, scope, tuple(buffers), changed, added, tuple(names))
    return stage.after, stage.handles()


def _covered(state: State, block: BlockRef) -> tuple[State, BlockRef]:
    """The program in which ``block``, and the blocks inside and around it, declare what they access."""
    around = [p for p in block.ancestors() if isinstance(p, BlockRef) and p.scope is not None]
    for name in [b.name for b in (*state.index.blocks_below(block), block, *around)]:
        old = state.find_block(name).block
        new = _with_accesses_covered(old)
        state = state if new is old else state.replace(old, new)
    return state, state.find_block(block.name)


def _with_accesses_covered(block: Block) -> Block:
    """``block`` with each declared region that does not hold what the body accesses widened to the hull of both.

    A step after which the body no longer says what is accessed begins with this: from there on the declaration is believed.
    Regions that the user has stated stay.
    """
    known = Analyzer({i.var: i.dom for i in block.iter_vars if i.dom is not None})
    found = accessed_regions(block)
    wide = {
        side: tuple(
            _covering(declared_region, done, known) for declared_region, done in zip(getattr(block, side), found[side])
        )
        for side in found
    }
    same = all(new is old for side, regions in wide.items() for new, old in zip(regions, getattr(block, side)))
    return block if same else block.replace(**wide)


def _covering(declared_region: BufferRegion, accessed: BufferRegion, known: Analyzer) -> BufferRegion:
    if encloses(declared_region.region, accessed.region, known):
        return declared_region
    return BufferRegion(declared_region.buffer, union([declared_region.region, accessed.region], known))


def _computations(parts: Sequence[Any], skipped: set[Buffer]) -> Iterator[Expr]:
    """Every index of a load, outer ones first, except of ``skipped``: buffers that are written, so that updates stay
    recognisable; and the largest parts of stored values that read nothing."""
    for part in parts:
        if part is not None:
            for item in walk(part):
                if isinstance(item, BufferLoad) and item.buffer not in skipped:
                    yield from item.indices
                elif isinstance(item, BufferStore):
                    yield from _without_loads(item.value)


def _without_loads(e: Expr) -> Iterator[Expr]:
    if isinstance(e, BufferLoad) or e.dtype.is_bool:
        return
    if any(isinstance(n, BufferLoad) for n in nodes_of(e)):
        for child in e.children():
            if isinstance(child, Expr):
                yield from _without_loads(child)
    else:
        yield e


def _written(parts: Sequence[Any]) -> set[Buffer]:
    return {n.buffer for part in parts if part is not None for n in nodes_of(part) if isinstance(n, BufferStore)}


def _next(
    parts: Sequence[Any], skipped: set[Buffer], domains: Any, inner: set[Var], least: int, whole: bool
) -> Expr | None:
    """The largest computation (or subexpression, unless ``whole``) that occurs ``least`` times; the first of equals."""
    count: dict[Any, int] = {}
    first: dict[Any, tuple[int, Expr]] = {}
    for index in _computations(parts, skipped):
        for item in [index] if whole else _subexpressions(index):
            if _worth(item, domains, inner):
                at = key(item)
                count[at] = count.get(at, 0) + 1
                first.setdefault(at, (sum(1 for _ in walk(item)), item))
    often = [first[at] for at, n in count.items() if n >= least]
    return max(often, key=lambda pair: pair[0])[1] if often and not whole else often[0][1] if often else None


def _subexpressions(index: Expr) -> Iterator[Expr]:
    """``index`` and its subexpressions; an expression inside a load is an index of that load."""
    for item in walk(index, enter=lambda n: not isinstance(n, BufferLoad)):
        if isinstance(item, Expr):
            yield item


def _worth(e: Expr, domains: Any, inner: set[Var]) -> bool:
    """Whether ``e`` is a computation that has the same value ahead of the block."""
    if isinstance(e, (Var, IntImm, FloatImm, StringImm, BufferLoad)) or e.dtype.lanes != 1:
        return False
    if e.dtype.is_bool or not (e.dtype.is_int or e.dtype.is_float):
        return False
    used: dict[Var, Range] = {}
    for item in walk(e):
        if isinstance(item, BufferLoad) or (isinstance(item, Var) and item in inner):
            return False
        if isinstance(item, Call) and effect_of(item) != "pure":
            return False
        if isinstance(item, Var) and item in domains:
            used[item] = domains[item]
    # it is computed in loops over these alone, also where another domain is empty
    return bool(used) and unproved_condition([e], Analyzer(used)) is None


def _looked_up(part: Any, chosen: Expr, value: Expr, skip: set[Buffer]) -> Any:
    """``part`` with ``chosen`` replaced in the indices of loads and in stored values; conditions and loads of ``skip`` are
    unchanged."""
    if part is None:
        return None
    wanted = key(chosen)

    def swap(item: Any) -> Any:
        return value if isinstance(item, Expr) and type(item) is type(chosen) and key(item) == wanted else None

    def is_open(item: Any) -> bool:
        return not (item.dtype.is_bool or (isinstance(item, BufferLoad) and item.buffer in skip))

    def visit(item: Any) -> Any:
        if isinstance(item, BufferStore):
            return item.replace(value=rewrite(item.value, swap, lambda n: not isinstance(n, Expr) or is_open(n)))
        if not isinstance(item, BufferLoad) or item.buffer in skip:
            return None
        indices = tuple(rewrite(i, swap) for i in item.indices)
        return item if all(a is b for a, b in zip(indices, item.indices)) else BufferLoad(item.buffer, indices)

    return rewrite(part, visit)


def _compute(name: str, buffer: Buffer, value: Expr, used: Sequence[tuple[Var, Range]]) -> Stmt:
    """Loops around a block that computes ``value``, of the variables ``used``, at each of their values."""
    box = [Range(const(0, var.dtype), dom.extent) for var, dom in used]

    def computed(point: tuple[Var, ...]) -> Stmt:
        where = {var: Analyzer().simplify(dom.min + new) for (var, dom), new in zip(used, point)}
        return BufferStore(buffer, substitute(value, where), point)

    return elementwise_block(name, box, box, computed)


def _look_ups(parts: Sequence[Any], buffers: Sequence[Buffer]) -> list[BufferRegion]:
    """The regions of ``buffers`` that ``parts`` read."""
    found: dict[Buffer, BufferRegion] = {}
    for part in parts:
        for item in walk(part) if part is not None else ():
            if isinstance(item, BufferLoad) and item.buffer in buffers:
                found.setdefault(item.buffer, unit_region(item.buffer, item.indices))
    return list(found.values())
