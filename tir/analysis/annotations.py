"""Annotations of blocks that both schedule steps and lowering read."""

from __future__ import annotations

from ..stmt import Block

THROUGH_REGISTERS = "manifest_shared_memory_local_stage"


def asks_for_registers(block: Block) -> bool:
    """Whether a block is annotated to copy through registers, with any prefix of the name."""
    return any(is_through_registers(k) for k in block.annotations)


def is_through_registers(key: str) -> bool:
    return key.rpartition(".")[2] == THROUGH_REGISTERS
