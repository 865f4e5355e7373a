"""Random GPU schedules: loops bound to blocks, threads and virtual threads, copies to shared memory, registers and warps,
vectors, software pipelines, reductions across threads; and nearly every other primitive before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tir.annotations import THROUGH_REGISTERS
from tir.function import IRModule, PrimFunc
from tir.schedule import Schedule
from tir.stmt import Block, For, SeqStmt, Stmt
from tir.testing.decisions import Choice, SeededChoice
from tir.testing.schedules import ALL_PRIMITIVES, Attempt, Walk, started
from tir.visit import walk

THREADS = (1, 2, 4, 8, 32)
WIDER = {"local": "shared", "warp": "shared", "shared": "global", "shared.dyn": "global"}
BLOCKS = ("blockIdx.x", "blockIdx.x", "blockIdx.y")
AXES = ("threadIdx.x", "threadIdx.x", "threadIdx.y", "threadIdx.z")
VIRTUAL = ("vthread.x", "vthread.y")
SHARED = ("shared", "shared", "shared.dyn")
OWN = ("local", "local", "local", "warp")

# for loops on the host, and sizes that would make thousands of threads
_NOT_HERE = {"parallel", "pad_einsum"}
ANYWHERE = [name for name in ALL_PRIMITIVES if name.partition(".")[0] not in _NOT_HERE]


def random_gpu_schedule(
    func: PrimFunc | IRModule | Schedule, seed: int | Choice, steps: int = 6
) -> tuple[Any, list[Attempt]]:
    """A schedule of every function of ``func``, a program or a schedule of one, for a GPU, and the attempts in order.

    Up to half of ``steps`` random primitives, then loops are bound and results copied, then the other half; a block that
    no thread runs gets a loop of one thread.
    """
    choice = SeededChoice(seed) if isinstance(seed, int) else seed
    on_gpu = OnGPU(started(func), choice)
    for name in list(on_gpu.sch.mod):
        on_gpu.sch.work_on(name)
        on_gpu.schedule(choice.number(0, steps // 2), choice.number(0, steps // 2))
    return on_gpu.sch, on_gpu.attempts


def wider(sch: Any) -> Any:
    """``sch``, going on with memory that more threads share, where that is legal: shared memory for what is local to threads
    or warps, global memory for shared memory; and without software pipelines and double buffers."""
    on_gpu = OnGPU(sch.copy(), SeededChoice(0))
    for name in list(sch.mod):
        on_gpu.sch.work_on(name)
        for block in on_gpu.blocks():
            on_gpu.widen(block)
    return on_gpu.sch


def _children(loop: For) -> Sequence[Stmt]:
    """The statements of a loop's body."""
    return loop.body.stmts if isinstance(loop.body, SeqStmt) else [loop.body]


