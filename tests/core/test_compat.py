"""Scripts as TVM's users have them, but for the lines that import."""

from __future__ import annotations

import numpy as np
import pytest

import tir
import tir as tvm
from tir.script import ir as I
from tir.script import tir as T


@tvm.script.ir_module
class Matmul:
    @T.prim_func
    def main(a: T.handle, b: T.handle, c: T.handle) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        A = T.match_buffer(a, [64, 64])
        B = T.match_buffer(b, [64, 64])
        C = T.match_buffer(c, [64, 64])
        for i, j, k in T.grid(64, 64, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def test_schedule_build_run_and_time() -> None:
    sch = tvm.tir.Schedule(Matmul, debug_mask="all")
    block = sch.get_block("C", func_name="main")
    i, j, _ = sch.get_loops(block)
    _, ji = sch.split(j, factors=[None, 16])
    sch.vectorize(ji)
    sch.parallel(i)
    with tvm.transform.PassContext(opt_level=3):
        rt_mod = tvm.build(sch.mod, target=tvm.target.Target("llvm"))
    dev = tvm.device("llvm", 0)
    rng = np.random.default_rng(0)
    a_np, b_np = (rng.uniform(size=(64, 64)).astype("float32") for _ in range(2))
    a, b = tvm.nd.array(a_np, dev), tvm.nd.array(b_np, device=dev)
    c = tvm.nd.empty((64, 64), "float32", dev)
    rt_mod["main"](a, b, c)
    tvm.testing.assert_allclose(c.numpy(), a_np @ b_np, rtol=1e-5)
    assert rt_mod.time_evaluator(rt_mod.entry_name, dev, number=1, repeat=2)(a, b, c).mean > 0
    assert "define" in rt_mod.get_source() and rt_mod.get_source("ll") == rt_mod.get_source()
    assert ".text" in rt_mod.get_source("s")


def test_kinds_of_loops_ranges_and_sizes() -> None:
    kinds = tvm.tir.ForKind
    axes = [
        (kinds.SERIAL, T.serial),
        (kinds.PARALLEL, T.parallel),
        (kinds.VECTORIZED, T.vectorized),
        (kinds.UNROLLED, T.unroll),
    ]
    for kind, maker in axes:

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            for i in maker(8):
                A[i] = 1.0

        assert f.body.kind == kind, kind
        n = tvm.tir.SizeVar("n", "int64")
        made = tvm.tir.For(f.body.loop_var, tvm.tir.const(0), tvm.tir.const(8), kind, f.body.body)
        tvm.ir.assert_structural_equal(made, f.body)
        between = tvm.ir.Range.from_min_extent(2, n)
        assert between.min.value == 2 and between.extent is n and between.min.dtype == "int64"
    assert kinds.THREAD_BINDING == "thread_binding"


def test_ir() -> None:
    mod = tvm.IRModule.from_expr(Matmul["main"])
    tvm.ir.assert_structural_equal(mod, Matmul)
    assert tvm.ir.structural_hash(mod) == tvm.ir.structural_hash(Matmul)
    tvm.ir.assert_structural_equal(tvm.script.from_source(mod.script()), mod)
    assert tvm.cpu(0).exist and repr(tvm.cuda(1)) == "cuda:1" and tvm.device("cuda:1") == tvm.cuda(1)
    with pytest.raises(ValueError, match="no device 'tpu'"):
        tvm.device("tpu")
    with pytest.raises(ValueError, match="no pass configuration tir.nothing"):
        tvm.transform.PassContext(config={"tir.nothing": 1})


def test_visitors() -> None:
    func = Matmul["main"]
    seen: list[str] = []
    tvm.tir.stmt_functor.post_order_visit(func.body, lambda n: seen.append(type(n).__name__))
    assert seen[-1] == "BlockRealize" and seen.count("For") == 3
    loops: list[str] = []

    def down_to_the_block(node: object) -> bool:
        if isinstance(node, tvm.tir.For):
            loops.append(node.loop_var.name)
        return not (isinstance(node, tvm.tir.Block) and node.name == "C")

    tvm.tir.stmt_functor.pre_order_visit(func.body, down_to_the_block)
    assert loops == ["i", "j", "k"]

    def unrolled(loop: tvm.tir.For) -> tvm.tir.For:
        return loop.replace(kind="unrolled") if loop.loop_var.name == "k" else loop

    made = func.with_body(tvm.tir.stmt_functor.ir_transform(func.body, None, unrolled, ["tir.For"]))
    assert "T.unroll(64)" in made.script()


def test_cuda_source() -> None:
    sch = tvm.tir.Schedule(Matmul)
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    built = tvm.build(sch.mod, target="cuda -arch=sm_80")
    assert "__global__" in built.imported_modules[0].get_source()


def test_errors_have_one_root() -> None:
    assert issubclass(tvm.tir.ScheduleError, tvm.TVMError) and tvm.TVMError is tir.TirError
    assert I.ir_module is tvm.script.ir_module


def test_names_of_tvm_0_27(tmp_path):
    import shutil

    assert tvm.s_tir.Schedule is tvm.tirx.Schedule is tvm.Schedule
    if shutil.which("cc") is None:
        pytest.skip("linking needs a C compiler")
    from tir.library import rows

    path = str(tmp_path / "sum.so")
    tvm.compile(rows.row_sum(4, 8)).export_library(path)
    assert (tvm.runtime.load_module(path).new(np.ones((4, 8), "float32")) == 8).all()
