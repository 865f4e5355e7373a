"""What is shown as the value of a cell: reports, timings, sources and footprints, on every target alike."""

from __future__ import annotations

import pickle
from xml.etree import ElementTree

import pytest

import tir
from codegen.module import Timing
from tests.hand_schedules import gemm
from tir.display import LANGUAGES, Source, html_table, svg_figure, text_table
from tir.script import tir as T


@T.prim_func
def double(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(2)


def built(target: str):
    sch = tir.Schedule(double)
    if target == "llvm":
        sch.vectorize(sch.split("i", [None, 8])[1])
    else:
        sch.bind("i", "threadIdx.x")
    return tir.build(sch.mod, target)


@pytest.mark.parametrize("target", ["llvm", "cuda-sim", "cuda"])
def test_a_report_is_the_same_thing_everywhere(target):
    module = built(target)
    if target == "cuda":
        pytest.importorskip("cuda.bindings.nvrtc")
    if target == "cuda-sim":
        import numpy as np

        module.new(np.ones(64, "float32"))
    report = module.report
    assert str(report) == str(module.report()) == repr(report) == str(report())
    table = ElementTree.fromstring(f"<div>{report._repr_html_()}</div>")
    assert len(list(table.iter("tr"))) >= 2, "a head and a row"


def test_a_timing_is_shown_in_words():
    timing = Timing((0.002, 0.004, 0.003))
    assert repr(timing) == str(timing) == "3 ms (min 2 ms, 3 repeats)"
    assert "<td" in timing._repr_html_() and "3 ms" in timing._repr_html_()


def test_sources_are_strings_that_show_their_lines():
    module = built("llvm")
    for kind in module.source_kinds:
        source = module.source(kind)
        assert isinstance(source, str) and repr(source) == str(source) and "\n" in source
        assert pickle.loads(pickle.dumps(source)) == source
        shown = ElementTree.fromstring(source._repr_html_())
        assert "".join(shown.itertext()).rstrip() == source.rstrip()


def test_sources_are_coloured_where_pygments_is(monkeypatch):
    pytest.importorskip("pygments")
    source = Source("define void @f() {\n  ret void ; done\n}", "llvm")
    assert source._repr_html_().count("<span") >= 3
    monkeypatch.setitem(__import__("sys").modules, "pygments.lexers", None)
    assert "<span" not in source._repr_html_() and "define void" in source._repr_html_()


def test_every_language_of_a_source_is_known_to_pygments():
    lexers = pytest.importorskip("pygments.lexers")
    assert all(lexers.get_lexer_by_name(language) for language in LANGUAGES.values())
    assert "<span" in Source(".visible .entry f()\n{\n  mov.u32 %r1, %tid.x; // which\n}", "ptx")._repr_html_()


def test_columns_and_rows_of_a_table_have_their_look():
    shown = ElementTree.fromstring(
        html_table(("n", "code"), [("1", "x < y"), ("22", "")], right=[0], code=[1], bold=[1], titles=["", '"why"'])
    )
    first, second = shown.findall("table/tbody/tr")
    assert "text-align:right" in first[0].get("style") and "text-align:left" in first[1].get("style")
    assert first[1].find("code").text == "x < y" and first.get("title") is None and first.get("style") is None
    assert second.get("title") == '"why"' and "bold" in second.get("style")
    assert text_table((), []) == "" and text_table((), [("ok", "a"), ("-", "b")]) == "ok  a\n-   b"


def test_the_doctor_is_shown_as_a_table():
    found = tir.doctor()
    shown = "".join(ElementTree.fromstring(found._repr_html_()).itertext())
    assert all(line.what in shown and line.text in shown for line in found.lines)


def test_a_footprint_is_a_method_of_the_schedule():
    sch = tir.Schedule(gemm.gemm(64, 64, 64))
    found = sch.footprint()
    assert [row.name for row in found.rows][0] == "jo" and found.bottleneck in str(found)
    ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")


def test_figures_and_tables_follow_the_page():
    figure = tir.Schedule(gemm.gemm(64, 64, 64)).footprint().svg()
    assert (
        "prefers-color-scheme:dark" in figure and "--jp-content-font-color1" in figure and 'fill="white"' not in figure
    )
    assert ElementTree.fromstring(svg_figure(10, 10)).get("viewBox") == "0 0 10 10"
    assert "&lt;b&gt;" in html_table(["<b>"], [["<b>"]], "<b>") and "<b><b>" not in html_table(["<b>"], [], "<b>")
