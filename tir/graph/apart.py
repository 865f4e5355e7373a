"""Models compiled by a process of their own, which leaves them in the disk cache: by a copy of this one, or a new one where other threads here work.

Compiling takes some hundred megabytes in small pieces, and what lives on among them (modules, caches) keeps most of that from going back to the
system. That of a process is gone with it.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from codegen import disk
from codegen.runtime.openmp import run_serially

from .. import config
from ..errors import ModelError
from ..outcome import Outcome, log_level
from ..progress import is_watched
from ..target import Target
from ..tune.process import CandidateFailed, Child, ChildFailed
from ..workers import ProcessEnded, copied, in_a_copy, is_single
from . import keys
from .arrays import part
from .graph import Graph, Value
from .graph_passes import PASSES
from .sizes import aligned

UNSEARCHED = 4_000_000  # objects, some 400 MB, that the process makes before Python looks for reference cycles: there are next to none
LEAST = 64  # nodes of a graph: they compile in 2.5 s of the processor, and a new process starts in 0.7


def compile_apart(
    key: str, graph: Graph, target: Target, state: Sequence[str], cases: Sequence[Mapping[str, int]] = ()
) -> None:
    """Let a process compile a graph, so that the disk cache has the model under its key. It has none where the graph is small, and where no process
    can be started or nothing be written. What the process logs and warns of comes from here, and so does its error; ``ModelError`` if it ends."""
    place = disk.place(key, "")
    if len(graph.nodes) < LEAST or place is None or config.current().explain:
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(place.parent, os.W_OK):
            return
        given = key, graph, target, tuple(state), [*map(dict, cases)]
        take = in_a_copy(partial(_compile, *given)) if is_single() else _in_a_new_process(place.parent, *given)
    except OSError:
        return
    try:
        take()
    except ProcessEnded as error:
        raise ModelError(f"compiling the model: {error}; with TIR_CACHE=0 this process compiles it") from None


def _in_a_new_process(folder: Path, key: str, graph: Graph, target: Target, *rest: Any) -> Callable[[], Any]:
    """As :func:`tir.workers.in_a_copy`, for a process that reads the graph anew; nothing is done where none can be started."""
    if not sys.executable or hasattr(sys, "frozen"):
        return Outcome().take  # the executable of a frozen program is that program
    watched = is_watched()
    with contextlib.ExitStack() as ended:
        path, offsets = ended.enter_context(_in_a_file(folder, graph.constants))
        started = Child(None, {"TIR_PROGRESS": str(int(watched))}, __name__, watched)
        child = ended.enter_context(contextlib.closing(started))
        try:
            child.receive(limit=None)
        except ChildFailed:
            return Outcome().take
        around = keys.surroundings(target, PASSES)
        given = around, tuple(PASSES), path, offsets, (key, replace(graph, constants={}), target, *rest)
        try:
            answer = child.request("compile", given, limit=None, level=log_level())
        except CandidateFailed:
            return Outcome().take  # what it was given cannot be read there
        except ChildFailed as error:
            return Outcome(errors=[ProcessEnded(str(error))]).take
        return Outcome.unpickled(base64.b64decode(answer["outcome"])).take


@contextlib.contextmanager
def _in_a_file(folder: Path, constants: Mapping[Value, np.ndarray]) -> Iterator[tuple[str, dict[Value, int]]]:
    """The path of a file in a folder with the bytes of arrays, and where each begins. Processes share its pages."""
    offsets: dict[Value, int] = {}
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".tmp") as file:
        for value, array in constants.items():
            offsets[value] = file.seek(aligned(file.tell()))
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        file.truncate(file.tell() + 1)  # an empty file cannot be mapped
        yield file.name, offsets


class Server:
    """The commands of the process."""

    def hello(self, about: dict[str, Any], given: Any) -> dict[str, Any]:
        return {}

    def compile(self, about: dict[str, Any], given: Any) -> dict[str, Any]:
        outcome = Outcome.of(partial(_compile_read, *given), about["level"])
        return {"outcome": base64.b64encode(outcome.pickled()).decode()}


def _compile_read(around: str, passes: Sequence[Any], path: str, offsets: Mapping[Value, int], given: Any) -> None:
    """Compile a model, unless this process has another machine or other rules than those ``around`` its key."""
    key, graph, target, *rest = given
    PASSES[:] = passes
    if keys.surroundings(target, PASSES) != around:
        return
    held = np.memmap(path, np.uint8, "r")
    constants = {v: part(held, begin, v) for v, begin in offsets.items()}
    _compile(key, replace(graph, constants=constants), target, *rest)


def _compile(*given: Any) -> None:
    """Compile a model in this process, which is there for that alone, by as many copies of it as there are cores."""
    from .model import compile_here

    gc.freeze()  # what is there is not looked through, and stays where it is shared with another process
    gc.set_threshold(UNSEARCHED, *gc.get_threshold()[1:])
    run_serially()  # makes weights; OpenMP's threads are not copied with a process
    with copied():
        compile_here(*given)
