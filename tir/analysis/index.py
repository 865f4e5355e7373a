"""The index of a program: the position of each statement, the loops and conditions above it, the blocks below it, and in which
statement of a block or a loop it is.

Places are made at first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import filterfalse
from typing import Any, Generic, TypeVar
from weakref import ReferenceType
from weakref import ref as weak

from ..aliases import may_change, other_names
from ..annotations import PRIVATE
from ..arith import Analyzer
from ..buffer import Buffer, MatchBufferRegion, Range
from ..expr import Expr, Var, conjuncts, is_const
from ..function import PrimFunc
from ..node import cached_property, once
from ..stmt import DECLARING, SERIAL, Block, BlockRealize, For, SeqStmt, Stmt, edited_seq, seq
from ..visit import has_load, uses_var
from .contents import contents, parts, path_to, shape, sub_statements, with_memory


class Place:
    """The position of a statement in a function: its parent, and the block that encloses it. ``index`` is that of the
    function, which keeps it, as it keeps its places: it lives as long as the function."""

    __slots__ = ("node", "parent", "scope", "_index", "_loops", "__weakref__")
    node: Any

    def __init__(self, node: Any, parent: Place | None, scope: BlockRef | None, index: ReferenceType[Index]):
        self.node = node
        self.parent = parent
        self.scope = scope
        self._index = index
        self._loops: list[LoopRef] | None = None

    @property
    def index(self) -> Index:
        found = self._index()
        assert found is not None, "the function is gone whose place this is"
        return found

    def ancestors(self) -> list[Place]:
        """Parents, nearest first, up to the function's root."""
        found: list[Place] = []
        place = self.parent
        while place is not None:
            found.append(place)
            place = place.parent
        return found

    def loops(self) -> list[LoopRef]:
        """Loops above, outermost first, up to the enclosing block."""
        found = self._loops
        if found is None:
            found = self._loops = []
            place = self.parent
            while place is not None and type(place.node) is not Block:
                if type(place) is LoopRef:
                    found.append(place)
                place = place.parent
            found.reverse()
        return found[:]

    def all_loops(self) -> list[LoopRef]:
        """Loops above, outermost first, through enclosing blocks up to the root of the function."""
        scope = self.scope
        if scope is None:
            return self.loops()
        return [*scope.all_loops(), *(() if type(self.node) is Block else self.loops())]

    def may_change(self, e: Expr, within: Any) -> bool:
        """Whether ``e`` may get another value while ``within``, a statement here, runs, by whatever names memory has here."""
        around = (getattr(p.node, "block", p.node) for p in (self, *self.ancestors()))
        return may_change(e, within, {name for node in around for name in other_names(node)})

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
    """A block found in a snapshot: ``node`` is its realize."""

    __slots__ = ()
    node: BlockRealize

    @property
    def children(self) -> list[BlockRef]:
        """The blocks just inside, in program order."""
        return self.index.blocks_below(self.index.place_down(self, (self.node.block,)))

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


Key = TypeVar("Key")
Found = TypeVar("Found", bound=Place)


_PLACES: dict[type, type[Place]] = {For: LoopRef, BlockRealize: BlockRef}


class _Places(Mapping[Key, Found], Generic[Key, Found]):
    """The places of statements by their keys, in program order, made when they are asked for."""

    def __init__(self, index: Index, nodes: dict[Key, Any], key: Callable[[Any], Key]):
        self._index = index
        self._nodes = nodes
        self._key = key

    def __getitem__(self, key: Key) -> Found:
        return self._index.place(self._nodes[key])

    def get(self, key: Any, default: Any = None) -> Any:
        node = self._nodes.get(key)
        return default if node is None else self._index.place(node)

    def __contains__(self, key: object) -> bool:
        return key in self._nodes

    def __iter__(self) -> Iterator[Key]:
        kind = type(next(iter(self._nodes.values()), None))
        return iter(dict.fromkeys(self._key(n) for n in self._index.nodes if type(n) is kind))

    def __len__(self) -> int:
        return len(self._nodes)


