"""The rules of the tuner: what each offers, as recorded in ``golden/texts/rules.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("rules"))
def test_offers_are_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("rules", name, request.config.getoption("--update-golden"))
