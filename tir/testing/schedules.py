"""Random schedules: primitives with random arguments; accepted ones are kept, refused ones counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..arith.index_map import IndexMap
from ..errors import InternalError, ScheduleError, attempt
from ..expr import constant
from ..function import IRModule, PrimFunc
from ..names import did_you_mean
from ..schedule import Schedule
from ..schedule.offers import choices
from ..schedule.primitive import PRIMITIVES, Primitive, lookup
from ..stmt import Block, For, Stmt
from ..visit import walk
from .decisions import Choice, SeededChoice
from .sample_intrinsics import intrinsics


@dataclass(frozen=True)
class Attempt:
    """One primitive that was tried: its name, its arguments, and the refusal (None if it was accepted).

    >>> from tir.testing import Attempt
    >>> attempt = Attempt("split", ("j", [2, 4]), {})
    >>> print(attempt, attempt.accepted)
    sch.split('j', [2, 4]) True
    """

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


def _given(*args: Any, **kwargs: Any) -> Arguments:
    return args, kwargs


class _Scene:
    """The available loops and blocks."""

    def __init__(self, sch: Any, choice: Choice):
        self.choice = choice
        self.loops: list[For] = []
        self.blocks: list[Block] = []
        self.sch = sch
        for item in walk(sch.func.body, enter=lambda node: isinstance(node, Stmt)):
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


def _reorder(s: _Scene) -> Arguments:
    loops = s.nest()
    if len(loops) < 2:
        raise ScheduleError("the block has fewer than two loops")
    shuffled = []
    for _ in range(s.choice.number(2, len(loops))):
        shuffled.append(loops.pop(s.choice.number(0, len(loops) - 1)))
    return tuple(shuffled), {}


def _one_loop(s: _Scene) -> Arguments:
    return _given(s.loop())


def _one_block(s: _Scene) -> Arguments:
    return _given(s.block())


def _producer_and_consumer(s: _Scene) -> Arguments:
    first = s.block()
    return _given(first, s.choice.pick([*s.sch.get_consumers(first), s.block()]))


def _block_and_loop(s: _Scene) -> Arguments:
    return _given(s.block(), s.loop())


def _cache(s: _Scene) -> Arguments:
    return _given(s.block(), s.choice.number(0, 1), s.choice.pick(("global", "local")))


def _moved(s: _Scene) -> Arguments:
    kwargs = {"preserve_unit_loops": s.choice.pick((False, True)), "index": s.choice.pick((-1, -2, 0, 1))}
    return (s.block(), s.loop()), kwargs


def _tile(s: _Scene) -> Arguments:
    loops = s.nest()
    taken = loops[: s.choice.number(1, 2)]
    if not taken:
        raise ScheduleError("the block has no loop to tile")
    return (taken, [s.choice.number(1, 4) for _ in taken]), {"tail": s.choice.pick(("guard", "cut"))}


def _skew(s: _Scene) -> Arguments:
    outer, inner = _adjacent(s, 2)[:2]
    return _given(outer, inner, s.choice.pick((1, 2, -1)))


def _ndim(s: _Scene, block: Any) -> tuple[Any, int]:
    """A buffer the block writes or reads, and its rank."""
    found = s.sch.get(block)
    regions = [*found.writes, *found.reads]
    if not regions:
        raise ScheduleError("the block touches no buffer")
    region = s.choice.pick(regions)
    return region.buffer.name, region.buffer.ndim


def _index_map(s: _Scene, ndim: int) -> IndexMap:
    if not ndim:
        raise ScheduleError("there are no axes")
    kind = s.choice.number(0, 3)
    sizes = [p for p in s.sch.func.params if p.dtype.is_int]
    factor: Any = s.choice.pick((2, 3, 4, *sizes))

    def change(*at: Any) -> list[Any]:
        if kind == 0:
            return list(reversed(at))
        if kind == 1:
            return [at[0] // factor, *at[1:], at[0] % factor]
        if kind == 2:
            return [*at[:-1], at[-1] // factor, at[-1] % factor]
        return [*at[1:], at[0]]

    return IndexMap.from_func(change, ndim=ndim)


def _transform_layout(s: _Scene) -> Arguments:
    block = s.block()
    buffer, ndim = _ndim(s, block)
    if buffer in {b.name for b in s.sch.func.buffer_map.values()}:
        raise ScheduleError("a parameter: its callers would have to change with it")
    return (block, buffer, _index_map(s, ndim)), {"pad_value": s.choice.pick((None, None, 0))}


def _swizzled_layout(s: _Scene) -> Arguments:
    """A swizzled layout: the last index XORed with a digit of the index before it, or of itself."""
    block = s.block()
    buffer, ndim = _ndim(s, block)
    if buffer in {b.name for b in s.sch.func.buffer_map.values()} or not ndim:
        raise ScheduleError("a parameter, or without axes")
    size, divisor = s.choice.pick((2, 4, 8)), s.choice.pick((1, 2))
    if ndim == 1:
        return _given(block, buffer, lambda j: (j ^ (j // size % size),))
    scale = s.choice.pick((1, 1, 2))
    return _given(block, buffer, lambda *at: (*at[:-1], at[-1] ^ (at[-2] // divisor % size * scale)))


def _transform_block_layout(s: _Scene) -> Arguments:
    block = s.block()
    return _given(block, _index_map(s, len(s.sch.get(block).iter_vars)))


def _reorder_iters(s: _Scene) -> Arguments:
    block = s.block()
    order = list(range(len(s.sch.get(block).iter_vars)))
    return _given(block, order[::-1])


def _reindex(s: _Scene) -> Arguments:
    block = s.block()
    return _given(block, (s.choice.pick(("read", "write")), 0))


WIDER_TYPES = {"int32": "int64", "float32": "float64"}


def _stored_wider(s: _Scene) -> Arguments:
    """A type that holds the same values: small integers, and floats with more digits."""
    block = s.block()
    writes = s.sch.get(block).writes
    if not writes:
        raise ScheduleError("the block writes no buffer")
    number = s.choice.number(0, len(writes) - 1)
    dtype = WIDER_TYPES.get(str(writes[number].buffer.dtype))
    if dtype is None:
        raise ScheduleError("no type is known that holds the same values")
    return _given(block, number, dtype)


def _pad_einsum(s: _Scene) -> Arguments:
    block = s.block()
    return _given(block, [s.choice.number(1, 4) for _ in s.sch.get(block).iter_vars])


def _block_at(s: _Scene) -> tuple[Any, Any]:
    """A loop and a block in it."""
    block = s.block()
    loops = list(s.sch.get_loops(block))
    if not loops:
        raise ScheduleError("the block has no loop to choose")
    return s.choice.pick(loops), block


def _at(s: _Scene) -> Arguments:
    return _given(*_block_at(s), s.choice.number(0, 1), s.choice.pick(("global", "local")))


def _rolling_buffer(s: _Scene) -> Arguments:
    """A block that shares a loop with others, if there is one: only its buffer can be a rolling buffer."""
    names = [b.name for b in s.blocks]
    shared = [
        n
        for n in names
        if any(len(s.sch.get_child_blocks(loop)) > 1 for loop in s.sch.get_loops(s.sch.get_block(n))[:1])
    ]
    return _given(s.sch.get_block(s.choice.pick(shared or names)), 0)


def _unannotate(s: _Scene) -> Arguments:
    noted = [f for f in s.loops if f.annotations]
    if not noted:
        raise ScheduleError("no loop has an annotation")
    loop = s.choice.pick(noted)
    own = [rv for b in s.blocks for rv in s.sch.get_loops(s.sch.get_block(b.name)) if s.sch.get(rv) is loop]
    return _given(own[0] if own else loop.loop_var.name, s.choice.pick(sorted(loop.annotations)))


def _inplace(s: _Scene) -> Arguments:
    """A block that updates what it reads, if there is one."""
    updates = [b.name for b in s.blocks if {r.buffer for r in b.reads} & {r.buffer for r in b.writes}]
    block = s.sch.get_block(s.choice.pick(updates or [b.name for b in s.blocks]))
    return _given(block, s.choice.number(0, 1), s.choice.pick(("global", "local")))


def _reindex_cache(s: _Scene) -> Arguments:
    block = s.block()
    change = _index_map(s, len(s.sch.get(block).iter_vars))
    return _given(block, s.choice.number(0, 1), s.choice.pick(("global", "local")), change)


def _axis_separator(s: _Scene) -> Arguments:
    block = s.block()
    buffer, ndim = _ndim(s, block)
    return _given(block, buffer, [1] if ndim > 1 else [])


def _tile_sizes(s: _Scene) -> Arguments:
    """Tile sizes sampled by the schedule, as a search does, and recorded in its trace."""
    return _given(s.loop(), s.choice.number(1, 3))


def _touched(s: _Scene) -> Arguments:
    """Declare that a block reads or writes an entire buffer: a sound over-approximation."""
    block = s.block()
    side = s.choice.pick(("read", "write"))
    regions = getattr(s.sch.get(block), f"{side}s")
    if not regions:
        raise ScheduleError("the block touches no buffer on that side")
    number = s.choice.number(0, len(regions) - 1)
    ndim = len(s.sch.get(block).iter_vars)
    bounds = [e for n in regions[number].buffer.shape for e in (0 * n, n)]

    def everything(*at: Any) -> list[Any]:
        return bounds

    return _given(block, number, side, IndexMap.from_func(everything, ndim=ndim))


def _split_sampled(s: _Scene) -> Arguments:
    """Split by factors that the schedule samples, as a search does."""
    loop = s.loop()
    return _given(loop, s.sch.sample_perfect_tile(loop, s.choice.number(2, 3), 4))


def _unroll_sampled(s: _Scene) -> Arguments:
    return _given(s.loop(), "pragma_auto_unroll_max_step", s.sch.sample_categorical([0, 4, 16], [0.5, 0.25, 0.25]))


def _location_sampled(s: _Scene) -> Arguments:
    block = s.block()
    return _given(block, s.sch.sample_compute_location(block))


def _privatize(s: _Scene) -> Arguments:
    """Privatize an allocated buffer in a loop around a block that accesses it."""
    block = s.block()
    found = s.sch.get(block)
    own = {b.name for b in walk(s.sch.func.body) if isinstance(b, Block) for b in b.alloc_buffers}
    touched = [r.buffer.name for r in (*found.writes, *found.reads) if r.buffer.name in own]
    loops = list(s.sch.get_loops(block))
    if not touched or not loops:
        raise ScheduleError("the block touches no buffer of the function's own in a loop")
    return _given(s.choice.pick(loops), s.choice.pick(touched))


def _work_on(s: _Scene) -> Arguments:
    names = list(s.sch.mod)
    if len(names) < 2:
        raise ScheduleError("the module has one function")
    return _given(s.choice.pick(names))


def _tensorize(s: _Scene) -> Arguments:
    """Tensorize by one of the fuzzer's intrinsics, at a block that may match it, if there is one."""
    innermost = [loop for b in s.blocks for loop in s.sch.get_loops(s.sch.get_block(b.name))[-1:]]
    fits = [loop for loop in innermost if constant(s.sch.get(loop).extent) == 4]
    return _given(s.choice.pick(fits) if fits else s.loop(), s.choice.pick(intrinsics()))


