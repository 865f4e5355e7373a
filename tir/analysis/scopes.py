"""What a statement uses from around it, and defines: found once for each, of what is known of the statements in it.

A statement has a scope if it breaks no rule of well-formed programs by itself. It is well-formed wherever its scope fits:
a step of a schedule is checked at the statements that it made. The rules about one node, and those that only the context
decides, are told apart by :mod:`tir.analysis.wellformed`, where one is violated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from ..arith import Analyzer
from ..buffer import Buffer, BufferRegion, IterVar, MatchBufferRegion
from ..expr import BinaryOp, BufferLoad, Call, Expr, FloatImm, IntImm, Let, Reduce, Var
from ..levels import is_launch_axis
from ..node import Node, once
from ..stmt import (
    THREAD_BINDING,
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    While,
    is_long,
)
from ..visit import uses_var
from .contents import parts

Names = frozenset[Any]
_NOTHING: Names = frozenset()
_PLAIN_KINDS = ("serial", "parallel", "vectorized", "unrolled")  # without a thread axis
LOOP_KINDS = (*_PLAIN_KINDS, THREAD_BINDING)


# ---------------------------------------------------------------- rules about one node


@once
def sizes(buffer: Buffer) -> tuple[Any, ...]:
    """The sizes of a buffer that are no constants, and its offset."""
    found = (*buffer.shape, *buffer.strides, buffer.elem_offset)
    return tuple(size for size in found if size is not None and type(size) is not IntImm)


def bounds(region: Iterable[Any]) -> list[Expr]:
    """The ends of ranges that are no constants."""
    return [e for r in region for e in (r.min, r.extent) if type(e) is not IntImm]


def index_faults(buffer: Buffer, indices: tuple[Expr, ...]) -> Iterator[str]:
    """What is wrong with the indices of an access."""
    if len(indices) != buffer.ndim:
        yield f"buffer `{buffer.name}` has {buffer.ndim} dimensions, but {len(indices)} indices are given"
    for axis, index in enumerate(indices[:-1]):
        if index.dtype.lanes > 1:
            yield (
                f"index {axis} of `{buffer.name}` is a vector of {index.dtype.lanes} lanes; only the last index may be "
                "one: transform_layout puts that axis last, or let `vectorize` make the vectors"
            )
    for index in indices:
        if not index.dtype.is_int and not index.dtype.is_bool:
            yield f"an index of `{buffer.name}` has dtype {index.dtype}; indices are integers"


def _store_faults(s: BufferStore) -> Iterator[str]:
    yield from index_faults(s.buffer, s.indices)
    want = s.buffer.dtype
    if s.indices and s.indices[-1].dtype.lanes > 1:
        want = BufferLoad(s.buffer, s.indices).dtype
    if s.value.dtype is not want:
        yield f"a store of {s.value.dtype} into `{s.buffer.name}`, which holds {want}"


def _loop_faults(s: For) -> Iterator[str]:
    """The kind and the types of a loop, and its thread axis."""
    var, low, extent, thread = s.loop_var, s.min, s.extent, s.thread
    if s.kind not in LOOP_KINDS:
        yield f"loop `{var.name}` has the unknown kind {s.kind!r}"
    if (s.kind == THREAD_BINDING) is not (thread != ""):
        yield f"loop `{var.name}` of kind {s.kind} has the thread axis {thread!r}"
    if low.dtype is not var.dtype or extent.dtype is not var.dtype:
        part, e = ("minimum", low) if low.dtype is not var.dtype else ("extent", extent)
        yield f"loop `{var.name}` is {var.dtype}, but its {part} {e.dtype}"


def _if_faults(s: IfThenElse) -> Iterator[str]:
    if not s.condition.dtype.is_bool:
        yield f"an `if` on a condition of dtype {s.condition.dtype}"


def _let_faults(s: LetStmt) -> Iterator[str]:
    if s.value.dtype is not s.var.dtype and not s.var.dtype.is_handle:
        yield f"`{s.var.name}` is {s.var.dtype}, but its value {s.value.dtype}"


def _sequence_faults(s: SeqStmt) -> Iterator[str]:
    if len(s.stmts) < 2 or SeqStmt in map(type, s.stmts):
        yield "a sequence holds two or more statements, none of them a sequence"


def _named_in_predicate(s: BlockRealize) -> list[Var]:
    """The iterators of a block that its predicate uses, which is evaluated outside."""
    predicate = s.predicate
    return [] if type(predicate) is IntImm else [i.var for i in s.block.iter_vars if uses_var(predicate, i.var)]


def _realize_faults(s: BlockRealize) -> Iterator[str]:
    block, predicate = s.block, s.predicate
    if len(s.iter_values) != len(block.iter_vars):
        yield f"block `{block.name}` has {len(block.iter_vars)} iterators and {len(s.iter_values)} bindings"
    if not predicate.dtype.is_bool:
        yield f"the predicate of block `{block.name}` has dtype {predicate.dtype}, not bool"
    own = _named_in_predicate(s)
    if own:
        what = f"the predicate of block `{block.name}` names its iterator `{own[0].name}`"
        yield f"{what}, which has no value outside: write it of the loops that the iterator is bound to"
    for iv, value in zip(block.iter_vars, s.iter_values):
        if iv.var.dtype is not value.dtype:
            yield f"iterator `{iv.var.name}` of block `{block.name}` is {iv.var.dtype}, its binding {value.dtype}"


def region_faults(region: BufferRegion) -> Iterator[str]:
    buffer = region.buffer
    if len(region.region) != buffer.ndim:
        yield f"buffer `{buffer.name}` has {buffer.ndim} dimensions, but its region {len(region.region)}"


def view_faults(match: MatchBufferRegion) -> Iterator[str]:
    view, source = match.buffer, match.source.buffer
    if view.dtype is not source.dtype:
        yield f"view `{view.name}` holds {view.dtype}, but `{source.name}` holds {source.dtype}"
    if view.scope != source.scope:
        yield f'view `{view.name}` is in scope "{view.scope}", but `{source.name}` in "{source.scope}"'


_FAULTS: dict[type, Callable[[Any], Iterator[str]]] = {
    BufferStore: _store_faults,
    For: _loop_faults,
    IfThenElse: _if_faults,
    LetStmt: _let_faults,
    SeqStmt: _sequence_faults,
    BlockRealize: _realize_faults,
}


def faults(s: Any) -> Iterable[str]:
    """What is wrong with a statement, whatever is around it and in it."""
    found = _FAULTS.get(type(s))
    return () if found is None else found(s)


class Parts(NamedTuple):
    """What a statement evaluates, what it defines in the statements inside, and these."""

    evaluated: tuple[Any, ...]
    defined: tuple[Any, ...]
    inside: tuple[Any, ...]


_PARTS: dict[type, Callable[[Any], Parts]] = {
    BufferStore: lambda s: Parts((*s.indices, s.value), (), ()),
    For: lambda s: Parts((s.min, s.extent), (s.loop_var,), (s.body,)),
    SeqStmt: lambda s: Parts((), (), s.stmts),
    IfThenElse: lambda s: Parts((s.condition,), (), tuple(x for x in (s.then_case, s.else_case) if x is not None)),
    While: lambda s: Parts((s.condition,), (), (s.body,)),
    LetStmt: lambda s: Parts((s.value,), (s.var,), (s.body,)),
    AttrStmt: lambda s: Parts((s.value,), (), (s.body,)),
    Allocate: lambda s: Parts((*s.extents, s.condition), (s.buffer_var,), (s.body,)),
    AllocateConst: lambda s: Parts(s.extents, (s.buffer_var,), (s.body,)),
    DeclBuffer: lambda s: Parts((*sizes(s.buffer), s.buffer.data), (s.buffer,), (s.body,)),
}


def parts_of(s: Any) -> Parts:
    """The parts of a statement that is no block."""
    found = _PARTS.get(type(s))
    return Parts(tuple(s.children()), (), ()) if found is None else found(s)


def bound_values(s: BlockRealize) -> list[Expr]:
    """What is evaluated where a block is: its bindings, domains that are no constants, and its predicate."""
    found = [*s.iter_values]
    if s.block.iter_vars:
        found += bounds([iv.dom for iv in s.block.iter_vars if iv.dom is not None])
    return found if type(s.predicate) is IntImm or _named_in_predicate(s) else [*found, s.predicate]


def made_by_view(match: MatchBufferRegion) -> list[Any]:
    """The variables that a view has a value for where they have none: its pointer, strides and offset."""
    view = match.buffer
    return [p for p in (view.data, *view.strides, view.elem_offset) if isinstance(p, Var)]


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
    """The scope of a statement; None if it breaks a rule, or may: :func:`tir.analysis.wellformed.check` tells."""
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
            if next(index_faults(e.buffer, e.indices), None):
                return False
            left += e.indices
        elif kind is BufferRegion:
            uses.add(e.buffer)
            if next(region_faults(e), None):
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
    """Of a store, which is read again as often as asked."""
    return None if next(_store_faults(s), None) else _of_values((*s.indices, s.value), s.buffer)


@once
def _of_any(s: Any) -> Scope | None:
    """Of a statement that is neither a store nor a loop, a block or a sequence."""
    kind = type(s)
    if kind is BufferRealize or (kind is AttrStmt and isinstance(s.node, IterVar)) or next(iter(faults(s)), None):
        return None
    evaluated, defined, inside = parts_of(s)
    return _around(
        _joined(map(scope_of, inside)), evaluated, defined, frozenset([n for n in defined if type(n) is Var])
    )


@once
def _of_loop(s: For) -> Scope | None:
    """Of a nest of loops, of which those inside have constant bounds."""
    es = () if type(s.min) is IntImm and type(s.extent) is IntImm else (s.min, s.extent)
    variables, launched, body = [], [], s
    while True:
        var, low, extent = body.loop_var, body.min, body.extent
        if body.kind not in _PLAIN_KINDS or body.thread or not (low.dtype is extent.dtype is var.dtype):
            if next(_loop_faults(body), None):
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
    return None if next(_sequence_faults(s), None) else _of_members(s)


@once
def _of_members(s: SeqStmt) -> Scope | None:
    """Of a sequence, or of a part of a long one."""
    return _joined(map(_of_members, parts(s)) if is_long(s.stmts) else map(scope_of, s.stmts))


@once
def _of_realize(s: BlockRealize) -> Scope | None:
    return None if next(_realize_faults(s), None) else _around(_of_block(s.block), bound_values(s))


def _of_view(match: MatchBufferRegion, inner: Scope | None) -> Scope | None:
    """Of a view with what is inside. That defines its strides and its offset unless they are defined already."""
    made, view = frozenset(made_by_view(match)), match.buffer
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
        inner = None if next(view_faults(match), None) else _of_view(match, inner)
    allocated = block.alloc_buffers
    if allocated:
        pointers = frozenset([buffer.data for buffer in allocated])
        inner = _around(inner, [*chain.from_iterable(map(sizes, allocated))], (*allocated, *pointers), pointers)
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
