"""The annotations of loops, blocks and functions that steps, lowering and code generators read. Others are the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from .expr import IntImm, is_const
from .names import resembling
from .stmt import Block, BlockRealize, For, SeqStmt, Stmt

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

# attributes of functions: their constant parameters (by number, as in TVM), and that they are called once: compiling them costs more than running them
CONSTANT, BY_NUMBER, ONCE = "tir.constant", "layout_free_buffers", "tir.once"

KNOWN = (
    PRIVATE, *EXPLICIT.values(), STAGE, ORDER, ASYNC, DOUBLE_BUFFER, THROUGH_REGISTERS, DIM_ALIGN, SWIZZLE,
    PARTITION_HINT, UNROLL, UNROLL_STEPS, UNROLL_EXPLICIT, *IMPORTS, STREAMED, STREAMED_LINES,
)  # fmt: skip

_MISSPELLED = 0.9  # the likeness of a slip of the pen: one letter in ten


def _number(value: Any) -> int | None:
    """The number that an annotation holds; None if it holds something else."""
    if isinstance(value, IntImm):
        return value.value
    return value if isinstance(value, int) else None


def _is_count(value: Any) -> bool:
    number = _number(value)
    return number is not None and number >= 0 and not isinstance(value, bool)


def _is_switch(value: Any) -> bool:
    return _number(value) in (0, 1)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_counts(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_is_count, cast("tuple[Any, ...]", value)))


def _is_alignments(value: Any) -> bool:
    if not isinstance(value, tuple):
        return False
    return all(_is_counts(row) and len(row) == 4 for row in cast("tuple[Any, ...]", value))


_VALUES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    UNROLL_STEPS: ("a number of steps from 0 on", _is_count),
    UNROLL_EXPLICIT: ("True or False, or a number of which 0 is False", lambda v: _is_switch(v) or _is_count(v)),
    PARTITION_HINT: ("True or False", _is_switch),
    **dict.fromkeys((*IMPORTS, STREAMED, STREAMED_LINES), ("a string", _is_text)),
    DIM_ALIGN: ("what storage_align writes, lists of buffer, axis, factor and offset", _is_alignments),
    SWIZZLE: ("what storage_swizzle writes, a list of numbers of buffers", _is_counts),
}


def expected_value(key: str, value: Any) -> str:
    """What ``key`` is annotated with, if ``value`` is something else; empty if it is right, or any value is.

    >>> expected_value("pragma_auto_unroll_max_step", "many"), expected_value("pragma_auto_unroll_max_step", 16)
    ('a number of steps from 0 on', '')
    """
    what, fits = _VALUES.get(key.rpartition(".")[2], ("", lambda _: True))
    return "" if fits(value) else what


def goes_through_registers(block: Block) -> bool:
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


def statements_of_pipeline(loop: For) -> list[Stmt]:
    """The statements that the stages of a pipelined loop refer to: those of its body, or of the block around them."""
    body: Any = loop.body
    while isinstance(body, BlockRealize) and not body.block.iter_vars and is_const(body.predicate, 1):
        body = body.block.body
    return list(body.stmts) if isinstance(body, SeqStmt) else [body]
