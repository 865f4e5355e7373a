"""``python -m tests.tools.onnx_cases [NAMES_FILE]``: the cases of the package ``onnx``, imported, compiled and compared.

Prints how many are right as they are, how many once the inputs that act as attributes are given at import, or those on whose
elements the size of a result depends, and why the others are not. A file has the names of the cases to try, one a line.
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import tir
from tir.graph import compile_graph
from tir.importers.onnx import from_onnx, open_inputs

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def held(item: Any) -> Any:
    """A tensor, also one of narrow types, as an array."""
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(item) if isinstance(item, TensorProto) else item


def parts(case: Any) -> tuple[Any, list[Any], list[Any]]:
    """The model of a case, its inputs, and its results: those of the first data set, from files where the case has a folder."""
    import onnx

    if case.data_sets:
        inputs, results = case.data_sets[0]
        return case.model, [*map(held, inputs)], [*map(held, results)]
    folder = Path(case.model_dir)

    def read(what: str) -> list[Any]:
        files = sorted((folder / "test_data_set_0").glob(f"{what}_*.pb"), key=lambda p: int(p.stem.rpartition("_")[2]))
        return [held(onnx.TensorProto.FromString(p.read_bytes())) for p in files]

    return onnx.load(folder / "model.onnx"), read("input"), read("output")


def imported(model: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The graph of a model, and the inputs that it needed the values of."""
    values: dict[str, Any] = {}
    shapes = {name: np.shape(named[name]) for name in open_inputs(model) if name in named}
    while True:
        known = {name: shape for name, shape in shapes.items() if name not in values}
        try:
            return from_onnx(model, shapes=known, values=values), values
        except tir.ModelError as error:
            sizing = re.findall("the elements of (.*), known only", str(error))
            needed = [*error.needs, *re.findall("`([^`]*)`", " ".join(sizing))]
            added = {name: named[name] for name in needed if name in named and name not in values}
            if not added:
                raise
            values |= added


def judged(case: Any, target: str) -> str:
    """``right``, ``right with values``, or why not."""
    model, inputs, expected = parts(case)
    named = dict(zip((i.name for i in model.graph.input), inputs))
    try:
        graph, values = imported(model, named)
        compiled = compile_graph(graph, target)
        made = compiled(**{p.name: named[p.name] for p in compiled.inputs})
    except tir.ModelError as error:
        return "; ".join(f"{f[0]}-{f[1]}: {f[4]}" for f in error.faults) or error.rule
    except Exception as error:  # each case stands for itself
        return f"{type(error).__name__}: {error}".splitlines()[0]
    made = made if isinstance(made, tuple) else (made,)
    for got, want in zip(made, expected):
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"wrong: {got.dtype}{got.shape} for {want.dtype}{want.shape}"
        wide = [a.astype("float64") if a.dtype.kind not in "biu" else a for a in (got, want)]
        largest = np.abs(wide[1][np.isfinite(wide[1])]).max(initial=1) if want.dtype.kind not in "biuOSU" else 1
        tolerance = max(case.rtol, 2e-2 if want.dtype.itemsize == 2 and want.dtype.kind not in "iu" else 0)
        if not np.allclose(*wide, rtol=tolerance, atol=max(case.atol, 1e-6 * largest), equal_nan=True):
            return "wrong: other numbers"
    return "right with values" if values else "right"


def main() -> None:
    """Run the cases, and print the table."""
    from onnx.backend.test import loader

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="?", type=Path)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--kind", choices=KINDS, default="node")
    parser.add_argument("--every", type=int, default=1, help="try each N-th case only")
    parser.add_argument("--only", default="", help="a regular expression in the names of the cases to try")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cases = {case.name: case for case in loader.load_model_tests(kind=options.kind)}
    names = sorted(cases) if options.names is None else options.names.read_text().split()
    names = [name for name in names if re.search(options.only, name)][:: options.every]
    found: dict[str, list[str]] = collections.defaultdict(list)
    start = time.process_time()
    for name in names:
        found["there is no such case" if name not in cases else judged(cases[name], options.target)].append(name)
    for why, which in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"{len(which):5}  {why[:160]}   {' '.join(which[:2])}")
    right = sum(len(which) for why, which in found.items() if why.startswith("right"))
    print(f"{right} of {len(names)} cases are right, {time.process_time() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
