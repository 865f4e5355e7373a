"""The schedule object: handles, snapshots, time travel, traces, questions, and primitives from outside."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest
from prim_checks import refused, schedule

import tir
from tir.analysis.index import LoopRef, index_of
from tir.errors import InternalError
from tir.schedule import State, Trace
from tir.schedule.handles import ExprRV
from tir.schedule.primitive import PRIMITIVES, primitive
from tir.script import parse

CHAIN = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16), "float32")
    C = T.alloc_buffer((16, 16), "float32")
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(16, 16):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] + C[vi, vj]
"""


@pytest.fixture
def sch() -> tir.Schedule:
    return tir.Schedule(parse(CHAIN))


def names(handles) -> list[str]:
    return [h.name for h in handles]


def test_queries(sch):
    assert names(sch.get_child_blocks("root")) == ["B", "C", "D"]
    assert names(sch.get_producers("D")) == ["B", "C"]
    assert names(sch.get_consumers("B")) == ["C", "D"]
    assert names(sch.get_output_blocks("root")) == ["D"]
    assert names(sch.get_loops(sch.get_block("C"))) == ["i", "j"]
    assert names(sch.get_child_blocks(sch.get_loops("C")[0])) == ["C"]
    assert sch.get(sch.get_block("B")).name == "B"
    with pytest.raises(tir.ScheduleError, match=r'get_block\("E"\): block `E` is not in function `main`\nlegal: '):
        sch.get_block("E")


def test_a_name_of_several_loops_is_ambiguous(sch):
    with pytest.raises(tir.ScheduleError, match=r"3 loops are called `i`: above block `B`, block `C`, block `D`"):
        sch.split("i", [None, 4])
    sch.split("C.i", [None, 4])
    assert names(sch.get_loops("C")) == ["i_0", "i_1", "j"]


def test_a_failed_step_changes_nothing(sch):
    before, trace = sch.mod, len(sch.trace)
    with pytest.raises(tir.ScheduleError):
        sch.fuse("B.i", "C.i")
    assert sch.mod is before and len(sch.trace) == trace and len(sch.history) == 1


def test_undo_redo_copy(sch):
    start = sch.mod
    sch.split("B.i", [None, 4])
    one = sch.mod
    sch.parallel("i_0")
    two = sch.mod
    sch.undo()
    assert sch.mod is one
    other = sch.copy()
    other.unroll("i_0")
    assert sch.mod is one and other.mod is not one
    sch.redo()
    assert sch.mod is two
    with pytest.raises(tir.ScheduleError, match="undo.3.: 2 steps have been taken\nlegal: 0 to 2"):
        sch.undo(3)
    sch.undo(2)
    assert sch.mod is start
    for steps in (1, -1):
        with pytest.raises(tir.ScheduleError, match=f"undo.{steps}.: no step has been taken"):
            sch.undo(steps)
    sch.vectorize("C.j")
    with pytest.raises(tir.ScheduleError, match="redo.1.: no step has been undone"):
        sch.redo()


def test_a_seed_is_a_number(sch):
    with pytest.raises(TypeError, match="`seed` of Schedule is an integer or None, not str"):
        tir.Schedule(sch.mod, seed="x")


def test_queries_without_users_are_not_printed(sch):
    sch.get_loops("C")
    i, j = sch.get_loops("B")
    sch.parallel(i)
    assert str(sch.trace).splitlines()[1:] == ['    i, j = sch.get_loops("B")', "    sch.parallel(i)"]
    assert len(sch.trace) == 3


def test_unchanged_parts_are_shared(sch):
    before = index_of(sch.func).blocks["D"].node
    sch.split("B.i", [None, 4])
    assert index_of(sch.func).blocks["D"].node is before


def test_history_and_diff(sch):
    sch.split("B.i", [None, 4])
    sch.unroll("i_1")
    assert [s.text for s in sch.history] == ["start", 'split("B.i", factors=[None, 4])', 'unroll("i_1")']
    text = sch.diff(color=False)
    assert any(line.startswith("+") and "T.unroll(4)" in line for line in text.splitlines())
    assert "i_0" in sch.diff(1, color=False) and "\x1b[" in sch.diff(color=True)
    with pytest.raises(tir.ScheduleError, match="steps 1 to 2"):
        sch.diff(3)


def test_trace_as_python_and_json(sch):
    block = sch.get_block("C")
    i, j = sch.get_loops(block)
    i_0, i_1 = sch.split(i, [None, 4])
    sch.reorder(i_1, j)
    sch.annotate(block, "note", ["a", 1, {"b": 2.5}])
    sch.parallel("B.i")
    text = sch.trace.as_python()
    assert 'block_C = sch.get_block("C")' in text and "sch.reorder(i_1, j)" in text
    scope: dict = {"tir": tir}
    exec(text, scope)
    again = tir.Schedule(parse(CHAIN))
    scope["apply_trace"](again)
    tir.assert_structural_equal(again.mod, sch.mod)
    loaded = Trace.from_json(json.dumps(sch.trace.as_json()))
    tir.assert_structural_equal(loaded.replay(parse(CHAIN)).mod, sch.mod)


