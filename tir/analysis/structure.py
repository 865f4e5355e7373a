"""Structural queries on blocks, loops and expressions: the names in them, and the position of a statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..buffer import Buffer, BufferRegion, IterVar
from ..expr import (
    BufferLoad,
    Expr,
    IntImm,
    Let,
    Var,
    conjuncts,
    is_const,
)
from ..node import Memo
from ..stmt import (
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    For,
    LetStmt,
    SeqStmt,
    Stmt,
    edited_seq,
    is_long,
    seq,
)
from ..visit import LEAVES, contains, free_vars, nodes_of, substitute, uses_var, walk
from .contents import MembersBy, shape
from .index import BlockRef, LoopRef, Place

if TYPE_CHECKING:
    from ..arith import Analyzer

_BLOCKS_ALONE: Memo[bool] = Memo()
_FREE: Memo[frozenset[Var]] = Memo()
_NAMED: Memo[frozenset[Any]] = Memo()


def free_in(block: Any) -> frozenset[Var]:
    """Free variables of a block; cached for each block."""
    found = _FREE.get(block)
    if found is None:
        found = _FREE[block] = frozenset(free_vars(block))
    return found


def named(stmt: Any) -> frozenset[Any]:
    """The variables and buffers, with their pointers, that occur in a statement; computed once for each."""
    found = _NAMED.get(stmt)
    if found is None:
        names: set[Any] = set()
        nodes = [stmt]
        for item in nodes:  # which grows
            kind = type(item)
            if kind is Var or kind is Buffer:
                names.add(item)
            elif kind is Block and item is not stmt:
                names |= named(item)
            elif kind not in LEAVES:
                nodes += item.children()
        names.update([item.data for item in names if type(item) is Buffer])
        found = _NAMED[stmt] = frozenset(names)
    return found


NAMING = MembersBy(named)
"""The members of a sequence by the variables, the buffers and the pointers that occur in them."""


def parts_without(stmt: Any, names: Collection[Any]) -> set[Any]:
    """The members of the outermost long sequences in a statement, and the buffers allocated by the blocks around them, that
    are not among ``names``, and in which none of these occurs."""
    found: set[Any] = set()
    for s in shape(stmt):
        if type(s) is SeqStmt:
            found.update(s.stmts)
            found.difference_update(NAMING.of_any(s, names))
        elif type(s) is BlockRealize and is_long(s.block.alloc_buffers):
            found.update(s.block.alloc_buffers)
    found.difference_update(names)
    return found


def constant(e: Expr | None) -> int | None:
    """The value of an integer constant; None for anything else."""
    return e.value if isinstance(e, IntImm) else None


def vars_in(e: Any) -> set[Var]:
    if type(e) in LEAVES:
        return {e} if type(e) is Var else set()
    return {v for v in nodes_of(e) if type(v) is Var}


def bound_inside(block: Block) -> set[Var]:
    """Variables that are bound inside ``block``: by loops, lets and blocks."""
    found: set[Var] = set()
    for item in walk(block):
        if isinstance(item, For):
            found.add(item.loop_var)
        elif isinstance(item, (LetStmt, Let)):
            found.add(item.var)
        elif isinstance(item, Block) and item is not block:
            found |= {i.var for i in item.iter_vars}
    return found


def has_load(e: Expr) -> bool:
    return type(e) not in LEAVES and contains(e, BufferLoad)


def asked_before_body(realize: BlockRealize) -> list[Expr]:
    """What executing a block evaluates before its body, in terms of what is around it: the values of its iterators, its
    predicate, and the places of its views that read memory."""
    places = places_of_views(realize.block)
    values = dict(zip((i.var for i in realize.block.iter_vars), realize.iter_values)) if places else {}
    return [*realize.iter_values, realize.predicate, *(substitute(e, values) for e in places)]


def places_of_views(block: Block) -> list[Expr]:
    """The starts and extents of the regions that the views of a block name, if they read memory."""
    return [e for m in block.match_buffers for r in m.source.region for e in (r.min, r.extent) if has_load(e)]


def is_steered_by_memory(realize: BlockRealize, loops: Iterable[For] = ()) -> bool:
    """Whether a block reads memory before its body (a predicate, a binding, the place of a view), or a bound of ``loops``
    around it does."""
    return any(map(has_load, (*asked_before_body(realize), *(e for f in loops for e in (f.min, f.extent)))))


def steering_loads(stmt: Stmt) -> Sequence[tuple[Stmt, BufferLoad]]:
    """Loads outside of the bodies of blocks, with their places: in loop bounds, conditions, values of lets, and what a
    block asks before its body."""
    found = _STEERING.get(stmt)
    if found is None:
        parts: Sequence[Any] = stmt.children()
        if isinstance(stmt, BlockRealize):
            parts = asked_before_body(stmt)
        elif isinstance(stmt, SeqStmt):
            parts = _STEERED.of(stmt, True)
        own = [(stmt, n) for p in parts if not isinstance(p, Stmt) for n in walk(p) if isinstance(n, BufferLoad)]
        below = [item for p in reversed(parts) if isinstance(p, Stmt) for item in steering_loads(p)]
        found = _STEERING[stmt] = (*own, *below)
    return found


_STEERING: Memo[tuple[tuple[Stmt, BufferLoad], ...]] = Memo()
_STEERED = MembersBy(lambda s: (True,) if steering_loads(s) else ())


def order(scope: BlockRef | LoopRef, block: Place) -> int:
    """The number of the statement of ``scope`` that holds ``block``, or another statement; -1 for its init, which comes first."""
    top = top_statement(block, scope).node
    members = statements(scope)
    return members.index(top) if top in members else -1


def refresh(stmt: Any, also: Mapping[Var, Any] | None = None) -> Any:
    """A copy of ``stmt`` in which every variable and buffer bound inside is a new one, so that both can stand in one
    function; ``also`` replaces further variables."""
    variables: dict[Var, Any] = dict(also or {})
    buffers: dict[Buffer, Buffer] = {}
    item: Any
    for item in nodes_of(stmt):
        kind = type(item)
        if kind is For:
            variables.setdefault(item.loop_var, item.loop_var.replace())
        elif kind is IterVar or kind is LetStmt or kind is Let:
            variables.setdefault(item.var, item.var.replace())
        elif kind is Block:
            for buffer in (*item.alloc_buffers, *(m.buffer for m in item.match_buffers)):
                variables[buffer.data] = buffer.data.replace()
                buffers[buffer] = buffer.replace(data=variables[buffer.data])
            variables.update({v: v.replace() for v in _defined_by_views(stmt, item) if v not in variables})
    return substitute(stmt, variables, {old: substitute(new, variables) for old, new in buffers.items()})


def _defined_by_views(stmt: Any, block: Block) -> set[Var]:
    """The strides and offsets that views of ``block`` define: used in it alone, and by no buffer from outside of ``stmt``."""
    parts = {p for m in block.match_buffers for p in (*m.buffer.strides, m.buffer.elem_offset) if isinstance(p, Var)}
    if not parts:
        return parts
    inside = {b for item in walk(stmt) if isinstance(item, Block) for b in (m.buffer for m in item.match_buffers)}
    sources = {m.source.buffer for m in block.match_buffers} - inside
    given = {v for b in sources for e in (*b.shape, *b.strides, b.elem_offset) if e is not None for v in vars_in(e)}
    around = Counter(n for n in walk(stmt) if isinstance(n, Var))
    within = Counter(n for n in walk(block) if isinstance(n, Var))
    return {v for v in parts if v not in given and around[v] == within[v]}


def regions_of(refs: Iterable[BufferRegion], buffer: Buffer) -> list[BufferRegion]:
    return [r for r in refs if r.buffer is buffer]


def is_nest_of_blocks(stmt: Any) -> bool:
    """Whether a statement consists of blocks (whatever is in them), loops and sequences; computed once for each."""
    if isinstance(stmt, BlockRealize):
        return True
    found = _BLOCKS_ALONE.get(stmt)
    if found is None:
        inner: Any = stmt
        while type(inner) is For:
            inner = inner.body
        found = type(inner) is BlockRealize or (type(inner) is SeqStmt and all(map(is_nest_of_blocks, inner.stmts)))
        _BLOCKS_ALONE[stmt] = found
    return found


def statements(host: BlockRef | LoopRef) -> list[Stmt]:
    """The statements of the body of a block or a loop, in order, inside of the buffers that it declares first."""
    body = _declaring(_owner(host)).body
    return list(body.stmts) if isinstance(body, SeqStmt) else [body]


def with_statements(body: Stmt, members: Sequence[Stmt]) -> Stmt:
    """The body of a block or a loop with other ``statements``, inside of the same declarations."""
    if isinstance(body, DeclBuffer):
        return body.replace(body=with_statements(body.body, members))
    return edited_seq(body, seq(members))


def _declaring(owner: Any) -> Any:
    """The innermost of the buffer declarations with which the body of ``owner`` begins; ``owner`` if there is none."""
    while isinstance(owner.body, DeclBuffer):
        owner = owner.body
    return owner


def top_statement(place: Place, host: BlockRef | LoopRef) -> Place:
    """The ancestor of ``place`` (or itself) that is one of the ``statements`` of ``host``."""
    owner = _declaring(_owner(host))
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


def common_host(refs: Sequence[Place], scope: BlockRef) -> BlockRef | LoopRef:
    """The innermost loop of ``scope`` whose sequence of statements contains all of ``refs``, otherwise ``scope``
    itself."""
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


def met_around(block: BlockRef, host: BlockRef | LoopRef) -> list[Expr]:
    """The conjuncts of the predicate of ``block`` that nothing inside of ``host`` changes, neither a loop nor a store."""
    inside = {p.var for p in loops_below(block, host)}
    parts = [c for c in conjuncts(block.node.predicate) if not is_const(c, 1) and not uses_var(c, inside)]
    return [c for c in parts if not (has_load(c) and block.may_change(c, _owner(host)))]


def entered(extents: Iterable[Expr], analyzer: Analyzer) -> list[Expr]:
    """The conditions under which loops of all these ``extents`` run; nothing for those that are sure to. ``analyzer`` must
    not know the loops' variables: that a loop runs says that its extent is not zero."""
    found: list[Expr] = []
    with analyzer.scope():
        for extent in extents:
            if not analyzer.can_prove(extent > 0):
                found.append(analyzer.simplify(extent > 0))
                analyzer.assume(found[-1])
    return found


