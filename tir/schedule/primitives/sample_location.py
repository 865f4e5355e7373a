"""Decisions for search, continued: sample_partitioned_tile, and where a search ends: enter_postproc."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ...errors import require
from ...expr import IntImm
from ..handles import ExprRV
from ..primitive import primitive
from ..state import LoopRef, State
from .sample import SamplePlan, _divisors, _draw_tiling


def _check_sample_partitioned_tile(
    state: State,
    loop: LoopRef,
    n: int,
    partition_pos: int = 0,
    innerpart_factor: int = 1,
    decision: Sequence[int] | None = None,
) -> SamplePlan:
    """Draw ``n`` factors whose product is the extent of ``loop``, those from ``partition_pos`` on a multiple of
    ``innerpart_factor`` together.

    Every such tiling is equally likely. The factors go to ``split``; the trace keeps them as ``decision``. Raises
    ``ScheduleError`` for an extent that is not a constant multiple of ``innerpart_factor``, or a decision that breaks
    these rules.
    """
    extent = loop.node.extent
    require(isinstance(extent, IntImm), "loop {0} has no constant extent: {1}", loop.node, extent, nodes=[loop.node])
    assert isinstance(extent, IntImm)
    size = extent.value
    require(n >= 1, "a loop is tiled into at least 1 factor, not {0}", n)
    require(0 <= partition_pos < n, "partition_pos {0} is not one of {1} factors", partition_pos, n)
    require(
        innerpart_factor >= 1 and size % innerpart_factor == 0,
        "the extent {0} of loop {1} is not a multiple of {2}", size, loop.node, innerpart_factor, nodes=[loop.node],
        legal=", ".join(map(str, _divisors(size)[:16])) if size > 0 else "",
    )  # fmt: skip
    after, generator = state.draw()
    if decision is None:
        decision = _draw_partitioned(generator, size, n, partition_pos, innerpart_factor)
    values = tuple(int(f) for f in decision)
    inner = _product(values[partition_pos:])
    require(
        len(values) == n and _product(values) == size and inner % innerpart_factor == 0,
        "decision {0} is not {1} factors of the extent {2} of loop {3} with a multiple of {4} from number {5} on",
        list(values), n, size, loop.node, innerpart_factor, partition_pos,
    )  # fmt: skip
    return SamplePlan(after, values, {"decision": list(values)})


def _product(values: Sequence[int]) -> int:
    result = 1
    for v in values:
        result *= v
    return result


def _draw_partitioned(generator: random.Random, size: int, n: int, position: int, factor: int) -> tuple[int, ...]:
    if position == 0:
        return _draw_tiling(generator, size, n, size)
    inner_sizes = [d * factor for d in _divisors(size // factor)]
    weights = [_ways(size // d, position) * _ways(d, n - position) for d in inner_sizes]
    inner = generator.choices(inner_sizes, weights=weights)[0]
    return (
        *_draw_tiling(generator, size // inner, position, size),
        *_draw_tiling(generator, inner, n - position, size),
    )


def _ways(size: int, parts: int) -> int:
    """Ways to write ``size`` as ``parts`` ordered factors."""
    return 1 if parts == 1 else sum(_ways(size // d, parts - 1) for d in _divisors(size))


@primitive(check=_check_sample_partitioned_tile)
def sample_partitioned_tile(state: State, plan: SamplePlan) -> tuple[State, list[ExprRV]]:
    return plan.state, [ExprRV(v) for v in plan.values]


def _check_enter_postproc(state: State) -> State:
    """Mark in the trace where the search's own steps end: a replay with ``remove_postproc=True`` stops here."""
    return state


@primitive(check=_check_enter_postproc)
def enter_postproc(state: State, plan: State) -> State:
    return plan
