"""The index of a program: the position of each statement, the loops above it, the blocks below it.

Programs share what a step did not change, so :func:`contents`, what a statement contains, is computed once for each
statement object; places are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar
from weakref import ReferenceType, ref

from ..arith import Analyzer
from ..buffer import Buffer, MatchBufferRegion, Range
from ..expr import Expr, Var
from ..function import PrimFunc
from ..node import Memo
from ..stmt import (
    SERIAL,
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
    """A block found in a snapshot: ``node`` is its realize, ``index`` that of the function."""

    __slots__ = ("index", "_children")
    node: BlockRealize

    def __init__(self, node: BlockRealize, parent: Place | None, scope: BlockRef | None, index: Index):
        super().__init__(node, parent, scope)
        self.index = index
        self._children: list[BlockRef] | None = None

    @property
    def children(self) -> list[BlockRef]:
        """The blocks just inside, in program order."""
        if self._children is None:
            self._children = self.index.blocks_below(self.index.place_below(self, self.node.block))
        return self._children

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


def contents(stmt: Any) -> tuple[Any, ...]:
    """The loops and the realizes of blocks inside of a statement, parents first, in program order."""
    known = _CONTENTS.get(stmt)
    if known is None:
        below = sub_statements(stmt)
        if not below:
            return ()
        inner: Any = below[0]
        known = tuple(_holders(stmt)) if len(below) > 1 else (*itself(inner), *contents(inner))
        _CONTENTS[stmt] = known
    return known


def itself(stmt: Any) -> tuple[Any, ...]:
    """``stmt``, if it is a loop or the realize of a block."""
    return (stmt,) if type(stmt) is For or type(stmt) is BlockRealize else ()


def _holders(stmt: Any) -> dict[Any, Any]:
    """The sub-statement of ``stmt``, of several, that contains each loop or realize inside of it or is it."""
    known = _HOLDERS.get(stmt)
    if known is None:
        change = edit_of(stmt)
        known = _edited_holders(change) if change is not None else None
        if known is None:
            known = _holders_of(sub_statements(stmt))
        _HOLDERS[stmt] = known
    return known


def _holders_of(members: Iterable[Any]) -> dict[Any, Any]:
    return {inner: s for s in members for inner in (*itself(s), *contents(s))}


def _edited_holders(change: Edit) -> dict[Any, Any] | None:
    """Those of a sequence made from those of the sequence that it was made from; None if a statement object stands in
    several places, or nothing tells where the change is."""
    gone, new = _holders_of(change.removed), _holders_of(change.added)
    known = _holders(change.old)
    if not gone or not new.keys().isdisjoint(known.keys() - gone.keys()):
        return None
    items = list(known.items())
    start = list(known).index(next(iter(gone)))
    if items[start : start + len(gone)] != list(gone.items()):
        return None
    items[start : start + len(gone)] = new.items()
    return dict(items)


@dataclass(frozen=True)
class Edit:
    """How a sequence was made from ``old``: the adjacent members ``removed`` were replaced by ``added``."""

    old: SeqStmt
    removed: tuple[Any, ...]
    added: tuple[Any, ...]


def edit_of(new: Any) -> Edit | None:
    """How a sequence was made from another that still exists, as :func:`made_from` said; None otherwise."""
    origin = _ORIGINS.get(new)
    old = None if origin is None else origin()
    if old is None:
        return None
    was, now = old.stmts, new.stmts
    start = _common(was, now)
    end = min(_common(was[::-1], now[::-1]), len(was) - start, len(now) - start)
    return Edit(old, was[start : len(was) - end], now[start : len(now) - end])


def _common(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
    """How many members two sequences begin with in common."""
    return next((n for n, (x, y) in enumerate(zip(a, b)) if x is not y), min(len(a), len(b)))


def made_from(old: Any, new: Any) -> Any:
    """``new``. If both are sequences, what is known of ``new`` is made from what is known of ``old``, its version before."""
    if isinstance(new, SeqStmt) and isinstance(old, SeqStmt):
        _ORIGINS[new] = ref(old)
    return new


_ORIGINS: Memo[ReferenceType[SeqStmt]] = Memo()
_CONTENTS: Memo[tuple[Any, ...]] = Memo()
_HOLDERS: Memo[dict[Any, Any]] = Memo()

Key = TypeVar("Key")
Found = TypeVar("Found", bound=Place)


class _Places(Mapping[Key, Found], Generic[Key, Found]):
    """The places of statements by their keys, made when they are asked for."""

    def __init__(self, nodes: dict[Key, Any], place: Callable[[Any], Any]):
        self.nodes = nodes
        self._place = place

    def __getitem__(self, key: Key) -> Found:
        return self._place(self.nodes[key])

    def __contains__(self, key: object) -> bool:
        return key in self.nodes

    def __iter__(self) -> Iterator[Key]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


class Index:
    """The statements of one function: ``loops`` by variable, ``blocks`` by name, in program order."""

    def __init__(self, func: PrimFunc):
        self._places: dict[Any, Place] = {}
        self.root: Place = self._made(func.body, None, None)

    @cached_property
    def nodes(self) -> tuple[Any, ...]:
        """Every loop and the realize of every block, in program order."""
        return (*itself(self.root.node), *contents(self.root.node))

    @cached_property
    def loops(self) -> Mapping[Var, LoopRef]:
        return _Places({n.loop_var: n for n in self.nodes if type(n) is For}, self.place)

    @property
    def views(self) -> list[MatchBufferRegion]:
        """The views of buffers that blocks make, outer ones first."""
        return [m for n in self.nodes if type(n) is BlockRealize for m in n.block.match_buffers]

    @property
    def allocations(self) -> list[tuple[BlockRealize, Buffer]]:
        """The buffers that blocks allocate, with these."""
        return [(n, b) for n in self.nodes if type(n) is BlockRealize for b in n.block.alloc_buffers]

    @cached_property
    def marked_loops(self) -> list[LoopRef]:
        """The loops that are not serial, or have annotations."""
        nodes = [n for n in self.nodes if type(n) is For and (n.kind != SERIAL or n.annotations)]
        return [self.place(n) for n in nodes]

    @cached_property
    def blocks(self) -> Mapping[str, BlockRef]:
        return _Places({n.block.name: n for n in self.nodes if type(n) is BlockRealize}, self.place)

    def place(self, node: Any) -> Any:
        """The place of a statement. Raises ``KeyError`` if the function does not contain it."""
        found = self._places.get(node)
        if found is None:
            self._reach(node)
            found = self._places[node]
        return found

    def _reach(self, node: Any) -> None:
        """Make the place of ``node`` and those above it."""
        sought = next(iter((*itself(node), *contents(node))), None)
        if sought is None:  # a statement without loops and blocks, which nothing leads to
            for _ in self.below(self.root):
                if node in self._places:
                    return
        place = self.root
        while place.node is not node and place.node is not sought:
            below = sub_statements(place.node)
            if not below:
                return
            place = self.place_below(place, below[0] if len(below) == 1 else _holders(place.node)[sought])

    def place_below(self, place: Place, node: Any) -> Place:
        """The place of ``node``, which is directly inside the statement of ``place``."""
        found = self._places.get(node)
        if found is not None and found.parent is place:
            return found
        return self._made(node, place, place if isinstance(place, BlockRef) else place.scope)

    def _made(self, node: Any, parent: Place | None, scope: BlockRef | None) -> Place:
        kind = type(node)
        if kind is BlockRealize:
            found: Place = BlockRef(node, parent, scope, self)
        else:
            found = (LoopRef if kind is For else Place)(node, parent, scope)
        self._places[node] = found
        return found

    def below(self, place: Place) -> Iterator[Place]:
        """``place`` and every place under it, parents first."""
        stack = [place]
        while stack:
            item = stack.pop()
            yield item
            stack.extend(self.place_below(item, c) for c in reversed(sub_statements(item.node)))

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
                stack.extend(self.place_below(item, c) for c in reversed(sub_statements(item.node)))
        return found

    def loops_named(self, name: str) -> list[LoopRef]:
        return [self.loops[v] for v in self.loops if v.name == name]


_INDEXES: Memo[Index] = Memo()


def index_of(func: PrimFunc) -> Index:
    """The index of ``func``, computed once for each function object."""
    found = _INDEXES.get(func)
    if found is None:
        found = _INDEXES[func] = Index(func)
    return found
