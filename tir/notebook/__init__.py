"""What a notebook adds: completion of names inside strings, pictures, and the explorer.

In an IPython session the completion is on from the first schedule; ``%unload_ext tir.notebook`` switches it off, for that
session. Everything else is a method of what it shows.
"""

from __future__ import annotations

import sys
from typing import Any


def join_session() -> None:
    """In an IPython session, complete from now on; elsewhere nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and "tir.notebook" not in shell.extension_manager.loaded:
        shell.extension_manager.load_extension("tir.notebook")


def load_ipython_extension(shell: Any) -> None:
    """Complete names inside strings from now on: ``sch.split("<Tab>`` offers the loops of the program."""
    from .completion import Completion

    if not any(isinstance(m, Completion) for m in shell.Completer.custom_matchers):
        shell.Completer.custom_matchers.append(Completion(shell))


def unload_ipython_extension(shell: Any) -> None:
    from .completion import Completion

    matchers = shell.Completer.custom_matchers
    matchers[:] = [m for m in matchers if not isinstance(m, Completion)]
