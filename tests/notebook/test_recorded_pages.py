"""Pictures of accesses and banks, and completion, as recorded in ``golden/texts/pages.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("pages"))
def test_page_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("pages", name, request.config.getoption("--update-golden"))
