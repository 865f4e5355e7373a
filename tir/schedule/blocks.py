"""What several primitives do with blocks and loops: fresh copies, nests, where buffers are read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..buffer import Buffer, BufferRegion, IterVar, MatchBufferRegion, Range
from ..errors import ScheduleError, require
from ..expr import GE, GT, LE, LT, TRUE, Add, And, BufferLoad, Expr, IntImm, Let, Mul, Sub, Var, cast, const, is_const
from ..stmt import (
    PARALLEL,
    SERIAL,
    THREAD_BINDING,
    UNROLLED,
    VECTORIZED,
    Block,
    BlockRealize,
    BufferStore,
    For,
    LetStmt,
    SeqStmt,
    Stmt,
    seq,
)
from ..visit import rewrite, substitute, uses_var, walk
from .state import BlockRef, LoopRef, Place, State

if TYPE_CHECKING:
    from ..function import PrimFunc
    from .legality import Violation


def refresh(stmt: Any, also: dict[Var, Any] | None = None) -> Any:
    """A copy of ``stmt`` in which every variable bound inside is a new one; ``also`` replaces further variables."""
    mapping: dict[Var, Any] = dict(also or {})
    for item in walk(stmt):
        bound = None
        if isinstance(item, For):
            bound = item.loop_var
        elif isinstance(item, (LetStmt, Let, IterVar)):
            bound = item.var
        if bound is not None and bound not in mapping:
            mapping[bound] = bound.replace()
    return substitute(stmt, mapping)


def nest(loops: Sequence[tuple[Var, Expr]], body: Stmt) -> Stmt:
    """Serial loops from zero, outermost first, around ``body``."""
    for var, extent in reversed(loops):
        body = For(var, const(0, var.dtype), extent, SERIAL, body)
    return body


def regions_of(refs: Iterable[BufferRegion], buffer: Buffer) -> list[BufferRegion]:
    return [r for r in refs if r.buffer is buffer]


def replace_buffer(
    stmt: Any, old: Buffer, new: Buffer, index: Callable[[tuple[Expr, ...]], tuple[Expr, ...]] | None = None
) -> Any:
    """``stmt`` with every access to ``old`` going to ``new``; ``index`` maps its indices."""
    remap = index or (lambda indices: indices)

    def region(item: BufferRegion) -> BufferRegion:
        if index is None:
            return BufferRegion(new, item.region)
        mins = remap(tuple(r.min for r in item.region))
        return BufferRegion(new, tuple(Range(m, r.extent) for m, r in zip(mins, item.region)))

    def visit(item: Any) -> Any:
        if isinstance(item, BufferLoad) and item.buffer is old:
            return BufferLoad(new, remap(item.indices))
        if isinstance(item, BufferStore) and item.buffer is old:
            return item.replace(buffer=new, indices=remap(item.indices))
        if isinstance(item, BufferRegion) and item.buffer is old:
            return region(item)
        if isinstance(item, Var) and item is old.data:
            return new.data
        return None

    return rewrite(stmt, visit)


def uses_pointer(stmt: Any, buffer: Buffer) -> bool:
    """Whether the memory of ``buffer`` is reached by its pointer or through another view, past loads and stores."""
    for item in walk(stmt):
        if isinstance(item, Var) and item is buffer.data:
            return True
        if isinstance(item, MatchBufferRegion) and item.source.buffer is buffer:
            return True
        if isinstance(item, Buffer) and item is not buffer and item.data is buffer.data:
            return True
    return False


def readers(scope: BlockRef, buffer: Buffer) -> list[BlockRef]:
    """Blocks just inside ``scope`` that read ``buffer``, in program order."""
    return [child for child in scope.children if regions_of(child.block.reads, buffer)]


def writers(scope: BlockRef, buffer: Buffer) -> list[BlockRef]:
    """Blocks just inside ``scope`` that write ``buffer``, in program order."""
    return [child for child in scope.children if regions_of(child.block.writes, buffer)]


def scope_of(state: State, place: Place) -> BlockRef:
    """The block that encloses ``place``. Raises ``ScheduleError`` where there is none (a program without blocks)."""
    require(place.scope is not None, "`{0}` is the root block: there is nothing around it", getattr(place, "name", "?"))
    assert place.scope is not None
    return place.scope


def statements(host: BlockRef | LoopRef) -> list[Stmt]:
    """The statements of the body of a block or a loop, in order."""
    body = _owner(host).body
    return list(body.stmts) if isinstance(body, SeqStmt) else [body]


def top_statement(place: Place, host: BlockRef | LoopRef) -> Place:
    """The ancestor of ``place`` (or itself) that is the body of ``host`` or a member of its sequence."""
    owner = _owner(host)
    current = place
    for above in place.ancestors():
        if above.node is owner:
            return current
        if isinstance(above.node, SeqStmt) and above.parent is not None and above.parent.node is owner:
            return current
        current = above
    return current


def _owner(host: BlockRef | LoopRef) -> Block | For:
    return host.block if isinstance(host, BlockRef) else host.node


def common_host(refs: Sequence[BlockRef], scope: BlockRef) -> BlockRef | LoopRef:
    """The innermost loop of ``scope`` whose sequence of statements holds all of ``refs``, else ``scope`` itself."""
    host: BlockRef | LoopRef = scope
    for level in zip(*(ref.loops() for ref in refs)):
        if any(loop is not level[0] for loop in level):
            break
        if isinstance(level[0].node.body, SeqStmt):
            host = level[0]
    return host


def loops_below(ref: BlockRef, host: BlockRef | LoopRef) -> list[LoopRef]:
    """The loops of ``ref`` inside ``host``, outermost first."""
    loops = ref.loops()
    return loops if isinstance(host, BlockRef) else loops[loops.index(host) + 1 :]


def copy_block(
    name: str,
    source: Buffer,
    target: Buffer,
    region: Sequence[Range],
    *,
    source_index: Callable[[tuple[Expr, ...]], tuple[Expr, ...]] | None = None,
    target_index: Callable[[tuple[Expr, ...]], tuple[Expr, ...]] | None = None,
    taken: Callable[[str], str] = lambda name: name,
) -> Stmt:
    """Loops ``ax0``, ``ax1`` … over ``region`` around a block that copies ``source`` to ``target``."""
    loops: list[tuple[Var, Expr]] = []
    iters: list[IterVar] = []
    values: list[Expr] = []
    names: set[str] = set()
    for axis, bounds in enumerate(region):
        size = source.shape[axis]
        dtype = bounds.extent.dtype if bounds.extent.dtype.bits > size.dtype.bits else size.dtype
        label = taken(f"ax{axis}")
        names.add(label)
        loop = Var(label, dtype)
        loops.append((loop, cast(dtype, bounds.extent)))
        iters.append(IterVar(Range(const(0, dtype), cast(dtype, size)), Var(f"v{axis}", dtype)))
        values.append(cast(dtype, bounds.min) + loop)
    point = tuple(i.var for i in iters)
    from_ = source_index(point) if source_index else point
    to = target_index(point) if target_index else point
    body = BufferStore(target, BufferLoad(source, from_), to)
    block = Block(tuple(iters), (unit_region(source, from_),), (unit_region(target, to),), name, body)
    return nest(loops, BlockRealize(tuple(values), TRUE, block))


def unit_region(buffer: Buffer, indices: Sequence[Expr]) -> BufferRegion:
    """The one element at ``indices``."""
    return BufferRegion(buffer, tuple(Range(i, const(1, i.dtype)) for i in indices))


def insert_before(state: State, place: Place, stmt: Stmt, *, after: bool = False) -> State:
    """The snapshot with ``stmt`` just before (or after) the statement at ``place``."""
    pair = [place.node, stmt] if after else [stmt, place.node]
    return state.replace(place.node, seq(pair))


def add_alloc(block: Block, *buffers: Buffer) -> Block:
    return block.replace(alloc_buffers=(*block.alloc_buffers, *buffers))


def conjuncts(condition: Expr) -> list[Expr]:
    """The parts of a conjunction, left to right; none for true."""
    if isinstance(condition, And):
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    return [] if is_const(condition, 1) else [condition]


def reads_own_writes(block: Block, buffer: Buffer) -> bool:
    """Whether a run of ``block`` may read an element of ``buffer`` after it has stored to it: a copy made before the run
    would be out of date."""
    return _reads_after(block.body, buffer, False)[0]


def _reads_after(s: Any, buffer: Buffer, stored: bool) -> tuple[bool, bool]:
    """Whether ``s`` reads ``buffer`` after a store, ``stored`` being whether there was one before; and whether there was
    one by its end."""
    if isinstance(s, SeqStmt):
        for part in s.stmts:
            reads, stored = _reads_after(part, buffer, stored)
            if reads:
                return True, stored
        return False, stored
    loads = any(isinstance(n, BufferLoad) and n.buffer is buffer for n in walk(s))
    stores = any(isinstance(n, BufferStore) and n.buffer is buffer for n in walk(s))
    if isinstance(s, LetStmt):
        first, _ = _reads_after(s.value, buffer, stored)
        inside, stored = _reads_after(s.body, buffer, stored)
        return first or inside, stored
    again = stores and not isinstance(s, BufferStore)  # in a loop, or under conditions: taken to be any order
    return loads and (stored or again), stored or stores


def wrapped_in(ref: BlockRef, host: BlockRef | LoopRef) -> Stmt | None:
    """A statement around ``ref``, inside of ``host``, that is no loop: an ``if``, or a let. None where there is none."""
    owner = _owner(host)
    for place in ref.ancestors():
        if place.node is owner or isinstance(place.node, Block):
            return None
        if not isinstance(place.node, (For, SeqStmt, BlockRealize)):
            return place.node
    return None


def first_line(stmt: Stmt | None) -> str:
    """The head of a statement, as it prints."""
    return "" if stmt is None else repr(stmt).split("\n")[0].rstrip(":")


def runs_whole_domain(ref: BlockRef) -> bool:
    """Whether the loops above surely run ``ref`` for every value of its iterators."""
    from ..arith import Analyzer
    from ..arith.itermap import detect_iter_map

    if ref.scope is not None and wrapped_in(ref, ref.scope) is not None:
        return False  # under a condition
    pairs = list(zip(ref.block.iter_vars, ref.node.iter_values))
    loops = {p.var: Range(p.node.min, p.node.extent) for p in ref.loops()}
    analyzer = Analyzer()
    for p in ref.loops():  # one that only repeats the block may not run at all
        if not any(uses_var(v, p.var) for _, v in pairs) and not analyzer.can_prove(p.node.extent > 0):
            return _covers(ref)
    plain = is_const(ref.node.predicate, 1) and all(isinstance(v, Var) and v in loops for _, v in pairs)
    if plain and len({v for _, v in pairs}) == len(pairs):
        box = tuple(loops[v] for _, v in pairs)  # type: ignore[index]
    elif found := detect_iter_map([v for _, v in pairs], loops, ref.node.predicate, check="surjective"):
        # what the indices fill, which a condition may have cut; a box around them would be too much
        box = tuple(Range(index.base, index.extent) for index in found.indices)
    else:
        box = None
    exact = box is not None and all(
        analyzer.can_prove_equal(got.min, i.dom.min) and analyzer.can_prove_equal(got.extent, i.dom.extent)
        for got, (i, _) in zip(box, pairs)
    )
    return exact or _covers(ref)


def _covers(ref: BlockRef) -> bool:
    """``runs_whole_domain`` by exact sets, for iterator values that are not of a known form."""
    from ..arith.sets import Formula, Names, NotAffine

    names = Names()
    dims = [names.of(i.var) for i in ref.block.iter_vars]
    try:
        ran, domain = Formula(names), Formula(names)
        for loop in ref.loops():
            ran.within(loop.var, loop.node.min, loop.node.extent)
        ran.require(ref.node.predicate)
        for iterator, value in zip(ref.block.iter_vars, ref.node.iter_values):
            ran.equal(names.of(iterator.var), value)
            domain.within(iterator.var, iterator.dom.min, iterator.dom.extent)
        moments = [ran.var(loop.var) for loop in ref.loops()]
        return bool(domain.set(dims).is_subset(ran.map(dims, moments, moments).domain()))
    except NotAffine:
        return False


def affine_in_one(e: Expr, variables: Any) -> tuple[Var, int, Expr] | None:
    """``e`` as scale * v + offset with one ``v`` of ``variables`` and a constant scale that is not zero."""
    if isinstance(e, Var):
        return (e, 1, const(0, e.dtype)) if e in variables else None
    if isinstance(e, (Add, Sub)):
        left, right = uses_var(e.a, variables), uses_var(e.b, variables)
        if left and not right:
            parts = affine_in_one(e.a, variables)
            return parts and (parts[0], parts[1], _like(e)(parts[2], e.b) if not is_const(parts[2], 0) else _signed(e))
        if right and not left:
            parts = affine_in_one(e.b, variables)
            sign = 1 if isinstance(e, Add) else -1
            return parts and (parts[0], sign * parts[1], e.a if is_const(parts[2], 0) else _like(e)(e.a, parts[2]))
        return None
    if isinstance(e, Mul):
        inner, factor = (e.a, e.b) if isinstance(e.b, IntImm) else (e.b, e.a)
        parts = affine_in_one(inner, variables) if isinstance(factor, IntImm) and factor.value else None
        if parts is not None and isinstance(factor, IntImm):
            offset = parts[2] if is_const(parts[2], 0) else parts[2] * factor
            return parts[0], parts[1] * factor.value, offset
    return None


def _like(e: Expr) -> Any:
    return type(e)


def _signed(e: Any) -> Expr:
    return e.b if isinstance(e, Add) else const(0, e.b.dtype) - e.b


def about_iterators(block: BlockRef, values: Sequence[Expr]) -> list[Expr] | None:
    """The condition of ``block`` said of other ``values`` of its iterators: it speaks of loops that go away.

    Nothing when the loops run every iterator value anyway. None when some part of it is about a loop that is not the
    value of an iterator.
    """
    from ..arith import Analyzer
    from ..equal import structural_equal

    parts = conjuncts(block.node.predicate)
    if not parts or runs_whole_domain(block):
        return []
    kept = []
    own = {p.var for p in block.loops()}
    for condition in parts:
        if not uses_var(condition, own):
            kept.append(condition)
            continue
        matched = None
        if isinstance(condition, (LT, LE, GT, GE)) and not uses_var(condition.b, own):
            matched = next(
                (
                    n
                    for n, v in enumerate(block.node.iter_values)
                    if structural_equal(v, condition.a, map_free_vars=False)
                ),
                None,
            )
        if matched is None:  # about several: said again where each of its loops is the value of an iterator
            said = {v: values[n] for n, v in enumerate(block.node.iter_values) if isinstance(v, Var) and v in own}
            if any(v in own and v not in said for v in walk(condition)):
                return None
            kept.append(substitute(condition, said))
            continue
        assert isinstance(condition, (LT, LE, GT, GE))
        iterator = block.block.iter_vars[matched]
        analyzer = Analyzer()
        analyzer.bind(iterator.var, iterator.dom)
        if not analyzer.can_prove(_like(condition)(iterator.var, condition.b)):
            kept.append(_like(condition)(values[matched], condition.b))
    return kept


def pick_buffer(block: BlockRef, side: str, which: int | str | Buffer) -> Buffer:
    """The buffer of a region that ``block`` reads or writes (``side``), by number, name or object."""
    regions = getattr(block.block, side)
    buffers = list(dict.fromkeys(r.buffer for r in regions))
    verb = "reads" if side == "reads" else "writes"
    if isinstance(which, str):
        named = [b for b in buffers if b.name == which]
        require(
            named, "block {0} does not {1} a buffer `{2}`", block, verb[:-1], which, legal=[b.name for b in buffers]
        )
        return named[0]
    if isinstance(which, Buffer):
        require(which in buffers, "block {0} does not {1} buffer `{2}`", block, verb[:-1], which.name)
        return which
    require(
        0 <= which < len(regions),
        "block {0} {1} {2} regions, so there is no number {3}",
        block, verb, len(regions), which, legal=[f"{n} ({r.buffer.name})" for n, r in enumerate(regions)],
    )  # fmt: skip
    return regions[which].buffer


def clash(func: PrimFunc, loop: For) -> Violation | None:
    """Why iterations of ``loop``, if it runs them at once, are not independent. Threads meet in shared memory, and a
    buffer in a thread's own scope is another one for each: of threads, only what they do to global memory is asked."""
    known = _CLASHES.setdefault(func, {})
    if loop not in known:
        known[loop] = _clash(func, loop)
    return known[loop]


