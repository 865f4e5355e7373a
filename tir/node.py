"""The one decorator that defines every IR node, and what all nodes share; records, which are as fast, and what is found once.

Nodes are immutable and compared by identity. A node knows its children and nothing of its parents.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload
from weakref import ReferenceType, ref

from .dtype import DType
from .render import short_text

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
elif sys.version_info >= (3, 11):
    from typing import dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda decorator: decorator


T = TypeVar("T")
N = TypeVar("N")
_ITSELF: Any = object()


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
    """Base of every IR node; ``fields`` names its constructor fields in order (without ``span``).

    >>> import tir
    >>> node = tir.Add(tir.Var("i"), tir.IntImm(1))
    >>> node.fields, node.replace(b=tir.IntImm(2))
    (('a', 'b'), i + 2)
    """

    __slots__ = ("__weakref__", "_memos")
    fields: tuple[str, ...] = ()
    computed: Mapping[str, str] = {}
    """Fields that the others determine: their values as Python expressions, over the other fields and the class's module."""
    from_numbers: Mapping[str, str] = {}
    """How fields of expressions (``"a, b"``: several at once) are made where Python numbers are given: Python expressions
    over the fields, by functions of ``tir/expr.py``; for the rest ``as_expr``, and for a tuple of expressions its items."""
    upstream_order: Mapping[str, str] = {}
    """How fields given in the order of TVM are recognised, and what puts them into this one, as Python source."""

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
        raise NotImplementedError  # made by `node` for each class

    def updated(self: T, **fields: Any) -> T:
        """A copy with these fields; ``self`` if its own are the same nodes, or tuples of the same."""
        for name, value in fields.items():
            own = getattr(self, name)
            if own is not value and not (type(own) is tuple and len(own) == len(value) and all(map(is_, own, value))):
                return self.replace(**fields)
        return self

    def with_body(self: T, body: Any) -> T:
        """A copy with another ``body``, of a node that has one."""
        raise NotImplementedError  # made by `node` for each class with that field


_set_memos: Any = vars(Node)["_memos"].__set__


class Memo(Generic[T]):
    """What was computed once for a node, kept while the node lives.

    The node holds the value, so that the two are freed together; a dictionary with weak keys would hold for ever what
    refers to its key. A value that is its node is not held; one that refers to it waits for a garbage collection.

    >>> from tir import Var
    >>> sizes, x = Memo(), Var("x")
    >>> sizes[x] = 3
    >>> sizes.get(x), sizes.get(Var("x")), sizes.take(x), sizes.get(x)
    (3, None, 3, None)
    """

    def get(self, node: Node | None) -> T | None:
        """The value for ``node``; None if there is none."""
        memos = None if node is None else node._memos
        found = None if memos is None else memos.get(self)
        return node if found is _ITSELF else found  # type: ignore[return-value]

    def __setitem__(self, node: Node, value: T) -> None:
        memos = node._memos
        value = _ITSELF if value is node else value
        if memos is None:
            _set_memos(node, {self: value})
        else:
            memos[self] = value

    def take(self, node: Node) -> T | None:
        """As :meth:`get`, and it is kept no longer."""
        found = self.get(node)
        if found is not None:
            del node._memos[self]
        return found

    def setdefault(self, node: Node, value: T) -> T:
        """The value for ``node``, which is ``value`` if there was none."""
        found = self.get(node)
        if found is None:
            self[node] = found = value
        return found


def once(compute: Callable[[N], T]) -> Callable[[N], T]:
    """``compute``, of which each node is asked once: what it answered is kept while the node lives, as by :class:`Memo`.

    >>> from tir import Var
    >>> @once
    ... def size(node):
    ...     print("counting")
    ...     return len(node.name)
    >>> x = Var("x")
    >>> size(x), size(x)
    counting
    (1, 1)
    """

    @functools.wraps(compute)
    def answer(node: N) -> T:
        memos = node._memos
        if memos is None:
            memos = {}
            _set_memos(node, memos)
        if compute in memos:
            found = memos[compute]
            return node if found is _ITSELF else found  # type: ignore[return-value]
        found = compute(node)
        memos[compute] = _ITSELF if found is node else found  # no node holds itself, to be freed at once
        return found

    return answer


