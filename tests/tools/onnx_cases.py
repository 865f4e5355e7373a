"""``python -m tests.tools.onnx_cases [NAMES_FILE]``: the node cases of the package ``onnx``, imported, compiled and compared.

Prints how many are right as they are, how many once the inputs that act as attributes are given at import, and why the
others are not. A file has the names of the cases to try, one a line.
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
from tir.importers.onnx import from_onnx


def arrays(case: Any) -> tuple[list[Any], list[Any]]:
    """The inputs and results of a case; tensors of narrow types as arrays."""
    from onnx import TensorProto, numpy_helper

    def held(item: Any) -> Any:
        return numpy_helper.to_array(item) if isinstance(item, TensorProto) else item

    inputs, results = case.data_sets[0]
    return [*map(held, inputs)], [*map(held, results)]


def judged(case: Any, target: str) -> str:
    """``right``, ``right with values``, or why not."""
    inputs, expected = arrays(case)
    named = dict(zip((i.name for i in case.model.graph.input), inputs))
    values: dict[str, Any] = {}
    try:
        graph = None
        while graph is None:
            try:
                graph = from_onnx(case.model, values=values)
            except tir.ModelError as error:
                needed = re.findall("`([^`]*)`, is known only when it runs", str(error))
                if not needed or needed[0] in values or needed[0] not in named:
                    raise
                values[needed[0]] = named[needed[0]]
        model = compile_graph(graph, target)
        made = model(**{p.name: named[p.name] for p in model.inputs})
    except tir.ModelError as error:
        return "; ".join(f"{f[0]}-{f[1]}: {f[4]}" for f in error.faults) or error.rule
    except Exception as error:  # each case stands for itself
        return f"{type(error).__name__}: {error}".splitlines()[0]
    made = made if isinstance(made, tuple) else (made,)
    for got, want in zip(made, expected):
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"wrong: {got.dtype}{got.shape} for {want.dtype}{want.shape}"
        wide = [a.astype("float64") if a.dtype.kind not in "biu" else a for a in (got, want)]
        tolerance = max(case.rtol, 2e-2 if want.dtype.itemsize == 2 and want.dtype.kind not in "iu" else 0)
        if not np.allclose(*wide, rtol=tolerance, atol=max(case.atol, 1e-6), equal_nan=True):
            return "wrong: other numbers"
    return "right with values" if values else "right"


def main() -> None:
    """Run the cases, and print the table."""
    from onnx.backend.test import loader

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="?", type=Path)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--every", type=int, default=1, help="try each N-th case only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cases = {case.name: case for case in loader.load_model_tests(kind="node")}
    names = sorted(cases) if options.names is None else options.names.read_text().split()
    found: dict[str, list[str]] = collections.defaultdict(list)
    start = time.process_time()
    for name in names[:: options.every]:
        found["there is no such case" if name not in cases else judged(cases[name], options.target)].append(name)
    for why, which in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"{len(which):5}  {why[:160]}   {' '.join(which[:2])}")
    print(f"{len(names[:: options.every])} cases, {time.process_time() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
