"""Instruction forms of the executor of PTX: what they make, as recorded in ``golden/texts/ptx.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("ptx"))
def test_forms_are_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("ptx", name, request.config.getoption("--update-golden"))
