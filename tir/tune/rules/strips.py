"""Stencils in stages, such as a blur along both axes: strips of rows, each stage computed for a strip while that is in the
cache."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...annotations import PARTITION_HINT
from ...schedule import LoopRV, Schedule
from ...stmt import SERIAL
from ...target import LINE
from ..nest import Axis, Nest, reach, volume
from ..space import Env, Fork, choose, rule
from ..tile_costs import uneven
from .row_fuse import stages_of
from .spatial import UNROLL, row_by_row, share_out, stream, vectorize, without_borders

HEIGHTS = (32, 16, 64, 8)  # most rows of a strip, best first
LONG = 6  # lines: longer rows are moved apart to begin on lines, at little cost of L1
LEAST = 8  # rows of a strip: of fewer, too many are computed twice


@rule(targets=("llvm",), order=35)
def strips(sch: Schedule, block: str, env: Env) -> Sequence[Fork]:
    """Compute the stages before a block of rows in strips of its rows, if it reads neighbours of theirs; on one thread a row at a time,
    and keep the last rows of each."""
    nest = Nest.of(sch, block)
    stages = [] if nest is None or nest.reduce else stages_before(sch, nest)
    if nest is None or not stages or any(volume(s.axes) >= 2 * volume(nest.spatial) for s in stages):
        return []
    row = nest.axes[-2]
    if row.extent is None:
        return []
    ways = [partial(_row_by_row, sch, nest, stages, env)] if _threads([nest, *stages], env) == 1 else []
    return [*ways, partial(_strip_by_strip, sch, nest, stages, env)]


def _row_by_row(sch: Schedule, nest: Nest, stages: Sequence[Nest], env: Env) -> Schedule:
    """Each row of the result, after the row of each stage that it is the first to read; those before are kept in the L1 cache."""
    made = sch.copy()
    row_by_row(made, nest.axes[-2].loop, stages)
    _on_lines(made, stages)
    for each in (*stages, nest):
        vectorize(made, made.get_loops(each.name)[-1], each.axes[-1].size, env.lanes(each.width), UNROLL)
        for loop in made.get_loops(each.name):
            if made.get(loop).kind == SERIAL and PARTITION_HINT not in made.get(loop).annotations:
                made.annotate(loop, PARTITION_HINT, 1)
    stream(made, nest, env)
    return made


def _strip_by_strip(sch: Schedule, nest: Nest, stages: Sequence[Nest], env: Env) -> Schedule:
    """Some rows of the result, after the rows of each stage that these need."""
    made = sch.copy()
    strip, _ = split_rows(made, nest, nest.axes[-2], stages, env)
    vectorize(made, nest.axes[-1].loop, nest.axes[-1].size, env.lanes(nest.width), UNROLL)
    in_strips(made, nest, stages, [*(a.loop for a in nest.axes[:-2]), strip], env)
    without_borders(made, nest, nest.axes[-2:])
    stream(made, nest, env)
    return made


def _on_lines(sch: Schedule, stages: Sequence[Nest]) -> None:
    """Rows of stages that are no whole lines of the cache begin on lines, so that no vector that is stored lies across two, and are an odd number of
    these apart: they are spread over the sets of the L1 cache. Short rows would take much more of it."""
    for stage in stages:
        line, size = LINE // stage.stores[0].buffer.dtype.bytes, stage.axes[-1].size
        if size % line and size > LONG * line:
            sch.storage_align(stage.name, 0, -2, 2 * line, line)


def stages_before(sch: Schedule, nest: Nest) -> list[Nest]:
    """The blocks before a nest that can be computed for strips of its rows; none if not all can."""
    if len(nest.spatial) < 2 or nest.contiguous() is not nest.spatial[-1]:
        return []
    stages = stages_of(sch, nest)
    near = all(_is_like(stage, nest) and _is_near(stage, [*stages, nest]) for stage in stages)
    return stages if near else []


def split_rows(sch: Schedule, nest: Nest, row: Axis, stages: Sequence[Nest], env: Env) -> list[LoopRV]:
    """The loop of strips of ``row``, and that of the rows of each: of a height that gives threads equal shares, if one does."""
    heights = list(dict.fromkeys(_even(row.size, most) for most in HEIGHTS))
    around = volume(nest.spatial[: nest.spatial.index(row)])
    threads = _threads([nest, *stages], env)
    shares = [uneven(around * -(-row.size // height), threads) for height in heights]
    height = choose(sch, heights, [(1 + 0.1 * n) * share for n, share in enumerate(shares)])
    return sch.split(row.loop, [None, height])


def _threads(nests: Sequence[Nest], env: Env) -> int:
    """The threads that what is computed together is shared out to."""
    return env.threads if sum(n.runs * n.work for n in nests) >= env.parallel_from else 1


def in_strips(sch: Schedule, nest: Nest, stages: Sequence[Nest], around: list[LoopRV], env: Env) -> None:
    """Compute the stages, as vectors, for each strip (the last loop of ``around``), and share strips out."""
    for stage in reversed(stages):
        sch.compute_at(stage.name, around[-1], preserve_unit_loops=True)
    for stage in stages:
        vectorize(sch, sch.get_loops(stage.name)[-1], stage.axes[-1].size, env.lanes(stage.width), UNROLL)
        without_borders(sch, stage, stage.axes[-2:])
    _on_lines(sch, stages)
    share_out(sch, around, sum(s.runs * s.work for s in (nest, *stages)), env)


def _even(rows: int, most: int) -> int:
    """The height of equal strips of at most ``most`` rows, of which one is kept at a time; ``most`` if there is none."""
    found = next((h for h in range(min(most, rows), 0, -1) if rows % h == 0), 1)
    return found if found >= LEAST else min(most, rows)


def _is_like(stage: Nest, nest: Nest) -> bool:
    """Whether a stage is elementwise, of rows as those of ``nest`` with a few more around them."""
    results = nest.spatial
    if stage.reduce or len(stage.axes) != len(results) or stage.contiguous() is not stage.axes[-1]:
        return False
    return all(_near(a, b) for a, b in zip(stage.axes, results))


def _is_near(stage: Nest, readers: Sequence[Nest]) -> bool:
    """Whether what reads a stage walks along each of its axes with its own, so that a strip needs little more than a strip."""
    return all(
        (found := reach(stage, reader, one, other)) is not None and found[0] > 0
        for reader in readers
        if reader.reads(stage)
        for one, other in zip(stage.axes, reader.spatial)
    )


def _near(one: Axis, other: Axis) -> bool:
    return one.extent is not None and other.extent is not None and other.size <= one.size
