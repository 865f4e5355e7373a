"""Every operator with arguments that are a little other than those of its first case: what it makes of them, or its error."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tir import ops, te
from tir.errors import TirError
from tir.ops.cases import Argument, Case, arg, case

from .ops import program_of
from .stages import Texts

LONG = 2500  # characters of a program that takes long to make: of its like the shapes are shown, of fewer values
TYPES = ("float16", "int32", "bool")


def other_tensors(of: Argument) -> Iterator[Any]:
    """Another rank, another extent at each place, other types, and no tensor."""
    shape, dtype = of.shape, str(of.dtype)
    for sizes in ((*shape, 2), shape[1:], ()):
        yield arg(sizes, dtype)
    for n, size in enumerate(shape):
        yield arg((*shape[:n], 1 if isinstance(size, str) else size + 1, *shape[n + 1 :]), dtype)
        yield arg((*shape[:n], 1, *shape[n + 1 :]), dtype)
    yield from (arg(shape, kind) for kind in TYPES if kind != dtype)
    yield from (2, None)


def other_values(value: Any) -> Iterator[Any]:
    """Values near one, at its limits, and of other kinds."""
    if isinstance(value, bool):
        yield from (not value, None)
    elif isinstance(value, int):
        yield from (value + 1, value - 1, 0, 99, 1.5)
    elif isinstance(value, float):
        yield from (value + 0.5, -value, 0.0, "x")
    elif isinstance(value, str):
        yield from (value.upper(), value[1:], "none", 3)
    elif isinstance(value, (tuple, list)):
        yield from (value[:-1], (*value, 1), 1, "x")
        for n, item in enumerate(value):
            if isinstance(item, (int, float)):
                yield from ((*value[:n], other, *value[n + 1 :]) for other in (item + 1, 0, -1))
    else:
        yield from (0, 2, -1, (0, 1), "float64")


def altered(name: str) -> Texts:
    found = ops.operators()[name]
    first, signature = found.cases[0], inspect.signature(found.function)
    positional = [p for p in signature.parameters if p not in first.attributes]
    shown, most = (program, None) if len(program(found, first)) < LONG else (results, 3)
    for number, given in enumerate(first.args):
        others = other_tensors(given) if isinstance(given, Argument) else _listed(given)
        changed = (case(*first.args[:number], o, *first.args[number + 1 :], **first.attributes) for o in others)
        yield str(number), "\n".join(answer(lambda: results(found, one)) for one in changed)  # noqa: B023
    for parameter, about in signature.parameters.items():
        given = first.attributes.get(parameter, about.default)
        if about.kind is about.VAR_POSITIONAL or parameter in positional[: len(first.args)] or given is about.empty:
            continue
        others = other_tensors(given) if isinstance(given, Argument) else other_values(given)
        changed = (case(*first.args, **{**first.attributes, parameter: o}) for o in itertools.islice(others, most))
        yield parameter, "\n".join(answer(lambda: shown(found, one)) for one in changed)  # noqa: B023


def _listed(given: Any) -> Iterator[Any]:
    """Lists with one tensor changed, one less, and none; of plain values others."""
    if not (isinstance(given, (list, tuple)) and any(isinstance(item, Argument) for item in given)):
        yield from other_values(given)
        return
    yield from (given[:-1], [], given[0])
    yield from ([*given[:-1], other] for other in other_tensors(given[-1]))


def program(operator: Any, of: Case) -> str:
    return program_of(operator, of).script()


def results(operator: Any, of: Case) -> str:
    """The shapes and types of the results."""
    names: dict[str, Any] = {}
    given = of.mapped(lambda a: te.placeholder([_size(n, names) for n in a.shape], a.dtype))
    return repr(operator.function(*given.args, **given.attributes))


def _size(extent: int | str, names: dict[str, Any]) -> Any:
    return names.setdefault(extent, te.var(extent)) if isinstance(extent, str) else extent


def answer(make: Callable[[], str]) -> str:
    """What is made, or the first line of the error."""
    try:
        return make()
    except TirError as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


CASES = {name: partial(altered, name) for name in ops.operators()}
