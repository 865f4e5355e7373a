"""Staging: a buffer used through a copy. The copies, who uses them instead, where they stand, and what they may read.

A step that stages a buffer chooses a box, makes a buffer, and describes the rest as a ``Stage``: the blocks that copy,
their places among the statements of a host (a loop or a block), and the statements that use the copy from now on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..aliases import memory_of, shares_memory, sharing
from ..analysis.block_regions import accessed_box, with_regions
from ..analysis.dependence.initialization import Initialized
from ..analysis.dependence.live_values import Undisturbed
from ..analysis.dependence.tiers import require_legal
from ..analysis.evaluation import steering_loads
from ..analysis.index import BlockRef, LoopRef, Place, order, statements, with_statements
from ..analysis.users import bare_stores, uses_pointer
from ..arith.regions import intersect
from ..buffer import SCOPES, Buffer, BufferRegion, IterVar, MatchBufferRegion, Range, decl_buffer
from ..errors import require
from ..expr import TRUE, BufferLoad, Expr, Var, cast
from ..names import near_names
from ..node import cached_property, frozendict
from ..poly import Relation
from ..stmt import AllocateConst, Block, BlockRealize, BufferStore, SeqStmt, Stmt, first_line, nest, seq
from ..visit import nodes_of, rewrite, walk
from .handles import BlockRV
from .nests import add_alloc, unit_region
from .state import State

SIDES = ("reads", "writes")
Indices = tuple[Expr, ...]


def require_scope(scope: str) -> None:
    """Refuse a storage scope that no hardware has. Part of one after a dot is the hardware's own (``global.vtcm``)."""
    require(isinstance(scope, str) and (scope in SCOPES or scope.partition(".")[0] in ("global", "local", "texture")),
            "there is no storage scope `{0}`",
            scope, legal=lambda: near_names(scope, SCOPES) if isinstance(scope, str) else SCOPES)  # fmt: skip


# ---------------------------------------------------------------- the copy, and the block that makes it


def cached_name(buffer: Buffer, scope: str) -> str:
    """The name of a copy of ``buffer`` in ``scope``."""
    return f"{buffer.name}_{scope.replace('.', '_')}"


def cached_buffer(buffer: Buffer, scope: str) -> Buffer:
    """A buffer like ``buffer`` in storage scope ``scope``, named ``<buffer>_<scope>``."""
    require_scope(scope)
    name = cached_name(buffer, scope)
    return decl_buffer(buffer.shape, buffer.dtype, name, scope=scope, axis_separators=buffer.axis_separators)


def box_inside(blocks: Sequence[BlockRef], buffer: Buffer, host: BlockRef | LoopRef, *sides: str) -> tuple[Range, ...]:
    """The box of ``buffer`` that ``blocks``, which do, access each time that ``host`` runs, kept inside the buffer.

    A guarded tail reaches past the end in name only: its predicate keeps it inside.
    """
    box, known = accessed_box(blocks, buffer, host, *sides), host.analyzer()
    assert box is not None
    known.assume_sizes([buffer])
    return intersect([box, buffer.full_region().region], known)


def elementwise_block(
    name: str,
    box: Sequence[Range],
    domains: Sequence[Range],
    body: Callable[[tuple[Var, ...]], Stmt],
    where: Callable[[tuple[Expr, ...]], Expr] | None = None,
    regions: Callable[[Block], Block] = with_regions,
) -> Stmt:
    """Loops ``ax0``, ``ax1`` … over ``box`` around a block with one spatial iterator ``v0``, ``v1`` … for each axis.

    ``domains`` are those of the iterators, ``body`` makes what the block does at a point, ``where`` its predicate, of
    the values that the iterators have. The ``regions`` are inferred, if nothing else gives them to the block.
    """
    loops: list[tuple[Var, Expr]] = []
    iters: list[IterVar] = []
    for axis, (bounds, domain) in enumerate(zip(box, domains)):
        dtype = bounds.extent.dtype if bounds.extent.dtype.bits > domain.extent.dtype.bits else domain.extent.dtype
        loops.append((Var(f"ax{axis}", dtype), cast(dtype, bounds.extent)))
        iters.append(
            IterVar(Range(cast(dtype, domain.min), cast(dtype, domain.extent)), Var(f"v{axis}", dtype), "spatial")
        )
    values = tuple(cast(v.dtype, bounds.min) + v for bounds, (v, _) in zip(box, loops))
    block = Block(tuple(iters), (), (), name, body(tuple(i.var for i in iters)))
    predicate = TRUE if where is None else where(values)
    return nest(loops, BlockRealize(values, predicate, regions(block)))


def copy_block(name: str, source: Buffer, target: Buffer, box: Sequence[Range], where: Expr = TRUE) -> Stmt:
    """Loops over ``box`` around a block that copies ``source`` to ``target``, element for element."""

    def copied(point: tuple[Var, ...]) -> Stmt:
        return BufferStore(target, BufferLoad(source, point), point)

    def of_point(block: Block) -> Block:
        point = [i.var for i in block.iter_vars]
        return block.replace(reads=(unit_region(source, point),), writes=(unit_region(target, point),))

    return elementwise_block(name, box, source.full_region().region, copied, lambda _: where, of_point)


