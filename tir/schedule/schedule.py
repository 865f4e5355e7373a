"""The Schedule: a cursor over snapshots. Each step makes a new snapshot; a refused step changes nothing."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import random
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..analysis.footprint import footprint
from ..analysis.footprint_table import Footprint, Machine
from ..analysis.index import BlockRef, LoopRef, node_of
from ..analysis.private_clause import with_inferred_clauses, without_stale_clauses
from ..analysis.undeclared import with_all_accesses_declared
from ..display import NO, YES, Shown, html_table
from ..errors import ScheduleError
from ..function import IRModule, PrimFunc
from ..names import did_you_mean
from ..stmt import Block, For
from ..target import Target
from . import primitives as _families  # noqa: F401  (registers every primitive)
from . import queries as _queries  # noqa: F401
from . import trace as _trace
from .alternatives import alternatives
from .handles import BlockRV, ExprRV, LoopRV, StmtSRef
from .history import History, Step
from .invariants import Keeps, check_step
from .invariants.delta import Delta
from .invariants.executed import EXECUTED
from .legality import with_needed_clauses
from .offers import Offers, offers, one_click, places
from .primitive import PRIMITIVES, QUERIES, Primitive, check_only, explain, load_entry_points, lookup, request_text, run
from .signatures import public_signature
from .state import State, label

if TYPE_CHECKING:
    from ..notebook.access_picture import AccessPicture
    from ..notebook.loop_tree import LoopTree
    from ..transform.shared_memory_table import SharedMemoryPlan

_log = logging.getLogger(__name__)
ERROR_LEVELS = ("detail", "fast", "none")


class Answer:
    """The answer of ``sch.can``: true if the step would be accepted, otherwise false with the reason.

    If the call omitted a loop, ``legal`` lists the loops (names) for which it would be accepted, and ``refused``
    has the reason for each other one.
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

    Shown, it lists the loops and blocks, and what may be done to each without further choices.
    """

    def __init__(self, sch: Schedule):
        self.schedule = sch

    def __call__(self, place: LoopRV | BlockRV | str) -> Offers:
        """Every primitive that takes this loop or block, tried with usual values of what else it needs: a list, which
        shows as a table, of what would be accepted and why the rest would not. Raises ``ScheduleError`` for a name that
        is none."""
        return offers(self.schedule.state, place, self._try)

    def __repr__(self) -> str:
        return repr(one_click(self.schedule.state, self._try))

    def _repr_html_(self) -> str:
        return one_click(self.schedule.state, self._try)._repr_html_()

    def __getattr__(self, name: str) -> Callable[..., Answer]:
        step = lookup(name)
        if step is None or step.apply is None:
            raise AttributeError(f"no primitive {name!r}{did_you_mean(name, sorted(PRIMITIVES))}")
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
        return Answer(self._try(step, given))

    def _try(self, step: Primitive, given: Mapping[str, Any]) -> Exception | None:
        try:
            self.schedule._attempt(step, self.schedule.state, given)
        except ScheduleError as error:
            return error
        return None

    def _survey(self, step: Primitive, given: Mapping[str, Any], name: str) -> Answer:
        state = self.schedule.state
        legal: list[str] = []
        refused: dict[str, str] = {}
        error: Exception | None = None
        for ref in state.index.loops.values():
            at = label(state, ref)
            handle = state.loop_rv(ref)
            ordered = {
                p: handle if p == name else given[p] for p in step.signature.parameters if p == name or p in given
            }
            error = self._try(step, ordered)
            if error is None:
                legal.append(at)
            else:
                refused[at] = error.rule if isinstance(error, ScheduleError) else str(error)
        return Answer(None if legal else error or ScheduleError("the function has no loops"), legal, refused)


class Schedule:
    """Rewrites a program step by step; every step is proved legal before it is applied.

    ``mod`` is a PrimFunc or an IRModule; the function worked on is ``main``, otherwise the only (or first) one.
    ``seed`` seeds the sampling primitives. ``target`` sets the limits that steps respect. ``verify="run"`` also
    executes the program before and after each step and compares the results. ``error_render_level`` ``"fast"`` omits
    the program from errors, ``"none"`` all but the rule. ``enable_check=False`` skips the legality checks, as
    ``unsafe=True`` on every step would.

    Steps raise ``ScheduleError`` when refused, and then the schedule is unchanged. ``can`` asks first:
    ``sch.can.fuse("i", "j")`` is true if that step would be accepted, otherwise it says why not; nothing changes.
    """

    can: Asker

    def __init__(
        self,
        mod: PrimFunc | IRModule,
        *,
        seed: int | None = None,
        debug_mask: str | int | None = None,
        error_render_level: str = "detail",
        enable_check: bool = True,
        target: Any = None,
        verify: str | None = None,
    ):
        if error_render_level not in ERROR_LEVELS:
            raise ValueError(f"error_render_level is one of {', '.join(ERROR_LEVELS)}, not {error_render_level!r}")
        if verify not in (None, "run"):
            raise ValueError(f"verify is None or 'run', not {verify!r}")
        module = with_inferred_clauses(with_all_accesses_declared(IRModule.of(mod)))
        if not len(module):
            raise ValueError("the module has no functions to schedule")
        func = "main" if "main" in module else next(iter(module))
        state = State(
            module,
            func,
            None if target is None else Target.of(target),
            seed=random.getrandbits(62) if seed is None or seed == -1 else seed,
        )
        self._states: list[State] = [state]
        self._texts: list[str] = [""]
        self._at = 0
        self._level = error_render_level
        self._check = enable_check
        self._also = (EXECUTED,) if verify else ()
        self.debug_mask = debug_mask
        self.can = Asker(self)
        _complete_names()

    # ------------------------------------------------------------ properties

    @property
    def state(self) -> State:
        """The current snapshot."""
        return self._states[self._at]

    @property
    def mod(self) -> IRModule:
        """The current module."""
        return self.state.mod

    @property
    def func(self) -> PrimFunc:
        """The current version of the function worked on."""
        return self.state.func

    @property
    def func_working_on(self) -> str:
        """Name of the function in which names without a function are looked up."""
        return self.state.func_name

    @property
    def target(self) -> Target | None:
        return self.state.target

    @property
    def trace(self) -> _trace.Trace:
        """The record of calls that led to the current program."""
        return _trace.Trace(_trace.entries(self.state.trace))

    @property
    def history(self) -> History:
        """Every step up to here with the module after it; number 0 is the start."""
        return History(Step(n, self._texts[n] or "start", self._states[n].mod) for n in range(self._at + 1))

    def __getitem__(self, name: str) -> BlockRV | LoopRV:
        """The block or the loop called ``name`` (``"i"``, or ``"C.i"`` above block C where several are called so), as a
        handle. Raises ``ScheduleError`` that lists the existing ones."""
        if name in self.state.index.blocks:
            return self.state.block_rv(name)
        return self.state.loop_rv(self.state.find_loop(name))

    def _ipython_key_completions_(self) -> list[str]:
        return places(self.state)

    def get(self, handle: LoopRV | BlockRV | ExprRV | str | Any) -> For | Block | int:
        """What a handle or a name currently refers to: the loop, the block, or the integer."""
        if isinstance(handle, StmtSRef):
            return handle.stmt
        if isinstance(handle, str):
            is_block = handle in self.state.index.blocks
            return self.state.find_block(handle).block if is_block else self.state.find_loop(handle).node
        if isinstance(handle, LoopRV):
            return self._in(handle.func).find_loop(handle).node
        if isinstance(handle, BlockRV):
            return self._in(handle.func).find_block(handle).block
        if isinstance(handle, int) or hasattr(handle, "__index__"):
            return int(handle)
        raise TypeError(f"expected a handle that this schedule gave, got {type(handle).__name__}")

    def get_sref(self, handle: LoopRV | BlockRV | str | For | Block) -> StmtSRef:
        """The loop or block that a handle or a name currently refers to, with its parents. It does not follow later
        steps.

        Raises ``ScheduleError`` for one that does not exist.
        """
        node: Any = handle if isinstance(handle, (For, Block)) else self.get(handle)
        func = handle.func if isinstance(handle, (LoopRV, BlockRV)) else self.state.func_name
        index = self._in(func).index
        chain = [p for p in (*index.loops.values(), *index.blocks.values()) if node_of(p) is node]
        if not chain:
            raise ScheduleError(f"the function has no such {'loop' if isinstance(node, For) else 'block'} now")
        found: StmtSRef | None = None
        for place in reversed([chain[0], *chain[0].ancestors()]):
            if isinstance(place, (LoopRef, BlockRef)):
                found = StmtSRef(node_of(place), found)
        assert found is not None
        return found

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV | str) -> bool:
        """Whether ``decompose_padding`` would be accepted; ``sch.can.decompose_padding`` has the reason."""
        return bool(self.can.decompose_padding(block, loop))

    def _in(self, func: str) -> State:
        return dataclasses.replace(self.state, func_name=func) if func in self.mod else self.state

    def remove_rv(self, handle: Any) -> None:
        """Does nothing: handles are names and hold no resources. For compatibility with TVM scripts."""

    def get_sblock(self, name: str, func_name: str | None = None) -> BlockRV:
        """``get_block``, under its name in newer versions of TVM."""
        return self._apply_step(QUERIES["get_block"], {"name": name, "func_name": func_name})

    # ------------------------------------------------------------ history

    def copy(self) -> Schedule:
        """An independent schedule at the same point, in constant time; it draws its own random numbers."""
        made = object.__new__(Schedule)
        made.__dict__.update(self.__dict__)
        made.can = Asker(made)
        made._states = list(self._states)
        made._texts = list(self._texts)
        made._set_state(dataclasses.replace(self.state, seed=self.fork_seed()))
        return made

    @property
    def states(self) -> tuple[State, ...]:
        """The snapshots up to here; number 0 is the start."""
        return tuple(self._states[: self._at + 1])

    def _after(self, step: int) -> State:
        """The snapshot after a step of the history, counted from 0, the start, or backwards from the last (-1)."""
        if not -len(self.states) <= step < len(self.states):
            raise ScheduleError(f"step={step}: steps 0 to {self._at} are in the history")
        return self.states[step]

    @property
    def undone(self) -> int:
        """How many steps ``redo`` can take."""
        return len(self._states) - 1 - self._at

    def undo(self, steps: int = 1) -> None:
        """Go back; ``redo`` returns. Raises ``ScheduleError`` at the start of history."""
        if not 0 <= steps <= self._at:
            raise ScheduleError(f"undo({steps}): only {self._at} steps have been taken")
        self._at -= steps

    def redo(self, steps: int = 1) -> None:
        """Redo undone steps. Raises ``ScheduleError`` when there are fewer."""
        if not 0 <= steps <= self.undone:
            raise ScheduleError(f"redo({steps}): {self.undone} steps can be redone")
        self._at += steps

    def reset(self) -> None:
        """Go back to the start of history."""
        self._at = 0

    def seed(self, seed: int) -> None:
        """Seed the sampling primitives from now on."""
        self._set_state(dataclasses.replace(self.state, seed=seed))

    def fork_seed(self) -> int:
        """A seed for another schedule, different at each call."""
        state, generator = self.state.draw()
        self._set_state(state)
        return generator.getrandbits(31)

    # ------------------------------------------------------------ showing

    def show(self, **options: Any) -> None:
        """Print the program, coloured in a terminal and in a notebook."""
        self.mod.show(**options)

    def script(self, **options: Any) -> str:
        """The current program, as text that parses back to it."""
        return self.mod.script(**options)

    def __str__(self) -> str:
        return self.mod.script()

    def __repr__(self) -> str:
        steps = "1 step" if self._at == 1 else f"{self._at} steps"
        return f"Schedule of {', '.join(self.mod)} after {steps}"

    def _repr_html_(self) -> str:
        return self.mod._repr_html_()

    def footprint(self, machine: Machine | None = None) -> Footprint:
        """How much memory each loop touches now, what holds it, and what limits the run time: a table, with a figure in a
        notebook (docs/footprint.md). ``machine``: sizes and rates, by default those of the schedule's target. Raises
        ``ValueError`` for loops or buffers of unknown size."""
        return footprint(self, machine, self.target)

    def loop_tree(self, *, step: int = -1) -> LoopTree:
        """The loops and blocks with their extents, kinds and regions, and the bytes that each loop touches: a table, in a
        notebook a figure. ``step``: after an earlier step of the history, 0 for the start."""
        from ..notebook.loop_tree import loop_tree

        return loop_tree(self._after(step))

    def access_picture(
        self,
        buffer: str,
        loop: LoopRV | str | None = None,
        *,
        at: Mapping[str, int] | None = None,
        step: int = -1,
    ) -> AccessPicture:
        """Which elements of ``buffer`` each iteration of ``loop`` touches, and of shared memory the bank conflicts: text,
        in a notebook a figure (docs/pictures.md).

        ``loop``: by default the outermost around the first access. The loops around it stand at their first iteration, or
        where ``at`` says (``{"i": 3}``). ``step`` looks at the program after an earlier step of the history, 0 at the
        first; so ``sch.access_picture("B", "i", step=-2).beside(sch.access_picture("B", "i"))`` shows what the last step
        changed. Raises ``ScheduleError`` for names that are none, ``ValueError`` where sizes or elements are not known
        before the program runs."""
        from ..notebook.access_picture import access_picture

        return access_picture(self._after(step), buffer, loop, at)

    def shared_memory_plan(self) -> SharedMemoryPlan:
        """The shared memory of each kernel: buffers with their bytes, lifetimes and offsets, a table, in a notebook a
        figure. Raises ``BuildError`` as lowering does."""
        from ..transform.plan_shared_memory import shared_memory_plan

        target = self.target
        return shared_memory_plan(self.mod, target if target is not None and target.kind.startswith("cuda") else "cuda")

    def explore(self) -> Any:
        """A view on this schedule in a notebook: its loop tree, its history with diffs, what may be done to each loop and
        block, and the code it becomes (docs/notebook.md). What is clicked is a step of this schedule, and what is typed
        in a cell shows. Raises ``ImportError`` without anywidget (``pip install 'tensorir[notebook]'``)."""
        from ..notebook.widget import widget

        return widget(self)  # pyright: ignore[reportArgumentType]  (the class of the stub is this one)

    def diff(self, step: int = -1, context: int = 3, color: bool | None = None) -> str:
        """What a step changed, as a unified diff of the program's text.

        ``step`` counts from 1, or backwards from the last (-1). Coloured on a terminal, or as ``color`` selects. Empty
        before the first step. Raises ``ScheduleError`` when there is no such step.
        """
        number = step if step > 0 else self._at + 1 + step
        from ..script.highlight import Diff, program_diff

        if self._at == 0 and step == -1:
            return Diff("")
        if not 1 <= number <= self._at:
            taken = f"steps 1 to {self._at} have been taken" if self._at else "no step has been taken"
            raise ScheduleError(f"diff({step}): {taken}")

        before, after = self._states[number - 1].mod, self._states[number].mod
        lines = program_diff(before, after, self._texts[number], context).splitlines()
        if sys.stdout.isatty() if color is None else color:
            paint = {"-": "\x1b[31m", "+": "\x1b[32m", "@": "\x1b[36m"}
            lines = [f"{paint[line[0]]}{line}\x1b[0m" if line[:1] in paint else line for line in lines]
        return Diff("\n".join(lines))

    # ------------------------------------------------------------ steps

    def __getattr__(self, name: str) -> Any:
        step = None if name.startswith("_") else lookup(name)
        if step is None:
            known = {*PRIMITIVES, *QUERIES, *dir(type(self))}
            raise AttributeError(f"Schedule has no {name!r}{did_you_mean(name, sorted(known))}")
        return _method(step).__get__(self)

    def __dir__(self) -> list[str]:
        load_entry_points()
        return sorted({*object.__dir__(self), *PRIMITIVES, *QUERIES})

    def _set_state(self, state: State) -> None:
        self._states[self._at] = state

    def _apply_step(self, step: Primitive, given: dict[str, Any]) -> Any:
        """Apply a step (or answer a query) with arguments by name; every step goes through here."""
        state = self.state
        if step.apply is None:
            return self._query(step, state, given)
        if not self._check and "unsafe" in step.signature.parameters:
            given = {**given, "unsafe": True}
        new, result, plan = self._attempt(step, state, given)
        recorded = {**given, **getattr(plan, "recorded", {})}
        new = new.replaced(trace=_trace.append(state.trace, _trace.Entry(step.name, recorded, result)))
        del self._states[self._at + 1 :], self._texts[self._at + 1 :]
        self._states.append(new)
        self._texts.append(request_text(step, given))
        self._at += 1
        _log.debug("step %d: %s", self._at, self._texts[self._at])
        return result

    def _query(self, step: Primitive, state: State, given: dict[str, Any]) -> Any:
        try:
            result = check_only(step, state, given)
        except ScheduleError as error:
            raise self._plainer(error) from error.__cause__
        self._set_state(state.replaced(trace=_trace.append(state.trace, _trace.Entry(step.name, given, result))))
        return result

    def _attempt(self, step: Primitive, state: State, given: Mapping[str, Any]) -> tuple[State, Any, Any]:
        """The snapshot after a step on ``state``, with the result and the plan. Raises ``ScheduleError`` if the step is
        refused or breaks an invariant."""
        try:
            new, result, plan = run(step, state, given)
            if new.mod is not state.mod:
                new = self._verify_step(step, step.kept_by(plan), given, state, new)
            return new, result, plan
        except ScheduleError as error:
            error.find_legal(functools.partial(alternatives, error, step, state, given, self._outcome))
            raise self._plainer(error) from error.__cause__

    def _outcome(self, step: Primitive, state: State, given: Mapping[str, Any]) -> State | ScheduleError:
        """The snapshot after a legal step that has a result or changes the program; otherwise why it is not taken."""
        try:
            after, result, _ = self._attempt(step, state, given)
        except ScheduleError as error:
            return error
        idle = after.mod is state.mod and result is None
        return ScheduleError("the program would stay as it is") if idle else after

    def _plainer(self, error: ScheduleError) -> ScheduleError:
        if self._level != "detail":
            error.nodes = []
        if self._level == "none":
            error.witness, error.legal = [], ""
        return error

    def _verify_step(
        self, step: Primitive, keeps: Keeps, given: Mapping[str, Any], before: State, after: State
    ) -> State:
        """The snapshot after a step that preserves what it ``keeps``, with the ``private`` clauses that its loops need.
        Raises ``ScheduleError`` where an invariant does not hold of a function that the step changed."""
        settled = after
        for name in after.mod:
            old, new = before.mod.functions.get(name), without_stale_clauses(after.mod[name])
            if old is new:
                continue
            modules = (before.mod, after.mod)
            delta = Delta(old, new, keeps, primitive=step.name, name=name, modules=modules, target=after.target)
            try:
                check_step(delta, proved=not given.get("unsafe"), also=self._also)
            except ScheduleError as error:
                raise explain(error, step, given, after) from None
            new = with_needed_clauses(delta)
            if new is not settled.mod[name]:
                settled = settled.replaced(mod=settled.mod.with_function(name, new))
        return settled


@functools.cache
def _complete_names() -> None:
    """In an IPython session, from the first schedule on, Tab completes names inside of strings and after ``sch.can.``."""
    if "IPython" in sys.modules:
        from ..notebook import join_session

        join_session()


def _method(step: Primitive) -> Callable[..., Any]:
    """The Schedule method of a primitive: its signature and docstring are the check's."""

    def method(self: Schedule, *args: Any, **kwargs: Any) -> Any:
        return self._apply_step(step, step.bind(args, kwargs))

    method.__name__ = step.name
    method.__qualname__ = f"Schedule.{step.name}"
    method.__doc__ = step.doc
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    public = public_signature(step)
    method.__signature__ = public.replace(parameters=[me, *public.parameters.values()])  # type: ignore
    return method


for _step in (*PRIMITIVES.values(), *QUERIES.values()):
    setattr(Schedule, _step.name, _method(_step))
