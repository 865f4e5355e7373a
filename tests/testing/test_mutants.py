"""The mutation test of the tests: which mutants there are, and that tests kill what they see."""

from __future__ import annotations

import pytest

from tests.tools import mutants
from tests.tools.mutants import ROOMS, draw, mutants_of, outcome, selected_tests

SOURCE = '''"""A docstring with 3 and < in it."""

ä = 1


def smaller(a: int, b: int = 2) -> bool:
    assert a != 7
    if not a and b > 3:
        return a is b
    return [x * 4 for x in (a,) if x in (b,)] < [f"{a - b}"]
'''


def test_each_kind_of_mutant():
    texts = {m.applied_to(SOURCE) for m in mutants_of("m.py", SOURCE)}
    for old, new in [
        ("ä = 1", "ä = 2"), ("b: int = 2", "b: int = 3"), ("if not a and b > 3", "if (not (not a and b > 3))"),
        ("not a and", "bool(a) and"), ("a and b", "a or b"), ("b > 3", "b >= 3"), ("b > 3", "b > 4"),
        ("a is b", "a is not b"), ("x * 4", "x + 4"), ("x * 4", "x * 5"), ("if x in", "if (not (x in"), ("x in (b", "x not in (b"),
        ("] < [", "] <= ["),
    ]:  # fmt: skip
        assert any(new in text for text in texts), (old, new)
    # nothing in docstrings, annotations, assertions and texts
    assert all(kept in t for t in texts for kept in ("3 and <", "a != 7", "{a - b}", "a: int"))


def test_every_room_has_tests_and_mutants():
    chosen = draw(mutants.ROOT, list(ROOMS), 12, seed=3)
    assert chosen == draw(mutants.ROOT, list(ROOMS), 12, seed=3) != draw(mutants.ROOT, list(ROOMS), 12, seed=4)
    assert {room for room, _ in chosen} == set(ROOMS)
    for room, mutant in chosen:
        assert len(selected_tests(mutants.ROOT, room, mutant.file)) >= 5
    assert selected_tests(mutants.ROOT, "tir/schedule", "tir/schedule/primitives/blockize.py")[0].endswith(
        "blockize.py"
    )


@pytest.mark.parametrize("test, result", [("one() == 1", "killed"), ("one() > 0", "survived")])
def test_outcomes(tmp_path, test, result):
    (tmp_path / "mutated_one.py").write_text("def one():\n    return 1\n")
    (tmp_path / "test_one.py").write_text(f"from mutated_one import one\n\n\ndef test_one():\n    assert {test}\n")
    (mutant,) = mutants_of("mutated_one.py", (tmp_path / "mutated_one.py").read_text())
    assert outcome(tmp_path, mutant, ["test_one.py"], 60) == result
    assert (tmp_path / "mutated_one.py").read_text() == "def one():\n    return 1\n"
