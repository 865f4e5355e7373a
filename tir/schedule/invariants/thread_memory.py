"""Visibility of memory between threads of a kernel, checked after every step.

Memory of a thread (``local``, fragments …) contains what that thread wrote, shared memory what the threads of one block
wrote, and the blocks of a launch are not ordered. So a value must be written where it is read: by the same thread, in
the same block, in the same kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...aliases import memory_of, shares_memory, sharing
from ...analysis.contents import marked
from ...analysis.dependence.affine import AffineForms, tells_apart
from ...analysis.dependence.relations import (
    Context,
    StatementRelations,
    by_loops,
    conflicting_pairs,
    is_exact,
    loop_times,
    same_element,
    without_swizzles,
)
from ...analysis.dependence.statements import Access, Statement, statements_of
from ...analysis.dependence.witness import witness
from ...analysis.index import BlockRef, Index, LoopRef, index_of, reduction_iterators
from ...analysis.privatization import is_privatizable
from ...analysis.reductions import threads_can_share
from ...analysis.users import blocks_using
from ...buffer import Buffer
from ...expr import BufferLoad, Var, is_const
from ...function import PrimFunc
from ...levels import (
    BLOCK_AXES,
    LAUNCH_AXES,
    ends_with_launch,
    is_block_axis,
    is_launch_axis,
    is_shared,
    level_of,
    own_axes,
)
from ...poly import Names, Relation, Undecided, decide, everything
from ...stmt import THREAD_BINDING, Block, For, SeqStmt
from ...visit import vars_in, walk
from . import Keeps, Problem, invariant
from .delta import BufferSet, Delta

_TWO_KERNELS = "compute_at the one where the other uses it, or keep them in loops of their own: two kernels"


@invariant(kept_by=Keeps.THREADS, loops=(THREAD_BINDING,))
def thread_memory(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """A kernel reads only what its own thread (or block) wrote."""
    index = index_of(after)
    changed = {ref.node for ref in delta.changed_loops((THREAD_BINDING,)) if ref.node.thread in LAUNCH_AXES}
    if not changed:
        return
    bound = _bound_loops(index)
    same = delta.unchanged_buffers
    own = [(scope, b) for scope, b in _own_buffers(index) if not shares_memory(b, same) and not _same_threads(delta, b)]
    suspects = [b for b in own if not _plain(*b, changed)]
    if suspects or _blocks_may_meet(bound):
        yield from _Kernels(after, bound, final=False).problems([b for _, b in suspects], same)


def problems_when_complete(func: PrimFunc) -> Iterator[Problem]:
    """As ``thread_memory``, for a program that is to be lowered: no further loops are going to be bound."""
    index = index_of(func)
    bound = _bound_loops(index)
    changed = {ref.node for ref in bound}
    for scope, buffer in _own_buffers(index):
        if own_axes(buffer.scope) != LAUNCH_AXES:  # threads may share it: their loops do not tell launches apart
            yield from _launched_again(scope, buffer)
    suspects = [buffer for scope, buffer in _own_buffers(index) if not _plain(scope, buffer, changed)]
    if suspects or _blocks_may_meet(bound):
        yield from _Kernels(func, bound, final=True).problems(suspects, frozenset())


def _launched_again(scope: BlockRef, buffer: Buffer) -> Iterator[Problem]:
    """Loops that launch a kernel once for each iteration, of which one may read what an earlier one left in shared or
    warp memory: that ends with the kernel."""
    for user in blocks_using(scope, buffer):
        loops = user.loops()
        first = next((n for n, p in enumerate(loops) if is_launch_axis(p.node.thread)), 0)
        around = [p.node for p in loops[:first]]
        if around and not is_privatizable(buffer, around):
            yield Problem(
                (buffer.name, "launches"),
                f"`{buffer.name}` ({buffer.scope} memory) ends with the kernel, which loop {loops[first - 1].name} launches "
                "in each iteration: cannot prove that none reads what an earlier one wrote",
                nodes=[loops[first - 1].node, loops[first].node],
                legal=f'bind("{loops[0].name}", "blockIdx.x") before, which makes one kernel; or the scope global',
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
    return all(ref.node.thread not in axes and _outermost(ref) is not ref for ref in bound)


def _plain(scope: BlockRef, buffer: Buffer, changed: set[For]) -> bool:
    """Whether all uses of ``buffer`` syntactically belong to one thread: they share their thread loops, in each
    iteration of which they write before they read."""
    users = blocks_using(scope, buffer)
    axes = own_axes(buffer.scope)
    threads = [[p for p in ref.loops() if p.node.thread in axes] for ref in users]
    if any(n.thread in axes for ref in users for n in marked(ref.block) if isinstance(n, For)):
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


def _blocks_may_meet(bound: Iterable[LoopRef]) -> bool:
    """Whether one kernel has several loops of one block axis, block loops inside thread loops, or statements (or an init)
    next to a block loop: whether different blocks may run what was one iteration."""
    seen: set[tuple[Any, str]] = set()
    for ref in bound:
        if is_block_axis(ref.node.thread):
            outermost = _outermost(ref)
            key = (outermost, ref.node.thread)
            if key in seen or not is_block_axis(outermost.node.thread):
                return True
            if any(_has_other_parts(p.node) and outermost in p.ancestors() for p in ref.ancestors()):
                return True
            seen.add(key)
    return False


def _has_other_parts(node: Any) -> bool:
    """Whether ``node`` runs something beside what one of its statements does."""
    return isinstance(node, SeqStmt) or (isinstance(node, Block) and node.init is not None)


def _outermost(ref: LoopRef) -> LoopRef:
    found = ref
    for above in ref.ancestors():
        if isinstance(above, LoopRef) and is_launch_axis(above.node.thread):
            found = above
    return found


Common = list[tuple[Var, Var]] | None  # pairs of loops


class _Kernels:
    """The statements of a program, the threads that run them, and the pairs of them that conflict in some memory.

    ``final``: the schedule is complete, so that no further loop is going to be bound, and a block without a loop for some
    axis is run by every thread (or by thread 0 if its buffer is shared).
    """

    def __init__(self, func: PrimFunc, bound: list[LoopRef], final: bool):
        self.func = func
        self.final = final
        self.loops = {ref.var: ref for ref in bound}
        self.units = without_swizzles(statements_of(func.body))
        self.reductions = reduction_iterators(index_of(func))
        self.combined = reduction_iterators(index_of(func), threads_can_share)
        self.written = memory_of(a for u in self.units for a in u.writes())

    def kernel(self, unit: Statement) -> LoopRef | None:
        return next((self.loops[v] for v, _, _ in unit.loops if v in self.loops), None)

    def threads(self, unit: Statement, buffer: Buffer | None = None) -> dict[str, Var]:
        """The loop of each axis around ``unit``; for a ``buffer`` that it writes, except one whose threads share a
        reduction, which all get the result."""
        shares = buffer is None or unit.writes_to(buffer)
        reduced = self._reduced(unit, self.combined) if shares else set()
        return {self.loops[v].node.thread: v for v, _, _ in unit.loops if v in self.loops and v not in reduced}

    def _reduced(self, unit: Statement, reductions: set[Var]) -> set[Var]:
        """The loops that the iterators ``reductions`` of ``unit`` step over; one thread shares its reduction with no other."""
        iterators = (*zip(unit.coords, unit.values), *unit.inner)
        single = {v for v, ref in self.loops.items() if is_const(ref.node.extent, 1)}
        return {v for i, e in iterators if i in reductions for v in vars_in(e)} - single

    def _can_be_bound(self, unit: Statement) -> bool:
        """Whether a loop of ``unit`` may still be bound to a block axis that it lacks: one of its own in the
        kernel, not a reduction loop."""
        if self.final:
            return False
        reduced = self._reduced(unit, self.reductions)
        own = [v for v, _, _ in unit.loops]
        first = next(n for n, v in enumerate(own) if v in self.loops)
        return any(v not in self.loops and v not in reduced for v in own[first:])

    def problems(self, own: Sequence[Buffer], same: BufferSet) -> Iterator[Problem]:
        """The violations for the buffers ``own``, and for global memory except that of ``same``."""
        for buffer in own:
            users = self._users(buffer)
            found = self._two_kernels(buffer, users)
            if found is None and not self._reads_its_own(buffer, users):
                found = self._asked(self._flows, buffer, users)
            if found is not None:
                yield found
        if _blocks_may_meet(self.loops.values()):
            written = {
                a.buffer.data: a.buffer for u in self.units for a in u.writes() if not ends_with_launch(a.buffer.scope)
            }
            for buffer in (b for b in written.values() if not shares_memory(b, same)):
                found = self._asked(self._blocks, buffer, self._users(buffer))
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
                        self._one_kernel(made, used)
                        + f'compute_at("{w.name}", …) in the other kernel, or set_scope("{w.name}", …, "global")',
                    )
        return None

    @staticmethod
    def _one_kernel(a: LoopRef, b: LoopRef) -> str:
        """The advice to bind a loop around both first, where there is one."""
        around = next((p for p in a.loops() if any(p is q for q in b.loops())), None)
        return f'bind("{around.name}", "blockIdx.x") before, which makes them one; or ' if around else ""

    def _asked(self, question: Any, buffer: Buffer, users: list[Statement]) -> Problem | None:
        """The answer of exact sets, if they give one in bounded time. Undecided is accepted until no further loop is going to be
        bound; then only what loops alone show to be right."""
        found = decide(lambda: question(buffer, users, *self._sides(buffer, users)))
        if isinstance(found, Undecided):
            return self._told_by_loops(buffer, users) if self.final else None
        return found

    def _told_by_loops(self, buffer: Buffer, users: list[Statement]) -> Problem | None:
        """Whether a loop of threads (or blocks) that write does not contain what reads, or, of global memory, writes: then it
        may be another thread, whichever element that is."""
        axes = own_axes(buffer.scope)
        shared = not axes  # by all blocks of a kernel
        for w in users:
            for r in users:
                if r is w or self.kernel(w) is None or self.kernel(w) is not self.kernel(r):
                    continue
                if not w.writes_to(buffer) or (not shared and all(a.write for a in r.accesses_of(buffer))):
                    continue
                wrote, uses = self.threads(w), self.threads(r, None if shared else buffer)
                loop = self._apart(wrote, uses, BLOCK_AXES if shared else axes)
                if shared and loop is None:
                    loop = self._apart(uses, wrote, BLOCK_AXES)
                if loop is not None:
                    return self._undecided(buffer, w, r, loop)
        return None

    def _apart(self, threads: dict[str, Var], others: dict[str, Var], axes: Sequence[str]) -> LoopRef | None:
        """A loop of several ``threads`` along one of ``axes`` that is not one of ``others``."""
        found = (self.loops[v] for a, v in threads.items() if a in axes and others.get(a) is not v)
        return next((ref for ref in found if not is_const(ref.node.extent, 1)), None)

    def _undecided(self, buffer: Buffer, w: Statement, r: Statement, loop: LoopRef) -> Problem:
        if not own_axes(buffer.scope):
            inside, outside = (w, r) if any(v is loop.var for v, _, _ in w.loops) else (r, w)
            return Problem(
                (buffer.name, "blocks"),
                f"cannot prove that thread blocks of one kernel do not depend on each other through `{buffer.name}`, and "
                "nothing orders them",
                [f"{inside.name} uses it in the blocks of loop {loop.name}, which {outside.name} is not in"],
                [inside.node, outside.node],
                _TWO_KERNELS,
            )
        return Problem(
            (buffer.name, "readers"),
            f"cannot prove that `{buffer.name}` ({buffer.scope} memory) is read by the thread that wrote it",
            [f"{w.name} writes it in the threads of loop {loop.name}, which {r.name} is not in"],
            [w.node, r.node],
            self._advice(buffer, r),
        )

    def _sides(self, buffer: Buffer, users: list[Statement]) -> tuple[list[Any], Any]:
        names = Names()
        length = max(len(u.time) for u in users) + 2
        sides = []
        for unit in users:
            looped = by_loops(unit)
            side = StatementRelations(replace(looped, accesses=looped.accesses_of(buffer)), names)
            side.touch()
            for touch in (*side.reads, *side.writes):
                _ = touch.map  # now, before time is counted
            side.before = loop_times(looped, unit.time, names, length)
            sides.append(side)
        context = Context(self.func, self.func.body, names)
        context.restrict(sides[0].before)  # now, before time is counted
        return sides, context

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
        """Whether the elements alone tell that each thread (or block) reads only what it wrote itself: different threads
        have different ones. Shown without exact sets."""
        forms = [AffineForms(by_loops(u), self.written) for u in users]
        return all(
            common is not None and all(v is w and tells_apart(forms[n], a, forms[m], b, v) for v, w in common)
            for n, m, common in self._in_one_kernel(buffer, users)
            for b in users[m].accesses_of(buffer)
            for a in users[n].accesses_of(buffer)
            if a.write and not b.write
        )

    def _flows(self, buffer: Buffer, users: list[Statement], sides: Any, context: Any) -> Problem | None:
        """Whether each thread (or block) reads only what it wrote itself."""
        for n, m, common in self._in_one_kernel(buffer, users):
            s, t = sides[n], sides[m]
            for b in t.reads:
                for a in s.writes:
                    apart = _nobody(s, t) if common is None else _related(s, t, common)
                    depend = _ordered(same_element(a, b), s, t)
                    bad = depend.subtract(apart)
                    if bad.is_empty():
                        continue
                    bad = context.restrict(self._unkilled(bad, sides, s, a, t, b))
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

    def _unkilled(self, bad: Any, sides: list[Any], s: Any, a: Any, t: Any, b: Any) -> Any:
        """The pairs of ``bad`` without a write in between that kills the value."""
        for k in sides:
            for c in k.writes:
                if not is_exact(k.unit, c.access):
                    continue
                first = _ordered(same_element(a, c), s, k)
                bad = bad.subtract(first.then(_ordered(same_element(c, b), k, t)))
                if bad.is_empty():
                    return bad
        return bad

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

    def _blocks(self, buffer: Buffer, users: list[Statement], sides: Any, context: Any) -> Problem | None:
        """Whether blocks of one kernel access only elements of global memory that no other block writes."""
        by_unit = list(zip(users, sides))
        for u, s in by_unit:
            for v, t in by_unit:
                if self.kernel(u) is None or self.kernel(u) is not self.kernel(v):
                    continue
                for a, b in conflicting_pairs(s, t):
                    one_block = self._one_block((u, s, a), (v, t, b))
                    if one_block is None:
                        continue
                    bad = _ordered(same_element(a, b), s, t).subtract(one_block)
                    bad = context.restrict(bad)
                    if not bad.is_empty():
                        return Problem(
                            (buffer.name, "blocks"),
                            f"thread blocks of one kernel would depend on each other through `{buffer.name}`, and "
                            "nothing orders them",
                            witness(bad, s, a, t, b, ", in another block", ""),
                            [u.node, v.node],
                            _TWO_KERNELS,
                        )
        return None

    def _one_block(self, source: tuple[Statement, Any, Any], sink: tuple[Statement, Any, Any]) -> Any:
        """The pairs of instances of two statements that run in the same thread block; None if there is no violation.
        For each:
        the statement with all its accesses, its relations, and one access.

        Work outside the loop of an axis is done by all blocks of that axis, and its stores to global memory by the
        first of them.
        """
        (u, s, _), (_, t, _) = source, sink
        equal: list[tuple[Var, Var]] = []
        starts: list[tuple[Any, Var]] = []
        differ = False
        for axis in BLOCK_AXES:
            loops = [(unit, side, touch.access, self.threads(unit).get(axis)) for unit, side, touch in (source, sink)]
            bound = [(side, v) for _, side, _, v in loops if v is not None]
            lacking = [(unit, access) for unit, _, access, v in loops if v is None]
            if not lacking:
                equal.append((bound[0][1], bound[1][1]))
                differ |= bound[0][1] is not bound[1][1]
            elif not self._many(axis, self.kernel(u)) or any(self._can_be_bound(x) for x, _ in lacking):
                continue
            elif any(self._in_all_blocks(x, access) for x, access in lacking):
                return _nobody(s, t)
            elif bound:
                starts.append(bound[0])
                differ = True
        return _related(s, t, equal, starts) if differ else None

    def _many(self, axis: str, kernel: LoopRef | None) -> bool:
        """Whether ``kernel`` has several blocks along ``axis``."""
        return any(
            r.node.thread == axis and not is_const(r.node.extent, 1) and _outermost(r) is kernel
            for r in self.loops.values()
        )

    @staticmethod
    def _in_all_blocks(unit: Statement, access: Access) -> bool:
        """Whether all blocks of an axis that ``unit`` lacks do ``access``. All of them write memory of their own and
        evaluate conditions; a store to global memory, with what it reads, is done by the first only."""
        if access.write:
            return bool(own_axes(access.buffer.scope))
        asked = (n for guard in unit.guards for n in walk(guard) if isinstance(n, BufferLoad))
        return any(own_axes(a.buffer.scope) for a in unit.writes()) or bool(sharing(asked, access.buffer))


def _ordered(pairs: Any, s: Any, t: Any) -> Any:
    """The pairs whose first instance is before the second."""
    return pairs.intersect(s.before.before(t.before)).domain_in(s.before.domain())


def _nobody(s: Any, t: Any) -> Relation:
    """No pair of instances of ``s`` and ``t``."""
    pairs = _related(s, t, [])
    return pairs.subtract(pairs)


def _related(s: Any, t: Any, equal: list[tuple[Var, Var]], starts: Sequence[tuple[Any, Var]] = ()) -> Relation:
    """Pairs of instances of ``s`` and ``t`` with these loops equal, and ``starts`` (a side and a loop of it) at
    zero."""
    at = [{v: n for n, v in enumerate(side.unit.coords)} for side in (s, t)]
    made = everything(s.before, t.before).equating([(at[0][v], at[1][w]) for v, w in equal])
    zeros = [{at[n][v]: 0 for side, v in starts if (side is s) == (n == 0)} for n in (0, 1)]
    return made.fixing(*zeros)