class OnGPU(Walk):
    """A walk that makes a function a GPU kernel."""

    def schedule(self, before: int, after: int) -> None:
        """``before`` random steps, the function bound to threads, ``after`` random steps."""
        for _ in range(before):
            self.draw(ANYWHERE)
        names = self.blocks()
        for block in names:
            self.threads(block)
        for block in names:
            self.caches(block)
        for block in names:
            self.pipeline(block)
        self.move(names)
        for _ in range(after):
            self.draw(ANYWHERE)
        for block in self.blocks():
            self.rest(block)

    def blocks(self) -> list[str]:
        return [n.name for n in walk(self.sch.func.body) if isinstance(n, Block) and n.name != "root"]

    def has(self, block: str) -> bool:
        return block in self.blocks()

    def loops(self, block: Any) -> list[Any]:
        return list(self.sch.get_loops(self.sch.get_block(block) if isinstance(block, str) else block))

    def bound(self, block: str) -> set[str]:
        return {self.sch.get(loop).thread for loop in self.loops(block)} - {""}

    def threads(self, block: str) -> None:
        """Bind loops around a block to blocks and threads, where legal."""
        if not self.has(block) or self.bound(block):
            return
        loops = self.loops(block)
        outer = loops[0] if loops else None
        if len(loops) > 1 and self.choice.pick((True, False)):
            outer = self.attempt("fuse", *loops[:2]) or outer
        if outer is not None:
            self.across(outer)
        loops = self.loops(block)
        free = [loop for loop in loops if not self.sch.get(loop).thread]
        if free and self.choice.pick((True, False)):
            axes = sorted(set(AXES) - self.bound(block))
            self.bind_part(self.choice.pick((free[-1], self.choice.pick(free))), self.choice.pick(axes))

    def across(self, loop: Any) -> None:
        """Bind a loop to blocks, threads, both, or with virtual threads between them."""
        way = self.choice.number(0, 4)
        if way == 0:
            self.attempt("bind", loop, self.choice.pick((*BLOCKS, *AXES)))
        elif way == 1:
            self.bind_part(loop, self.choice.pick(AXES))
        else:
            factors = (
                [None, self.choice.pick((1, 2)), self.choice.pick(THREADS)]
                if way == 2
                else [None, self.choice.pick(THREADS)]
            )
            parts = self.attempt("split", loop, factors)
            if parts:
                self.attempt("bind", parts[0], self.choice.pick(BLOCKS))
                self.attempt("bind", parts[-1], self.choice.pick(AXES))
            if parts and way == 2:
                self.attempt("bind", parts[1], self.choice.pick(VIRTUAL))

    def bind_part(self, loop: Any, axis: str) -> None:
        """Bind the inner (or outer) part of a loop to an axis."""
        factors = [None, self.choice.pick(THREADS)]
        outer = self.choice.number(0, 3) == 0
        parts = self.attempt("split", loop, factors[::-1] if outer else factors)
        if parts:
            self.attempt("bind", parts[0 if outer else 1], axis)

    def both(self, copy: Callable[[], Any], place: str, at: Any) -> Any:
        """Make ``copy()`` and move it to ``at``, or do neither: memory of a kernel must not be used by two kernels."""
        before, taken = self.sch.copy(), list(self.attempts)
        made = copy()
        if made and self.attempt(place, made, at):
            return made
        self.sch, self.attempts = before, taken
        return None

    def caches(self, block: str) -> None:
        """Copy what a block reads to shared memory, and what it writes to registers."""
        if not self.has(block):
            return
        bound = [x for x in self.loops(block) if self.sch.get(x).thread]
        if not bound:
            return
        if self.choice.pick((True, False)):
            at = self.choice.pick((bound[-1], bound[-1], *bound))
            scope = self.choice.pick((*OWN, *SHARED))
            self.both(lambda: self.attempt("cache_write", block, 0, scope), "reverse_compute_at", at)
        for read in range(self.choice.number(0, 2)):
            places = self.loops(block)
            inside = places[[self.sch.get(x).thread != "" for x in places].index(True) :]
            at = self.choice.pick(inside)
            scope = self.choice.pick((*SHARED, *SHARED, *OWN))
            copy = self.both(
                lambda read=read, scope=scope: self.attempt("cache_read", block, read, scope), "compute_at", at
            )
            if copy:
                self.fill(copy, places.index(at) + 1)

    def fill(self, copy: Any, depth: int) -> None:
        """Distribute a copy over the threads, maybe by vectors; its memory may be swizzled or doubled, or its rows padded."""
        own = self.loops(copy)[depth:]
        if own and self.choice.number(0, 2) == 0:
            parts = self.attempt("split", own[-1], [None, self.choice.pick((2, 4))])
            if parts:
                self.attempt("vectorize", parts[1])
                own = [*own[:-1], parts[0]]
        if own and self.choice.number(0, 3):
            self.bind_part(own[-1], self.choice.pick(AXES))
        way = self.choice.number(0, 5)
        serial = any(self.sch.get(loop).kind == "serial" for loop in self.loops(copy)[:depth])
        if way == 1:
            self.attempt("storage_swizzle", copy, 0)
        elif way == 2:
            self.attempt("storage_align", copy, 0, 0, self.choice.pick((4, 8)), 1)
        elif way == 3 and serial:
            self.attempt("annotate", copy, "double_buffer_scope", 0)
        elif way == 4 and serial:
            self.attempt("annotate", copy, THROUGH_REGISTERS, 1)

    def pipeline(self, block: str) -> None:
        """The statements of a serial loop in a kernel in stages of a software pipeline, some of them asynchronous."""
        if not self.has(block) or not self.bound(block) or self.choice.pick((True, False)):
            return
        serial = [(loop, self.sch.get(loop)) for loop in self.loops(block)]
        parts = [(loop, len(_children(node))) for loop, node in serial if node.kind == "serial"]
        several = [(loop, count) for loop, count in parts if count > 1]
        if not several:
            return
        loop, count = self.choice.pick(several)
        last = self.choice.number(1, 2)
        stages = sorted(self.choice.number(0, last) for _ in range(count - 1)) + [last]
        order = list(range(count))
        if self.choice.number(0, 3) == 0:
            order.reverse()
        self.attempt("annotate", loop, "software_pipeline_stage", stages)
        self.attempt("annotate", loop, "software_pipeline_order", order)
        if self.choice.pick((True, False)):
            self.attempt("annotate", loop, "software_pipeline_async_stages", [0])

    def move(self, names: list[str]) -> None:
        """Move a producer into a loop of its consumer, with its result in memory of the kernel."""
        if len(names) < 2 or not self.choice.pick((True, False)) or not self.has(names[-1]) or not self.has(names[-2]):
            return
        loops = self.loops(names[-1])
        if loops and self.attempt("compute_at", names[-2], self.choice.pick(loops)):
            self.attempt("set_scope", names[-2], 0, self.choice.pick(("shared", "local")))

    def rest(self, block: str) -> None:
        """Give a block that no thread runs a loop of one thread."""
        if self.has(block) and not self.bound(block):
            loops = self.loops(block)
            unit = self.attempt("add_unit_loop", loops[0] if loops else block)
            if unit:
                self.attempt("bind", unit, "threadIdx.x")

    def widen(self, block: str) -> None:
        """Let more threads share the memory that a block writes, and remove what its loops are annotated with."""
        for number, region in enumerate(self.sch.get(self.sch.get_block(block)).writes):
            if region.buffer.scope in WIDER:
                self.attempt("set_scope", block, number, WIDER[region.buffer.scope])
        for place in (self.sch.get_block(block), *self.loops(block)):
            for note in self.sch.get(place).annotations:
                self.attempt("unannotate", place, note)
