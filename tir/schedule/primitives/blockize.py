"""Turning a loop nest into one block, and replacing it by an instruction: blockize, tensorize."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...analysis.index import BlockRef, LoopRef
from ...analysis.index_types import same_size, with_narrow_indices
from ...analysis.reduction_init import InitRuns, require_same_init
from ...analysis.structure import entered, refresh, vars_in
from ...arith import Analyzer
from ...arith.itermap import Division, subspace_divide
from ...arith.linear import is_index
from ...buffer import Buffer, BufferRegion, IterVar, MatchBufferRegion, Range
from ...equal import first_difference
from ...errors import ScheduleError, require
from ...expr import BufferLoad, Call, Cast, Expr, IntImm, Var, all_of, conjuncts, const, is_const
from ...function import PrimFunc
from ...node import Memo, frozendict
from ...script.printer import short_text
from ...stmt import Block, BlockRealize, BufferStore, For, Stmt
from ...visit import nodes_of, rewrite, substitute, uses_var, walk
from ..build import with_regions, without_unused
from ..handles import BlockRV
from ..primitive import primitive
from ..state import State
from .reorder import plan_reorder, reorder


@dataclass(frozen=True)
class BlockizePlan:
    """The statement to replace, its replacement, and the name of the new outer block."""

    old: Stmt
    new: Stmt
    name: str


def _check_blockize(
    state: State,
    target: LoopRef | BlockRef | Sequence[BlockRef],
    preserve_unit_iters: bool = True,
    *,
    unsafe: bool = False,
) -> BlockizePlan:
    """Turn the loops from ``target`` inwards, and the block in them, into one block.

    Returns the new block, named ``…_o``; the block inside keeps its name. ``preserve_unit_iters`` keeps iterators of
    extent one in the outer block. Adjacent blocks, given as a list, become one block around all of them, without
    iterators of extent one.

    Before, and after ``sch.blockize("ii")``::

        for io, ii in T.grid(4, 8):
            with T.block("B"):
                vi = T.axis.spatial(32, io * 8 + ii)
                B[vi] = A[vi] * 2.0

        for io in range(4):
            with T.block("B_o"):
                vi_o = T.axis.spatial(4, io)
                for ii in range(8):
                    with T.block("B"):
                        vi_i = T.axis.spatial(8, ii)
                        B[vi_o * 8 + vi_i] = A[vi_o * 8 + vi_i] * 2.0

    Raises ``ScheduleError`` when there is not exactly one block under ``target``, or its bindings cannot be divided
    into an outer and an inner part.
    """
    if not isinstance(target, (LoopRef, BlockRef)):
        from .blockize_set import plan_set

        return plan_set(state, target)
    require(not isinstance(target, BlockRef) or target.scope is not None, "the root block cannot be blockized")
    blocks = state.index.blocks_below(target)
    require(
        len(blocks) == 1,
        "there are {0} blocks under {1}, and blockize takes one",
        len(blocks),
        target,
        nodes=[b.node for b in blocks],
    )
    block = blocks[0]
    require_only_loops(target, block)
    inner = [r for r in block.loops() if r is target or target in r.ancestors()]
    division = divide(block, inner)
    name = state.fresh_block_name(f"{block.name}_o")
    realize = outer_block(block, inner, division, name, preserve_unit_iters)
    return BlockizePlan(target.node, realize, name)


def require_only_loops(target: Any, block: BlockRef) -> None:
    place = block
    while place is not target and place.parent is not None:
        place = place.parent  # type: ignore[assignment]
        require(
            isinstance(place.node, For),
            "something other than loops stands between {0} and block {1}",
            target,
            block,
            nodes=[place.node],
        )


def divide(block: BlockRef, inner: list[LoopRef]) -> Division:
    domains = block.loop_ranges()
    for ref in inner:
        tied = next((r for r in block.all_loops() if r not in inner and uses_var(ref.node.extent, r.var)), None)
        require(
            tied is None,
            "the extent of loop {0} depends on {1}, which is outside: the parts would differ in size",
            ref.node,
            tied.name if tied else "",
            nodes=[ref.node],
        )
    found = subspace_divide(block.node.iter_values, domains, [r.var for r in inner], block.node.predicate)
    require(
        found,
        "the bindings of block {0} do not divide at {1}: {2}",
        block,
        inner[0].node if inner else block,
        getattr(found, "error", ""),
        nodes=[block.node],
    )
    assert isinstance(found, Division)
    return found


def outer_block(block: BlockRef, inner: list[LoopRef], division: Division, name: str, keep_units: bool) -> BlockRealize:
    """The outer block, with the inner loops and block inside it."""
    outer_iters: list[IterVar] = []
    outer_values: list[Expr] = []
    inner_iters: list[IterVar] = []
    inner_values: list[Expr] = []
    inside: dict[Var, Expr] = {}
    analyzer = Analyzer()
    around = Analyzer({ref.var: ref.node.domain for ref in block.loops() if ref not in inner})
    for iterator, (o_value, o_extent), (i_value, i_extent) in zip(
        block.block.iter_vars, division.outer, division.inner
    ):
        dtype = iterator.var.dtype
        whole: Expr = const(0, dtype)
        o_domain, i_domain = _domains(iterator, o_extent, i_extent)
        o_only = None if keep_units or not is_const(o_extent, 1) else around.simplify(o_value)
        if o_only is None or vars_in(o_only):
            o_var = Var(f"{iterator.var.name}_o", dtype)
            outer_iters.append(IterVar(o_domain, o_var, iterator.iter_type))
            outer_values.append(o_value)
            whole = o_var * i_extent
        elif not is_const(o_only, 0):
            whole = o_only * i_extent
        if inner and (not is_const(i_extent, 1) or not is_const(i_value, 0)):
            i_var = Var(f"{iterator.var.name}_i", dtype)
            inner_iters.append(IterVar(i_domain, i_var, iterator.iter_type))
            inner_values.append(i_value)
            whole = whole + i_var
        inside[iterator.var] = analyzer.simplify(whole)
    opened = substitute(block.block.replace(iter_vars=()), inside)
    init = opened.init
    inner_block = with_regions(opened.replace(iter_vars=tuple(inner_iters), init=None))
    inner_realize = BlockRealize(tuple(inner_values), division.inner_predicate, inner_block)
    inner_nest = _rebuild_loops(inner, inner_realize)
    outer_init = None
    if init is not None:
        moved = _loops_from_the_first(block, inner)
        if moved:
            InitRuns.below(block, moved[0]).require_first()
        _require_init_at_start(block, inner, inner_block, inner_values, division.inner_predicate)
        outer_init = _init_nest(inner_block.replace(body=init), inner, inner_values, division.inner_predicate)
        if not any(i.iter_type == "reduce" for i in outer_iters):
            # Every outer instance has its own reduction: the init stays inside.
            inner_block = with_regions(inner_block.replace(init=init))
            inner_nest = _rebuild_loops(inner, inner_realize.replace(block=inner_block))
            outer_init = None
        elif uses_var(outer_init, {i.var for i in inner_iters if i.iter_type == "reduce"}):
            require_same_init(block)
    outer = Block(tuple(outer_iters), (), (), name, inner_nest, outer_init)
    predicate = division.outer_predicate
    if outer_init is not None:  # which would run where the reduction inside is empty
        predicate = all_of([predicate, *_when_reduced(block, inner, inner_iters, inner_values)])
    return BlockRealize(tuple(outer_values), predicate, with_regions(outer))


def _loops_from_the_first(block: BlockRef, inner: list[LoopRef]) -> list[LoopRef]:
    """The loops around ``block`` from the first on that reduces, or is one of ``inner``. Each iteration of those before
    them runs whole reductions, as before."""
    values = [v for i, v in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type == "reduce"]
    loops = block.loops()
    return list(itertools.dropwhile(lambda r: r not in inner and not any(uses_var(v, r.var) for v in values), loops))


def _domains(iterator: IterVar, outer: Expr, inner: Expr) -> tuple[Range, Range]:
    """The domains of both parts of an iterator, whose extents, counted from zero, are given: a reduction starts at its
    first value, which need not be zero."""
    zero, first = const(0, iterator.var.dtype), iterator.dom.min if iterator.dom else const(0)
    if is_const(first, 0):
        return Range(zero, outer), Range(zero, inner)
    if is_const(outer, 1):
        return Range(zero, outer), cast(Range, iterator.dom)
    analyzer = Analyzer()
    begin = analyzer.simplify(first // inner)
    require(
        is_const(inner, 1) or analyzer.can_prove_equal(first % inner, 0),
        "{0} starts at {1}, inside of a part of {2}",
        iterator.var.name,
        lambda: short_text(first),
        lambda: short_text(inner),
    )
    return Range(begin, analyzer.simplify(outer - begin)), Range(zero, inner)


def _when_reduced(block: BlockRef, inner: list[LoopRef], iters: list[IterVar], values: list[Expr]) -> list[Expr]:
    """The conditions under which the reductions that loops of ``inner`` make are not empty. Raises ``ScheduleError`` where
    only some of them may be: their results would get an init that they do not have."""
    spatial = [v for i, v in zip(iters, values) if i.iter_type != "reduce"]
    reduced = [r for r in inner if not any(uses_var(v, r.var) for v in spatial)]
    others = {r.var: r.range for r in inner if r not in reduced}
    found = entered([r.node.extent for r in reduced], Analyzer(others))
    tied = next((r for r in inner if any(uses_var(c, r.var) for c in found)), None)
    require(
        tied is None,
        "the reduction of block {0} may be empty in some iterations of loop {1}: the init of the outer block would run for all",
        block,
        tied.name if tied else "",
        nodes=[block.node],
        legal="decompose_reduction before",
    )
    return found


def _require_init_at_start(
    ref: BlockRef, inner: list[LoopRef], block: Block, values: list[Expr], predicate: Expr
) -> None:
    """Require that the inner reduction iterators start where their loops start, so that init runs for every result."""
    pairs = [(i, v) for i, v in zip(block.iter_vars, values) if i.iter_type != "reduce"]
    start = {r.var: r.node.min for r in inner if not any(uses_var(v, r.var) for _, v in pairs)}
    analyzer = ref.analyzer()
    for condition in conjuncts(predicate):
        first = analyzer.simplify(substitute(condition, start))
        with analyzer.scope():
            analyzer.assume(condition, ref.node)
            require(
                analyzer.can_prove(first),
                "init of block {0} would not run for every result: `{1}` can be false where the reduction loops start",
                ref,
                lambda: short_text(first),
                nodes=[ref.node],
                legal="decompose_reduction first",
            )


def _init_nest(block: Block, inner: list[LoopRef], values: list[Expr], predicate: Expr) -> Stmt:
    """The init of the inner block over the inner spatial loops: the init of the outer block."""
    pairs = [(i, v) for i, v in zip(block.iter_vars, values) if i.iter_type != "reduce"]
    kept = [r for r in inner if any(uses_var(v, r.var) for _, v in pairs)]
    removed = {r.var: r.node.min for r in inner if r not in kept}
    made = block.replace(iter_vars=tuple(i for i, _ in pairs), name=f"{block.name}_init", init=None)
    made = with_regions(without_unused(made))  # the rest of what the block allocates and views is the update's
    condition = Analyzer().simplify(substitute(predicate, removed))
    realize = BlockRealize(tuple(v for _, v in pairs), condition, made)
    plain = [r.node if r.node.thread else r.node.replace(kind="serial", annotations=frozendict()) for r in kept]
    made_nest: Stmt = realize
    for loop in reversed(plain):
        made_nest = loop.replace(body=made_nest)
    return refresh(made_nest)


def _rebuild_loops(inner: list[LoopRef], body: Stmt) -> Stmt:
    for ref in reversed(inner):
        body = ref.node.replace(body=body)
    return body


@primitive(check=_check_blockize)
def blockize(state: State, plan: BlockizePlan) -> tuple[State, BlockRV]:
    after = state.replace(plan.old, plan.new)
    return after, after.block_rv(plan.name)


@dataclass(frozen=True)
class TensorizePlan:
    old: BlockRealize
    new: BlockRealize
    before: State


def _check_tensorize(
    state: State, block_or_loop: LoopRef | BlockRef, tensor_intrin: Any, preserve_unit_iters: bool = True
) -> TensorizePlan:
    """Replace a block, or the loops from one inwards, by the implementation of a tensor intrinsic.

    ``tensor_intrin`` is a name registered with ``TensorIntrin.register``, or a ``TensorIntrin``. A loop is blockized
    first, and the loops below it are reordered to match the intrinsic where that is legal. The computation must equal
    the intrinsic's description; the error shows the first difference.

    Raises ``ScheduleError`` when it does not, and for a name that is not registered.

    Before, and after ``sch.tensorize("j", "zero_4")``::

        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = 0.0

        for i in range(8):
            with T.block("B_o"):
                vi_o = T.axis.spatial(8, i)
                vj_o = T.axis.spatial(1, 0)
                Y_offset = T.int32()
                Y = T.match_buffer(B[vi_o, vj_o * 4:vj_o * 4 + 4], (4,), "float32", elem_offset=Y_offset, offset_factor=1)
                Y[0:4] = T.Broadcast(T.float32(0), 4)
    """
    from ...intrin import TensorIntrin

    intrin = tensor_intrin
    if isinstance(tensor_intrin, str):
        try:
            intrin = TensorIntrin.get(tensor_intrin)
        except KeyError as error:
            raise ScheduleError("{0}", error.args[0]) from None
    require(
        isinstance(intrin, TensorIntrin),
        "expected the name of a tensor intrinsic, got {0}",
        type(intrin).__name__,
        legal="a name in TensorIntrin.list()",
    )
    if isinstance(block_or_loop, BlockRef):
        return _plan_tensorize(state, block_or_loop, intrin)
    first: ScheduleError | None = None
    for before, loop in _orders(state, block_or_loop, intrin):
        try:
            made = _check_blockize(before, loop, preserve_unit_iters)
            before = before.replace(made.old, made.new)
            return _plan_tensorize(before, before.find_block(made.name), intrin)
        except ScheduleError as error:
            first = first or error
    assert first is not None
    raise first


def _plan_tensorize(before: State, block: BlockRef, intrin: Any) -> TensorizePlan:
    bound = _match(block.block, intrin.desc, intrin.name)
    return TensorizePlan(block.node, _with_impl(block.node, intrin.impl, intrin.desc, bound), before)


def _orders(state: State, loop: LoopRef, intrin: Any) -> Iterator[tuple[State, LoopRef]]:
    """The program as it is, then with the nest from ``loop`` in every other legal order that has the loops of the
    description; each with the outermost loop of the nest."""
    yield state, loop
    found = _nest(loop.node)
    wanted = [] if intrin.desc.root is None else [n for _, n in _nest(intrin.desc.root.body)]
    if sorted(n for _, n in found) != sorted(wanted):
        return
    nest = [p for p in state.index.below(loop) if isinstance(p, LoopRef)][: len(found)]
    extents = {p: n for p, (_, n) in zip(nest, found)}
    for order in itertools.permutations(nest):
        if order == tuple(nest) or [extents[p] for p in order] != wanted:
            continue
        try:
            after = reorder(state, plan_reorder(state, *order))
        except ScheduleError:
            continue
        yield after, after.index.loops[order[0].var]


def _match(block: Block, desc: PrimFunc, name: str) -> dict[Buffer, BufferRegion]:
    """The region of the program that each buffer of ``desc`` corresponds to.

    The block's accesses are rewritten relative to its regions, which gives a program that must equal the
    description.
    """
    pattern = desc.root
    require(pattern is not None, "the description of {0} is not one block", name)
    assert pattern is not None
    described = _described(pattern)
    want = [*pattern.reads, *pattern.writes]
    order = list(dict.fromkeys(r.buffer for r in want))
    have = list(dict.fromkeys(r.buffer for r in (*block.writes, *block.reads)))
    require(
        len(order) == len(have),
        "block {0} uses {1} buffers, the intrinsic {2} describes {3}",
        block.name,
        len(have),
        name,
        len(order),
        nodes=[block],
    )
    regions = {r.buffer: r for r in (*block.reads, *block.writes)}
    best = ""
    written = {r.buffer for r in pattern.writes}
    outputs = {r.buffer for r in block.writes}
    for choice in itertools.permutations(have):
        pairs = dict(zip(order, choice))
        if any((d in written) != (b in outputs) or d.dtype != b.dtype for d, b in pairs.items()):
            continue
        relative = _relative(block, {b: (d, regions[b]) for d, b in pairs.items()})
        if relative is None:
            best = best or _other_shapes(pairs, regions)
            continue
        difference = first_difference(_stripped(described), _stripped(relative))
        if difference is not None:  # an intrinsic of one width of indices in a program of another
            narrow = [_stripped(with_narrow_indices(s)) for s in (described, relative)]
            difference = first_difference(narrow[0], narrow[1])
        if difference is None:
            return {d: regions[b] for d, b in pairs.items()}
        best = best or difference
    require(
        False,
        "block {0} does not compute what the intrinsic {1} describes",
        block.name,
        name,
        nodes=[block],
        legal=_fitting(block, pattern),
        witness=[
            f"first difference (intrinsic, block): {best}" if best else _other_types(order, have),
            "intrinsic:",
            *("  " + line for line in repr(pattern.body).splitlines()),
            "block:",
            *("  " + line for line in repr(block.body).splitlines()),
        ],
    )
    raise AssertionError


def _other_types(described: list[Buffer], used: list[Buffer]) -> str:
    wanted, have = (", ".join(f"{b.name} {b.dtype}" for b in buffers) for buffers in (described, used))
    return f"the buffers' types differ: the intrinsic has {wanted}; the block {have}"


def _fitting(block: Block, pattern: Block) -> str:
    """The splits that would give the block the loops of the description, if it has as many; otherwise both nests."""
    want, have = _nest(pattern.body), _nest(block.body)
    if sorted(n for _, n in want) == sorted(n for _, n in have):
        return ""
    described = ", ".join(f"{name} of {n}" for name, n in want)
    if len(want) != len(have):
        found = ", ".join(f"{name} of {n}" for name, n in have) or "none"
        return f"tensorize where the loops below are like the intrinsic's ({described}); here they are: {found}"
    splits = [f"{name} by {w}" for (_, w), (name, n) in zip(want, have) if w != n]
    if any(n % w for (_, w), (_, n) in zip(want, have)):
        return f"loops like the intrinsic's ({described}): pad or split {', '.join(splits)}"
    return f"split {', '.join(splits)}, reorder the inner loops below the rest, and tensorize the first of them"


def _nest(body: Stmt) -> list[tuple[str, int]]:
    """Names and constant extents of the loops of a perfect nest, down to the first extent that is not constant."""
    loops = []
    while isinstance(body, For) and isinstance(body.extent, IntImm):
        loops.append((body.loop_var.name, body.extent.value))
        body = body.body
    return loops


def _other_shapes(pairs: dict[Buffer, Buffer], regions: dict[Buffer, BufferRegion]) -> str:
    """The buffers of the description whose shape differs from the block's regions for them."""
    found = []
    for wanted, buffer in pairs.items():
        have = [r.extent for r in regions[buffer].region]
        kept = len(have) - wanted.ndim
        if kept < 0 or not all(map(same_size, have[kept:], wanted.shape)):
            want = ", ".join(map(repr, wanted.shape))
            found.append(f"{wanted.name} is ({want}), the region of {buffer.name} ({', '.join(map(repr, have))})")
    return "; ".join(found)


