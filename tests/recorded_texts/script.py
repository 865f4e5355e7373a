"""The dialect: the programs of the corpus printed in both forms, and what the parser makes of damaged ones."""

from __future__ import annotations

import ast
import random
import re
import warnings
from functools import partial
from pathlib import Path

from tir.errors import TirError
from tir.script import parse

from .stages import Texts

CORPUS = Path(__file__).parents[1] / "corpus"
DAMAGED, RESHAPED = 4, 3  # texts made of each program
OPERATORS = (
    " + ",
    " - ",
    " * ",
    " // ",
    " % ",
    " / ",
    " ** ",
    " @ ",
    " << ",
    " >> ",
    " & ",
    " | ",
    " ^ ",
    " < ",
    " <= ",
    " == ",
    " != ",
    " is ",
    " in ",
    " and ",
    " or ",
)
OPERATOR = re.compile(r" (?:[-+*/%<>&|^=!@]=?|//|<<|>>|\*\*|and|or|in) ")
WORD = re.compile(r"\b[A-Za-z_]\w*\b|\b\d+\b")
KEYWORDS = {
    "for",
    "in",
    "with",
    "def",
    "if",
    "else",
    "while",
    "and",
    "or",
    "not",
    "as",
    "return",
    "class",
    "T",
    "range",
}


def programs() -> dict[str, str]:
    """The texts of the corpus."""
    found: dict[str, str] = {}
    for path in sorted(CORPUS.glob("*.py")):
        text = path.read_text("utf-8")
        for item in ast.parse(text).body:
            if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
                first = min(d.lineno for d in item.decorator_list)
                found[f"{path.stem}-{item.name}"] = "\n".join(text.splitlines()[first - 1 : item.end_lineno])
    return found


def damaged(text: str, rng: random.Random) -> str:
    """One word changed for another of the text, or for a number; still Python."""
    words = [m for m in WORD.finditer(text) if m[0] not in KEYWORDS]
    while True:
        one, other = rng.choice(words), rng.choice([*(m[0] for m in words), "0", "7", "-1", "1.5", "None", "x.y"])
        made = text[: one.start()] + other + text[one.end() :]
        try:
            ast.parse(made)
        except SyntaxError:
            continue
        if made != text:
            return made


def reshaped(text: str, rng: random.Random) -> str:
    """A text without one of its lines, with one twice, or with another operator; still Python, and itself if none is found."""
    for _ in range(30):
        lines = text.splitlines(keepends=True)
        at, kind = rng.randrange(2, max(3, len(lines))), rng.randrange(4)
        operators = [*OPERATOR.finditer(text)]
        if kind >= 2 and operators:
            one = rng.choice(operators)
            made = text[: one.start()] + rng.choice(OPERATORS) + text[one.end() :]
        else:
            made = "".join(lines[:at] + lines[at + 1 :] if kind else lines[: at + 1] + lines[at:])
        try:
            ast.parse(made)
        except SyntaxError:
            continue
        if made != text:
            return made
    return text


def parsed(name: str) -> Texts:
    text = PROGRAMS[name]
    program = parse(text)
    yield "program", program.script()
    yield "plain", program.script(syntax_sugar=False)
    rng = random.Random(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python, about escapes in strings
        for number in range(DAMAGED):
            yield f"damaged{number}", answer(damaged(text, rng))
        for number in range(RESHAPED):
            yield f"reshaped{number}", answer(reshaped(text, rng))


def answer(text: str) -> str:
    """The program of a text, or the error, without what newer Pythons suggest in it."""
    try:
        return parse(text).script()
    except TirError as error:
        return re.sub(r"\. Did you mean '\w+'\?", "", str(error))


PROGRAMS = programs()
CASES = {name: partial(parsed, name) for name in PROGRAMS}
