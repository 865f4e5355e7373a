"""What a refusal says is legal, is: every call, keyword, location and name in the golden refusals is tried."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

import pytest
from golden_cases import CASES, perform, program_of, read

import tir
from tir.schedule.offers import loop_labels
from tir.schedule.primitive import lookup

REFUSED = [path for path in CASES if "refused" in read(path)]
NOTHING = [path for path in REFUSED if "\nlegal: nothing" in read(path)["refused"]]
NO_CALL = ("TensorIntrin",)  # arguments that text does not have in full


def _pieces(text: str) -> list[str]:
    """The parts between commas outside of brackets and quotes."""
    found, depth, start = [], 0, 0
    for n, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            found.append(text[start:n].strip())
            start = n + 1
    return [*found, text[start:].strip()]


def offered(legal: str) -> list[list[str]]:
    """The calls that are offered, each after those that prepare for it."""
    named = [piece.split(" after ")[::-1] for piece in _pieces(legal)]
    return [calls for calls in named if all(re.fullmatch(r"\w+\(.*\)", call) for call in calls)]


def claims(legal: str, given: dict) -> Iterator[list[dict]]:
    """For each value said to be legal, the variants of the call of which one has to be accepted."""
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


def calls_asked(monkeypatch) -> list:
    """The steps with their arguments that schedules are asked for from now on."""
    asked: list = []
    attempt = tir.Schedule._attempt

    def noted(self, step, state, given):
        asked.append((step, given))
        return attempt(self, step, state, given)

    monkeypatch.setattr(tir.Schedule, "_attempt", noted)
    return asked


@pytest.mark.parametrize("path", REFUSED, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_what_is_said_to_be_legal_is_accepted(path, monkeypatch):
    asked = calls_asked(monkeypatch)
    sections = read(path)
    sch, refusal = perform(program_of(sections), sections["steps"])
    if refusal is None or not asked:
        return  # refused before it was a call of a primitive
    step, given = asked[-1]
    for calls in claims(refusal.legal, dict(given)):
        reasons = [error for other in calls if (error := _refusal(sch, step, other))]
        assert len(reasons) < len(calls), f"{refusal.legal}: {reasons[:1]}"
    for calls in offered(refusal.legal):
        taken = sch.copy()
        for call in calls:
            if not any(word in call for word in NO_CALL):
                exec(f"sch.{call}", {"sch": taken, "tir": tir})


def _refusal(sch: tir.Schedule, step, given: dict) -> str:
    """Why a call is not taken; empty if it is."""
    ordered = {p: given[p] for p in step.signature.parameters if p in given}
    try:
        sch._attempt(step, sch.state, ordered)
    except (tir.TirError, TypeError) as error:
        return str(error).splitlines()[0]
    return ""


@pytest.mark.parametrize("path", NOTHING, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_where_nothing_is_said_to_be_legal_no_other_place_is(path, monkeypatch):
    """Every loop and block in the place of each that the call names, and every two loops in the place of its loops."""
    asked = calls_asked(monkeypatch)
    sections = read(path)
    sch, _ = perform(program_of(sections), sections["steps"])
    step, given = asked[-1]
    loops, blocks = loop_labels(sch.state), [name for name in sch.state.index.blocks if name != "root"]
    for name, kind in step.kinds.items():
        known = [*(loops if "loop" in kind else ()), *(blocks if "block" in kind else ())]
        several = isinstance(given.get(name), (list, tuple))
        for other in itertools.permutations(loops, 2) if several else known:
            call = {**given, name: other}
            if name in given and _refusal(sch, step, call) == "":
                assert sch._attempt(step, sch.state, call)[0].mod is sch.mod, call


def test_every_refusal_says_what_is_legal():
    silent = [f"{path.parent.name}/{path.stem}" for path in REFUSED if "\nlegal" not in read(path)["refused"]]
    assert silent == []
    assert len(NOTHING) < 0.25 * len(REFUSED)
