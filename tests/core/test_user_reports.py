"""What cost users of such systems hours, and what they wished for: each is done here as they did it.

A refusal must come at the step that is at fault, with the facts, speak of nothing of ours, and change nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path

import numpy as np
import pytest

import tir
from tests.prim_checks import same, schedule
from tir.interp import run
from tir.script import parse

CHAIN = """
@T.prim_func
def main(A: T.Buffer((1024, 64), "float32"), B: T.Buffer((64, 64), "float32"), D: T.Buffer((1024, 64), "float32")):
    C = T.alloc_buffer((1024, 64), "float32")
    for i, j, k in T.grid(1024, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]
    for x, y in T.grid(1024, 64):
        with T.block("D"):
            vx, vy = T.axis.remap("SS", [x, y])
            D[vx, vy] = C[vx, vy] + T.float32(1)
"""
MATMUL = """
@T.prim_func
def mmult(A: T.Buffer((16, 16), "{0}"), B: T.Buffer((16, 16), "{0}"), C: T.Buffer((16, 16), "{0}")):
    for i, j, k in T.grid({1}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.{0}(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]
"""
FLOAT = MATMUL.format("float32", "16, 16, 16")
SCALE = """
@T.prim_func
def scale(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(2)
"""
ARGMAX = """
@T.prim_func
def best(A: T.Buffer((4, 64), "float32"), P: T.Buffer((4,), "int32"), V: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 64):
        with T.block("best"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                P[vi] = -1
                V[vi] = T.min_value("float32")
            p: T.int32 = T.Select(V[vi] {0} A[vi, vk], P[vi], vk)
            v: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
            P[vi] = p
            V[vi] = v
"""


def assert_ours_stays_out(error: BaseException) -> None:
    """Nothing of the implementation shows: no assertion, no internal fault, no path or frame of the package."""
    shown = str(error)
    for leak in ("AssertionError", "fault inside", "Traceback", "/tir/", "codegen/", "site-packages", "object at 0x"):
        assert leak not in shown, shown
    assert not isinstance(error, AssertionError)


def refused(sch: tir.Schedule, step, *facts: str) -> str:
    """``step`` is refused with all ``facts``, and the schedule is what it was; the message."""
    mod, history = sch.mod, [s.text for s in sch.history]
    with pytest.raises(tir.ScheduleError) as caught:
        step()
    shown = str(caught.value)
    for fact in facts:
        assert fact in shown, shown
    assert_ours_stays_out(caught.value)
    assert sch.mod is mod and [s.text for s in sch.history] == history
    return shown


def failing(kind, call, *facts: str) -> str:
    with pytest.raises(kind) as caught:
        call()
    shown = str(caught.value)
    for fact in facts:
        assert fact in shown, shown
    assert_ours_stays_out(caught.value)
    return shown


# ---------------------------------------------------------------- errors, at the step that is at fault


def test_two_extents_of_one_block_axis():
    sch = schedule(CHAIN)
    sch.bind("i", "blockIdx.y")
    outer, _ = sch.split("j", [4, None])
    refused(
        sch,
        lambda: sch.bind(outer, "blockIdx.y"),
        "blockIdx.y already has extent 1024 (loop `i` of block C)",
        "loop `j_0` of block C has 4",
        "split to match, or bind another axis",
        "thread_binding(1024",
    )


def test_two_kernels_may_have_different_extents():
    sch = schedule(CHAIN.replace("1024", "24").replace("64", "8"))
    sch.bind("i", "blockIdx.y")
    sch.bind(sch.split("x", [4, None])[0], "blockIdx.y")
    same(sch)


def test_layout_of_a_reduction_axis():
    """Re-laying out a reduction keeps the meaning where no index mixes it with a spatial axis: that is taken."""
    sch = schedule(FLOAT)
    sch.transform_block_layout("C", lambda i, j, k: (i, k // 4, j, k % 4))
    assert [i.iter_type for i in sch.get(sch.get_block("C")).iter_vars] == [
        "spatial",
        "reduce",
        "spatial",
        "reduce",
    ]
    same(sch)
    mixed = schedule(FLOAT)
    refused(
        mixed,
        lambda: mixed.transform_block_layout("C", lambda i, j, k: (i * 16 + k, j)),
        "`i * 16 + k` mixes reduce and spatial iterators",
        "spatial iterators (vi, vj)",
        "reduce iterators (vk)",
        "rfactor",
    )
    mixed.rfactor("k", 0)  # as it says: the loop is spatial now
    block = mixed.get_block("C_rf")
    names = [i.var.name for i in mixed.get(block).iter_vars]
    mixed.transform_block_layout(block, lambda k, i, j: (i * 16 + k, j))
    assert names == ["vk", "vi", "vj"]
    same(mixed)


def test_layout_of_a_buffer_that_a_reduction_reads():
    sch = schedule(FLOAT)
    sch.cache_read("C", 1, "global")
    sch.transform_layout("C", ("read", "B_global"), lambda k, j: (k // 4, j, k % 4))
    same(sch)


@pytest.fixture(scope="module")
def kernel():
    sch = schedule(FLOAT)
    sch.bind("i", "blockIdx.x")
    sch.bind("j", "threadIdx.x")
    return tir.build(sch.mod, target="cuda -arch=sm_80")


def test_host_array_to_a_gpu_kernel(kernel):
    a = np.zeros((16, 16), "float32")
    failing(
        tir.RunError,
        lambda: kernel(a, a, a.copy()),
        "argument 1 `A`",
        "on the cpu",
        "built for cuda:0",
        "mod.array(x)",
        "on_copies",
    )


def test_no_gpu_is_said_only_when_a_kernel_runs(kernel):
    assert "__global__" in kernel.source("cuda") and len(kernel.cubin()) > 1000
    if not _no_device():
        return  # a device is here: that kernels run on it is tests/cuda/test_cuda_device.py
    a = np.zeros((16, 16), "float32")
    failing(
        tir.RunError,
        lambda: kernel["main"].on_copies(a, a, a.copy()),
        "no CUDA device here",
        "lowering",
        "CUDA source",
        "cubin",
        "cuda-sim",
    )


def _no_device() -> bool:
    from codegen.diagnosis import doctor

    return any("no CUDA device here" in str(line) for line in str(doctor()).splitlines())


def test_64_kb_of_shared_memory():
    sch = schedule(FLOAT.replace("16", "128"), target="cuda")
    sch.split("i", [1, 128], names=["io", "ii"])
    sch.split("k", [None, 64], names=["ko", "ki"])
    sch.reorder("io", "ko", "ii", "j", "ki")
    sch.bind("io", "blockIdx.x")
    sch.compute_at(sch.cache_read("C", 0, "shared"), "ko")
    b = sch.cache_read("C", 1, "shared")
    refused(
        sch, lambda: sch.compute_at(b, "ko"),
        "65536 B > 49152 B", "A_shared 32 KB", "B_shared 32 KB", "tile of ko", "shared.dyn",
    )  # fmt: skip
    sch.set_scope("A_shared", 0, "shared.dyn")
    sch.set_scope(b, 0, "shared.dyn")
    sch.compute_at(b, "ko")


def test_a_block_of_2048_threads():
    sch = schedule(CHAIN)
    sch.bind("i", "threadIdx.x")
    outer, _ = sch.split("j", [2, None])
    refused(sch, lambda: sch.bind(outer, "threadIdx.y"), "threadIdx product 2048 > 1024", "split")
    big = schedule(CHAIN.replace("1024", "2048"))
    refused(big, lambda: big.bind("i", "threadIdx.x"), "2048 > 1024", "split loop i by at most 1024")


def test_compute_at_where_the_consumer_cannot_see_it():
    sch = schedule(CHAIN)
    refused(sch, lambda: sch.compute_at("C", "k"), "loop `k` already is above block `C`", "legal locations", "x, y")
    refused(sch, lambda: sch.compute_at("D", "i"), "D", "legal")
    assert sch.can.compute_at("C").legal == ["x", "y"]


def test_a_loop_of_another_block():
    for step in (
        lambda s: s.decompose_reduction("C", "y"),
        lambda s: s.read_at("y", "C", 0, "global"),
        lambda s: s.decompose_reduction(s.get_block("C"), s.get_loops("D")[1]),
    ):
        sch = schedule(CHAIN)
        refused(sch, lambda: step(sch), "loop `y` belongs to `D`, not to `C`", "the loops of C are i, j, k")
    sch = schedule(CHAIN)
    refused(sch, lambda: sch.reorder("y", "k"), "not in one nest", "y is above `D`", "k above `C`")
    refused(sch, lambda: sch.split("C.y", [None, 4]), "no loop `y` above block `C`", "legal: i, j, k")


def intrinsic() -> tir.TensorIntrin:
    text = """
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 8), "float32", offset_factor=1)
    B = T.match_buffer(b, (8, 4), "float32", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:8], B[0:8, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 8):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
    return tir.TensorIntrin(parse(text), parse(text), "mma_4x4x8")


def tiled(*factors: int, text: str = FLOAT) -> tir.Schedule:
    sch = schedule(text)
    parts = [sch.split(loop, [None, f]) for loop, f in zip(sch.get_loops("C"), factors)]
    sch.reorder(*(p[0] for p in parts), *(p[1] for p in parts))
    sch.decompose_reduction("C", sch.get_loops("C")[2])
    return sch


def test_tensorize_of_a_loop_that_does_not_match():
    sch = tiled(4, 8, 16)
    shown = refused(
        sch,
        lambda: sch.tensorize("C_update.i_1", intrinsic()),
        "does not compute what the intrinsic mma_4x4x8 describes",
        "first difference (intrinsic, block): C is (4, 4), the region of C (4, 8); A is (4, 8), the region of A (4, 16)",
        "intrinsic:\n",
        "block:\n",
        "split j_1 by 4, k_1 by 8",
    )
    assert shown.index("T.grid(4, 4, 8)") < shown.index("T.grid(4, 8, 16)")
    fits = tiled(4, 4, 8)
    fits.tensorize("C_update.i_1", intrinsic())
    same(fits)


def test_tensorize_of_other_types():
    sch = tiled(4, 4, 8, text=MATMUL.format("float64", "16, 16, 16"))
    refused(
        sch, lambda: sch.tensorize("C_update.i_1", intrinsic()), "the buffers' types differ", "A float32", "A float64"
    )


def test_a_loop_after_it_was_split():
    sch = schedule(CHAIN)
    i = sch.get_loops("C")[0]
    sch.unroll("y")
    sch.vectorize(sch.split("x", [None, 4])[1])
    sch.split(i, [None, 4], names=["mo", "mi"])
    for loop in (i, "i"):
        refused(sch, lambda: sch.reorder("k", loop), "loop `i` was split at step 4 into mo, mi", "legal: mo, mi")
    sch.fuse("mo", "mi")
    refused(sch, lambda: sch.parallel("mi"), "loop `mi` was fused at step 5 into mo_mi_fused")


def test_int8_constants_stay_int8():
    assert tir.const(0, "int8").dtype == "int8"
    assert (tir.Var("x", "int8") + 1).dtype == "int8"
    assert (tir.const(1, "int8") * tir.Var("x", "int8")).dtype == "int8"
    failing(ValueError, lambda: tir.const(300, "int8"), "300 does not fit int8 (-128 to 127)")
    mixed = SCALE.replace("float32", "int8").replace("T.int8(2)", "{}")
    failing(tir.ParseError, lambda: parse(mixed.format("1.5")), "mixes int8 with the float 1.5", ":7:21")
    failing(tir.ParseError, lambda: parse(mixed.format("T.int32(2)")), "int8", "int32")
    kept = parse(mixed.format("2"))
    b = np.zeros(64, "int8")
    tir.build(kept)(np.full(64, 100, "int8"), b)
    assert (b == np.int8(-56)).all()  # 200, in 8 bits


@pytest.mark.parametrize("step", ["rfactor", "bind", "reorder"])
def test_tuple_reduction_with_different_conditions(step: str):
    sch = schedule(ARGMAX.format("<"))
    sch.split("k", [None, 16])
    steps = {
        "rfactor": lambda: sch.rfactor("k_0", 0),
        "bind": lambda: sch.bind("k_1", "threadIdx.x"),
        "reorder": lambda: sch.reorder("k_1", "k_0"),
    }
    facts = ["the conditions differ", "`P` by `V[vi] < A[vi, vk]`", "`V` by `V[vi] >= A[vi, vk]`"]
    refused(sch, steps[step], *(facts if step != "reorder" else ["would change their order", "P[0]"]))


@pytest.mark.parametrize("comparison", [">=", ">"])
def test_tuple_reduction_that_is_one(comparison: str):
    """``>`` beside ``>=`` only decides which of equal candidates wins: that is a reduction."""
    sch = schedule(ARGMAX.format(comparison))
    sch.split("k", [None, 16])
    sch.rfactor("k_0", 0)
    same(sch)


# ---------------------------------------------------------------- wishes


def test_every_step_is_there_to_see_and_to_save(tmp_path):
    sch = schedule(FLOAT)
    sch.split("j", [None, 16], names=["jo", "ji"])
    sch.unroll("ji")
    diff = str(sch.diff())
    assert any(line.startswith("-") and "ji" in line for line in diff.splitlines())
    for step in sch.history:
        (tmp_path / f"{step.number}.py").write_text(step.mod.script())
    for step in sch.history:
        assert tir.structural_equal(parse((tmp_path / f"{step.number}.py").read_text()), step.mod)


def test_dump_of_the_ir_before_and_after_each_pass(tmp_path, monkeypatch):
    monkeypatch.setenv("TIR_DUMP", str(tmp_path))
    tir.lower(schedule(FLOAT).mod)
    stages = sorted(os.listdir(tmp_path))
    (at,) = [n for n, name in enumerate(stages) if "flatten_buffer" in name]
    before, after = ((tmp_path / stages[n]).read_text() for n in (at - 1, at))
    assert "A[i, k]" in before and "(16, 16)" in before
    assert "A_1[i * 16 + k]" in after and "(16, 16)" in after and "(256,)" in after  # shapes of the arguments stay
    assert all(parse((tmp_path / name).read_text()) for name in stages)


def test_compute_at_is_explained_by_pictures():
    for name in ("compute_at", "reverse_compute_at"):
        shown = getattr(tir.Schedule, name).__doc__
        assert "preserve_unit_loops" in shown and "index" in shown
        assert "for i" in shown and "with T.block" in shown or "→" in shown


def test_compute_at_index_chooses_the_place_among_siblings():
    text = CHAIN.replace(
        "D[vx, vy] = C",
        "E[vx, vy] = A[vx, vy]\n        with T.block('D2'):\n            vx, vy = T.axis.remap('SS', [x, y])\n            D[vx, vy] = E[vx, vy] + C",
    )
    text = text.replace("    for i, j, k", "    E = T.alloc_buffer((1024, 64), 'float32')\n    for i, j, k", 1)
    for index, order in ((0, ["C", "D", "D2"]), (1, ["D", "C", "D2"]), (-1, ["D", "C", "D2"])):
        sch = schedule(text.replace("1024", "16").replace("64", "8"))
        sch.compute_at("C", "y", index=index)
        assert [b.name for b in sch.get_child_blocks("y")] == order
        same(sch)
    refused(sch, lambda: schedule(text).compute_at("C", "y", index=5) or sch, "index 5")


def test_names_of_ones_own_after_a_split():
    sch = schedule(FLOAT)
    sch.split("i", [None, 8], names=["rows", "row"])
    sch.fuse("rows", "row", name="again")
    sch.split("j", [None, 4, 2])
    assert [sch.get(loop).loop_var.name for loop in sch.get_loops("C")] == ["again", "j_0", "j_1", "j_2", "k"]


def test_handles_stay_good_or_say_where_they_went():
    sch = schedule(FLOAT)
    i, j, k = sch.get_loops("C")
    sch.reorder(k, j)
    sch.parallel(i)
    assert sch.get(k).extent.value == 16 and sch.get(i).kind == "parallel"
    jo, ji = sch.split(j, [None, 8])
    sch.undo()
    assert sch.get(j).extent.value == 16
    refused(sch, lambda: sch.unroll(jo), "j_0")


def test_blockize_returns_every_block_it_makes():
    sch = schedule(FLOAT.replace("            with T.init():\n                C[vi, vj] = T.float32(0)\n", ""))
    sch.split("k", [None, 4])
    before = {b.name for b in _blocks(sch)}
    made = sch.blockize("k_1")
    names = {b.name for b in (made if isinstance(made, (list, tuple)) else [made])}
    assert {b.name for b in _blocks(sch)} - before == names
    same(sch)


def _blocks(sch: tir.Schedule) -> list:
    from tir.visit import walk

    return [n for n in walk(sch.func.body) if isinstance(n, tir.Block)]


def test_traces_replay_to_the_same_program_elsewhere(tmp_path):
    """In another process, with another hash seed, from JSON and from Python."""
    sch = schedule(FLOAT, seed=3)
    sch.sample_perfect_tile("j", n=2)
    sch.split("i", sch.sample_perfect_tile("i", n=3))
    sch.cache_write("C", 0, "local")
    (tmp_path / "program.py").write_text(FLOAT)
    (tmp_path / "trace.json").write_text(json.dumps(sch.trace.as_json()))
    (tmp_path / "trace.py").write_text("import tir\n" + sch.trace.as_python())
    (tmp_path / "again.py").write_text(
        textwrap.dedent("""
        import sys, pathlib, tir
        from tir.schedule.trace import Trace
        from tir.script import parse
        program = parse(pathlib.Path("program.py").read_text())
        first, second = tir.Schedule(program), tir.Schedule(program)
        Trace.from_json(pathlib.Path("trace.json").read_text()).apply_to_schedule(first)
        space = {}
        exec(pathlib.Path("trace.py").read_text(), space)
        space["apply_trace"](second)
        assert first.mod.script() == second.mod.script()
        print(first.mod.script())
    """)
    )
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": root}
    done = subprocess.run([sys.executable, "again.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == sch.mod.script().strip()


def test_the_dialect_in_executed_text_and_with_closures():
    space: dict = {}
    exec(
        "from tir.script import tir as T\n"
        "def make(n, factor):\n"
        "    @T.prim_func\n"
        "    def f(A: T.Buffer((n,), 'float32')):\n"
        "        for i in range(n // 2):\n"
        "            A[i] = A[i] * T.float32(factor)\n"
        "        for i in range(n // 2, n):\n"  # the same name in a sibling scope
        "            A[i] = A[i] + T.float32(factor)\n"
        "    return f\n",
        space,
    )
    a = np.ones(6, "float32")
    run(space["make"](6, 3.0), a)
    assert a.tolist() == [3, 3, 3, 4, 4, 4]


@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
def test_inf_and_nan_parse_back(value: str):
    func = parse(SCALE.replace("A[vi] * T.float32(2)", f"T.float32('{value}')"))
    assert tir.structural_equal(parse(func.script()), func)
    for target in ("llvm", "interpreter"):
        out = np.zeros(64, "float32")
        tir.build(func, target=target)(out.copy(), out)
        np.testing.assert_array_equal(out, np.full(64, float(value), "float32"))


def test_an_undefined_variable_names_function_and_line():
    failing(
        tir.ParseError, lambda: parse(SCALE.replace("T.float32(2)", "factor")), "undefined name `factor`", "<text>:7:29"
    )
    n = tir.Var("n", "int32")
    made = parse(SCALE)
    target = next(b for b in made.buffer_map.values() if b.name == "B")
    free = made.replace(body=tir.BufferStore(target, tir.const(1.0, "float32"), (n,)))
    failing(tir.BuildError, lambda: tir.build(free), "main", "variable `n` (int32)", "is undefined")


def test_the_shared_memory_plan_has_lifetimes_and_bytes():
    from tir.transform import shared_memory_plan

    sch = schedule(FLOAT)
    sch.bind("i", "blockIdx.x")
    sch.bind("j", "threadIdx.x")
    sch.split("k", [None, 4])
    for n in (0, 1):
        block = sch.cache_read("C", n, "shared.dyn")
        sch.compute_at(block, "k_0")
    shown = str(shared_memory_plan(sch.mod))
    for fact in ("A_shared", "B_shared", "bytes", "lifetime", "offset", "16", "256"):
        assert fact in shown, shown


def test_costs_of_a_kernel_are_told_before_a_launch():
    sch = schedule(FLOAT)
    sch.bind("i", "blockIdx.x")
    sch.bind("j", "threadIdx.x")
    mod = tir.build(sch.mod, target="cuda-sim")
    a = np.random.default_rng(0).standard_normal((16, 16)).astype("float32")
    c = np.zeros_like(a)
    mod(a, a, c)
    np.testing.assert_allclose(c, a @ a, rtol=1e-4, atol=1e-4)
    (report,) = mod.last_report
    assert report.ok and report.sectors > 0
    assert "<table" in report._repr_html_()


def test_what_was_vectorized_and_why_not():
    sch = schedule(FLOAT)
    sch.parallel("i")
    sch.reorder("k", "j")
    sch.vectorize("j")
    shown = str(tir.build(sch.mod).report)
    assert "vectors of" in shown and "parallel" in shown
    answer = schedule(FLOAT).can.vectorize("k")
    assert not answer and "each needs the one before" in answer.reason


@pytest.mark.parametrize("threads", ["1", "2"])
def test_omp_num_threads(threads: str):
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "tir.doctor"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": threads, "PYTHONPATH": root},
    )
    assert f"parallel loops run on {threads} thread" in done.stdout
    for part in ("Python", "LLVM", "OpenMP", "NVRTC", "CUDA device", "simulator"):
        assert part in done.stdout


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_same_program_with_int32_and_int64_indices(dtype: str):
    text = MATMUL.format("float32", ", ".join([f"T.{dtype}(16)"] * 3))
    sch = schedule(text)
    outer, inner = sch.split("j", [None, 8])
    sch.reorder("i", outer, "k", inner)
    sch.vectorize(inner)
    sch.parallel("i")
    assert {sch.get(loop).loop_var.dtype for loop in sch.get_loops("C")} == {dtype}
    same(sch)
    a = np.random.default_rng(0).standard_normal((16, 16)).astype("float32")
    c = np.zeros_like(a)
    tir.build(sch.mod)(a, a, c)
    np.testing.assert_allclose(c, a @ a, rtol=1e-4, atol=1e-4)


def test_an_override_is_recorded():
    text = SCALE.replace("B: T.Buffer", 'P: T.Buffer((64,), "int32"), B: T.Buffer').replace("B[vi] =", "B[P[vi]] =")
    sch = schedule(text)
    refused(
        sch,
        lambda: sch.parallel("i"),
        "cannot prove that iterations of loop `i`",
        "`P[vi]` depends on data",
        "may write B[0]",
    )
    sch.parallel("i", unsafe=True)
    assert "unsafe=True" in sch.trace.as_python()
    assert tir.structural_equal(sch.trace.replay(parse(text)).mod, sch.mod)


def test_errors_show_no_internal_frames():
    """The traceback a user sees ends in the message; a faulty text shows their line, not ours."""
    sch = schedule(FLOAT)
    try:
        sch.vectorize("k")
    except tir.ScheduleError as error:
        shown = "".join(traceback.format_exception_only(type(error), error))
    assert "AssertionError" not in shown and "vectorize" in shown
