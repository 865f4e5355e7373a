"""The programs of the corpus, as texts: parameters of tests."""

import ast
from pathlib import Path

import pytest

CORPUS = Path(__file__).with_name("corpus")


def programs():
    for path in sorted(CORPUS.glob("*.py")):
        text = path.read_text()
        for item in ast.parse(text).body:
            if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
                first = min(d.lineno for d in item.decorator_list)
                lines = text.splitlines()[first - 1 : item.end_lineno]
                yield pytest.param("\n".join(lines), id=f"{path.stem}-{item.name}")


ALL = list(programs())
