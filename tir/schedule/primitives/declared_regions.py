"""Declared access regions: annotate_buffer_access, unsafe_hide_buffer_access."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...analysis.block_regions import explicit_numbers
from ...analysis.index import BlockRef
from ...annotations import EXPLICIT
from ...arith import Analyzer
from ...arith.index_map import IndexMap, RangesMap
from ...buffer import Buffer, BufferRegion, IterVar, Range, index_expr
from ...dtype import INT32
from ...errors import require
from ...expr import Expr, IntImm, Var, as_expr, const
from ...node import frozendict
from ...stmt import Block
from ..primitive import BadArgument, primitive
from ..state import State, pick_buffer


@dataclass(frozen=True)
class RegionsPlan:
    old: Block
    new: Block
    recorded: dict[str, Any]


def _side(buf_type: str) -> str:
    require(buf_type in ("read", "write"), "a block has no buffers `{0}`", buf_type, legal='"read" or "write"')
    return buf_type + "s"


def _check_annotate_buffer_access(
    state: State,
    block: BlockRef,
    buffer_index: int | str | Buffer,
    buf_type: str,
    gen_new_ranges: IndexMap | Callable[..., Any],
) -> RegionsPlan:
    """Declare the region of a buffer that ``block`` accesses, where you know it better than it can be inferred.

    ``gen_new_ranges(*iterators)`` gives for each axis an index, or a pair (begin, end). It is not checked: if the
    region omits an element that the block accesses, later steps may be wrong.

    Before, and after ``sch.annotate_buffer_access("B", 0, "read", lambda vi: [(vi, vi + 2)])``::

        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.reads(A[0:9])
                T.writes(B[vi])
                B[vi] = A[vi] + A[vi + 1]

        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi : vi + 2])
                T.writes(B[vi])
                T.block_attr({"explicit_read_region": [0]})
                B[vi] = A[vi] + A[vi + 1]

    Raises ``ScheduleError`` when the number of ranges is not the number of axes.
    """
    side = _side(buf_type)
    buffer = pick_buffer(block, side, buffer_index)
    regions = getattr(block.block, side)
    number = next(n for n, r in enumerate(regions) if r.buffer is buffer)
    if isinstance(buffer_index, int):
        number = buffer_index
    iters = block.block.iter_vars
    made = _ends(gen_new_ranges, iters, buffer)
    ends = made.map_indices([i.var for i in iters], Analyzer({i.var: i.dom for i in iters if i.dom is not None}))
    require(len(ends) == 2 * buffer.ndim,
            "{0} ranges are given for the {1} axes of buffer {2}",
            len(ends) // 2, buffer.ndim, buffer.name, legal=f"{buffer.ndim} pairs of begin and end")  # fmt: skip
    analyzer = Analyzer()
    ranges = tuple(Range(a, analyzer.simplify(b - a)) for a, b in zip(ends[::2], ends[1::2]))
    changed = tuple(BufferRegion(buffer, ranges) if n == number else r for n, r in enumerate(regions))
    key = EXPLICIT[side]
    marked = tuple(dict.fromkeys((*explicit_numbers(block.block, side), number)))
    notes = frozendict({**block.block.annotations, key: marked})
    return RegionsPlan(
        block.block, block.block.replace(**{side: changed}, annotations=notes), {"gen_new_ranges": RangesMap(made)}
    )


def _ends(given: Any, iters: Sequence[IterVar], buffer: Buffer) -> IndexMap:
    """Begin and end of each axis, in turn, as one index map over the iterators."""
    if isinstance(given, (IndexMap, RangesMap)):
        return given if isinstance(given, IndexMap) else given.ends
    if not callable(given):
        raise BadArgument(f"gen_new_ranges is a function of the block's iterators, not {given!r}")
    variables = tuple(Var(i.var.name, i.dtype) for i in iters)
    try:
        axes: Any = given(*variables)
    except Exception as error:  # whatever the user's function raises
        raise BadArgument(f"gen_new_ranges takes the {len(iters)} iterators of the block: {error}") from error
    ends: list[Expr] = []
    for n, axis in enumerate(axes if isinstance(axes, (list, tuple)) else [axes]):
        if isinstance(axis, (list, tuple)) and len(axis) != 2:
            raise BadArgument(f"a range is an index or a pair (begin, end), not {axis!r}")
        dtype = buffer.shape[n].dtype if n < buffer.ndim else INT32
        try:
            begin, end = axis if isinstance(axis, (list, tuple)) else (axis, as_expr(axis, dtype) + 1)
            pair = [index_expr(as_expr(e, dtype)) for e in (begin, end)]
        except (TypeError, ValueError) as error:
            raise BadArgument(f"a range is an index or a pair (begin, end): {error}") from error
        ends += [const(e.value, dtype) if isinstance(e, IntImm) else e for e in pair]  # numbers are of the axis's type
    return IndexMap(variables, tuple(ends))


@primitive(check=_check_annotate_buffer_access)
def annotate_buffer_access(state: State, plan: RegionsPlan) -> State:
    return state.replace(plan.old, plan.new)


@primitive()
def unsafe_hide_buffer_access(state: State, block: BlockRef, buf_type: str, buf_index_array: Sequence[int]) -> State:
    """Remove regions from a block's declared reads or writes; ``buf_index_array`` has their numbers.

    Unsafe, as the name says: later steps no longer see the dependences through them.

    Before, and after ``sch.unsafe_hide_buffer_access("B", "read", [1])``::

        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi], C[vi])
                T.writes(B[vi])
                B[vi] = A[vi] + C[vi]

        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] + C[vi]

    Raises ``ScheduleError`` for a number without a region.
    """
    side = _side(buf_type)
    regions = getattr(block.block, side)
    gone = {int(n) for n in buf_index_array}
    bad = [n for n in sorted(gone) if not 0 <= n < len(regions)]
    require(not bad,
            "block {0} {1} {2} regions, so there is no number {3}", block, side, len(regions), bad[0] if bad else 0,
            legal=[f"{n} ({r.buffer.name})" for n, r in enumerate(regions)], nodes=())  # fmt: skip
    kept = tuple(r for n, r in enumerate(regions) if n not in gone)
    return state.replace(block.block, block.block.replace(**{side: kept}))
