"""The other side of :mod:`tir.tune.child`: starting the process, commands with a limit in time, killing it."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from ..errors import TirError
from ..visit import with_recursion_limit
from ..workers import ending
from .child import HEAD

ROOT = Path(__file__).parents[2]


class ChildFailed(TirError):
    """A command was not answered; the process is gone. ``status`` is ``"timeout"`` or ``"crashed"``."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status


class CandidateFailed(TirError):
    """The command raised an exception in the process, which goes on."""


class Child:
    """A process that builds and runs candidates, started when made. ``close`` kills it.

    ``memory`` limits its address space, in bytes; ``environment`` is added to this process's. The ``Server`` of ``module`` answers its
    commands, by :func:`tir.tune.child.main`. It writes to the standard error of this process if it is ``heard``.
    """

    def __init__(
        self,
        memory: int | None = None,
        environment: dict[str, str] | None = None,
        module: str = "tir.tune.child",
        heard: bool = False,
    ):
        found = os.environ.get("PYTHONPATH", "")
        path = os.pathsep.join([str(ROOT), *([found] if found else [])])
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from tir.tune.child import main; main({module!r})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if heard else subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path, **(environment or {})},
            start_new_session=True,  # an interrupt from the keyboard is for the search, which ends its children
        )
        self._answers: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.loaded: set[int] = set()
        self.task: Any = None
        self._send("hello", None, {"bytes": memory})
        self._waiting = 1  # answers to commands that nobody has asked for yet

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def request(self, command: str, mod: Any = None, limit: float | None = 60.0, **about: Any) -> dict[str, Any]:
        """The answer to a command. Raises ``CandidateFailed`` for an exception there, ``ChildFailed`` if the process
        ends, or does not answer within ``limit`` seconds, if there is one: then it is killed."""
        self.post(command, mod, **about)
        return self.receive(limit)

    def post(self, command: str, mod: Any = None, **about: Any) -> None:
        """Send a command; ``receive`` has the answer."""
        self._send(command, mod, about)
        self._waiting += 1

    def receive(self, limit: float | None) -> dict[str, Any]:
        """The answer to the last command; those to earlier ones are skipped. Raises as ``request``."""
        made: dict[str, Any] | None = {}
        while self._waiting:
            try:
                made = self._answers.get(timeout=limit)
            except Empty:
                self.close()
                raise ChildFailed("timeout", f"it ran longer than {limit:.3g} s, and was ended") from None
            if made is None:
                raise ChildFailed("crashed", f"the process ended: {ending(self._process.wait())}")
            self._waiting -= 1
        if "error" in made:
            raise CandidateFailed(made["error"])
        return made

    def close(self) -> None:
        """Kill the process."""
        if self.alive:
            with contextlib.suppress(OSError):  # with the processes that it has made, as it leads their group
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    def _send(self, command: str, mod: Any, about: dict[str, Any]) -> None:
        text = json.dumps({"do": command, **about}).encode()
        program = b"" if mod is None else _pickled(mod)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):  # it is gone: `receive` says so
            self._process.stdin.write(HEAD.pack(len(text), len(program)) + text)
            self._process.stdin.write(program)
            self._process.stdin.flush()

    def _listen(self) -> None:
        """Answers into the queue; None when there will be no more."""
        stream = self._process.stdout
        assert stream is not None
        with contextlib.suppress(OSError, ValueError, struct.error):
            while True:
                (size,) = struct.unpack("<I", stream.read(4))
                self._answers.put(json.loads(stream.read(size)))
        self._answers.put(None)


@with_recursion_limit
def _pickled(mod: Any) -> bytes:
    return pickle.dumps(mod, protocol=pickle.HIGHEST_PROTOCOL)
