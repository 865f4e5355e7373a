"""From tensor expressions to functions: the text of each of many programs, and what it computes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from te_oracle import judge
from te_programs import PROGRAMS

import tir
from tir import te
from tir.script import parse

GOLDEN = Path(__file__).parents[1] / "golden" / "te_programs.txt"


def golden() -> dict[str, str]:
    parts = re.split(r"^== (\w+)\n", GOLDEN.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.fixture(scope="module")
def expected(request):
    if request.config.getoption("--update-golden"):
        made = {
            name: te.create_prim_func(make(te, tir)).script(header=False).strip("\n") for name, make in PROGRAMS.items()
        }
        GOLDEN.write_text("".join(f"== {name}\n{text}\n" for name, text in made.items()), encoding="utf-8")
    return golden()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_the_golden_one(name, expected):
    made = te.create_prim_func(PROGRAMS[name](te, tir))
    tir.assert_structural_equal(made, parse(expected[name]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_computes_what_numpy_does(name):
    judge(PROGRAMS[name](te, tir))


def test_golden_file_has_no_other_programs(expected):
    assert expected.keys() == PROGRAMS.keys()


def test_arguments_in_nested_lists_are_flattened():
    A, B = (te.placeholder((16,), name=name) for name in "AB")
    C = te.compute((16,), lambda i: A[i] + B[i], name="C")
    D = te.compute((16,), lambda i: C[i] * A[i], name="D")
    tir.assert_structural_equal(te.create_prim_func([A, [B, [C, D]]]), te.create_prim_func([A, B, C, D]))
