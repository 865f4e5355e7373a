"""Rows of ONNX operators that run graphs: branches, and loops whose number of steps is known, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Value
from ..graph.sizes import is_fixed
from ..interp.numbers import array_dtype
from .making import Unsupported, require_few
from .onnx_table import Call, Made, row


@row("If")
def _if(c: Call) -> Any:
    """The branch that runs; of both, where that is known only when it runs, and they make tensors of the same shapes."""
    condition = c[0]
    known = c.known(condition)
    if known is not None:
        return list(c.attribute("then_branch" if known.any() else "else_branch")())
    made = zip(c.attribute("then_branch")(), c.attribute("else_branch")())
    return [_chosen(c, condition, *each) for each in made]


def _chosen(c: Call, condition: Value, one: Made, other: Made) -> Value:
    if not isinstance(one, Value) or not isinstance(other, Value):
        raise Unsupported("its condition is known only when it runs, and its branches make sequences")
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        raise c.unknown(
            f"condition (the branches make {one.dtype}{list(one.shape)} and {other.dtype}{list(other.shape)})",
            condition,
        )
    return c.op("where", c.op("reshape", condition, ()), one, other)


@row("Loop")
def _loop(c: Call) -> Any:
    """Each step in turn, with the number of the step and the condition as constants."""
    body, going, carried = c.attribute("body"), c.get(1), list(c.inputs[2:])
    most = c.integers(0, "number of steps")
    count, steps, made = len(carried), 0, []
    while most is None or steps < most[0]:
        if going is not None:
            known = c.known(going)
            if known is None:
                raise c.unknown(f"condition after {steps} steps", going)
            if not known.any():
                break
        require_few(steps + 1 if most is None else most[0])
        here = going or c.array(np.array(True))
        after, *results = body(c.array(np.array(steps, "int64")), here, *carried)
        going = after if going is not None or (c.known(after) is not None) else going
        carried = results[:count]
        made.append(results[count:])
        steps += 1
    if not made and len(c.outputs) > count:  # a step that is not taken has their shapes
        results = body(c.array(np.array(0)), going or c.array(np.array(True)), *carried)[1 + count :]
        return [*carried, *(_nothing(c, each) for each in results)]
    return [*carried, *_stacked(c, made, [0] * (len(c.outputs) - count))]


def _nothing(c: Call, each: Made) -> Value:
    """No tensors like ``each`` along a new axis."""
    if not isinstance(each, Value) or not is_fixed(*each.shape):
        raise Unsupported("it takes no step, and the shapes of what its steps make are not known")
    return c.array(np.zeros((0, *each.shape), array_dtype(each.dtype)))


def _stacked(c: Call, steps: Sequence[Sequence[Made]], axes: Sequence[int]) -> list[Value]:
    """What the steps have made, each along a new axis."""
    if not steps and axes:
        raise Unsupported("it takes no step, and makes a tensor of the results of its steps")
    made = []
    for number, axis in enumerate(axes):
        values = [step[number] for step in steps]
        if not all(isinstance(v, Value) for v in values):
            raise Unsupported("the results of its steps are sequences")
        made.append(c.op("stack", values, axis))
    return made


@row("Scan", 9)
def _scan(c: Call) -> Any:
    count = c.attribute("num_scan_inputs")
    states, taken = list(c.inputs[:-count]), [c[n] for n in range(len(c.inputs) - count, len(c.inputs))]
    results = len(c.outputs) - len(states)

    def said(name: str, number: int) -> list[int]:
        return list(c.attribute(name) or [0] * number)

    into = said("scan_output_axes", results)
    return _scanned(
        c,
        states,
        taken,
        (said("scan_input_axes", count), said("scan_input_directions", count)),
        (into, said("scan_output_directions", results)),
    )


@row("Scan", 8)
def _scan_of_batches(c: Call) -> Any:
    """Before version 9 the first axis of all is that of the batch."""
    if c.get(0) is not None:
        raise Unsupported("its sequences have lengths of their own")
    count = c.attribute("num_scan_inputs")
    given = [c[n] for n in range(1, len(c.inputs))]
    results = len(c.outputs) - (len(given) - count)
    turned = list(c.attribute("directions") or [0] * count)
    batches = []
    for at in range(given[0].shape[0]):
        each = [c.one_of(value, 0, at) for value in given]
        states: list[Made] = [*each[:-count]]
        batches.append(_scanned(c, states, each[-count:], ([0] * count, turned), ([0] * results, [0] * results)))
    return _stacked(c, batches, [0] * len(c.outputs))


def _scanned(
    c: Call,
    states: list[Made],
    taken: Sequence[Value],
    inputs: tuple[Sequence[int], Sequence[int]],
    outputs: tuple[Sequence[int], Sequence[int]],
) -> list[Made]:
    """The states after the last step, and the results of all; ``inputs`` and ``outputs`` are their axes, and which go backwards."""
    steps = taken[0].shape[inputs[0][0]]
    require_few(steps)
    made: list[Sequence[Made]] = []
    for step in range(steps):
        rows = [
            c.one_of(x, axis % len(x.shape), steps - 1 - step if back else step)
            for x, axis, back in zip(taken, *inputs)
        ]
        found = c.attribute("body")(*states, *rows)
        states, results = list(found[: len(states)]), found[len(states) :]
        made.append(results)
    stacked = _stacked(c, made, outputs[0])
    return [*states, *(c.op("flip", x, axis) if back else x for x, axis, back in zip(stacked, *outputs))]
