"""What `python -m tir.doctor` says."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import tir


def test_every_line_says_something():
    found = tir.doctor()
    assert found["LLVM"].ok and found["NVRTC"].ok and found["simulator"].ok
    assert all(line.text for line in found.lines)
    if not found["CUDA device"].ok:
        assert "no CUDA device here" in found["CUDA device"].text


def test_as_a_command():
    done = subprocess.run([sys.executable, "-m", "tir.doctor"], capture_output=True, text=True, check=True)
    assert "NVRTC" in done.stdout and "CPU" in done.stdout


def test_importing_the_command_does_not_hide_the_function():
    import tir.doctor

    assert tir.doctor()["LLVM"].ok


def test_the_cpu_is_told_with_the_features_it_has(monkeypatch):
    here = SimpleNamespace(cpu="some-cpu", features="+avx2,-avx512f,+fma", width=256)
    monkeypatch.setattr("codegen.llvm.compile.machine", lambda: here)
    cores = tir.Target.host().attrs["num_cores"]
    assert tir.doctor()["CPU"].text == f"some-cpu, {cores} cores, 256-bit vectors (avx2, fma)"
    here.features = ""
    assert tir.doctor()["CPU"].text.endswith("(base)")
