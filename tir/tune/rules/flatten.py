"""Products whose vectors run along a short axis, such as a row of pixels: axes that the result walks through as through one
become one, and what they read is gathered into panels, unless it is walked through so, too."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from ...arith.index_map import IndexMap
from ...expr import Expr, Var
from ...schedule import Schedule
from ...target import LINE
from ..contracted import THIN, Contraction
from ..nest import Access, Axis, Nest, continued, epilogue, volume
from ..space import Env, rule
from ..tile_costs import WAY
from .inline import padded_in_place

ENOUGH = 32  # columns along one axis: with more, an empty part of the last vector costs less than gathering
# how many vectors of products take as long as gathering one from neighbours, under a mask; else half as many as it has lanes
IN_RUNS = 2


@rule(targets=("llvm",), order=38)
def flatten(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Make one axis of those along which the result is contiguous: of what is walked through as the result is, and where vectors along
    the last would be partly empty.

    Few rows read in place what is walked through so, and so do many where the lines of the terms are whole and in sets of their own.
    What is gathered is padded on the way where the image without padding is read in runs along that axis, too.
    """
    nest = Nest.of(sch, block)
    found = nest and Contraction.of(nest)
    if not found or not found.rows:
        return []
    lanes = env.lanes(found.nest.stores[0].buffer.dtype.bits)
    stores = found.nest.stores[:1]
    columns = [a for a in found.columns if a.size > 1]  # no copy is indexed by an axis of one element
    together = continued(found.lane, columns, stores)
    if len(together) < 2:
        return []
    in_place = found.panel.stride(found.lane.var) == 1
    walked = in_place and continued(found.lane, columns, [*stores, found.panel]) == together
    if walked and (volume(found.rows) <= THIN or _in_lines(found)):
        made = sch.copy()
        made.compute_inline(_flatten(made, found, together))
        return [made]
    saved = inf if walked else _saved(found, lanes)
    if saved < IN_RUNS:
        return []
    made = sch.copy()
    gather = _flatten(made, found, together)
    padding = made.copy()
    nest = padded_in_place(padding, gather)
    if nest and len(nest.loads) == 1 and _is_in_runs(padding, nest, block):
        return [padding]
    return [made] if 2 * saved >= lanes else []


def _saved(found: Contraction, lanes: int) -> float:
    """The share of vectors along the last axis alone that is empty, for all rows; if most of a vector is, there may be none."""
    size = found.lane.size
    if found.lane.extent is None and size % lanes == 0:
        size -= lanes // 4  # of sizes that count as this most are less
    if size % lanes == 0 or size > ENOUGH:
        return 0.0
    return (-(-size // lanes) * lanes / size - 1) * volume(found.rows) if 2 * size >= lanes else inf


def _in_lines(found: Contraction) -> bool:
    """Whether what is read for each term begins with a cache line, and not all with lines of one set."""
    apart = [(found.panel.stride(a.var) or 1) * found.element for a in found.terms if a.size > 1]
    return all(step % LINE == 0 and step % WAY for step in apart)


def _is_in_runs(sch: Schedule, gather: Nest, product: str) -> bool:
    """Whether a block without producers reads neighbours where the vectors of the product do."""
    reader = Nest.of(sch, product)
    made = reader and Contraction.of(reader)
    if not made or sch.get_producers(gather.name):
        return False
    at = made.panel.places[made.lane.var]
    return any(gather.loads[0].stride(v) == 1 for v, n in gather.stores[0].places.items() if n == at)


def _flatten(sch: Schedule, found: Contraction, together: Sequence[Axis]) -> str:
    """Index operand, block and result by one axis in place of ``together``; the name of the block that gathers the operand."""
    name = found.nest.name
    reads = [region.buffer for region in found.nest.block.reads]
    gather = sch.reindex(name, ("read", reads.index(found.panel.buffer)))
    copy = sch.reindex(name, ("write", 0))
    after = Nest.of(sch, copy.name)
    last = after and epilogue(sch, after)
    if last:
        sch.compute_inline(copy)
    join(sch, name, gather.name, last or copy.name, together)
    return gather.name


def join(sch: Schedule, name: str, gather: str, copy: str, together: Sequence[Axis]) -> None:
    """Index a block by one axis in place of ``together``, and so what ``gather`` writes for it and ``copy`` reads of it."""
    variables, sizes = [a.var for a in together], [a.length for a in together]
    block = sch.get(name)
    _join(sch, name, gather, "write", variables, sizes)
    _join(sch, name, copy, "read", variables, sizes)
    iterators = {i.var: n for n, i in enumerate(block.iter_vars)}
    sch.transform_block_layout(name, joined([iterators[v] for v in variables], sizes, len(iterators)))


def _join(sch: Schedule, product: str, other: str, side: str, variables: Sequence[Var], sizes: Sequence[Expr]) -> None:
    """Index by one axis what another block writes for the product, or reads of it, and the iterators of that block, unless
    it has one iterator for them already, which it reads the digits of."""
    mine, theirs = (Nest.of(sch, name) for name in (product, other))
    if mine is None or theirs is None:
        return
    buffers = [a.buffer for a in mine.accesses]
    number, access = next((n, a) for n, a in _regions(theirs, side) if a.buffer in buffers)
    places = next(a for a in mine.accesses if a.buffer is access.buffer).places
    at = [places[v] for v in variables]
    iterators = {i.var: n for n, i in enumerate(theirs.block.iter_vars)}
    positions = {place: iterators[v] for v, place in access.places.items()}
    sch.transform_layout(other, (side, number), joined(at, sizes, len(access.indices)))
    if all(n in positions for n in at):
        sch.transform_block_layout(other, joined([positions[n] for n in at], sizes, len(iterators)))


def _regions(nest: Nest, side: str) -> list[tuple[int, Access]]:
    """The accesses of a block, each with its number among the regions that it reads or writes."""
    regions = nest.block.writes if side == "write" else nest.block.reads
    return [(n, a) for n, r in enumerate(regions) for a in nest.accesses if a.buffer is r.buffer]


def joined(places: Sequence[int], sizes: Sequence[Expr | int], count: int) -> IndexMap:
    """The map of ``count`` indices that makes one, at the last of ``places``, of those at ``places``, of these sizes."""

    def one(*point: Expr) -> tuple[Expr, ...]:
        whole = point[places[0]]
        for place, size in zip(places[1:], sizes[1:]):
            whole = whole * size + point[place]
        return tuple(whole if n == places[-1] else e for n, e in enumerate(point) if n not in places[:-1])

    return IndexMap.from_func(one, ndim=count)
