"""Models compiled by a process of their own, which leaves them in the disk cache.

Compiling takes some hundred megabytes in small pieces, and what lives on among them (modules, caches) keeps most of that from going back to the
system. That of a process is gone with it.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from codegen import disk

from .. import config
from ..errors import ModelError
from ..outcome import Outcome, log_level
from ..progress import is_watched
from ..target import Target
from ..tune.process import CandidateFailed, Child, ChildFailed
from ..workers import copied
from . import kept
from .graph import Graph, Value
from .kernels import part
from .memory import aligned
from .passes import PASSES

UNSEARCHED = 4_000_000  # objects, some 400 MB, that the process makes before Python looks for reference cycles: there are next to none
LEAST = 64  # nodes of a graph: they compile in 2.5 s of the processor, and a process starts in 0.7


def compile_apart(
    key: str, graph: Graph, target: Target, state: Sequence[str], cases: Sequence[Mapping[str, int]] = ()
) -> None:
    """Let a process compile a graph, so that the disk cache has the model under its key. It has none where the graph is small, and where no process
    can be started or nothing be written. What the process logs and warns of comes from here, and so does its error; ``ModelError`` if it ends."""
    if len(graph.nodes) < LEAST or not sys.executable or hasattr(sys, "frozen") or config.current().explain:
        return  # the executable of a frozen program is that program
    around, place = kept.surroundings(target, PASSES), disk.place(key, "")
    if place is None:
        return
    watched = is_watched()
    with contextlib.ExitStack() as ended:
        try:
            path, offsets = ended.enter_context(_in_a_file(place.parent, graph.constants))
            started = Child(None, {"TIR_PROGRESS": str(int(watched))}, __name__, watched)
            child = ended.enter_context(contextlib.closing(started))
            child.receive(limit=None)
        except (OSError, ChildFailed):
            return
        given = (
            around,
            tuple(PASSES),
            path,
            offsets,
            (key, replace(graph, constants={}), target, tuple(state), [*map(dict, cases)]),
        )
        try:
            answer = child.request("compile", given, limit=None, level=log_level())
        except CandidateFailed:
            return  # what it was given cannot be read there
        except ChildFailed as error:
            raise ModelError(f"compiling the model: {error}; with TIR_CACHE=0 this process compiles it") from None
        Outcome.unpickled(base64.b64decode(answer["outcome"])).take()


@contextlib.contextmanager
def _in_a_file(folder: Path, constants: Mapping[Value, np.ndarray]) -> Iterator[tuple[str, dict[Value, int]]]:
    """The path of a file in a folder with the bytes of arrays, and where each begins. Processes share its pages."""
    offsets: dict[Value, int] = {}
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".tmp") as file:
        for value, array in constants.items():
            offsets[value] = file.seek(aligned(file.tell()))
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        file.truncate(file.tell() + 1)  # an empty file cannot be mapped
        yield file.name, offsets


class Server:
    """The commands of the process."""

    def __init__(self) -> None:
        gc.set_threshold(UNSEARCHED, *gc.get_threshold()[1:])

    def hello(self, about: dict[str, Any], given: Any) -> dict[str, Any]:
        return {}

    def compile(self, about: dict[str, Any], given: Any) -> dict[str, Any]:
        outcome = Outcome.of(partial(_compile, *given), about["level"])
        return {"outcome": base64.b64encode(outcome.pickled()).decode()}


def _compile(around: str, passes: Sequence[Any], path: str, offsets: Mapping[Value, int], given: Any) -> None:
    """Compile a model, by as many processes as there are cores, unless this one has another machine or other rules than those ``around`` its key."""
    from .model import compile_here

    key, graph, target, state, cases = given
    PASSES[:] = passes
    if kept.surroundings(target, PASSES) != around:
        return
    held = np.memmap(path, np.uint8, "r")
    constants = {v: part(held, begin, v) for v, begin in offsets.items()}
    with copied():
        compile_here(key, replace(graph, constants=constants), target, state, cases)
