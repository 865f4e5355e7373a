"""Invariants: what must hold of a scheduled program after every step.

An :class:`Invariant` finds problems in a program, given the :class:`Delta` of the step: what it changed, and
what its primitive declares to preserve (:class:`Keeps`). :func:`check_step` checks only the invariants that the step
may have violated, and accepts a problem that the program had before.

A package outside registers its own in modules that it lists
as entry points of group ``tir.invariants``::

    @invariant(kept_by=Keeps.ACCESSES)
    def few_loops(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
        '''A function has at most a hundred loops.'''
        if len(index_of(after).loops) > 100:
            yield Problem("loops", "the function would have more than a hundred loops")
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ... import extension
from ...analysis import wellformed
from ...analysis.contents import added
from ...analysis.index import LoopRef, index_of
from ...analysis.private_clause import with_needed_private
from ...buffer import Buffer
from ...errors import InternalError, ScheduleError
from ...expr import Var
from ...function import IRModule, PrimFunc
from ...levels import ends_with_launch
from ...node import cached_property
from ...stmt import PARALLEL, THREAD_BINDING, VECTORIZED, For, Stmt, defined_by, first_line
from ...visit import nodes_of
from .changed_accesses import MARKED, UNMARKED, BufferSet, Uses, written

if TYPE_CHECKING:
    from ...target import Target


Kept = frozenset[str]


class Keeps:
    """What a primitive declares to preserve, so that it is not proved again after its steps: sets, to be joined by ``|``."""

    NOTHING: Kept = frozenset()
    ACCESSES: Kept = frozenset({"accesses"})
    """Each iteration of each parallel or vectorized loop touches the elements that it touched before, and a loop that
    becomes parallel or vectorized has been proved independent by the check."""
    BOUND: Kept = frozenset({"bound"})
    """Each iteration of each bound loop touches what it touched before, and a loop that becomes bound has been proved
    independent by the check."""
    THREADS: Kept = BOUND | {"threads"}
    """Each thread touches what it touched before, and no loop becomes bound."""
    KERNELS: Kept = THREADS | {"kernels"}
    """So do threads, and the instances of statements run in the order in which they ran before."""
    LOOPS: Kept = frozenset({"loops"})
    """No loop is made, split or fused, so what could be proved about the loops' bodies still can be."""
    FORM: Kept = frozenset({"form"})
    """At most annotations change, and which loops are serial, parallel, vectorized or unrolled: what is defined where, and
    used, is as it was."""
    MEANING: Kept = frozenset({"meaning"})
    """The program means what it meant, by the word of the user: the step has ``unsafe=True``."""


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

    def definition_before(self, what: Var | Buffer) -> Stmt | None:
        """The statement that made a value, a buffer or its memory before the step, for what is in it."""
        nodes, names = () if self.before is None else nodes_of(self.before.body), (what, getattr(what, "data", what))
        return next((n for n in nodes if any(defined_by(n) is name for name in names)), None)

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
        nodes = index_of(self.after).nodes if self.before is None else added(self.before.body, self.after.body)
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

    def _unchanged(self, uses: Uses) -> BufferSet:
        if self.before is None:
            return frozenset[Any]()
        return uses.unchanged(self.before, self.after)

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
            for memory, scope in written(loop.node)
        )

    def with_needed_clauses(self) -> PrimFunc:
        """The program after the step, with the clauses that parallel and vectorized loops need since then: what makes
        their iterations independent is written down, and not proved again."""
        changed = () if self.keeps >= Keeps.ACCESSES else self.changed_loops((PARALLEL, VECTORIZED))
        loops = list(filter(self.may_clash, changed))
        return with_needed_private(self.after, loops) if loops else self.after


@dataclass(frozen=True)
class Problem:
    """A violation in a program. Two problems with the same ``about`` are the same, if ``excess`` is no larger."""

    about: Any
    rule: str
    witness: Sequence[str] = ()
    nodes: Sequence[Any] = ()
    legal: str = ""
    excess: int = 0
    kind: type[ScheduleError] = ScheduleError

    def error(self, func: PrimFunc) -> ScheduleError:
        return self.kind(self.rule, witness=list(self.witness), nodes=list(self.nodes), func=func, legal=self.legal)


