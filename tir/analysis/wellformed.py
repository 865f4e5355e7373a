"""The rules of well-formed programs. What a statement uses from around it, and defines, is found once for each, of what is
known of the statements in it.

A statement has a scope if it breaks no rule by itself. It is well-formed wherever its scope fits: a step of a schedule is
checked at the statements that it made. The rules about one node are with the nodes (``faults``); where a rule is violated,
:mod:`tir.analysis.violations` has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from ..arith import Analyzer
from ..buffer import Buffer, BufferRegion, IterVar, MatchBufferRegion
from ..errors import WellFormedError
from ..expr import BinaryOp, BufferLoad, Call, Expr, FloatImm, IntImm, Let, Reduce, Var
from ..function import IRModule, PrimFunc
from ..levels import is_launch_axis
from ..node import Node, once
from ..render import to_lines
from ..stmt import (
    PLAIN_KINDS,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    SeqStmt,
    is_long,
)
from ..visit import BINDERS, uses_var, with_recursion_limit
from .contents import parts, sub_statements
from .index import index_of
from .private_clause import clause_problems

Names = frozenset[Any]
_NOTHING: Names = frozenset()


@dataclass(frozen=True, eq=False)
class Problem:
    """A violation of a rule at ``node``; ``undefined`` is the variable or buffer that is used there and nowhere defined around it,
    ``bound`` the loop around ``node`` that is bound to its thread axis already."""

    node: Any
    message: str
    undefined: Var | Buffer | None = None
    bound: For | None = None

    def __str__(self) -> str:
        return self.message


@with_recursion_limit
def check(func: PrimFunc) -> list[Problem]:
    """Every violation in ``func``, in program order; empty for a well-formed function.

    Variables are defined before use and once in nested scopes; buffers are used inside their allocation, with as many
    indices as dimensions and integer indices; a store's value has the buffer's dtype, and the operands of an operator
    have one; a block's iterators match its bindings, which are the only way in for outer loop variables; block names
    are unique; one thread axis is not launched inside itself; a private buffer of a loop is allocated around it and used
    in it only.
    """
    if not _keeps_scopes(func):
        from .violations import violations

        if found := violations(func):
            return found
    return [Problem(ref.node, m) for ref in index_of(func).with_clause for m in clause_problems(func, ref)]


@with_recursion_limit
def verify(func_or_mod: PrimFunc | IRModule) -> None:
    """Raise ``WellFormedError`` with every violation and its place; return None for a well-formed program."""
    for func in IRModule.of(func_or_mod).functions.values():
        problems = check(func)
        if problems:
            messages = [f"  {m}" for m in dict.fromkeys(p.message for p in problems)]
            lines = to_lines(func, underline=tuple(p.node for p in problems))
            raise WellFormedError("\n".join([f"`{func.name}` is not well-formed:", *messages, lines]))


def _keeps_scopes(func: PrimFunc) -> bool:
    """Whether a function uses only what is defined where it uses it, and breaks no rule about one node."""
    params = {*func.params}
    if len(params) < len(func.params) or not params.issuperset(func.buffer_map):
        return False
    defined: set[Any] = params
    sizes: list[Any] = []
    for buffer in func.buffer_map.values():
        defined.update((buffer, buffer.data))
        sizes += buffer.sizes
    if sizes:
        defined.update(s for s in sizes if type(s) is Var)  # one that a shape names first, it defines
        given = _of_values(sizes)
        if given is None or not given.fits(defined):
            return False
    scope = scope_of(func.body)
    return scope is not None and scope.fits(defined)


def bounds(region: Iterable[Any]) -> list[Expr]:
    """The ends of ranges that are no constants."""
    return [e for r in region for e in (r.min, r.extent) if type(e) is not IntImm]


_EVALUATED: dict[type, Callable[[Any], tuple[Any, ...]]] = {  # where not all that is neither defined nor inside is
    For: lambda s: (s.min, s.extent),
    AttrStmt: lambda s: (s.value,),
    DeclBuffer: lambda s: (*s.buffer.sizes, s.buffer.data),
}


def parts_of(s: Any) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """What a statement that is no block evaluates, what it defines in the statements inside, and these."""
    kind, inside = type(s), sub_statements(s)
    defined = (s.buffer,) if kind is DeclBuffer else tuple(BINDERS[kind](s) if kind in BINDERS else ())
    if kind in _EVALUATED:
        return _EVALUATED[kind](s), defined, inside
    apart = {*defined, *inside}
    return [n for n in s.children() if n not in apart and type(n) is not Buffer], defined, inside


def named_in_predicate(s: BlockRealize) -> list[Var]:
    """The iterators of a block that its predicate uses, which is evaluated outside."""
    predicate = s.predicate
    return [] if type(predicate) is IntImm else [i.var for i in s.block.iter_vars if uses_var(predicate, i.var)]


def bound_values(s: BlockRealize) -> list[Expr]:
    """What is evaluated where a block is: its bindings, domains that are no constants, and its predicate."""
    found = [*s.iter_values]
    if s.block.iter_vars:
        found += bounds([iv.dom for iv in s.block.iter_vars if iv.dom is not None])
    return found if type(s.predicate) is IntImm or named_in_predicate(s) else [*found, s.predicate]


# ---------------------------------------------------------------- scopes


class Scope(NamedTuple):
    """``uses``: the variables and buffers that a statement uses and does not define, ``in_blocks`` those that it uses in
    blocks with iterators, which hide the loops around; ``bound``: what it defines; ``blocks``: the names of its blocks;
    ``threads``: the axes that its loops launch, with the extent and what the loop uses."""

    uses: Names = _NOTHING
    in_blocks: Names = _NOTHING
    bound: Names = _NOTHING
    blocks: frozenset[str] = _NOTHING
    threads: tuple[tuple[str, Expr, Names], ...] = ()

    def fits(self, defined: set[Any]) -> bool:
        """Whether a function is well-formed whose parameters are ``defined`` and whose body has this scope."""
        left = (self.uses | self.in_blocks) - defined
        return self.bound.isdisjoint(defined) and all(type(n) is Buffer and n.data in defined for n in left)


def scope_of(s: Any) -> Scope | None:
    """The scope of a statement; None if it breaks a rule, or may: :mod:`tir.analysis.violations` has the reasons."""
    return _SCOPES.get(type(s), _of_any)(s)


def _read(es: Iterable[Any], uses: set[Any], bound: set[Any]) -> bool:
    """Whether expressions keep the rules; what they use and bind is added."""
    left = [*es]
    for e in left:  # which grows
        kind = type(e)
        if kind is IntImm or kind is FloatImm:
            continue
        if kind is Var:
            uses.add(e)
        elif kind is BufferLoad:
            uses.add(e.buffer)
            if next(e.buffer.index_faults(e.indices), None):
                return False
            left += e.indices
        elif kind is BufferRegion:
            uses.add(e.buffer)
            if next(e.faults(), None):
                return False
            left += bounds(e.region)
        elif isinstance(e, BinaryOp):
            if e.a.dtype is not e.b.dtype:
                return False
            left += (e.a, e.b)
        elif kind is Let:
            inner = _around(_of_values((e.body,)), (), (e.var,), frozenset((e.var,)))
            if inner is None:
                return False
            uses |= inner.uses
            bound |= inner.bound
            left.append(e.value)
        elif kind is Reduce:
            return False
        elif kind is Call:
            left += [arg for arg in e.args if isinstance(arg, Node)]
        elif isinstance(e, Node):
            left += e.children()
    return True


def _joined(scopes: Iterable[Scope | None]) -> Scope | None:
    """The scope of statements that follow each other."""
    found = [*scopes]
    if len(found) < 2:
        return found[0] if found else Scope()
    if None in found:
        return None
    uses, in_blocks, bound, blocks, threads = zip(*found)  # type: ignore[misc]
    names = _NOTHING.union(*blocks)
    if len(names) != sum(map(len, blocks)):
        return None
    union = _NOTHING.union
    return Scope(union(*uses), union(*in_blocks), union(*bound), names, tuple(chain(*threads)))


def _around(
    inner: Scope | None, es: Collection[Any], defined: Collection[Any] = (), pointers: Names = _NOTHING
) -> Scope | None:
    """The scope of a statement that evaluates ``es``, and defines variables and buffers in what has the scope ``inner``,
    and by its ``pointers`` all buffers of their memory."""
    if inner is None:
        return None
    uses, in_blocks, bound, blocks, threads = inner
    if defined:
        own = frozenset(defined)
        if len(own) != len(defined) or not bound.isdisjoint(own):
            return None
        uses, in_blocks, bound = uses - own, in_blocks - own, bound | own
    if pointers:
        uses, in_blocks = (
            frozenset([n for n in names if type(n) is not Buffer or n.data not in pointers])
            for names in (uses, in_blocks)
        )
    if es:
        used, made = set[Any](), set[Any]()
        if not _read(es, used, made):
            return None
        uses, bound = uses | used, bound | made if made else bound
    return Scope(uses, in_blocks, bound, blocks, threads)


def _of_values(es: Iterable[Any], *used: Buffer) -> Scope | None:
    uses, bound = {*used}, set[Any]()
    return Scope(frozenset(uses), _NOTHING, frozenset(bound)) if _read(es, uses, bound) else None


def _of_store(s: BufferStore) -> Scope | None:
    """Of a store; each call computes it again."""
    return None if next(s.faults(), None) else _of_values((*s.indices, s.value), s.buffer)


@once
def _of_any(s: Any) -> Scope | None:
    """Of a statement that is neither a store nor a loop, a block or a sequence."""
    kind = type(s)
    if kind is BufferRealize or (kind is AttrStmt and isinstance(s.node, IterVar)) or next(s.faults(), None):
        return None
    evaluated, defined, inside = parts_of(s)
    return _around(
        _joined(map(scope_of, inside)), evaluated, defined, frozenset([n for n in defined if type(n) is Var])
    )


@once
def _of_loop(s: For) -> Scope | None:
    """Of a nest of loops, the inner ones of constant bounds."""
    es = () if type(s.min) is IntImm and type(s.extent) is IntImm else (s.min, s.extent)
    variables, launched, body = [], [], s
    while True:
        var, low, extent = body.loop_var, body.min, body.extent
        if body.kind not in PLAIN_KINDS or body.thread or not (low.dtype is extent.dtype is var.dtype):
            if next(body.faults(), None):
                return None
            launched += (body,) if is_launch_axis(body.thread) else ()
        variables.append(var)
        body = body.body
        if type(body) is not For or type(body.min) is not IntImm or type(body.extent) is not IntImm:
            break
    inner = scope_of(body)
    if inner is None or not inner.in_blocks.isdisjoint(variables):
        return None
    if launched:
        uses, threads = inner.uses | inner.in_blocks, inner.threads
        for loop in reversed(launched):  # an axis is launched in itself only where all its threads have work in common
            for thread, extent, used in threads:
                if thread == loop.thread and (
                    loop.loop_var in used or not Analyzer().can_prove_equal(loop.extent, extent)
                ):
                    return None
            threads = (*threads, (loop.thread, loop.extent, uses))
        inner = inner._replace(threads=threads)
    return _around(inner, es, tuple(variables))


def _of_sequence(s: SeqStmt) -> Scope | None:
    return None if next(s.faults(), None) else _of_members(s)


@once
def _of_members(s: SeqStmt) -> Scope | None:
    """Of a sequence, or of a part of a long one."""
    return _joined(map(_of_members, parts(s)) if is_long(s.stmts) else map(scope_of, s.stmts))


@once
def _of_realize(s: BlockRealize) -> Scope | None:
    faulty = next(s.faults(), None) or named_in_predicate(s)
    return None if faulty else _around(_of_block(s.block), bound_values(s))


def _of_view(match: MatchBufferRegion, inner: Scope | None) -> Scope | None:
    """Of a view with what is inside. That defines its strides and its offset unless they are defined already."""
    made, view = frozenset(match.made()), match.buffer
    if inner is None or not made.isdisjoint(inner.bound):
        return None
    inner = inner._replace(uses=inner.uses - made, in_blocks=inner.in_blocks - made)
    return _around(inner, (match.source,), (view, view.data), frozenset((view.data,)))


@once
def _of_block(block: Block) -> Scope | None:
    inner = scope_of(block.body) if block.init is None else _joined(map(scope_of, (block.init, block.body)))
    if block.reads or block.writes:
        inner = _around(inner, (*block.reads, *block.writes))
    for match in reversed(block.match_buffers):
        inner = None if next(match.faults(), None) else _of_view(match, inner)
    allocated = block.alloc_buffers
    if allocated:
        pointers = frozenset([buffer.data for buffer in allocated])
        inner = _around(
            inner, [size for buffer in allocated for size in buffer.sizes], (*allocated, *pointers), pointers
        )
    if block.iter_vars:
        inner = _around(inner, (), tuple([iv.var for iv in block.iter_vars]))
    if inner is None or block.name in inner.blocks:
        return None
    uses, in_blocks, bound, names, threads = inner
    names = names | {block.name} if block.name else names
    if block.iter_vars:
        uses, in_blocks = _NOTHING, uses | in_blocks
    return Scope(uses, in_blocks, bound, names, threads)


_SCOPES: dict[type, Callable[[Any], Scope | None]] = {
    BufferStore: _of_store,
    For: _of_loop,
    SeqStmt: _of_sequence,
    BlockRealize: _of_realize,
    Block: _of_block,
}
