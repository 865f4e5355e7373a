"""Operations on rows, such as softmax and norms: all stages of a row are computed while it is in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...analysis.index import index_of
from ...schedule import Schedule
from ...schedule.queries import consumers_of, producers_of
from ..contracted import Contraction
from ..nest import Nest, are_as_long, reach
from ..space import Env, rule
from .reductions import fills, is_short, parts_of, place_parts, slides_close, walks
from .spatial import UNROLL, share_out, stream, vectorize

LONG = 16  # operations of a function of one number


@rule(targets=("llvm",), order=30)
def row_fuse(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Compute the stages before an elementwise block of rows in each of its rows, the sums among them as partial sums."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduce or len(nest.spatial) < 2 or nest.contiguous() is not nest.axes[-1]:
        return []
    stages = stages_of(sch, nest, lambda stage: not _is_product(stage))
    sums = [s for s in stages if s.reduce]
    lanes = env.lanes(nest.width)
    if not sums or not are_of_rows(stages, nest) or any(_is_apart(s, nest, lanes) for s in sums):
        return []
    if nest.axes[-1].size <= UNROLL * lanes and any(_takes_long(s, nest) for s in stages):
        return []
    made = sch.copy()
    parts = {stage.name: parts_of(made, stage, lanes) for stage in sums}
    *rows, column = nest.axes
    part = column.size if is_short(column.size, lanes) else lanes  # of a vector, at least
    row = rows[-1].loop
    for stage in reversed(stages):
        made.compute_at(stage.name, row, preserve_unit_loops=True)
        place_parts(made, parts.get(stage.name, []), row, lanes)
        if not stage.reduce and _has_columns(stage, nest):
            vectorize(made, made.get_loops(stage.name)[-1], column.size, lanes, UNROLL, part)
    vectorize(made, column.loop, column.size, lanes, UNROLL, part)
    share_out(made, [a.loop for a in rows], sum(s.runs * s.work for s in (nest, *stages)), env)
    stream(made, nest, env)
    return [made]


def stages_of(sch: Schedule, nest: Nest, taken: Callable[[Nest], bool] | None = None) -> list[Nest]:
    """The blocks that compute what ``nest`` reads, in program order, which nothing else reads: those ``taken``, or else all,
    and none if one of all is no nest."""

    def is_taken(name: str) -> bool:
        stage = Nest.of(sch, name)
        return taken is None or (stage is not None and taken(stage))

    blocks = index_of(sch.func).blocks
    inside = {nest.name}
    while True:
        read = {p.name for name in inside for p in producers_of(blocks[name])} - inside
        more = {name for name in blocks if name in read and is_taken(name)}  # in order, as the trace has what they ask
        mine = {name for name in more if all(c.name in inside | more for c in consumers_of(blocks[name]))}
        if not mine:
            break
        inside |= mine
    found = [Nest.of(sch, name) for name in blocks if name in inside - {nest.name}]
    stages = [s for s in found if s is not None]
    return stages if len(stages) == len(found) else []


def _is_product(stage: Nest) -> bool:
    product = Contraction.of(stage)
    return product is not None and bool(product.rows)


def _is_apart(stage: Nest, of: Nest, lanes: int) -> bool:
    """Whether a sum walks along the last of several axes that it reduces, or for each element of a row: a rule of reductions
    makes vectors of it; or is of windows that slide along the row: a rule keeps these in registers."""
    *others, along = stage.reduce
    each = _has_columns(stage, of)
    is_long = (bool(others) or each) and walks(stage, along) and fills(along, lanes)
    return is_long or (each and slides_close(stage, stage.spatial[-1], lanes // 4))


def _takes_long(stage: Nest, of: Nest) -> bool:
    """Whether a stage computes a function of one number of each row, such as its logarithm: apart from short rows, it is computed of vectors."""
    return not stage.reduce and not _has_columns(stage, of) and stage.work >= LONG


def _has_columns(stage: Nest, of: Nest) -> bool:
    """Whether a stage has results for each element of a row, not one for the row (maybe along an axis of one element)."""
    return len(stage.spatial) == len(of.axes) and stage.spatial[-1].extent != 1


def are_of_rows(stages: Sequence[Nest], of: Nest) -> bool:
    """Whether all stages have the rows of ``of``, and a row of results needs no more of them than that row of each."""
    rows = len(of.axes) - 1
    return all(_is_like_rows(s, of) for s in stages) and all(
        move_together(s, [*stages, of], slice(0, rows)) for s in stages
    )


def move_together(stage: Nest, readers: Sequence[Nest], axes: slice) -> bool:
    """Whether in each iteration of ``axes``, loops of all of them, ``readers`` read the results of ``stage`` of that iteration
    alone."""
    return all(
        reach(stage, reader, one, other) == (1, 1)
        for reader in readers
        if reader.reads(stage)
        for one, other in zip(stage.spatial[axes], reader.spatial[axes])
    )


def _is_like_rows(stage: Nest, of: Nest) -> bool:
    """Whether a stage has as many rows as ``of``, and little work for each beside a row of columns."""
    rows, own = of.axes[:-1], stage.spatial
    if _is_product(stage) or len(stage.spatial) + len(stage.reduce) < len(stage.axes):
        return False
    return are_as_long(own, rows) and len(own) <= len(of.axes)
