"""What a schedule returns: names of loops and blocks, and integers that remember how they were sampled.

A handle has no reference into a program. It is looked up in the current snapshot each time it is used, so it stays
valid across steps, copies and undo for as long as its loop or block exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..checked import checked
from ..expr import Var
from ..stmt import Block, For


class LoopRV:
    """A loop, by its variable. Equal handles name the same loop.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.row_sum(4, 8))
    >>> i, j = sch.get_loops("total")
    >>> i, i.name, sch.get(j).extent
    (LoopRV(i), 'i', 8)
    """

    __slots__ = ("var", "func")

    def __init__(self, var: Var, func: str):
        self.var = var
        self.func = func

    @property
    def name(self) -> str:
        return self.var.name

    @property
    def key(self) -> Any:
        """The key of this handle in the forwarding table of a snapshot."""
        return self.var

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoopRV) and self.var is other.var and self.func == other.func

    def __hash__(self) -> int:
        return hash((id(self.var), self.func))

    def __repr__(self) -> str:
        return f"LoopRV({self.name})"


class Location(LoopRV):
    """A compute location that is not a loop: ``"root"`` (a loop nest of its own) or ``"inline"`` (in its consumers).

    ``sample_compute_location`` can return it; ``compute_at`` and ``reverse_compute_at`` accept it in place of a loop.
    """

    __slots__ = ()
    VARS = {name: Var(name) for name in ("root", "inline")}

    def __init__(self, name: str, func: str):
        super().__init__(self.VARS[name], func)


class BlockRV:
    """A block, by its name. Equal handles name the same block.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.rows.row_sum(4, 8))
    >>> sch.get_block("total"), sch.get_block("total") == sch["total"], sch["total"].name
    (BlockRV(total), True, 'total')
    """

    __slots__ = ("name", "func")

    def __init__(self, name: str, func: str):
        self.name = name
        self.func = func

    @property
    def key(self) -> Any:
        """The key of this handle in the forwarding table of a snapshot."""
        return self.func, self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockRV) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"BlockRV({self.name})"


@dataclass(frozen=True)
class StmtSRef:
    """A loop or a block of the current program (``stmt``), and its parent (``parent``; None for the root block)."""

    stmt: For | Block
    parent: StmtSRef | None = None


class ExprRV(int):
    """An integer chosen by a schedule (a sampled tile size), with its origin for the trace.

    Arithmetic with integers gives another ``ExprRV``, so a replay with another decision recomputes what depends on it.

    >>> tile = ExprRV(8)
    >>> tile * 2, (tile * 2).source[0]
    (16, '*')
    """

    source: tuple[Any, ...]

    @checked
    def __new__(cls, value: int, source: tuple[Any, ...] = ()) -> ExprRV:
        made = int.__new__(cls, value)
        made.source = source
        return made

    @property
    def is_result(self) -> bool:
        """Whether this is a result of a step, rather than arithmetic on such results."""
        return not self.source


def _operator(symbol: str, method: str, swapped: bool) -> Any:
    compute = getattr(int, method)

    def operate(self: ExprRV, other: Any) -> Any:
        value = compute(self, other)
        if value is NotImplemented or not isinstance(other, int):
            return value
        return ExprRV(value, (symbol, other, self) if swapped else (symbol, self, other))

    operate.__name__ = method
    return operate


for _symbol, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("//", "floordiv"), ("%", "mod")):
    setattr(ExprRV, f"__{_name}__", _operator(_symbol, f"__{_name}__", False))
    setattr(ExprRV, f"__r{_name}__", _operator(_symbol, f"__r{_name}__", True))
