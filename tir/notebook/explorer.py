"""The explorer: a view on a schedule that shows its loops, its history and its code, and takes steps on request.

:class:`Explorer` is plain Python: messages in, a view (JSON data) out. :mod:`tir.notebook.widget` connects it to a page.
"""

from __future__ import annotations

import ast
import html
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from ..analysis.index import BlockRef, LoopRef
from ..display import highlighted_lines
from ..errors import ScheduleError, TirError, attempt
from ..function import IRModule
from ..schedule import Schedule
from ..schedule.handles import BlockRV, LoopRV
from ..schedule.primitive import GROUPS, lookup
from ..schedule.state import State, place_name
from ..schedule.trace import index_map_of, results_of
from ..script.change import changes
from ..script.highlight import html_lines
from ..script.printer import line_ranges
from ..target import Target
from .beside import picture, pictures
from .loop_tree import Row, levels, nodes_of, rows
from .offered import Estimates, Offered
from .runs import Check, Run, checked, timed
from .stages import Loop, places_in, source, stages

Message = Mapping[str, Any]
T = TypeVar("T")
BUDGET = 0.08  # seconds of processor time from which on an answer leaves the rest to the next one
MOST_KEPT = 32  # of views of programs


class Explorer:
    """A view on ``schedule``: ``selected`` is the label of a loop or block, ``shown`` the step looked at (None: the last),
    ``pane`` the code or the picture beside the program.

    ``handle`` does what a message asks; ``view()`` is all that a page needs to draw it. A refused step leaves everything
    as it was, and the reason in ``view()["error"]``.
    """

    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self.selected = ""
        self.shown: int | None = None
        self.pane = "lowered"
        self.error = ""
        self.answered = 0  # messages: each answer differs from the one before
        self._runs: dict[int, tuple[IRModule, Run]] = {}  # of steps: the program that ran, and what came of it
        self._checks: dict[int, tuple[IRModule, Check]] = {}
        self._kept: dict[tuple[int, str], tuple[State, Any]] = {}  # by a snapshot and what was made of it
        self._estimates = Estimates(schedule.state.target)
        self._offered: Offered | None = None
        self._actions: dict[str, Callable[[Message], None]] = {
            "select": self._select, "show": self._show, "open": self._open, "apply": self._apply, "move": self._move,
            "run": self._run, "check": self._check, "tune": self._tune, "more": self._more, "undo": self._undo,
            "redo": self._redo, "refresh": lambda message: None,
        }  # fmt: skip

    # ------------------------------------------------------------ messages

    def handle(self, message: Message) -> None:
        """Do what ``message["do"]`` says: ``select`` (``place``), ``show`` (``step``), ``open`` (``pane``), ``apply``
        (``name``, ``given``), ``move`` (a loop, ``place``, to where the loop ``to`` is: by ``reorder``), ``run`` (times the step
        that is shown), ``check`` (runs it where every access is watched), ``tune`` (takes the steps of :func:`tir.tune.default` from the start), ``more`` (goes on with what
        ``view()["pending"]`` counts: offers after a step, bytes, the change, the code, and what the tuner's model expects of the offers), ``undo``, ``redo`` (``steps``), or ``refresh``."""
        self.answered += 1
        try:
            do = _part(message, "do", str)
            action = self._actions.get(do)
            self.error = self.error if do == "more" else ""
            if action is None:
                raise ScheduleError(f"the explorer knows no message {do!r}")
            action(message)
        except (TirError, ValueError) as error:
            self.error = str(error)
        except Exception as error:  # no message may end a page or a cell
            self.error = f"{type(error).__name__}: {error}"

    def _select(self, message: Message) -> None:
        place = _part(message, "place", str, "")
        self.selected = "" if place == self.selected else place
        if self.selected and self.shown is None:
            self._offer()

    def _show(self, message: Message) -> None:
        step, last = _part(message, "step", int), self._last
        if not 0 <= step <= last:
            raise ScheduleError(f"there are steps 0 to {last}, not {step}")
        self.shown = None if step == last else step

    def _open(self, message: Message) -> None:
        self.pane = _part(message, "pane", str)

    def _apply(self, message: Message) -> None:
        selected = attempt(lambda: self.schedule[self.selected]) if self.selected else None
        result = self._step(message)
        state = self.schedule.state
        # what was chosen, under the name that it has now; where it is gone, the last of what the step made
        handles = [h for h in (*results_of(result), selected) if isinstance(h, (LoopRV, BlockRV))]
        names = [attempt(lambda h=h: place_name(state, _found(state, h))) for h in reversed(handles)]
        self.selected = next((name for name in names if isinstance(name, str)), "")

    def _step(self, message: Message) -> Any:
        step = lookup(_part(message, "name", str))
        if step is None:
            raise ScheduleError(f"there is no primitive {message['name']!r}")
        if self.shown is not None:
            raise ScheduleError("an earlier step is shown: return to it first, or show the last one")
        given = {k: value_of(k, v) for k, v in _part(message, "given", dict).items() if v not in ("", None)}
        return self.schedule._apply_step(step, {p: given[p] for p in step.signature.parameters if p in given})

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

    def _check(self, message: Message) -> None:
        at = self._at
        state, first = self.schedule.states[at], self.schedule.states[0]
        found = checked(state.mod, first.mod, state.target, state.func_name)
        self._checks[at] = state.mod, found
        self.error = found.fault

    def _tune(self, message: Message) -> None:
        from ..tune.default import default

        if self._last:
            raise ScheduleError(
                f"the tuner starts from the program without steps; this schedule has {self._last}: undo them first"
            )
        found = default(self.schedule.mod, self.schedule.state.target or Target("llvm"))
        found.trace.apply_to_schedule(self.schedule)

    def _more(self, message: Message) -> None:
        start = time.thread_time()
        self._tree(self.schedule.states[self._at])
        for job in self._jobs():
            job()
            if time.thread_time() - start >= BUDGET:
                return

    def _jobs(self) -> Iterator[Callable[[], Any]]:
        """What a view shows later, since it takes a while."""
        at, pane, place = self._at, self.pane, self.selected
        state = self.schedule.states[at]
        if self.selected and self.shown is None and self._offered_now() is None:
            yield self._offer
        later: dict[str, Callable[[State], Any]] = {
            "levels": levels,
            self._beside(state): lambda s: _beside(s, pane, place),
        }
        if at:
            later = {f"diff {at}": lambda s: _change(self.schedule.states[at - 1].mod, s.mod), **later}
        for what, make in later.items():
            if (id(state), what) not in self._kept:
                yield partial(self._of, state, what, make)
        if offered := self._offered_now():
            yield from offered.jobs()

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

    def _ran(self, found: Mapping[int, tuple[IRModule, Run | Check]], at: int) -> dict[str, Any] | None:
        """What a run or a check of a step gave, if there was one and the step is still this one."""
        mod, run = found.get(at, (None, None))
        return dict(vars(run)) if run and mod is self.schedule.states[at].mod else None

    def view(self) -> dict[str, Any]:
        """The state of the explorer as data for JSON."""
        history = self.schedule.history
        at = self._at
        state = self.schedule.states[at]
        tree = self._tree(state)
        offered = self._offered_now()
        expected = self._estimates.known(state.func)
        return {
            "answered": self.answered,
            "title": f"{state.func.name}, {self._last} step{'s' * (self._last != 1)}",
            "steps": [repr(step) for step in history],
            "at": at,
            "runs": [self._ran(self._runs, n) for n in range(len(history))],
            "checks": [self._ran(self._checks, n) for n in range(len(history))],
            "last": self._last,
            "redo": self.schedule.undone,
            "tree": tree,
            "selected": self.selected,
            "groups": list(GROUPS),
            "offers": offered.data() if offered else None if self.selected and self.shown is None else [],
            "pending": sum(1 for _ in self._jobs()),
            "expected": expected[0] if expected else None,
            "program": self._of(state, "program", _printed)[0],
            "diff": self._made(state, f"diff {at}") or [],
            "python": self._python(),
            "panes": [*stages(state.target), *pictures(state)],
            "pane": self._made(state, self._beside(state)) or {"name": self.pane, **_NOTHING, "lines": None},
            "error": self.error,
        }

    def _tree(self, state: State) -> list[dict[str, Any]]:
        """The rows of the tree; what is not in it is no longer chosen."""
        ranges, known = self._of(state, "program", _printed)[1], self._made(state, "levels")
        tree = self._of(
            state, f"tree {known is not None}", lambda s: [_row(*both) for both in zip(rows(s, known or {}), ranges)]
        )
        if self.selected not in [row["label"] for row in tree]:
            self.selected = ""
        return tree

    def _offer(self) -> None:
        self._offered = Offered(self.schedule, self.selected, self._estimates)

    def _offered_now(self) -> Offered | None:
        """What may be done to the selected place, if the last step is shown and it was asked for."""
        made = self._offered
        now = self.shown is None and made is not None and made.is_for(self.schedule.state, self.selected)
        return made if now else None

    def _beside(self, state: State) -> str:
        """What is beside the program, to keep it by: a picture is about what is chosen."""
        return f"pane {self.pane}{f' of {self.selected}' if self.pane in pictures(state) else ''}"

    def _of(self, state: State, what: str, make: Callable[[State], T]) -> T:
        """What ``make`` makes of a snapshot, made once."""
        key = id(state), what
        if key not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = state, make(state)  # the snapshot stays alive, so that no other gets its id
        return self._kept[key][1]

    def _made(self, state: State, what: str) -> Any:
        """What was made of a snapshot; None if it was not yet."""
        return self._kept.get((id(state), what), (state, None))[1]

    def _python(self) -> str:
        try:
            return self.schedule.trace.as_python()
        except TirError as error:
            return f"# {error}"