@pytest.mark.parametrize(
    "step",
    [
        lambda sch: sch.fuse("B.i"),
        lambda sch: sch.reorder("B.i", "B.j"),
        lambda sch: sch.parallel("B.i"),
        lambda sch: sch.work_on("main"),
        lambda sch: sch.enter_postproc(),
        lambda sch: sch.sample_categorical([1, 2], [0.5, 0.5]),
    ],
)
def test_an_accepted_step_is_one_of_the_history_also_where_it_changes_nothing(sch, step):
    sch.parallel("B.i")
    sch.vectorize("B.j")
    sch.undo()
    before = sch.state
    step(sch)
    assert tir.structural_equal(sch.mod, before.mod) and (len(sch.history), sch.undone) == (3, 0)
    sch.undo()
    assert sch.state is before and sch.undone == 1


def test_questions_and_refused_steps_leave_what_can_be_redone(sch):
    sch.parallel("B.i")
    after = sch.mod
    sch.undo()
    sch.get_loops("B")
    assert sch.can.fuse("B.i", "B.j") and not sch.can.fuse("B.j", "B.i")
    with pytest.raises(tir.ScheduleError):
        sch.fuse("B.j", "B.i")
    assert sch.undone == 1
    sch.redo()
    assert sch.mod is after


def test_a_handle_from_an_undone_step_goes_by_name(sch):
    sch.split("B.i", [None, 4])
    loops = sch.get_loops("B")
    sch.undo()
    sch.redo()
    sch.unroll(loops[0])
    tir.assert_structural_equal(sch.trace.replay(parse(CHAIN)).mod, sch.mod)


def test_can(sch):
    assert sch.can.fuse("B.i", "B.j")
    answer = sch.can.fuse("B.j", "B.i")
    assert not answer and "outermost first" in answer.reason
    assert len(sch.history) == 1
    survey = sch.can.vectorize()
    assert survey and survey.legal == ["B.i", "B.j", "C.i", "C.j", "D.i", "D.j"]
    with pytest.raises(AttributeError, match="no primitive 'fues'"):
        sch.can.fues("i")
    with pytest.raises(AttributeError, match="did you mean fuse"):
        sch.fues("i")


def test_wrong_arguments(sch):
    with pytest.raises(tir.ScheduleError, match="expected a loop, but block `B` was given\nlegal: i, j"):
        sch.unroll(sch.get_block("B"))
    with pytest.raises(tir.ScheduleError, match="expected a block, but loop `i` was given"):
        sch.get_loops(sch.get_loops("B")[0])
    with pytest.raises(TypeError, match=r"`loop` is a loop \(a handle or a name\), not float"):
        sch.unroll(1.5)
    with pytest.raises(TypeError, match=r"split\(loop, factors=None"):
        sch.split()


def test_error_levels():
    detail, fast, none = (tir.Schedule(parse(CHAIN), error_render_level=level) for level in ("detail", "fast", "none"))
    texts = []
    for s in (detail, fast, none):
        with pytest.raises(tir.ScheduleError) as caught:
            s.split("B.i", [2, 2])
        texts.append(str(caught.value))
    assert "^ here" in texts[0] and "^ here" not in texts[1] and len(texts[2]) <= len(texts[1])


def test_several_functions():
    one = parse(CHAIN)
    mod = tir.IRModule.of({"first": one, "second": one})
    sch = tir.Schedule(mod)
    assert sch.func_working_on == "first"
    sch.work_on("second")
    sch.unroll("B.i")
    assert sch.mod["first"] is one and sch.mod["second"] is not one
    i, _ = sch.get_loops(sch.get_block("B", func_name="first"))
    sch.vectorize(i)
    assert sch.mod["first"] is not one
    with pytest.raises(tir.ScheduleError, match="no function `third`"):
        sch.work_on("third")


def test_a_trace_keeps_lists_as_they_were(sch):
    loops = sch.get_loops("B")
    factors = [None, 4]
    parts = sch.split(loops[0], factors)
    script, history, text = sch.script(), str(sch.history), sch.trace.as_python()
    loops.reverse()
    parts.reverse()
    factors[1] = 2
    assert str(sch.history) == history and sch.trace.as_python() == text
    assert sch.trace.replay(parse(CHAIN)).script() == script


