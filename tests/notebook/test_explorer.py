"""The explorer without a browser: messages in, a view out; and the schedule is what both show."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import tir
from tir import te
from tir.library import elementwise
from tir.notebook import runs
from tir.notebook.explorer import Explorer, value_of
from tir.notebook.loop_tree import KIND_COLOURS
from tir.notebook.runs import checked, timed
from tir.notebook.stages import Code, Loop, loop_lines, places_in, source, stages
from tir.script import tir as T
from tir.script.printer import line_ranges


@T.prim_func
def chain(A: T.Buffer((64, 64), "float32"), D: T.Buffer((64,), "float32")):
    B = T.alloc_buffer((64, 64), "float32")
    for i, j in T.grid(64, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, k in T.grid(64, 64):
        with T.block("D"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                D[vi] = T.float32(0)
            D[vi] = D[vi] + B[vi, vk]


@pytest.fixture
def explorer() -> Explorer:
    return Explorer(tir.Schedule(chain))


def view(explorer: Explorer) -> dict:
    """The view as a page gets it, when all of it is there."""
    made = explorer.view()
    while made["pending"]:
        explorer.handle({"do": "more"})
        left = explorer.view()
        assert left["pending"] < made["pending"] or made["offers"] is None, "each answer makes progress"
        made = left
    assert json.loads(json.dumps(made)) is not None
    return made


def plain(line: str) -> str:
    import html
    import re

    return html.unescape(re.sub(r"<[^>]*>", "", line))


def test_the_tree_has_extents_kinds_bytes_and_regions(explorer):
    explorer.schedule.vectorize(explorer.schedule.split("j", [None, 16])[1])
    rows = {row["label"]: row for row in view(explorer)["tree"]}
    assert list(rows) == ["B.i", "j_0", "j_1", "B", "D.i", "k", "D"]
    assert rows["j_1"]["kind"] == "vectorized" and rows["j_1"]["extent"] == "16" and rows["j_1"]["depth"] == 2
    assert rows["B.i"]["bytes"] == 2 * 64 * 64 * 4 and rows["B.i"]["touched"] == {"B": 16384, "A": 16384}
    assert rows["D"]["regions"] == "D[vi] = B[vi, vk]" and rows["D"]["iterators"] == ["vi = i", "vk = k"]


def test_lines_of_the_program_belong_to_what_they_show(explorer):
    seen = view(explorer)
    lines = [plain(line) for line in seen["program"]]
    assert "\n".join(lines).rstrip() == explorer.schedule.script().rstrip()
    for row in seen["tree"]:
        first, last = row["lines"]
        head = "with T.block" if row["kind"] == "block" else "for "
        assert head in lines[first] and row["name"] in lines[first]
        assert last > first and lines[last].startswith(" " * (len(lines[first]) - len(lines[first].lstrip()) + 1))


def test_a_selected_loop_is_told_what_it_may_become(explorer):
    assert view(explorer)["offers"] == []
    explorer.handle({"do": "select", "place": "k"})
    offers = {offer["name"]: offer for offer in view(explorer)["offers"]}
    assert offers["parallel"]["reason"] and not offers["unroll"]["reason"]
    factors = {f["name"]: f for f in offers["split"]["fields"]}["factors"]
    assert factors["value"] == "[None, 4]" and factors["needed"]
    explorer.handle({"do": "select", "place": "k"})
    assert view(explorer)["selected"] == "", "a second click lets go"


def test_what_is_clicked_is_a_step_of_the_trace(explorer):
    sch = explorer.schedule
    explorer.handle({"do": "apply", "name": "split", "given": {"loop": "k", "factors": "[None, 8]", "tail": ""}})
    assert explorer.error == "" and sch.history[-1].text == 'split("k", factors=[None, 8])'
    seen = view(explorer)
    assert 'sch.split("k", factors=[None, 8])' in seen["python"] and seen["steps"][-1].startswith("1: split")
    assert [line["kind"] for line in seen["diff"]].count("added") == 1
    assert "k_1" in "".join(text for _, text in next(line["words"] for line in seen["diff"] if line["kind"] == "added"))
    other = sch.trace.replay(chain)
    assert tir.structural_equal(other.mod, sch.mod)
    explorer.handle({"do": "apply", "name": "reorder", "given": {"loops": ["B.i", "j"]}})
    assert explorer.error == "" and len(sch.history) == 3
    explorer.handle({"do": "undo"})
    assert len(sch.history) == 2 and view(explorer)["redo"] == 1
    explorer.handle({"do": "redo"})
    assert len(sch.history) == 3


def test_every_legal_offer_can_be_taken_as_it_stands(explorer):
    for place in ("B", "D", "j", "D.i", "k"):
        explorer.handle({"do": "select", "place": place})
        for offer in view(explorer)["offers"]:
            if not offer["reason"]:
                given = {**offer["given"], **{f["name"]: f["value"] for f in offer["fields"]}}
                explorer.handle({"do": "apply", "name": offer["name"], "given": given})
                assert explorer.error == "", offer
                explorer.handle({"do": "undo"})
                explorer.handle({"do": "select", "place": place}) if explorer.selected != place else None


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"do": "apply", "name": "parallel", "given": {"loop": "k"}}, "cannot be parallel"),
        ({"do": "apply", "name": "paralel", "given": {}}, "no primitive 'paralel'"),
        ({"do": "apply", "name": "split", "given": {"loop": "k", "factors": "8"}}, "`factors` is a list"),
        ({"do": "apply", "name": "split", "given": {}}, "loop"),
        (
            {
                "do": "apply",
                "name": "transform_layout",
                "given": {"block": "B", "buffer": "B", "index_map": "lambda i, j: __import__('os')"},
            },
            "index map",
        ),
        ({"do": "undo"}, "undo(1): no step has been taken"),
        ({"do": "show", "step": 3}, "steps 0 to 0, not 3"),
        ({"do": "dance"}, "no message 'dance'"),
    ],
)
def test_a_refusal_is_shown_and_changes_nothing(explorer, message, says):
    before = explorer.schedule.mod
    explorer.handle(message)
    assert says in view(explorer)["error"] and explorer.schedule.mod is before
    explorer.handle({"do": "refresh"})
    assert view(explorer)["error"] == ""


def loops(explorer: Explorer) -> list[str]:
    return [row["label"] for row in view(explorer)["tree"] if row["kind"] != "block"]


def test_a_loop_is_moved_to_the_place_of_another_one(explorer):
    explorer.schedule.split("j", [4, 4, 4])
    assert loops(explorer)[:4] == ["B.i", "j_0", "j_1", "j_2"]
    explorer.handle({"do": "move", "place": "B.i", "to": "j_1"})
    assert explorer.error == "" and loops(explorer)[:4] == ["j_0", "j_1", "B.i", "j_2"]
    explorer.handle({"do": "move", "place": "j_2", "to": "j_0"})
    assert explorer.error == "" and loops(explorer)[:4] == ["j_2", "j_0", "j_1", "B.i"]
    assert view(explorer)["steps"][-1].endswith('reorder("j_2", "j_0", "j_1", "B.i")')


def test_a_move_that_cannot_be_is_refused(explorer):
    explorer.handle({"do": "move", "place": "j", "to": "j"})
    assert explorer.error == "" and len(explorer.schedule.history) == 1, "where it is already: no step"
    for to, says in (("k", "not in one nest"), ("B", "loop"), (3, "type str")):
        explorer.handle({"do": "move", "place": "j", "to": to})
        assert says in explorer.error and len(explorer.schedule.history) == 1


def test_a_run_is_timed_and_compared_with_the_start(explorer):
    explorer.schedule.vectorize(explorer.schedule.split("j", [None, 16])[1])
    explorer.handle({"do": "run"})
    seen = view(explorer)
    assert explorer.error == "" and seen["runs"][:2] == [None, None]
    assert seen["runs"][2]["seconds"] > 0 and seen["runs"][2]["text"].endswith("program without steps does")
    explorer.handle({"do": "undo"})
    explorer.schedule.unroll("j_1")
    assert view(explorer)["runs"][2] is None, "the time was another step's"


def test_a_run_that_computes_something_else_says_where():
    def scaled(by: float) -> tir.IRModule:
        A = te.placeholder((8,), name="A")
        return tir.IRModule.of(te.create_prim_func([A, te.compute((8,), lambda i: A[i] * by, "B")]))

    found = timed(scaled(3.0), scaled(2.0), None, "main").text
    assert "wrong: B[" in found and "elements differ" in found
    assert checked(scaled(3.0), scaled(2.0), None, "main").fault.startswith("the reference executor: B[")


@pytest.mark.parametrize(("body", "has_rate"), [(lambda a: a * 2.0 + 1.0, True), (lambda a: a, False)])
def test_a_run_has_a_rate_if_there_is_arithmetic(body, has_rate):
    A = te.placeholder((64,), name="A")
    program = tir.IRModule.of(te.create_prim_func([A, te.compute((64,), lambda i: body(A[i]), "B")]))
    text = timed(program, program, None, "main").text
    assert bool(re.search(r", [\d.]+ .?FLOP/s \(\d+ % of the bound by \w+ of one core\), right", text)) is has_rate, (
        text
    )


def test_a_program_of_symbolic_sizes_is_timed_at_sizes_that_are_told():
    @T.prim_func
    def axpy(x: T.handle, y: T.handle, alpha: T.float32):
        m, n = T.int32(), T.int32()
        X, Y = T.match_buffer(x, (m, n), "float32"), T.match_buffer(y, (m, n), "float32")
        for i, j in T.grid(m, n):
            Y[i, j] = Y[i, j] + alpha * X[i, j]

    explorer = Explorer(tir.Schedule(axpy))
    explorer.schedule.parallel("i")
    explorer.handle({"do": "run"})
    assert explorer.error == "" and ", m = 1024, n = 1024, right: " in view(explorer)["runs"][-1]["text"]


def test_an_error_that_nobody_expects_is_shown(explorer, monkeypatch):
    monkeypatch.setitem(explorer._actions, "run", lambda message: {}["nothing"])
    explorer.handle({"do": "run"})
    assert view(explorer)["error"] == "KeyError: 'nothing'"


def test_a_check_runs_the_reference_executor(explorer):
    explorer.schedule.vectorize(explorer.schedule.split("j", [None, 16])[1])
    explorer.handle({"do": "check"})
    seen = view(explorer)
    assert explorer.error == "" and seen["checks"][:2] == [None, None]
    right = "right by the reference executor: no fault, and it computes what the program without steps does"
    assert seen["checks"][2] == {"text": right, "fault": ""}
    explorer.handle({"do": "undo"})
    explorer.schedule.unroll("j_1")
    assert view(explorer)["checks"][2] is None, "another step was checked"


def bound(target: str | None) -> tir.Schedule:
    sch = tir.Schedule(chain, target=target)
    for loop in ("B.i", "D.i"):
        sch.bind(loop, "threadIdx.x")
    return sch


@pytest.mark.parametrize("target", ["cuda -arch=sm_80", None])
def test_a_check_of_a_gpu_schedule_runs_the_simulator(target):
    explorer = Explorer(bound(target))
    explorer.handle({"do": "check"})
    assert explorer.error == "" and view(explorer)["checks"][-1]["text"].startswith("right by the simulator: ")


def reading_past_the_end(extent: int) -> tir.PrimFunc:
    @T.prim_func
    def shifted(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi + extent]

    return shifted


@pytest.mark.parametrize("gpu", [False, True])
def test_a_fault_that_a_check_finds_has_its_place(gpu):
    sch = tir.Schedule(reading_past_the_end(1), target="cuda" if gpu else None)
    if gpu:
        sch.bind("i", "threadIdx.x")
    explorer = Explorer(sch)
    explorer.handle({"do": "check"})
    assert view(explorer)["checks"][-1] == {
        "text": f"wrong by the {'simulator' if gpu else 'reference executor'}",
        "fault": explorer.error,
    }
    assert "A[8] is out of bounds" in explorer.error and 'block "B" at vi=7' in explorer.error, explorer.error
    assert "B[vi] = A[vi + extent]" in explorer.error


def test_a_race_that_an_unsafe_step_made_is_found(explorer):
    explorer.schedule.parallel("k", unsafe=True)
    explorer.handle({"do": "check"})
    assert "race on D[0]" in explorer.error and 'block "D"' in explorer.error


def test_a_check_that_would_take_minutes_is_refused(explorer, monkeypatch):
    monkeypatch.setattr(runs, "MOST_CHECKED", 2 * 64 * 64 - 1)
    explorer.handle({"do": "check"})
    assert "the 8.19 k iterations of this program" in explorer.error and view(explorer)["checks"] == [None]


def test_a_gpu_schedule_is_not_timed():
    gpu = Explorer(tir.Schedule(chain, target="cuda -arch=sm_80"))
    gpu.handle({"do": "run"})
    assert "for llvm" in gpu.error


def test_a_lambda_is_an_index_map(explorer):
    given = {"block": "B", "buffer": "B", "index_map": "lambda i, j: (j, i)"}
    explorer.handle({"do": "apply", "name": "transform_layout", "given": given})
    assert explorer.error == "" and "lambda i, j: [j, i]" in view(explorer)["python"]
    assert value_of("x", 3) == 3 and value_of("x", "local") == "local" and value_of("x", "None") is None


def test_the_slider_looks_at_the_past_and_does_not_change_it(explorer):
    sch = explorer.schedule
    for loop in ("j", "k"):
        sch.split(loop, [None, 4])
    explorer.handle({"do": "show", "step": 1})
    seen = view(explorer)
    assert (
        (seen["at"], seen["last"]) == (1, 2)
        and seen["title"] == "chain, 2 steps"
        and "k" in [row["label"] for row in seen["tree"]]
    )
    assert "j_1" in str(seen["diff"]) and "k_1" not in str(seen["diff"])
    assert len(sch.history) == 3
    explorer.handle({"do": "select", "place": "k"})
    assert view(explorer)["offers"] == []
    explorer.handle({"do": "apply", "name": "unroll", "given": {"loop": "k"}})
    assert "an earlier step is shown" in explorer.error
    explorer.handle({"do": "undo", "steps": 1})
    assert len(sch.history) == 2 and view(explorer)["at"] == 1


def test_what_is_typed_elsewhere_shows(explorer):
    explorer.handle({"do": "select", "place": "j"})
    explorer.schedule.split("j", [None, 4])
    seen = view(explorer)
    assert seen["last"] == 1 and seen["selected"] == "", "the loop is gone"


@pytest.fixture(scope="module")
def at_a_loop() -> Explorer:
    """What may be done to the loop is found once, for all stages."""
    explorer = Explorer(tir.Schedule(chain))
    explorer.schedule.parallel("B.i")
    explorer.handle({"do": "select", "place": "k"})
    return explorer


@pytest.mark.parametrize("pane", stages(None))
def test_code_of_every_stage_with_the_lines_of_a_loop(at_a_loop, pane):
    at_a_loop.handle({"do": "open", "pane": pane})
    made = view(at_a_loop)["pane"]
    text = source(at_a_loop.schedule.mod, None, pane).text
    assert not made["failed"] and [plain(line) for line in made["lines"]] == text.splitlines()
    assert made["places"].get("k") or pane in ("llvm-opt", "asm"), "the optimiser may unroll it"
    assert all(0 <= first <= last < len(made["lines"]) for lines in made["places"].values() for first, last in lines)


def test_cuda_beside_the_program():
    sch = tir.Schedule(chain, target="cuda")
    sch.bind("B.i", "threadIdx.x")
    sch.bind("D.i", "threadIdx.x")
    explorer = Explorer(sch)
    explorer.handle({"do": "select", "place": "k"})
    explorer.handle({"do": "open", "pane": "cuda"})
    made = view(explorer)["pane"]
    assert any("__global__" in line for line in made["lines"]) and len(made["places"]["k"]) == 1
    explorer.handle({"do": "open", "pane": "nothing"})
    assert view(explorer)["pane"]["failed"]


def test_lines_of_ptx_are_those_of_the_cuda_that_they_come_from():
    cuda = "\n".join(
        ["void k() {", "  for (int i = 0;;) {", "    for (int j = 0;;) {", "      x;", "    }", "    y;", "  }", "}"]
    )
    ptx = "\n".join(
        [
            "{",
            "ret;",
            ".loc 1 4 3",
            "a;",
            ".loc 2 9 1, function_name $L, inlined_at 1 6 5",
            "b;",
            ".loc 1 8 1",
            "c;",
            "}",
            "d;",
        ]
    )
    found = places_in(Code(ptx, "ptx", cuda), [Loop("B.i", "i", ""), Loop("j", "j", "B.i")])
    assert found == {"B.i": [(2, 5)], "j": [(2, 3)]}


def test_a_loop_that_is_gone_does_not_take_the_lines_of_another():
    text = "for.x.1:\n  br %for.x.1\nfor.y.2:\nfor.c.3:\n  br %for.c.3\n  br %for.y.2"
    loops = [Loop("x", "x", ""), Loop("P.c", "c", "x"), Loop("y", "y", ""), Loop("z", "z", "y"), Loop("C.c", "c", "z")]
    assert places_in(Code(text, "llvm"), loops) == {"x": [(0, 1)], "y": [(2, 5)], "C.c": [(3, 4)]}


def test_loops_of_one_name_are_told_apart_by_the_loops_inside():
    """A parallel loop becomes a function of its own, which LLVM may write before the others."""
    sch = tir.Schedule(chain)
    sch.split("j", [None, 8])
    sch.parallel("D.i")
    explorer = Explorer(sch)
    explorer.handle({"do": "open", "pane": "llvm"})
    pane = view(explorer)["pane"]
    lines, ((first, last),) = [plain(line) for line in pane["lines"]], pane["places"]["D.i"]
    assert any("for.k." in line for line in lines[first:last]) and not any(
        "for.j_0" in line for line in lines[first:last]
    )


def test_ptx_beside_the_program():
    sch = tir.Schedule(chain, target="cuda -arch=sm_80")
    for loop in ("B.i", "D.i"):
        sch.bind(loop, "threadIdx.x")
    explorer = Explorer(sch)
    explorer.handle({"do": "open", "pane": "ptx"})
    pane = view(explorer)["pane"]
    lines = [plain(line) for line in pane["lines"]]
    stores = [n for n, line in enumerate(lines) if "st.global" in line]
    inside = [n for first, last in pane["places"]["D.i"] for n in range(first, last + 1)]
    assert not pane["failed"] and set(stores) & set(inside) and set(stores) - set(inside)


def test_pictures_beside_the_program_are_about_what_is_chosen(explorer):
    explorer.handle({"do": "open", "pane": "accesses"})
    pane = view(explorer)["pane"]
    assert [f"{name} by {loop}" in pane["html"] for name, loop in (("A", "B.i"), ("B", "B.i"), ("D", "D.i"))] == [
        True
    ] * 3
    assert pane["lines"] == [] and not pane["failed"]
    for place in ("k", "D"):  # a block is in its innermost loop
        explorer.handle({"do": "select", "place": place})
        shown = view(explorer)["pane"]["html"]
        assert "B by k" in shown and "D by k" in shown and "A by" not in shown
    explorer.handle({"do": "open", "pane": "footprint"})
    assert "roofline" in view(explorer)["pane"]["html"]
    explorer.handle({"do": "open", "pane": "banks"})
    assert view(explorer)["pane"]["failed"], "no shared memory: no such picture"


def test_banks_beside_a_gpu_program():
    sch = tir.Schedule(elementwise.transpose(32, 64), target="cuda -arch=sm_80")
    copy = sch.cache_read("out", "A", "shared")
    explorer = Explorer(sch)
    explorer.handle({"do": "open", "pane": "banks"})
    assert "bound to threads" in view(explorer)["pane"]["html"]
    sch.bind("out.i", "blockIdx.x")
    sch.compute_at(copy, "out.i")
    for block in ("out", copy):
        sch.bind(sch.get_loops(block)[-1], "threadIdx.x")
    seen = view(explorer)
    assert "banks" in seen["panes"] and "0 bank conflicts" in seen["pane"]["html"]


def test_a_picture_of_unknown_sizes_says_why():
    @T.prim_func
    def add(a: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            A[i] = A[i] + 1.0

    explorer = Explorer(tir.Schedule(add))
    explorer.handle({"do": "open", "pane": "accesses"})
    assert "a picture needs constant sizes" in view(explorer)["pane"]["html"]


def test_heads_of_loops_in_text():
    assert loop_lines("for (int i = 0; i < 4; ++i) {\n  x;\n}\ny;") == {"i": [(0, 2)]}
    nests = "for a, i in T.grid(4, 4):\n    x\nfor i_1 in range(4):\n    y"
    assert loop_lines(nests) == {"a": [(0, 1)], "i": [(0, 1)], "i_1": [(2, 3)]}
    assert loop_lines("for.i_1.3:\n  br label %for.i_1.3") == {"i_1": [(0, 1)]}


def test_loops_of_one_name_have_lines_of_their_own(explorer):
    explorer.schedule.parallel("D.i")
    explorer.handle({"do": "open", "pane": "lowered"})
    seen = view(explorer)
    lines, places = [plain(line) for line in seen["pane"]["lines"]], seen["pane"]["places"]
    (first,), (second,) = places["B.i"], places["D.i"]
    assert first[1] < second[0] and "T.parallel" in lines[second[0]] and "T.parallel" not in lines[first[0]]
    assert places["k"][0][0] > second[0] and places["k"][0][1] == second[1]


def test_a_figure_has_every_row():
    from xml.etree import ElementTree

    sch = tir.Schedule(chain)
    sch.parallel("B.i")
    found = sch.loop_tree()
    figure = ElementTree.fromstring(found.svg())
    words = [t.text for t in figure.iter("{http://www.w3.org/2000/svg}text")]
    assert {"i", "j", "k", "B", "D", "D[vi] = B[vi, vk]"} <= set(words) and KIND_COLOURS["parallel"] in found.svg()
    assert "parallel" in str(found).splitlines()[1]


@pytest.mark.parametrize("draw", ["svg", "drawing"])
@pytest.mark.parametrize("depth", [1, 4, 8])
@pytest.mark.parametrize("name", ["B", "a_block_with_a_long_name"])
@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_what_a_figure_shows_is_inside_of_it(draw, depth, name, kind):
    from xml.etree import ElementTree

    sch = tir.Schedule(te.create_prim_func([te.compute((2,) * depth, lambda *at: sum(at), name)]))
    if kind == "parallel":
        sch.parallel(sch.get_loops(name)[-1])
    figure = ElementTree.fromstring(getattr(sch.loop_tree(), draw)())
    words = list(figure.iter("{http://www.w3.org/2000/svg}text"))
    ends = [float(word.get("x")) + 6.5 * len(word.text or "") for word in words]  # of a letter of the usual size
    assert len(words) > 2 * depth and max(ends) <= float(figure.get("width"))
    assert max(float(word.get("y")) for word in words) < float(figure.get("height"))


def test_symbolic_programs_have_a_tree_without_bytes():
    @T.prim_func
    def symbolic(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            with T.block("A"):
                vi = T.axis.spatial(n, i)
                A[vi] = T.float32(1)

    row = tir.Schedule(symbolic).loop_tree().rows[0]
    assert row.extent == "n" and row.bytes == 0
    assert view(Explorer(tir.Schedule(symbolic)))["tree"][0]["holds"] == ""


def test_places_that_do_not_print_have_no_lines():
    index, elsewhere = tir.Schedule(chain).state.index, tir.Schedule(chain)
    elsewhere.split("j", [None, 4])
    here, gone = index.blocks["B"].node, elsewhere.get("j_1")
    text, (lines, none) = line_ranges(chain, [here, gone])
    assert text == chain.script() and [lines] == line_ranges(chain, [here])[1] and none is None


class TestWidget:
    def test_messages_of_the_page_reach_the_schedule(self):
        pytest.importorskip("anywidget")
        sch = tir.Schedule(chain)
        shown = sch.explore()
        assert shown.view["last"] == 0 and len(shown.view["tree"]) == 6
        shown._handle_custom_msg({"do": "apply", "name": "unroll", "given": {"loop": "k"}}, [])
        assert sch.history[-1].text == 'unroll("k")' and shown.view["last"] == 1
        sch.undo()
        shown.follow()
        assert shown.view["last"] == 0

    def test_its_files_are_in_the_package(self):
        pytest.importorskip("anywidget")
        shown = tir.Schedule(chain).explore()
        assert "render" in str(shown._esm) and ".tir-explorer" in str(shown._css)

    def test_without_anywidget_it_says_what_to_install(self, monkeypatch):
        import sys

        from tir.notebook import widget

        widget._widget_class.cache_clear()
        monkeypatch.setitem(sys.modules, "anywidget", None)
        with pytest.raises(ImportError, match=r"tensorir\[notebook\]"):
            tir.Schedule(chain).explore()


def test_a_program_still_means_the_same_after_clicks(explorer):
    for name, given in [
        ("compute_at", {"block": "B", "loop": "D.i"}),
        ("split", {"loop": "k", "factors": "[None, 16]"}),
        ("parallel", {"loop": "D.i"}),
    ]:
        explorer.handle({"do": "apply", "name": name, "given": given})
        assert explorer.error == ""
    a = np.arange(64 * 64, dtype="float32").reshape(64, 64)
    np.testing.assert_allclose(tir.build(explorer.schedule.mod).new(a), (a + 1).sum(1), rtol=1e-6)


@pytest.mark.parametrize(
    "message",
    [
        None, 5, [], {}, {"do": None}, {"do": []}, {"do": "show"}, {"do": "show", "step": float("inf")}, {"do": "show", "step": "x"},
        {"do": "show", "step": True}, {"do": "open"}, {"do": "open", "pane": 3}, {"do": "select", "place": []}, {"do": "apply"},
        {"do": "apply", "name": "split"}, {"do": "apply", "name": "split", "given": 5}, {"do": "apply", "name": [], "given": {}},
        {"do": "undo", "steps": float("nan")}, {"do": "redo", "steps": None}, {"do": "undo", "steps": "2"},
    ],
)  # fmt: skip
def test_a_message_of_any_form_is_answered_with_an_error(explorer, message):
    explorer.handle(message)
    assert view(explorer)["error"]


@pytest.mark.parametrize(
    "text", ["(" * 20_000, "-" * 20_000 + "1", "[" * 20_000 + "]" * 20_000, "lambda i: " + "(" * 20_000, "9" * 20_000]
)
def test_a_form_with_a_deep_text_is_answered_with_an_error(explorer, text):
    explorer.handle({"do": "apply", "name": "split", "given": {"loop": "k", "factors": text}})
    assert view(explorer)["error"]


def offers(explorer: Explorer) -> dict[str, dict]:
    return {offer["name"]: offer for offer in view(explorer)["offers"]}


def test_offers_are_ranked_by_what_the_model_expects():
    explorer = Explorer(tir.Schedule(chain, target="llvm -num-cores=4 -l1_bytes=32768"))
    explorer.handle({"do": "select", "place": "B.i"})
    first = explorer.view()
    assert first["pending"] > 0 and not any(offer["estimated"] for offer in first["offers"]), (
        "a click does not wait for it"
    )
    seen = view(explorer)
    legal = [offer for offer in seen["offers"] if not offer["reason"]]
    known = [
        min(o["seconds"] for o in (offer, *offer["variants"]) if o["seconds"]) for offer in legal if offer["seconds"]
    ]
    assert known == sorted(known) and seen["expected"] > 0
    assert all(offer["estimated"] for offer in legal) and [o["group"] for o in legal].count("tile") > 2
    assert offers(explorer)["bind"]["seconds"] is None, "threads of a GPU on a CPU"
    refused = seen["offers"][len(legal) :]
    assert all(offer["reason"] and not offer["variants"] for offer in refused)


def test_a_refusal_is_beside_its_offer(explorer):
    explorer.handle({"do": "select", "place": "k"})
    assert offers(explorer)["parallel"]["witness"] == ["k=0 and k=1 both write D[0]"]


@pytest.mark.parametrize("place", ["j", "k", "D"])
def test_values_to_take_by_a_click_change_the_program(explorer, place):
    explorer.handle({"do": "select", "place": place})
    variants = [(offer, variant) for offer in view(explorer)["offers"] for variant in offer["variants"]]
    assert len(variants) > 10
    for offer, variant in variants:
        before = explorer.schedule.mod
        defaults = {f["name"]: f["value"] for f in offer["fields"]}
        given = {**offer["given"], **defaults, offer["free"]: variant["value"]}
        explorer.handle({"do": "apply", "name": offer["name"], "given": given})
        assert explorer.error == "" and not tir.structural_equal(before, explorer.schedule.mod), (offer, variant)
        explorer.handle({"do": "undo"})


def test_what_is_chosen_stays_chosen_under_its_new_name(explorer):
    explorer.handle({"do": "select", "place": "B.i"})
    explorer.handle({"do": "apply", "name": "parallel", "given": {"loop": "B.i"}})
    assert explorer.selected == "B.i"
    explorer.handle({"do": "apply", "name": "compute_inline", "given": {"block": "B"}})
    assert explorer.error == "" and explorer.selected == "", "the loop is gone"
    explorer.handle({"do": "select", "place": "i"})
    explorer.handle({"do": "apply", "name": "split", "given": {"loop": "i", "factors": "[None, 8]"}})
    assert explorer.selected == "i_1", "the innermost of what came of it"


def test_the_tuner_starts_from_the_program_without_steps(explorer):
    explorer.handle({"do": "apply", "name": "parallel", "given": {"loop": "B.i"}})
    explorer.handle({"do": "tune"})
    assert "this schedule has 1: undo them first" in explorer.error and len(explorer.schedule.history) == 2
    explorer.handle({"do": "undo"})
    explorer.handle({"do": "tune"})
    assert explorer.error == "" and len(explorer.schedule.history) > 2
    assert tir.structural_equal(explorer.schedule.mod, tir.tune.default(chain).mod)
    explorer.handle({"do": "more"})
    explorer.handle({"do": "run"})
    assert view(explorer)["runs"][-1]["text"].endswith("right: it computes what the program without steps does")


def test_an_error_stays_until_something_else_is_asked(explorer):
    explorer.handle({"do": "select", "place": "k"})
    explorer.handle({"do": "apply", "name": "parallel", "given": {"loop": "k"}})
    said = explorer.error
    assert said and view(explorer)["pending"] == 0 and explorer.error == said
    explorer.handle({"do": "refresh"})
    assert explorer.error == ""
