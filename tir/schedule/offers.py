"""What may be done to a loop or a block now: primitives that take it, tried with usual values of what else they need.

Also the values that a parameter takes in a program, for completion of names and for forms.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import extension
from ..analysis.index import BlockRef, LoopRef
from ..annotations import DOUBLE_BUFFER, ORDER, STAGE, UNROLL
from ..buffer import SCOPES
from ..display import html_table, text_table
from ..errors import ScheduleError, attempt
from ..expr import IntImm
from ..intrin import TensorIntrin
from ..levels import AXES
from .handles import BlockRV, LoopRV
from .primitive import PRIMITIVES, Primitive, request_text
from .primitives.loops import TAILS
from .state import State, label, place_name

MOST_TRIED = 12  # calls of one primitive
MOST_PLACES = 12  # loops and blocks that `sch.can` shows at once

# the program after a call, or why it would be refused or do nothing
Try = Callable[[Primitive, Mapping[str, Any]], "State | ScheduleError"]

_TILES = (4, 8, 16, 32, 64, 2, 3, 5, 6, 7, 14)
_TILES_OF_TILES = ((4, 16), (2, 16), (4, 8), (2, 8))
# Of parameters that are numbers, or lists of them: a value to begin with.
_USUAL: dict[str, Any] = {
    "tile.factors": [4], "factor_axis": 0, "axis": 0, "factor": 1, "offset": 8, "n": 2, "candidates": [1, 2, 4],
    "probs": [0.5, 0.25, 0.25], "buf_index_array": [0],
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A parameter of a step besides the place it is offered for: values to choose from (the usual one first), if they can
    be listed. ``needed``: the step is not accepted without it. ``many``: its choices are places or buffers, any of which
    may be the one."""

    name: str
    choices: tuple[Any, ...]
    needed: bool
    many: bool


@dataclass(frozen=True)
class Offer:
    """A call of the primitive ``name``: ``given`` by parameter, ``text`` as a user writes it, and ``reason`` for which it
    would be refused or change nothing (empty: it would change the program, or draw a value), with the ``witness`` of a
    refusal. ``fields`` are the parameters that may be chosen otherwise, ``summary`` is the first sentence about the
    primitive, ``group`` its heading, and ``after`` the snapshot that the call makes."""

    name: str
    text: str
    given: Mapping[str, Any]
    reason: str
    fields: tuple[Field, ...]
    summary: str = ""
    group: str = ""
    witness: tuple[str, ...] = ()
    after: State | None = field(default=None, repr=False, compare=False)

    def __bool__(self) -> bool:
        return not self.reason


class Offers(list[Offer]):
    """Offers for one loop or block; shows as a table, what would be accepted first."""

    def _rows(self) -> list[tuple[str, str]]:
        return [(o.text, o.reason.splitlines()[0] if o.reason else "yes") for o in self]

    def __repr__(self) -> str:
        return text_table(("step", "accepted"), self._rows())

    def _repr_html_(self) -> str:
        return html_table(("step", "accepted"), self._rows())


@dataclass(frozen=True)
class OneClick:
    """What may be done to each loop and block without further choices. ``left_out`` are more of them than are asked."""

    steps: Mapping[str, list[str]]
    left_out: int = 0

    def _rows(self) -> list[tuple[str, str]]:
        return [(place, ", ".join(names) or "nothing without further choices") for place, names in self.steps.items()]

    def _hint(self) -> str:
        step = next(iter(self.steps), "i")
        more = f"{self.left_out} more loops and blocks; " if self.left_out else ""
        return f'{more}sch.can("{step}") has the others, and why some are refused'

    def __repr__(self) -> str:
        return text_table(("place", "may be done now"), self._rows()) + "\n" + self._hint()

    def _repr_html_(self) -> str:
        return html_table(("place", "may be done now"), self._rows(), self._hint())


def places(state: State) -> list[str]:
    """Names of all blocks and loops that find them again."""
    return [*state.index.blocks, *loop_labels(state)]


def loop_labels(state: State) -> list[str]:
    return list(dict.fromkeys(label(state, ref) for ref in state.index.loops.values()))


