"""The pictures beside a program in the explorer: what its loops access, banks of shared memory, the footprint, as HTML."""

from __future__ import annotations

import html
from collections.abc import Callable

from ..analysis.effects import effects
from ..analysis.index import BlockRef, LoopRef
from ..cost.footprint import footprint
from ..errors import ScheduleError
from ..levels import is_shared
from ..schedule.state import State, place_name
from .access_picture import access_picture
from .bank_accesses import bank_accesses, banks_figure

MOST_PICTURES = 8  # of buffers at a time


def pictures(state: State) -> list[str]:
    """The names of the pictures that there are of a program: of banks only with shared memory."""
    return [name for name in _PICTURES if name != "banks" or state.index.allocations(is_shared)]


def picture(state: State, name: str, place: str) -> str:
    """A picture by name, about the loop or block ``place`` (empty: about the whole program). Raises ``ValueError`` where
    sizes are not known.

    >>> import tir
    >>> state = tir.Schedule(tir.library.rows.row_sum(4, 8)).state
    >>> [name for name in pictures(state) if "<svg" in picture(state, name, "j")]
    ['accesses', 'footprint']
    """
    return _PICTURES[name](state, place)


def _accesses(state: State, place: str) -> str:
    """What each iteration of a loop touches, of every buffer in it; of a block, of the loop around it."""
    loop = _loop(state, place) if place else None
    found = effects(state.func.body).located()
    inside = [e for e in found if loop is None or any(var is loop.var for var, _, _ in e.loops)]
    names = dict.fromkeys(e.buffer.name for e in inside)
    return "".join(_of_buffer(state, name, loop) for name in [*names][:MOST_PICTURES])


def _loop(state: State, place: str) -> LoopRef | None:
    found = state.find_block(place) if place in state.index.blocks else state.find_loop(place)
    around = found.ancestors() if isinstance(found, BlockRef) else [found]
    return next((p for p in around if isinstance(p, LoopRef)), None)


def _of_buffer(state: State, name: str, loop: LoopRef | None) -> str:
    try:
        return access_picture(state, name, loop and place_name(state, loop)).svg()
    except (ScheduleError, ValueError) as error:  # the others may be drawn
        return f"<p>{html.escape(str(error))}</p>"


def _banks(state: State, place: str) -> str:
    names = dict.fromkeys(b.name for _, b in state.index.allocations(is_shared))
    drawn = "".join(banks_figure(name, bank_accesses(state, name)) for name in names)
    return drawn or "<p>Banks show when the loops around shared memory are bound to threads.</p>"


def _footprint(state: State, place: str) -> str:
    return footprint(state.func, target=state.target)._repr_html_()


_PICTURES: dict[str, Callable[[State, str], str]] = {"accesses": _accesses, "banks": _banks, "footprint": _footprint}
