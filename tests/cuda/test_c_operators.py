"""Precedence in the C that is printed: every operator of expressions as an operand of every other."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tir
from codegen.cuda import expr
from codegen.cuda.generator import Generator
from codegen.cuda.kernel import emit_kernel  # noqa: F401  (fills the tables of rules)
from tir.script import parse

COMPILER = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
TYPES = {"int32": "int", "int64": "long long", "int8": "signed char", "float32": "float", "bool": "bool"}
VALUES = {"int32": (5, -3), "int64": (7, -2), "int8": (3, -100), "float32": (1.5, -0.25), "bool": (True, False)}
LEAVES = {t: [tir.Var(f"{t}_{k}", t) for k in "xy"] for t in TYPES}


def c(value: int, dtype: str) -> tir.IntImm:
    return tir.IntImm(value, dtype)


def operators() -> Iterator[tuple[str, tuple[str, ...], str, Callable[..., Any]]]:
    """(name, types of the operands, type of the result, what makes it)."""
    ints, numbers = ("int32", "int64", "int8"), ("int32", "int64", "int8", "float32")
    for t in numbers:
        for kind in (tir.Add, tir.Sub, tir.Mul):
            yield f"{kind.__name__} {t}", (t, t), t, kind
        for kind in (tir.LT, tir.LE, tir.EQ, tir.NE, tir.GT, tir.GE):
            yield f"{kind.__name__} {t}", (t, t), "bool", kind
        yield f"Select {t}", ("bool", t, t), t, tir.Select
        for target in TYPES:
            yield f"Cast {t} {target}", (t,), target, lambda x, target=target: tir.Cast(target, x)
    for t in ints:
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            yield f"{name} {t}", (t, t), t, lambda x, y, name=name, t=t: tir.Call(name, (x, y), t)
        yield f"bitwise_not {t}", (t,), t, lambda x, t=t: tir.Call("bitwise_not", (x,), t)
        yield f"// {t}", (t,), t, lambda x, t=t: tir.FloorDiv(x, c(8, t))
        yield f"% {t}", (t,), t, lambda x, t=t: tir.FloorMod(x, c(8, t))
        yield f"- {t}", (t,), t, lambda x, t=t: tir.Mul(x, c(-1, t))
        yield f">> {t}", (t,), t, lambda x, t=t: tir.Call("shift_right", (x, c(1, t)), t)
        if t != "int8":
            yield f"<< {t}", (t,), t, lambda x, t=t: tir.Call("shift_left", (x, c(1, t)), t)
    yield "And", ("bool", "bool"), "bool", tir.And
    yield "Or", ("bool", "bool"), "bool", tir.Or
    yield "Not", ("bool",), "bool", tir.Not
    yield "EQ bool", ("bool", "bool"), "bool", tir.EQ
    yield "Select bool", ("bool", "bool", "bool"), "bool", tir.Select
    yield "if_then_else", ("bool", "int32", "int32"), "int32", lambda *a: tir.Call("if_then_else", a, "int32")
    yield "Cast bool", ("bool",), "int32", lambda x: tir.Cast("int32", x)


def leaves(types: tuple[str, ...], skip: int = 0) -> list[Any]:
    return [LEAVES[t][(k + skip) % 2] for k, t in enumerate(types)]


def pairs() -> Iterator[tir.Expr]:
    """Every operator, with every operator of the right type in the place of each operand, and then of all."""
    known = list(operators())
    for _, types, _, outer in known:
        for _, inner_types, result, inner in known:
            places = [k for k, t in enumerate(types) if t == result]
            for chosen in [[k] for k in places] + ([places] if len(places) > 1 else []):
                operands = leaves(types)
                for k in chosen:
                    operands[k] = inner(*leaves(inner_types, k))
                yield outer(*operands)


PAIRS = list(pairs())


def texts() -> list[str]:
    g = Generator("f")
    g.names = {v: v.name for group in LEAVES.values() for v in group}
    return [g.expr(e) for e in PAIRS]


# ---------------------------------------------------------------- C's grammar


TOKEN = re.compile(r"\s*([\w.]+|<<|>>|<=|>=|==|!=|&&|\|\||.)")
LEVELS = [
    ["||"],
    ["&&"],
    ["|"],
    ["^"],
    ["&"],
    ["==", "!="],
    ["<", "<=", ">", ">="],
    ["<<", ">>"],
    ["+", "-"],
    ["*", "/", "%"],
]
TYPE = re.compile(
    r"\((signed char|unsigned int|unsigned long long|int|long long|float|double|bool|short)\)|(?:to_integer|hidden)<([\w ]+)>"
)


class Parser:
    """An expression of C as a tree, by the grammar of the standard (C11 6.5)."""

    def __init__(self, text: str):
        self.tokens = TOKEN.findall(TYPE.sub(lambda m: f" cast_{(m[1] or m[2]).replace(' ', '_')} ", text))

    def tree(self) -> Any:
        made = self.choice()
        assert not self.tokens, self.tokens
        return made

    def next(self, *wanted: str) -> str:
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in wanted else ""

    def choice(self) -> Any:
        condition = self.binary(0)
        if not self.next("?"):
            return condition
        yes = self.choice()
        assert self.next(":")
        return ("?", condition, yes, self.choice())

    def binary(self, level: int) -> Any:
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while sign := self.next(*LEVELS[level]):
            left = (sign, left, self.binary(level + 1))
        return left

    def unary(self) -> Any:
        token = self.tokens.pop(0)
        if token in "-!~" or token.startswith("cast_"):
            return (token, self.unary())
        if token == "(":
            inner = self.choice()
            assert self.next(")")
            return inner
        return token


def test_c_reads_each_operand_as_it_was_meant(monkeypatch):
    printed = texts()
    for name in ("within", "bare"):
        monkeypatch.setattr(expr, name, lambda text, *_: text)
    monkeypatch.setattr(expr, "_operand", lambda text, *_: text)
    full = texts()
    wrong = [(a, b) for a, b in zip(printed, full, strict=True) if Parser(a).tree() != Parser(b).tree()]
    assert not wrong, f"{len(wrong)} of {len(full)}: {wrong[:3]}"


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_a_compiler_computes_what_the_executor_computes(tmp_path):
    params = ", ".join(f"{v.name}: T.{t}" for t, group in LEAVES.items() for v in group)
    func = parse(f'@T.prim_func\ndef f({params}, O: T.Buffer(({len(PAIRS)},), "float64")):\n    T.evaluate(0)\n')
    (out,) = func.buffers()
    by_name = {p.name: p for p in func.params}
    bind = {v: by_name[v.name] for group in LEAVES.values() for v in group}
    stores = [tir.BufferStore(out, tir.Cast("float64", e), (c(k, "int32"),)) for k, e in enumerate(PAIRS)]
    body = tir.visit.substitute(tir.SeqStmt(tuple(stores)), bind)
    expected = np.zeros(len(PAIRS))
    tir.build(func.with_body(body), "interpreter")(*(x for t in TYPES for x in VALUES[t]), expected)
    declared = "".join(f"{TYPES[t]} {v.name} = {x};\n" for t in TYPES for v, x in zip(LEAVES[t], c_values(t)))
    values = ",\n".join(f"(double)({TYPES[str(e.dtype)]}){text}" for e, text in zip(PAIRS, texts()))
    loop = 'for (double x : found) printf("%.17g\\n", x);'
    helper = "template <class U, class T> U to_integer(T x) { return sizeof(U) < 4 ? (U)(int)x : (U)x; }\n"
    helper += "template <class T> T hidden(int x) { return (T)x; }\n"
    program = f"#include <stdio.h>\n{helper}{declared}int main() {{\ndouble found[] = {{\n{values}}};\n{loop}\n}}\n"
    (tmp_path / "program.cpp").write_text(program)
    command = [COMPILER, "-w", "-fwrapv", "-O0", "-std=c++17", "program.cpp", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    lines = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout.split()
    np.testing.assert_array_equal(np.array(lines, "float64"), expected)


def c_values(dtype: str) -> list[str]:
    return [str(x).lower() + "f" * (dtype == "float32") for x in VALUES[dtype]]


# ---------------------------------------------------------------- statements, and C's types


@pytest.mark.parametrize(
    "extent", ["A[0] % 8", "T.Select(A[0] > 1, A[1], A[2])", "T.bitwise_or(A[0], A[1])", "A[0] // 4"]
)
def test_a_loop_ends_at_its_extent(extent):
    kernel = parse(f"""
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for t in T.thread_binding(1, thread="threadIdx.x"):
        for j in range({extent}):
            B[j] = j
""")
    lowered = tir.lower(kernel, target="cuda")
    text = emit_kernel(lowered["main_kernel"], "f").text
    (condition,) = re.findall(r"for \(int j = 0; (.*); \+\+j\)", text)
    sign, left, _ = Parser(re.sub(r"A\[(\d)\]", r"A\1", condition)).tree()
    assert (sign, left) == ("<", "j")


def test_a_shifted_constant_has_its_own_type():
    x = tir.Var("x", "int64")
    g = Generator("f")
    g.names = {x: "x"}
    assert g.expr(tir.Call("shift_left", (c(1, "int64"), x), "int64")) == "(1ll << (x & 63))"