class MemoAmong(Generic[T]):
    """What was computed once for a node among other objects, which count by identity, kept while the node lives. Of a
    node, which may outlive many schedules, at most :data:`MOST_KNOWN` results are kept.

    >>> from tir import Var
    >>> sums, x, y = MemoAmong(), Var("x"), Var("y")
    >>> [sums.found(x, (y,), lambda: n) for n in (3, 4)]
    [3, 3]
    """

    def __init__(self) -> None:
        self._known: Memo[dict[Any, tuple[tuple[Any, ...], T]]] = Memo()

    def found(self, node: Node, among: tuple[Any, ...], make: Callable[[], T], equal: Hashable = ()) -> T:
        """What ``make`` answered first for ``node``, the same objects, and an ``equal`` value."""
        known = self._known.setdefault(node, {})
        place = (equal, *map(id, among))
        if place not in known:
            if len(known) >= MOST_KNOWN:
                known.clear()
            known[place] = among, make()  # ``among`` stays alive, so that no other object can get one of these ids
        return known[place][1]


MOST_KNOWN = 256


def made_from(old: Any, new: T) -> T:
    """``new``, of which it is noted that it is a version of ``old``, if both are nodes of one class: what is known of it
    may be made from what is known of its version before.

    >>> from tir import Var
    >>> x = Var("x")
    >>> version_before(made_from(x, Var("y"))) is x
    True
    """
    if type(new) is type(old) and new is not old:
        _ORIGINS[new] = (ref(old), *(_ORIGINS.get(old) or ())[:_STEPS_BACK])  # type: ignore[index]
    return new


def version_before(new: Any) -> Any:
    """What ``new`` was made from, as :func:`made_from` said, or the nearest version before that still exists; None if there
    is none."""
    return next((old for origin in _ORIGINS.get(new) or () if (old := origin()) is not None), None)


_ORIGINS: Memo[tuple[ReferenceType[Any], ...]] = Memo()  # nearest first
_STEPS_BACK = 4


def _members(value: Any) -> Sequence[Node]:
    """The nodes in a value: itself, or what tuples and mappings hold."""
    if isinstance(value, Node):
        return (value,)
    if isinstance(value, dict):
        value = tuple(value.values())
    elif not isinstance(value, tuple):
        return ()
    for item in value:
        if not isinstance(item, Node):  # seldom
            return [node for each in value for node in _members(each)]
    return value


def _map_nodes(nodes: tuple[Any, ...], fn: Callable[[Any], Any]) -> tuple[Any, ...]:
    new = tuple(map(fn, nodes))
    return nodes if all(map(is_, new, nodes)) else new


def _map_value(value: Any, fn: Callable[[Any], Any]) -> Any:
    if isinstance(value, Node):
        return fn(value)
    if isinstance(value, tuple):
        return _map_nodes(value, lambda item: _map_value(item, fn))
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
    has_text = cls.__doc__ is not None
    cls.__doc__ = cls.__doc__ or cls.__name__  # in the place of one without, dataclasses look the signature up
    made = dataclasses.dataclass(init=False, slots=True, eq=False, repr=False)(cls)
    made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete  # type: ignore
    fields = dataclasses.fields(made)  # type: ignore
    given = [f for f in fields if f.init]
    made.fields = tuple(f.name for f in given if f.name != "span")  # type: ignore
    links = {f.name: _type_name(f.type) for f in given if f.name != "span" and _type_name(f.type) not in _PLAIN}
    namespace = {**vars(sys.modules[cls.__module__]), **_names_of(made, fields)}
    for method in (
        _init_source(made, fields),
        _replace_source(made, fields),
        *((_with_body_source(made, fields),) if "body" in made.fields else ()),
        _children_source(links),
        _map_children_source(made, fields, links),
        *_state_sources(fields),
    ):
        name = method[4 : method.index("(")]
        if name not in vars(cls):
            compiled = _compiled if name == "__init__" else _compiled_when_called
            setattr(made, name, compiled(made, name, method, namespace))
    if not has_text:
        made.__doc__ = f"{cls.__name__}({', '.join(made.fields)})"  # type: ignore
    return made  # type: ignore


def _compiled(made: type, name: str, source: str, namespace: dict[str, Any]) -> Any:
    """A method of a class from its source."""
    found: dict[str, Any] = {}
    exec(source, namespace, found)
    found[name].__qualname__ = f"{made.__qualname__}.{name}"
    return found[name]


def _compiled_when_called(made: type, name: str, source: str, namespace: dict[str, Any]) -> Any:
    """What stands in the place of a method until it is called first: a process calls few of those of all nodes, and compiling takes long."""

    def first(self: Any, *args: Any, **named: Any) -> Any:
        if vars(made)[name] is first:
            setattr(made, name, _compiled(made, name, source, namespace))
        return getattr(made, name)(self, *args, **named)

    return first


