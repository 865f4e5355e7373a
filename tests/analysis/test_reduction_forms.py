"""One notion of a reduction: what reorder knows to commute, rfactor, bind and decompose_reduction know, too."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.analysis.dependence.reduction_summary import collapse_reductions
from tir.analysis.index import index_of
from tir.analysis.reduction_forms import NotAReduction, Reduction
from tir.script import parse
from tir.stmt import Block, For
from tir.visit import walk

UPDATES = {  # update of B[vi] with A[vi, vk], and what T.init starts it from
    "sum": ("B[vi] + A[vi, vk]", "0"),
    "difference": ("B[vi] - A[vi, vk]", "3"),
    "product": ("B[vi] * A[vi, vk]", "1"),
    "maximum": ("T.max(A[vi, vk], B[vi])", "-5"),
    "and": ("B[vi] & A[vi, vk]", "-1"),
    "or": ("A[vi, vk] | B[vi]", "8"),
    "xor": ("B[vi] ^ A[vi, vk]", "0"),
    "several_terms": ("(B[vi] + A[vi, vk]) + 1", "0"),
    "several_signs": ("(B[vi] - A[vi, vk]) + (W[vi] - 1)", "2"),
    "several_xor": ("(A[vi, vk] ^ W[vi]) ^ (B[vi] ^ 5)", "0"),
    "where": ("T.if_then_else(A[vi, vk] > W[vi], B[vi] + A[vi, vk], B[vi])", "0"),
}


def program(update: str, init: str | None, guard: str = "") -> tir.PrimFunc:
    start = f"\n                with T.init():\n                    B[vi] = {init}" if init is not None else ""
    store = f"if {guard}:\n                    B[vi] = {update}" if guard else f"B[vi] = {update}"
    return parse(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), W: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        for k in range(8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k]){start}
                {store}
""")


def arguments() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(1, 4, (4, 8)).astype("int32"), rng.integers(0, 3, 4).astype("int32"), np.full(4, 7, "int32")]


def result(module) -> np.ndarray:
    arrays = arguments()
    module(*arrays)
    return arrays[2]


def require_same(func: tir.PrimFunc, schedule: tir.Schedule, target: str) -> None:
    want = result(tir.build(func, "interpreter"))
    for engine in ("interpreter", target):
        np.testing.assert_array_equal(result(tir.build(schedule.mod, engine)), want, err_msg=engine)


@pytest.mark.parametrize("with_init", (True, False))
@pytest.mark.parametrize("name", UPDATES)
def test_every_primitive_knows_the_same_reductions(name, with_init):
    update, init = UPDATES[name]
    func = program(update, init if with_init else None)
    sch = tir.Schedule(func)
    sch.reorder("k", "i")
    require_same(func, sch, "llvm")
    for loop in ("k_0", "k_1"):
        sch = tir.Schedule(func)
        sch.split("k", [2, None], names=["k_0", "k_1"])
        sch.rfactor(loop, 0)
        require_same(func, sch, "llvm")
    if with_init:
        sch = tir.Schedule(func)
        sch.decompose_reduction("B", "i")
        sch.reorder("k", sch.get_loops("B_update")[0])
        require_same(func, sch, "llvm")
    for bound in (["k"], ["k_0"], ["k_1"], ["k_0", "k_1"]):
        sch = tir.Schedule(func, target="cuda")
        if bound != ["k"]:
            sch.split("k", [2, None], names=["k_0", "k_1"])
        sch.bind("i", "blockIdx.x")
        for loop, axis in zip(bound, "xy"):
            sch.bind(loop, f"threadIdx.{axis}")
        require_same(func, sch, "cuda-sim")


@pytest.mark.parametrize("update", ("B[vi] + A[vi, vk]", "B[vi] ^ A[vi, vk]", "T.max(B[vi], A[vi, vk])"))
def test_an_update_under_a_condition(update):
    func = program(update, "0", "A[vi, vk] > W[vi]")
    sch = tir.Schedule(func)
    sch.rfactor("k", 0)
    require_same(func, sch, "llvm")
    sch = tir.Schedule(func, target="cuda")
    sch.bind("i", "blockIdx.x")
    sch.bind("k", "threadIdx.x")
    require_same(func, sch, "cuda-sim")


@pytest.mark.parametrize(
    ("update", "guard", "why"),
    (
        ("A[vi, vk] - B[vi]", "", "is not a combination of the old result"),
        ("B[vi] * 2 + A[vi, vk]", "", "is not a combination of the old result"),
        ("B[vi] + A[vi, vk] * B[0]", "", "a term of `B[vi] = B[vi] + A[vi, vk] * B[0]` reads a result itself"),
        ("A[vi, vk]", "", "is not a combination of the old result"),
        ("B[vi] + A[vi, vk]", "B[vi] < 9", "is not a combination of the old result"),
        ('T.Cast("int32", T.Cast("float32", B[vi]) + 0.5)', "", "converts the result to int32 after each update"),
    ),
)
def test_what_is_no_reduction_says_why(update, guard, why):
    func = program(update, "0", guard)
    found = Reduction.of(index_of(func).blocks["B"].block)
    assert isinstance(found, NotAReduction)
    assert why in found.reason
    with pytest.raises(tir.ScheduleError) as error:
        tir.Schedule(func).rfactor("k", 0)
    assert why in str(error.value)
    with pytest.raises(tir.ScheduleError):
        tir.Schedule(func, target="cuda").bind("k", "threadIdx.x")


