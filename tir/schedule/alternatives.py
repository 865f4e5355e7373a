"""What would be legal instead of a refused step: the same call with other loops, blocks or buffers, or without a proof.

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
from .offers import choices, label
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


def _variants(step: Primitive, state: State, given: Given) -> Iterator[Given]:
    """The call with one loop, list of loops, block or buffer replaced: loops first, since a step is most about them."""
    for name in sorted(given, key=lambda name: "loop" not in step.kinds.get(name, "")):
        for other in _others(step, state, name, given):
            yield {**given, name: other}


def _others(step: Primitive, state: State, name: str, given: Given) -> Iterator[Any]:
    """Other values of an argument."""
    kind, value = step.kinds.get(name, ""), given[name]
    if value is None:
        return
    if "loop" in kind:
        several = isinstance(value, (list, tuple))
        yield from _several(state, value) if several else _other_loops(state, value)
    elif kind == "block" or "buffer" in name:
        now = getattr(value, "name", value)
        yield from (other for other in choices(state, step, name, given) if other not in (now, "root"))


def _several(state: State, loops: Any) -> Iterator[list[Any]]:
    """Other orders of these loops, fewer of them, and whole stretches of the nests that they are in."""
    yield from _rearranged(loops)
    known = [ref for ref in (_loop(state, value) for value in dict.fromkeys(loops)) if ref is not None]
    for block in dict.fromkeys(block for ref in known for block in state.index.blocks_below(ref)):
        nest = block.loops()
        at = [n for n, ref in enumerate(nest) if any(ref is mine for mine in known)]
        for first, last in ((min(at), max(at)), (max(at) - 1, max(at)), (min(at), min(at) + 1)):
            if 0 <= first < last < len(nest):
                yield [label(state, ref) for ref in nest[first : last + 1]]


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
    place = _loop(state, value)
    if place is None:
        return
    nest = [ref for block in state.index.blocks_below(place) for ref in block.loops()]
    yield from (label(state, ref) for ref in dict.fromkeys(nest) if ref is not place)


def _loop(state: State, value: Any) -> LoopRef | None:
    """The loop that a name or handle refers to; None where it refers to none."""
    try:
        return value if isinstance(value, LoopRef) else state.find_loop(value)
    except (ScheduleError, AttributeError):
        return None
