"""Memory read by what steers a block (its predicate, bindings, places of views, loop bounds, an ``if``, a let above it) is
read by it.

Each place of the read, each primitive: what is accepted computes what the program did.
"""

import numpy as np
import pytest

import tir
from tests.prim_checks import refused, same, schedule
from tir.script import parse
from tir.testing import assert_same_result

PLACES = {
    "predicate": """
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            T.where(A[{at}] > 0)
            {store}
""",
    "predicate of the block around": """
        with T.block("O"):
            vo = T.axis.spatial(4, i)
            T.where(A[{at}] > 0)
            for k in range(2):
                with T.block("D"):
                    vi = T.axis.spatial(4, vo)
                    vk = T.axis.spatial(2, k)
                    {store}
""",
    "predicate of a block inside": """
        with T.block("O"):
            vo = T.axis.spatial(4, i)
            for k in range(2):
                with T.block("D"):
                    vi = T.axis.spatial(4, vo)
                    vk = T.axis.spatial(2, k)
                    T.where(A[{at_vo}] > 0)
                    {store}
""",
    "extent": """
        for k in range(T.min(A[{at}], 1)):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.spatial(2, k)
                {store}
""",
    "start": """
        for k in range(T.max(1 - A[{at}], 0), 1):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.spatial(2, k)
                {store}
""",
    "binding": """
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            vx = T.axis.opaque(8, A[{at}] % 8)
            {store_x}
""",
    "view": """
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            V = T.match_buffer(E[T.max(T.min(A[{at_vi}], 3), 0)], (), "int32", offset_factor=1)
            vx: T.int32 = V[()]
            {store_x}
""",
    "view of a block inside": """
        with T.block("O"):
            vo = T.axis.spatial(4, i)
            for k in range(2):
                with T.block("D"):
                    vi = T.axis.spatial(4, vo)
                    vk = T.axis.spatial(2, k)
                    V = T.match_buffer(E[T.max(T.min(A[{at_vo}], 3), 0)], (), "int32", offset_factor=1)
                    vx: T.int32 = V[()]
                    {store_x}
""",
    "if": """
        if A[{at}] > 0:
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                {store}
""",
    "let": """
        x: T.int32 = A[{at}]
        if x > 0:
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                {store}
""",
    "value of a let": """
        vx: T.int32 = A[{at}]
        for k in range(1):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                {store_x}
""",
    "body": """
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            if A[{at_vi}] > 0:
                {store}
""",
}

HEAD = """
@T.prim_func
def f(A: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32"), E: T.Buffer((4,), "int32")):
"""

OVERWRITES = """
        with T.block("U"):
            vi = T.axis.spatial(4, i)
            A[vi] = {value}
"""

LOCAL = """
    B = T.alloc_buffer((4,), "int32")
"""


def _filled(place: str, at: str, store: str = "D[vi] = D[vi] + 1", store_x: str = "D[vi] = D[vi] + vx") -> str:
    return PLACES[place].format(
        at=at, at_vo=at.replace("i", "vo"), at_vi=at.replace("i", "vi"), store=store, store_x=store_x
    )


def after_in_a_loop(place: str) -> str:
    return HEAD + "    for i in range(4):" + _filled(place, "3 - i") + OVERWRITES.format(value="2 - vi")


def before_in_a_loop(place: str) -> str:
    return HEAD + "    for i in range(4):" + OVERWRITES.format(value="2 - vi") + _filled(place, "3 - i")


def after_in_a_nest(place: str) -> str:
    second = OVERWRITES.format(value="2 - vi")
    return HEAD + "    for i in range(4):" + _filled(place, "3 - i") + "    for i in range(4):" + second


def before_in_a_nest(place: str) -> str:
    first = OVERWRITES.format(value="2 - vi")
    return HEAD + "    for i in range(4):" + first + "    for i in range(4):" + _filled(place, "3 - i")


def of_a_local_buffer(place: str) -> str:
    first = OVERWRITES.format(value="E[vi]").replace("A[", "B[")
    steered = _filled(place, "3 - i", "D[vi] = B[vi] + 1", "D[vi] = B[vi] + vx").replace("A[", "B[")
    return HEAD + LOCAL + "    for i in range(4):" + first + "    for i in range(4):" + steered


