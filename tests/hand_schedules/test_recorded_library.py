"""The library: its schedules and their code, as recorded in ``golden/texts/library.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("library"))
def test_schedule_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("library", name, request.config.getoption("--update-golden"))
