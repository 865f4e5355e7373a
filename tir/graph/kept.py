"""Compiled models in the disk cache, found without their kernels: by the graph, the bytes of its constants, and the target."""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen import disk
from codegen.build import rebuilt
from codegen.module import LLVMModule

from .. import config
from ..dtype import DType
from ..function import PrimFunc
from ..ops import registry
from ..stmt import seq
from ..target import Target
from .arrays import memory
from .graph import Graph, Node, Value
from .kernels import default_key, part
from .sizes import Size

if TYPE_CHECKING:
    from .model import CompiledModel

OWN = "tir."
MOST = 1 << 29  # bytes of the constants of a model that is kept
ALL = 1 << 31  # bytes of weights that are kept in all: of the models that were compiled last
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


def keep(key: str, model: CompiledModel) -> None:
    """Write a model where :func:`find` finds it."""
    paths = [disk.place(key, suffix) for suffix in (".weights", ".model")]
    if not isinstance(model.module, LLVMModule) or None in paths:
        return
    compiled = model.module.compiled
    about = {
        "cases": [
            (replace(each, graph=replace(each.graph, constants={})), _offsets(each.graph, model.weights))
            for each in (model.case({}), *model.cases)
        ],
        "weights_bytes": model.weights_bytes,
        "workspace_bytes": model.workspace_bytes,
        "state": [p.name for p in model.state],
        "compiled": {name: getattr(compiled, name) for name in ("code", "functions", "messages", "packed", "parallel")},
        "program": zlib.compress(pickle.dumps(model.module.ir), 1),
    }
    model.key = key
    for path, content in zip(paths, (model.weights.data, pickle.dumps(about))):
        assert path is not None
        disk.write(path, content)
    assert paths[0] is not None
    disk.trim(paths[0], ALL)


def _offsets(graph: Graph, weights: np.ndarray) -> dict[Value, int]:
    """The byte of ``weights`` at which each constant of a graph begins."""
    return {v: array.ctypes.data - weights.ctypes.data for v, array in graph.constants.items()}


def find(key: str, target: Target) -> CompiledModel | None:
    """The model that was kept under a key; None if a part of it is missing or damaged."""
    from .model import CompiledModel

    model, held = (disk.place(key, suffix) for suffix in (".model", ".weights"))
    data = None if model is None else disk.read(model)
    weights = None if data is None or held is None else disk.read_into(held, memory)
    if data is None or weights is None:
        return None
    about = pickle.loads(data)
    module = rebuilt(lambda: pickle.loads(zlib.decompress(about["program"])), target, about["compiled"])
    whole, *cases = (
        replace(each, graph=replace(each.graph, constants={v: part(weights, begin, v) for v, begin in offsets.items()}))
        for each, offsets in about["cases"]
    )
    made = CompiledModel(
        whole.graph, module, weights, about["weights_bytes"], whole.plan, whole.kernels, about["state"],
        about["workspace_bytes"], cases,
    )  # fmt: skip
    made.key = key
    return made
