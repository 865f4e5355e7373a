"""What commands have in common: errors in one sentence without a traceback, and a status that says whether all was written."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from .errors import TirError


def answered(command: Callable[[], int | None], failed: int, shown: Callable[[Exception], str] = str) -> int:
    """Run a command that prints, and return its exit status: what it returns, 0 for None, ``failed`` for an error, which is
    printed as ``shown`` spells it, and where the output cannot be written. Whoever reads the output may stop early, as
    ``head`` does: then it is 141, as the shell has it of programs that end by this, without a word.

    >>> answered(lambda: print("done"), failed=2)
    done
    0
    """
    try:
        status = command()
        sys.stdout.flush()  # here an error can still be told
    except BrokenPipeError:
        _give_up_output()
        return 128 + 13  # SIGPIPE
    except (TirError, ValueError, OSError, ImportError) as error:
        if isinstance(error, OSError) and error.filename is None:
            _give_up_output()
        print(shown(error), file=sys.stderr)
        return failed
    return status or 0


def _give_up_output() -> None:
    """Let Python not try again to write what is left when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
