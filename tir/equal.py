"""Structural equality, hash, and the first place where two programs differ.

Two programs are equal when they are the same up to a consistent renaming of bound variables and buffers. Names of
variables, buffers and blocks do not matter; those of functions do, by which they are called. Free variables equal only
themselves, unless ``map_free_vars``. Source spans are ignored. NaN equals NaN, and -0.0 differs from 0.0.
"""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any

from .buffer import Buffer, IterVar, MatchBufferRegion
from .display import Shown
from .expr import CommReducer, Expr, IntImm, Let, Reduce, Var
from .function import PrimFunc
from .node import Node
from .render import to_lines
from .stmt import Allocate, AllocateConst, AttrStmt, Block, BufferRealize, DeclBuffer, For, LetStmt
from .visit import with_recursion_limit

# Fields in the order that puts what binds before what uses; a name ending in "=" binds the variables in it.
_ORDER: dict[type, tuple[str, ...]] = {
    For: ("min", "extent", "kind", "thread", "annotations", "loop_var=", "body"),
    Let: ("value", "var=", "body"),
    LetStmt: ("value", "var=", "body"),
    Allocate: ("dtype", "extents", "condition", "annotations", "buffer_var=", "body"),
    AllocateConst: ("dtype", "extents", "data", "annotations", "buffer_var=", "body"),
    AttrStmt: ("attr_key", "value", "node", "body"),
    DeclBuffer: ("buffer=", "body"),
    BufferRealize: ("buffer=", "bounds", "condition", "body"),
    MatchBufferRegion: ("source", "buffer="),
    IterVar: ("iter_type", "thread_tag", "dom", "var="),
    CommReducer: ("lhs=", "rhs=", "result", "identity"),
    Reduce: ("init", "value_index", "combiner", "axis", "source", "condition"),
    Block: ("iter_vars", "alloc_buffers=", "match_buffers", "annotations", "reads", "writes", "init", "body"),
}


@with_recursion_limit
def structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> bool:
    """Whether ``a`` and ``b`` (nodes, or tuples, lists and dicts of them) are the same up to renaming.

    >>> from tir.expr import Var
    >>> x, y = Var("x"), Var("y")
    >>> structural_equal(x + 1, y + 1), structural_equal(x + 1, y + 1, map_free_vars=True)
    (False, True)
    """
    return a is b or _Comparison(map_free_vars).run(a, b) is None


@with_recursion_limit
def first_difference(a: Any, b: Any, map_free_vars: bool = False) -> str | None:
    """The path and values of the first difference, such as ``body.block.body.extent: 128 != 64``; None when equal."""
    difference = _Comparison(map_free_vars).run(a, b)
    return None if difference is None else str(difference)


@with_recursion_limit
def assert_structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> None:
    """Raise ``AssertionError`` with the first difference, and the place in both texts, unless the two are equal.

    >>> from tir.expr import Var
    >>> x = Var("x")
    >>> assert_structural_equal(x + 1, x + 1)
    >>> structural_equal(x + 1, x + 2)
    False
    """
    comparison = _Comparison(map_free_vars)
    difference = comparison.run(a, b)
    if difference is None:
        return
    parts = [f"not structurally equal, at {difference}"]
    for side, root, node in (("left", a, comparison.place[0]), ("right", b, comparison.place[1])):
        parts.append(f"{side}:\n{_excerpt(root, node)}")
    raise AssertionError("\n".join(parts))


def _excerpt(root: Any, node: Any) -> str:
    from .function import IRModule

    if isinstance(root, (PrimFunc, IRModule)) and isinstance(node, Node) and node is not root:
        text = to_lines(root, underline=(node,))
        if text:
            return text
    return str(root) if isinstance(root, Node) else repr(root)


class _Path:
    """A path as a linked list: built on the way down at no cost, spelled only when something differs."""

    __slots__ = ("parent", "step")

    def __init__(self, parent: _Path | None, step: str):
        self.parent = parent
        self.step = step

    def __str__(self) -> str:
        steps: list[str] = []
        at: _Path | None = self
        while at is not None:
            steps.append(at.step)
            at = at.parent
        return "".join(reversed(steps)).lstrip(".")


_ROOT = _Path(None, "")


