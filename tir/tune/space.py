"""The space of schedules of a program: rules, and the sketches that they make.

A rule looks at one block of a schedule and returns schedules in which that block is done, the likeliest first; an empty
list says that the block is none of its own. It uses ordinary primitives, and leaves choices open by ``choose``, which
records them as sampling steps: the schedule has the likeliest values, a candidate others. A schedule that takes long to make
may be returned as a function that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any, TypeVar

from .. import extension
from ..amx_permission import tiles_allowed
from ..analysis.contents import members_of, trimmed
from ..analysis.index import index_of
from ..cost.footprint_table import Machine
from ..errors import InternalError, ScheduleError, refusal
from ..node import cached_property
from ..schedule import Schedule
from ..stmt import BlockRealize
from ..target import GPUS, Target, VectorRegisters, threads
from ..transform.thread_axes import launch_reads_memory
from ..visit import with_recursion_limit
from .faults import Faults

PARALLEL = 1 << 20  # operations for which starting threads pays off
ODDS = 8.0  # a value that costs twice the best is drawn exp(-ODDS) times as often


@dataclass(frozen=True)
class Env:
    """What a schedule is for: the ``target``, the rates and sizes of its caches, the number of threads, and the number of
    operations from which on they are started.

    >>> import tir
    >>> env = tir.tune.Env.of("llvm -num-cores=2")
    >>> env.threads, env.target.kind, env.lanes(32) >= 1
    (2, 'llvm', True)
    """

    target: Target
    machine: Machine
    threads: int
    parallel_from: float

    @staticmethod
    def of(target: Any = "llvm") -> Env:
        """The environment of ``target``; a CPU has as many threads as parallel loops run on.

        >>> Env.of("llvm -num-cores=4").threads
        4
        """
        where = Target.of(target)
        return Env(where, Machine.of(where), where.limit("num_cores") or threads(), PARALLEL)

    @cached_property
    def vectors(self) -> VectorRegisters:
        """The CPU's vector registers."""
        return self.target.vectors

    def lanes(self, bits: int) -> int:
        """Elements of ``bits`` bits in a vector register."""
        return self.vectors.lanes(bits)

    def has(self, feature: str) -> bool:
        """Whether the CPU has a feature, by LLVM's name ("avx512vnni", "amx-bf16"), and this system lets it be used.

        >>> Env.of("llvm -mcpu=x86-64").has("avx512vnni")
        False
        """
        from codegen.build import machine_of
        from codegen.llvm.cpu_features import Needs

        allowed = not feature.startswith("amx") or tiles_allowed()
        return allowed and feature in Needs.of(machine_of(self.target)).features


Fork = Schedule | Callable[[], Schedule]  # a schedule, or what makes it when it is wanted
Apply = Callable[[Schedule, str, Env], Sequence[Fork]]


@dataclass(frozen=True)
class Rule:
    """``apply(sch, block, env)`` returns the schedules in which ``block`` is done, or none."""

    name: str
    apply: Apply
    targets: tuple[str, ...]
    order: int


_RULES: dict[str, Rule] = {}
F = TypeVar("F", bound=Apply)
R = TypeVar("R")


def rule(targets: Sequence[str] = ("llvm",), order: int = 50) -> Callable[[F], F]:
    """Register a function as a rule for the kinds of ``targets``; rules with a lower ``order`` are applied first.

    A rule of the same name replaces the one before. Packages add theirs as entry points of the group
    ``tir.tune_rules``: modules, whose import registers them.

    >>> from tir.tune import rule
    >>> @rule(targets=("llvm",), order=99)
    ... def leave_alone(sch, block, env):
    ...     return []
    >>> remove("leave_alone").order
    99
    """

    def register(apply: F) -> F:
        _RULES[apply.__name__] = Rule(apply.__name__, apply, tuple(targets), order)
        return apply

    return register


def remove(name: str) -> Rule:
    """Take the rule called ``name`` away, and return it. Raises ``KeyError`` that lists the rules there are.

    >>> import tir
    >>> @tir.tune.rule(order=90)
    ... def never(sch, block, env):
    ...     return []
    >>> tir.tune.remove("never").name
    'never'
    """
    if name not in _RULES:
        raise KeyError(f"no rule is called {name!r}; there are {', '.join(sorted(_RULES))}")
    return _RULES.pop(name)


