"""Tensor expressions: their programs, schedules and code, as recorded in ``golden/texts/te.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("te"))
def test_program_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("te", name, request.config.getoption("--update-golden"))
