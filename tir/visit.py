"""Walking and rewriting programs: one visitor, one rewriter, one substitution; and the stack that recursive walks need, as
unrolled code nests hundreds of statements.

Buffers and variables are leaves to ``walk`` and ``rewrite`` (a buffer's shape belongs to its declaration).
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from .buffer import Buffer, IterVar
from .expr import BufferLoad, Call, Expr, FloatImm, IntImm, Let, StringImm, Var
from .node import Memo, Node
from .op import effect_of
from .stmt import Allocate, AllocateConst, Block, BufferStore, Evaluate, For, LetStmt, SeqStmt, Stmt, edited_seq

N = TypeVar("N")
F = TypeVar("F", bound=Callable[..., Any])
_CONSTANTS = frozenset((IntImm, FloatImm, StringImm))
LEAVES = _CONSTANTS | {Buffer, Var}  # classes below which nothing is visited

DEEPEST = 8000  # frames; beyond, a program is refused with an error that says so, well before the C stack ends
ROOM = 1 << 17  # values, 1 MB, for frames above one; as many belong to that one, and are never touched


def walk(root: Any, enter: Callable[[Node], bool] | None = None) -> Iterator[Node]:
    """Every node under ``root``, parents first, in program order.

    ``enter(node)`` false skips what is below it.
    """
    stack = [root]
    while stack:
        item = stack.pop()
        yield item
        if type(item) not in LEAVES and (enter is None or enter(item)):
            stack += item.children()[::-1]


def nodes_of(root: Any) -> list[Any]:
    """Every node under ``root``, itself included: as :func:`walk`, but by levels, and faster.

    >>> from tir import Var
    >>> x, y = Var("x"), Var("y")
    >>> [type(node).__name__ for node in nodes_of(x + y * 2)]
    ['Add', 'Var', 'Mul', 'Var', 'IntImm']
    """
    found = [root]
    for item in found:  # which grows
        if type(item) not in LEAVES:
            found += item.children()
    return found


def statements(root: Stmt) -> Iterator[Stmt]:
    """Every statement under ``root``, itself included, parents first, in program order: as :func:`walk`, but no expressions.

    >>> import tir
    >>> [type(s).__name__ for s in statements(tir.library.elementwise.scale_add(4).body)]
    ['BlockRealize', 'Block', 'For', 'BlockRealize', 'Block', 'BufferStore']
    """
    stack = [root]
    while stack:
        item = stack.pop()
        yield item
        if type(item) not in _WITHOUT_STATEMENTS:
            stack += [child for child in reversed(item.children()) if isinstance(child, Stmt)]


_WITHOUT_STATEMENTS = frozenset((BufferStore, Evaluate))


def rewrite(
    root: N, fn: Callable[[Any], Any], enter: Callable[[Any], bool] | None = None, kept: Collection[Any] = ()
) -> N:
    """Bottom-up rewrite: ``fn(node)`` returns the replacement, or None for unchanged.

    ``fn`` sees each node after its children were rewritten; ``enter(node)`` false leaves a subtree as it is, as do the
    nodes ``kept``. Shared subtrees are rewritten once. An unchanged tree is returned as the same object.
    """
    memo: dict[Any, Any] = dict(zip(kept, kept))

    def visit(item: Any) -> Any:
        done = memo.get(item)
        if done is not None:
            return done
        if enter is not None and not enter(item):
            result = item
        else:
            kind = item.__class__
            inner = item if kind in LEAVES else item.map_children(visit)  # noqa: F821  (deleted only afterwards)
            changed = fn(inner)
            result = inner if changed is None else changed
            if kind is SeqStmt:
                edited_seq(item, result)
        memo[item] = result
        return result

    found = visit(root)
    del visit  # it refers to itself, and would stay until garbage is collected
    return found


def rewrite_statements(root: N, fn: Callable[[Any], Any]) -> N:
    """As :func:`rewrite`, but ``fn`` sees statements alone, and expressions are left as they are: faster, as most nodes are expressions.

    >>> import tir
    >>> from tir.stmt import For
    >>> body = tir.library.elementwise.scale_add(4).body
    >>> rewrite_statements(body, lambda s: s.replace(kind="unrolled") if isinstance(s, For) else None).block.body
    for i in T.unroll(4):
        with T.block("out"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * 3.0 + 1.0
    """
    memo: dict[Any, Any] = {}

    def visit(item: Any) -> Any:
        if not isinstance(item, Stmt):
            return item
        result = memo.get(item)
        if result is None:
            kind = item.__class__
            inner = item if kind in _WITHOUT_STATEMENTS else item.map_children(visit)  # noqa: F821  (as in rewrite)
            changed = fn(inner)
            memo[item] = result = inner if changed is None else changed
            if kind is SeqStmt:
                edited_seq(item, result)
        return result

    found = visit(root)
    del visit  # as in rewrite
    return found


def substitute(root: N, variables: Mapping[Var, Any], buffers: Mapping[Buffer, Buffer] | None = None) -> N:
    """``root`` with variables replaced by expressions and buffers by buffers, everywhere they are used.

    A buffer whose shape, strides, offset or pointer mentions a replaced variable is itself replaced, consistently.
    Binding positions (loop variables, iterators, let) are replaced too when mapped to another variable.
    """
    memo: dict[Any, Any] = dict(buffers or {})

    def visit(item: Any) -> Any:
        kind = item.__class__
        if kind is Var:
            return variables.get(item, item)
        if kind in _CONSTANTS:
            return item
        done = memo.get(item)
        if done is None:
            done = memo[item] = item.map_children(visit)  # noqa: F821  (deleted only afterwards)
        return done

    found = visit(root)
    del visit  # as in rewrite
    return found


def free_vars(root: Any) -> list[Var]:
    """Variables used under ``root`` and not bound there, in order of first use (buffers' pointers and shapes included).

    A stride or offset of a view counts as used: whether the view defines it, or checks a variable from outside, is
    decided by the whole function.
    """

    bound: set[Var] = set()
    used: dict[Var, None] = {}
    seen: set[Buffer] = set()
    stack: list[Any] = [root]
    while stack:
        item = stack.pop()
        kind = item.__class__
        if kind is Var:
            used[item] = None
        elif kind is Buffer:
            if item not in seen:
                seen.add(item)
                for part in item.children():
                    if type(part) is Var:
                        used[part] = None
                    elif type(part) not in LEAVES:
                        used.update([(leaf, None) for leaf in walk(part) if type(leaf) is Var])
        elif kind not in LEAVES:
            if kind in BINDERS:
                bound.update(BINDERS[kind](item))
            stack += item.children()[::-1]
    return [v for v in used if v not in bound]


BINDERS: dict[type, Callable[[Any], Iterable[Var]]] = {  # what nodes bind
    For: lambda s: (s.loop_var,),
    IterVar: lambda i: (i.var,),
    Block: lambda s: [b.data for b in (*s.alloc_buffers, *(m.buffer for m in s.match_buffers))],
    **dict.fromkeys((LetStmt, Let), lambda s: (s.var,)),
    **dict.fromkeys((Allocate, AllocateConst), lambda s: (s.buffer_var,)),
}


def buffers_in(root: Any) -> list[Buffer]:
    """Buffers mentioned under ``root``, in order of first mention."""
    return list(dict.fromkeys(item for item in walk(root) if isinstance(item, Buffer)))


def accesses(root: Any) -> list[BufferLoad | BufferStore]:
    """Every load and store under ``root``, parents first, in program order."""
    found: list[BufferLoad | BufferStore] = []
    stack = [root]
    while stack:
        item = stack.pop()
        kind = item.__class__
        if kind not in LEAVES:
            if kind is BufferLoad or kind is BufferStore:
                found.append(item)
            stack += item.children()[::-1]
    return found


def contains(kind: type, *roots: Any) -> bool:
    """Whether a node of class ``kind`` (itself, not a subclass) is under ``roots``, or one of them."""
    found = list(roots)
    for item in found:
        own = item.__class__
        if own is kind:
            return True
        if own not in LEAVES:
            found += item.children()
    return False


def kinds(root: Any) -> frozenset[type]:
    """The classes of the nodes under ``root``, its own included: found once for each node, and for a statement of all statements in it.

    >>> from tir import Var
    >>> sorted(kind.__name__ for kind in kinds(Var("x") + 1))
    ['Add', 'IntImm', 'Var']
    """
    found = _KINDS.get(root)
    if found is not None:
        return found
    if not isinstance(root, Stmt):
        found = frozenset(map(type, nodes_of(root)))
    for s in reversed(list(statements(root))) if isinstance(root, Stmt) else ():  # what is inside of a statement first
        found = _KINDS.get(s)
        if found is None:
            if type(s) in _WITHOUT_STATEMENTS:
                found = frozenset(map(type, nodes_of(s)))
            else:
                parts = (_KINDS.get(c) or map(type, nodes_of(c)) for c in s.children())
                found = frozenset((type(s),)).union(*parts)
            _KINDS[s] = found
    assert found is not None
    _KINDS[root] = found
    return found


_KINDS: Memo[frozenset[type]] = Memo()


class Somewhere:
    """Whether a node of one of the classes ``kinds`` for which ``holds`` is under a statement, or is it: found once for each statement.

    >>> from tir import Var
    >>> from tir.stmt import Evaluate
    >>> i = Var("i")
    >>> [Somewhere(lambda n: n is v, Var)(Evaluate(i * 2)) for v in (i, Var("i"))]
    [True, False]
    """

    def __init__(self, holds: Callable[[Any], bool], *kinds: type):
        self._holds = holds
        self._kinds = frozenset(kinds)
        self._in_expressions = not all(issubclass(kind, Stmt) for kind in kinds)
        self._known: Memo[bool] = Memo()

    def __call__(self, root: Stmt) -> bool:
        if self._kinds.isdisjoint(kinds(root)):
            return False
        found = self._known.get(root)
        if found is None:
            own = type(root) in self._kinds and self._holds(root)
            found = self._known[root] = own or any(map(self._under, root.children()))
        return found

    def _under(self, item: Any) -> bool:
        if isinstance(item, Stmt):
            return self(item)
        nodes = nodes_of(item) if self._in_expressions and type(item) not in LEAVES else ()
        return any(type(n) in self._kinds and self._holds(n) for n in nodes)


_HASHED = (set, frozenset, dict)


def uses_var(root: Any, variables: Any) -> bool:
    """Whether any of ``variables`` (one Var, or a collection) occurs under ``root``."""
    if type(root) is IntImm:
        return False
    if isinstance(variables, Var):
        if type(root) is Var:
            return root is variables
        wanted: Any = {variables}
    else:
        wanted = variables if type(variables) in _HASHED else set(variables)
        if type(root) is Var:
            return root in wanted
    found = [root]
    for item in found:
        if type(item) is Var:
            if item in wanted:
                return True
        elif type(item) not in LEAVES:
            found += item.children()
    return False


def vars_in(*roots: Any) -> set[Var]:
    """The variables that occur under ``roots``."""
    found = list(roots)
    variables: set[Var] = set()
    for item in found:  # which grows
        kind = item.__class__
        if kind is Var:
            variables.add(item)
        elif kind not in LEAVES:
            found += item.children()
    return variables


def has_load(*roots: Expr) -> bool:
    """Whether there is a load under ``roots``."""
    if LEAVES.issuperset(map(type, roots)):
        return False
    found: list[Any] = list(roots)
    for e in found:  # which grows
        kind = e.__class__
        if kind is BufferLoad:
            return True
        if kind not in LEAVES:
            found += e.children()
    return False


def is_pure(e: Any) -> bool:
    """Whether evaluating ``e`` has no effect beyond its value (loads count as pure); of a statement: all that it evaluates."""
    if type(e) in LEAVES:
        return True
    found = _PURE.get(e)
    if found is None:
        nodes = nodes_of(e)
        found = Call not in map(type, nodes) or all(effect_of(n) in ("pure", "read") for n in nodes if type(n) is Call)
        _PURE[e] = found
    return found


_PURE: Memo[bool] = Memo()


def bound_inside(block: Block) -> set[Var]:
    """Variables that are bound inside ``block``: by loops, lets and blocks."""
    found: set[Var] = set()
    for item in nodes_of(block):
        kind = item.__class__
        if kind is For:
            found.add(item.loop_var)
        elif kind is LetStmt or kind is Let:
            found.add(item.var)
        elif kind is Block and item is not block:
            found |= {i.var for i in item.iter_vars}
    return found


def refresh(stmt: Any, also: Mapping[Var, Any] | None = None) -> Any:
    """A copy of ``stmt`` in which every variable and buffer bound inside is a new one, so that both can stand in one
    function; ``also`` replaces further variables."""
    variables: dict[Var, Any] = dict(also or {})
    buffers: dict[Buffer, Buffer] = {}
    for item in nodes_of(stmt):
        kind = item.__class__
        if kind not in BINDERS:
            continue
        if kind is For:
            variables.setdefault(item.loop_var, item.loop_var.replace())
        elif kind is IterVar or kind is LetStmt or kind is Let:
            variables.setdefault(item.var, item.var.replace())
        elif kind is Block:
            for buffer in (*item.alloc_buffers, *(m.buffer for m in item.match_buffers)):
                variables[buffer.data] = buffer.data.replace()
                buffers[buffer] = buffer.replace(data=variables[buffer.data])
            variables.update({v: v.replace() for v in _defined_by_views(stmt, item) if v not in variables})
    return substitute(stmt, variables, {old: substitute(new, variables) for old, new in buffers.items()})


def in_copies_of(loops: Sequence[For], body: Stmt) -> Stmt:
    """``body`` in copies of ``loops``, which have variables of their own."""
    for loop in reversed(loops):
        var = loop.loop_var.replace()
        body = loop.replace(loop_var=var, body=substitute(body, {loop.loop_var: var}))
    return body


def _defined_by_views(stmt: Any, block: Block) -> set[Var]:
    """The strides and offsets that views of ``block`` define: used in it alone, and by no buffer from outside of ``stmt``."""
    parts = {p for m in block.match_buffers for p in (*m.buffer.strides, m.buffer.elem_offset) if isinstance(p, Var)}
    if not parts:
        return parts
    inside = {b for item in walk(stmt) if isinstance(item, Block) for b in (m.buffer for m in item.match_buffers)}
    sources = {m.source.buffer for m in block.match_buffers} - inside
    given = {v for b in sources for e in (*b.shape, *b.strides, b.elem_offset) if e is not None for v in vars_in(e)}
    around = Counter(n for n in walk(stmt) if isinstance(n, Var))
    within = Counter(n for n in walk(block) if isinstance(n, Var))
    return {v for v in parts if v not in given and around[v] == within[v]}


# ---------------------------------------------------------------- the stack


def with_recursion_limit(fn: F) -> F:
    """``fn`` may recurse over a program: Python's limit on frames is raised while it runs.

    >>> count = lambda n: 0 if n == 0 else 1 + count(n - 1)
    >>> with_recursion_limit(count)(5000)
    5000
    """

    @functools.wraps(fn)
    def run(*args: Any, **named: Any) -> Any:
        before = sys.getrecursionlimit()
        if before >= DEEPEST:
            return fn(*args, **named)
        sys.setrecursionlimit(DEEPEST)
        try:
            return fn(*args, **named)
        finally:
            sys.setrecursionlimit(before)

    return run  # type: ignore[return-value]


def with_room(fn: F) -> F:
    """``fn`` has a piece of Python's stack for the frames above its own. Pieces are 16 KB otherwise, and where calls go to and fro over the
    end of one, Python (3.11 on) maps and unmaps memory at each, in ten times the time of a call. This takes 50 microseconds once.

    >>> with_room(max)(3, 5)
    5
    """

    def run(*args: Any, **named: Any) -> Any:
        return fn(*args, **named)

    run.__code__ = run.__code__.replace(co_stacksize=ROOM)
    return functools.wraps(fn)(run)  # type: ignore[return-value]