def test_the_parts_of_a_reduction():
    found = Reduction.of(index_of(program("(B[vi] - A[vi, vk]) + (W[vi] - 1)", "2")).blocks["B"].block)
    assert isinstance(found, Reduction)
    (update,) = found.updates
    assert update.combination is not None
    assert update.combination.combiner.name == "+"
    assert [(repr(t.value), t.negated) for t in update.combination.terms] == [
        ("A[vi, vk]", True),
        ("W[vi]", False),
        ("1", True),
    ]
    assert [b.name for b in found.targets] == ["B"]
    assert [repr(e) for e in found.identity] == ["0"]
    assert not found.starts_at_identity() and not found.is_idempotent and not found.selects


EXTENTS = {"i": 4, "k": 8, "q": 2, "r": 4, "u": 1, "w": 1, "x": 7, "y": 3}


def reduction(loops: str, row: str, term: str, guard: str, start: bool) -> tir.PrimFunc:
    """B[row] sums A over ``term``, in loops of these letters, the outermost first."""
    depth = ["    " * (n + 1) for n in range(len(loops) + 2)]
    lines = [f"{depth[n]}for {name} in range({EXTENTS[name]}):" for n, name in enumerate(loops)]
    inside = depth[len(loops)]
    lines += [f'{inside}with T.block("B"):', f"{inside}    vi = T.axis.spatial(4, {row})"]
    lines += [f"{inside}    vk = T.axis.reduce(8, {term})", f"{inside}    T.where({guard})" if guard else ""]
    lines += [f"{inside}    with T.init():", f"{inside}        B[vi] = 0.0"] if start else []
    lines += [f"{inside}    B[vi] += A[vi, vk]"]
    head = '@T.prim_func\ndef main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):'
    return parse("\n".join((head, *filter(None, lines))))


@pytest.mark.parametrize(
    ("loops", "row", "term", "guard", "start", "collapsed"),
    [
        ("ik", "i", "k", "", True, ("i", "k")),
        ("iuk", "i", "k", "", True, ("i", "uk")),
        ("iuwk", "i", "k", "", True, ("i", "uwk")),
        ("uik", "i", "k", "", True, ("ui", "k")),  # the loop of one iteration is not next to the reduction
        ("uk", "2", "k", "", True, ("", "uk")),
        ("k", "2", "k", "", True, ("", "k")),
        ("iku", "i", "k", "", True, ("i", "ku")),
        ("ki", "i", "k", "", True, ("i", "k")),  # rows trade places with the reduction
        ("qir", "i", "q * 4 + r", "", True, ("i", "qr")),
        ("iqr", "i", "q * 4 + r", "", True, ("i", "qr")),
        ("irq", "i", "q * 4 + r", "", True, ("i", "rq")),
        ("iqr", "i", "r * 2 + q", "", True, ("i", "qr")),
        ("ik", "i", "k", "i < 3", True, ("i", "k")),
        ("ik", "i", "k", "", False, None),  # nothing to start from
        ("ik", "i", "k", "k < 7", True, None),  # a part of the domain
        ("ix", "i", "x", "", True, None),
        ("ix", "i", "x + 1", "", True, None),
        ("iyr", "i", "T.min(y * 4 + r, 7)", "", True, None),  # a term twice
        ("iqr", "i", "q * 3 + r", "", True, None),
        ("kr", "r", "7 - k", "", True, None),  # from its end
        ("ikr", "r", "k", "", True, ("ir", "k")),  # each row several times: every time from the start
        ("rk", "k // 2", "k", "", True, None),  # the row follows the reduction
    ],
)
def test_a_whole_reduction_is_one_write(loops, row, term, guard, start, collapsed):
    func = reduction(loops, row, term, guard, start)
    made = collapse_reductions(func)
    if collapsed is None:
        assert made is func
        return
    block = next(n for n in walk(made.body) if isinstance(n, Block) and n.name == "B")
    inside = [n.loop_var.name for n in walk(block.body) if isinstance(n, For)]
    outside = [n.loop_var.name for n in walk(made.body) if isinstance(n, For)][: -len(inside)]
    assert ("".join(outside), "".join(inside)) == collapsed
    assert block.init is None and [i.iter_type for i in block.iter_vars] == ["spatial"]
