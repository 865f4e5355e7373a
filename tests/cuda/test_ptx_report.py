"""What the PTX executor counts of memory: by hand, and as the simulator counts it of the program before it was compiled."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tir
from codegen.ptx.report import Access
from codegen.ptx.traffic import global_cost, shared_cost
from tests.gpu_examples import load
from tests.tools.executed_kernels import LIBRARY
from tir.interp.gpu import counts
from tir.script import parse
from tir.script import tir as T
from tir.testing import random_inputs

LANES = np.arange(32)


@T.prim_func
def transpose(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i in T.thread_binding(64, thread="blockIdx.x"):
        for j in T.thread_binding(64, thread="threadIdx.x"):
            B[j, i] = A[i, j]


def measured(program: Any, *args: np.ndarray, order: str = "together") -> Any:
    """The report's only row, of a program that ran with its traffic counted."""
    module = tir.build(program, f"cuda-ptx -arch=sm_80 -traffic=1 -order={order}")
    module(*args)
    (row,) = module.report()
    return row


@pytest.mark.parametrize("order", ["together", "forward", "reverse"])
def test_a_row_takes_4_sectors_and_a_column_32(order: str):
    read, write = measured(transpose, *random_inputs(transpose), order=order).accesses
    assert (read.what, read.buffer, read.requests, read.sectors, read.efficiency) == ("read", "A", 128, 512, 1)
    assert (write.what, write.buffer, write.requests, write.sectors) == ("write", "B", 128, 4096)
    assert write.efficiency == 0.125 and write.text == read.text == "B[j * 64 + i] = A[i * 64 + j];"


def test_it_counts_when_asked():
    module = tir.build(transpose, "cuda-ptx -arch=sm_80")
    args = random_inputs(transpose)
    module(*args)
    assert [row.accesses for row in module.report()] == [()] and "sectors" not in str(module.report())
    module.traffic = True
    module(*args)
    assert [row.sectors for row in module.report()] == [4608]
    assert "read A   global      4       128      512" in str(module.report())
    assert "<code>B[j * 64 + i]" in module.report()._repr_html_()
    module.order = "threads"
    module(*args)
    assert [row.accesses for row in module.report()] == [()]


