"""Repeated expressions get one name, at the innermost statement around them; never past guards, effects or writes."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tir
from tir.expr import FloorDiv, FloorMod
from tir.script import parse
from tir.stmt import LetStmt
from tir.testing import assert_roundtrip, assert_same_result
from tir.transform import common_subexpr_elim
from tir.visit import walk

HEADER = """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "int32"), n: T.int32):
    {attr}
    {body}
"""


def program(body: str, attr: str = 'T.func_attr({"tir.noalias": True})'):
    return parse(HEADER.format(attr=attr, body=body.strip("\n").replace("\n", "\n    ")))


def computed(func, kind) -> int:
    """How many divisions, or calls of an operator, the program contains."""
    return sum(
        isinstance(e, (FloorDiv, FloorMod)) if kind == "/" else getattr(e, "op", None) == kind for e in walk(func)
    )


# the body, what is counted, how often it occurs after
NAMED = {
    "in two statements": ("for i in range(64):\n    C[i] = i % 7\n    B[i] = A[i % 7]", "/", 1),
    "in two nests": (
        "for i in range(8):\n    C[i] = i + n // 7\nfor i in range(8):\n    C[i + 8] = i - n // 7",
        "/",
        1,
    ),
    "in a loop and its head": ("for i in range(n // 7):\n    C[i] = n // 7", "/", 1),
    "in both branches": ("if n > 3:\n    C[0] = n // 7\nelse:\n    C[1] = n // 7", "/", 1),
    "in a condition and a branch": ("if n % 7 == 1:\n    C[0] = n % 7", "/", 1),
    "a load that nothing writes": (
        'for i in range(64):\n    B[i] = T.exp(A[i])\n    C[i] = T.Cast("int32", T.exp(A[i]))',
        "exp",
        1,
    ),
    "a load in its own update": ("for i in range(64):\n    A[i] = T.exp(A[i]) + T.exp(A[i]) * A[i]", "exp", 1),
    "one in another": ("for i in range(64):\n    C[i] = i // 7 + i // 7 // 3\n    B[i // 7] = A[i // 7 // 3]", "/", 2),
    "only inside of a larger one": ("for i in range(64):\n    C[i] = i // 7 // 3\n    B[i] = A[i // 7 // 3]", "/", 2),
    "sums in another order": ("for i in range(64):\n    C[i] = (i + n) % 7\n    B[i] = A[(n + i) % 7]", "/", 1),
    "inside of one branch": ("if n > 3:\n    C[0] = n // 7\n    C[1] = n // 7 + 1", "/", 1),
}


@pytest.mark.parametrize("what", NAMED)
def test_one_name_for_what_occurs(what):
    body, kind, left = NAMED[what]
    func = program(body)
    made = common_subexpr_elim(func)
    assert computed(func, kind) > computed(made, kind) == left, made
    assert_roundtrip(made)
    for n in (0, 3, 22):
        args = [np.linspace(-1, 1, 64, dtype="float32"), np.zeros(64, "float32"), np.zeros(64, "int32"), n]
        assert_same_result(func, made, args)


def test_the_named_program_computes_what_numpy_does():
    func = program(
        "for i in range(64):\n    C[i] = (i * n) % 7\n    B[i] = T.exp(A[(i * n) % 7]) + T.exp(A[(i * n) % 7])"
    )
    a, b, c = np.linspace(-1, 1, 64, dtype="float32"), np.zeros(64, "float32"), np.zeros(64, "int32")
    tir.build(common_subexpr_elim(func))(a, b, c, 5)
    np.testing.assert_array_equal(c, np.arange(64) * 5 % 7)
    np.testing.assert_allclose(b, 2 * np.exp(a.astype("float64")[c]), rtol=1e-6)


KEPT = {
    "past a condition": "if n != 0:\n    C[0] = 20 // n\nif n != 0:\n    C[1] = 20 // n",
    "past a lazy operand": "C[0] = T.if_then_else(n != 0, 20 // n, 0) + T.if_then_else(n != 0, 20 // n, 1)",
    "past a loop that may be empty": "for i in range(n):\n    C[i] = 20 // n\nfor i in range(n):\n    C[i + 8] = 20 // n",
    "past an assertion": 'assert n != 0, "zero"\nC[0] = 20 // n\nC[1] = 20 // n',
    "past a write": "C[0] = C[5] // 7\nC[5] = 9\nC[1] = C[5] // 7",
    "past a write in a loop": "for i in range(64):\n    B[i] = T.exp(A[0])\n    B[63 - i] = T.exp(A[0])\n    A[0] = A[0] + T.float32(1)",
    "past the iterations of a while": "while C[0] % 7 != 0:\n    C[0] = C[0] % 7 - 1",
    "past a binding": "for i in range(3):\n    x: T.int32 = C[i]\n    C[i] = x // 7\nfor i in range(3):\n    y: T.int32 = C[i]\n    C[i] = y // 7",
    "past a call": 'C[0] = C[5] // 7\nT.call_extern("void", "change", C.data)\nC[1] = C[5] // 7',
}


@pytest.mark.parametrize("what", KEPT)
def test_nothing_is_named(what):
    func = program(KEPT[what])
    made = common_subexpr_elim(func)
    if what == "past an assertion":  # what follows it may have a name
        assert made.body.stmts[0] is func.body.stmts[0]
    else:
        assert made.body is func.body
    if "call" not in what:
        for n in (0, 3):
            args = [np.zeros(64, "float32"), np.zeros(64, "float32"), np.full(64, 30, "int32"), n]
            try:
                assert_same_result(func, made, args)
            except tir.RunError as error:
                assert n == 0 and "zero" in str(error)


def test_memory_with_two_names_is_not_read_once():
    body = "B[0] = T.exp(A[0])\nB[1] = T.exp(A[0])"
    assert computed(common_subexpr_elim(program(body)), "exp") == 1
    assert computed(common_subexpr_elim(program(body, 'T.func_attr({"tir.noalias": False})')), "exp") == 2


def test_of_a_thousand_nests_each_is_looked_at_a_few_times(monkeypatch):
    import tir.arith.linear as linear

    counts = []
    for nests in (10, 40):
        body = "\n".join(
            f"for i in range(8):\n    C[i] = (i + {k}) % 7\n    B[i] = A[(i + {k}) % 7]" for k in range(nests)
        )
        func, calls = program(body), [0]
        original = linear._key

        def counted(e, calls=calls, original=original):
            calls[0] += 1
            return original(e)

        monkeypatch.setattr(linear, "_key", counted)
        common_subexpr_elim(func)
        monkeypatch.setattr(linear, "_key", original)
        counts.append(calls[0])
    assert counts[1] <= 4.5 * counts[0]


def random_body(
    r: random.Random,
    depth: int = 0,
    names: tuple[str, ...] = ("n",),
    divisors: tuple[str, ...] = ("3", "7", "T.max(n, 1)"),
) -> list[str]:
    """Statements on C (integers below 64) that share divisions, remainders and loads, under guards and loops.

    Where ``n`` cannot be zero, some divide by it: these fail where they are computed too early.
    """

    def value(level: int = 0) -> str:
        kind = r.randrange(6)
        if level > 2 or kind == 0:
            return r.choice((*names, str(r.randint(1, 9))))
        if kind == 1:
            return f"C[{value(level + 1)} % 64]"
        if kind == 2:
            return f"T.if_then_else({value(level + 1)} != 0, {value(level + 1)} // 3, {value(level + 1)} % 5)"
        if kind == 3:
            return f"({value(level + 1)} + {value(level + 1)})"
        return f"{value(level + 1)} {r.choice(('//', '%'))} {r.choice(divisors)}"

    lines = []
    for _ in range(r.randint(1, 4)):
        kind = r.randrange(7) if depth < 3 else 0
        if kind < 3:
            lines.append(f"C[({value()}) % 64] = ({value()}) % 64")
        elif kind == 3:
            var = f"i{depth}{r.randrange(100)}"
            extent = r.choice(("2", "3", "n % 3"))
            inside = (*divisors, "n", "n") if "n" in extent else divisors
            inner = random_body(r, depth + 1, (*names, var), inside)
            lines += [f"for {var} in range({extent}):", *("    " + line for line in inner)]
        elif kind == 4:
            condition, inside = r.choice(((f"{value()} > 2", divisors), ("n > 0", (*divisors, "n", "n"))))
            lines += [f"if {condition}:", *("    " + line for line in random_body(r, depth + 1, names, inside))]
            if r.random() < 0.5:
                lines += ["else:", *("    " + line for line in random_body(r, depth + 1, names, divisors))]
        elif kind == 5:
            var = f"x{depth}{r.randrange(100)}"
            lines += [f"{var}: T.int32 = {value()}"]
            names = (*names, var)
        else:
            lines += [f"assert {value()} < 1000, 'large'"]
    return [*lines, "C[0] = 1"]


def test_random_programs_compute_the_same():
    named = 0
    for seed in range(50):
        func = program("\n".join(random_body(random.Random(seed))))
        made = common_subexpr_elim(func)
        named += sum(isinstance(s, LetStmt) for s in walk(made)) > sum(isinstance(s, LetStmt) for s in walk(func))
        args = [np.zeros(64, "float32"), np.zeros(64, "float32"), np.arange(64, dtype="int32")[::-1].copy(), seed % 9]
        engines = ["interpreter", "llvm"] if seed % 10 == 0 else ["interpreter"]
        assert_same_result(func, made, args, engines=engines)
        assert_roundtrip(made)
        assert common_subexpr_elim(made) is made or computed(common_subexpr_elim(made), "/") <= computed(made, "/")
    assert named > 12
