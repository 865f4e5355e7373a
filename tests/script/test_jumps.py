"""Names that change, ``break``, ``continue`` and ``return``: a program means what Python makes of its text."""

import random

import numpy as np
import pytest

import tir
from tir.script import tir as T

HEAD = """
@T.prim_func
def f(A: T.Buffer((12,), "int32"), B: T.Buffer((12,), "int32")):
"""
NAMES = ("x", "y", "z")


def results(body: str, first: np.ndarray) -> list[np.ndarray]:
    """What Python, the executor and LLVM leave in B; and again after the printed program was read back."""
    program = tir.script.parse(HEAD + body)
    again = tir.script.parse_data(program.script())
    assert tir.structural_equal(again, program)
    found = []
    for run in (python(body), tir.build(program, "interpreter"), tir.build(again, "llvm")):
        a, b = first.copy(), np.zeros(12, "int32")
        run(a, b)
        found.append(b)
    return found


def python(body: str):
    names: dict = {}
    exec("def f(A, B):\n" + body, names)
    return names["f"]


class Draw:
    """A random body in which names change below loops and branches, and jumps leave them."""

    def __init__(self, seed: int):
        self.random, self.lines = random.Random(seed), []

    def body(self) -> str:
        for name in NAMES:
            self.line(1, f"{name} = {self.random.randint(0, 9)}")
        self.statements(1, 3, in_loop=False)
        self.line(1, "B[11] = x + y * 3 + z * 7")
        return "\n".join(self.lines)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def number(self) -> str:
        return self.random.choice((*NAMES, "A[x % 12]", "A[y % 12]", "B[z % 12]", str(self.random.randint(0, 9))))

    def place(self) -> str:
        return self.random.choice((*NAMES, f"A[{self.number()} % 12]", f"B[{self.number()} % 12]"))

    def small(self) -> str:
        a, b, c = (self.number() for _ in range(3))
        return self.random.choice((f"({a} + {b} * 2) % 11", f"max({a}, {b}) % 10", f"({a} if {b} < {c} else 3) % 9"))

    def statements(self, depth: int, fuel: int, in_loop: bool) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, fuel, in_loop)

    def statement(self, depth: int, fuel: int, in_loop: bool) -> None:
        kind = self.random.choice(("set", "set", "sets", "store", "if", "if", "for", "while", "jump", "leave"))
        name = self.random.choice(NAMES)
        if kind == "store":
            self.line(depth, f"B[{self.number()} % 12] = {self.number()} + {self.number()}")
        elif kind == "sets":
            count = self.random.choice((1, 2, 2, 3))
            places, values = ([draw() for _ in range(count)] for draw in (self.place, self.small))
            self.line(depth, f"{', '.join(places)} = {', '.join(values)}")
        elif kind == "jump" and in_loop:
            self.line(depth, self.random.choice(("break", "continue")))
        elif kind == "leave":
            self.line(depth, f"if {self.number()} > 7:")
            self.line(depth + 1, "return")
        elif kind == "if" and fuel:
            self.line(depth, f"if {self.number()} % 3 < {self.number()} % 4:")
            self.statements(depth + 1, fuel - 1, in_loop)
            if self.random.random() < 0.5:
                self.line(depth, "else:")
                self.statements(depth + 1, fuel - 1, in_loop)
        elif kind in ("for", "while") and fuel:
            self.loop(kind, depth, fuel)
        else:
            self.line(depth, f"{name} = {self.small()}")

    def loop(self, kind: str, depth: int, fuel: int) -> None:
        counter = f"i{len(self.lines)}"
        if kind == "for":
            self.line(depth, f"for {counter} in range({self.random.choice(('5', '0, 9, 2', f'{self.number()} % 6'))}):")
            self.line(depth + 1, f"x = (x + {counter}) % 12")
        else:
            self.line(depth, f"{counter} = 0")
            self.line(depth, f"while {counter} < 4:")
            self.line(depth + 1, f"{counter} += 1")
        self.statements(depth + 1, fuel - 1, in_loop=True)


@pytest.mark.parametrize("seed", range(60))
def test_a_random_body_means_what_python_makes_of_it(seed):
    body = Draw(seed).body()
    expected, *found = results(body, np.random.default_rng(seed).integers(0, 10, 12).astype("int32"))
    for result in found:
        np.testing.assert_array_equal(result, expected, body)


def test_a_number_of_python_takes_the_widest_type_that_is_assigned_to_it():
    @T.prim_func
    def means(A: T.Buffer((4, 8), "float64"), B: T.Buffer((4,), "float64")):
        for i in T.parallel(4):
            total = 0
            for k in range(8):
                total += A[i, k]
            B[i] = total / 8.0

    a = np.random.default_rng(0).random((4, 8))
    np.testing.assert_allclose(tir.build(means).new(a), a.mean(1))