def test_a_trace_of_several_functions_replays():
    mod = tir.IRModule.of({"first": parse(CHAIN), "second": parse(CHAIN)})
    sch = tir.Schedule(mod)
    sch.work_on("first")
    sch.unroll("B.i")
    sch.work_on("second")
    sch.auto_inline()
    sch.work_on("first")
    sch.parallel("C.i")
    tir.assert_structural_equal(sch.trace.replay(mod).mod, sch.mod)
    tir.assert_structural_equal(Trace.from_json(sch.trace.as_json()).replay(mod).mod, sch.mod)
    assert len(sch.history) == 7
    sch.undo(2)
    assert sch.func_working_on == "second"
    sch.undo(2)
    assert sch.func_working_on == "first"


def test_expr_rv_remembers():
    tile = ExprRV(8)
    both = 2 * tile + 1
    assert both == 17 and isinstance(both, ExprRV) and both.source[0] == "+"


def test_a_primitive_from_outside(sch):
    @dataclass(frozen=True)
    class Plan:
        loop: LoopRef

    def _check_hint(state: State, loop: LoopRef) -> Plan:
        """Put a hint on a loop."""
        return Plan(loop)

    try:

        @primitive(check=_check_hint)
        def hint(state: State, plan: Plan) -> State:
            f = plan.loop.node
            return state.replace(f, f.replace(annotations={**f.annotations, "hint": 1}))

        sch.hint("B.i")
        assert "hint" in sch.script() and "sch.hint(" in sch.trace.as_python()

        @primitive(check=_check_hint, name="broken")
        def broken(state: State, plan: Plan) -> State:
            raise KeyError("x")

        before = sch.mod
        with pytest.raises(tir.ScheduleError, match="a fault inside broken, not in your program") as fault:
            sch.broken("B.i")
        assert "legal" not in str(fault.value)  # other calls have the same fault, or not
        for ask in (lambda: sch.can.broken("B.i"), sch.can.broken):  # neither yes nor no
            with pytest.raises(InternalError, match="a fault inside broken, not in your program"):
                ask()
        assert any("a fault inside broken" in offer.reason for offer in sch.can("B.i"))
        assert sch.mod is before
    finally:
        PRIMITIVES.pop("hint", None)
        PRIMITIVES.pop("broken", None)


def test_verify_run():
    sch = tir.Schedule(parse(CHAIN), verify="run")
    sch.split("B.i", [None, 5])
    carried = parse(
        """
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(7):
        with T.block("A"):
            vi = T.axis.opaque(7, i)
            A[vi + 1] = A[vi] + T.float32(1)
"""
    )
    sch = tir.Schedule(carried, verify="run")
    with pytest.raises(tir.ScheduleError, match="the program after it fails"):
        sch.parallel("i", unsafe=True)
    assert sch.mod["main"] is carried


def test_diff_shows_as_lines():
    """At a prompt and in a notebook, where the value of a line is shown by its repr or its HTML."""
    sch = tir.Schedule(
        tir.script.parse(
            "@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    for i in range(8):\n        A[i] = 1.0\n"
        )
    )
    sch.split("i", [2, 4])
    assert repr(sch.diff(color=False)) == sch.diff(color=False)
    shown = sch.diff(color=False)._repr_html_()
    assert "\n" in shown and "<span" in shown and "i_0" in shown


def test_history_opens_in_a_notebook(sch):
    sch.split("B.i", [None, 4])
    shown = sch.history._repr_html_()
    assert shown.count("<details>") == 2 and "0: start" in shown and "1: split(&quot;B.i&quot;" in shown
    assert "color:#3f9142" in shown and re.search(r"\+ +for i_1 in T.serial\(4\):", shown)


def test_errors_in_a_notebook_show_the_users_lines_only(sch):
    try:
        sch.vectorize("no_such_loop")
    except tir.ScheduleError as error:
        shown = error._render_traceback_()  # type: ignore[attr-defined]
    assert shown[1].strip() == 'sch.vectorize("no_such_loop")' and "test_schedule.py" in shown[0]
    assert shown[-1].startswith("ScheduleError: vectorize(") and len(shown) == 3


def test_a_record_is_code_in_a_notebook(sch):
    sch.split("B.i", [None, 4])
    assert "apply_trace" in sch.trace._repr_html_() and "<pre" in sch.trace._repr_html_()


def test_get_takes_names(sch):
    assert sch.get("B") is sch.get(sch.get_block("B"))
    assert sch.get("B.i") is sch.get(sch.get_loops("B")[0])
    with pytest.raises(tir.ScheduleError, match="not in function"):
        sch.get("nothing")


CHAIN_OF_THREE = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), D: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8), "float32")
    C = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi] + 1.0
    for i, j in T.grid(8, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], B[vi, vj])