def consumer_of_a_local_buffer(place: str) -> str:
    """The steered block reads what another block makes, and what steers it stays."""
    first = OVERWRITES.format(value="E[vi] * 2").replace("A[", "B[")
    steered = _filled(place, "i", "D[vi] = B[vi] + 1", "D[vi] = B[vi] + vx")
    return HEAD + LOCAL + "    for i in range(4):" + first + "    for i in range(4):" + steered


def producer_of_a_local_buffer(place: str) -> str:
    steered = _filled(place, "i", "B[vi] = E[vi] + 1", "B[vi] = E[vi] + vx")
    zero = """    for i in range(4):
        with T.block("Z"):
            vi = T.axis.spatial(4, i)
            B[vi] = 7
"""
    last = OVERWRITES.format(value="B[vi] * 2").replace("A[vi]", "D[vi]")
    return HEAD + LOCAL + zero + "    for i in range(4):" + steered + "    for i in range(4):" + last


PROGRAMS = [
    after_in_a_loop,
    before_in_a_loop,
    after_in_a_nest,
    before_in_a_nest,
    of_a_local_buffer,
    consumer_of_a_local_buffer,
    producer_of_a_local_buffer,
]


def _interchange(s: tir.Schedule, block: str) -> None:
    loop = s.get_loops(block)[0]
    outer, inner = s.split(loop, [2, 2])
    s.reorder(inner, outer)


def _first(s: tir.Schedule, block: str) -> object:
    return s.get_loops(block)[0]


def _buffers(s: tir.Schedule, block: str, side: str) -> list[str]:
    return list(dict.fromkeys(r.buffer.name for r in getattr(s.get(block), side)))


def steps() -> dict[str, object]:
    made = {}
    for b in ("D", "U", "O", "Z"):
        made[f"parallel {b}"] = lambda s, b=b: s.parallel(_first(s, b))
        made[f"vectorize {b}"] = lambda s, b=b: s.vectorize(_first(s, b))
        made[f"vectorize inner {b}"] = lambda s, b=b: s.vectorize(s.get_loops(b)[-1])
        made[f"bind {b}"] = lambda s, b=b: s.bind(_first(s, b), "threadIdx.x")
        made[f"fission {b}"] = lambda s, b=b: s.fission(_first(s, b))
        made[f"compute_root {b}"] = lambda s, b=b: s.compute_root(b)
        made[f"interchange {b}"] = lambda s, b=b: _interchange(s, b)
        made[f"compute_inline {b}"] = lambda s, b=b: s.compute_inline(b)
        made[f"reverse_compute_inline {b}"] = lambda s, b=b: s.reverse_compute_inline(b)
        made[f"split {b}"] = lambda s, b=b: s.split(_first(s, b), [None, 3])
        made[f"unroll {b}"] = lambda s, b=b: s.unroll(_first(s, b))
        made[f"blockize {b}"] = lambda s, b=b: s.blockize(_first(s, b))
        made[f"rolling {b}"] = lambda s, b=b: s.rolling_buffer(b, 0)
        for name in ("A", "B", "D", "E"):
            made[f"cache_write {b} {name}"] = lambda s, b=b, name=name: s.cache_write(b, name, "local")
            made[f"cache_read {b} {name}"] = lambda s, b=b, name=name: s.cache_read(b, name, "local")
            made[f"cache_inplace {b} {name}"] = lambda s, b=b, name=name: s.cache_inplace(b, name, "local")
            made[f"stage {b} {name}"] = lambda s, b=b, name=name: s.stage(b, name, _first(s, b))
            made[f"reindex read {b} {name}"] = lambda s, b=b, name=name: s.reindex(b, ("read", name))
            made[f"reindex write {b} {name}"] = lambda s, b=b, name=name: s.reindex(b, ("write", name))
            made[f"read_at {b} {name}"] = lambda s, b=b, name=name: s.read_at(_first(s, b), b, name, "local")
            made[f"write_at {b} {name}"] = lambda s, b=b, name=name: s.write_at(_first(s, b), b, name, "local")
        # another layout of a parameter would change what the caller has to give
        made[f"layout {b}"] = lambda s, b=b: s.transform_layout(
            b, ("write" if "B" in _buffers(s, b, "writes") else "read", "B"), lambda i: (3 - i,)
        )
        for to in ("D", "U", "O", "Z"):
            if b != to:
                made[f"compute_at {b} {to}"] = lambda s, b=b, to=to: s.compute_at(b, _first(s, to))
                made[f"reverse_compute_at {b} {to}"] = lambda s, b=b, to=to: s.reverse_compute_at(b, _first(s, to))
                made[f"merge {b} {to}"] = lambda s, b=b, to=to: s.merge(_first(s, b), _first(s, to))
    return made


