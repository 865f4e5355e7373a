"""Notebooks: pictures of schedules, and the explorer's answers, as recorded in ``golden/texts/notebook.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("notebook"))
def test_picture_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("notebook", name, request.config.getoption("--update-golden"))
