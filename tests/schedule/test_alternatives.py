"""A refused step names legal variants of the call, found when the error is shown."""

import re

import pytest
from prim_checks import schedule

import tir

SCAN = """
@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), idx: T.Buffer((8,), "int32"), O: T.Buffer((8, 8), "int32")):
    for i, j in T.grid(8, 8):
        with T.block("scan"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, T.max(vj - 1, 0)] + 1
    for x, y in T.grid(8, 8):
        with T.block("scatter"):
            vx, vy = T.axis.remap("SS", [x, y])
            O[idx[vx], vy] = A[vx, vy]
"""


def refusal(call) -> tir.ScheduleError:
    with pytest.raises(tir.ScheduleError) as caught:
        call()
    return caught.value


def test_another_loop_is_named():
    sch = schedule(SCAN)
    assert refusal(lambda: sch.parallel("j")).legal == 'parallel("i")'
    assert str(refusal(lambda: sch.parallel("j"))).endswith('legal: parallel("i")')


def test_a_call_is_named_once():
    text = SCAN.replace("for x, y", "for i, j").replace("[x, y]", "[i, j]")
    for step in ("fuse", "reorder"):
        named = re.findall(r"\w+\([^)]*\)", refusal(lambda: getattr(schedule(text), step)()).legal)
        assert named and len(named) == len(set(named))


def test_the_named_call_is_accepted_as_it_is_written():
    text = SCAN.replace("for x, y", "for i, j").replace("[x, y]", "[i, j]")
    sch = schedule(text)
    legal = refusal(lambda: sch.parallel("scan.j")).legal
    assert legal == 'parallel("scan.i")'
    eval(f"sch.{legal}")
    assert "T.parallel" in sch.script()


def test_another_order_is_named():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8, 8), "int32")):
    for i in range(8):
        for j in range(i):
            for k in range(1):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                    A[vi, vj] = vk
""")
    legal = 'reorder("k", "i", "j"), reorder("i", "k", "j"), reorder("k", "j")'
    assert refusal(lambda: sch.reorder("k", "j", "i")).legal == legal


def test_what_cannot_be_proved_may_be_forced():
    sch = schedule(SCAN)
    error = refusal(lambda: sch.cache_write("scatter", 0, "local"))
    assert error.legal == "unsafe=True, if you know that it holds"


def test_a_refutation_is_not_forced():
    assert "unsafe" not in str(refusal(lambda: schedule(SCAN).parallel("j")))


def test_variants_are_tried_when_the_error_is_shown(monkeypatch):
    from tir.schedule import alternatives

    tried = []
    monkeypatch.setattr(alternatives, "_variants", lambda *given: tried.append(given) or iter(()))
    error = refusal(lambda: schedule(SCAN).parallel("j"))
    assert not tried
    assert (
        str(error).endswith("legal: nothing; this call has no other loop, block or buffer to choose")
        and len(tried) == 1
    )


RECURRENCE = """
@T.prim_func
def main(X: T.Buffer((9, 9), "int32"), flag: T.int32):
    for i, j in T.grid(8, 8):
        with T.block("X"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vi + 1, vj] = X[vi, vj + 1] + 1
"""


def test_a_step_that_prepares_for_the_call_is_named_with_the_loops_it_renames():
    sch = schedule(RECURRENCE)
    assert (
        refusal(lambda: sch.reorder(*reversed(sch.get_loops("X")))).legal == 'reorder("j_s", "i") after skew("i", "j")'
    )
    sch.skew("i", "j")
    sch.reorder("j_s", "i")


def test_another_step_to_the_same_end_is_named():
    program = """
@T.prim_func
def main(C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = vi
    for i in range(8):
        with T.block("B2"):
            vi = T.axis.spatial(8, i)
            B[vi] = B[vi] + 1
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
"""
    sch = schedule(program.replace("C[vi] = B[vi]", "C[vi] = vi"))
    assert refusal(lambda: sch.cache_read("B2", "B", "local")).legal == 'cache_inplace("B2", "B", "local")'
    sch = schedule(program)
    assert refusal(lambda: sch.compute_inline("B")).legal == 'compute_at("B", "B2.i")'


def test_functions_of_indices_are_written_in_full():
    legal = refusal(lambda: schedule(SCAN).transform_layout("scan", "A", lambda i: (i,))).legal
    assert legal == 'transform_layout("scan", "A", lambda i, j: [j, i])'


def test_where_nothing_is_legal_the_other_choices_are_named_with_the_reasons():
    sch = schedule(RECURRENCE)
    assert str(refusal(lambda: sch.rfactor("i", 0))).endswith(
        "legal: nothing; other choices are refused, too\n"
        '  rfactor("j", 0): loop `j` does not only reduce: block `X` uses it for vj'
    )
