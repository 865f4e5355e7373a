"""Rows of torch's operators that run graphs: branches, and loops whose number of steps is known, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph import Value
from .making import Unsupported, require_few
from .torch_table import Call, row, type_named

Body = Callable[..., list[Any]]  # what a graph makes of values


@row("torch.ops.higher_order.cond")
def _cond(c: Call, **given: Any) -> Any:
    """The branch that runs; of both, where that is known only when it runs."""
    condition, one, other, operands = given.values()
    known = c.known(condition) if isinstance(condition, Value) else condition
    if known is not None:
        return (one if known else other)(*operands)
    chosen = c.op("reshape", condition, ())
    return [_chosen(c, chosen, *each) for each in zip(one(*operands), other(*operands))]


def _chosen(c: Call, condition: Value, one: Any, other: Any) -> Any:
    if not isinstance(one, Value) or not isinstance(other, Value):
        if one == other:
            return one
        raise Unsupported("its condition is known only when it runs, and its branches make other numbers")
    return c.op("where", condition, one, other)


@row("torch.ops.higher_order.while_loop")
def _while_loop(c: Call, **given: Any) -> Any:
    condition, body, carried, others = given.values()
    for steps in range(1 << 31):
        (going,) = condition(*carried, *others)
        known = c.known(going) if isinstance(going, Value) else going
        if known is None:
            raise Unsupported(f"its condition after {steps} steps is known only when it runs")
        if not known:
            break
        require_few(steps + 1)
        carried = body(*carried, *others)
    return list(carried)


@row("torch.ops.higher_order.scan")
def _scan(c: Call, **given: Any) -> Any:
    body, states, taken, others = given.values()
    made = []
    for rows in _rows(c, taken):
        found = body(*states, *rows, *others)
        states = found[: len(states)]
        made.append(found[len(states) :])
    return [*states, *_stacked(c, made, len(states))]


@row("torch.ops.higher_order.map_impl")
def _map(c: Call, **given: Any) -> Any:
    body, taken, others = given.values()
    return _stacked(c, [body(*rows, *others) for rows in _rows(c, taken)], 0)


def _rows(c: Call, taken: Sequence[Value]) -> list[list[Value]]:
    """For each step the elements of tensors at its place of the first axis."""
    count = taken[0].shape[0]
    if not isinstance(count, int):
        raise Unsupported(f"it takes {count} steps, which is known only when it runs")
    require_few(count)
    return [[c.one_of(x, 0, at) for x in taken] for at in range(count)]


def _stacked(c: Call, steps: Sequence[Sequence[Any]], first: int) -> list[Value]:
    """What the steps have made along a new first axis; the results of the call from ``first`` on."""
    if not steps:
        said = [(r.sizes, type_named(r.dtype)) for r in c.results[first:]]
        return [c.filled([n or 0 for n in sizes], 0, dtype) for sizes, dtype in said]
    return [c.op("stack", [c.tensor(each) for each in several], 0) for several in zip(*steps)]
