"""What a refusal says is legal, is: every call, keyword, location and name in the golden refusals is tried."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from golden_cases import CASES, perform, program_of, read

import tir
from tir.schedule.primitive import lookup

REFUSED = [path for path in CASES if "refused" in read(path)]
NO_CALL = ("lambda", "TensorIntrin")  # arguments that text does not have in full


def _pieces(text: str) -> list[str]:
    """The parts between commas outside of brackets and quotes."""
    found, depth, start = [], 0, 0
    for n, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            found.append(text[start:n].strip())
            start = n + 1
    return [*found, text[start:].strip()]


def claims(legal: str, step: str, given: dict) -> Iterator[list[dict]]:
    """For each thing said to be legal, the calls of ``step`` of which one has to be accepted."""
    calls = re.findall(rf"(?:^|, )({step}\(.*?\))(?=$|, {step}\(|, unsafe)", legal)
    for call in calls:
        if not any(word in call for word in NO_CALL):
            node = ast.parse(call, mode="eval").body
            assert isinstance(node, ast.Call)
            values = tuple(ast.literal_eval(a) for a in node.args)
            keywords = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
            yield [lookup(step).bind(values, keywords)]
    if "unsafe=True, if you know" in legal:
        yield [{**given, "unsafe": True}]
    for key, value in re.findall(r'^(\w+)=("\w+"|\[.*?\])$', legal):
        yield [{**given, key: ast.literal_eval(value)}]
    locations = re.match(r'legal locations for "\w+": (.*)', legal)
    for name in _pieces(locations[1]) if locations else ():
        if name != "root":  # that is compute_root
            yield [{**given, "loop": name}]
    names = _pieces(legal)
    if all(re.fullmatch(r"[A-Za-z_]\w*(\.\w+)?", name) and lookup(name) is None for name in names):
        yield [{**given, p: value} for p in given for name in names for value in (name, [name])]  # one, at least


@pytest.mark.parametrize("path", REFUSED, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_what_is_said_to_be_legal_is_accepted(path, monkeypatch):
    asked = []
    attempt = tir.Schedule._attempt

    def noted(self, step, state, given):
        asked.append((step, given))
        return attempt(self, step, state, given)

    monkeypatch.setattr(tir.Schedule, "_attempt", noted)
    sections = read(path)
    sch, refusal = perform(program_of(sections), sections["steps"])
    if refusal is None or not asked:
        return  # refused before it was a call of a primitive
    step, given = asked[-1]
    for calls in claims(refusal.legal, step.name, dict(given)):
        reasons = [error for other in calls if (error := _refusal(sch, step, other))]
        assert len(reasons) < len(calls), f"{refusal.legal}: {reasons[:1]}"


def _refusal(sch: tir.Schedule, step, given: dict) -> str:
    """Why a call is not taken; empty if it is."""
    ordered = {p: given[p] for p in step.signature.parameters if p in given}
    try:
        sch._attempt(step, sch.state, ordered)
    except (tir.TirError, TypeError) as error:
        return str(error).splitlines()[0]
    return ""


def test_the_refusals_that_name_something_legal():
    """Of the golden ones; those of the rest are of programs in which no variant of the call is legal."""
    named = sum("\nlegal" in read(path)["refused"] for path in REFUSED)
    assert named / len(REFUSED) > 0.6