class _Comparison:
    def __init__(self, map_free_vars: bool):
        self.map_free_vars = map_free_vars
        self.forward: dict[Any, Any] = {}
        self.backward: dict[Any, Any] = {}
        self.done: set[tuple[int, int]] = set()
        self.place: tuple[Any, Any] = (None, None)

    def run(self, a: Any, b: Any) -> _Difference | None:
        # Work items are (a, b, path, whether vars bind here, nearest pair of nodes). A pair met before is not
        # compared again: had it differed, we would have stopped.
        stack: list[tuple[Any, Any, _Path, bool, tuple[Any, Any]]] = [(a, b, _ROOT, False, (a, b))]
        while stack:
            x, y, path, binds, place = stack.pop()
            self.place = place
            if isinstance(x, (Expr, Node)):
                if type(x) is not type(y):
                    return _Difference(path, x, y)
                if isinstance(x, (Var, Buffer)):
                    problem = self.name(x, y, path, binds, stack)
                    if problem is not None:
                        return problem
                    continue
                key = (id(x), id(y))
                if key in self.done:
                    continue
                self.done.add(key)
                self.push_fields(x, y, path, binds, stack)
            elif isinstance(x, (tuple, list)):
                if not isinstance(y, (tuple, list)):
                    return _Difference(path, x, y)
                if len(x) != len(y):
                    return _Difference(path, len(x), len(y), "number of items")
                for i in range(len(x) - 1, -1, -1):
                    stack.append((x[i], y[i], _Path(path, f"[{i}]"), binds, place))
            elif isinstance(x, dict):
                if not isinstance(y, dict):
                    return _Difference(path, x, y)
                if x.keys() != y.keys():
                    return _Difference(path, tuple(x), tuple(y), "different keys")
                for key in reversed(list(x)):
                    stack.append((x[key], y[key], _Path(path, f"[{key!r}]"), binds, place))
            elif not same_value(x, y):
                return _Difference(path, x, y)
        return None

    def push_fields(self, x: Any, y: Any, path: _Path, binds: bool, stack: list[Any]) -> None:
        place = (x, y)
        if isinstance(x, PrimFunc):
            # Parameters bind, then the sizes that parameter buffers declare.
            for name in ("body", "attrs", "ret_type"):
                stack.append((getattr(x, name), getattr(y, name), _Path(path, "." + name), False, place))
            maps = [tuple(f.buffer_map.get(p) for p in f.params) for f in (x, y)]
            stack.append((maps[0], maps[1], _Path(path, ".buffer_map"), True, place))
            stack.append((x.params, y.params, _Path(path, ".params"), True, place))
            return
        for name in reversed(_ORDER.get(type(x)) or x.fields):
            binding = name[-1] == "="
            name = name.rstrip("=")
            inherited = binds and type(x) not in _ORDER  # inside a declared buffer's or region's parts
            stack.append((getattr(x, name), getattr(y, name), _Path(path, "." + name), binding or inherited, place))

    def name(self, x: Any, y: Any, path: _Path, binds: bool, stack: list[Any]) -> _Difference | None:
        """Compare two variables or two buffers: bound together before, or bound now."""
        is_buffer = isinstance(x, Buffer)
        if x in self.forward or y in self.backward:
            if self.forward.get(x) is y and self.backward.get(y) is x:
                return None
            if not binds or self.is_size(x, path):
                return _Difference(path, x, y, "used as different things")
            self.done.clear()  # a reused variable means something else from here on
            if is_buffer and path.parent is not None and path.parent.step == ".alloc_buffers":
                self.forward.pop(x.data, None)
                self.backward.pop(y.data, None)
        elif not is_buffer and not binds and not self.map_free_vars:
            return None if x is y else _Difference(path, x, y, "different free variables")
        if is_buffer:
            for field in ("buffer_type", "axis_separators", "offset_factor", "data_alignment", "scope", "dtype"):
                if getattr(x, field) != getattr(y, field):
                    self.place = (x, y)
                    return _Difference(_Path(path, "." + field), getattr(x, field), getattr(y, field))
            for field in ("elem_offset", "strides", "shape", "data"):
                stack.append((getattr(x, field), getattr(y, field), _Path(path, "." + field), binds, self.place))
        elif (x.dtype, x.pointer_dtype, x.scope) != (y.dtype, y.pointer_dtype, y.scope):
            return _Difference(path, _with_type(x), _with_type(y))
        self.forward[x] = y
        self.backward[y] = x
        return None

    def is_size(self, x: Any, path: _Path) -> bool:
        """A variable met again inside a declaration (a shape, a pointer) is used there, not bound anew."""
        step = path
        while step.parent is not None and step.step.startswith("["):
            step = step.parent
        return not isinstance(x, Buffer) and step.step in (".shape", ".strides", ".elem_offset", ".data", ".a", ".b")


class _Difference:
    """Where and what; spelled out only when somebody reads it."""

    def __init__(self, path: _Path, x: Any, y: Any, why: str = ""):
        self.parts = path, x, y, why

    def __str__(self) -> str:
        path, x, y, why = self.parts
        return f"{str(path) or 'value'}: {_show(x)} != {_show(y)}" + (f" ({why})" if why else "")


def _with_type(v: Var) -> Shown:
    pointer = f" to {v.pointer_dtype} in {v.scope or 'any scope'}" if v.pointer_dtype else ""
    return Shown(f"{v.name}: {v.dtype}{pointer}")


def _show(value: Any) -> str:
    text = repr(value)
    first = text.split("\n", 1)[0]
    kind = f"{type(value).__name__} " if isinstance(value, Node) and not isinstance(value, Expr) else ""
    return kind + (first if first == text and len(first) < 100 else first[:80] + " ...")