"""


def test_producers_come_in_the_order_of_the_reads():
    sch = tir.Schedule(tir.script.parse(CHAIN_OF_THREE))
    assert [b.name for b in sch.get_producers("D")] == ["C", "B"]
    assert [b.name for b in sch.get_consumers("B")] == ["C", "D"]


def test_srefs():
    sch = tir.Schedule(tir.script.parse(CHAIN_OF_THREE))
    block = sch.get_block("C")
    sref = sch.get_sref(block)
    assert sref.stmt is sch.get(block) is sch.get(sref)
    inner, outer = sref.parent, sref.parent.parent
    assert [inner.stmt, outer.stmt] == [sch.get(loop) for loop in reversed(sch.get_loops(block))]
    assert outer.parent.stmt is sch.get("root") and outer.parent.parent is None
    assert sch.get_sref(inner.stmt).stmt is inner.stmt
    with pytest.raises(tir.ScheduleError):
        tir.Schedule(tir.script.parse(CHAIN_OF_THREE)).get_sref(inner.stmt)


def test_whether_padding_comes_apart():
    sch = tir.Schedule(
        tir.script.parse(CHAIN_OF_THREE.replace("A[vi, vj] * 2.0", "T.if_then_else(vi < 4, A[vi, vj], 0.0)"))
    )
    assert sch.can_decompose_padding("B", sch.get_loops("B")[0]) is True
    assert sch.can_decompose_padding("C", sch.get_loops("C")[0]) is False


def test_what_a_trace_decided():
    sch = tir.Schedule(tir.script.parse(CHAIN_OF_THREE))
    i, j = sch.get_loops("B")
    sch.get_loops("C")
    sch.sample_categorical([1, 2], [0.5, 0.5], decision=1)
    tile = sch.sample_perfect_tile(i, n=2, decision=[2, 4])
    sch.split(i, [tile[0] * 2, None])
    sch.enter_postproc()
    sch.parallel("C.i")
    trace = sch.trace
    decided = trace.decisions
    assert list(decided.values()) == [1, [2, 4]] == [trace.get_decision(step) for step in decided]
    sampled = list(decided)[1]
    changed = trace.with_decision(sampled, [4, 2], remove_postproc=True)
    assert [s.name for s in changed.insts if s.name in ("enter_postproc", "parallel")] == []
    again = changed.replay(sch.history[0].mod)
    assert [int(again.get(loop).extent) for loop in again.get_loops("B")][:2] == [8, 1]
    names = [step.name for step in trace.simplified().insts]
    assert names == ["get_loops", "sample_perfect_tile", "split", "enter_postproc", "parallel"]
    assert [step.name for step in trace.simplified(remove_postproc=True).insts] == names[:3]
    tir.assert_structural_equal(trace.simplified().replay(sch.history[0].mod).mod, sch.mod)


def test_a_refusal_shows_its_first_line_as_repr(sch):
    with pytest.raises(tir.ScheduleError) as caught:
        sch.split("nothing", [None, 2])
    first = str(caught.value).splitlines()[0]
    assert repr(caught.value) == f"ScheduleError({first!r})" and "{0}" not in first


TWO_FUNCTIONS = """
@I.ir_module
class M:
    @T.prim_func
    def a(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("init"):
                v = T.axis.spatial(8, i)
                A[v] = T.float32(0)

    @T.prim_func
    def b(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("init"):
                v = T.axis.spatial(8, i)
                A[v] = T.float32(1)
        for j in range(8):
            with T.block("other"):
                v = T.axis.spatial(8, j)
                B[v] = A[v]
"""


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: s.get_block("init"),
        lambda s: s["init"],
        lambda s: s["i"],
        lambda s: s.get("init"),
        lambda s: s.get_loops("init"),
        lambda s: s.vectorize("i"),
        lambda s: s.split("init.i", [2, 4]),
    ],
)
def test_a_name_that_two_functions_have_is_refused_until_one_is_chosen(ask):
    sch = schedule(TWO_FUNCTIONS)
    refused(lambda: ask(sch), "is in functions `a` and `b`", 'work_on("b")', "func_name=")
    sch.work_on("a")
    ask(sch)
    main = schedule(TWO_FUNCTIONS.replace("def a(", "def main("))
    ask(main)


def test_a_name_of_one_function_and_a_handle_choose_it():
    sch = schedule(TWO_FUNCTIONS)
    init = sch.get_block("init", func_name="b")
    _, inner = sch.split(sch.get_loops(init)[0], [None, 4])
    sch.vectorize(inner)
    assert "T.vectorized" not in sch.mod["a"].script() and "T.vectorized" in sch.mod["b"].script()
    refused(lambda: sch.get_block("init"), "is in functions")  # the step before chose for itself
