"""What must hold of a scheduled program after every step.

An :class:`Invariant` finds problems in a program, given the :class:`~.delta.Delta` of the step: what it changed, and
what its primitive promises to keep (:class:`Keeps`). The loop over all of them, :func:`check_step`, asks only what the
step may have broken, and accepts a problem that the program had before.

A package outside registers its own in modules that it names
as entry points of group ``tir.invariants``::

    @invariant(kept_by=Keeps.ACCESSES)
    def few_loops(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
        '''A function has at most a hundred loops.'''
        if len(index_of(after).loops) > 100:
            yield Problem("loops", "the function would have more than a hundred loops")
"""

from __future__ import annotations

import enum
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ... import extension
from ...errors import ScheduleError
from ...function import PrimFunc

if TYPE_CHECKING:
    from .delta import Delta


class Keeps(enum.Flag):
    """What a primitive promises to preserve, so that it is not proved anew after its steps."""

    NOTHING = 0
    ACCESSES = enum.auto()
    """Each iteration of each parallel or vectorized loop touches the elements that it touched before, and a loop that
    becomes parallel or vectorized has been proved independent by the check."""
    THREADS = enum.auto()
    """Each thread touches what it touched before, and no loop becomes bound."""
    LOOPS = enum.auto()
    """No loop is made, split or fused, so what could be proved about the loops' bodies still can be."""


@dataclass(frozen=True)
class Problem:
    """What is wrong with a program. Two problems with one ``about`` are the same one, if ``excess`` is no larger."""

    about: Any
    rule: str
    witness: Sequence[str] = ()
    nodes: Sequence[Any] = ()
    legal: str = ""
    excess: int = 0

    def error(self, func: PrimFunc) -> ScheduleError:
        return ScheduleError(
            self.rule, witness=list(self.witness), nodes=list(self.nodes), func=func, legal=self.legal
        )  # fmt: skip


@dataclass(frozen=True)
class Invariant:
    """A property of programs, with what it needs to stay true.

    ``problems(after, delta)`` yields what is wrong with ``after``; it may leave out what ``delta`` shows to be as it was
    before. ``kept_by``: a step whose primitive keeps all of this cannot break it. ``proof``: it is about the meaning of
    the program, which a step with ``unsafe=True`` is not asked to prove.
    """

    name: str
    problems: Callable[[PrimFunc, Delta], Iterable[Problem]]
    kept_by: Keeps | None = None
    proof: bool = True

    def holds(self, after: PrimFunc, delta: Delta) -> Problem | None:
        """None where it holds after the step; else a problem that the program did not have before."""
        if self.kept_by is not None and self.kept_by in delta.keeps:
            return None
        for problem in self.problems(after, delta):
            if not self._had(problem, delta):
                return problem
        return None

    def _had(self, problem: Problem, delta: Delta) -> bool:
        """Whether the program had this problem before the step: another one, taken as ``unsafe``, brought it about."""
        if delta.before is None:
            return False
        earlier = delta.start()
        found = self.problems(earlier.after, earlier)
        return any(p.about == problem.about and p.excess >= problem.excess for p in found)


INVARIANTS: dict[str, Invariant] = {}


def invariant(
    *, kept_by: Keeps | None = None, proof: bool = True
) -> Callable[[Callable[[PrimFunc, Delta], Iterator[Problem]]], Invariant]:
    """Register a generator of problems as the invariant of its name, checked after every step of every schedule."""

    def register(problems: Callable[[PrimFunc, Delta], Iterator[Problem]]) -> Invariant:
        name = problems.__name__
        INVARIANTS[name] = Invariant(name, problems, kept_by, proof)
        return INVARIANTS[name]

    return register


def check_step(delta: Delta, proved: bool = True, also: Sequence[Invariant] = ()) -> None:
    """Raise ``ScheduleError`` where an invariant holds no more after the step.

    ``proved`` False: the step was asked for with ``unsafe=True``. ``also``: invariants of this schedule only.
    """
    _load()
    for each in (*INVARIANTS.values(), *also):
        if proved or not each.proof:
            problem = each.holds(delta.after, delta)
            if problem is not None:
                raise problem.error(delta.after)


_FIRST = "wellformedness"  # the others read the program and take it to be well-formed


@lru_cache(None)
def _load() -> None:
    """Import the modules that register invariants: all of this package, and those that packages outside name."""
    names = sorted((m.name for m in pkgutil.iter_modules(__path__)), key=lambda name: (name != _FIRST, name))
    for name in names:
        importlib.import_module(f"{__name__}.{name}")
    extension.load(extension.INVARIANTS)
