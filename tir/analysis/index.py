"""The index of a program: the position of each statement, the loops above it, the blocks below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..arith import Analyzer
from ..buffer import Range
from ..expr import Expr, Var
from ..function import PrimFunc
from ..node import Memo
from ..stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    While,
)


class Place:
    """The position of a statement in a function: its parent, and the block that encloses it."""

    __slots__ = ("node", "parent", "scope", "__weakref__")
    node: Any

    def __init__(self, node: Any, parent: Place | None, scope: BlockRef | None):
        self.node = node
        self.parent = parent
        self.scope = scope

    def ancestors(self) -> Iterator[Place]:
        """Parents, nearest first, up to the function's root."""
        place = self.parent
        while place is not None:
            yield place
            place = place.parent

    def loops(self) -> list[LoopRef]:
        """Loops above, outermost first, up to the enclosing block."""
        found: list[LoopRef] = []
        for place in self.ancestors():
            if isinstance(place.node, Block):
                break
            if isinstance(place, LoopRef):
                found.append(place)
        return found[::-1]

    def all_loops(self) -> list[LoopRef]:
        """Loops above, outermost first, through enclosing blocks up to the root of the function."""
        return [p for p in self.ancestors() if isinstance(p, LoopRef)][::-1]

    def analyzer(self) -> Analyzer:
        """An analyzer that knows the ranges of all loops above, and of this one if it is a loop."""
        loops = [*self.all_loops(), self] if isinstance(self, LoopRef) else self.all_loops()
        return Analyzer({loop.var: loop.range for loop in loops})


class LoopRef(Place):
    """A loop found in a snapshot."""

    __slots__ = ()
    node: For

    @property
    def var(self) -> Var:
        return self.node.loop_var

    @property
    def name(self) -> str:
        return self.node.loop_var.name

    @property
    def range(self) -> Range:
        """The values that the variable takes."""
        return self.node.domain

    def __repr__(self) -> str:
        return f"`{self.name}`"


class BlockRef(Place):
    """A block found in a snapshot: ``node`` is its realize, ``children`` the blocks just inside."""

    __slots__ = ("children",)
    node: BlockRealize

    def __init__(self, node: BlockRealize, parent: Place | None, scope: BlockRef | None):
        super().__init__(node, parent, scope)
        self.children: list[BlockRef] = []

    @property
    def block(self) -> Block:
        return self.node.block

    @property
    def name(self) -> str:
        return self.node.block.name

    @property
    def bindings(self) -> dict[Var, Expr]:
        """The value of each iterator, in terms of the loops above."""
        return self.node.bindings

    def loop_ranges(self, host: Place | None = None) -> dict[Var, Range]:
        """The ranges of the loops above, up to the enclosing block, or inside ``host`` if it is one of them."""
        loops = self.loops()
        if isinstance(host, LoopRef) and host in loops:
            loops = loops[loops.index(host) + 1 :]
        return {loop.var: loop.range for loop in loops}

    def __repr__(self) -> str:
        return f"`{self.name}`"


def sub_statements(node: Any) -> tuple[Any, ...]:
    """The statements (or the block) directly inside a statement, in program order."""
    kind = _CHILDREN.get(type(node))
    return kind(node) if kind is not None else ()


_CHILDREN: dict[type, Any] = {
    BlockRealize: lambda s: (s.block,),
    Block: lambda s: (s.body,) if s.init is None else (s.init, s.body),
    SeqStmt: lambda s: s.stmts,
    IfThenElse: lambda s: (s.then_case,) if s.else_case is None else (s.then_case, s.else_case),
    **dict.fromkeys(
        (For, While, LetStmt, AttrStmt, Allocate, AllocateConst, DeclBuffer, BufferRealize), lambda s: (s.body,)
    ),
}


class Index:
    """Every statement of one function, found in one walk."""

    __slots__ = ("places", "blocks", "loops", "root")

    def __init__(self, func: PrimFunc):
        self.places: dict[Any, Place] = {}
        self.blocks: dict[str, BlockRef] = {}
        self.loops: dict[Var, LoopRef] = {}
        self.root: Place = self._visit(func.body, None, None)

    def _visit(self, node: Any, parent: Place | None, scope: BlockRef | None) -> Place:
        kind = type(node)
        if kind is For:
            place = self.loops[node.loop_var] = self.places[node] = LoopRef(node, parent, scope)
            self._visit(node.body, place, scope)
            return place
        if kind is BlockRealize:
            inner = self.blocks[node.block.name] = self.places[node] = BlockRef(node, parent, scope)
            if scope is not None:
                scope.children.append(inner)
            self._visit(node.block, inner, inner)
            return inner
        other = self.places[node] = Place(node, parent, scope)
        for child in sub_statements(node):
            self._visit(child, other, scope)
        return other

    def below(self, place: Place) -> Iterator[Place]:
        """``place`` and every place under it, parents first."""
        stack = [place]
        while stack:
            item = stack.pop()
            yield item
            stack.extend(self.places[c] for c in reversed(sub_statements(item.node)))

    def blocks_below(self, place: Place) -> list[BlockRef]:
        """The nearest blocks under ``place`` (not blocks nested in them), in program order; ``place`` itself if it is
        one."""
        found: list[BlockRef] = []
        stack = [place]
        while stack:
            item = stack.pop()
            if isinstance(item, BlockRef):
                found.append(item)
            else:
                stack.extend(self.places[c] for c in reversed(sub_statements(item.node)))
        return found

    def loops_named(self, name: str) -> list[LoopRef]:
        return [loop for loop in self.loops.values() if loop.name == name]

    def names(self) -> set[str]:
        """Names of all loop variables."""
        return {loop.name for loop in self.loops.values()}


_INDEXES: Memo[Index] = Memo()


def index_of(func: PrimFunc) -> Index:
    """The index of ``func``, computed once for each function object."""
    found = _INDEXES.get(func)
    if found is None:
        found = _INDEXES[func] = Index(func)
    return found
