"""Records of texts: what differs is named and shown, and nothing else is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("group", recorded_texts.GROUPS)
def test_every_record_is_of_a_case_and_every_case_has_a_test(group: str):
    if not recorded_texts.cases(group):
        pytest.skip("its cases need a package that is not installed")
    record = f"cases are new, or gone: python -m tests.recorded_texts {group}"
    assert list(recorded_texts.recorded(group)) == list(recorded_texts.cases(group)), record
    assert list(Path(recorded_texts.__file__).parents[1].glob(f"*/test_recorded_{group}.py"))


@pytest.fixture
def one_case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """A group "mine" of one case "sum", whose texts may be changed."""
    texts = {"program": "a\nb", "llvm": "c"}
    monkeypatch.setattr(recorded_texts, "GOLDEN", tmp_path)
    monkeypatch.setattr(recorded_texts, "cases", lambda group: {"sum": texts.items})
    recorded_texts.check("mine", "sum", update=True)
    return texts


def test_what_was_recorded_is_accepted(one_case: dict[str, str]):
    recorded_texts.check("mine", "sum")


def test_a_difference_names_the_text_and_shows_it(one_case: dict[str, str]):
    one_case["llvm"] = "d"
    with pytest.raises(AssertionError, match=r"texts/mine/sum: not what is recorded: llvm\n(.*\n)+== llvm is now\nd$"):
        recorded_texts.check("mine", "sum")


def test_of_a_long_line_the_beginning_is_shown(one_case: dict[str, str]):
    one_case["llvm"] = "d" * 1000
    with pytest.raises(AssertionError, match=r"== llvm is now\nd{200} … 800 more characters$"):
        recorded_texts.check("mine", "sum")


def test_a_text_that_is_gone_or_new_is_a_difference(one_case: dict[str, str]):
    one_case["more"] = one_case.pop("llvm")
    with pytest.raises(AssertionError, match="recorded: llvm, more\n"):
        recorded_texts.check("mine", "sum")


def test_a_case_of_which_nothing_is_recorded_is_new(one_case: dict[str, str], tmp_path: Path):
    (tmp_path / "mine.txt").unlink()
    with pytest.raises(
        AssertionError, match=r"^texts/mine/sum: a new case, .*\n.*tests.recorded_texts mine\n== program is now\na\nb$"
    ):
        recorded_texts.check("mine", "sum")


def test_updating_forgets_cases_that_are_gone(one_case: dict[str, str], tmp_path: Path):
    file = tmp_path / "mine.txt"
    file.write_text("old program:01234567\n" + file.read_text())
    recorded_texts.check("mine", "sum", update=True)
    assert list(recorded_texts.recorded("mine")) == ["sum"]
