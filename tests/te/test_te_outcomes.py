"""What tensor expressions make of borders and of mistakes: programs, sizes, derivatives and errors, as a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import outcomes
import pytest

import tir
from tir import te
from tir.te import extern, gradient, group, recurrence, reducers, symbolic_sizes, tensor, to_primfunc

TABLE = Path(__file__).parent / "outcomes_te.txt"


class Text(str):
    """A text that shows itself, without the places of this file in it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return re.sub(r"[^\s(]*\.py:\d+| at line \d+", "", str(self))


def body(made: Any) -> Text:
    """The function of tensors without its head."""
    lines = te.create_prim_func(made).script().splitlines()
    return Text("\n".join(line for line in lines[3:] if "# with" not in line and "T.func_attr" not in line))


def told(call: Callable[[], Any]) -> Text:
    """What ``call`` returns, or its error."""
    return Text(outcomes.shown(lambda: Text(call())))


def scan_of(rows: Any, first: int, index: Callable[[Any], Any], width: Any = 3) -> te.Tensor:
    state = te.placeholder((rows, width), name="s")
    init = te.compute((first, width), lambda t, i: 1.0, name="init")
    return te.scan(init, te.compute((rows, width), lambda t, i: state[index(t), i] * 2.0, name="next"), state, name="S")


def staged(*calls: Callable[[Any], Any], of: Any = None) -> Text:
    """The steps of a schedule of a sum ``C`` of ``A`` and of ``D`` that reads it after ``calls``, or the refusal."""
    A, k = te.placeholder((8, 6), name="A"), te.reduce_axis((0, 6), "k")
    C = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="C")
    D = te.compute((8,), lambda i: C[i] + 1.0, name="D")
    s = te.create_schedule((of or (lambda C, D: D.op))(C, D))
    places = {"A": A, "C": C, "D": D, "k": k, "s": s, "i": C.op.axis[0], "x": D.op.axis[0]}

    def run() -> str:
        for call in calls:
            call(type("Graph", (), places))
        return str(s.to_schedule([A, D]).trace)

    return told(run)


def names() -> dict[str, Any]:
    A, B = te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")
    n, m, p = te.var("n"), te.var("m"), te.var("p")
    k, k2 = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 4), "k2")
    ints = te.placeholder((8,), "int32", name="I")

    def noting(*calls: Callable[[], bool]) -> Any:
        with symbolic_sizes.requirements():
            return [call() for call in calls], symbolic_sizes.noted()

    def unified(*conditions: Any, fixed: Any = ()) -> Any:
        class Op:
            name, place, requires = "op", None, conditions

        values, checks = symbolic_sizes.unified([Op], set(fixed))
        return values, [check.condition for check in checks]

    modules = (extern, gradient, group, recurrence, reducers, symbolic_sizes, tensor, to_primfunc)
    return {
        **{module.__name__.rpartition(".")[2]: module for module in modules},
        "tir": tir, "te": te, "A": A, "B": B, "I": ints, "n": n, "m": m, "p": p, "k": k, "k2": k2, "body": body,
        "noting": noting, "unified": unified, "scan_of": scan_of, "staged": staged, "told": told,
        "compute": lambda shape, f, **options: te.compute(shape, f, name="C", **options),
    }  # fmt: skip


@pytest.mark.parametrize("title", outcomes.titles(TABLE))
def test_tensor_expressions(request: pytest.FixtureRequest, title: str):
    outcomes.check(request, TABLE, title, names())
