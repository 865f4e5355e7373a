"""Reductions at places that data decides, such as means over the bins of regions: of several results that share the places at
a time."""

from __future__ import annotations

from ...expr import And, Call, Expr, Or, Select
from ...schedule import Schedule
from ...visit import has_load, uses_var, walk
from ..nest import Axis, Nest
from ..space import Env, choose, rule
from .reductions import in_registers
from .spatial import share_out

TOGETHER = (4, 8, 3, 2)  # results at a time, best first


@rule(targets=("llvm",), order=65)
def places(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Compute vectors of results along an axis that the places of a reduction, which are loaded, do not depend on."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduction is None or nest.block.init is None:
        return []
    if len(nest.spatial) + len(nest.reduce) < len(nest.axes) or not any(has_load(*a.indices) for a in nest.loads):
        return []
    shared = next((a for a in nest.spatial if _is_shared(nest, a)), None)
    counts = [n for n in TOGETHER if shared is not None and shared.size % n == 0]
    if shared is None or shared.extent is None or not counts:
        return []
    made = sch.copy()
    count = choose(made, counts, [1 + 0.1 * n for n in range(len(counts))])
    outer = [a.loop for a in nest.spatial if a is not shared]
    strip = in_registers(made, nest, shared, outer, (1, count))
    share_out(made, [*outer, strip], nest.runs * nest.work, env)
    return [made]


def _is_shared(nest: Nest, axis: Axis) -> bool:
    """Whether all accesses go on by a constant step along ``axis``, those at loaded places not to neighbours, and no
    condition depends on it."""
    if any(a.stride(axis.var) is None for a in nest.accesses):
        return False
    if any(a.stride(axis.var) == 1 for a in nest.accesses):
        return False
    return not any(uses_var(c, axis.var) for n in walk(nest.block.body) for c in _conditions(n))


def _conditions(node: object) -> list[Expr]:
    if isinstance(node, (And, Or)):
        return [node.a, node.b]
    if isinstance(node, Select):
        return [node.condition]
    return [node.args[0]] if isinstance(node, Call) and node.op == "if_then_else" else []
