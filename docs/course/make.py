"""The notebooks of the course, made from the texts in ``source``: ``python docs/course/make.py``.

A text is Markdown. A block ``python`` is a cell. A block ``python exercise`` is a cell to complete, which ends in its
``check(…)``; after it stand a block ``python solution`` and blocks ``python wrong: words of the message``, which replace
what is before the check. A notebook shows the solution folded; wrong answers are for the tests alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCES = sorted((HERE / "source").glob("*.md"))
BLOCK = re.compile(r"^```python(?: ([^\n]+))?\n(.*?)^```\n?", re.M | re.S)


@dataclass
class Exercise:
    """A cell to complete: what is before the check, the check, a solution, and wrong answers with words of their messages."""

    stub: str
    check: str
    solution: str = ""
    wrong: list[tuple[str, str]] = field(default_factory=list)

    def cell(self, answer: str) -> str:
        return f"{answer.rstrip()}\n\n\n{self.check}"


@dataclass
class Text:
    """A cell of Markdown."""

    text: str


@dataclass
class Code:
    """A cell that is given."""

    text: str


def cells(source: str) -> list[Text | Code | Exercise]:
    """The cells of a text, in order."""
    made: list[Text | Code | Exercise] = []
    end = 0
    for found in BLOCK.finditer(source):
        if between := source[end : found.start()].strip():
            made.append(Text(between))
        end = found.end()
        kind, code = found[1] or "", found[2].rstrip("\n")
        if not kind:
            made.append(Code(code))
        elif kind == "exercise":
            stub, mark, asked = code.partition("\ncheck")
            made.append(Exercise(stub, mark.lstrip() + asked))
        else:
            exercise = made[-1]
            assert isinstance(exercise, Exercise), f"`{kind}` stands after no exercise"
            if kind == "solution":
                exercise.solution = code
            else:
                exercise.wrong.append((kind.removeprefix("wrong: "), code))
    if rest := source[end:].strip():
        made.append(Text(rest))
    return made


def notebook(source: str) -> str:
    """The notebook of a text; after each exercise a solution unfolds."""
    made: list[dict[str, Any]] = []

    def cell(kind: str, text: str, *tags: str) -> None:
        more = {"execution_count": None, "outputs": []} if kind == "code" else {}
        metadata = {"tags": list(tags)} if tags else {}
        lines = text.splitlines(keepends=True)
        made.append({"cell_type": kind, "id": f"c{len(made)}", "metadata": metadata, **more, "source": lines})

    for part in cells(source):
        if isinstance(part, Text):
            cell("markdown", part.text)
        elif isinstance(part, Code):
            cell("code", part.text)
        else:
            cell("code", part.cell(part.stub), "exercise")
            folded = f"<details>\n<summary>A solution</summary>\n\n```python\n{part.solution}\n```\n\n</details>"
            cell("markdown", folded)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    for source in SOURCES:
        target = HERE / f"{source.stem}.ipynb"
        target.write_text(notebook(source.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