def choices(state: State, step: Primitive, name: str, given: Mapping[str, Any] | None = None) -> list[Any]:
    """Values of parameter ``name`` of ``step`` in this program, usual ones first; empty if they cannot be listed. Those of
    the block in ``given``, if the parameter is about it.

    >>> from tir.library import gemm
    >>> import tir
    >>> choices(tir.Schedule(gemm.gemm(16, 16, 16)).state, PRIMITIVES["bind"], "thread_axis")[:2]
    ['blockIdx.x', 'blockIdx.y']
    """
    kinds = step.kinds.get(name, "")
    if kinds:
        return [*(loop_labels(state) if "loop" in kinds else ()), *(state.index.blocks if "block" in kinds else ())]
    if "buffer" in name:
        found = _buffers(state, name, given or {})
        named = str(step.signature.parameters[name].annotation) != "int"
        return found if named else list(range(len(found)))
    if step.apply is None and name == "name":  # a query looks up what is there; elsewhere it is a new name
        return list(state.index.blocks)
    if name in _LISTS:
        return list(_LISTS[name](state))
    loop = step.only_loop or ""
    if name == "factors" and step.kinds.get(loop) == "loop":
        return _factors(state, (given or {}).get(loop))
    usual = _USUAL.get(f"{step.name}.{name}", _USUAL.get(name))
    return [] if usual is None else [usual]


_LISTS: dict[str, Callable[[State], Any]] = {
    "thread_axis": lambda state: AXES,
    "storage_scope": lambda state: sorted(SCOPES, key=lambda s: s not in _near(state)),
    "tail": lambda state: TAILS,
    "buf_type": lambda state: ("read", "write"),
    "func_name": lambda state: state.mod,
    "tensor_intrin": lambda state: TensorIntrin.list(),
    "dtype": lambda state: ("float32", "float16", "bfloat16", "float64", "int8", "int32", "int64", "uint8"),
    "ann_key": lambda state: (STAGE, ORDER, DOUBLE_BUFFER, UNROLL),
}


def _factors(state: State, loop: Any) -> list[list[int | None]]:
    """Factors of a split: those that divide the loop first, then tiles of tiles; ``[None, 4]`` if the extent is not known."""
    ref = attempt(lambda: state.find_loop(loop)) if isinstance(loop, (str, LoopRV)) else None
    extent = ref.node.extent.value if isinstance(ref, LoopRef) and isinstance(ref.node.extent, IntImm) else None
    sizes = [n for n in _TILES if extent is None or n < extent] or [4]
    whole = [n for n in sizes if extent is not None and extent % n == 0]
    twice = [(a, b) for a, b in _TILES_OF_TILES if extent is not None and extent % (a * b) == 0]
    return [[None, n] for n in sorted(sizes, key=lambda n: n not in whole)] + [[None, *pair] for pair in twice]


def _near(state: State) -> tuple[str, ...]:
    """The scopes to try first, by the target."""
    return (
        ("shared", "local")
        if state.target is not None and state.target.kind.startswith("cuda")
        else ("global", "local")
    )


def _buffers(state: State, name: str, given: Mapping[str, Any]) -> list[str]:
    """The names of the buffers that a block reads or writes; of the program's, where it is about no block."""
    which = next((v for k, v in given.items() if isinstance(v, (str, BlockRV)) and "block" in k), None)
    about = None if which is None else attempt(lambda: state.find_block(which))
    blocks = [about] if isinstance(about, BlockRef) else list(state.index.blocks.values())
    sides = ["reads"] if "read" in name else ["writes"] if "write" in name else ["writes", "reads"]
    return list(dict.fromkeys(r.buffer.name for side in sides for b in blocks for r in getattr(b.block, side)))


def offers(state: State, place: LoopRV | BlockRV | str, attempt: Try) -> Offers:
    """Every primitive that takes ``place``, as :class:`Offer`; ``attempt`` tells whether a call would be accepted."""
    ref = _place(state, place)
    made = [_offer(state, step, ref, attempt) for step in _steps()]
    return Offers(sorted((o for o in made if o is not None), key=lambda o: not o))


def one_click(state: State, attempt: Try) -> OneClick:
    """The primitives that each loop and block would be accepted by, of those that need nothing else."""
    refs = [*state.index.loops.values(), *(b for b in state.index.blocks.values() if b.scope is not None)]
    found: dict[str, list[str]] = {}
    for ref in refs[:MOST_PLACES]:
        made = (_offer(state, step, ref, attempt) for step in _steps() if _alone(step, ref))
        found[place_name(state, ref)] = [o.name for o in made if o]
    return OneClick(found, max(len(refs) - MOST_PLACES, 0))


def _steps() -> list[Primitive]:
    extension.load(extension.PRIMITIVES)
    return [PRIMITIVES[name] for name in sorted(PRIMITIVES)]


def _place(state: State, place: LoopRV | BlockRV | str) -> LoopRef | BlockRef:
    if isinstance(place, BlockRV) or (isinstance(place, str) and place in state.index.blocks):
        return state.find_block(place)
    return state.find_loop(place)


def _parameter_for(step: Primitive, ref: LoopRef | BlockRef) -> inspect.Parameter | None:
    """The first required parameter that takes the place."""
    kind = "loop" if isinstance(ref, LoopRef) else "block"
    fitting = (p for p in step.signature.parameters.values() if kind in step.kinds.get(p.name, "").split())
    return next((p for p in fitting if p.default is p.empty), None)