def rules_of(target: Target) -> list[Rule]:
    """The rules for ``target``, in the order in which they are applied."""
    extension.load_files("tir.tune.rules")
    extension.load(extension.TUNE_RULES)
    return sorted((r for r in _RULES.values() if target.kind in r.targets), key=lambda r: (r.order, r.name))


def choose(sch: Schedule, values: Sequence[int], costs: Sequence[float]) -> Any:
    """The cheapest of ``values``, as a sampling step of ``sch``; a search draws others, the costlier the more rarely.

    An integer that remembers where it came from: what is computed from it is computed anew from another draw.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.softmax(8, 16))
    >>> int(sch.get(tir.tune.choose(sch, [4, 8, 16], [1.5, 1.0, 2.0])))
    8
    """
    best = min(costs)
    odds = [exp(-ODDS * (cost / best - 1)) for cost in costs]
    return sch.sample_categorical(list(values), [o / sum(odds) for o in odds], decision=list(costs).index(best))


def accepted(step: Callable[..., Any], *args: Any) -> bool:
    """Whether a step is accepted, which is then taken: one that is asked for by ``sch.can`` first is checked twice.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.row_sum(8, 16))
    >>> accepted(sch.reverse_compute_inline, "total"), accepted(sch.parallel, sch.get_loops("total")[0])
    (False, True)
    """
    error = refusal(lambda: step(*args))
    if isinstance(error, InternalError):
        raise error
    return error is None


@dataclass(frozen=True)
class Decision:
    """What a rule made of a block of the schedule ``before``: ``fuses`` if blocks are computed together that were apart. ``rest`` is
    what comes after it: the number of the rule, and the blocks that are left for it."""

    rule: str
    block: str
    before: Schedule
    fuses: bool
    rest: tuple[int, tuple[str, ...]]


@dataclass(frozen=True)
class Made:
    """A schedule, and the decisions that made it, in order."""

    schedule: Schedule
    decisions: tuple[Decision, ...]


@dataclass
class Space:
    """The space of a program for ``env``: ``dropped`` counts by rule the schedules that a step refused; ``faults`` are the
    other errors that rules raised."""

    env: Env
    rules: list[Rule]
    dropped: dict[str, int] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)

    def forks(self, one: Rule, sch: Schedule, block: str) -> list[Schedule]:
        """What a rule makes of a block; schedules of which a step is refused are left out and counted."""
        made = (self._made(one, fork) for fork in self._offers(one, sch, block))
        return [m for m in made if m is not None]

    def schedule(self, sch: Schedule, pick: Callable[[int], int]) -> Schedule:
        """``sch`` with one result of every rule, each applied to all blocks, last to first.

        ``pick(n)`` says which of ``n`` results is tried first, from 0, the likeliest, to the last one, which leaves the block as it is;
        one that is refused gives way to the others.
        """
        return self.made(sch, pick).schedule

    def made(self, sch: Schedule, pick: Callable[[int], int], left: Collection[tuple[str, str]] = ()) -> Made:
        """As :meth:`schedule`, with its decisions; those in ``left``, by rule and block, are not taken."""
        return self._continued(sch, pick, left, (0, None))

    def without(self, one: Decision, made: Made, left: Collection[tuple[str, str]]) -> Made:
        """``made`` by the likeliest results, but for a decision and those in ``left``: the block is for the rules after it, or
        stays as it is."""
        kept = made.decisions[: made.decisions.index(one)]
        after = self._continued(one.before, likeliest_offer, left, one.rest)
        return Made(after.schedule, (*kept, *after.decisions))

    @with_recursion_limit
    def _continued(
        self,
        sch: Schedule,
        pick: Callable[[int], int],
        left: Collection[tuple[str, str]],
        start: tuple[int, Sequence[str] | None],
    ) -> Made:
        """The results from a rule on, for all blocks or (of this rule) for some."""
        decisions: list[Decision] = []
        first, some = start
        for number, one in enumerate(self.rules[first:], first):
            names = tuple(reversed(block_names(sch))) if some is None or number > first else tuple(some)
            for at, block in enumerate(names):
                if (one.name, block) in left:
                    continue
                before, sch = sch, self._picked(one, sch, block, pick)
                if sch is not before:
                    rest = (number, names[at + 1 :])
                    decisions.append(Decision(one.name, block, before, _joins(before, sch), rest))
        return Made(sch, tuple(decisions))

    def _picked(self, one: Rule, sch: Schedule, block: str, pick: Callable[[int], int]) -> Schedule:
        """What a rule makes of a block: the offer that is picked, or the next ones where a step of it is refused."""
        offers = list(self._offers(one, sch, block))
        at = pick(len(offers) + 1) if offers else 0
        if at == len(offers):
            return sch
        offers = [*offers[at : at + 1], *offers[:at], *offers[at + 1 :]]
        return next((m for m in (self._made(one, fork) for fork in offers) if m is not None), sch)

    def _offers(self, one: Rule, sch: Schedule, block: str) -> Sequence[Fork]:
        return self._tried(one, lambda: _offered(one, sch, block, self.env)) or ()

    def _made(self, one: Rule, fork: Fork) -> Schedule | None:
        made = self._tried(one, lambda: as_schedule(fork() if callable(fork) else fork))
        if made is not None and self.env.target.kind in GPUS and launch_reads_memory(made.func.body):
            self.dropped[one.name] = self.dropped.get(one.name, 0) + 1
            return None
        return made

    def _tried(self, one: Rule, call: Callable[[], R]) -> R | None:
        """What a rule makes; None if it raises, which is noted whatever it is."""
        try:
            return call()
        except ScheduleError:
            self.dropped[one.name] = self.dropped.get(one.name, 0) + 1
        except Exception as error:
            self.faults.add(f"rule {one.name}", error)
        return None

    def first(self, sch: Schedule) -> Schedule:
        """``sch`` with the likeliest result of every rule."""
        return self.schedule(sch, likeliest_offer)


