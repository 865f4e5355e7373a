"""The testing kit: what it draws, models and reduces, as recorded in ``golden/texts/kit.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("kit"))
def test_kit_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("kit", name, request.config.getoption("--update-golden"))
