"""The loop family: what each primitive gives, and what it refuses with which words."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse

MATMUL = """
@T.prim_func
def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

DOUBLE = """
@T.prim_func
def main(A: T.Buffer(({n},), "float32"), B: T.Buffer(({n},), "float32")):
    for i in range({n}):
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            B[vi] = A[vi] * T.float32(2)
"""

SYMBOLIC = """
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * T.float32(2)
"""

TRIANGLE = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for i in range(16):
        for j in range(i + 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
"""

STENCIL = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(15, 15):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj] = A[vi, vj + 1] + T.float32(1)
"""

TWO = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for x, y in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [x, y])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""


def schedule(text: str, **options) -> tir.Schedule:
    return tir.Schedule(parse(text), **options)


def results(mod: tir.IRModule, scalars: dict[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    func = mod["main"]
    args: list = []
    for p in func.params:
        buffer = func.buffer_map.get(p)
        if buffer is None:
            args.append(scalars[p.name])
        else:
            shape = [scalars[s.name] if isinstance(s, tir.Var) else int(s) for s in buffer.shape]
            args.append(rng.standard_normal(shape).astype(buffer.dtype))
    from tir.interp import run

    run(mod, *args)
    return [a for a in args if isinstance(a, np.ndarray)]


def same(before: tir.Schedule | tir.IRModule, after: tir.Schedule, **scalars: int) -> None:
    """Five oracles: well-formed, text parses back, the trace replays, undo returns the object, the executor agrees."""
    from tir.analysis import wellformed

    original = before.history[0].mod if isinstance(before, tir.Schedule) else before
    assert not wellformed.check(after.mod["main"])
    tir.assert_structural_equal(parse(after.mod["main"].script()), after.mod["main"])
    replayed = after.trace.replay(original)
    tir.assert_structural_equal(replayed.mod, after.mod)
    names: dict = {"tir": tir}
    exec(after.trace.as_python(), names)
    again = tir.Schedule(original)
    names["apply_trace"](again)
    tir.assert_structural_equal(again.mod, after.mod)
    undone = after.copy()
    undone.reset()
    assert undone.mod is original
    for a, b in zip(results(original, scalars), results(after.mod, scalars)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def refused(call, *words: str) -> tir.ScheduleError:
    with pytest.raises(tir.ScheduleError) as caught:
        call()
    text = str(caught.value)
    for word in words:
        assert word in text, text
    assert "fault inside" not in text, text
    return caught.value


# ---------------------------------------------------------------- split


@pytest.mark.parametrize(
    "n, factors, guarded",
    [
        (96, [None, 32], False),
        (100, [None, 32], True),
        (100, [4, None], False),
        (100, [3, None, 4], True),
        (7, [None, 32], True),
        (1, [None, 1], False),
        (100, [2, 50], False),
        (100, [2, 64], True),
    ],
)
def test_split(n, factors, guarded):
    sch = schedule(DOUBLE.format(n=n))
    loops = sch.split("i", factors)
    assert [loop.name for loop in loops] == [f"i_{d}" for d in range(len(factors))]
    assert ("T.where" in sch.script()) == guarded
    same(sch, sch)


def test_split_text():
    sch = schedule(DOUBLE.format(n=100))
    sch.split("i", [None, 32])
    assert "vi = T.axis.spatial(100, i_0 * 32 + i_1)" in sch.script()
    assert "T.where(i_0 * 32 + i_1 < 100)" in sch.script()


def test_split_styles():
    a, b, c = (schedule(DOUBLE.format(n=64)) for _ in range(3))
    a.split("i", factor=16)
    b.split("i", nparts=4)
    c.split(c.get_loops("B")[0], factors=[4, 16])
    tir.assert_structural_equal(a.mod, b.mod)
    tir.assert_structural_equal(a.mod, c.mod)


def test_split_names():
    sch = schedule(DOUBLE.format(n=64))
    outer, inner = sch.split("i", [None, 8], names=["tile", "lane"])
    assert (outer.name, inner.name) == ("tile", "lane")
    sch.split("lane", [2, None])
    same(sch, sch)


def test_names_of_new_loops_are_identifiers():
    sch = schedule(DOUBLE.format(n=64))
    refused(
        lambda: sch.split("i", [None, 8], names=["tile", "a lane"]), "'a lane' is not a name for a loop", "identifiers"
    )
    refused(lambda: sch.split("i", [None, 8], names=["1", "2"]), "'1' is not a name for a loop")


def test_split_symbolic_has_a_tail():
    sch = schedule(SYMBOLIC)
    sch.split("i", [None, 8])
    assert "T.where(i_0 * 8 + i_1 < n)" in sch.script()
    same(sch, sch, n=13)


def test_split_units():
    sch = schedule(DOUBLE.format(n=8))
    sch.split("i", [8, 1])
    assert "i_0 + i_1" in sch.script()
    other = schedule(DOUBLE.format(n=8))
    other.split("i", [8, 1], preserve_unit_iters=False)
    assert "i_1)" not in other.script().split("vi = ")[1].splitlines()[0]
    same(sch, sch)
    same(other, other)


def test_split_twice_simplifies():
    sch = schedule(DOUBLE.format(n=128))
    _, inner = sch.split("i", [None, 32])
    sch.split(inner, [None, 4])
    assert "i_0 * 32 + i_1_0 * 4 + i_1_1" in sch.script()
    same(sch, sch)


def test_split_tail_cut_and_exact():
    sch = schedule(DOUBLE.format(n=100))
    sch.split("i", [None, 32], tail="cut")
    assert "T.where" not in sch.script() and "B_tail" in sch.script()
    same(sch, sch)
    refused(
        lambda: schedule(DOUBLE.format(n=100)).split("i", [None, 32], tail="exact"),
        "do not divide",
        "100",
        "divide 100",
    )


def test_split_refusals():
    sch = schedule(DOUBLE.format(n=100))
    before = sch.mod
    refused(lambda: sch.split("i", [None, None]), 'split("i", factors=[None, None])', "only one factor can be None")
    refused(lambda: sch.split("i", [2, 32]), "64 iterations", "`i` has 100", "^^^")
    refused(lambda: sch.split("i", [0, None]), "positive")
    refused(lambda: sch.split("q", [2, None]), "loop `q` is not in function `main`", "legal: i")
    with pytest.raises(TypeError, match="one of factors"):
        sch.split("i")
    with pytest.raises(TypeError, match="got an unexpected keyword"):
        sch.split("i", [2, None], wrong=1)
    assert sch.mod is before and len(sch.trace) == 0
    sch.parallel("i")
    refused(lambda: sch.split("i", [2, None]), "is parallel", "^^^")


def test_a_consumed_handle_says_where_it_went():
    sch = schedule(DOUBLE.format(n=64))
    (i,) = sch.get_loops("B")
    sch.split(i, [2, None])
    refused(lambda: sch.split(i, [2, None]), "loop `i` was split at step 1 into i_0, i_1")
    refused(lambda: sch.unroll("i"), "loop `i` was split at step 1 into i_0, i_1")
    sch.undo()
    sch.unroll(i)


# ---------------------------------------------------------------- fuse


def test_fuse():
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops("C")
    fused = sch.fuse(i, j)
    assert fused.name == "i_j_fused" and int(sch.get(fused).extent) == 1024
    assert "vi = T.axis.spatial(32, i_j_fused // 32)" in sch.script()
    assert "vj = T.axis.spatial(32, i_j_fused % 32)" in sch.script()
    same(sch, sch)


def test_fuse_undoes_split():
    sch = schedule(DOUBLE.format(n=64))
    sch.fuse(*sch.split("i", [None, 8]))
    assert "vi = T.axis.spatial(64, i_0_i_1_fused)" in sch.script()
    same(sch, sch)


def test_fuse_after_guarded_split():
    sch = schedule(DOUBLE.format(n=100))
    sch.fuse(*sch.split("i", [None, 8]), name="x")
    same(sch, sch)


def test_fuse_refusals():
    sch = schedule(TRIANGLE)
    refused(
        lambda: sch.fuse("i", "j"),
        "range of `j` depends on `i`",
        "at i=0, j runs over [0, 1)",
        "at i=1, j runs over [0, 2)",
    )
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops("C")
    refused(lambda: sch.fuse(i, k), "between `i` and `k` there is loop `j`")
    refused(lambda: sch.fuse(j, i), "outermost first: i, j")
    refused(lambda: sch.fuse(i, i), "given twice")
    sch = schedule(TWO)
    refused(lambda: sch.fuse("i", "x"), "not the loop directly inside")


def test_zero_extent():
    text = DOUBLE.format(n=8).replace("range(8)", "range(0)")
    sch = schedule(text)
    a, b = sch.split("i", [None, 4])
    sch.reorder(b, a)
    sch.fuse(b, a)
    same(sch, sch)


# ---------------------------------------------------------------- reorder


def test_reorder():
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i)
    assert [loop.name for loop in sch.get_loops("C")] == ["k", "j", "i"]
    same(sch, sch)


def test_reorder_tiles():
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 5])
    j0, j1 = sch.split(j, [None, 8])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(k0, j0, i0, k1, j1, i1)
    same(sch, sch)


