"""Stores of narrowed integers under conditions that are known when a loop is compiled.

LLVM 22's back end for AVX-512 stores the wide integer where a mask has one lane: see docs/llvm_faults.md.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tir
from tir.function import IRModule
from tir.script import parse

GUARD = 64
TRIPS = {"plain": (56, 61, 64, 200), "vectors": (61,), "unrolled": (61,)}
CONDITIONS = ("i % 11 == 0", "i % 9 == 8", "(i == 5) | (i == 20)", "i >= 52")
TYPES = (
    ("int64", "int32"),
    ("int64", "int8"),
    ("uint64", "uint16"),
    ("int32", "int16"),
    ("int16", "int8"),
    ("float64", "int8"),
)


def programs():
    loops = [(loop, n) for loop, trips in TRIPS.items() for n in trips]
    for (loop, n), condition, (source, target) in itertools.product(loops, CONDITIONS, TYPES):
        wide = "A[i]" if "float" in source or target == "int16" else f"A[i] >> T.{source}(1)"
        func = parse(
            f"""
@T.prim_func
def f(A: T.Buffer(({n},), "{source}"), O: T.Buffer(({n},), "{target}")):
    for i in range({n}):
        if {condition.replace(" | ", " or ")}:
            O[i] = T.Cast("{target}", {wide})
"""
        )
        if loop != "plain":
            sch = tir.Schedule(func)
            outer, inner = sch.split("i", [None, 8])
            sch.vectorize(inner)
            if loop == "unrolled":
                sch.unroll(outer)
            (func,) = sch.mod.functions.values()
        yield func, n, condition, source, target, ">>" in wide


def wrong_programs(cpu: str) -> list[int]:
    cases = list(programs())
    names = [f"f{k}" for k in range(len(cases))]
    funcs = {name: case[0].with_attr("global_symbol", name) for name, case in zip(names, cases)}
    module, wrong = tir.build(IRModule(funcs), f"llvm -mcpu={cpu}"), []
    for name, (_, n, condition, source, target, shifted) in zip(names, cases):
        a, o = np.arange(n).astype(source), np.full(n + GUARD, 7, target)
        expected, i = o.copy(), np.arange(n)
        on = eval(condition, {"i": i})
        expected[:n][on] = (a >> np.array(1, source) if shifted else a).astype(target)[on]
        module[name](a, o[:n])
        if (o != expected).any():
            wrong.append(int(name[1:]))
    return wrong


@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4"])
def test_only_the_elements_of_the_condition_are_stored(cpu):
    try:
        assert wrong_programs(cpu) == []
    except tir.RunError as error:
        if "this CPU" not in str(error):
            raise
        pytest.skip(str(error))
