"""Replacing a block by an instruction: tensorize."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ...analysis.index import BlockRef, LoopRef
from ...arith import Analyzer
from ...arith.linear import is_index
from ...buffer import Buffer, BufferRegion, MatchBufferRegion, Range
from ...equal import first_difference
from ...errors import ScheduleError, attempt, first_legal, require
from ...expr import BufferLoad, Call, Cast, Expr, IntImm, Mul, Var, const, is_const
from ...function import PrimFunc
from ...levels import GLOBAL, is_shared
from ...node import frozendict, once
from ...stmt import Block, BlockRealize, BufferStore, For, Stmt
from ...visit import nodes_of, refresh, rewrite, substitute, walk
from ..index_types import same_size, with_narrow_indices
from ..prepared import require_one_name
from ..primitive import primitive
from ..state import State
from .blockize import blockize
from .reorder import plan_reorder, reorder


@primitive(group="tensor units")
def tensorize(
    state: State, block_or_loop: LoopRef | BlockRef, tensor_intrin: Any, preserve_unit_iters: bool = True
) -> State:
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
                Y = T.match_buffer(B[vi_o, 0:4], (4,), "float32", elem_offset=Y_offset, offset_factor=1)
                Y[0:4] = T.Broadcast(T.float32(0), 4)
    """
    from ...intrin import TensorIntrin

    intrin = tensor_intrin
    if isinstance(tensor_intrin, str):
        try:
            intrin = TensorIntrin.get(tensor_intrin)
        except KeyError as error:
            raise ScheduleError("{0}", error.args[0]) from None
    require(isinstance(intrin, TensorIntrin),
            "expected the name of a tensor intrinsic, got {0}",
            type(intrin).__name__, legal="a name in TensorIntrin.list()")  # fmt: skip
    if isinstance(block_or_loop, BlockRef):
        return _replaced(state, block_or_loop, intrin)
    orders = _orders(state, block_or_loop, intrin)
    return first_legal(partial(_nest_replaced, before, loop, intrin, preserve_unit_iters) for before, loop in orders)


def _nest_replaced(before: State, loop: LoopRef, intrin: Any, keep_units: bool) -> State:
    before, made = blockize(before, loop, keep_units)
    return _replaced(before, before.find_block(made), intrin)


def _replaced(before: State, block: BlockRef, intrin: Any) -> State:
    bound = _match(block.block, intrin.desc, intrin.name)
    return before.replace(block.node, _with_impl(block.node, intrin.impl, intrin.desc, bound))


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
        plan = attempt(partial(plan_reorder, state, *order))
        if not isinstance(plan, ScheduleError):
            after = reorder(state, plan)
            yield after, after.index.loops[order[0].var]


def _difference(
    described: Any, block: Block, pairs: dict[Buffer, Buffer], regions: dict[Buffer, BufferRegion]
) -> str | None:
    """How ``block`` differs from what is ``described``, each buffer there in the place of its pair (empty: in a way that has
    no words); None if it does not."""
    relative = _relative(block, {b: (d, regions[b]) for d, b in pairs.items()})
    if relative is None:
        return _other_shapes(pairs, regions)
    difference = first_difference(_stripped(described), _stripped(relative))
    if difference is not None:  # an intrinsic of one width of indices in a program of another
        narrow = [_stripped(with_narrow_indices(s)) for s in (described, relative)]
        difference = first_difference(narrow[0], narrow[1])
        ordered = [_with_factors_in_order(s, [*pairs]) for s in narrow]
        if difference is not None and first_difference(ordered[0], ordered[1]) is None:
            return None
    return difference


def _with_factors_in_order(stmt: Stmt, order: Sequence[Buffer]) -> Stmt:
    """``stmt`` with the factor of each product first that reads what comes first in ``order``: ``a * b`` is ``b * a``."""

    def first(e: Expr) -> int:
        return min(
            (order.index(n.buffer) for n in walk(e) if isinstance(n, BufferLoad) and n.buffer in order),
            default=len(order),
        )

    def visit(item: Any) -> Any:
        if not isinstance(item, Mul):
            return None
        a, b = sorted((rewrite(item.a, visit), rewrite(item.b, visit)), key=first)
        return Mul(a, b)

    return rewrite(stmt, visit)


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
    require(len(order) == len(have),
            "block {0} uses {1} buffers, the intrinsic {2} describes {3}",
            block.name, len(have), name, len(order), nodes=[block])  # fmt: skip
    regions = {r.buffer: r for r in (*block.reads, *block.writes)}
    best = ""
    written = {r.buffer for r in pattern.writes}
    outputs = {r.buffer for r in block.writes}
    for choice in itertools.permutations(have):
        pairs = dict(zip(order, choice))
        if any((d in written) != (b in outputs) or d.dtype != b.dtype for d, b in pairs.items()):
            continue
        difference = _difference(described, block, pairs, regions)
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
        units = [IntImm(1)] * (len(have) - wanted.ndim)
        if len(have) < wanted.ndim or not all(map(same_size, have, (*units, *wanted.shape))):
            want = ", ".join(map(repr, wanted.shape))
            found.append(f"{wanted.name} is ({want}), the region of {buffer.name} ({', '.join(map(repr, have))})")
    return "; ".join(found)


def _bounded(block: Block) -> Analyzer:
    """Bounds of the iterators and loops under ``block``."""
    analyzer = Analyzer()
    analyzer.bind_under(block)
    return analyzer


@once
def _described(pattern: Block) -> Stmt:
    """What an intrinsic computes, in the form that is compared; found once for each intrinsic."""
    return _simplified(pattern.body, _bounded(pattern))


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
    made = realize.replace(block=block)
    require_one_name(made)
    return made


def _view_scope(described: Buffer, bound: dict[Buffer, BufferRegion]) -> str:
    """The scope of the view that stands for a ``described`` buffer: that of the memory it is matched to. An intrinsic
    that asks for no scope in particular takes any."""
    if described not in bound:
        return described.scope
    buffer = bound[described].buffer
    require(described.scope in (GLOBAL, buffer.scope) or (is_shared(described.scope) and is_shared(buffer.scope)),
            "the intrinsic has {0} in `{1}` memory, and {2} is in `{3}`",
            described.name, described.scope, buffer.name, buffer.scope,
            legal=f'put {buffer.name} into scope "{described.scope}": cache_read or cache_write, or set_scope')  # fmt: skip
    return buffer.scope