LOOP_PRIMITIVES: dict[str, Callable[[_Scene], Arguments]] = {
    "split": _split,
    "fuse": lambda s: _given(*_adjacent(s)),
    "reorder": _reorder, "parallel": _one_loop, "vectorize": _one_loop, "unroll": _one_loop,
    "bind": lambda s: _given(s.loop(), s.choice.pick(("blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread.x"))),
    "add_unit_loop": lambda s: _given(s.choice.pick((s.block, s.loop))()),
    "merge": lambda s: _given(s.loop(), s.loop()),
    "loop_partition": lambda s: _given(s.loop(), [s.choice.number(1, 4), None]),
    "annotate": lambda s: _given(s.loop(), "pragma_note", s.choice.number(0, 3)),
}  # fmt: skip
BLOCK_PRIMITIVES: dict[str, Callable[[_Scene], Arguments]] = {
    "compute_at": _block_and_loop, "reverse_compute_at": _block_and_loop, "compute_inline": _one_block,
    "reverse_compute_inline": _one_block, "fuse_reduction_epilogue": _producer_and_consumer, "cache_read": _cache,
    "cache_write": _cache, "decompose_reduction": _block_and_loop,
    "rfactor": lambda s: _given(s.loop(), s.choice.number(0, 1)),
    "read_at": _at, "write_at": _at, "rolling_buffer": _rolling_buffer,
    "cache_index": lambda s: _given(s.block(), "global", s.choice.number(0, 2)),
    "pad_einsum": _pad_einsum, "sample_compute_location": _one_block,
}  # fmt: skip

