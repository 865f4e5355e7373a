"""PassContext: pipelines inside a ``with``, by TVM's keys."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tir
import tir as tvm
from tir.script import parse
from tir.testing import assert_same_result
from tir.testing.oracle import assert_roundtrip
from tir.transform import PassContext, cpu_pipeline, gpu_pipeline

FUNC = parse("""
@T.prim_func
def main(A: T.Buffer((3, 13), "int32"), B: T.Buffer((3, 13), "int32")):
    D = T.alloc_buffer((3, 400), "int32")
    E = T.alloc_buffer((3, 400), "int32")
    for i, j in T.grid(3, 13):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj * 30] = A[vi, vj] + 1
    for i, j in T.grid(3, 13):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = D[vi, vj * 30] + (vj * 4 + vi) // 3 * ((vj * 4 + vi) // 3)
    for i, j in T.grid(3, 13):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj * 30] = A[vi, vj] - 3
    for i in range(3):
        for j in T.vectorized(13):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = E[vi, vj * 30] * 2
""")


def names(pipeline):
    return [p.name for p in pipeline]


CONFIGS = [
    {"tir.disable_vectorize": True},
    {"tir.disable_storage_rewrite": True},
    {"tir.disable_cse_tir": True},
    {"tir.UnrollLoop": {"auto_max_step": 16}},
    {"tir.UnrollLoop": {"auto_max_step": 16, "explicit_unroll": False}},
    {"tir.LoopPartition": {"partition_const_loop": True}},
    {"tir.disable_vectorize": True, "tir.disable_cse_tir": True, "tir.disable_storage_rewrite": True},
]


@pytest.mark.parametrize("number", range(len(CONFIGS)))
def test_results_stay_the_same(number):
    with tvm.transform.PassContext(opt_level=3, config=CONFIGS[number]):
        lowered = tir.lower(FUNC)
        built = tir.build(FUNC, target="llvm")
    assert_roundtrip(lowered)
    assert_same_result(FUNC, lowered, engines=["interpreter"])
    got, want = ([np.arange(39, dtype="int32").reshape(3, 13), np.zeros((3, 13), "int32")] for _ in range(2))
    built(*got)
    tir.interp.run(FUNC, *want)
    for x, y in zip(got, want):
        np.testing.assert_array_equal(x, y)
    assert lowered.script() != tir.lower(FUNC).script() or "LoopPartition" in str(CONFIGS[number])


def test_what_is_left_out():
    with PassContext(config={"tir.disable_vectorize": True}):
        text = tir.lower(FUNC).script()
        assert "T.Ramp" not in text and "0:" not in text and "vectorized" not in text
        assert "vectorize_loop" not in names(gpu_pipeline())
        with PassContext(disabled_pass=["tir.CommonSubexprElimTIR", "storage_rewrite", "tir.InjectPTXAsyncCopy"]):
            inner = names(cpu_pipeline())
            assert not {"common_subexpr_elim", "storage_rewrite", "vectorize_loop"} & set(inner)
            assert "inject_ptx_async_copy" not in names(gpu_pipeline())
        assert "storage_rewrite" in names(cpu_pipeline())
    with PassContext(config={"tir.disable_vectorize": False}):
        assert "vectorize_loop" in names(cpu_pipeline())
    assert names(cpu_pipeline()).count("skip_vectorize") == 0


def test_sources_are_those_of_the_build():
    """They are made when asked for, outside of the ``with``."""
    with PassContext(config={"tir.disable_vectorize": True}):
        built = tir.build(FUNC, target="llvm")
    assert "T.Ramp" not in built.lowered.script()
    assert tir.build(FUNC, target="llvm").lowered.script() != built.lowered.script()


def test_passes_are_added_in_phases():
    seen = []

    def at(phase):
        def note(mod):
            text = mod.script()
            seen.append((phase, "T.block" in text, "T.vectorized" in text))
            return mod

        return note

    with PassContext(config={"tir.add_lower_pass": [(3, at(3)), (1, at(1)), (0, at(0)), (2, at(2))]}):
        tir.lower(FUNC)
    assert seen == [(0, True, True), (1, False, True), (2, False, False), (3, False, False)]
    seen.clear()
    tir.lower(FUNC)
    assert not seen


def test_it_is_of_one_thread():
    inside = []
    with PassContext(config={"tir.disable_vectorize": True}) as context:
        assert PassContext.current() is context
        other = threading.Thread(target=lambda: inside.append(names(cpu_pipeline())))
        other.start()
        other.join()
    assert "vectorize_loop" in inside[0] and PassContext.current().config == {}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"config": {"tir.nothing": 1}}, ValueError, "no pass configuration tir.nothing.*Known are tir.UnrollLoop"),
        ({"config": {"tir.disable_vectorise": 1}}, ValueError, "did you mean tir.disable_vectorize"),
        ({"config": {"tir.disable_vectorize": "yes"}}, TypeError, "is a bool, not 'yes'"),
        ({"config": {"tir.UnrollLoop": 16}}, TypeError, "a dict with auto_max_step"),
        ({"config": {"tir.UnrollLoop": {"depth": 1}}}, ValueError, "no option 'depth' here; it has auto_max_step"),
        (
            {"config": {"tir.UnrollLoop": {"auto_max_step": "a"}}},
            TypeError,
            "auto_max_step of tir.UnrollLoop is of type int",
        ),
        ({"config": {"tir.add_lower_pass": [(7, len)]}}, TypeError, "with a phase from 0 to 3"),
        ({"config": {"tir.add_lower_pass": [3]}}, TypeError, "a list of .phase, pass."),
        ({"config": {"tir.add_lower_pass": 3}}, TypeError, "a list of .phase, pass."),
        ({"disabled_pass": ["tir.FlattenBuffer"]}, ValueError, "cannot be left out; these can: common_subexpr_elim"),
        ({"instruments": [1]}, ValueError, "TIR_DUMP writes every stage"),
    ],
)
def test_what_is_not_known_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        PassContext(**arguments)
