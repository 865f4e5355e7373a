"""Compiled models in the disk cache: written where they are found without their kernels, and without what compiles them."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen import disk
from codegen.build import rebuilt
from codegen.module import LLVMModule

from ..target import Target
from .arrays import part
from .compiled_model import Case, CompiledModel

if TYPE_CHECKING:
    from .graph import Graph, Value

ALL = 1 << 31  # bytes of weights that are kept in all: of the models that were compiled last
SHARE = 16  # of these: how many a process adds before it looks at all of them again

_added = ALL  # bytes of weights since this process looked at all; it does with its first model


def keep(key: str, model: CompiledModel) -> None:
    """Write a model where :func:`find` finds it."""
    global _added
    paths = [disk.place(key, suffix) for suffix in (".weights", ".model")]
    if not isinstance(model.module, LLVMModule) or None in paths:
        return
    compiled = model.module.compiled
    cases = [
        (replace(each, graph=replace(each.graph, constants={})), _offsets(each.graph, model.weights))
        for each in (model.case({}), *model.cases)
    ]
    code = {name: getattr(compiled, name) for name in ("code", "functions", "messages", "packed", "parallel")}
    packed = [zlib.compress(pickle.dumps(part_of_it), 1) for part_of_it in (cases, model.module.ir)]
    model.key = key
    for path, content in zip(paths, (model.weights.data, pickle.dumps((model.about, code, *packed)))):
        assert path is not None
        disk.write(path, content)
    assert paths[0] is not None
    _added += model.weights.nbytes
    if SHARE * _added >= ALL:
        disk.trim(paths[0], ALL)
        _added = 0


def _offsets(graph: Graph, weights: np.ndarray) -> Mapping[Value, int]:
    """The byte of ``weights`` at which each constant of a graph begins."""
    return {v: array.ctypes.data - weights.ctypes.data for v, array in graph.constants.items()}


def find(key: str, target: Target) -> CompiledModel | None:
    """The model that was kept under a key; None if a part of it is missing or damaged. Its graph and its program are read when they are asked for."""
    path, held = (disk.place(key, suffix) for suffix in (".model", ".weights"))
    data = None if path is None else disk.read(path)
    content = None if data is None or held is None else disk.mapped(held)
    if data is None or content is None:
        return None
    about, code, cases, program = pickle.loads(data)
    weights = np.frombuffer(content, np.uint8)
    module = rebuilt(lambda: _unpacked(program), target, code)
    made = CompiledModel(about, module, weights, lambda: [*_with_constants(_unpacked(cases), weights)])
    made.key = key
    return made


def _unpacked(data: bytes) -> Any:
    return pickle.loads(zlib.decompress(data))


def _with_constants(cases: Sequence[tuple[Case, Mapping[Value, int]]], weights: np.ndarray) -> Iterator[Case]:
    for each, offsets in cases:
        constants = {v: part(weights, begin, v) for v, begin in offsets.items()}
        yield replace(each, graph=replace(each.graph, constants=constants))
