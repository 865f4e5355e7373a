"""Arguments of primitives: the annotations of a check declare what each accepts, and its converted type.

``LoopRef``, ``BlockRef`` and ``Location`` accept handles and names and are converted to places of the current program.
``int`` accepts every integer (of 64 bits), ``Sequence[…]`` every list and tuple, ``Callable`` a function. ``Any``
accepts anything unchanged. Any other value is a ``BadArgument`` that names the parameter.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import operator
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from ..analysis.index import BlockRef, Place
from ..arith.index_map import IndexMap
from ..buffer import Buffer
from ..errors import ScheduleError, refusal
from ..expr import Expr, FloatImm, IntImm
from ..names import near_names
from ..node import Node
from .handles import BlockRV, Location, LoopRV
from .state import State


class BadArgument(ScheduleError, TypeError):
    """An argument of the wrong type, described in the caller's terms (any other TypeError is a bug of the package).
    ``parameter`` is its name, where one value is at fault."""

    parameter = ""


class _Mismatch(Exception):
    """A value is not of the declared type."""


class Parameter(NamedTuple):
    """A parameter of a primitive: what it accepts, whether it takes ``several`` arguments, as ``*loops`` does, and
    whether a call is shown with its name."""

    kind: _Kind
    several: bool
    by_name: bool


def parameters_of(signature: inspect.Signature) -> dict[str, Parameter]:
    """The parameters of a signature, by name."""
    return {
        p.name: Parameter(
            _kind(_text(p.annotation)), p.kind is p.VAR_POSITIONAL, p.kind is p.KEYWORD_ONLY or p.default is not p.empty
        )
        for p in signature.parameters.values()
    }


def binder(signature: inspect.Signature) -> Callable[..., dict[str, Any]]:
    """A function of this signature that returns its arguments by name, without those that a call omits."""
    parts: list[str] = []
    only_named = False
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not only_named:
            parts.append("*")
        only_named = only_named or p.kind in (p.VAR_POSITIONAL, p.KEYWORD_ONLY)
        default = "" if p.default is p.empty else "=_omitted"
        parts.append(f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name + default)
    names = ", ".join(f"{name!r}: {name}" for name in signature.parameters)
    several = [p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL]
    given = "value is not _omitted" + "".join(f" and (name != {name!r} or value)" for name in several)
    source = f"lambda {', '.join(parts)}: {{name: value for name, value in {{{names}}}.items() if {given}}}"
    return eval(source, {"_omitted": object()})


def convert(parameters: Mapping[str, Parameter], state: State, given: Mapping[str, Any]) -> dict[str, Any]:
    """The converted arguments. Raises ``ScheduleError`` for an unknown loop or block, ``BadArgument`` for a value of
    the wrong type."""
    converted: dict[str, Any] = {}
    near: Place | None = None
    for name, value in given.items():
        kind, several, _ = parameters[name]
        try:
            if several:
                converted[name] = [kind.of(name, state, item, near) for item in value]
            else:
                converted[name] = kind.of(name, state, value, near)
        except BadArgument as error:
            error.parameter = name
            hint = _one_by_one_hint(value) if several else _plural_hint(parameters, state, name, value)
            if not hint:
                raise
            raise BadArgument(f"{error.rule}{hint}") from None
        if type(converted[name]) is BlockRef:
            near = converted[name]
    return converted


def _plural_hint(parameters: Mapping[str, Parameter], state: State, name: str, value: Any) -> str:
    """For a list given to ``factor``: that ``factors`` takes it."""
    plural = f"{name}s"
    if plural not in parameters or refusal(lambda: parameters[plural].kind.of(plural, state, value, None)):
        return ""
    return f"; did you mean {plural}={shown(value)}?"


def _one_by_one_hint(values: Any) -> str:
    """For a list given to ``*loops``: that they are passed one by one."""
    only = values[0] if len(values) == 1 else None
    if not isinstance(only, (list, tuple)) or not all(isinstance(v, (str, LoopRV)) for v in only):
        return ""
    return "; pass them one by one: " + ", ".join(shown(getattr(v, "name", v)) for v in only)


def places_of(annotation: Any) -> str:
    """The kinds of place that a parameter accepts: loop, block and location, in order of preference; empty for a
    value."""
    return " ".join(word for word, mark in _PLACES if mark in _text(annotation))


def shown(value: Any) -> str:
    """A value in a message, truncated."""
    try:
        text = repr(value)
    except Exception:  # an integer of too many digits, an object that cannot print itself
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:79] + "…"


_PLACES = (("loop", "LoopRef"), ("block", "BlockRef"), ("location", "Location"))
_SEQUENCES = ("list", "Sequence", "tuple")


def _text(annotation: Any) -> str:
    """An annotation as text, also where Python evaluated it; that of a parameter without one names no type that is known, as ``Any``."""
    if isinstance(annotation, str):
        return annotation
    parts = ["None" if part is type(None) else _text(part) for part in get_args(annotation)]
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return " | ".join(parts)
    name = getattr(annotation if origin is None else origin, "__name__", "Any")
    return f"{name}[{', '.join(parts)}]" if parts and name in _SEQUENCES else name


class _Kind:
    """One of several alternatives: places by handle or name, scalars, and sequences."""

    def __init__(self, annotation: ast.expr):
        parts = _alternatives(annotation)
        names = [_head(p) for p in parts if not isinstance(p, ast.Subscript)]
        self.places = " ".join(word for word, mark in _PLACES if mark in names)
        self.members = [
            _Kind(p.slice) if isinstance(p, ast.Subscript) else _kind("Any") for p in parts if _head(p) in _SEQUENCES
        ]
        self.scalars = [_SCALARS[n] for n in (_head(p) for p in parts) if n in _SCALARS]
        known = {"LoopRef", "BlockRef", "Location", *_SEQUENCES, *_SCALARS}
        self.anything = any(_head(p) not in known for p in parts)  # Any, and types that the check looks at itself
        described = [_described(self.places)] if self.places else []
        described += ["a list" + _of(member.plural) for member in self.members]
        described += [one for one, _, _ in self.scalars]
        self.described = _listed(described) or "a value"

    @property
    def plural(self) -> str:
        if self.anything:
            return "values"
        words = [w + "s" for w in self.places.split() if w != "location"]
        return _listed(
            [*words, *(several for _, several, _ in self.scalars), *("lists" + _of(m.plural) for m in self.members)]
        )

    def of(self, name: str, state: State, value: Any, near: Place | None) -> Any:
        """``value`` converted. Raises ``BadArgument`` naming the parameter."""
        try:
            return self.convert(state, value, near)
        except _Mismatch:
            if isinstance(value, (list, tuple)) and self.members:
                for n, item in enumerate(value):  # the member at fault is the first that raises
                    self.members[0].of(f"{name}[{n}]", state, item, near)
            kind = "a list" if isinstance(value, (list, tuple)) else type(value).__name__
            raise BadArgument(f"`{name}` is {self.described}, not {kind}: {shown(value)}") from None

    def convert(self, state: State, value: Any, near: Place | None) -> Any:
        if self.anything:
            return value
        if self.places and isinstance(value, (LoopRV, BlockRV, Place, str)):
            return _resolve(state, value, self.places, near)
        if isinstance(value, (list, tuple, range)):
            for member in self.members:
                return [member.convert(state, item, near) for item in value]
        for _, _, scalar in self.scalars:
            try:
                return scalar(value)
            except _Mismatch:
                continue
        raise _Mismatch


def _listed(words: list[str]) -> str:
    """``a, b or c``; None comes last."""
    words = sorted(dict.fromkeys(words), key="None".__eq__)
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _of(members: str) -> str:
    return f" ({members})" if " or " in members else f" of {members}"


def _alternatives(annotation: ast.expr) -> list[Any]:
    if isinstance(annotation, ast.BinOp):
        return [*_alternatives(annotation.left), *_alternatives(annotation.right)]
    return [annotation]


def _head(annotation: ast.expr) -> str:
    """The name of a type: of ``Sequence[int]`` it is Sequence."""
    if isinstance(annotation, ast.Subscript):
        return _head(annotation.value)
    if isinstance(annotation, ast.Constant):
        return str(annotation.value)
    return (
        annotation.id
        if isinstance(annotation, ast.Name)
        else annotation.attr
        if isinstance(annotation, ast.Attribute)
        else ""
    )


@functools.cache
def _kind(annotation: str) -> _Kind:
    return _Kind(ast.parse(annotation, mode="eval").body)


def _described(places: str) -> str:
    return " or ".join(f"a {w}" for w in places.split() if w != "location") + " (a handle or a name)"


# ---------------------------------------------------------------- scalars


def _int(value: Any) -> int:
    if isinstance(value, IntImm) and not value.dtype.is_bool:
        value = value.value
    elif not isinstance(value, (int, Node)):  # a NumPy integer, or none
        try:
            value = operator.index(value)
        except TypeError:
            raise _Mismatch from None
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise _Mismatch
    return value


def _bool(value: Any) -> bool:
    if isinstance(value, bool) or (isinstance(value, IntImm) and value.dtype.is_bool):
        return bool(value)
    if type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise _Mismatch


def _float(value: Any) -> float:
    number = value.value if isinstance(value, (IntImm, FloatImm)) else value
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        raise _Mismatch
    return float(number)


def _expr(value: Any) -> Any:
    if not isinstance(value, Expr) or not value.dtype.is_int or value.dtype.lanes != 1:
        raise _Mismatch
    return value


def _buffer(value: Any) -> Buffer:
    if not isinstance(value, Buffer):
        raise _Mismatch
    return value


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise _Mismatch
    return value


def _none(value: Any) -> None:
    if value is not None:
        raise _Mismatch


def _callable(value: Any) -> Any:
    if not callable(value) or isinstance(value, Node):
        raise _Mismatch
    return value


def _index_map(value: Any) -> Any:
    if not isinstance(value, IndexMap):
        raise _Mismatch
    return value


# what a value of each type is called, what several are, and how one is made of an argument
_SCALARS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "int": ("an int", "ints", _int),
    "bool": ("True or False", "booleans", _bool),
    "float": ("a finite number", "finite numbers", _float),
    "str": ("a string", "strings", _str),
    "None": ("None", "None", _none),
    "Callable": ("a function of the indices", "functions", _callable),
    "IndexMap": ("a tir.IndexMap", "index maps", _index_map),
    "Buffer": ("a buffer", "buffers", _buffer),
    "Expr": ("an integer expression", "integer expressions", _expr),
}


# ---------------------------------------------------------------- loops and blocks


def _resolve(state: State, value: Any, places: str, near: Place | None) -> Any:
    """The place of the current program that a handle or a name refers to."""
    wants_loop, wants_block = "loop" in places, "block" in places
    if isinstance(value, Place):
        return value
    if isinstance(value, Location):
        if "location" not in places:
            raise ScheduleError("`{0}` is a place to compute a block at, not a loop", value.name)
        return value
    if isinstance(value, LoopRV):
        if not wants_loop:
            raise ScheduleError("expected a block, but loop `{0}` was given", value.name)
        return state.find_loop(value)
    if isinstance(value, BlockRV):
        if not wants_block:
            loops = [ref.name for ref in state.find_block(value).all_loops()]
            raise ScheduleError("expected a loop, but block `{0}` was given", value.name, legal=loops)
        return state.find_block(value)
    state.require_one_function(value)
    if wants_loop and wants_block:
        return _loop_or_block(state, value, near)
    return state.find_loop(value, near) if wants_loop else state.find_block(value)


def _loop_or_block(state: State, value: str, near: Place | None) -> Place:
    """What is called ``value``, if that is one of the two."""
    is_block, is_loop = value in state.index.blocks, bool(state.index.loops_named(value))
    if is_block and is_loop:
        raise ScheduleError("`{0}` is both a block and a loop: pass a handle",
                            value, legal=f'sch.get_block("{value}"), or sch.get_loops(…)')  # fmt: skip
    if not (is_block or is_loop or "." in value):
        names = [*state.index.blocks, *(ref.name for ref in state.index.loops.values())]
        raise ScheduleError("no block or loop is called `{0}`", value, legal=near_names(value, names))
    return state.find_block(value) if is_block or not (is_loop or "." in value) else state.find_loop(value, near)


def copied(value: Any) -> Any:
    """An argument or a result as it is now: the lists in it, which the caller may change later, are copied."""
    if type(value) is list:
        return [copied(item) if type(item) in (list, dict) else item for item in value]
    if type(value) is dict:
        return {name: copied(item) if type(item) in (list, dict) else item for name, item in value.items()}
    return value
