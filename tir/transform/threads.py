"""What GPU passes ask about thread axes and kinds of memory."""

from __future__ import annotations

from typing import Any

from ..expr import BufferLoad, IntImm, Var
from ..stmt import NOP, AttrStmt, For, SeqStmt, seq
from ..visit import rewrite, walk

AXES = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z")
PRIVATE_SCOPES = ("local", "warp")  # memory that each thread, or warp, has for itself


def is_shared(scope: str) -> bool:
    return scope in ("shared", "shared.dyn")


def is_private(scope: str) -> bool:
    """Whether threads of different warps never meet in memory of ``scope``: registers and tensor-core fragments."""
    return scope in PRIVATE_SCOPES or scope.startswith(("wmma.", "m16n8k8.", "mma."))


def is_launch(item: Any, tag: str = "") -> bool:
    """Whether ``item`` launches a thread axis (whose name begins with ``tag``); virtual threads do not count."""
    if not isinstance(item, AttrStmt) or item.attr_key != "thread_extent":
        return False
    name = item.node.thread_tag
    return not name.startswith("vthread") and name.startswith(tag)


def is_thread_loop(item: Any) -> bool:
    """Whether ``item`` is a loop bound to an axis that is launched: any but virtual threads."""
    return isinstance(item, For) and bool(item.thread) and not item.thread.startswith("vthread")


def axis_order(tag: str) -> int:
    return AXES.index(tag)


def is_uniform(e: Any, varying: Any) -> bool:
    """Whether ``e`` has one value in all threads of a block: it uses none of the variables that vary, nor memory."""
    return not any(isinstance(n, BufferLoad) or (isinstance(n, Var) and n in varying) for n in walk(e))


def flat(root: Any) -> Any:
    """``root`` with sequences in sequences made one, as rewriting leaves them."""

    def change(item: Any) -> Any:
        nested = isinstance(item, SeqStmt) and any(isinstance(s, SeqStmt) or s is NOP for s in item.stmts)
        return seq(item.stmts) if nested else None

    return rewrite(root, change)


def number(e: Any) -> int | None:
    return e.value if isinstance(e, IntImm) else None
