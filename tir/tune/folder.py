"""The temporary folder of a runner, which goes with it, also where its process is killed: the next one removes it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

try:
    import fcntl
except ImportError:  # a system without locks that end with their process: what is left there stays
    fcntl = None

_PREFIX = "tir-tune-"
_LOCK = "lock"


class Folder:
    """A folder of this process, ``path``, that is locked while the process lives. What killed ones left is removed first.

    >>> made = Folder()
    >>> made.path.is_dir(), made.close(), made.path.exists()
    (True, None, False)
    """

    def __init__(self) -> None:
        _remove_left_over(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = -1
        self.open()

    def open(self) -> None:
        """Make the folder, where it is gone or closed, and lock it."""
        self.path.mkdir(exist_ok=True)
        if fcntl is not None and self._lock < 0:
            new = self.path / f"{_LOCK}.new"
            self._lock = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            new.rename(self.path / _LOCK)  # under its name it is locked

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _remove_left_over(place: Path) -> None:
    """Remove the folders in ``place`` whose processes have ended, as their locks have."""
    if fcntl is None:
        return
    for folder in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # of another user, locked, or removed by another process
            lock = os.open(folder / _LOCK, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