# The rest, drawn with "--all" as those without an entry are: each entry is a name (a method of Schedule, a dot, a variant) and how to draw its arguments.
OTHER_PRIMITIVES: dict[str, Callable[[_Scene], Arguments]] = {
    "split.tail": lambda s: _given(s.loop(), [None, s.choice.number(1, 4)], tail=s.choice.pick(("cut", "exact"))),
    "compute_at.index": _moved, "reverse_compute_at.index": _moved, "compute_root": _one_block, "auto_inline": lambda s: _given(),
    "tile": _tile, "skew": _skew, "fission": _one_loop, "unswitch": _one_loop, "hoist": _one_block, "select_iteration": _one_loop,
    "share_window": _one_loop, "factor_scan": _one_loop, "double_scan": _one_loop,
    "blockize": lambda s: _given(s.loop(), preserve_unit_iters=s.choice.pick((True, False))),
    "transform_layout": _transform_layout, "transform_layout.swizzle": _swizzled_layout, "transform_block_layout": _transform_block_layout,
    "reorder_block_iter_var": _reorder_iters, "reindex": _reindex,
    "stage": lambda s: _given(s.block(), s.choice.number(0, 1), s.loop()),
    "set_scope": lambda s: _given(s.block(), 0, s.choice.pick(("local", "global"))),
    "unsafe_set_dtype": _stored_wider, "decompose_padding": _block_and_loop, "unannotate": _unannotate, "cache_inplace": _inplace,
    "reindex_cache_read": _reindex_cache, "reindex_cache_write": _reindex_cache, "set_axis_separator": _axis_separator,
    "storage_align": lambda s: _given(s.block(), 0, s.choice.number(0, 1), s.choice.pick((4, 8)), s.choice.number(0, 1)),
    "sample_perfect_tile": _tile_sizes, "sample_partitioned_tile": _tile_sizes, "annotate_buffer_access": _touched,
    "split.sampled": _split_sampled, "annotate.sampled": _unroll_sampled, "compute_at.sampled": _location_sampled,
    "reverse_compute_at.sampled": _location_sampled,
    "sample_categorical": lambda s: _given([1, 2, 4], [0.5, 0.25, 0.25]), "enter_postproc": lambda s: _given(),
    "work_on": _work_on, "tensorize": _tensorize, "privatize": _privatize,
    "prefetch": lambda s: _given(*_block_at(s), s.choice.number(0, 1), s.choice.number(1, 3)),
    "shift_operand": lambda s: _given(s.block(), s.choice.number(0, 1)),
}  # fmt: skip
ALL_PRIMITIVES = {**LOOP_PRIMITIVES, **BLOCK_PRIMITIVES, **OTHER_PRIMITIVES}


