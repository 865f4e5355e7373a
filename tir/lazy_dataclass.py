"""Dataclasses that compile what makes an instance when the first one is made: a process loads some three hundred classes, and to compile
the methods of all takes a third of the time of that."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import asdict, field, replace
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["asdict", "dataclass", "field", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """As :func:`dataclasses.dataclass`, with its options ``frozen``, ``eq`` and ``repr``.

        >>> @dataclass(frozen=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(3), Point(3) == Point(x=3), len({Point(1), Point(1)})
        (Point(x=3, y=0), True, 1)
        """
        return partial(_made, **options) if cls is None else _made(cls, **options)


def _made(cls: Any, frozen: bool = False, eq: bool = True, repr: bool = True) -> Any:
    own = dict(vars(cls))
    inherits = frozen and any(p.frozen for b in cls.__mro__[1:] if (p := vars(b).get("__dataclass_params__")))
    cls.__doc__ = cls.__doc__ or cls.__name__  # in the place of one without, dataclasses look the signature up
    made = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=inherits)(cls)
    made.__dataclass_params__.frozen = frozen
    fields = dataclasses.fields(made)
    methods: list[Any] = [_init(made, frozen)]
    if repr:
        methods.append(_repr)
    if eq:
        methods.append(_eq(_values([f.name for f in fields if f.compare])))
        if own.get("__hash__") is None:
            made.__hash__ = None
            if frozen:
                made.__hash__ = _hash(_values([f.name for f in fields if (f.compare if f.hash is None else f.hash)]))
    for method in methods:
        if method.__name__ not in own:
            setattr(made, method.__name__, method)
    if frozen and not inherits:
        made.__setattr__, made.__delattr__ = _refusing(made, frozenset(f.name for f in fields))
    return made


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) == 1:
        get = attrgetter(*names)
        return lambda self: (get(self),)
    return attrgetter(*names) if names else lambda _: ()


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Any:
    def __eq__(self: Any, other: Any) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Any:
    return lambda self: hash(values(self))


def __repr__(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({shown})"


_repr = recursive_repr()(__repr__)


def _refusing(made: Any, names: frozenset[str]) -> tuple[Any, Any]:
    """``__setattr__`` and ``__delattr__`` of a frozen class."""

    def require(self: Any, name: str, what: str) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot {what} field {name!r}")

    def __setattr__(self: Any, name: str, value: Any) -> None:
        require(self, name, "assign to")
        super(made, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        require(self, name, "delete")
        super(made, self).__delattr__(name)

    return __setattr__, __delattr__


def _init(made: Any, frozen: bool) -> Any:
    """What stands in the place of ``__init__`` until it is called first."""

    def __init__(self: Any, *args: Any, **named: Any) -> None:
        if vars(made)["__init__"] is __init__:
            made.__init__ = _compiled_init(made, frozen)
        made.__init__(self, *args, **named)

    return __init__


def _compiled_init(made: Any, frozen: bool) -> Any:
    """``__init__`` of another class of the same fields: it is what dataclasses compile."""
    parts = [
        (f.name, f.type, field(default=f.default, default_factory=f.default_factory, init=f.init, kw_only=f.kw_only))
        for f in dataclasses.fields(made)
    ]
    after = {"__post_init__": made.__post_init__} if hasattr(made, "__post_init__") else {}
    given: Any = {"repr": False, "eq": False, "frozen": frozen, "namespace": {"__doc__": made.__name__, **after}}
    found: Any = dataclasses.make_dataclass(made.__name__, parts, **given).__init__  # type: ignore[misc]
    found.__qualname__ = f"{made.__qualname__}.__init__"  # errors have it
    return found
