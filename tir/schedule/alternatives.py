"""What would be legal instead of a refused step: the same call with other arguments or after another step, another step
to the same end, or the call without a proof. Where nothing is, the reasons for which the other choices are refused.

A refusal that does not name a legal alternative itself gets this answer, computed when the error is first shown: every
call is tried on the snapshot that refused it, with every check, before it is named.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import Any, cast

from ..analysis.index import BlockRef, LoopRef
from ..arith.index_map import IndexMap
from ..errors import ScheduleError, TirError, Unproved, attempt
from ..expr import Var
from ..names import resembling
from .handles import BlockRV, LoopRV
from .offers import calls, choices
from .primitive import Primitive, lookup, request_text
from .primitive_arguments import BadArgument
from .state import State, label, place_name

MOST_TRIED = 16  # variants of one call, and calls of one other step
MOST_SHOWN = 4
MOST_REASONS = 3
MOST_SECONDS = 10.0  # after which no other call is tried

Given = Mapping[str, Any]
Attempt = Callable[[Primitive, State, Given], "State | ScheduleError"]  # the state after a legal step, else why not


def alternatives(error: ScheduleError, step: Primitive, state: State, given: Given, attempt: Attempt) -> str:
    """Legal calls instead of a refused one, as text, or why there are none; of an argument of the wrong type, only calls
    with a usual value (the error says which types are accepted)."""
    given = {name: _by_name(state, value) for name, value in given.items()}
    attempt = timed = _Timed(attempt)
    if isinstance(error, BadArgument):
        usual = _with_usual_values(error.parameter, step, state, given)
        return ", ".join(itertools.islice(_accepted(step, state, usual, attempt, {}), MOST_SHOWN))
    refused: dict[str, ScheduleError] = {}
    variants = itertools.islice(_variants(step, state, given, error.rule), MOST_TRIED)
    found = list(itertools.islice(_accepted(step, state, variants, attempt, refused), MOST_SHOWN))
    if not found:
        offered = itertools.chain(_prepared(step, state, given, attempt), _others_instead(step, state, given, attempt))
        found = list(itertools.islice(offered, MOST_SHOWN))
    if isinstance(error, Unproved) and "unsafe" in step.signature.parameters:
        if isinstance(attempt(step, state, {**given, "unsafe": True}), State):
            found.append("unsafe=True, if you know that it holds")
    if not found and timed.is_over:
        return f"nothing was found in {MOST_SECONDS:g} seconds"
    return ", ".join(found) or _nothing(error.rule, refused)


class _Timed:
    """``attempt`` for a time: later calls are not tried, and are as calls with wrong arguments."""

    def __init__(self, attempt: Attempt):
        self._attempt = attempt
        self._end = monotonic() + MOST_SECONDS

    @property
    def is_over(self) -> bool:
        return monotonic() > self._end

    def __call__(self, step: Primitive, state: State, given: Given) -> State | ScheduleError:
        return BadArgument("it was not tried") if self.is_over else self._attempt(step, state, given)


def _with_usual_values(parameter: str, step: Primitive, state: State, given: Given) -> Iterator[Given]:
    """The call with the values that are tried first of a parameter, where these are known."""
    if parameter and not step.parameters[parameter].several:
        for value in choices(state, step, parameter, given)[:MOST_TRIED]:
            yield {**given, parameter: value}


def _by_name(state: State, value: Any) -> Any:
    """Loops and blocks by names that find them, as a user writes them; other values unchanged."""
    if isinstance(value, (list, tuple)):
        return [_by_name(state, item) for item in _items(value)]
    if not isinstance(value, (LoopRV, BlockRV, LoopRef, BlockRef)):
        return value
    ref = value if isinstance(value, (LoopRef, BlockRef)) else _place(state, value)
    return value if ref is None else place_name(state, ref)


def _items(value: Any) -> list[Any]:
    """The members of a list or tuple, or the value alone."""
    return list(cast("list[Any]", value)) if isinstance(value, (list, tuple)) else [value]


def _accepted(
    step: Primitive, state: State, tried: Iterator[Given], attempt: Attempt, refused: dict[str, ScheduleError]
) -> Iterator[str]:
    """The calls that are accepted, as text; the others go to ``refused`` with the reasons."""
    shown: set[str] = set()
    for other in tried:
        outcome, text = attempt(step, state, other), _text(step, other)
        if isinstance(outcome, State):
            if text not in shown:
                yield text
            shown.add(text)
        elif not isinstance(outcome, BadArgument):
            refused[text] = outcome


def _text(step: Primitive, given: Given) -> str:
    """A call as it may be written, functions of indices in full."""
    return request_text(step, {name: _map_of(value) or value for name, value in given.items()})


def _map_of(value: Any) -> IndexMap | None:
    """The index map that a function computes; None of what is no function, and of one whose parameters have no names."""
    try:
        return IndexMap.of(value) if callable(value) else None
    except (TirError, TypeError, ValueError, ArithmeticError):
        return None


def _prepared(step: Primitive, state: State, given: Given, attempt: Attempt) -> Iterator[str]:
    """The same call after a step that prepares for it; of each such step, the first that does."""
    for first in filter(None, map(lookup, step.prepared_by)):
        for before in _calls_of(first, state, given):
            between = attempt(first, state, before)
            again = _same_call(step, state, given, between) if isinstance(between, State) else ()
            taken = next((call for call in again if isinstance(attempt(step, between, call), State)), None)  # type: ignore[arg-type]
            if taken is not None:
                yield f"{_text(step, taken)} after {_text(first, before)}"
                break


def _same_call(step: Primitive, state: State, given: Given, between: State) -> Iterator[Given]:
    """A call as it is written after another step, which may have renamed its loops or given their names to several."""
    old = {ref.name for ref in state.index.loops.values()}
    new = [label(between, ref) for ref in between.index.loops.values() if ref.name not in old]
    named = {
        place.name: [label(between, ref) for ref in between.index.loops_named(place.name)] or new
        for value in given.values()
        for place in _places(state, value)
        if isinstance(place, LoopRef)
    }
    for chosen in itertools.islice(itertools.product(*named.values()), MOST_SHOWN):
        names = dict(zip(named, chosen))
        yield {k: _renamed(v, names) if "loop" in step.kinds.get(k, "") else v for k, v in given.items()}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_renamed(item, names) for item in _items(value)]
    return names.get(value.rpartition(".")[2], value) if isinstance(value, str) else value


def _others_instead(step: Primitive, state: State, given: Given, attempt: Attempt) -> Iterator[str]:
    """Steps to the same end; of each, the first call that is accepted."""
    for other in filter(None, map(lookup, step.instead)):
        for call in _calls_of(other, state, given):
            if isinstance(attempt(other, state, call), State):
                yield _text(other, call)
                break


def _calls_of(other: Primitive, state: State, given: Given) -> Iterator[Given]:
    """Calls of another step for the places of a call and the blocks below its loops, with the arguments they share."""
    places = [place for value in given.values() for place in _places(state, value)]
    below = [b for place in places if isinstance(place, LoopRef) for b in state.index.blocks_below(place)]
    found = (call for place in dict.fromkeys([*places, *below]) for call in calls(state, other, place))
    named = set(other.kinds)
    for call in itertools.islice(found, MOST_TRIED):
        yield {p: given[p] if p in given and p not in named else value for p, value in call.items()}


def _places(state: State, value: Any) -> list[LoopRef | BlockRef]:
    """The loops and blocks that an argument names."""
    members = _items(value)
    return [
        ref for ref in (_place(state, m) for m in members if isinstance(m, (str, LoopRV, BlockRV))) if ref is not None
    ]


def _nothing(rule: str, refused: Mapping[str, ScheduleError]) -> str:
    """That no choice helps, and why: one call for each reason of a refusal."""
    if not refused:
        return "nothing; this call has no other loop, block or buffer to choose"
    reasons = {error.rule: text for text, error in reversed(list(refused.items()))}
    same = [text for text, error in refused.items() if error.rule == rule]
    lines = [f"  {text}: {why}" for why, text in reversed(reasons.items()) if why != rule][:MOST_REASONS]
    lines += [f"  {same[0]}: for the same reason"] if same else []
    left = len(refused) - len(lines)
    more = [f"  and {left} more call{'s' if left > 1 else ''}"] if left else []
    return "\n".join(["nothing; other choices are refused, too", *lines, *more])


def _variants(step: Primitive, state: State, given: Given, rule: str) -> Iterator[Given]:
    """The call with one argument replaced: loops first, since a step is most about them, then blocks, index maps, and
    values that the rule speaks of."""

    def rank(name: str) -> tuple[bool, ...]:
        return "loop" not in step.kinds.get(name, ""), name not in step.kinds, not callable(given[name])

    if not any(_places(state, value) for value in given.values()):
        yield from (call for ref in state.index.loops.values() for call in calls(state, step, ref))
    for name in sorted(given, key=rank):
        for other in _others(step, state, name, given, rule):
            yield {**given, name: other}


def _others(step: Primitive, state: State, name: str, given: Given, rule: str) -> Iterator[Any]:
    """Other values of an argument."""
    kind, value = step.kinds.get(name, ""), given[name]
    if "loop" in kind and isinstance(value, (list, tuple)):
        passed = tuple(_items(value))
        yield from (list(other) for other in dict.fromkeys(map(tuple, _several(state, value))) if other != passed)
    elif "loop" in kind and isinstance(_place(state, value), LoopRef):
        yield from _other_loops(state, value)
    elif isinstance(value, IndexMap) or callable(value):
        yield from _other_maps(value, rule)
    elif isinstance(value, str) or "buffer" in name:
        yield from _listed(step, state, name, given, rule)


def _listed(step: Primitive, state: State, name: str, given: Given, rule: str) -> Iterator[Any]:
    """Other values of a parameter whose values are known: of loops, blocks and buffers all, of other names the nearest."""
    value, listed = given[name], choices(state, step, name, given)
    if name in step.kinds or "buffer" in name:
        at = value if isinstance(value, int) and 0 <= value < len(listed) else None
        yield from (other for n, other in enumerate(listed) if other not in (value, "root") and n != at)
    elif value not in listed:
        near = resembling(value, map(str, listed))
        yield from sorted(listed, key=lambda other: other not in near)[:MOST_SHOWN]
    elif value in rule:
        yield from [other for other in listed if other != value][:MOST_SHOWN]


def _other_maps(value: Any, rule: str) -> Iterator[IndexMap]:
    """Index maps like ``value`` that lose no element: with an index that it leaves out, and the reverse order of the
    indices; of other numbers of them, where the rule is about that."""
    given = value if isinstance(value, IndexMap) else _map_of(value)
    if given is None:
        return
    for v in given.initial_indices:
        if not any(v is used for used in given.final_indices):
            yield IndexMap(given.initial_indices, (*given.final_indices, v))
    variables = given.initial_indices
    if not all(a is b for a, b in zip(given.final_indices, variables[::-1])):
        yield IndexMap(variables, variables[::-1])
    for count in range(1, 6) if "index map takes" in rule else ():
        others = tuple(Var(name) for name in "ijklm"[:count])
        yield IndexMap(others, others[::-1])


def _several(state: State, loops: Any) -> Iterator[list[Any]]:
    """Other orders of these loops, fewer of them, whole stretches of the nests that they are in, and pairs of one of them
    with another loop of its nest."""
    yield from _rearranged(loops)
    known = [ref for ref in dict.fromkeys(_places(state, loops)) if isinstance(ref, LoopRef)]
    for block in dict.fromkeys(block for ref in known for block in state.index.blocks_below(ref)):
        nest = block.loops()
        at = [n for n, ref in enumerate(nest) if any(ref is mine for mine in known)]
        for first, last in ((min(at), max(at)), (max(at) - 1, max(at)), (min(at), min(at) + 1)):
            if 0 <= first < last < len(nest):
                yield [label(state, ref) for ref in nest[first : last + 1]]
        for pair in itertools.permutations(nest, 2):
            if sum(ref in known for ref in pair) == 1:
                yield [label(state, ref) for ref in pair]


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
    """The other loops around the blocks that the loop ``value`` is around."""
    place = _place(state, value)
    assert isinstance(place, LoopRef)
    nest = [ref for block in state.index.blocks_below(place) for ref in block.loops()]
    yield from (label(state, ref) for ref in dict.fromkeys(nest) if ref is not place)


def _place(state: State, value: Any) -> LoopRef | BlockRef | None:
    """The loop or block that a name or handle refers to; None where it refers to none."""
    if isinstance(value, BlockRV) or (isinstance(value, str) and value in state.index.blocks):
        found = attempt(lambda: state.find_block(value))
    else:
        found = attempt(lambda: state.find_loop(value))
    return None if isinstance(found, ScheduleError) else found
