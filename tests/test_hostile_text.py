"""Damaged and hostile texts: every one parses to a program that reads back, or is refused by an error of ours."""

from __future__ import annotations

import importlib
import io
import random
import tokenize

import pytest

from tir import IRModule, PrimFunc, TirError
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