def _bounded(block: Block) -> Analyzer:
    """Bounds of the iterators and loops under ``block``."""
    analyzer = Analyzer()
    for item in walk(block):
        if isinstance(item, IterVar) and item.dom is not None:
            analyzer.bind(item.var, item.dom)
        elif isinstance(item, For):
            analyzer.bind(item.loop_var, item.domain, item)
    return analyzer


def _described(pattern: Block) -> Stmt:
    """What an intrinsic computes, in the form that is compared; found once for each intrinsic."""
    found = _DESCRIBED.get(pattern)
    if found is None:
        found = _DESCRIBED[pattern] = _simplified(pattern.body, _bounded(pattern))
    return found


_DESCRIBED: Memo[Stmt] = Memo()


def _simplified(stmt: Stmt, analyzer: Analyzer) -> Stmt:
    """``stmt`` with its indices and the integers computed from iterators alone simplified: the form that is compared.

    Integers that memory holds stay as they are written.
    """

    def from_iterators(item: Any) -> bool:
        return (
            isinstance(item, Expr)
            and is_index(item.dtype)
            and not any(isinstance(n, (BufferLoad, Call)) for n in nodes_of(item))
        )

    def visit(item: Any) -> Any:
        if isinstance(item, (BufferLoad, BufferStore)):
            return item.replace(indices=tuple(analyzer.simplify(i) for i in item.indices))
        return analyzer.simplify(item) if from_iterators(item) else None

    return rewrite(stmt, visit)


