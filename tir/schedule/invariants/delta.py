"""What a step changed: new and changed loops, and the memory whose accesses changed.

Memory that the same blocks access, in the same loops and in the same order, is unchanged: what was proved of it before
the step still holds, whatever else the step did. Parts of both programs that are one object are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from typing import TYPE_CHECKING, Any

from ...analysis.contents import difference, has_blocks, kept_members
from ...analysis.effects import effects
from ...analysis.index import LoopRef, index_of
from ...expr import Var
from ...function import IRModule, PrimFunc
from ...levels import GLOBAL, ends_with_launch
from ...node import once
from ...records import cached_property
from ...recursion import with_recursion_limit
from ...stmt import SERIAL, THREAD_BINDING, UNROLLED, Block, BlockRealize, For, LetStmt, SeqStmt
from ...visit import has_load, nodes_of
from . import Keeps, Kept

if TYPE_CHECKING:
    from ...target import Target

BufferSet = Container[Var]  # pointers of buffers
Order = dict[Var, tuple[Any, ...]]  # of each memory: the statements that access it, in the loops and blocks around them


class Uses:
    """The accesses of memory in a statement. ``order`` has them comparably, ``unmarked`` whatever the loops' kinds;
    ``written`` is what blocks may write, ``scopes`` are those of the buffers."""

    __slots__ = ("order", "unmarked", "written", "scopes")

    def __init__(self, order: Order, unmarked: Order, written: frozenset[Var], scopes: dict[Var, str]):
        self.order = order
        self.unmarked = unmarked
        self.written = written
        self.scopes = scopes

    def inside(self, key: Any, mark: Any = None) -> Uses:
        """The same accesses in a loop or a block."""
        order: Order = {memory: ((key, mark, uses),) for memory, uses in self.order.items()}
        unmarked: Order = {memory: ((key, uses),) for memory, uses in self.unmarked.items()}
        return Uses(order, unmarked, self.written, self.scopes)


def _together(parts: Iterable[Uses | None]) -> Uses | None:
    """The accesses of statements that follow each other; None if those of one are unknown."""
    order: Order = {}
    unmarked: Order = {}
    scopes: dict[Var, str] = {}
    written: set[Var] = set()
    for part in parts:
        if part is None:
            return None
        for mine, other in ((order, part.order), (unmarked, part.unmarked)):
            for memory, uses in other.items():
                mine[memory] = mine.get(memory, ()) + uses
        written |= part.written
        scopes.update(part.scopes)
    return Uses(order, unmarked, frozenset(written), scopes)


def _uses_of_one(stmt: Any) -> Uses:
    """The accesses of one run of a statement."""
    touched = effects(stmt)
    order: Order = dict.fromkeys(touched.reads | touched.writes, (id(stmt),))
    return Uses(order, order, touched.writes, {e.buffer.data: e.buffer.scope for e in touched})


@with_recursion_limit
@once
def uses_of(stmt: Any) -> Uses | None:
    """The accesses of memory in a statement, computed once for each statement object; None, unknown, if it contains
    anything but blocks in loops."""
    if isinstance(stmt, SeqStmt):
        return _together(map(uses_of, stmt.stmts))
    if isinstance(stmt, For):
        inner = None if has_load(stmt.min, stmt.extent) else uses_of(stmt.body)
        return None if inner is None else inner.inside(_loop_key(stmt), _how_it_runs(stmt))
    if not isinstance(stmt, BlockRealize):
        return None
    if not has_blocks(stmt.block):
        return _uses_of_one(stmt)
    if not _is_plain(stmt):
        return None
    block = stmt.block
    inner = _together((_uses_of_init(block), uses_of(block.body)))
    if inner is None:
        return None
    inner = inner.inside(_realize_key(stmt))
    allocated: Order = {b.data: (id(b),) for b in block.alloc_buffers}
    return _together((Uses(allocated, allocated, frozenset(), {}), inner))


def _uses_of_init(block: Block) -> Uses | None:
    if block.init is None:
        return _together(())
    return uses_of(block.init) if has_blocks(block.init) else _uses_of_one(block.init)


def _is_plain(realize: BlockRealize) -> bool:
    """Whether a block has no views, and neither its predicate nor its bindings read memory."""
    return not realize.block.match_buffers and not has_load(realize.predicate, *realize.iter_values)


def _loop_key(loop: For) -> Any:
    return (id(loop.loop_var), id(loop.min), id(loop.extent))


def _how_it_runs(loop: For) -> tuple[str, str] | None:
    """How the iterations of a loop run at once; None if one after the other, unrolled or not."""
    return None if loop.kind in (SERIAL, UNROLLED) else (loop.kind, loop.thread)


def _realize_key(realize: BlockRealize) -> Any:
    block = realize.block
    return (block.name, id(realize.predicate), id(block.iter_vars), *map(id, realize.iter_values))


class _Changes:
    """The memory whose accesses differ between two programs, by ``order`` or ``unmarked`` of :class:`Uses`."""

    def __init__(self, order: Callable[[Uses], Order], mark: Callable[[For], Any]):
        self.order = order
        self.mark = mark
        self.found: set[Var] = set()
        self.known = True  # whether `found` has all of it

    def compare(self, old: Any, new: Any) -> None:
        """Add what differs between two statements that stand in the same loops and blocks."""
        if old is new:
            return
        if isinstance(old, SeqStmt) and isinstance(new, SeqStmt):
            kept = kept_members(old, new)
            self._differ(_apart(old, kept), _apart(new, kept))
        elif isinstance(old, For) and isinstance(new, For) and self._same_loop(old, new):
            self.compare(old.body, new.body)
        elif isinstance(old, BlockRealize) and isinstance(new, BlockRealize) and _same_realize(old, new):
            before, after = old.block, new.block
            if before.alloc_buffers is not after.alloc_buffers:
                self.found |= {b.data for b in {*before.alloc_buffers} ^ {*after.alloc_buffers}}
            if before.init is not after.init:
                self._differ([(0, _uses_of_init(before))], [(0, _uses_of_init(after))])
            self.compare(before.body, after.body)
        else:
            self._differ([(0, uses_of(old))], [(0, uses_of(new))])

    def _same_loop(self, old: For, new: For) -> bool:
        return _loop_key(old) == _loop_key(new) and self.mark(old) == self.mark(new)

    def _differ(self, old: list[tuple[int, Uses | None]], new: list[tuple[int, Uses | None]]) -> None:
        was, now = self._collect(old), self._collect(new)
        self.found |= {memory for memory in was.keys() | now.keys() if was.get(memory) != now.get(memory)}

    def _collect(self, parts: list[tuple[int, Uses | None]]) -> dict[Var, list[Any]]:
        found: dict[Var, list[Any]] = {}
        for place, uses in parts:
            if uses is None:
                self.known = False
            else:
                for memory, order in self.order(uses).items():
                    found.setdefault(memory, []).append((place, order))
        return found

    def unchanged(self) -> BufferSet:
        return _AllBut(self.found) if self.known else frozenset[Any]()


def _apart(stmt: SeqStmt, kept: Collection[Any]) -> list[tuple[int, Uses | None]]:
    """The uses of the members of a sequence that are not ``kept``, each with the number of those before it."""
    found: list[tuple[int, Uses | None]] = []
    passed = 0
    for s in stmt.stmts:
        if s in kept:
            passed += 1
        else:
            found.append((passed, uses_of(s)))
    return found


def _same_realize(old: BlockRealize, new: BlockRealize) -> bool:
    """Whether two blocks of blocks run alike, and have no views, which give memory a second name."""
    blocks = old.block, new.block
    return _realize_key(old) == _realize_key(new) and all(has_blocks(b) and not b.match_buffers for b in blocks)


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
        """Pointers of the memory whose accesses are unchanged; none if anything but blocks in loops was changed, or
        contains what was."""
        return self._unchanged(lambda uses: uses.order, _how_it_runs)

    @cached_property
    def unchanged_accesses(self) -> BufferSet:
        """As ``unchanged_buffers``, but loops around may have become parallel, vectorized or bound."""
        return self._unchanged(lambda uses: uses.unmarked, lambda loop: None)

    def _unchanged(self, order: Callable[[Uses], Order], mark: Callable[[For], Any]) -> BufferSet:
        if self.before is None:
            return frozenset[Any]()
        changes = _Changes(order, mark)
        changes.compare(self.before.body, self.after.body)
        return changes.unchanged()

    def _shared_now(self, loop: LoopRef) -> set[Var]:
        """Pointers of the buffers that ``loop``, of ``after``, had in its clause before the step, and has no longer."""
        old = None if self.before is None else index_of(self.before).loops.get(loop.var)
        return set() if old is None else {b.data for b in old.node.private if b not in loop.node.private}

    def may_clash(self, loop: LoopRef) -> bool:
        """Whether the step may have introduced a dependence carried by ``loop``, of ``after``: its iterations write
        memory whose accesses changed, or of which they had copies, or the step set its kind. For threads, only global
        memory counts. True if unknown."""
        uses = uses_of(loop.node)
        if uses is None:
            return True
        same: BufferSet = frozenset[Any]() if self.is_marked(loop) else self.unchanged_accesses
        shared = self._shared_now(loop)
        threads = loop.node.kind == THREAD_BINDING
        return any(
            (memory in shared or memory not in same)
            and (not threads or not ends_with_launch(uses.scopes.get(memory, GLOBAL)))
            for memory in uses.written
        )
