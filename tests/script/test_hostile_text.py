"""Damaged and hostile texts: every one parses to a program that reads back, or is refused by an error of ours."""

from __future__ import annotations

import importlib
import io
import json
import math
import random
import tokenize

import pytest

import tir
from tir import IRModule, PrimFunc, TirError
from tir.schedule.trace import Trace
from tir.script import parse
from tir.testing.oracle import assert_roundtrip

ROOMS = (
    "arithmetic",
    "blocks",
    "buffers",
    "control_flow",
    "floats",
    "gpu",
    "loops",
    "lowered",
    "real_kernels",
    "vectors",
)
WORDS = [
    *"+-*/%@=<>()[]{}:.,~&|^", "**", "//", "<<", "==", "and", "or", "not", "in", "if", "else", "for", "while", "with", "as",
    "lambda", "def", "class", "return", "pass", "import", "None", "True", "...", "_", "x", "A", "i", "T", "tir", "0", "1", "-1",
    "2**31", "10**30", "1e400", "1.5", '""', '"int32"', '"n"', "b''", "T.int32", "T.handle", "T.handle()", "T.Buffer", "T.exp",
    "T.block", "T.axis.spatial", "T.Cast", "T.Ramp", "T.macro", "T.prim_func", "T.reads", "T.where", "T.grid", "T.serial",
    "T.alloc_buffer", "T.match_buffer", "T.call_extern", "T.float32", "A.data", "A[0]", "[1, 2]", "{}", "(1,)", "range(3)",
    "lambda x: x", "print", "object()", "[i for i in range(3)]",
]  # fmt: skip


def corpus() -> list[str]:
    texts = []
    for room in ROOMS:
        module = importlib.import_module(f"corpus.{room}")
        texts += [v.script() for v in vars(module).values() if isinstance(v, (PrimFunc, IRModule))]
    return texts


def mutated(text: str, rng: random.Random) -> str:
    """The text with one to three of its tokens exchanged for one of their kind, replaced, repeated or taken out."""
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.string.strip()]
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]
    for token in sorted(rng.sample(tokens, min(len(tokens), rng.randint(1, 3))), key=lambda t: t.start, reverse=True):
        first, end = (starts[line - 1] + column for line, column in (token.start, token.end))
        kin = [t.string for t in tokens if t.type == token.type]
        word = rng.choice(kin) if rng.random() < 0.6 else rng.choice([*WORDS, "", f"{token.string} {token.string}"])
        text = text[:first] + word + text[end:]
    return text


def outcome(text: str) -> PrimFunc | IRModule | None:
    """The program of a text, or None where it is refused; any other exception is a fault of the parser."""
    try:
        return parse(text)
    except TirError:
        return None


@pytest.mark.parametrize("part", range(4))
def test_mutated_programs(part):
    rng = random.Random(part)
    texts = corpus()
    for _ in range(250):
        text = mutated(rng.choice(texts), rng)
        found = outcome(text)
        if found is not None:
            assert_roundtrip(found)


# ---------------------------------------------------------------- what never ends, and what is no text

HEAD = '@T.prim_func\ndef f(A: T.Buffer((8,), "int32"), h: T.handle):\n'


@pytest.mark.parametrize("value", [
    "9**9**9", "2**(10**9)", "1 << 10**12", "(lambda: 9**9**9)()", "pow(9, 9**9)", "-9**9**9", "[0] * 10**12", "'a' * 10**12",
    "sum([i for i in range(10**10)])", "len([1 for i in range(10**6) for j in range(10**6)])", "(10**1000) ** 100",
])  # fmt: skip
def test_evaluation_is_bounded(value):
    with pytest.raises(tir.ParseError, match="has more than|runs over more than"):
        parse(f"{HEAD}    A[0] = {value}\n")


@pytest.mark.parametrize(
    "value", ["2**31 - 1", "1**9**3", "0**9**3", "(10**1000 + 1) & 3", "len([i for i in range(1000)])"]
)
def test_useful_numbers_are_computed(value):
    parse(f"{HEAD}    A[0] = {value}\n")


def test_macros_that_double_end(monkeypatch):
    for name in ("macro", "parse_stmt"):
        monkeypatch.setattr(f"tir.script.{name}.MOST_EXPANDED", 1 << 12)  # what counts is that there is an end
    twice = "@T.macro\ndef m(A):\n    m(A)\n    m(A)\n"
    with pytest.raises(tir.ParseError, match="macro `m` expands recursively without end"):
        parse(f"{twice}{HEAD}    m(A)\n")
    chain = "@T.macro\ndef a(A):\n    A[0] = 1\n" + "".join(
        f"@T.macro\ndef {new}(A):\n    {old}(A)\n    {old}(A)\n"
        for old, new in zip("abcdefghijklmnopqrst", "bcdefghijklmnopqrstu")
    )
    with pytest.raises(tir.ParseError, match="macros expand to more than 4096 statements"):
        parse(f"{chain}{HEAD}    u(A)\n")


