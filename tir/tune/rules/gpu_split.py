"""A GPU: a reduction of few results as partial results, so that every multiprocessor has some (split-k)."""

from __future__ import annotations

from ...schedule import Schedule
from ...target import GPUS
from ..nest import Nest, volume
from ..space import Env, Fork, choose, rule
from ..staging import MULTIPROCESSORS
from .contraction import Contraction

TILE = 64 * 64  # results of the tile of a thread block, at least, of a contraction that has as many
LONG = 256  # terms of a partial result, at least
FEWEST = 4  # parts that are worth a second kernel
PARTS = (2, 4, 8, 16, 32, 64, 128, 256, 512)


@rule(targets=GPUS, order=34)
def split_reduction(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Factor out chunks of the longest reduced axis; a second block adds up what the chunks make."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduction is None or nest.block.init is None or any(a.extent is None for a in nest.axes):
        return []
    longest = max(nest.reduce, key=lambda a: a.size)
    found = Contraction.of(nest)
    tiles = max(1, volume(nest.spatial) // (TILE if found else 1))
    wanted = 2 * MULTIPROCESSORS / tiles
    terms = volume(nest.reduce)
    parts = [p for p in PARTS if p < 4 * wanted and longest.size % p == 0 and terms >= p * LONG]
    if wanted < 2 or not parts or parts[-1] < FEWEST:
        return []
    return [lambda: _split(sch.copy(), nest, longest.var.name, parts, wanted), sch]


def _split(sch: Schedule, nest: Nest, axis: str, parts: list[int], wanted: float) -> Schedule:
    loop = next(a.loop for a in nest.reduce if a.var.name == axis)
    count = choose(sch, parts, [max(p / wanted, wanted / p) for p in parts])
    chunk, _ = sch.split(loop, [count, None])
    sch.rfactor(chunk, 0)
    return sch
