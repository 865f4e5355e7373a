"""What names a compiled model in the disk cache: the graph, the bytes of its constants, the target, and all that the compiler goes by."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import config
from ..dtype import DType
from ..function import PrimFunc
from ..ops import registry
from ..stmt import seq
from ..target import Target
from .graph import Graph, Node, Value
from .kernels import default_key
from .sizes import Size

OWN = "tir."
MOST = 1 << 29  # bytes of the constants of a model that is kept
_PLAIN = (str, int, float, type(None), np.generic, DType, Value, Size)


def model_key(
    graph: Graph, target: Target, state: Sequence[str], passes: Sequence[Any], cases: Sequence[Mapping[str, int]] = ()
) -> str | None:
    """What names a compiled model in the disk cache; None if code of other packages has a part in it, if a stage is to be printed or
    verified, and for more than :data:`MOST` bytes of constants."""
    if sum(array.nbytes for array in graph.constants.values()) > MOST:
        return None
    around = surroundings(target, passes) if all(map(_is_known, graph.nodes)) else None
    if around is None:
        return None
    made = hashlib.sha256(around.encode())
    for part_of_it in (graph, list(state), [*map(dict, cases)], [node.name for node in graph.nodes]):
        made.update(f"{part_of_it}\n".encode())
    for array in graph.constants.values():
        made.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return made.hexdigest()


def surroundings(target: Target, passes: Sequence[Any]) -> str | None:
    """What names all beside a graph that a compiled model depends on: this package, the machine, the passes; None as :func:`model_key`."""
    knobs = config.current()
    if knobs.dump or knobs.verify or not all(map(_is_own, passes)):
        return None
    known = default_key(PrimFunc((), seq([])), target)
    return None if known is None else "\n".join([known, *(each.__name__ for each in passes)])


def _is_own(function: Any) -> bool:
    return function.__module__.startswith(OWN)


def _is_known(node: Node) -> bool:
    """Whether the text of a node has all that its operator computes with."""
    return _is_own(registry.find(node.operator).function) and _are_plain(tuple(node.arguments.values()))


def _are_plain(arguments: Any) -> bool:
    return all(_are_plain(a) if isinstance(a, (list, tuple)) else isinstance(a, _PLAIN) for a in arguments)
