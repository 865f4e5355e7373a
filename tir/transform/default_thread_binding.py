"""Default bindings for loop nests without thread bindings."""

from __future__ import annotations

from typing import Any

from ..aliases import sharing
from ..analysis.contents import contents, named
from ..buffer import Buffer
from ..errors import refusal
from ..expr import Call, Var, const
from ..function import PrimFunc
from ..levels import BLOCK_AXES, THREAD_AXES, ends_with_launch
from ..op import OPS
from ..stmt import PARALLEL, SERIAL, THREAD_BINDING, Allocate, BlockRealize, BufferStore, For, SeqStmt, Stmt, seq
from ..visit import Somewhere, rewrite, uses_var, walk
from .passes import func_pass
from .thread_axes import launch_reads_memory, starts_kernel

THREADS = 256


def _blocks(s: Any) -> list[BlockRealize]:
    return [n for n in contents(s) if type(n) is BlockRealize and n.block.iter_vars]


def _stores(n: Any) -> bool:
    """Whether a store, or a call by the table of operators, writes memory."""
    return not isinstance(n, Call) or (n.op in OPS and any("w" in p.mode for _, p in OPS[n.op].pointers))


_works = Somewhere(_stores, BufferStore, Call)
_holds_global = Somewhere(lambda n: n.buffer_var.scope in ("", "global"), Allocate)


def _parallel(loop: For) -> bool:
    """Whether ``loop`` is used by spatial iterators only, in all blocks below."""
    for b in _blocks(loop):
        kinds = {v.iter_type for v, e in zip(b.block.iter_vars, b.iter_values) if uses_var(e, loop.loop_var)}
        if kinds != {"spatial"}:
            return False
    return True


def _leading(s: Any) -> list[For]:
    """The outermost loops of a perfect nest that can run as threads."""
    found: list[For] = []
    while isinstance(s, For) and s.kind in (SERIAL, PARALLEL) and not s.annotations and _parallel(s):
        found.append(s)
        s = s.body
    return found


def _only(func: PrimFunc, nest: Stmt) -> PrimFunc:
    """``func`` with ``nest`` alone in its root block, and the buffers that it uses."""
    root: Any = func.root
    mine = tuple(sharing(root.alloc_buffers, named(nest)))
    return func.with_body(func.body.replace(block=root.replace(body=nest, alloc_buffers=mine)))


def _bound(func: PrimFunc, nest: Stmt, threads: int) -> Stmt | None:
    """``nest`` with its leading loops fused, split and bound; None if that is not legal."""
    blocks = _blocks(nest)
    leading = _leading(nest)
    if not blocks or not leading:
        return None
    marked = {f.loop_var for f in leading if f.kind == PARALLEL}  # threads are how these run here
    if marked:
        nest = rewrite(nest, lambda s: s.replace(kind=SERIAL) if isinstance(s, For) and s.loop_var in marked else None)
    from ..schedule import Schedule

    sch = Schedule(_only(func, nest))
    loops: list[Any] = list(sch.get_loops(blocks[0].block.name))[: len(leading)]
    proved = _independent(sch.state.func, [sch.state.find_loop(loop).node for loop in loops])

    def bind() -> None:
        fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
        outer, inner = sch.split(fused, [None, threads])
        sch.bind(outer, BLOCK_AXES[0], unsafe=proved)
        sch.bind(inner, THREAD_AXES[0], unsafe=proved)

    if refusal(bind) is not None:
        return None
    root: Any = sch.mod[next(iter(sch.mod.functions))].root
    return None if launch_reads_memory(root.body) else root.body


def _independent(func: PrimFunc, loops: list[Any]) -> bool:
    """Whether iterations of nested loops are independent, in global memory alone and without copies of it: asked of the
    loops as they are, which is simpler to answer than of what they are fused and split into."""
    from ..analysis.dependence.loop_questions import check_parallel
    from ..analysis.dependence.tiers import Proved

    if any(isinstance(n, Buffer) and ends_with_launch(n.scope) for n in named(loops[0])):
        return False
    verdicts = (check_parallel(func, loop, THREAD_BINDING) for loop in loops)
    return all(isinstance(v, Proved) and not v.private for v in verdicts)


def _alone(nest: Stmt) -> Stmt:
    """``nest`` as a kernel of one thread."""
    for axis in (THREAD_AXES[0], BLOCK_AXES[0]):
        nest = For(Var(axis.split(".")[0], const(0).dtype), const(0), const(1), THREAD_BINDING, nest, axis)
    return nest


def _parts(root: Any) -> list[Stmt]:
    """The statements of a root block; those without thread loops that share memory of a launch are one, where one of them has no loop
    that could run as threads. (Nests that all have such are to be bound first, with the memory in the same kernel.)"""
    made = list(root.body.stmts if isinstance(root.body, SeqStmt) else (root.body,))
    for buffer in (b for b in root.alloc_buffers if ends_with_launch(b.scope)):
        users = [n for n, each in enumerate(made) if sharing((buffer,), named(each))]
        between = slice(min(users, default=0), max(users, default=0) + 1)
        if all(_leading(made[n]) for n in users):
            continue
        if len(users) > 1 and not any(starts_kernel(n) for each in made[between] for n in walk(each)):
            made[between] = [seq(made[between])]
    return made


def _rest_alone(s: Any) -> Any:
    """``s`` with the largest parts without thread loops, outside of them, as work of one thread; global memory is
    allocated before a kernel."""
    if starts_kernel(s) or not _works(s):
        return s
    if not _holds_global(s) and not any(starts_kernel(n) for n in walk(s)):
        return _alone(s)
    return s.map_statements(_rest_alone)


@func_pass
def default_thread_binding(func: PrimFunc, threads: int = THREADS) -> PrimFunc:
    """A top-level nest without thread loops has its parallel outer loops bound to blocks of ``threads`` threads.

    The loops are fused and split; if no outer loop is parallel, one thread does the work. In a nest that has thread
    loops, only the statements outside of these are bound, to one thread. Statements that share memory of a kernel are one nest, where one of them has no
    loop that could run as threads.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((512,), "float32"), B: T.Buffer((512,), "float32")):
    ...     for i in range(512):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(512, i)
    ...             B[vi] = A[vi] * 2.0
    ... ''')
    >>> tir.transform.default_thread_binding(f, threads=128).body
    with T.block("root"):
        T.reads()
        T.writes()
        for i_0 in T.thread_binding(4, thread="blockIdx.x"):
            for i_1 in T.thread_binding(128, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(512, i_0 * 128 + i_1)
                    T.reads(A[vi])
                    T.writes(B[vi])
                    B[vi] = A[vi] * 2.0
    """
    if func.root is None:
        return func.with_body(_rest_alone(func.body))
    root: Any = func.root
    nests = _parts(root)
    parts = list(nests)
    for place, nest in enumerate(nests):
        if _works(nest):
            started = any(starts_kernel(n) for n in walk(nest))
            made = None if started else _bound(func, nest, threads)
            parts[place] = _rest_alone(nest) if made is None else made
    if all(a is b for a, b in zip(parts, nests)):
        return func
    return func.with_body(func.body.replace(block=root.replace(body=seq(parts))))