def _relative(block: Block, pairs: dict[Buffer, tuple[Buffer, BufferRegion]]) -> Stmt | None:
    """The body of ``block`` over the description's buffers, with indices relative to the start of its regions."""
    analyzer = _bounded(block)
    offsets = {}
    for buffer, (wanted, region) in pairs.items():
        kept = len(region.region) - wanted.ndim
        if kept < 0 or not all(is_const(r.extent, 1) for r in region.region[:kept]):
            return None
        if not all(same_size(r.extent, s) for r, s in zip(region.region[kept:], wanted.shape)):
            return None
        offsets[buffer] = (wanted, kept, [r.min for r in region.region])

    def move(indices: tuple[Expr, ...], buffer: Buffer) -> tuple[Expr, ...]:
        _, kept, mins = offsets[buffer]
        return tuple(analyzer.simplify(i - m) for i, m in zip(indices[kept:], mins[kept:]))

    def visit(item: Any) -> Any:
        if isinstance(item, BufferLoad) and item.buffer in offsets:
            return BufferLoad(offsets[item.buffer][0], move(item.indices, item.buffer))
        if isinstance(item, BufferStore) and item.buffer in offsets:
            return item.replace(buffer=offsets[item.buffer][0], indices=move(item.indices, item.buffer))
        if isinstance(item, BufferRegion) and item.buffer in offsets:
            wanted, kept, mins = offsets[item.buffer]
            low = move(tuple(r.min for r in item.region), item.buffer)
            return BufferRegion(wanted, tuple(Range(m, r.extent) for m, r in zip(low, item.region[kept:])))
        return None

    return _simplified(rewrite(block.body, visit), analyzer)


