"""What a notebook adds: completion of names inside strings, pictures, and the explorer.

``%load_ext tir.notebook`` switches the completion on, for that session only; everything else is a method of what it shows.
"""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Complete names inside strings from now on: ``sch.split("<Tab>`` offers the loops of the program."""
    from .completion import Completion

    if not any(isinstance(m, Completion) for m in shell.Completer.custom_matchers):
        shell.Completer.custom_matchers.append(Completion(shell))


def unload_ipython_extension(shell: Any) -> None:
    from .completion import Completion

    matchers = shell.Completer.custom_matchers
    matchers[:] = [m for m in matchers if not isinstance(m, Completion)]
