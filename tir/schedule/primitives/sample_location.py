"""Sampling for search, continued: sample_compute_location, sample_partitioned_tile, and enter_postproc, its end."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...analysis.index import BlockRef, LoopRef
from ...errors import ScheduleError, refusal, require
from ...expr import IntImm
from ..handles import ExprRV, Location, LoopRV
from ..primitive import primitive
from ..state import State
from .compute_at import locations
from .sample import SamplePlan, divisors, draw_tiling, require_factors


def _check_sample_partitioned_tile(
    state: State,
    loop: LoopRef,
    n: int,
    partition_pos: int = 0,
    innerpart_factor: int = 1,
    decision: Sequence[int] | None = None,
) -> SamplePlan:
    """Draw ``n`` factors whose product is the extent of ``loop``, such that the product of those from ``partition_pos``
    on is a multiple of ``innerpart_factor``.

    Every such tiling is equally likely. The factors can be passed to ``split``; the trace records them as ``decision``.
    Raises ``ScheduleError`` for an extent that is not a constant multiple of ``innerpart_factor``, or a decision that
    breaks these rules.

    >>> import tir
    >>> from tir import te
    >>> A = te.placeholder((64,), name="A")
    >>> sch = tir.Schedule(te.create_prim_func([A, te.compute((64,), lambda i: A[i] * 2.0, "B")]), seed=0)
    >>> a, b, c = map(int, sch.sample_partitioned_tile("i", n=3, partition_pos=1, innerpart_factor=16))
    >>> a * b * c, b * c % 16
    (64, 0)
    """
    extent = loop.node.extent
    require(isinstance(extent, IntImm), "loop {0} has no constant extent: {1}", loop.node, extent)
    assert isinstance(extent, IntImm)
    size = extent.value
    require_factors(n)
    require(
        0 <= partition_pos < n, "partition_pos {0} is not one of {1} factors", partition_pos, n, legal=f"0 to {n - 1}"
    )
    require(innerpart_factor >= 1 and size % innerpart_factor == 0,
            "the extent {0} of loop {1} is not a multiple of {2}",
            size, loop.node, innerpart_factor, legal=", ".join(map(str, divisors(size)[:16])) if size > 0 else "")  # fmt: skip
    after, generator = state.draw()
    if decision is None:
        decision = _draw_partitioned(generator, size, n, partition_pos, innerpart_factor)
    values = tuple(int(f) for f in decision)
    inner = _product(values[partition_pos:])
    require(len(values) == n and _product(values) == size and inner % innerpart_factor == 0,
            "decision {0} is not {1} factors of the extent {2} of loop {3} with a multiple of {4} from number {5} on",
            list(values), n, size, loop.node, innerpart_factor, partition_pos, nodes=())  # fmt: skip
    return SamplePlan(after, values, {"decision": list(values)})


def _product(values: Sequence[int]) -> int:
    result = 1
    for v in values:
        result *= v
    return result


def _draw_partitioned(generator: random.Random, size: int, n: int, position: int, factor: int) -> tuple[int, ...]:
    if position == 0:
        return draw_tiling(generator, size, n, size)
    inner_sizes = [d * factor for d in divisors(size // factor)]
    weights = [_ways(size // d, position) * _ways(d, n - position) for d in inner_sizes]
    inner = generator.choices(inner_sizes, weights=weights)[0]
    return (*draw_tiling(generator, size // inner, position, size), *draw_tiling(generator, inner, n - position, size))


def _ways(size: int, parts: int) -> int:
    """Ways to write ``size`` as ``parts`` ordered factors."""
    return 1 if parts == 1 else sum(_ways(size // d, parts - 1) for d in divisors(size))


@primitive(check=_check_sample_partitioned_tile, group="tile")
def sample_partitioned_tile(state: State, plan: SamplePlan) -> tuple[State, list[ExprRV]]:
    return plan.state, [ExprRV(v) for v in plan.values]


@dataclass(frozen=True)
class LocationPlan:
    """The snapshot with the advanced random state, the location, and the decision for the trace."""

    state: State
    place: LoopRef | str
    recorded: dict[str, Any]


def _check_sample_compute_location(state: State, block: BlockRef, decision: int | None = None) -> LocationPlan:
    """Draw a compute location of ``block`` from all legal ones: a loop, the root, or inline.

    A loop is an argument for ``compute_at``, or for ``reverse_compute_at`` if nothing in its scope reads the block.
    Decision n is loop number n, from the outermost, around its first consumer (or last producer); -1 is the root, -2
    inline. Every legal location is equally likely; the trace records the ``decision``. Raises ``ScheduleError`` for an
    illegal decision, naming the legal ones, and for the root block.

    >>> import tir
    >>> from tir.script import tir as T
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
    ...     B = T.alloc_buffer((4, 4))
    ...     for i, j in T.grid(4, 4):
    ...         with T.block("B"):
    ...             vi, vj = T.axis.remap("SS", [i, j])
    ...             B[vi, vj] = A[vi, vj] + T.float32(1)
    ...     for i, j in T.grid(4, 4):
    ...         with T.block("C"):
    ...             vi, vj = T.axis.remap("SS", [i, j])
    ...             C[vi, vj] = B[vi, vj] * T.float32(2)
    ... ''')
    >>> sch = tir.Schedule(f)
    >>> place = sch.sample_compute_location("B", decision=0)
    >>> sch.compute_at("B", place)
    >>> [loop.name for loop in sch.get_loops("B")]
    ['i', 'ax0']
    """
    require(block.scope is not None, "the root block cannot be moved")
    how, plans = locations(state, block)
    places = dict(enumerate(plans, start=-2))

    def is_legal(number: int) -> bool:
        return refusal(plans[places[number]]) is None

    after, generator = state.draw()
    if decision is None:
        # the first legal one in a random order: uniform, and the others need not be checked
        numbers = generator.sample(sorted(places), len(places))
        decision = next((n for n in numbers if is_legal(n)), None)
        require(decision is not None, "block {0} can be computed nowhere but where it is", block)
        assert decision is not None
    elif decision not in places or not is_legal(decision):
        error = ScheduleError(
            "decision {0} is not a place where block {1} can be computed by {2}", decision, block, how, nodes=()
        )
        named = {n: place if isinstance(place, str) else place.name for n, place in sorted(places.items())}
        error.legal = lambda: ", ".join(f"{n} ({name})" for n, name in named.items() if is_legal(n))
        raise error
    return LocationPlan(after, places[int(decision)], {"decision": int(decision)})


@primitive(check=_check_sample_compute_location, group="order")
def sample_compute_location(state: State, plan: LocationPlan) -> tuple[State, LoopRV]:
    if isinstance(plan.place, str):
        return plan.state, Location(plan.place, state.func_name)
    return plan.state, state.loop_rv(plan.place)


@primitive()
def enter_postproc(state: State) -> State:
    """Mark in the trace where the search's own steps end: a replay with ``remove_postproc=True`` stops here.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.row_sum(8, 16))
    >>> sch.parallel("i")
    >>> sch.enter_postproc()
    >>> sch.unroll("j")
    >>> again = tir.Schedule(tir.library.rows.row_sum(8, 16))
    >>> sch.trace.apply_to_schedule(again, remove_postproc=True)
    >>> again
    Schedule of main after 1 step
    """
    return state
