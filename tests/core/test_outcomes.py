"""What expressions, types, buffers, operators and targets are made of what, and which errors they raise: a table."""

from __future__ import annotations

import math
import operator
import os
import pickle
from pathlib import Path

import numpy as np
import outcomes
import pytest

import tir
from tir import expr, op, target
from tir.dtype import DType
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


def of_types(monkeypatch):
    def parts(t):
        return str(t), t.code, t.bits, t.lanes, t.is_int, t.is_float, t.is_bool, t.is_handle, t.min_value, t.max_value

    def shown(b):
        pointer = b.data.name, str(b.data.pointer_dtype), b.data.scope
        rest = b.strides, b.elem_offset, b.scope, b.data_alignment, b.offset_factor, b.buffer_type, b.axis_separators
        return b.name, b.shape, str(b.dtype), pointer, rest

    def set_threads(text):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        return target.threads() if text.strip()[:1] in ("3", "4") else target.threads() == len(os.sched_getaffinity(0))

    def streams_with(second, third, elements):
        monkeypatch.setattr(target, "cache_bytes", lambda level: {2: second, 3: third}[level])
        return target.streams(elements)

    def registered_again(name):
        return op._fill(getattr(op, name), lambda _: None)

    def digits(value):
        with np.errstate(all="ignore"):
            x = value()
        return f"{x.dtype} {x:.5g}"

    def behind(operator):
        plain = op.Pointer()
        known = {at: vars(pointer) for at, pointer in operator.pointers}
        return {at: {k: v for k, v in found.items() if v != getattr(plain, k)} for at, found in known.items()}

    def shown_error(run):
        return outcomes.shown(run).partition(" as ")[0]

    limits = ("max_dynamic_shared_memory_per_block", "max_threads_per_multiprocessor", "max_blocks_per_multiprocessor")
    return {
        **vars(expr), **vars(op), **vars(tir.buffer), **vars(target), "np": np, "math": math, "pickle": pickle,
        "DType": DType, "registered_again": registered_again, "n": tir.Var("n"), "f": tir.Var("f", "float32"), "parts": parts, "shown": shown,
        "set_threads": set_threads, "streams_with": streams_with, "digits": digits,
        "LIMITS": limits, "behind": behind, "shown_error": shown_error,
    }  # fmt: skip


@pytest.mark.parametrize("title", outcomes.titles(HERE / "outcomes_expr.txt"))
def test_expressions(request, title):
    outcomes.check(request, HERE / "outcomes_expr.txt", title, of_expressions())


@pytest.mark.parametrize("title", outcomes.titles(HERE / "outcomes_types.txt"))
def test_types_buffers_targets_operators(request, monkeypatch, title):
    if title.endswith(" of types"):
        monkeypatch.setattr(DType, "_interned", {})  # so that types are read, not found
    outcomes.check(request, HERE / "outcomes_types.txt", title, of_types(monkeypatch))
