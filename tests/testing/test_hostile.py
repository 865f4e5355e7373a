"""The tool that damages what comes from outside: some of its cases, and that it would notice each kind of fault."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.tools import hostile


def test_damaged_texts_traces_records_and_files_are_answered():
    assert hostile.run(400, seed=7) == []


def test_a_case_is_made_again_from_its_number():
    for kind in hostile.KINDS:
        made = [hostile.case(kind, number) for number in range(20)]
        assert made == [hostile.case(kind, number) for number in range(20)]
        assert len({str(one) for one in made}) > 10


def raises(data):
    raise KeyError("x")


def never_ends(data):
    while True:
        pass


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (raises, "KeyError"),
        (never_ends, "takes more than"),
        (lambda data: os.mkdir(hostile.TRAP), "it ran code"),
        (lambda data: subprocess.run([sys.executable, "-c", ""]), "subprocess.Popen"),
    ],
)
def test_every_kind_of_fault_is_noticed(monkeypatch, tmp_path, read, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hostile, "SECONDS", 0.05)
    monkeypatch.setitem(hostile.KINDS, "text", (hostile.texts, read))
    assert said in hostile.fault("text", 1)
