"""Whole models: graphs after each pass, groups and memory plans, as recorded in ``golden/texts/graph.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("graph"))
def test_model_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("graph", name, request.config.getoption("--update-golden"))