def likeliest_offer(count: int) -> int:
    """The number of the offer that a rule names first."""
    return 0


def _offered(one: Rule, sch: Schedule, block: str, env: Env) -> list[Fork]:
    """What a rule offers. Raises ``ValueError`` if it takes steps in the schedule that it gets; these are undone."""
    before = len(sch.states)
    try:
        return list(one.apply(sch, block, env) or ())
    finally:
        taken = len(sch.states) - before
        if taken:
            sch.undo(taken)
            raise ValueError("it took steps in the schedule that it was given; take them in a copy: made = sch.copy()")


def as_schedule(made: Any) -> Schedule:
    """``made`` if it is a schedule. Raises ``TypeError`` for what a rule or a space returned instead."""
    if not isinstance(made, Schedule):
        raise TypeError(f"it returned {made!r}, where a schedule is wanted")
    return made


def _joins(before: Schedule, after: Schedule) -> bool:
    """Whether blocks that had outermost loops of their own share one now."""
    old, new = (_members(sch) for sch in (before, after))
    _, gone, made = trimmed(old, new)
    then, now = _outermost(before, gone), _outermost(after, made)
    kept = [(now[name], then[name]) for name in now if name in then]
    return len({loop for loop, _ in kept}) < len(set(kept))


def _members(sch: Schedule) -> tuple[Any, ...]:
    """The statements in the root block of the function."""
    root = sch.func.body
    return members_of(root.block.body) if isinstance(root, BlockRealize) else (root,)


def _outermost(sch: Schedule, members: Sequence[Any]) -> dict[str, Any]:
    """The outermost loop of each block in some of these that has one."""
    index = index_of(sch.func)
    refs = [ref for s in members for ref in index.blocks_below(index.place(s))]
    return {ref.name: loops[0].var for ref in refs if (loops := ref.loops())}


def block_names(sch: Schedule) -> list[str]:
    """The blocks in the root block of the function, in program order."""
    index = index_of(sch.func)
    return [name for name, ref in index.blocks.items() if ref.scope is not None and ref.scope.scope is None]


def space_of(target: Any = "llvm") -> Space:
    """The rules for ``target``, and what they know of it."""
    env = Env.of(target)
    return Space(env, rules_of(env.target))
