"""What a step changed: new and changed loops, and the memory whose accesses changed.

Memory that the same blocks access, in the same loops and in the same order, is unchanged: what was proved of it before
the step still holds, whatever else the step did. Parts of both programs that are one object are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from typing import TYPE_CHECKING, Any

from ...analysis.contents import difference, has_blocks, kept_members, named, sub_statements, with_memory
from ...analysis.effects import effects
from ...analysis.index import LoopRef, index_of
from ...expr import Var
from ...function import IRModule, PrimFunc
from ...levels import ends_with_launch
from ...node import cached_property, once
from ...stmt import SERIAL, THREAD_BINDING, UNROLLED, Block, BlockRealize, For, LetStmt, SeqStmt
from ...visit import has_load, nodes_of, with_recursion_limit
from . import Keeps, Kept

if TYPE_CHECKING:
    from ...target import Target

BufferSet = Container[Var]  # pointers of buffers
Order = dict[Var, tuple[Any, ...]]  # of each memory: the statements that access it, in the loops and blocks around them


class _Uses:
    """The accesses of memory in statements, comparably: :meth:`of` one, and what of them is :meth:`changed` between two.
    ``mark`` has what matters of a loop beside its iterations.

    What is not a block in loops, or has views, counts as one statement.
    """

    def __init__(self, mark: Callable[[For], Any]):
        self._mark = mark
        self.of = with_recursion_limit(once(self._of))

    def _of(self, stmt: Any) -> Order:
        if isinstance(stmt, SeqStmt):
            return _together(map(self.of, stmt.stmts))
        if isinstance(stmt, For) and not has_load(stmt.min, stmt.extent):
            return _inside(self.of(stmt.body), self._loop_key(stmt))
        if isinstance(stmt, BlockRealize) and _is_nest(stmt.block) and not has_load(stmt.predicate, *stmt.iter_values):
            allocated: Order = {b.data: (id(b),) for b in stmt.block.alloc_buffers}
            inner = _together((self._of_init(stmt.block), self.of(stmt.block.body)))
            return _together((allocated, _inside(inner, _realize_key(stmt))))
        return dict.fromkeys(_memory_of(stmt), (id(stmt),))

    def _of_init(self, block: Block) -> Order:
        return {} if block.init is None else self.of(block.init)

    def _loop_key(self, loop: For) -> Any:
        return (id(loop.loop_var), id(loop.min), id(loop.extent), self._mark(loop))

    @with_recursion_limit
    def changed(self, old: Any, new: Any) -> set[Var]:
        """The memory whose accesses differ between two statements that stand in the same loops and blocks."""
        if old is new:
            return set()
        if isinstance(old, SeqStmt) and isinstance(new, SeqStmt):
            kept = kept_members(old, new)
            return _differing(self._apart(old, kept), self._apart(new, kept))
        if isinstance(old, For) and isinstance(new, For) and self._loop_key(old) == self._loop_key(new):
            return self.changed(old.body, new.body)
        if isinstance(old, BlockRealize) and isinstance(new, BlockRealize) and _same_realize(old, new):
            before, after = old.block, new.block
            found = self.changed(before.body, after.body)
            if before.alloc_buffers is not after.alloc_buffers:
                found |= {b.data for b in {*before.alloc_buffers} ^ {*after.alloc_buffers}}
            if before.init is not after.init:
                found |= _differing([(0, self._of_init(before))], [(0, self._of_init(after))])
            return found
        return _differing([(0, self.of(old))], [(0, self.of(new))])

    def _apart(self, stmt: SeqStmt, kept: Collection[Any]) -> list[tuple[int, Order]]:
        """The uses of the members of a sequence that are not ``kept``, each with the number of those before it."""
        found: list[tuple[int, Order]] = []
        passed = 0
        for s in stmt.stmts:
            if s in kept:
                passed += 1
            else:
                found.append((passed, self.of(s)))
        return found


def _memory_of(stmt: Any) -> Iterable[Var]:
    """The memory that a statement accesses; with views inside, under which name is not known, all that it names."""
    if any(n.block.match_buffers for n in with_memory(stmt)):
        return [n for n in named(stmt) if type(n) is Var and n.dtype.is_handle]
    return effects(stmt).reads | effects(stmt).writes


@once
def _written(stmt: Any) -> frozenset[tuple[Var, str]]:
    """The memory that a statement writes, with its scopes."""
    taken_apart = _is_nest(stmt.block) if isinstance(stmt, BlockRealize) else isinstance(stmt, (For, SeqStmt, Block))
    if taken_apart and has_blocks(stmt):
        return frozenset[tuple[Var, str]]().union(*map(_written, sub_statements(stmt)))
    return frozenset((e.buffer.data, e.buffer.scope) for e in effects(stmt).stored if e.write)


def _together(parts: Iterable[Order]) -> Order:
    """The accesses of statements that follow each other."""
    found: Order = {}
    for part in parts:
        for memory, uses in part.items():
            found[memory] = found.get(memory, ()) + uses
    return found


def _inside(order: Order, key: Any) -> Order:
    """The same accesses in a loop or a block."""
    return {memory: ((key, uses),) for memory, uses in order.items()}


def _differing(old: list[tuple[int, Order]], new: list[tuple[int, Order]]) -> set[Var]:
    """The memory that two lists of numbered parts access in different ways."""
    was, now = _collected(old), _collected(new)
    return {memory for memory in was.keys() | now.keys() if was.get(memory) != now.get(memory)}


def _collected(parts: list[tuple[int, Order]]) -> dict[Var, list[Any]]:
    found: dict[Var, list[Any]] = {}
    for place, uses in parts:
        for memory, order in uses.items():
            found.setdefault(memory, []).append((place, order))
    return found


def _is_nest(block: Block) -> bool:
    """Whether a block is of blocks, and has no views."""
    return has_blocks(block) and not block.match_buffers


def _same_realize(old: BlockRealize, new: BlockRealize) -> bool:
    """Whether two blocks of blocks run alike."""
    return _realize_key(old) == _realize_key(new) and _is_nest(old.block) and _is_nest(new.block)


def _realize_key(realize: BlockRealize) -> Any:
    block = realize.block
    return (block.name, id(realize.predicate), id(block.iter_vars), *map(id, realize.iter_values))


# how the iterations of a loop run at once: none of it if one after the other, unrolled or not
MARKED = _Uses(lambda loop: None if loop.kind in (SERIAL, UNROLLED) else (loop.kind, loop.thread))
UNMARKED = _Uses(lambda loop: None)


class _AllBut:
    def __init__(self, changed: Collection[Var]):
        self.changed = changed

    def __contains__(self, memory: object) -> bool:
        return memory not in self.changed


class Delta:
    """What changed in one function between two programs, ``before`` None standing for the empty one.

    ``keeps`` is what the primitive that made ``after`` declares to preserve. ``modules`` gives those that contain the
    programs as function ``name``, and ``target`` is the target of the schedule, if there are any.
    """

    def __init__(
        self,
        before: PrimFunc | None,
        after: PrimFunc,
        keeps: Kept = Keeps.NOTHING,
        *,
        primitive: str = "",
        name: str = "main",
        modules: Callable[[], tuple[IRModule, IRModule]] | None = None,
        target: Target | None = None,
    ):
        self.before = before
        self.after = after
        self.keeps = keeps
        self.primitive = primitive
        self.name = name
        self.modules = modules
        self.target = target

    def start(self) -> Delta:
        """The change from the empty program to the program before the step."""
        assert self.before is not None
        return Delta(None, self.before, primitive=self.primitive, name=self.name, target=self.target)

    def let_before(self, var: Var) -> LetStmt | None:
        """The statement that gave ``var`` its value before the step."""
        nodes = () if self.before is None else nodes_of(self.before.body)
        return next((n for n in nodes if type(n) is LetStmt and n.var is var), None)

    def changed_loops(self, kinds: Collection[str] | None = None) -> list[LoopRef]:
        """Loops of ``after``, of these kinds, that are new or changed."""
        index = index_of(self.after)
        return [index.place(f) for f in self._changed if kinds is None or f.kind in kinds]

    @cached_property
    def changed_kinds(self) -> frozenset[str]:
        """The kinds of ``changed_loops``."""
        return frozenset([f.kind for f in self._changed])

    @cached_property
    def _changed(self) -> list[For]:
        nodes = index_of(self.after).nodes if self.before is None else difference(self.before, self.after).added
        return [s for s in nodes if type(s) is For]

    def is_marked(self, loop: LoopRef) -> bool:
        """Whether the step gave ``loop``, of ``after``, its kind."""
        old = None if self.before is None else index_of(self.before).loops.get(loop.var)
        return old is None or (old.node.kind, old.node.thread) != (loop.node.kind, loop.node.thread)

    @cached_property
    def unchanged_buffers(self) -> BufferSet:
        """Pointers of the memory whose accesses are unchanged."""
        return self._unchanged(MARKED)

    @cached_property
    def unchanged_accesses(self) -> BufferSet:
        """As ``unchanged_buffers``, but loops around may have become parallel, vectorized or bound."""
        return self._unchanged(UNMARKED)

    def _unchanged(self, uses: _Uses) -> BufferSet:
        if self.before is None:
            return frozenset[Any]()
        return _AllBut(uses.changed(self.before.body, self.after.body))

    def _shared_now(self, loop: LoopRef) -> set[Var]:
        """Pointers of the buffers that ``loop``, of ``after``, had in its clause before the step, and has no longer."""
        old = None if self.before is None else index_of(self.before).loops.get(loop.var)
        return set() if old is None else {b.data for b in old.node.private if b not in loop.node.private}

    def may_clash(self, loop: LoopRef) -> bool:
        """Whether the step may have introduced a dependence carried by ``loop``, of ``after``: its iterations write
        memory whose accesses changed, or of which they had copies, or the step set its kind. For threads, only global
        memory counts."""
        same: BufferSet = frozenset[Any]() if self.is_marked(loop) else self.unchanged_accesses
        shared = self._shared_now(loop)
        threads = loop.node.kind == THREAD_BINDING
        return any(
            (memory in shared or memory not in same) and not (threads and ends_with_launch(scope))
            for memory, scope in _written(loop.node)
        )
