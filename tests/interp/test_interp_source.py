"""The Python that the reference executor makes of expressions: which results are wrapped, and what is checked."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import numpy as np
import outcomes
import pytest
from corpus_programs import ALL, CORPUS

from tir.dtype import DType
from tir.function import IRModule
from tir.interp import expressions, lanes
from tir.interp.compiler import Compiler
from tir.op import OPS
from tir.script import parse

TABLE = Path(__file__).parent / "outcomes_source.txt"
HEADER = (
    'A: T.Buffer((32,), "float32"), data: T.Buffer((32,), "int32"), n: T.int32, m: T.int32, x8: T.int8, u8: T.uint8, '
    "c4: T.int4, l: T.int64, b: T.bool, f: T.float32, g: T.float32, h: T.bfloat16"
)


class Source(str):
    def __repr__(self):
        return str(self)


class Recording(Compiler):
    """Keeps the bounds of each integer."""

    def integer(self, e):
        text, bounds = super().integer(e)
        self.found = {**getattr(self, "found", {}), repr(e): bounds}
        return text, bounds


def source(*texts):
    """The source of each expression, of a loop ``i`` over 0:16 and ``j`` over 1:5; constants in angle brackets, and the
    bounds of an integer."""
    lines = []
    for text in texts:
        body = f"    for i in range(16):\n        for j in range(1, 5):\n            T.evaluate({text})\n"
        func = parse(f"@T.prim_func\ndef f({HEADER}):\n{body}")
        compiler = Recording(func, True, False)
        made = compiler.compile().split("in range(1, 1 + 4):\n", 1)[1].rsplit("\n    return", 1)[0]
        made = re.sub(r"\b_(k|np)\d+\b", lambda name: f"<{shown(compiler.constants[name[0]])}>", made)
        low, high = compiler.found.get(repr(func.body.body.body.value), (None, None))
        lines += [
            text if low is None else f"{text} in {low}:{high}",
            *(f"  {' '.join(line.split())}" for line in made.splitlines()),
        ]
    return Source("\n".join(lines))


def shown(constant):
    if isinstance(constant, np.ndarray):
        return f"{constant.dtype} {constant.tolist()}"
    return constant.__name__ if isinstance(constant, type) else str(constant)


class Site:
    def fail(self, message, values):
        raise RuntimeError(message)


def names():
    def divide(how, a, b):
        return lanes.divide_lanes(np.array(a), np.array(b), how, Site(), ()).tolist()

    def shaped(offset, shape, strides):
        return lanes.shaped(np.arange(24), offset, shape, strides).tolist()

    def lanes_left(where):
        return lanes.lanes_left(np.array([True, False, True]), where, lambda lanes: lanes > 1).tolist()

    def lane_by_lane():
        condition = np.array([True, False, True])
        found = [lanes.lane_by_lane(c, lambda k: k, lambda k: -k, np.dtype("int8")) for c in (condition, ~condition)]
        return [f.tolist() for f in found]

    return {
        "source": source, "divide": divide, "shaped": shaped, "lanes_left": lanes_left, "lane_by_lane": lane_by_lane,
        "q_multiply": lambda *args: int(OPS["q_multiply_shift"].numpy(*args)), "identifier": expressions.identifier,
        "shift_amounts": lambda a: lanes.shift_amounts(np.array(a), 8, Site(), ()).tolist(),
        "shift_amount": lambda a: lanes.shift_amount(a, 8, Site(), ()),
        "concatenate": lambda parts: lanes.joined(tuple(parts), np.dtype("int8")).tolist(), "DType": DType,
    }  # fmt: skip


@pytest.mark.parametrize("title", outcomes.titles(TABLE))
def test_source_of_expressions(request, title):
    outcomes.check(request, TABLE, title, names())


def compiled(text, check, regions):
    """The sources of the functions of a program of the corpus."""
    program = IRModule.of(parse(text))
    return "\n".join(Compiler(f, check, regions).compile() for f in program.functions.values())


@pytest.mark.parametrize("name", [path.stem for path in sorted(CORPUS.glob("*.py"))])
def test_source_of_programs(request, name):
    programs = [p for p in ALL if p.id.startswith(f"{name}-")]
    parts = []
    for p in programs:
        made = outcomes.shown(lambda: Source(compiled(p.values[0], True, True)))  # noqa: B023
        unchecked = outcomes.shown(lambda: Source(compiled(p.values[0], False, False)))  # noqa: B023
        parts += [
            f"== {p.id}",
            made,
            "-- unchecked",
            *difflib.unified_diff(made.splitlines(), unchecked.splitlines(), n=0, lineterm=""),
        ]
    path = CORPUS.parent / "golden" / "executor" / f"{name}.txt"
    text = "\n".join(parts) + "\n"
    if request.config.getoption("--update-golden"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")
