"""What would be legal instead of a refused step: the same call with other loops, or without a proof.

A refusal that does not name a legal alternative itself gets this answer, computed when the error is first shown: variants
of the call are tried on the snapshot that refused it, each with every check.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..analysis.index import LoopRef
from ..errors import ScheduleError, Unproved
from .arguments import BadArgument
from .primitive import Primitive, request_text
from .state import State

MOST_TRIED = 16  # variants of one call
MOST_SHOWN = 4

Given = Mapping[str, Any]


def alternatives(
    error: ScheduleError, step: Primitive, state: State, given: Given, accepts: Callable[[Given], bool]
) -> str:
    """Legal variants of a refused call, as text; empty if none is found. ``accepts`` tries one on ``state``."""
    if isinstance(error, BadArgument):  # says itself which types are accepted
        return ""
    tried = itertools.islice(_variants(step, state, given), MOST_TRIED)
    found = [request_text(step, other) for other in itertools.islice(filter(accepts, tried), MOST_SHOWN)]
    if isinstance(error, Unproved) and "unsafe" in step.signature.parameters and accepts({**given, "unsafe": True}):
        found.append("unsafe=True, if you know that it holds")
    return ", ".join(found)


def label(state: State, ref: LoopRef) -> str:
    """A name that finds the loop again: unqualified if unique, otherwise with a block below it."""
    if len(state.index.loops_named(ref.name)) == 1:
        return ref.name
    blocks = state.index.blocks_below(ref)
    return f"{blocks[0].name}.{ref.name}" if blocks else ref.name


def _variants(step: Primitive, state: State, given: Given) -> Iterator[Given]:
    """The call with one loop, or list of loops, replaced."""
    for name, kind in step.kinds.items():
        value = given.get(name)
        if "loop" not in kind or value is None:
            continue
        several = isinstance(value, (list, tuple))
        for other in _rearranged(value) if several else _other_loops(state, value):
            yield {**given, name: other}


def _rearranged(loops: Any) -> Iterator[list[Any]]:
    """Other orders of the same loops, without repetition, then fewer of them, at least two: neighbours in the list."""
    given, once = list(loops), list(dict.fromkeys(loops))
    if len(once) < 2:
        return
    orders = itertools.permutations(once) if len(once) <= 3 else [once]
    yield from (list(order) for order in orders if list(order) != given)
    for size in range(len(once) - 1, 1, -1):
        yield from (once[at : at + size] for at in range(len(once) - size + 1))


def _other_loops(state: State, value: Any) -> Iterator[str]:
    """The other loops around the blocks that the loop ``value`` is around, or that the block ``value`` is in."""
    try:
        place = value if isinstance(value, LoopRef) else state.find_loop(value)
    except (ScheduleError, AttributeError):
        return
    nest = [ref for block in state.index.blocks_below(place) for ref in block.loops()]
    yield from (label(state, ref) for ref in dict.fromkeys(nest) if ref is not place)
