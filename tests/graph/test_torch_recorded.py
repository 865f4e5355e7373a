"""What torch made of each row, recorded where torch is: ``pytest --update-golden tests/graph/test_torch_rows.py`` writes it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tir.dtype import DType
from tir.graph import compile_graph
from tir.importers.torch import imported
from tir.importers.torch_program import Program, Ref, Step
from tir.importers.torch_table import Result
from tir.interp.numbers import array_dtype

FILE = Path(__file__).parents[1] / "golden/torch_rows.json"


def encoded(value: Any) -> Any:
    """Plain data as JSON has it."""
    if isinstance(value, (Ref, DType)):
        return {"ref" if isinstance(value, Ref) else "dtype": value.name if isinstance(value, Ref) else str(value)}
    if isinstance(value, Result):
        return {"makes": [value.dtype, list(value.sizes)]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, (list, tuple)):
        return [encoded(each) for each in value]
    return value


def decoded(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, held),) = value.items()
        made = {"ref": Ref, "dtype": DType, "float": float, "makes": lambda m: Result(m[0], tuple(m[1]))}
        return made[kind](held)
    return [decoded(each) for each in value] if isinstance(value, list) else value


def array_of(about: list[Any]) -> np.ndarray:
    """An array of its type, its shape and its elements; those of floats in steps of a sixteenth."""
    dtype, shape, elements = about
    kind = array_dtype(DType(dtype))
    return np.array(elements, "float64").reshape(shape).astype(kind)


ROWS = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {"arrays": [], "rows": []}


@pytest.mark.parametrize(
    "number", range(len(ROWS["rows"])), ids=[f"{n}-{r['operator']}" for n, r in enumerate(ROWS["rows"])]
)
def test_a_row_makes_what_torch_made(number):
    row = ROWS["rows"][number]
    makes = decoded(row["makes"])
    step = Step("y", row["operator"], {k: decoded(a) for k, a in row["arguments"].items()}, tuple(makes) if isinstance(makes, list) else makes, row["overload"])  # fmt: skip
    parts = [Step(f"y{n}", "operator.getitem", {"x": Ref("y"), "n": n}) for n in range(row["parts"])]
    outputs = tuple(Ref(p.name) for p in parts) or (Ref("y"),)
    values = [array_of(ROWS["arrays"][n]) for n in row["values"]]
    inputs = {f"x{n}": (ROWS["arrays"][at][0], tuple(ROWS["arrays"][at][1])) for n, at in enumerate(row["values"])}
    made = compile_graph(imported(Program(inputs, (step, *parts), outputs)), "interpreter")(*values)
    for got, (dtype, shape, wanted) in zip(made if isinstance(made, tuple) else (made,), row["expected"]):
        assert str(got.dtype) == str(array_dtype(DType(dtype))) and list(got.shape) == shape
        flat = got.reshape(-1).astype("float64")
        chosen = flat[:: max(1, flat.size // 12)]
        close = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-4)
        np.testing.assert_allclose(chosen, [float(w) for w in wanted], rtol=close, atol=close)


def test_rows_are_there():
    assert len(ROWS["rows"]) > 200 and all(row["expected"] for row in ROWS["rows"])
