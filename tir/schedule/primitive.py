"""How a primitive is defined: a check that owns the signature, an apply, and the table of primitives.

::

    @dataclass(frozen=True)
    class FusePlan: ...

    def _check_fuse(state: State, *loops: LoopRef, unsafe: bool = False) -> FusePlan:
        '''the docstring of sch.fuse'''      # resolves, proves, rejects by errors.require

    @primitive(check=_check_fuse)
    def fuse(state: State, plan: FusePlan) -> tuple[State, LoopRV]:
        ...                                  # builds, never rejects; state.replace(old, new, moved={...})

``apply`` returns the new snapshot, or a pair of it and the result (handles, ``ExprRV``, or lists of them); a check whose proof
makes these returns them itself, under ``@primitive()`` and without an apply. The check's
annotations convert arguments (:mod:`tir.schedule.primitive_arguments`): ``LoopRef`` and ``BlockRef`` accept handles and names
and are converted to places of the current program; ``BlockRef | LoopRef`` accepts either; ``list[…]`` and ``*args``
convert each member; ``int``, ``bool``, ``str`` and the like are checked, and ``Any`` is unchanged. ``keeps`` declares
what the step preserves, so that it is not proved again (:mod:`tir.schedule.invariants`). ``instead`` and ``prepared_by``
name steps that a refusal offers, where they are accepted (:mod:`tir.schedule.alternatives`). ``group`` is the heading
under which the step is offered (``GROUPS``; "other" if it names none). A plan attribute ``recorded``
(a mapping) replaces arguments in the trace: the decision a sampling took, or a lambda as the index map it was turned
into. A plan attribute ``keeps`` declares what this step preserves besides.

A package outside this one adds primitives with the same decorator in a module named by an entry point of group
``tir.primitives``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from .. import extension
from ..analysis.dependence.equivalence import SameMeaning
from ..analysis.dependence.tiers import require_legal
from ..analysis.index import BlockRef, LoopRef
from ..errors import DoesNotFit, InternalError, ScheduleError, TirError
from ..names import did_you_mean
from ..neighbours import call_here
from .handles import BlockRV, LoopRV
from .invariants import Keeps, Kept
from .primitive_arguments import BadArgument as BadArgument
from .primitive_arguments import Parameter, binder, convert, parameters_of, places_of, shown
from .state import State

GROUPS = ("order", "tile", "parallel", "memory", "reduction", "tensor units", "other")


@dataclass(frozen=True)
class Primitive:
    """A registered step: its name, public signature (without the state), check, and apply.

    ``apply`` is None for a query, whose check returns the result itself. ``parameters``, the name of that which takes
    ``several`` arguments, and ``binder`` come from the signature.
    """

    name: str
    check: Callable[..., Any]
    apply: Callable[[State, Any], Any] | None
    signature: inspect.Signature
    kinds: Mapping[str, str] = field(default_factory=dict)
    keeps: Kept = Keeps.NOTHING
    past: str = ""
    instead: tuple[str, ...] = ()
    prepared_by: tuple[str, ...] = ()
    group: str = GROUPS[-1]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    several: str = ""
    binder: Callable[..., dict[str, Any]] = dict

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its name."""
        return lookup, (self.name,)

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.check.__doc__ or "")

    @property
    def summary(self) -> str:
        """What the step does: the first paragraph of its docstring as one line."""
        return self.doc.partition("\n\n")[0].replace("\n", " ")

    @property
    def only_loop(self) -> str | None:
        """The required parameter that is a loop, if there is one and no more: ``sch.can`` may be asked without it."""
        plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        needed = [p.name for p in self.signature.parameters.values() if p.default is p.empty and p.kind in plain]
        loops = [name for name in needed if self.kinds.get(name, "").startswith("loop")]
        return loops[0] if len(loops) == 1 else None

    def kept_by(self, plan: Any) -> Kept:
        """What the step of ``plan`` preserves: what all steps do, and what the plan declares in ``keeps``."""
        return self.keeps | getattr(plan, "keeps", Keeps.NOTHING)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by parameter name; raises ``BadArgument`` naming the step if they do not match its
        signature."""
        try:
            return self.binder(*args, **kwargs)
        except TypeError:
            pass
        try:
            return dict(self.signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            unknown = [
                f"; `{n}` is no parameter{did_you_mean(n, self.parameters)}" for n in kwargs if n not in self.parameters
            ]
            here = None if unknown else call_here(self.name)
            hint = "".join(unknown[:1]) if here is None else f"; write {here}"
            raise BadArgument(f"{self.name}{_plain(self.signature)}: {error}{hint}") from None

    def require_parameters(self, given: Mapping[str, Any]) -> None:
        """Raise ``BadArgument`` unless ``given`` has every required parameter, and no other names."""
        parameters = self.signature.parameters
        unknown = [name for name in given if name not in parameters]
        needed = [p.name for p in parameters.values() if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
        missing = [name for name in needed if name not in given]
        if unknown or missing:
            fault = f"there is no parameter {shown(unknown[0])}" if unknown else f"`{missing[0]}` is missing"
            raise BadArgument(f"{self.name}{_plain(self.signature)}: {fault}")
        for p in parameters.values():
            if p.kind is p.VAR_POSITIONAL and not isinstance(given.get(p.name, ()), (list, tuple)):
                raise BadArgument(f"{self.name}: `{p.name}` are several, not {shown(given[p.name])}")

    def call_check(self, state: State, given: Mapping[str, Any]) -> Any:
        """Convert the arguments for ``state`` and run the check."""
        converted = convert(self.parameters, state, given)
        several = self.several
        if several not in converted:
            return self.check(state, **converted)
        before = [converted.pop(p) for p in takewhile(several.__ne__, self.parameters) if p in converted]
        return self.check(state, *before, *converted.pop(several), **converted)


def _plain(signature: inspect.Signature) -> str:
    parts = [str(p.replace(annotation=inspect.Parameter.empty)) for p in signature.parameters.values()]
    return f"({', '.join(parts)})"


PRIMITIVES: dict[str, Primitive] = {}
QUERIES: dict[str, Primitive] = {}


def primitive(
    *,
    check: Callable[..., Any] | None = None,
    name: str | None = None,
    keeps: Kept = Keeps.NOTHING,
    past: str = "",
    instead: tuple[str, ...] = (),
    prepared_by: tuple[str, ...] = (),
    group: str = GROUPS[-1],
) -> Callable[[Any], Any]:
    """Register ``apply`` as the primitive of its name, with the signature and docstring of ``check``; without one, ``apply``
    is the check, whose proof has made the program already: it returns that, or a ``Stage``.

    ``keeps`` declares what all of its steps preserve; invariants that depend only on that are not checked again.
    ``past``, as in "fused", is the participle for messages about a loop that it consumed. A refusal of the step offers the
    primitives ``instead``, which reach the same end in another way, and those after which the same call is accepted
    (``prepared_by``); each is tried before it is named. ``group`` is one of ``GROUPS``; raises ``ValueError`` for another.
    """
    if group not in GROUPS:
        raise ValueError(f"there is no group {group!r} of steps; there are {', '.join(GROUPS)}")

    def register(apply: Any) -> Any:
        made = replace(
            _make(name or apply.__name__, check or apply, apply if check else as_checked, keeps, past),
            instead=instead,
            prepared_by=prepared_by,
            group=group,
        )
        PRIMITIVES[made.name] = made
        return apply

    return register


def as_checked(state: State, made: Any) -> Any:
    """The apply of a step whose check returns the new program, or a stage that has it."""
    return made.result() if hasattr(made, "result") else made


def query(check: Callable[..., Any]) -> Callable[..., Any]:
    """Register a query: recorded in the trace (its result names things), changes nothing."""
    QUERIES[check.__name__] = _make(check.__name__, check, None)
    return check


def _make(name: str, check: Callable[..., Any], apply: Any, keeps: Kept = Keeps.NOTHING, past: str = "") -> Primitive:
    signature = inspect.signature(check)
    parameters = list(signature.parameters.values())[1:]
    kinds = {p.name: places_of(p.annotation) for p in parameters}
    kinds = {k: v for k, v in kinds.items() if v}
    signature = signature.replace(parameters=parameters)
    known = parameters_of(signature)
    several = next((p for p in known if known[p].several), "")
    parts: dict[str, Any] = {"parameters": known, "several": several, "binder": binder(signature)}
    return Primitive(name, check, apply, signature, kinds, keeps, past, **parts)


def lookup(name: str) -> Primitive | None:
    """The primitive or query called ``name``; entry points are loaded if it is not one of this package."""
    found = PRIMITIVES.get(name) or QUERIES.get(name)
    if found is None:
        extension.load(extension.PRIMITIVES)
        found = PRIMITIVES.get(name) or QUERIES.get(name)
    return found


def require_same_meaning(
    before: State, after: State, unsafe: bool = False, move: Callable[[], bool] | None = None
) -> None:
    """Raise ``ScheduleError``, with a witness, unless every dependence of ``before`` is preserved in ``after``.
    That loops that run at once carry none is an invariant, checked after the step.

    Instances are matched by the iterators of their blocks; those of a statement outside of blocks by the values of its
    loops, so that it is refused where a step renumbers them. ``move``: whether a syntactic
    test proves the first part.
    """
    if unsafe or after.func is before.func:
        return
    require_legal(SameMeaning(before.func, after.func, move).answer(), before.func)


def run(step: Primitive, state: State, given: Mapping[str, Any]) -> tuple[State, Any, Any]:
    """Apply a primitive to a snapshot: the new snapshot, the result, and the plan. ``state`` is never changed.

    Raises ``ScheduleError``, complete with the request and the place, when the step is refused.
    """
    working = _enter(state, given, step)
    with explained(step, given, working):
        plan = step.call_check(working, given)
        assert step.apply is not None
        outcome = step.apply(working, plan)
    new, result = outcome if isinstance(outcome, tuple) else (outcome, None)
    if not step.kept_by(plan) >= Keeps.FORM:
        new = new.note_losses(working)
    return _leave(new, state, working), result, plan


def check_only(step: Primitive, state: State, given: Mapping[str, Any]) -> Any:
    """Run only the check; returns the plan, raises as :func:`run` does."""
    working = _enter(state, given, step)
    with explained(step, given, working):
        return step.call_check(working, given)


def _enter(state: State, given: Mapping[str, Any], step: Primitive) -> State:
    """The snapshot set to work on the function that contains the handles."""
    owner = _owner(state, given)
    func, is_chosen = (state.func_name, state.is_chosen) if owner is None else (owner, True)
    return state.replaced(func_name=func, is_chosen=is_chosen, primitive_name=step.name, past=step.past)


def _owner(state: State, given: Mapping[str, Any]) -> str | None:
    """The function of the first handle that is of one of the module."""
    for value in given.values():
        for member in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(member, (LoopRV, BlockRV)) and member.func in state.mod:
                return member.func
    return None


def _leave(state: State, before: State, working: State) -> State:
    """The snapshot set back to the function that was worked on, unless the step chose another."""
    func = before.func_name if state.func_name == working.func_name else state.func_name
    is_chosen = before.is_chosen or (state.is_chosen and not working.is_chosen)
    return state.replaced(func_name=func, is_chosen=is_chosen, primitive_name="", past="", step=before.step + 1)


class explained:
    """In this context, refusals name the request as the user wrote it, and the function. What is no refusal is an
    ``InternalError``."""

    __slots__ = ("step", "given", "state")

    def __init__(self, step: Primitive, given: Mapping[str, Any], state: State):
        self.step = step
        self.given = given
        self.state = state

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is None:
            return
        if isinstance(error, ScheduleError):
            error.request = error.request or request_text(self.step, self.given)
            if error.func is None and error.nodes:
                error.func = self.state.func
            raise error.with_traceback(None) from error.__cause__
        if isinstance(error, DoesNotFit):
            raise ScheduleError(str(error), request=request_text(self.step, self.given)) from error
        if isinstance(error, Exception) and not isinstance(error, TirError):
            what = f"a fault inside {self.step.name}, not in your program ({type(error).__name__}: {error})"
            rule = f"{what}; the schedule is unchanged. Please report it with the program"
            raise InternalError(rule, request=request_text(self.step, self.given)) from error


def request_text(step: Primitive, given: Mapping[str, Any]) -> str:
    """The call as the user would write it: ``split("i", [None, 32])``."""
    parts = []
    for name, value in given.items():
        parameter = step.parameters[name]
        if parameter.several:
            parts.extend(map(show_value, value))
        elif parameter.by_name:
            parts.append(f"{name}={show_value(value)}")
        else:
            parts.append(show_value(value))
    return f"{step.name}({', '.join(parts)})"


def show_value(value: Any) -> str:
    """An argument as text: handles by their names."""
    if isinstance(value, (LoopRV, BlockRV, LoopRef, BlockRef)):
        return f'"{value.name}"'
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(show_value(v) for v in value) + "]"
    if inspect.isfunction(value):
        return "lambda" if value.__name__ == "<lambda>" else value.__name__
    if hasattr(value, "as_python"):
        return value.as_python()
    return shown(int(value)) if isinstance(value, int) and not isinstance(value, bool) else shown(value)