_CLASHES: WeakKeyDictionary[PrimFunc, dict[For, Violation | None]] = WeakKeyDictionary()


def _clash(func: PrimFunc, loop: For) -> Violation | None:
    from .legality import check_parallel

    if loop.kind == THREAD_BINDING:
        summed = _reduced_across(loop) if loop.thread.startswith("threadIdx") else frozenset()
        found = check_parallel(func, loop, loop.kind, lambda b: b.scope == "global" and b.data not in summed)
        return found and replace(found, legal=_own_memory(func, loop, found.memory))
    return check_parallel(func, loop, loop.kind) if loop.kind in (PARALLEL, VECTORIZED) else None


def _own_memory(func: PrimFunc, loop: For, buffer: Buffer | None) -> str:
    """How threads that meet in memory of the function's own can each have theirs."""
    from .state import index_of

    if buffer is None or not any(buffer in ref.block.alloc_buffers for ref in index_of(func).blocks.values()):
        return ""
    scope = "shared" if loop.thread.startswith("blockIdx") else "local"
    return (
        f'`{buffer.name}` in scope "{scope}", where each has memory of its own (set_scope first, or ask for that scope)'
    )


def _reduced_across(loop: For) -> frozenset[Var]:
    """Memory of the results of reductions that the threads of ``loop`` share, with their init or apart from it."""
    from .primitives._structure import is_standard

    found: set[Var] = set()
    for item in walk(loop):
        if isinstance(item, BlockRealize) and (item.block.init is not None or is_standard(item.block)):
            kinds = {i.iter_type for i, v in zip(item.block.iter_vars, item.iter_values) if uses_var(v, loop.loop_var)}
            if kinds == {"reduce"}:
                found.update(r.buffer.data for r in item.block.writes)
    return frozenset(found)


