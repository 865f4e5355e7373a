"""Products of bytes and of bfloat16, as users write them, by dot-product instructions of vectors and on tile registers."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te
from tir.amx_permission import tiles_allowed
from tir.testing import assert_same_result
from tir.tune.packed import Panels
from tir.tune.space import Env, space_of

INT8, BF16, SIGNED = ("uint8", "int8", "int32"), ("bfloat16", "bfloat16", "float32"), ("int8", "int8", "int32")
UNSIGNED, SWAPPED, INT16 = ("uint8", "uint8", "int32"), ("int8", "uint8", "int32"), ("int16", "int16", "int32")
TILES, VECTORS = "llvm -mcpu=sapphirerapids -num-cores={}", "llvm -mcpu=cooperlake -num-cores={}"
USED = {TILES: "amx_tile_dot", VECTORS: "llvm.x86.avx512"}

Types = tuple[str, str, str]


def product(spec: str, sizes: dict[str, int], types: Types, follow: bool = False) -> tir.PrimFunc:
    """The einsum ``spec`` of these sizes; ``follow``: then no negative result."""
    (left, right), out = spec.partition("->")[0].split(","), spec.partition("->")[2]
    A, B = (
        te.placeholder([sizes[x] for x in s], t, name=n) for s, t, n in ((left, types[0], "A"), (right, types[1], "B"))
    )
    terms = {x: te.reduce_axis((0, sizes[x]), x) for x in sizes if x not in out}

    def value(*point: tir.Var) -> tir.Expr:
        at = {**dict(zip(out, point)), **{x: t.var for x, t in terms.items()}}
        a, b = A[tuple(at[x] for x in left)], B[tuple(at[x] for x in right)]
        return te.sum(a.astype(types[2]) * b.astype(types[2]), axis=list(terms.values()))

    C = te.compute([sizes[x] for x in out], value, name="C")
    if not follow:
        return te.create_prim_func([A, B, C])
    D = te.compute(C.shape, lambda *at: tir.max(C[at], tir.const(0, types[2])), name="D")
    return te.create_prim_func([A, B, D])


def convolution(types: Types, side: int, channels: int, out: int) -> tir.PrimFunc:
    X, W = (
        te.placeholder((1, side, side, channels), types[0], name="X"),
        te.placeholder((2, 2, channels, out), types[1], name="W"),
    )
    p, q, c = (te.reduce_axis((0, n), x) for n, x in ((2, "p"), (2, "q"), (channels, "c")))
    return te.create_prim_func([X, W, te.compute(
        (1, side - 1, side - 1, out),
        lambda n, y, x, o: te.sum(X[n, y + p, x + q, c].astype(types[2]) * W[p, q, c, o].astype(types[2]), axis=[p, q, c]),
        name="Y",
    )])  # fmt: skip


def channels_first(types: Types, side: int, channels: int, out: int, window: int) -> tir.PrimFunc:
    """As `ops.nn.conv2d` writes it: the image, of which panels are made, is the first factor; of a window of one, weights end in units."""
    x, w = (
        te.placeholder((1, channels, side, side), types[0]),
        te.placeholder((out, channels, window, window), types[1]),
    )
    return te.create_prim_func([x, w, tir.ops.nn.conv2d(x, w, padding=window // 2, out_dtype=types[2])])


def check(func: tir.PrimFunc, target: str, cores: int = 1, caches: str = "") -> tir.Schedule:
    """The default schedule computes the same by the instructions of ``target``; without them, by their meaning."""
    env = Env.of(target.format(cores) + caches)
    sch = space_of(env.target).first(tir.Schedule(func, error_render_level="none"))
    text = sch.mod.script()
    assert USED[target] in text, text
    here = Env.of("llvm")
    native = all(here.has(f) for f in ("avx512vnni", "avx512bf16", *(("amx-int8",) if target is TILES else ())))
    if native:
        assert_same_result(func, sch.mod, engines=("llvm",), rtol=1e-3)
    else:
        assert_same_result(func, sch.mod, engines=("interpreter",), rtol=1e-3)
    return sch


CASES = {
    "whole tiles": lambda t: product("ik,kj->ij", {"i": 32, "j": 32, "k": 64}, t),
    "odd": lambda t: product("ik,kj->ij", {"i": 17, "j": 21, "k": 35}, t, follow=True),
    "transposed right": lambda t: product("ik,jk->ij", {"i": 15, "j": 21, "k": 34}, t),
    "transposed left": lambda t: product("ki,kj->ij", {"i": 18, "j": 16, "k": 33}, t),
    "batched": lambda t: product("bik,bkj->bij", {"b": 2, "i": 9, "j": 16, "k": 16}, t),
    "five axes": lambda t: product("abe,ecd->abcd", {"a": 3, "b": 4, "c": 2, "d": 9, "e": 12}, t),
    "convolution": lambda t: convolution(t, 5, 3, 13),
    "channels first": lambda t: channels_first(t, 5, 3, 16, 3),
    "channels first, 1 by 1": lambda t: channels_first(t, 5, 18, 16, 1),
}


@pytest.fixture
def tiles_are_allowed(monkeypatch: pytest.MonkeyPatch):
    """Rules are asked for another machine: what this system allows does not matter."""
    if not tiles_allowed():
        monkeypatch.setattr("tir.tune.space.tiles_allowed", lambda: True)


@pytest.mark.parametrize("types", [INT8, BF16], ids=["int8", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_products_by_vectors(name: str, types: Types):
    check(CASES[name](types), VECTORS)


@pytest.mark.parametrize("types", [SIGNED, UNSIGNED, SWAPPED, INT16], ids="-".join)
@pytest.mark.parametrize(
    "name", ["odd", "transposed right", "batched", "convolution", "channels first", "channels first, 1 by 1"]
)
def test_products_of_other_signs_and_of_16_bits_by_vectors(name: str, types: Types):
    func = CASES[name](types)
    sch = check(func, VECTORS)
    if name == "odd":
        assert_same_result(func, sch.mod, engines=("interpreter",), rtol=1e-3)


@pytest.mark.parametrize("types", [SIGNED, UNSIGNED, SWAPPED, INT16], ids="-".join)
def test_extreme_factors_are_as_in_numpy(types: Types):
    """All combinations of the least and the greatest numbers, in sums that wrap around where the program's do."""
    if not Env.of("llvm").has("avx512vnni"):
        pytest.skip("needs avx512vnni")
    m, n, k = 5, 19, 11
    run = tir.build(tir.tune.default(product("ik,kj->ij", {"i": m, "j": n, "k": k}, types), "llvm -num-cores=1").mod)
    rng = np.random.default_rng(0)
    ends = [np.array([np.iinfo(t).min, 0, np.iinfo(t).max], t) for t in types[:2]]
    a, b = (rng.choice(e, size) for e, size in zip(ends, ((m, k), (k, n))))
    c = np.empty((m, n), "int32")
    run(a, b, c)
    np.testing.assert_array_equal(c, (a.astype("int64") @ b.astype("int64")).astype("int32"))


