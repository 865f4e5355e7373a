"""Versions of a function for short and for long sizes, where the rules make something else for each; which one runs is decided at entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, reduce
from typing import Any

from ..arith import simplify
from ..buffer import Buffer
from ..expr import And, BufferLoad, Expr, Or, Var, const, constant
from ..function import PrimFunc
from ..names import unique_name
from ..stmt import Block, BlockRealize, For, IfThenElse, SeqStmt, Stmt, seq
from ..transform.convert_ssa import convert_ssa
from ..transform.simplify import simplify as tidied
from ..visit import buffers_in, rewrite, statements, substitute, uses_var, walk
from .nest import assuming

SHORT = 8  # what a size up to this counts as
LONG = 32  # from this on a size is a long one: two vectors of partial results fill
ENDS = {SHORT + 1: SHORT, 17: 16, LONG: 24}  # what a size below each of these counts as: part of a vector, one, or two
FEW = 2  # sizes for each of which there are versions of its own
NEAR = 64  # what each of more sizes counts as: operands stay in the L1 cache, as they do below twice as much
STRAIGHT = 9  # vectors of a row of which straight code is worth a version
KEPT = 16  # vectors of a row for which there is room of constant size
UNROOMED = 5  # vectors of a row of which straight code is worth more than that room


def in_versions(func: PrimFunc, usual: PrimFunc, scheduled: Callable[[], PrimFunc], lanes: int) -> PrimFunc | None:
    """``func`` as ``scheduled`` gives it where its sizes are short (:func:`.nest.assuming`), or else ``usual``; None if that is the same,
    and where panels of constants are made once in any case. What a version asks of its iterations that its sizes imply, it asks no more.

    With some sizes there are versions for what each of them counts as (:data:`ENDS`); with many, one that runs where any is short, or all are :data:`NEAR`:
    of what the rules make for these, as where operands are not copied to panels, or else for short ones. Where a size is the length of
    rows that are reduced, there is a version for each number of vectors of ``lanes`` that a short row has. Where a function has both such
    rows and products, each statement of it has versions of its own, as far as the rules make the same statements for a short size.
    """
    sizes = _sizes(func)
    if not sizes or "tir.constant" in func.attrs:
        return None
    made = {frozenset[tuple[Var, int]](): usual}
    of_text = {usual.script(): usual}

    def version(counted: Mapping[Var, int]) -> PrimFunc:
        key = frozenset(counted.items())
        if key not in made:
            with assuming(counted):
                new = scheduled()
            made[key] = of_text.setdefault(new.script(), new)
        return made[key]

    telling = [v for v in sizes if version({v: SHORT}) is not usual]
    if not telling:
        return None

    def chosen(stage: Callable[[PrimFunc], PrimFunc], rows: Var | None) -> PrimFunc:
        if rows is not None:
            return _by_vectors(rows, lanes, lambda size: stage(version({rows: size})), stage(usual))
        if len(telling) <= FEW:
            return _tree(telling, {}, lambda counted: stage(version(counted)))
        every, near = dict.fromkeys(sizes, SHORT), dict.fromkeys(sizes, NEAR)
        any_short = reduce(Or, (v < LONG for v in telling))
        if version(near) is usual:
            return _either(any_short, stage(version(every)), stage(usual))
        all_near = reduce(And, (v < 2 * NEAR for v in telling))
        return _either(Or(any_short, all_near), stage(version(near)), stage(usual))

    def rows_of(stage: PrimFunc) -> Var | None:
        return next((v for v in telling if lanes >= 4 and _is_of_rows(func, v, stage)), None)

    cut = cache(_stages)
    stages, between = cut(usual)
    whole, lengths = rows_of(func), [rows_of(stage) for stage in stages]
    if whole is not None or all(cut(version({v: SHORT}))[1] != between for v in lengths if v is not None):
        return tidied(convert_ssa(chosen(lambda made: made, whole)))

    def nth(n: int) -> Callable[[PrimFunc], PrimFunc]:
        found = {stages[n].script(): stages[n]}

        def of(made: PrimFunc) -> PrimFunc:
            parts, shared = cut(made)
            return found.setdefault(parts[n].script(), parts[n]) if shared == between else stages[n]

        return cache(of)

    return tidied(convert_ssa(_in_order([chosen(nth(n), rows) for n, rows in enumerate(lengths)], between[0])))


def _stages(func: PrimFunc) -> tuple[list[PrimFunc], tuple[tuple[Buffer, ...], list[set[Buffer]]]]:
    """The statements of the body as functions, one for those that write the same buffer, each with what no other one mentions; the buffers
    that are left, and which of these, and of the arguments, each writes."""
    root = func.root
    assert root is not None
    parts = [(part, _written(part)) for part in (root.body.stmts if isinstance(root.body, SeqStmt) else (root.body,))]
    for n in reversed(range(1, len(parts))):
        if any(writes & parts[n][1] for _, writes in parts[:n]):
            (first, one), (second, other) = parts[n - 1 : n + 1]
            parts[n - 1 : n + 1] = [(seq([first, second]), one | other)]
    used = Counter(b for part, _ in parts for b in buffers_in(part))
    between = tuple(b for b in root.alloc_buffers if used[b] > 1)
    stages, writes = list[PrimFunc](), list[set[Buffer]]()
    for part, written in parts:
        own = tuple(b for b in buffers_in(part) if b in root.alloc_buffers and b not in between)
        stages.append(func.with_body(func.body.replace(block=root.replace(alloc_buffers=own, body=part))))
        writes.append(written.difference(own))
    return stages, (between, writes)


def _written(body: Stmt) -> set[Buffer]:
    return {region.buffer for n in statements(body) if isinstance(n, Block) for region in n.writes}


def _in_order(stages: list[PrimFunc], between: tuple[Buffer, ...]) -> PrimFunc:
    """One function of these stages, which have the buffers ``between`` them."""
    *earlier, last = stages
    body, buffers = last.root.body, last.root.alloc_buffers
    for stage in reversed(earlier):
        body = seq([_renamed(stage.root.body, body), body])
        buffers = (*stage.root.alloc_buffers, *buffers)
    return last.with_body(last.body.replace(block=last.root.replace(alloc_buffers=(*between, *buffers), body=body)))


def _sizes(func: PrimFunc) -> list[Var]:
    """The variables that are extents of arguments."""
    shapes = (extent for buffer in func.buffer_map.values() for extent in buffer.shape)
    return list(dict.fromkeys(n for extent in shapes for n in walk(extent) if isinstance(n, Var)))


def _tree(sizes: list[Var], counted: dict[Var, int], version: Callable[[Mapping[Var, int]], PrimFunc]) -> PrimFunc:
    """The versions for each of ``sizes`` being short or long, where others count as ``counted``: the size that leaves the least to ask is asked first.
    One version is for several ends where a shorter end tells it nothing."""
    if not sizes:
        return version(counted)

    def left(size: Var) -> int:
        return sum(version({size: SHORT}) is not version({size: SHORT, v: SHORT}) for v in sizes if v is not size)

    first = min(sizes, key=left)
    rest = [v for v in sizes if v is not first]
    chosen = longer = _tree(rest, counted, version)
    for end, size in reversed(ENDS.items()):
        most = {first: const(end // SHORT * SHORT, first.dtype)}
        made = _tree(rest, counted | {first: size}, version)
        if made is not longer or not _only_counts(made.root.body, first):
            chosen = _either(first < end, made, chosen, most)
        longer = made
    return chosen


def _only_counts(body: Stmt, size: Var) -> bool:
    """Whether ``size`` says no more in ``body`` than how often loops run, and of how many places blocks are one."""
    loops = (n.extent for n in statements(body) if isinstance(n, For))
    axes = (i.dom.extent for n in statements(body) if isinstance(n, Block) for i in n.iter_vars)
    return sum(n is size for n in walk(body)) == sum(n is size for n in (*loops, *axes))


def _is_of_rows(func: PrimFunc, size: Var, stage: PrimFunc) -> bool:
    """Whether in the blocks of ``func`` that write what ``stage`` does the terms of reductions are rows of that ``size``, and none of them
    reads operands again for another axis, as products do."""
    found, written = False, _written(stage.body)
    for block in (n for n in statements(func.body) if isinstance(n, Block) and n.iter_vars):
        if written.isdisjoint(region.buffer for region in block.writes):
            continue
        axes = [i for i in block.iter_vars if constant(i.dom.extent) != 1]
        places = [n.indices for n in walk(block.body) if isinstance(n, BufferLoad)]
        if len(axes) > max(map(len, places), default=0):
            return False
        rows = {i.var for i in axes if i.iter_type == "reduce" and i.dom.extent is size}
        found |= any(last in rows for place in places for last in place[-1:])
    return found


def _by_vectors(size: Var, lanes: int, version: Callable[[int], PrimFunc], usual: PrimFunc) -> PrimFunc:
    """Versions in which a row is empty, part of a vector of half as many ``lanes``, two of these, and so many whole vectors, of which only the last one
    is a part: each is straight code for what its sizes imply. What these, and the usual one for up to :data:`KEPT` vectors, keep of a row has
    room for whole vectors, which are stored as such: what a masked store leaves is read from memory, after some 40 cycles. Where nothing is kept
    of a row, there is straight code for more of them, and the usual one has no room to gain."""
    part = lanes // 2
    half = version(part)
    shorter = {1: half, part + 1: half, lanes + 1: half}
    keeps = any(uses_var(extent, size) for b in usual.root.alloc_buffers for extent in b.shape)
    shorter |= {n * lanes: version(2 * lanes) for n in range(2, (UNROOMED if keeps else STRAIGHT) + 1)}
    if keeps:
        shorter[KEPT * lanes] = usual.replace()  # which has buffers of its own
    chosen = usual
    for end, made in reversed(shorter.items()):
        chosen = _either(size < end, made, chosen, {size: const(end // part * part, size.dtype)})
    return chosen


def _either(condition: Expr, yes: PrimFunc, no: PrimFunc, most: Mapping[Var, Expr] | None = None) -> PrimFunc:
    """One of two versions of a function, each with buffers of its own: of one that both use, more would be kept than a row. Those of the
    first are for sizes of at ``most`` these, so that a short row is of constant size, but where a view has strides of the size that is meant."""
    if yes is no:
        return yes
    own = {b: b.data.replace() for b in yes.root.alloc_buffers}
    viewed = {match.source.buffer for n in statements(yes.body) if isinstance(n, Block) for match in n.match_buffers}
    longest = {b: tuple(simplify(substitute(e, {} if b in viewed else most or {})) for e in b.shape) for b in own}
    yes = substitute(yes, {}, {b: b.replace(data=data, shape=longest[b]) for b, data in own.items()})
    roots = (yes.body, no.body)
    assert all(isinstance(root, BlockRealize) for root in roots)
    (first, second) = (root.block for root in roots)  # type: ignore[union-attr]
    buffers = (*first.alloc_buffers, *second.alloc_buffers)
    body = IfThenElse(condition, _renamed(first.body, second.body), second.body)
    return yes.with_body(yes.body.replace(block=first.replace(alloc_buffers=buffers, body=body)))


def _renamed(body: Stmt, beside: Stmt) -> Stmt:
    """``body`` with other names for blocks that have one of a block ``beside`` it."""
    mine, others = ({n.name for n in statements(part) if isinstance(n, Block)} for part in (body, beside))
    taken = mine | others

    def renamed(item: Any) -> Any:
        if not isinstance(item, Block) or item.name not in others:
            return None
        taken.add(name := unique_name(item.name, taken))
        return item.replace(name=name)

    return rewrite(body, renamed)
