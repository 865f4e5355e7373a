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
