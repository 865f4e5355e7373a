"""Operators: their programs, schedules and code, as recorded in ``golden/texts/ops.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("ops"))
def test_operator_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("ops", name, request.config.getoption("--update-golden"))
