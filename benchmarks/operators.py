"""Operators of ``tir.ops`` by their default schedules beside NumPy and torch, on about a million elements.

``python -m benchmarks.operators [--save] [name …]``: one thread of each, whose processor time is taken; the calls of all
take turns, and the least time of each counts. Prints a table in Markdown; ``--save`` keeps it in ``operators.json`` with the
name of the machine, from where ``make generated`` takes it. With names, rows of other names stay as they were there.

All do the same: each call allocates its results, and makes them contiguous in the same layout.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported: its threads' time would not count

import functools
import importlib.metadata
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tir
from tests.tools.generated.operators_page import times_row
from tir import ops, te

from .operator_rows import measured

TABLE = Path(__file__).with_name("operators.json")

ROUNDS = 42
ROWS, COLUMNS = 1024, 1024
SHAPE = (ROWS, COLUMNS)


@dataclass
class Row:
    """An operator on arrays: of te, of NumPy, and of torch (None where it has no such)."""

    name: str
    ours: Callable[..., Any]
    numpy: Callable[..., Any] | None
    torch: Callable[..., Any] | None
    arrays: list[np.ndarray]


def rows() -> Iterator[Row]:
    """What is measured."""
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.1, 3, SHAPE).astype("float32") for _ in range(2))
    row = x[0].copy()
    flags = [rng.random(SHAPE) < 0.5 for _ in range(2)]
    numbers = [rng.integers(-100, 100, SHAPE, dtype="int32") for _ in range(2)]
    torch = _torch()

    def named(name: str) -> Any:
        return None if torch is None else getattr(torch, name)

    for name in ("add", "multiply", "divide", "maximum", "fmod", "remainder", "floor_divide", "pow", "atan2"):
        theirs = {"pow": np.power, "atan2": np.arctan2}.get(name) or getattr(np, name)
        yield Row(name, getattr(ops, name), theirs, named(name), [x, y])
    yield Row("add, a row to each", ops.add, np.add, named("add"), [x, row])
    yield Row("less", ops.less, np.less, named("less"), [x, y])
    yield Row("logical_and", ops.logical_and, np.logical_and, named("logical_and"), flags)
    yield Row("bitwise_xor", ops.bitwise_xor, np.bitwise_xor, named("bitwise_xor"), numbers)
    yield Row("where", ops.where, np.where, named("where"), [flags[0], x, y])
    for name in (
        "abs",
        "sign",
        "square",
        "floor",
        "round",
        "exp",
        "expm1",
        "log",
        "log1p",
        "sqrt",
        "sin",
        "tan",
        "tanh",
    ):
        yield Row(name, getattr(ops, name), getattr(np, name), named(name), [x])
    small = (x / 4).astype("float32")
    for name, theirs in (("asin", np.arcsin), ("atan", np.arctan), ("sinh", np.sinh), ("asinh", np.arcsinh)):
        yield Row(name, getattr(ops, name), theirs, named(name), [small])
    for name in ("rsqrt", "sigmoid", "erf"):
        yield Row(name, getattr(ops, name), None, named(name), [x])
    yield Row("isfinite", ops.isfinite, np.isfinite, named("isfinite"), [x])
    yield Row(
        "clip",
        lambda a: ops.clip(a, 0.5, 1),
        lambda a: np.clip(a, 0.5, 1),
        torch and (lambda a: torch.clip(a, 0.5, 1)),
        [x],
    )
    yield Row(
        "astype int8",
        lambda a: ops.astype(a, "int8"),
        lambda a: a.astype("int8"),
        torch and (lambda a: a.to(torch.int8)),
        [x],
    )
    yield from _reductions(torch, x, flags[0])
    yield from _moves(torch, x, y, rng)
    yield from _networks(torch, x)
    yield from (Row(*each) for each in measured(torch))


def _reductions(torch: Any, x: np.ndarray, flags: np.ndarray) -> Iterator[Row]:
    for name, torch_name in (("sum", "sum"), ("max", "amax"), ("argmax", "argmax"), ("mean", "mean"), ("prod", "prod")):
        for axis in (None, 0, 1):
            theirs = getattr(torch, torch_name, None)
            yield Row(
                f"{name}, axis {axis}",
                functools.partial(getattr(ops, name), axis=axis),
                functools.partial(getattr(np, name), axis=axis),
                theirs and (lambda a, f=theirs, axis=axis: f(a) if axis is None else f(a, dim=axis)),
                [x],
            )
    yield Row(
        "var, axis 1", lambda a: ops.var(a, axis=1), lambda a: a.var(axis=1), torch and (lambda a: a.var(dim=1)), [x]
    )
    yield Row("logsumexp, axis 1", lambda a: ops.logsumexp(a, axis=1), None, torch and (lambda a: a.logsumexp(1)), [x])
    yield Row("all", ops.all, np.all, torch and torch.all, [np.ones_like(flags)])
    for axis in (0, 1):
        yield Row(
            f"cumsum, axis {axis}",
            lambda a, axis=axis: ops.cumsum(a, axis=axis),
            lambda a, axis=axis: a.cumsum(axis),
            torch and (lambda a, axis=axis: a.cumsum(axis)),
            [x],
        )
    yield Row("cumsum", ops.cumsum, np.cumsum, torch and (lambda a: a.reshape(-1).cumsum(0)), [x])


def _moves(torch: Any, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Iterator[Row]:
    places = rng.permutation(ROWS)
    yield Row(
        "transpose", ops.transpose, lambda a: np.ascontiguousarray(a.T), torch and (lambda a: a.T.contiguous()), [x]
    )
    yield Row("flip", lambda a: ops.flip(a, 1), lambda a: np.flip(a, 1).copy(), torch and (lambda a: a.flip(1)), [x])
    yield Row(
        "concatenate",
        lambda a, b: ops.concatenate([a, b], 1),
        lambda a, b: np.concatenate([a, b], 1),
        torch and (lambda a, b: torch.cat([a, b], 1)),
        [x, y],
    )
    yield Row(
        "take rows", lambda a, i: ops.take(a, i, axis=0), lambda a, i: a[i], torch and (lambda a, i: a[i]), [x, places]
    )
    yield Row(
        "pad",
        lambda a: ops.pad(a, [(1, 1), (2, 2)]),
        lambda a: np.pad(a, [(1, 1), (2, 2)]),
        torch and (lambda a: torch.nn.functional.pad(a, (2, 2, 1, 1))),
        [x],
    )

    yield Row(
        "tile", lambda a: ops.tile(a, (1, 2)), lambda a: np.tile(a, (1, 2)), torch and (lambda a: a.repeat(1, 2)), [x]
    )
    yield Row(
        "repeat",
        lambda a: ops.repeat(a, 2, 1),
        lambda a: np.repeat(a, 2, 1),
        torch and (lambda a: a.repeat_interleave(2, 1)),
        [x],
    )
    yield Row("roll", lambda a: ops.roll(a, 3, 1), lambda a: np.roll(a, 3, 1), torch and (lambda a: a.roll(3, 1)), [x])
    yield Row(
        "stack",
        lambda a, b: ops.stack([a, b], -1),
        lambda a, b: np.stack([a, b], -1),
        torch and (lambda a, b: torch.stack([a, b], -1)),
        [x, y],
    )
    yield Row(
        "slice, steps of 2",
        lambda a: ops.strided_slice(a, [0, 0], [ROWS, COLUMNS], [1, 2]),
        lambda a: a[:, ::2].copy(),
        torch and (lambda a: a[:, ::2].contiguous()),
        [x],
    )
    yield Row("triu", ops.triu, np.triu, torch and torch.triu, [x])
    columns = rng.integers(0, COLUMNS, SHAPE)
    yield Row(
        "take along axis",
        lambda a, i: ops.take_along_axis(a, i, 1),
        lambda a, i: np.take_along_axis(a, i, 1),
        torch and (lambda a, i: a.gather(1, i)),
        [x, columns],
    )
    labels = rng.integers(0, 64, 16384)
    yield Row(
        "one_hot",
        lambda i: ops.one_hot(i, 1.0, 0.0, 64, -1, "float32"),
        lambda i: np.eye(64, dtype="float32")[i],
        torch and (lambda i: torch.nn.functional.one_hot(i, 64).float()),
        [labels],
    )
    yield from _orders(torch, x)


def _orders(torch: Any, x: np.ndarray) -> Iterator[Row]:
    """Sorting, of rows of 1,024, and of one row."""
    yield Row("sort", ops.sort, functools.partial(np.sort, axis=-1), torch and (lambda a: a.sort(-1).values), [x])
    yield Row("argsort", ops.argsort, functools.partial(np.argsort, axis=-1), torch and (lambda a: a.argsort(-1)), [x])
    yield Row(
        "topk, 10",
        lambda a: ops.topk(a, 10, ret_type="values"),
        lambda a: -np.partition(-a, 9, -1)[:, :10],
        torch and (lambda a: a.topk(10, -1).values),
        [x],
    )
    flat = x.reshape(-1)
    yield Row("sort of one row", ops.sort, np.sort, torch and (lambda a: a.sort().values), [flat])
    yield Row(
        "topk, 100 of one row",
        lambda a: ops.topk(a, 100),
        lambda a: -np.sort(np.partition(-a, 99)[:100]),
        torch and (lambda a: a.topk(100)),
        [flat],
    )
    ladder = np.sort(x[0])
    yield Row("searchsorted", ops.searchsorted, np.searchsorted, torch and torch.searchsorted, [ladder, x])


def _networks(torch: Any, x: np.ndarray) -> Iterator[Row]:
    functions = torch and torch.nn.functional
    scale, shift = np.ones(COLUMNS, "float32"), np.zeros(COLUMNS, "float32")
    yield Row("nn.relu", ops.nn.relu, lambda a: np.maximum(a, 0), functions and functions.relu, [x])
    yield Row("nn.gelu", ops.nn.gelu, None, functions and functions.gelu, [x])
    yield Row("nn.silu", ops.nn.silu, None, functions and functions.silu, [x])
    yield Row("nn.log_softmax", ops.nn.log_softmax, None, functions and (lambda a: functions.log_softmax(a, -1)), [x])
    yield Row("nn.softmax", ops.nn.softmax, None, functions and (lambda a: functions.softmax(a, -1)), [x])
    yield Row(
        "nn.layer_norm",
        lambda a, g, b: ops.nn.layer_norm(a, g, b, [1]),
        None,
        functions and (lambda a, g, b: functions.layer_norm(a, (COLUMNS,), g, b)),
        [x, scale, shift],
    )
    yield Row(
        "nn.rms_norm",
        lambda a, g: ops.nn.rms_norm(a, g, [1]),
        None,
        functions and (lambda a, g: functions.rms_norm(a, (COLUMNS,), g, 1e-5)),
        [x, scale],
    )
    images = x.reshape(1, 16, 256, 256)
    yield Row(
        "nn.max_pool2d",
        lambda a: ops.nn.pool2d(a, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"),
        None,
        functions and (lambda a: functions.max_pool2d(a, 2)),
        [images],
    )
    yield Row(
        "nn.avg_pool2d",
        lambda a: ops.nn.pool2d(a, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "avg"),
        None,
        functions and (lambda a: functions.avg_pool2d(a, 3, 1, 1)),
        [images],
    )
    yield Row("nn.matmul", ops.nn.matmul, np.matmul, torch and torch.matmul, [x, x])
    filters = np.ones((16, 16, 3, 3), "float32")
    yield Row(
        "nn.conv2d",
        lambda a, w: ops.nn.conv2d(a, w, 1, 1, 1),
        None,
        functions and (lambda a, w: functions.conv2d(a, w, padding=1)),
        [images, filters],
    )
    yield Row(
        "nn.batch_norm",
        lambda a, *p: ops.nn.batch_norm(a, *p)[0],
        None,
        functions and (lambda a, g, b, m, v: functions.batch_norm(a, m, v, g, b)),
        [images, *(np.ones(16, "float32") for _ in range(4))],
    )


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    return torch


def calls_of(row: Row, torch: Any) -> dict[str, Callable[[], Any]]:
    """One call of each, on arrays that are ready."""
    tensors = [te.placeholder(a.shape, str(a.dtype), name=f"x{n}") for n, a in enumerate(row.arrays)]
    result = row.ours(*tensors)
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    func = te.create_prim_func([*tensors, *results])
    run = tir.build(ops.schedule(func, "llvm -num-cores=1").mod, "llvm -num-cores=1")["main"]
    specs = [([int(s) for s in r.shape], str(r.dtype)) for r in results]
    calls = {"tir": lambda: run(*row.arrays, *(np.empty(*spec) for spec in specs))}
    if row.numpy is not None:
        calls["NumPy"] = lambda: row.numpy(*row.arrays)  # type: ignore[misc]
    if torch is not None and row.torch is not None:
        given = [torch.from_numpy(a) for a in row.arrays]
        calls["torch"] = lambda: row.torch(*given)  # type: ignore[misc]
    return calls


def least_milliseconds(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The least processor time of each call; they take turns, and so does which comes after which (what it left in the
    caches is the next one's)."""
    best = dict.fromkeys(calls, float("inf"))
    for order in itertools.islice(itertools.cycle(itertools.permutations(calls)), ROUNDS):
        for name in order:
            call = calls[name]
            start = time.thread_time()
            call()
            best[name] = min(best[name], time.thread_time() - start)
    return {name: seconds * 1e3 for name, seconds in best.items()}


def main() -> None:
    wanted, torch = [a for a in sys.argv[1:] if a != "--save"], _torch()
    print("| operator | tir, ms | NumPy, ms | torch, ms | tir / fastest |\n|---|---|---|---|---|")
    kept: dict[str, dict[str, float]] = {}
    for row in rows():
        if wanted and not any(w in row.name for w in wanted):
            continue
        found = kept[row.name] = {k: round(t, 3) for k, t in least_milliseconds(calls_of(row, torch)).items()}
        print(times_row(row.name, found), end="", flush=True)
    if "--save" in sys.argv:
        before = json.loads(TABLE.read_text(encoding="utf-8")) if wanted else {**about(), "milliseconds": {}}
        before["milliseconds"] |= kept
        TABLE.write_text(json.dumps(before, indent=1) + "\n", encoding="utf-8")


def about() -> dict[str, Any]:
    """The machine and the versions that are measured."""
    from codegen.llvm.compile import machine

    versions = {name: importlib.metadata.version(name) for name in ("numpy", "torch")}
    return {"machine": machine("", None).cpu, "load": round(os.getloadavg()[0], 1), **versions}


if __name__ == "__main__":
    main()
