"""A primitive: run a loop backwards."""

from dataclasses import dataclass
from typing import Any

from tir.analysis.index import LoopRef
from tir.errors import require
from tir.expr import IntImm
from tir.schedule.primitive import primitive, require_same_meaning
from tir.schedule.state import State
from tir.stmt import For
from tir.visit import substitute


@dataclass(frozen=True)
class ReversePlan:
    """The loop, and what takes its place."""

    old: For
    new: For


def _check_reverse(state: State, loop: LoopRef, *, unsafe: bool = False) -> ReversePlan:
    """Run the iterations of a loop from the last to the first.

    Before, and after ``sch.reverse("i")``::

        for i in range(8):                       for i in range(8):
            with T.block("B"):                       with T.block("B"):
                vi = T.axis.spatial(8, i)                vi = T.axis.spatial(8, 7 - i)
                B[vi] = A[vi]                            B[vi] = A[vi]

    Raises ``ScheduleError`` for a loop of unknown length, and where an iteration needs an earlier one.
    """
    node = loop.node
    require(isinstance(node.extent, IntImm), "the length of loop {0} is not known", node, nodes=[node])
    last: Any = node.min + node.extent - 1
    var = node.loop_var.replace()  # another loop: one that keeps its variable is taken to keep its iterations
    body = substitute(node.body, {node.loop_var: last - (var - node.min)})
    new = node.replace(loop_var=var, body=body)
    require_same_meaning(state, state.replace(node, new), unsafe)
    return ReversePlan(node, new)


@primitive(check=_check_reverse)
def reverse(state: State, plan: ReversePlan) -> State:
    return state.replace(plan.old, plan.new, moved={plan.old.loop_var: [plan.new.loop_var]})
