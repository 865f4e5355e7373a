"""A schedule for what operators compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..te import function_of

if TYPE_CHECKING:
    from .. import Schedule


def schedule(made: Any, target: Any = "llvm") -> Schedule:
    """A schedule of the function of tensors for ``target``: that of ``tir.tune.default``.

    >>> from tir import ops, te
    >>> sch = ops.schedule(ops.add(te.placeholder((1000,)), 1.0))
    >>> bool(sch.trace)
    True
    """
    from ..tune import default

    return default(function_of(made), target)  # pyright: ignore[reportCallIssue]  (not the file of its name)
