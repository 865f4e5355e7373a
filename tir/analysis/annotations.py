"""The annotations of loops and blocks that steps, lowering and code generators read. Others are the user's own."""

from __future__ import annotations

from ..names import resembling
from ..stmt import Block

PRIVATE = "private"
EXPLICIT = {"reads": "explicit_read_region", "writes": "explicit_write_region"}
STAGE, ORDER, ASYNC = "software_pipeline_stage", "software_pipeline_order", "software_pipeline_async_stages"
DOUBLE_BUFFER = "double_buffer_scope"
THROUGH_REGISTERS = "manifest_shared_memory_local_stage"
DIM_ALIGN = "buffer_dim_align"
SWIZZLE = "buffer_swizzle"
PARTITION_HINT = "pragma_loop_partition_hint"
UNROLL, UNROLL_STEPS, UNROLL_EXPLICIT = "pragma_unroll", "pragma_auto_unroll_max_step", "pragma_unroll_explicit"
IMPORTS = ("pragma_import_llvm", "pragma_import_c")
STREAMED, STREAMED_LINES = "pragma_nontemporal", "pragma_nontemporal_lines"

KNOWN = (
    PRIVATE, *EXPLICIT.values(), STAGE, ORDER, ASYNC, DOUBLE_BUFFER, THROUGH_REGISTERS, DIM_ALIGN, SWIZZLE,
    PARTITION_HINT, UNROLL, UNROLL_STEPS, UNROLL_EXPLICIT, *IMPORTS, STREAMED, STREAMED_LINES,
)  # fmt: skip

_MISSPELLED = 0.9  # the likeness of a slip of the pen: one letter in ten


def asks_for_registers(block: Block) -> bool:
    """Whether a block is annotated to copy through registers, with any prefix of the name."""
    return any(is_through_registers(k) for k in block.annotations)


def is_through_registers(key: str) -> bool:
    return key.rpartition(".")[2] == THROUGH_REGISTERS


def misspelled(key: str) -> list[str]:
    """The known keys for which ``key`` is a slip of the pen; none for a known key, or one that resembles none closely.

    >>> misspelled("pragma_unrol"), misspelled("pragma_unroll"), misspelled("note")
    (['pragma_unroll'], [], [])
    """
    name = key.rpartition(".")[2]
    return [] if name in KNOWN else resembling(name.lower(), KNOWN, likeness=_MISSPELLED)
