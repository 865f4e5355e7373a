"""What the parser makes of bodies of functions: the program as it prints, or each fault with its place and notes."""

from __future__ import annotations

from pathlib import Path

import outcomes
import pytest

from tir import ParseError, TirError
from tir.script import parse

TABLE = Path(__file__).parent / "outcomes_bodies.txt"
HEAD = (
    '@T.prim_func\ndef f(A: T.Buffer((16, 16), "float32"), H: T.Buffer((16,), "float16"), C: T.Buffer((8,), "uint8"), '
    'V: T.Buffer((4,), "float32x4"), S: T.Buffer((4, 4), "float32", strides=(8, 1)), B: T.Buffer((4,), "float32"), '
    "n: T.int32, x: T.float32):\n"
)


class Text(str):
    def __repr__(self):
        return str(self)


def body(*lines):
    """The lines of the body as they print; of each fault its message, the text underlined, and its notes."""
    try:
        printed = parse(HEAD + "".join(f"    {line}\n" for line in lines)).script().splitlines()
    except ParseError as error:
        return Text("\n".join(map(fault, error.diagnostics)))
    except TirError as error:
        return Text(f"{type(error).__name__}: {str(error).splitlines()[1].strip()}")
    start = next(at for at, line in enumerate(printed) if line.endswith("):"))
    return Text("\n".join(line[4:] for line in printed[start + 2 :]))  # without the view S of the header


def block(*lines):
    loops = "for i, j in T.grid(4, 2):", "    with T.block('a'):"
    return body(*loops, *(f"        {line}" for line in lines))


def fault(d):
    line = d.source.line(d.span.line)
    end = d.span.end_col if d.span.end_line == d.span.line else len(line)
    return f"! {d.message} | {line[d.span.col : end]} | {'; '.join(d.notes)}"


@pytest.mark.parametrize("title", outcomes.titles(TABLE))
def test_bodies(request, title):
    outcomes.check(request, TABLE, title, {"body": body, "block": block})
