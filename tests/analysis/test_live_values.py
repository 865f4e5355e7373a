"""Whether a copy is up to date, and whether elements keep their values: proved, refuted with a witness, or unknown."""

from __future__ import annotations

import pytest

from tir.analysis.dependence.live_values import Undisturbed, reads_only_before
from tir.analysis.dependence.tiers import Proved, Refuted, Unknown
from tir.poly import Relation
from tir.script import parse
from tir.visit import buffers_in

COPY = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), p: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    X = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("X"):
            vi = T.axis.spatial(8, i)
            X[vi] = A[vi]
    for i in range(8):
        with T.block("W"):
            vi = T.axis.spatial(8, i)
            A[{place}] = T.float32(0)
    for i in range({end}):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = X[vi + {shift}]
"""


def program(**parts):
    func = parse(COPY.format(**{"place": "vi", "end": 8, "shift": 0, **parts}))
    named = {b.name: b for b in (*func.buffer_map.values(), *buffers_in(func.body))}
    return func, named["A"], named["X"]


def up_to_date(func, buffer, copy):
    return Undisturbed(func, copy, buffer, Relation.identity(1), "an element is written")


def test_a_copy_is_outdated_by_a_write_before_it_is_read():
    func, buffer, copy = program()
    found = up_to_date(func, buffer, copy).answer()
    assert isinstance(found, Refuted)
    assert found.witness[0].endswith("reads A[0]") and found.witness[1].endswith("writes A[0] in between")


def test_a_copy_is_up_to_date_where_other_elements_are_written():
    assert up_to_date(*program(place="vi // 2", end=4, shift=4)).holds()


def test_a_copy_that_may_be_made_again_is_not_up_to_date():
    again = """    for i in range(8):
        with T.block("again"):
            vi = T.axis.spatial(8, i)
            X[vi] = A[vi]
"""
    for condition, answer in (("T.where(p[i] > 0)", False), ("T.where(i < 8)", True)):
        text = COPY.format(place="vi", end=8, shift=0)
        at = text.rindex("    for i in range(8)")
        made = again.replace("            X", f"            {condition}\n            X")
        func = parse(text[:at] + made + text[at:])
        named = {b.name: b for b in (*func.buffer_map.values(), *buffers_in(func.body))}
        assert up_to_date(func, named["A"], named["X"]).holds() is answer


def test_writes_at_places_from_data_leave_it_open_or_refute_it():
    assert not isinstance(up_to_date(*program(place="p[vi]")).answer(), Proved)


def test_a_write_in_between_disturbs_what_is_held():
    func, buffer, copy = program()
    same = Relation.identity(1)
    found = Undisturbed(func, copy, buffer, same, "an element is written").answer()
    assert isinstance(found, Refuted) and found.rule == "an element is written"
    assert Undisturbed(func, copy, buffer, same, "an element is written", own="W").holds()


@pytest.mark.parametrize("index, answer", [("vi", True), ("vi + 1", True), ("7 - vi", False), ("p[vi]", False)])
def test_what_a_statement_reads_before_it_writes(index, answer):
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer((9,), "float32"), p: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[{index}] + T.float32(1)
""")
    (buffer,) = (b for b in func.buffer_map.values() if b.name == "A")
    assert reads_only_before(func, buffer, "A") is answer


def test_what_is_not_affine_is_unknown_with_the_claim():
    func, buffer, copy = program(end="p[0] * p[1]")
    found = up_to_date(func, buffer, copy).answer()
    assert isinstance(found, Unknown)
    assert "cannot prove that no element is written" in found.rule
