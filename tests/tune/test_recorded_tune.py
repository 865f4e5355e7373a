"""The tuner: the schedules that its rules offer, and what its model expects of them, as recorded in ``golden/texts/tune.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("tune"))
def test_workload_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("tune", name, request.config.getoption("--update-golden"))
