"""How a primitive is written: one check that owns the signature, one apply, one table.

::

    @dataclass(frozen=True)
    class FusePlan: ...

    def _check_fuse(state: State, *loops: LoopRef, unsafe: bool = False) -> FusePlan:
        '''the docstring of sch.fuse'''      # resolves, proves, rejects by errors.require

    @primitive(check=_check_fuse)
    def fuse(state: State, plan: FusePlan) -> tuple[State, LoopRV]:
        ...                                  # builds, never rejects; state.replace(old, new, moved={...})

``apply`` returns the new snapshot, or a pair of it and the result (handles, ``ExprRV``, or lists of them). The check's
annotations convert arguments: ``LoopRef`` and ``BlockRef`` accept handles and names and arrive as places of the
current program; ``BlockRef | LoopRef`` accepts either; ``list[…]`` and ``*args`` convert each member. Anything else
arrives as it was given. ``keeps`` says what the step preserves, so that it is not proved again
(:mod:`tir.schedule.invariants`). A plan attribute ``recorded`` (a mapping) replaces arguments in the trace: the decision a
sampling took, or a lambda as the index map it was turned into.

A package outside this one adds primitives by the same decorator in a module named by an entry point of group
``tir.primitives``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import extension
from ..analysis.index import BlockRef, LoopRef, Place
from ..deep import deep
from ..errors import ScheduleError, TirError
from .handles import BlockRV, Location, LoopRV
from .invariants import Keeps
from .state import State


class BadArgument(TypeError):
    """An argument of the wrong kind, told in the caller's words (any other TypeError is a fault of ours)."""


