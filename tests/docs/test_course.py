"""The course: solutions pass their checks, and what is unsolved or wrong is told so."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tir.schedule.primitive import PRIMITIVES

COURSE = Path(__file__).parents[2] / "docs/course"


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, COURSE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # notebooks import it, dataclasses look it up
    spec.loader.exec_module(module)
    return module


make, checks = _module("make"), _module("checks")
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in make.SOURCES}


class Notebook:
    """Cells run in order in one namespace, as a notebook runs them."""

    def __init__(self, name: str) -> None:
        self.name = name
        sys.modules["notebook"] = module = ModuleType("notebook")  # dataclasses look it up
        self.names: dict[str, Any] = vars(module)
        self.number = 0

    def run(self, code: str) -> Any:
        """Run a cell; the value of its check, if it has one."""
        self.number += 1
        title = f"<{self.name} cell {self.number}>"
        body, mark, asked = code.partition("\ncheck")
        linecache.cache[title] = (len(code), None, code.splitlines(True), title)
        exec(compile(body, title, "exec"), self.names)
        return eval(mark.lstrip() + asked, self.names) if mark else None


@pytest.fixture
def registry():
    """The primitives that a notebook registers are gone after it."""
    kept = dict(PRIMITIVES)
    yield
    PRIMITIVES.clear()
    PRIMITIVES.update(kept)


@pytest.mark.parametrize("name", SOURCES)
def test_solutions_pass_and_other_answers_fail_with_their_message(name, registry):
    notebook = Notebook(name)
    exercises = 0
    for part in make.cells(SOURCES[name]):
        if isinstance(part, make.Code):
            notebook.run(part.text)
        elif isinstance(part, make.Exercise):
            exercises += 1
            assert part.wrong, f"{name}: an exercise without a wrong answer"
            assert not notebook.run(part.cell(part.stub)), f"{name}: passes unsolved:\n{part.stub}"
            for message, answer in part.wrong:
                verdict = notebook.run(part.cell(answer))
                assert not verdict and message in repr(verdict), f"{name}: {message}\n{verdict}"
            verdict = notebook.run(part.cell(part.solution))
            assert verdict, f"{name}: {verdict}"
            assert verdict.picture is not None and verdict._repr_html_()
    assert 2 <= exercises <= 4


@pytest.mark.parametrize("name", SOURCES)
def test_notebooks_are_those_of_the_texts(name):
    made = COURSE / f"{name}.ipynb"
    assert made.read_text(encoding="utf-8") == make.notebook(SOURCES[name]), "run: make generated"
