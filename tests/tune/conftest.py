"""What tests of rules share."""

from __future__ import annotations

import sys

import pytest

import tir


@pytest.fixture
def rules_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The likeliest results of all rules, whatever the model expects: at sizes that tests can afford, less is often faster."""
    assert tir.tune.default
    for name in ("GAIN", "LESS", "PLAIN"):
        monkeypatch.setattr(sys.modules["tir.tune.default"], name, 0.0)
