"""The schedule that a program gets without measuring: it computes the same, and does what the machine is good at."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import numpy as np
import pytest

import tir
from tests import te_programs
from tests.fuzz.kernel_programs import FAMILIES, family_program
from tir import ops, te
from tir.function import IRModule
from tir.library import elementwise, rows
from tir.testing import assert_same_result, random_inputs, random_program
from tir.tune import space
from tir.visit import nodes_of

NARROW = "llvm -vector_width=64 -num-cores=2"  # two numbers in a vector: small programs have whole vectors and tails


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs run in parallel too."""
    monkeypatch.setattr(space, "PARALLEL", 0)


def same(program: tir.PrimFunc | IRModule, target: str) -> None:
    sch = tir.tune.default(program, target)
    for name in IRModule.of(program):
        assert_same_result(program, sch.mod, engines=(target.split()[0],), func=name)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("target", [NARROW, "cuda-sim"])
@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_compute_the_same(family: str, target: str):
    """Two programs of each family, one for each target: every second family has them the other way round."""
    same(family_program(family, (list(FAMILIES).index(family) + (target == NARROW)) % 2), target)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("target", [NARROW, "cuda-sim"])
def test_random_programs_compute_the_same(target: str):
    for seed in range(12):
        same(random_program(seed), target)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("target", [NARROW, "cuda-sim"])
@pytest.mark.parametrize("name", te_programs.PROGRAMS)
def test_tensor_expressions_compute_the_same(name: str, target: str):
    func = te.create_prim_func(te_programs.PROGRAMS[name](te, tir))
    sch = tir.tune.default(func, target)
    sizes = {v.name: 12 for v in func.params if v not in func.buffer_map}
    inputs = random_inputs(func, 0, sizes, low=1)  # some of them are indices
    assert_same_result(func, sch.mod, inputs, (target.split()[0],), rtol=1e-3)


def kinds(sch: tir.Schedule, block: str) -> list[str]:
    return [sch.get(loop).kind for loop in sch.get_loops(block)]


def test_a_chain_is_one_loop_of_vectors_on_all_cores():
    sch = tir.tune.default(elementwise.gelu_chain(1 << 20), "llvm -num-cores=2")
    assert [b.name for b in sch.get_child_blocks("root")] == ["out"]
    assert kinds(sch, "out")[0] == "parallel" and kinds(sch, "out")[-2:] == ["unrolled", "vectorized"]


def chain(count: int, stage: Callable[..., Any]) -> tir.PrimFunc:
    """A square, and stages of it: elements that ``stage`` makes of the square and the one before."""
    x = te.placeholder((4, 4), name="x")
    y = x
    for n in range(count):
        y = te.compute((4, 4), partial(stage, x, y), name=f"s{n}")
    return te.create_prim_func([x, y])


def test_a_long_chain_is_one_block():
    func = chain(300, lambda x, y, i, j: y[j, i] * 0.5 + x[i, j])
    sch = space.space_of(NARROW).first(tir.Schedule(func))
    assert [b.name for b in sch.get_child_blocks("root")] == ["s299"]
    assert_same_result(func, sch.mod)


def test_a_long_chain_of_blocks_that_read_twice_is_a_few_blocks():
    """All in one would have 2 ** 40 copies of the first."""
    func = chain(40, lambda x, y, i, j: y[i, j] * (x[i, j] - y[i, j] * x[j, i]))
    sch = space.space_of(NARROW).first(tir.Schedule(func))
    blocks = sch.get_child_blocks("root")
    assert 1 < len(blocks) < 20 and len(nodes_of(sch.func.body)) < 20000
    assert_same_result(func, sch.mod)


def test_a_producer_that_is_read_often_is_not_repeated():
    sch = tir.tune.default(elementwise.blur(64, 64))
    assert [b.name for b in sch.get_child_blocks("root")] == ["along", "out"]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("target", [NARROW, "llvm -num-cores=2"])
