"""What the constructs of the dialect evaluate to, for the parser to build statements from.

``T.grid(4, 4)`` is a ``LoopFrame``, ``T.block("C")`` a ``BlockFrame`` and so on: small descriptions without state.
Using them outside a prim_func is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..buffer import Buffer, BufferRegion, IterVar, Range
from ..dtype import DType
from ..errors import TirError
from ..expr import Expr, Var


class Frame:
    """Base of the descriptions; ``described`` is the construct's spelling."""

    described = "construct"

    def _outside(self) -> Any:
        raise TirError(
            f"{self.described} is part of the kernel dialect and means something only inside a function decorated "
            "with @T.prim_func (or @T.macro)"
        )

    def __enter__(self) -> Any:
        return self._outside()

    def __exit__(self, *_: Any) -> None: ...

    def __iter__(self) -> Any:
        return self._outside()


@dataclass(eq=False)
class Loop:
    """One loop to open: bounds (``stop`` None: ``start`` is the extent), kind, thread axis, annotations, step."""

    start: Any
    stop: Any
    kind: str = "serial"
    thread: str = ""
    annotations: dict[str, Any] = field(default_factory=dict)
    step: Any = 1


@dataclass(eq=False)
class LoopFrame(Frame):
    loops: list[Loop]
    described: str = "T.grid"


@dataclass(eq=False)
class BlockFrame(Frame):
    name: str
    no_realize: bool = False
    described = "T.block"


class InitFrame(Frame):
    described = "T.init"


@dataclass(eq=False)
class Axis(Frame):
    """A block iterator to declare; ``dom`` None takes the domain of the loop it is bound to."""

    kind: str
    dom: Range | None
    binding: Expr
    described = "T.axis"


@dataclass(eq=False)
class AxisList(Frame):
    kinds: str
    bindings: list[Expr]
    described = "T.axis.remap"


@dataclass(eq=False)
class Directive(Frame):
    """A directive for the enclosing block or function: where, reads, writes, block_attr, func_attr."""

    key: str
    value: Any

    @property
    def described(self) -> str:  # type: ignore[override]
        return f"T.{self.key}"


@dataclass(eq=False)
class BufferSpec(Frame):
    """A buffer not yet named: ``T.Buffer(...)``, ``T.alloc_buffer(...)``, ``T.match_buffer(...)``."""

    how: str
    shape: tuple[Any, ...]
    dtype: Any
    options: dict[str, Any]
    source: Any = None

    @property
    def described(self) -> str:  # type: ignore[override]
        return f"T.{self.how}"


@dataclass(eq=False)
class LetFrame(Frame):
    """Bind a variable over what follows; ``var`` None makes one of ``dtype`` (None: the value's)."""

    value: Any
    var: Var | None = None
    type: Any = None
    described = "T.LetStmt"


@dataclass(eq=False)
class AttrFrame(Frame):
    """Attributes of a node, outermost first."""

    node: Any
    facts: dict[str, Any]
    described = "T.attr"


@dataclass(eq=False)
class LaunchFrame(Frame):
    thread: Any
    extent: Any
    described = "T.launch_thread"


@dataclass(eq=False)
class AllocateFrame(Frame):
    extents: tuple[Any, ...]
    dtype: DType
    scope: str
    condition: Any
    annotations: dict[str, Any]
    data: Any = None
    described = "T.allocate"


@dataclass(eq=False)
class RealizeFrame(Frame):
    region: BufferRegion
    scope: str
    condition: Any
    described = "T.realize"


class TypeOfValue:
    """An annotation that leaves the type to the value."""


@dataclass(eq=False)
class AssertFrame(Frame):
    condition: Any
    message: Any
    described = "T.Assert"


@dataclass(eq=False)
class EnvThread(Frame):
    """A thread axis before it has a name."""

    thread: str
    dtype: DType
    described = "T.env_thread"


@dataclass(eq=False)
class Meta(Frame):
    """A value bound in Python, not by a let in the program."""

    value: Any
    described = "T.meta_var"


@dataclass(eq=False)
class StoreFrame(Frame):
    """A store as a call: ``T.buffer_store`` and ``A.vstore``."""

    buffer: Buffer
    value: Any
    indices: tuple[Any, ...]
    described = "T.buffer_store"


@dataclass(eq=False)
class Evaluated(Frame):
    """``T.evaluate(value)``."""

    value: Any
    described = "T.evaluate"


def as_var(value: Any) -> Any:
    """The variable of an iterator, any other value unchanged."""
    return value.var if isinstance(value, IterVar) else value