@pytest.mark.parametrize(
    "address, width, requests, sectors, useful",
    [
        (LANES * 4, 4, 1, 4, 128),
        (LANES * 4 + 16, 4, 1, 5, 128),
        (LANES[::-1] * 4, 4, 1, 4, 128),
        (LANES * 16, 16, 1, 16, 512),
        (LANES * 256, 4, 1, 32, 128),
        (LANES * 0, 4, 1, 1, 4),
        (LANES // 2 * 2, 2, 1, 1, 32),
        (LANES[:5] * 32, 1, 1, 5, 5),
    ],
)
def test_sectors_by_hand(address, width, requests, sectors, useful):
    cost = global_cost(np.arange(len(address)), address, width)
    assert (cost.requests, cost.sectors, cost.useful) == (requests, sectors, useful)


@pytest.mark.parametrize(
    "address, width, passes, ideal",
    [
        (LANES * 4, 4, 1, 1),
        (LANES * 8, 4, 2, 1),
        (LANES * 128, 4, 32, 1),
        (LANES * 132, 4, 1, 1),
        (LANES * 0, 4, 1, 1),
        (LANES % 2 * 128, 4, 2, 1),
        (LANES * 2, 2, 1, 1),
        (LANES * 8, 8, 2, 2),
        (LANES * 16, 16, 4, 4),
        (LANES * 128, 16, 32, 4),
        (LANES[:8] * 16, 16, 1, 1),
        (LANES[:1] * 16, 16, 1, 1),
    ],
)
def test_passes_by_hand(address, width, passes, ideal):
    cost = shared_cost(np.arange(len(address)), address, width)
    assert (cost.requests, cost.passes, cost.ideal) == (1, passes, ideal)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_costs_are_those_of_the_simulator_for_any_addresses(width: int):
    rng = np.random.default_rng(width)
    for _ in range(40):
        rows = rng.integers(0, rng.choice([4, 40, 400]), (4, 32)) * width
        rows[rng.random((4, 32)) < rng.choice([0, 0.5])] = -1
        lanes, address = np.flatnonzero(rows >= 0), rows[rows >= 0]
        mixed = rng.permutation(len(lanes))
        far, near = (f(lanes[mixed], address[mixed], width) for f in (global_cost, shared_cost))
        assert (far.sectors, far.useful) == counts.sectors(rows, width)
        assert near.passes == counts.bank_passes(rows, width)[0]
        assert far.requests == near.requests == 4


def totals(accesses: Any) -> dict[tuple[str, str], Counter[str]]:
    """Sums by what is done and where, of accesses of either report."""
    made: dict[tuple[str, str], Counter[str]] = {}
    for a in accesses:
        what = a.what if isinstance(a, Access) else a.site.what
        numbers = {n: getattr(a, n) for n in ("requests", "sectors", "useful", "passes", "ideal")}
        made.setdefault((what, a.scope), Counter()).update(numbers)
    return made


def both(mod: Any, func: tir.PrimFunc) -> list[tuple[Any, Any]]:
    """The totals of each kernel, by the executor and by the simulator."""
    executed, simulated = tir.build(mod, "cuda-ptx -arch=sm_80 -traffic=1"), tir.build(mod, "cuda-sim")
    for module in (executed, simulated):
        module(*random_inputs(func, 1))
    return [(totals(a.accesses), totals(b.accesses)) for a, b in zip(executed.report(), simulated.last_report)]


@pytest.mark.parametrize("name", ["mma_gemm", "reductions", "sgemm", "transpose", "vector_add"])
def test_examples_cost_what_the_simulator_counts(name: str):
    func, sch = load(name).small()
    for executed, simulated in both(sch.mod, func):
        assert executed == simulated


@pytest.mark.parametrize("name", ["column_sum", "depthwise_nhwc", "layer_norm", "scale_add", "transpose"])
def test_the_compiler_leaves_out_accesses_and_adds_none(name: str):
    """It keeps a sum in a register that the program keeps in memory, and reads an element once that is needed twice."""
    func = LIBRARY[name]()
    for executed, simulated in both(tir.tune.default(func, "cuda").mod, func):
        assert executed.keys() == simulated.keys()
        assert all(executed[key][n] <= simulated[key][n] for key in executed for n in executed[key])


def test_atomics_and_lanes_without_work_by_hand():
    program = parse("""
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((4,), "float32")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        if i < 40:
            T.evaluate(T.atomic_add(T.address_of(B[i % 4]), A[i], dtype="float32"))
""")
    atomic, read = measured(program, np.ones(64, "float32"), np.zeros(4, "float32")).accesses
    assert (read.what, read.requests, read.sectors, read.useful) == ("read", 2, 5, 160)
    assert (atomic.what, atomic.requests, atomic.sectors, atomic.useful) == ("atomic", 2, 2, 32)


@pytest.mark.parametrize("stride, passes", [(64, 32), (72, 4)])
def test_ldmatrix_and_copies_by_hand(stride: int, passes: int):
    """Rows at a distance of 128 bytes lie in the same banks: each matrix of 8 rows takes 8 passes, and with 144 bytes one."""
    program = parse(f"""
@T.prim_func
def f(A: T.Buffer((16, 16), "float16"), B: T.Buffer((32, 8), "float16")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        S = T.allocate((16 * {stride},), "float16", "shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            F = T.allocate((8,), "float16", "local")
            V = T.Buffer((8,), "float16", data=F, scope="local")
            T.evaluate(T.ptx_cp_async("float16", S, t // 2 * {stride} + t % 2 * 8, A.data, t * 8, 16))
            T.evaluate(T.ptx_commit_group())
            T.evaluate(T.ptx_wait_group(0))
            T.evaluate(T.tvm_storage_sync("shared"))
            T.evaluate(T.ptx_ldmatrix("float16", False, 4, ".b16", F, 0, S, t % 16 * {stride} + t // 16 * 8))
            for k in range(8):
                B[t, k] = V[k]
""")
    row = measured(program, np.ones((16, 16), "float16"), np.zeros((32, 8), "float16"))
    found = {(a.what, a.scope): a for a in row.accesses}
    copy, matrices = found["read", "global"], found["read", "shared"]
    assert (copy.width, copy.requests, copy.sectors, copy.efficiency) == (16, 1, 16, 1)
    assert (matrices.passes, matrices.conflicts) == (passes, passes - 4)
    assert matrices.text.startswith("ldmatrix_x4(") and row.conflicts >= passes - 4


def test_lines_are_those_of_the_kernel_and_not_of_the_functions_it_calls():
    func, sch = load("mma_gemm").small()
    module = tir.build(sch.mod, "cuda-ptx -arch=sm_80 -traffic=1")
    module(*random_inputs(func, 1))
    lines = module.source("cuda").splitlines()
    begin = next(k for k, text in enumerate(lines, 1) if "__global__" in text)
    (row,) = module.report()
    assert all(a.line > begin and a.text.startswith(lines[a.line - 1].strip()) for a in row.accesses)
    assert {"copy_async_16", "ldmatrix_x4", "ldmatrix_x4_trans"} <= {a.text.partition("(")[0] for a in row.accesses}
