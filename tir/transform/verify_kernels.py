"""Refuses kernels in which a thread reads what only others have, or blocks depend on each other."""

from __future__ import annotations

from ..errors import BuildError, ScheduleError
from ..expr import BufferLoad
from ..function import PrimFunc
from ..stmt import BlockRealize, BufferStore
from ..visit import walk
from .passes import func_pass


def _refuse_elements_of_fragments(func: PrimFunc) -> None:
    """Which lane of a warp holds an element of a ``wmma`` fragment is not defined: only intrinsics may touch it."""
    for realize in walk(func.body):
        if not isinstance(realize, BlockRealize) or any(isinstance(n, BlockRealize) for n in walk(realize.block.body)):
            continue
        for n in walk(realize.block):
            if isinstance(n, (BufferLoad, BufferStore)) and n.buffer.scope.startswith("wmma."):
                raise BuildError(
                    f"{func.name}: block `{realize.block.name}` accesses an element of `{n.buffer.name}` in "
                    f"{n.buffer.scope} memory, and which lane holds it is not defined; tensorize the block, or give the "
                    "buffer another scope"
                )


@func_pass
def verify_kernels(func: PrimFunc) -> PrimFunc:
    """Nothing changes. Raises ``BuildError`` with a witness where memory of a thread or a block is read by another, or
    thread blocks of one kernel depend on each other, or an element of a fragment is used; schedules refuse the steps that surely lead there."""
    from ..schedule.invariants.thread_memory import check_thread_memory

    if func.root is not None:
        _refuse_elements_of_fragments(func)
        try:
            check_thread_memory(func)
        except ScheduleError as error:
            raise BuildError(f"{func.name}: {error}") from None
    return func
