"""The model: what it says of schedules of which we know the order, without measuring anything."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from types import SimpleNamespace

import pytest

import tir
from codegen import machine_peak
from tests.fuzz.kernel_programs import family_program
from tir import te
from tir.cost.footprint import traffic
from tir.library import rows
from tir.tune import Env
from tir.tune.cost_model import Prediction, floor, predict
from tir.tune.machine import measured

# a machine that is described is not measured: the same everywhere
FIXED = "llvm -num-cores={} -l1_bytes=32768 -l2_bytes=1048576 -l3_bytes=16777216 -vector_width=512"


def product(n: int) -> tir.PrimFunc:
    A, B = (te.placeholder((n, n), name=x) for x in "AB")
    k = te.reduce_axis((0, n), "k")
    return te.create_prim_func([A, B, te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")])


def seconds(program: tir.Schedule | tir.PrimFunc, cores: int = 1) -> float:
    found = predict(program, Env.of(FIXED.format(cores)))
    assert found is not None
    return found.seconds


def test_the_default_schedule_is_predicted_to_be_faster_than_none():
    func = product(512)
    assert seconds(tir.tune.default(func, FIXED.format(1))) < seconds(func) / 4


def test_nothing_is_faster_than_the_floor():
    func, env = product(256), Env.of(FIXED.format(1))
    found = predict(tir.tune.default(func, env.target), env)
    assert found is not None and floor(func, env) == pytest.approx(found.floor) and found.floor <= found.seconds
    assert set(found.terms) == {"core", "L2", "L3", "memory", "arguments"}


def rows_at_places(rows: int) -> tir.PrimFunc:
    x, at = te.placeholder((rows, 256), name="x"), te.placeholder((16,), "int32", name="at")
    return te.create_prim_func([x, at, te.compute((16, 256), lambda i, j: x[at[i], j] * 2.0, name="y")])


def test_no_more_of_an_argument_counts_than_is_read_at_places_that_data_says():
    env = Env.of(FIXED.format(1))
    assert floor(rows_at_places(1 << 16), env) == floor(rows_at_places(16), env)


def test_windows_that_later_steps_take_again_need_registers_beside_sums():
    x, w = te.placeholder((36, 36, 64), name="x"), te.placeholder((5, 5, 64), name="w")
    p, q = (te.reduce_axis((0, 5), n) for n in "pq")
    func = te.create_prim_func(
        [x, w, te.compute((32, 32, 64), lambda i, j, c: te.sum(x[i + p, j + q, c] * w[p, q, c], [p, q]), name="y")]
    )

    def tiled(wide: int, vectors: int) -> tir.Schedule:
        sch = tir.Schedule(func)
        sch.cache_write("y", 0, "local")
        i, j, c, p, q = sch.get_loops("y")
        (j, each), (c, vector, lane) = sch.split(j, [None, wide]), sch.split(c, [None, vectors, 16])
        sch.reorder(i, j, c, p, q, each, vector, lane)
        sch.reverse_compute_at("y_local", c)
        sch.decompose_reduction("y", p)
        for loop in (q, each, vector):
            sch.unroll(loop)
        sch.vectorize(lane)
        return sch

    assert seconds(tiled(8, 1)) < seconds(tiled(16, 2)) / 1.5 and seconds(tiled(8, 2)) < seconds(tiled(16, 2))


def test_two_cores_share_the_work():
    func = product(1024)
    one, two = (seconds(tir.tune.default(func, FIXED.format(n)), n) for n in (1, 2))
    assert 0.4 < two / one < 0.8


def test_one_chain_of_sums_waits_for_its_results():
    few, many = (tir.Schedule(product(64)) for _ in range(2))
    for sch, vectors in ((few, 1), (many, 4)):
        i, j, k = sch.get_loops("C")
        outer, inner, lane = sch.split(j, [None, vectors, 16])
        sch.reorder(i, outer, k, inner, lane)
        sch.decompose_reduction("C", k)
        sch.vectorize(lane)
        sch.unroll(inner)
    assert seconds(many) < seconds(few)


def test_vectors_of_any_type_take_as_long():
    """Of a copy that stays in the L1 cache: as many instructions for as many vectors."""

    def copy(dtype: str, lanes: int) -> float:
        x = te.placeholder((16 * lanes,), dtype, name="x")
        sch = tir.Schedule(te.create_prim_func([x, te.compute((16 * lanes,), lambda i: x[i], name="y")]))
        sch.vectorize(sch.split(sch.get_loops("y")[0], [None, lanes])[1])
        return predict(sch, Env.of(FIXED.format(1))).terms["core"]  # type: ignore[union-attr]

    assert copy("uint8", 64) == pytest.approx(copy("float32", 16)) == pytest.approx(copy("float64", 8))


def test_a_gather_counts_each_element():
    def scheduled(func: tir.PrimFunc) -> tir.Schedule:
        sch = tir.Schedule(func)
        _, lane = sch.split(sch.get_loops("out")[-1], [None, 16])
        sch.vectorize(lane)
        return sch

    A = te.placeholder((64, 64), name="A")
    along = te.create_prim_func([A, te.compute((64, 64), lambda i, j: A[i, j] + 1.0, name="out")])
    across = te.create_prim_func([A, te.compute((64, 64), lambda i, j: A[j, i] + 1.0, name="out")])
    assert seconds(scheduled(along)) < seconds(scheduled(across))


def test_a_gather_of_more_elements_than_a_vector_has_addresses_is_put_together():
    def core(lanes: int) -> float:
        x, at = te.placeholder((256, 1024), name="x"), te.placeholder((512,), "int32", name="at")
        sch = tir.Schedule(te.create_prim_func([x, at, te.compute((256, 512), lambda i, j: x[i, at[j]], name="y")]))
        i, j = sch.get_loops("y")
        rows, lane = sch.split(i, [None, 8])[1], sch.split(j, [None, lanes])[1]
        sch.reorder(sch.get_loops("y")[0], sch.get_loops("y")[2], rows, lane)
        sch.unroll(rows)
        sch.vectorize(lane)
        return predict(sch, Env.of(FIXED.format(1))).terms["core"]  # type: ignore[union-attr]

    assert core(16) > core(8)


@pytest.mark.parametrize("step", [2, 3, 4, -2])
def test_every_few_elements_are_selected_from_whole_vectors(step: int):
    def every(step: int) -> float:
        x, k = te.placeholder((8192,), name="x"), te.reduce_axis((0, 4), "k")
        at = te.compute((1024,), lambda i: te.sum(x[i * step + k + 4096], axis=k), name="y")
        sch = tir.Schedule(te.create_prim_func([x, at]))
        sch.vectorize(sch.split(sch.get_loops("y")[0], [None, 16])[1])
        return predict(sch, Env.of(FIXED.format(1))).terms["core"]  # type: ignore[union-attr]

    whole = every(1) / (2 - 1 / 16)  # as 15 of 16 vectors lie in two lines
    assert every(step) == pytest.approx(every(1) + (abs(step) - 1) * whole), "terms share the vectors between"
    assert every(step) < every(5) / 2, "an element at a time"


def test_borders_that_loops_are_cut_at_cost_nothing_inside():
    x = te.placeholder((4096,), name="x")
    y = te.compute((4098,), lambda i: tir.if_then_else(tir.all(i > 0, i < 4097), x[i - 1], 0.0), name="y")
    both = [tir.Schedule(te.create_prim_func([x, y])) for _ in range(2)]
    for sch, cut in zip(both, (False, True)):
        outer, lane = sch.split(sch.get_loops("y")[0], [None, 16])
        sch.vectorize(lane)
        if cut:
            sch.annotate(outer, "pragma_loop_partition_hint", 1)
    asked, free = (predict(sch, Env.of(FIXED.format(1))).terms["core"] for sch in both)  # type: ignore[union-attr]
    assert free <= asked


def test_what_a_name_stands_for_is_work():
    x = te.placeholder((500, 64), name="x")
    func = te.create_prim_func([x, tir.ops.argmin(x, 1)])
    plain, made = (predict(f, Env.of(FIXED.format(1))) for f in (func, tir.tune.default(func, FIXED.format(1))))
    assert plain is not None and made is not None
    assert plain.seconds > 500 * 64 * 1e-9 > made.seconds, "an element of a chain takes more than a nanosecond"


def test_more_is_loaded_into_a_smaller_cache():
    small, large = traffic(product(64), [1 << 10, 1 << 20])
    assert large == 3 * 64 * 64 * 4 and small > 4 * large


def test_a_prediction_takes_targets_and_modules():
    func = rows.row_sum(64, 100)
    found = predict(func, Env.of(FIXED.format(1)))
    mod = tir.IRModule.of(func)
    assert found == predict(func, FIXED.format(1)) == predict(mod, tir.Target(FIXED.format(1)))
    assert found == predict(tir.IRModule.of({"a": func, "b": rows.row_sum(64, 9000)}), FIXED.format(1))


def test_there_is_no_prediction_for_symbolic_sizes():
    assert predict(family_program("symbolic", 0), Env.of(FIXED.format(1))) is None  # type: ignore[arg-type]


def test_a_described_machine_is_not_measured():
    env = Env.of(FIXED.format(1))
    assert measured(env.target) == env.machine


def test_a_measured_machine_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TIR_CACHE", "1")
    measured.cache_clear()
    first = measured(tir.Target("llvm"))
    measured.cache_clear()
    assert measured(tir.Target("llvm")) == first
    assert list(tmp_path.glob("**/*.machine"))
    measured.cache_clear()
    assert first.peak > 1e8 and min(first.bandwidth.values()) > 1e7


def test_softmax_has_a_prediction():
    assert seconds(tir.tune.default(rows.softmax(64, 128), FIXED.format(1))) > 0


def test_a_chain_of_operations_waits_for_each_of_them_once():
    def chain(length: int) -> tir.Schedule:
        x = te.placeholder((8, 16), name="x")
        sch = tir.Schedule(
            te.create_prim_func([x, te.compute((8, 16), lambda i, j: _times(tir.exp, x[i, j], length), name="y")])
        )
        sch.vectorize(sch.get_loops("y")[1])
        return sch

    assert seconds(chain(64)) < 2.2 * seconds(chain(32))


def _times(operator, value, count: int):
    for _ in range(count):
        value = operator(value)
    return value


def test_absolute_differences_of_bytes_summed_along_a_row_take_fewer_operations():
    cores = []
    for kind in ("uint8", "int8"):
        x, w = (te.placeholder((64, 256), kind, name=n) for n in "xw")
        k = te.reduce_axis((0, 256), "k")
        term = lambda i, j: te.abs(x[i, k].astype("int32") - w[j, k].astype("int32"))
        func = te.create_prim_func([x, w, te.compute((64, 64), lambda i, j: te.sum(term(i, j), axis=k))])
        cores.append(predict(func, "llvm -num-cores=1 -vector_width=512").terms["core"])
    assert cores[0] < 0.7 * cores[1]


def test_a_core_that_does_vectors_in_parts_is_slower_on_whole_ones_alone(monkeypatch: pytest.MonkeyPatch):
    env, before = Env.of(FIXED.format(1)), {}
    halves = replace(env.machine, peak=env.machine.peak / 2)

    def vectors(lanes: int) -> tir.Schedule:
        x = te.placeholder((4096,), name="x")
        sch = tir.Schedule(te.create_prim_func([x, te.compute((4096,), lambda i: x[i] * x[i] + x[i], name="y")]))
        sch.vectorize(sch.split(sch.get_loops("y")[0], [None, lanes])[1])
        return sch

    before = {n: core(vectors(n), env) for n in (8, 16)}
    monkeypatch.setattr("tir.tune.cost_model.measured", lambda _: halves)
    assert core(vectors(16), env) == pytest.approx(2 * before[16]) and core(vectors(8), env) == pytest.approx(before[8])


def core(sch: tir.Schedule, env: Env) -> float:
    found = predict(sch, env)
    assert found is not None
    return sum(found.blocks.values())


def in_tiles(size: int, rows: int) -> Prediction:
    """What a product of ``size`` rows takes in tiles of some rows by two vectors."""
    A, B = te.placeholder((size, 576), name="A"), te.placeholder((576, 576), name="B")
    sch = tir.Schedule(te.create_prim_func([A, B, tir.ops.matmul(A, B)]))
    i, j, k = sch.get_loops("matmul")
    (outer, high), (panel, wide) = sch.split(i, [None, rows]), sch.split(j, [None, 32])
    vectors, lanes = sch.split(wide, [None, 16])
    sch.reorder(panel, outer, k, high, vectors, lanes)
    sch.decompose_reduction("matmul", k)
    sch.unroll(high)
    sch.unroll(vectors)
    sch.vectorize(lanes)
    found = predict(sch, Env.of(FIXED.format(1)))
    assert found is not None
    return found


def test_a_sum_of_few_registers_waits_for_what_l2_delivers():
    few, many = in_tiles(72, 4), in_tiles(72, 9)  # 8 sums and 18, of which 8 are under way at a time
    own = [sum(found.blocks.values()) for found in (few, many)]
    assert own[0] == pytest.approx(own[1], rel=0.05)  # as many instructions
    assert few.terms["core"] > 1.2 * own[0] and many.terms["core"] < 1.1 * own[1]


def test_a_tile_that_is_not_full_reads_as_much_of_the_other_matrix():
    assert in_tiles(36, 8).terms["L2"] > 1.2 * in_tiles(36, 9).terms["L2"]  # 5 times, not 4


def test_what_is_in_one_loop_is_divided_and_multiplied_at_once():
    x = te.placeholder((4096,), name="x")
    power = te.compute((4096,), lambda i: x[i] * x[i] * x[i] * x[i] * x[i] * x[i] * x[i] * x[i], name="power")
    func = te.create_prim_func([x, te.compute((4096,), lambda i: power[i] / 9.0, name="y")])
    sch, apart = tir.Schedule(func), tir.Schedule(func)
    for one in (sch, apart):
        outer, lanes = one.split(one.get_loops("y")[0], [None, 16])
        one.vectorize(lanes)
        if one is sch:
            sch.compute_at("power", outer)
        else:
            apart.split(apart.get_loops("power")[0], [None, 16])
        one.vectorize(one.get_loops("power")[-1])
    assert core(sch, Env.of(FIXED.format(1))) < core(apart, Env.of(FIXED.format(1))) / 1.5


def test_what_lies_in_two_lines_of_a_cache_is_loaded_twice():
    def taps(apart: int) -> float:
        x = te.placeholder((1024,), name="x")
        far = te.compute((256,), lambda i: x[i] + x[i + apart] + x[i + 2 * apart] + x[i + 3 * apart], name="y")
        sch = tir.Schedule(te.create_prim_func([x, far]))
        sch.vectorize(sch.split(sch.get_loops("y")[0], [None, 16])[1])
        return predict(sch, Env.of(FIXED.format(1))).terms["core"]  # type: ignore[union-attr]

    assert taps(15) > 1.5 * taps(16)


def test_the_rate_of_a_level_is_that_of_whole_lines(monkeypatch):
    at = list[int]()
    read = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(lambda _, __, data: at.append(data))
    place = ctypes.cast(read, ctypes.c_void_p).value
    monkeypatch.setattr(machine_peak, "_reader", lambda: SimpleNamespace(function=lambda name: place))
    for size in (1 << 14, 1 << 20):  # the latter in pages of its own, behind 16 bytes of the allocator's
        machine_peak.measure_reading(size, seconds=0.0)
    assert len(at) == 4 and all(data % 64 == 0 for data in at)


def columns_read_twice(pitch: int) -> tir.PrimFunc:
    return tir.script.parse(f"""
@T.prim_func
def f(B: T.Buffer((2048, {pitch}), "float32"), C: T.Buffer(({pitch // 16}, 2, 16), "float32")):
    for j in range({pitch // 16}):
        for p in range(2):
            for k in range(2048):
                for v in T.vectorized(16):
                    with T.block("C"):
                        vj, vp, vv = T.axis.remap("SSS", [j, p, v])
                        vk = T.axis.reduce(2048, k)
                        C[vj, vp, vv] = C[vj, vp, vv] + B[vk, vj * 16 + vv]
""")


def test_rows_whose_distance_is_a_power_of_two_push_each_other_out():
    whole = 2048 * 64  # bytes of a column of lines, which L2 has room for
    alike, shifted = (traffic(columns_read_twice(n), [1 << 20])[0] / (n // 16) for n in (1024, 1040))
    assert alike > 1.9 * whole and shifted < 1.1 * whole


def test_lines_in_other_pages_are_not_prefetched():
    env = Env.of(FIXED.format(1))
    alike, shifted = (predict(columns_read_twice(n), env) for n in (1024, 1040))
    assert alike is not None and shifted is not None and alike.terms["L3"] > 4 * shifted.terms["L3"]
