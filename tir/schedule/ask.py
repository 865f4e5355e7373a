"""Asking whether a step would be accepted, without taking it: ``sch.can``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import extension
from ..display import NO, YES, Shown, html_table
from ..errors import InternalError, ScheduleError, refusal
from .handles import BlockRV, LoopRV
from .offers import Offers, offers, one_click
from .primitive import PRIMITIVES, Primitive, lookup
from .signatures import public_signature
from .state import State, label

if TYPE_CHECKING:
    from .schedule import Schedule


class Answer:
    """The answer of ``sch.can``: true if the step would be accepted, otherwise false with the reason.

    If the call omitted a loop, ``legal`` lists the loops (names) for which it would be accepted, and ``refused``
    has the reason for each other one.

    >>> import tir
    >>> from tir import te
    >>> A = te.placeholder((8, 8), name="A")
    >>> k = te.reduce_axis((0, 8), "k")
    >>> sch = tir.Schedule(te.create_prim_func([A, te.compute((8,), lambda i: te.sum(A[i, k], axis=k), "B")]))
    >>> answer = sch.can.parallel()
    >>> bool(answer), answer.legal, list(answer.refused)
    (True, ['i'], ['k'])
    >>> bool(sch.can.parallel("k"))
    False
    >>> sch.can.parallel("i")
    yes
    """

    error: Exception | None
    legal: list[str]
    refused: dict[str, str]

    def __init__(self, error: Exception | None, legal: list[str] | None = None, refused: dict[str, str] | None = None):
        self.error = error
        self.legal = legal if legal is not None else []
        self.refused = refused if refused is not None else {}

    def __bool__(self) -> bool:
        return self.error is None

    @property
    def reason(self) -> str:
        """Why the step would be refused; empty if it would be accepted."""
        return "" if self.error is None else str(self.error)

    def __repr__(self) -> str:
        if self.legal or self.refused:
            lines = ["legal: " + (", ".join(self.legal) or "none")]
            lines += [f"  not {name}: {why.splitlines()[0]}" for name, why in self.refused.items()]
            return "\n".join(lines)
        return "yes" if self else f"no: {self.reason}"

    def _repr_html_(self) -> str:
        word, colour = ("yes", YES) if self else ("no", NO)
        if self.legal or self.refused:
            return html_table(
                ("loop", "", "why"),
                [(n, "yes", "") for n in self.legal] + [(n, "no", w) for n, w in self.refused.items()],
            )
        return f'<p><b style="color:{colour}">{word}</b></p>{Shown(self.reason)._repr_html_() if self.error else ""}'


class Asker:
    """``sch.can``: every primitive under its name, as a query; ``sch.can("i")`` asks about all that takes loop ``i``.

    A query raises ``InternalError`` where this package fails in the step: that is neither yes nor no.

    Shown, it lists the loops and blocks, and what may be done to each without further choices.

    >>> import tir
    >>> from tir import te
    >>> A = te.placeholder((8,), name="A")
    >>> sch = tir.Schedule(te.create_prim_func([A, te.compute((8,), lambda i: A[i] * 2.0, "B")]))
    >>> sch.can.split("i", [2, 4])
    yes
    >>> len(sch.can("i")) > 20
    True
    """

    def __init__(self, sch: Schedule):
        self.schedule = sch

    def __call__(self, place: LoopRV | BlockRV | str) -> Offers:
        """Every primitive that takes this loop or block, tried with usual values of what else it needs: a list, which
        shows as a table, of what would be accepted and change the program (or draw a value), and why the rest would not. Raises ``ScheduleError`` for a name that
        is none."""
        return offers(self.schedule.state, place, self._worth)

    def __repr__(self) -> str:
        return repr(one_click(self.schedule.state, self._worth))

    def _repr_html_(self) -> str:
        return one_click(self.schedule.state, self._worth)._repr_html_()

    def __getattr__(self, name: str) -> Callable[..., Answer]:
        step = lookup(name)
        if step is None or step.apply is None:
            raise AttributeError(
                f"no primitive {name!r}{extension.unknown(extension.PRIMITIVES, name, sorted(PRIMITIVES))}"
            )
        return self._twin(step)

    def _twin(self, step: Primitive) -> Callable[..., Answer]:
        """The query of a primitive: its signature, and its docstring under a line that says what is different."""

        def ask(*args: Any, **kwargs: Any) -> Answer:
            return self._ask(step, args, kwargs)

        ask.__name__, ask.__qualname__ = step.name, f"Schedule.can.{step.name}"
        ask.__doc__ = (
            f"Whether ``sch.{step.name}`` with these arguments would be accepted, otherwise why not.\n\n{step.doc}"
        )
        ask.__signature__ = public_signature(step, "Answer")  # type: ignore[attr-defined]
        return ask

    def __dir__(self) -> list[str]:
        return sorted(PRIMITIVES)

    def _ask(self, step: Primitive, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        given = dict(step.signature.bind_partial(*args, **kwargs).arguments)
        missing = [
            p.name
            for p in step.signature.parameters.values()
            if p.name not in given and p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
        if len(missing) == 1 and step.kinds.get(missing[0], "").startswith("loop"):
            return self._survey(step, given, missing[0])
        step.bind(args, kwargs)
        return Answer(self._refusal(step, given))

    def _refusal(self, step: Primitive, given: Mapping[str, Any]) -> ScheduleError | None:
        """Why a step would be refused. A fault of this package is no answer, and is raised."""
        error = refusal(lambda: self.schedule._attempt(step, self.schedule.state, given))
        if isinstance(error, InternalError):
            raise error
        return error

    def _worth(self, step: Primitive, given: Mapping[str, Any]) -> State | ScheduleError:
        """The snapshot after a step; or why it is no offer: it would be refused, or would change nothing."""
        return self.schedule._outcome(step, self.schedule.state, given)

    def _survey(self, step: Primitive, given: Mapping[str, Any], name: str) -> Answer:
        state = self.schedule.state
        legal: list[str] = []
        refused: dict[str, str] = {}
        error: ScheduleError | None = None
        for ref in state.index.loops.values():
            at = label(state, ref)
            handle = state.loop_rv(ref)
            ordered = {
                p: handle if p == name else given[p] for p in step.signature.parameters if p == name or p in given
            }
            error = self._refusal(step, ordered)
            if error is None:
                legal.append(at)
            else:
                refused[at] = error.rule
        return Answer(None if legal else error or ScheduleError("the function has no loops"), legal, refused)