STEPS = steps()


def run(built, values: np.ndarray) -> list[np.ndarray]:
    arrays = [values.astype("int32"), np.arange(4, dtype="int32") * 10, np.array([1, 0, 2, 0], "int32")]
    built(*arrays)
    return arrays


DATA = [np.array([1, 2, 3, 4]), np.array([1, 0, 1, 0]), np.array([0, 0, 1, 1])]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_accepted_steps_compute_the_same(program, place):
    func = parse(program(place))
    plain = tir.build(func, "interpreter")
    wanted = [run(plain, data) for data in DATA]
    wrong = []
    start = tir.Schedule(func)
    for name, step in STEPS.items():
        s = start.copy()
        try:
            step(s)
        except tir.ScheduleError as error:
            if "a fault inside" in error.rule:
                wrong.append(f"{name}: {error}")
            continue
        if any(f.thread for f in s.state.index.loops.values() for f in [f.node]) or "bind" in name:
            continue
        built = tir.build(s.mod, "interpreter")
        for data, want in zip(DATA, wanted):
            try:
                got = run(built, data)
            except tir.RunError as error:
                wrong.append(f"{name}: {str(error).splitlines()[0]}")
                break
            if not all(np.array_equal(x, y) for x, y in zip(got, want)):
                wrong.append(f"{name}: {got[:2]} instead of {want[:2]}")
                break
    assert not wrong, "\n".join(wrong)


GUARDED = {
    "memory": "M[i] > 0",
    "division": "20 // (10 - i) > 3",
    "a binding": "True",
}

TAILS = {
    "split": lambda s: s.split("i", [None, 4]),
    "split twice": lambda s: s.split(s.split("i", [None, 4])[1], [None, 3]),
    "split without unit iterators": lambda s: s.split("i", [None, 4], preserve_unit_iters=False),
    "tile": lambda s: s.tile("B", [4]),
    "parallel": lambda s: s.parallel(s.split("i", [None, 4])[0]),
    "vectorize": lambda s: s.vectorize(s.split("i", [None, 4])[1]),
    "unroll": lambda s: s.unroll(s.split("i", [None, 4])[1]),
}


def guarded(condition: str) -> tir.PrimFunc:
    at = "M[i] % 10" if condition == "True" else "i"
    return parse(f"""
@T.prim_func
def f(M: T.Buffer((10,), "int32"), A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            vx = T.axis.opaque(10, {at})
            T.where({condition})
            B[vi] = A[vx] * 2
""")


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("condition", GUARDED)
def test_the_guard_of_a_tail_comes_before_what_would_fail_there(condition, tail, target):
    func = guarded(GUARDED[condition])
    s = tir.Schedule(func)
    TAILS[tail](s)
    m, a = np.arange(10, dtype="int32") % 3, np.arange(10, dtype="int32")
    wanted, got = np.zeros(10, "int32"), np.zeros(10, "int32")
    tir.build(func, target)(m, a, wanted)
    tir.build(s.mod, target)(m, a, got)
    assert got.tolist() == wanted.tolist()


def test_what_is_inlined_goes_into_predicates_too():
    s = tir.Schedule(parse(of_a_local_buffer("predicate")))
    s.compute_inline("U")
    assert "T.where(E[3 - i] > 0)" in s.mod.script()


def test_what_a_condition_reads_cannot_be_inlined():
    s = tir.Schedule(parse(of_a_local_buffer("if")))
    with pytest.raises(tir.ScheduleError, match=r"`if B\[3 - i\] > 0` reads buffer B outside of a block"):
        s.compute_inline("U")


