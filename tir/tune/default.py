"""The schedule that a program gets at once: the first result of every rule."""

from __future__ import annotations

from typing import Any

from ..function import IRModule, PrimFunc
from ..schedule import Schedule
from .space import Space, space_of


def default(mod: PrimFunc | IRModule, target: Any = "llvm") -> Schedule:
    """A schedule of every function of ``mod`` for ``target``, without measuring anything.

    On a CPU: producers are inlined where that repeats no work, loops are vectorized along contiguous memory, reductions
    become independent partial results in vectors, and large nests run on all cores. On a GPU (``"cuda"``,
    ``"cuda-sim"``): loops are bound to blocks and threads. Blocks that no rule knows stay as they are; a rule that raises
    anything but a refused step is left out, with a ``RuntimeWarning``.

    >>> import tir
    >>> from tir.library import elementwise
    >>> sch = default(elementwise.gelu_chain(1000))
    >>> [b.name for b in sch.get_child_blocks("root")]
    ['out']
    """
    return likeliest(mod, space_of(target))


def likeliest(mod: PrimFunc | IRModule, space: Space) -> Schedule:
    """The likeliest result of every rule of ``space``, for every function of ``mod``."""
    sch = Schedule(mod, seed=0, target=space.env.target, error_render_level="none")
    if len(sch.mod) == 1:
        return space.first(sch)
    for name in sch.mod:
        sch.work_on(name)
        sch = space.first(sch)
    return sch