@dataclass(frozen=True, eq=False)
class Invariant:
    """A property of programs, and what a step must preserve to preserve it.

    ``problems(after, delta)`` yields the violations in ``after``; it may skip what ``delta`` shows to be unchanged.
    ``kept_by``: a step whose primitive keeps all of this preserves the invariant. ``loops``: it is about loops of these
    kinds, and a step that changes none of them preserves it. ``proof``: it concerns the meaning of the program, and a step
    that keeps that preserves it.
    """

    name: str
    problems: Callable[[PrimFunc, Delta], Iterable[Problem]]
    kept_by: Kept | None = None
    loops: Collection[str] = ()
    proof: bool = True

    def is_kept(self, keeps: Kept, kinds: Collection[str]) -> bool:
        """Whether a step preserves the invariant that preserves ``keeps`` and changes loops of ``kinds``."""
        if self.kept_by is not None and self.kept_by <= keeps:
            return True
        if self.proof and keeps >= Keeps.MEANING:
            return True
        return bool(self.loops) and frozenset(self.loops).isdisjoint(kinds)

    def holds(self, after: PrimFunc, delta: Delta) -> Problem | None:
        """None if the invariant holds after the step; otherwise a problem that the program did not have before."""
        if self.is_kept(delta.keeps, delta.changed_kinds):
            return None
        for problem in self.problems(after, delta):
            if not self._had(problem, delta):
                return problem
        return None

    def _had(self, problem: Problem, delta: Delta) -> bool:
        """Whether the program had this problem before the step: an earlier ``unsafe`` step introduced it."""
        if delta.before is None:
            return False
        earlier = delta.start()
        found = self.problems(earlier.after, earlier)
        return any(p.about == problem.about and p.excess >= problem.excess for p in found)


INVARIANTS: dict[str, Invariant] = {}


def invariant(
    *, kept_by: Kept | None = None, loops: Collection[str] = (), proof: bool = True
) -> Callable[[Callable[[PrimFunc, Delta], Iterator[Problem]]], Invariant]:
    """Register a generator of problems as the invariant of its name, checked after every step of every schedule."""

    def register(problems: Callable[[PrimFunc, Delta], Iterator[Problem]]) -> Invariant:
        name = problems.__name__
        INVARIANTS[name] = Invariant(name, problems, kept_by, loops, proof)
        return INVARIANTS[name]

    return register


def check_step(delta: Delta, also: Sequence[Invariant] = ()) -> None:
    """Raise ``ScheduleError`` if the step violates an invariant, or one of ``also``, which are of this schedule only."""
    _load()
    for each in _in_question((*INVARIANTS.values(), *also), delta.keeps, delta.changed_kinds):
        problem = each.holds(delta.after, delta)
        if problem is not None:
            raise problem.error(delta.after)


@lru_cache
def _in_question(known: tuple[Invariant, ...], keeps: Kept, kinds: frozenset[str]) -> list[Invariant]:
    """Those of the ``known`` invariants, in order, that a step may violate."""
    return [each for each in known if not each.is_kept(keeps, kinds)]


@invariant(kept_by=Keeps.FORM, proof=False)
def well_formed(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """The program keeps the rules of :func:`tir.analysis.wellformed.check`. The other invariants take it to."""
    for problem in wellformed.check(after):
        what = problem.undefined
        made = None if what is None else delta.definition_before(what)
        if what is not None and made is not None:
            rule = f"`{what.name}` would be used outside of `{first_line(made)}`, which defines it"
            yield Problem(problem.message, rule)
            continue
        if problem.bound is not None:
            inner, outer = problem.node.loop_var.name, problem.bound.loop_var.name
            yield Problem(
                problem.message,
                f"loop {inner} would be in loop {outer}, which is bound to {problem.node.thread} too: {problem.message}",
                nodes=[problem.bound, problem.node],
                legal="bind one of them to another axis before",
            )
            continue
        yield Problem(
            problem.message,
            f"a fault inside {delta.primitive}: it would give a malformed program ({problem}); the schedule is unchanged. "
            "Please report it with the program",
            kind=InternalError,
        )


@lru_cache(None)
def _load() -> None:
    """Import the modules that register invariants: those of this package, and those from entry points."""
    modules = [__name__, *sorted(f"{__name__}.{m.name}" for m in pkgutil.iter_modules(__path__))]
    for name in modules:
        importlib.import_module(name)
    extension.require(extension.INVARIANTS)
    # in this order whatever was imported before
    places = {name: place for place, name in enumerate(modules)}
    ordered = sorted(INVARIANTS.items(), key=lambda item: places.get(item[1].problems.__module__, len(places)))
    INVARIANTS.clear()
    INVARIANTS.update(ordered)
