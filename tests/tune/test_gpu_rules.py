"""Schedules that rules make for a GPU, from programs as users write them, on the simulator with all its checks."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tir
from tests.tune.test_contraction import PRODUCTS, product
from tir import ops, te
from tir.function import IRModule
from tir.library import rows
from tir.script import parse
from tir.testing import assert_same_result
from tir.tune.contracted import Contraction
from tir.tune.cost_model import predict
from tir.tune.drawing import RuleSource
from tir.tune.gpu_model import chip_of, counted
from tir.tune.nest import Nest, usual
from tir.tune.product import as_product
from tir.tune.rules.gpu_tiles import block_tiles
from tir.tune.space import Env, space_of

AMPERE, HOPPER = "cuda-sim -arch=sm_80", "cuda-sim -arch=sm_90"


def check(func: tir.PrimFunc, target: str = AMPERE, rtol: float | None = None) -> str:
    """The text of the default schedule, which computes the same."""
    sch = tir.tune.default(func, target)
    assert_same_result(func, sch.mod, engines=(target,), rtol=rtol)
    return sch.mod.script()


def simulated(sch: tir.Schedule, func: tir.PrimFunc):
    """The reports of the kernels of one call."""
    mod = tir.build(sch.mod, sch.target)
    mod(*tir.testing.random_inputs(func, 0))
    return list(mod.report)


def convolution(first: int, side: int, channels: int, out: int, dtype: str = "float32") -> tir.PrimFunc:
    X = te.placeholder((first, side, side, channels), dtype, name="X")
    W = te.placeholder((3, 3, channels, out), dtype, name="W")
    p, q, c = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q"), te.reduce_axis((0, channels), "c")
    Y = te.compute(
        (first, side - 2, side - 2, out),
        lambda n, y, x, o: te.sum(
            X[n, y + p, x + q, c].astype("float32") * W[p, q, c, o].astype("float32"), axis=[p, q, c]
        ),
        name="Y",
    )
    Z = te.compute(Y.shape, lambda *at: tir.max(Y[at], 0.0), name="Z")
    return te.create_prim_func([X, W, Z])


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_tiled_in_shared_memory(name: str):
    text = check(product(*PRODUCTS[name]))
    assert 'scope="shared"' in text and 'scope="local"' in text and "software_pipeline" in text


@pytest.mark.parametrize("sizes", [((64, 32), (32, 64)), ((50, 33), (33, 70))])
def test_what_follows_is_stored_with_the_tile(sizes: tuple[tuple[int, ...], tuple[int, ...]]):
    func = product(*sizes, "ik,kj->ij", relu=True)
    sch = tir.tune.default(func, AMPERE)
    assert len(simulated(sch, func)) == 1, "it is a kernel of its own"
    assert_same_result(func, sch.mod, engines=(AMPERE,))


@pytest.mark.parametrize("first", [1, 2])
def test_the_windows_of_a_convolution_are_gathered_as_they_are_copied(first: int):
    func = convolution(first, 10, 8, 16)
    sch = tir.tune.default(func, AMPERE)
    assert_same_result(func, sch.mod, engines=(AMPERE,))
    assert [b.scope for b in sch.func.root.alloc_buffers].count("global") == 0, "they are written to memory"


def test_the_threads_of_a_warp_meet_in_no_bank():
    func = product((64, 64), (64, 64), "ik,kj->ij")
    (report,) = simulated(tir.tune.default(func, AMPERE), func)
    shared = [a for a in report.accesses if a.passes]
    assert shared and all(a.conflicts == 0 for a in shared)


def halves(left: str, spec: str, sizes: dict[str, int], dtype: str, result: str, relu: bool = False) -> tir.PrimFunc:
    """The einsum ``left``,``spec`` of operands of ``dtype`` into ``result``."""
    right, out = spec.split("->")
    A = te.placeholder([sizes[x] for x in left], dtype, name="A")
    B = te.placeholder([sizes[x] for x in right], dtype, name="B")
    k = te.reduce_axis((0, sizes["k"]), "k")

    def value(*point: tir.Var) -> tir.Expr:
        at = {**dict(zip(out, point)), "k": k.var}
        a, b = A[tuple(at[x] for x in left)], B[tuple(at[x] for x in right)]
        return te.sum(a.astype(result) * b.astype(result) if result != dtype else a * b, axis=k)

    C = te.compute([sizes[x] for x in out], value, name="C")
    if not relu:
        return te.create_prim_func([A, B, C])
    D = te.compute(C.shape, lambda *at: tir.max(C[at], te.const(0, result)), name="D")
    return te.create_prim_func([A, B, D])


WHOLE = {"b": 2, "i": 32, "j": 64, "k": 64}
MIXED = {"i": 50, "j": 70, "k": 40}
SMALL = {"i": 20, "j": 24, "k": 16}
TENSORS = {
    "half": ("ik", "kj->ij", WHOLE, "float16", "float32"),
    "half into half": ("ik", "kj->ij", WHOLE, "float16", "float16"),
    "bfloat16": ("ik", "kj->ij", WHOLE, "bfloat16", "float32"),
    "transposed": ("ki", "jk->ij", WHOLE, "float16", "float32"),
    "bytes": ("ik", "kj->ij", WHOLE, "int8", "int32"),
    "bytes, transposed": ("ik", "jk->ij", WHOLE, "int8", "int32"),
    "float8": ("ik", "jk->ij", WHOLE, "float8_e4m3fn", "float32"),
    "odd": ("ik", "kj->ij", MIXED, "float16", "float32"),
    "batched": ("bik", "bkj->bij", WHOLE, "float16", "float32"),
    "what follows": ("ik", "kj->ij", MIXED, "float16", "float32", True),
}


@pytest.mark.parametrize("name", TENSORS)
def test_narrow_products_run_on_tensor_cores(name: str):
    text = check(halves(*TENSORS[name]), HOPPER, rtol=3e-2 if "into half" in name else None)
    assert "ptx_mma" in text and "ldmatrix" in text


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_that_are_rounded_as_they_are_stored_run_on_tensor_cores(dtype: str):
    x, w = (te.placeholder(shape, dtype, name=n) for n, shape in (("x", (32, 64)), ("w", (64, 64))))
    text = check(te.create_prim_func([x, w, ops.matmul(x, w)]), HOPPER)
    assert "ptx_mma" in text and text.count("@T.prim_func") == 1


def test_a_convolution_of_half_precision_runs_on_tensor_cores():
    assert "ptx_mma" in check(convolution(1, 6, 16, 16, "float16"), HOPPER)


@pytest.mark.parametrize("dtype, target", [("float32", HOPPER), ("float16", "cuda-sim -arch=sm_70")])
def test_tensor_cores_are_left_alone_where_they_round_or_are_missing(dtype: str, target: str):
    assert "ptx_mma" not in check(halves("ik", "kj->ij", WHOLE, dtype, "float32"), target)


@pytest.mark.parametrize("make, sizes", [(rows.softmax, (5, 100)), (rows.softmax, (3, 37)), (rows.layer_norm, (4, 64))])
def test_a_row_is_one_thread_block(make, sizes: tuple[int, int]):
    func = make(*sizes)
    sch = tir.tune.default(func, AMPERE)
    (report,) = simulated(sch, func)
    assert report.grid == (sizes[0], 1, 1)
    assert_same_result(func, sch.mod, engines=(AMPERE,))


@pytest.mark.parametrize("is_read_again", [False, True])
def test_a_row_of_symbolic_size_is_not_kept_in_the_memory_of_a_kernel(is_read_again: bool):
    n, m = te.var("n"), te.var("m")
    X, k, q = te.placeholder((n, m), name="X"), te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "q")
    top = te.compute((n,), lambda i: te.max(X[i, k], axis=k), name="top")
    E = te.compute((n, m), lambda i, j: te.exp(X[i, j] - top[i]), name="E")
    total = te.compute((n,), lambda i: te.sum(E[i, q], axis=q), name="total")
    Y = te.compute((n, m), lambda i, j: E[i, j] / total[i], name="Y")
    sch = tir.tune.default(te.create_prim_func([X, Y] if is_read_again else [X, Y, E]), AMPERE)
    x = np.random.default_rng(0).standard_normal((3, 37)).astype("float32")
    y, e = np.zeros_like(x), np.zeros_like(x)
    tir.build(sch.mod, AMPERE)(x, y, *([] if is_read_again else [e]))
    expected = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, expected / expected.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("sizes", [(64, 96), (50, 70)])
def test_a_transpose_accesses_neighbours_on_both_sides(sizes: tuple[int, int]):
    A = te.placeholder(sizes, name="A")
    func = te.create_prim_func([A, te.compute(sizes[::-1], lambda i, j: A[j, i] * 2.0, name="B")])
    sch = tir.tune.default(func, AMPERE)
    (report,) = simulated(sch, func)
    assert_same_result(func, sch.mod, engines=(AMPERE,))
    assert all(a.conflicts == 0 for a in report.accesses if a.passes)
    if sizes[0] % 32 == 0:
        assert all(a.efficiency == 1 for a in report.accesses)


def test_few_long_reductions_are_split_over_the_chip():
    A = te.placeholder((1 << 14,), name="A")
    k = te.reduce_axis((0, 1 << 14), "k")
    func = te.create_prim_func([A, te.compute((1,), lambda i: te.sum(A[k], axis=k), name="B")])
    sch = tir.tune.default(func, AMPERE)
    first, second = simulated(sch, func)
    assert first.grid[0] >= 32 and second.grid == (1, 1, 1)
    assert_same_result(func, sch.mod, engines=(AMPERE,), rtol=1e-4)


def summed(*shape: int, axis: int = -1) -> tir.PrimFunc:
    """Sums over one axis of an array."""
    A, k = te.placeholder(shape, name="A"), te.reduce_axis((0, shape[axis]), "k")
    at = axis % len(shape)
    kept = [n for d, n in enumerate(shape) if d != at]
    return te.create_prim_func([A, te.compute(kept, lambda *i: te.sum(A[(*i[:at], k, *i[at:])], axis=k), name="B")])


def kernels(func: tir.PrimFunc, target: str = HOPPER) -> list[tir.PrimFunc]:
    """The kernels of the default schedule, in order."""
    sch = tir.tune.default(func, target)
    return [f for n, f in tir.lower(sch.mod, target=sch.target).items() if "kernel" in n]


def test_the_parts_of_a_long_sum_are_added_up_by_all_threads_of_a_block():
    func, env = summed(1000000), Env.of(HOPPER)
    first, second = kernels(func)
    chip = chip_of(env.target)
    parts, last = counted(first, chip), counted(second, chip)
    assert parts is not None and last is not None
    assert chip.multiprocessors <= parts.blocks <= 4 * chip.multiprocessors and parts.waits <= 4
    assert (last.blocks, last.threads, last.waits) == (1, 128, 1)
    found = predict(tir.tune.default(func, env.target), env)
    assert found is not None and found.seconds < 1e-5


@pytest.mark.parametrize("size", [1 << 14, 20011, 20000])
def test_sums_of_any_length_are_split(size: int):
    func = summed(size)
    sch = tir.tune.default(func, AMPERE)
    first, second = simulated(sch, func)
    assert first.grid[0] >= 40 and second.grid == (1, 1, 1) and second.block[0] >= 32
    assert_same_result(func, sch.mod, engines=(AMPERE,), rtol=1e-4)


def test_columns_are_added_by_threads_beside_each_other():
    func = summed(2000, 96, axis=0)
    sch = tir.tune.default(func, AMPERE)
    first, _ = simulated(sch, func)
    assert first.grid[0] >= 8 and all(a.efficiency == 1 for a in first.accesses if a.efficiency)
    assert_same_result(func, sch.mod, engines=(AMPERE,), rtol=1e-4)


def test_a_thread_keeps_its_sum_in_a_register():
    func = summed(40, 300, axis=0)
    sch = tir.tune.default(func, AMPERE)
    (report,) = simulated(sch, func)
    assert [a.requests for a in report.accesses if a.site.what == "write"] == [10], "of ten warps"
    assert_same_result(func, sch.mod, engines=(AMPERE,), rtol=1e-4)


def test_deep_products_of_few_results_are_split():
    func = product((16, 1024), (1024, 32), "ik,kj->ij")
    assert "C_rf" in check(func, rtol=1e-4)


def test_other_choices_compute_the_same():
    for func in (product((20, 17), (17, 24), "ik,kj->ij"), halves("ik", "kj->ij", SMALL, "float16", "float32")):
        drawn = list(RuleSource(space_of(HOPPER), IRModule.of(func)).draw(random.Random(5), 1))
        assert drawn
        assert_same_result(func, drawn[-1].mod, engines=(HOPPER,))


def test_a_contraction_becomes_a_matrix_product():
    sch = tir.Schedule(convolution(2, 6, 4, 8))
    nest = Nest.of(sch, "Y")
    found = nest and Contraction.of(nest)
    assert found
    made = as_product(sch, found)
    assert [a.extent for a in made.nest.axes] == [32, 8, 36]
    assert [len(axes) for axes in (made.batch, made.rows, made.columns, made.terms)] == [0, 1, 0, 1]
    assert_same_result(convolution(2, 6, 4, 8), sch.mod)


# ---------------------------------------------------------------- the model


@pytest.mark.parametrize("func", [product((64, 64), (64, 64), "ik,kj->ij"), rows.softmax(8, 128)], ids=["gemm", "rows"])
def test_the_model_counts_what_the_simulator_counts(func: tir.PrimFunc):
    sch = tir.tune.default(func, AMPERE)
    (report,) = simulated(sch, func)
    lowered = tir.lower(sch.mod, target=sch.target)
    counts = counted(next(f for n, f in lowered.items() if n.endswith("kernel")), chip_of(sch.target))
    assert counts is not None and counts.blocks == np.prod(report.grid)
    assert counts.sectors * counts.blocks == pytest.approx(report.sectors, rel=0.02)
    assert counts.passes * counts.blocks == pytest.approx(sum(a.passes for a in report.accesses), rel=0.1)


def test_the_model_prefers_what_hardware_prefers():
    env = Env.of("cuda -arch=sm_80")

    def seconds(sch: tir.Schedule) -> float:
        found = predict(sch, env)
        assert found is not None and found.floor <= found.seconds
        return found.seconds

    A = te.placeholder((4096, 4096), name="A")
    moved = te.create_prim_func([A, te.compute((4096, 4096), lambda i, j: A[j, i], name="B")])
    direct = tir.Schedule(moved, target=env.target)
    i, j = direct.get_loops("B")
    direct.bind(i, "blockIdx.x")
    direct.bind(direct.split(j, [None, 256])[1], "threadIdx.x")
    assert seconds(tir.tune.default(moved, env.target)) < 0.5 * seconds(direct)

    func = product((1024, 1024), (1024, 1024), "ik,kj->ij")
    naive = tir.Schedule(func, target=env.target)
    i, j, _ = naive.get_loops("C")
    naive.bind(i, "blockIdx.x")
    naive.bind(naive.split(j, [None, 256])[1], "threadIdx.x")
    assert seconds(tir.tune.default(func, env.target)) < 0.5 * seconds(naive)


def test_a_search_without_a_device_says_that_it_is_a_guess():
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra cuda)")
    A = te.placeholder((64, 256), name="A")
    func = te.create_prim_func([A, te.compute((64, 256), lambda i, j: A[i, j] * 2.0, name="B")])
    result = tir.tune(func, AMPERE, trials=2, seconds=4.0, verbose=False)
    assert not result.measured and result.best_seconds < 1e-3
    assert {t.status for t in result.trials} == {"ok"}


def test_the_length_of_a_loop_may_be_converted_data():
    assert usual(tir.IntImm(3)) == 3
    assert usual(tir.Var("x", "float32").astype("int32")) == usual(tir.Var("n"))


DECIDED = """
@T.prim_func
def f(A: T.Buffer((8,), "int32"), n: T.Buffer((1,), "int32"), B: T.Buffer((8,), "int32")):
    {head}
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1
    {tail}
