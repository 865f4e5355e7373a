"""Sampling for search: random tile sizes and choices, recorded in the trace and replaceable on replay."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ...analysis.index import LoopRef
from ...arith.divide import divisors
from ...errors import require
from ...expr import IntImm
from ..handles import ExprRV
from ..primitive import primitive
from ..state import State


@dataclass(frozen=True)
class SamplePlan:
    """The snapshot with the advanced random state, the values drawn (None: ``split`` infers it), and the decision for the
    trace."""

    state: State
    values: tuple[Any, ...]
    recorded: dict[str, Any]


def _check_sample_categorical(
    state: State, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
) -> SamplePlan:
    """Draw one of ``candidates`` with probabilities ``probs``; the trace records its index as ``decision``.

    Raises ``ScheduleError`` when the lists differ in length, a probability is negative or all are zero, or the decision
    is not an index.

    >>> import tir
    >>> from tir.script import tir as T
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((4,), "float32")):
    ...     for i in range(4):
    ...         with T.block("A"):
    ...             vi = T.axis.spatial(4, i)
    ...             A[vi] = T.float32(1)
    ... ''')
    >>> int(tir.Schedule(f, seed=1).sample_categorical([4, 8], [0.0, 1.0]))
    8
    """
    require(len(candidates) == len(probs) > 0,
            "{0} candidates but {1} probabilities",
            len(candidates), len(probs), legal="one probability for each candidate")  # fmt: skip
    require(all(p >= 0 for p in probs) and sum(probs) > 0,
            "probabilities must be at least 0 and not all 0", legal="numbers of 0 or more, one of them positive")  # fmt: skip
    after, generator = state.draw()
    if decision is None:
        decision = generator.choices(range(len(candidates)), weights=list(probs))[0]
    require(0 <= decision < len(candidates),
            "decision {0} is not an index of {1} candidates",
            decision, len(candidates), legal=f"0 to {len(candidates) - 1}")  # fmt: skip
    return SamplePlan(after, (int(candidates[decision]),), {"decision": int(decision)})


@primitive(check=_check_sample_categorical)
def sample_categorical(state: State, plan: SamplePlan) -> tuple[State, ExprRV]:
    return plan.state, ExprRV(plan.values[0])


def _check_sample_perfect_tile(
    state: State, loop: LoopRef, n: int, max_innermost_factor: int = 16, decision: Sequence[int | None] | None = None
) -> SamplePlan:
    """Draw ``n`` factors whose product is the extent of ``loop``, the last at most ``max_innermost_factor``.

    Every such tiling is equally likely. The factors can be passed to ``split``; the trace records them as ``decision``.
    A loop of symbolic extent has one tiling: None, which ``split`` infers, then ones. Raises ``ScheduleError`` for a
    decision whose product is not the extent.

    >>> import tir
    >>> from tir import te
    >>> A = te.placeholder((16,), name="A")
    >>> sch = tir.Schedule(te.create_prim_func([A, te.compute((16,), lambda i: A[i] * 2.0, "B")]), seed=0)
    >>> outer, inner = sch.sample_perfect_tile("i", n=2, max_innermost_factor=4)
    >>> int(outer) * int(inner), int(inner) <= 4
    (16, True)
    >>> [loop.name for loop in sch.split("i", [outer, inner])]
    ['i_0', 'i_1']
    """
    require_factors(n)
    extent = loop.node.extent
    after, generator = state.draw()
    if not isinstance(extent, IntImm):
        values = (None, *[1] * (n - 1))
        require(decision is None or tuple(decision) == values,
                "decision {0} is not {1}, the tiling of loop {2}, whose extent {3} is symbolic",
                decision, list(values), loop.node, extent, nodes=())  # fmt: skip
        return SamplePlan(after, values, {"decision": list(values)})
    if decision is None:
        decision = draw_tiling(generator, extent.value, n, max_innermost_factor)
    factors = tuple(int(f) for f in decision if f is not None)
    require(len(decision) == len(factors) == n and prod(factors) == extent.value,
            "decision {0} is not {1} factors of the extent {2} of loop {3}",
            list(decision), n, extent.value, loop.node, nodes=())  # fmt: skip
    return SamplePlan(after, factors, {"decision": list(factors)})


MOST_FACTORS = 64  # of a tiling: of 64 bits, an extent has fewer factors greater than 1


def require_factors(n: int) -> None:
    """Raise ``ScheduleError`` for a number of factors that no tiling has."""
    require(1 <= n <= MOST_FACTORS,
            "a loop is tiled into 1 to {1} factors, not {0}", n, MOST_FACTORS, legal=f"1 to {MOST_FACTORS}")  # fmt: skip


def draw_tiling(generator: random.Random, extent: int, n: int, most: int) -> tuple[int, ...]:
    counts: dict[tuple[int, int], int] = {}

    def count(rest: int, parts: int) -> int:
        """Ways to write ``rest`` as ``parts`` ordered factors."""
        if parts == 1:
            return 1
        if (rest, parts) not in counts:
            counts[rest, parts] = sum(count(rest // d, parts - 1) for d in divisors(rest))
        return counts[rest, parts]

    innermost = [d for d in divisors(extent) if d <= most] or [1]
    if n == 1:
        return (extent,)
    last = generator.choices(innermost, weights=[count(extent // d, n - 1) for d in innermost])[0]
    factors, rest = [], extent // last
    for parts in range(n - 1, 1, -1):
        options = divisors(rest)
        factor = generator.choices(options, weights=[count(rest // d, parts - 1) for d in options])[0]
        factors.append(factor)
        rest //= factor
    return (*factors, rest, last)


@primitive(check=_check_sample_perfect_tile, group="tile")
def sample_perfect_tile(state: State, plan: SamplePlan) -> tuple[State, list[ExprRV | None]]:
    return plan.state, [None if v is None else ExprRV(v) for v in plan.values]
