"""The tool that damages what comes from outside: some of its cases, and that it would notice each kind of fault."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.tools import hostile


def test_what_is_damaged_is_answered():
    assert hostile.run(100 * len(hostile.KINDS), seed=7) == []


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


def test_memory_is_measured(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    held = []
    monkeypatch.setitem(hostile.KINDS, "text", (hostile.texts, lambda data: held.append(bytearray(b"x" * (32 << 20)))))
    monkeypatch.setattr(hostile, "MEMORY", 16 << 20)
    assert "it takes" in hostile.fault("text", 1)


def test_a_case_that_ends_the_process_is_a_fault_and_the_rest_runs_on(monkeypatch):
    answers = [(-11, "text 7000000\nfault text 7000000: slow\ntrace 7000001\n"), (0, "steps 7000002\n")]
    firsts = []

    def child(command, **options):
        firsts.append(command[command.index("--first") + 1])
        status, text = answers[len(firsts) - 1]
        return subprocess.CompletedProcess(command, status, text)

    monkeypatch.setattr(subprocess, "run", child)
    found = hostile.in_children(3, seed=7)
    assert found == ["text 7000000: slow", "trace 7000001: it ended the process with status -11"]
    assert firsts == ["0", "2"]
