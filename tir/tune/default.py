"""The schedule that a program gets at once: the first result of every rule, unless the model expects more of less."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ..analysis.index import index_of
from ..collecting import seldom_collected
from ..function import HasProgram, IRModule, PrimFunc
from ..schedule import Schedule
from ..schedule.constants import at_each_call, constant_parameters
from ..schedule.queries import consumers_of, producers_of
from ..target import GPUS
from ..visit import with_recursion_limit, with_room
from .cost_model import Prediction, predict
from .nest import usual
from .space import Decision, Made, Space, likeliest_offer, space_of
from .versions import in_versions

TRIES = 3  # decisions of each kind that are tried the other way: the last ones
GAIN = 0.8  # of the time that the model has to expect without a fusion: its usual error, and memory that fusing saves
GROWTH = 1.2  # times the bytes that are read at each call, which padding may add
LESS = 0.7  # of the time that it has to expect without another decision
PLAIN = 0.8  # of the time that it has to expect of the plain program, which no schedule should be much slower than
# Times the floor of a program: of what takes less than that, only the plain program has been faster by enough. What reads or writes
# each argument once, in L3, takes twice the floor, of which writing may be half.
NEAR = 2.2


@with_recursion_limit
@with_room
@seldom_collected
def default(mod: PrimFunc | IRModule | HasProgram, target: Any = "llvm") -> Schedule:
    """A schedule of every function of ``mod`` for ``target``, without measuring anything.

    On a CPU: producers are inlined where that repeats no work, loops are vectorized along contiguous memory, reductions
    become independent partial results in vectors, and large nests run on all cores. On a GPU (``"cuda"``,
    ``"cuda-sim"``): loops are bound to blocks and threads. Blocks are computed together only where the model (:func:`tir.tune.predict`)
    does not expect that to take longer, and a CPU gets the program as it is where that should be fastest. Blocks that no rule
    knows stay as they are; a function of symbolic sizes has versions for short and for long ones where the rules make something else
    of them, and which runs is decided at entry. A rule that raises anything but a refused step is left out, with a ``RuntimeWarning``.

    >>> import tir
    >>> from tir.library import elementwise
    >>> sch = default(elementwise.gelu_chain(1000))
    >>> [b.name for b in sch.get_child_blocks("root")]
    ['out']
    """
    return of_each(mod, space_of(target), usual_schedule)


def likeliest(mod: PrimFunc | IRModule | HasProgram, space: Space) -> Schedule:
    """The likeliest result of every rule of ``space`` that the model takes for a gain, for every function of ``mod``; in one version."""
    return of_each(mod, space, _least)


def of_each(
    mod: PrimFunc | IRModule | HasProgram, space: Space, made: Callable[[Schedule, Space], Schedule]
) -> Schedule:
    """What is ``made`` of every function of ``mod``."""
    sch = Schedule(IRModule.of(mod), seed=0, target=space.env.target, error_render_level="none")
    if len(sch.mod) == 1:
        return made(sch, space)
    for name in sch.mod:
        sch.work_on(name)
        sch = made(sch, space)
    return sch


def usual_schedule(begin: Schedule, space: Space) -> Schedule:
    """As :func:`_least`; on a CPU in versions for short and for long sizes, without a trace, where these differ."""
    best = _least(begin, space)
    if space.env.target.kind in GPUS:
        return best
    func = in_versions(begin.func, best.func, lambda: _least(begin, space).func, space.env.lanes(32))
    if func is None:
        return best
    mod = begin.mod.with_function(begin.func_working_on, func)
    made = Schedule(mod, seed=0, target=space.env.target, error_render_level="none")
    made.work_on(begin.func_working_on)
    return made


def _least(begin: Schedule, space: Space) -> Schedule:
    """The least prediction of: the likeliest results, these without some of the decisions, and (on a CPU) the plain program. What
    is less than the likeliest results has to be faster by more than the model errs."""
    best = space.made(begin, likeliest_offer)
    found = predict(best.schedule, space.env) if best.decisions else None  # as it is, there is nothing to choose from
    if found is None:
        return best.schedule
    on_cpu = space.env.target.kind not in GPUS
    if found.seconds > NEAR * found.floor:
        best, found = _without_some(best, found, space, on_cpu)
    is_best = not on_cpu or PLAIN * found.seconds <= found.floor
    return best.schedule if is_best or predict(begin, space.env, below=PLAIN * found.seconds) is None else begin


def _without_some(best: Made, found: Prediction, space: Space, on_cpu: bool) -> tuple[Made, Prediction]:
    """``best``, which ``found`` is predicted of, or what the model expects to be faster by enough without some of its decisions."""
    left: list[tuple[str, str]] = []
    for fuses, gain in ((True, GAIN), (False, LESS))[: 1 + on_cpu]:
        for one in [d for d in best.decisions if d.fuses is fuses][: -TRIES - 1 : -1]:
            if one not in best.decisions or gain * found.seconds <= found.least(_elsewhere(one, best, found)):
                continue  # without another decision, there is none of it; or no schedule is faster by so much
            other = space.without(one, best, [*left, (one.rule, one.block)])
            shorter = predict(other.schedule, space.env, below=gain * found.seconds)
            if shorter is not None and not _grows(best.schedule, other.schedule):
                best, found = other, shorter
                left.append((one.rule, one.block))
    return best, found


def _elsewhere(one: Decision, made: Made, found: Prediction) -> float:
    """Seconds of the blocks that a decision leaves as they are: all but its own, those that read or (where it is not inlined) write what that
    has, and what became of these. Where it joins loops, no block counts as left."""
    if one.fuses:
        return 0.0
    decisions = list(made.decisions)
    after = [*(d.before for d in decisions[1:]), made.schedule]
    of: dict[str, str] = {}  # the block of the program that others were made for
    for decision, then in zip(decisions, after):
        for name in index_of(decision.before.func).blocks:
            of.setdefault(name, name)
        for name in index_of(then.func).blocks:
            of.setdefault(name, of[decision.block])
    block = index_of(one.before.func).blocks[one.block]
    is_inlined = one.block not in index_of(after[decisions.index(one)].func).blocks
    near = [block, *consumers_of(block), *(() if is_inlined else producers_of(block))]
    names = {of[ref.block.name] for ref in near}
    return sum(seconds for name, seconds in found.blocks.items() if of.get(name) not in names)


def _grows(one: Schedule, other: Schedule) -> bool:
    """Whether ``other`` keeps more bytes of what is made of constants once, such as a byte for each of two weights in one."""
    sizes = [
        sum(b.dtype.bytes * prod(usual(s) for s in b.shape) for b in at_each_call(sch.func).buffers())
        for sch in (one, other)
        if constant_parameters(sch.func)
    ]
    return bool(sizes) and sizes[1] > GROWTH * sizes[0]