@pytest.mark.parametrize("make, arrays", [(rows.softmax, 2), (rows.layer_norm, 4)])
def test_all_stages_of_a_row_are_in_its_loop(make, arrays: int, target: str):
    func = make(21, 150)
    sch = tir.tune.default(func, target)
    row = sch.get_loops("out")[0]
    assert sch.get(row).kind == "parallel"
    assert all(sch.get_loops(b)[0] == row for b in sch.get_child_blocks("root"))
    assert sum(b.name.endswith("_rf_update") for b in sch.get_child_blocks("root")) == 2
    rng = np.random.default_rng(0)
    given = [rng.uniform(0.5, 1.5, [s.value for s in func.buffer_map[p].shape]).astype("f4") for p in func.params]
    wanted = [x.copy() for x in given]
    tir.build(func)(*wanted)
    tir.build(sch.mod)(*given)
    np.testing.assert_allclose(given[arrays - 1], wanted[arrays - 1], rtol=1e-4, atol=1e-5)


def test_a_large_result_is_stored_past_the_caches():
    large, small = (tir.tune.default(elementwise.scale_add(n), "llvm -num-cores=2") for n in (1 << 26, 1 << 10))
    notes = [sch.get(sch.get_loops("out")[0]).annotations.get("pragma_nontemporal") for sch in (large, small)]
    assert notes == ["B", None]


@pytest.mark.usefixtures("rules_alone")
def test_a_result_of_symbolic_size_is_stored_past_the_caches_if_one_row_is_large():
    n, notes = te.var("n"), []
    for size in (1 << 18, 1 << 26):
        x = te.placeholder((n, size), name="x")
        sch = tir.tune.default(te.create_prim_func([x, ops.add(x, 1.0)]), "llvm -num-cores=1")
        notes.append(sch.get(sch.get_loops("add")[0]).annotations.get("pragma_nontemporal"))
    assert notes == [None, "add"]
    x, w = te.placeholder((n, 1 << 14, 32), name="x"), te.placeholder((32, 16), name="w")
    product = te.create_prim_func([x, w, ops.matmul(x, w)])
    assert "nontemporal" not in str(tir.tune.default(product, "llvm -num-cores=1").func)
    assert "nontemporal" in str(
        tir.tune.default(
            te.create_prim_func([x := te.placeholder((1 << 22, 32)), w, ops.matmul(x, w)]), "llvm -num-cores=1"
        ).func
    )


def test_a_copy_is_one_serial_loop_and_a_flip_has_vectors():
    x = te.placeholder((300, 400), name="x")
    copied, flipped = (
        tir.tune.default(te.create_prim_func([x, made]), "llvm -num-cores=1")
        for made in (ops.expand_dims(x, 0), ops.flip(x, 1))
    )
    assert set(kinds(copied, "expand_dims")) == {"serial"}
    assert kinds(flipped, "flip")[-1] == "vectorized"
    given, out = np.arange(120000, dtype="f4").reshape(300, 400), np.zeros((1, 300, 400), "f4")
    tir.build(copied.mod)(given, out)
    np.testing.assert_array_equal(out[0], given)


@pytest.mark.parametrize("value", [lambda i, j: j <= i, lambda i, j: i < 7, lambda i, j: 3 * j < 100])
def test_axes_that_a_condition_compares_stay_apart(value):
    x = te.placeholder((64, 80), name="x")
    kept = te.compute((64, 80), lambda i, j: tir.Select(value(i, j), x[i, j], te.const(0, "float32")), name="kept")
    program = te.create_prim_func([x, kept])
    sch = tir.tune.default(program, NARROW)
    assert "//" not in sch.mod.script() and kinds(sch, "kept")[-1] == "vectorized"
    assert_same_result(program, sch.mod, engines=("llvm",))


def test_moments_over_several_axes_are_partial_sums_in_vectors():
    x, scale, shift = (te.placeholder(s, name=n) for s, n in (((2, 4, 5, 64), "x"), ((4,), "scale"), ((4,), "shift")))
    func = te.create_prim_func([x, scale, shift, ops.nn.group_norm(x, scale, shift, 2)])
    sch = tir.tune.default(func, "llvm -num-cores=1")
    for stage in ("mean", "variance"):
        assert "vectorized" in kinds(sch, f"group_norm_{stage}_sum_rf_update")


def test_a_sum_of_rows_becomes_partial_sums_in_vectors():
    sch = tir.tune.default(rows.row_sum(1023, 511), "llvm -num-cores=1")
    assert "vectorized" in kinds(sch, "total_rf_update")


