"""Layout of shared memory in a kernel: live ranges, reuse, alignment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..buffer import Buffer, decl_buffer
from ..display import size_text
from ..dtype import DType
from ..errors import BuildError
from ..expr import TRUE, BufferLoad, Call, Expr, IntImm, Var, const
from ..function import IRModule, PrimFunc
from ..launches import bytes_of, is_launch, kernels_of, with_kernels
from ..levels import SHARED, SHARED_DYN, is_shared
from ..op import offsets_of
from ..stmt import Allocate, AttrStmt, Block, BufferStore, DeclBuffer, SeqStmt, Stmt, seq
from ..target import DYNAMIC, Target
from ..visit import rewrite, walk
from .engines import ALIGNMENT, engine_memory, orders_itself
from .lifetimes import Lifetimes, Spans, disjoint
from .passes import func_pass
from .shared_memory_table import PlannedBuffer, SharedMemoryPlan

SMALLEST = 1024  # bytes: to share less is not worth the barrier it may cost


def _lives(kernel: Stmt) -> Lifetimes:
    lives = Lifetimes(kernel, lambda a: is_shared(a.buffer_var.scope))
    # nothing takes the place of what is used beside the threads, nor of anything if no barriers are put between its users
    for pointer in lives.allocs.keys() & (lives.allocs.keys() if orders_itself(kernel) else engine_memory(kernel)):
        lives.exact[pointer] = lives.wide[pointer] = (0, lives.clock)
    return lives


def _alignment(size: int, views: list[Buffer]) -> int:
    return max([16 if size < 128 else 128, *(v.data_alignment for v in views)])


def _placed(lives: Lifetimes, scope: str, spans: Spans, kernel: int, smallest: int = 0) -> dict[Var, PlannedBuffer]:
    """First fit, largest buffers first: each at the lowest offset free during its live range."""
    done: dict[Var, PlannedBuffer] = {}
    mine = [(v, bytes_of(a)) for v, a in lives.allocs.items() if v.scope == scope and v in spans]
    engines = engine_memory(lives.root)
    for pointer, size in sorted(mine, key=lambda x: -x[1]):
        first, last = spans[pointer]
        step = _alignment(size, lives.views.get(pointer, []))
        step = max(step, ALIGNMENT) if pointer in engines else step
        offset = 0
        for other in sorted(done.values(), key=lambda b: b.offset):
            apart = disjoint((first, last), (other.first, other.last))
            apart = apart and min(size, other.bytes) >= smallest or other.offset >= offset + size
            if not apart and other.offset + other.bytes > offset:
                offset = -(-(other.offset + other.bytes) // step) * step
        done[pointer] = PlannedBuffer(kernel, pointer.name, scope, size, first, last, offset)
    return done


def _size(plan: Mapping[Var, PlannedBuffer]) -> int:
    return max((b.offset + b.bytes for b in plan.values()), default=0)


def limits_of(target: Target) -> dict[str, int]:
    """Bytes of shared memory a block may have, by scope."""
    static = target.limit("max_shared_memory_per_block") or 49152  # a CPU's plan is that of any GPU
    dynamic = target.limit("max_dynamic_shared_memory_per_block") or DYNAMIC
    return {SHARED: static, SHARED_DYN: max(dynamic, static)}


def _plan(name: str, lives: Lifetimes, target: Target, kernel: int) -> dict[Var, PlannedBuffer]:
    """Reuse between the loops of a kernel; inside a loop, where it costs barriers, only if nothing else fits."""
    limits = limits_of(target)
    done: dict[Var, PlannedBuffer] = {}
    for scope, limit in limits.items():
        plan = _placed(lives, scope, lives.wide, kernel, SMALLEST)
        if _size(plan) > limit:
            plan = _placed(lives, scope, lives.exact, kernel)
        if _size(plan) > limit:
            rows = sorted(plan.values(), key=lambda b: -b.bytes)
            what = ", ".join(f"{b.name} {size_text(b.bytes)}" for b in rows)
            more = ""
            if scope == SHARED and _size(plan) <= limits[SHARED_DYN]:
                more = f", or use the scope shared.dyn, of which a block can have {limits[SHARED_DYN]} B"
            raise BuildError(
                f"{name}: shared memory of a block would be {_size(plan)} B > {limit} B (`{scope}`): {what}; "
                f"make the tiles of the largest smaller{more} (a schedule with target= says so at the step)"
            )
        done.update(plan)
    return done


class _Rewriter:
    """Moves the shared buffers of one kernel to their planned offsets."""

    def __init__(self, lives: Lifetimes, plan: Mapping[Var, PlannedBuffer]):
        self.plan = plan
        self.lives = lives
        self.arenas: dict[str, tuple[Var, int]] = {}
        for scope, name in ((SHARED_DYN, "dyn_shared"), (SHARED, "static_shared")):
            mine = {v: b for v, b in plan.items() if b.scope == scope}
            separate = sum(b.bytes for b in mine.values())
            if mine and (scope == SHARED_DYN or _size(mine) < separate):
                self.arenas[scope] = (Var(name, DType("handle"), DType("uint8"), scope), _size(mine))
        self.views: dict[Buffer, Buffer] = {}
        self.whole: dict[Var, Buffer] = {}

    def view(self, b: Buffer) -> Buffer:
        found = self.views.get(b)
        if found is None:
            place = self.plan[b.data]
            base, _ = self.arenas[place.scope]
            start = place.offset // b.dtype.bytes
            index = b.shape[0].dtype if b.shape else DType("int32")
            offset: Expr | None = const(start, index) if b.elem_offset is None else b.elem_offset + start
            if isinstance(offset, IntImm) and offset.value == 0:
                offset = None
            found = self.views[b] = b.replace(data=base, elem_offset=offset)
        return found

    def moved(self, v: Any) -> bool:
        return isinstance(v, Var) and v in self.plan and self.plan[v].scope in self.arenas

    def change(self, item: Any) -> Any:
        if isinstance(item, (BufferLoad, BufferStore, DeclBuffer)) and self.moved(item.buffer.data):
            return item.replace(buffer=self.view(item.buffer))
        if isinstance(item, Allocate) and item.buffer_var in self.lives.allocs:
            return item.body
        if isinstance(item, AttrStmt) and self.moved(item.node):
            return item.replace(node=self.arenas[self.plan[item.node].scope][0])
        if isinstance(item, Call) and any(self.moved(a) for a in item.args):
            return self.call(item)
        return (
            seq(item.stmts) if isinstance(item, SeqStmt) and any(isinstance(s, SeqStmt) for s in item.stmts) else None
        )

    def call(self, c: Call) -> Call:
        args = list(c.args)
        if c.op == "tvm_access_ptr" and self.moved(args[1]):  # it names the type that its offset counts
            place = self.plan[args[1]]
            unit = (args[1].pointer_dtype or DType("uint8")).bytes
            args[1], args[2] = self.arenas[place.scope][0], args[2] + place.offset // unit
        for at, offset in offsets_of(c):
            if self.moved(args[at]):
                args[at], args[offset] = self.address(args[at], args[offset]), const(0, args[offset].dtype)
        for at, arg in enumerate(args):
            if self.moved(arg):
                args[at] = self.address(arg, const(0))
        return c.replace(args=tuple(args))

    def address(self, pointer: Var, index: Expr) -> Call:
        """The address of an element of the memory that was at ``pointer``: of its own type, whatever views there are."""
        whole = self.whole.get(pointer)
        if whole is None:
            made = self.lives.allocs[pointer]
            views = (v for v in self.lives.views.get(pointer, ()) if v.dtype == made.dtype and v.elem_offset is None)
            whole = next(views, None) or decl_buffer(
                made.extents, str(made.dtype), pointer.name, pointer, scope=pointer.scope
            )
            self.whole[pointer] = whole
        load = BufferLoad(self.view(whole), (index,))
        return Call("address_of", (load,), DType("handle"))

    def run(self, kernel: Stmt) -> Stmt:
        body = rewrite(kernel, self.change)
        top: list[tuple[Var, DType, tuple[Expr, ...]]] = []
        for base, size in self.arenas.values():
            top.append((base, DType("uint8"), (const(size),)))
        for pointer, a in self.lives.allocs.items():
            if pointer in self.plan and not self.moved(pointer):
                top.append((pointer, a.dtype, a.extents))
        return _inside_launches(body, top)


def _inside_launches(s: Any, top: list[Any]) -> Stmt:
    if isinstance(s, AttrStmt) and is_launch(s):
        return s.replace(body=_inside_launches(s.body, top))
    for pointer, dtype, extents in reversed(top):
        s = Allocate(pointer, dtype, extents, TRUE, s)
    return s


@func_pass
def plan_shared_memory(func: PrimFunc, target: Any = "cuda") -> PrimFunc:
    """Shared buffers get their offsets: one ``shared.dyn`` allocation in bytes, static ones merged if that saves
    memory.

    Buffers with disjoint live ranges share bytes; buffers used in one loop only if nothing else fits, and none that a copy
    engine or a tensor core accesses by itself, or that are in a kernel with transaction barriers. Raises
    ``BuildError`` with the buffers if the target has less memory than they need.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((32,), "float32")):
    ...     with T.launch_thread("threadIdx.x", 32) as tx:
    ...         S = T.allocate([32], "float32", "shared.dyn")
    ...         R = T.allocate([32], "float32", "shared.dyn")
    ...         S[tx] = A[tx]
    ...         R[tx] = S[tx] * 2.0
    ...         A[tx] = R[tx]
    ... ''')
    >>> tir.transform.plan_shared_memory(f).body
    tx = T.launch_thread("threadIdx.x", 32)
    dyn_shared = T.allocate([256], "uint8", "shared.dyn")
    S[tx] = A[tx]
    R[tx] = S[tx] * 2.0
    A[tx] = R[tx]
    """
    new: dict[Any, Any] = {}
    for count, kernel in enumerate(kernels_of(func.body)):
        lives = _lives(kernel)
        plan = _plan(func.name, lives, Target.of(target), count)
        if lives.allocs:
            new[kernel] = _Rewriter(lives, plan).run(kernel)
    return func.with_body(with_kernels(func.body, lambda kernel: new.get(kernel, kernel)))


def shared_memory_plan(program: PrimFunc | IRModule, target: Any = "cuda") -> SharedMemoryPlan:
    """Buffer, bytes, lifetime and offset of all shared memory of a program, which is lowered for ``target`` first.

    Lifetimes count the statements of the kernel. Raises ``BuildError`` as lowering does.

    >>> import tir
    >>> sch = tir.Schedule(tir.library.elementwise.transpose(8, 16))
    >>> copy = sch.cache_read("out", "A", "shared")
    >>> sch.bind("out.i", "blockIdx.x")
    >>> sch.compute_at(copy, "out.i")
    >>> print(tir.transform.shared_memory_plan(sch.mod))
    kernel  buffer    scope   bytes  lifetime  offset
         0  A_shared  shared     64  0..1           0
    """
    from .pipeline import gpu_pipeline, lower, name_of

    mod = IRModule.of(program)
    names = [name_of(p) for p in gpu_pipeline(target)]
    if any(isinstance(n, Block) for f in mod.functions.values() for n in walk(f.body)):
        mod = lower(mod, target=target, upto=names[names.index("plan_shared_memory") - 1])
    rows: list[PlannedBuffer] = []
    count = 0
    for name, func in mod.items():
        for kernel in kernels_of(func.body):
            plan = _plan(name, _lives(kernel), Target.of(target), count)
            rows += sorted((replace(b, kernel=count) for b in plan.values()), key=lambda b: (b.first, b.offset))
            count += 1
    return SharedMemoryPlan(rows)
