"""Random schedules: primitives with random arguments, accepted ones kept, refused ones counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ScheduleError
from ..function import IRModule, PrimFunc
from ..stmt import Block, For
from ..visit import walk
from .choice import Choice, SeededChoice


@dataclass(frozen=True)
class Attempt:
    """One primitive that was tried: its name, its arguments, and the refusal (None when it was accepted)."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    refusal: ScheduleError | None = None

    @property
    def accepted(self) -> bool:
        return self.refusal is None

    def __str__(self) -> str:
        parts = [repr(a) for a in self.args] + [f"{k}={v!r}" for k, v in self.kwargs.items()]
        return f"sch.{self.name}({', '.join(parts)})"


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class _Scene:
    """The loops and blocks there are to choose from."""

    def __init__(self, sch: Any, choice: Choice):
        self.choice = choice
        func = sch.mod["main"] if "main" in sch.mod else next(iter(sch.mod.functions.values()))
        self.loops: list[For] = []
        self.blocks: list[Block] = []
        self.nests: list[list[str]] = []
        self.sch = sch
        for item in walk(func.body):
            if isinstance(item, For):
                self.loops.append(item)
            elif isinstance(item, Block) and item.name != "root":
                self.blocks.append(item)

    def block(self) -> Any:
        return self.sch.get_block(self.choice.pick([b.name for b in self.blocks]))

    def nest(self) -> list[Any]:
        """The loops around one block, as handles."""
        return list(self.sch.get_loops(self.block()))

    def loop(self) -> Any:
        loops = self.nest()
        if not loops:
            raise ScheduleError("the block has no loop to choose")
        return self.choice.pick(loops)


def _split(s: _Scene) -> Arguments:
    factors: list[Any] = [None, s.choice.number(1, 4)]
    if s.choice.pick((False, True)):
        factors.reverse()
    if s.choice.number(0, 3) == 0:
        factors.append(s.choice.number(1, 3))
    return (s.loop(), factors), {"preserve_unit_iters": s.choice.pick((True, False))}


def _adjacent(s: _Scene, most: int = 3) -> list[Any]:
    loops = s.nest()
    if len(loops) < 2:
        raise ScheduleError("the block has fewer than two loops")
    first = s.choice.number(0, len(loops) - 2)
    return loops[first : first + s.choice.number(2, most)]


def _fuse(s: _Scene) -> Arguments:
    return tuple(_adjacent(s)), {}


def _reorder(s: _Scene) -> Arguments:
    loops = s.nest()
    if len(loops) < 2:
        raise ScheduleError("the block has fewer than two loops")
    shuffled = []
    for _ in range(s.choice.number(2, len(loops))):
        shuffled.append(loops.pop(s.choice.number(0, len(loops) - 1)))
    return tuple(shuffled), {}


def _one_loop(s: _Scene) -> Arguments:
    return (s.loop(),), {}


def _bind(s: _Scene) -> Arguments:
    return (s.loop(), s.choice.pick(("blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread.x"))), {}


def _unit(s: _Scene) -> Arguments:
    return (s.choice.pick((s.block, s.loop))(),), {}


def _merge(s: _Scene) -> Arguments:
    return (s.loop(), s.loop()), {}


def _partition(s: _Scene) -> Arguments:
    return (s.loop(), [s.choice.number(1, 4), None]), {}


def _annotate(s: _Scene) -> Arguments:
    return (s.loop(), "pragma_note", s.choice.number(0, 3)), {}


def _one_block(s: _Scene) -> Arguments:
    return (s.block(),), {}


def _block_and_loop(s: _Scene) -> Arguments:
    return (s.block(), s.loop()), {}


def _cache(s: _Scene) -> Arguments:
    return (s.block(), s.choice.number(0, 1), s.choice.pick(("global", "local"))), {}


def _rfactor(s: _Scene) -> Arguments:
    return (s.loop(), s.choice.number(0, 1)), {}


LOOP_PRIMITIVES: dict[str, Callable[[_Scene], Arguments]] = {
    "split": _split, "fuse": _fuse, "reorder": _reorder, "parallel": _one_loop, "vectorize": _one_loop,
    "unroll": _one_loop, "bind": _bind, "add_unit_loop": _unit, "merge": _merge, "loop_partition": _partition,
    "annotate": _annotate,
}  # fmt: skip
BLOCK_PRIMITIVES: dict[str, Callable[[_Scene], Arguments]] = {
    "compute_at": _block_and_loop, "reverse_compute_at": _block_and_loop, "compute_inline": _one_block,
    "reverse_compute_inline": _one_block, "cache_read": _cache, "cache_write": _cache,
    "decompose_reduction": _block_and_loop, "rfactor": _rfactor,
}  # fmt: skip


def random_schedule(
    func: PrimFunc | IRModule, seed: int | Choice, steps: int = 6, primitives: Sequence[str] | None = None
) -> tuple[Any, list[Attempt]]:
    """A schedule of ``func`` after trying ``steps`` random primitives, and the attempts in order.

    ``primitives`` are names out of the loop family (the default) and the block family. A refusal is a
    ``ScheduleError``; any other exception is a fault of the primitive, and propagates.
    """
    from ..schedule import Schedule

    choice = SeededChoice(seed) if isinstance(seed, int) else seed
    table = {**LOOP_PRIMITIVES, **BLOCK_PRIMITIVES}
    names = list(LOOP_PRIMITIVES) if primitives is None else list(primitives)
    sch = Schedule(func, seed=1)
    attempts = []
    for _ in range(steps):
        name = choice.pick(names)
        scene = _Scene(sch, choice)
        if not scene.blocks:
            break
        try:
            args, kwargs = table[name](scene)
        except ScheduleError:
            continue  # the program has nothing this primitive could be tried on
        before = sch.mod
        try:
            getattr(sch, name)(*args, **kwargs)
        except ScheduleError as refusal:
            attempts.append(Attempt(name, args, kwargs, refusal))
            if sch.mod is not before:
                raise AssertionError(f"{attempts[-1]} was refused and changed the program") from refusal
        else:
            attempts.append(Attempt(name, args, kwargs))
    return sch, attempts