@pytest.mark.parametrize("columns", [3, 5, 7, 8, 9, 15])
@pytest.mark.parametrize("make", [ops.nn.softmax, ops.nn.log_softmax])
def test_a_short_row_is_part_of_one_vector_or_two(make, columns: int):
    x = te.placeholder((20, columns), name="x")
    func = te.create_prim_func([x, make(x)])
    sch = tir.tune.default(func, "llvm -vector_width=256 -num-cores=1")
    assert any(b.name.endswith("sum_rf_update") for b in sch.get_child_blocks("root")) == (columns > 5)
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_logarithms_of_short_rows_are_computed_as_vectors():
    x = te.placeholder((20, 30), name="x")
    sch = tir.tune.default(te.create_prim_func([x, ops.nn.log_softmax(x)]), "llvm -vector_width=256 -num-cores=1")
    assert kinds(sch, "log_softmax_log")[-1] == "vectorized"


def test_a_sum_of_columns_has_vectors_along_the_result():
    sch = tir.tune.default(rows.column_sum(1023, 511), "llvm -num-cores=1")
    assert kinds(sch, "total_update")[-1] == "vectorized"
    assert not any(b.name.endswith("_rf") for b in sch.get_child_blocks("root"))


@pytest.mark.parametrize("columns", [5, 8, 11, 15])
def test_columns_that_fill_no_vector_are_a_part_of_one(columns: int):
    x = te.placeholder((40, columns), name="x")
    func = te.create_prim_func([x, ops.nn.softmax(x, axis=0)])
    sch = tir.tune.default(func, "llvm -mcpu=x86-64-v4 -num-cores=1")
    blocks = sch.get_child_blocks("root")
    assert {sch.get(sch.get_loops(block)[-1]).kind for block in blocks} == {"vectorized"}
    assert_same_result(func, sch.mod, engines=("interpreter",))
    same(func, "llvm")


@pytest.mark.parametrize(
    "terms, columns, scope", [(9, 60, "local"), (3, 6500, "local"), (900, 60, "global"), (900, 6500, "global")]
)
def test_sums_of_few_rows_stay_in_registers(terms: int, columns: int, scope: str):
    sch = tir.tune.default(rows.column_sum(terms, columns), "llvm -vector_width=512 -num-cores=1")
    update = next(b.name for b in sch.get_child_blocks("root") if b.name.endswith("_update"))
    assert sch.get(update).writes[0].buffer.scope == scope


@pytest.mark.parametrize("columns, kind", [(31, "serial"), (32, "vectorized")])
def test_what_a_scan_reads_of_the_step_before_is_not_stored_under_a_mask(columns: int, kind: str):
    x, state = (te.placeholder((99, columns), name=name) for name in ("x", "state"))
    step = te.compute(x.shape, lambda t, j: state[t - 1, j] + x[t, j], name="step")
    scan = te.scan(te.compute((1, columns), lambda _, j: x[0, j]), step, state)
    sch = tir.tune.default(te.create_prim_func([x, scan]), "llvm -vector_width=512 -num-cores=1")
    assert kinds(sch, "step")[-1] == kind


def test_a_small_program_stays_on_one_core():
    assert "parallel" not in kinds(tir.tune.default(elementwise.scale_add(1000), "llvm -num-cores=8"), "out")


def threads_of(sch: tir.Schedule, block: str) -> list[str]:
    return [sch.get(loop).thread for loop in sch.get_loops(block)]


def test_every_result_gets_a_thread():
    sch = tir.tune.default(elementwise.gelu_chain(60000), "cuda-sim")
    assert threads_of(sch, "out") == ["blockIdx.x", "threadIdx.x"]


def test_few_long_sums_are_spread_over_threads():
    sch = tir.tune.default(rows.row_sum(10, 1000), "cuda-sim")
    assert threads_of(sch, "total") == ["blockIdx.x", "", "", "threadIdx.x"]
    a, b = np.ones((10, 1000), np.float32), np.zeros(10, np.float32)
    tir.build(sch.mod, target="cuda-sim")(a, b)
    np.testing.assert_array_equal(b, 1000)