def _found(state: State, handle: LoopRV | BlockRV) -> LoopRef | BlockRef:
    return state.find_loop(handle) if isinstance(handle, LoopRV) else state.find_block(handle)


_NOTHING: dict[str, Any] = {"lines": [], "html": "", "places": {}, "failed": False}


def _beside(state: State, name: str, place: str) -> dict[str, Any]:
    """What is beside the program: code, and the lines of each loop in it, or a picture."""
    try:
        shown = {"html": picture(state, name, place)} if name in pictures(state) else _code(state, name)
    except Exception as error:  # a program that this target cannot lower or compile is no fault of the explorer's
        shown = {"lines": html.escape(str(error)).splitlines(), "failed": True}
    return {"name": name, **_NOTHING, **shown}


def _code(state: State, name: str) -> dict[str, Any]:
    code = source(state.mod, state.target, name)
    lines = html_lines(code.text) if code.language == "python" else highlighted_lines(code.text, code.language)
    loops = [
        Loop(
            place_name(state, loop),
            loop.name,
            next((place_name(state, p) for p in loop.ancestors() if isinstance(p, LoopRef)), ""),
        )
        for loop in state.index.loops.values()
    ]
    return {"lines": lines, "places": places_in(code, loops)}


def _printed(state: State) -> tuple[list[str], list[tuple[int, int] | None]]:
    """The lines of the program, and those of each row of the tree."""
    text, ranges = line_ranges(state.mod, nodes_of(state))
    return html_lines(text), ranges


def _change(before: IRModule, after: IRModule) -> list[dict[str, Any]]:
    """What a step changed, statement by statement."""
    return [{"kind": line.kind, "depth": line.depth, "words": line.words} for line in changes(before, after)]


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


def _part(message: Any, name: str, kind: type[T], default: T | None = None) -> T:
    """A part of a message, which a page may send in any form. Raises ``ScheduleError`` for one of another type."""
    value = message.get(name, default) if isinstance(message, Mapping) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ScheduleError(f"`{name}` of a message is a value of type {kind.__name__}, not {value!r}")
    return value


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