def test_reorder_refuses_a_reversed_dependence():
    refused(lambda: schedule(STENCIL).reorder("j", "i"), "A[")
    sch = schedule(STENCIL)
    sch.reorder("j", "i", unsafe=True)
    assert [loop.name for loop in sch.get_loops("A")] == ["j", "i"]
    assert "unsafe=True" in sch.trace.as_python()


def test_reorder_accepts_a_kept_dependence():
    sch = schedule(STENCIL.replace("A[vi, vj + 1]", "A[vi, vj]"))
    sch.reorder("j", "i")
    same(sch, sch)


@pytest.mark.parametrize("size", ["n", "8"])
def test_reorder_refuses_to_mix_repeated_sums(size):
    text = f"""
@T.prim_func
def main(a: T.handle, c: T.handle, n: T.int32):
    A = T.match_buffer(a, (n, 4), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i, r, k in T.grid({size}, 3, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] += A[vi, vk]
"""
    refused(lambda: schedule(text).reorder("k", "i", "r"), "two writes of one element would change their order")


def test_reorder_refusals():
    refused(lambda: schedule(TRIANGLE).reorder("j", "i"), "range of `j` depends on `i`", "at i=0")
    sch = schedule(TWO)
    refused(lambda: sch.reorder("x", "i"), "not in one nest")
    text = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("first"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.float32(0)
        for j in range(8):
            with T.block("second"):
                vi, vj = T.axis.remap("SR", [i, j])
                B[vi] = B[vi] + A[vi, vj]
"""
    refused(lambda: schedule(text).reorder("j", "i"), "perfectly nested", "block `first`")


# ---------------------------------------------------------------- how a loop runs


def test_marks():
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops("C")
    sch.parallel(i)
    sch.unroll(k)
    sch.reorder(k, j)
    sch.vectorize(j)
    text = sch.script()
    assert "T.parallel(32)" in text and "T.vectorized(32)" in text and "T.unroll(32)" in text
    same(sch, sch)


def test_vectorize_after_a_decomposed_form_is_fine():
    text = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("first"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.float32(0)
    for j, i in T.grid(8, 8):
        with T.block("second"):
            vi, vj = T.axis.remap("SR", [i, j])
            B[vi] = B[vi] + A[vi, vj]
"""
    sch = schedule(text)
    sch.vectorize("first.i")
    sch.vectorize("second.i")
    same(sch, sch)


@pytest.mark.parametrize("name", ["parallel", "vectorize"])
def test_a_reduction_is_not_parallel(name):
    sch = schedule(MATMUL)
    refused(lambda: getattr(sch, name)("k"), f'{name}("k")', "same element", "k=0 and k=1 both write C[0, 0]", "(i, j)")
    getattr(sch, name)("k", unsafe=True)
    assert "unsafe=True" in sch.trace.as_python()


def test_parallel_refuses_a_carried_dependence():
    refused(lambda: schedule(STENCIL).parallel("i"), "A[")
    text = DOUBLE.format(n=8).replace("B[vi] = A", "B[vi // 2] = A")
    refused(lambda: schedule(text).parallel("i"), "B[")


def test_parallel_over_two_blocks():
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + T.float32(1)
"""
    sch = schedule(text)
    sch.parallel("i")
    same(sch, sch)
    refused(lambda: schedule(text.replace("C[vi] = B[vi]", "C[vi] = B[7 - vi]")).parallel("i"), "B[")


def test_vectorize_needs_a_constant():
    refused(lambda: schedule(SYMBOLIC).vectorize("i"), "constant number of lanes")


def test_bind():
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    assert 'thread="blockIdx.x"' in sch.script()
    refused(lambda: sch.bind(k, "threadIdx.x"), "already bound to loop `j` on the same path")
    refused(lambda: sch.bind(k, "blockIdx.y"), "same element")
    refused(lambda: sch.bind(k, "lane"), "not a thread axis", "threadIdx.x")
    sch.bind(i, "blockIdx.y")  # a bound loop is bound to another axis
    sch.bind(k, "threadIdx.y")  # a reduction across threads


def test_bind_limits():
    sch = schedule(DOUBLE.format(n=4096), target="cuda")
    refused(lambda: sch.bind("i", "threadIdx.x"), "threadIdx product 4096 > 1024", "split loop i by at most 1024")
    text = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 16), "float32")):
    for i in range(4):
        for j in range(8):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.float32(0)
        for k in range(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, k])
                B[vi, vj] = T.float32(0)
"""
    sch = schedule(text)
    sch.bind("j", "threadIdx.x")
    two_kernels = sch.copy()
    two_kernels.bind("k", "threadIdx.x")  # the serial loop around is the host's
    refused(
        lambda: two_kernels.bind("i", "blockIdx.x"),
        "threadIdx.x already has extent",
        "loop `j` of block A",
        "in this kernel",
    )
    sch.bind("i", "blockIdx.x")
    refused(
        lambda: sch.bind("k", "threadIdx.x"),
        "threadIdx.x already has extent 8 (loop `j` of block A) in this kernel; loop `k` of block B has 16",
    )


# ---------------------------------------------------------------- unit loops, partition, merge, notes


def test_add_unit_loop():
    sch = schedule(DOUBLE.format(n=8))
    u = sch.add_unit_loop("B")
    assert u.name == "u" and [loop.name for loop in sch.get_loops("B")] == ["i", "u"]
    sch.add_unit_loop("i")
    assert [loop.name for loop in sch.get_loops("B")] == ["u_1", "i", "u"]
    same(sch, sch)


@pytest.mark.parametrize("factors, extents", [([2, 64], [2, 64, 62]), ([None, 8], [120, 8]), ([128], [128])])
def test_loop_partition(factors, extents):
    sch = schedule(DOUBLE.format(n=128))
    loops = sch.loop_partition("i", factors)
    assert [int(sch.get(loop).extent) for loop in loops] == extents
    same(sch, sch)
    if len(loops) > 1:
        sch.split(loops[1], [None, 16])
        same(sch, sch)


def test_merge():
    sch = schedule(TWO)
    loop = sch.merge("j", "y")
    assert [b.name for b in sch.get_child_blocks(loop)] == ["B", "C"]
    same(sch, sch)


def test_merge_refuses_a_reversed_dependence():
    text = TWO.replace("B[vi, vj] + T", "B[15 - vi, vj] + T")
    refused(lambda: schedule(text).merge("j", "y"), "B[")
    refused(
        lambda: schedule(TWO.replace("x, y in T.grid(16, 16)", "x, y in T.grid(16, 8)")).merge("j", "y"),
        "16 iterations",
    )


def test_fuse_of_marked_loops():
    sch = schedule(DOUBLE.format(n=8))
    sch.annotate("i", "pragma", "x")
    alone = sch.fuse("i")
    assert sch.get(alone).annotations == {"pragma": "x"}
    same(sch.history[0].mod, sch)
    sch = schedule(TWO)
    for loop in sch.get_loops(sch.get_child_blocks("root")[0]):
        sch.parallel(loop)
    assert sch.get(sch.fuse(*sch.get_loops(sch.get_child_blocks("root")[0]))).kind == "parallel"
    same(sch.history[0].mod, sch)


def test_annotate():
    sch = schedule(DOUBLE.format(n=8))
    sch.annotate("B", "note", {"a": [1, 2]})
    sch.annotate("i", "pragma", "x")
    sch.annotate("i", "pragma", "y")
    assert sch.get(sch.get_loops("B")[0]).annotations == {"pragma": "y"}
    refused(lambda: sch.split("i", [2, None]), "annotations (pragma)")
    same(sch, sch)
    sch.unannotate("i", "pragma")
    refused(lambda: sch.unannotate("i", "pragma"), "has no annotation pragma")
    sch.split("i", [2, None])
    same(sch, sch)


def test_names_stay_bounded_and_readable() -> None:
    """Steps that name loops after loops, one after the other, as a tuner's walk takes them."""
    program = parse("""
@T.prim_func
def main(A: T.Buffer((64, 64), "int32")):
    for i, j in T.grid(64, 64):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 1
""")
    sch = tir.Schedule(program)
    for number in range(40):
        loops = sch.get_loops("b")
        if number % 3 == 2:
            sch.fuse(*loops)
        else:
            sch.split(loops[0], [None, 2])
        if len(loops) > 6:
            sch.fuse(*sch.get_loops("b"))
        names = [loop.name for loop in sch.get_loops("b")]
        assert len(set(names)) == len(names)
        assert all(len(name) <= 56 and name.isidentifier() and name[0] in "ij" for name in names)
    tir.assert_structural_equal(sch.trace.replay(program).mod, sch.mod)


def test_loops_above_a_buffer_of_each_instance() -> None:
    """What a block allocates is new for each of its instances, and carries nothing from one to the next."""
    program = parse("""
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), C: T.Buffer((4, 6), "float32")):
    for i, j in T.grid(4, 6):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            S = T.alloc_buffer((1, 1), "float32")
            with T.block("S"):
                S[0, 0] = A[vi, vj] * 2.0
            with T.block("C"):
                C[vi, vj] = S[0, 0] + 1.0
""")
    sch = tir.Schedule(program)
    sch.reorder("j", "i")
    a = np.random.default_rng(0).random((4, 6), "float32")
    c = np.zeros((4, 6), "float32")
    tir.build(sch.mod)["main"](a, c)
    np.testing.assert_allclose(c, a * 2 + 1)


@pytest.mark.parametrize("factors", [[None, 1], [1, 1], [1, None], [None, 2]])
def test_split_of_a_loop_that_may_be_empty(factors):
    """Its extent was taken for what it is where the loop is entered."""
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
    for i in range(4):
        for j in range(T.max(T.min(i + 1, 1) - i, 0)):
            with T.block("B"):
                vi = T.axis.spatial(1, i + j)
                B[vi] = A[vi] + 1
""")
    original = sch.mod
    sch.split("j", factors)
    same(original, sch)


NARROW = """
@T.prim_func
def main(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    for i in range(T.int8(127)):
        with T.block("B"):
            vi = T.axis.spatial(T.int8(127), i)
            B[vi] = A[vi] + 1
"""


def test_the_iterations_of_split_loops_fit_their_type():
    sch = schedule(NARROW)
    refused(lambda: sch.split("i", [None, 4]), "128 iterations, which do not fit int8")
    sch.split("i", [None, 4], tail="cut")
    same(sch, sch)
    sch = schedule(NARROW.replace("127", "120"))
    sch.split("i", [None, 9])  # into 14, though 120 + 8 do not fit
    same(sch, sch)
