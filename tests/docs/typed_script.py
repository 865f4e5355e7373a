# pyright: reportInvalidTypeForm=false
# mypy: disable-error-code="valid-type"
"""What a user writes: kernels, schedules, builds, passes. Type checkers are run on it as on any user's script."""

from pathlib import Path
from typing import Annotated

import numpy as np

import tir
from tir import ops, te, topi
from tir.script import ir as I
from tir.script import tir as T


@T.prim_func
def matmul(
    A: T.Buffer((8, 8), "float32"),
    B: T.Buffer((8, 8), "float32"),
    C: T.Buffer((8, 8), "float32"),
):
    for i, j, k in T.grid(8, 8, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def softmax(a: T.handle, b: T.handle) -> None:
    T.func_attr({"global_symbol": "softmax", "tir.noalias": True})
    n = T.int32()
    m = T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    top = T.alloc_buffer((n,), "float32")
    total = T.alloc_buffer((n,), "float32", scope="global")
    for i, k in T.grid(n, m):
        with T.block("top"):
            vi = T.axis.spatial(n, i)
            vk = T.axis.reduce(m, k)
            T.reads(A[vi, vk])
            T.writes(top[vi])
            with T.init():
                top[vi] = T.min_value("float32")
            top[vi] = T.max(top[vi], A[vi, vk])
    for i in range(n):
        for k in T.serial(m):
            with T.block("total"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] += T.exp(A[vi, vk] - top[vi])
    for i in T.parallel(n):
        for k in T.vectorized(m):
            with T.block("B"):
                vi = T.axis.S(n, i)
                vk = T.axis.S(m, k)
                T.where(k < m)
                B[vi, vk] = T.if_then_else(vk < m, T.exp(A[vi, vk] - top[vi]) / total[vi], T.float32(0))


@T.prim_func(private=True)
def scale(x: Annotated[T.Buffer, (16,), "float16"], s: T.float32, n: T.int32) -> None:
    t: T.int32 = T.max(n, 0) * 2
    for i in T.unroll(16):
        if i < t:
            x[i] = T.Cast("float16", T.Cast("float32", x[i]) * s)
        else:
            x[i] = T.float16(0)
    for i in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("view"):
            vi = T.axis.opaque(4, i)
            row = T.match_buffer(x[vi * 4 : vi * 4 + 4], (4,), "float16", offset_factor=1)
            T.block_attr({"kept": 1})
            row[0] = row[0] + row[vi]
    T.evaluate(T.call_extern("int32", "f", x.access_ptr("r"), T.address_of(x[0])))


@I.ir_module
class Module:
    @T.prim_func
    def double(A: T.Buffer((8,), "int32"), B: Annotated[T.Buffer, (8,), "int32"]) -> None:
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] << 1


def scheduled() -> tir.Schedule:
    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    if sch.can.split(i, [None, 4]):
        i0, i1 = sch.split(i, factors=[None, 4])
        sch.reorder(i0, j, k, i1)
    answer = sch.can.vectorize(j)
    print(bool(answer), answer.reason, sch.can.parallel().legal)
    sch.parallel(sch.get_loops(block)[0])
    sch.unroll("k")
    read = sch.cache_read(block, 0, "global")
    sch.compute_at(read, sch.get_loops(block)[0])
    init = sch.decompose_reduction(block, sch.get_loops(block)[2])
    print(init, sch.trace, sch.mod.script())
    return sch


def run(folder: Path) -> None:
    sch = scheduled()
    module = tir.build(sch.mod, target="llvm")
    a = np.ones((8, 8), "float32")
    c = np.zeros((8, 8), "float32")
    module(a, a, c)
    module["main"](a, a, c)
    seconds: float = module.time_evaluator("main", number=10)(a, a, c).mean
    text: str = module.source("llvm")
    print(seconds, text, module.report, module.entry_name)
    module.save(folder / "matmul.o", header=folder / "matmul.h")
    tir.load(folder / "matmul.o")(a, a, c)
    kernel = tir.build(Module, target=tir.Target("cuda", arch="sm_90a"))
    print(kernel.source("cuda"), tir.build(Module, "cuda-sim").report)


def lowered() -> tir.IRModule:
    mod = tir.lower(matmul, target="llvm")
    mod = tir.transform.simplify(mod)
    mod = tir.transform.LowerOpaqueBlock()(mod)
    mod = tir.transform.Sequential([tir.transform.remove_no_op, tir.transform.unroll_loop.configured(explicit=True)])(
        mod
    )
    with tir.transform.PassContext(config={"tir.disable_vectorize": True}):
        return tir.lower(mod)


def checked() -> None:
    sch = scheduled()
    tir.testing.check_schedule(matmul, lambda s: s.parallel("i"))
    tir.assert_structural_equal(sch.mod, sch.mod)
    func: tir.PrimFunc = matmul
    loop = tir.IndexMap.from_func(lambda i, j: (i // 4, j, i % 4))
    x = tir.Var("x", "int32")
    print(func.params, loop, tir.simplify(x + 1 - x), tir.exp(tir.Var("y", "float32")))
    try:
        sch.bind("i_0", "threadIdx.x")
    except tir.ScheduleError as error:
        print(error)


def expressions() -> tir.PrimFunc:
    A = te.placeholder((16, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    total = te.compute((16,), lambda i: te.sum(A[i, k], axis=k), name="total")
    result = ops.add(total, topi.nn.relu(topi.flip(topi.exp(total), axis=0)))
    s = te.create_schedule(result.op)
    outer, inner = s[total].split(total.op.axis[0], factor=4)
    s[total].reorder(outer, k, inner)
    s[total].parallel(outer)
    print(A.shape, result.dtype, result.op.name, s, ops.nn.softmax(A), A * 2.0)
    image = ops.nn.conv2d(te.placeholder((1, 3, 8, 8)), te.placeholder((4, 3, 3, 3)), strides=1, padding="SAME")
    print(tir.ops.broadcast_add(image, 1.0).shape, ops.sum(image, axis=(2, 3)).dtype, ops.schedule(image).mod)
    func = te.create_prim_func([A, result])
    module = tir.build(s, [A, result], "llvm")
    module(np.ones((16, 8), "float32"), np.zeros(16, "float32"))
    return func


def tuned(func: tir.PrimFunc) -> None:
    result = tir.tune(func, trials=1, seconds=1.0, verbose=False)
    print(result.best_seconds, result.trials[0].origin, result.script)
    sch: tir.Schedule = tir.tune.default(func, "llvm")
    print(sch.mod, len(sch.history))


def looked_at() -> None:
    sch = tir.Schedule(matmul)
    offers = sch.can("i")
    print([offer.text for offer in offers if offer], offers[0].reason, sch.can.parallel("k").reason)
    picture = sch.access_picture("A", "i")
    print(sch.loop_tree(), sch.footprint(), picture, sch.diff(), sch.history[0].mod, sch["C"], sch.explore)
    tir.testing.assert_same_result(matmul, sch.mod)
    bounds = tir.testing.error_bounds(matmul, [np.ones((8, 8), "float32")] * 3)
    print(bounds["C"].max(), tir.testing.programs)
