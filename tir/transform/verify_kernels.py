"""Refuses kernels in which a thread reads memory private to others, or blocks depend on each other."""

from __future__ import annotations

from ..errors import BuildError, ScheduleError
from ..expr import BufferLoad
from ..function import PrimFunc
from ..stmt import BlockRealize, BufferStore
from ..visit import walk
from .passes import func_pass


def _refuse_elements_of_fragments(func: PrimFunc) -> None:
    """Refuse accesses to elements of ``wmma`` fragments, whose lane is undefined, outside of intrinsics."""
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
    """A check; changes nothing. Raises ``BuildError`` with a witness if memory private to a thread or a block is read
    by another, if thread blocks of one kernel depend on each other, if threads write different values to one element of
    shared memory at once, or if an element of a fragment is accessed. Schedules refuse the steps that provably lead
    there."""
    from ..schedule.invariants.shared_writes import check_shared_writes
    from ..schedule.invariants.thread_memory import check_thread_memory

    if func.root is not None:
        _refuse_elements_of_fragments(func)
        try:
            check_thread_memory(func)
            check_shared_writes(func)
        except ScheduleError as error:
            raise BuildError(f"{func.name}: {error}") from None
    return func
