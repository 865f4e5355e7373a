"""Analyses: regions, effects, patterns and footprints of many programs, as recorded in ``golden/texts/analysis.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("analysis"))
def test_finding_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("analysis", name, request.config.getoption("--update-golden"))