# ---------------------------------------------------------------- users of the copy


def position(block: BlockRef, host: BlockRef | LoopRef) -> int:
    """The number of the statement of ``host`` that holds ``block``. Raises ``ScheduleError`` in the init of a block."""
    number = order(host, block)
    require(
        number >= 0, "block {0} is in the init of block {1}: no copy can stand there", block, host, nodes=[block.node]
    )
    return number


def redirect(block: BlockRef, buffer: Buffer, copy: Buffer, sides: Collection[str] = SIDES, **places: Any) -> Stmt:
    """``block`` using ``copy`` instead of ``buffer``, as ``redirect_all`` does; its predicate, bindings and domains do not."""
    return block.node.replace(block=redirect_all(block.block, buffer, copy, sides, block.block.iter_vars, **places))


def redirect_all(
    stmt: Any,
    buffer: Buffer,
    copy: Buffer,
    sides: Collection[str] = SIDES,
    kept: Collection[Any] = (),
    index: Callable[[Indices], Indices] | None = None,
    region: Callable[[BufferRegion], BufferRegion] | None = None,
) -> Any:
    """``stmt`` with its reads or writes (``sides``) of ``buffer`` going to ``copy``; its pointer, too, where both do.
    What is ``kept`` is as before.

    ``index`` gives the place in the copy of an element; ``region`` what becomes of a region, which otherwise is the
    same box of the copy.
    """
    remap = index or (lambda indices: indices)
    box = region or (lambda r: BufferRegion(copy, r.region))
    everywhere = set(sides) == set(SIDES)

    def moved(regions: Sequence[BufferRegion]) -> tuple[BufferRegion, ...]:
        return tuple(box(r) if r.buffer is buffer else r for r in regions)

    def visit(item: Any) -> Any:
        kind = type(item)
        if kind is BufferLoad:
            return BufferLoad(copy, remap(item.indices)) if item.buffer is buffer and "reads" in sides else None
        if kind is BufferStore:
            redirected = item.buffer is buffer and "writes" in sides
            return item.replace(buffer=copy, indices=remap(item.indices)) if redirected else None
        if everywhere:
            if kind is BufferRegion and item.buffer is buffer:
                return box(item)
            return copy.data if item is buffer.data else None
        if kind is Block:
            return item.replace(**{side: moved(getattr(item, side)) for side in sides})
        return None

    return rewrite(stmt, visit, kept=kept)


def require_members(blocks: Sequence[BlockRef], scope: BlockRef) -> None:
    """Refuse consumers that are not directly inside ``scope``, where the copy stands."""
    for block in blocks:
        require(block.scope is scope,
                "block {0} is not directly inside block {1}, where the copy is made",
                block, scope, nodes=[block.node], legal=[child.name for child in scope.children])  # fmt: skip


def require_known_uses(
    blocks: Sequence[BlockRef], buffer: Buffer, unsafe: bool, around: Sequence[BlockRef] = ()
) -> None:
    """Refuse blocks that reach ``buffer`` in other ways than by loads and stores; with ``unsafe``, only in ways that
    cannot be redirected to a copy: a view of it, or another buffer declared over its pointer.

    A pointer that a block passes on (``access_ptr``) becomes that of the copy, which has the same shape. The blocks
    ``around``, which go on using the memory itself, may do it by views whose regions tell what they use.
    """
    for block in around:
        regions = (*block.block.reads, *block.block.writes)
        other = next((r.buffer for r in sharing(regions, buffer) if r.buffer is not buffer), None)
        require(other is None,
                "block {0} uses the memory of {1} as {2}: cannot tell which elements of the copy these are",
                block, buffer.name, other.name if other else "")  # fmt: skip
    user = next((b for b in blocks if uses_pointer(b.node, buffer)), None)
    if user is None:
        return
    alias = next((b for b in blocks if _declares_alias(b, buffer)), None)
    require(unsafe and alias is None,
            "cannot prove what block {0} uses of {1}: its pointer is used directly or through another view",
            alias or user, buffer.name, nodes=[(alias or user).node],
            legal="" if alias else "unsafe=True, which believes the regions that the block declares")  # fmt: skip


def _declares_alias(block: BlockRef, buffer: Buffer) -> bool:
    return any(
        (isinstance(n, Buffer) and n is not buffer and shares_memory(n, buffer))
        or (isinstance(n, MatchBufferRegion) and n.source.buffer is buffer)
        for n in walk(block.node)
    )