def test_a_refused_step_drops_the_schedule_and_is_counted():
    from tir.tune.space import Rule, Space, space_of

    def wrong(sch: tir.Schedule, block: str, env: object) -> list[tir.Schedule]:
        sch.copy().compute_inline(block)
        return [sch]

    env = space_of("llvm").env
    space = Space(env, [Rule("wrong", wrong, ("llvm",), 1)])
    made = space.first(tir.Schedule(elementwise.scale_add(10)))
    assert not made.trace.steps and space.dropped == {"wrong": 1}


@pytest.mark.parametrize("shape", [(512, 128), (65536,), (4, 128, 128)])
def test_a_reshape_is_one_copy(shape: tuple[int, ...]):
    x = tir.te.placeholder((4, 64, 256), name="x")
    sch = tir.tune.default(tir.te.create_prim_func([x, tir.ops.reshape(x, shape)]), "llvm -num-cores=1")
    assert len(sch.get_loops("reshape")) == 1


TRIANGULAR = """
@T.prim_func
def main(L: T.Buffer((9, 9), "float32"), B: T.Buffer((9, 12), "float32"), C: T.Buffer((9, 12), "float32")):
    for i, j in T.grid(9, 12):
        for k in range(i + 1):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + L[vi, vk] * B[vk, vj]
"""


@pytest.mark.usefixtures("eager")
def test_a_product_with_a_triangular_matrix_has_vectors():
    func = tir.script.parse(TRIANGULAR)
    sch = tir.tune.default(func, NARROW)
    assert "vectorized" in kinds(sch, "C_update") and "parallel" in kinds(sch, "C_update")
    for target in (NARROW, "cuda-sim"):
        same(func, target)


@pytest.mark.parametrize("floor", [0.0, 0.7, 1.0], ids=["may be faster", "is near", "cannot be faster"])
def test_decisions_and_the_plain_program_are_tried_only_where_they_may_be_faster_by_enough(
    floor: float, monkeypatch: pytest.MonkeyPatch
):
    module = importlib.import_module("tir.tune.default")
    predicted, tried = [], []
    predict, without = module.predict, space.Space.without
    found = lambda sch, env: dataclasses.replace(made := predict(sch, env), floor=floor * module.GAIN * made.seconds)  # noqa: E731
    monkeypatch.setattr(module, "predict", lambda *of, below=inf: predicted.append(of) or found(*of))
    monkeypatch.setattr(space.Space, "without", lambda *of: tried.append(of) or without(*of))
    tir.tune.default(rows.softmax(64, 100), "llvm -num-cores=1")
    assert (bool(tried), len(predicted) > 1) == (not floor, floor < 1.0)


@pytest.mark.parametrize("name", ["matmul", "softmax", "conv2d"])
def test_what_is_not_tried_would_not_have_been_chosen(name: str, monkeypatch: pytest.MonkeyPatch):
    func = te.create_prim_func(te_programs.PROGRAMS[name](te, tir))
    made = tir.tune.default(func, NARROW).func
    module = importlib.import_module("tir.tune.default")
    predict = module.predict
    monkeypatch.setattr(
        module,
        "predict",
        lambda *of, **more: (p := predict(*of, **more)) and dataclasses.replace(p, floor=0.0, blocks={}),
    )
    assert tir.tune.default(func, NARROW).func.script() == made.script()


@pytest.mark.filterwarnings("error")
def test_an_operand_at_a_place_that_data_decides_is_told_from_the_places():
    """After inlining, the product reads the places before its operand."""
    program = tir.script.parse("""
@T.prim_func
def f(A: T.Buffer((2, 4, 8), "float32"), P: T.Buffer((3,), "int64"), B: T.Buffer((8, 1), "float32"), O: T.Buffer((3, 4, 1), "float32")):
    G = T.alloc_buffer((3, 4, 8), "float32")
    for i, j, k in T.grid(3, 4, 8):
        with T.block("G"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            G[vi, vj, vk] = A[T.max(T.min(P[vi], T.int64(1)), T.int64(0)), vj, vk]
    for i, j, m, k in T.grid(3, 4, 1, 8):
        with T.block("O"):
            vi, vj, vm, vk = T.axis.remap("SSSR", [i, j, m, k])
            with T.init():
                O[vi, vj, vm] = T.float32(0)
            O[vi, vj, vm] = O[vi, vj, vm] + G[vi, vj, vk] * B[vk, vm]
""")
    same(program, "llvm")


