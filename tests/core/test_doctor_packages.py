"""A package of another distribution in the place of one of ours is found."""

from __future__ import annotations

import codegen
from codegen.diagnosis import doctor


def test_the_place_of_the_packages_is_told():
    line = doctor()["packages"]
    assert line.ok and line.text.startswith("tir ")


def test_a_package_from_elsewhere_is_reported(monkeypatch):
    monkeypatch.setattr(codegen, "__file__", "/elsewhere/codegen/__init__.py")
    line = doctor()["packages"]
    assert not line.ok and "/elsewhere" in line.text and "environment of its own" in line.text