def _refuse_to_set(node: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(node: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


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


# Programs are built and visited by these, which each class has as its own, without loops over names of fields.
def _names_of(made: Any, fields: Any) -> dict[str, Any]:
    """What their sources use: how each field is set although nodes are immutable, and the defaults."""
    setters = {f"_set_{f.name}": getattr(made, f.name).__set__ for f in fields}
    defaults = {f"_default_{f.name}": _default(f) for f in fields if _default(f) is not dataclasses.MISSING}
    helpers = {
        "_cls": made, "_Open": _open_twin(made), "_new": object.__new__, "_Node": Node, "_DType": DType,
        "_EMPTY": EMPTY, "_KEPT": object(), "_members": _members, "_set_memos": _set_memos,
        "_require_text": _require_text, "_require_number": _require_number,
    }  # fmt: skip
    return {**helpers, "_map_nodes": _map_nodes, "_map_value": _map_value, **setters, **defaults}


def _require_text(value: Any, kind: str, field: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"the {field.replace('_', ' ')} of a node {kind} is a string, not {value!r}")


def _require_number(value: Any, kind: str, field: str) -> None:
    if isinstance(value, Node) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"the {field.replace('_', ' ')} of a node {kind} is a number, not {value!r}")


def _default(f: Any) -> Any:
    return f.default if f.default_factory is dataclasses.MISSING else f.default_factory()


def _init_source(made: Any, fields: Any) -> str:
    parameters = [
        f"{f.name}=_default_{f.name}" if _default(f) is not dataclasses.MISSING else f.name
        for f in sorted((f for f in fields if f.init), key=lambda f: f.kw_only)
    ]
    named = [f.kw_only for f in fields if f.init].count(True)
    if named:
        parameters.insert(len(parameters) - named, "*")
    texts = [f.name for f in fields if f.init and _type_name(f.type) == "str"]
    lines = [f"def __init__(self, {', '.join(parameters)}):"]
    lines += [f"    if {given}: {reorder}" for given, reorder in made.upstream_order.items()]
    lines += _numbers_source(made, fields)
    numbers = [(f.name, _type_name(f.type)) for f in fields if f.init and _type_name(f.type) in ("int", "float")]
    lines += [f"    if type({n}) is not {t}: _require_number({n}, {made.__name__!r}, {n!r})" for n, t in numbers]
    lines += [f"    if type({n}) is not str: _require_text({n}, {made.__name__!r}, {n!r})" for n in texts]
    lines += [f"    _set_{name}(self, {value})" for name, value in _values_of(made, fields).items()]
    lines += ["    _set_memos(self, None)"]  # what is not set is found out slowly
    return "\n".join([*lines, "    self.__post_init__()" if hasattr(made, "__post_init__") else "    return None"])


def _state_sources(fields: Any) -> tuple[str, str]:
    """How nodes are pickled and unpickled: those of dataclasses look each field up, which takes several times as long."""
    values = ", ".join(f"self.{f.name}" for f in fields)
    lines = ["def __setstate__(self, state):", f"    [{', '.join(f.name for f in fields)}] = state"]
    lines += [*(f"    _set_{f.name}(self, {f.name})" for f in fields), "    _set_memos(self, None)"]
    return f"def __getstate__(self):\n    return [{values}]", "\n".join(lines)


def _made_lines(made: Any, values: Mapping[str, str]) -> list[str]:
    """What makes a node of the values of its fields, and returns it: the end of a method."""
    lines = ["    made = _new(_Open)", *(f"    made.{name} = {value}" for name, value in values.items())]
    lines += ["    made._memos = None", "    made.__class__ = _cls"]
    lines += ["    made.__post_init__()"] if hasattr(made, "__post_init__") else []
    return [*lines, "    return made"]


def _open_twin(made: Any) -> type:
    """A class of the same slots, which are set by plain assignments. That is several times as fast as setting those of a
    class that refuses assignments, so that nodes made from others begin as instances of it."""
    open_again = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return type(made.__name__, made.__bases__, {"__slots__": made.__slots__, **open_again})


def _values_of(made: Any, fields: Any) -> dict[str, str]:
    """The values of the fields, of the names of parameters."""
    return {f.name: made.computed.get(f.name) or _as_declared(f) for f in fields}


def _numbers_source(made: Any, fields: Any) -> list[str]:
    """What notices numbers in the place of expressions, which have no ``fields``, at the price of looking that up."""
    types = {f.name: _type_name(f.type) for f in fields if f.init}
    single = [name for name, type_ in types.items() if type_ == "Expr"]
    tuples = [name for name, type_ in types.items() if type_ == "tuple[Expr, ...]"]
    if not single and not tuples:
        return []
    known = {name for names in made.from_numbers for name in names.split(", ")}
    rules = {**{n: f"as_expr({n})" for n in single if n not in known}, **made.from_numbers}
    rules |= {n: f"tuple(map(as_expr, {n}))" for n in tuples if n not in known}
    if all(names == rule for names, rule in rules.items()):  # what is no expression is refused later
        return []
    return [
        "    try:",
        *(f"        {name}.fields" for name in single),
        *(f"        for _item in {name}: _item.fields" for name in tuples),
        "    except AttributeError:",
        f"        from {__package__}.expr import as_bool, as_expr, matched, with_number",
        *(f"        {names} = {rule}" for names, rule in rules.items()),
    ]


def _as_declared(f: Any) -> str:
    """The value of a parameter of ``__init__`` as its field has it: for a data type, its name will do."""
    kind = _type_name(f.type)
    if not kind.startswith("DType"):
        return f.name
    kept = f"type({f.name}) is _DType" + (f" or {f.name} is None" if kind.endswith("None") else "")
    return f"{f.name} if {kept} else _DType({f.name})"


def _replace_source(made: Any, fields: Any) -> str:
    given = [f.name for f in fields if f.init]
    lines = [f"def replace(self{', *, ' if given else ''}{', '.join(f'{name}=_KEPT' for name in given)}):"]
    lines += [f"    if {name} is _KEPT: {name} = self.{name}" for name in given]
    return "\n".join([*lines, *_made_lines(made, _values_of(made, fields))])


def _with_body_source(made: Any, fields: Any) -> str:
    """As ``replace(body=body)``, in half of the time: a step makes most of its nodes so."""
    values = {f.name: "body" if f.name == "body" else f"self.{f.name}" for f in fields}
    return "\n".join(["def with_body(self, body):", *_made_lines(made, values)])


def _children_source(links: dict[str, str]) -> str:
    def member(name: str, type_: str) -> str:
        if type_ == "Any":
            return f"*(() if self.{name} is _EMPTY else _members(self.{name}))"
        if type_.startswith("tuple"):
            return f"*_members(self.{name})" if "Any" in type_ else f"*self.{name}"
        return f"*(() if self.{name} is None else (self.{name},))" if "None" in type_ else f"self.{name}"

    return f"def children(self):\n    return [{', '.join(map(member, links, links.values()))}]"


def _map_children_source(made: Any, fields: Any, links: dict[str, str]) -> str:
    def mapped(name: str, type_: str) -> str:
        if type_ == "Any":
            return f"self.{name} if self.{name} is _EMPTY else _map_value(self.{name}, fn)"
        if type_.startswith("tuple"):
            return (
                f"{'_map_value' if 'Any' in type_ else '_map_nodes'}(self.{name}, fn) if self.{name} else self.{name}"
            )
        return f"None if self.{name} is None else fn(self.{name})" if "None" in type_ else f"fn(self.{name})"

    lines = [f"    {name} = {mapped(name, type_)}" for name, type_ in links.items()]
    same = " and ".join(f"{name} is self.{name}" for name in links) or "True"
    lines += [f"    if {same}: return self"]
    lines += [f"    {f.name} = self.{f.name}" for f in fields if f.init and f.name not in links]
    return "\n".join(["def map_children(self, fn):", *lines, *_made_lines(made, _values_of(made, fields))])


# ---------------------------------------------------------------- records


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: type[T]) -> type[T]:
    """Make a class a dataclass whose instances count by identity and are not changed. That is for pyright to refuse: what
    refuses it at run time (``frozen``) makes each instance four times as slowly.

    >>> @record
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1)
    (Point(x=1, y=0), False)
    """
    return dataclasses.dataclass(eq=False)(cls)


def changed(one: T, **fields: Any) -> T:
    """A record with other ``fields``, as ``dataclasses.replace``, which takes five times as long. What cached properties
    hold stays: none may depend on these fields.

    >>> @record
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> changed(Point(1), y=2)
    Point(x=1, y=2)
    """
    made = object.__new__(type(one))
    made.__dict__.update(one.__dict__, **fields)
    return made


class cached_property(Generic[T]):
    """``functools.cached_property`` as it is from Python 3.12 on, without a lock, which takes longer than most of what is
    computed here.

    >>> class Square:
    ...     side = 3
    ...
    ...     @cached_property
    ...     def area(self):
    ...         print("computed")
    ...         return self.side**2
    >>> square = Square()
    >>> square.area, square.area
    computed
    (9, 9)
    """

    def __init__(self, compute: Callable[[Any], T]):
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