def same_value(x: Any, y: Any) -> bool:
    """Whether two plain Python values are the same: type and value, NaN equal to NaN, -0.0 not to 0.0."""
    if x is y:
        return True
    if isinstance(x, float) and isinstance(y, float):
        if math.isnan(x) or math.isnan(y):
            return math.isnan(x) and math.isnan(y)
        return x == y and math.copysign(1.0, x) == math.copysign(1.0, y)
    if hasattr(x, "tobytes") and hasattr(y, "tobytes"):  # NumPy arrays
        return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    if isinstance(x, str) and isinstance(y, str):
        return str(x) == str(y)
    if isinstance(x, (int, bool)) and isinstance(y, (int, bool)):
        return x == y and isinstance(x, bool) == isinstance(y, bool)
    return type(x) is type(y) and bool(x == y)


@with_recursion_limit
def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A 64-bit hash that equal programs share, the same in every process when there are no free variables.

    >>> from tir.expr import Var
    >>> structural_hash(Var("x") + 1, True) == structural_hash(Var("y") + 1, True)
    True
    """
    return int.from_bytes(_Hasher(map_free_vars).of(node, False), "little")


@with_recursion_limit
def structural_digest(node: Any, largest: int | None = None) -> str:
    """256 bits, as hex digits, that equal programs share in every process and other programs do not.

    ``largest``: integers above it count as equal, so that one digest stands for all sizes of a program.

    >>> from tir.expr import Var
    >>> structural_digest(Var("x") + 64, 8) == structural_digest(Var("y") + 32, 8) != structural_digest(Var("x") + 7, 8)
    True
    """
    return _Hasher(True, 32, largest).of(node, False).hex()


class _Hasher:
    """Hashes of ``size`` bytes; integers above ``largest`` hash alike."""

    def __init__(self, map_free_vars: bool, size: int = 8, largest: int | None = None):
        self.map_free_vars = map_free_vars
        self.size = size
        self.largest = math.inf if largest is None else largest
        self.numbers: dict[Any, int] = {}
        self.memo: dict[Any, tuple[bytes, int]] = {}
        self.next = 0

    def bind(self, x: Any) -> int:
        self.next += 1
        self.numbers[x] = self.next
        return self.next

    def of(self, x: Any, binds: bool) -> bytes:
        if isinstance(x, Var):
            return self.variable(x, binds)
        if isinstance(x, Buffer):
            return self.buffer(x, binds)
        if isinstance(x, Node):
            known = self.memo.get(x)
            if known is not None:
                return known[0]
            before = self.next
            result = self.node(x, binds)
            if self.next == before:  # binds nothing, so it hashes the same at every place in this scope
                self.memo[x] = (result, before)
            return result
        if isinstance(x, (tuple, list)):
            return self.digest(b"(", *(self.of(item, binds) for item in x))
        if isinstance(x, dict):
            return self.digest(b"{", *(self.plain(key) + self.of(x[key], binds) for key in sorted(x, key=str)))
        return self.plain(x)

    def variable(self, x: Var, binds: bool) -> bytes:
        number = self.numbers.get(x)
        if binds and number is None:
            number = self.bind(x)
        elif number is None:
            number = self.bind(x) if self.map_free_vars else id(x)
        return self.digest(
            b"v", self.plain(number), self.plain(str(x.dtype)), self.plain(x.pointer_dtype), self.plain(x.scope)
        )

    def buffer(self, x: Buffer, binds: bool) -> bytes:
        number = self.numbers.get(x)
        if number is not None:
            return self.digest(b"b", self.plain(number))
        number = self.bind(x)
        return self.digest(b"b", self.plain(number), *(self.of(getattr(x, f), binds) for f in x.fields if f != "name"))

    def node(self, x: Any, binds: bool) -> bytes:
        parts = [type(x).__name__.encode()]
        if isinstance(x, IntImm) and x.value > self.largest:
            return self.digest(*parts, b"size")
        if isinstance(x, PrimFunc):
            parts.append(self.of(x.params, True))
            parts.append(self.of(tuple(x.buffer_map.get(p) for p in x.params), True))
            parts.extend(self.of(getattr(x, name), False) for name in ("ret_type", "attrs", "body"))
        else:
            for name in _ORDER.get(type(x)) or x.fields:
                binding = name[-1] == "=" or (binds and type(x) not in _ORDER)
                if name[-1] == "=":
                    self.rebind(getattr(x, name[:-1]))
                parts.append(self.of(getattr(x, name.rstrip("=")), binding))
        return self.digest(*parts)

    def rebind(self, bound: Any) -> None:
        """Forget the number of a variable or buffer that is bound a second time (it is reused in a sibling scope)."""
        for item in bound if isinstance(bound, tuple) else (bound,):
            if isinstance(item, (Var, Buffer)) and self.numbers.pop(item, None) is not None:
                self.memo.clear()

    def digest(self, *parts: bytes) -> bytes:
        return hashlib.blake2b(b"\0".join(parts), digest_size=self.size).digest()

    def plain(self, value: Any) -> bytes:
        if isinstance(value, float):
            return b"f" + (b"nan" if math.isnan(value) else struct.pack("<d", value))
        if hasattr(value, "tobytes"):
            return self.digest(value.tobytes())
        return (type(value).__name__[:1] if not isinstance(value, str) else "s").encode() + str(value).encode()