def _stripped(stmt: Stmt) -> Stmt:
    """``stmt`` without what a match must ignore: block names, annotations, the order of iterators (here that of the loops
    they are bound to), the spelling of unit iterators and constants."""
    places = {n.loop_var: at for at, n in enumerate(walk(stmt)) if isinstance(n, For)}

    def outermost(value: Expr) -> int:
        return min((places[v] for v in walk(value) if isinstance(v, Var) and v in places), default=-1)

    def visit(item: Any) -> Any:
        if isinstance(item, BlockRealize):
            keep = [n for n, i in enumerate(item.block.iter_vars) if not (i.dom and is_const(i.dom.extent, 1))]
            keep.sort(key=lambda n: outermost(item.iter_values[n]))
            gone = {i.var: v for n, (i, v) in enumerate(zip(item.block.iter_vars, item.iter_values)) if n not in keep}
            iter_vars = tuple(item.block.iter_vars[n] for n in keep)
            block = item.block.replace(name="", iter_vars=iter_vars, annotations=frozendict())
            block = substitute(block, gone) if gone else block
            block = block.replace(reads=(), writes=())
            return item.replace(iter_values=tuple(item.iter_values[n] for n in keep), block=block)
        if isinstance(item, For) and is_const(item.extent, 1):
            return substitute(item.body, {item.loop_var: item.min})
        if isinstance(item, Cast) and isinstance(item.value, IntImm) and not item.dtype.is_bool:
            return const(item.value.value, item.dtype)
        return None

    return rewrite(stmt, visit)


