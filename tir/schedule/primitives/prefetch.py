"""Requesting cache lines before they are read or written: prefetch."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.block_regions import accessed_box
from ...analysis.evaluation import as_total
from ...analysis.index import BlockRef, LoopRef
from ...analysis.users import regions_of
from ...arith import Analyzer
from ...buffer import Buffer, IterVar, Range
from ...errors import require
from ...expr import TRUE, BufferLoad, Expr, IntImm, Var, const, max_
from ...levels import ends_with_launch
from ...op import call
from ...script.printer import short_text
from ...stmt import VECTORIZED, Block, BlockRealize, Evaluate, Stmt, nest, seq
from ...visit import has_load, substitute, uses_var
from ..primitive import primitive
from ..state import State, require_above
from .storage import pick_any

CACHE_LINE = 64  # bytes


@primitive(group="memory")
def prefetch(
    state: State,
    loop: LoopRef,
    block: BlockRef,
    read_buffer_index: int | str | Buffer,
    offset: int = 1,
    locality: int = 3,
) -> State:
    """Request, at the start of each iteration of ``loop``, the cache lines that are accessed ``offset`` iterations later.

    ``read_buffer_index`` is the number of a region that ``block`` reads, or names a buffer; what all blocks under ``loop`` read
    of it, or write where ``block`` does, is requested, one address a line of 64 bytes. ``locality`` is the cache that receives the lines: 3 the first,
    2 the second, 1 the third, 0 the one in which they displace least. Nothing is stored and no value changes: lines past the end of the buffer may be
    requested.

    Raises ``ScheduleError`` when ``loop`` is not above ``block`` or is vectorized, for a buffer that is not in global
    memory, for an ``offset`` below 1, another ``locality``, and where each iteration reads the same elements, or elements at loaded indices.

    Before, and after ``sch.prefetch("i", "C", "A", 2)``::

        for i, j in T.grid(8, 32):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * 2.0

        for i in range(8):
            with T.block("A_prefetch"):
                v0 = T.axis.opaque(8, i)
                for ax1 in range(2):
                    T.evaluate(T.prefetch(T.address_of(A[v0 + 2, ax1 * 16]), 0, 3, 1))
            for j in range(32):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj] * 2.0
    """
    require_above(state, loop, block)
    buffer = pick_any(block, ("read", read_buffer_index) if isinstance(read_buffer_index, int) else read_buffer_index)
    side = "writes" if regions_of(block.block.writes, buffer) else "reads"
    require(offset >= 1, "what is read {0} iterations later is not ahead", offset, legal="an offset of at least 1")
    require(0 <= locality <= 3, "{0} is no locality", locality, legal="0, 1, 2 or 3, the closest")
    require(not ends_with_launch(buffer.scope),
            "buffer {0} is in {1} memory, which has no cache",
            buffer.name, buffer.scope, nodes=[block.node], legal="a buffer in global memory")  # fmt: skip
    require(loop.node.kind != VECTORIZED,
            "the iterations of loop {0} are one instruction", loop.node, legal="prefetch at a loop around it")  # fmt: skip
    users = [b for b in state.index.blocks_below(loop) if regions_of(getattr(b.block, side), buffer)]
    box = accessed_box(users, buffer, loop, side)
    assert box is not None  # ``block`` is one of them
    require(any(uses_var(r, loop.var) for r in box),
            "each iteration of loop {0} accesses the same of {1}",
            loop.node, buffer.name, legal="a loop with which the region moves")  # fmt: skip
    loaded = next((e for r in box for e in (r.min, r.extent) if has_load(e)), None)
    require(
        loaded is None,
        "the region of {1} depends on loaded data (`{0}`), which may be out of bounds past the last iteration of loop {2}",
        lambda: short_text(loaded),
        buffer.name,
        loop.node,
    )
    name = state.fresh_block_name(f"{buffer.name}_prefetch")
    request = _request(name, loop, box, buffer, offset, (side, locality))
    return state.replace(loop.node, loop.node.with_body(seq([request, loop.node.body])))


def _request(name: str, loop: LoopRef, box: Sequence[Range], buffer: Buffer, offset: int, how: tuple[str, int]) -> Stmt:
    """The block that requests ``box`` as it is ``offset`` iterations later; the loops that it moves with are iterators."""
    around = [p for p in [*loop.loops(), loop] if any(uses_var(r, p.var) for r in box)]
    iters = tuple(IterVar(p.range, Var(f"v{n}", p.var.dtype), "opaque") for n, p in enumerate(around))
    own: dict[Var, Expr] = {p.var: i.var for p, i in zip(around, iters)}
    own[loop.var] = own[loop.var] + offset
    known = Analyzer({i.var: i.dom for i in iters if i.dom is not None})
    known.assume_sizes([buffer])
    ahead = (substitute(r, own) for r in box)
    body = _lines(buffer, tuple(Range(*(as_total(e, known) for e in (r.min, r.extent))) for r in ahead), *how)
    return BlockRealize(tuple(p.var for p in around), TRUE, Block(iters, (), (), name, body))


def _lines(buffer: Buffer, box: Sequence[Range], side: str, locality: int) -> Stmt:
    """Requests of one address for each line of each row of ``box``."""
    analyzer = Analyzer()
    loops: list[tuple[Var, Expr]] = []
    point: list[Expr] = []
    for axis, bounds in enumerate(box):
        step = max(1, CACHE_LINE * 8 // buffer.dtype.bits) if axis == len(box) - 1 else 1
        count = analyzer.simplify((bounds.extent + (step - 1)) // step)
        if analyzer.can_prove_equal(count, const(1, count.dtype)):
            point.append(analyzer.simplify(bounds.min))
            continue
        var = Var(f"ax{axis}", count.dtype)
        loops.append((var, count if isinstance(count, IntImm) else max_(count, 0)))
        point.append(analyzer.simplify(bounds.min + var * step))
    address = call("address_of", BufferLoad(buffer, tuple(point)), dtype="handle")
    return nest(loops, Evaluate(call("prefetch", address, int(side == "writes"), locality, 1)))
