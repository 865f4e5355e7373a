"""What expressions, types, buffers, operators and targets are made of what, and which errors they raise: a table."""

from __future__ import annotations

import importlib
import itertools
import math
import operator
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import outcomes
import pytest

import tir
from tir import equal, expr, ir_builder, op, stmt, target, visit
from tir import names as naming
from tir.checked import checked
from tir.dtype import DType
from tir.expr import Expr
from tir.op import call
from tir.script import parse

node_module = importlib.import_module("tir.node")  # the package's name `node` may be the decorator
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
        **vars(expr), **vars(op), **vars(tir.buffer), **vars(target), "np": np, "math": math, "pickle": pickle, "is_pure": visit.is_pure,
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


PROGRAM = """
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), n: T.int32):
    for i in range(4):
        if i < n + 1:
            B[i] = A[i] * T.float32(2)
        else:
            k: T.int32 = n + 1
            B[i] = T.Cast("float32", k)
"""


class Made:
    @checked
    def __init__(self, size: int):
        self.size = size


def checked_functions():
    @checked
    def several(text: str, times: int = 2, *rest: Any) -> str:
        """It repeats."""
        return text * times

    def one(annotation):
        def named(value):
            return "taken"

        named.__annotations__ = {"value": annotation}
        return checked(named)

    kinds = {
        "text": "str", "number": "float", "optional": "int | None", "either": "int | str", "listed": "Sequence[str]",
        "anything": "Any", "mapping": "Mapping[str, int]", "function": "Callable[..., Any]", "node": "Expr",
        "pairs": "list[tuple[str, int]]", "fixed": "tuple[str, ...]",
    }  # fmt: skip
    return {"several": several, "Made": Made, **{name: one(annotation) for name, annotation in kinds.items()}}


def own_nodes():
    @node_module.node
    class Pair(node_module.Node):
        a: Expr
        b: Expr
        label: str
        count: int
        kind: str = "usual"
        extra: Any = node_module.EMPTY

    @node_module.node
    class Many(node_module.Node):
        items: tuple[Expr, ...]
        about: Any
        maybe: Expr | None

    return {"Pair": Pair, "Many": Many}


def of_nodes(title):
    names = {name: tir.Var(name) for name in ("x", "y", "n")}

    def build(*lines):
        ib = ir_builder.create()
        here = {"ib": ib, "n": names["n"], "strided": strided, "scalar": tir.decl_buffer((), name="s")}
        exec("\n".join(lines), here)  # noqa: S102
        return ib.get()

    def difference(old, new):
        text = PROGRAM.replace("A[i]", "B[i]")
        return equal.first_difference(parse(text), parse(text.replace(old, new, 1)))

    def versions_before(made):
        for before, after in itertools.pairwise(made):
            node_module.made_from(before, after)
        return [getattr(node_module.version_before(v), "name", None) for v in made]

    def kept_at_most():
        known, of = node_module.MemoAmong(), tir.Var("of")
        others = [tir.Var("o") for _ in range(node_module.MOST_KNOWN + 1)]
        first = [known.found(of, (other,), lambda n=n: n) for n, other in enumerate(others)]
        return (
            first[-1],
            known.found(of, (others[0],), lambda: "again"),
            known.found(of, (others[-1],), lambda: "again"),
        )

    strided = tir.decl_buffer((2, 4), name="A", strides=(8, 1))
    own = checked_functions() if title == "functions that check" else own_nodes()
    modules = (naming, expr, stmt, tir.buffer, visit, equal, node_module, ir_builder)
    return {
        **{k: v for module in modules for k, v in vars(module).items()}, **names, **own, "np": np, "math": math,
        "pickle": pickle, "parse": parse, "PROGRAM": PROGRAM, "build": build, "difference": difference,
        "outcome": lambda of, text: eval(f"of.{text}", {"of": of}), "strided": strided, "kept_at_most": kept_at_most,
        "versions_before": versions_before,
    }  # fmt: skip


@pytest.mark.parametrize("title", outcomes.titles(HERE / "outcomes_nodes.txt"))
def test_names_nodes_walks_equality_builders(request, title):
    outcomes.check(request, HERE / "outcomes_nodes.txt", title, of_nodes(title))
