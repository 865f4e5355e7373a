"""Statements: control flow, allocation, and everything that gives a variable its value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tir.aliases import other_names, shares_memory
from tir.annotations import STREAMED, STREAMED_LINES
from tir.expr import BufferLoad, IntImm, Mul, StringImm, Var
from tir.levels import Level, level_of
from tir.stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from tir.transform.layout import allocated_bytes
from tir.transform.use_workspace import fits_stack
from tir.visit import is_pure, kinds, statements, walk

from .amx_tiles import TILES, allocate_tiles
from .generator import Generator, stmt_rule
from .memory import store
from .parallel import parallel_loop
from .rotated_loops import UNROLL, counted_loop
from .workspace import allocate, workspace_slot

KEPT_BYTES = 256 << 20  # one up to this size is kept for the next call: fresh pages cost more time than a fast kernel
AT_ONCE = 4  # vectors whose values wait in registers for each other
MOST_BYTES = 1 << 56  # more than any address space


@stmt_rule(SeqStmt)
def _seq(g: Generator, s: SeqStmt) -> None:
    at = 0
    while at < len(s.stmts):
        count = _independent(g, s.stmts[at : at + AT_ONCE])
        g.later = [] if count > 1 else None
        for inner in s.stmts[at : at + max(1, count)]:
            g.stmt(inner)
        stores, g.later = g.later or (), None
        for put in stores:
            put()
        at += max(1, count)


def _independent(g: Generator, stmts: Sequence[Stmt]) -> int:
    """How many of ``stmts``, from the first on, store vectors that do not depend on each other. Their values are computed first: a load
    that follows a store at a near place of another page may wait for it, for a processor compares the low bits of addresses first."""
    stored = set[Var]()
    for count, s in enumerate(stmts):
        if (
            not isinstance(s, BufferStore)
            or s.value.dtype.lanes == 1
            or shares_memory(s, g.own)
            or not is_pure(s.value)
        ):
            return count
        loaded = {n.buffer.data for n in walk(s.value) if isinstance(n, BufferLoad)}
        stored.add(s.buffer.data)
        if stored & loaded or not g.owned_pointers >= stored | loaded:
            return count
    return len(stmts)


@stmt_rule(Evaluate)
def _evaluate(g: Generator, s: Evaluate) -> None:
    if not isinstance(s.value, StringImm):
        g.plain(s.value)


@stmt_rule(BufferStore)
def _store(g: Generator, s: BufferStore) -> None:
    store(g, s.buffer, s.indices, s.value)


@stmt_rule(LetStmt)
def _let(g: Generator, s: LetStmt) -> None:
    g.env[s.var] = g.plain(s.value)
    g.out.indices.clear()  # of another value of it
    with g.analyzer.scope():
        g.analyzer.note_aliases(other_names(s))
        g.analyzer.bind(s.var, s.value, s.body)
        g.stmt(s.body)


@stmt_rule(DeclBuffer)
def _declare(g: Generator, s: DeclBuffer) -> None:
    g.stmt(s.body)


@stmt_rule(AttrStmt)
def _attribute(g: Generator, s: AttrStmt) -> None:
    if s.attr_key in ("thread_extent", "virtual_thread"):
        raise g.error(
            f"a loop is bound to thread axis {getattr(s.node, 'thread_tag', '')!r}, which no CPU has; "
            "build for a GPU target, or do not bind"
        )
    if s.attr_key in _STREAMS and isinstance(s.value, StringImm):
        _streamed(g, s, s.value.value)
        return
    g.stmt(s.body)


# least bytes of a non-temporal store: part of a cache line if the rest follows at once, else a whole line
_STREAMS = {STREAMED: 16, STREAMED_LINES: 64}


def _streamed(g: Generator, s: AttrStmt, names: str) -> None:
    """Vectors stored to the named buffers are stored non-temporally; a fence after them orders later accesses."""
    old = g.streamed
    g.streamed = {**old, **{name.strip(): _STREAMS[s.attr_key] for name in names.split(",")}}
    g.stmt(s.body)
    g.streamed = old
    if not g.out.terminated:
        g.out.emit("fence seq_cst")


@stmt_rule(AssertStmt)
def _assert(g: Generator, s: AssertStmt) -> None:
    message = s.message.value if isinstance(s.message, StringImm) else f"{s.message!r}"
    g.check(g.plain(s.condition), f"{g.func_name}: {message}")


@stmt_rule(IfThenElse)
def _if(g: Generator, s: IfThenElse) -> None:
    out = g.out
    condition = g.plain(s.condition)
    if s.condition.dtype.lanes > 1:
        _masked_if(g, s, condition)
        return
    if not s.condition.dtype.is_bool:
        condition = g.convert_.is_nonzero(condition, s.condition.dtype)
    then, end = out.label("if"), out.label("endif")
    other = out.label("else") if s.else_case is not None else end
    out.branch(condition, then, other)
    out.start(then)
    with g.analyzer.scope():
        g.analyzer.assume(s.condition, s.then_case)
        g.stmt(s.then_case)
    out.jump(end)
    if s.else_case is not None:
        out.start(other)
        g.stmt(s.else_case)
        out.jump(end)
    out.start(end)


def _masked_if(g: Generator, s: IfThenElse, condition: str) -> None:
    """A vector condition: stores in its branches write only the lanes where it holds."""
    lanes = s.condition.dtype.lanes
    flags = f"<{lanes} x i1>"
    old, old_lanes = g.mask, g.mask_lanes
    inverse = g.out.value(f"xor {flags} {condition}, splat (i1 true)")
    for mask, body in ((condition, s.then_case), (inverse, s.else_case)):
        if body is None:
            continue
        g.mask = mask if old is None else g.out.value(f"and {flags} {old}, {mask}")
        g.mask_lanes = lanes
        g.stmt(body)
    g.mask, g.mask_lanes = old, old_lanes


@stmt_rule(While)
def _while(g: Generator, s: While) -> None:
    out = g.out
    head, body, end = out.label("while"), out.label("do"), out.label("done")
    out.start(head)
    out.branch(g.plain(s.condition), body, end)
    out.start(body)
    g.stmt(s.body)
    out.jump(head)
    out.start(end)


@stmt_rule(For)
def _for(g: Generator, s: For) -> None:
    if s.kind == "thread_binding":
        raise g.error(f"loop `{s.loop_var.name}` is bound to {s.thread!r}: thread axes need a GPU target")
    if s.kind == "parallel" and not g.in_parallel:
        parallel_loop(g, s)
        return
    # if the extent is not constant the report says that it stays a loop; LLVM would warn on the terminal
    hints = [UNROLL] if s.kind == "unrolled" and isinstance(s.extent, IntImm) else []
    counted_loop(g, s, g.plain(s.min), None, hints)


@stmt_rule(Allocate)
def _allocate(g: Generator, s: Allocate) -> None:
    if Level.LAUNCH < level_of(s.buffer_var.scope) < Level.THREAD and s.buffer_var.scope != TILES:
        raise g.error(
            f"`{s.buffer_var.name}` is in {s.buffer_var.scope!r} memory, which no CPU has; "
            "use scope 'global' or 'local', or build for a GPU"
        )
    if s.buffer_var.scope == TILES:
        allocate_tiles(g, s)
        return
    size = allocated_bytes(s)
    g.owned_pointers.add(s.buffer_var)
    if size is not None and fits_stack(s):
        g.env[s.buffer_var] = g.out.alloca("i8", max(1, size), 64)
        g.own[s.buffer_var] = s.dtype, size // s.dtype.bytes
        if s.dtype.is_float and _is_for_some_lanes(s.body, s.buffer_var):
            # a store of an array of 12,000 zeros takes LLVM 20 s
            args = [("ptr", g.env[s.buffer_var]), ("i8", "0"), ("i64", str(size)), ("i1", "false")]
            g.out.call("llvm.memset.p0.i64", "void", args)
        g.stmt(s.body)
        return
    slot = None
    if size is not None and size <= KEPT_BYTES:
        taken = [slot for _, slot in g.heap]
        slot = workspace_slot(g.out.module, _rounded(size), taken, g.in_parallel)
    pointer = _heap(g, s, slot)
    g.env[s.buffer_var] = pointer
    g.heap.append((pointer, slot))
    g.stmt(s.body)
    g.release(*g.heap.pop())


def _is_for_some_lanes(body: Stmt, memory: Var) -> bool:
    """Whether something of ``memory`` is stored for some lanes of a vector only. What the others happen to hold is computed with, too, and
    takes some 150 cycles where that is a denormal number."""
    if IfThenElse not in kinds(body):
        return False
    parts = (n for n in statements(body) if isinstance(n, IfThenElse) and n.condition.dtype.lanes > 1)
    return any(isinstance(n, BufferStore) and n.buffer.data is memory for part in parts for n in statements(part))


def _heap(g: Generator, s: Allocate, slot: str | None) -> str:
    """Memory for ``s``, aligned to a cache line, from its ``slot`` or the C library; failure is a run-time error."""
    out = g.out
    total = str(s.dtype.bytes)
    for extent in (factor for e in s.extents for factor in _factors(e)):
        size = g.index(extent)
        if total.startswith("%") or size.startswith("%"):
            total = _product(g, total, size, s.buffer_var.name)
        else:
            total = str(int(total) * int(size))
    if not total.startswith("%") and int(total) > MOST_BYTES:
        raise g.error(f"`{s.buffer_var.name}` takes {total} bytes, more than any machine can address")
    if total.startswith("%"):
        rounded = out.value(f"and i64 {out.value(f'add i64 {total}, 127')}, -64")
    else:
        rounded = str(_rounded(int(total)))
    if slot is not None:
        pointer = out.value(f"call noalias align 64 ptr @__tir_take(ptr {slot}, i64 {rounded})")
    else:
        pointer = allocate(out, rounded)
    g.check(out.value(f"icmp ne ptr {pointer}, null"), f"{g.func_name}: out of memory allocating `{s.buffer_var.name}`")
    return pointer


def _rounded(nbytes: int) -> int:
    """Whole cache lines, and one more to read ahead in."""
    return (nbytes + 127) & -64


def _factors(extent: Any) -> list[Any]:
    """The factors of ``extent``: flattening multiplied the buffer's extents."""
    return [*_factors(extent.a), *_factors(extent.b)] if isinstance(extent, Mul) else [extent]


def _product(g: Generator, a: str, b: str, buffer: str) -> str:
    """A product of sizes in bytes, checked for overflow, which would allocate too little."""
    out = g.out
    both = out.call("llvm.smul.with.overflow.i64", "{i64, i1}", [("i64", a), ("i64", b)])
    fits = out.value(f"xor i1 {out.value(f'extractvalue {{i64, i1}} {both}, 1')}, true")
    g.check(fits, f"{g.func_name}: out of memory allocating `{buffer}`")
    return out.value(f"extractvalue {{i64, i1}} {both}, 0")


@stmt_rule(AllocateConst)
def _allocate_const(g: Generator, s: AllocateConst) -> None:
    from tir.interp.numbers import constant_data

    data = constant_data(s.data, s.dtype).tobytes()
    g.env[s.buffer_var] = g.out.module.constant(data, 64, s.buffer_var.name)
    g.stmt(s.body)