class Index:
    """The statements of one function: ``loops`` by variable, ``blocks`` by name, in program order."""

    def __init__(self, func: PrimFunc):
        self._func = weak(func)
        self._own: ReferenceType[Index] = weak(self)  # type: ignore[assignment]
        self._places: dict[Any, Place] = {}
        self._below: dict[Place, list[BlockRef]] = {}
        self.root = self._places[func.body] = _PLACES.get(type(func.body), Place)(func.body, None, None, self._own)

    @cached_property
    def nodes(self) -> tuple[Any, ...]:
        """Every loop and realize, in program order."""
        return contents(self.root.node)

    @cached_property
    def _tables(self) -> tuple[dict[Var, For], dict[str, BlockRealize], list[For]]:
        """The loops by variable, and the realizes of blocks by name, in any order; and the loops that are ``marked``."""
        return _tables_of(self.root.node)

    @property
    def loops(self) -> Mapping[Var, LoopRef]:
        return _Places(self, self._tables[0], _var_of)

    @property
    def blocks(self) -> Mapping[str, BlockRef]:
        return _Places(self, self._tables[1], _name_of)

    def keys_without(self, other: Index) -> list[Any]:
        """The variables of loops, and the names of blocks, that ``other`` does not have, in any order."""
        pairs = zip(self._tables[:2], other._tables[:2])
        return [key for own, others in pairs for key in filterfalse(others.__contains__, own)]

    @property
    def views(self) -> list[MatchBufferRegion]:
        """The views of buffers that blocks make, outer ones first."""
        return [m for n in with_memory(self.root.node) for m in n.block.match_buffers]

    def allocations(self, is_wanted: Callable[[str], Any]) -> list[tuple[BlockRealize, Buffer]]:
        """The buffers that blocks allocate in the storage scopes for which ``is_wanted`` is true, with these blocks."""
        return [
            (n, b)
            for n in with_memory(self.root.node)
            for scopes in [{scope for scope in _scopes_of(n.block) if is_wanted(scope)}]
            for b in (n.block.alloc_buffers if scopes else ())
            if b.scope in scopes
        ]

    @property
    def marked(self) -> list[For]:
        """The loops that are not serial, or have annotations, in program order."""
        return self._tables[2]

    @cached_property
    def with_clause(self) -> list[LoopRef]:
        """The loops that have a ``private`` clause."""
        return [self.place(n) for n in self.marked if PRIVATE in n.annotations]

    def place(self, node: Any) -> Any:
        """The place of a statement. Raises ``KeyError`` if the function does not contain it."""
        found = self._places.get(node)
        if found is None:
            self._reach(node)
            found = self._places[node]
        return found

    def _reach(self, node: Any) -> None:
        """Make the place of ``node`` and those above it."""
        self.place_down(self.root, path_to(self.root.node, node)[1:])

    def place_down(self, place: Place, path: Iterable[Any]) -> Place:
        """The place of the last node of ``path``, each of which is directly inside of the one before it, and the first
        in the statement of ``place``."""
        places, scope = self._places, place if type(place) is BlockRef else place.scope
        for node in path:
            found = places.get(node)
            if found is None or found.parent is not place:
                found = places[node] = _PLACES.get(type(node), Place)(node, place, scope, self._own)
            place = found
            if type(place) is BlockRef:
                scope = place
        return place

    def below(self, place: Place) -> Iterator[Place]:
        """``place`` and every place under it, parents first."""
        stack = [place]
        while stack:
            item = stack.pop()
            yield item
            stack += [self.place_down(item, (c,)) for c in reversed(sub_statements(item.node))]

    def blocks_below(self, place: Place) -> list[BlockRef]:
        """The nearest blocks under ``place`` (not blocks nested in them), in program order; ``place`` itself if it is
        one. Found once for each; not to be changed."""
        known = self._below.get(place)
        if known is None:
            known = self._below[place] = self._found_below(place)
        return known

    def _found_below(self, place: Place) -> list[BlockRef]:
        found: list[BlockRef] = []
        stack = [place]
        while stack:
            item = stack.pop()
            if type(item) is BlockRef:
                found.append(item)
                continue
            path: list[Any] = []
            below = sub_statements(item.node)
            while len(below) == 1 and type(below[0]) is not BlockRealize:
                path.append(below[0])
                below = sub_statements(below[0])
            item = self.place_down(item, path)
            stack += [self.place_down(item, (c,)) for c in reversed(below)]
        return found

    def loops_named(self, name: str) -> list[LoopRef]:
        """The loops whose variables have this name, in program order."""
        return list(self._loops_by_name.get(name, ()))

    @cached_property
    def _loops_by_name(self) -> dict[str, list[LoopRef]]:
        found: dict[str, list[LoopRef]] = {}
        for var, loop in self.loops.items():
            found.setdefault(var.name, []).append(loop)
        return found


@once
def _scopes_of(block: Block) -> frozenset[str]:
    """The storage scopes of the buffers that a block allocates."""
    return frozenset(b.scope for b in block.alloc_buffers)


def node_of(place: LoopRef | BlockRef) -> For | Block:
    """The node that has the name and the annotations of a place: the loop, or the block of a realize."""
    return place.block if isinstance(place, BlockRef) else place.node


def reduction_iterators(index: Index, counts: Callable[[Block], bool] = lambda block: True) -> set[Var]:
    """The iterators of the function's blocks, those that ``counts`` holds for, that are summed over."""
    blocks = (n.block for n in index.nodes if type(n) is BlockRealize)
    found = {i.var: b for b in blocks for i in b.iter_vars if i.iter_type == "reduce"}
    return {v for v, block in found.items() if counts(block)}


