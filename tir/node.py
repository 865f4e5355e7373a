"""The one decorator that defines every IR node, and what all nodes share.

Nodes are immutable and compared by identity. A node knows its children and nothing of its parents.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
elif sys.version_info >= (3, 11):
    from typing import dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda decorator: decorator


T = TypeVar("T")


class frozendict(dict):
    """A dict that refuses to change: annotations and attributes of nodes."""

    __slots__ = ()

    def _refuse(self, *_args: Any, **_kwargs: Any) -> Any:
        raise TypeError("IR nodes are immutable: build a new mapping instead")

    __setitem__ = __delitem__ = pop = popitem = clear = update = setdefault = __ior__ = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))

    def __reduce__(self):
        return (frozendict, (dict(self),))


EMPTY: frozendict = frozendict()


class Span:
    """A place in the user's source: file name, 1-based lines, 0-based columns."""

    __slots__ = ("filename", "line", "col", "end_line", "end_col")

    def __init__(self, filename: str, line: int, col: int = 0, end_line: int | None = None, end_col: int | None = None):
        self.filename = filename
        self.line = line
        self.col = col
        self.end_line = end_line if end_line is not None else line
        self.end_col = end_col if end_col is not None else col + 1

    def __repr__(self) -> str:
        return f"{self.filename}:{self.line}:{self.col + 1}"


class Node:
    """Base of every IR node; ``fields`` names its constructor fields in order."""

    __slots__ = ("__weakref__",)
    fields: tuple[str, ...] = ()

    def __repr__(self) -> str:
        from .script.printer import short_text

        return short_text(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """The same text in IPython and in hypothesis' reports."""
        printer.text(repr(self))

    def children(self) -> Iterator[Node]:
        """Direct child nodes, in field order; members of tuples and of mappings included."""
        for name in self.fields:
            value = getattr(self, name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, (tuple, dict)):
                yield from _nodes_in(value)

    def map_children(self: T, fn: Callable[[Any], Any]) -> T:
        """The node with ``fn`` applied to each direct child; ``self`` itself when none changed."""
        changes = {}
        for name in self.fields:  # type: ignore[attr-defined]
            old = getattr(self, name)
            new = _map_value(old, fn)
            if new is not old:
                changes[name] = new
        return self.replace(**changes) if changes else self  # type: ignore[attr-defined]

    def replace(self: T, **changes: Any) -> T:
        """A copy with the named fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


def _nodes_in(value: Any) -> Iterator[Node]:
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, Node):
            yield item
        elif isinstance(item, (tuple, dict)):
            yield from _nodes_in(item)


def _map_value(value: Any, fn: Callable[[Any], Any]) -> Any:
    if isinstance(value, Node):
        return fn(value)
    if isinstance(value, tuple):
        new = [_map_value(item, fn) for item in value]
        return tuple(new) if any(a is not b for a, b in zip(new, value)) else value
    if isinstance(value, dict) and value:
        mapped = {key: _map_value(item, fn) for key, item in value.items()}
        return frozendict(mapped) if any(mapped[key] is not value[key] for key in value) else value
    return value


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(dataclasses.field,))
def node(cls: type[T]) -> type[T]:
    """Make a class an IR node: a frozen, slotted dataclass with identity equality."""
    made = dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)
    made.fields = tuple(f.name for f in dataclasses.fields(made) if f.init and f.name != "span")  # type: ignore
    return made  # type: ignore


def freeze(value: Any) -> Any:
    """Lists to tuples and dicts to frozendicts, all the way down."""
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    if isinstance(value, dict):
        return frozendict((key, freeze(item)) for key, item in value.items())
    return value


def set_field(node: Any, name: str, value: Any) -> None:
    """Set a field of a node under construction (``__post_init__`` only)."""
    object.__setattr__(node, name, value)
