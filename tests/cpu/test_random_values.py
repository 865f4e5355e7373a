"""Random expressions of every integer type, over loaded elements, judged by NumPy: executor and compiled code."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tir
from tir.function import IRModule
from tir.script import parse

TYPES = ("int8", "uint8", "int16", "int32", "uint32", "int64")
N = 64


class Draw:
    """Draws expressions: each a pair of its text and its values, wrapped to its type."""

    def __init__(self, seed: int, arrays: dict[str, np.ndarray]):
        self.random, self.arrays = random.Random(seed), arrays

    def value(self, dtype: str, depth: int) -> tuple[str, np.ndarray]:
        kind = (
            self.random.choice(["load", "sum", "sum", "product", "divide", "cast", "extreme", "select"])
            if depth
            else "load"
        )
        if kind == "load":
            return f"{dtype.upper()}[i]", self.arrays[dtype]
        if kind == "cast":
            text, v = self.value(self.random.choice(TYPES), depth - 1)
            return f"T.Cast('{dtype}', {text})", v.astype(dtype)
        a, x = self.value(dtype, depth - 1)
        if kind == "divide":
            by = self.random.choice([2, 3, 4, 7, 12])
            if self.random.random() < 0.5:
                return f"({a} // T.{dtype}({by}))", x // np.array(by, dtype)
            return f"({a} % T.{dtype}({by}))", x % np.array(by, dtype)
        if self.random.random() < 0.3:
            k = self.random.choice([1, 2, 4, 6, 100])
            b, y = f"T.{dtype}({k})", np.full(N, k, dtype)
        else:
            b, y = self.value(dtype, depth - 1)
        if kind == "sum":
            return (f"({a} + {b})", x + y) if self.random.random() < 0.6 else (f"({a} - {b})", x - y)
        if kind == "product":
            return f"({a} * {b})", x * y
        if kind == "extreme":
            return (
                (f"T.max({a}, {b})", np.maximum(x, y))
                if self.random.random() < 0.5
                else (f"T.min({a}, {b})", np.minimum(x, y))
            )
        c, z = self.value(dtype, depth - 1)
        return f"T.Select({a} < {c} or {b} >= {c}, {a}, {c})", np.where((x < z) | (y >= z), x, z)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3"])
def test_random_expressions_are_what_numpy_computes(cpu):
    arrays = {}
    for k, dtype in enumerate(TYPES):
        info, rng = np.iinfo(dtype), np.random.default_rng(k)
        edges = [info.min, info.min + 1, 0, 1, 2, 3, info.max // 2, info.max - 1, info.max]
        arrays[dtype] = np.concatenate(
            [edges, rng.integers(info.min, info.max, N - 9, dtype=dtype, endpoint=True)]
        ).astype(dtype)
    params = ", ".join(f'{t.upper()}: T.Buffer(({N},), "{t}")' for t in TYPES)
    funcs, expected = {}, {}
    with np.errstate(over="ignore"):
        for seed in range(60):
            draw = Draw(seed, arrays)
            out = draw.random.choice(TYPES)
            text, expected[f"f{seed}"] = draw.value(out, 3)
            source = f'@T.prim_func\ndef f({params}, O: T.Buffer(({N},), "{out}")):\n    for i in range({N}):\n        O[i] = {text}\n'
            funcs[f"f{seed}"] = parse(source).with_attr("global_symbol", f"f{seed}")
    for target in ("interpreter", f"llvm -mcpu={cpu}"):
        module = tir.build(IRModule(funcs), target)
        for name, values in expected.items():
            o = np.zeros(N, values.dtype)
            module[name](*arrays.values(), o)
            assert (o == values).all(), (target, funcs[name].script())
