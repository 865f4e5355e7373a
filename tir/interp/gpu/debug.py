"""Looking into a running kernel: breakpoints and traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .lanes import Lanes
from .memory import LocalView
from .report import Site


@dataclass(frozen=True)
class Breakpoint:
    """Stop before line ``line`` of the kernel's script (in one thread and block, if given) and call ``action`` with a
    :class:`Stop`; by default the variables are printed."""

    line: int
    thread: tuple[int, ...] | int | None = None
    block: tuple[int, ...] | int | None = None
    action: Callable[[Stop], Any] | None = None


@dataclass
class Stop:
    """A statement about to run: its line, and the values of its threads.

    ``threads`` lists the (block, thread) of each; ``stop["x"]`` has the values of a variable, one per thread;
    ``stop.read("A_shared", 3)`` an element of a buffer as each thread sees it.
    """

    line: int
    text: str
    threads: list[tuple[tuple[int, int, int], tuple[int, int, int]]]
    variables: dict[str, np.ndarray]
    _views: dict[str, Any] = field(repr=False, default_factory=dict)
    _at: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0, np.int64))

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.variables:
            raise KeyError(f"no variable {name!r} at line {self.line}; there are {', '.join(self.variables)}")
        return self.variables[name]

    def read(self, buffer: str, index: int) -> np.ndarray:
        """Element ``index`` of a buffer for each of the threads, without checks and counts."""
        view = self._views.get(buffer)
        if view is None:
            raise KeyError(f"no buffer {buffer!r} at line {self.line}; there are {', '.join(self._views)}")
        if isinstance(view, LocalView):
            return view.data[index, self._at]
        base = 0 if view.base is None else view.base[self._at]
        return view.flat[np.broadcast_to(base + view.offset + index, (len(self._at),))]

    def __str__(self) -> str:
        lines = [f"line {self.line}: {self.text}"]
        for k, (block, thread) in enumerate(self.threads):
            values = ", ".join(f"{name}={value[k]}" for name, value in self.variables.items())
            lines.append(f"  block {block} thread {thread}: {values}")
        return "\n".join(lines)


def hook(trace: Callable[[Stop], Any] | None, stops: list[Breakpoint], listing: list[str]) -> Callable[..., None]:
    """The function that the compiled kernel calls before each statement."""

    def run(lanes: Lanes, act: Any, site: Site, variables: dict[str, Any], views: dict[str, Any]) -> None:
        here = lanes.all if act is None else act
        if trace is not None:
            trace(_stop(lanes, here, site, variables, views))
        for point in stops:
            if point.line != site.line:
                continue
            chosen = _chosen(lanes, here, point)
            if len(chosen):
                (point.action or print)(_stop(lanes, chosen, site, variables, views))

    return run


def _stop(lanes: Lanes, here: np.ndarray, site: Site, variables: dict[str, Any], views: dict[str, Any]) -> Stop:
    values = {name: lanes.spread(value)[here] for name, value in variables.items()}
    return Stop(site.line, site.text, [lanes.launch.who(s) for s in lanes.stamp[here]], values, views, here)


def _chosen(lanes: Lanes, here: np.ndarray, point: Breakpoint) -> np.ndarray:
    for wanted, which in ((point.block, 0), (point.thread, 1)):
        if wanted is not None:
            full = ((wanted,) if isinstance(wanted, int) else tuple(wanted)) + (0, 0, 0)
            here = here[[lanes.launch.who(s)[which] == full[:3] for s in lanes.stamp[here]]]
    return here