def test_a_condition_around_a_block_moves_with_it():
    func = parse(consumer_of_a_local_buffer("if"))
    s = tir.Schedule(func)
    s.reverse_compute_at("D", s.get_loops("U")[0])
    assert "T.where(A[i] > 0)" in s.mod.script()
    assert_same_result(func, s.mod)


def test_a_predicate_moves_with_its_block():
    s = tir.Schedule(parse(consumer_of_a_local_buffer("predicate")))
    s.reverse_compute_at("D", s.get_loops("U")[0])
    assert "T.where(A[i] > 0)" in s.mod.script()


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_what_a_predicate_reads_of_an_earlier_iteration_is_not_private_to_an_iteration(target):
    func = parse("""
@T.prim_func
def f(M: T.Buffer((3,), "int32"), D: T.Buffer((3,), "int32")):
    P = T.alloc_buffer((3,), "int32")
    for i in range(3):
        with T.block("P"):
            vi = T.axis.spatial(3, i)
            P[vi] = M[vi]
        with T.block("D"):
            vi = T.axis.spatial(3, i)
            T.where(P[0] > 0)
            D[vi] = P[vi]
""")
    d = np.zeros(3, "int32")
    tir.build(func, target)(np.array([1, 2, 3], "int32"), d)
    assert d.tolist() == [1, 2, 3]


ENDS_ITSELF = """
@T.prim_func
def f(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        for k in {}:
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(B[i] + k < 5)
                B[vi] = B[vi] + A[vi, vk]
"""


def test_a_reduction_whose_updates_decide_on_the_next_ones_is_not_shared_by_threads():
    with pytest.raises(tir.ScheduleError, match="depends on memory that the block writes"):
        tir.Schedule(parse(ENDS_ITSELF.format("range(8)")), target="cuda").bind("k", "threadIdx.x")
    bound = parse(ENDS_ITSELF.format('T.thread_binding(8, thread="threadIdx.x")'))
    with pytest.raises(tir.BuildError, match="depends on memory that the block writes"):
        tir.lower(bound, target="cuda")


RAGGED = """
@T.prim_func
def main(P: T.Buffer((32,), "int32"), C: T.Buffer((8, 4), "int32"), D: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("W"):
            v = T.axis.spatial(8, i)
            B[v] = 1
            P[v + {ahead}] = 3
    for i in range(8):
        for j in range(i, i + 4):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                w = T.axis.spatial(4, j - i)
                T.where(P[j] > 2)
                C[v, w] = 7
        with T.block("D"):
            v = T.axis.spatial(8, i)
            D[v] = B[v]
"""


def test_a_predicate_in_a_loop_that_begins_at_another_reads_what_that_iteration_reads():
    """Iteration i reads P up to i + 3, and what it needs was written by iterations before it."""
    sch = schedule(RAGGED.format(ahead=4))
    sch.compute_at("W", sch.get_loops("D")[0])
    same(sch)
    sch = schedule(RAGGED.format(ahead=3))
    refused(
        lambda: sch.compute_at("W", sch.get_loops("D")[0]), "C at (v=0, w=3) may read P[3]", "W at (v=0) writes P[3]"
    )


CHANGED = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), M: T.Buffer((1,), "int32"), O: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2
    for one in range(1):
        with T.block("write"):
            vo = T.axis.spatial(1, one)
            M[vo] = 1 - M[vo]
    for i in range(8):
        with T.block("use"):
            vi = T.axis.spatial(8, i)
            T.where(M[0] > 0)
            O[vi] = B[vi] + A[vi]
"""


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize("buffer", ["A", "B"])
def test_a_copy_is_made_under_no_condition_that_changes_meanwhile(buffer, flag):
    func = parse(CHANGED)
    sch = tir.Schedule(func)
    sch.reindex_cache_read("use", buffer, "local", lambda i: (i // 2, i % 2))
    for mod in (func, sch.mod):
        out = np.zeros(8, "int32")
        tir.interp.run(mod, np.arange(8, dtype="int32"), np.array([flag], "int32"), out)
        assert out.tolist() == ([3 * i for i in range(8)] if flag == 0 else [0] * 8)
