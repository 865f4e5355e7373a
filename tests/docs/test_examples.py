"""The schedules of docs/examples give the results of NumPy, at sizes that are multiples of nothing too."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

from tir.target import vector_registers


def example(name: str):
    path = pathlib.Path(__file__).parents[2] / "docs" / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sgemm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """The script runs, checks its result itself, and says how fast it was."""
    ex = example("sgemm")
    monkeypatch.setattr("sys.argv", ["sgemm.py", "-m", "50", "-n", "70", "-k", "33", "--show"])
    ex.main()
    printed = capsys.readouterr().out
    assert "def apply_trace(" in printed and "largest error " in printed
    assert (
        "gemm 50x70x33, by hand: " in printed
        and "gemm 50x70x33, by default: " in printed
        and "% of one core's FMA peak" in printed
        and f"vectors of {vector_registers().lanes()}" in printed
    )
