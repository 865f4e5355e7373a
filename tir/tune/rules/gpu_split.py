"""A GPU: a reduction of few results as partial results, so that every multiprocessor has some (split-k)."""

from __future__ import annotations

from collections.abc import Sequence

from ...schedule import Schedule
from ...target import GPUS
from ..contracted import Contraction
from ..nest import Axis, Nest, volume
from ..space import Env, Fork, choose, rule
from .gpu_threads import THREADS, across
from .reductions import walks

TILE = 64 * 64  # results of the tile of a thread block, at least, of a contraction that has as many
LONG = 256  # terms of a partial result, at least
COLUMN = 32  # likewise, where one thread adds them up
FEWEST = 4  # parts that are worth a second kernel
OFF = 2  # times as many parts as wanted, or as few, at which one of them is rather shorter than the others


@rule(targets=GPUS, order=34)
def split_reduction(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Factor out chunks of the longest reduced axis; a second block adds up what the chunks make."""
    from ..gpu_model import chip_of

    nest = Nest.of(sch, block)
    if nest is None or nest.reduction is None or nest.block.init is None or any(a.extent is None for a in nest.axes):
        return []
    longest = max(nest.reduce, key=lambda a: a.size)
    found = Contraction.of(nest)
    by_block = walks(nest, longest)  # a block of threads adds up neighbours
    tiles = max(1, volume(nest.spatial) // (TILE if found else 1 if by_block else THREADS))
    wanted = 2 * chip_of(env.target).multiprocessors / tiles
    most = min(longest.size, 4 * wanted, volume(nest.reduce) / (LONG if found or by_block else COLUMN))
    wanted = min(wanted, most)
    parts = _parts(longest.size, wanted, int(most))
    if not found and by_block and all(_off(p, wanted) > OFF for p in parts):
        parts = [int(wanted)]
    if wanted < 2 or not parts or parts[-1] < FEWEST:
        return []
    return [lambda: _split(sch.copy(), nest, longest, parts, wanted, env), sch]


def _off(parts: int, wanted: float) -> float:
    return max(parts / wanted, wanted / parts)


def _parts(size: int, wanted: float, most: int) -> list[int]:
    """Numbers of equal parts of an axis, at most ``most``: of those between two powers of two the nearest to ``wanted``."""
    found: dict[int, int] = {}
    for p in range(2, most + 1):
        if size % p == 0:
            at = p.bit_length()
            found[at] = min(found.get(at, p), p, key=lambda n: _off(n, wanted))
    return list(found.values())


def _split(sch: Schedule, nest: Nest, longest: Axis, parts: Sequence[int], wanted: float, env: Env) -> Schedule:
    count = choose(sch, parts, [_off(p, wanted) for p in parts])
    chunk, _ = sch.split(longest.loop, [count, None])
    # a block of threads adds up parts that lie beside each other
    partial = sch.rfactor(chunk, 0 if Contraction.of(nest) or not walks(nest, longest) else len(nest.spatial))
    if longest.size % parts[0] == 0:
        return sch
    loops = sch.get_loops(partial)
    results = [*(a.loop for a in nest.spatial), chunk]
    sch.reorder(*results, *(loop for loop in loops if loop not in results))
    return across(sch, results, loops, env) or sch
