"""Visibility of memory between threads of a kernel, checked after every step.

Memory of a thread (``local``, fragments …) contains what that thread wrote, shared memory what the threads of one block
wrote. So a value must be written where it is read: by the same thread, in the same block, in the same kernel. Blocks of a
launch are not ordered: all of a kernel is in each of its loops of blocks, whose iterations are independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from ...aliases import memory_of, shares_memory
from ...analysis.contents import contents, sub_statements
from ...analysis.dependence.affine import AffineForms, distinguishes
from ...analysis.dependence.initialization import is_privatizable
from ...analysis.dependence.loop_questions import check_parallel
from ...analysis.dependence.relations import (
    Context,
    StatementRelations,
    Touch,
    at_times,
    by_loops,
    is_exact,
    same_element,
    timed,
    unkilled,
    without_swizzles,
    witness,
)
from ...analysis.dependence.statements import Statement, statements_of
from ...analysis.index import BlockRef, Index, LoopRef, index_of, reduction_iterators
from ...analysis.reduction_forms import threads_can_share
from ...analysis.users import blocks_using
from ...buffer import Buffer
from ...expr import Var, is_const
from ...function import PrimFunc
from ...levels import LAUNCH_AXES, is_block_axis, is_launch_axis, is_shared, level_of, own_axes
from ...poly import Names, Relation, Undecided, decide, everything
from ...stmt import THREAD_BINDING, For
from ...visit import vars_in
from . import Delta, Keeps, Problem, invariant


@invariant(kept_by=Keeps.THREADS, loops=(THREAD_BINDING,))
def thread_memory(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """A kernel reads only what its own thread (or block) wrote."""
    index = index_of(after)
    changed = {ref.node for ref in delta.changed_loops((THREAD_BINDING,)) if ref.node.thread in LAUNCH_AXES}
    if not changed:
        return
    bound = _bound_loops(index)
    yield from _ordered_blocks(bound, changed)
    same = delta.unchanged_buffers
    own = [(scope, b) for scope, b in _own_buffers(index) if not shares_memory(b, same) and not _same_threads(delta, b)]
    suspects = [b for b in own if not _plain(*b, changed)]
    if suspects:
        yield from _Kernels(after, bound, final=False, delta=delta).problems(suspects)


def problems_when_complete(func: PrimFunc) -> Iterator[Problem]:
    """As ``thread_memory``, for a program that is to be lowered: no further loops are going to be bound."""
    index = index_of(func)
    bound = _bound_loops(index)
    changed = {ref.node for ref in bound}
    yield from _ordered_blocks(bound, changed)
    for scope, buffer in _own_buffers(index):
        if own_axes(buffer.scope) != LAUNCH_AXES:  # threads may share it: their loops do not distinguish launches
            yield from _launched_again(scope, buffer)
    suspects = [own for own in _own_buffers(index) if not _plain(*own, changed)]
    if suspects:
        yield from _Kernels(func, bound, final=True).problems(suspects)


def _launched_again(scope: BlockRef, buffer: Buffer) -> Iterator[Problem]:
    """Loops that launch a kernel once for each iteration, of which one may read what an earlier one left in shared or
    warp memory: that ends with the kernel."""
    for user in blocks_using(scope, buffer):
        loops = user.loops()
        first = next((n for n, p in enumerate(loops) if is_launch_axis(p.node.thread)), 0)
        around = [p.node for p in loops[:first]]
        if around and not is_privatizable(buffer, around):
            alone = is_privatizable(buffer, around[:1])
            yield Problem(
                (buffer.name, "launches"),
                f"`{buffer.name}` ({buffer.scope} memory) ends with the kernel, which loop {loops[first - 1].name} launches "
                "in each iteration: cannot prove that none reads what an earlier one wrote",
                nodes=[loops[first - 1].node, loops[first].node],
                legal="the scope global"
                + f'; or bind("{loops[0].name}", "blockIdx.x") before, which makes one kernel' * alone,
            )
            return


def _bound_loops(index: Index) -> list[LoopRef]:
    return [index.place(n) for n in index.marked if is_launch_axis(n.thread)]


def _own_buffers(index: Index) -> Iterator[tuple[BlockRef, Buffer]]:
    for realize, buffer in index.allocations(own_axes):
        yield index.place(realize), buffer


def _same_threads(delta: Delta, buffer: Buffer) -> bool:
    """Whether a step only bound loops inside of kernels, to axes whose threads have ``buffer`` in common."""
    if not shares_memory(buffer, delta.unchanged_accesses):
        return False
    bound = (ref for ref in delta.changed_loops((THREAD_BINDING,)) if delta.is_marked(ref))
    axes = own_axes(buffer.scope)
    return all(ref.node.thread not in axes and kernel_of(ref) is not ref for ref in bound)


def _plain(scope: BlockRef, buffer: Buffer, changed: set[For]) -> bool:
    """Whether all uses of ``buffer`` syntactically belong to one thread: they share their thread loops, in each
    iteration of which they write before they read."""
    users = blocks_using(scope, buffer)
    axes = own_axes(buffer.scope)
    threads = [[p for p in ref.loops() if p.node.thread in axes] for ref in users]
    if any(n.thread in axes for ref in users for n in contents(ref.block) if isinstance(n, For)):
        return False  # threads inside of a user share its work
    if not any(threads):
        return True
    if any(len(t) != len(threads[0]) or any(a is not b for a, b in zip(t, threads[0])) for t in threads):
        return False
    inner = threads[0][-1]
    if inner.node not in changed:
        return True
    chain = users[0].loops()
    return is_privatizable(buffer, [p.node for p in chain[: chain.index(inner) + 1]])


def _ordered_blocks(bound: Iterable[LoopRef], changed: set[For]) -> Iterator[Problem]:
    """Loops of thread blocks inside of a ``changed`` kernel, beside other work or in a serial loop: the program may need an
    order, which nothing keeps."""
    for ref in bound:
        outermost = kernel_of(ref)
        if ref is outermost or not is_block_axis(ref.node.thread) or is_const(ref.node.extent, 1):
            continue
        if outermost.node not in changed:
            continue
        between = [p.node for p in ref.ancestors() if outermost in p.ancestors()]
        serial = next((n for n in between if type(n) is For and not n.thread and not is_const(n.extent, 1)), None)
        if any(len(sub_statements(n)) > 1 for n in between):
            rule = "no other work may be beside it there"
            legal = f"compute_at that work inside of loop {ref.name}, fission loop {outermost.name} before it is bound"
        elif serial is not None:
            rule = f"loop {serial.loop_var.name}, which is not bound, may not be around it there"
            legal = f"reorder loop {ref.name} to the outside of loop {serial.loop_var.name} first"
        else:
            continue
        inside = f"loop {ref.name} ({ref.node.thread}) is in the kernel of loop {outermost.name}, whose blocks are not ordered"
        yield Problem(
            (ref.name, "blocks"),
            f"{inside}: {rule}",
            nodes=[outermost.node, ref.node],
            legal=f"{legal}, or bind to an axis of threads",
        )


def kernel_of(ref: LoopRef) -> LoopRef:
    """The outermost loop bound to threads around ``ref``, or itself."""
    bound = [p for p in ref.ancestors() if isinstance(p, LoopRef) and is_launch_axis(p.node.thread)]
    return bound[-1] if bound else ref


Common = list[tuple[Var, Var]] | None  # pairs of loops


class _Kernels:
    """The statements of a program, the threads that run them, and the pairs of them that conflict in some memory.

    ``final``: the schedule is complete, so that no further loop is going to be bound, and a block without a loop for some
    axis is run by every thread (or by thread 0 if its buffer is shared).
    """

    def __init__(self, func: PrimFunc, bound: list[LoopRef], final: bool, delta: Delta | None = None):
        self.func = func
        self.final = final
        self.delta = delta
        self.loops = {ref.var: ref for ref in bound}
        self.units = without_swizzles(statements_of(func.body))
        self.combined = reduction_iterators(index_of(func), threads_can_share)
        self.written = memory_of(a for u in self.units for a in u.writes())

    def kernel(self, unit: Statement) -> LoopRef | None:
        return next((self.loops[v] for v, _, _ in unit.loops if v in self.loops), None)

    def threads(self, unit: Statement, buffer: Buffer | None = None) -> dict[str, Var]:
        """The loop of each axis around ``unit``; for a ``buffer`` that it writes, except one whose threads share a
        reduction, which all get the result: several, that is."""
        shares = buffer is None or unit.writes_to(buffer)
        iterators = (*zip(unit.coords, unit.values), *unit.inner) if shares else ()
        reduced = {v for i, e in iterators if i in self.combined for v in vars_in(e)}
        around = [self.loops[v] for v, _, _ in unit.loops if v in self.loops]
        return {p.node.thread: p.var for p in around if p.var not in reduced or is_const(p.node.extent, 1)}

    def problems(self, own: Sequence[tuple[BlockRef, Buffer]]) -> Iterator[Problem]:
        """The violations for the buffers ``own``, each with the block that allocates it."""
        for scope, buffer in own:
            users = self._users(buffer)
            found = self._two_kernels(buffer, users)
            if found is None and not self._reads_its_own(buffer, users):
                found = self._flows(scope, buffer, users)
            if found is not None:
                yield found

    def _users(self, buffer: Buffer) -> list[Statement]:
        return [u for u in self.units if u.accesses_of(buffer)]

    def _two_kernels(self, buffer: Buffer, users: list[Statement]) -> Problem | None:
        for w in users:
            made = self.kernel(w)
            if made is None or not w.writes_to(buffer):
                continue
            for u in users:
                used = self.kernel(u)
                if used is not None and used is not made:
                    return Problem(
                        (buffer.name, "kernels"),
                        f"`{buffer.name}` ({buffer.scope} memory) would be used by two kernels, which share global "
                        "memory only",
                        [
                            f"{w.name} writes it in the kernel of loop {made.name}, {u.name} uses it in that of loop "
                            f"{used.name}"
                        ],
                        [made.node, used.node],
                        self._one_kernel(made, used, buffer) + self._ways(w.name),
                    )
        return None

    def _ways(self, writer: str) -> str:
        """What may be done about what the block ``writer`` makes, which the step refused may have made itself."""
        delta = self.delta
        if delta is not None and delta.before is not None and writer not in index_of(delta.before).blocks:
            return f"{delta.primitive} before the loops are bound, or with global memory"
        return f'compute_at("{writer}", …) in the other kernel, or set_scope("{writer}", …, "global")'

    def _one_kernel(self, a: LoopRef, b: LoopRef, buffer: Buffer) -> str:
        """The advice to bind a loop around both first, where there is one whose iterations are independent."""
        around = next((p for p in a.loops() if any(p is q for q in b.loops())), None)
        if around and not check_parallel(self.func, around.node, THREAD_BINDING, frozenset({buffer.data})).is_proved:
            return ""
        return f'bind("{around.name}", "blockIdx.x") before, which makes them one; or ' if around else ""

    def _by_loops(self, buffer: Buffer, users: list[Statement]) -> Problem | None:
        """Whether a loop of threads that write does not contain what reads: then it may be another thread, whichever element
        that is."""
        axes = own_axes(buffer.scope)
        for w in users:
            for r in users:
                if r is w or self.kernel(w) is None or self.kernel(w) is not self.kernel(r):
                    continue
                if not w.writes_to(buffer) or all(a.write for a in r.accesses_of(buffer)):
                    continue
                uses = self.threads(r, buffer)
                apart = (self.loops[v] for a, v in self.threads(w).items() if a in axes and uses.get(a) is not v)
                loop = next((ref for ref in apart if not is_const(ref.node.extent, 1)), None)
                if loop is not None:
                    return Problem(
                        (buffer.name, "readers"),
                        f"cannot prove that `{buffer.name}` ({buffer.scope} memory) is read by the thread that wrote it",
                        [f"{w.name} writes it in the threads of loop {loop.name}, which {r.name} is not in"],
                        [w.node, r.node],
                        self._advice(buffer, r),
                    )
        return None

    def _in_one_kernel(self, buffer: Buffer, users: list[Statement]) -> Iterator[tuple[int, int, Common]]:
        """Of ``users``, by number: what may write and what may read ``buffer`` in one kernel, and their :meth:`_common`
        loops, if threads that differ in them have copies of their own."""
        for m, t in enumerate(users):
            for n, s in enumerate(users):
                if self.kernel(s) is None or self.kernel(s) is not self.kernel(t) or (s is t and self._across(s)):
                    continue
                common = self._common(s, t, buffer)
                if common is None or common:
                    yield n, m, common

    def _reads_its_own(self, buffer: Buffer, users: list[Statement]) -> bool:
        """Whether the elements alone show that each thread (or block) reads only what it wrote itself: different threads
        have different ones. Shown without exact sets."""
        forms = [AffineForms(by_loops(u), self.written) for u in users]
        return all(
            common is not None and all(v is w and distinguishes(forms[n], a, forms[m], b, v) for v, w in common)
            for n, m, common in self._in_one_kernel(buffer, users)
            for b in users[m].accesses_of(buffer)
            for a in users[n].accesses_of(buffer)
            if a.write and not b.write
        )

    def _flows(self, scope: BlockRef, buffer: Buffer, users: list[Statement]) -> Problem | None:
        """Whether each thread (or block) reads only what it wrote itself. Undecided is accepted until no further loop is going to
        be bound; then only what loops alone show to be right, also of those that launch the kernel again."""
        found = decide(self._foreign_value, buffer, users)
        if isinstance(found, Undecided):
            return (self._by_loops(buffer, users) or next(_launched_again(scope, buffer), None)) if self.final else None
        return found

    def _foreign_value(self, buffer: Buffer, users: list[Statement]) -> Problem | None:
        own = [replace(by_loops(u), accesses=u.accesses_of(buffer)) for u in users]
        context = Context(self.func, self.func.body, Names())
        sides = timed(own, buffer, context.names)
        for n, m, common in self._in_one_kernel(buffer, users):
            s, t = sides[n], sides[m]
            for a, b in product(s.writes, t.reads):
                bad = same_element(a, b).intersect(s.before.before(t.before))
                bad = bad if common is None else bad.subtract(_related(s, t, common))
                if not bad.is_empty() and a.access.buffer is b.access.buffer:
                    bad = bad.intersect(_unkilled((s, a), (t, b), bad, sides))
                bad = context.restrict(bad)
                if not bad.is_empty():
                    whose = level_of(buffer.scope).name.lower()
                    return Problem(
                        (buffer.name, "readers"),
                        f"`{buffer.name}` ({buffer.scope} memory) would be read by another {whose} than the one "
                        "that wrote it; each has its own",
                        witness(bad, s, a, t, b, f", in another {whose}", ""),
                        [s.unit.node, t.unit.node],
                        self._advice(buffer, t.unit),
                    )
        return None

    def _advice(self, buffer: Buffer, reader: Statement) -> str:
        wider = "global" if is_shared(buffer.scope) or self._launching(reader) else "shared"
        return f"compute them in the same thread loop (compute_at), or give `{buffer.name}` the scope {wider}"

    def _across(self, unit: Statement) -> bool:
        """Whether ``unit`` is a reduction that threads share."""
        return set(self.threads(unit)) != {self.loops[v].node.thread for v, _, _ in unit.loops if v in self.loops}

    def _common(self, s: Statement, t: Statement, buffer: Buffer) -> Common:
        """The loops of ``s``, which writes ``buffer``, and of ``t``, which reads it, whose iterations are equal where both
        run in the same thread; None if they never do."""
        wrote, reads = self.threads(s), self.threads(t, buffer)
        launching = set(self._launching(t))
        equal = [(v, v) for v in self._launching(s) if v in launching]
        for axis in own_axes(buffer.scope):
            v, w = wrote.get(axis), reads.get(axis)
            if v is not None and w is not None:
                equal.append((v, w))
            elif (
                v is not None and self.final and not is_const(self.loops[v].node.extent, 1)
            ):  # every thread reads what one wrote
                return None
        return equal

    def _launching(self, unit: Statement) -> list[Var]:
        """The loops that launch the kernel of ``unit`` once for each iteration, with new memory; of a complete schedule."""
        own = [v for v, _, _ in unit.loops]
        first = next((n for n, v in enumerate(own) if v in self.loops), 0)
        return own[:first] if self.final else []


def _unkilled(write: Touch, read: Touch, pairs: Relation, sides: Sequence[StatementRelations]) -> Relation:
    """Those of ``pairs`` of a write and a later read with an element that none of ``sides`` writes in between."""
    (s, _), (t, b) = write, read
    touches = [(k, c) for k in sides for c in k.writes if c.access.buffer is b.access.buffer]
    made = [at_times((k, c)) for k, c in touches if is_exact(k.unit, c.access)]
    reads = at_times(read)
    left = unkilled(at_times(write), reads, made, t.before.reverse().then(pairs.reverse()).then(s.before))
    return s.before.then(left.reverse()).then(reads.pairs_to_source()).then(t.before.reverse())


def _related(s: Any, t: Any, equal: list[tuple[Var, Var]]) -> Relation:
    """Pairs of instances of ``s`` and ``t`` with these loops equal."""
    at = [{v: n for n, v in enumerate(side.unit.coords)} for side in (s, t)]
    return everything(s.before, t.before).equating([(at[0][v], at[1][w]) for v, w in equal])
