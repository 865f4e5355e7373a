"""Stencils in stages, such as a blur along both axes: strips of rows, each stage computed for a strip while that is in the
cache."""

from __future__ import annotations

from ...schedule import Schedule
from ..nest import Axis, Nest, volume
from ..space import Env, choose, rule
from .row_fuse import stages_of
from .spatial import UNROLL, share_out, stream, vectorize

HEIGHTS = (32, 16, 64, 8)  # most rows of a strip, best first
LEAST = 8  # rows of a strip: of fewer, too many are computed twice


@rule(targets=("llvm",), order=35)
def strips(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Compute the stages before a block of rows in strips of its rows, if it reads neighbours of theirs."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduce or len(nest.spatial) < 2 or nest.contiguous() is not nest.axes[-1]:
        return []
    row = nest.axes[-2]
    stages = stages_of(sch, nest)
    if not stages or row.extent is None or not all(_is_like(stage, nest) for stage in stages):
        return []
    made = sch.copy()
    heights = list(dict.fromkeys(_even(row.size, most) for most in HEIGHTS))
    height = choose(made, heights, [1 + 0.1 * n for n in range(len(heights))])
    strip, _ = made.split(row.loop, [None, height])
    for stage in reversed(stages):
        made.compute_at(stage.name, strip, preserve_unit_loops=True)
    for each in (*stages, nest):
        lanes = env.lanes(each.width)
        vectorize(made, made.get_loops(each.name)[-1], each.axes[-1].size, lanes, UNROLL)
    around = [a.loop for a in nest.axes[:-2]]
    share_out(made, [*around, strip], sum(s.runs * s.work for s in (nest, *stages)), env)
    stream(made, nest)
    return [made]


def _even(rows: int, most: int) -> int:
    """The height of equal strips of at most ``most`` rows, of which one is kept at a time; ``most`` if there is none."""
    found = next((h for h in range(min(most, rows), 0, -1) if rows % h == 0), 1)
    return found if found >= LEAST else min(most, rows)


def _is_like(stage: Nest, nest: Nest) -> bool:
    """Whether a stage is elementwise, of rows as those of ``nest`` with a few more around them."""
    if stage.reduce or len(stage.axes) != len(nest.axes) or stage.contiguous() is not stage.axes[-1]:
        return False
    return all(_near(a, b) for a, b in zip(stage.axes, nest.axes)) and volume(stage.axes) < 2 * volume(nest.axes)


def _near(one: Axis, other: Axis) -> bool:
    return one.extent is not None and other.extent is not None and other.size <= one.size