@pytest.mark.parametrize(
    "text,says",
    [
        (HEAD + "    pass # \ud800\n", "not Python text"),
        (HEAD + "    pass\x00\n", "null bytes"),
        ("@T.x\ndef f():\n    pass\n", "the dialect has no T.x"),
        ("@T.exp\ndef f():\n    pass\n", "got function"),
        ("import nosuch\n" + HEAD + "    A[0] = 1\n", "No module named 'nosuch'"),
        ("from os import nosuch\n" + HEAD + "    A[0] = 1\n", "no attribute 'nosuch'"),
        (HEAD + "    B = T.alloc_buffer((h,))\n", "must be an integer, not handle"),
        (HEAD + "    B = T.alloc_buffer((A.data,))\n", "must be an integer, not handle"),
        (
            HEAD + "    for i in T.thread_binding(4, thread=T.block):\n        A[i] = 1\n",
            "thread axis of T.thread_binding is a string",
        ),
        (HEAD + "    T.func_attr({'k': object()})\n", "attributes are numbers, strings"),
    ],
)
def test_faults_of_the_text_are_shown(text, says):
    with pytest.raises(tir.ParseError, match=says):
        parse(text)


# ---------------------------------------------------------------- saved traces


def recorded() -> list:
    sch = tir.Schedule(
        parse("""
@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
"""),
        seed=1,
    )
    i, j = sch.get_loops("B")
    tiles = sch.sample_perfect_tile(j, 2)
    j0, j1 = sch.split(j, [tiles[0] * 1, tiles[1]])
    sch.reorder(j0, i, j1)
    sch.annotate(j1, "note", {"a": [1, 2.5, "x", None]})
    sch.cache_read("B", 0, "local")
    sch.transform_layout("B", ("write", 0), lambda x, y: (y, x))
    return sch.trace.as_json()


def damaged(value, rng: random.Random, odds: float):
    """A copy of plain data with some of its parts exchanged, renamed or left out."""
    if rng.random() < odds:
        return rng.choice([None, True, -1, 3, 10**30, 1.5, "", "x", "B", [], [[]], {}, {"$loop": 0}, {"$block": 1}, {"$expr": -1},
                           {"$index_map": "lambda i: 9**9**9"}, {"$index_map": 3}, {"$op": "**", "a": 9, "b": 9, "value": 1},
                           {"$op": "%", "a": 9, "b": 0, "value": 1}, {"$loop": 0, "name": 1, "func": []}, math.nan])  # fmt: skip
    if isinstance(value, dict):
        return {
            k if rng.random() > odds else k + "x": damaged(v, rng, odds)
            for k, v in value.items()
            if rng.random() > odds / 2
        }
    if isinstance(value, list):
        return [damaged(v, rng, odds) for v in value if rng.random() > odds / 2]
    return value


@pytest.mark.parametrize("part", range(2))
def test_damaged_traces(part):
    rng, good = random.Random(part), recorded()
    program = tir.Schedule(
        parse(
            HEAD + "    for i in range(8):\n        with T.block('B'):\n            vi = T.axis.spatial(8, i)\n"
            "            A[vi] = 1\n"
        )
    ).mod
    for _ in range(300):
        data = damaged(good, rng, rng.choice([0.01, 0.05]))
        try:
            trace = Trace.from_json(json.dumps(data))
            str(trace)
            trace.simplified()
            trace.replay(program)
        except TirError as error:
            assert "a fault inside" not in str(error), (str(error), data)


@pytest.mark.parametrize("text", [
    "9**9**9", "lambda i: 9**9**9", "lambda i: [1 << 10**12]", "lambda i: nothing", "lambda i: i // 0", "lambda i: i()", "lambda: [",
    "lambda i: __import__('os')", "lambda i: [x for x in i]", "lambda i: " + "-" * 5000 + "i", "lambda i: T.nothing(i)", "\0",
    "lambda i: 'x'", "lambda i: (" * 300, "lambda *i: i", "lambda **i: 1", "\ud800",
])  # fmt: skip
def test_hostile_index_maps(text):
    trace = [
        {
            "name": "transform_layout",
            "args": {"block": "B", "buffer": 0, "index_map": {"$index_map": text}},
            "result": None,
        }
    ]
    with pytest.raises(TirError):
        Trace.from_json(trace).replay(parse(HEAD + "    with T.block('B'):\n        A[0] = 1\n"))
