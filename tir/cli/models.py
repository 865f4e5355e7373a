"""Models from files: how they are compiled, what they are run on, what they are compared with; the verb ``ops``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .program_files import is_model, require_file
from .verbs import SHAPE, Answer, option, verb

if TYPE_CHECKING:
    from ..graph import CompiledModel, Graph

RTOL, ATOL = 1e-3, 1e-4  # of results beside onnx.reference; the second times their largest element


def graph_of(options: argparse.Namespace) -> Graph:
    """The graph of the model that ``options.program`` names."""
    from ..importers.onnx import from_onnx, open_inputs, read_model

    require_file(options.program)
    read, shapes = read_model(options.program), shapes_of(options.shape)
    for name, sizes in open_inputs(read).items():
        if name not in shapes and "?" in sizes:
            raise _without_sizes(name, sizes)
    return from_onnx(read, shapes=shapes)


def _without_sizes(name: str, sizes: Sequence[Any]) -> ValueError:
    example = ",".join(str(size) if isinstance(size, int) else "1" for size in sizes)
    return ValueError(
        f"input {name!r} has shape [{', '.join(map(str, sizes))}]: give its sizes, as --shape {name}={example}"
    )


def compiled(options: argparse.Namespace, graph: Graph | None = None) -> Any:
    """The model that ``options.program`` names, compiled for ``options.target``; ``graph``, if it has been read."""
    from ..graph import compile_graph

    return compile_graph(graph_of(options) if graph is None else graph, options.target or "llvm")


def shapes_of(items: Iterable[str]) -> dict[str, list[int]]:
    """``NAME=1,3,224,224`` by name.

    >>> shapes_of(["x=1,3"])
    {'x': [1, 3]}
    """
    found: dict[str, list[int]] = {}
    for item in items:
        name, _, sizes = item.rpartition("=")
        if not name or not all(size.strip().isdecimal() for size in sizes.split(",")):
            raise ValueError(f"--shape takes NAME=SIZE,SIZE,…, not {item!r}")
        if name in found:
            raise ValueError(f"--shape: `{name}` is given twice")
        found[name] = [int(size) for size in sizes.split(",")]
    return found


def random_inputs(inputs: Sequence[Any], seed: int) -> list[Any]:
    """An array for each input: floats of a normal distribution; integers, which may be indices or masks, are 0 or 1."""
    import numpy as np

    from ..interp.numbers import array_dtype

    rng = np.random.default_rng(seed)
    return [
        (rng.standard_normal(p.shape) if p.dtype.is_float else rng.integers(0, 2, p.shape)).astype(array_dtype(p.dtype))
        for p in inputs
    ]


def arguments(
    inputs: Sequence[Any], given: Mapping[str, Any], seed: int, shapes: Mapping[str, Sequence[int]]
) -> list[Any]:
    """The array that is ``given`` for each input, or a random one; ``shapes`` are of those whose sizes the model leaves open. Raises
    ``ValueError`` where there is none."""
    drawn = []
    for p in inputs:
        sizes = tuple(shapes.get(p.name, p.shape))
        is_open = not all(isinstance(size, int) for size in sizes)
        if is_open and p.name not in given:
            raise _without_sizes(p.name, p.shape)
        drawn.append(replace(p, shape=() if is_open else sizes))
    return [given.get(p.name, array) for p, array in zip(inputs, random_inputs(drawn, seed))]


def assert_as_reference(path: str, names: Sequence[str], args: Sequence[Any], made: dict[str, Any]) -> None:
    """Raise ``AssertionError`` unless results, by name, are those of onnx.reference."""
    import numpy as np

    from ..dtype import DType
    from ..importers.onnx import read_model
    from ..interp.same_results import compare

    read = read_model(path)
    from onnx.reference import ReferenceEvaluator

    expected = ReferenceEvaluator(read).run(list(made), dict(zip(names, map(np.asarray, args))))
    for (name, result), wanted in zip(made.items(), expected):
        wanted = np.asarray(wanted)
        if (wanted.shape, wanted.dtype) != (result.shape, result.dtype):
            raise AssertionError(
                f"{name} is {result.dtype}{list(result.shape)}, expected {wanted.dtype}{list(wanted.shape)}"
            )
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0) if wanted.dtype.kind == "f" else 0
        compare(name, DType(result.dtype.name), wanted, result, RTOL, ATOL * float(largest), "compiled")


def described(model: CompiledModel) -> dict[str, Any]:
    """The kernels of a model as data, and as lines of a table under ``"text"``: nodes that run together, what they make,
    the bytes they read and write."""
    from ..display import text_table
    from ..graph import groups

    kernels = [
        {
            "kernel": group.name,
            "nodes": [str(node) for node in group.nodes],
            "makes": ", ".join(map(str, group.outputs)),
            "reads": _plain(sum(v.nbytes for v in group.inputs)),
            "writes": _plain(sum(v.nbytes for v in group.outputs)),
        }
        for group in groups(model.graph)
        if group.view is None
    ]
    head = ("kernel", "makes", "reads", "writes")
    table = text_table(head, [(k["kernel"], k["makes"], _shown(k["reads"]), _shown(k["writes"])) for k in kernels])
    sizes = {"weights_bytes": model.weights_bytes, "workspace_bytes": _plain(model.workspace_bytes)}
    text = f"{table}\n{len(kernels)} kernels, {model.weights_bytes:,} bytes of weights, {_shown(sizes['workspace_bytes'])} bytes of workspace"
    return {"kernels": kernels, **sizes, "text": text}


def _plain(size: Any) -> int | str:
    """A size as data: a number, or the text of an expression."""
    return size if isinstance(size, int) else str(size)


def _shown(size: int | str) -> str:
    return f"{size:,}" if isinstance(size, int) else size


@verb("tir ops model.onnx", option("program", metavar="MODEL", help="an .onnx model"), SHAPE)
def ops(options: argparse.Namespace) -> Answer:
    """Print the operators of a model, and why those that are not supported are not: then the status is 1. Sizes that
    the model leaves open count as 1."""
    from ..display import text_table
    from ..importers.onnx import operators

    if not is_model(options.program):
        raise ValueError(f"{options.program!r} is no model: its name must end in .onnx")
    require_file(options.program)
    rows = operators(options.program, shapes_of(options.shape))
    head = ("operator", "version", "count", "first node", "why not")
    faults = sum(count for _, _, count, _, why in rows if why)
    text = text_table(head, [tuple(map(str, row)) for row in rows])
    said = f"{faults} node{'s' * (faults != 1)} cannot be imported" if faults else "all nodes can be imported"
    return Answer(f"{text}\n{said}", {"operators": [dict(zip(head, row)) for row in rows]}, not faults)
