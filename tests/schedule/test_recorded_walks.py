"""Schedules: random steps, accepted and refused, and the code at the end, as recorded in ``golden/texts/walks.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("walks"))
def test_walk_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("walks", name, request.config.getoption("--update-golden"))