def every_primitive() -> list[str]:
    """The names of :data:`ALL_PRIMITIVES`, then those of the other primitives that may not change what a program computes."""
    known = {name.partition(".")[0] for name in ALL_PRIMITIVES}
    return [*ALL_PRIMITIVES, *sorted(n for n in PRIMITIVES if n not in known and not n.startswith("unsafe_"))]


def _arguments(s: _Scene, name: str) -> Arguments:
    if name in ALL_PRIMITIVES:
        return ALL_PRIMITIVES[name](s)
    step = lookup(name)
    if step is None:
        raise KeyError(f"no primitive is named {name!r}{did_you_mean(name, every_primitive())}")
    return _by_parameters(s, step)


def _by_parameters(s: _Scene, step: Primitive) -> Arguments:
    """Places for the parameters that take them; of what else is required, one of the :func:`choices`, or a small number."""
    given: dict[str, Any] = {}
    places = {"loop": s.loop, "location": s.loop, "block": s.block}
    for p in step.signature.parameters.values():
        if p.default is not p.empty or p.kind is p.VAR_POSITIONAL:
            continue
        kinds = step.kinds.get(p.name, "").split()
        if kinds:
            given[p.name] = s.choice.pick([places[kind] for kind in kinds])()
        elif found := choices(s.sch.state, step, p.name, given):
            given[p.name] = s.choice.pick(found)
        elif p.annotation in ("int", int):
            given[p.name] = s.choice.number(0, 3)
        else:
            raise ScheduleError(f"no value of `{p.name}` is known")
    return (), given