def _with_impl(
    realize: BlockRealize, impl: PrimFunc, desc: PrimFunc, bound: dict[Buffer, BufferRegion]
) -> BlockRealize:
    """The block with the intrinsic's implementation as body, its buffers matched to the regions."""
    root = impl.root
    require(root is not None, "the implementation of the intrinsic is not one block")
    assert root is not None
    by_position = dict(zip(impl.buffers(), desc.buffers()))
    scopes = {b: _view_scope(wanted, bound) for b, wanted in by_position.items()}
    # every use of the intrinsic has pointers, strides and offsets of its own
    opened = {v: v.replace() for b in by_position for v in (*b.strides, b.elem_offset) if isinstance(v, Var)}
    opened.update((b.data, b.data.replace(scope=scope)) for b, scope in scopes.items())
    fresh_buffers = {b: substitute(b, opened).replace(scope=scope) for b, scope in scopes.items()}
    body = refresh(substitute(root.body, opened, fresh_buffers))
    matches = []
    for buffer, wanted in by_position.items():
        if wanted in bound:
            new = fresh_buffers[buffer]
            region = bound[wanted]
            matches.append(MatchBufferRegion(new, region))
    block = realize.block.replace(
        body=body,
        match_buffers=tuple(matches),
        alloc_buffers=root.alloc_buffers,
        annotations=root.annotations or realize.block.annotations,
    )
    return realize.replace(block=block)


def _view_scope(described: Buffer, bound: dict[Buffer, BufferRegion]) -> str:
    """The scope of the view that stands for a ``described`` buffer: that of the memory it is matched to. An intrinsic
    that asks for no scope in particular takes any."""
    if described not in bound:
        return described.scope
    buffer = bound[described].buffer
    require(
        described.scope in ("global", buffer.scope) or {described.scope, buffer.scope} <= {"shared", "shared.dyn"},
        "the intrinsic has {0} in `{1}` memory, and {2} is in `{3}`",
        described.name,
        described.scope,
        buffer.name,
        buffer.scope,
        legal=f'put {buffer.name} into scope "{described.scope}": cache_read or cache_write, or set_scope',
    )
    return buffer.scope


@primitive(check=_check_tensorize)
def tensorize(state: State, plan: TensorizePlan) -> State:
    return plan.before.replace(plan.old, plan.new)
