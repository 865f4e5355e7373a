"""Steps of a schedule as text: what a trace prints is taken again, and nothing of it is run."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import pytest
from golden_cases import CASES, perform, program_of, read

import tir
from tir.library import rows
from tir.schedule import apply_text

ONE_OF_EACH = [next(cases) for _, cases in groupby(CASES, key=lambda path: path.parent.name)]
UNSAVED = {"tensorize"}  # its first case uses an intrinsic that is registered under no name


@pytest.mark.parametrize("path", ONE_OF_EACH, ids=lambda p: p.parent.name)
def test_what_a_trace_prints_is_taken_again(path):
    sections = read(path)
    sch, _ = perform(program_of(sections), sections["steps"])
    again = tir.Schedule(tir.script.parse(program_of(sections)), seed=0)
    if "TensorIntrin.get" in str(sch.trace):
        assert path.parent.name in UNSAVED
        with pytest.raises(tir.TirError, match="is no value of a trace"):
            apply_text(str(sch.trace), again)
        return
    apply_text(str(sch.trace), again)
    assert again.mod.script() == sch.mod.script() and str(again.trace) == str(sch.trace)


def test_lines_alone_and_functions_of_any_name_and_json():
    def after(text):
        sch = tir.Schedule(rows.row_sum(4, 8))
        apply_text(text, sch)
        return sch

    lines = 'i, i_1 = sch.split("i", [None, 2])\nsch.reorder(i_1, i)\n'
    first = after(lines)
    indented = "\n".join(f"    {line}" for line in lines.replace("sch.", "s.").splitlines())
    function = f'import tir\ndef f(s: tir.Schedule) -> None:\n    """Steps."""\n{indented}\n    pass\n'
    for text in (function, str(first.trace), __import__("json").dumps(first.trace.as_json())):
        assert after(text).mod.script() == first.mod.script() != rows.row_sum(4, 8).script()


def test_numbers_that_were_drawn_are_computed_with():
    sch = tir.Schedule(rows.row_sum(4, 12), seed=1)
    a, b = sch.sample_perfect_tile("j", 2)
    sch.split("j", [b * a // 2, 2])
    again = tir.Schedule(rows.row_sum(4, 12), seed=2)
    apply_text(str(sch.trace), again)
    assert again.mod.script() == sch.mod.script() and str(again.trace) == str(sch.trace)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sch.split(", "not Python syntax"),
        ("import os\nos.mkdir('ran')", "is no step"),
        ("open('ran', 'w')", "is no step"),
        ("sch.parallel(open('ran', 'w'))", r"is no value of a trace: undefined name `open`"),
        ("sch.parallel(__import__('os').mkdir('ran'))", "is no value of a trace"),
        ("sch.state.program", "is no step"),
        ("sch.mod.script()", "is no step"),
        ("sch.__class__()", "the primitive '__class__', which is not installed"),
        ("sch.nothing('i')", "the primitive 'nothing', which is not installed"),
        ("x = 3", "is no step"),
        ("for i in range(3):\n    sch.parallel('i')", "is no step"),
        ("sch.parallel(i)", "i is the result of no step before"),
        ("a, b, c = sch.split('i', [2, 2])", "has 3 names for 2 results"),
        ("a.b = sch.split('i', [2, 2])", "is no name for a result"),
        ("sch.parallel(**{'loop': 'i'})", "spreads its arguments"),
        ("sch.split('i', [9**9**9, 2])", "is no value of a trace"),
        ("sch.split('i', [2**62 * 2**62, 2])", "too large a number"),
        ("sch.split('i', [4611686018427387904 * 4611686018427387904, 2])", "too large a number"),
        ("sch.split('i', [1 // 0, 2])", "division"),
        ("sch.split('i', " + "+".join("1" * 9999) + ")", "nested too deeply"),
        ("sch.split('i', " + "[" * 5000 + ")", "nested too deeply|too many nested|not Python"),
        ("sch.split('i', b'2')", "is no value of a trace"),
        ("sch.annotate('i', 'note', {None: 1})", "has a key that is no text"),
        ("def f(a, b):\n    pass", "has one parameter"),
        ("@f\ndef f(sch):\n    pass", "no decorator"),
        ("def f(sch):\n    pass\ndef g(sch):\n    pass", "is no step"),
        ("sch.transform_layout('total', ('write', 0), lambda i: open('ran'))", "open"),
        ("[1, 2]", "this is no record"),
        ("sch.parallel('k')", "`k`"),
        ("sch.parallel()", "loop"),
        ("sch.split('i', [2, 3], x=4)", "x"),
        ("x\0", "null"),
    ],
)
def test_what_is_no_trace_is_refused_and_nothing_is_run(text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tir.TirError, match=message):
        apply_text(text, tir.Schedule(rows.row_sum(4, 8)))
    assert not list(Path().iterdir())


def test_python_warns_of_no_text():
    import warnings

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(tir.ParseError):
            apply_text("x = 1if n else (\n", tir.Schedule(rows.row_sum(4, 8)))
    assert seen == []


def test_an_error_has_the_line():
    with pytest.raises(tir.TirError, match=r"steps.py:2: `sch.parallel\(k\)`: k is the result"):
        apply_text("i, j = sch.get_loops('total')\nsch.parallel(k)", tir.Schedule(rows.row_sum(4, 8)), "steps.py")


def test_symbolic_sizes_in_arguments_are_those_of_the_program_by_their_names():
    text = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A, B = T.match_buffer(a, (n, 4)), T.match_buffer(b, (n, 4))
    C = T.alloc_buffer((n, 4))
    for i, j in T.grid(n, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(n, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = C[vi, vj] + 1.0
"""
    func = tir.script.parse(text)
    n = func.sizes["n"]
    sch = tir.Schedule(func)
    sch.split("B.i", [(n + 3) // 4, None])
    sch.transform_layout("C", ("write", 0), lambda i, j: (j, n - 1 - i))
    sch.annotate("B", "note", n * 4)
    assert str(sch.trace).count('n = sch.func.sizes["n"]') == 1
    ways = [
        lambda other: apply_text(str(sch.trace), other),
        lambda other: apply_text(json.dumps(sch.trace.as_json()), other),
        sch.trace.apply_to_schedule,
    ]
    for way in ways:
        again = tir.Schedule(tir.script.parse(text))
        way(again)
        tir.assert_structural_equal(again.mod, sch.mod)


def test_a_size_that_the_program_does_not_have():
    sch = tir.Schedule(rows.row_sum(4, 8))
    with pytest.raises(tir.TirError, match="is no size of the program; these are none"):
        apply_text('n = sch.func.sizes["n"]', sch)
