"""The reference executor, which defines what a program means: it runs scalar by scalar, with every check."""

from .arguments import bind_arguments
from .executor import register_extern, run

__all__ = ["bind_arguments", "register_extern", "run"]