@dataclass(frozen=True)
class Primitive:
    """A registered step: its name, public signature (without the state), check, and apply.

    ``apply`` is None for a query, whose check returns the result itself.
    """

    name: str
    check: Callable[..., Any]
    apply: Callable[[State, Any], Any] | None
    signature: inspect.Signature
    kinds: Mapping[str, str] = field(default_factory=dict)
    keeps: Keeps = Keeps.NOTHING
    past: str = ""

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.check.__doc__ or "")

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by parameter name, as given; raises ``TypeError`` naming the step when they do not fit."""
        try:
            return dict(self.signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise TypeError(f"{self.name}{_plain(self.signature)}: {error}") from None

    def call_check(self, state: State, given: Mapping[str, Any]) -> Any:
        """Convert the arguments for ``state`` and run the check."""
        converted = self._convert(state, given)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            if name not in converted:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(converted[name])
            elif (
                parameter.kind is parameter.KEYWORD_ONLY or name in named or _after_gap(self.signature, converted, name)
            ):
                named[name] = converted[name]
            else:
                positional.append(converted[name])
        return self.check(state, *positional, **named)

    def _convert(self, state: State, given: Mapping[str, Any]) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        near: Place | None = None
        for name, value in given.items():
            kind = self.kinds.get(name, "")
            if kind:
                several = "list" in kind or self.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
                if isinstance(value, (list, tuple)) and not several:
                    raise BadArgument(f"`{name}` is {_wanted(kind)}, not a list: {value!r}")
                value = _resolve(state, value, kind, near)
                if isinstance(value, BlockRef):
                    near = value
            converted[name] = value
        return converted


def _after_gap(signature: inspect.Signature, given: Mapping[str, Any], name: str) -> bool:
    """Whether an earlier positional parameter is left out, so that this one must go by keyword."""
    for other in signature.parameters:
        if other == name:
            return False
        if other not in given:
            return True
    return False


def _plain(signature: inspect.Signature) -> str:
    parts = [str(p.replace(annotation=inspect.Parameter.empty)) for p in signature.parameters.values()]
    return f"({', '.join(parts)})"


def _resolve(state: State, value: Any, kind: str, near: Place | None) -> Any:
    if isinstance(value, (list, tuple)):
        return [_resolve(state, item, kind, near) for item in value]
    if isinstance(value, Place) or (value is None and "none" in kind):
        return value
    wants_loop, wants_block = "loop" in kind, "block" in kind
    if isinstance(value, Location):
        if "location" not in kind:
            raise ScheduleError("`{0}` is a place to compute a block at, not a loop", value.name)
        return value
    if isinstance(value, LoopRV):
        if not wants_loop:
            raise ScheduleError("expected a block, but loop `{0}` was given", value.name)
        return state.find_loop(value)
    if isinstance(value, BlockRV):
        if not wants_block:
            loops = [ref.name for ref in state.find_block(value).all_loops()]
            raise ScheduleError(
                "expected a loop, but block `{0}` was given; its loops are {1}", value.name, ", ".join(loops) or "none"
            )
        return state.find_block(value)
    if isinstance(value, str):
        if wants_loop and wants_block:
            is_block, is_loop = value in state.index.blocks, bool(state.index.loops_named(value))
            if is_block and is_loop:
                raise ScheduleError("`{0}` is both a block and a loop: pass a handle", value)
            if not (is_block or is_loop or "." in value):
                blocks = ", ".join(state.index.blocks)
                loops = ", ".join(dict.fromkeys(ref.name for ref in state.index.loops.values())) or "none"
                raise ScheduleError(
                    "no block or loop is called `{0}`; the blocks are {1}, the loops {2}",
                    value,
                    blocks,
                    loops,
                )
            return (
                state.find_block(value) if is_block or not (is_loop or "." in value) else state.find_loop(value, near)
            )
        return state.find_loop(value, near) if wants_loop else state.find_block(value)
    raise BadArgument(f"expected {_wanted(kind)}, got {type(value).__name__}: {value!r}")


def _wanted(kind: str) -> str:
    what = " or ".join(w for w, mark in (("a loop", "loop"), ("a block", "block")) if mark in kind.split())
    return f"{what} (a handle or a name)"


PRIMITIVES: dict[str, Primitive] = {}
QUERIES: dict[str, Primitive] = {}


def primitive(
    *, check: Callable[..., Any], name: str | None = None, keeps: Keeps = Keeps.NOTHING, past: str = ""
) -> Callable[[Any], Any]:
    """Register ``apply`` as the primitive of its name, with the signature and docstring of ``check``.

    ``keeps`` says what all of its steps preserve; the invariants that rest on that are not checked again.
    ``past``, as "fused", is what a later message says it did to a loop that is gone.
    """

    def register(apply: Any) -> Any:
        made = _make(name or apply.__name__, check, apply, keeps, past)
        PRIMITIVES[made.name] = made
        return apply

    return register


def query(check: Callable[..., Any]) -> Callable[..., Any]:
    """Register a question about the program: recorded in the trace (its result names things), changes nothing."""
    QUERIES[check.__name__] = _make(check.__name__, check, None)
    return check


def _make(name: str, check: Callable[..., Any], apply: Any, keeps: Keeps = Keeps.NOTHING, past: str = "") -> Primitive:
    signature = inspect.signature(check)
    parameters = list(signature.parameters.values())[1:]
    kinds = {p.name: _kind(p.annotation) for p in parameters}
    kinds = {k: v for k, v in kinds.items() if v}
    return Primitive(name, check, apply, signature.replace(parameters=parameters), kinds, keeps, past)


_KINDS = (("loop", "LoopRef"), ("block", "BlockRef"), ("location", "Location"))


def _kind(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    words = [w for w, mark in _KINDS if mark in text]
    if words:
        words += [
            w for w, marks in (("none", ("None",)), ("list", ("list[", "Sequence["))) if any(m in text for m in marks)
        ]
    return " ".join(words)


def lookup(name: str) -> Primitive | None:
    """The primitive or query called ``name``; packages outside are loaded when it is not one of ours."""
    found = PRIMITIVES.get(name) or QUERIES.get(name)
    if found is None and load_entry_points():
        found = PRIMITIVES.get(name) or QUERIES.get(name)
    return found


def load_entry_points() -> bool:
    """Import the modules that installed packages name as primitives; true when this call did it."""
    return extension.load(extension.PRIMITIVES)


@deep
def run(step: Primitive, state: State, given: Mapping[str, Any]) -> tuple[State, Any, Any]:
    """One primitive on one snapshot: the new snapshot, the result, and the plan. ``state`` is never changed.

    Raises ``ScheduleError``, complete with the request and the place, when the step is refused.
    """
    working = _enter(state, given, step)
    try:
        plan = step.call_check(working, given)
        assert step.apply is not None
        outcome = step.apply(working, plan)
    except ScheduleError as error:
        raise explain(error, step, given, working) from error.__cause__
    except (TirError, BadArgument):
        raise
    except Exception as error:
        raise _internal(error, step, given) from error
    new, result = outcome if isinstance(outcome, tuple) else (outcome, None)
    new = new.note_losses(working)
    return _leave(new, state), result, plan


def check_only(step: Primitive, state: State, given: Mapping[str, Any]) -> Any:
    """Run only the check; returns the plan, raises as :func:`run` does."""
    working = _enter(state, given, step)
    try:
        return step.call_check(working, given)
    except ScheduleError as error:
        raise explain(error, step, given, working) from error.__cause__
    except (TirError, BadArgument):
        raise
    except Exception as error:
        raise _internal(error, step, given) from error


def _enter(state: State, given: Mapping[str, Any], step: Primitive) -> State:
    """The snapshot set to work on the function that the handles belong to."""
    func = state.func_name
    for value in given.values():
        members = value if isinstance(value, (list, tuple)) else (value,)
        owner = next((m.func for m in members if isinstance(m, (LoopRV, BlockRV))), None)
        if owner is not None and owner in state.mod:
            func = owner
            break
    return state.replaced(func_name=func, primitive_name=step.name, past=step.past)


def _leave(state: State, before: State) -> State:
    return state.replaced(func_name=before.func_name, primitive_name="", past="", step=before.step + 1)


def explain(error: ScheduleError, step: Primitive, given: Mapping[str, Any], state: State) -> ScheduleError:
    """The error with the request as the user wrote it, and the function it is about."""
    if not error.request:
        error.request = request_text(step, given)
    if error.func is None and error.nodes:
        error.func = state.func
    return error.with_traceback(None)


def _internal(error: Exception, step: Primitive, given: Mapping[str, Any]) -> ScheduleError:
    made = ScheduleError(
        f"a fault inside {step.name}, not in your program ({type(error).__name__}: {error}); "
        "the schedule is unchanged. Please report it with the program"
    )
    made.request = request_text(step, given)
    return made


def request_text(step: Primitive, given: Mapping[str, Any]) -> str:
    """The call as a person would write it: ``split("i", [None, 32])``."""
    parts = []
    for name, value in given.items():
        parameter = step.signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts.extend(show_value(v) for v in value)
        elif parameter.kind is parameter.KEYWORD_ONLY or (parameter.default is not parameter.empty):
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
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else repr(value)
