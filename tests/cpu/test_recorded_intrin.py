"""Tensor intrinsics: what they compute, and how they are called, as recorded in ``golden/texts/intrin.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("intrin"))
def test_intrinsic_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("intrin", name, request.config.getoption("--update-golden"))
