"""The dialect: printed programs, and the errors of damaged ones, as recorded in ``golden/texts/script.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("script"))
def test_text_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("script", name, request.config.getoption("--update-golden"))
