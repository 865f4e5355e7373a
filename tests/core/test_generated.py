"""What is generated is up to date: the pages and stubs made from the tables of primitives and passes."""

from __future__ import annotations

import ast
import re

import pytest

from tests.tools.generated import FILES, operator_stubs, schedule_stub, script_stubs
from tir.schedule.primitive import PRIMITIVES, QUERIES


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_is_up_to_date(file):
    kept, made = file.read_text(encoding="utf-8"), FILES[file]()
    if file.suffix == ".pyi":
        kept, made = (ast.dump(ast.parse(text)) for text in (kept, made))
    assert kept == made, "run: make generated"


def test_a_method_is_described_once():
    """Editors find the docstring of a ``def`` in its file: the stub has only those of steps and queries."""
    classes = [c for c in ast.parse(schedule_stub.text()).body if isinstance(c, ast.ClassDef)]
    methods = [m for c in classes for m in c.body]
    functions = [m for m in methods if isinstance(m, ast.FunctionDef)]
    described = [f.name for f in functions if ast.get_docstring(f)]
    assert sorted(described) == sorted({*PRIMITIVES, *QUERIES}) and "can_decompose_padding" in {
        f.name for f in functions
    }


def test_operators_with_a_def_are_imported_from_its_file():
    stub = operator_stubs.text("nn")
    assert (
        re.search(r"^from tir\.ops\.nn\.matrix_products import .*\bdense as dense\b", stub, re.M)
        and "def conv2d(" in stub
    )


def test_functions_made_by_a_table_are_described_without_examples():
    assert script_stubs.prose("One\nparagraph.\n\nTwo.\n\n>>> 1\n1") == ['    """One paragraph. Two."""']