def _var_of(loop: For) -> Var:
    return loop.loop_var


def _name_of(realize: BlockRealize) -> str:
    return realize.block.name


def _tables_of(stmt: Any) -> tuple[dict[Var, For], dict[str, BlockRealize], list[For]]:
    """The loops in a statement by variable, the realizes of blocks by name, and the loops that are not serial, or have
    annotations; of a long sequence, by parts."""
    nodes = shape(stmt)
    if SeqStmt not in map(type, nodes):
        return _tables_among(nodes)
    loops, blocks, marked = {}, {}, []
    for n in nodes:
        for inner in map(_tables_of_part, parts(n)) if type(n) is SeqStmt else (_tables_among([n]),):
            loops.update(inner[0])
            blocks.update(inner[1])
            marked += inner[2]
    return loops, blocks, marked


def _tables_among(nodes: list[Any]) -> tuple[dict[Var, For], dict[str, BlockRealize], list[For]]:
    loops = [n for n in nodes if type(n) is For]
    return (
        {n.loop_var: n for n in loops},
        {n.block.name: n for n in nodes if type(n) is BlockRealize},
        [n for n in loops if n.kind != SERIAL or n.annotations],
    )


_tables_of_part = once(_tables_of)


@once
def index_of(func: PrimFunc) -> Index:
    """The index of ``func``, computed once for each function object."""
    return Index(func)


def statements(host: BlockRef | LoopRef) -> list[Stmt]:
    """The statements of the body of a block or a loop, in order, inside of the buffers and constants that it declares first."""
    body = _declaring(node_of(host)).body
    return list(body.stmts) if isinstance(body, SeqStmt) else [body]


def with_statements(body: Stmt, members: Sequence[Stmt]) -> Stmt:
    """The body of a block or a loop with other ``statements``, inside of the same declarations."""
    if isinstance(body, DECLARING):
        return body.replace(body=with_statements(body.body, members))
    return edited_seq(body, seq(members))


def order(scope: BlockRef | LoopRef, block: Place) -> int:
    """The number of the statement of ``scope`` that holds ``block``, or another statement; -1 for its init, which comes first."""
    top = top_statement(block, scope).node
    members = statements(scope)
    return members.index(top) if top in members else -1


def top_statement(place: Place, host: BlockRef | LoopRef) -> Place:
    """The ancestor of ``place`` (or itself) that is one of the ``statements`` of ``host``."""
    owner = _declaring(node_of(host))
    current = place
    for above in place.ancestors():
        if above.node is owner:
            return current
        if isinstance(above.node, SeqStmt) and above.parent is not None and above.parent.node is owner:
            return current
        current = above
    return current


def common_host(refs: Sequence[Place], scope: BlockRef) -> BlockRef | LoopRef:
    """The innermost loop of ``scope`` whose sequence of statements contains all of ``refs``, otherwise ``scope``
    itself."""
    host: BlockRef | LoopRef = scope
    for level in zip(*(ref.loops() for ref in refs)):
        if any(loop is not level[0] for loop in level):
            break
        if isinstance(level[0].node.body, SeqStmt):
            host = level[0]
    return host


def loops_below(ref: Place, host: BlockRef | LoopRef) -> list[LoopRef]:
    """The loops of ``ref`` inside ``host``, outermost first."""
    loops = ref.loops()
    return loops if isinstance(host, BlockRef) else loops[loops.index(host) + 1 :]


def met_around(block: BlockRef, host: BlockRef | LoopRef) -> list[Expr]:
    """The conjuncts of the predicate of ``block`` that nothing inside of ``host`` changes, neither a loop nor a store."""
    inside = {p.var for p in loops_below(block, host)}
    parts = [c for c in conjuncts(block.node.predicate) if not is_const(c, 1) and not uses_var(c, inside)]
    return [c for c in parts if not (has_load(c) and block.may_change(c, node_of(host)))]


def wrapped_in(ref: BlockRef, host: BlockRef | LoopRef) -> Stmt | None:
    """A statement around ``ref``, in one of the ``statements`` of ``host``, that is not a loop (an ``if`` or a let); None
    if there is none."""
    owner = _declaring(node_of(host))
    for place in ref.ancestors():
        if place.node is owner or isinstance(place.node, Block):
            return None
        if not isinstance(place.node, (For, SeqStmt, BlockRealize)):
            return place.node
    return None


def _declaring(owner: Any) -> Any:
    """The innermost of the declarations with which the body of ``owner`` begins; ``owner`` if there is none."""
    while isinstance(owner.body, DECLARING):
        owner = owner.body
    return owner