def require_not_steering(buffer: Buffer, stmts: Iterable[Stmt]) -> None:
    """Refuse to redirect writes of ``buffer`` to a copy if a control expression in ``stmts`` reads it (a condition, a
    predicate, a binding, a loop bound or a let), since that would still read the buffer."""
    rule = "`{0}` reads buffer {1} outside of the body of a block, before the copy back has written it"
    loads = (found for stmt in stmts for found in steering_loads(stmt))
    _require_without(buffer, ((place, memory_of([load])) for place, load in loads), rule)


def require_stored_in_blocks(buffer: Buffer, stmts: Iterable[Stmt]) -> None:
    """Refuse if something in ``stmts`` writes ``buffer`` outside of blocks: a copy would miss that, and the copy back undo
    it."""
    rule = "`{0}` writes buffer {1} outside of a block, which a copy would miss or undo"
    _require_without(buffer, ((place, {memory}) for stmt in stmts for place, memory in bare_stores(stmt)), rule)


def _require_without(buffer: Buffer, uses: Iterable[tuple[Stmt, Any]], rule: str) -> None:
    for place, memory in uses:
        shown = place if isinstance(place, BlockRealize) else first_line(place)
        require(not shares_memory(buffer, memory), rule, shown, buffer.name, nodes=[place])


def redirect_reads(consumer: BlockRef, buffer: Buffer, copy: Buffer) -> Stmt:
    """``consumer`` reading the copy, and writing the buffer itself where it does."""
    updates = any(r.buffer is buffer for r in consumer.block.writes)
    return redirect(consumer, buffer, copy, ("reads",) if updates else SIDES)


# ---------------------------------------------------------------- the stage


def _swapped(stmt: Stmt, changed: Mapping[Any, Stmt], around: Container[Any]) -> Stmt:
    """``stmt`` with the statements ``changed`` below it replaced; what is not ``around`` them is shared."""

    def swap(n: Any) -> Any:
        nested = type(n) is SeqStmt and SeqStmt in map(type, n.stmts)
        return seq(n.stmts) if nested else changed.get(n)

    return rewrite(stmt, swap, enter=lambda n: n in around)


@dataclass(frozen=True)
class Stage:
    """A buffer of ``state`` used through copies, which ``scope`` allocates.

    ``changed`` maps statements below ``scope`` to what takes their place, ``added`` the number of a statement of ``host``
    to the statements that go before it. ``names`` are the copying blocks, ``recorded`` goes to the trace.
    """

    state: State
    scope: BlockRef
    host: BlockRef | LoopRef
    copies: tuple[Buffer, ...] = ()
    changed: Mapping[Any, Stmt] = field(default_factory=frozendict)
    added: Mapping[int, Sequence[Stmt]] = field(default_factory=frozendict)
    names: tuple[str, ...] = ()
    recorded: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def after(self) -> State:
        """The program that uses the copies."""
        if not (self.changed or self.added):
            return self.state
        around = self._around(self.changed)
        members: list[Stmt] = []
        for number, stmt in enumerate([*statements(self.host), None]):
            members += self.added.get(number, ())
            if stmt is not None:
                members.append(_swapped(stmt, self.changed, around) if stmt in around else stmt)
        block = self.scope.block
        if self.host is self.scope:
            body = with_statements(block.body, members)
        else:
            loop = self.host.node
            outside = {n: new for n, new in self.changed.items() if self.host not in self._place(n).ancestors()}
            swapped = {**outside, loop: loop.replace(body=with_statements(loop.body, members))}
            body = _swapped(block.body, swapped, self._around(swapped))
        return self.state.replace(block, add_alloc(block.replace(body=body), *self.copies))

    def _place(self, node: Any) -> Place:
        return self.state.index.place(node)

    def _around(self, changed: Iterable[Any]) -> set[Any]:
        """The statements ``changed``, and those that contain them."""
        return {p.node for node in changed for p in (self._place(node), *self._place(node).ancestors())}

    def require_initialized(self, *buffers: Buffer) -> None:
        """Raise ``ScheduleError``, naming the element, where one of ``buffers`` is read before it is written.

        Parameters of the function, under any name, are initialized by the caller, and constants by their data.
        """
        func = self.state.func
        given = memory_of(func.buffers()) | {n.buffer_var for n in nodes_of(func.body) if isinstance(n, AllocateConst)}
        for buffer in buffers:
            if not shares_memory(buffer, given):
                require_legal(Initialized(self.after.func, buffer).answer(), self.after.func)

    def require_current(self, buffer: Buffer, copy: Buffer) -> None:
        """Raise ``ScheduleError``, with the two instances, where ``copy`` is read after an element of ``buffer`` has changed
        and was not copied again."""
        rule = f"an element of `{buffer.name}` is written between the copy and a read of it"
        same = Relation.identity(buffer.ndim)
        require_legal(Undisturbed(self.after.func, copy, buffer, same, rule).answer(), self.after.func)

    def handles(self) -> list[BlockRV]:
        """The blocks that copy."""
        return [self.after.block_rv(name) for name in self.names]

    def result(self) -> tuple[State, BlockRV]:
        """The program, and the block that copies."""
        return self.after, self.handles()[0]
