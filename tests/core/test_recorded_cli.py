"""The command: what it prints, as recorded in ``golden/texts/cli.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("cli"))
def test_output_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("cli", name, request.config.getoption("--update-golden"))