def require_same_meaning(before: State, after: State, unsafe: bool = False) -> None:
    """Raise ``ScheduleError``, with a witness, unless every dependence of ``before`` holds in ``after``
    and the iterations of its parallel and vectorized loops still are independent.
    """
    from .legality import check

    if unsafe or after.func is before.func:
        return
    found = check(before.func, after.func)
    if found is not None:
        # A reduction that is made anew, from its init on, gives the same result again.
        from .primitives._whole import both_whole

        whole = both_whole(before.func, after.func)
        if whole is not None and check(*whole) is None:
            found = None
    if found is not None:
        raise ScheduleError(
            found.rule, witness=found.witness, nodes=found.nodes, func=before.func, legal=found.legal
        )  # fmt: skip
    require_independent(before, after)


def require_independent(before: State, after: State) -> None:
    """Raise ``ScheduleError``, with a witness, unless the iterations of those of its loops that run at once, and that
    ``after`` has changed, are independent."""
    from .settled import may_clash, settled

    for ref in after.index.loops.values():
        if ref.node in before.index.places or ref.node.kind in (SERIAL, UNROLLED):
            continue
        if may_clash(after.func, ref, settled(before.func, after.func)):
            found = clash(after.func, ref.node)
            if found is not None:
                raise ScheduleError(
                    found.rule, witness=found.witness, nodes=found.nodes, func=after.func, legal=found.legal
                )
