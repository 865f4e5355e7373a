"""What a step changed: new and changed loops, and the memory whose accesses changed.

Memory that the same blocks access, in the same loops and in the same order, is unchanged: what was proved of it before
the step still holds, whatever else the step did.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...analysis.effects import effects
from ...analysis.index import BlockRef, LoopRef, Place, index_of, sub_statements
from ...expr import BufferLoad, IntImm, Var
from ...function import IRModule, PrimFunc
from ...node import Memo
from ...stmt import THREAD_BINDING, Block, BlockRealize, For, SeqStmt, Stmt
from ...visit import walk
from . import Keeps

if TYPE_CHECKING:
    from ...target import Target

BufferSet = frozenset[Var]  # pointers of buffers


class Uses:
    """The accesses of each buffer in a function; unknown if it contains anything but blocks in loops."""

    def __init__(self, func: PrimFunc):
        self.index = index_of(func)
        self.around: dict[Any, Any] = {}  # a place and what is around it, comparable
        self.seen: dict[Var, int] = {}
        self.of: dict[Var, list[Any]] = {}
        self.unmarked: dict[Var, list[Any]] = {}  # the same, whatever the loops' kinds
        self.written: dict[LoopRef, set[Var]] = {}  # what blocks under a loop may write
        self.scopes: dict[Var, str] = {}
        self.plain = self._collect(self.index.root)

    def _collect(self, place: Place) -> bool:
        """Add the statements under ``place``; false if they are not only blocks in loops."""
        node: Any = place.node
        if place.parent is not None and place.parent not in self.around:
            return False  # one statement object stands in two places, of which the index has the last
        outer = (None, None) if place.parent is None else self.around[place.parent]
        mine: Any = None
        mark: Any = None
        below = sub_statements(node)
        if isinstance(node, For):
            # of loops with one variable, each is another
            self.seen[node.loop_var] = self.seen.get(node.loop_var, 0) + 1
            count = self.seen[node.loop_var]
            mine = (id(node.loop_var), count, id(node.min), id(node.extent))
            mark = (node.kind, node.thread)
            if _loads(node.min) or _loads(node.extent):
                return False
        elif isinstance(node, BlockRealize):
            assert isinstance(place, BlockRef)
            if not place.children and not any(isinstance(n, BlockRealize) for n in walk(node.block.body)):
                self._add(node, place, outer)
                return True
            if any(_loads(e) for e in (node.predicate, *node.iter_values)):
                return False
            mine = (node.block.name, id(node.predicate), id(node.block.iter_vars), *map(id, node.iter_values))
        elif isinstance(node, Block):
            if node.match_buffers:
                return False
            if node.init is not None and not any(isinstance(n, BlockRealize) for n in walk(node.init)):
                self._add(node.init, place, outer)
                below = (node.body,)
            for buffer in node.alloc_buffers:
                self._use(buffer.data, buffer, outer)
        elif not isinstance(node, SeqStmt):
            return False
        self.around[place] = outer if mine is None else ((outer[0], mine, mark), (outer[1], mine))
        return all(self._collect(self.index.places[child]) for child in below)

    def _add(self, stmt: Stmt, place: Place, outer: Any) -> None:
        """Add what ``stmt``, at or in ``place``, touches in one run."""
        touched = effects(stmt)
        for memory in touched.reads | touched.writes:
            self._use(memory, stmt, outer)
        for loop in place.all_loops():
            self.written.setdefault(loop, set()).update(touched.writes)
        self.scopes.update((e.buffer.data, e.buffer.scope) for e in touched)

    def _use(self, memory: Var, node: Any, outer: Any) -> None:
        self.of.setdefault(memory, []).append((id(node), outer[0]))
        self.unmarked.setdefault(memory, []).append((id(node), outer[1]))


def _loads(e: Any) -> bool:
    return not isinstance(e, (IntImm, Var)) and any(isinstance(n, BufferLoad) for n in walk(e))


_USES: Memo[Uses] = Memo()


def uses_of(func: PrimFunc) -> Uses:
    """The accesses of memory in ``func``, computed once for each function object."""
    found = _USES.get(func)
    if found is None:
        found = _USES[func] = Uses(func)
    return found


class Delta:
    """What changed in one function between two programs, ``before`` None standing for the empty one.

    ``keeps`` is what the primitive that made ``after`` declares to preserve. ``modules`` are those that contain the
    programs as function ``name``, and ``target`` is the target of the schedule, if there are any.
    """

    def __init__(
        self,
        before: PrimFunc | None,
        after: PrimFunc,
        keeps: Keeps = Keeps.NOTHING,
        *,
        primitive: str = "",
        name: str = "main",
        modules: tuple[IRModule, IRModule] | None = None,
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

    def changed_loops(self, kinds: Collection[str] | None = None) -> list[LoopRef]:
        """Loops of ``after``, of these kinds, that are new or changed."""
        known: Any = () if self.before is None else index_of(self.before).places
        loops = index_of(self.after).loops.values()
        return [ref for ref in loops if (kinds is None or ref.node.kind in kinds) and ref.node not in known]

    def new_loops(self) -> list[LoopRef]:
        """Loops of ``after`` whose variables no loop had before."""
        known: Any = () if self.before is None else index_of(self.before).loops
        return [ref for ref in index_of(self.after).loops.values() if ref.var not in known]

    def is_marked(self, loop: LoopRef) -> bool:
        """Whether the step gave ``loop``, of ``after``, its kind."""
        old = None if self.before is None else index_of(self.before).loops.get(loop.var)
        return old is None or (old.node.kind, old.node.thread) != (loop.node.kind, loop.node.thread)

    @cached_property
    def unchanged_buffers(self) -> BufferSet:
        """Pointers of the memory whose accesses are unchanged; none if the programs contain anything but blocks in
        loops."""
        return self._unchanged(lambda uses: uses.of)

    @cached_property
    def unchanged_accesses(self) -> BufferSet:
        """As ``unchanged_buffers``, but loops around may have become parallel, vectorized or bound."""
        return self._unchanged(lambda uses: uses.unmarked)

    def _unchanged(self, of: Callable[[Uses], dict[Var, list[Any]]]) -> BufferSet:
        if self.before is None:
            return frozenset()
        old, new = uses_of(self.before), uses_of(self.after)
        if not (old.plain and new.plain):
            return frozenset()
        return frozenset(memory for memory, uses in of(new).items() if of(old).get(memory) == uses)

    def may_clash(self, loop: LoopRef) -> bool:
        """Whether the step may have introduced a dependence carried by ``loop``, of ``after``: its iterations write
        memory whose accesses changed, or the step set its kind. For threads, only global memory counts. True if
        unknown."""
        uses = uses_of(self.after)
        if not uses.plain:
            return True
        found = uses.written.get(loop, set())
        if not self.is_marked(loop):
            found = found - self.unchanged_accesses
        threads = loop.node.kind == THREAD_BINDING
        return any(not threads or uses.scopes.get(memory, "global") == "global" for memory in found)