def _needed(step: Primitive, besides: str) -> list[inspect.Parameter]:
    """The parameters to choose: required ones, and those without which the step does nothing (``factors`` of a split)."""
    return [
        p
        for p in step.signature.parameters.values()
        if p.name != besides and p.kind is not p.VAR_POSITIONAL and (p.default is p.empty or p.name == "factors")
    ]


def _alone(step: Primitive, ref: LoopRef | BlockRef) -> bool:
    mine = _parameter_for(step, ref)
    return mine is not None and mine.kind is not mine.VAR_POSITIONAL and not _needed(step, mine.name)


def _offer(state: State, step: Primitive, ref: LoopRef | BlockRef, attempt: Try) -> Offer | None:
    mine = _parameter_for(step, ref)
    if mine is None:
        return None
    name = place_name(state, ref)
    fields, starts = _fields(state, step, mine, name), _starts(state, mine, ref)
    calls = itertools.islice(_calls(starts, [f for f in fields if f.needed], name), MOST_TRIED)
    if mine.kind is mine.VAR_POSITIONAL and starts:  # which places, and in which order, may be chosen too
        fields = (Field(mine.name, tuple(start[mine.name] for start in starts), True, False), *fields)
    return _first_accepted(step, calls, fields, attempt)


def calls(state: State, step: Primitive, ref: LoopRef | BlockRef) -> Iterator[dict[str, Any]]:
    """Arguments of ``step`` for a loop or block, with usual values of what else it needs; none if it takes no such place."""
    mine = _parameter_for(step, ref)
    if mine is None:
        return
    name = place_name(state, ref)
    fields = _fields(state, step, mine, name)
    for given in _calls(_starts(state, mine, ref), [f for f in fields if f.needed], name):
        yield {p: given[p] for p in step.signature.parameters if p in given}


def _starts(state: State, mine: inspect.Parameter, ref: LoopRef | BlockRef) -> list[Mapping[str, Any]]:
    """The argument ``mine`` for a place: alone, in a list, or with each of its neighbours, in both orders."""
    name = place_name(state, ref)
    if mine.kind is mine.VAR_POSITIONAL:
        pairs = ((name, place_name(state, other)) for other in _neighbours(state, ref))
        return [{mine.name: order} for pair in pairs for order in (pair, pair[::-1])]
    if isinstance(ref, LoopRef) and "list[" in str(mine.annotation) and "LoopRef |" not in str(mine.annotation):
        return [{mine.name: [name]}]
    return [{mine.name: name}]


def _fields(state: State, step: Primitive, mine: inspect.Parameter, name: str) -> tuple[Field, ...]:
    """The parameters besides ``mine``, which is the place called ``name``."""
    needed = _needed(step, mine.name)
    return tuple(
        Field(
            p.name,
            tuple(choices(state, step, p.name, {mine.name: name})),
            p in needed,
            p.name in step.kinds or "buffer" in p.name,
        )
        for p in step.signature.parameters.values()
        if p is not mine and p.name != "unsafe"
    )


def _calls(starts: list[Mapping[str, Any]], fields: list[Field], name: str) -> Iterator[dict[str, Any]]:
    """Calls to try: with every combination of other places and of buffers, and the two usual ones of other values (the
    first may be what the program has)."""
    values = [[c for c in f.choices if c not in (name, "root")] if f.many else f.choices[:2] for f in fields]
    for start in starts:
        for chosen in itertools.product(*values):
            yield {**start, **{f.name: value for f, value in zip(fields, chosen)}}


def _first_accepted(
    step: Primitive, calls: Iterator[dict[str, Any]], fields: tuple[Field, ...], attempt: Try
) -> Offer | None:
    """The first call that would be accepted, otherwise the first one and why it would be refused."""
    first = None
    about = (fields, step.summary, step.group)
    for given in calls:
        ordered = {p: given[p] for p in step.signature.parameters if p in given}
        outcome = attempt(step, ordered)
        if not isinstance(outcome, ScheduleError):
            return Offer(step.name, request_text(step, ordered), ordered, "", *about, after=outcome)
        if first is None:
            first = Offer(step.name, request_text(step, ordered), ordered, outcome.rule, *about, tuple(outcome.witness))
    if first is not None:
        return first
    unknown = [f.name for f in fields if f.needed and not f.choices]
    return Offer(step.name, f"{step.name}(…)", {}, f"needs {', '.join(unknown)}", *about) if unknown else None


def _neighbours(state: State, ref: LoopRef | BlockRef) -> list[LoopRef]:
    """The loops directly inside a loop, then the one around it."""
    inside = [r for r in state.index.loops.values() if r.parent is ref]
    return [*inside, *(r for r in [ref.parent] if isinstance(r, LoopRef))]