ITERATED = """
@T.prim_func
def f(C: T.Buffer((30, 50), "float32"), O: T.Buffer((30, 50), "int32")):
    for i, j in T.grid(30, 50):
        with T.block("count"):
            vi, vj = T.axis.remap("SS", [i, j])
            x = T.alloc_buffer((1,), "float32", scope="local")
            x[0] = T.float32(0)
            O[vi, vj] = 0
            for k in range(9):
                if x[0] < T.float32(2):
                    x[0] = x[0] * x[0] + C[vi, vj]
                    O[vi, vj] = O[vi, vj] + 1
"""


def test_a_block_with_memory_of_its_own_is_vectors():
    """Each lane has its own; what a condition guards is masked."""
    func = tir.script.parse(ITERATED)
    sch = tir.tune.default(func, "llvm -num-cores=1")
    assert [sch.get(loop).kind for loop in sch.get_loops("count")][-1] == "vectorized"
    assert "scalar_because" not in tir.lower(sch.mod).script()
    assert_same_result(func, sch.mod)


STRAIGHT = """
@T.prim_func
def f(A: T.Buffer((500, 3), "float32"), H: T.Buffer((500,), "float32")):
    for i in range(500):
        with T.block("hue"):
            vi = T.axis.spatial(500, i)
            m = T.alloc_buffer((1,), "float32", scope="local")
            m[0] = T.max(A[vi, 0], A[vi, 1])
            if m[0] == A[vi, 0]:
                H[vi] = A[vi, 1] - A[vi, 2]
            else:
                H[vi] = A[vi, 2] - A[vi, 0]
"""


def test_straight_code_with_memory_of_its_own_is_left_to_llvm():
    """Which makes vectors of it that select, and mask nothing."""
    func = tir.script.parse(STRAIGHT)
    sch = tir.tune.default(func, "llvm -num-cores=1")
    assert [sch.get(loop).kind for loop in sch.get_loops("hue")] == ["serial"]
    assert_same_result(func, sch.mod)


def test_terms_of_an_operand_read_at_two_places_are_vectors():
    """It is not copied for one of them: a copy is of all that a block reads."""
    x, r = te.placeholder((64, 3), name="X"), te.placeholder((64, 64), name="R")
    k = te.reduce_axis((0, 64), "k")
    y = te.compute((64, 3), lambda i, c: te.sum((x[k, c] - x[i, c]) * r[i, k], axis=k), name="Y")
    func = te.create_prim_func([x, r, y])
    sch = tir.tune.default(func, "llvm -num-cores=1")
    assert any(sch.get(loop).kind == "vectorized" for b in sch.get_child_blocks("root") for loop in sch.get_loops(b))
    assert_same_result(func, sch.mod)


def test_parts_of_a_row_are_read_in_order():
    """Where an array is split along its rows, which one loop goes through."""
    x = te.placeholder((64, 384), name="X")
    func = te.create_prim_func([x, *ops.split(x, 3, 1)])
    sch = tir.tune.default(func, "llvm -num-cores=1")
    assert len({sch.get_loops(block)[0] for block in sch.get_child_blocks("root")}) == 1
    assert_same_result(func, sch.mod)


@pytest.mark.parametrize(("l2_bytes", "streamed"), [(1 << 16, True), (1 << 18, False)])
def test_a_target_that_names_its_caches_asks_nothing_of_this_machine(monkeypatch, l2_bytes: int, streamed: bool):
    """What is stored past the caches, too."""
    monkeypatch.setattr("tir.target.cache_bytes", lambda level: pytest.fail(f"L{level} of this machine"))
    target = f"llvm -num-cores=2 -l1_bytes=32768 -l2_bytes={l2_bytes} -l3_bytes={4 * l2_bytes}"
    x, y = te.placeholder((512, 512), name="x"), te.placeholder((512, 8), name="y")
    for result in (ops.add(x, 1.0), ops.transpose(x), ops.nn.softmax(x), ops.matmul(y, y, transp_b=True)):
        made = tir.tune.default(ops.function_of(result), target)
        assert ("nontemporal" in made.mod.script()) is streamed
