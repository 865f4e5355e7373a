"""What expressions, types, buffers, operators and targets are made of what, and which errors they raise: a table."""

from __future__ import annotations

import operator
from pathlib import Path

import numpy as np
import outcomes
import pytest

import tir
from tir import expr
from tir.op import call

HERE = Path(__file__).parent
IterLike = type("IterLike", (), {"__repr__": lambda self: "IterLike", "var": 3})()
NoUfunc = type("NoUfunc", (), {"__array_ufunc__": None, "__radd__": lambda self, other: "its own operator"})


def of_expressions():
    types = {
        "b": "bool", "b2": "bool", "i8": "int8", "u8": "uint8", "i": "int32", "u": "uint32", "l": "int64",
        "h": "float16", "bf": "bfloat16", "f": "float32", "d": "float64", "p": "handle",
        "v": "float32x4", "vi": "int32x4", "vf": "float32x2", "vl": "int64x4", "vb": "boolx4",
    }  # fmt: skip
    variables = {name: tir.Var(name, dtype) for name, dtype in types.items()}
    buffer = tir.decl_buffer((8,), "int32", "A")
    effect = call("call_extern", "f", dtype="int32")
    return {
        **vars(expr), **variables, "np": np, "operator": operator, "NoUfunc": NoUfunc, "IterLike": IterLike,
        "iv": tir.IterVar(tir.Range.of(0, 4), tir.Var("iv")), "load": tir.BufferLoad(buffer, [variables["i"]]),
        "call_": effect, "cb": effect > 0, "nothing": call("tvm_storage_sync", "shared"),
    }  # fmt: skip


@pytest.mark.parametrize("title", outcomes.titles(HERE / "outcomes_expr.txt"))
def test_expressions(request, title):
    outcomes.check(request, HERE / "outcomes_expr.txt", title, of_expressions())
