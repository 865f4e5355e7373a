"""What is generated is up to date: the pages and stubs made from the tables of primitives and passes."""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path

import pytest

import tir
from tir.ops import _docs as operator_docs
from tir.ops import _stubs as operator_stubs
from tir.schedule import docs
from tir.schedule import stubs as schedule_stubs
from tir.schedule.primitive import PRIMITIVES, QUERIES
from tir.script import _stubs as script_stubs
from tir.transform import _stubs as transform_stubs


def test_page_of_primitives():
    assert docs.PAGE.read_text(encoding="utf-8") == docs.text(), "run: python -m tir.schedule.docs"


def test_stub_of_the_schedule():
    stub = Path(tir.schedule.__file__).with_name("schedule.pyi")
    kept, made = (ast.dump(ast.parse(text)) for text in (stub.read_text(encoding="utf-8"), schedule_stubs.text()))
    assert kept == made, "run: python -m tir.schedule.stubs"  # the kept one is formatted besides


def test_stub_of_the_passes():
    stub = transform_stubs.STUB.read_text(encoding="utf-8")
    assert stub == transform_stubs.text(), "run: python -m tir.transform._stubs"


def test_page_of_operators():
    assert operator_docs.PAGE.read_text(encoding="utf-8") == operator_docs.text(), "run: python -m tir.ops._docs"


@pytest.mark.parametrize(
    "stub, text, module",
    [
        (script_stubs.PACKAGE_STUB, script_stubs.package_text, "tir.script._stubs"),
        (script_stubs.STUB, script_stubs.text, "tir.script._stubs"),
        *((path, partial(operator_stubs.text, name), "tir.ops._stubs") for name, path in operator_stubs.STUBS.items()),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_stub(stub, text, module):
    kept, made = (ast.dump(ast.parse(source)) for source in (stub.read_text(encoding="utf-8"), text()))
    assert kept == made, f"run: python -m {module}"


def test_a_method_is_described_once():
    """Editors find the docstring of a ``def`` in its file: the stub has only those of steps and queries."""
    stub = Path(tir.schedule.__file__).with_name("schedule.pyi")
    methods = [
        m for c in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(c, ast.ClassDef) for m in c.body
    ]
    functions = [m for m in methods if isinstance(m, ast.FunctionDef)]
    described = [f.name for f in functions if ast.get_docstring(f)]
    assert sorted(described) == sorted({*PRIMITIVES, *QUERIES}) and "can_decompose_padding" in {
        f.name for f in functions
    }


def test_operators_with_a_def_are_imported_from_its_file():
    stub = operator_stubs.text("nn")
    assert "from tir.ops.nn.matrix_products import dense as dense" in stub and "def conv2d(" in stub


def test_functions_made_by_a_table_are_described_without_examples():
    assert script_stubs.prose("One\nparagraph.\n\nTwo.\n\n>>> 1\n1") == ['    """One paragraph. Two."""']