def reads_own_writes(block: Block, buffer: Buffer) -> bool:
    """Whether an execution of ``block`` may read an element of ``buffer`` after it has stored to it: a copy made before
    would be stale."""
    return _reads_after(block.body, buffer, False)[0]


def _reads_after(s: Any, buffer: Buffer, stored: bool) -> tuple[bool, bool]:
    """Whether ``s`` reads ``buffer`` after a store, ``stored`` being whether there was one before; and whether there
    was one by its end."""
    if isinstance(s, SeqStmt):
        for part in s.stmts:
            reads, stored = _reads_after(part, buffer, stored)
            if reads:
                return True, stored
        return False, stored
    loads = any(isinstance(n, BufferLoad) and n.buffer is buffer for n in nodes_of(s))
    stores = any(isinstance(n, BufferStore) and n.buffer is buffer for n in nodes_of(s))
    if isinstance(s, LetStmt):
        first, _ = _reads_after(s.value, buffer, stored)
        inside, stored = _reads_after(s.body, buffer, stored)
        return first or inside, stored
    again = stores and not isinstance(s, BufferStore)  # in a loop, or under conditions: taken to be any order
    return loads and (stored or again), stored or stores


def wrapped_in(ref: BlockRef, host: BlockRef | LoopRef) -> Stmt | None:
    """A statement around ``ref``, in one of the ``statements`` of ``host``, that is not a loop (an ``if`` or a let); None
    if there is none."""
    owner = _declaring(_owner(host))
    for place in ref.ancestors():
        if place.node is owner or isinstance(place.node, Block):
            return None
        if not isinstance(place.node, (For, SeqStmt, BlockRealize)):
            return place.node
    return None


def first_line(stmt: Stmt | None) -> str:
    """The first line of a statement as printed."""
    return "" if stmt is None else repr(stmt).split("\n")[0].rstrip(":")