"""


@pytest.mark.parametrize(
    "head, tail",
    [
        ("for i in range(n[0]):", ""),
        ("for i in range(n[0], 8):", ""),
        ("if n[0] > 3:\n      for i in range(8):", ""),
        ("m: T.int32 = n[0]\n    for i in range(m):", ""),
        ("while n[0] > 3:\n      for i in range(8):", "  n[0] = n[0] - 1"),
    ],
)
def test_what_memory_decides_is_decided_in_a_kernel(head: str, tail: str):
    """The host, which launches kernels, knows no memory of the device."""
    program = tir.script.parse(DECIDED.format(head=head, tail=tail))
    a = np.arange(8, dtype="int32")
    expected, *found = np.zeros((3, 8), "int32")
    tir.build(program, "interpreter")(a, np.array([5], "int32"), expected)
    for result, made in zip(found, (program, tir.tune.default(program, target="cuda").mod)):
        tir.build(made, "cuda-sim")(a, np.array([5], "int32"), result)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("n", "init"),
    [(64, "D[vj]"), *((50, e) for e in ("D[vj]", "D[vi] * 2.0 + D[0]", "B[1, vj]", "A[vi, 0] + B[0, 1]"))],
)
@pytest.mark.filterwarnings("error")
def test_a_product_that_begins_with_what_is_read_is_tiled(n: int, init: str):
    """The operands are staged, and not what the init reads, which is padded where it is read."""
    program = parse(f"""
@T.prim_func
def main(A: T.Buffer((64, 30), "float32"), B: T.Buffer((30, {n}), "float32"), D: T.Buffer((64,), "float32"), C: T.Buffer((64, {n}), "float32")):
    for i, j, k in T.grid(64, {n}, 30):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = {init}
            C[vi, vj] += A[vi, vk] * B[vk, vj]
""")
    begun = tir.Schedule(program, target=AMPERE)
    for fork in block_tiles(begun, "C", Env.of(begun.target)):
        assert_same_result(program, fork().mod, engines=(AMPERE,), rtol=1e-4, atol=1e-4)