def random_schedule(
    func: PrimFunc | IRModule | Schedule,
    seed: int | Choice,
    steps: int = 6,
    primitives: Sequence[str] | None = None,
    on_refusal: Callable[[Any, Attempt], None] = lambda sch, attempt: None,
) -> tuple[Any, list[Attempt]]:
    """A schedule of ``func``, or of what that schedules so far, after trying ``steps`` random primitives, and the attempts in order.

    ``primitives`` are names in :data:`ALL_PRIMITIVES`, or of any other primitive; the default is the loop family. A refusal is a
    ``ScheduleError``; a fault inside of a primitive (``InternalError``) or any other exception is a bug of it, and is
    raised. ``on_refusal`` is called with the current schedule at each refusal.

    >>> import tir
    >>> from tir.testing import random_schedule
    >>> sch, attempts = random_schedule(tir.library.rows.row_sum(4, 8), steps=3, seed=0)
    >>> len(attempts), len(sch.history) - 1 == sum(a.refusal is None for a in attempts)
    (3, True)
    """
    choice = SeededChoice(seed) if isinstance(seed, int) else seed
    taken = Walk(started(func), choice, on_refusal)
    for _ in range(steps):
        taken.draw(list(LOOP_PRIMITIVES) if primitives is None else primitives)
    return taken.sch, taken.attempts


def started(program: PrimFunc | IRModule | Schedule) -> Schedule:
    """``program`` as a schedule, which draws the same random numbers each time."""
    if not isinstance(program, Schedule):
        return Schedule(program, seed=1)
    program.seed(1)
    return program


class Walk:
    """A schedule being made: it tries steps, and records them."""

    def __init__(
        self, sch: Any, choice: Choice, on_refusal: Callable[[Any, Attempt], None] = lambda sch, attempt: None
    ):
        self.sch = sch
        self.choice = choice
        self.on_refusal = on_refusal
        self.attempts: list[Attempt] = []

    def draw(self, names: Sequence[str]) -> None:
        """Try one of the primitives ``names`` with random arguments, if the program has suitable ones."""
        name = self.choice.pick(names)
        scene = _Scene(self.sch, self.choice)
        if not scene.blocks:
            return
        drawn = attempt(lambda: _arguments(scene, name))
        if not isinstance(drawn, ScheduleError):
            self.attempt(name.partition(".")[0], *drawn[0], **drawn[1])

    def attempt(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """The step's result (True if it returns nothing); None if it is refused."""
        before = self.sch.mod
        try:
            result = getattr(self.sch, name)(*args, **kwargs)
        except InternalError as fault:
            raise AssertionError(f"{Attempt(name, args, kwargs)} failed: {fault}\n{self.sch.mod.script()}") from fault
        except ScheduleError as refusal:
            self.attempts.append(Attempt(name, args, kwargs, refusal))
            if self.sch.mod is not before:
                raise AssertionError(f"{self.attempts[-1]} was refused and changed the program") from refusal
            self.on_refusal(self.sch, self.attempts[-1])
            return None
        self.attempts.append(Attempt(name, args, kwargs))
        return True if result is None else result
