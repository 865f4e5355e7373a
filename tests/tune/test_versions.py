"""Symbolic sizes: tiles with a remainder, rows of any length, and versions for short sizes that are chosen at entry."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.expr import Add, Call, Or
from tir.function import PrimFunc
from tir.stmt import VECTORIZED, BlockRealize, BufferStore, For, IfThenElse
from tir.tune.default import likeliest
from tir.tune.nest import Nest, assuming, continued, usual
from tir.tune.rules.contraction import contraction
from tir.tune.space import space_of
from tir.tune.versions import ENDS, LONG, NEAR, SHORT, in_versions
from tir.visit import walk

TARGET = "llvm -vector_width=128 -num-cores=1 -l2_bytes=65536"
P = te.placeholder


def product(n: Any, m: Any, k: Any) -> list[te.Tensor]:
    a, b = P((n, k), name="a"), P((k, m), name="b")
    return [a, b, ops.matmul(a, b)]


def batched(n: Any, m: Any) -> list[te.Tensor]:
    a, b = P((n, 64, 67), name="a"), P((n, 67, m), name="b")
    return [a, b, ops.matmul(a, b)]


def transposed_product(n: Any, m: Any) -> list[te.Tensor]:
    a, b = P((n, 40), name="a"), P((m, 40), name="b")
    return [a, b, ops.nn.relu(ops.matmul(a, b, transp_b=True))]


def convolution(n: Any, h: Any) -> list[te.Tensor]:
    x, w = P((n, 3, h, 9), name="x"), P((20, 3, 3, 3), name="w")
    return [x, w, ops.nn.conv2d(x, w, padding=1)]


def convolution_of_images(n: Any, h: Any) -> list[te.Tensor]:
    x, w = P((n, 3, h, h), name="x"), P((20, 3, 3, 3), name="w")
    return [x, w, ops.nn.conv2d(x, w, padding=1)]


def mix_of_channels(h: Any, w: Any) -> list[te.Tensor]:
    x, weights = P((1, 10, h, w), name="x"), P((20, 10, 1, 1), name="w")
    return [x, weights, ops.nn.conv2d(x, weights)]


def softmax(n: Any, m: Any) -> list[te.Tensor]:
    x = P((n, m), name="x")
    return [x, ops.nn.softmax(x)]


def layer_norm(n: Any, m: Any) -> list[te.Tensor]:
    x, gamma, beta = P((n, m), name="x"), P((m,), name="gamma"), P((m,), name="beta")
    return [x, gamma, beta, ops.nn.layer_norm(x, gamma, beta, axis=1)]


def row_sum(n: Any, m: Any) -> list[te.Tensor]:
    x = P((n, m), name="x")
    return [x, ops.sum(x, axis=1)]


def whole_sum(n: Any, m: Any) -> list[te.Tensor]:
    """What reads one element of no axis, its result, and the sum of one."""
    x, y = P((n, m), name="x"), P((), name="y")
    return [x, y, ops.multiply(ops.sum(x), y)]


def column_maximum(n: Any, m: Any) -> list[te.Tensor]:
    x = P((n, m), name="x")
    return [x, ops.max(x, axis=0)]


def transpose(n: Any, m: Any) -> list[te.Tensor]:
    x = P((n, m), name="x")
    return [x, ops.permute_dims(x, (1, 0))]


def channels_last(h: Any, w: Any) -> list[te.Tensor]:
    x = P((2, 20, h, w), name="x")
    return [x, ops.permute_dims(x, (0, 2, 3, 1))]


def width_of_convolution(w: Any) -> list[te.Tensor]:
    x, k = P((1, 16, 9, w), name="x"), P((20, 16, 3, 3), name="k")
    return [x, k, ops.nn.conv2d(x, k, padding=1)]


def plane_mean(h: Any, w: Any) -> list[te.Tensor]:
    x = P((3, 5, h, w), name="x")
    return [x, ops.mean(x, axis=(2, 3))]


def width_mean(w: Any) -> list[te.Tensor]:
    x = P((3, 5, 7, w), name="x")
    return [x, ops.mean(x, axis=(2, 3))]


def chain(n: Any, m: Any) -> list[te.Tensor]:
    x, y = P((n, m), name="x"), P((n, m), name="y")
    return [x, y, ops.add(ops.multiply(x, 0.5), ops.nn.relu(y))]


KERNELS: dict[Callable[..., list[te.Tensor]], int] = {
    product: 3, transposed_product: 2, convolution: 2, softmax: 2, layer_norm: 2, row_sum: 2, whole_sum: 2, column_maximum: 2, transpose: 2, chain: 2,
    channels_last: 2, width_of_convolution: 1, plane_mean: 2, width_mean: 1, convolution_of_images: 2,
}  # fmt: skip


def symbolic(kernel: Callable[..., list[te.Tensor]]) -> PrimFunc:
    return te.create_prim_func(kernel(*(te.var(f"n{n}") for n in range(KERNELS[kernel]))))


def conditions(func: PrimFunc) -> list[str]:
    found = [n for n in walk(func.body) if isinstance(n, IfThenElse)]
    return [str(n.condition) for n in found]


@pytest.mark.parametrize("target", [TARGET, "llvm -num-cores=1"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_every_size_is_right(kernel: Callable[..., list[te.Tensor]], target: str):
    """Short and long ones, at and beside the borders of vectors, tiles and versions, judged by the program as it was written."""
    func = symbolic(kernel)
    run, plain = tir.build(tir.tune.default(func, target).mod, target), tir.build(func)
    rng = np.random.default_rng(0)
    for size in (1, 3, 7, 16, LONG - 1, LONG, LONG + 1, 2 * LONG + 3, 80):
        sizes = [size, *(int(rng.integers(1, 2 * LONG)) for _ in range(KERNELS[kernel] - 1))]
        shapes = [tuple(int(e) for e in t.shape) for t in kernel(*rng.permutation(sizes).tolist())]
        arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
        wanted = arrays[-1].copy()
        plain(*arrays[:-1], wanted)
        run(*arrays)
        np.testing.assert_allclose(arrays[-1], wanted, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    ("kernel", "length"),
    [(channels_last, "n0 * n1"), (width_of_convolution, "n0 * 9"), (width_mean, "n0 * 7")],
    ids=["channels last", "convolution", "mean"],
)
def test_axes_that_follow_each_other_are_one_of_symbolic_length(kernel: Callable[..., list[te.Tensor]], length: str):
    """As of constant length: tiles, panels and rows do not end with each row of an image."""
    text = tir.tune.default(symbolic(kernel), "llvm -vector_width=512 -num-cores=1").mod.script()
    assert f"< {length}" in text


def test_panels_of_pixels_of_any_number_are_several_vectors_wide():
    """Those of n x n pixels too, and which vectors of the last panel there are is asked outside of the sums."""
    target = "llvm -vector_width=512 -num-cores=1"
    mod = tir.tune.default(te.create_prim_func(mix_of_channels(size := te.var("n"), size)), target).mod
    assert "n * n + 31) // 32" in mod.script()
    sums = [n for n in walk(tir.lower(mod, target=target)["main"].body) if isinstance(n, For) and str(n.extent) == "5"]
    assert sums and not any(
        isinstance(n, IfThenElse) and n.condition.dtype.lanes == 1 for loop in sums for n in walk(loop)
    )
    run, rng = tir.build(mod), np.random.default_rng(0)
    for n in (1, 3, 7, 31, 32, 41):
        x, w = rng.standard_normal((1, 10, n, n), np.float32), rng.standard_normal((20, 10, 1, 1), np.float32)
        made = run.new(x, w)
        np.testing.assert_allclose(made, np.einsum("abij,cbde->acij", x, w), rtol=1e-4, atol=1e-4)


def test_what_is_transposed_in_rows_of_any_length_is_requested_ahead():
    """Its rows begin within lines, as most do; and rows that are loaded are turned in registers, however short these are."""
    sch = tir.tune.default(
        symbolic(transpose), "llvm -vector_width=512 -num-cores=1 -l1_bytes=49152 -l3_bytes=67108864"
    )
    last = versions(sch.func)[-1]
    assert "prefetch" in str(last) and "Shuffle" in str(last)
    wide = [v for v in versions(sch.func)[1:] if "Shuffle" not in str(v)]
    assert not wide


def versions(func: PrimFunc) -> list[Any]:
    """The bodies chosen at entry."""
    found, choice = list[Any](), next(n for n in walk(func.body) if isinstance(n, IfThenElse))
    while isinstance(choice, IfThenElse):
        found.append(choice.then_case)
        choice = choice.else_case
    return [*found, choice]


def widths(body: Any) -> list[int]:
    return [int(n.extent) for n in walk(body) if isinstance(n, For) and n.kind == VECTORIZED]


def test_short_rows_have_versions():
    """In which a vector is as wide as a short size, and a row that is shorter is part of one."""
    sch = tir.tune.default(symbolic(row_sum), TARGET.replace("128", "512"))
    asked = [c for c in conditions(sch.func) if c.startswith("n1 ")]
    assert asked == ["n1 == 0", *(f"n1 < {end}" for end in (9, 17, 32, 48, 64, 80, 96, 112, 128, 144))]
    assert not any("n0" in c for c in conditions(sch.func))
    assert [max(widths(v)) for v in versions(sch.func)[1:]] == [8, 8, *[16] * 9]
    names = [b.name for b in sch.get_child_blocks("root")]
    assert len(names) == len(set(names))


def test_a_version_does_not_ask_what_its_sizes_imply():
    """All lanes of the first vector of a row of 32 and more are there: what a row has is set, and needs a place for one row."""
    sch = tir.tune.default(symbolic(layer_norm), "llvm -vector_width=512 -num-cores=1")
    long = versions(sch.func)[-1]
    asked = {str(n.predicate) for n in walk(long) if isinstance(n, BlockRealize)} - {"True"}
    asked |= {str(n.condition) for n in walk(long) if isinstance(n, IfThenElse)}
    assert asked and all("* 16" in condition or "* 32" in condition for condition in asked), asked
    assert "n0]" not in tir.lower(sch.mod).script()


def test_what_lies_end_to_end_needs_no_versions():
    func = symbolic(chain)
    sch = tir.tune.default(func, TARGET)
    assert not conditions(sch.func)
    (loop, *_) = sch.get_loops("add" if "add" in sch.mod.script() else sch.get_child_blocks("root")[-1].name)
    assert "n0 * n1" in str(sch.get(loop).extent) or "n1 * n0" in str(sch.get(loop).extent)


def test_constant_parameters_have_no_versions():
    a, b = P((te.var("n"), 512), name="a"), P((512, 512), name="b")
    func = te.create_prim_func([a, b, ops.matmul(a, b)])
    assert conditions(tir.tune.default(func, TARGET).func)
    constant = func.with_attr("tir.constant", ["b"])
    assert not conditions(tir.tune.default(constant, TARGET).func)


def test_the_last_of_any_number_of_rows_are_summed_in_registers():
    """Not in the result, where a matrix beyond the cache is read some rows at a time."""
    a, b = P((te.var("n"), 128), name="a"), P((128, 80), name="b")
    sch = tir.tune.default(te.create_prim_func([a, b, ops.matmul(a, b)]), "llvm -num-cores=1 -l2_bytes=4096")
    sums = [n.buffer.scope for n in walk(sch.func.body) if isinstance(n, BufferStore) and isinstance(n.value, Add)]
    assert sums and set(sums) == {"local"}
    run, rng = tir.build(sch.mod, "llvm"), np.random.default_rng(0)
    weights = rng.standard_normal((128, 80)).astype("float32")
    for n in range(41):
        x, found = rng.standard_normal((n, 128)).astype("float32"), np.full((n, 80), np.nan, "float32")
        run(x, weights, found)
        np.testing.assert_allclose(found, x.astype("float64") @ weights, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("columns", "high"), [(96, 6), (768, 8)])
def test_panels_from_beyond_the_cache_are_read_by_as_many_of_any_number_of_rows_as_can_be(columns: int, high: int):
    """Nine rows by three vectors of sixteen would need more lines of one set of the L1 cache than it holds; six by four read less often from L1."""
    a, b = P((te.var("n"), 1024), name="a"), P((1024, columns), name="b")
    func = te.create_prim_func([a, b, ops.matmul(a, b)]).with_attr("tir.constant", ["b"])
    sch = tir.tune.default(func, "llvm -num-cores=1 -mcpu=x86-64-v4 -vector_width=512 -l2_bytes=1048576")
    row = next(loop for loop in sch.get_loops("matmul_update") if sch.get(loop).loop_var.name == "i0_1")
    assert sch.get(row).extent == high


def test_many_sizes_have_one_version_where_any_is_short_or_none_is_far():
    """It reads the panels in place, which stay in the L1 cache."""
    sch = tir.tune.default(symbolic(product), "llvm -vector_width=512 -num-cores=1 -l1_bytes=49152")
    found = next(n for n in walk(sch.func.body) if isinstance(n, IfThenElse))
    assert isinstance(found.condition, Or) and str(found.condition).count(f"< {LONG}") == 3
    assert str(found.condition).count(f"< {2 * NEAR}") == 3
    assert "b_pad" not in str(found.then_case) and "b_pad" in str(found.else_case)


@pytest.mark.parametrize("sizes", [(33, 40, 17), (50, 49, 64), (35, 97, 70)])
def test_panels_along_symbolic_terms_are_turned_in_registers(sizes: tuple[int, int, int]):
    """The columns of these are symbolic, too: the last panel has as many vectors as are left."""
    n, m, k = (te.var(f"n{number}") for number in range(3))
    a, b = P((n, k), name="a"), P((m, k), name="b")
    func = te.create_prim_func([a, b, ops.matmul(a, b, transp_b=True)])
    sch = likeliest(func, space_of("llvm -vector_width=512 -num-cores=1"))
    assert "T.Shuffle" in sch.mod.script() and "(n1 + 15) // 16" in sch.mod.script()
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((size, sizes[2]), "float32") for size in sizes[:2])
    out = np.zeros(sizes[:2], "float32")
    tir.build(sch.mod, "llvm -vector_width=512 -num-cores=1")(left, right, out)
    np.testing.assert_allclose(out, left @ right.T, rtol=1e-4, atol=1e-4)


def attention(n: Any) -> list[te.Tensor]:
    q, k, v = (P((2, n, 24), name=name) for name in "qkv")
    return [q, k, v, ops.matmul(ops.nn.softmax(ops.matmul(q, k, transp_b=True)), v)]


def test_rows_beside_products_have_versions():
    """Of their own: a product asks whether its size is short, and rows for the number of vectors."""
    target = "llvm -vector_width=512 -num-cores=1"
    func = te.create_prim_func(attention(te.var("n0")))
    sch = tir.tune.default(func, target)
    asked = [c for c in conditions(sch.func) if c.startswith("n0 ")]
    assert [c for c in asked if c in ("n0 < 48", "n0 < 64", "n0 < 80")] == ["n0 < 48", "n0 < 64", "n0 < 80"]
    names = [b.name for b in sch.get_child_blocks("root")]
    assert len(names) == len(set(names))
    run, rng = tir.build(sch.mod, target), np.random.default_rng(0)
    for size in (1, 2, 3, 5, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 79, 80, 100, 257):
        q, k, v = (rng.standard_normal((2, size, 24), dtype="float32") for _ in range(3))
        run(q, k, v, out := np.full_like(q, np.nan))
        scores = np.exp(np.einsum("bik,bjk->bij", q, k, dtype="float64"))
        wanted = scores / scores.sum(axis=-1, keepdims=True) @ v
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


def test_two_sizes_are_asked_one_after_the_other():
    """What was scheduled tells which sizes it took for short ones."""
    func = symbolic(column_maximum)
    n, m = (v for v in func.buffer_map[func.params[0]].shape)

    def scheduled() -> PrimFunc:
        return func.with_body(tir.visit.rewrite(func.body, lambda s: named(s, f"v{usual(n)}_{usual(m)}")))

    def named(item: Any, name: str) -> Any:
        return item.replace(name=name) if isinstance(item, tir.stmt.Block) and item.name == "max" else None

    found = in_versions(func, scheduled(), scheduled, 4)
    assert found is not None
    text = found.script()
    order = [text.index(f'"v{a}_{b}"') for a in (SHORT, 16, 24, 256) for b in (SHORT, 16, 24, 256)]
    assert order == sorted(order)
    of_columns = [f"n1 < {end}" for end in ENDS]
    of_each = [asked for end in ENDS for asked in (f"n0 < {end}", *of_columns)]
    assert conditions(found) == [*of_each, *of_columns]


@pytest.mark.parametrize("split", [False, True])
def test_an_end_is_asked_where_it_tells_something(split: bool):
    """One version serves several ends if its iterations do not ask for the size."""
    sch = tir.Schedule(symbolic(column_maximum))
    n, m = (v for v in sch.func.buffer_map[sch.func.params[0]].shape)
    columns = next(loop for loop in sch.get_loops("max") if sch.get(loop).extent is m)
    if split:
        sch.split(columns, [None, 8])

    def scheduled() -> PrimFunc:
        name = f"v{usual(m) < LONG}"
        return sch.func.with_body(
            tir.visit.rewrite(
                sch.func.body, lambda s: s.replace(name=name) if getattr(s, "name", "") == "max" else None
            )
        )

    found = in_versions(sch.func, scheduled(), scheduled, 4)
    assert found is not None
    assert conditions(found) == [f"n1 < {end}" for end in (ENDS if split else [LONG])]


def test_what_symbolic_sizes_count_as():
    n, m = te.var("n"), te.var("m")
    assert (usual(n), usual(n + m), usual(tir.const(7))) == (256, 256, 7)
    with assuming({n: 8}):
        assert (usual(n), usual((n + 63) // 64 * 64), usual(n + m), usual(m + 1), usual(tir.const(7))) == (
            8,
            64,
            264,
            256,
            7,
        )
    assert usual(n) == 256


def test_axes_of_symbolic_length_are_one_where_elements_follow():
    sch = tir.Schedule(symbolic(chain))
    nest = Nest.of(sch, sch.get_child_blocks("root")[-1].name)
    assert nest is not None
    *_, last = nest.axes
    stores = nest.stores
    assert [a.var for a in continued(last, nest.axes, stores)] == [a.var for a in nest.axes]
    turned = Nest.of(tir.Schedule(symbolic(transpose)), "transpose")
    assert turned is not None
    assert continued(turned.axes[-1], turned.axes, turned.accesses) == [turned.axes[-1]]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_sizes_given_by_name_are_predicted_as_constant_ones(kernel: Callable[..., list[te.Tensor]]):
    env = tir.tune.Env.of(TARGET)
    names = [f"n{n}" for n in range(KERNELS[kernel])]
    func, seconds = symbolic(kernel), []
    assert tir.tune.predict(func, env) is None
    for size in (24, 96):
        given = tir.tune.predict(func, env, dict.fromkeys(names, size))
        constant = tir.tune.predict(te.create_prim_func(kernel(*[size] * len(names))), env)
        assert given is not None and constant is not None
        assert given.seconds == pytest.approx(constant.seconds)
        seconds.append(given.seconds)
    assert seconds[0] < seconds[1]
    assert tir.tune.predict(func, env, {"n1": 24}) is None, "one of several"


def test_a_version_is_predicted_alone():
    env, func = tir.tune.Env.of(TARGET), symbolic(row_sum)
    sch = tir.tune.default(func, TARGET)
    for sizes, counts in (({"n0": 50, "n1": 3}, 2), ({"n0": 50, "n1": 200}, 256)):
        with assuming({func.buffer_map[func.params[0]].shape[1]: counts}):
            one = likeliest(func, space_of(TARGET))
        found, alone = (tir.tune.predict(s, env, sizes) for s in (sch, one))
        assert found is not None and alone is not None
        assert found.terms["core"] == pytest.approx(alone.terms["core"])


def test_only_the_last_vector_of_a_symbolic_row_asks_for_the_end():
    """Strips of several vectors would make each of them ask; two vectors of partial results do."""
    for kernel in (softmax, column_maximum):
        sch = tir.tune.default(symbolic(kernel), TARGET)
        text = tir.lower(sch.mod).script()
        asks = [line for line in text.splitlines() if "T.Ramp" in line and line.lstrip().startswith("if ")]
        assert asks and not [line for line in asks if "+ 8," in line or "+ 12," in line]


@pytest.mark.parametrize(("parts", "wanted"), [(1, 48), (2, 32)])
def test_panels_of_symbolic_width_are_narrower_for_what_is_empty(parts, wanted, monkeypatch):
    """The more so, the longer a core takes for a product of vectors, beside which it loads elements."""
    monkeypatch.setattr("tir.tune.rules.contraction.parts_of", lambda *_: parts)

    def width(m: Any) -> int:
        func = te.create_prim_func(product(te.var("n"), m, 512))
        sch = tir.Schedule(func)
        offers = contraction(
            sch, sch.get_child_blocks("root")[-1].name, tir.tune.Env.of("llvm -vector_width=512 -num-cores=1")
        )
        made = offers[0]() if callable(offers[0]) else offers[0]
        return next(int(b.shape[-1]) for b in made.func.body.block.alloc_buffers if len(b.shape) == 3)

    assert width(256) == 64 and width(te.var("m")) == wanted


def test_the_last_panel_has_as_many_vectors_as_are_left():
    """Which is asked for before the sums, and not beside each of them. One program serves every number of columns."""
    target = "llvm -vector_width=128 -num-cores=1"
    func = te.create_prim_func(product(te.var("n"), te.var("m"), te.var("k")))
    sch = tir.tune.default(func, target)
    sums = [n for n in walk(tir.lower(sch.mod)["main"].body) if isinstance(n, For) and n.loop_var.name.startswith("k")]
    vectors = {len({n.indices for n in walk(loop) if isinstance(n, BufferStore)}) for loop in sums}
    assert len(vectors) >= 3
    run, rng = tir.build(sch.mod, target), np.random.default_rng(0)
    for columns in (16, 17, 32, 33, 48, 49, 63, 64, 65, 97, 113):
        for rows, terms in ((33, 32), (36, 35)):
            a, b = (rng.standard_normal(shape).astype("float32") for shape in ((rows, terms), (terms, columns)))
            found = np.full((rows, columns), np.nan, "float32")
            run(a, b, found)
            np.testing.assert_allclose(found, a.astype("float64") @ b, rtol=1e-4, atol=1e-4, err_msg=f"{columns}")


@pytest.mark.parametrize("l1_bytes", [32768, 49152])
def test_panels_that_are_read_in_place_are_padded_where_they_are_read(l1_bytes: int):
    """No sum is kept under a condition of lanes, and only the last of the vectors that there are asks for the end of the columns; of the
    shortest version, whose columns are one panel, too."""
    target = f"llvm -vector_width=128 -num-cores=1 -l1_bytes={l1_bytes} -l2_bytes=2097152"
    func = te.create_prim_func(batched(te.var("b"), te.var("m")))
    sch = tir.tune.default(func, target)
    sums = [n for n in walk(tir.lower(sch.mod)["main"].body) if isinstance(n, For) and n.loop_var.name.startswith("k")]
    assert sums and not any(isinstance(n, IfThenElse) for loop in sums for n in walk(loop))
    for loop in sums:
        masks = {str(n.args[0]) for n in walk(loop) if isinstance(n, Call) and n.op == "if_then_else"}
        assert len(masks - {"T.Broadcast(True, 4)"}) <= 1
    run, rng = tir.build(sch.mod, target), np.random.default_rng(0)
    for columns in (0, 1, 3, 4, 5, 8, 9, 16, 17, 33, 47, 48, 49, 63, 64, 65, 97):
        for batch in (0, 2):
            a, b = (rng.standard_normal((batch, *shape)).astype("float32") for shape in ((64, 67), (67, columns)))
            found = np.full((batch, 64, columns), np.nan, "float32")
            run(a, b, found)
            np.testing.assert_allclose(found, a.astype("float64") @ b, rtol=1e-4, atol=1e-4, err_msg=f"{columns}")


def test_versions_have_buffers_of_their_own():
    """A buffer that both used would be kept for all rows; in the short version a row of it is of constant size."""
    text = tir.lower(tir.tune.default(symbolic(softmax), TARGET).mod).script()
    extents = re.findall(r"allocate\(\[(.*?)\]", text)
    assert extents.count("n1") == 1 and {"20", "64"} <= {*extents}
    assert not [e for e in extents if "n0" in e]


@pytest.mark.parametrize("lanes", [512, 128])
def test_a_sum_of_fewer_terms_than_partial_results(lanes, monkeypatch):
    """Its symbolic number is 21 at most, so that of the steps of 32 partial results there is one at most, and no loop over them."""
    program = tir.script.parse("""
@T.prim_func
def main(p: T.handle, q: T.handle, n: T.int32):
    A = T.match_buffer(p, (2, T.min(n, 5) * 7 - 14), "float32")
    B = T.match_buffer(q, (2,), "float32")
    for i, k in T.grid(2, T.min(n, 5) * 7 - 14):
        with T.block("m"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32("-inf")
            B[vi] = T.max(B[vi], A[vi, vk])
""")
    monkeypatch.setenv("TIR_CACHE", "0")  # a kept schedule would tell nothing of the rules
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a rule that raised
        module = tir.build(tir.tune.default(program, f"llvm -vector_width={lanes}"))
    for n in (3, 4, 5, 9):
        a = np.random.default_rng(n).standard_normal((2, min(n, 5) * 7 - 14)).astype("float32")
        b = np.zeros(2, "float32")
        module(a, b, n)
        np.testing.assert_array_equal(b, a.max(1))