def test_a_typed_name_keeps_its_type():
    with pytest.raises(tir.ParseError, match="`x` holds int8|holds int8"):
        tir.script.parse(HEAD + "    x: T.int8 = T.int8(1)\n    for i in range(4):\n        x = x + A[i]\n")


@pytest.mark.parametrize(
    "body",
    [
        "    x = A[1]\n    y = 1\n    for i in range(5):\n        x, y = y, x + y\n    B[0] = x\n",
        "    for i in range(6):\n        A[i], A[11 - i] = A[11 - i], A[i]\n    B[0] = A[0]\n    B[11] = A[11]\n",
        "    x = A[2]\n    for i in range(2):\n        x, B[x] = 4, x\n        (B[0], B[1]), x = (B[1], x), B[0]\n",
    ],
)
def test_several_places_are_assigned_after_all_values_are_known(body):
    expected, *found = results(body, np.arange(12, dtype="int32"))
    for result in found:
        np.testing.assert_array_equal(result, expected)


def test_a_name_that_is_read_in_the_next_iteration_changes():
    expected, *found = results(
        "    x = 5\n    for i in range(4):\n        B[i] = x\n        x = A[i]\n", np.arange(12, dtype="int32")
    )
    for result in found:
        np.testing.assert_array_equal(result, expected)


def test_the_condition_of_a_while_sees_the_new_value():
    expected, *found = results(
        "    more = A[0] < 9\n    i = 0\n    while more:\n        i += 1\n        more = A[i] < 6\n    B[0] = i\n",
        np.arange(12, dtype="int32"),
    )
    for result in found:
        np.testing.assert_array_equal(result, expected)


def test_a_name_that_only_shadows_stays_a_value():
    program = tir.script.parse(
        HEAD + "    x = A[0] + 1\n    B[0] = x\n    for i in range(4):\n        x = A[i]\n        B[i] = x\n"
    )
    assert "allocate" not in program.script()


def test_a_row_sum_by_a_name_runs_on_the_gpu_simulator():
    @T.prim_func
    def sums(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("row"):
                vi = T.axis.spatial(8, i)
                total = 0.0
                for k in range(16):
                    if A[vi, k] < 0.25:
                        continue
                    total += A[vi, k]
                B[vi] = total

    sch = tir.Schedule(sums)
    outer, inner = sch.split("i", [None, 4])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    a = np.random.default_rng(0).random((8, 16)).astype("float32")
    b = np.zeros(8, "float32")
    tir.build(sch.mod, "cuda-sim")(a, b)
    np.testing.assert_allclose(b, np.where(a < 0.25, 0, a).sum(1), rtol=1e-5)


REFUSED = [
    ("    x = 0\n    for i in T.parallel(4):\n        x += A[i]\n", "`x` is defined outside of loop `i`, whose iterations run at once"),
    ("    for i in T.parallel(4):\n        if A[i] > 0:\n            break\n", "iterations of loop `i` run at once"),
    ("    for i in range(4):\n        with T.block('b'):\n            if A[0] > 0:\n                continue\n            B[0] = 1\n", "`continue` leaves a `with`"),
    ("    for i in T.parallel(4):\n        if A[i] > 0:\n            return\n", "iterations of loop `i` run at once"),
    ("    for i in range(4):\n        with T.block('b'):\n            if A[0] > 0:\n                return\n", "`return` leaves a loop"),
    ("    break\n", "`break` outside of a loop"),
    ("    for i in range(4):\n        if A[i] > 0:\n            i += 1\n", "`i` is defined outside this scope"),
]  # fmt: skip


@pytest.mark.parametrize("body, message", REFUSED, ids=range(len(REFUSED)))
def test_a_jump_or_change_that_has_no_meaning_is_one_error(body, message):
    with pytest.raises(tir.ParseError, match="^1 error in") as caught:
        tir.script.parse(HEAD + body)
    assert message in str(caught.value)


@pytest.mark.parametrize("word", ["break", "continue"])
def test_a_jump_may_be_written_as_a_call(word):
    body = "    for i in range(12):\n        if A[i] > 5:\n            {}\n        B[i] = A[i]\n"
    expected = tir.script.parse(HEAD + body.format(word))
    for call in (f"T.{word}_loop()", f"T.evaluate(T.{word}_loop())"):
        tir.assert_structural_equal(tir.script.parse(HEAD + body.format(call)), expected)
    with pytest.raises(tir.ParseError, match=f"`{word}` outside of a loop"):
        tir.script.parse(HEAD + f"    T.{word}_loop()\n")
