"""The explorer: a view on a schedule that shows its loops, its history and its code, and takes steps on request.

:class:`Explorer` is plain Python: messages in, a view (JSON data) out. :mod:`tir.notebook.widget` connects it to a page.
"""

from __future__ import annotations

import ast
import html
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..analysis.index import LoopRef
from ..display import highlighted_lines
from ..errors import ScheduleError, TirError
from ..function import IRModule
from ..schedule import Schedule
from ..schedule.offers import Offer
from ..schedule.primitive import lookup
from ..schedule.state import State, place_name
from ..schedule.trace import index_map_of
from ..script.highlight import html_lines, program_diff
from ..script.printer import line_ranges
from .loop_tree import Row, loop_tree, nodes_of
from .runs import Run, timed
from .stages import mark, source, stages

Message = Mapping[str, Any]
T = TypeVar("T")


class Explorer:
    """A view on ``schedule``: ``selected`` is the label of a loop or block, ``shown`` the step looked at (None: the last),
    ``pane`` the code beside the program.

    ``handle`` does what a message asks; ``view()`` is all that a page needs to draw it. A refused step leaves everything
    as it was, and the reason in ``view()["error"]``.
    """

    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self.selected = ""
        self.shown: int | None = None
        self.pane = "lowered"
        self.error = ""
        self._runs: dict[int, tuple[IRModule, Run]] = {}  # of steps: the program that ran, and what came of it
        self._made: tuple[IRModule, str, tuple[str, str]] | None = None
        self._actions: dict[str, Callable[[Message], None]] = {
            "select": self._select,
            "show": self._show,
            "open": self._open,
            "apply": self._apply,
            "move": self._move,
            "run": self._run,
            "undo": self._undo,
            "redo": self._redo,
            "refresh": lambda message: None,
        }

    # ------------------------------------------------------------ messages

    def handle(self, message: Message) -> None:
        """Do what ``message["do"]`` says: ``select`` (``place``), ``show`` (``step``), ``open`` (``pane``), ``apply``
        (``name``, ``given``), ``move`` (a loop, ``place``, to where the loop ``to`` is: by ``reorder``), ``run`` (times the step
        that is shown), ``undo``, ``redo`` (``steps``), or ``refresh``."""
        self.error = ""
        try:
            action = self._actions.get(_part(message, "do", str))
            if action is None:
                raise ScheduleError(f"the explorer knows no message {message['do']!r}")
            action(message)
        except (TirError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
            self.error = str(error)

    def _select(self, message: Message) -> None:
        place = _part(message, "place", str, "")
        self.selected = "" if place == self.selected else place

    def _show(self, message: Message) -> None:
        step, last = _part(message, "step", int), self._last
        if not 0 <= step <= last:
            raise ScheduleError(f"there are steps 0 to {last}, not {step}")
        self.shown = None if step == last else step

    def _open(self, message: Message) -> None:
        self.pane = _part(message, "pane", str)

    def _apply(self, message: Message) -> None:
        step = lookup(_part(message, "name", str))
        if step is None:
            raise ScheduleError(f"there is no primitive {message['name']!r}")
        if self.shown is not None:
            raise ScheduleError("an earlier step is shown: return to it first, or show the last one")
        given = {k: value_of(k, v) for k, v in _part(message, "given", dict).items() if v not in ("", None)}
        self.schedule._apply_step(step, {p: given[p] for p in step.signature.parameters if p in given})

    def _move(self, message: Message) -> None:
        state = self.schedule.state
        one, other = (state.find_loop(_part(message, name, str)) for name in ("place", "to"))
        if one is other:
            return
        inward = one in other.ancestors()
        inner, outer = (other, one) if inward else (one, other)
        above = list(inner.ancestors())
        path = [inner, *above[: above.index(outer) + 1]] if outer in above else [inner, outer]  # which reorder refuses
        stay = [place_name(state, r) for r in reversed(path) if isinstance(r, LoopRef) and r is not one]
        moved = place_name(state, one)
        self._apply({"name": "reorder", "given": {"loops": [*stay, moved] if inward else [moved, *stay]}})

    def _run(self, message: Message) -> None:
        at = self._at
        state, first = self.schedule.states[at], self.schedule.states[0]
        self._runs[at] = state.mod, timed(state.mod, first.mod, state.target, state.func_name)

    def _undo(self, message: Message) -> None:
        self.schedule.undo(_part(message, "steps", int, 1))
        self.shown = None

    def _redo(self, message: Message) -> None:
        self.schedule.redo(_part(message, "steps", int, 1))
        self.shown = None

    # ------------------------------------------------------------ the view

    @property
    def _last(self) -> int:
        return len(self.schedule.history) - 1

    @property
    def _at(self) -> int:
        """The step that is shown; the last one where it was undone."""
        if self.shown is not None and self.shown >= self._last:
            self.shown = None
        return self._last if self.shown is None else self.shown

    def _ran(self, at: int) -> dict[str, Any] | None:
        """What a run of a step gave, if it was run and the step is still this one."""
        mod, run = self._runs.get(at, (None, None))
        return {"seconds": run.seconds, "text": run.text} if run and mod is self.schedule.states[at].mod else None

    def view(self) -> dict[str, Any]:
        """The state of the explorer as data for JSON."""
        history = self.schedule.history
        at = self._at
        state = self.schedule.states[at]
        rows = loop_tree(state).rows
        if self.selected not in [row.label for row in rows]:
            self.selected = ""
        mod = state.mod
        ranges = line_ranges(mod, nodes_of(state))
        return {
            "title": f"{state.func.name}, {self._last} step{'s' * (self._last != 1)}",
            "steps": [repr(step) for step in history],
            "at": at,
            "runs": [self._ran(n) for n in range(len(history))],
            "last": self._last,
            "redo": self.schedule.undone,
            "tree": [_row(row, span) for row, span in zip(rows, ranges)],
            "selected": self.selected,
            "offers": self._offers(),
            "program": html_lines(mod.script()),
            "diff": program_diff(history[at - 1].mod, mod, history[at].text).splitlines() if at else [],
            "python": self._python(),
            "panes": stages(state.target),
            "pane": self._pane(at),
            "error": self.error,
        }

    def _offers(self) -> list[dict[str, Any]]:
        """What may be done to the selected place, if the last step is shown."""
        if not self.selected or self.shown is not None:
            return []
        return [_offer(offer) for offer in self.schedule.can(self.selected)]

    def _python(self) -> str:
        try:
            return self.schedule.trace.as_python()
        except TirError as error:
            return f"# {error}"

    def _pane(self, at: int) -> dict[str, Any]:
        """The code beside the program, and the lines of the selected loop in it."""
        state = self.schedule.states[at]
        try:
            text, language = self._source(state)
        except Exception as error:  # a program that this target cannot lower or compile is no fault of the explorer's
            return {"name": self.pane, "lines": html.escape(str(error)).splitlines(), "marked": [], "failed": True}
        lines = html_lines(text) if language == "python" else highlighted_lines(text, language)
        name = self.selected.rpartition(".")[2]
        return {"name": self.pane, "lines": lines, "marked": mark(text, name) if name else [], "failed": False}

    def _source(self, state: State) -> tuple[str, str]:
        """The text of the pane and its language, made once for a program."""
        known = self._made
        if known is None or known[0] is not state.mod or known[1] != self.pane:
            known = self._made = (state.mod, self.pane, source(state.mod, state.target, self.pane))
        return known[2]


def _row(row: Row, span: tuple[int, int] | None) -> dict[str, Any]:
    return {
        "label": row.label,
        "name": row.name,
        "depth": row.depth,
        "kind": row.kind,
        "extent": row.extent,
        "bytes": row.bytes,
        "touched": dict(row.touched),
        "holds": row.holds,
        "regions": row.regions,
        "iterators": list(row.iterators),
        "lines": list(span) if span else [],
    }


def _offer(offer: Offer) -> dict[str, Any]:
    fields = [
        {
            "name": f.name,
            "needed": f.needed,
            "value": shown_value(offer.given.get(f.name, "")),
            "choices": [shown_value(c) for c in f.choices[:64]] if len(f.choices) > 1 else [],
        }
        for f in offer.fields
    ]
    place = {k: v for k, v in offer.given.items() if k not in [f.name for f in offer.fields]}
    return {
        "name": offer.name,
        "text": offer.text,
        "summary": offer.summary,
        "reason": offer.reason,
        "given": place,
        "fields": fields,
    }


def _part(message: Any, name: str, kind: type[T], default: T | None = None) -> T:
    """A part of a message, which a page may send in any form. Raises ``ScheduleError`` for one of another type."""
    value = message.get(name, default) if isinstance(message, Mapping) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ScheduleError(f"`{name}` of a message is a value of type {kind.__name__}, not {value!r}")
    return value


def shown_value(value: Any) -> str:
    """A value in a form: a string as it is, anything else as Python."""
    return value if isinstance(value, str) else repr(value)


def value_of(name: str, text: Any) -> Any:
    """The value typed into a form: a number, a list, None or True as Python spells it, a lambda as an index map, any other
    text as a string.

    >>> value_of("factors", "[None, 4]"), value_of("loop", "i")
    ([None, 4], 'i')
    """
    if not isinstance(text, str):
        return text
    if text.lstrip().startswith("lambda"):
        return index_map_of(text.strip())
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last two for what is nested too deeply
        return text
