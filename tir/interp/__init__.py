"""The reference executor, which defines what a program means: it runs scalar by scalar, with every check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import numbers
from .arguments import bind_arguments

if TYPE_CHECKING:
    from .executor import register_extern, run

__all__ = ["bind_arguments", "numbers", "register_extern", "run"]


def __getattr__(name: str) -> Any:
    """The executor loads when it is asked for: calls of compiled functions go by other modules of this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import executor

    globals()[name] = found = getattr(executor, name)
    return found
