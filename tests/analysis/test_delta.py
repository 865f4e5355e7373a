"""Memory that a step left alone: what is not asked again would have had the same answer."""

from __future__ import annotations

import pytest

from tests.fuzz.steps import EVERY, run
from tests.gpu_examples import load
from tests.prim_checks import schedule
from tir.expr import TRUE, IntImm
from tir.node import frozendict
from tir.schedule import invariants
from tir.schedule.invariants import Delta, Keeps
from tir.schedule.invariants.changed_accesses import MARKED
from tir.stmt import Block, BlockRealize, seq
from tir.visit import buffers_in, rewrite

CHAIN = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), D: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8), "float32")
    C = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] * 2.0
    for i, j in T.grid(8, 8):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[v, w] + 1.0
    for i, j in T.grid(8, 8):
        with T.block("D"):
            v, w = T.axis.remap("SS", [i, j])
            D[v, w] = C[v, w] + 1.0
"""


def left_alone(step) -> list[str]:
    sch = schedule(CHAIN)
    before = sch.func
    step(sch)
    same = Delta(before, sch.func).unchanged_buffers
    return sorted({b.name for b in buffers_in(sch.func.body) if b.data in same})


@pytest.mark.parametrize(
    ("step", "names"),
    [
        (lambda s: s.split(s.get_loops("D")[0], [None, 2]), ["A", "B"]),
        (lambda s: s.annotate("B", "note", 1), ["C", "D"]),
        (lambda s: s.annotate(s.get_loops("B")[0], "note", 1), ["A", "B", "C", "D"]),
        (lambda s: s.parallel(s.get_loops("B")[0]), ["C", "D"]),
        (lambda s: s.unroll(s.get_loops("B")[0]), ["A", "B", "C", "D"]),
        (lambda s: s.bind(s.get_loops("B")[0], "blockIdx.x"), ["C", "D"]),
        (lambda s: s.reorder(*reversed(s.get_loops("C"))), ["A", "D"]),
        (lambda s: s.compute_at("B", s.get_loops("C")[0]), ["C", "D"]),
        (lambda s: s.cache_read("D", 0, "local"), ["A", "B"]),
        (lambda s: s.set_scope("C", 0, "shared"), ["A"]),
        (lambda s: s.merge(s.get_loops("C")[0], s.get_loops("D")[0]), ["A"]),
    ],
)
def test_what_is_left_alone(step, names):
    found = left_alone(step)
    assert [n for n in found if n in "ABCD"] == names


def test_a_loop_taken_apart_and_the_same_loop_are_different_uses():
    sch = schedule(CHAIN)
    sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    before = sch.func
    sch.fission(sch.get_loops("B")[0], 1)
    pointer = next(b for b in buffers_in(before.body) if b.name == "B").data
    assert pointer not in Delta(before, sch.func).unchanged_buffers


SUMS = """
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
"""


class _Everything(Delta):
    """A delta that shows nothing to be as it was."""

    unchanged_buffers = unchanged_accesses = frozenset()


def _everything(delta: Delta) -> Delta:
    return _Everything(
        delta.before,
        delta.after,
        primitive=delta.primitive,
        name=delta.name,
        modules=delta.modules,
        target=delta.target,
    )


def _agree(monkeypatch) -> list[str]:
    """From now on, each invariant is asked after each step in full as well, whatever the step keeps; gives the names of
    those that could leave something out."""
    asked: list[str] = []
    holds = invariants.Invariant.holds

    def both(self, after, delta):
        quick = holds(self, after, delta)
        if not isinstance(delta, _Everything) and delta.before is not None:
            full = holds(self, after, _everything(delta))
            assert (quick is None) == (full is None), (self.name, delta.primitive)
            if delta.unchanged_buffers:
                asked.append(self.name)
        return quick

    monkeypatch.setattr(invariants.Invariant, "holds", both)
    every = lambda known, keeps, kinds: [each for each in known if not (each.proof and keeps >= Keeps.MEANING)]
    monkeypatch.setattr(invariants, "_in_question", every)
    return asked


def test_random_schedules_get_the_same_answers(monkeypatch):
    asked = _agree(monkeypatch)
    report = run(24, seed=7100, steps=10, llvm_every=0, families=EVERY, log=False)
    assert not report.failures, report.failures
    assert asked.count("parallel_loops") > 10


@pytest.mark.parametrize("name", ["sgemm", "softmax", "tensor_core_gemm"])
def test_kernels_get_the_same_answers(monkeypatch, name):
    asked = _agree(monkeypatch)
    load(name).small()
    assert asked.count("thread_memory") > 5 and asked.count("bound_loops") > 5


@pytest.mark.parametrize(
    ("at", "bound"), [("k_0", None), ("k_0", "i_1"), ("k_0", "k_0"), ("k_0", "k_1"), ("k_1", None), ("k_1", "i_1")]
)
def test_decomposed_reductions_get_the_same_answers(monkeypatch, bound, at):
    asked = _agree(monkeypatch)
    sch = schedule(SUMS, target="cuda")
    copy = sch.cache_write("C", 0, "local")
    for loop, factor in (("C.i", 4), ("C.k", 2)):
        sch.split(loop, [None, factor])
    sch.bind("i_0", "blockIdx.x")
    sch.reverse_compute_at(copy, "i_1" if bound == "i_1" else "i_0")
    if bound is not None:
        sch.bind(bound, "threadIdx.x")
    sch.decompose_reduction("C", at)
    assert "thread_memory" in asked or bound is None


def test_a_statement_object_that_stands_in_two_places():
    """The body of loop B again in another loop: another use of the memory."""
    sch = schedule(CHAIN)
    loop = sch.get(sch.get_loops("B")[0])
    other = loop.replace(loop_var=loop.loop_var.replace())
    before, after = (sch.func.with_body(seq([loop, *more, other])) for more in ((), (other,)))
    assert MARKED.of(before.body) != MARKED.of(after.body)
    delta = Delta(before, after)
    assert not any(b.data in delta.unchanged_buffers for b in buffers_in(loop))


def test_what_an_init_keeps_is_left_alone():
    """An init of two nests, the second of which is marked."""
    first, second, last = schedule(CHAIN).func.body.block.body.stmts
    root = schedule(CHAIN).func
    programs = []
    for nest in (second, second.replace(kind="parallel")):
        block = Block((), (), (), "outer", last, seq([first, nest]))
        programs.append(root.with_body(BlockRealize((), TRUE, block)))
    same = Delta(*programs).unchanged_buffers
    assert {b.name for b in buffers_in(programs[0].body) if b.data in same} == {"A", "D"}


def test_threads_of_another_axis_are_another_use():
    sch = schedule(CHAIN)
    sch.bind(sch.get_loops("B")[0], "threadIdx.x")
    before, loop = sch.func, sch.get(sch.get_loops("B")[0])
    moved = sch.func.with_body(rewrite(before.body, lambda n: n.replace(thread="threadIdx.y") if n is loop else None))
    assert {b.name for b in buffers_in(moved.body) if b.data in Delta(before, moved).unchanged_buffers} == {"C", "D"}


NESTED = """
@T.prim_func
def main(P: T.Buffer((8,), "int32"), A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i in range(8):
        with T.block("outer"):
            v = T.axis.spatial(8, {value})
            T.where({condition})
            {view}
            for j in range({loop}):
                with T.block("inner"):
                    w = T.axis.spatial(8, j)
                    {use}[v, w] = A[v, w]
            {more}
"""
PLAIN = {"value": "i", "condition": "i < 8", "view": "", "loop": "8", "use": "B", "more": ""}


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        ({}, ["P"]),
        ({"value": "P[i]"}, []),
        ({"condition": "P[i] < 8"}, []),
        ({"view": "W = T.match_buffer(B[0:8, 0:8], (8, 8))", "use": "W"}, ["P"]),
        ({"loop": "P[v]"}, []),
        ({"loop": "P[v], 8"}, []),
        ({"more": "B[v, 0] = 0.0"}, ["P"]),
    ],
)
def test_what_a_marked_nest_accesses_outside_of_its_blocks_is_not_left_alone(parts, names):
    sch = schedule(NESTED.format(**PLAIN | parts))
    before = sch.func
    sch.parallel("i", unsafe=True)
    same = Delta(before, sch.func).unchanged_buffers
    assert [b.name for b in before.buffer_map.values() if b.data in same] == names


TILES = """
@T.prim_func
def main(P: T.Buffer((8,), "int32"), A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i in range(8):
        with T.block("outer"):
            v = T.axis.spatial(8, i)
            T.where({condition})
            L = T.alloc_buffer((8,), "float32")
            {view}
            for j in range({loop}):
                with T.block("in"):
                    w = T.axis.spatial(8, j)
                    L[w] = A[v, w]
                with T.block("out"):
                    w = T.axis.spatial(8, j)
                    B[v, w] = L[w]
            {more}
"""
MORE = """with T.block("more"):
                {}"""
KNOWN = {"condition": "i < 7", "view": "", "loop": "8", "more": ""}
READS = KNOWN | {"condition": "P[i] < 7", "loop": "P[v]"}
VIEWED = KNOWN | {"view": 'W = T.match_buffer(P[v : v + 1], (1,), "int32")', "more": MORE.format("W[0] = 0")}
TWO = KNOWN | {"more": MORE.format("P[v] = 0")}


def _allocated_around(sch):
    outer, root = sch.get("outer"), sch.get("root")
    return [(root, {"alloc_buffers": outer.alloc_buffers}), (outer, {"alloc_buffers": ()})]


def _allocated_twice(sch):
    return [(sch.get("root"), {"alloc_buffers": sch.get("outer").alloc_buffers})]


def _without_more(sch):
    outer = sch.get("outer")
    return [(outer, {"match_buffers": (), "body": outer.body.stmts[0]})]


@pytest.mark.parametrize(
    ("parts", "edits", "names"),
    [
        (READS, lambda s: [(s.get("out"), {"annotations": frozendict(note=1)})], "PA"),
        (KNOWN, lambda s: [(s.get("out"), {"annotations": frozendict(note=1)})], "PA"),
        (KNOWN, lambda s: [(s.func.body.block.body.body, {"predicate": TRUE})], "P"),
        (KNOWN, lambda s: [(s.func.body.block.body.body, {"iter_values": (IntImm(1),)})], "P"),
        (KNOWN, lambda s: [(s.get("j"), {"extent": IntImm(4)})], "P"),
        (KNOWN, _allocated_around, "PAB"),
        (READS, _allocated_around, "PAB"),
        (KNOWN, _allocated_twice, "PAB"),
        (KNOWN | {"more": "B[v, 0] = 0.0"}, _allocated_around, "PAB"),
        (VIEWED, _without_more, ""),
        (TWO, _without_more, "ABL"),
    ],
)
def test_what_an_edit_leaves_alone(parts, edits, names):
    """In both directions: what a program means is not asked."""
    sch = schedule(TILES.format(**parts))
    before, after = sch.func, sch.func
    for old, fields in edits(sch):
        after = after.with_body(rewrite(after.body, lambda n: n.replace(**fields) if n is old else None))
    for delta in (Delta(before, after), Delta(after, before)):
        same = delta.unchanged_buffers
        assert [b.name for b in (*before.buffer_map.values(), *sch.get("outer").alloc_buffers) if b.data in same] == [
            *names
        ]


def test_a_program_that_stays_is_left_alone_whatever_it_has():
    func = schedule(CHAIN[: CHAIN.index("    B =")] + "    for i, j in T.grid(8, 8):\n        D[i, j] = A[i, j]\n").func
    same = Delta(func, func.with_body(func.body)).unchanged_buffers
    assert all(b.data in same for b in buffers_in(func.body))


def test_the_same_accesses_after_another_statement_are_not_left_alone():
    func = schedule(CHAIN).func
    first, second, last = func.body.block.body.stmts
    made = first.replace(annotations=frozendict(note=1))
    before, after = (func.with_body(seq(stmts)) for stmts in ((first, second, last), (second, made, last)))
    same = Delta(before, after).unchanged_buffers
    assert [b.name for b in buffers_in(func.body) if b.data in same] == ["C", "D"]


@pytest.mark.parametrize(
    ("kinds", "names"), [(None, "ijijij"), (("parallel",), "i"), (("serial", "unrolled"), "jijij")]
)
def test_every_loop_of_a_first_program_is_new(kinds, names):
    sch = schedule(CHAIN)
    sch.parallel(sch.get_loops("B")[0])
    sch.unroll(sch.get_loops("D")[1])
    assert "".join(ref.name for ref in Delta(None, sch.func).changed_loops(kinds)) == names
