"""The one decorator that defines every IR node, and what all nodes share.

Nodes are immutable and compared by identity. A node knows its children and nothing of its parents.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .render import short_text

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

    def _immutable(self, *_args: Any, **_kwargs: Any) -> Any:
        raise TypeError("IR nodes are immutable: build a new mapping instead")

    __setitem__ = __delitem__ = pop = popitem = clear = update = setdefault = __ior__ = _immutable  # type: ignore[assignment]

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
    """Base of every IR node; ``fields`` names its constructor fields in order (without ``span``)."""

    __slots__ = ("__weakref__", "_memos")
    fields: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return short_text(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """The same text in IPython and in hypothesis' reports."""
        printer.text(repr(self))

    def children(self) -> list[Any]:
        """Direct child nodes, in field order; members of tuples and of mappings included."""
        raise NotImplementedError  # made by `node` for each class

    def map_children(self: T, fn: Callable[[Any], Any]) -> T:
        """The node with ``fn`` applied to each direct child; ``self`` itself when none changed."""
        raise NotImplementedError  # made by `node` for each class

    def replace(self: T, **changes: Any) -> T:
        """A copy with the named fields changed. Raises ``TypeError`` for a field that does not exist."""
        for name in self.copied:  # type: ignore[attr-defined]
            if name not in changes:
                changes[name] = getattr(self, name)
        return type(self)(**changes)


class Memo(Generic[T]):
    """What was computed once for a node, kept while the node lives.

    A value may refer to its node. The node holds the value, so that the two are freed together; a dictionary with weak
    keys would hold both for ever.

    >>> from tir import Var
    >>> sizes, x = Memo(), Var("x")
    >>> sizes[x] = 3
    >>> sizes.get(x), sizes.get(Var("x"))
    (3, None)
    """

    def get(self, node: Node | None) -> T | None:
        """The value for ``node``; None if there is none."""
        memos = getattr(node, "_memos", None)
        return None if memos is None else memos.get(self)

    def __setitem__(self, node: Node, value: T) -> None:
        memos = getattr(node, "_memos", None)
        if memos is None:
            set_field(node, "_memos", {self: value})
        else:
            memos[self] = value

    def setdefault(self, node: Node, value: T) -> T:
        """The value for ``node``, which is ``value`` if there was none."""
        found = self.get(node)
        if found is None:
            self[node] = found = value
        return found


def _collect(value: Any, found: list[Any]) -> None:
    if not isinstance(value, (tuple, dict)):
        return
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, Node):
            found.append(item)
        else:
            _collect(item, found)


def _map_value(value: Any, fn: Callable[[Any], Any]) -> Any:
    if isinstance(value, Node):
        return fn(value)
    if isinstance(value, tuple):
        new = [fn(item) if isinstance(item, Node) else _map_value(item, fn) for item in value]
        for a, b in zip(new, value):
            if a is not b:
                return tuple(new)
        return value
    if isinstance(value, dict) and value:
        mapped = {key: _map_value(item, fn) for key, item in value.items()}
        return frozendict(mapped) if any(mapped[key] is not value[key] for key in value) else value
    return value


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(dataclasses.field,))
def node(cls: type[T]) -> type[T]:
    """Make a class an IR node: a frozen, slotted dataclass with identity equality."""
    for name, value in list(vars(cls).items()):
        if isinstance(value, frozendict):  # a default that dataclasses of Python 3.10 take for a mutable one
            setattr(cls, name, dataclasses.field(default_factory=itertools.repeat(value).__next__))
    made = dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)
    fields = [f for f in dataclasses.fields(made) if f.init]  # type: ignore
    made.copied = tuple(f.name for f in fields)  # type: ignore
    made.fields = tuple(f.name for f in fields if f.name != "span")  # type: ignore
    links = {f.name: _type_name(f.type) for f in fields if f.name != "span" and _type_name(f.type) not in _PLAIN}
    for method in (_children_source(links), _map_children_source(links, fields)):
        namespace: dict[str, Any] = {"Node": Node, "collect": _collect, "map_value": _map_value, "cls": made}
        exec(method, namespace)
        name = method[4 : method.index("(")]
        if name not in vars(cls):
            setattr(made, name, namespace[name])
    return made  # type: ignore


_PLAIN = ("str", "int", "float", "bool", "DType", "DType | None", "tuple[int, ...]")  # types of fields without nodes


def _type_name(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


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


# What visits programs runs these two for every node, so each class has its own, without loops over names of fields.
def _children_source(links: dict[str, str]) -> str:
    lines = ["def children(self):", "    found = []"]
    for name, type_ in links.items():
        if type_.startswith("tuple"):
            lines += [f"    if self.{name}: collect(self.{name}, found)"]
        else:
            lines += [f"    x = self.{name}", "    if isinstance(x, Node): found.append(x)"]
            lines += ["    elif isinstance(x, (tuple, dict)): collect(x, found)"] * (type_ == "Any")
    return "\n".join([*lines, "    return found"])


def _map_children_source(links: dict[str, str], fields: Any) -> str:
    lines = ["def map_children(self, fn):"]
    for k, (name, type_) in enumerate(links.items()):
        lines.append(f"    a{k} = self.{name}")
        other = f"map_value(a{k}, fn) if a{k} else a{k}" if type_.startswith("tuple") else f"a{k}"
        other = f"map_value(a{k}, fn)" if type_ == "Any" else other
        lines.append(f"    b{k} = fn(a{k}) if isinstance(a{k}, Node) else {other}")
    same = " and ".join(f"a{k} is b{k}" for k in range(len(links))) or "True"
    new = {name: f"b{k}" for k, name in enumerate(links)}
    values = ", ".join(f"{f.name}={new.get(f.name, 'self.' + f.name)}" for f in fields)
    return "\n".join([*lines, f"    return self if {same} else cls({values})"])
