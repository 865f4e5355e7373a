"""Corners of passes that a change could lose in silence; each was found by a mutant that no test killed."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import BuildError, transform
from tir.expr import StringImm
from tir.op import OPS, Op, call
from tir.script import parse
from tir.stmt import BufferStore
from tir.visit import rewrite


def same(func, changed, *arrays):
    """Both functions compute the same from ``arrays``."""
    first, second = [[a.copy() for a in arrays] for _ in range(2)]
    tir.interp.run(func, *first)
    tir.interp.run(changed, *second)
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)


def test_a_loop_in_an_else_branch_is_partitioned():
    func = parse(
        """
@T.prim_func
def f(A: T.Buffer((20,), "float32")):
    if A[0] > T.float32(3):
        A[0] = T.float32(2)
    else:
        for i in T.serial(20, annotations={"pragma_loop_partition_hint": 1}):
            if i < 5:
                A[i] = T.float32(1)
"""
    )
    changed = transform.loop_partition(func)
    assert "range(5)" in changed.script() and "if i < 5" not in changed.script()
    same(func, changed, np.zeros(20, "float32"))


def test_a_guard_in_an_else_branch_of_a_partitioned_loop_goes():
    func = parse(
        """
@T.prim_func
def f(A: T.Buffer((20,), "float32")):
    for i in T.serial(20, annotations={"pragma_loop_partition_hint": 1}):
        if A[i] > T.float32(3):
            A[i] = T.float32(2)
        else:
            if i < 5:
                A[i] = T.float32(1)
"""
    )
    changed = transform.loop_partition(func)
    assert "range(5)" in changed.script() and "if i < 5" not in changed.script()
    same(func, changed, np.arange(20, dtype="float32"))


def test_an_operator_of_a_whole_warp_needs_32_lanes():
    text = """
@T.prim_func
def f(C: T.Buffer((256,), "float32")):
    tx = T.launch_thread("threadIdx.x", 16)
    c = T.allocate([256], "float32", "warp")
    C_warp = T.decl_buffer((256,), "float32", data=c, scope="warp")
    T.mma_fill(16, c, 0, dtype="float32")
    for j in range(16):
        C_warp[tx * 16 + j] = C[tx * 16 + j]
"""
    with pytest.raises(BuildError, match="needs 32 threads in threadIdx.x; there are 16"):
        transform.lower_warp_memory(parse(text))
    lowered = transform.lower_warp_memory(parse(text.replace("16)", "32)", 1).replace("16", "8")))
    assert "T.allocate([8]" in lowered.script()


PIPELINE = """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    S = T.alloc_buffer((8,), "float32")
    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": ORDER}):
        with T.block("S"):
            vi = T.axis.spatial(8, i)
            S[vi] = A[vi]
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = S[vi]
"""


@pytest.mark.parametrize("order", ["[0, 0]", "[0, 2]", "[0]", "[0, 1, 2]"])
def test_the_order_of_a_pipeline_is_a_permutation(order):
    with pytest.raises(BuildError, match=r"give each statement a stage, and a place 0 … in the order"):
        tir.lower(parse(PIPELINE.replace("ORDER", order)))


def test_a_pipeline_without_an_order_is_refused():
    func = parse(PIPELINE.replace(', "software_pipeline_order": ORDER', ""))
    with pytest.raises(
        BuildError, match=r"software_pipeline_stage without software_pipeline_order; .*\[0, 1\] is that of"
    ):
        tir.lower(func)


def test_a_predicate_that_names_an_own_iterator_is_refused():
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            T.where(PLACE < 6)
            A[vi] = vi
"""
    with pytest.raises(tir.WellFormedError, match="predicate of block `A` names its iterator `vi`"):
        parse(text.replace("PLACE", "vi"))
    func = parse(text.replace("PLACE", "i"))

    def own(node):
        return node.replace(predicate=node.block.iter_vars[0].var < 6) if getattr(node, "iter_values", ()) else None

    with pytest.raises(BuildError, match="predicate of block `A` names its iterator `vi`"):
        transform.convert_blocks_to_opaque(func.with_body(rewrite(func.body, own)))


def test_a_function_for_a_cpu_stays_whole_beside_kernels():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    for i in range(8):
        A[i] = i
""")
    with pytest.raises(BuildError, match="not in a loop bound to threads"):
        transform.split_host_device(tir.IRModule({"main": func}))
    for_cpu = tir.IRModule({"main": func.with_attr({"target": tir.Target("llvm")})})
    assert transform.split_host_device(for_cpu)["main"] is for_cpu["main"]


def test_an_operator_with_a_text_has_no_vector_form(monkeypatch):
    monkeypatch.setitem(OPS, "named_twice", Op("named_twice", 2, "pure", "float32", lambda name, x: x * 2))
    func = parse(
        """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.vectorized(8):
        B[i] = A[i]
"""
    )

    def named(node):
        if not isinstance(node, BufferStore):
            return None
        return node.replace(value=call("named_twice", StringImm("gain"), node.value))

    lowered = transform.vectorize_loop(func.with_body(rewrite(func.body, named)))
    assert 'named_twice", ["gain", A[i]]' in lowered.script()


def test_memory_allocated_under_a_condition_of_a_virtual_thread():
    """It is the virtual thread's own: it has no axis for the others."""
    func = parse(
        """
@T.prim_func
def f(A: T.Buffer((3,), "int32"), O: T.Buffer((3,), "int32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for v in T.thread_binding(2, thread="vthread.x"):
            for t in T.thread_binding(1, thread="threadIdx.x"):
                with T.block("tile"):
                    vo = T.axis.spatial(3, b * 2 + v)
                    T.where(b * 2 + v < 3)
                    T.evaluate(0)
                    for z in T.thread_binding(1, thread="blockIdx.y"):
                        with T.block("own"):
                            S = T.alloc_buffer((3,), "int32", scope="local")
                            with T.block("S"):
                                S[vo] = A[vo] + 1
                            with T.block("O"):
                                O[vo] = S[vo]
"""
    )
    out = np.zeros(3, "int32")
    tir.build(func, target="cuda-sim")(np.array([4, 5, 6], "int32"), out)
    assert out.tolist() == [5, 6, 7]


@pytest.mark.parametrize(
    ("condition", "stays"), [("t < 8", False), ("t < 7", True), ("v < 2", False), ("v < 1", True), ("t + v < 9", False)]
)
def test_launches_bound_their_variables(condition, stays):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((16,), "int32")):
    t = T.launch_thread("threadIdx.x", 8)
    v = T.launch_thread("vthread", 2)
    if {condition}:
        A[t * 2 + v] = 1
""")
    assert (" if " in transform.simplify(func).script()) == stays
