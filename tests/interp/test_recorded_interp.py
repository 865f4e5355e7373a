"""The executor and the simulator: results and reports, as recorded in ``golden/texts/interp.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("interp"))
def test_result_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("interp", name, request.config.getoption("--update-golden"))
