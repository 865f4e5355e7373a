"""Products summed over an axis, as users write them: packed, tiled for registers, and right at every size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tir
from tir import te
from tir.annotations import CONSTANT
from tir.expr import constant
from tir.interp import run
from tir.library.conv import Layer, conv2d_nchw, conv2d_nhwc
from tir.script import parse
from tir.testing import assert_same_result
from tir.tune.contracted import Contraction
from tir.tune.nest import Nest
from tir.tune.rules.contraction import Tiling
from tir.tune.rules.flatten import flatten

pytestmark = pytest.mark.usefixtures("rules_alone")

# vectors of two numbers and caches of a few lines: small products have panels, groups of them, and tails
SMALL = "llvm -vector_width=64 -num-cores={cores} -l1_bytes=256 -l2_bytes=2048"


def product(a: tuple[int, ...], b: tuple[int, ...], spec: str, relu: bool = False) -> tir.PrimFunc:
    """The einsum ``spec``, such as "ik,kj->ij", by tensor expressions."""
    (left, right), out = spec.partition("->")[0].split(","), spec.partition("->")[2]
    sizes = {**dict(zip(left, a)), **dict(zip(right, b))}
    A, B = te.placeholder(a, name="A"), te.placeholder(b, name="B")
    terms = {x: te.reduce_axis((0, sizes[x]), x) for x in sizes if x not in out}

    def value(*point: tir.Var) -> tir.Expr:
        at = {**dict(zip(out, point)), **{x: t.var for x, t in terms.items()}}
        return te.sum(A[tuple(at[x] for x in left)] * B[tuple(at[x] for x in right)], axis=list(terms.values()))

    C = te.compute(tuple(sizes[x] for x in out), value, name="C")
    if not relu:
        return te.create_prim_func([A, B, C])
    bias = te.placeholder(C.shape[-1:], name="bias")
    D = te.compute(C.shape, lambda *p: tir.max(C[p] + bias[p[-1]], 0.0), name="D")
    return te.create_prim_func([A, B, bias, D])


def kinds(sch: tir.Schedule, block: str) -> list[str]:
    return [sch.get(loop).kind for loop in sch.get_loops(block)]


PRODUCTS = {
    "plain": ((60, 12), (12, 32), "ik,kj->ij"),
    "odd": ((61, 7), (7, 27), "ik,kj->ij"),
    "transposed left": ((12, 61), (12, 33), "ki,kj->ij"),
    "transposed right": ((61, 12), (33, 12), "ik,jk->ij"),
    "both transposed": ((12, 61), (33, 12), "ki,jk->ij"),
    "thin": ((3, 20), (20, 33), "ik,kj->ij"),
    "batched": ((3, 51, 6), (3, 6, 9), "bik,bkj->bij"),
    "five axes": ((7, 8, 6), (6, 5, 9), "abe,ecd->abcd"),
    "two sums": ((50, 4, 3), (3, 4, 9), "ikl,lkj->ij"),
    "one gate": ((50, 6), (1, 6, 9), "ik,gkj->igj"),
}


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_right(name: str, cores: int):
    func = product(*PRODUCTS[name])
    sch = tir.tune.default(func, SMALL.format(cores=cores))
    assert any("local" in line for line in sch.mod.script().splitlines()), "no tile in registers"
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    ("sizes", "dtype", "rows"),
    [((3, 20, 13, 13), "float32", 16), ((1, 50, 48, 32), "float32", 16), ((2, 50, 20, 17), "float64", 8)],
    ids=["one part of a tile", "whole tiles", "tiles and a rest"],
)
def test_panels_along_the_terms_are_turned_in_registers(sizes: tuple[int, ...], dtype: str, rows: int, cores: int):
    batch, m, n, terms = sizes
    a, b = te.placeholder((batch, m, terms), dtype, "A"), te.placeholder((batch, n, terms), dtype, "B")
    k = te.reduce_axis((0, terms), "k")
    c = te.compute((batch, m, n), lambda x, i, j: te.sum(a[x, i, k] * b[x, j, k], axis=k), name="C")
    func = te.create_prim_func([a, b, c])
    sch = tir.tune.default(func, f"llvm -vector_width=512 -num-cores={cores}")
    assert f"row{rows - 1}" in sch.mod.script(), "no tile is turned"
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


@pytest.mark.parametrize(
    "left, right, axes",
    [((64, 13, 3), (64, 3, 33), "bik,bkj->bij"), ((64, 13, 2), (64, 33, 2), "bik,bjk->bij")],
    ids=["three", "pairs"],
)
def test_sums_of_few_terms_have_no_tile(left: tuple[int, ...], right: tuple[int, ...], axes: str):
    func = product(left, right, axes)
    assert Contraction.of(Nest.of(tir.Schedule(func), "C")).is_of_few_terms
    assert_same_result(func, tir.tune.default(func, "llvm -vector_width=512 -num-cores=1").mod)


@pytest.mark.parametrize("name", [*PRODUCTS, "one row", "few rows along the terms"])
def test_panels_of_constants_are_made_once(name: str):
    """On one core and on two in turns: products whose panels are made at each call have both."""
    more = {"one row": ((1, 20), (20, 33), "ik,kj->ij"), "few rows along the terms": ((2, 60), (33, 60), "ik,jk->ij")}
    cases = {**PRODUCTS, **more}
    func, cores = product(*cases[name]).with_attr("tir.constant", ["B"]), 1 + list(cases).index(name) % 2
    sch = tir.tune.default(func, SMALL.format(cores=cores))
    assert_same_result(func, sch.mod)
    program, maker = sch.fold_constants()
    assert [b.name for b in maker.buffers()][0] == "B" and "B" not in [b.name for b in program.buffers()]
    assert not [b for b in program.root.alloc_buffers if b.scope == "global" and b.name.startswith("B")]
    arrays = {b.name: np.zeros([int(n) for n in b.shape], "float32") for b in (*maker.buffers(), *program.buffers())}
    rng = np.random.default_rng(0)
    for each in ("A", "B"):
        arrays[each][...] = rng.standard_normal(arrays[each].shape)
    for part in (maker, program):
        run(part, *(arrays[b.name] for b in part.buffers()))
    expected = np.einsum(cases[name][2], arrays["A"], arrays["B"], dtype="float64")
    np.testing.assert_allclose(arrays["C"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("constant", "cache", "ahead"),
    [
        pytest.param(["B"], 4096, True, id="beyond the cache"),
        pytest.param(["B"], 8192, False, id="stays in the cache"),
        pytest.param([], 4096, False, id="packed at each call"),
    ],
)
def test_panels_of_constants_beyond_the_cache_are_requested_ahead(constant: list[str], cache: int, ahead: bool):
    func = product((12, 64), (64, 32), "ik,kj->ij").with_attr("tir.constant", constant)
    sch = tir.tune.default(func, f"llvm -vector_width=128 -num-cores=1 -l2_bytes={cache}")
    text = sch.mod.script()  # panels of 32 bytes a row: 128 rows are 4,096 bytes
    assert ("T.prefetch(T.address_of(B_global[v0 + v1, v2 + 128, 0])" in text) is ahead == ("prefetch" in text)
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


@pytest.mark.parametrize("terms, most", [(1024, 8), (2048, 8), (512, 16), (1000, 64), (1008, 64)])
def test_rows_of_a_tile_share_no_more_sets_of_the_cache_than_there_are_ways(terms: int, most: int):
    nest = Nest.of(tir.Schedule(product((64, terms), (terms, 64), "ik,kj->ij")), "C")
    found = nest and Contraction.of(nest)
    assert found and [n for n in range(1, 65) if not found.has_conflicts(n, 1)] == list(range(1, most + 1))


def test_the_model_leaves_out_what_is_folded():
    func = product((64, 64), (64, 64), "ik,kj->ij").with_attr("tir.constant", ["B"])
    env = tir.tune.Env.of(SMALL.format(cores=1))
    sch = tir.tune.default(func, env.target)
    assert tir.tune.predict(sch, env).terms == tir.tune.predict(sch.fold_constants().program, env).terms
    assert tir.tune.predict(sch, env).seconds < tir.tune.predict(sch.func.without_attr("tir.constant"), env).seconds


def computed_factor(kind: str) -> tir.PrimFunc:
    """A product one factor of which is computed: rows that are scaled, or rows of zeros before others."""
    A, S, B = te.placeholder((33, 12), name="A"), te.placeholder((33,), name="S"), te.placeholder((12, 9), name="B")
    k = te.reduce_axis((0, 12), "k")
    if kind == "scaled":
        value = lambda i, j: te.sum(A[i, k] * S[i] * B[k, j], axis=k)
    else:
        zero = te.const(0.0, "float32")
        value = lambda i, j: te.sum(te.if_then_else(i > 0, A[i - 1, k], zero) * B[k, j], axis=k)
    return te.create_prim_func([A, S, B, te.compute((33, 9), value, name="C")])


@pytest.mark.parametrize("kind", ["scaled", "padded"])
def test_a_factor_may_be_computed(kind: str):
    func = computed_factor(kind)
    sch = tir.tune.default(func, SMALL.format(cores=1))
    assert 'scope="local"' in sch.mod.script(), "no tile in registers"
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


@pytest.mark.parametrize("sizes", [((60, 12), (12, 32)), ((61, 7), (7, 27))])
def test_what_follows_is_computed_for_a_tile(sizes: tuple[tuple[int, ...], tuple[int, ...]]):
    func = product(*sizes, "ik,kj->ij", relu=True)
    sch = tir.tune.default(func, SMALL.format(cores=1))
    assert len(sch.get_loops("D")) > 3, "it is in a loop of its own"
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


@pytest.mark.parametrize("layout", ["channels last", "channels first"])
def test_convolutions_are_right(layout: str):
    last = layout == "channels last"
    X = te.placeholder((1, 9, 10, 3) if last else (1, 3, 9, 10), name="X")
    W = te.placeholder((3, 3, 3, 13) if last else (13, 3, 3, 3), name="W")
    c, p, q = (te.reduce_axis((0, 3), x) for x in "cpq")
    if last:
        Y = te.compute(
            (1, 7, 8, 13), lambda n, y, x, o: te.sum(X[n, y + p, x + q, c] * W[p, q, c, o], axis=[p, q, c]), name="Y"
        )
    else:
        Y = te.compute(
            (1, 13, 7, 8), lambda n, o, y, x: te.sum(X[n, c, y + p, x + q] * W[o, c, p, q], axis=[c, p, q]), name="Y"
        )
    func = te.create_prim_func([X, W, Y])
    sch = tir.tune.default(func, SMALL.format(cores=2))
    assert kinds(sch, "Y_update")[-1] == "vectorized"
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


def test_the_operands_of_a_product_are_told_by_their_axes():
    sch = tir.Schedule(product((3, 51, 6), (3, 6, 9), "bik,bkj->bij"))
    nest = Nest.of(sch, "C")
    assert nest is not None
    found = Contraction.of(nest)
    assert found is not None and found.panel.buffer.name == "B"
    assert [[a.extent for a in axes] for axes in (found.batch, found.rows, found.terms)] == [[3], [51], [6]]


def test_the_panels_of_a_large_product_are_packed_in_groups():
    sch = tir.tune.default(
        product((512, 512), (512, 512), "ik,kj->ij"), "llvm -num-cores=1 -l2_bytes=1048576 -vector_width=512"
    )
    packed = next(b for b in sch.func.root.alloc_buffers if b.name == "B_global")
    assert [s.value for s in packed.shape] == [8, 512, 64]
    assert kinds(sch, "C_update")[-4:] == ["unrolled", "unrolled", "unrolled", "vectorized"]


def test_a_left_operand_that_lies_across_is_copied_in_strips():
    func = product((64, 90), (64, 48), "ki,kj->ij")
    sch = tir.tune.default(func, SMALL.format(cores=1))
    strip = next(b for b in sch.get_child_blocks("root") if b.name == "A_global")
    assert len(sch.get_loops(strip)) > 2, "it is copied whole"
    assert_same_result(func, sch.mod, engines=("llvm",))


def same(func: tir.PrimFunc, cores: int = 1) -> tir.Schedule:
    """The default schedule, which computes what the function does."""
    sch = tir.tune.default(func, SMALL.format(cores=cores))
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))
    return sch


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    "sizes", [((3, 20), (20, 67)), ((2, 33), (33, 70)), ((45, 21), (21, 50)), ((5, 331), (331, 51))]
)
def test_few_rows_read_a_large_matrix_in_order(sizes: tuple[tuple[int, ...], tuple[int, ...]], cores: int):
    sch = same(product(*sizes, "ik,kj->ij"), cores)
    order = [i.var.name for i in sch.get(sch.get_block("C_update")).iter_vars]
    assert order and not any(b.name.startswith("C_") for b in sch.func.root.alloc_buffers), "results are not copied"


def test_a_vector_by_a_large_matrix_is_read_in_order():
    sch = same(product((33,), (33, 67), "k,kj->j"), 2)
    assert kinds(sch, "C_update")[-2:] == ["unrolled", "vectorized"]


@pytest.mark.parametrize("layout", ["nbchw", "five axes", "with what follows"])
def test_short_rows_become_one_axis(layout: str):
    if layout == "five axes":
        sch = same(product((4, 5, 6), (6, 7, 3), "abe,ecd->abcd"))
        assert len(sch.get(sch.get_block("C_update")).iter_vars) == 4
        return
    X, W = te.placeholder((2, 3, 7, 7), name="X"), te.placeholder((16, 3, 3, 3), name="W")
    c, p, q = (te.reduce_axis((0, 3), x) for x in "cpq")
    Y = te.compute(
        (2, 16, 5, 5), lambda n, o, y, x: te.sum(X[n, c, y + p, x + q] * W[o, c, p, q], axis=[c, p, q]), name="Y"
    )
    if layout == "with what follows":
        Y = te.compute(Y.shape, lambda *at: tir.max(Y[at], 0.0), name="Z")
    sch = same(te.create_prim_func([X, W, Y]), 2)
    assert [i.dom.extent.value for i in sch.get(sch.get_block("Y_update")).iter_vars][2] >= 25


@pytest.mark.parametrize(
    ("outputs", "height", "width", "in_place"),
    [(4, 9, 19, True), (64, 9, 19, False), (64, 4, 36, True), (64, 5, 41, False), (64, 32, 32, False)],
)
def test_single_pixels_are_one_row_read_in_place_by_few_channels_or_in_whole_lines(
    outputs: int, height: int, width: int, in_place: bool
):
    x, w, c = (
        te.placeholder((8, height, width), name="X"),
        te.placeholder((outputs, 8), name="W"),
        te.reduce_axis((0, 8), "c"),
    )
    y = te.compute((outputs, height, width), lambda o, i, j: te.sum(x[c, i, j] * w[o, c], axis=c), name="Y")
    func = te.create_prim_func([x, w, y])
    (sch,) = flatten(tir.Schedule(func), "Y", tir.tune.Env.of("llvm -mcpu=x86-64-v4 -num-cores=1"))
    assert len(sch.get(sch.get_block("Y")).iter_vars) == 3
    assert (len(sch.get_child_blocks("root")) == 2) == in_place
    assert_same_result(func, sch.mod, engines=["interpreter"], rtol=1e-4, atol=1e-5)
    same(func, 1)


def test_pixels_are_packed_by_all_threads():
    for layer in (Layer(1, 14, 8, 256, 3), Layer(1, 14, 4, 96, 3)):
        func = conv2d_nchw(layer)
        sch = tir.tune.default(func, "llvm -mcpu=x86-64-v4 -num-cores=2")
        nests = [[sch.get(loop) for loop in sch.get_loops(block)] for block in ("padded_reindex_pad", "C_update")]
        assert [next(loop.kind for loop in nest if loop.extent.value > 1) for nest in nests] == ["parallel"] * 2
        assert [loop.extent.value for loop in nests[0][1:]] == [3, 3, 3, 16]
    assert_same_result(func, sch.mod, engines=["interpreter"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stride, in_runs", [(1, True), (2, False)])
def test_pixels_are_padded_as_they_are_packed_where_rows_follow_each_other(stride: int, in_runs: bool):
    func = conv2d_nchw(Layer(1, 7, 4, 32, 3, stride))
    sch = tir.tune.default(func, "llvm -mcpu=x86-64-v3 -num-cores=1")
    assert ("pad" not in [b.name for b in sch.get_child_blocks("root")]) is in_runs
    assert_same_result(func, sch.mod, engines=["interpreter"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("size", "channels", "stride", "axes"), [(20, 2, 1, 7), (28, 64, 2, 6), (28, 32, 2, 7)])
def test_pixels_that_few_channels_use_are_not_gathered(size: int, channels: int, stride: int, axes: int):
    func = conv2d_nchw(Layer(1, size, 4, channels, 3, stride))
    sch = tir.tune.default(func, "llvm -mcpu=x86-64-v4 -num-cores=1")
    assert len(sch.get(sch.get_block("C_update")).iter_vars) == axes


@pytest.mark.parametrize(("each", "lanes"), [(24, 8), (20, 4), (12, 12), (32, 16)])
def test_panels_end_where_a_group_of_a_convolution_ends(each: int, lanes: int):
    x, w = te.placeholder((1, 5, 6, 2 * each), name="x"), te.placeholder((1, 2, each, 2 * each), name="w")
    func = te.create_prim_func([x, w, tir.ops.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO", groups=2)])
    sch = tir.tune.default(func, "llvm -num-cores=1 -vector_width=512")
    assert kinds(sch, "conv2d_update")[-1] == "vectorized"
    assert sch.get(sch.get_loops("conv2d_update")[-1]).extent == lanes
    same(func)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_the_groups_of_a_convolution_are_an_axis_of_products(layout: str):
    shapes = {"NCHW": ((1, 6, 5, 9), (8, 3, 2, 3)), "NHWC": ((1, 5, 9, 6), (2, 3, 3, 8))}[layout]
    x, w = (te.placeholder(s, name=n) for s, n in zip(shapes, "xw"))
    func = te.create_prim_func([x, w, tir.ops.nn.conv2d(x, w, data_layout=layout, groups=2)])
    assert 'scope="local"' in same(func).mod.script(), "no tile in registers"


def test_a_product_in_each_step_of_a_scan_is_tiled_and_its_weights_are_packed_before():
    x, w, r = te.placeholder((3, 9, 5), name="x"), te.placeholder((4, 5), name="w"), te.placeholder((4, 4), name="r")
    sch = same(te.create_prim_func([x, w, r, tir.ops.nn.rnn(x, w, r)]))
    assert [loop.name for loop in sch.get_loops("r_global")][0] != "t"
    assert "vectorized" in kinds(sch, "rnn_recurrent_update") and "vectorized" in kinds(sch, "rnn_step")


def test_a_copy_that_lays_operands_out_for_products_stays():
    x, w = te.placeholder((1, 12, 8), name="x"), te.placeholder((8, 8), name="w")
    func = te.create_prim_func([x, w, tir.ops.nn.multi_head_attention(x, x, x, w, w, w, w, num_heads=2)])
    sch = tir.tune.default(func, "llvm -vector_width=64 -num-cores=1 -l2_bytes=1024")
    assert sch.get_loops("attention_products_update")[2] == sch.get_loops("attention_exp")[2], "no strip of rows"


def test_one_row_reads_a_matrix_in_place_where_the_row_is_larger_than_the_cache():
    sch = same(product((1, 33), (33, 70), "ik,kj->ij"))
    assert [b.scope for b in sch.func.root.alloc_buffers] == ["local"], "the matrix, or the result, is copied"


@pytest.mark.parametrize("read", ["one index", "digits"])
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_weights_in_panels_take_a_bias(width: int, read: str):
    """What reads the product by one index, or by the digits of the panels, is no hindrance to a rule."""
    x, w = te.placeholder((50, 12), name="x"), te.placeholder((3, 12, width), name="w")
    bias, k = te.placeholder((3 * width,), name="bias"), te.reduce_axis((0, 12), "k")
    if read == "one index":
        y = te.compute((50, 3 * width), lambda i, o: te.sum(x[i, k] * w[o // width, k, o % width], axis=k), name="y")
        z = te.compute(y.shape, lambda i, o: y[i, o] + bias[o], name="z")
    else:
        y = te.compute((50, 3, width), lambda i, p, o: te.sum(x[i, k] * w[p, k, o], axis=k), name="y")
        z = te.compute((50, 3 * width), lambda i, o: y[i, o // width, o % width] + bias[o], name="z")
    func = te.create_prim_func([x, w, bias, z])
    sch = tir.tune.default(func, "llvm -num-cores=1")
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


def long_sum(name: str) -> tir.PrimFunc:
    """A contraction of which a panel is larger than half of the L2 cache of ``TINY``."""
    if name == "convolution":
        X, W = te.placeholder((1, 9, 10, 8), name="A"), te.placeholder((3, 3, 8, 13), name="B")
        p, q, c = (te.reduce_axis((0, e), x) for e, x in ((3, "p"), (3, "q"), (8, "c")))
        value = lambda n, y, x, o: te.sum(X[n, y + p, x + q, c] * W[p, q, c, o], axis=[p, q, c])
        return te.create_prim_func([X, W, te.compute((1, 7, 8, 13), value, name="C")])
    if name == "rows of symbolic number":
        A, B = te.placeholder((te.var("n"), 48), name="A"), te.placeholder((48, 18), name="B")
        return te.create_prim_func([A, B, tir.ops.matmul(A, B)])
    return product(*LONG[name], relu=name == "with what follows")


TINY = SMALL.replace("2048", "512")
LONG = {
    "plain": ((50, 48), (48, 16), "ik,kj->ij"),
    "odd": ((51, 50), (50, 13), "ik,kj->ij"),
    "with what follows": ((50, 48), (48, 13), "ik,kj->ij"),
    "transposed left": ((48, 51), (48, 17), "ki,kj->ij"),
    "transposed right": ((51, 48), (17, 48), "ik,jk->ij"),
    "batched": ((3, 51, 45), (3, 45, 9), "bik,bkj->bij"),
    "two sums": ((50, 4, 15), (15, 4, 9), "ikl,lkj->ij"),
}


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("name", [*LONG, "convolution", "rows of symbolic number"])
def test_panels_beyond_the_cache_are_summed_in_chunks(name: str, cores: int):
    func = long_sum(name)
    sch = tir.tune.default(func, TINY.format(cores=cores))
    assert "_rf" in sch.mod.script(), "no partial sums"
    if name == "rows of symbolic number":
        a, b = (np.random.default_rng(0).standard_normal(s).astype("float32") for s in ((61, 48), (48, 18)))
        c = np.zeros((61, 18), "float32")
        tir.build(sch.mod)(a, b, c)
        np.testing.assert_allclose(c, a.astype("float64") @ b, rtol=1e-4, atol=1e-4)
    else:
        assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


@pytest.mark.parametrize(
    ("a", "b", "chunks"),
    [
        ((49, 192), (192, 32), 6),
        ((48, 192), (192, 32), 1),  # few rows
        ((49, 32), (32, 32), 1),  # a panel of half of the cache
        ((49, 36), (36, 32), 2),
        ((49, 37), (37, 32), 1),  # no equal chunks
        ((49, 115), (115, 32), 5),  # four would fit
        ((49, 106), (106, 32), 1),  # 53 are far more than are needed
    ],
)
def test_terms_are_in_the_fewest_equal_chunks_of_which_a_panel_fits(
    a: tuple[int, ...], b: tuple[int, ...], chunks: int
):
    sch = tir.Schedule(product(a, b, "ik,kj->ij"))
    nest = Nest.of(sch, "C")
    found = nest and Contraction.of(nest)
    tiling = found and Tiling.of(found, 4, 2, tir.tune.Env.of(SMALL.format(cores=1)))
    assert tiling
    whole = tiling.forks(sch)[-1]
    assert isinstance(whole, Callable) and "C_rf" not in whole().mod.script()
    first = tiling.forks(sch)[0]
    assert isinstance(first, Callable)
    sums = [x for x in first().func.root.alloc_buffers if x.name == "C_rf"]
    assert [int(x.shape[0]) for x in sums] == [chunks] * (chunks > 1)


@pytest.mark.parametrize(
    "sizes",
    [((101, 7), (7, 40)), ((7, 15, 6), (6, 40)), ((103, 6), (6, 6)), ((40, 6), (6, 20)), ((3, 35, 6), (3, 6, 20))],
    ids=["rows of threads", "rows of two axes", "one panel", "panels of threads", "batches of threads"],
)
@pytest.mark.parametrize("is_constant", [False, True])
def test_products_that_threads_share_are_right(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[tuple[int, ...], ...], is_constant: bool
):
    monkeypatch.setattr("tir.tune.space.PARALLEL", 1)
    spec = {(2, 2): "ik,kj->ij", (3, 2): "abk,kj->abj", (3, 3): "bik,bkj->bij"}[len(sizes[0]), len(sizes[1])]
    func = product(*sizes, spec, relu=True)
    func = func.with_attr(CONSTANT, ("B",)) if is_constant else func
    sch = tir.tune.default(func, SMALL.format(cores=2))
    assert "parallel" in kinds(sch, "C_update")
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


@pytest.mark.parametrize(("rows", "columns"), [(49, 160), (196, 144), (112, 96), (49, 320), (128, 3072)])
def test_threads_have_equal_shares_of_a_product(rows: int, columns: int):
    func = product((rows, 640), (640, columns), "ik,kj->ij").with_attr(CONSTANT, ("B",))
    sch = tir.tune.default(func, "llvm -num-cores=2 -l2_bytes=1048576 -vector_width=512")
    (shared,) = (sch.get(loop) for loop in sch.get_loops("C_update") if sch.get(loop).kind == "parallel")
    assert constant(shared.extent) in (2, 4, 6, 8, 10)


def test_many_rows_are_those_of_a_thread():
    """What comes before and after is made by rows too, and a core reads slowly what another has written."""
    func = product((128, 64), (64, 3072), "ik,kj->ij", relu=True).with_attr(CONSTANT, ("B",))
    sch = tir.tune.default(func, "llvm -num-cores=2 -l2_bytes=1048576 -vector_width=512")
    (shared,) = (loop for loop in sch.get_loops("D") if sch.get(loop).kind == "parallel")
    store = sch.get("D")
    assert sch.get_loops("D").index(shared) == 0 and constant(sch.get(shared).extent) == 2
    assert [b.name for b in sch.get_child_blocks(shared)][-1] == store.name


def test_a_matrix_that_two_products_read_is_packed_for_one_of_them():
    """Both sides of a square are multiplied by the same matrix, as in cosine transforms of blocks."""
    x, d = te.placeholder((6, 7, 8, 8), name="x"), te.placeholder((8, 8), name="d")
    k, m = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 8), "m")
    u = te.compute(x.shape, lambda a, b, i, j: te.sum(d[i, k] * x[a, b, k, j], axis=k), name="u")
    func = te.create_prim_func(
        [x, d, te.compute(x.shape, lambda a, b, i, j: te.sum(u[a, b, i, m] * d[j, m], axis=m), name="y")]
    )
    sch = tir.tune.default(func, "llvm -num-cores=1 -vector_width=512")
    assert "vectorized" in kinds(sch, "u") and "vectorized" in kinds(sch, "y")
    assert_same_result(func, sch.mod, engines=("llvm",), rtol=1e-4)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("size", "stride", "edge"), [(9, 1, 3), (9, 2, 3), (10, 2, 5), (13, 3, 5)])
def test_images_are_padded_by_rows_of_which_the_last_are_kept(size: int, stride: int, edge: int, batch: int):
    x, w = te.placeholder((batch, size, size, 4), name="x"), te.placeholder((edge, edge, 4, 16), name="w")
    y = tir.ops.nn.conv2d(x, w, stride, edge // 2, data_layout="NHWC")
    func = te.create_prim_func([x, w, tir.ops.nn.relu(y)])
    found = tir.tune.default(func, "llvm -vector_width=64 -num-cores=1")
    copy = found.get("pad_temp").writes[0].buffer
    assert constant(copy.shape[1]) <= edge + stride
    assert_same_result(found.func, func)


def test_padding_by_nothing_is_no_copy():
    found = tir.tune.default(conv2d_nhwc(Layer(1, 6, 4, 8, 1, 2)), SMALL.format(cores=1))
    assert [b.name for b in found.func.buffers()] == ["A", "W", "C"] and "if_then_else" not in found.mod.script()
    assert_same_result(found.func, conv2d_nhwc(Layer(1, 6, 4, 8, 1, 2)))


@pytest.mark.parametrize(("terms", "is_near"), [(8, True), (64, False)])
def test_panels_that_stay_near_are_used_together(terms: int, is_near: bool):
    """A row of the result is stored from end to end."""
    func = product((60, terms), (terms, 8), "ik,kj->ij")
    env = tir.tune.Env.of("llvm -vector_width=64 -num-cores=1 -l1_bytes=256 -l2_bytes=2048")
    nest = Nest.of(tir.Schedule(func), "C")
    found = Contraction.of(nest) if nest else None
    assert found
    tiling = Tiling.of(found, 1, 2, env)
    assert tiling and tiling.is_packed is not is_near and (tiling.together()[0] == tiling.panels == 4) is is_near


@pytest.mark.parametrize(("begins", "vectors"), [("", 2), (", align=64", 4)])
def test_panels_that_begin_anywhere_are_loaded_by_more_rows(begins: str, vectors: int):
    """Each of their vectors is in two lines of the cache where the array does not begin with one."""
    func = product((128, 128), (128, 128), "ik,kj->ij")
    func = tir.script.from_source(
        func.script().replace('B: T.Buffer((128, 128), "float32"', f'B: T.Buffer((128, 128), "float32"{begins}')
    )
    sch = tir.tune.default(func, "llvm -vector_width=512 -num-cores=1 -l1_bytes=49152 -l2_bytes=2097152")
    assert sch.get(sch.get_loops("C_update")[-2]).extent.value == vectors
    if not begins:
        assert_same_result(func, sch.mod, engines=("llvm",))


@pytest.mark.parametrize("init", ["D[vj]", "D[vj] * 2.0 + D[0]", "D[vi]", "B[1, vj]", "A[vi, 0] + B[0, vj]"])
@pytest.mark.filterwarnings("error")
def test_what_sums_begin_with_is_padded_where_it_is_read(init: str):
    """Columns of symbolic number are padded: what the init reads of them is a third copy, beside the panels and the result."""
    program = parse(f"""
@T.prim_func
def main(A: T.Buffer((60, 12), "float32"), b: T.handle, d: T.handle, c: T.handle):
    n = T.int32()
    B, C = T.match_buffer(b, (12, n), "float32"), T.match_buffer(c, (60, n), "float32")
    D = T.match_buffer(d, (n,), "float32")
    for i, j, k in T.grid(60, n, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = {init.replace("[vi]", "[vi % n]")}
            C[vi, vj] += A[vi, vk] * B[vk, vj]
""")
    built = tir.build(tir.tune.default(program, target=SMALL.format(cores=1)))
    for n in (1, 7, 40):
        a, b, d = (np.random.default_rng(n).standard_normal(s).astype("float32") for s in ((60, 12), (12, n), n))
        c, wanted = np.zeros((2, 60, n), "float32")
        run(program, a, b, d, wanted)
        built(a, b, d, c)
        np.testing.assert_allclose(c, wanted, rtol=1e-4, atol=1e-5)