@pytest.mark.parametrize("types", [SIGNED, BF16], ids=["int8", "bf16"])
@pytest.mark.parametrize("name", [name for name in CASES if name != "batched"])
def test_products_on_tiles(name: str, types: Types, tiles_are_allowed: None):
    check(CASES[name](types), TILES)


def test_a_long_reduction_is_summed_in_chunks(tiles_are_allowed: None):
    sch = check(product("ik,kj->ij", {"i": 16, "j": 16, "k": 1100}, INT8, follow=True), TILES)
    assert [s.value for s in sch.get(sch.get_block("C_rf_update_o")).reads[0].buffer.shape][2] == 2


@pytest.mark.parametrize("sizes, shared", [((64, 256, 64), "panels"), ((256, 16, 128), "rows")])
@pytest.mark.parametrize("target", [TILES, VECTORS], ids=["tiles", "vectors"])
def test_panels_or_rows_run_in_parallel(sizes: tuple[int, int, int], shared: str, target: str, tiles_are_allowed: None):
    m, n, k = sizes
    sch = check(product("ik,kj->ij", {"i": m, "j": n, "k": k}, INT8), target, cores=2)
    parallel = [loop for loop in sch.get_loops("C_update_o") if sch.get(loop).kind == "parallel"]
    assert len(parallel) == 1
    packing = next(name for name in ("B_global_o", "B_pad_global_o") if name in sch.mod.script())
    packed_inside = sch.get_loops(packing)[0] in parallel
    assert packed_inside == (shared == "panels")


def test_types_without_an_instruction_are_left_alone():
    env = Env.of(VECTORS.format(1))
    for types in (("float32",) * 3, ("int8", "int8", "int16"), ("bfloat16", "bfloat16", "bfloat16")):
        func = product("ik,kj->ij", {"i": 32, "j": 32, "k": 32}, types)
        text = space_of(env.target).first(tir.Schedule(func)).mod.script()
        assert "avx512" not in text and "amx" not in text


@pytest.mark.parametrize("target", [TILES, VECTORS], ids=["tiles", "vectors"])
def test_panels_are_packed_in_groups(target: str, tiles_are_allowed: None):
    sch = check(product("ik,kj->ij", {"i": 16, "j": 150, "k": 200}, INT8), target, caches=" -l2_bytes=32768")
    extents = [sch.get(loop).extent.value for loop in sch.get_loops("C_update_o")]
    assert extents[0] == 3, extents


def test_groups_of_panels_fit_in_half_of_the_cache():
    from tir.tune.nest import Nest

    sch = tir.Schedule(product("ik,kj->ij", {"i": 64, "j": 1024, "k": 1024}, BF16))
    found = Panels.kind_of(Nest.of(sch, "C"))
    assert found is not None
    panels = Panels(*found, Env.of("llvm -l2_bytes=1048576 -num-cores=1"), 32, 32, 32)
    assert panels.count == 32 and panels.together() == [8, 4, 16]


@pytest.mark.parametrize("types", [SIGNED, UNSIGNED], ids="-".join)
def test_panels_of_equal_signs_are_stored_with_the_other(types: Types):
    """Else each product is corrected by one of its own; that costs less than another pass over panels that few rows use."""
    for rows, constant, wanted in ((7, False, False), (8, False, True), (1, True, True)):
        func = product("ik,kj->ij", {"i": rows, "j": 32, "k": 64}, types)
        func = func.with_attr("tir.constant", ["B"]) if constant else func
        text = space_of(VECTORS.format(1)).first(tir.Schedule(func)).mod.script()
        assert ("B_shifted" in text) == wanted, (rows, constant)
        assert text.count("vpdpbusd.512") == (1 if wanted else 2)


@pytest.mark.parametrize("spec, least", [("ik,kj->ij", 4), ("ik,jk->ij", 12)])
def test_few_rows_are_multiplied_without_panels(spec: str, least: int):
    """Packing what few rows use takes longer than it saves, unless it is done once."""
    env = Env.of(VECTORS.format(1))
    for rows, constant, wanted in ((least - 1, False, False), (least, False, True), (1, True, True)):
        func = product(spec, {"i": rows, "j": 32, "k": 64}, INT8)
        func = func.with_attr("tir.constant", ["B"]) if constant else func
        text = space_of(env.target).first(tir.Schedule(func)).mod.script()
        assert ("vpdpbusd" in text) == wanted, (rows, constant)
