"""The GPU examples: their small shapes on the simulator in several orders of threads against NumPy, no report of any
kind, no bank conflict. (cuda/test_cuda_codegen.py compiles their full shapes.)"""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import numpy as np
import pytest

import tir
from tests.gpu_examples import arguments, is_near

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "examples" / "gpu"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))
sys.path.append(str(FOLDER))  # as for a script in it: examples import each other
ORDERS = ("forward", "reverse", "random", "warp_interleaved")


def example(name: str):
    spec = importlib.util.spec_from_file_location(f"gpu_example_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(func: tir.PrimFunc, sch: tir.Schedule, reference, orders=ORDERS) -> tir.Module:
    rng = np.random.default_rng(0)
    buffers = [func.buffer_map[p] for p in func.params]
    arrays = [rng.standard_normal([int(s) for s in b.shape]).astype(b.dtype) for b in buffers]
    want = reference(*[a.astype(np.float64) for a in arrays[:-1]])
    module = tir.build(sch.mod, target="cuda-sim")
    for order in orders:
        arrays[-1][...] = np.nan
        module.order = order
        module(*arrays)
        assert module.report().ok, str(module.report())
        np.testing.assert_allclose(arrays[-1], want, rtol=1e-4, atol=1e-5, err_msg=order)
    return module


def test_the_examples_are_there():
    assert {
        "vector_add",
        "transpose",
        "reductions",
        "softmax",
        "layer_norm",
        "sgemm",
        "tensor_core_gemm",
        "mma_gemm",
        "conv2d",
        "stream_k_gemm",
        "hopper_gemm",
        "split_k_gemm",
        "grouped_gemm",
        "flash_attention",
        "paged_decode",
    } <= set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_small(name):
    ex = example(name)
    func, sch = ex.small()
    module = tir.build(sch.mod, target="cuda-sim")
    for order in ORDERS:
        module.order = order
        *given, out = arguments(ex, func)
        out[...] = np.nan
        module(*given, out)
        assert module.report().ok, str(module.report())
        is_near(ex, out, given)
    assert conflicts(module) == 0, str(module.report())


def test_a_sum_in_two_kernels():
    ex = example("reductions")
    module = check(*ex.total(1000, blocks=4, threads=64), ex.reference)
    assert len(module.report()) == 2


def conflicts(module) -> int:
    """Extra passes over shared memory that bank conflicts cost in the last call."""
    return sum(row.conflicts for report in module.report() for row in report.accesses if row.conflicts)


def test_padding_takes_the_conflicts_away():
    ex = example("transpose")
    padded = check(*ex.scheduled(32, 32), ex.reference, ["forward"])
    plain = check(*ex.scheduled(32, 32, padded=False), ex.reference, ["forward"])
    assert conflicts(padded) == 0 < conflicts(plain)
    swizzled = check(*ex.scheduled(64, 96, swizzled=True), ex.reference)
    assert conflicts(swizzled) == 0 and swizzled.report()[0].shared_bytes == 32 * 32 * 4


def test_tensor_cores_by_ptx():
    _, sch = example("mma_gemm").small()
    source = tir.build(sch.mod, target="cuda -arch=sm_90a").source("cuda")
    assert all(word in source for word in ("mma.sync", "ldmatrix", "cp.async.wait_group"))


def test_sgemm_meets_no_bank_twice():
    """At the full size's tile: loads by columns, vector reads, both without conflicts."""
    ex = example("sgemm")
    module = check(*ex.scheduled(128, 128, 32), ex.reference, ["forward"])
    assert conflicts(module) == 0


def test_stream_k_with_many_blocks_to_a_tile():
    """One tile in three parts: no block has a whole one."""
    ex = example("stream_k_gemm")
    module = check(*ex.scheduled(32, 32, 96, tile=32, depth=32, stages=2, blocks=3), ex.reference, ["forward"])
    assert [report.grid for report in module.report()] == [(3, 1, 1), (1, 1, 1)]


@pytest.mark.parametrize("shape", [(2, 4, 1, 96, 32, 16, 48), (1, 4, 2, 64, 64, 64, 32), (1, 1, 1, 32, 64, 32, 32)])
def test_attention_of_other_shapes(shape):
    """Batches, heads that share no keys, tiles of keys larger and smaller than those of queries."""
    ex = example("flash_attention")
    func, sch = ex.scheduled(*shape)
    *given, out = arguments(ex, func)
    tir.build(sch.mod, target="cuda-sim")(*given, out)
    is_near(ex, out, given)


@pytest.mark.parametrize("name, tiles", [("flash_attention", 12), ("grouped_gemm", 12)])
def test_a_ring_of_two_tiles_takes_one_barrier_a_tile(name, tiles):
    """Between the wait for a tile and its use; the other is read no more when the next copies go there."""
    ex = example(name)
    func, sch = ex.small()
    module = tir.build(sch.mod, target="cuda-sim")
    module(*arguments(ex, func))
    assert [report.barriers for report in module.report()] == [tiles]


def test_the_sizes_of_grouped_products_are_data():
    ex = example("grouped_gemm")
    func, sch = ex.small()
    module = tir.build(sch.mod, target="cuda-sim")
    sizes, *rest = ex.SMALL
    for order in ((2, 1, 0), (1, 2, 0)):
        a, b, table, out = arguments(ex, func)
        table[...] = ex.table_of([sizes[k] for k in order], *rest)
        module(a, b, table, out)
        is_near(ex, out, [a, b, table])


def test_short_sequences_leave_most_parts_without_keys():
    ex = example("paged_decode")
    func, sch = ex.scheduled(3, 2, 1, 64, page=16, most=2, splits=4)
    module = tir.build(sch.mod, target="cuda-sim")
    for lengths in ((1, 2, 16), (17, 31, 32)):
        q, k, v, table, held, out = arguments(ex, func)
        held[...] = lengths
        out[...] = np.nan
        module(q, k, v, table, held, out)
        is_near(ex, out, [q, k, v, table, held])
