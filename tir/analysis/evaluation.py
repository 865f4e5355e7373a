"""What is evaluated when: the one table of the children of a node that are evaluated always, and of the lazy ones.

``and``, ``or`` and ``T.if_then_else`` are lazy, ``T.Select`` is not. ``if``, ``while``, the predicate of a block, its
``init`` and loops that may be empty decide whether what is in them runs. Divisions and shifts have no value for some operands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..expr import (
    EQ,
    NE,
    And,
    BufferLoad,
    Call,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Mod,
    Not,
    Or,
    Select,
    Var,
    all_of,
    const,
    is_const,
    logical_not,
)
from ..node import once
from ..op import is_shift
from ..stmt import AssertStmt, AttrStmt, Block, BlockRealize, For, IfThenElse, SeqStmt, Stmt, While
from ..visit import LEAVES, Somewhere, has_load, nodes_of, rewrite, substitute, uses_var, walk
from .contents import MembersBy

if TYPE_CHECKING:
    from ..arith import Analyzer

Part = tuple[Any, Expr | None]
_JUMPS = frozenset(("ret", "thread_return"))


def evaluated_parts(node: Any) -> list[Part]:
    """What evaluating ``node`` evaluates of it, in order, each part with the condition under which; None: always.

    Conditions are in the terms inside of ``node``. The parts of a choice are the only two whose conditions are opposite.

    >>> from tir import Var
    >>> x = Var("x")
    >>> evaluated_parts((x > 0) & (x < 8))
    [(x > 0, None), (x < 8, x > 0)]
    >>> evaluated_parts(x + 1)
    [(x, None), (1, None)]
    """
    rule = _RULES.get(type(node))
    return [(child, None) for child in node.children()] if rule is None else rule(node)


def is_lazy(node: Any) -> bool:
    """Whether some part of ``node`` is evaluated under a condition only."""
    return type(node) in _RULES and any(condition is not None for _, condition in evaluated_parts(node))


def _opposite(condition: Expr) -> Expr:
    return logical_not(condition) if condition.dtype.lanes == 1 else Not(condition)


def _choice(condition: Expr, yes: Any, no: Any) -> list[Part]:
    parts: list[Part] = [(condition, None), (yes, condition)]
    return parts if no is None else [*parts, (no, _opposite(condition))]


def _call(call: Call) -> list[Part]:
    if call.op == "if_then_else":
        return _choice(*call.args)
    parts = call.children()
    if call.op == "address_of" and isinstance(call.args[0], BufferLoad):
        parts = list(call.args[0].indices)  # it loads nothing
    return [(part, None) for part in parts]


def _unless_empty(extent: Expr) -> Expr | None:
    runs = extent > 0
    return None if is_const(runs, 1) else runs


def _attr(s: AttrStmt) -> list[Part]:
    launches = s.attr_key in ("thread_extent", "virtual_thread")
    return [(s.value, None), (s.body, _unless_empty(s.value) if launches else None)]


def _realize(s: BlockRealize) -> list[Part]:
    runs = None if is_const(s.predicate, 1) else s.predicate
    return [(s.predicate, None), *((value, runs) for value in s.iter_values), (s.block, runs)]


def starts(block: Block) -> list[Expr]:
    """The conditions under which an instance of a block runs its init."""
    return [EQ(i.var, i.dom.min) for i in block.iter_vars if i.iter_type == "reduce" and i.dom is not None]


def _block(s: Block) -> list[Part]:
    places = [e for m in s.match_buffers for r in m.source.region for e in (r.min, r.extent)]
    first = starts(s)
    init: list[Part] = [] if s.init is None else [(s.init, all_of(first) if first else None)]
    return [*((e, None) for e in places), *init, (s.body, None)]


_RULES: dict[type, Callable[[Any], list[Part]]] = {
    And: lambda e: [(e.a, None), (e.b, e.a)],
    Or: lambda e: [(e.a, None), (e.b, _opposite(e.a))],
    Call: _call,
    IfThenElse: lambda s: _choice(s.condition, s.then_case, s.else_case),
    While: lambda s: [(s.condition, None), (s.body, s.condition)],
    For: lambda s: [(s.min, None), (s.extent, None), (s.body, _unless_empty(s.extent))],
    AttrStmt: _attr,
    BlockRealize: _realize,
    Block: _block,
}
LAZY = frozenset(kind for kind in _RULES if issubclass(kind, Expr))  # classes of expressions that may be lazy


class Certain:
    """What a program does whenever it runs, whatever its conditions give: the ``keys`` of nodes that are surely evaluated.

    What both branches of a choice do is certain; what follows an assertion is not. ``known`` decides which loops are not
    empty, and gets to know the variables of those; without it, constant extents do. Found once for each statement.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "bool"), B: T.Buffer((8,), "bool"), n: T.int32):
    ...     for i in range(8):
    ...         B[i] = A[0] and A[1]
    ...     for i in range(n):
    ...         B[i] = A[2]
    ... ''')
    >>> sorted(Certain(lambda node: [repr(node)] if isinstance(node, tir.BufferLoad) else []).of(f.body))
    ['A[0]']
    """

    def __init__(self, keys: Callable[[Any], Iterable[Hashable]], known: Analyzer | None = None):
        self.keys, self.known = keys, known
        self.found: dict[Stmt, frozenset[Any]] = {}

    def of(self, node: Any) -> frozenset[Any]:
        if type(node) in LEAVES:
            return frozenset(self.keys(node))
        if not isinstance(node, Stmt):
            return self._of(node)
        made = self.found.get(node)
        if made is None:
            made = self.found[node] = self._of(node)
        return made

    def _of(self, node: Any) -> frozenset[Any]:
        found: set[Any] = set()
        left = [node]
        while left:
            item = left.pop()
            found.update(self.keys(item))
            if type(item) in LEAVES:
                continue
            if type(item) not in _RULES and type(item) is not SeqStmt:
                left += item.children()
                continue
            branches: list[frozenset[Any]] = []
            for part, condition in evaluated_parts(item):
                if not self._holds(item, condition):
                    branches.append(self.of(part))
                elif isinstance(part, Stmt):
                    found |= self.of(part)
                else:
                    left.append(part)
                if type(item) is SeqStmt and _may_leave(part):
                    break
            if len(branches) == 2 and isinstance(item, (IfThenElse, Call)):
                found |= branches[0] & branches[1]
        return frozenset(found)

    def _holds(self, node: Any, condition: Expr | None) -> bool:
        if condition is None or self.known is None or not isinstance(node, For):
            return condition is None
        if not self.known.can_prove(condition):
            return False
        self.known.bind(node.loop_var, node.domain)
        return True


# whether what comes after a statement may not run although it does: it may stop the program, or jump
_may_leave = Somewhere(lambda n: isinstance(n, AssertStmt) or n.op in _JUMPS, AssertStmt, Call)


def is_certain(root: Any, holds: Callable[[Any], bool], known: Analyzer | None = None) -> bool:
    """Whether running ``root`` surely evaluates a node for which ``holds``."""
    return bool(Certain(lambda node: [True] if holds(node) else [], known).of(root))


# ---------------------------------------------------------------- operators without a value for some operands


def may_fail(e: Expr, variables: Collection[Var] | None = None) -> bool:
    """Whether ``e`` might read out of bounds, divide by zero or shift by more bits than there are, for some value of
    ``variables``; without them, for whatever it uses."""
    if type(e) in LEAVES or _LIMITED.isdisjoint(map(type, nodes_of(e))):
        return False
    limited = [n for n in walk(e) if isinstance(n, BufferLoad)] + [operand for operand, _ in limited_operands([e])]
    return any(not isinstance(n, IntImm) if variables is None else uses_var(n, variables) for n in limited)


_LIMITED = frozenset((BufferLoad, Call, Div, Mod, FloorDiv, FloorMod))


def limited_operands(expressions: Iterable[Expr]) -> Iterator[tuple[Expr, Callable[[Expr], Expr]]]:
    """The operands of ``expressions`` for which some values give no result, and the condition on each that it has one:
    what they divide by, and by how many bits they shift."""
    for e in expressions:
        for n in walk(e):
            if isinstance(n, (Div, Mod, FloorDiv, FloorMod)):
                yield n.b, _is_nonzero
            elif is_shift(n):
                yield n.args[1], _is_shift_amount


def _is_nonzero(divisor: Expr) -> Expr:
    return NE(divisor, const(0, divisor.dtype))


def _is_shift_amount(amount: Expr) -> Expr:
    return And(amount >= 0, amount < amount.dtype.bits)


def unproved_condition(expressions: Iterable[Expr], known: Analyzer) -> Expr | None:
    """A condition on which the value of ``expressions`` depends that ``known`` does not prove: a divisor that is not 0, an
    amount to shift by that is less than the number of bits."""
    conditions = (condition(operand) for operand, condition in limited_operands(expressions))
    return next((c for c in conditions if not known.can_prove(c)), None)


def as_total(e: Expr, known: Analyzer) -> Expr:
    """``e`` with another operand in place of each that might be a divisor of 0 or too far a shift: the same value where it
    has one, no fault elsewhere."""

    def visit(n: Any) -> Any:
        if isinstance(n, (Div, Mod, FloorDiv, FloorMod)):
            one = const(1, n.b.dtype)
            if known.can_prove(_is_nonzero(n.b)):
                return None
            return n.replace(b=Max(n.b, one) if known.can_prove(n.b >= 0) else Select(_is_nonzero(n.b), n.b, one))
        if is_shift(n) and not known.can_prove(_is_shift_amount(n.args[1])):
            amount = n.args[1]
            return n.replace(args=(n.args[0], Select(_is_shift_amount(amount), amount, const(0, amount.dtype))))
        return None

    return rewrite(e, visit)


def evaluated_before_body(realize: BlockRealize) -> list[Expr]:
    """What executing a block evaluates before its body, in terms of what is around it: the values of its iterators, its
    predicate, and the places of its views that read memory."""
    places = places_of_views(realize.block)
    values = dict(zip((i.var for i in realize.block.iter_vars), realize.iter_values)) if places else {}
    return [*realize.iter_values, realize.predicate, *(substitute(e, values) for e in places)]


def places_of_views(block: Block) -> list[Expr]:
    """The starts and extents of the regions that the views of a block name, if they read memory."""
    return [e for m in block.match_buffers for r in m.source.region for e in (r.min, r.extent) if has_load(e)]


def is_steered_by_memory(realize: BlockRealize, loops: Iterable[For] = ()) -> bool:
    """Whether a block reads memory before its body (a predicate, a binding, the place of a view), or a bound of ``loops``
    around it does."""
    return is_steered(realize) or has_load(*[e for f in loops for e in (f.min, f.extent)])


@once
def is_steered(realize: BlockRealize) -> bool:
    """Whether what a block evaluates before its body reads memory; found once for each."""
    return has_load(*evaluated_before_body(realize))


@once
def steering_loads(stmt: Stmt) -> Sequence[tuple[Stmt, BufferLoad]]:
    """Loads outside of the bodies of blocks, with their places: in loop bounds, conditions, values of lets, and what a
    block asks before its body."""
    parts: Sequence[Any] = stmt.children()
    if isinstance(stmt, BlockRealize):
        parts = evaluated_before_body(stmt) if is_steered(stmt) else ()
    elif isinstance(stmt, SeqStmt):
        parts = _STEERED.of(stmt, True)
    controls = [p for p in parts if not isinstance(p, Stmt) and has_load(p)]
    own = [(stmt, n) for p in controls for n in walk(p) if isinstance(n, BufferLoad)]
    below = [item for p in reversed(parts) if isinstance(p, Stmt) for item in steering_loads(p)]
    return (*own, *below)


_STEERED = MembersBy(lambda s: (True,) if steering_loads(s) else ())


def entered(extents: Iterable[Expr], analyzer: Analyzer) -> list[Expr]:
    """The conditions under which loops of all these ``extents`` run; nothing for those that are sure to. ``analyzer`` must
    not know the loops' variables: that a loop runs says that its extent is not zero."""
    found: list[Expr] = []
    with analyzer.scope():
        for extent in extents:
            if not ((type(extent) is IntImm and extent.value > 0) or analyzer.can_prove(extent > 0)):
                found.append(analyzer.simplify(extent > 0))
                analyzer.assume(found[-1])
    return found
