"""Levels of execution: which threads share a memory, which wait at a barrier, and what ends with a launch.

One table for scopes and one for thread axes; the invariants of a schedule, the synchronization pass, the executor and the
simulator read them.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

GLOBAL, LOCAL, SHARED, SHARED_DYN = "global", "local", "shared", "shared.dyn"
BLOCK_AXES = tuple(f"blockIdx.{d}" for d in "xyz")
THREAD_AXES = tuple(f"threadIdx.{d}" for d in "xyz")
VIRTUAL_AXES = ("vthread", *(f"vthread.{d}" for d in "xyz"))
AXES = (*BLOCK_AXES, *THREAD_AXES, *VIRTUAL_AXES)
LAUNCH_AXES = (*BLOCK_AXES, *THREAD_AXES)
LANES = THREAD_AXES[0]  # the axis of the threads of one warp


class Level(IntEnum):
    """The threads that have one copy of a memory in common, from many to one.

    >>> from tir.levels import Level, level_of
    >>> level_of("global"), level_of("shared.dyn"), level_of("wmma.accumulator"), level_of("local")
    (<Level.LAUNCH: 0>, <Level.BLOCK: 1>, <Level.WARP: 2>, <Level.THREAD: 3>)
    """

    LAUNCH = 0  # all threads, and the launches that follow
    BLOCK = 1
    WARP = 2
    THREAD = 3


# by the first part of a scope; what follows a dot is the kind of its hardware
_LEVELS = {
    "shared": Level.BLOCK, "warp": Level.WARP, "wmma": Level.WARP, "m16n8k8": Level.WARP, "mma": Level.WARP,
    "amx": Level.WARP, "local": Level.THREAD,
}  # fmt: skip
_REGISTERS = ("local", "m16n8k8", "mma")  # scopes that each thread indexes by itself in lowered code


@cache
def level_of(scope: str) -> Level:
    """The level of a storage scope; memory of unknown kinds is global."""
    return _LEVELS.get(scope.partition(".")[0], Level.LAUNCH)


def is_shared(scope: str) -> bool:
    """Whether the threads of a block share memory of this scope, and no other threads do."""
    return level_of(scope) is Level.BLOCK


def is_private(scope: str) -> bool:
    """Whether threads of different warps never share memory of this scope: registers, fragments and tiles."""
    return level_of(scope) >= Level.WARP


def ends_with_launch(scope: str) -> bool:
    """Whether memory of this scope is gone when its kernel ends."""
    return level_of(scope) > Level.LAUNCH


def is_fragment(scope: str) -> bool:
    """Whether memory of this scope is a fragment whose elements the hardware distributes over the lanes of a warp."""
    return scope.partition(".")[0] == "wmma"


def is_in_registers(scope: str) -> bool:
    """Whether lowered code has memory of this scope in registers that each thread indexes by itself."""
    return scope.partition(".")[0] in _REGISTERS


@cache
def own_axes(scope: str) -> tuple[str, ...]:
    """The launched axes along which each index has its own copy of a buffer of ``scope``; none for global memory."""
    level = level_of(scope)
    starts = {**dict.fromkeys(BLOCK_AXES, Level.BLOCK), **dict.fromkeys(THREAD_AXES, Level.WARP), LANES: Level.THREAD}
    return tuple(axis for axis in LAUNCH_AXES if starts[axis] <= level)


@cache
def shared_axes(scope: str) -> tuple[str, ...]:
    """The axes, virtual ones too, along which threads have one copy in common of memory that ends with its kernel."""
    if not ends_with_launch(scope):
        return ()
    together = (*THREAD_AXES, *(VIRTUAL_AXES if is_shared(scope) else ()))
    return tuple(a for a in together if a not in own_axes(scope))


def is_block_axis(axis: str) -> bool:
    """Whether an axis numbers the blocks of a launch."""
    return axis.partition(".")[0] == "blockIdx"


def is_thread_axis(axis: str) -> bool:
    """Whether an axis numbers the threads of a block."""
    return axis.partition(".")[0] == "threadIdx"


def is_launch_axis(axis: str) -> bool:
    """Whether a launch has this axis; virtual threads are parts of one thread."""
    return axis.partition(".")[0] in ("blockIdx", "threadIdx")


def is_virtual_axis(axis: str) -> bool:
    """Whether an axis numbers virtual threads, which one thread runs."""
    return axis.partition(".")[0] == "vthread"
